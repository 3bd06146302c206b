"""Sums of tables: the exact law of tiny ones over all random bits, as Boolean and as arithmetic circuits, against the
convolution of the tables; a wide one against its law; what cannot be a table is refused."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from enumeration import every_bit_string, heap_values

from dpmpc.circuits.alias import AliasTable
from dpmpc.circuits.deep import Deep
from dpmpc.circuits.field_laplace import draw_bits
from dpmpc.circuits.field_sampler import FieldSampler
from dpmpc.circuits.table_sampler import TableSampler, Term, sum_of_tables, table_of
from dpmpc.circuits.trace import evaluate
from dpmpc.mpc.clear.noise import clear_noise
from dpmpc.mpc.numbers import field
from dpmpc.mpc.numbers.prg import Prg
from dpmpc.privacy.tails import chi_square_tail
from tests.circuits.test_arithmetic_circuits import distance, every, independent, law_of

TWO = AliasTable((5, 3, 0, 0), 2)
WIDE = AliasTable((9, 4, 2, 1), 3)
FOUR = AliasTable((4, 2, 1, 1), 2)
TINY = [
    (Term(FOUR, 1),),
    (Term(FOUR, -1), Term(TWO, 4)),
    (Term(TWO, 1), Term(TWO, -2), Term(FOUR, -4)),
]


def convolved(terms: tuple[Term, ...]) -> dict[int, Fraction]:
    """The law of the sum, term by term."""
    law = {0: Fraction(1)}
    for term in terms:
        more: dict[int, Fraction] = {}
        for x, p in law.items():
            for t, q in enumerate(term.table.law):
                more[x + term.weight * t] = more.get(x + term.weight * t, Fraction(0)) + p * q
        law = more
    return {x: p for x, p in law.items() if p}


def sampler(terms: tuple[Term, ...], centre: int = 0) -> TableSampler:
    return TableSampler(1.0, terms, 1e-19, "a sum", centre)


@pytest.mark.parametrize("terms", TINY)
def test_the_boolean_circuit_has_exactly_the_law(terms: tuple[Term, ...]) -> None:
    bits = sum(draw_bits(term.table, None, 1) for term in terms)
    engine = every_bit_string(bits)
    values = heap_values(evaluate(sum_of_tables(engine, terms))).astype(np.int64) - sum(t.below for t in terms)
    assert {x: Fraction(c, len(values)) for x, c in Counter(values.tolist()).items()} == convolved(terms)


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("terms", TINY)
def test_the_arithmetic_circuit_has_exactly_the_law(terms: tuple[Term, ...], fast: bool) -> None:
    chosen = sampler(terms, 3)
    engine = every(sum(draw_bits(term.table, None, 1) for term in terms))
    law = law_of(field.to_int64(evaluate(chosen.arithmetic(engine, None, 1, fast=fast))))
    assert engine.drawn == len(engine.bits)
    assert law == {(x - 3,): p for x, p in convolved(terms).items()}
    assert max(abs(x) for (x,) in law) == chosen.largest


def test_a_group_that_shares_deep_bits_is_as_far_off_as_it_is_charged_for() -> None:
    terms, deep, size = (Term(WIDE, 1),), Deep(1, 1, 2), 2
    engine = every(draw_bits(WIDE, deep, size))
    values = evaluate(sampler(terms).arithmetic(engine, deep, size, fast=False))
    exact = independent({x: p for x, p in convolved(terms).items()}, size)
    off = distance(law_of(field.to_int64(values)), exact)
    assert 0 < off <= deep.joint(size, sampler(terms).comparisons)


def test_a_wide_sum_follows_its_law_and_pays_for_each_table() -> None:
    """Chi-square of 40,000 draws of a binomial times 16 plus a number below 16; rejects a table that is off by 16 %.
    Each fails, or passes, wrongly with probability below 1e-9."""
    weights = [Fraction(n, 32) for n in (1, 5, 10, 10, 5, 1)]
    table, off = table_of(weights)
    even, zero = table_of([Fraction(1, 16)] * 16)
    assert 0 <= off < Fraction(1, 1 << 60) and zero == 0
    chosen = sampler((Term(table, 16), Term(even, 1)), 40)
    values = clear_noise(chosen, 40_000, Prg.from_os()) + 40
    assert values.min() >= 0 and values.max() <= 5 * 16 + 15 and chosen.largest == 5 * 16 + 15 - 40
    seen = np.bincount(values, minlength=96)

    def p_value(law: list[Fraction]) -> float:
        expected = np.repeat([float(p) / 16 for p in law], 16) * len(values)
        return chi_square_tail(float(((seen - expected) ** 2 / expected).sum()), len(expected) - 1)

    assert p_value(weights) > 1e-9
    wrong = [w + d for w, d in zip(weights, map(Fraction, (0, 0, "0.05", "-0.05", 0, 0)), strict=True)]
    assert p_value(wrong) < 1e-9
    assert FieldSampler(chosen).group == pytest.approx(2 * FieldSampler(sampler((Term(even, 1),))).group)


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda: table_of([Fraction(1, 2)] * 3), "sum to 1"),
        (lambda: table_of([Fraction(1)]), "has 2 to 256"),
        (lambda: table_of([Fraction(1, 300)] * 300), "use several tables"),
        (lambda: Term(TWO, 3), "a power of two"),
        (lambda: Term(AliasTable((5, 3), 3), 1), "4 to 256 entries"),
        (lambda: sampler(()), "a sum has terms"),
        (lambda: sampler((Term(FOUR, 1 << 58),)), "stays below 2"),
    ],
)
def test_what_is_no_sum_of_tables_is_refused(made: object, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        made()  # type: ignore[operator]
