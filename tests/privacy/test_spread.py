"""Sensitivity that knows theta: the bound against a search, and the records that attain it."""

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from dpmpc.learning import erm
from dpmpc.learning.method import METHODS, Learning
from dpmpc.privacy import spread
from dpmpc.privacy.spread import amplification, logistic_spread, softmax_reach
from dpmpc.records.blocks import in_memory

NORMS = (0.0, 0.3, 1.0, 2.0, 5.0, 9.5, 40.0, 300.0, 1e4)


def gradient(theta: np.ndarray, x: np.ndarray, y: float) -> np.ndarray:
    return erm.gradient(erm.LOGISTIC, theta, x[None, :], np.array([y]))


def logistic_pair(theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two records (x, x'), both with label +1, whose gradients at theta (d,), d >= 2, differ by Delta(|theta|): the
    bound is attained."""
    r = float(np.linalg.norm(theta))
    direction = theta / r if r else np.eye(1, len(theta))[0]
    other = np.eye(1, len(theta), int(np.argmin(np.abs(direction))))[0]
    other = other - (other @ direction) * direction
    other /= np.linalg.norm(other)
    p = spread._level(r) / r if r else 0.0
    rest = math.sqrt(max(0.0, 1.0 - p * p))
    return -p * direction + rest * other, -p * direction - rest * other


def test_values_of_the_bound() -> None:
    """The figures that the docs state."""
    assert [round(logistic_spread(r), 2) for r in (0, 1, 2, 5, 9.5)] == [1.0, 1.1, 1.27, 1.62, 1.81]
    assert amplification(0.0) == 2.0 and 1 < amplification(1e6) < 1.0001


@pytest.mark.parametrize("norm", NORMS)
def test_the_bound_is_the_largest_value_of_its_formula(norm: float) -> None:
    phi = np.linspace(0, math.pi / 2, 400_001)
    best = float((2 * expit(norm * np.sin(phi)) * np.cos(phi)).max())
    assert logistic_spread(norm) >= best and logistic_spread(norm) == pytest.approx(best, rel=1e-7)


@pytest.mark.parametrize("norm", NORMS)
def test_two_records_attain_it(norm: float) -> None:
    rng = np.random.default_rng(5)
    theta = rng.standard_normal(7)
    theta *= norm / np.linalg.norm(theta)
    x, other = logistic_pair(theta)
    assert max(np.linalg.norm(x), np.linalg.norm(other)) <= 1 + 1e-12
    apart = float(np.linalg.norm(gradient(theta, x, 1.0) - gradient(theta, other, 1.0)))
    assert apart == pytest.approx(logistic_spread(norm), rel=1e-9)


@pytest.mark.parametrize("norm", [0.5, 2.0, 5.0, 20.0])
def test_no_two_records_exceed_it(norm: float) -> None:
    """Random records and labels, and a local search over both records from random starts."""
    rng = np.random.default_rng(int(10 * norm))
    d, bound = 3, logistic_spread(norm)
    theta = rng.standard_normal(d)
    theta *= norm / np.linalg.norm(theta)
    X = rng.standard_normal((2, 4000, d))
    X *= (rng.random((2, 4000)) ** (1 / d) / np.linalg.norm(X, axis=2))[:, :, None]
    y = np.where(rng.random((2, 4000)) < 0.5, 1.0, -1.0)
    slopes = -y[:, :, None] * expit(-y * (X @ theta))[:, :, None] * X
    assert np.linalg.norm(slopes[0] - slopes[1], axis=1).max() <= bound

    def negative(flat: np.ndarray) -> float:
        z, other = flat[:d], flat[d:]
        z, other = z / max(1.0, float(np.linalg.norm(z))), other / max(1.0, float(np.linalg.norm(other)))
        return -float(np.linalg.norm(expit(-theta @ z) * z - expit(-theta @ other) * other))

    found = max(-minimize(negative, rng.standard_normal(2 * d), method="Nelder-Mead").fun for _ in range(12))
    assert bound * 0.98 <= found <= bound * (1 + 1e-9)


def test_a_slightly_smaller_bound_would_be_false() -> None:
    """A bound of 2 sigma(r sin phi) cos phi at any other angle is exceeded by the attaining pair."""
    theta = np.array([3.0, 0.0])
    x, other = logistic_pair(theta)
    apart = float(np.linalg.norm(gradient(theta, x, 1.0) - gradient(theta, other, 1.0)))
    phi = math.asin(float(-x @ theta / 9.0) * 3.0)
    for turned in (phi - 0.02, phi + 0.02):
        assert 2 * expit(3.0 * math.sin(turned)) * math.cos(turned) < apart * (1 - 1e-5)


def test_the_inequality_of_the_proof() -> None:
    """|s z - s' z'|^2 <= max(1, 4 sigma(m)^2 (1 - m^2/r^2)), m the mean of the two levels, over a fine grid."""
    for r in (0.5, 3.0, 12.0):
        phi = np.linspace(-math.pi / 2, math.pi / 2, 801)
        a, b = np.meshgrid(phi, phi)
        s, t = expit(r * np.sin(a)), expit(r * np.sin(b))
        squared = s**2 + t**2 + 2 * s * t * np.cos(a + b)
        m = r * (np.sin(a) + np.sin(b)) / 2
        limit = np.maximum(1.0, 4 * expit(m) ** 2 * (1 - (m / r) ** 2))
        assert (squared <= limit * (1 + 1e-12)).all()


def test_clipped_and_amplified_means_have_the_sensitivity_of_the_pool() -> None:
    """Owner's mean of n records times 2/Delta: replacing the record of the pair moves it by 2/n, and no more."""
    rng = np.random.default_rng(2)
    theta = np.array([2.0, -1.0, 0.5])
    x, other = logistic_pair(theta)
    rest = rng.standard_normal((9, 3))
    rest /= np.linalg.norm(rest, axis=1)[:, None]
    y = np.ones(10)
    one = erm.gradient(erm.LOGISTIC, theta, np.vstack([rest, x]), y)
    two = erm.gradient(erm.LOGISTIC, theta, np.vstack([rest, other]), y)
    factor = amplification(float(np.linalg.norm(theta)))
    assert np.linalg.norm(factor * (one - two)) == pytest.approx(2 / 10, rel=1e-9)


# -- softmax -----------------------------------------------------------------------------------------------------------
def softmax_gradient(theta: np.ndarray, x: np.ndarray, label: int) -> np.ndarray:
    """By finite differences of the loss: nothing of the formula that the bound is proved with."""
    x = x / max(1.0, float(np.linalg.norm(x)))

    def loss(at: np.ndarray) -> float:
        scores = at.T @ x
        return float(np.logaddexp.reduce(scores) - scores[label])

    found, step = np.zeros_like(theta), 1e-5
    for place in np.ndindex(theta.shape):
        up = theta.copy()
        up[place] += step
        down = theta.copy()
        down[place] -= step
        found[place] = (loss(up) - loss(down)) / (2 * step)
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("classes", "size"), [(2, 0.0), (3, 0.0), (3, 0.5), (3, 2.0), (5, 1.0), (3, 12.0)])
def test_no_records_of_several_classes_lie_further_apart(classes: int, size: float) -> None:
    """Ascent in both records from random ones, and from opposite ones, for all pairs of classes of two."""
    rng = np.random.default_rng(classes)
    theta = rng.standard_normal((3, classes))
    theta -= theta.mean(axis=1, keepdims=True)
    far = max(np.linalg.norm(theta[:, a] - theta[:, b]) for a in range(classes) for b in range(classes))
    theta *= size / far
    reach = softmax_reach(theta)
    best = longest = 0.0
    for labels in ((0, 0), (0, 1), (1, 0)):
        for k in range(3):
            start = (
                rng.standard_normal(6) if k else np.tile(theta[:, 1] - theta[:, 0] + 1e-3, 2) * [1, 1, 1, -1, -1, -1]
            )

            def apart(z: np.ndarray, pair: tuple[int, int] = labels) -> float:
                one, other = (softmax_gradient(theta, z[3 * i : 3 * i + 3], pair[i]) for i in (0, 1))
                return -float(np.linalg.norm(one - other))

            found = minimize(apart, start, method="Nelder-Mead", options={"maxfev": 300})
            best = max(best, -float(found.fun))
            ends = zip(found.x.reshape(2, 3), labels, strict=True)
            longest = max(longest, *(float(np.linalg.norm(softmax_gradient(theta, x, y))) for x, y in ends))
    assert longest <= reach * (1 + 1e-7) and best <= 2 * reach * (1 + 1e-7)
    assert best > (0.999 if size == 0 else 0.6) * 2 * reach, "the search has teeth"


def test_values_of_the_bound_for_several_classes() -> None:
    """The figures that the docs state; by brute force over all corners of the box of scores, without m and symmetry."""
    assert 2 * softmax_reach(np.zeros((4, 3))) / math.sqrt(8) == pytest.approx(0.577, abs=1e-3)
    for far, share in ((1.0, 0.73), (2.0, 0.87), (40.0, 1.0), (1e5, 1.0)):
        theta = np.zeros((2, 3))
        theta[0, 1] = far
        assert 2 * softmax_reach(theta) / math.sqrt(8) == pytest.approx(share, abs=6e-3)
    for classes in (2, 3, 6):
        for far in (0.1, 1.0, 3.0):
            theta = np.zeros((2, classes))
            theta[1, 0] = far
            corners = np.array(list(itertools.product((-far, far), repeat=classes - 1)))
            p = np.exp(np.column_stack([np.zeros(len(corners)), corners]))
            p /= p.sum(axis=1, keepdims=True)
            p[:, 0] -= 1
            assert softmax_reach(theta) == pytest.approx(np.linalg.norm(p, axis=1).max(), rel=1e-9)
            inside = np.random.default_rng(1).uniform(-far, far, (20_000, classes - 1))
            q = np.exp(np.column_stack([np.zeros(len(inside)), inside]))
            q /= q.sum(axis=1, keepdims=True)
            q[:, 0] -= 1
            assert np.linalg.norm(q, axis=1).max() <= softmax_reach(theta)


def test_owners_scale_softmax_gradients_so_that_the_claim_holds_at_every_iterate() -> None:
    """Vectors by the owners' own code: within the norm that they are clipped to, and no further apart than claimed."""
    rng = np.random.default_rng(2)
    for presence in (False, True):
        how = Learning(method="gradient", task="softmax", lam=0.1, classes=3, presence=presence)
        method, claimed = METHODS["gradient"], how.moved("presence" if presence else "record", [1], "equal", 9)
        for size in (0.0, 0.5, 3.0, 30.0):
            theta = rng.standard_normal(9) * size
            X = rng.standard_normal((40, 3))
            X /= np.linalg.norm(X, axis=1)[:, None]
            X, y = np.concatenate([X, -X]), np.tile(np.arange(80) % 3, 1).astype(float)
            rows = method.vectors(how, theta, in_memory(X, y), np.arange(81)) * method.factor(how, theta)
            assert np.linalg.norm(rows, axis=1).max() <= how.clip * (1 + 1e-9)
            far = np.linalg.norm(rows[:, None] - rows[None], axis=2).max() if not presence else how.clip
            assert far <= claimed.l2 * (1 + 1e-9)
