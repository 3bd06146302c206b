"""Every circuit at small size on all inputs, in the clear engine, against integer arithmetic; and what each costs."""

import itertools
import random
from collections import Counter
from collections.abc import Callable, Coroutine
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from comparison import less_than
from direct import DirectEngine, evaluate, less_masks
from enumeration import every_bit_string
from numpy.typing import NDArray

from dpmpc.circuits.adders import add, add_end_around, add_ripple, carry_save
from dpmpc.circuits.alias import AliasTable, round_weights, sample_alias
from dpmpc.circuits.convert import FIELD_BITS, to_field
from dpmpc.circuits.engine import Bundle, Engine
from dpmpc.circuits.heap import Heap, compress
from dpmpc.circuits.program import program_of
from dpmpc.circuits.selection import biased_bit, look_up, mux, one_hot
from dpmpc.circuits.trace import Tracer
from dpmpc.mpc.contract.lanes import from_planes, to_planes, words_for
from dpmpc.mpc.numbers import field
from dpmpc.mpc.numbers.prg import Prg

Numbers = NDArray[np.uint64]


def on_all_inputs(*widths: int) -> tuple[DirectEngine, list[Numbers], list[Bundle]]:
    """(engine, numbers, bundles): one lane for each tuple of numbers of these widths, padded with repetitions."""
    rows = list(itertools.product(*(range(1 << w) for w in widths)))
    lanes = 64 * words_for(len(rows))
    table = np.array([rows[i % len(rows)] for i in range(lanes)], dtype=np.uint64)
    numbers = [table[:, k].copy() for k in range(len(widths))]
    return DirectEngine(lanes, Prg(b"x")), numbers, [to_planes(v, w) for v, w in zip(numbers, widths, strict=True)]


def value(bits: Bundle) -> Numbers:
    """The number in each lane."""
    return from_planes(bits)


Adder = Callable[[Engine, Bundle, Bundle], Coroutine[Any, Any, Bundle]]


@pytest.mark.parametrize("adder", [add, add_ripple])
@pytest.mark.parametrize("width", range(1, 7))
def test_adders_add(adder: Adder, width: int) -> None:
    engine, (x, y), (xs, ys) = on_all_inputs(width, width)
    assert (value(evaluate(adder(engine, xs, ys))) == x + y).all()


@pytest.mark.parametrize("width", range(2, 7))
def test_end_around_addition_is_modulo_a_mersenne_number(width: int) -> None:
    engine, (x, y), (xs, ys) = on_all_inputs(width, width)
    p = np.uint64((1 << width) - 1)
    z = value(evaluate(add_end_around(engine, xs, ys)))
    assert (z % p == (x + y) % p).all()
    assert ((z == 0) == ((x == 0) & (y == 0))).all()  # otherwise zero is written as p: `convert` relies on it


def test_carry_save_keeps_the_sum() -> None:
    engine, (x, y, z), (xs, ys, zs) = on_all_inputs(3, 3, 3)
    sums, carries = evaluate(carry_save(engine, xs, ys, zs))
    assert (value(sums) + 2 * value(carries) == x + y + z).all()


@pytest.mark.parametrize("width", range(1, 7))
def test_less_than_a_secret(width: int) -> None:
    engine, (x, y), (xs, ys) = on_all_inputs(width, width)
    assert (value(evaluate(less_than(engine, xs, ys))[None]) == (x < y)).all()


@pytest.mark.parametrize("width", [1, 3, 5])
def test_less_than_a_constant(width: int) -> None:
    engine, (x,), (xs,) = on_all_inputs(width)
    for bound in range(1 << width):
        ys = engine.constant([bound >> i & 1 for i in range(width)])
        assert (value(evaluate(less_than(engine, xs, ys))[None]) == (x < bound)).all()


@pytest.mark.parametrize("width", range(1, 7))
def test_one_hot_and_look_up(width: int) -> None:
    engine, (x,), (xs,) = on_all_inputs(width)
    hot = evaluate(one_hot(engine, xs))
    assert hot.shape == (1 << width, *engine.tail)
    for v in range(1 << width):
        assert (value(hot[v][None]) == (x == v)).all()
    draw = np.random.default_rng(width)
    for bits in (1, 3, 17, 64):
        table = draw.integers(0, 2, (1 << width, bits)).astype(bool)
        table[:, :1] = False  # a column without a one
        words = (table.astype(object) @ np.array([1 << i for i in range(bits)], dtype=object)).astype(np.uint64)
        assert (value(look_up(hot, table)) == words[x.astype(np.intp)]).all()


def test_one_hot_of_several_numbers_at_once() -> None:
    engine, (x, y), (xs, ys) = on_all_inputs(3, 3)
    hot = evaluate(one_hot(engine, np.stack([xs, ys], axis=1)))
    for v in range(8):
        assert (value(hot[v][:1]) == (x == v)).all() and (value(hot[v][1:]) == (y == v)).all()


