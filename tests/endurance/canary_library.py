"""A program that uses the library on records with canaries, with a debug log: `python -m tests.endurance.canary_library
KIND RECORDS` in a folder of its own. The log, and what may be said of an error to others, are files there."""

import logging
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

import dpmpc
from dpmpc.errors import DpmpcError, public_text
from dpmpc.estimators import PrivateLogisticRegression, PrivateRidge
from dpmpc.intake.spelling import Spelling

PROMISE: dict[str, Any] = {"epsilon": 4.0, "delta": 1e-4, "data_id": "records"}
BOUNDS: dict[str, Any] = {"y": ["0", "1"], "ward": ["surgery", "general"], "amount": [0, 1000]}
OUT = Path("run")


def _train(frame: pd.DataFrame, **more: Any) -> None:
    settings: dict[str, Any] = {"target": "y", "owners_column": "site", "iterations": 2, **PROMISE, **more}
    dpmpc.train(OUT, records=frame, **settings)


def _stats(frame: pd.DataFrame, *more: str) -> None:
    asked = ["count by ward", "mean(amount)", "median(amount) by y", "table1 by y", *more]
    dpmpc.stats(frame, asked, owners="site", bounds=BOUNDS, out=OUT, tell=lambda text: None, **PROMISE)


def _synth(frame: pd.DataFrame, **more: Any) -> None:
    settings: dict[str, Any] = {"target": "y", "owners": "site", "bounds": BOUNDS, "hopeless": "allow", **more}
    dpmpc.synth(frame[["ward", "amount", "y", "site"]], out=OUT, **settings, **PROMISE)


def _fit(frame: pd.DataFrame) -> None:
    X, y = frame.drop(columns=["y", "site"]), frame.y
    PrivateLogisticRegression(**PROMISE, ledgers="ledgers").fit(X, y, owners=frame.site)
    PrivateRidge(**PROMISE, ledgers="ledgers").fit(X.drop(columns="stage"), pd.to_numeric(X.stage), owners=frame.site)


KINDS: dict[str, Callable[[pd.DataFrame], None]] = {
    "train": _train,
    "train by records": lambda frame: _train(frame, preprocessing="records"),
    "stats": _stats,
    "synth": _synth,
    "fit": _fit,
    "train on a misfit": lambda frame: _train(frame.assign(y=frame.y.where(frame.index != 20, frame.id[0]))),
    "train on misspelled numbers": lambda frame: _train(
        frame.assign(amount=frame.amount.str.replace(".", ","), note=frame.id), spelling=Spelling()
    ),
    "stats of no such column": lambda frame: _stats(frame, "mean(ammount)"),
    "synth of misspelled numbers": lambda frame: _synth(
        frame.assign(amount=frame.amount.str.replace(".", ",")), spelling=Spelling(misfits="ask")
    ),
}


def main() -> None:
    """Entry point: code 3 where the library refuses."""
    warnings.simplefilter("ignore")  # which are for the eyes of who has the records
    kind, path = sys.argv[1:]
    handler = logging.FileHandler("library.log")
    logging.getLogger("dpmpc").addHandler(handler)
    logging.getLogger("dpmpc").setLevel(logging.DEBUG)
    try:
        KINDS[kind](pd.read_csv(path, dtype=str))
    except DpmpcError as error:
        Path("public.txt").write_text(public_text(error))
        print(error, file=sys.stderr)
        sys.exit(3)


if __name__ == "__main__":
    main()
