"""The samplers' laws: exact, by enumeration of all random bits of tiny plans; certificates against exact convolutions.

Then large samples against the exact laws, and the same tests against samplers that are slightly wrong.
"""

import math
from collections import Counter
from collections.abc import Coroutine
from fractions import Fraction
from typing import Any

import gmpy2
import mpmath
import numpy as np
import pytest
from alarms import FALSE_ALARM, alarms, mean_and_variance
from direct import DirectEngine, evaluate
from enumeration import every_bit_string, heap_values
from independence import cross_independence

from dpmpc.circuits.alias import AliasTable, round_weights
from dpmpc.circuits.gaussian import (
    _BITS,
    GaussianCertificate,
    GaussianPlan,
    _Angles,
    _certificate,
    _ideal_law,
    _magnitude_weights,
    _spectrum,
    plan_gaussian,
    sample_gaussian,
)
from dpmpc.circuits.heap import Heap
from dpmpc.circuits.laplace import LaplacePlan, plan_laplace, sample_laplace
from dpmpc.circuits.program import program_of
from dpmpc.circuits.sampler import DiscreteSampler, noise_program
from dpmpc.mpc.clear.executor import ClearBatch, run
from dpmpc.mpc.clear.noise import clear_noise
from dpmpc.mpc.contract.lanes import from_planes, to_planes
from dpmpc.mpc.numbers.prg import Prg
from dpmpc.mpc.replicated.backend import SHARING
from dpmpc.privacy.law import LAWS
from tests.refusals import refuses


def certify(plan: GaussianPlan) -> GaussianCertificate:
    """The bounds of any plan, also of one that nobody would make."""
    with gmpy2.context(gmpy2.get_context(), precision=_BITS):
        angles = _Angles()
        spectrum = _spectrum(gmpy2.mpfr(plan.sigma) / (1 << plan.shift), angles, plan.shift, plan.copies)
        return _certificate(plan, _ideal_law(spectrum, angles), spectrum, angles)


def gaussian_law(plan: GaussianPlan) -> dict[int, Fraction]:
    """The exact law of a plan, written down from its parameters alone: a folded alias law, spread, plus binomials."""
    numbers, denominator = gaussian_numerators(plan)
    return {x - plan.largest: Fraction(w, denominator) for x, w in enumerate(numbers) if w}


def gaussian_numerators(plan: GaussianPlan) -> tuple[list[int], int]:
    """(numerators of P(X = x) for x = -largest .. largest, denominator)."""
    reach = (len(plan.table.weights) - 1) << plan.shift
    numbers = np.array([0] * (2 * reach + 1), dtype=object)
    for y, weight in enumerate(plan.table.weights):
        for signed in (y, -y):
            numbers[reach + (signed << plan.shift)] += weight
    for i, copies in enumerate(plan.copies):
        pad = np.array([0] * (1 << i), dtype=object)
        for _ in range(copies):  # twice the law, after adding a fair bit of weight 2^i
            numbers = np.concatenate([numbers, pad]) + np.concatenate([pad, numbers])
    return numbers.tolist(), plan.table.total << (1 + sum(plan.copies))


def laplace_law(plan: LaplacePlan) -> dict[int, Fraction]:
    """The exact law of a plan with few digits, from its parameters alone."""
    nonzero = Fraction(plan.nonzero, 1 << plan.digits[0].precision)
    magnitudes = {0: Fraction(1)}
    for w, table in enumerate(plan.digits):
        step = 1 << (table.index_bits * w)
        magnitudes = {m + step * v: p * q for m, p in magnitudes.items() for v, q in enumerate(table.law)}
    law = {0: 1 - nonzero}
    for m, p in magnitudes.items():
        law[m + 1] = law[-m - 1] = p * nonzero / 2
    return {x: p for x, p in law.items() if p}


TINY = [
    GaussianPlan(3.0, 2, (2, 1), AliasTable((6, 5, 4, 1), precision=3)),
    GaussianPlan(3.0, 1, (4,), AliasTable((1, 0, 15, 0), precision=3)),
    GaussianPlan(6.0, 2, (2, 3), AliasTable((7, 6, 5, 5, 4, 2, 2, 1), precision=3)),
    GaussianPlan(9.0, 3, (2, 1, 2), AliasTable((9, 7), precision=4)),
]


