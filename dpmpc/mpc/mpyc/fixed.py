"""Box-Muller and Laplace noise as one writes them with MPyC's fixed-point arrays, SecFxp.

A uniform number is carried floating-like, V = 2^-(k + 2) m with m in (1, 2): k is the number of leading ones of 64
random bits, so that every coefficient of a polynomial in m, tabulated by k, is a public matrix times the bits' prefix
products. A fair bit more says whether U is V or 1 - V, so that -2 ln U is smooth in m on every piece. Numbers are in
units of `scale` until the last step, which is to whole grid steps and into F_p.

Every product waits for the one before (`_now`): with one exchange after another both ends of a connection see the same
order of frames, and the bytes can be counted ahead.

Source: Box and Muller 1958; the truncation is MPyC's `np_trunc` (probabilistic, its error below one unit of 2^-34), the
way into F_p MPyC's `convert`.
"""

import functools
import math
from typing import Any

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import NDArray

from dpmpc.circuits.approximation import Law  # the family's name there, whatever an entry of LAWS is called
from dpmpc.circuits.fixed_sampler import FixedPointSampler
from dpmpc.lazy import dataclass
from dpmpc.mpc.mpyc.cost import SentTally

FRACTION = 34  # fraction bits
LENGTH = 76  # bits of a number: a product before its truncation stays below 128 in units of the scale
LEAD = 64  # bits whose leading ones are counted
PLACE = 33  # bits of m, and of the angle
GROUPS, TERMS = 3, 4  # a polynomial is a sum of 3 groups of 4 terms
DEGREE = GROUPS * TERMS - 1
_ROWS = 1 << 12  # points of a piece at which its polynomial is held against the function

Reals = NDArray[np.float64]


def _radius(k: int, near_one: bool, m: Reals) -> Reals:
    """sqrt(-ln U) for U = V or 1 - V."""
    v = m * 2.0 ** -(k + 2)
    return np.sqrt(-np.log1p(-v) if near_one else (k + 2) * math.log(2) - np.log(m))


def _fit(values: Any) -> Reals:
    """Coefficients (DEGREE + 1,) in u = 2 m - 3 of the interpolation in Chebyshev's points."""
    fit = chebyshev.Chebyshev.interpolate(lambda u: values((u + 3) / 2), DEGREE)
    return np.asarray(fit.convert(kind=np.polynomial.Polynomial).coef)


@functools.cache
def radius_table(factor: float) -> Reals:
    """(DEGREE + 1, 1 + LEAD, 2): coefficients of factor sqrt(-ln U) by k and whether U is near 1, whole multiples of
    2^-FRACTION."""
    table = np.array([[_fit(functools.partial(_radius, k, near)) for near in (False, True)] for k in range(1 + LEAD)])
    return np.rint(np.ldexp(factor * np.moveaxis(table, -1, 0), FRACTION)) * 2.0**-FRACTION


@functools.cache
def fit_error(law: Law) -> float:
    """What the exact polynomials miss, measured at 4096 points of every piece and doubled."""
    m = 1.5 + 0.5 * np.cos(np.pi * (np.arange(_ROWS) + 0.5) / _ROWS)
    pieces: list[Any] = [np.log]
    if law == "gaussian":
        pieces = [functools.partial(_radius, k, near) for k in range(1 + LEAD) for near in (False, True)]
    misses = (np.abs(np.polynomial.polynomial.polyval(2 * m - 3, _fit(f)) - f(m)).max() for f in pieces)
    return 2 * float(max(misses))