def test_multiplexer() -> None:
    engine, (c, x, y), (cs, xs, ys) = on_all_inputs(1, 3, 3)
    assert (value(evaluate(mux(engine, cs, xs, ys))) == np.where(c == 1, x, y)).all()


def test_constants_and_not() -> None:
    engine, (x,), (xs,) = on_all_inputs(4)
    assert (value(engine.not_(xs)) == 15 - x).all()
    assert (value(engine.constant([1, 0, 1, 1])) == 13).all()
    assert engine.constant(1).shape == engine.tail


# -- heaps -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("end_around", [False, True])
@pytest.mark.parametrize("counts", [(1,), (3, 3, 2), (5, 0, 4, 1), (9, 1, 1), (0, 0, 0, 7), (2, 3, 4, 3)])
def test_heaps_compress_to_two_numbers_on_all_inputs(counts: tuple[int, ...], end_around: bool) -> None:
    engine, _, bits = on_all_inputs(*[1] * sum(counts))
    wires = iter(bits)
    heap = Heap()
    for weight, count in enumerate(counts):
        heap.put(weight, *(next(wires)[0] for _ in range(count)))
    expected = np.zeros(engine.lanes, dtype=np.uint64)
    for weight, column in enumerate(heap.columns):
        for wire in column:
            expected += value(wire[None]) << np.uint64(weight)
    before = heap.size
    for width in (len(counts), len(counts) + 1, len(counts) + 3):
        if width < 2:
            continue
        modulus = np.uint64((1 << width) - end_around)
        x, y = evaluate(compress(engine, heap, width, end_around=end_around))
        assert len(x) == len(y) == width and heap.size == before
        total = value(x) + value(y)
        assert (total % modulus == expected % modulus).all()
        if end_around:
            assert ((total == 0) == (expected == 0)).all()  # what `convert` relies on


@pytest.mark.parametrize("end_around", [False, True])
def test_random_heaps_compress(end_around: bool) -> None:
    draw = random.Random(5)
    for _ in range(60):
        width = draw.randrange(2, 30)
        engine = DirectEngine(128, Prg(b"heap", draw.randrange(1 << 30)))
        heap, expected = Heap(), np.zeros(128, dtype=object)
        for weight in range(width):
            for wire in engine.random_bits(draw.choice([0, 0, 1, 2, 3, 5, 20])):
                heap.put(weight, wire)
                expected += value(wire[None]).astype(object) << weight
        x, y = evaluate(compress(engine, heap, width, end_around=end_around))
        total = value(x).astype(object) + value(y).astype(object)
        assert ((total - expected) % ((1 << width) - end_around) == 0).all()


# -- random bits of a given law --------------------------------------------------------------------------------------
@pytest.mark.parametrize("width", range(1, 7))
def test_biased_bit_has_its_exact_law(width: int) -> None:
    drawn = width - 1
    engine = every_bit_string(drawn)
    for t in range(1 << width):
        wire = evaluate(biased_bit(engine, engine.constant([t >> i & 1 for i in range(width)])))
        engine.rewind()
        ones = int(value(wire[None])[: 1 << drawn].sum())
        assert Fraction(ones, 1 << drawn) == Fraction(t + t % 2, 1 << width)


LAWS = [(1, 0), (3, 5), (0, 7, 1, 8), (4, 4, 4, 4), (16, 0, 0, 0), (1, 2, 3, 26), (9, 1, 0, 5, 8, 8, 30, 3)]


@pytest.mark.parametrize("shape", LAWS)
def test_alias_sampler_has_its_exact_law(shape: tuple[int, ...]) -> None:
    precision = 5
    total = len(shape) << (precision - 1)
    weights = round_weights([Fraction(w, sum(shape)) for w in shape], total)
    table = AliasTable(weights, precision)
    drawn = table.index_bits + precision - 1
    engine = every_bit_string(drawn)
    counts = Counter(int(v) for v in value(evaluate(sample_alias(engine, table)))[: 1 << drawn])
    assert engine.drawn == drawn
    assert [Fraction(counts[v], 1 << drawn) for v in range(len(shape))] == table.law
    assert sum(table.law) == 1


def test_weights_are_rounded_by_less_than_one_and_sum_up() -> None:
    draw = random.Random(3)
    for _ in range(200):
        raw = [draw.randrange(1000) for _ in range(draw.randrange(1, 40))]
        raw[0] += 1
        law = [Fraction(r, sum(raw)) for r in raw]
        total = 1 << draw.randrange(0, 70)
        weights = round_weights(law, total)
        assert sum(weights) == total and all(abs(w - p * total) < 1 for w, p in zip(weights, law, strict=True))


