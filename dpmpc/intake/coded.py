"""Columns of numbers by the codes of their values, and what a table keeps of them: what was read is not read again.

A column of few different numbers, 65,535 at most, is a code of one or two bytes a record, and a table of its values as
they stood, to the last bit: numbers that people write down have few figures. A column of more is not kept. The compiled
kernel's twin is NumPy: the same codes.
"""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmpc.lazy import dataclass, kernels

compiled = partial(kernels, "dpmpc.intake._numbers")

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bits = NDArray[np.uint8]

MOST = 1 << 16  # codes of a column, that of a missing value, 0, among them
AT_ONCE = 1 << 17  # records of kept columns that are handed out at once
_SLOTS = 4 * MOST  # of a hash table that is never more than a quarter full
_SMALL = 1 << 8  # codes that one byte holds
_CODES = "codes of "  # no SQL begins so


class ColumnCoding:
    """The codes of a column of n numbers, as they come: of each value in the order in which it was first there."""

    @staticmethod
    def size(n: int) -> int:
        """How many bytes one takes at most."""
        return 2 * n + 2 * _SLOTS + 16 * MOST

    def __init__(self, n: int) -> None:
        self.codes: NDArray[np.uint16] = np.empty(n, dtype=np.uint16)
        self.seen = 0
        self.state: Ints = np.array([1, 10], dtype=np.int64)  # how many codes, and the logarithm of slots in use
        self.slots: NDArray[np.uint16] = np.zeros(_SLOTS, dtype=np.uint16)
        self.bits: Ints = np.zeros(MOST, dtype=np.int64)
        self.counts: Ints = np.zeros(MOST, dtype=np.int64)

    def add(self, values: Floats, there: Bits | None, first: int) -> int:
        """How many of some values were taken in: all, or those before the one that is too many. They are there where
        the bits of `there` are set, from bit `first` on; all where that is None."""
        room = self.codes[self.seen : self.seen + len(values)]
        kernel = compiled()
        if kernel is None:
            done = self._add(values, there, first, room)
        else:
            done = kernel.encode(values, there, first, self.state, self.slots, self.bits, self.counts, room)
        self.seen += done
        return int(done)

    def _add(self, values: Floats, there: Bits | None, first: int, room: NDArray[np.uint16]) -> int:
        """The twin of the kernel."""
        known, done = int(self.state[0]), len(values)
        mine = np.ascontiguousarray(values).view(np.int64)
        here = np.ones(done, dtype=bool)
        if there is not None:
            here = np.unpackbits(there, count=first + done, bitorder="little")[first:] != 0
        order = np.argsort(self.bits[1:known])
        before = self.bits[1:known][order]
        each, begin, which = np.unique(mine[here], return_index=True, return_inverse=True)
        at = np.minimum(np.searchsorted(before, each), max(0, len(before) - 1))
        old = before[at] == each if len(before) else np.zeros(len(each), dtype=bool)
        code = np.zeros(len(each), dtype=np.int64)
        code[old] = 1 + order[at[old]]
        new = np.flatnonzero(~old)[np.argsort(begin[~old])]
        if len(new) > MOST - known:
            done = int(np.flatnonzero(here)[begin[new[MOST - known]]])
            new = new[: MOST - known]
        code[new] = known + np.arange(len(new))
        self.bits[known : known + len(new)] = each[new]
        self.state[0] = known + len(new)
        found = np.zeros(len(values), dtype=np.int64)
        found[here] = code[which.reshape(-1)]
        room[:done] = found[:done]
        self.counts += np.bincount(found[:done], minlength=MOST)
        return done

    @property
    def values(self) -> Floats:
        """(k,) the different values, without what is missing."""
        return self.bits[1 : int(self.state[0])].view(np.float64)

    @property
    def times(self) -> Ints:
        """(k,) how often each is there."""
        return self.counts[1 : int(self.state[0])]

    @property
    def coded(self) -> "CodedColumn":
        """All of them; what is missing is NaN."""
        codes = self.codes.astype(np.uint8) if self.state[0] <= _SMALL else self.codes
        return CodedColumn(codes, np.append(np.nan, self.values))


@dataclass(frozen=True, eq=False)
class CodedColumn:
    """A column: a code a record (n,), and the value of each code; None where the code is the value."""

    codes: NDArray[Any]
    values: Floats | None = None

    @property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        """What it is held as."""
        return (self.codes,) if self.values is None else (self.codes, self.values)

    def part(self, begin: int, end: int) -> NDArray[Any]:
        """Rows begin ... end - 1: what a database gave, float64 or int32, or the codes of it as they are held."""
        return self.part_of(slice(begin, end))

    def part_of(self, rows: slice) -> NDArray[Any]:
        """These rows likewise."""
        codes: NDArray[Any] = self.codes[rows]
        if self.values is not None:
            values: Floats = self.values[codes]
            return values
        return codes if codes.dtype.kind == "u" else codes.astype(np.int32)

    @property
    def as_values(self) -> "CodedColumn":
        """The same with infinity for what is no finite number and not missing either."""
        assert self.values is not None
        there = np.isfinite(self.values)
        there[0] = True
        return CodedColumn(self.codes, np.where(there, self.values, np.inf))


class Kept:
    """Columns that were read, by the relation and the SQL that gave them, in so many bytes at most."""

    def __init__(self, most: int = 0) -> None:
        self.most, self._columns = most, dict[tuple[str, str], CodedColumn]()

    @property
    def room(self) -> int:
        """How many bytes there is room for."""
        held = {id(array): array.nbytes for each in self._columns.values() for array in each.arrays}
        return self.most - sum(held.values())

    def of(self, relation: str, expression: str) -> CodedColumn | None:
        """What this expression gives, or the codes of what it gives (`codes_of`); None where that is not kept."""
        return self._columns.get((relation, expression))

    def put(self, relation: str, expression: str, column: CodedColumn) -> None:
        """Keeps what an expression gives."""
        self._columns[relation, expression] = column
        if column.values is not None:
            self._columns[relation, codes_of(expression)] = CodedColumn(column.codes)


def codes_of(expression: str) -> str:
    """What stands for the codes of what a kept expression gives."""
    return _CODES + expression


class IntegersSeen:
    """What is to be kept of a column of whole numbers that is read, such as codes: of those of two bytes alone."""

    def __init__(self, n: int) -> None:
        self.codes: NDArray[Any] = np.empty(n, dtype=np.int8)
        self.seen, self.small = 0, True

    def add(self, values: NDArray[Any]) -> None:
        """Takes some in."""
        end = self.seen + len(values)
        self.small = self.small and end <= len(self.codes)
        if not (self.small and len(values)):
            return
        ends = int(values.min()), int(values.max())
        for kind in (np.int8, np.int16):
            if np.iinfo(kind).min <= ends[0] and ends[1] <= np.iinfo(kind).max:
                self.codes = self.codes.astype(np.promote_types(kind, self.codes.dtype), copy=False)
                self.codes[self.seen : end] = values
                self.seen = end
                return
        self.small = False

    @property
    def coded(self) -> CodedColumn | None:
        """All of them; None where some are not small."""
        return CodedColumn(self.codes) if self.small and self.seen == len(self.codes) else None
