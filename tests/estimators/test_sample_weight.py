"""Weights of records: what a fit makes of them, how far apart weighted records lie at most, and refusals."""

from typing import Any

import numpy as np
import pytest

from dpmpc.estimators import PrivateLogisticRegression, PrivateRidge
from dpmpc.learning.erm_blocks import owner_gradients
from dpmpc.learning.losses import LOGISTIC, Loss, ridge
from dpmpc.learning.method import Learner, Learning
from dpmpc.learning.softmax import SOFTMAX
from dpmpc.privacy.spread import amplification
from dpmpc.records.blocks import in_memory
from tests.refusals import Rule, breaks, refuses

PLAIN: dict[str, Any] = {
    "bounds": (-4.0, 4.0), "engine": "clear", "iterations": 4, "step": 1.0, "lam": 0.01, "average": "none",
    "method": "gradient", "scale": 0,
}  # fmt: skip
pytestmark = pytest.mark.filterwarnings(r"ignore:\d+ fits on :dpmpc.estimators.spending.PrivacyWarning")


def problem(n: int = 90) -> tuple[Any, Any, Any, Any]:
    """(X, y, site, w)."""
    rng = np.random.default_rng(2)
    X = np.clip(rng.normal(size=(n, 3)), -3.9, 3.9)
    return X, (X[:, 0] + rng.normal(0, 0.3, n) > 0).astype(int), np.arange(n) % 3, rng.uniform(0, 1, n)


def descent(X: Any, y: Any, site: Any, w: Any) -> Any:
    """The model by plain NumPy: mean over owners of w-weighted gradients, divided by how many records each has."""
    rows = np.column_stack([X / 4, np.ones(len(X))])
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    theta, label = np.zeros(4), np.where(y > 0, 1.0, -1.0)
    for _ in range(4):
        pulls = (-label * w / (1 + np.exp(label * (rows @ theta))))[:, None] * rows
        mean = np.mean([pulls[site == k].sum(axis=0) / (site == k).sum() for k in range(3)], axis=0)
        theta = theta - (mean + 0.01 * theta)
    return theta


@pytest.mark.parametrize("bound", [1.0, 5.0])
def test_a_weighted_fit_is_the_descent_on_weighted_sums_over_all_records(bound: float) -> None:
    X, y, site, w = problem()
    fitted = PrivateLogisticRegression(**PLAIN, classes=[0, 1], weight_bound=bound)
    fitted.fit(X, y, owners=site, sample_weight=w * bound)
    assert np.allclose([*fitted.coef_.ravel(), fitted.intercept_], descent(X, y, site, w), atol=1e-4)
    assert not np.allclose([*fitted.coef_.ravel(), fitted.intercept_], descent(X, y, site, w / w.mean()), atol=1e-2)


def test_weights_move_neither_noise_nor_price() -> None:
    X, y, site, w = problem()
    settings: dict[str, Any] = {**PLAIN, "scale": None, "classes": [0, 1]}
    plain = PrivateLogisticRegression(**settings).fit(X, y, owners=site)
    weighted = PrivateLogisticRegression(**settings, data_id="others").fit(X, y, owners=site, sample_weight=w)
    assert plain.guarantee_ == weighted.guarantee_
    assert plain.ledger_[0].mechanism == weighted.ledger_[0].mechanism


@pytest.mark.parametrize("loss", [LOGISTIC, ridge(0.25), SOFTMAX], ids=lambda loss: loss.name)
@pytest.mark.parametrize(("most", "within"), [(1.0, True), (1.2, False)])
def test_no_pair_of_weighted_records_is_farther_apart_than_claimed(loss: Loss, most: float, within: bool) -> None:
    """Over claimed, the farthest of all pairs of 400 records, ends oftenest, at iterates small and large; with weights
    up to 1.2 the claim would be broken."""
    rng, worst = np.random.default_rng(3), 0.0
    for norm in (0.0, 0.5, 3.0, 60.0):
        K = 3 if loss is SOFTMAX else 1
        theta = rng.normal(size=2 * K)
        theta *= norm / np.linalg.norm(theta)
        angle = rng.uniform(0, 2 * np.pi, 400)
        angle[:100] = np.arctan2(theta[1], theta[0]) + rng.choice([0, np.pi / 2, np.pi, -np.pi / 2], 100)
        X = np.column_stack([np.cos(angle), np.sin(angle)]) * rng.choice([1.0, 1.0, 0.3, 0.0], 400)[:, None]
        y = rng.integers(0, 3, 400).astype(float) if loss is SOFTMAX else rng.choice([-1.0, 1.0], 400)
        w = rng.choice([0.0, 0.5, most, most, most], 400)
        each = owner_gradients(loss, theta, in_memory(X, y, w), np.arange(401))
        apart = float(np.linalg.norm(each[:, None] - each[None], axis=2).max())
        claimed = 2 * loss.G / (amplification(norm) if loss is LOGISTIC else 1.0)
        worst = max(worst, apart / claimed)
    assert (worst <= 1 + 1e-12) == within and worst > 0.85


@pytest.mark.parametrize(
    ("w", "broken"),
    [
        (np.full(90, -0.1), breaks("records", 0, 1, kind=ValueError)),
        (np.full(90, 1.5), breaks("records", 0, 1, kind=ValueError)),
        (np.full(90, np.nan), breaks("records", 0, 1, kind=ValueError)),
        (np.ones(3), breaks("shape", "(90,)", "(3,)", kind=ValueError)),
    ],
)
def test_weights_that_are_none_are_refused_before_anything_is_spent(w: Any, broken: Rule) -> None:
    X, y, site, _ = problem()
    model = PrivateLogisticRegression(**PLAIN, classes=[0, 1])
    with refuses(broken):
        model.fit(X, y, owners=site, sample_weight=w)
    assert not hasattr(model, "ledger_")
    with refuses("range", 0, kind=ValueError):
        PrivateRidge(**PLAIN, weight_bound=0).fit(X, y, owners=site, sample_weight=np.ones(90))


def test_methods_that_are_not_proved_for_weights_refuse_them() -> None:
    X, y, _, w = problem()
    rows = X / 10
    for method in ("output", "functional"):
        learning = Learning(method=method, task="logistic", lam=0.1)
        with refuses("together", "gradient", method):
            Learner(learning, 1, in_memory(rows, np.where(y > 0, 1.0, -1.0), w), [len(y)])
    with refuses("records", 0, 1):
        learning = Learning(method="gradient", task="logistic", lam=0.1)
        Learner(learning, 1, in_memory(rows, np.where(y > 0, 1.0, -1.0), w + 1), [len(y)])
