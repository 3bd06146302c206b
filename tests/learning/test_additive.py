"""The additive basis: rows in the ball, sums of one curve a column, knots where a survey found the records, and the
sensitivity that the theorems are called with."""

import datetime
import json
import math

import numpy as np
import pytest

from dpmpc.learning.additive import Additive
from dpmpc.learning.knots import knots_of
from dpmpc.learning.method import METHODS, Learning
from dpmpc.learning.survey import Survey
from dpmpc.learning.survey_columns import survey_of, surveyed_schema
from dpmpc.records.blocks import in_memory
from dpmpc.records.design import design
from dpmpc.records.schema import (
    Categorical,
    Classes,
    Column,
    Date,
    Labels,
    Numeric,
    Range,
    Schema,
    SchemaError,
    Surveyed,
    Target,
)
from dpmpc.records.spline_basis import KNOTS, bends, evenly, values_at_knots
from tests.refusals import refuses

LABEL = Labels("y", ("1",), ("0",))


def random_schema(rng: np.random.Generator, target: Target = LABEL) -> Schema:
    """Columns of every kind, with ranges of many sizes."""
    columns: list[Column] = []
    for k in range(int(rng.integers(1, 7))):
        kind = rng.integers(5)
        low = float(rng.choice([-1.0, 0.0, 1.0]) * 10.0 ** rng.integers(-3, 5))
        high = low + float(10.0 ** rng.uniform(-3, 5))
        if kind == 0:
            columns.append(Numeric(f"c{k}", low, high))
        elif kind == 1:
            columns.append(Numeric(f"c{k}", abs(low), abs(low) + high - low, "log"))
        elif kind == 2:
            columns.append(Categorical(f"c{k}", ("a", "b", "c")))
        elif kind == 3:
            columns.append(
                Date(f"c{k}", datetime.date(2020, 1, 1), datetime.date(2024, 1, 1), ("days", "month", "hour"))
            )
        else:
            knots = tuple(sorted(set(rng.uniform(low - 5, high + 5, int(rng.integers(2, 8))).tolist())))
            columns.append(Surveyed(f"c{k}", True, low, high, 16, (2, 5), bool(rng.integers(2)), knots))
    return Schema(tuple(columns), target, bool(rng.integers(2)), basis="additive")


def random_values(rng: np.random.Generator, schema: Schema, n: int) -> list[np.ndarray]:
    """Values that a table could hold, far outside of the ranges too."""
    found: list[np.ndarray] = []
    for column in schema.columns:
        if isinstance(column, Categorical):
            found.append(rng.integers(-2, 3, n).astype(np.int32))
        elif isinstance(column, Date):
            found.append(np.where(rng.random(n) < 0.1, np.nan, rng.uniform(17000, 21000, n)))
        else:
            width = column.high - column.low
            v = rng.uniform(column.low - width, column.high + width, n)
            v = np.where(rng.random(n) < 0.3, rng.choice([column.low, column.high, *column.knots], n), v)
            v = np.where(rng.random(n) < 0.1, np.nan, v)
            if isinstance(column, Surveyed):
                text = rng.random(n) < 0.2
                v = np.column_stack([np.where(text, np.inf, v), np.where(text, rng.integers(-1, 16, n), -1)])
            found.append(v)
    return found


def mapped(schema: Schema, values: list[np.ndarray], ball: bool = True) -> np.ndarray:
    X = np.empty((len(values[0]), len(schema.feature_names)))
    schema.rows(values, X, ball=ball)
    return X


def test_every_row_is_in_the_ball_and_only_longer_ones_are_shortened() -> None:
    rng = np.random.default_rng(1)
    nearest = 0.0
    for _ in range(300):
        schema = random_schema(rng)
        values = random_values(rng, schema, 400)
        X, plain_rows = mapped(schema, values), mapped(schema, values, ball=False)
        norms, own = np.linalg.norm(X, axis=1), np.linalg.norm(plain_rows, axis=1)
        assert norms.max() <= 1
        np.testing.assert_allclose(X, plain_rows / np.maximum(1, own)[:, None], atol=1e-12)
        if schema.intercept:
            np.testing.assert_allclose(plain_rows[:, -1], 1 / schema.norm, rtol=1e-12)
        nearest = max(nearest, float(norms.max()))
    assert nearest > 1 - 1e-12


def test_rows_are_divided_by_what_is_usual() -> None:
    rng = np.random.default_rng(7)
    wide = tuple(Numeric(f"c{k}", 0, 10.0**k) for k in range(6))
    schema = Schema((*wide, Categorical("w", ("a", "b"))), LABEL, basis="additive")
    values = [rng.uniform(0, 10.0**k, 4000) for k in range(6)] + [rng.integers(0, 2, 4000).astype(np.int32)]
    own = np.linalg.norm(mapped(schema, values, ball=False), axis=1)
    assert 0.85 < float(np.mean(own**2)) < 1.1
    only = Schema((Categorical("w", ("a", "b")),), LABEL, basis="additive")
    assert only.norm == pytest.approx(math.sqrt(2))  # never longer than the longest row


