"""Box-Muller and log-Laplace: the transform against MPFR, its error bound, the law of what comes out."""

import functools
import math
from collections.abc import Callable
from typing import Any

import gmpy2
import mpmath
import numpy as np
import pytest
from alarms import FALSE_ALARM, alarms
from independence import cross_independence
from numpy.typing import NDArray

from dpmpc.circuits.accuracy import INTERPOLATION_ERROR, PLACE_ERROR, TARGET, fraction_bits, transform_error
from dpmpc.circuits.approximation import DEGREE, LARGEST, SEGMENTS, Law, piecewise, segment_value
from dpmpc.circuits.box_muller import box_muller
from dpmpc.circuits.fixed import PART_BITS, SUB_BITS, ZERO_BITS
from dpmpc.circuits.fixed_sampler import FixedPointSampler
from dpmpc.circuits.log_laplace import log_laplace
from dpmpc.circuits.program import Program
from dpmpc.circuits.trace import evaluate
from dpmpc.circuits.uniform_function import uniform_program
from dpmpc.mpc.clear.fixed import ClearFixed
from dpmpc.mpc.clear.noise import clear_noise
from dpmpc.mpc.contract.lanes import to_planes, words_for
from dpmpc.mpc.numbers import field
from dpmpc.mpc.numbers.prg import Prg
from dpmpc.noise import goodness
from dpmpc.privacy.law import LAWS

Words = NDArray[np.uint64]
BOTH: list[Law] = ["gaussian", "laplace"]


# -- chosen inputs -----------------------------------------------------------------------------------------------------
class Scripted:
    """A generator whose random bits are given, by the circuit's numbers; a program draws them in its own order."""

    def __init__(self, planes: Words, program: Program) -> None:
        self._planes = planes[program.drawn]
        self._row = 0

    def words(self, shape: tuple[int, ...]) -> Words:
        self._row += shape[0]
        return self._planes[self._row - shape[0] : self._row].reshape(shape).copy()

    reserve = words


class Given:
    """A private stream that gives these words."""

    def __init__(self, words: NDArray[np.uint64]) -> None:
        self._words = words

    def words(self, shape: tuple[int, ...]) -> NDArray[np.uint64]:
        assert shape == self._words.shape
        return self._words

    reserve = words


class Masks(Prg):
    """A PRSS stream of all zeros or all ones: the truncations err as far as they can, to one side."""

    def __init__(self, word: int) -> None:
        self._word = np.uint64(word)

    def words(self, shape: tuple[int, ...]) -> NDArray[np.uint64]:
        return np.full(shape, self._word)

    reserve = words


