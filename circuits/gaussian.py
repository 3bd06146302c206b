"""The discrete Gaussian on the integers, of any sigma from 2^7 to 2^30, as a circuit with a certificate.

X = c (Y - 64) + V - E[V], with c = 2^q, Y a number below 128 from one alias table, and V = sum over i < q of 2^i B_i
with B_i ~ Binomial(r_i, 1/2): a sum of plain random bits. V is a smooth bump about c wide (a B-spline, for r_i = r),
so the comb c Y convolved with V has the Gaussian's spectrum below the comb's frequency, if Y's law is pre-corrected
for V's; above it, V's zeros suppress every alias. `docs/noise.md` has the proof; `_certificate` its numbers. Against a
convolution of Gaussian digits (Micciancio, Walter 2017) this takes one table instead of one a digit, and reaches every
sigma, not only products of a radix: 183 ANDs for the table, then about 5 to 8 for each bit of sigma.
"""

import functools
import math
import operator
import os
import threading
from collections.abc import Sequence
from fractions import Fraction

import gmpy2
import numpy as np
from gmpy2 import mpfr

from dpmpc.lazy import dataclass

from .alias import PRECISION, AliasTable, round_weights, sample_alias
from .engine import Engine
from .heap import Heap

INDEX_BITS = 6  # |Y - 64| < 64
CENTRE = 1 << INDEX_BITS
WIDEST = 7.05  # sigma / c at most: 63.5 / 7 is 9.07 standard deviations of Y, a tail of 2^-63
PERIOD = 256  # the analysis lives on the cyclic group of order c * PERIOD
_BITS = 200  # of the table's computation: 60 decimal digits
_TARGET = 62  # -log2 of the aliasing error aimed at, before a margin of about two bits
MINIMUM_SIGMA, MAXIMUM_SIGMA = 1 << 7, 1 << 30


@dataclass(frozen=True)
class GaussianPlan:
    """A sampler's public parameters. X = 2^shift (sign Y) + sum 2^i Binomial(copies[i], 1/2) - offset."""

    sigma: float
    shift: int  # q
    copies: tuple[int, ...]  # r_0 .. r_(q-1); r_0 is even, so that E[V] is an integer
    table: AliasTable  # the law of |Y - 64|, with half the weight at 0 because both signs reach it

    @property
    def centre(self) -> int:
        """What Y is centred at: 64, but for the tiny plans that are tested exhaustively."""
        return len(self.table.weights)

    @property
    def scale(self) -> float:
        """sigma."""
        return self.sigma

    @property
    def offset(self) -> int:
        """What `sample_gaussian`'s heap exceeds the noise by."""
        return (self.centre << self.shift) + sum(r << i for i, r in enumerate(self.copies)) // 2

    @property
    def largest(self) -> int:
        """The largest |X| that can occur."""
        return ((self.centre - 1) << self.shift) + sum(r << i for i, r in enumerate(self.copies)) // 2


@dataclass(frozen=True)
class GaussianCertificate:
    """Bounds on the total-variation distance of one sample from the discrete Gaussian exp(-x^2 / 2 sigma^2) on Z;
    their sum is the claim."""

    aliasing: float
    table: float  # rounding of Y's law and the cut of its tail
    wrap: float

    @property
    def total_variation(self) -> float:
        """The distance of one coordinate, at most."""
        return self.aliasing + self.table + self.wrap


async def sample_gaussian(engine: Engine, plan: GaussianPlan) -> Heap:
    """A heap whose value minus `plan.offset` has the certified law, one sample a lane.

    Cost: 57 (one-hot) + 120 (threshold) + 6 ANDs, 10 rounds, 70 + sum(copies) random bits. The heap has 8 +
    sum(copies) bits.
    """
    sign = engine.random_bits(1)
    magnitude = await sample_alias(engine, plan.table)
    heap = Heap()
    # 64 + magnitude, or 64 - magnitude = (63 XOR magnitude) + 1: the sign flips the bits and enters once more.
    heap.put_number(np.concatenate([magnitude ^ sign, engine.not_(sign)]), plan.shift)
    heap.put(plan.shift, sign[0])
    bits = engine.random_bits(sum(plan.copies))
    start = 0
    for i, r in enumerate(plan.copies):
        heap.put(i, *bits[start : start + r])
        start += r
    return heap


_planning = threading.Lock()  # threads that ask for one plan at once wait for the first
os.register_at_fork(before=_planning.acquire, after_in_parent=_planning.release, after_in_child=_planning.release)


