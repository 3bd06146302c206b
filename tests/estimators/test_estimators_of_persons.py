"""Estimators that promise persons: the plan and model of `dpmpc.train`, which records are used, refusals, and how far
one person moves the sum, by brute force."""

import functools
import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

import dpmpc
from dpmpc.aggregation.plan.guarantee import promise_of
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.errors import RecordError, owner_text
from dpmpc.estimators import PrivateLogisticRegression, PrivateRegressor, PrivateRidge, fitting
from dpmpc.learning.method import Learner
from dpmpc.planning import training as planning
from tests.refusals import Rule, breaks, refuses

PLAIN: dict[str, Any] = {
    "engine": "clear", "iterations": 3, "step": 1.0, "lam": 0.01, "average": "none", "method": "gradient",
}  # fmt: skip
PUBLIC: dict[str, Any] = {**PLAIN, "bounds": (-4.0, 4.0), "classes": [0, 1]}
pytestmark = [
    pytest.mark.usefixtures("small_tables"),
    pytest.mark.filterwarnings(
        r"ignore:\d+ fits on :dpmpc.estimators.spending.PrivacyWarning",
        r"ignore:\d+ records? (is|are) not used:UserWarning",
    ),
]


def records() -> Any:
    """A frame of 40 persons with 1 to 5 records each, at one or two of three sites."""
    rng = np.random.default_rng(4)
    who = np.repeat(np.arange(40), np.arange(40) % 5 + 1)
    X = np.clip(rng.normal(size=(len(who), 2)), -3.9, 3.9)
    frame = pd.DataFrame(X, columns=["a", "b"])
    frame["who"], frame["site"] = [f"p{k}" for k in who], (who + rng.integers(0, 2, len(who))) % 3
    frame["y"] = (frame["a"] > 0).astype(int)
    return frame.sample(frac=1, random_state=3).reset_index(drop=True)


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[Plan]:
    """The plans of fits, as they are made."""
    made: list[Plan] = []

    def plan_of(*args: Any, **more: Any) -> Plan:
        made.append(fitting_plan_of(*args, **more))
        return made[-1]

    fitting_plan_of = planning.plan_of
    monkeypatch.setattr(fitting, "plan_of", plan_of)
    return made


# -- the same as train -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("scale", "owners"), [(0.0, None), (None, None), (None, 2)])
def test_a_fit_is_what_train_makes_of_the_same_persons(
    scale: float | None, owners: int | None, tmp_path: Path, plans: list[Plan]
) -> None:
    frame = records()
    (tmp_path / "bounds.json").write_text(json.dumps({"a": [-4, 4], "b": [-4, 4], "y": ["0", "1"]}), encoding="utf-8")
    persons: dict[str, Any] = {"person": "who", "person_rows": 3, "person_owners": owners}
    trained = dpmpc.train(
        tmp_path / "run", records=frame, target="y", owners_column="site", bounds=str(tmp_path / "bounds.json"),
        test_fraction=0.0, evaluate=False, delta=1e-5, scale=scale, **PLAIN, **persons,
    )  # fmt: skip
    theirs = Plan.read(tmp_path / "run" / "plan.json")
    model = PrivateLogisticRegression(**PUBLIC, scale=scale, **persons)
    model.fit(frame[["a", "who", "b"]], frame["y"], owners=frame["site"])
    (mine,) = plans
    for name in ("neighbours", "person", "person_rows", "person_owners", "sizes", "derived", "releases", "dimension"):
        assert getattr(mine, name) == getattr(theirs, name), name
    assert model.guarantee_ == promise_of(theirs)
    assert scale == 0.0 or "all records of one person replaced" in str(model.guarantee_)
    assert mine.sizes == tuple(3 * frame[frame["site"] == k]["who"].nunique() for k in range(3))
    if scale == 0.0:
        assert np.allclose([*model.coef_.ravel(), model.intercept_], trained.model.theta, atol=1e-6)


def test_a_survey_before_a_fit_is_of_persons_too() -> None:
    rng = np.random.default_rng(1)
    who, X = np.repeat(np.arange(2000), 2), rng.normal(size=(4000, 2))
    model = PrivateLogisticRegression(engine="clear", iterations=2, epsilon=8.0, person_rows=2, classes=[0, 1])
    model.fit(X, (X[:, 0] > 0).astype(int), person=who)
    assert model.schema_.bounds == "survey" and len(model.ledger_) == 3
    assert "all records of one person" in str(model.guarantee_) and model.guarantee_.assumptions == ()


