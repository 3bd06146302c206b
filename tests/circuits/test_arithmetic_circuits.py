"""Arithmetic circuits in the clear engine: every value of small ones, every column and place of real tables, the exact
joint law of tiny samplers over all random bits, and what sharing deep bits costs in probability."""

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dpmpc.circuits import field_gaussian, field_laplace
from dpmpc.circuits.alias import AliasTable
from dpmpc.circuits.arithmetic import Arithmetic, Pair, Values, dot, in_step, multiply
from dpmpc.circuits.deep import Deep, deal_out, rank_powers
from dpmpc.circuits.field_sampler import FieldSampler
from dpmpc.circuits.field_table import compare, look_up, low_bits, read_bit
from dpmpc.circuits.gaussian import GaussianPlan, plan_gaussian
from dpmpc.circuits.laplace import LaplacePlan, plan_laplace
from dpmpc.circuits.prefix import monomials, prefix_products
from dpmpc.circuits.sampler import discrete_gaussian, discrete_laplace
from dpmpc.circuits.trace import evaluate
from dpmpc.mpc.numbers import field
from dpmpc.mpc.numbers.prg import Prg
from dpmpc.mpc.shamir.counts import CountingArithmetic
from tests.circuits.test_samplers import gaussian_law, laplace_law
from tests.clear_arithmetic import ClearArithmetic

Words = NDArray[np.uint64]
Law = dict[Any, Fraction]


