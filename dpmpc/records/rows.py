"""What a database reads of some records, made rows of features in one pass, by a compiled kernel where there is one.

The twin is `mapping.read` with `Schema.writer`: the same bits, and the same counts of what does not fit. A column of
few spellings or of listed categories is a table with a row of features for each; a number is worked out in place.
What the kernel does not know (dates, logarithms) NumPy writes, column by column.
"""

import os
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmpc.intake.table import Block, Floats, Ints
from dpmpc.lazy import dataclass
from dpmpc.records.blocks import Records
from dpmpc.records.mapping import Counts, Mapping, beside, counted, read, zeroed
from dpmpc.records.schema import Categorical, Column, Numeric, Surveyed, into_ball
from dpmpc.records.spelled import Reader
from dpmpc.records.spline_basis import values_at_knots

_CODES, _NUMBERS, _SCALED = range(3)  # kinds of columns, as rows.c has them
_STEP, _TWINS = 1 << 16, 1 << 18  # numbers made at once: by the kernel, by its twin
_SEEN = 4  # counts of a column of numbers: missing, unknown, not read, clipped


@cache
def compiled() -> Any:
    """The extension, or None where there is none or DPMPC_NATIVE is off."""
    if os.environ.get("DPMPC_NATIVE", "") == "off":
        return None
    try:
        from dpmpc.records import _rows
    except ImportError:  # installed without a compiler
        return None
    return _rows


@dataclass(frozen=True, eq=False)
class _Tabled:
    """A column each of whose values is one of a few: as the twin has them, and their features (rows, w)."""

    column: Column
    values: NDArray[Any]
    features: Floats


