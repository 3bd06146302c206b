"""Public bounds restrict a survey where there can be one, and replace it where there can be none."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpmpc
from dpmpc.estimators import PrivateLogisticRegression, PrivateRidge
from dpmpc.records.schema import Numeric, Schema, Surveyed

pytestmark = pytest.mark.filterwarnings(r"ignore:\d+ fits on :dpmpc.estimators.spending.PrivacyWarning")
ASKED: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-5, "engine": "clear"}


def heaped(n: int = 6000) -> tuple[Any, Any, Any]:
    """(X, y, site): numbers of 0 to 60 of which most are below 3."""
    rng = np.random.default_rng(3)
    X = np.minimum(np.exp(rng.normal(size=(n, 2))), 60)
    return X, (np.log(X).sum(axis=1) + rng.normal(size=n) > 0).astype(int), rng.integers(0, 4, n)


def within(schema: Schema) -> bool:
    """Whether the numbers are scaled as a survey found them, inside what is public of them."""
    return all(isinstance(column, Surveyed) and column.high < 60 for column in schema.columns)


@pytest.mark.parametrize("model", [PrivateLogisticRegression, PrivateRidge])
def test_an_estimators_bounds_restrict_its_survey(model: Any) -> None:
    X, y, site = heaped()
    known = {"classes": [0, 1]} if model is PrivateLogisticRegression else {"target_bounds": (0, 1)}
    surveyed = model(**ASKED, **known, bounds=(0, 60)).fit(X, y, owners=site)
    assert within(surveyed.schema_)
    assert surveyed.schema_.bounds == "survey"
    alone = model(**ASKED, **known, bounds=(0, 60), preprocessing="records").fit(X, y, owners=site)
    assert all(isinstance(column, Numeric) for column in alone.schema_.columns)


def test_too_few_records_for_a_survey_leave_the_bounds() -> None:
    X, y, site = (part[:40] for part in heaped())
    fitted = PrivateLogisticRegression(**ASKED, classes=[0, 1], bounds=(0, 60)).fit(X, y, owners=site)
    assert all(isinstance(column, Numeric) for column in fitted.schema_.columns)


def test_a_survey_asked_for_beside_an_estimators_schema_is_made() -> None:
    X, y, site = heaped()
    classes = {"classes": [0, 1]}
    alone = PrivateLogisticRegression(**ASKED, **classes, bounds=(0, 60), preprocessing="records")
    schema = alone.fit(X, y, owners=site).schema_
    as_it_is = PrivateLogisticRegression(**ASKED, schema=schema).fit(X, y, owners=site)
    assert as_it_is.schema_ == schema
    restricting = PrivateLogisticRegression(**ASKED, schema=schema, preprocessing="survey").fit(X, y, owners=site)
    assert within(restricting.schema_)


def trained(folder: Path, bounds: str, table: str, **more: Any) -> bool:
    """Whether a run on this table with these bounds has a survey."""
    (folder / "bounds.toml").write_text(bounds, encoding="utf-8")
    (folder / "table.csv").write_text(table, encoding="utf-8")
    dpmpc.train(
        folder / "run", csv=str(folder / "table.csv"), target="y", owners_column="site", evaluate=False,
        bounds=str(folder / "bounds.toml"), **ASKED, **more,
    )  # fmt: skip
    return (folder / "run" / "survey").exists()


def table_of(n: int = 6000) -> str:
    """Two features, one of numbers and one of texts."""
    X, y, site = heaped(n)
    lines = [
        f"{row[0]:.4f},{'ab'[int(row[1] > 1)]},{label},{owner}" for row, label, owner in zip(X, y, site, strict=True)
    ]
    return "x,word,y,site\n" + "\n".join(lines) + "\n"


BOTH = 'x = [0, 60]\nword = ["a", "b"]\ny = [0, 1]\n'


@pytest.mark.parametrize(("more", "surveyed"), [({}, True), ({"preprocessing": "records"}, False)])
def test_bounds_of_a_run_restrict_its_survey(tmp_path: Path, more: dict[str, Any], surveyed: bool) -> None:
    assert trained(tmp_path, BOTH, table_of(), **more) == surveyed


def test_bounds_that_leave_nothing_open_need_no_survey(tmp_path: Path) -> None:
    assert not trained(tmp_path, 'word = ["a", "b"]\ny = [0, 1]\n', table_of(), drop=("x",))