@functools.cache
def transform_error(law: Law) -> float:
    """A bound, in units of `scale`, on the distance of a sample before rounding to the grid from the transform of an
    exactly uniform number and angle.

    Every truncation is off by less than one unit d = 2^-FRACTION, every public coefficient by d / 2; |u|, |v| < 1.
    """
    d = 2.0**-FRACTION
    power = (0.0, 0.0, d, 2 * d, 3 * d * (1 + d))  # of u^j, j <= 4: u^2; u u^2; u^2 u^2
    eighth = 2 * power[4] + power[4] ** 2 + d
    if law == "gaussian":
        c = np.abs(radius_table(1.0)).max(axis=(1, 2)).reshape(GROUPS, TERMS)
    else:
        c = np.abs(_fit(np.log)).reshape(GROUPS, TERMS)
    # The tables have a factor of 1 .. 2 more, the scale's mantissa: in units of the scale nothing gets larger by it.
    group = [TERMS * d / 2 + sum(row[j] * power[j] for j in range(1, TERMS)) + d for row in c]
    value = group[0] + group[1] + group[2] + c[1].sum() * power[4] + c[2].sum() * eighth + d
    value += fit_error(law) + 2.0 ** -(PLACE + 1)  # the finite bits of m: no slope in m exceeds 1
    if law == "laplace":
        return float(value + (LEAD + 1) * d / 2)  # ln 2 is rounded once and added k + 1 times
    q = (d, 3 * d, 5 * d, 7 * d, 9 * d)  # q^2 = q q; q^3 = q q^2; q^4 = q^2 q^2; q^5 = q q^4
    cosine = sum(abs(a) * e for a, e in zip(_angle_table()[0], q, strict=True)) + 5 * d / 2 + d
    cosine += (math.pi / 4) ** 12 / math.factorial(12)
    sine = sum(abs(a) * e for a, e in zip(_angle_table()[1], q, strict=True)) + 6 * d / 2 + 2 * d
    sine += (math.pi / 4) ** 13 / math.factorial(13)
    angle = math.sqrt(2) * math.pi / 4 * 2.0**-PLACE + (cosine + sine) * (1 + d)
    # z = radius (cos -+ sin), where radius = sqrt(-ln U) and |cos -+ sin| <= sqrt(2)
    return float(value * (math.sqrt(2) + angle) + largest("gaussian") / math.sqrt(2) * angle + d)


def largest(law: Law) -> float:
    """What no sample exceeds but for `transform_error`, in units of `scale`."""
    return math.sqrt(2 * (LEAD + 2) * math.log(2)) if law == "gaussian" else (LEAD + 1) * math.log(2)


def _angle_table() -> Reals:
    """(2, 5): of cos w - 1 and sin w / v, w = pi v / 4, the coefficients of v^2, v^4, ..., v^10."""
    w = math.pi / 4
    cosine = [(-1) ** i * w ** (2 * i) / math.factorial(2 * i) for i in range(1, 6)]
    sine = [(-1) ** i * w ** (2 * i + 1) / math.factorial(2 * i + 1) for i in range(1, 6)]
    return np.array([cosine, sine])


@dataclass(frozen=True)
class SecFxpSampler(FixedPointSampler):
    """As its base, but drawn with MPyC's SecFxp; `sec_param` is MPyC's, of every opening of the run."""

    sec_param: int = 40

    @property
    def largest(self) -> int:
        return math.ceil((largest(self.law) + 2.0**-20) * self.scale) + 2

    @property
    def certificate(self) -> Any:
        return {
            "law": f"{'normal' if self.law == 'gaussian' else 'Laplace'} by {self.name} on MPyC's SecFxp",
            "total_variation": self.total_variation(transform_error(self.law)),
            "transform_error_in_scales": transform_error(self.law),
            "largest_in_scales": str(round(largest(self.law), 2)),
            "sec_param": str(self.sec_param),
        }

    def transform_error(self, subsets: int, dealers: int) -> float:
        """The same for any number of parties: MPyC truncates by random bits, not by the parties' masks."""
        return transform_error(self.law)

    @property
    def openings(self) -> int:
        """Masked openings of a sample: truncations, and two to convert it."""
        return 11 if self.law == "gaussian" else 10

    def hiding(self, subsets: int) -> float:
        """The statistical distance that the masks of a sample's openings leave.

        A truncation of a number of LENGTH bits is masked by a sum of C(n, t) numbers, of which a coalition misses one,
        uniform on 2^j >= 2^(sec_param + LENGTH - FRACTION) / (2 C(n, t)); a conversion by one twice as wide, for fewer
        bits. With a carry the distance is at most 2^(2 - sec_param) C(n, t) each.
        """
        return self.openings * subsets * 2.0 ** (2 - self.sec_param)


