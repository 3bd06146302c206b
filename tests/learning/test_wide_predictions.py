"""Predictions for records of many columns: as if each were asked about by itself, and in as many queries."""

from datetime import date
from pathlib import Path

import numpy as np
import pytest

from dpmpc.intake import staging as holding
from dpmpc.intake.spelling import Spelling
from dpmpc.intake.table import Table
from dpmpc.learning.model import write_model
from dpmpc.learning.predict import Predictions, predict
from dpmpc.records import CsvFile, load
from dpmpc.records.schema import Categorical, Column, Date, Labels, Numeric, Schema
from tests.refusals import refuses

pytestmark = pytest.mark.usefixtures("small_tables")

NUMBERS = ("1", " 2.5", "-0.1", "1e400", "NA", "", "x", "1,5", "+3", "\uff17", "1.234,5")
DATES = ("2024-03-01", "01.02.2023", "", "n/a", "soon", "2031-12-24 10:00")
WORDS = ("DE", " FR ", "NA", "", "Perú", "true", "7", "007")
FIELDS = (NUMBERS, DATES, WORDS)
SPELLINGS = (Spelling(), Spelling(decimal=","), Spelling(missing=("x",), misfits="zero"))


def _column(k: int) -> Column:
    if k % 3 == 0:
        return Numeric(f"c{k}", -1.0, 1.0 + k)
    if k % 3 == 1:
        return Date(f"c{k}", date(2020, 1, 1), date(2030, 1, 1))
    return Categorical(f"c{k}", ("DE", "NA", "7", "true"))


def _run(folder: Path, columns: int) -> tuple[Path, Path]:
    """(a run's folder with a model, records)."""
    rng = np.random.default_rng(columns)
    rows = [[str(rng.choice(FIELDS[k % 3])) for k in range(columns)] for _ in range(70)]
    names = ",".join([*(f"c{k}" for k in range(columns)), "y"])
    lines = [",".join([*(f'"{field}"' for field in row), "yn"[k % 2]]) for k, row in enumerate(rows)]
    records = folder / f"{columns}.csv"
    records.write_text("\n".join([names, *lines]) + "\n", encoding="utf-8")
    schema = Schema(tuple(_column(k) for k in range(columns)), Labels("y", ("y",), ("n",)))
    data = load(CsvFile(records), schema=schema, test_fraction=0.0)
    write_model(folder / "model.npz", rng.normal(size=len(schema.feature_names)), data, "r")
    return folder, records


def _bits(found: Predictions) -> tuple[object, ...]:
    return [values.tolist() for values in found.columns.values()], found.score, repr(found.counts)


@pytest.mark.parametrize("spelling", SPELLINGS, ids=str)
def test_wide_records_are_predicted_as_those_whose_columns_are_asked_one_by_one(
    spelling: Spelling, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, records = _run(tmp_path, 40)
    together = predict(run, records, spelling=spelling)
    monkeypatch.setattr(holding, "_SEVERAL", 60)
    assert _bits(together) == _bits(predict(run, records, spelling=spelling))
    found = {word for c in together.counts for word in ("missing", "unknown", "clipped", "unread") if getattr(c, word)}
    assert found == {"missing", "unknown", "clipped", "unread"} and together.n == 70


def test_a_wide_file_is_read_as_often_however_many_columns_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, run = list[str](), Table.run
    monkeypatch.setattr(Table, "run", lambda self, query: (asked.append(query), run(self, query))[1])
    found = []
    for columns in (30, 240):
        made, records = _run(tmp_path, columns)
        asked.clear()
        predict(made, records)
        found.append((len(asked), sum("read_csv" in query for query in asked)))
    assert found[0] == found[1]


def test_a_column_that_is_not_there_is_named_before_anything_is_held(tmp_path: Path) -> None:
    run, records = _run(tmp_path, 40)
    records.write_text(records.read_text(encoding="utf-8").replace("c17,", "C17,", 1), encoding="utf-8")
    with refuses("column", "C17", "c17"):
        predict(run, records)
