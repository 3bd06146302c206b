"""What a database reads of some records, made places of a design in one pass, by a compiled kernel where there is.

The twin is `mapping.read` with `Design.places`: the same bits, and the same counts of what does not fit. A column of
few spellings or of listed categories is a table with a place for each; a number's is worked out. What the kernel does
not know (dates, logarithms) NumPy does, column by column.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmpc.intake.table import Block, Floats, Ints
from dpmpc.lazy import dataclass
from dpmpc.records import kernel
from dpmpc.records.blocks import Records
from dpmpc.records.design import Cell
from dpmpc.records.mapping import Mapping, Unfit, beside, counted, read
from dpmpc.records.schema import Categorical, Column, Numeric, Surveyed
from dpmpc.records.spelled import ColumnReader

_CODES, _SURVEYED, _RANGE = range(3)  # kinds of columns, as rows.c has them
_STEP, _TWINS = 1 << 16, 1 << 18  # numbers made at once: by the kernel, by its twin
_SEEN = 4  # counts of a column of numbers: missing, unknown, not read, clipped


@dataclass(frozen=True, eq=False)
class _Tabled:
    """A column each of whose values is one of a few, as the twin has them."""

    column: Column
    values: NDArray[Any]


class Rows:
    """Makes places of what is read, for one thread at a time. `counts` are those of all records that it has made."""

    def __init__(self, mapping: Mapping, *, ball: bool = True, held_from: int | None = None) -> None:
        """`ball`: as of `Schema.rows`; without it from the place `held_from` on, where records are held out."""
        self.mapping, self.kernel, self.design = mapping, kernel.compiled(), mapping.schema.design
        self.ball, self.held_from = ball, held_from if mapping.schema.basis == "additive" else None
        columns = mapping.schema.columns
        self.counted = {column.name: Unfit(column.name) for column in columns}
        self.room = np.empty((0, self.design.width))
        self.rows = 0
        if self.kernel is None:
            return
        self.sources, self.told = list[int](), list[list[int]]()  # which expressions, and what is made of them
        self.constants, self.many = list[Floats](), 0
        self.tables, self.plain = list[_Tabled](), list[tuple[Column, ColumnReader, slice, list[tuple[int, Cell]]]]()
        self.seen_at, self.ends, self.noted = list[int](), 0, list[Column]()
        cells: list[list[tuple[int, Cell]]] = [[] for _ in columns]
        for k, cell in enumerate(self.design.cells):
            cells[cell.column].append((k, cell))
        expression = 0
        for column, reader, mine in zip(columns, mapping.readers, cells, strict=True):
            part = slice(expression, expression + len(reader.expressions))
            if not self._taken(column, reader, part, mine):
                self.plain.append((column, reader, part, mine))
            expression = part.stop
        self.columns = np.array(self.told, dtype=np.int64).reshape(-1)
        self.numbers = np.concatenate([np.zeros(0), *self.constants])
        self.seen = np.zeros(self.ends, dtype=np.int64)

    def _taken(self, column: Column, reader: ColumnReader, part: slice, cells: list[tuple[int, Cell]]) -> bool:
        """Whether the kernel places a column's values."""
        if reader.values or isinstance(column, Categorical):
            values = _table(column, reader)
            fitting = counted(Unfit(column.name), column, values)
            self.tables.append(_Tabled(column, values))
            each: list[tuple[int, Floats]] = [(k, cell.places(fitting)) for k, cell in cells]
            for k, places in each or [(-1, np.zeros(len(values)))]:
                self._tell(column, _CODES, part.start, -1, k, len(values), 0, 0, len(values), [places])
            return True
        (k, cell), many = cells[0] if cells else (-1, None), len(cells)
        grid = np.zeros(0) if cell is None else cell.grid
        if isinstance(column, Surveyed):
            nothing = 0 if cell is None else cell.nothing
            constants = [np.array([column.low, column.high, column.number, nothing]), grid, np.diff(grid)]
            other = part.start + 1 if len(reader.expressions) > 1 else -1
            kept = np.array(column.kept, dtype=np.float64)
            self._tell(
                column, _SURVEYED, part.start, other, k, len(grid), len(kept), nothing - column.missing, _SEEN,
                [*constants, kept],
            )  # fmt: skip
        elif isinstance(column, Numeric) and column.scale != "log":
            constants = [np.array([column.low, column.high]), grid, np.diff(grid)]
            self._tell(column, _RANGE, part.start, -1, k, len(grid), 0, len(grid), _SEEN, constants)
        else:
            return False
        assert many <= 1
        return True

    def _tell(
        self, column: Column, kind: int, source: int, other: int, to: int, rows: int, kept: int, missing: int,
        seen: int, constants: list[Floats],
    ) -> None:  # fmt: skip
        """Notes a column for the kernel."""
        places = [self._source(source), self._source(other) if other >= 0 else -1]
        self.told.append([kind, *places, to, self.many, rows, kept, missing, self.ends])
        if not self.noted or self.noted[-1] is not column:  # a date has several places, and is counted once
            self.noted.append(column)
            self.seen_at.append(self.ends)
        flat = np.concatenate([np.ravel(part).astype(np.float64) for part in constants])
        self.constants.append(flat)
        self.many, self.ends = self.many + len(flat), self.ends + seen

    def _source(self, expression: int) -> int:
        self.sources.append(expression)
        return len(self.sources) - 1

    def into(self, records: Records, block: Block, labels: Floats, to: Ints) -> None:
        """Puts the records that were read as `block` into `to` (n,), with their labels; nowhere where that is below
        0. One without a label is the zero vector."""
        P: NDArray[Any] = self._placed(block, len(labels))
        if records.held.dtype == np.float32:
            P = P.astype(np.float32)  # and all that follows is of the rounded places
        factors = self.design.factors(P, ball=self.ball)
        if self.held_from is not None:
            factors = np.where(to < self.held_from, factors, self.design.factors(P, ball=False))
        gone, kept = np.isnan(labels), to >= 0
        if gone.any():
            factors, labels = np.where(gone, 0.0, factors), np.where(gone, 0.0, labels)
        if not kept.all():
            to, P, factors, labels = to[kept], P[kept], factors[kept], labels[kept]
        records.put(to, P, factors, labels)

    def _placed(self, block: Block, n: int) -> Floats:
        """(n, width) the places of what was read; the room is used again."""
        if self.kernel is None:
            return self.design.places(read(block, self.mapping.readers, self.mapping.schema.columns, self.counted))
        self.rows += n
        if len(self.room) < n:
            self.room = np.empty((n, self.design.width))
        P = self.room[:n]
        for column, reader, part, cells in self.plain:
            (values,) = read(block[part], [reader], [column], self.counted)
            for k, cell in cells:
                P[:, k] = cell.places(values)
        sources = tuple(np.ascontiguousarray(block[k]) for k in self.sources)
        self.kernel.places(sources, self.columns, self.numbers, n, self.design.width, P, self.seen)
        return P

    @property
    def at_once(self) -> int:
        """How many records it is quickest to make at once: they stay in a core's cache while they are placed."""
        return max(64, (_TWINS if self.kernel is None else _STEP) // max(1, self.design.width))

    @property
    def counts(self) -> dict[str, Unfit]:
        """Of each column, what did not fit."""
        if self.kernel is None:
            return self.counted
        tables, found = iter(self.tables), dict(self.counted)
        kinds = {told[-1]: told[0] for told in self.told}
        for column, begin in zip(self.noted, self.seen_at, strict=True):
            if kinds[begin] == _CODES:
                table = next(tables)
                found[column.name] = _tabled_counts(table, self.seen[begin : begin + len(table.values)])
                continue
            missing, unknown, unread, clipped = map(int, self.seen[begin : begin + _SEEN])
            found[column.name] = Unfit(column.name, self.rows, missing, unknown, clipped, unread)
            if isinstance(column, Surveyed):
                found[column.name].of_survey(column)
        return found


def _table(column: Column, reader: ColumnReader) -> NDArray[Any]:
    """Every value that a column of few has, those of no spelling last: -1 of the reader is the last."""
    if reader.values:
        return beside(list(reader.values)) if isinstance(column, Surveyed) else reader.values[0]
    assert isinstance(column, Categorical)
    return np.array([*range(len(column.values)), -2, -1], dtype=np.int32)  # unknown, missing


def _tabled_counts(table: _Tabled, seen: Ints) -> Unfit:
    """The counts of a column each of whose values was seen so often."""
    total = Unfit(table.column.name)
    counted(total, table.column, table.values, seen)
    return total