def sec_param_for(law: Law, scale: float, samples: int, subsets: int, budget: float) -> int:
    """MPyC's security parameter with which the openings of so many samples together fail by `budget` at most."""
    one = SecFxpSampler(law, scale, 0).hiding(subsets)
    return max(30, math.ceil(math.log2(samples * one / budget)))


# -- in MPC ----------------------------------------------------------------------------------------------------------
async def _now(mpc: Any, x: Any) -> Any:
    """x, when its shares are there."""
    await mpc.gather(x)
    return x


async def _leading(mpc: Any, bits: Any) -> Any:
    """(LEAD, N): row i is 1 where the first i + 1 of the bits (LEAD, N) are all 1."""
    count = bits.shape[1]
    blocks = bits.reshape(LEAD, 1, count)
    while len(blocks) > 1:
        low, high = blocks[0::2], blocks[1::2]
        high = await _now(mpc, low[:, -1:] * high)
        blocks = mpc.np_concatenate((low, high), axis=1)
    return blocks.reshape(LEAD, count)


def _centred(mpc: Any, bits: Any) -> Any:
    """(N,): a number of (-1, 1) with these bits (PLACE, N), an odd multiple of 2^-PLACE."""
    return mpc.np_matmul(2.0 ** -np.arange(PLACE), bits) + (2.0**-PLACE - 1)


async def _powers(mpc: Any, u: Any) -> tuple[Any, Any, Any]:
    """(u, u^2, u^3) as (3, N), u^4 and u^8. Cost: 4 truncated products a number."""
    row = u.reshape(1, len(u))
    square = await _now(mpc, row * row)
    higher = await _now(mpc, mpc.np_concatenate((row, square)) * square)
    fourth = higher[1:]
    return mpc.np_concatenate((row, square, higher[:1])), fourth, await _now(mpc, fourth * fourth)


async def _combine(mpc: Any, groups: Any, fourth: Any, eighth: Any) -> Any:
    """(N,): the polynomial of value groups[0] + u^4 groups[1] + u^8 groups[2]. Cost: one truncated product a number."""
    n = groups.shape[1]
    left = mpc.np_transpose(groups[1:]).reshape(n, 1, 2)
    right = mpc.np_transpose(mpc.np_concatenate((fourth, eighth))).reshape(n, 2, 1)
    return groups[0] + (await _now(mpc, mpc.np_matmul(left, right))).reshape(n)


async def _radii(mpc: Any, bits: Any, factor: float) -> Any:
    """(N,): factor sqrt(-ln U) from bits (LEAD + 1 + PLACE, N)."""
    n = bits.shape[1]
    leading = await _leading(mpc, bits[:LEAD])
    near_one = bits[LEAD : LEAD + 1]
    both = await _now(mpc, leading * near_one)
    table = radius_table(factor)
    far, step = table[:, :, 0], table[:, :, 1] - table[:, :, 0]
    matrix = np.concatenate((np.diff(far, axis=1), step[:, :1], np.diff(step, axis=1)), axis=1)
    coefficients = mpc.np_matmul(matrix, mpc.np_concatenate((leading, near_one, both))) + far[:, :1]
    low, fourth, eighth = await _powers(mpc, _centred(mpc, bits[LEAD + 1 :]))
    by_group = coefficients.reshape(GROUPS, TERMS, n)
    left = mpc.np_transpose(by_group[:, 1:], (2, 0, 1))
    right = mpc.np_transpose(low).reshape(n, TERMS - 1, 1)
    sums = (await _now(mpc, mpc.np_matmul(left, right))).reshape(n, GROUPS)
    return await _combine(mpc, mpc.np_transpose(sums) + by_group[:, 0], fourth, eighth)


