"""Heavy-ball momentum: what it does to an iterate, that it is as stable as its step, and that it costs no noise."""

import math
from dataclasses import replace

import numpy as np
import pytest

from dpmpc.errors import UsageError
from dpmpc.learning.lengths import of_length
from dpmpc.learning.method import METHODS, Learner, Learning
from dpmpc.records.blocks import in_memory


def learner(**settings: object) -> Learner:
    nothing = in_memory(np.zeros((0, 3)), np.zeros(0))
    return Learner(Learning(method="gradient", task="logistic", lam=0.01, average="none", **settings), 9, nothing, (0,))  # type: ignore[arg-type]


def test_an_iterate_repeats_a_part_of_its_last_move() -> None:
    rng = np.random.default_rng(1)
    means = rng.standard_normal((6, 3))
    fast, theta, before = learner(step=0.7, momentum=0.8, spread="fixed"), np.zeros(3), np.zeros(3)
    for mean in means:
        fast.apply(mean)
        theta, before = theta - 0.7 * (mean + 0.01 * theta) + 0.8 * (theta - before), theta
        np.testing.assert_allclose(fast.theta, theta, rtol=1e-12)


@pytest.mark.parametrize("none", [None, 0.0])
def test_without_momentum_an_iterate_is_what_the_method_makes_of_it(none: float | None) -> None:
    slow, theta = learner(step=0.7, momentum=none, spread="fixed"), np.zeros(3)
    for mean in np.random.default_rng(2).standard_normal((4, 3)):
        slow.apply(mean)
        theta = theta - 0.7 * (mean + 0.01 * theta)
        assert (slow.theta == theta).all()


def test_a_radius_holds_with_momentum() -> None:
    held = learner(step=1.0, momentum=0.95, radius=0.5)
    for _ in range(9):
        held.apply(np.full(3, -1.0))
        assert np.linalg.norm(held.theta) <= 0.5 + 1e-12


def test_any_momentum_is_stable_for_the_advised_step_at_every_curvature() -> None:
    """The roots of z^2 - (1 + b - h v) z + b lie in the unit circle for all v in (0, L] where h L is 1.5: so no records
    make a descent diverge."""
    for b in (0.0, 0.3, 0.9, 0.99, 0.999):
        for v in np.linspace(1e-4, 1.0, 400):
            assert np.abs(np.roots([1.0, -(1 + b - 1.5 * v), b])).max() < 1


def test_the_same_length_has_as_much_noise_with_fewer_releases() -> None:
    """Exactly, by the impulse response: the variance of the last iterate along a direction of curvature v, noise of T
    releases having T times the variance, of T = 4 sqrt(n) releases with momentum over that of n without."""
    for n in (100, 1000, 5000):
        b = 1 - 4 / math.sqrt(n)
        T = math.ceil(n * (1 - b))
        h = 1.5 * (n * (1 - b) / T)
        for v in (0.0, 0.1 / n, 1 / n, 10 / n, 0.05, 0.5, 1.0):
            slow = n * 1.5**2 * sum((1 - 1.5 * v) ** (2 * k) for k in range(n))
            p = [0.0, 1.0]
            for _ in range(T - 1):
                p.append((1 + b - h * v) * p[-1] - b * p[-2])
            fast = T * h**2 * sum(each**2 for each in p)
            assert fast < 1.35 * slow, (n, v)


@pytest.mark.parametrize("step", [1e308, 3e6, 2.1e3])
def test_a_step_that_runs_off_whatever_the_records_are_is_refused_before_anything_is_worked_out(step: float) -> None:
    """By lam .001 an iterate goes to (1 - step lam) of itself, plus a bounded gradient."""
    learning = Learning(method="gradient", task="logistic", lam=1e-3)
    with pytest.raises(UsageError) as error:
        replace(learning, step=step)
    assert (error.value.code, error.value.setting) == ("range", "step")
    with pytest.raises(UsageError) as error:
        of_length(learning.loss, 100.0, lam=1e-3, momentum=0.0, step=step)
    assert (error.value.code, error.value.setting) == ("range", "step")
    theta, longest = np.ones(3), replace(learning, step=1999.0)  # as far as one may go an iterate stays finite
    for _ in range(10_000):
        theta = METHODS["gradient"].update(longest, theta, np.full(3, -1.0))
    assert np.isfinite(theta @ theta)
