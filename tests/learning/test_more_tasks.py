"""Levels and quantiles: the losses are what is printed, by another computation, and no record pulls harder than twice
G, by trying all pairs of many."""

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize

from dpmpc.estimators import PrivateRegressor
from dpmpc.learning.erm_blocks import solve
from dpmpc.learning.losses import Floats, ridge
from dpmpc.learning.method import Learner, Learning
from dpmpc.learning.ordinal import WIDTH, OrdinalLoss
from dpmpc.learning.quantiles import QuantileLoss
from dpmpc.learning.task import TASKS
from dpmpc.records.blocks import in_memory

CLIP = 0.25
TAUS = {"median": 0.5, "quantile10": 0.1, "quantile90": 0.9}


def answers(s: float, y: float) -> float:
    """The mean over thresholds of the logistic loss of each answer, by quadrature."""

    def one(t: float) -> float:
        return math.log1p(math.exp(-(s - WIDTH * t) if t < y else s - WIDTH * t))

    return float(quad(one, -1, y, epsabs=1e-12)[0] + quad(one, y, 1, epsabs=1e-12)[0]) / 2


def rounded(tau: float) -> Callable[[float, float], float]:
    """The pinball loss times the clip, its corner meaned away: the integral of its clipped slope, by quadrature."""

    def loss(s: float, y: float) -> float:
        side = (1 - tau) if s > y else tau
        return float(quad(lambda r: side * min(r, CLIP), 0, abs(s - y), points=[CLIP], epsabs=1e-12)[0])

    return loss


@pytest.mark.parametrize("s", [-40.0, -3.0, -0.4, 0.0, 1.7, 6.0, 200.0])
@pytest.mark.parametrize("y", [-1.0, -0.5, 0.2, 1.0])
def test_the_losses_are_what_is_printed(s: float, y: float) -> None:
    found = OrdinalLoss().value(np.array([s]), np.array([y]))[0]
    assert found == pytest.approx(answers(s, y), rel=1e-9, abs=1e-9)
    for tau in TAUS.values():
        found = QuantileLoss(tau, CLIP).value(np.array([s]), np.array([y]))[0]
        assert found == pytest.approx(rounded(tau)(s, y), rel=1e-9, abs=1e-12)


def furthest(name: str, theta: Floats) -> tuple[float, float]:
    """(how far one record moves the mean of an owner's gradients, what the plan claims), over all pairs of many."""
    learning = Learning(method="gradient", task=name, lam=1e-3, residual_clip=CLIP)
    angles = np.linspace(0, 2 * np.pi, 17)
    rows = [length * np.array([math.cos(a), math.sin(a)]) for a in angles for length in (1.0, 0.4)]
    records = [(x, y) for x in rows for y in (-1.0, -0.3, 0.5, 1.0)]
    loss = learning.loss

    def slope(s: float, y: float) -> float:
        """Of the value, by differences."""
        two = loss.value(np.array([s + 1e-5, s - 1e-5]), np.array([y, y]))
        return float(two[0] - two[1]) / 2e-5

    pulls = np.array([slope(float(x @ theta), y) * x for x, y in records])
    apart = max(float(np.linalg.norm(a - b)) for a, b in itertools.combinations(pulls, 2))
    return apart / 7, learning.by_record((7,), "size", 2).l2


@pytest.mark.parametrize("name", ["ordinal", *TAUS])
def test_no_record_moves_a_mean_further_than_twice_g_and_some_do(name: str) -> None:
    found = [furthest(name, np.array(theta)) for theta in ([0.0, 0.0], [4.0, 1.0], [30.0, -60.0])]
    claimed = found[0][1]
    assert claimed == pytest.approx(2 * TASKS[name].loss(Learning(method="gradient", task=name, lam=1.0)).G / 7)
    assert 0.9 * claimed < max(moved for moved, _ in found) <= claimed * (1 + 1e-4)


def test_vectors_of_an_owner_hold_to_it_too() -> None:
    """What is sent is the mean of the slopes times the records, no more."""
    random = np.random.default_rng(3)
    X = random.normal(size=(9, 2))
    X /= 1.01 * np.linalg.norm(X, axis=1, keepdims=True)
    y = random.choice([-1.0, 0.0, 1.0], size=9)
    learning = Learning(method="gradient", task="ordinal", lam=1e-3)
    learner = Learner(learning, 1, in_memory(X, y), [9], 1.0)
    sent = next(learner.vectors())[0]
    assert sent == pytest.approx(X.T @ (0.5 - (y + 1) / 2) / 9, abs=1e-12)  # m(0) = 1/2


@pytest.mark.parametrize("tau", TAUS.values())
def test_a_part_tau_of_the_records_lies_below(tau: float) -> None:
    """Without noise: the optimum is that of the pinball loss by another solver, and splits the records at tau."""
    random = np.random.default_rng(5)
    X = random.uniform(size=(3000, 2)) / 2
    rows = np.column_stack([X, np.full(3000, 0.7)])
    y = np.clip(X @ [0.8, -0.6] + 0.15 * random.exponential(size=3000) - 0.5, -1, 1)
    theta = solve(QuantileLoss(tau, 0.01), in_memory(rows, y), 1e-9).theta
    assert np.mean(y < rows @ theta) == pytest.approx(tau, abs=0.03)
    if tau != 0.5:
        mean = solve(ridge(1.0), in_memory(rows, y), 1e-9).theta
        assert abs(np.mean(y < rows @ mean) - tau) > 0.2

    def pinball(other: Floats) -> float:
        r = y - rows @ other
        return float(np.mean(np.maximum(tau * r, (tau - 1) * r)))

    best = minimize(pinball, theta, method="Nelder-Mead", options={"xatol": 1e-7, "fatol": 1e-10, "maxiter": 4000})
    assert pinball(theta) - best.fun < 1e-4


@pytest.mark.slow
def test_estimators_predict_levels_within_the_range_and_quantiles() -> None:
    """With 4,000 records at epsilon 20 noise moves neither by a tenth of what is asked."""
    random = np.random.default_rng(6)
    X = random.uniform(size=(4000, 2))
    levels = 1.0 + np.digitize(X @ [5.0, -4.0] + random.logistic(size=4000), [-2, 0, 1, 3])
    known = {"bounds": (0, 1), "epsilon": 20.0, "engine": "clear"}
    far = np.array([[50.0, -50.0], [-50.0, 50.0]])
    model = PrivateRegressor(task="ordinal", target_bounds=(1, 5), data_id="levels", **known).fit(X, levels)
    said = model.predict(np.vstack([X, far]))
    assert 1 <= said.min() and said.max() <= 5
    assert np.corrcoef(said[:4000], levels)[0, 1] > 0.6
    amounts = X[:, 0] + (0.5 + X[:, 1]) * random.exponential(size=4000)
    high = PrivateRegressor(
        task="quantile90", target_bounds=(0, 8), residual_clip=0.05, data_id="amounts", **known
    ).fit(X, amounts)
    assert np.mean(amounts < high.predict(X)) == pytest.approx(0.9, abs=0.04)
