"""Softmax regression: the constants that its promise rests on, gradients and optima against others, whole runs."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from dpmpc.aggregation.plan.asked import plan_path
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.learning.erm_blocks import accuracy, objective, optima, owner_gradients, scores, solve
from dpmpc.learning.method import Learning
from dpmpc.learning.predict import predict
from dpmpc.learning.softmax import SOFTMAX, predicted, probabilities
from dpmpc.records.blocks import in_memory
from tests.refusals import refuses
from tests.runs import dpmpc, run, small


def records(n: int = 90, d: int = 4, classes: int = 3, seed: int = 1) -> Any:
    """Records in the unit ball whose class is the largest of some scores, most of the time."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None]
    y = np.argmax(3 * X @ rng.normal(size=(d, classes)) + rng.gumbel(size=(n, classes)), axis=1)
    return in_memory(X, y.astype(np.float64))


# -- the constants -----------------------------------------------------------------------------------------------------
def test_the_gradient_of_a_record_is_at_most_sqrt_two_and_comes_as_near_as_you_like() -> None:
    rng = np.random.default_rng(2)
    for scale in (0.1, 1.0, 10.0, 1000.0):
        s = scale * rng.normal(size=(2000, 5))
        norms = np.linalg.norm(SOFTMAX.derivative(s, rng.integers(0, 5, 2000).astype(float)), axis=1)
        assert norms.max() <= SOFTMAX.G * (1 + 1e-12)
    s = np.array([[50.0, 0.0, 0.0]])  # sure, and wrong
    assert np.linalg.norm(SOFTMAX.derivative(s, np.array([1.0]))) == pytest.approx(math.sqrt(2), rel=1e-12)


def test_the_curvature_is_at_most_a_half_and_attains_it() -> None:
    rng = np.random.default_rng(3)
    worst = 0.0
    for _ in range(500):
        p = rng.dirichlet(np.full(4, 0.3))
        worst = max(worst, float(np.linalg.eigvalsh(np.diag(p) - np.outer(p, p)).max()))
    assert worst <= SOFTMAX.L
    p = np.array([0.5, 0.5, 0.0])
    assert np.linalg.eigvalsh(np.diag(p) - np.outer(p, p)).max() == pytest.approx(SOFTMAX.L)


def test_loss_and_derivatives_agree_by_differences() -> None:
    rng = np.random.default_rng(4)
    s, y = 3 * rng.normal(size=(6, 4)), np.array([0.0, 1.0, 2.0, 3.0, 0.0, 1.0])
    for k in range(4):
        step = np.zeros(4)
        step[k] = 1e-5
        up, down = SOFTMAX.value(s + step, y), SOFTMAX.value(s - step, y)
        assert np.allclose((up - down) / 2e-5, SOFTMAX.derivative(s, y)[:, k], atol=1e-8)
        second = (SOFTMAX.derivative(s + step, y) - SOFTMAX.derivative(s - step, y))[:, k] / 2e-5
        assert np.allclose(second, SOFTMAX.second_derivative(s, y)[:, k], atol=1e-8)
    assert SOFTMAX.value(np.array([[1e4, -1e4]]), np.array([0.0]))[0] == 0.0  # stable
    assert np.allclose(probabilities(s), np.exp(s) / np.exp(s).sum(axis=1, keepdims=True))
    assert predicted(np.array([[1.0, 1.0], [0.0, 2.0]])).tolist() == [0, 1]


def test_one_record_moves_a_mean_by_no_more_than_the_plan_accounts_for() -> None:
    """Two records that are surely wrong, on features of their own: sqrt(1/2) of what is accounted for. (Convexity keeps
    two gradients at one theta from being opposite and this long.)"""
    learning = Learning(method="gradient", task="softmax", lam=0.001, classes=3)
    allowed = learning.by_record((4, 5), "equal", 6).l2
    X, y = np.zeros((9, 2)), np.zeros(9)
    X[0] = [1.0, 0.0]
    theta = np.zeros(6)
    theta[0], theta[4] = 40.0, 40.0
    moved = []
    for vector, label in (([1.0, 0.0], 2.0), ([0.0, 1.0], 2.0)):
        X[0], y[0] = vector, label
        gradients = owner_gradients(learning.loss, theta, in_memory(X.copy(), y.copy()), np.array([0, 4, 9]))
        moved.append(gradients.mean(axis=0))
    assert allowed * 0.7 < np.linalg.norm(moved[0] - moved[1]) <= allowed


# -- gradients and optima ----------------------------------------------------------------------------------------------
def test_owners_gradients_are_those_of_the_objective() -> None:
    held, offsets = records(), np.array([0, 20, 21, 90])
    theta = np.random.default_rng(5).normal(size=12)
    found = owner_gradients(SOFTMAX, theta, held, offsets)
    assert found.shape == (3, 12) and np.linalg.norm(found, axis=1).max() <= SOFTMAX.G
    for j in range(3):
        own = in_memory(held.X[offsets[j] : offsets[j + 1]], held.y[offsets[j] : offsets[j + 1]])
        for k in range(12):
            step = 1e-5 * np.eye(12)[k]
            rise = objective(SOFTMAX, theta + step, own, 0.0) - objective(SOFTMAX, theta - step, own, 0.0)
            assert rise / 2e-5 == pytest.approx(found[j, k], abs=1e-8)


