"""Tails, shape, and releases that are made of others: what they see, and false alarms that are bounds at every size."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.linalg import hadamard

from dpmpc.verify.dependence import _chaos, _chaos_level, _log_chaos_tail, lags_check
from dpmpc.verify.scores import Sample
from dpmpc.verify.statistics import check_statistics
from dpmpc.verify.tails import _chernoff, shape_check, tails_check
from dpmpc.verify.verdict import ALPHA

SIGMA = 8192.0
Reals = NDArray[np.float64]
SHAPE = (500, 128)  # as a run with Gaussian noise has it


def sample(noise: Reals, law: str = "gaussian", m: int = 10) -> Sample:
    rng = np.random.default_rng(1)
    sums, bits = rng.integers(-(10**6), 10**6, noise.shape), rng.random((len(noise), noise.shape[1] - 1)) < 0.5
    return Sample(m, law, SIGMA, True, np.rint(noise * SIGMA).astype(np.int64), sums, bits)


def three(draw: Callable[[np.random.Generator], Reals], law: str = "gaussian") -> list[Sample]:
    """The same fault for three numbers of owners, as a verification has them."""
    rng = np.random.default_rng(7)
    return [sample(draw(rng), law, m) for m in (2, 10, 100)]


def honest(rng: np.random.Generator) -> Reals:
    return rng.standard_normal(SHAPE)


@pytest.mark.parametrize("law", ["gaussian", "laplace"])
def test_honest_noise_holds(law: str) -> None:
    samples = three(honest if law == "gaussian" else lambda rng: rng.laplace(size=SHAPE), law)
    for check in (shape_check(law, samples), tails_check(law, samples), *map(lags_check, samples)):
        assert check.holds and check.tested and check.figures["p_value"] > 1e-4, check


@pytest.mark.parametrize(
    ("fault", "draw"),
    {
        "sum of 12 uniforms": lambda rng: rng.random((*SHAPE, 12)).sum(-1) - 6,
        "third moment of .1": lambda rng: (x := rng.standard_normal(SHAPE)) + 0.02 * (x**2 - 1),
    }.items(),
)
def test_another_shape_is_seen_over_all_numbers_of_owners(fault: str, draw: Callable[..., Reals]) -> None:
    """Both have the right variance and hold against bins of one number of owners alone."""
    samples = three(draw)
    assert not shape_check("gaussian", samples).holds
    assert "shape (gaussian, all owners)" in check_statistics(samples).failed


@pytest.mark.parametrize("how", ["clipped", "drawn again"])
def test_a_cut_is_seen_where_the_line_says_and_no_further(how: str) -> None:
    def cut(at: float) -> list[Sample]:
        def draw(rng: np.random.Generator) -> Reals:
            x = rng.standard_normal(SHAPE)
            while how == "drawn again" and (far := np.abs(x) > at).any():
                x[far] = rng.standard_normal(int(far.sum()))
            return np.clip(x, -at, at)

        return three(draw)

    said = tails_check("gaussian", three(honest)).figures["cut"]
    assert 3.7 < said < 4
    assert not tails_check("gaussian", cut(said - 0.13)).holds  # thresholds are an eighth of a deviation apart
    assert tails_check("gaussian", cut(said + 0.5)).holds
    heavy = three(lambda rng: np.where(rng.random(SHAPE) < 1e-3, 4.5, 1.0) * rng.standard_normal(SHAPE))
    assert not tails_check("gaussian", heavy).holds


def rotation(rng: np.random.Generator) -> Reals:
    q, r = np.linalg.qr(rng.standard_normal((SHAPE[1], SHAPE[1])))
    return np.asarray(q * np.sign(np.diag(r)))


def mapped(lag: int, by: Callable[[np.random.Generator], Reals]) -> Callable[..., Reals]:
    """Releases that are a map of the one `lag` places before."""

    def draw(rng: np.random.Generator) -> Reals:
        x, A = rng.standard_normal(SHAPE), by(rng)
        for k in range(lag, SHAPE[0]):
            x[k] = x[k - lag] @ A
        return x

    return draw


def of_two(rng: np.random.Generator) -> Reals:
    """Each with half of the variance."""
    x = rng.standard_normal((800, SHAPE[1]))
    return np.concatenate([x, (x[:400] @ rotation(rng) + x[400:] @ rotation(rng)) / math.sqrt(2)])


def turned(rng: np.random.Generator) -> Reals:
    x = rng.standard_normal((SHAPE[0] // 2, SHAPE[1]))
    return np.concatenate([x, (x @ rotation(rng))[::-1]])


@pytest.mark.parametrize(
    "draw",
    {
        "Hadamard": mapped(250, lambda rng: hadamard(SHAPE[1]) / math.sqrt(SHAPE[1])),
        "a rotation": mapped(250, rotation),
        "the release before": mapped(1, rotation),
        "another order and signs": mapped(
            100, lambda rng: np.eye(SHAPE[1])[rng.permutation(SHAPE[1])] * rng.choice((-1.0, 1.0), SHAPE[1])
        ),
        "turned round": turned,
        "of two releases": of_two,
    }.values(),
)
def test_a_release_that_is_a_public_map_of_others_is_seen(draw: Callable[..., Reals]) -> None:
    (one, *_) = three(draw)
    assert not lags_check(one).holds


def test_fewer_releases_than_it_needs_are_not_tested() -> None:
    rng = np.random.default_rng(2)
    few = lags_check(sample(rng.standard_normal((250, 8))))
    assert few.holds and not few.tested
    needed = lags_check(sample(rng.standard_normal(SHAPE))).figures["pairs"]
    assert 150 < needed < 200
    assert lags_check(sample(rng.standard_normal((3 * needed, 2)))).tested


def test_the_bounds_of_false_alarms_hold_at_small_sizes() -> None:
    """Against frequencies of 40,000 draws each, where these have something to say; +6 standard deviations."""
    rng, draws = np.random.default_rng(4), 40_000
    for n in (3, 8, 40):
        M = rng.standard_cauchy((n, n))
        M = M + M.T
        np.fill_diagonal(M, 0.0)
        signs = rng.choice((-1.0, 1.0), (draws, n))
        values = np.abs(((signs @ M) * signs).sum(axis=1)) / math.sqrt(2 * (M**2).sum())
        assert _chaos(M) == pytest.approx(abs(M.sum()) / math.sqrt(2 * (M**2).sum()))
        for t in (2.0, 3.0, 5.0, 8.0, 12.0):
            bound = math.exp(_log_chaos_tail(t))
            assert (values >= t).mean() <= bound + 6 * math.sqrt(bound / draws)
    assert math.exp(_log_chaos_tail(_chaos_level(1e-6))) == pytest.approx(1e-6, rel=1e-3)
    p, h = np.array([0.5, 0.3, 0.15, 0.05]), np.array([-0.7, 0.1, 1.2, 2.84])
    h = h - p @ h
    counts = rng.multinomial(60, p, size=draws)
    sums, deviation = counts @ h, math.sqrt(60 * float(p @ h**2))
    for t in (1.0, 2.0, 3.0):
        bound = math.exp(_chernoff([(counts[0].astype(np.float64), p)], [h], t * deviation, deviation))
        found = float((sums >= t * deviation).mean())
        assert found <= bound + 6 * math.sqrt(bound / draws) and bound < 1.1 * math.exp(-(t**2) / 3)


def test_they_are_among_the_statistics() -> None:
    names = {check.name.split(" (")[0] for check in check_statistics(three(honest)).checks}
    assert {"shape", "tails", "no release made of others"} <= names
    assert check_statistics(three(mapped(250, rotation))).failed == [
        f"no release made of others (gaussian, m = {m})" for m in (2, 10, 100)
    ]
    assert ALPHA == 1e-9