def test_no_row_is_longer_than_the_longest_that_the_schema_knows() -> None:
    rng = np.random.default_rng(6)
    for _ in range(200):
        schema = random_schema(rng)
        for column, values in zip(schema.columns, random_values(rng, schema, 300), strict=True):
            made = design([column], False, 1.0, False)
            X = made.rows(made.places([values]), np.ones(300))
            assert X.shape == (300, len(column.features))
            assert np.linalg.norm(X, axis=1).max() <= column.longest * (1 + 1e-12)


def test_a_record_moves_a_gradient_by_no_more_than_the_theorem_says_at_200_random_models() -> None:
    """Two records, anything, at any theta: the largest distance over the bound is 1 at most, and close to it."""
    rng, largest = np.random.default_rng(2), 0.0
    for model in range(200):
        schema = random_schema(rng)
        X = mapped(schema, random_values(rng, schema, 60))
        method, learning = METHODS["gradient"], Learning(method="gradient", task="logistic", lam=1e-3)
        theta = rng.standard_normal(X.shape[1]) * 10.0 ** rng.uniform(-2, 2.5)
        theta = np.zeros_like(theta) if model % 10 == 0 else theta
        y = rng.choice([-1.0, 1.0], len(X))
        sent = method.vectors(learning, theta, in_memory(X, y), np.arange(len(X) + 1)) * method.factor(learning, theta)
        apart = max(float(np.linalg.norm(sent - row, axis=1).max()) for row in sent)
        bound = learning.by_record([1], "equal", X.shape[1]).l2
        largest = max(largest, apart / bound)
    assert 0.9 < largest <= 1.0


def test_the_functions_are_turned_hats_without_a_constant() -> None:
    for count in range(2, 9):
        table = values_at_knots(count) * np.arange(1, count)
        np.testing.assert_allclose(table.T @ table, np.eye(count - 1), atol=1e-12)
        np.testing.assert_allclose(table.sum(axis=0), 0, atol=1e-12)
    knots = np.array([0.0, 1.0, 4.0, 9.0])
    np.testing.assert_allclose(bends(knots, knots), values_at_knots(4))
    np.testing.assert_allclose(bends(np.array([-5.0, 2.5, 99.0]), knots)[1], values_at_knots(4)[1:3].mean(axis=0))
    assert bends(np.array([np.nan, np.inf]), knots).any() == np.False_
    assert evenly(0.0, 50.0) == (0.0, 10.0, 20.0, 30.0, 40.0, 50.0) and len(set(evenly(1e9, 1e9 + 1e-5))) == KNOTS


TARGETS = (LABEL, Range("y", 3, 9), Classes("y", ("a", "b", "c")))


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: type(target).__name__)
def test_the_curves_add_up_to_the_score_of_every_record_and_survive_json(target: Target) -> None:
    rng = np.random.default_rng(3)
    for _ in range(40):
        schema = random_schema(rng, target)
        values = random_values(rng, schema, 50)
        theta = rng.standard_normal(len(schema.feature_names) * (3 if isinstance(target, Classes) else 1))
        X = mapped(schema, values, ball=False)
        model = Additive.from_json(json.loads(json.dumps(Additive.of(schema, theta).to_json())))
        scores = X @ theta.reshape(X.shape[1], -1)
        asked = {c.name: plain(c, v) for c, v in zip(schema.columns, values, strict=True)}
        mine = model.decision_function(asked)
        np.testing.assert_allclose(mine.reshape(scores.shape), scores, rtol=1e-9, atol=1e-6)


def plain(column: Column, values: np.ndarray) -> list[object]:
    """The values as a user has them; of surveyed texts one whose bucket it is."""
    from dpmpc.intake.hashing import bucket

    if isinstance(column, Categorical):
        return [{-1: None, -2: "unheard of"}.get(int(v), ("a", "b", "c")[int(v)]) for v in values]
    if not isinstance(column, Surveyed):
        return list(values)
    word = {bucket(column.name, str(w), 16): str(w) for w in (f"w{i}" for i in range(400))}
    return [word[int(b)] if v == np.inf and b >= 0 else None if v == np.inf else float(v) for v, b in values]


