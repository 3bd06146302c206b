"""Sampling a small law by Walker's alias method: exact integer tables, and the circuit that reads them.

2^b columns, each with a threshold and an alias. A uniform column index is kept with probability threshold, else
replaced by the column's alias.
"""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpmpc.lazy import cached_property, dataclass

from .engine import Bundle, Engine
from .selection import biased_bit, look_up, mux, one_hot

PRECISION = 64  # bits of a threshold; a probability is a multiple of 2^-(PRECISION - 1) within a column


@dataclass(frozen=True)
class AliasTable:
    """Walker's table of a law on 0 .. 2^b - 1 whose probabilities are `weights` / 2^(b + precision - 1), exactly."""

    weights: tuple[int, ...]
    precision: int = PRECISION

    def __post_init__(self) -> None:
        assert len(self.weights) == 1 << self.index_bits and sum(self.weights) == self.total and min(self.weights) >= 0

    @property
    def index_bits(self) -> int:
        """b."""
        return len(self.weights).bit_length() - 1

    @property
    def total(self) -> int:
        """The common denominator of the probabilities."""
        return 1 << (self.index_bits + self.precision - 1)

    @property
    def law(self) -> list[Fraction]:
        """The exact law that `sample_alias` draws from."""
        return [Fraction(w, self.total) for w in self.weights]

    @cached_property
    def columns(self) -> tuple[tuple[int, int], ...]:
        """(kept, alias) of each column: the index is kept with probability kept / 2^(precision - 1).

        Source: Walker 1977, in Vose's linear-time order, on integers, so that the law is exact.
        """
        full = 1 << (self.precision - 1)
        rest = list(self.weights)
        kept, alias = [full] * len(rest), list(range(len(rest)))
        small = [v for v, w in enumerate(rest) if w < full]
        large = [v for v, w in enumerate(rest) if w > full]
        while small:
            s, l = small.pop(), large[-1]
            kept[s], alias[s] = rest[s], l
            rest[l] -= full - rest[s]
            if rest[l] <= full:
                large.pop()
                if rest[l] < full:
                    small.append(l)
        return tuple(zip(kept, alias, strict=True))

    @cached_property
    def bits(self) -> NDArray[np.bool_]:
        """(2^b, precision + b): threshold bits as `biased_bit` reads them, then alias bits; least significant first."""
        full = 1 << (self.precision - 1)
        rows = []
        for kept, alias in self.columns:
            threshold = (1 << self.precision) - 1 if kept == full else 2 * kept
            number = threshold | alias << self.precision
            rows.append([number >> i & 1 for i in range(self.precision + self.index_bits)])
        return np.array(rows, dtype=bool)


def round_weights(probabilities: Sequence[Fraction], total: int) -> tuple[int, ...]:
    """Integer weights that sum to `total`, each within 1 of probability * total (largest remainders get the rest)."""
    assert sum(probabilities) == 1 and min(probabilities) >= 0
    scaled = [p * total for p in probabilities]
    weights = [int(s) for s in scaled]
    order = sorted(range(len(scaled)), key=lambda v: weights[v] - scaled[v])
    for v in order[: total - sum(weights)]:
        weights[v] += 1
    return tuple(weights)


async def alias_rows(engine: Engine, tables: Sequence[AliasTable], index: Bundle) -> tuple[Bundle, Bundle]:
    """Thresholds (precision, D, *tail) and aliases (b, D, *tail) of the columns `index` (b, D, *tail), table k for
    index[:, k].

    Cost: 2^b - b - 1 ANDs a table, ceil(log2 b) rounds.
    """
    hot = await one_hot(engine, index)
    rows = np.stack([look_up(hot[:, k], table.bits) for k, table in enumerate(tables)], axis=1)
    return rows[: tables[0].precision], rows[tables[0].precision :]


async def sample_alias(engine: Engine, table: AliasTable) -> Bundle:
    """A number (b, *tail) with law `table.law`.

    Cost: 2^b - b - 1 (one-hot) + below 2 precision (threshold) + b ANDs; ceil(log2 b) + ceil(log2 precision) + 1
    rounds; b + precision - 1 random bits.
    """
    index = engine.random_bits(table.index_bits, 1)
    thresholds, aliases = await alias_rows(engine, [table], index)
    keep = await biased_bit(engine, thresholds)
    return (await mux(engine, keep, index, aliases))[:, 0]