class Rows:
    """Makes rows of what is read, for one thread at a time. `counts` are those of all rows that it has made."""

    def __init__(self, mapping: Mapping, *, ball: bool = True, held_from: int | None = None) -> None:
        """`ball`: as of `Schema.rows`; without it from the place `held_from` on, where rows are held out."""
        self.mapping, self.kernel = mapping, compiled()
        schema = mapping.schema
        self.put, self.norm = schema.writer(ball=ball), schema.norm
        self.evenly = not ball and schema.basis == "additive"
        self.held_from = held_from if schema.basis == "additive" else None
        self.put_held = self.put if self.held_from is None else schema.writer(ball=False)
        self.d = len(schema.feature_names)
        self.counted = {column.name: Counts(column.name) for column in schema.columns}
        self.room: NDArray[Any] = np.empty((0, self.d))
        self.out: NDArray[Any] = np.empty((0, self.d))
        if self.kernel is None:
            return
        self.sources, self.told = list[int](), list[list[int]]()  # which expressions, and what is made of them
        self.constants, self.many = list[Floats](), 0
        self.tables, self.plain = list[_Tabled](), list[tuple[Column, Reader, slice, slice]]()
        self.seen_at, self.ends = list[int](), 0
        at = expression = 0
        for column, reader in zip(schema.columns, mapping.readers, strict=True):
            read, width = slice(expression, expression + len(reader.expressions)), len(column.features)
            if not self._taken(column, reader, read, at):
                self.plain.append((column, reader, read, slice(at, at + width)))
            expression, at = read.stop, at + width
        self.features, self.rows = at, 0
        self.columns = np.array(self.told, dtype=np.int64).reshape(-1)
        self.numbers = np.concatenate([np.zeros(0), *self.constants])
        self.seen = np.zeros(self.ends, dtype=np.int64)

    def _taken(self, column: Column, reader: Reader, read: slice, at: int) -> bool:
        """Whether the kernel writes a column, from feature `at` on."""
        if reader.values or isinstance(column, Categorical):
            table = _table(column, reader)
            self.tables.append(table)
            rows, width = len(table.values), len(column.features)
            self._tell(_CODES, read.start, -1, at, rows, width, 0, 0, rows, [table.features])
            return True
        if isinstance(column, Surveyed):
            middle, half = (column.high - column.low) / 2 + column.low, (column.high - column.low) / 2
            constants = [np.array([column.low, column.high, middle, half]), *_bent(column), np.array(column.kept)]
            other = read.start + 1 if len(reader.expressions) > 1 else -1
            flags = len(column.knots), len(column.kept), int(column.number), int(column.missing)
            self._tell(_NUMBERS, read.start, other, at, *flags, _SEEN, constants)
        elif isinstance(column, Numeric) and column.scale != "log":
            constants = [np.array([column.low, column.high, column.high - column.low]), *_bent(column)]
            self._tell(
                _SCALED, read.start, -1, at, len(column.knots), 0, int(column.scale == "unit"), 0, _SEEN, constants
            )
        else:
            return False
        return True

    def _tell(
        self, kind: int, source: int, other: int, at: int, rows: int, width: int, number: int, missing: int, seen: int,
        constants: list[Floats],
    ) -> None:  # fmt: skip
        """Notes a column for the kernel."""
        places = [self._source(source), self._source(other) if other >= 0 else -1]
        self.told.append([kind, *places, at, self.many, rows, width, number, missing, self.ends])
        self.seen_at.append(self.ends)
        flat = np.concatenate([np.ravel(part).astype(np.float64) for part in constants])
        self.constants.append(flat)
        self.many, self.ends = self.many + len(flat), self.ends + seen

    def _source(self, expression: int) -> int:
        self.sources.append(expression)
        return len(self.sources) - 1

    def into(self, records: Records, block: Block, labels: Floats, to: Ints) -> None:
        """Puts the records that were read as `block` into `to` (n,), with their labels; nowhere where that is below
        0."""
        if self.kernel is None:
            self._by_twin(records, block, labels, to)
            return
        n = len(labels)
        self.rows += n
        if len(self.room) < n:
            self.room = np.empty((n, self.d))
            self.room[:, self.features :] = 1.0
        X = self.room[:n]
        for column, reader, mine, place in self.plain:
            (values,) = read(block[mine], [reader], [column], self.counted)
            column.write(values, X[:, place])
        sources = tuple(np.ascontiguousarray(block[k]) for k in self.sources)
        self.kernel.features(sources, self.columns, self.numbers, n, self.d, X, self.seen)
        factors = into_ball(X, self.norm, records.X.dtype, evenly=self.evenly)
        if self.held_from is not None:
            even = into_ball(X, self.norm, records.X.dtype, evenly=True)
            factors = np.where(to < self.held_from, factors, even)
        single = records.X.dtype == np.float32
        if not records.filed:
            self.kernel.place(X, factors, labels, to, n, self.d, records.X, records.y, single)
            return
        if len(self.out) < n:
            self.out = np.empty((n, self.d), dtype=records.X.dtype)
        y, kept = np.empty(n), to >= 0
        many = int(np.count_nonzero(kept))
        close = np.where(kept, np.cumsum(kept) - 1, -1)  # one after the other, without those that are nowhere
        self.kernel.place(X, factors, labels, close, n, self.d, self.out, y, single)
        records.put(to[kept], self.out[:many], y[:many])

    def _by_twin(self, records: Records, block: Block, labels: Floats, to: Ints) -> None:
        values = read(block, self.mapping.readers, self.mapping.schema.columns, self.counted)
        if len(self.room) < len(labels):
            self.room = np.empty((len(labels), self.d), dtype=records.X.dtype)
        X = self.room[: len(labels)]
        self.put(values, X)
        if self.held_from is not None and (held := to >= self.held_from).any():
            even = np.empty((int(held.sum()), self.d), dtype=X.dtype)
            self.put_held([part[held] for part in values], even)
            X[held] = even
        y, kept = zeroed(X, labels), to >= 0
        if not kept.all():
            to, X, y = to[kept], X[kept], y[kept]
        records.put(to, X, y)

    @property
    def at_once(self) -> int:
        """How many rows it is quickest to make at once: they stay in a core's cache while their columns are written."""
        return max(64, (_TWINS if self.kernel is None else _STEP) // max(1, self.d))

    @property
    def counts(self) -> dict[str, Counts]:
        """Of each column, what did not fit."""
        if self.kernel is None:
            return self.counted
        tables, found = iter(self.tables), dict(self.counted)
        plain = {column.name for column, *_ in self.plain}
        columns = [column for column in self.mapping.schema.columns if column.name not in plain]
        for column, told, begin in zip(columns, self.told, self.seen_at, strict=True):
            if told[0] == _CODES:
                table = next(tables)
                found[column.name] = _tabled_counts(table, self.seen[begin : begin + len(table.values)])
                continue
            missing, unknown, unread, clipped = map(int, self.seen[begin : begin + _SEEN])
            found[column.name] = Counts(column.name, self.rows, missing, unknown, clipped, unread)
            if isinstance(column, Surveyed):
                found[column.name].of_survey(column)
        return found


def _bent(column: Numeric | Surveyed) -> list[Floats]:
    """The knots of a column, their distances, and the functions at each."""
    knots = np.array(column.knots)
    return [knots, np.diff(knots), values_at_knots(len(knots))] if column.knots else []


def _table(column: Column, reader: Reader) -> _Tabled:
    """Every value that a column of few has, those of no spelling last: -1 of the reader is the last row."""
    if reader.values:
        values = beside(list(reader.values)) if isinstance(column, Surveyed) else reader.values[0]
    else:
        assert isinstance(column, Categorical)
        values = np.array([*range(len(column.values)), -2, -1], dtype=np.int32)  # unknown, missing
    fitting = counted(Counts(column.name), column, values)
    features = np.empty((len(values), len(column.features)))
    column.write(fitting, features)
    return _Tabled(column, values, features)


def _tabled_counts(table: _Tabled, seen: Ints) -> Counts:
    """The counts of a column each of whose values was seen so often."""
    total = Counts(table.column.name)
    for k, times in enumerate(seen.tolist()):
        one = Counts(table.column.name)
        counted(one, table.column, table.values[k : k + 1])
        total.add(one, times)
    return total