def test_optima_are_scikit_learns_with_a_certificate() -> None:
    held, lam = records(300), 0.02
    solution = solve(SOFTMAX, held, lam, 1e-9, 3)
    assert solution.gradient_norm <= 1e-9
    other = LogisticRegression(C=1 / (lam * 300), fit_intercept=False, tol=1e-12, max_iter=5000)
    other.fit(held.X, held.y)
    assert np.allclose(solution.theta.reshape(4, 3).T, other.coef_, atol=1e-5)
    assert accuracy(solution.theta, held) == other.score(held.X, held.y)
    assert scores(solution.theta, held).shape == (300, 3)
    theta, norms = optima(SOFTMAX, held, np.array([0, 1, 150, 300]), 0.1, 1e-9, 3)
    assert theta.shape == (3, 12) and norms.max() <= 1e-9
    assert np.linalg.norm(theta, axis=1).max() <= SOFTMAX.G / 0.1


def test_two_classes_are_logistic_regression() -> None:
    held = records(classes=2)
    signed = in_memory(held.X, 2 * held.y - 1)
    learning = Learning(method="gradient", task="logistic", lam=0.1)
    one = solve(learning.loss, signed, 0.1, 1e-10).theta
    two = solve(SOFTMAX, held, 0.05, 1e-10, 2).theta.reshape(-1, 2)  # |theta|^2 is shared by two columns
    assert np.allclose(two[:, 1] - two[:, 0], solve(learning.loss, signed, 0.025, 1e-10).theta, atol=1e-6)
    assert one.shape == (4,)


def test_what_softmax_cannot_be_asked() -> None:
    with refuses("enough", 2):
        Learning(method="gradient", task="softmax", lam=0.1, classes=1)


# -- whole runs --------------------------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("name", ["iris", "wine", "digits"])
def test_sets_with_three_and_ten_classes_are_learned(name: str, tmp_path: Path) -> None:
    """Without noise, so that nothing is left to chance."""
    request = small(data=name, max_rows=None, dimension=None, owners=5, engine="clear", iterations=200, scale=0.0,
                    evaluate=True)  # fmt: skip
    report = run(request, tmp_path / "run")
    assert report["utility"]["test_accuracy"] > 0.8 and report["loss"]["G"] == math.sqrt(2)
    plan = Plan.read(plan_path(tmp_path / "run"))
    assert plan.dimension == report["dimension"] and plan.dimension % report["learning"]["classes"] == 0


@pytest.mark.slow
def test_texts_through_parties_and_predict(tmp_path: Path) -> None:
    held = records(120, 3)
    names = ("ill", "well", "very ill")
    rows = [
        f"{a},{b},{c},{names[int(k)]},{'AB'[i % 2]}"
        for i, ((a, b, c), k) in enumerate(zip(held.X, held.y, strict=True))
    ]
    (tmp_path / "x.csv").write_text("\n".join(["a,b,c,state,site", *rows]) + "\n")
    result = dpmpc("train", "--csv", tmp_path / "x.csv", "--target", "state", "--owners-column", "site",
                   "--epsilon", 10, "--delta", "1e-4", "--iterations", 10, "--out", tmp_path / "run")  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert "4 features, 3 classes" in " ".join(result.stdout.split())
    said = predict(tmp_path / "run", tmp_path / "x.csv")
    assert set(said.columns) == {"state", "probability_ill", "probability_well", "probability_very ill"}
    assert said.score is not None and said.score[1] > 0.4
    assert np.allclose(sum(said.columns[f"probability_{name}"] for name in names), 1)
    (tmp_path / "other.csv").write_text("a,b,c,state\n0,0,0,unheard of\n")
    said = predict(tmp_path / "run", tmp_path / "other.csv")
    assert said.n == 1 and said.score is None and said.line is not None and said.line.startswith("no figure")
    assert json.loads((tmp_path / "run" / "report.json").read_text())["learning"]["classes"] == 3


def test_a_plan_without_records_has_the_classes_of_its_schema(tmp_path: Path) -> None:
    columns = [{"kind": "number", "name": f"x{k}", "low": 0, "high": 1} for k in range(4)]
    schema = {"columns": columns, "target": {"kind": "classes", "name": "y", "classes": ["a", "b", "c", "d"]}}
    (tmp_path / "schema.json").write_text(json.dumps(schema))
    given = ["--owner-sizes", "40,60", "--schema", tmp_path / "schema.json", "--method", "gradient", "--delta", "1e-5"]
    result = dpmpc("train", *given, "-M", 3, "--plan-only", "--out", tmp_path / "plan")
    assert result.returncode == 0, result.stderr
    assert Plan.read(tmp_path / "plan" / "plan.json").dimension == 20
