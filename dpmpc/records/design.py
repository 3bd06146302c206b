"""A design matrix that is not written out: what records are kept as, and what linear models need of them.

A record is a *place* a cell, a number each, and a factor. A cell has rows of features, which are public: of a number
the rows of its grid (the ends of its range and its knots), between which all its features are linear; of a category one
row each; one for what is missing, and one of zeros. The place j is row j; j + t, 0 < t < 1, lies between rows j and
j + 1 of a grid: (1 - t) row_j + t row_{j+1}. A record's vector is its factor times the features of all its cells, and
of the intercept. So a score is a sum of look-ups between two rows, and a sum of records one into two rows, of which a
small matrix makes features: 20 numbers of 6 knots are 21 numbers a record instead of 121. A cell that has one of few
places, as of numbers with few figures, is a code of one or two bytes (`Packing`): the same places give the same bits.

Guarantees: a place, rounded to 32 bits where that is asked for, and the factor, which is worked out of the *rounded*
place, are functions of the record alone; so is the exact vector x that they stand for, and |x| <= 1. Proof of that,
with u = 2^-53, C cells of at most w dense features, phi the exact features of all cells, the intercept's too. A feature
is off by 3u times the larger of two rows' at most (1 - t, two products and a sum are rounded), and a cell's row is no
longer than 1.7: 1 for a line, 2 zeta(2) / K for the functions of K knots (`spline_basis`). So all features are off by
5.1u sqrt(C) at most, and as much again is left for what is added to sums of them (`RecordDesign.few`). Squares are
added up in a cell (w of them), then over C cells: a relative error below (w + C + 3)u, half of that in the root. The
computed norm, where it is above `norm`, and `norm` is 1 or more, is thus |phi| at least but for
u (w / 2 + C / 2 + 10.2 sqrt(C) + 9) <= u (w + 2C + 64) of the larger of both, and the factor divides by 1 + 2^-44 k,
where k >= (w + 2C + 64) / 512 and 2^-44 = 512u. Of additive schemas `norm` may be below 1: it is 1/2 sqrt(C) at least,
and each term of sqrt(C) is then 10.2u.

The kernels are in rows.c; NumPy twins beside them give the same bits: every order of additions is stated. What is asked
of `Written` rows and of these differs by rounding alone.
"""

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmpc.lazy import cached_property, dataclass
from dpmpc.records import kernel
from dpmpc.records.columns import Categorical, Column, Date, Numeric, Surveyed

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Places = NDArray[np.float64] | NDArray[np.float32] | NDArray[np.uint8]

MOST_CODES = 1 << 16  # of a cell, in two bytes

RUN = 64  # records whose sums are made one by one before they are added up, as rows.c has it

Read = Callable[[NDArray[Any]], tuple[Floats, Ints]]


@dataclass(frozen=True, eq=False)
class Cell:
    """One number of a record, and what it decides.

    `at`: the first of its features. `grid` (G,): rising positions, whose rows are the first of `dense` (R, w); then
    come the 0/1 features of `singles` rows, and one of zeros. `read`: of a column's values their positions (n,) on the
    grid, NaN for those beside it, and the rows (n,) of these.
    """

    column: int
    at: int
    grid: Floats
    dense: Floats
    singles: int
    read: Read

    @property
    def nothing(self) -> int:
        """The row of zeros."""
        return len(self.dense) + self.singles

    def places(self, values: NDArray[Any]) -> Floats:
        """(n,) the places of a column's values."""
        at, row = self.read(values)
        there = np.isfinite(at)
        if not len(self.grid) or not there.any():
            return row.astype(np.float64)
        return np.where(there, placed(np.where(there, at, self.grid[0]), self.grid), row)


@dataclass(frozen=True, eq=False)
class Packing:
    """How places are kept in `size` bytes a record, one cell after the other: a code of one or two bytes where a cell
    has one of few places, else the place itself. `tables`: the place of each code, None where there are no codes."""

    tables: tuple[Floats | None, ...]
    single: bool  # whether places are of 32 bits, those of codes too

    @cached_property
    def fields(self) -> Ints:
        """(C, 4) of each cell, for the kernel: its first byte, how many, its first code among all, how many."""
        told, at, first = list[list[int]](), 0, 0
        for table in self.tables:
            many = 0 if table is None else len(table)
            if table is None:
                size = 4 if self.single else 8
            else:
                size = 1 if many <= 1 << 8 else 2
            told.append([at, size, first, many])
            at, first = at + size, first + many
        return np.array(told, dtype=np.int64).reshape(-1, 4)

    @property
    def size(self) -> int:
        """How many bytes a record has."""
        return int(self.fields[:, 1].sum())

    @cached_property
    def of_codes(self) -> Floats:
        """The place of each code of each cell, one after the other."""
        return np.concatenate([np.zeros(0), *(table for table in self.tables if table is not None)])

    def field(self, P: Places, k: int) -> NDArray[Any]:
        """(n,) what records have of a cell: codes, or places."""
        at, size, _, _ = self.fields[k].tolist()
        kind: Any = {1: np.uint8, 2: np.uint16, 4: np.float32, 8: np.float64}[size]
        found: NDArray[Any] = np.ascontiguousarray(P[:, at : at + size]).view(kind)[:, 0]
        return found

    def places(self, P: Places, k: int) -> Floats:
        """(n,) the places of a cell."""
        table, found = self.tables[k], self.field(P, k)
        places: Floats = found.astype(np.float64) if table is None else table[found]
        return places


