"""The scikit-learn estimators: its own checks, what they promise and spend, through parties and in the clear."""

import pickle
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator

import dpmpc
from dpmpc.data.schema import Labels, Numeric, Schema
from dpmpc.estimators import PrivacyWarning, PrivateLogisticRegression, PrivateRidge
from dpmpc.privacy.ledger import Ledger

KINDS = (PrivateLogisticRegression, PrivateRidge)
PUBLIC: dict[str, Any] = {"bounds": (-4.0, 4.0), "engine": "clear", "iterations": 3}

# scikit-learn's checks that compare two fits: their noise differs. All others pass, and without noise these do too.
TWO_FITS = {
    "check_classifier_data_not_an_array",
    "check_regressor_data_not_an_array",
    "check_supervised_y_2d",
    "check_regressors_int",
    "check_fit_idempotent",
}


def problem(n: int = 60, d: int = 3) -> tuple[Any, Any, Any]:
    """(X, y, site): records in (-4, 4), labels 0 and 1, three owners."""
    rng = np.random.default_rng(1)
    X = np.clip(rng.normal(size=(n, d)), -3.9, 3.9)
    return X, (X[:, 0] > 0).astype(int), np.arange(n) % 3


# -- scikit-learn's own checks -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", KINDS)
def test_scikit_learns_checks_are_clean(kind: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        without = check_estimator(kind(engine="clear", iterations=2, scale=0), on_fail=None)
        private = check_estimator(kind(engine="clear", iterations=2), on_fail=None)
    assert not {r["check_name"] for r in without if r["status"] == "failed"}
    assert {r["check_name"] for r in private if r["status"] == "failed"} <= TWO_FITS
    assert sum(r["status"] == "passed" for r in private) >= 40


# -- results -----------------------------------------------------------------------------------------------------------
def test_without_noise_a_fit_learns_what_train_would(tmp_path: Path) -> None:
    """The same records by owner through `dpmpc train`: the same model, to the last bits of the grid."""
    X, y, site = problem()
    frame = pd.DataFrame(X, columns=["x0", "x1", "x2"])
    frame["target"], frame["site"] = y, site
    frame.to_csv(tmp_path / "records.csv", index=False)
    (tmp_path / "bounds.json").write_text('{"x0": [-4, 4], "x1": [-4, 4], "x2": [-4, 4], "target": ["0", "1"]}')
    trained = dpmpc.train(
        tmp_path / "run",
        csv=str(tmp_path / "records.csv"),
        target="target",
        owners_column="site",
        bounds_file=str(tmp_path / "bounds.json"),
        test_fraction=0.0,
        engine="clear",
        scale=0.0,
        delta=1e-5,
        iterations=3,
        evaluate=False,
    )
    model = PrivateLogisticRegression(**PUBLIC, classes=[0, 1], scale=0).fit(X, y, owners=site)
    assert np.allclose([*model.coef_, model.intercept_], trained.model.theta, atol=1e-6)
    assert model.report_["owners"] == 3 and model.n_iter_ == 3


def test_parties_and_the_clear_engine_learn_the_same_without_noise() -> None:
    X, y, site = problem()
    clear = PrivateLogisticRegression(**PUBLIC, classes=[0, 1], scale=0).fit(X, y, owners=site)
    parties = PrivateLogisticRegression(**{**PUBLIC, "engine": "mpc"}, classes=[0, 1], scale=0).fit(X, y, owners=site)
    assert np.array_equal(clear.coef_, parties.coef_) and clear.intercept_ == parties.intercept_
    assert parties.report_["parties"] == 3


def test_real_data_sets_are_learned() -> None:
    """Without noise, so that nothing here is left to chance."""
    X, y = load_breast_cancer(return_X_y=True)
    bounds = (X.min(axis=0), X.max(axis=0))
    settings: dict[str, Any] = {"bounds": bounds, "engine": "clear", "scale": 0, "iterations": 300}
    model = PrivateLogisticRegression(**settings, classes=[0, 1]).fit(X, y, owners=np.arange(len(y)) % 5)
    assert model.score(X, y) > 0.9
    assert np.allclose(model.predict_proba(X).sum(axis=1), 1)
    assert np.array_equal(model.predict(X), model.classes_[(model.decision_function(X) > 0).astype(int)])
    X, y = load_diabetes(return_X_y=True)
    settings |= {"bounds": (X.min(axis=0), X.max(axis=0)), "target_bounds": (0, 400)}
    assert PrivateRidge(**settings).fit(X, y, owners=np.arange(len(y)) % 5).score(X, y) > 0.3


def test_more_than_two_classes_of_any_name_and_order() -> None:
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "virginica", "other"])
    settings: dict[str, Any] = {"bounds": (0, 8), "engine": "clear", "scale": 0, "iterations": 300}
    classes = ["virginica", "other", "setosa"]
    model = PrivateLogisticRegression(**settings, classes=classes).fit(X, names[y], owners=np.arange(150) % 5)
    assert model.classes_.tolist() == classes and model.coef_.shape == (3, 4) and model.intercept_.shape == (3,)
    assert model.score(X, names[y]) > 0.9
    chances = model.predict_proba(X)
    assert np.allclose(chances.sum(axis=1), 1)
    assert (model.classes_[chances.argmax(axis=1)] == model.predict(X)).all()
    assert np.allclose(model.decision_function(X)[:, 1] - model.decision_function(X)[:, 0],
                       np.log(chances[:, 1] / chances[:, 0]))  # fmt: skip
    assert model.report_["dimension"] == 15