# -- conversion ------------------------------------------------------------------------------------------------------
def test_conversion_is_right_at_the_edges_of_the_field() -> None:
    edges = [0, 1, 2, (1 << 60) - 1, 1 << 60, field.P - 2, field.P - 1]
    rows = list(itertools.product(edges, repeat=3))
    rows = [rows[i % len(rows)] for i in range(64 * words_for(len(rows)))]
    x, r, s = (np.array([row[k] for row in rows], dtype=np.uint64) for k in range(3))
    heap = Heap()
    heap.put_number(to_planes(x, FIELD_BITS))
    for masks in ([r, s], [r], [], [r, s, x, r]):
        y = evaluate(to_field(DirectEngine(len(x), Prg(b""), masks), heap))
        assert (less_masks(y, masks) == x).all()


def test_conversion_reduces_a_heap_modulo_p() -> None:
    prg = Prg(b"heap")
    masks = [field.uniform(prg, (640,)) for _ in range(2)]
    numbers = [prg.words((640,)) & np.uint64((1 << 61) - 1) for _ in range(5)]
    heap = Heap()
    for v in numbers:
        heap.put_number(to_planes(v, FIELD_BITS))
    expected = sum(v.astype(object) for v in numbers) % field.P
    y = evaluate(to_field(DirectEngine(640, prg, masks), heap))
    assert (less_masks(y, masks).astype(object) == expected).all()


@pytest.mark.parametrize("width", [2, 3, 4])
def test_masked_opening_hides_exactly_as_claimed(width: int) -> None:
    """Over F_p with p = 2^width - 1, on all values and masks: what the opening shows to who misses one mask of two.

    For each mask it knows, the law of the opened word over the other does not depend on the value, but that 0 is
    written as 0 instead of p when value and masks are all 0: p^-2 of all cases, as circuits/convert.py says.
    """
    p = (1 << width) - 1
    engine, (x, r, s), (xs, rs, ss) = on_all_inputs(width, width, width)
    heap = Heap()
    for number in (xs, rs, ss):
        heap.put_number(number)
    opened = value(evaluate(add_end_around(engine, *evaluate(compress(engine, heap, width, end_around=True)))))
    views: dict[tuple[int, int], Counter[int]] = {}
    for one in set(zip(x.tolist(), r.tolist(), s.tolist(), opened.tolist(), strict=True)):
        if one[1] < p and one[2] < p:  # masks are uniform below p; a value may have any bits
            views.setdefault((one[0], one[1]), Counter())[one[3]] += 1
    assert len(views) == p * (p + 1)
    for (secret, known), view in views.items():
        expected = Counter(range(1, p + 1))
        if (secret, known) == (0, 0):
            expected = Counter(range(p))
        assert view == expected


# -- cost ------------------------------------------------------------------------------------------------------------
def cost(circuit: Callable[[Tracer], Coroutine[Any, Any, Bundle]]) -> tuple[int, int, int]:
    """(ANDs, rounds, random bits)."""
    program = program_of(circuit)
    return program.ands, program.depth, program.random_bits


def log2_up(x: int) -> int:
    return (x - 1).bit_length()


@pytest.mark.parametrize("width", [1, 2, 5, 8, 31, 61])
def test_costs_are_as_documented(width: int) -> None:
    """An adder's first carry is constant, and its AND folds; the documented costs are those of the gates as written."""
    assert cost(lambda e: add_ripple(e, e.given(width), e.given(width))) == (width, width, 0)
    assert cost(lambda e: both(carry_save(e, e.given(width), e.given(width), e.given(width)))) == (width, 1, 0)
    assert cost(lambda e: mux(e, e.given(1), e.given(width), e.given(width))) == (width, 1, 0)
    ands, rounds, _ = cost(lambda e: add(e, e.given(width), e.given(width)))
    assert ands < 4 * width and rounds <= 1 + 2 * log2_up(width)
    around, more, _ = cost(lambda e: add_end_around(e, e.given(width), e.given(width)))
    assert ands <= around < 4 * width and rounds <= more <= 1 + 2 * log2_up(width)
    ands, rounds, _ = cost(lambda e: less_than(e, e.given(width), e.given(width)))
    assert ands < 3 * width and rounds == 1 + log2_up(width)
    ands, rounds, drawn = cost(lambda e: biased_bit(e, e.given(width)))
    assert ands < 2 * width and rounds == log2_up(width) and drawn == width - 1


async def both(circuit: Coroutine[Any, Any, tuple[Bundle, Bundle]]) -> Bundle:
    return np.concatenate(await circuit)


@pytest.mark.parametrize("width", range(1, 9))
def test_one_hot_costs_as_documented(width: int) -> None:
    rounds = log2_up(width) + (width == 7)
    assert cost(lambda e: one_hot(e, e.given(width))) == ((1 << width) - width - 1, rounds, 0)
