"""What a database reads of some records, made places of a design in one pass, by a compiled kernel where there is.

The twin is `mapping.read` with `Design.places`: the same bits, and the same counts of what does not fit. A column of
few spellings, of listed categories or of codes that were kept is a table with a place for each, whose codes are what
records are kept as where that is asked for; a number's place is worked out. What the kernel does not know (dates,
logarithms) NumPy does, column by column.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmpc.intake.table import Block, Floats, Ints
from dpmpc.lazy import dataclass
from dpmpc.records import kernel
from dpmpc.records.blocks import Precision, Records
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
    places: tuple[Floats, ...]  # of each of its cells, by code


class Rows:
    """Makes places of what is read, for one thread at a time. `counts` are those of all records that it has made."""

    def __init__(
        self, mapping: Mapping, *, ball: bool = True, held_from: int | None = None, packed: Precision | None = None
    ) -> None:
        """`ball`: as of `Schema.rows`; without it from the place `held_from` on, where records are held out. `packed`:
        the precision of the places of records that are kept as codes where they can be; `design` then says how."""
        self.mapping, self.kernel, self.design = mapping, kernel.compiled(), mapping.schema.design
        columns = mapping.schema.columns
        cells: list[list[tuple[int, Cell]]] = [[] for _ in columns]
        for k, cell in enumerate(self.design.cells):
            cells[cell.column].append((k, cell))
        each, self.sources_of, begin = list[_Tabled | None](), list[slice](), 0
        for column, reader, own in zip(columns, mapping.readers, cells, strict=True):
            part = slice(begin, begin + len(reader.expressions))
            if self.kernel is not None or packed is not None:
                each.append(_tabled(column, reader, own))
            self.sources_of.append(part)
            begin = part.stop
        self.tabled = each
        if packed is not None:
            of_cells: list[Floats | None] = [None] * self.design.width
            for found, own in zip(each, cells, strict=True):
                for (k, _), places in zip(own, [] if found is None else found.places, strict=found is not None):
                    of_cells[k] = places
            self.design = self.design.packed(of_cells, packed == "single")
        self.ball, self.held_from = ball, held_from if mapping.schema.basis == "additive" else None
        self.counted = {column.name: Unfit(column.name) for column in columns}
        self.room = np.empty((0, self._held), dtype=np.uint8)
        self.rows = 0
        if self.kernel is None:
            return
        self.sources, self.told = list[int](), list[list[int]]()  # which expressions, and what is made of them
        self.constants, self.many = list[Floats](), 0
        self.tables, self.plain = list[_Tabled](), list[tuple[Column, ColumnReader, slice, list[tuple[int, Cell]]]]()
        self.seen_at, self.ends, self.noted = list[int](), 0, list[Column]()
        for column, reader, part, mine, found in zip(
            columns, mapping.readers, self.sources_of, cells, each, strict=True
        ):
            if not self._taken(column, reader, part, mine, found):
                self.plain.append((column, reader, part, mine))
        self.columns = np.array(self.told, dtype=np.int64).reshape(-1)
        self.numbers = np.concatenate([np.zeros(0), *self.constants])
        self.seen = np.zeros(self.ends, dtype=np.int64)

    @property
    def _held(self) -> int:
        """Bytes of a record's places as they are made: rounded ones are rounded afterwards, but for packed ones."""
        return 8 * self.design.width if self.design.packing is None else self.design.packing.size

    def _taken(
        self, column: Column, reader: ColumnReader, part: slice, cells: list[tuple[int, Cell]], table: _Tabled | None
    ) -> bool:
        """Whether the kernel places a column's values."""
        if table is not None:
            self.tables.append(table)
            many = len(table.values)
            each = [(k, places) for (k, _), places in zip(cells, table.places, strict=True)]
            for k, places in each or [(-1, np.zeros(many))]:
                self._tell(column, _CODES, part.start, -1, k, many, 0, 0, many, [places])
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
        self.told.append([kind, *places, *self._field(to), self.many, rows, kept, missing, self.ends])
        if not self.noted or self.noted[-1] is not column:  # a date has several places, and is counted once
            self.noted.append(column)
            self.seen_at.append(self.ends)
        flat = np.concatenate([np.ravel(part).astype(np.float64) for part in constants])
        self.constants.append(flat)
        self.many, self.ends = self.many + len(flat), self.ends + seen

    def _field(self, cell: int) -> list[int]:
        """Where records have a cell's place, -1 for no cell, and in how many bytes."""
        if cell < 0:
            return [-1, 0]
        return [8 * cell, 8] if self.design.packing is None else self.design.packing.fields[cell, :2].tolist()

    def _source(self, expression: int) -> int:
        self.sources.append(expression)
        return len(self.sources) - 1

    def into(self, records: Records, block: Block, labels: Floats, to: Ints) -> None:
        """Puts the records that were read as `block` into `to` (n,), with their labels; nowhere where that is below
        0. One without a label is the zero vector."""
        P: NDArray[Any] = self._placed(block, len(labels))
        if self.design.packing is None and records.held.dtype == np.float32:
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

    def _placed(self, block: Block, n: int) -> NDArray[Any]:
        """(n, width) the places of what was read, packed where the design says so; the room is used again."""
        packing, design = self.design.packing, self.design
        if self.kernel is None:
            P = design.places(read(block, self.mapping.readers, self.mapping.schema.columns, self.counted))
            return P if packing is None else self._packed(P, block)
        self.rows += n
        if len(self.room) < n:
            self.room = np.empty((n, self._held), dtype=np.uint8)
        room = self.room[:n]
        for column, reader, part, cells in self.plain:
            (values,) = read(block[part], [reader], [column], self.counted)
            for k, cell in cells:
                at, size = self._field(k)
                kind = np.float64 if size == 8 else np.float32
                room[:, at : at + size] = cell.places(values).astype(kind)[:, None].view(np.uint8)
        sources = tuple(np.ascontiguousarray(block[k]) for k in self.sources)
        self.kernel.places(sources, self.columns, self.numbers, n, self._held, room, self.seen)
        return room if packing is not None else room.view(np.float64) if design.width else np.empty((n, 0))

    def _packed(self, P: Floats, block: Block) -> NDArray[np.uint8]:
        """(n, size) the same places, as they are kept."""
        assert self.design.packing is not None
        held = np.empty((len(P), self.design.packing.size), dtype=np.uint8)
        for k, cell in enumerate(self.design.cells):
            at, size = self._field(k)
            table = self.tabled[cell.column]
            if size <= 2:
                assert table is not None
                codes = block[self.sources_of[cell.column].start].astype(np.int64)
                found: NDArray[Any] = np.where(codes < 0, codes + len(table.values), codes)
                found = found.astype(np.uint8 if size == 1 else np.uint16)
            else:
                found = P[:, k].astype(np.float64 if size == 8 else np.float32)
            held[:, at : at + size] = found[:, None].view(np.uint8)
        return held

    @property
    def at_once(self) -> int:
        """How many records it is quickest to make at once: they stay in a core's cache while they are placed."""
        return max(64, 8 * (_TWINS if self.kernel is None else _STEP) // max(1, self._held))

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


def _tabled(column: Column, reader: ColumnReader, cells: Sequence[tuple[int, Cell]]) -> _Tabled | None:
    """What a column of few has; None of another."""
    if not reader.values and not isinstance(column, Categorical):
        return None
    values = _table(column, reader)
    fitting = counted(Unfit(column.name), column, values)
    return _Tabled(column, values, tuple(cell.places(fitting) for _, cell in cells))


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
