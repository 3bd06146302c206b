"""How far an optimum can lie from zero, whatever the records: less than G/lam where lam is small, and reached."""

import mpmath
import numpy as np
import pytest

from dpmpc.learning.erm_blocks import optima
from dpmpc.learning.losses import LOGISTIC, Loss, farthest, ridge
from dpmpc.learning.method import METHODS, Learning
from dpmpc.learning.softmax import SOFTMAX
from dpmpc.records.blocks import in_memory

LOSSES = (LOGISTIC, ridge(0.25), ridge(0.75))


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: f"{loss.name} {loss.G}")
@pytest.mark.parametrize("lam", [1e-4, 1e-2])
def test_no_optimum_is_farther_and_some_are_nearly_as_far(loss: Loss, lam: float) -> None:
    """One coordinate, a part of the records against the others: the optimum of every mixture, by Newton's method."""
    nearest = 0.0
    for part in (0.5, 0.75, 0.9, 1.0):
        n = 40
        y = np.where(np.arange(n) < part * n, 1.0, -1.0 if loss is LOGISTIC else 0.0)
        for size in np.geomspace(np.sqrt(lam), 1, 60):  # small features make large models
            X = np.full((n, 1), size)
            theta = optima(loss, in_memory(X, y), np.array([0, n]), lam, 1e-9, 2)[0]
            nearest = max(nearest, abs(float(theta[0, 0])) / farthest(loss, lam))
    assert 0.9 < nearest <= 1 + 1e-6


def test_the_logistic_constant_is_lamberts() -> None:
    exact = mpmath.lambertw(mpmath.mpf(1) / mpmath.e)
    assert float(exact) <= farthest(LOGISTIC, 1.0) ** 2 * (1 + 1e-15) < float(exact) * (1 + 1e-14)
    m = np.linspace(0, 40, 400_001)
    assert float(np.max(m / (1 + np.exp(m)))) <= farthest(LOGISTIC, 1.0) ** 2
    assert farthest(SOFTMAX, 0.1) == np.inf


def test_owners_of_few_records_pay_for_no_more_than_two_optima_can_lie_apart() -> None:
    """At one record an owner and lambda 1e-3 the printed noise, made for 2G/lambda, is 60 times what is needed."""
    learning = Learning(method="output", task="logistic", lam=1e-3, solver_tolerance=0.0)
    moved = METHODS["output"].sensitivity(learning, [1] * 100, "equal", 5).l2
    assert moved == pytest.approx(2 * farthest(LOGISTIC, 1e-3) / 100) and moved < 2 / (100 * 1e-3) / 55
    many = METHODS["output"].sensitivity(learning, [5000] * 100, "equal", 5).l2
    assert many == pytest.approx(2 / (100 * 5000 * 1e-3))
    rng = np.random.default_rng(1)
    for size in (1, 2, 5, 30):
        bound = METHODS["output"].sensitivity(learning, [size], "equal", 4).l2
        for _ in range(20):
            X = rng.standard_normal((size, 4)) * 10.0 ** rng.uniform(-2, 0)
            X /= np.maximum(1, np.linalg.norm(X, axis=1))[:, None]
            y = rng.choice([-1.0, 1.0], size)
            other, signs = X.copy(), y.copy()
            other[0], signs[0] = -X[0], y[0]
            pair = [optima(LOGISTIC, in_memory(a, b), np.array([0, size]), 1e-3, 1e-10, 2)[0][0]
                    for a, b in ((X, y), (other, signs))]  # fmt: skip
            assert float(np.linalg.norm(pair[0] - pair[1])) <= bound * (1 + 1e-6)
