"""Exports of several countries as a notebook has them, by pandas with nothing but separator and encoding: an estimator
reads every column by the spelling that it asks for, accounts for it, and predicts; before that, nothing is spent."""

import re
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpmpc.errors import owner_text
from dpmpc.estimators import PrivateLogisticRegression
from dpmpc.intake.spelling import Spelling
from tests.intake.abroad import ABROAD, PRINTED
from tests.intake.exports import (
    DEVICES,
    FRENCH,
    GERMAN,
    INDIAN,
    JAPANESE,
    LEDGER,
    PERSIAN,
    RUSSIAN,
    TURKISH,
    WARD,
    Export,
)
from tests.refusals import refuses

pytestmark = pytest.mark.usefixtures("small_tables")
ASKED: dict[str, Any] = {"epsilon": 22.0, "delta": 1e-5, "engine": "clear", "iterations": 2, "basis": "linear"}


def frame_of(export: Export, folder: Path, rows: int) -> tuple[pd.DataFrame, Any]:
    path = export.write(folder, rows)
    frame = pd.read_csv(path, sep=export.separator, encoding=export.encoding, skiprows=export.first_line.count("\n"))
    return frame, frame.pop(export.target)


@pytest.mark.slow
@pytest.mark.parametrize(
    "export",
    (
        GERMAN,
        FRENCH,
        INDIAN,
        TURKISH,
        JAPANESE,
        PERSIAN,
        LEDGER,
        WARD,
        RUSSIAN,
        DEVICES,
        *(each for each in ABROAD if each is not PRINTED),
    ),
    ids=lambda e: e.name,
)
def test_every_column_of_an_export_is_read_by_an_estimator(export: Export, tmp_path: Path) -> None:
    """A number or a date in every record is some 18 deviations of a survey's noise here. A bucket of rare texts stands
    out by chance, once in some hundred fits; five of them, with what else a column has, once in 10^9 runs."""
    frame, y = frame_of(export, tmp_path, 1000)
    asked = {**ASKED, "classes": list(export.classes), "data_id": export.name}
    spelling = Spelling()
    if replace(export.spelling, encoding="", header=0, missing=()) != spelling:
        with refuses("records", "spelling=Spelling", kind=ValueError) as refused:
            PrivateLogisticRegression(**asked).fit(frame, y, owners=np.arange(len(y)) % 3)
        stated = re.search(r"state spelling=(Spelling\(.*?\))(?: \(|, leave)", owner_text(refused.value))
        assert stated is not None
        spelling = eval(stated[1], {"Spelling": Spelling})  # as a reader would type it
    model = PrivateLogisticRegression(**asked, spelling=spelling)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model.fit(frame, y, owners=np.arange(len(y)) % 3)
    used, left = model.columns_["used"], model.columns_["left_out"]
    assert {*used, *left} == {*frame.columns}
    plain = {name for name, kind in export.kinds.items() if kind in ("number", "date", "time")}
    read = {column.name for column in model.schema_.columns if getattr(column, "number", False)}
    assert plain <= read, plain - read
    texts = {name for name, kind in export.kinds.items() if kind in ("identifier", "free text")}
    assert all(used.get(name, 0) <= 6 for name in texts - read), used
    looks = "; ".join(str(warning.message) for warning in said)
    assert all(f"column '{name}' looks like {export.kinds[name]}" in looks for name in texts)
    with warnings.catch_warnings():  # of a column whose one bucket stood out by chance all other texts are unknown
        warnings.filterwarnings("ignore", ".*none of those that stood out of the survey's noise", UserWarning)
        shares = model.predict_proba(frame)
    assert shares.shape == (len(y), 2) and np.isfinite(shares).all() and np.ptp(shares[:, 1]) > 0
