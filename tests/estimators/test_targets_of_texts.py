"""Targets as exports have them: an estimator reads quantities in an owner's spelling, and labels as files' are."""

import re
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpmpc.errors import owner_text
from dpmpc.estimators import PrivateLogisticRegression, PrivateRegressor, PrivateRidge
from dpmpc.estimators.targets import labels, quantities
from dpmpc.intake.spelling import Spelling
from tests.refusals import refuses

pytestmark = pytest.mark.usefixtures("small_tables")
ASKED: dict[str, Any] = {"epsilon": 20.0, "delta": 1e-5, "engine": "clear", "basis": "linear"}
N = 1500
RNG = np.random.default_rng(8)
DOSE = RNG.normal(size=N)
X = pd.DataFrame({"dose": [f"{value:.3f}".replace(".", ",") for value in DOSE], "ward": RNG.choice(["A", "B"], N)})
COST = 4000 + 900 * DOSE
GERMAN = Spelling(decimal=",", thousands=".")


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def german(values: Any) -> list[str]:
    return [f"{value:,.2f}".replace(",", "\0").replace(".", ",").replace("\0", ".") for value in values]


@pytest.mark.parametrize("kind", [PrivateRidge, PrivateRegressor])
def test_a_regression_reads_targets_as_they_are_spelled_and_asks_for_all_in_one_line(kind: Any) -> None:
    y = pd.Series(german(COST), name="cost")
    with refuses("records", 2, "(dose, cost)", kind=ValueError) as refused:
        kind(**ASKED).fit(X, y)
    stated = re.search(r"state spelling=(Spelling\(.*?\)),", owner_text(refused.value))
    assert stated is not None and eval(stated[1]) == GERMAN
    model = kind(**ASKED, spelling=GERMAN, data_id=kind.__name__).fit(X, y)
    assert model.score(X, y) > 0.8 and model.score(X, COST) > 0.8
    assert np.corrcoef(model.predict(X), COST)[0, 1] > 0.9


def test_targets_of_an_array_and_of_public_bounds_are_read_too() -> None:
    model = PrivateRidge(**ASKED, bounds=(-4, 4), target_bounds=(0, 8000), spelling=GERMAN, data_id="array")
    y = german(COST)
    assert model.fit(DOSE.reshape(-1, 1), y).score(DOSE.reshape(-1, 1), y) > 0.8
    with refuses("records", "((target))", "spelling=Spelling", kind=ValueError):
        PrivateRidge(**ASKED, bounds=(-4, 4), target_bounds=(0, 8000)).fit(DOSE.reshape(-1, 1), y)


def test_a_target_that_is_none_is_refused_or_counts_as_a_zero_vector() -> None:
    y = german(COST)
    y[2], y[5] = "k.A.", ""
    with refuses("records", 2, 1500, 3, "misfits='zero'", kind=ValueError):
        PrivateRidge(**ASKED, spelling=GERMAN).fit(X, y)
    zero = Spelling(decimal=",", thousands=".", misfits="zero")
    model = PrivateRidge(**ASKED, spelling=zero, data_id="zero").fit(X, y)
    assert model.score(X, y) > 0.8
    assert np.isnan(quantities(y, None, {}, zero)).nonzero()[0].tolist() == [2, 5]


@pytest.mark.parametrize("value", [3, 2.5, "2.5", np.float32(2.5)])
def test_quantities_of_every_kind_are_numbers(value: Any) -> None:
    found = quantities(pd.Series([value, value], dtype=object), None, {}, Spelling())
    assert found.tolist() == [float(value)] * 2
    with refuses("type", "datetime64[us]", kind=ValueError):
        quantities(pd.Series(pd.date_range("2024", periods=2)), None, {}, Spelling())


def test_labels_are_compared_as_those_of_files() -> None:
    base = np.where(DOSE > 0, "ja", "nein")
    y = np.where(np.arange(N) % 2, base, np.char.add(base, " "))
    model = PrivateLogisticRegression(**ASKED, spelling=GERMAN, data_id="labels").fit(X, y)
    assert model.classes_.tolist() == ["ja", "nein"] and model.score(X, y) > 0.8 and model.score(X, base) > 0.8
    for wrong, *values in (
        (np.where(np.arange(N) % 2, base, np.char.upper(base)), "y", "JA", "ja"),
        (german(COST), 20, "classes="),
    ):
        with refuses("records", *values, kind=ValueError):
            PrivateLogisticRegression(**ASKED, spelling=GERMAN).fit(X, wrong)


@pytest.mark.parametrize("gone", [None, np.nan, pd.NA, "", " ", "n/a"])
def test_a_label_that_is_missing_is_refused_or_counts_as_a_zero_vector(gone: Any) -> None:
    y = pd.Series(np.where(DOSE > 0, "ja", "nein"), dtype=object)
    y[4] = gone
    with refuses("records", 1, 1500, 5, "misfits='zero'", kind=ValueError):
        PrivateLogisticRegression(**ASKED, spelling=GERMAN).fit(X, y)
    found, there = labels(y, Spelling(misfits="zero"))
    assert np.flatnonzero(~there).tolist() == [4] and set(found[there].tolist()) == {"ja", "nein"}


@pytest.mark.parametrize("weight", [None, "balanced"])
@pytest.mark.parametrize("classes", [2, 3])
def test_records_without_a_label_count_as_zero_vectors_where_that_was_stated(weight: Any, classes: int) -> None:
    cuts = [0.0] if classes == 2 else [-0.5, 0.5]
    y = np.array(["low", "middle", "high"], dtype=object)[np.digitize(DOSE, cuts)]
    y[::50] = None
    zero = Spelling(decimal=",", misfits="zero")
    model = PrivateLogisticRegression(**ASKED, spelling=zero, class_weight=weight, data_id=f"{weight}{classes}")
    assert len(model.fit(X, y).classes_) == classes and model.score(X, y) > 0.8


def test_booleans_and_whole_numbers_with_marks_of_pandas_stay_what_they_are() -> None:
    for dtype, values in (("boolean", [True, False, None]), ("Int64", [3, 7, None])):
        found, there = labels(pd.Series(values, dtype=dtype), Spelling(misfits="zero"))
        assert found[there].tolist() == values[:2]


def test_labels_of_mixed_types_end_in_one_line() -> None:
    """Whatever stands beside a text has no order with it; with stated classes each label is compared by itself."""
    words = np.where(DOSE > 0, "ja", "nein").astype(object)
    for odd in (1, 2.5, True, np.int64(1), np.float32(0.5)):
        y = words.copy()
        y[7] = odd
        with refuses("records", "y", "classes=", kind=ValueError):
            PrivateLogisticRegression(**ASKED, spelling=GERMAN, data_id="mixed").fit(X, y)
    y = np.where(DOSE > 0, 1, 0).astype(object)
    y[7] = "nein"
    with refuses("records", "classes=", kind=ValueError):
        PrivateLogisticRegression(**ASKED, spelling=GERMAN, classes=[0, 1], data_id="mixed").fit(X, y)