def plan_gaussian(sigma: float) -> tuple[GaussianPlan, GaussianCertificate]:
    """The sampler for `sigma` grid steps, exactly as asked, and its certificate.

    Errors: ValueError outside 2^7 .. 2^30.
    """
    with _planning:
        return _plan_gaussian(sigma)


@functools.lru_cache(maxsize=64)
def _plan_gaussian(sigma: float) -> tuple[GaussianPlan, GaussianCertificate]:
    if not MINIMUM_SIGMA <= sigma <= MAXIMUM_SIGMA:
        raise ValueError(
            f"the discrete Gaussian takes sigma in 2^7 .. 2^30 grid steps; got {sigma:g}; choose a finer or a "
            "coarser grid"
        )
    shift = max(1, math.ceil(math.log2(sigma / WIDEST)))
    copies = list(_choose_copies(sigma / 2.0**shift, shift))
    with gmpy2.context(gmpy2.get_context(), precision=_BITS):
        angles = _angles()
        spectrum = _spectrum(mpfr(sigma) / (1 << shift), angles, shift, copies)
        ideal = _ideal_law(spectrum, angles)
        plan = GaussianPlan(sigma, shift, tuple(copies), AliasTable(_magnitude_weights(ideal)))
        return plan, _certificate(plan, ideal, spectrum, angles)