def placed(values: Floats, grid: Floats) -> Floats:
    """(n,) the places of positions on a grid; one beyond an end is the end."""
    if len(grid) == 1:
        return np.zeros(len(values))
    held = np.clip(values, grid[0], grid[-1])
    left = np.zeros(len(values), dtype=np.intp)
    for knot in grid[1:-1]:  # few: quicker than a search
        left += held >= knot
    with np.errstate(over="ignore", invalid="ignore"):
        share = (held - grid.take(left)) / np.diff(grid).take(left)
    return np.asarray(left + np.where(share < 1.0, share, 1.0), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class RecordDesign:
    """The cells of a schema's columns, in order; `d` features, the last the intercept where there is one. `norm`: what
    rows are divided by, but for longer ones; `evenly`: without that exception where `ball` is not asked for."""

    cells: tuple[Cell, ...]
    d: int
    intercept: bool
    norm: float
    evenly: bool
    told: Ints  # of each cell, for the kernel: at, R, w, singles, its first row among all, its first number
    tables: Floats  # the dense rows of all cells, each with one of zeros after them
    packing: Packing | None = None  # of the records; None: numbers (n, width)

    def packed(self, tables: Sequence[Floats | None], single: bool) -> "RecordDesign":
        """The same of records that are kept as codes where a cell has one of few places, which are given; rounded to 32
        bits where `single`."""
        if all(table is None or len(table) > MOST_CODES for table in tables):
            return self
        few = (None if table is None or len(table) > MOST_CODES else table for table in tables)
        kind = np.float32 if single else np.float64
        held = tuple(None if table is None else table.astype(kind).astype(np.float64) for table in few)
        return replace(self, packing=Packing(held, single))

    @property
    def width(self) -> int:
        """How many places a record has."""
        return len(self.cells)

    @property
    def slots(self) -> int:
        """How many rows all cells have, each with one more, which no place reaches."""
        return sum(cell.nothing + 2 for cell in self.cells)

    def places(self, values: Sequence[NDArray[Any]]) -> Floats:
        """(n, width) the places of records with these values or codes, one array a column."""
        P = np.empty((len(values[0]), self.width))
        for k, cell in enumerate(self.cells):
            P[:, k] = cell.places(values[cell.column])
        return P

    @property
    def shrink(self) -> float:
        """What factors are made smaller by: the exact norm is at most 1 in spite of rounding."""
        widest = max((cell.dense.shape[1] for cell in self.cells), default=0)
        return 1.0 - 2.0**-44 * -(-(2 * self.width + widest + 64) // 512)

    @cached_property
    def few(self) -> int:
        """Sums of fewer records are to be made of written rows.

        What a record adds to a sum's slots are two rounded numbers a cell, functions of the record and its coefficient
        alone: the vector that they stand for is at most the coefficient long (`shrink` has room for their rounding). So
        only additions count. A slot's sum of n records in runs of RUN is off by (RUN + n / RUN) u at most, and what R
        rows make of it by R + 4 more, of the sum of the numbers' *sizes*: in the vector's norm that is rho times the
        records' norms, where rho^2 = 1 + sum B^2 / norm^2, over cells of numbers, whose rows are no longer than B:
        between two rows that point apart a vector is short, and its parts are not. With rho < RUN all that is below n u
        for n >= rho (RUN + R + 8) / (1 - rho / RUN).
        """
        longest = [float(np.square(cell.dense).sum(axis=1).max()) for cell in self.cells if len(cell.dense)]
        rho = float(np.sqrt(1.0 + sum(longest) / self.norm**2))
        if rho >= 0.9 * RUN:
            return 1 << 62
        most = max((len(cell.dense) for cell in self.cells), default=0)
        return int(np.ceil(rho * (RUN + most + 8) / (1 - rho / RUN)))

    def factors(self, P: Places, *, ball: bool = True) -> Floats:
        """(n,) what records are multiplied by, to lie in the unit ball; without `ball`, for predictions by a model that
        is there, rows of an additive schema are all divided by `norm`."""
        if not ball and self.evenly:
            return np.full(len(P), self.shrink / self.norm)
        return np.asarray(self.shrink / np.maximum(self.norm, np.sqrt(self.squares(P))))

    def squares(self, P: Places) -> Floats:
        """(n,) the squared norms of the features: cell by cell, of each its squares one after the other."""
        found = np.empty(len(P))
        if compiled := kernel.compiled():
            compiled.squares(*self._said(P), found)
            return found
        found[:] = float(self.intercept)
        for k in range(self.width):
            found += self._squares_of(k, *self._split(P, k))
        return found

    def _squares_of(self, k: int, row: Ints, share: Floats) -> Floats:
        """(n,) the squared norms of a cell's features."""
        cell, part = self.cells[k], np.zeros(len(row))
        for column in self._between(k, row, share).T:
            part += column * column
        return np.where((row >= len(cell.dense)) & (row < cell.nothing), 1.0, part)

    @cached_property
    def _squares_of_codes(self) -> Floats | None:
        """The same of each code of each cell; None where a cell has none."""
        tables = () if self.packing is None else self.packing.tables
        each = [self._squares_of(k, *_split(table)) for k, table in enumerate(tables) if table is not None]
        return np.concatenate([np.zeros(0), *each]) if len(each) == len(tables) else None

    def rows(self, P: Places, factors: Floats) -> Floats:
        """(n, d) the records' vectors, written out."""
        X = np.empty((len(P), self.d))
        if compiled := kernel.compiled():
            compiled.rows(*self._said(P), np.ascontiguousarray(factors), X)
            return X
        X[:] = 0.0
        for k, cell in enumerate(self.cells):
            row, share = self._split(P, k)
            width, inside = cell.dense.shape[1], row < len(cell.dense)
            values = self._between(k, row, share) * factors[:, None]
            X[:, cell.at : cell.at + width] = np.where(inside[:, None], values, 0.0)
            one = np.flatnonzero(~inside & (row < cell.nothing))
            X[one, cell.at + width + row[one] - len(cell.dense)] = factors[one]
        if self.intercept:
            X[:, -1] = factors
        return X

    def scores(self, P: Places, factors: Floats, theta: Floats) -> Floats:
        """(n,) the scores x . theta, or (n, K) for theta with d K numbers: each has the same bits in every block."""
        K = max(1, len(theta) // max(1, self.d))
        by_feature = np.ascontiguousarray(theta, dtype=np.float64).reshape(self.d, K)
        found = np.empty((len(P), K))
        if compiled := kernel.compiled():
            of_codes = self._of_codes(by_feature) if K == 1 else None
            compiled.scores(*self._said(P), K, np.ascontiguousarray(factors), by_feature, found, of_codes)
        else:
            found[:] = by_feature[-1] if self.intercept else 0.0
            slots = self._looked_up(by_feature)
            for k in range(self.width):
                row, share = self._split(P, k)
                row = row + int(self.told[k, 4])
                found += slots[row] + (slots[row + 1] - slots[row]) * share[:, None]
            found *= factors[:, None]
        return found[:, 0] if K == 1 else found

    def _of_codes(self, by_feature: Floats) -> Floats | None:
        """(codes,) what each code of each cell adds to the score; None where not all cells have codes. Tiles are asked
        for one theta after another: what the last one gave is at hand."""
        if self.packing is None or self._squares_of_codes is None:
            return None
        key, (said, found) = by_feature.tobytes(), self._last[0]
        if key != said:
            slots, found = self._looked_up(by_feature)[:, 0], np.empty(len(self.packing.of_codes))
            for (_, _, first, many), (*_, slot, _), table in zip(
                self.packing.fields.tolist(), self.told.tolist(), self.packing.tables, strict=True
            ):
                assert table is not None
                row, share = _split(table)
                row = row + slot
                found[first : first + many] = slots[row] + (slots[row + 1] - slots[row]) * share
            self._last[0] = key, found  # one value: threads may ask at once
        return found

    @cached_property
    def _last(self) -> list[tuple[bytes, Floats]]:
        return [(b"", np.zeros(0))]

    def sums(self, P: Places, factors: Floats, coefficients: Floats, cuts: Ints) -> Floats:
        """(m, d) row k: the sum of coefficients[i] times record i over records cuts[k] : cuts[k + 1]; (m, d K) for
        coefficients (n, K). Those of RUN records are added up one after the other, then the runs' sums.

        Guarantees: of `few` records or more the result is off by (n_k + 1) u n_k times the largest |coefficient| at
        most, as sums of written rows are: `arithmetic_bound` covers it. Proof in `few`.
        """
        K, m = 1 if coefficients.ndim == 1 else coefficients.shape[1], len(cuts) - 1
        each = np.ascontiguousarray(coefficients, dtype=np.float64).reshape(-1, K)
        cuts, found = np.ascontiguousarray(cuts, dtype=np.int64), np.empty((m, self.d, K))
        if compiled := kernel.compiled():
            compiled.sums(*self._said(P), K, np.ascontiguousarray(factors), each, cuts, found)
        else:
            self._summed(P[cuts[0] : cuts[-1]], (each * factors[:, None])[cuts[0] : cuts[-1]], np.diff(cuts), found)
        return found.reshape(m, self.d * K)

    def _summed(self, P: Places, pulls: Floats, sizes: Ints, found: Floats) -> None:
        m, found[:] = len(sizes), 0.0
        runs = -(-sizes // RUN)
        place = np.arange(len(P)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        run, whose = np.repeat(np.cumsum(runs) - runs, sizes) + place // RUN, np.repeat(np.arange(m), runs)

        def added(weights: Floats, row: Ints | int, many: int) -> Floats:
            part = np.bincount(run * many + row, weights, len(whose) * many).reshape(-1, many)
            total = np.zeros((m, many))
            np.add.at(total, whose, part)
            return total

        for o in range(pulls.shape[1]):
            pull = pulls[:, o]
            for k, cell in enumerate(self.cells):
                row, share = self._split(P, k)
                many, width = cell.nothing + 2, cell.dense.shape[1]
                below, above = added(pull * (1.0 - share), row, many), added(pull * share, row, many)
                below[:, 1:] += above[:, :-1]
                for r, line in enumerate(cell.dense):
                    found[:, cell.at : cell.at + width, o] += line * below[:, r, None]
                first = cell.at + width
                found[:, first : first + cell.singles, o] = below[:, len(cell.dense) : cell.nothing]
            if self.intercept:
                found[:, -1, o] = added(pull, 0, 1)[:, 0]

    def _said(self, P: Places) -> tuple[Any, ...]:
        packed = None
        if self.packing is not None:
            packed = (self.packing.fields, self.packing.of_codes, self._squares_of_codes, self.packing.size)
        single = P.dtype == np.float32
        return self.told, self.tables, self.d, self.intercept, np.ascontiguousarray(P), single, len(P), packed

    def _split(self, P: Places, k: int) -> tuple[Ints, Floats]:
        """The rows below the places of a cell, and how far above they are."""
        return _split(P[:, k] if self.packing is None else self.packing.places(P, k))

    def _between(self, k: int, row: Ints, share: Floats) -> Floats:
        """(n, w) the dense features of a cell's places."""
        dense = np.vstack([self.cells[k].dense, np.zeros((2, self.cells[k].dense.shape[1]))])
        held = np.minimum(row, len(dense) - 2)
        return np.asarray(dense[held] * (1.0 - share)[:, None] + dense[held + 1] * share[:, None])

    def _looked_up(self, theta: Floats) -> Floats:
        slots = np.zeros((self.slots, theta.shape[1]))
        for (at, dense, width, singles, slot, _), cell in zip(self.told.tolist(), self.cells, strict=True):
            for q in range(width):
                slots[slot : slot + dense] += cell.dense[:, q, None] * theta[at + q]
            slots[slot + dense : slot + dense + singles] = theta[at + width : at + width + singles]
        return slots


def _split(places: Places) -> tuple[Ints, Floats]:
    """The rows below places, and how far above they are."""
    row = places.astype(np.int64)
    return row, places.astype(np.float64) - row


@dataclass(frozen=True, eq=False)
class Compact:
    """Some records by their places (n, width) and factors (n,): a matrix (n, d) that is not written out."""

    design: RecordDesign
    places: Places  # or what stands for them (`Packing`), (n, size)
    factors: Floats

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.places), self.design.d

    def scores(self, theta: Floats) -> Floats:
        """As `RecordDesign.scores`."""
        return self.design.scores(self.places, self.factors, theta)

    def sums(self, coefficients: Floats, cuts: Ints) -> Floats:
        """As `RecordDesign.sums`."""
        return self.design.sums(self.places, self.factors, coefficients, cuts)

    def taken(self, rows: Ints) -> "Compact":
        """These rows."""
        return Compact(self.design, self.places[rows], self.factors[rows])

    def part(self, begin: int, end: int) -> "Compact":
        """Rows begin ... end - 1."""
        return Compact(self.design, self.places[begin:end], self.factors[begin:end])

    def rows(self) -> Floats:
        """(n, d) the rows, written out."""
        return self.design.rows(self.places, self.factors)


def design(columns: Sequence[Column], intercept: bool, norm: float, evenly: bool) -> RecordDesign:
    """The design of these columns."""
    cells, told, numbers, at, slot, many = list[Cell](), list[list[int]](), list[Floats](), 0, 0, 0
    for k, column in enumerate(columns):
        for grid, dense, singles, read in _cells(column):
            if dense.shape[1] + singles == 0:
                continue
            cells.append(Cell(k, at, grid, dense, singles, read))
            told.append([at, len(dense), dense.shape[1], singles, slot, many])
            numbers += [np.ravel(dense), np.zeros(dense.shape[1])]
            at, slot = at + dense.shape[1] + singles, slot + len(dense) + singles + 2
            many += (len(dense) + 1) * dense.shape[1]
    table = np.concatenate([np.zeros(0), *numbers])
    meta = np.array(told, dtype=np.int64).reshape(-1, 6)
    return RecordDesign(tuple(cells), at + intercept, intercept, norm, evenly, meta, table)


_Part = tuple[Floats, Floats, int, Read]
_NO_GRID = np.zeros(0)


def _cells(column: Column) -> list[_Part]:
    """Grid, dense rows, how many 0/1 features, and reading, of each cell of a column."""
    match column:
        case Numeric():
            return [_number(column)]
        case Surveyed():
            return [_surveyed(column)]
        case Categorical():
            many = len(column.values)
            return [(_NO_GRID, np.zeros((0, 0)), many, functools.partial(_codes, nothing=many))]
        case Date():
            return [_date(column, part) for part in column.parts]


def _features(column: Numeric | Surveyed, values: Floats, width: int) -> Floats:
    X = np.empty((len(values), width))
    column.write(values, X)
    return X


def _number(column: Numeric) -> _Part:
    grid, values = _grid(column.position, [column.low, column.high, *column.knots])
    dense = _features(column, np.array([*values, np.nan]), len(column.features))
    beside = len(grid)

    def read(values: NDArray[Any]) -> tuple[Floats, Ints]:
        return column.position(values), np.full(len(values), beside)

    return grid, dense, 0, read


def _surveyed(column: Surveyed) -> _Part:
    singles, dense, grid = len(column.kept) + column.missing, np.zeros((0, 0)), _NO_GRID
    if column.number:
        grid, values = _grid(np.asarray, [column.low, column.high, *column.knots])
        pairs = np.column_stack([values, np.full(len(values), -1.0)])
        width = len(column.features) - singles
        dense = _features(column, pairs, width + singles)[:, :width].copy()
    first, nothing = len(dense), len(dense) + singles

    def read(values: NDArray[Any]) -> tuple[Floats, Ints]:
        numbers, bucket = values[:, 0], values[:, 1]
        row, text = np.full(len(values), nothing), np.isinf(numbers)
        for k, kept in enumerate(column.kept):
            row[text & (bucket == kept)] = first + k
        row[column.gone(values)] = nothing - column.missing
        return numbers if column.number else np.full(len(values), np.nan), row

    return grid, dense, singles, read


def _grid(position: Callable[[Floats], Floats], values: list[float]) -> tuple[Floats, Floats]:
    """Rising positions of these values, and one value of each."""
    known = np.unique(values)
    grid, first = np.unique(position(known), return_index=True)
    return np.asarray(grid, dtype=np.float64), known[first]


def _codes(values: NDArray[Any], nothing: int) -> tuple[Floats, Ints]:
    return np.full(len(values), np.nan), np.where(values < 0, nothing, values).astype(np.int64)


def _date(column: Date, part: str) -> _Part:
    if part in ("month", "weekday"):
        many = 12 if part == "month" else 7

        def read_code(values: NDArray[Any]) -> tuple[Floats, Ints]:
            return _codes(column.code(part, values), many)

        return _NO_GRID, np.zeros((0, 0)), many, read_code
    ends = (column.low, column.high) if part == "days" else (0.0, 1.0)

    def read(values: NDArray[Any]) -> tuple[Floats, Ints]:
        at = np.where(np.isfinite(values), values, np.nan)
        return at if part == "days" else at - np.floor(at), np.full(len(values), 2)

    return np.array(ends), np.array([[0.0], [1.0], [0.5]]), 0, read


__all__ = ["Cell", "Compact", "Floats", "Places", "RecordDesign", "design", "placed"]