class Given(ClearArithmetic):
    """A clear engine with the bits it is given, (count, lanes); `asked` notes what each round asked for."""

    def __init__(self, bits: Words) -> None:
        super().__init__(bits.shape[1], Prg(b""))
        self.bits, self.drawn, self.asked = bits, 0, list[int]()

    async def random_bits(self, count: int) -> Words:
        self.drawn += count
        assert self.drawn <= len(self.bits), "the circuit draws more bits than are given"
        return self.bits[self.drawn - count : self.drawn]

    async def dots(self, pairs: Sequence[Pair]) -> list[Words]:
        results = await super().dots(pairs)
        self.asked.append(sum(r.size // self.lanes for r in results))
        return results


def every(bits: int) -> Given:
    """One lane for each string of so many bits."""
    return Given((np.arange(1 << bits, dtype=np.uint64) >> np.arange(bits, dtype=np.uint64)[:, None]) & np.uint64(1))


def spent(engine: Given) -> tuple[int, int]:
    """(products a lane, rounds)."""
    return sum(engine.asked), len(engine.asked)


# -- products --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("pairings", [None, 0, 1, 2, 3, 4])
@pytest.mark.parametrize("width", [1, 2, 3, 4, 5, 7, 8, 13, 14, 49])
def test_prefix_products(width: int, pairings: int | None) -> None:
    engine = Given(np.zeros((0, 40), dtype=np.uint64))
    x = field.uniform(Prg(b"prefix"), (width, 3, 40))
    got = evaluate(prefix_products(engine, x, pairings))
    expected = list(itertools.accumulate(x, field.mul))
    assert (got == np.stack(expected)).all()
    products, rounds = spent(engine)
    if pairings is None:
        assert (products, rounds) == (3 * (width - 1), width - 1)
    else:
        assert rounds <= 2 * pairings + math.ceil(math.log2(max(1, math.ceil(width / 2**pairings))))
        assert products <= 3 * (2 * width if pairings >= math.log2(width) else width * math.log2(width))


@pytest.mark.parametrize("bits", range(1, 7))
def test_monomials(bits: int) -> None:
    engine = every(bits)
    got = evaluate(monomials(engine, engine.bits))
    for v, lane in itertools.product(range(1 << bits), repeat=2):
        assert got[v, lane] == (v & lane == v)
    assert spent(engine) == ((1 << bits) - bits - 1, math.ceil(math.log2(bits)))


def test_circuits_in_step_share_rounds_and_nest() -> None:
    engine = Given(np.zeros((0, 5), dtype=np.uint64))
    x = field.uniform(Prg(b"step"), (4, 5))

    async def power(inner: Arithmetic, times: int) -> Values:
        result = x
        for _ in range(times):
            result = await multiply(inner, result, x)
        return result

    async def nested(inner: Arithmetic) -> list[Values]:
        return await in_step(inner, lambda i: power(i, 2), lambda i: dot(i, x, x))

    async def nothing(inner: Arithmetic) -> Values:
        return inner.constant(7)

    three, (two, squares), seven = evaluate(in_step(engine, lambda i: power(i, 3), nested, nothing))
    square = field.mul(x, x)
    assert (three == field.mul(square, square)).all() and (two == field.mul(square, x)).all()
    assert (squares == field.total(square)).all() and (seven == 7).all()
    assert engine.asked == [9, 8, 4]  # 4 + 4 + 1, 4 + 4, 4
    with pytest.raises(AssertionError, match="before circuits run in step"):
        evaluate(in_step(engine, lambda i: i.random_bits(1)))


# -- tables ----------------------------------------------------------------------------------------------------------
def value_at(table: AliasTable, column: int, place: int) -> int:
    """What the Boolean circuit reads: bit `place` from the top of the column's threshold keeps the column."""
    kept, alias = table.columns[column]
    full = 1 << (table.precision - 1)
    threshold = (1 << table.precision) - 1 if kept == full else 2 * kept
    return column if threshold >> (table.precision - 1 - place) & 1 else alias


def tables() -> list[AliasTable]:
    gaussian = [plan_gaussian(sigma)[0].table for sigma in (128.0, 123456.7, 2.0**30)]
    laplace = [table for scale in (1.0, 1000.3) for table in plan_laplace(scale)[0].digits]
    return [*gaussian, *laplace, AliasTable((5, 0, 26, 1), 4), AliasTable((8, 8, 8, 8), 4)]


@pytest.mark.parametrize("table", tables(), ids=lambda t: f"{len(t.weights)}x{t.precision}")
@pytest.mark.parametrize("first", [0, 1, 14])
def test_look_ups_at_every_column_and_place(table: AliasTable, first: int) -> None:
    """From each first place, all columns and all places of first difference, down to the last and stopping short."""
    first = min(first, table.precision - 2)
    for count in sorted({1, min(14, table.precision - 1 - first), table.precision - 1 - first}):
        last = first + count == table.precision - 1
        columns, places = np.divmod(np.arange(len(table.weights) * (count + 1)), count + 1)
        index = (columns >> np.arange(table.index_bits)[:, None] & 1).astype(np.uint64)
        equal = (np.arange(count)[:, None] != places).astype(np.uint64)
        equal[np.arange(count)[:, None] > places] = np.random.default_rng(count).integers(
            0, 2, (np.arange(count)[:, None] > places).sum()
        )
        engine = Given(np.zeros((0, len(columns)), dtype=np.uint64))

        async def circuit(count: int = count, index: Words = index, equal: Words = equal, e: Given = engine) -> Values:
            low, high, prefixes = await compare(e, index, equal)
            return await dot(e, high, await look_up(e, table, low, prefixes, first))

        got = evaluate(circuit())
        for column, place, y in zip(columns.tolist(), places.tolist(), got, strict=True):
            assert y == (value_at(table, column, first + place) if last or place < count else 0)
        low, high = 1 << low_bits(table.index_bits), 1 << table.index_bits - low_bits(table.index_bits)
        assert spent(engine)[0] == low + high - 2 - table.index_bits + count - 1 + high + 1


def test_a_public_threshold_is_read_at_every_place() -> None:
    for precision, number in ((3, 6), (5, 0), (5, 30), (8, 177)):
        threshold = [number >> precision - 1 - k & 1 for k in range(precision)]
        engine = every(precision - 1)
        prefixes = evaluate(prefix_products(engine, engine.bits))
        for depth in range(1, precision):
            part = prefixes[:depth]
            if depth < precision - 1:
                read = read_bit(engine, threshold, part)
                beyond = evaluate(prefix_products(engine, engine.bits[depth:]))
                read = engine.add(read, field.mul(part[-1], read_bit(engine, threshold, beyond, depth)))
            else:
                read = read_bit(engine, threshold, part)
            places = np.cumprod(engine.bits, axis=0).sum(axis=0)
            assert (read == np.array(threshold, dtype=np.uint64)[places]).all()


# -- deep draws ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("slots", [1, 2, 3, 4, 7])
def test_each_deep_sample_takes_the_draw_of_its_rank(slots: int) -> None:
    size = 9
    engine = every(size)
    draws = field.uniform(Prg(b"draws"), (slots, engine.lanes))

    async def circuit() -> tuple[Values, Values]:
        powers = await rank_powers(engine, engine.bits, slots)
        return powers, await dot(engine, powers, deal_out(engine, draws, size))

    powers, taken = evaluate(circuit())
    rank = np.cumsum(engine.bits, axis=0)
    few = rank[-1] <= slots
    assert few.sum() == sum(math.comb(size, k) for k in range(slots + 1))
    for j, power in enumerate(powers):
        assert (power == engine.bits * rank**j).all()
    expected = np.where(engine.bits == 1, np.take_along_axis(draws, np.clip(rank, 1, slots).astype(np.int64) - 1, 0), 0)
    assert (taken[:, few] == expected[:, few]).all()
    assert slots == 1 or not (taken[:, ~few] == expected[:, ~few]).all()
    assert spent(engine) == ((slots - 1) * size + size, (slots > 1) + math.ceil(math.log2(max(1, slots - 1))) + 1)


def law_of(values: NDArray[np.int64]) -> Law:
    """The law of a column when every column is as likely: (variables, lanes)."""
    least = values.min()
    radix = int(values.max() - least) + 1
    keys, counts = np.unique(((values - least).T @ radix ** np.arange(len(values))), return_counts=True)
    found = keys[:, None] // radix ** np.arange(len(values)) % radix + least
    return {tuple(v): Fraction(c, values.shape[1]) for v, c in zip(found.tolist(), counts.tolist(), strict=True)}


def independent(law: Law, size: int) -> Law:
    """The joint law of so many independent draws."""
    joint: Law = {(): Fraction(1)}
    for _ in range(size):
        joint = {(*xs, x): p * q for xs, p in joint.items() for x, q in law.items()}
    return joint


def distance(first: Law, second: Law) -> Fraction:
    """Total variation."""
    return (
        sum((abs(first.get(x, Fraction(0)) - second.get(x, Fraction(0))) for x in {*first, *second}), Fraction(0)) / 2
    )


def joint_law(plan: GaussianPlan | LaplacePlan, deep: Deep | None, size: int, *, fast: bool = False) -> Law:
    """The exact joint law of a group, over all random bits."""
    if isinstance(plan, GaussianPlan):
        engine = every(field_gaussian.bits_needed(plan, deep, size))
        values = evaluate(field_gaussian.sample_gaussian(engine, plan, deep, size, fast=fast))
    else:
        engine = every(field_laplace.bits_needed(plan, deep, size))
        values = evaluate(field_laplace.sample_laplace(engine, plan, deep, size, fast=fast))
    assert engine.drawn == len(engine.bits)
    return law_of(field.to_int64(values))


TABLE = AliasTable((13, 12, 5, 2), 4)
GAUSSIAN = GaussianPlan(1.0, 0, (), TABLE)
SPREAD = GaussianPlan(2.0, 2, (2, 1), AliasTable((7, 5, 0, 4), 3))
LAPLACE = LaplacePlan(1.0, (AliasTable((9, 4, 2, 1), 3),), 6)
DIGITS = LaplacePlan(4.0, (AliasTable((9, 4, 2, 1), 3), AliasTable((8, 5, 3, 0), 3)), 4)


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("plan", [GAUSSIAN, SPREAD, LAPLACE, DIGITS])
def test_tiny_plans_have_exactly_the_law_of_the_boolean_circuit(plan: Any, fast: bool) -> None:
    law = gaussian_law(plan) if isinstance(plan, GaussianPlan) else laplace_law(plan)
    assert joint_law(plan, None, 1, fast=fast) == {(x,): p for x, p in law.items()}


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize(
    ("plan", "size", "slots", "depths"),
    [
        (GAUSSIAN, 2, 2, (1, 2)),
        (GAUSSIAN, 2, 1, (1, 2)),
        (SPREAD, 2, 1, (1,)),
        (LAPLACE, 2, 1, (1,)),
        (LAPLACE, 2, 2, (1,)),
    ],
)
def test_the_joint_law_of_a_group_at_every_depth(
    plan: Any, size: int, slots: int, depths: tuple[int, ...], fast: bool
) -> None:
    """Exactly the product law where no group can have too many deep samples; else no further from it than the chance
    of that, a comparison at a time, and further from it than 0."""
    law = gaussian_law(plan) if isinstance(plan, GaussianPlan) else laplace_law(plan)
    comparisons = 1 if isinstance(plan, GaussianPlan) else len(plan.digits) + 1
    for depth in depths:
        deep = Deep(depth, slots, size)
        joint = joint_law(plan, deep, size, fast=fast)
        off = distance(joint, independent(law, size))
        if slots >= size:
            assert joint == independent(law, size)
        else:
            assert 0 < off <= deep.joint(size, comparisons)


@pytest.mark.slow
def test_three_samples_share_two_draws() -> None:
    """A group of three: any two samples that go deep are independent; three share two draws' polynomial."""
    plan, deep = GaussianPlan(1.0, 0, (), AliasTable((7, 5, 0, 4), 3)), Deep(1, 2, 3)
    joint = joint_law(plan, deep, 3)
    law = gaussian_law(plan)
    assert 0 < distance(joint, independent(law, 3)) <= deep.failure(3) == Fraction(1, 8)
    pairs: Law = Counter()
    for (x, y, _), p in joint.items():
        pairs[x, y] += p
    assert pairs == independent(law, 2)  # the ranks of the first two are 1 and 2 at most


def test_a_draw_that_two_samples_share_is_not_independent() -> None:
    """The negative control: outside the failure event everything above is exact, so a wrong rank must be seen."""
    size, deep = 2, Deep(1, 2, 2)
    engine = every(field_gaussian.bits_needed(GAUSSIAN, deep, size))
    good = field_gaussian.deal_out
    try:
        field_gaussian.deal_out = lambda e, draws, s: good(e, e.join([draws[:1], draws[:1]]), s)
        values = evaluate(field_gaussian.sample_gaussian(engine, GAUSSIAN, deep, size))
    finally:
        field_gaussian.deal_out = good
    joint, law = law_of(field.to_int64(values)), gaussian_law(GAUSSIAN)
    for k in range(size):  # each sample's own law is exact, which is why the joint law is what is bounded
        own: Law = Counter()
        for xs, p in joint.items():
            own[xs[k]] += p
        assert own == law
    assert distance(joint, independent(law, size)) > Fraction(1, 8)


# -- the charge ------------------------------------------------------------------------------------------------------
def test_the_chance_of_too_many_deep_samples_by_enumeration() -> None:
    for depth, slots, size in itertools.product((1, 2), (1, 2, 3), (1, 2, 4)):
        strings = itertools.product(range(1 << depth), repeat=size)
        many = sum(sum(s == 0 for s in string) > slots for string in strings)
        assert Deep(depth, slots, 2).failure(size) == Fraction(many, 1 << depth * size)


@pytest.mark.parametrize("deep", [Deep(), Deep(18, 4, 128), Deep(3, 2, 6), Deep(1, 1, 2)])
def test_a_sample_s_charge_pays_for_whole_groups_whatever_the_number_of_samples(deep: Deep) -> None:
    for count in [*range(1, 3 * deep.group + 2), 6100, 16384, 10**6 + 1]:
        groups, size = deep.groups(count), deep.size(count)
        assert groups * size >= count > groups * (size - 1) and size <= deep.group
        assert deep.joint(count) == groups * deep.failure(size) <= count * deep.per_sample
    assert deep.per_sample < Fraction(101, 100) * deep.failure(deep.group) / deep.group or deep.group < 100


def test_the_shared_samplers_are_certified_like_the_boolean_ones() -> None:
    """The group's term adds less than 2^-69 for each comparison: at most a twelfth of a bit for the Gaussian."""
    assert Deep().per_sample < Fraction(1, 1 << 69)
    for sigma in (128.0, 8192.0, 123456.7, 2.0**20, 2.0**24, 2.0**30):
        sampler = discrete_gaussian(sigma)
        own, shared = sampler.proof.total_variation, FieldSampler(sampler).certificate
        assert own < float(shared["total_variation"]) < own * 2**0.08
        assert FieldSampler(sampler, None).certificate == sampler.certificate | {"group": 0.0}
        assert Fraction(shared["group"]) > Deep().per_sample
        assert sigma == 128.0 or float(shared["total_variation"]) < 2.0**-64
    for scale in (1.0, 1000.0, 2.0**17, 2.0**30):
        laplace = discrete_laplace(scale)
        chosen = FieldSampler(laplace)
        assert laplace.comparisons == len(laplace.plan.digits) + 1
        assert chosen.group >= laplace.comparisons * float(Deep().per_sample)
        assert float(chosen.certificate["total_variation"]) < laplace.proof.total_variation + 2.0**-66
        assert {k: v for k, v in chosen.certificate.items() if "multi" in k}.items() <= laplace.certificate.items()


# -- the real tables -------------------------------------------------------------------------------------------------
def expected_gaussian(plan: GaussianPlan, deep: Deep | None, size: int, bits: Words) -> NDArray[np.int64]:
    """The samples that the random bits (count, lanes) mean, without any product: indices, places and ranks."""
    rows = iter(bits.astype(np.int64))

    def take(width: int, count: int) -> NDArray[np.int64]:
        return np.array([[next(rows) for _ in range(count)] for _ in range(width)])

    table = plan.table
    read = np.array([[value_at(table, v, k) for k in range(table.precision)] for v in range(len(table.weights))])

    def number(index: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.asarray((index << np.arange(len(index))[:, None, None]).sum(axis=0))

    column, sign = number(take(table.index_bits, size)), 1 - 2 * take(1, size)[0]
    own = np.cumprod(take(table.precision - 1 if deep is None else deep.depth, size), axis=0).sum(axis=0)
    y = sign * read[column, own]
    if deep is not None:
        slot_column, slot_sign = number(take(table.index_bits, deep.slots)), 1 - 2 * take(1, deep.slots)[0]
        further = np.cumprod(take(table.precision - 1 - deep.depth, deep.slots), axis=0).sum(axis=0)
        draws = slot_sign * read[slot_column, deep.depth + further]
        goes = own == deep.depth
        rank = np.clip(np.cumsum(goes, axis=0), 1, deep.slots)
        y = np.where(goes, np.take_along_axis(draws, rank - 1, axis=0), y)
    low = sum(2**i * take(copies, size).sum(axis=0) for i, copies in enumerate(plan.copies))
    assert next(rows, None) is None
    return np.asarray((y << plan.shift) + low - sum(r << i for i, r in enumerate(plan.copies)) // 2)


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("deep", [None, Deep(14, 7, 320), Deep(3, 5, 16)])
def test_real_tables_at_every_depth_against_plain_arithmetic(deep: Deep | None, fast: bool) -> None:
    """Biased bits, so that comparisons end at every place and groups have every number of deep samples."""
    plan, size, lanes = plan_gaussian(2.0**20)[0], 16, 200
    rng = np.random.default_rng(5)
    count = field_gaussian.bits_needed(plan, deep, size)
    first = size * (plan.table.index_bits + 1)
    chance = np.full((count, 1), 0.95)
    if deep is not None:  # about a fifth of the samples goes deep
        chance[first : first + size * deep.depth] = 0.2 ** (1 / deep.depth)
    bits = (rng.random((count, lanes)) < chance).astype(np.uint64)
    values = field.to_int64(evaluate(field_gaussian.sample_gaussian(Given(bits), plan, deep, size, fast=fast)))
    expected = expected_gaussian(plan, deep, size, bits)
    right = np.ones(lanes, dtype=bool)
    if deep is not None:
        own = bits[first : first + size * deep.depth].reshape(deep.depth, size, lanes)
        deep_samples = own.all(axis=0).sum(axis=0)
        right = deep_samples <= deep.slots
        assert set(range(1, deep.slots + 1)) <= set(deep_samples.tolist())
        assert right.sum() >= 100 and np.abs(values[:, right]).max() <= plan.largest
    assert (values[:, right] == expected[:, right]).all()


# -- costs -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("deep", "fast", "products", "draws", "rounds"),
    [(Deep(), False, 37, 113, 18), (Deep(), True, 49, 154, 9), (None, False, 80, 0, 65), (None, True, 204, 0, 9)],
)
def test_gaussian_circuits_cost_as_documented(
    deep: Deep | None, fast: bool, products: int, draws: int, rounds: int
) -> None:
    plan, _ = plan_gaussian(2.0**20)
    size = 320
    engine = CountingArithmetic(3, 3, 1)
    evaluate(field_gaussian.sample_gaussian(engine, plan, deep, size, fast=fast))
    assert engine.products == products * size + draws * (deep.slots if deep else 0)
    assert engine.rounds == rounds
    assert engine.random_bits_drawn == field_gaussian.bits_needed(plan, deep, size)
    if deep and not fast:  # a sample's share, as docs/noise.md has it
        assert (engine.products / size, engine.random_bits_drawn / size) == pytest.approx((39.47, 182.2), abs=0.05)


@pytest.mark.parametrize(
    ("deep", "fast", "products", "rounds"),
    [(Deep(), False, 179.8, 20), (Deep(), True, 257.2, 11), (None, False, 424, 66), (None, True, 1168, 10)],
)
def test_laplace_circuits_cost_as_documented(deep: Deep | None, fast: bool, products: float, rounds: int) -> None:
    plan, _ = plan_laplace(2.0**17)
    engine = CountingArithmetic(3, 3, 1)
    evaluate(field_laplace.sample_laplace(engine, plan, deep, 320, fast=fast))
    assert engine.products / 320 == pytest.approx(products, abs=0.1) and engine.rounds == rounds
    assert engine.random_bits_drawn == field_laplace.bits_needed(plan, deep, 320)