def test_texts_go_through_a_schema_as_files_do() -> None:
    X, y, site = problem()
    frame = pd.DataFrame({"a": X[:, 0], "kind": np.where(X[:, 1] > 0, "up", "down")})
    model = PrivateLogisticRegression(
        bounds={"a": [-4, 4], "kind": ["up", "down"]}, classes=[0, 1], scale=0, engine="clear", iterations=300
    )
    model.fit(frame, y, owners=site)
    assert model.schema_.feature_names == ("a", "kind=up", "kind=down", "(intercept)")
    assert model.schema_.bounds == "public" and model.score(frame, y) > 0.8
    unlike = frame.assign(kind="sideways")  # a category that nobody listed is all zeros, as in predict
    assert model.predict(unlike).shape == y.shape


def test_a_schema_of_ones_own_is_used() -> None:
    X, y, site = problem()
    columns = tuple(Numeric(f"x{i}", -2, 2, signed=True) for i in range(3))
    schema = Schema(columns, Labels("outcome", ("1",), ("0",)), intercept=False)
    settings = {**PUBLIC, "bounds": None}
    model = PrivateLogisticRegression(**settings, schema=schema, scale=0).fit(X, y, owners=site)
    assert model.coef_.shape == (3,) and model.intercept_ == 0 and model.schema_ is schema
    with pytest.raises(ValueError, match="has a number as its target"):
        PrivateRidge(**settings, schema=schema).fit(X, y)


# -- what is promised and spent ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("engine", ["clear", "mpc"])
def test_the_guarantee_and_the_ledger_after_a_fit(engine: str, tmp_path: Path) -> None:
    X, y, site = problem()
    model = PrivateLogisticRegression(
        **{**PUBLIC, "engine": engine}, classes=[0, 1], epsilon=0.5, delta=1e-4, ledgers=tmp_path / "books"
    )
    model.fit(X, y, owners=site)
    assert (model.guarantee_.epsilon, model.guarantee_.delta) == (0.5, 1e-4)
    assert "one record of one owner" in model.guarantee_.neighbours
    assert [entry.release for entry in sorted(model.ledger_, key=lambda e: e.release)] == [0, 1, 2]
    files = list((tmp_path / "books").rglob("ledger_*.jsonl"))
    assert len(files) == (3 if engine == "mpc" else 1)
    assert set(Ledger.read(files[0]).entries) == set(model.ledger_)


def test_output_perturbation_is_one_release() -> None:
    X, y, site = problem()
    model = PrivateLogisticRegression(**PUBLIC, classes=[0, 1], method="output", lam=0.1).fit(X, y, owners=site)
    assert len(model.ledger_) == 1 and model.report_["privacy"]["law"] == "gaussian"


def test_pure_epsilon_without_delta() -> None:
    X, y, site = problem()
    model = PrivateLogisticRegression(**PUBLIC, classes=[0, 1], delta=None).fit(X, y, owners=site)
    assert model.report_["privacy"]["law"] == "laplace" and model.guarantee_.delta < 1e-9