# -- whose the records are ---------------------------------------------------------------------------------------------
def fitted(X: Any, y: Any, owners: Any, settings: dict[str, Any], **given: Any) -> Any:
    model = PrivateLogisticRegression(**PUBLIC, scale=0, **settings).fit(X, y, owners=owners, **given)
    return np.array([*model.coef_.ravel(), model.intercept_])


def test_ids_are_an_array_or_a_column_of_any_frame_and_no_feature() -> None:
    frame = records()
    y, site = frame["y"], frame["site"]
    by_array = fitted(frame[["a", "b"]].to_numpy(), y, site, {"person_rows": 2}, person=frame["who"])
    numbers = frame["who"].str[1:].astype(np.int64) + 2**60  # no double holds them apart
    assert np.array_equal(fitted(frame[["a", "b"]], y, site, {"person_rows": 2}, person=numbers), by_array)
    columns = frame[["a", "who", "b"]]
    for X in (columns, pl.from_pandas(columns), pa.Table.from_pandas(columns)):
        model = PrivateLogisticRegression(**PUBLIC, scale=0, person="who", person_rows=2).fit(X, y, owners=site)
        assert np.array_equal([*model.coef_.ravel(), model.intercept_], by_array)
        features = X[["a", "b"]] if X is columns else X.select(["a", "b"])
        assert np.array_equal(model.predict(X), model.predict(features))
    weights = np.linspace(0, 1, len(frame))
    first = frame.groupby(["who", "site"]).cumcount() < 2
    kept = frame[first]
    of_all = fitted(columns, y, site, {"person": "who", "person_rows": 2}, sample_weight=weights)
    of_kept = fitted(
        columns[first], kept["y"], kept["site"], {"person": "who", "person_rows": 2}, sample_weight=weights[first]
    )
    assert np.array_equal(of_all, of_kept) and not np.array_equal(of_all, by_array)


def test_records_beyond_k_are_not_used_and_their_holder_is_told() -> None:
    frame = records()
    rank = frame.groupby(["who", "site"]).cumcount()
    others = frame.copy()
    others.loc[rank >= 2, ["a", "b", "y"]] = [3.9, -3.9, 1]
    with pytest.warns(UserWarning, match=f"{(rank >= 2).sum()} records are not used: each person has 2 places"):
        first = fitted(frame[["a", "b"]], frame["y"], frame["site"], {"person_rows": 2}, person=frame["who"])
    second = fitted(others[["a", "b"]], others["y"], others["site"], {"person_rows": 2}, person=others["who"])
    assert (rank >= 2).sum() > 3 and np.array_equal(first, second)


def test_clones_and_scores_keep_persons() -> None:
    frame = records()
    model = PrivateLogisticRegression(**PUBLIC, person_rows=3, person_owners=2, person="who")
    assert clone(model).get_params() == model.get_params()
    assert {"person": "who", "person_rows": 3, "person_owners": 2}.items() <= clone(model).get_params().items()
    X, params = frame[["a", "b"]], {"owners": frame["site"], "person": frame["who"]}
    found = cross_val_score(clone(model), X, frame["y"], cv=2, params=params, error_score="raise")
    assert len(found) == 2
    for kind in (PrivateRidge, PrivateRegressor):
        settings = {**PLAIN, "bounds": (-4.0, 4.0), "target_bounds": (-4, 4)}
        fit = kind(**settings).fit(X, frame["a"] + frame["b"], owners=frame["site"], person=frame["who"])
        assert "all records of one person" in str(fit.guarantee_)


# -- refusals ----------------------------------------------------------------------------------------------------------
ours = functools.partial(breaks, kind=ValueError)


