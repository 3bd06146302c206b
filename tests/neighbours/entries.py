"""The public entries, each called with two tables that differ in one ugly record: what is public must not differ, and
the vector that an owner sends by no more than the plan claims.

An entry gives what anybody may know (plan, dimension, columns, names of files) and the integer vectors of the first
release that depends on records, as they go to the parties. Later releases follow from noise, which is fresh each time.
"""

import json
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import dpmpc
from dpmpc.aggregation.owner import aggregator
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.errors import DpmpcError, public_text
from dpmpc.estimators import PrivateLogisticRegression
from dpmpc.records.loading import load, opened

BOUNDS = {"x": [0.0, 7.0], "z": [0.0, 4.0]}
PLACED: dict[str, Any] = {"epsilon": 20.0, "delta": 1e-4, "engine": "clear", "hopeless": "allow"}
PLACED |= {"owners": "o", "data_id": "rows"}
ASKED: dict[str, Any] = {**PLACED, "tell": lambda text: None}
MADE: dict[str, Any] = {**PLACED, "rows": 20, "seed": 1}


class Told(BaseException):
    """The vector is known: what would come after it is noise."""


@dataclass(frozen=True)
class Seen:
    """What is public, the vector (d,) in grid steps and how far one neighbour may move it, in L2; or why it refuses."""

    public: Any
    vector: Any = None
    claimed: float = 0.0
    refused: str = ""


def release_of(call: Callable[[Path], object], folder: Path) -> Seen:
    """What a call sends first, and what its folder has by then."""
    found = list[tuple[Plan, Any]]()
    encode = aggregator.encode

    def told(plan: Plan, vectors: Any, first: int = 0) -> Any:
        found.append((plan, encode(plan, vectors, first)))
        raise Told

    out = folder / "out"
    try:
        with mock.patch.object(aggregator, "encode", told), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call(out)
    except Told:
        pass
    except (DpmpcError, ValueError) as error:
        if not isinstance(error, DpmpcError):
            return Seen(None, refused=f"{type(error).__name__}")
        return Seen(None, refused=public_text(error))
    plan, vector = found[0]
    public = json.loads(plan.to_text())
    for drawn in ("run_id", "stage_of"):  # anew for each run: a name, and a digest with it
        public.pop(drawn, None)
    names = sorted(str(path.relative_to(out)) for path in out.rglob("*")) if out.exists() else []
    return Seen((public, plan.dimension, vector.shape, names), vector, plan.derived.sensitivity_steps)


def stats(source: Any, folder: Path) -> Seen:
    return release_of(
        lambda out: dpmpc.stats(source, ["mean(x)", "hist(z)"], bounds=BOUNDS, out=out, **ASKED), folder
    )


def synth(source: Any, folder: Path) -> Seen:
    return release_of(lambda out: dpmpc.synth(source, bounds=BOUNDS, out=out, **MADE), folder)


def synth_survey(source: Any, folder: Path) -> Seen:
    return release_of(lambda out: dpmpc.synth(source, out=out, **MADE), folder)


def persons(source: Any, folder: Path) -> Seen:
    """A promise of persons, of whom z says who they are: each has one place."""
    return release_of(
        lambda out: dpmpc.stats(source, ["mean(x)"], bounds=BOUNDS, out=out, person="z", person_rows=1, **ASKED), folder
    )


def estimator(source: Any, folder: Path) -> Seen:
    """A surveyed fit, of a frame."""
    import pandas as pd

    frame = pd.DataFrame({name: source[name] for name in ("x", "z")})
    y = np.arange(len(frame)) // 2 % 2
    return release_of(
        lambda out: PrivateLogisticRegression(epsilon=20.0, delta=1e-4, engine="clear", iterations=1).fit(frame, y),
        folder,
    )  # fmt: skip


def mapped(source: Any, folder: Path) -> Seen:
    """Records through public bounds, as `train` maps them: (n, d), of which one row may differ, by 2 at most."""
    try:
        found = load(source, target="z", task="ridge", bounds=BOUNDS, drop=("o",), test_fraction=0.0)
    except DpmpcError as error:
        return Seen(None, refused=public_text(error))
    return Seen((found.schema.to_json(), found.X.shape), np.array(found.X), 2.0 + 1e-9)


def looked_at(source: Any, folder: Path) -> Seen:
    """The columns with their kinds, which a survey's plan names."""
    try:
        with opened(source) as (table, _):
            return Seen([(column.name, column.type, column.kind) for column in table.columns], np.zeros(0))
    except DpmpcError as error:
        return Seen(None, refused=public_text(error))


ENTRIES: dict[str, Callable[[Any, Path], Seen]] = {
    "stats": stats, "synth within bounds": synth, "synth by a survey": synth_survey, "stats of persons": persons,
    "estimator": estimator, "mapped": mapped, "columns": looked_at,
}  # fmt: skip
OF_FRAMES = ("arrays", "series", "pandas objects", "pandas category")


def differ(one: Seen, other: Seen) -> str:
    """What of two neighbours differs that must not; "" for nothing, and where one is refused."""
    if one.refused:
        return f"refused without it: {one.refused}"
    if other.refused:
        return ""
    if one.public != other.public:
        return f"public: {short(one.public, other.public)}"
    moved = float(np.linalg.norm((np.asarray(one.vector, dtype=np.float64) - other.vector).ravel()))
    return f"moved {moved:.6g} where {one.claimed:.6g} is claimed" if moved > one.claimed else ""


def short(one: Any, other: Any) -> str:
    """The first places in which two values differ."""
    texts = [json.dumps(each, default=str, sort_keys=True) for each in (one, other)]
    at = next((k for k, (a, b) in enumerate(zip(*texts, strict=False)) if a != b), min(map(len, texts)))
    return " | ".join(text[max(0, at - 30) : at + 50] for text in texts)