def test_cross_validation_says_what_it_spends() -> None:
    X, y, site = problem()
    model = PrivateLogisticRegression(**PUBLIC, classes=[0, 1])
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        scores = cross_val_score(model, X, y, cv=4, params={"owners": site})
    assert len(scores) == 4
    texts = [str(w.message) for w in said if issubclass(w.category, PrivacyWarning)]
    assert [text.split()[0] for text in texts] == ["2", "3", "4"]  # the second fit is the first that adds up
    spent = [float(re.search(r"epsilon = ([\d.]+)", text).group(1)) for text in texts]  # type: ignore[union-attr]
    assert 1 < spent[0] < spent[1] < spent[2] < 4  # less than linearly
    assert all("outside the guarantee" in text for text in texts)


def test_clones_in_pipelines_count_too_and_a_copy_elsewhere_says_that_it_is_one() -> None:
    X, y, site = problem()
    model = PrivateLogisticRegression(**PUBLIC, classes=[0, 1])
    line = make_pipeline(FunctionTransformer(), model)
    line.fit(X, y, privatelogisticregression__owners=site)
    with pytest.warns(PrivacyWarning, match="2 fits of this estimator and its clones"):
        clone(line).fit(X, y, privatelogisticregression__owners=site)
    with pytest.warns(PrivacyWarning, match="fits in other processes are not counted here"):
        pickle.loads(pickle.dumps(model)).fit(X, y, owners=site)  # noqa: S301
    assert line.predict(X).shape == y.shape


def test_constants_read_off_the_records_are_said_to_be_outside() -> None:
    X, y, site = problem()
    with pytest.warns(PrivacyWarning, match="read off the records and not covered"):
        PrivateLogisticRegression(engine="clear", iterations=2).fit(X, y, owners=site)
    with pytest.warns(PrivacyWarning, match="read off the records and not covered"):  # the classes alone were
        PrivateLogisticRegression(**PUBLIC).fit(X, y, owners=site)


def test_a_budget_refuses_the_fit_that_would_exceed_it(tmp_path: Path) -> None:
    X, y, site = problem()
    model = PrivateLogisticRegression(**PUBLIC, classes=[0, 1], ledgers=tmp_path, budget="1,1e-5")
    model.fit(X, y, owners=site)
    before = {path: path.read_bytes() for path in tmp_path.rglob("ledger*.jsonl")}
    with pytest.raises(ValueError, match=r"the budget for data .* is epsilon 1"):
        clone(model).fit(X, y, owners=site)
    assert before == {path: path.read_bytes() for path in tmp_path.rglob("ledger*.jsonl")}


# -- bad input ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("settings", "change", "message"),
    [
        ({}, {"owners": [0, 1]}, r"owners say whose each record is, shape \(60,\); got shape \(2,\)"),
        ({}, {"owners": [None] * 60}, "every record has an owner"),
        ({}, {"X": np.full((60, 3), np.nan)}, "NaN"),
        ({}, {"X": np.zeros((60, 3, 1))}, "dim"),
        ({"classes": [0, 1, 2]}, {}, "no owner has one of 2"),
        ({"classes": [1]}, {}, "at least 2 classes; got 1 class"),
        ({"classes": [0, 5]}, {}, "a record has 1"),
        ({"classes": [0, 1]}, {"y": np.zeros(60, dtype=int)}, "no owner has one of 1"),
        ({"bounds": {"x0": [0, 1]}}, {}, "bounds must cover every column; x1, x2 not there"),
        ({"bounds": 3}, {}, "bounds are"),
        ({"bounds": (1, 0)}, {}, "low"),
        ({"epsilon": -1.0}, {}, "epsilon must be positive"),
        ({"method": "magic"}, {}, "magic"),
        ({"budget": "1,1e-5"}, {}, "add ledgers=FOLDER"),
    ],
)
def test_bad_input_is_one_clear_error_and_nothing_is_spent(
    settings: dict[str, Any], change: dict[str, Any], message: str
) -> None:
    X, y, site = problem()
    given = {"X": X, "y": y, "owners": site, **change}
    model = PrivateLogisticRegression(**{**PUBLIC, "classes": [0, 1], **settings})
    with pytest.raises(ValueError, match=message) as failure:
        model.fit(**given)
    assert "\n" not in str(failure.value) or "NaN" in str(failure.value)  # scikit-learn's own has several lines
    assert not getattr(model, "_account", None) or not model._account.entries