def _choose_copies(s: float, shift: int) -> tuple[int, ...]:
    """The fewest copies r_i of each low bit with every aliasing term of `_aliasing` below 2^-2*_TARGET / shift, in
    floating point.

    A choice, not a claim: `_certificate` bounds what it leads to.
    """
    theta = 2 * math.pi / PERIOD * np.arange(1, PERIOD // 2 + 1)
    copies = [0] * shift
    kernel = np.zeros_like(theta)  # log of V's characteristic function at theta / c
    for v in range(shift):  # bit i = shift - 1 - v
        angle = theta / 2.0 ** (v + 2)
        for r in range(2, 60):
            correction = -2 * (kernel + r * np.log(np.cos(angle)))
            terms = -((s * theta) ** 2) + correction + 2 * r * np.log(np.sin(angle))
            if np.logaddexp.reduce(terms) / math.log(2) < -2 * _TARGET - math.log2(shift) - 2:
                break
        copies[shift - 1 - v] = r
        kernel += r * np.log(np.cos(angle))
    copies[0] += copies[0] % 2
    return tuple(copies)


class _Angles:
    """Powers of cosines and sines of theta_j 2^-k, theta_j = 2 pi j / PERIOD, j = 0 .. PERIOD / 2; each is computed
    once. No sigma enters: one serves all plans."""

    def __init__(self) -> None:
        self.turn = 2 * gmpy2.const_pi() / PERIOD
        self.cosines = [gmpy2.cos(j * self.turn) for j in range(PERIOD)]
        self._known: dict[tuple[int, int], tuple[mpfr, mpfr]] = {}

    def cos(self, j: int, k: int, power: int) -> mpfr:
        return self._at(j, k)[1] ** power

    def sin(self, j: int, k: int, power: int) -> mpfr:
        return self._at(j, k)[0] ** power

    def _at(self, j: int, k: int) -> tuple[mpfr, mpfr]:
        if (j, k) not in self._known:
            self._known[j, k] = gmpy2.sin_cos(j * self.turn / (1 << k))
        return self._known[j, k]


@functools.lru_cache(maxsize=1)  # under _BITS of precision alone; `_planning` keeps threads apart
def _angles() -> _Angles:
    return _Angles()


def _spectrum(s: mpfr, angles: _Angles, shift: int, copies: Sequence[int]) -> list[mpfr]:
    """Y's ideal characteristic function exp(-s^2 theta^2 / 2) / K(theta / c) at theta = theta_j.

    K is that of V - E[V] at theta / c: the product of cos(2^(i-1) theta / c)^r_i."""
    result = []
    for j in range(PERIOD // 2 + 1):
        kernel = mpfr(1)
        for i, r in enumerate(copies):
            kernel *= angles.cos(j, shift + 1 - i, r)
        result.append(gmpy2.exp(-((s * j * angles.turn) ** 2) / 2) / kernel)
    return result


def _ideal_law(spectrum: list[mpfr], angles: _Angles) -> list[mpfr]:
    """Y's ideal law g(y) for y = 0 .. PERIOD / 2 (it is even): the inverse discrete transform of `_spectrum`. It sums
    to 1 over the group."""
    half = PERIOD // 2
    law = [mpfr(0)] * (half + 1)
    for y in range(half // 2 + 1):  # at half - y the odd terms have the other sign
        turned = [angles.cosines[j * y % PERIOD] for j in range(half)]
        even = sum(map(operator.mul, spectrum[2:half:2], turned[2::2]), mpfr(0))
        odd = sum(map(operator.mul, spectrum[1:half:2], turned[1::2]), mpfr(0))
        ends = spectrum[0] + spectrum[-1] * (-1) ** y
        law[y], law[half - y] = (ends + 2 * (even + odd)) / PERIOD, (ends + 2 * (even - odd)) / PERIOD
    return law


def _magnitude_weights(ideal: list[mpfr]) -> tuple[int, ...]:
    """Integer weights of |Y - 64| for the alias table: g cut at 63, both signs together, largest remainders rounded
    up."""
    ratios = [(max(g, mpfr(0)) * (1 if y == 0 else 2)).as_integer_ratio() for y, g in enumerate(ideal[:CENTRE])]
    common = max(denominator for _, denominator in ratios)  # all are powers of 2
    values = [int(numerator * (common // denominator)) for numerator, denominator in ratios]
    mass = sum(values)
    return round_weights([Fraction(v, mass) for v in values], 1 << (INDEX_BITS + PRECISION - 1))


def _certificate(plan: GaussianPlan, ideal: list[mpfr], spectrum: list[mpfr], angles: _Angles) -> GaussianCertificate:
    """Bounds for `plan`, by the three steps of docs/noise.md; every sum is finite and evaluated to 60 digits.

    aliasing: half the L1 distance on the cyclic group of the ideal comb-and-kernel law from the Gaussian, by
    Cauchy-Schwarz and Parseval. table: half the L1 distance of the table's exact law of Y from the ideal one. wrap:
    the Gaussian's mass beyond half the group.
    """
    s = mpfr(plan.sigma) / (1 << plan.shift)
    assert plan.largest < PERIOD << plan.shift - 1 and min(plan.copies) >= 1  # no wrap; `_aliasing` needs every bit
    aliasing = _aliasing(s, spectrum, angles, plan.copies)
    law = [mpfr(w) / plan.table.total for w in plan.table.weights]
    table = abs(law[0] - ideal[0]) + sum(abs(law[y] - 2 * ideal[y]) for y in range(1, plan.centre))
    table += 2 * sum(abs(g) for g in ideal[plan.centre : -1]) + abs(ideal[-1])
    # Mass beyond c PERIOD / 2, folded back by the group, and the difference of the wrapped law's spectrum from
    # exp(-sigma^2 w^2 / 2): theta functions.
    group = PERIOD << plan.shift
    assert plan.largest < group // 2
    wrap = 4 * gmpy2.exp(-((PERIOD / 2 / s) ** 2) / 2) + 4 * gmpy2.sqrt(mpfr(group)) * gmpy2.exp(
        -((gmpy2.const_pi() * mpfr(plan.sigma)) ** 2) / 2
    )
    up = 1 + 2.0**-40  # to floating point, upwards
    return GaussianCertificate(float(aliasing) * up, float(table / 2) * up, max(float(wrap), 5e-324) * up)


def _aliasing(s: mpfr, spectrum: list[mpfr], angles: _Angles, copies: Sequence[int]) -> mpfr:
    """1/2 sqrt(sum_j |g^(theta_j)|^2 sum_v sin(theta_j 2^(-2-v))^(2 r_(q-1-v)) + the Gaussian's own spectrum above the
    comb's frequency)."""
    total, shift = mpfr(0), len(copies)
    for j, g in enumerate(spectrum):
        images = sum((angles.sin(j, v + 2, 2 * copies[shift - 1 - v]) for v in range(shift)), mpfr(0))
        total += (1 if j in (0, PERIOD // 2) else 2) * g**2 * images
    # |p^| at |theta| > pi: below the geometric series from theta = pi.
    pi = gmpy2.const_pi()
    above = 2 * gmpy2.exp(-((s * pi) ** 2)) / (1 - gmpy2.exp(-2 * s**2 * pi * angles.turn))
    return (gmpy2.sqrt(total) + gmpy2.sqrt(above)) / 2