def test_predictions_are_those_of_the_library_and_the_explanation_has_interprets_shape() -> None:
    schema = Schema((Numeric("age", 0, 100), Categorical("sex", ("f", "m"))), LABEL, basis="additive")
    theta = np.linspace(-30, 20, len(schema.feature_names))
    model = Additive.of(schema, theta)
    columns = {"age": [10, "70", None, ""], "sex": ["f", "m", "x", None]}
    X = mapped(schema, [np.array([10, 70, np.nan, np.nan]), np.array([0, 1, -2, -1])], ball=False)
    assert list(model.predict(columns)) == ["1" if s > 0 else "0" for s in X @ theta]
    np.testing.assert_allclose(model.predict_proba(columns)[:, 1], 1 / (1 + np.exp(-(X @ theta))))
    told = model.explain_global()
    assert told.feature_names == ["age", "sex"] and told.data(1)["names"] == ["f", "m"]
    assert told.data(0)["type"] == "univariate" and len(told.data(0)["names"]) == len(told.data(0)["scores"]) == KNOTS
    assert told.data()["scores"][0] > 0
    with refuses("column", "sex"):
        model.predict({"age": [1]})
    with refuses("together", "basis=additive", setting="basis"):
        Additive.of(schema.on("linear"), theta)
    with refuses("file", "else"):
        Additive.from_json({"format": "else"})


def test_a_basis_can_be_laid_on_and_taken_off_and_old_schemas_keep_their_digest() -> None:
    straight = Schema((Numeric("a", 0, 10), Numeric("b", -(2.0**40), 2.0**40)), LABEL)
    assert "basis" not in straight.to_json() and straight.norm == 1
    bent = straight.on("additive")
    assert bent.columns[0].features == ("a", "a~1", "a~2", "a~3", "a~4", "a~5", "a missing")
    assert bent.columns[1].features == ("b",)  # a range that says nothing
    assert bent.on("linear") == straight and bent.on(None) is bent and Schema.from_json(bent.to_json()) == bent
    for wrong in ((1.0,), (2.0, 1.0), (1.0, 1.0), (0.0, math.inf), (-1.0, 5.0)):
        with refuses("range", "a", kind=SchemaError):
            Numeric("a", 0, 10, "centred", wrong)
    with refuses("together", "a", kind=SchemaError):
        Surveyed("a", knots=(0.0, 1.0))


def columns_of(values: np.ndarray) -> np.ndarray:
    return np.column_stack([values, np.full(len(values), -1.0)])


def test_a_survey_puts_knots_at_quantiles_and_at_points_that_hold_many_records() -> None:
    rng, n = np.random.default_rng(4), 20_000
    made = {"age": rng.normal(45, 12, n), "gain": np.where(rng.random(n) < 0.8, 0.0, rng.lognormal(8, 0.7, n)),
            "flag": (rng.random(n) < 0.3) * 1.0, "same": np.full(n, 7.0)}  # fmt: skip
    draft = Schema(tuple(Numeric(name, -(2.0**40), 2.0**40) for name in made), LABEL, basis="additive")
    survey = survey_of(draft)
    assert isinstance(survey, Survey)
    total = survey.encode({name: columns_of(v) for name, v in made.items()})
    for seed, sigma in ((0, 0.0), (1, 30.0), (2, 30.0)):
        noise = sigma * np.random.default_rng(seed).standard_normal(len(total))
        schema = surveyed_schema(survey.findings(total + noise, n, sigma), draft)
        knots = {c.name: c.knots for c in schema.columns if isinstance(c, Surveyed)}
        share = [float(np.mean(made["age"] < knot)) for knot in knots["age"]]
        np.testing.assert_allclose(share, [0.01, 0.2, 0.4, 0.6, 0.8, 0.99], atol=0.06)
        assert knots["gain"][0] == 0 and knots["gain"][1] > 300 and len(knots["gain"]) >= 4
        assert (sigma or knots["same"] == ()) and len(knots["flag"]) != 2  # what bends at two points is straight
        assert len(schema.feature_names) <= survey.most_features(n, max(sigma, 1e-9), KNOTS) + 1
        assert schema.basis == "additive" and Schema.from_json(schema.to_json()) == schema


def test_knots_of_nothing_are_none() -> None:
    assert knots_of((), 1.0) == () and knots_of(((5.0, 3.0, 3.0),), 1.0) == ()
    spread = knots_of(((10.0, 0.0, 1.0), (10.0, 1.0, 3.0)), 0.1)
    assert spread == pytest.approx((0.02, 0.4, 0.8, 1.4, 2.2, 2.96))


@pytest.mark.slow
def test_a_ring_is_learnt_by_curves_and_by_no_straight_line() -> None:
    from dpmpc.estimators import PrivateLogisticRegression

    rng = np.random.default_rng(5)
    X = rng.uniform(-1, 1, (2000, 2))
    y = np.where(np.abs(X[:, 0]) > 0.5, 1, 0)  # what no straight line tells
    score = {}
    for basis in ("linear", "additive"):
        model = PrivateLogisticRegression(epsilon=8.0, delta=1e-5, engine="clear", bounds=(-1, 1), classes=[0, 1],
                                          basis=basis, iterations=80, step=5.0,
                                          data_id=f"ring {basis}").fit(X, y)  # fmt: skip
        score[basis] = model.score(X, y)
    assert score["additive"] > 0.9 > 0.7 > score["linear"]
    told = Additive.of(model.schema_, model._theta)
    np.testing.assert_allclose(told.decision_function({"x0": X[:, 0], "x1": X[:, 1]}), model.decision_function(X))