async def _unit_vectors(mpc: Any, bits: Any) -> Any:
    """(2, N): sqrt(2) (cos, sin) of a uniform angle, from bits (PLACE + 2, N)."""
    v = _centred(mpc, bits[:PLACE]).reshape(1, bits.shape[1])
    q = await _now(mpc, v * v)
    square = await _now(mpc, q * q)
    higher = await _now(mpc, mpc.np_concatenate((q, square)) * square)
    fifth = await _now(mpc, q * higher[1:])
    rows = mpc.np_concatenate((q, square, higher, fifth))
    series = await _now(mpc, mpc.np_matmul(_angle_table(), rows))
    cosine = series[:1] + 1.0
    sine = await _now(mpc, (series[1:] + math.pi / 4) * v)
    quadrant = 1 - 2 * bits[PLACE:]
    return await _now(mpc, mpc.np_concatenate((cosine - sine, cosine + sine)) * quadrant)


async def draw(mpc: Any, sampler: SecFxpSampler, fxp: Any, secfld: Any, count: int) -> Any:
    """`count` fresh samples in grid steps, as MPyC's secure numbers over F_p. Cost: `count_draw`."""
    half, exponent = math.frexp(sampler.scale)
    lanes = -(-count // sampler.samples_per_lane)
    rows = _bits_of_a_lane(sampler)
    bits = (await _now(mpc, mpc.np_random_bits(fxp, rows * lanes))).reshape(rows, lanes)
    if sampler.law == "gaussian":
        radius = await _radii(mpc, bits[: LEAD + 1 + PLACE], 2 * half)
        vectors = await _unit_vectors(mpc, bits[LEAD + 1 + PLACE :])
        values = await _now(mpc, radius * vectors)
    else:
        values = await _laplace(mpc, bits, 2 * half)
    steps = (values * (1 << exponent - 1)).reshape(lanes * sampler.samples_per_lane)
    return mpc.convert(mpc.np_tolist(steps), secfld)


async def _laplace(mpc: Any, bits: Any, factor: float) -> Any:
    """(1, N): factor times -ln(2 V) with a fair sign."""
    leading = await _leading(mpc, bits[:LEAD])
    low, fourth, eighth = await _powers(mpc, _centred(mpc, bits[LEAD : LEAD + PLACE]))
    table = np.ldexp(np.rint(np.ldexp(-factor * _fit(np.log), FRACTION)), -FRACTION).reshape(GROUPS, TERMS)
    groups = await _now(mpc, mpc.np_matmul(table[:, 1:], low)) + table[:, :1]
    logarithm = await _combine(mpc, groups, fourth, eighth)
    doublings = mpc.np_matmul(np.full((1, LEAD), factor * math.log(2)), leading) + factor * math.log(2)
    signs = 1 - 2 * bits[LEAD + PLACE :]
    return await _now(mpc, (doublings + logarithm) * signs)


def _bits_of_a_lane(sampler: SecFxpSampler) -> int:
    return LEAD + 1 + 2 * PLACE + 2 if sampler.law == "gaussian" else LEAD + PLACE + 1


def count_draw(tally: SentTally, sampler: SecFxpSampler, count: int, width: int) -> None:
    """What `draw` costs; `width`: bytes of an element of SecFxp's field."""
    lanes = -(-count // sampler.samples_per_lane)
    samples = lanes * sampler.samples_per_lane

    def product(each: int) -> None:
        tally.reshare(each * lanes, width)
        tally.truncate(each * lanes, width, FRACTION)

    tally.random(_bits_of_a_lane(sampler) * lanes, width)
    for _ in range(LEAD.bit_length() - 1):
        tally.reshare(LEAD // 2 * lanes, width)
    if sampler.law == "gaussian":
        tally.reshare(LEAD * lanes, width)
    for each in (1, 2, 1):
        product(each)
    if sampler.law == "gaussian":
        for each in (GROUPS, 1, 1, 1, 2, 1):
            product(each)
        tally.truncate(2 * lanes, width, FRACTION)
        product(1)
        tally.reshare(2 * lanes, width)
        product(2)
    else:
        tally.truncate(GROUPS * lanes, width, FRACTION)
        product(1)
        tally.reshare(lanes, width)
    tally.truncate(samples, width, FRACTION)
    tally.open(samples, width)