@pytest.mark.parametrize(
    ("settings", "given", "broken"),
    [
        ({"neighbours": "person"}, {}, ours("missing")),
        ({"person": "who"}, {}, ours("missing")),
        ({"person_rows": 2}, {}, ours("missing")),
        ({"person_owners": 1}, {}, ours("missing")),
        ({}, {"person": ["p"] * 3}, ours("shape", "(6,)", "(3,)")),
        ({}, {"person": [1, 2, 3, 4, 5, np.nan]}, ours("records", "person")),
        ({}, {"person": np.array([1, 2, 3, 4, 5, np.nan], dtype=np.float32)}, ours("records", "person")),
        ({"person": "who"}, {"person": ["p", "q", None, "r", "s", "t"]}, ours("records", "who")),
        ({}, {"person": ["p", "q", " ", "r", "s", "t"]}, ours("records", "person")),
        ({}, {"person": pd.Series([1, 2, 3, 4, 5, None], dtype="Int64")}, ours("records", "person")),
        (
            {"person": "x0"},
            {"X": pd.DataFrame({"x0": range(6), "x1": 0.5}), "person": range(6)},
            ours("together", "x0"),
        ),
        ({"neighbours": "owner"}, {"person": range(6)}, ours("together", "neighbours=owner", setting="person")),
        ({"person_rows": 0}, {"person": range(6)}, ours("range", 0, setting="person_rows")),
        ({"person_owners": 4}, {"person": range(6)}, ours("range", 2, 4, setting="person_owners")),
        ({"person_owners": 1}, {"person": [1, 2, 3] * 2}, ours("records", 1, 2, "person_owners=2")),
    ],
)
def test_persons_that_nobody_could_promise_are_refused(
    settings: dict[str, Any], given: dict[str, Any], broken: Rule
) -> None:
    model = PrivateLogisticRegression(**PUBLIC, **settings)
    asked = {"X": np.linspace(-1, 1, 12).reshape(6, 2), "y": [0, 1] * 3, "owners": [0, 0, 0, 1, 1, 1], **given}
    with refuses(broken) as caught:
        model.fit(**asked)
    assert "\n" not in owner_text(caught.value) and not hasattr(model, "ledger_")
    if broken.code == "records":
        assert isinstance(caught.value, RecordError) and "records" not in caught.value.message


# -- how far a person moves the sum ------------------------------------------------------------------------------------
@pytest.mark.parametrize("weights", ["equal", "size"])
@pytest.mark.parametrize("owners", [None, 1])
def test_no_person_moves_what_a_fit_adds_up_further_than_its_plan_claims(
    owners: int | None, weights: Any, plans: list[Plan], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All pairs of ways of one person to be there: with one record, K, more, at one owner or at all. Its id and one
    record at each owner where it is stay; the plan does."""
    summed: list[Any] = []

    class Seen(Learner):
        def vectors(self, *args: Any) -> Any:
            blocks = [np.array(block) for block in super().vectors(*args)]
            summed.append(np.concatenate(blocks))
            return iter(blocks)

    monkeypatch.setattr(fitting, "Learner", Seen)
    others = np.tile([[0.0, 3.0]], (9, 1))
    whose, at = np.arange(9), np.array([0, 0, 0, 0, 1, 1, 2, 2, 2])  # with that person no owner has fewer than 1
    most, here = 3, range(3) if owners is None else (1,)
    for x, label, rows in itertools.product((4.0, -4.0), (0, 1), (1, 3, 6)):
        n = rows * len(here)
        X = np.concatenate([others, np.tile([[x, 0.0]], (n, 1))])
        y = np.concatenate([np.arange(9) % 2, np.full(n, label)])
        site = np.concatenate([at, np.repeat(list(here), rows)])
        model = PrivateLogisticRegression(
            **{**PUBLIC, "iterations": 1}, weights=weights, person_rows=most, person_owners=owners, fit_intercept=False
        )
        model.fit(X, y, owners=site, person=np.concatenate([whose, np.full(n, 99)]))
    first = plans[0]
    assert {(plan.sizes, plan.derived.sensitivity.l2) for plan in plans} == {
        (first.sizes, first.derived.sensitivity.l2)
    }
    assert first.sizes == tuple(most * (int((at == j).sum()) + (j in here)) for j in range(3))
    part = np.array(first.sizes) / sum(first.sizes) if weights == "size" else np.full(3, 1 / 3)
    means = [part @ each for each in summed]
    far = max(float(np.linalg.norm(a - b)) for a, b in itertools.combinations(means, 2))
    assert len(means) == 12 and 0.9 < far / first.derived.sensitivity.l2 <= 1 + 1e-9