@pytest.mark.parametrize("plan", TINY)
def test_tiny_gaussian_plans_have_exactly_their_law(plan: GaussianPlan) -> None:
    drawn = 1 + plan.table.index_bits + plan.table.precision - 1 + sum(plan.copies)
    engine = every_bit_string(drawn)
    values = heap_values(evaluate(sample_gaussian(engine, plan))).astype(np.int64) - plan.offset
    assert engine.drawn == drawn and engine.lanes == 1 << drawn
    found = {x: Fraction(c, 1 << drawn) for x, c in Counter(values.tolist()).items()}
    assert found == gaussian_law(plan)
    assert max(map(abs, found)) == plan.largest or plan.table.weights[-1] == 0


class EveryString:
    """Words of which row k holds bit k of the lane's number."""

    def __init__(self, bits: int) -> None:
        self.lanes, self._row = max(64, 1 << bits), 0
        self._planes = to_planes(np.arange(self.lanes, dtype=np.uint64), max(bits, 1))

    def words(self, shape: tuple[int, ...]) -> np.ndarray:
        self._row += shape[0]
        return self._planes[self._row - shape[0] : self._row].reshape(shape)

    reserve = words


def law_of_program(plan: GaussianPlan | LaplacePlan) -> dict[int, Fraction]:
    """The exact law of what a plan's program gives, over all strings of the random bits that it draws."""
    program = noise_program(plan, 0)
    every = EveryString(program.random_bits)
    y = from_planes(run(program, every.lanes // 64, every))  # type: ignore[arg-type]
    counts = Counter((y.astype(np.int64) - plan.offset).tolist())
    return {x: Fraction(c, every.lanes) for x, c in counts.items()}


@pytest.mark.parametrize("plan", TINY)
def test_programs_of_tiny_gaussian_plans_have_exactly_their_law(plan: GaussianPlan) -> None:
    assert law_of_program(plan) == gaussian_law(plan)


TINY_LAPLACE = [
    LaplacePlan(2.0, (AliasTable((6, 5, 4, 1), 3), AliasTable((9, 7, 0, 0), 3)), 6),
    LaplacePlan(1.0, (AliasTable((3, 5), 3), AliasTable((7, 1), 3), AliasTable((8, 0), 3)), 2),
    LaplacePlan(5.0, (AliasTable((5, 4, 4, 4, 4, 4, 4, 3), 3),), 4),
]


@pytest.mark.parametrize("plan", TINY_LAPLACE)
def test_tiny_laplace_plans_have_exactly_their_law(plan: LaplacePlan) -> None:
    tables, precision = len(plan.digits), plan.digits[0].precision
    drawn = plan.width + (tables + 1) * (precision - 1) + 1
    engine = every_bit_string(drawn)
    values = heap_values(evaluate(sample_laplace(engine, plan))).astype(np.int64) - plan.offset
    assert engine.drawn == drawn and engine.lanes == 1 << drawn
    assert {x: Fraction(c, 1 << drawn) for x, c in Counter(values.tolist()).items()} == laplace_law(plan)


@pytest.mark.parametrize("plan", TINY_LAPLACE)
def test_programs_of_tiny_laplace_plans_have_exactly_their_law(plan: LaplacePlan) -> None:
    """A table whose thresholds are all 0 or 1 draws bits that nothing depends on: they are not drawn."""
    assert law_of_program(plan) == laplace_law(plan)


# -- certificates ----------------------------------------------------------------------------------------------------
def gaussian_distance(plan: GaussianPlan) -> mpmath.mpf:
    """The true total-variation distance of the plan's law from the discrete Gaussian, term by term in 60 digits."""
    numbers, denominator = gaussian_numerators(plan)
    with mpmath.workdps(60):
        reach, s = plan.largest, mpmath.mpf(plan.sigma)
        assert len(numbers) == 2 * reach + 1 and numbers == numbers[::-1] and sum(numbers) == denominator
        density = [mpmath.exp(-((x / s) ** 2) / 2) for x in range(reach + 1)]
        outside = 2 * mpmath.nsum(lambda x: mpmath.exp(-((x / s) ** 2) / 2), [reach + 1, reach + int(4 * s)])
        norm = density[0] + 2 * mpmath.fsum(density[1:]) + outside
        terms = [abs(mpmath.mpf(numbers[reach + x]) / denominator - density[x] / norm) for x in range(reach + 1)]
        return (terms[0] + 2 * mpmath.fsum(terms[1:]) + outside / norm) / 2


@pytest.mark.parametrize("sigma", [128.0, 128.5, 225.59, 225.61, 331.7, 1000.3])
def test_gaussian_certificates_hold_and_are_tight(sigma: float) -> None:
    plan, certificate = plan_gaussian(sigma)
    true = gaussian_distance(plan)
    assert true <= certificate.total_variation <= 2.0**-60
    assert certificate.total_variation <= 40 * true


def test_a_gaussian_certificate_sees_a_bad_table_and_missing_copies() -> None:
    plan, certificate = plan_gaussian(128.0)
    weights = list(plan.table.weights)
    weights[3], weights[4] = weights[3] + (1 << 40), weights[4] - (1 << 40)
    law = [Fraction(w, plan.table.total) for w in weights]
    rounded = AliasTable(tuple(w << 44 for w in round_weights(law, 1 << 25)))
    for bad in (
        GaussianPlan(128.0, plan.shift, plan.copies, AliasTable(tuple(weights))),
        GaussianPlan(128.0, plan.shift, plan.copies, rounded),
        GaussianPlan(128.0, plan.shift, (4, *plan.copies[1:]), plan.table),
        GaussianPlan(128.0, plan.shift, (*plan.copies[:-1], 12), plan.table),
        GaussianPlan(128.01, plan.shift, plan.copies, plan.table),
    ):
        true = gaussian_distance(bad)
        assert true > 4 * certificate.total_variation
        assert true <= certify(bad).total_variation


@pytest.mark.parametrize("copies", [(4, 4, 4, 4, 4), (4, 6, 8, 10, 14), (2, 12, 15, 19, 30), (10, 3, 15, 19, 30)])
def test_the_aliasing_term_holds_and_is_tight_where_it_is_all(copies: tuple[int, ...]) -> None:
    """Fewer copies, and the table that is right for them: what is left is aliasing."""
    with gmpy2.context(gmpy2.get_context(), precision=200):
        angles = _Angles()
        weights = _magnitude_weights(_ideal_law(_spectrum(gmpy2.mpfr(4), angles, 5, copies), angles))
    plan = GaussianPlan(128.0, 5, copies, AliasTable(weights))
    certificate, true = certify(plan), gaussian_distance(plan)
    assert certificate.aliasing > 100 * certificate.table
    assert true <= certificate.total_variation <= 200 * true


@pytest.mark.parametrize("sigma", [2.0**7, 300.0, 2.0**13, 3e5, 2.0**18, 2.0**30])
def test_every_gaussian_is_certified_and_as_cheap_as_promised(sigma: float) -> None:
    sampler = LAWS["gaussian"].sampler("discrete", sigma)
    assert isinstance(sampler, DiscreteSampler) and sampler.scale == sigma
    assert float(sampler.certificate["total_variation"]) <= 2.0**-60
    cost = SHARING.count_noise(sampler, 1 << 15, 3, 1)
    assert cost.sample["ands"] <= 1000 and sum(cost.bytes_sent) <= 3 * 150 * (1 << 15)
    assert cost.sample["random bits"] == 70 + sum(sampler.plan.copies)


def laplace_distance(plan: LaplacePlan, inner: float) -> tuple[mpmath.mpf, mpmath.mpf]:
    """(true total variation from the discrete Laplace law, true largest |log ratio| for |x| <= inner)."""
    with mpmath.workdps(60):
        b = mpmath.mpf(plan.scale)
        q = mpmath.exp(-1 / b)
        distance, ratio, outside = mpmath.mpf(0), mpmath.mpf(0), mpmath.mpf(1)
        law = laplace_law(plan)
        for x in range(plan.largest + 1):
            exact = (1 - q) / (1 + q) * q**x
            p = law.get(x, Fraction(0))
            drawn = mpmath.mpf(p.numerator) / p.denominator
            sides = 1 if x == 0 else 2
            distance += sides * abs(drawn - exact)
            outside -= sides * exact
            if x <= inner:
                ratio = max(ratio, abs(mpmath.log(drawn / exact)))
        return (distance + outside) / 2, ratio


@pytest.mark.parametrize("scale", [1.0, 1.7, 5.0, 22.5])
def test_laplace_certificates_hold_and_are_tight(scale: float) -> None:
    plan, certificate = plan_laplace(scale)
    distance, ratio = laplace_distance(plan, certificate.inner)
    assert distance <= certificate.total_variation <= 2.0**-60
    assert certificate.total_variation <= 40 * distance
    assert certificate.inner > 20 * scale  # all but 2^-30 of the mass
    assert certificate.multiplicative / 100 <= ratio <= certificate.multiplicative <= 1e-8


def test_a_laplace_law_without_its_last_digit_is_short_of_its_tail() -> None:
    plan, certificate = plan_laplace(1.0)
    distance, _ = laplace_distance(LaplacePlan(1.0, plan.digits[:1], plan.nonzero), 0)
    assert float(distance) == pytest.approx(math.exp(-32) * 2 * math.exp(-1) / (1 + math.exp(-1)), rel=1e-2)
    assert certificate.total_variation < distance


@pytest.mark.parametrize("scale", [1.0, 100.0, 2.0**17, 2.0**30])
def test_every_laplace_is_certified(scale: float) -> None:
    sampler = LAWS["laplace"].sampler("discrete", scale)
    assert isinstance(sampler, DiscreteSampler) and sampler.scale == scale
    assert float(sampler.certificate["total_variation"]) <= 2.0**-60
    assert sampler.largest < 1 << 60  # a sum of a sample and an aggregate stays inside the field


def test_sampler_circuits_cost_as_documented() -> None:
    """Gates as written; in the program of the Laplace sampler ANDs with what is constant in a table fold."""
    plan, _ = plan_gaussian(2.0**13)
    engine = DirectEngine(1, Prg(b""))
    heap = evaluate(sample_gaussian(engine, plan))
    assert (engine.ands, engine.drawn) == (57 + 120 + 6, 70 + sum(plan.copies))
    assert heap.size == 8 + sum(plan.copies)
    program = program_of(lambda e: wires_of(sample_gaussian(e, plan)))
    assert (program.ands, program.depth, program.random_bits) == (engine.ands, 10, engine.drawn)
    laplace, _ = plan_laplace(2.0**17)
    engine, digits = DirectEngine(1, Prg(b"")), len(laplace.digits)
    evaluate(sample_laplace(engine, laplace))
    assert engine.ands == digits * (26 + 120 + 5) + 120 + laplace.width + 2
    program = program_of(lambda e: wires_of(sample_laplace(e, laplace)))
    assert program.ands < engine.ands and program.depth == 11


async def wires_of(circuit: Coroutine[Any, Any, Heap]) -> np.ndarray:
    return np.stack([wire for column in (await circuit).columns for wire in column])


def test_scales_out_of_range_are_refused() -> None:
    for law, scale in [("gaussian", 127.9), ("gaussian", 2.0**30 + 1), ("laplace", 0.5), ("laplace", 2.0**31)]:
        with refuses("usage", "2^30"):
            LAWS[law].sampler("discrete", scale)
    for law, name in [("gaussian", "nonesuch"), ("gaussian", "log-laplace"), ("laplace", "box-muller")]:
        with refuses("choice", law, name):
            LAWS[law].sampler(name, 1000.0)


# -- samples ---------------------------------------------------------------------------------------------------------
COUNT = 1 << 20  # enough to tell sigma from 1.01 sigma at this rate of false alarms


@pytest.mark.parametrize(("law", "scale"), [("gaussian", 700.0), ("gaussian", 2.0**17), ("laplace", 2000.0)])
def test_clear_samples_follow_the_exact_law(law: str, scale: float) -> None:
    samples = clear_noise(LAWS[law].sampler("discrete", scale), COUNT, Prg.from_os())
    assert len(samples) == COUNT
    assert not alarms(samples, LAWS[law].exact(scale, True))


class StuckBit:
    """The sign, the circuit's first random bit, is 0 in one lane of sixteen."""

    def __init__(self, plan: GaussianPlan) -> None:
        self._prg, self._row = Prg.from_os(), 0
        self._sign = noise_program(plan, 2).drawn.tolist().index(0)

    def words(self, shape: tuple[int, ...]) -> np.ndarray:
        bits = self._prg.words(shape)
        if len(shape) == 2:
            if self._row <= self._sign < self._row + shape[0]:
                bits[self._sign - self._row, ::16] = 0
            self._row += shape[0]
        return bits

    reserve = words


class RepeatedBlock:
    """The generator gives the words of the first half of every wire again in the second."""

    def __init__(self) -> None:
        self._prg = Prg.from_os()

    def words(self, shape: tuple[int, ...]) -> np.ndarray:
        bits = self._prg.words(shape)
        if len(shape) == 2:
            half = shape[1] // 2
            bits[:, half:] = bits[:, :half]
        return bits

    reserve = words


def draw(plan: GaussianPlan, prg: Any = None, count: int = 0) -> np.ndarray:
    """Samples of a plan, from a given generator."""
    batch = ClearBatch(count or COUNT, prg or Prg.from_os())
    return evaluate(batch.to_field(noise_program(plan, 2))).astype(np.int64) - plan.offset


@pytest.mark.slow
def test_the_same_tests_reject_wrong_samplers() -> None:
    sigma = 700.0
    plan, _ = plan_gaussian(sigma)
    law = LAWS["gaussian"].exact(sigma, True)
    assert not alarms(draw(plan), law)
    for wrong in (0.99 * sigma, 1.01 * sigma):
        assert len(alarms(draw(plan_gaussian(wrong)[0]), law, ("chi-square", "mean and variance"))) == 2
    assert alarms(draw(plan, StuckBit(plan)), law, ("chi-square",))
    assert len(alarms(draw(plan, RepeatedBlock()), law, ("autocorrelation", "repeats"))) == 2
    good = draw(plan)
    good[-64:] = good[:64]  # one word of lanes comes twice
    assert alarms(good, law, ("repeats",))
    for i, copies in enumerate(plan.copies):  # the bits of one weight are missing; the mean is right
        lost = copies << 2 * i  # 4 times the variance that is missing
        if 0 < i and lost < 0.08 * sigma**2:
            continue  # 2 % of the variance and more are to be seen
        short = GaussianPlan(sigma, plan.shift, (*plan.copies[:i], 0, *plan.copies[i + 1 :]), plan.table)
        seen_by = "mean and variance" if i else "residues mod 8"
        assert alarms(draw(short), law, (seen_by,))  # without the bits of weight 1 all are even


def test_bits_that_are_missing_from_the_heap_are_seen() -> None:
    """Without the bits of one weight, but with the offset that they call for, the mean is short by copies 2^i / 2."""
    plan, _ = plan_gaussian(128.0)
    law = LAWS["gaussian"].exact(128.0, True)
    for i in range(plan.shift):
        short = GaussianPlan(128.0, plan.shift, (*plan.copies[:i], 0, *plan.copies[i + 1 :]), plan.table)
        samples = draw(short, count=1 << 18) + short.offset - plan.offset
        assert mean_and_variance(samples, law).p_value < FALSE_ALARM


def test_vectors_and_runs_are_independent() -> None:
    sampler = LAWS["gaussian"].sampler("discrete", 700.0)
    law = LAWS["gaussian"].exact(700.0, True)
    first, second = (clear_noise(sampler, 1 << 18, Prg.from_os()) for _ in range(2))
    assert cross_independence(first, second, law).p_value > FALSE_ALARM
    mixed = np.where(np.arange(len(first)) % 32 == 0, np.roll(first, 77), second)  # a thirty-second part is used twice
    assert cross_independence(first, mixed, law).p_value < FALSE_ALARM
