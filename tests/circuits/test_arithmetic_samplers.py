"""Large samples of the arithmetic circuits: against the exact laws, against the Boolean circuits', and the same tests
against samplers that are slightly wrong. Every test raises a false alarm with probability below 1e-9."""

from collections.abc import Callable

import numpy as np
import pytest
from alarms import FALSE_ALARM, NAMES, alarms
from fieldnoise import discrete, field_noise
from numpy.typing import NDArray
from scipy.special import chdtrc

from dpmpc.circuits import field_gaussian
from dpmpc.circuits.arithmetic import Arithmetic, Values
from dpmpc.circuits.deep import Deep
from dpmpc.mpc.clear.noise import clear_noise
from dpmpc.mpc.numbers.prg import Prg
from dpmpc.mpc.shamir.backend import BATCH
from dpmpc.noise import goodness
from dpmpc.privacy.law import LAWS

COUNT = 1 << 18  # enough to see what is spoilt below, and 3 % of scale
OFTEN = Deep(2, 8, 8)  # a quarter of all comparisons goes deep, and never too many of a group
Integers = NDArray[np.int64]


def two_samples(first: Integers, second: Integers, wanted: int = 64) -> float:
    """The p-value of Pearson's test that both samples have one law; bins of nearly equal counts of both together."""
    edges = np.unique(np.quantile(np.concatenate([first, second]), np.arange(1, wanted) / wanted).astype(np.int64))
    counts = np.array([np.bincount(np.searchsorted(edges, x), minlength=len(edges) + 1) for x in (first, second)])
    expected = counts.sum(axis=0) * counts.sum(axis=1, keepdims=True) / counts.sum()
    assert expected.min() >= goodness.MINIMUM_EXPECTED
    return float(chdtrc(len(edges), ((counts - expected) ** 2 / expected).sum()))


def boolean(law: str, scale: float, count: int) -> Integers:
    """Samples of the Boolean circuit."""
    return clear_noise(discrete(law, scale), count, Prg.from_os())


CASES: list[tuple[str, float]] = [("gaussian", 700.0), ("gaussian", 123456.7), ("laplace", 1000.3)]


@pytest.mark.slow
@pytest.mark.parametrize(("deep", "count"), [(Deep(), COUNT), (OFTEN, COUNT // 4)])
@pytest.mark.parametrize(("law", "scale"), CASES)
def test_samples_follow_the_exact_law_and_that_of_the_boolean_circuits(
    law: str, scale: float, deep: Deep, count: int
) -> None:
    samples = field_noise(law, scale, count, deep)
    found = alarms(samples, LAWS[law].exact(scale, True))
    assert not found, found
    assert two_samples(samples, boolean(law, scale, count)) > FALSE_ALARM


def test_samples_without_shared_bits_follow_the_law() -> None:
    for law, scale in CASES:
        samples = field_noise(law, scale, 1 << 16, None)
        assert not alarms(samples, LAWS[law].exact(scale, True))


def test_the_two_sample_test_sees_three_per_cent_of_scale() -> None:
    first, second = boolean("gaussian", 700.0, COUNT), boolean("gaussian", 721.0, COUNT)
    assert two_samples(first, second) < FALSE_ALARM < two_samples(first, boolean("gaussian", 700.0, COUNT))


# -- slightly wrong --------------------------------------------------------------------------------------------------
Patch = pytest.MonkeyPatch


def no_sign_of_deep_draws(patch: Patch) -> None:
    """Deep draws are never negative."""
    good = field_gaussian.compare

    async def wrong(engine: Arithmetic, index: Values, equal: Values, *, pairings=None, sign=None):  # type: ignore[no-untyped-def]
        positive = None if sign is None else np.ones_like(sign)
        return await good(engine, index, equal, pairings=pairings, sign=positive)

    patch.setattr(field_gaussian, "compare", wrong)


def deep_places_begin_one_too_low(patch: Patch) -> None:
    """Deep draws read the threshold one place too low."""
    good = field_gaussian.look_up

    async def wrong(engine: Arithmetic, table, low: Values, prefixes: Values, first: int = 0) -> Values:  # type: ignore[no-untyped-def]
        return await good(engine, table, low, prefixes[: len(prefixes) - (first > 0)], first + (first > 0))

    patch.setattr(field_gaussian, "look_up", wrong)


def ranks_share_a_draw(patch: Patch) -> None:
    """The second deep sample of a group takes the first one's draw."""
    good = field_gaussian.deal_out
    patch.setattr(field_gaussian, "deal_out", lambda e, d, s: good(e, e.join([d[:1], d[:1], d[2:]]), s))


def ranks_are_one_too_high(patch: Patch) -> None:
    """The sample of rank r takes draw r + 1."""
    good = field_gaussian.rank_powers

    async def wrong(engine: Arithmetic, goes_deep: Values, slots: int) -> Values:
        powers = await good(engine, goes_deep, slots)
        return engine.join([powers[:1], engine.add(powers[1:2], powers[:1]), powers[2:]])

    patch.setattr(field_gaussian, "rank_powers", wrong)


def a_low_bit_is_missing(patch: Patch) -> None:
    """One bit of the highest weight of V is always 0."""
    good = field_gaussian._add_low_bits

    def wrong(engine, plan, signed, low):  # type: ignore[no-untyped-def]
        return good(engine, plan, signed, engine.join([low[:-1], low[-1:] * 0]))

    patch.setattr(field_gaussian, "_add_low_bits", wrong)


@pytest.mark.slow
@pytest.mark.parametrize(
    "spoil",
    [no_sign_of_deep_draws, deep_places_begin_one_too_low, ranks_are_one_too_high, a_low_bit_is_missing],
)
def test_the_same_tests_reject_wrong_samplers(spoil: Callable[[Patch], None], monkeypatch: Patch) -> None:
    spoil(monkeypatch)
    samples = field_noise("gaussian", 700.0, COUNT, OFTEN)
    law = LAWS["gaussian"].exact(700.0, True)
    assert any(alarms(samples, law, (name,)) for name in NAMES)


@pytest.mark.slow
def test_a_draw_that_two_samples_share_keeps_every_law_and_is_seen_jointly(monkeypatch: Patch) -> None:
    """Why a group's joint law is what is bounded: each sample's own law is right, and only pairs show it."""
    law, count, size = LAWS["gaussian"].exact(700.0, True), COUNT // 2, OFTEN.group

    def excess() -> tuple[float, float]:
        samples = field_noise("gaussian", 700.0, count, OFTEN)
        groups = samples.reshape(-1, size, BATCH // size) / 700.0
        pairs = [groups[:, i] * groups[:, j] for i in range(size) for j in range(i)]
        return float(np.sum(pairs) / np.sqrt(np.size(pairs))), goodness.chi_square(samples, law).p_value

    z, p = excess()
    assert abs(z) < 6.2 and p > FALSE_ALARM  # normal tail 6e-10
    ranks_share_a_draw(monkeypatch)
    z, p = excess()
    assert z > 12 and p > FALSE_ALARM
