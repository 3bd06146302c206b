"""A law that is a sum of independent numbers of small tables: X = sum over i of w_i T_i - centre, w_i = +-2^k.

Whoever has the tables has the sampler, for every engine: as a Boolean circuit (`alias`) where bits are shared, and as
an arithmetic one (`field_table`) where numbers are. A geometric variable is such a sum, of digits; a discrete Laplace
is the difference of two.
"""

import functools
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpmpc.lazy import dataclass

from .alias import PRECISION, AliasTable, round_weights, sample_alias
from .arithmetic import Arithmetic, Bits, Values, in_step
from .convert import FIELD_BITS, to_field
from .deep import Deep
from .engine import Bundle, Engine
from .field_laplace import draw_bits, table_draws
from .fixed import FixedEngine
from .heap import Heap
from .lift import HeapProgram, LiftEngine, heap_program
from .program import Program, ProgramEngine, program_of

LEAST_BITS, MOST_BITS = 2, 8  # of a table's index: halves of it are looked up, in 2^bits ANDs


@dataclass(frozen=True)
class Term:
    """`weight` times a number 0 .. 2^b - 1 that the table draws; weight is a power of two or minus one."""

    table: AliasTable
    weight: int

    def __post_init__(self) -> None:
        size = abs(self.weight)
        if not size or size & (size - 1):
            raise ValueError(f"a term's weight is a power of two or minus one; got {self.weight}; split the term")
        if not LEAST_BITS <= self.table.index_bits <= MOST_BITS:
            raise ValueError(f"a term's table has 4 to 256 entries; got {len(self.table.weights)}; use `table_of`")

    @property
    def ends(self) -> tuple[int, int]:
        """The least and the greatest value that can occur."""
        occur = [self.weight * t for t, chance in enumerate(self.table.weights) if chance]
        return min(occur), max(occur)

    @property
    def below(self) -> int:
        """What the bits of `sum_of_tables` exceed the value by."""
        return max(0, -self.weight) * ((1 << self.table.index_bits) - 1)


def table_of(probabilities: Sequence[Fraction]) -> tuple[AliasTable, Fraction]:
    """The table of a law on 0, 1, ... with these probabilities, and its distance (total variation) from that law.

    Errors: ValueError unless they are 2 to 2^8, none negative, and sum to 1.
    """
    given = [Fraction(p) for p in probabilities]
    bits = max(LEAST_BITS, (len(given) - 1).bit_length())
    if not 2 <= len(given) <= 1 << MOST_BITS or min(given) < 0 or sum(given) != 1:
        raise ValueError(
            f"a table has 2 to {1 << MOST_BITS} probabilities that sum to 1; got {len(given)} with sum "
            f"{float(sum(given)):.6g}; use several tables"
        )
    full = given + [Fraction(0)] * ((1 << bits) - len(given))
    table = AliasTable(round_weights(full, 1 << (bits + PRECISION - 1)))
    off = [abs(p - q) for p, q in zip(table.law, full, strict=True)]
    return table, sum(off, Fraction(0)) / 2


@dataclass(frozen=True)
class TableSampler:
    """The sampler of a sum of tables. `scale`: of its law, in grid steps; `total_variation`: how far the law of the sum
    lies from the one that it stands for, at most: the distances of all tables (`table_of`), and what they leave out;
    `law`: its name in reports."""

    scale: float
    terms: tuple[Term, ...]
    total_variation: float
    law: str
    centre: int = 0
    name = "tables"
    discrete = True
    samples_per_lane = 1
    uses_fixed = False
    offset = 0  # taken off in the conversion

    def __post_init__(self) -> None:
        if not self.terms or self.largest >= 1 << (FIELD_BITS - 2):
            raise ValueError(
                f"a sum has terms and stays below 2^{FIELD_BITS - 2}; got {len(self.terms)} terms; mend them"
            )

    @property
    def _ends(self) -> tuple[int, int]:
        lows, highs = zip(*(term.ends for term in self.terms), strict=True)
        return sum(lows) - self.centre, sum(highs) - self.centre

    @property
    def largest(self) -> int:
        return max(map(abs, self._ends))

    @property
    def _below(self) -> int:
        """What the circuit's number exceeds the sample by."""
        return sum(term.below for term in self.terms) + self.centre

    @property
    def certificate(self) -> dict[str, float | str]:
        return {"law": self.law, "total_variation": self.total_variation}

    @property
    def comparisons(self) -> int:
        """Of a sample, over F_p: one a table."""
        return len(self.terms)

    async def circuit(self, engine: ProgramEngine, fixed: FixedEngine | None = None) -> NDArray[np.uint64]:
        if isinstance(engine, LiftEngine):
            return await engine.lift(table_heap(self), self._below)
        return await engine.to_field(table_program(self, engine.masks), self._below)

    async def arithmetic(self, engine: Arithmetic, deep: Deep | None, size: int, *, fast: bool) -> Values:
        """(size, *tail): samples as field elements. Cost: `field_laplace.draw_bits` a table, and its products, side by
        side."""
        wanted = sum(draw_bits(term.table, deep, size) for term in self.terms)
        bits = Bits(await engine.random_bits(wanted))
        draws = await in_step(engine, *(table_draws(term.table, deep, bits, size, fast) for term in self.terms))
        weights = np.array([[term.weight for term in self.terms]], dtype=np.int64)
        total = engine.matrix(weights, engine.join([draw[None] for draw in draws]))[0]
        return engine.subtract(total, engine.constant(self.centre))


@functools.lru_cache(maxsize=64)
def table_program(sampler: TableSampler, masks: int) -> Program:
    """The program of a sample plus `_below`, plus masks, to be opened."""

    async def circuit(engine: Engine) -> Bundle:
        return await to_field(engine, await sum_of_tables(engine, sampler.terms))

    return program_of(circuit, masks)


@functools.lru_cache(maxsize=64)
def table_heap(sampler: TableSampler) -> HeapProgram:
    """A sample plus `_below` as weighted bits."""
    return heap_program(lambda engine: sum_of_tables(engine, sampler.terms))


async def sum_of_tables(engine: Engine, terms: Sequence[Term]) -> Heap:
    """A heap of the sum plus `below` of each term: a table with a negative weight enters as what it lacks of all ones,
    bit for bit. Cost: `alias.sample_alias` a table, side by side."""
    heap = Heap()
    for term in terms:
        number = await sample_alias(engine, term.table)
        bits = number if term.weight > 0 else engine.not_(number)
        heap.put_number(bits, abs(term.weight).bit_length() - 1)
    return heap
