"""What becomes of values that questions are about: told to the owner of the records, in nothing that is published."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import dpmpc
from dpmpc.cli.main import group
from dpmpc.records.schema import Labels, Schema, Surveyed
from dpmpc.statistics.columns import Columns, Quantity
from tests.refusals import refuses

pytestmark = pytest.mark.usefixtures("small_tables")

DECOMPOSED = "Me\u0301decine"  # the e and its accent as two characters, as some systems write it
COMPOSED = "M\u00e9decine"
BOUNDS: dict[str, Any] = {"sex": ["f", "m"], "ward": ["cardio", COMPOSED], "age": [18, 90], "seen": [0, 30000]}
ASKED = ["table(sex)", "table(ward)", "mean(age)", "mean(seen)", "count where sick = yes"]
PROMISE: dict[str, Any] = {"epsilon": 20.0, "delta": 1e-5, "engine": "clear"}


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    n = 400
    return pd.DataFrame({
        "site": np.where(np.arange(n) % 2, "a", "b"), "sex": np.where(np.arange(n) % 2, "F", "M"),
        "ward": np.where(np.arange(n) % 4 == 0, DECOMPOSED, " cardio "), "age": np.where(np.arange(n) < 9, -9.0, 50.0),
        "seen": "2024-03-05", "sick": np.where(np.arange(n) < 7, "perhaps", "yes"),
    })  # fmt: skip


def test_the_command_tells_the_owner_and_publishes_nothing_of_it(frame: pd.DataFrame, tmp_path: Path) -> None:
    frame.to_csv(tmp_path / "all.csv", index=False)
    lists = ", ".join(f'"{level}"' for level in ("yes", "no"))
    words = [f'{name} = ["{entry[0]}", "{entry[1]}"]' for name, entry in BOUNDS.items() if isinstance(entry[0], str)]
    text = "\n".join([*words, "age = [18, 90]", "seen = [0, 30000]", f"sick = [{lists}]"])
    (tmp_path / "bounds.toml").write_text(text, encoding="utf-8")
    given = ["--csv", f"{tmp_path}/all.csv", "--owners-column", "site", "--bounds", f"{tmp_path}/bounds.toml"]
    promise = ["--epsilon", "20", "--delta", "1e-5", "--engine", "clear", "--out", f"{tmp_path}/run", "--hopeless"]
    result = CliRunner().invoke(group, ["stats", *ASKED, *given, *promise], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    for line in (
        "column 'sex': 400 not listed of 400",
        "column 'age': 9 clipped of 400",
        "column 'seen': 400 not read of 400",
        "column 'sick': 7 not listed of 400",
        "'F' x 200 (listed as 'f')",
        "9 values lie beyond 18 to 90: '-9.0' x 9",
        "'2024-03-05' x 400",
        "warning: sex: 400 of 400 values are unknown",
    ):
        assert line in result.stderr, line
    assert "column 'ward'" not in result.stderr  # both spellings of its accent are one value
    assert "your records" not in result.stdout and "site" not in result.stderr
    published = "".join(p.read_text(errors="replace") for p in (tmp_path / "run").iterdir() if p.is_file())
    assert "not listed" not in published and "perhaps" not in published and "2024-03-05" not in published


def test_python_warns_of_a_column_nearly_none_of_whose_values_fit(frame: pd.DataFrame) -> None:
    told: list[str] = []
    dpmpc.stats(frame, ["table(ward)", "mean(age)"], owners="site", bounds=BOUNDS, tell=told.append, **PROMISE)
    assert "your records: column 'age': 9 clipped of 400" in told
    with pytest.warns(UserWarning, match="column 'sex': 400 of 400 values are unknown"):
        dpmpc.stats(frame, ["table(sex)"], owners="site", bounds=BOUNDS, **PROMISE)
    dpmpc.stats(frame, ["table(ward)"], owners="site", bounds=BOUNDS, **PROMISE)  # a part of them is no warning


def test_a_category_that_takes_every_value_has_none_that_is_not_listed(frame: pd.DataFrame) -> None:
    told: list[str] = []
    schema = Schema((Surveyed("age"),), Labels("sick", ("yes",), None), True, "fill", "public")
    dpmpc.stats(frame, ["table(sick)"], owners="site", schema=schema, tell=told.append, **PROMISE)
    assert told == []


def test_dates_are_no_numbers_in_any_kind_of_file(frame: pd.DataFrame) -> None:
    """As texts they would be missing, so as a column of dates they are refused: not days since some day at one owner
    and nothing at another."""
    dates = frame.assign(seen=pd.to_datetime(frame["seen"]))
    with refuses("records", "seen") as refused:
        dpmpc.stats(dates, ["mean(seen)"], owners="site", bounds=BOUNDS, **PROMISE)
    assert refused.value.message == "an owner has dates where numbers are asked for"
    surveyed = Surveyed("seen", buckets=4, kept=(), missing=True, number=True, low=0.0, high=30000.0)
    schema = Schema((surveyed,), Labels("sick", ("yes",), None), True, "fill", "survey")
    column = Columns.of_schema(schema)["seen"]
    assert isinstance(column, Quantity) and column.dates
    bounds = column.low, column.high
    for each in (dates, frame):
        found = dpmpc.stats(each, [f"mean(seen, range=[{bounds[0]}, {bounds[1]}])"], owners="site", schema=schema,
                            hopeless="allow", **PROMISE)  # fmt: skip
        mean = found.answers[0].lines[0].number.estimate
        assert mean is not None and abs(mean - 19787) < 2000