def inputs() -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint64], NDArray[np.uint64]]:
    """(segment, place, angle, angle): every segment with both ends, the middle and random places; all octants."""
    rng = np.random.default_rng(11)
    top = (1 << PART_BITS) - 1
    places = np.concatenate([[0, 1, top // 2, top // 2 + 1, top - 1, top], rng.integers(0, top, 34)])
    segment, place = (a.reshape(-1) for a in np.meshgrid(np.arange(SEGMENTS), places, indexing="ij"))
    first = rng.integers(0, 1 << 63, segment.size, dtype=np.uint64) * np.uint64(2)
    second = rng.integers(0, 1 << 63, segment.size, dtype=np.uint64) * np.uint64(2)
    first[::3] = np.uint64(1 << 61) * rng.integers(0, 8, first[::3].size, dtype=np.uint64)
    second[::6] = np.uint64(1 << 61) * rng.integers(0, 8, second[::6].size, dtype=np.uint64)
    return segment, place, first, second


SEGMENT, PLACE, FIRST, SECOND = inputs()


def scripted() -> Words:
    """The random bits that give `inputs`, (bits, words), as the circuit numbers them."""
    lanes, words = SEGMENT.size, words_for(SEGMENT.size)
    assert lanes == 64 * words
    zeros = SEGMENT >> (SUB_BITS + 1)
    counted = np.where(zeros < ZERO_BITS, np.uint64(1) << np.minimum(zeros, 62).astype(np.uint64), np.uint64(0))
    fine = (SEGMENT & ((2 << SUB_BITS) - 1)).astype(np.uint64)
    place = PLACE.astype(np.uint64)
    return np.concatenate([to_planes(counted, ZERO_BITS), to_planes(fine, 1 + SUB_BITS), to_planes(place, PART_BITS)])


@functools.cache
def exact(law: Law) -> NDArray[np.float64]:
    """The transform of `inputs` to 36 digits by MPFR, rounded: (2, lanes) or (1, lanes). The numbers of a segment say
    how many zeros the uniform begins with, which part of an octave it is in, and which of two branches."""
    values = []
    with gmpy2.context(precision=120):
        turn = 2 * gmpy2.const_pi() / (1 << 53)
        for s, place, a, b in zip(SEGMENT.tolist(), PLACE.tolist(), FIRST.tolist(), SECOND.tolist(), strict=True):
            zeros, part, bit = s >> SUB_BITS + 1, s >> 1 & (1 << SUB_BITS) - 1, s & 1
            v = (1 + (part + gmpy2.mpfr(2 * place + 1) / (2 << PART_BITS)) / (1 << SUB_BITS)) / (4 << zeros)
            if law == "gaussian":
                radius = gmpy2.sqrt(-2 * (gmpy2.log1p(-v) if bit else gmpy2.log(v)))
                sine, cosine = gmpy2.sin_cos(turn * ((a >> 11) + (b >> 11)))
                values.append((float(radius * cosine), float(radius * sine)))
            else:
                values.append((float(gmpy2.log(2 * v) if bit else -gmpy2.log(2 * v)),))
    return np.array(values).T


@pytest.mark.slow
def test_the_function_of_the_tables_is_what_the_transform_is_held_to() -> None:
    """At a place of each segment, by mpmath: two ways to write it."""
    for law in BOTH:
        by_segment = exact(law) if law == "laplace" else np.hypot(*exact(law))[None]
        for lane in range(0, SEGMENT.size, 40 * 7 + 3):
            with mpmath.workdps(30):
                t = mpmath.mpf(2 * int(PLACE[lane]) + 1) / (1 << PART_BITS) - 1
                value = float(segment_value(law, int(SEGMENT[lane]), t))
            assert value == pytest.approx(by_segment[0][lane], rel=1e-14)


def transformed(law: Law, bits: int, masks: Callable[..., Any], n: int, t: int) -> NDArray[np.float64]:
    """The fixed-point transform of `inputs`, in units of 2^-30 before division."""
    lanes, table = SEGMENT.size, piecewise(law, 1.0, bits)
    own = [Given(FIRST), Given(SECOND), *[Given(np.zeros_like(FIRST))] * (t - 1)]
    drawn: Any = Scripted(scripted(), uniform_program(table, math.comb(n, t) - 1, False))
    fixed = ClearFixed(lanes, n, t, drawn, masks, own)  # type: ignore[arg-type]
    assert lanes >= 3000
    if law == "gaussian":
        values = evaluate(box_muller(fixed, table, 2 * bits - 30))
    else:
        values = evaluate(log_laplace(fixed, table, bits + PART_BITS - 30))
    return np.asarray(field.to_int64(values) / 2.0**30, dtype=np.float64)


MASKS: dict[str, Callable[..., Any]] = {
    "random": lambda subset, purpose: Prg(bytes(subset), purpose),
    "zeros": lambda subset, purpose: Masks(0) if purpose == "fixed mask" else Prg(bytes(subset), purpose),
    "ones": lambda subset, purpose: Masks((1 << 64) - 1) if purpose == "fixed mask" else Prg(bytes(subset), purpose),
}


@pytest.mark.slow
@pytest.mark.parametrize(("law", "n", "t", "masks"), [
    ("gaussian", 3, 1, "random"), ("gaussian", 3, 1, "zeros"), ("gaussian", 3, 1, "ones"), ("gaussian", 5, 2, "ones"),
    ("laplace", 3, 1, "random"), ("laplace", 3, 1, "zeros"), ("laplace", 3, 1, "ones"),
])  # fmt: skip
def test_the_transform_is_within_its_bound_of_mpfr(law: Law, n: int, t: int, masks: str) -> None:
    """All 1,024 segments of the uniform, both ends of each; all mask bits random, or all pushing to one side."""
    subsets = math.comb(n, t)
    bits = fraction_bits(law, subsets, t + 1)
    bound = transform_error(law, bits, subsets, t + 1) - PLACE_ERROR  # these inputs are exactly the finite ones
    assert bound < TARGET
    error = np.abs(transformed(law, bits, MASKS[masks], n, t) - exact(law))
    assert error.max() <= bound + subsets / 2 * 2.0**-30
    assert np.abs(exact(law)).max() > 8.5


@pytest.mark.slow
def test_too_few_fraction_bits_are_noticed() -> None:
    for law in BOTH:
        error = np.abs(transformed(law, 22, MASKS["random"], 3, 1) - exact(law))
        assert error.max() > TARGET


@pytest.mark.slow
def test_both_ends_of_the_uniform_are_reached() -> None:
    z = exact("gaussian")
    radius = np.hypot(*z)
    assert 9.4 < radius.max() < LARGEST["gaussian"] and 0 < radius.min() < 2.0**-31
    assert 44 < exact("laplace").max() < LARGEST["laplace"] and 0 < np.abs(exact("laplace")).min() < 2.0**-28


# -- the bound's parts -------------------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("law", BOTH)
def test_the_interpolation_error_follows_from_lagranges_remainder(law: Law) -> None:
    """max |f^(5)| / 5! 2^-4 over t in [-1, 1], the derivative enclosed by interval recurrences over whole segments."""
    iv = mpmath.ctx_iv.MPIntervalContext()
    iv.prec = 300  # 1 - V differs from 1 by as little as 2^-65
    half = iv.mpf(1) / (2 << SUB_BITS)
    worst = 0.0
    for segment in range(SEGMENTS):
        k, fine = divmod(segment, 2 << SUB_BITS)
        part, bit = divmod(fine, 2)
        m = 1 + iv.mpf([part, part + 1]) / (1 << SUB_BITS)
        if law == "gaussian" and bit:  # -2 ln(1 - V)
            v, slope = m * iv.mpf(2) ** (-2 - k), half * iv.mpf(2) ** (-2 - k)
            series = [2 * slope**j / (j * (1 - v) ** j) for j in range(1, DEGREE + 2)]
            head = -2 * iv.log(1 - v)
        else:
            series = [2 * (-1) ** j * half**j / (j * m**j) for j in range(1, DEGREE + 2)]
            head = 2 * ((k + 2) * iv.log(2) - iv.log(m))
        if law == "gaussian":  # the square root of the series
            root = [iv.sqrt(head)]
            for n, g in enumerate(series, 1):
                root.append((g - sum((root[i] * root[n - i] for i in range(1, n)), iv.mpf(0))) / (2 * root[0]))
            top = root[-1]
        else:
            top = series[-1] / 2
        worst = max(worst, abs(float(mpmath.mpf(top.a))), abs(float(mpmath.mpf(top.b))))
    assert INTERPOLATION_ERROR[law] / 2 < worst * 2.0**-DEGREE * (1 + 2.0**-40) <= INTERPOLATION_ERROR[law]


@pytest.mark.parametrize("law", BOTH)
@pytest.mark.parametrize("factor", [1.0, 1.6853, 1.6854, 1.9999])
def test_tables_keep_their_margin(law: Law, factor: float) -> None:
    table = piecewise(law, factor, 30)
    ends = np.abs(np.stack([table.coefficients @ (sign ** np.arange(DEGREE + 1)) for sign in (-1, 1)]))
    assert ends.max() * (1 + 2.0**-16) < 1 << table.width - 1
    assert table.coefficients.min() + table.offset >= 0
    weights = 1 << np.arange(table.width, dtype=np.int64)
    back = (table.bits.reshape(SEGMENTS, table.width, -1) * weights[None, :, None]).sum(axis=1) - table.offset
    assert np.array_equal(back, table.coefficients)


@pytest.mark.parametrize(("n", "t"), [(1, 0), (3, 1), (4, 1), (5, 2), (6, 2), (7, 3), (9, 4)])
@pytest.mark.parametrize("law", BOTH)
def test_every_number_of_parties_meets_the_target(law: Law, n: int, t: int) -> None:
    assert FixedPointSampler(law, 3.0).transform_error(math.comb(n, t), t + 1) <= 2.0**-24


# -- the law -----------------------------------------------------------------------------------------------------------
SCALE = 23_456.75


@pytest.fixture(scope="module")
def samples() -> dict[Law, NDArray[np.int64]]:
    draws = {
        law: [clear_noise(FixedPointSampler(law, SCALE), 62_500, Prg(b"law", k)) for k in range(8)] for law in BOTH
    }
    return {law: np.concatenate(parts) for law, parts in draws.items()}


@pytest.mark.slow
@pytest.mark.parametrize("law", BOTH)
def test_half_a_million_samples_follow_the_law_and_no_other(samples: Any, law: Law) -> None:
    """Each test has a false-alarm rate of 1e-9. The chi-square rejects a scale that is 1.5 % off: its noncentrality is
    176 at least, for the Laplace law 95, where a statistic of 73.6 is rejected: power 0.9999999, and 0.97."""
    assert alarms(samples[law], LAWS[law].exact(SCALE, False)) == {}
    assert np.abs(samples[law]).max() <= FixedPointSampler(law, SCALE).largest
    for wrong in (0.985, 1.015):
        claimed = LAWS[law].exact(SCALE * wrong, False)
        assert goodness.chi_square(samples[law], claimed, 16).p_value < FALSE_ALARM


@pytest.mark.slow
def test_the_two_normals_of_a_pair_are_independent(samples: Any) -> None:
    law = LAWS["gaussian"].exact(SCALE, False)
    first, second = samples["gaussian"].reshape(8, 2, -1).swapaxes(0, 1).reshape(2, -1)
    assert cross_independence(first, second, law).p_value > FALSE_ALARM
    # Also their squares: the radius is common, the angle must make up for it. z of the correlation, 6.1 for 1e-9.
    x, y = (first / SCALE) ** 2 - 1, (second / SCALE) ** 2 - 1
    assert abs(float((x * y).mean())) / 2 * math.sqrt(len(x)) < 6.1


@pytest.mark.slow
def test_a_stuck_angle_is_noticed() -> None:
    lanes = 100_000
    still = [Given(np.full(lanes, 1 << 60, dtype=np.uint64))] * 2
    fixed = ClearFixed(lanes, 3, 1, Prg(b"stuck"), MASKS["random"], still)  # type: ignore[arg-type]
    values = evaluate(box_muller(fixed, piecewise("gaussian", 1.0, 30), 40))
    law = LAWS["gaussian"].exact(2.0**20, False)
    assert goodness.chi_square(field.to_int64(values).reshape(-1), law).p_value < FALSE_ALARM


# -- the sampler -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("law", BOTH)
@pytest.mark.parametrize(
    "scale",
    [1000.3, *(pytest.param(s, marks=pytest.mark.slow) for s in (1.0, 1.9, math.nextafter(2.0**20, 0), 2.0**30))],
)
def test_any_scale(law: Law, scale: float) -> None:
    """Six standard errors of the mean square, kurtosis 3 and 6; the rounding adds at most 3 / 4 at (3, 1)."""
    sampler, count = FixedPointSampler(law, scale), 20_000
    values = clear_noise(sampler, count, Prg(b"scale")).astype(float)
    variance = scale**2 * (1 if law == "gaussian" else 2)
    spread = 6 * math.sqrt((2 if law == "gaussian" else 5) / count)
    assert variance * (1 - spread) < float((values**2).mean()) < (variance + 0.75) * (1 + spread)
    assert np.abs(values).max() <= sampler.largest


@pytest.mark.parametrize("scale", [0.5, 2.0**30 + 1, math.nan])
def test_other_scales_are_refused(scale: float) -> None:
    with pytest.raises(ValueError, match=r"1 \.\. 2\^30 grid steps; got"):
        FixedPointSampler("gaussian", scale)


def test_the_certificate_claims_what_can_be_proved() -> None:
    narrow, wide = (FixedPointSampler("gaussian", s).certificate["total_variation"] for s in (2.0**10, 2.0**12))
    assert isinstance(narrow, float) and isinstance(wide, float)
    assert 0 < narrow < 2.0**-12 and wide == pytest.approx(4 * narrow, rel=1e-2)
