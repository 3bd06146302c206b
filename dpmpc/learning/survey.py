"""Private preprocessing: one noisy release from which ranges, centres, scales and category lists are made.

Without public bounds the constants of the preprocessing are somebody's values. Here owners first send one vector of
counts:

- a *number* v falls into one cell: missing, zero, or (sign, octave) with 2^k <= |v| < 2^(k+1). The cell counts it,
  and holds two moments of its place t in [-1, 1) in the octave, t and P2(t) = (3 t^2 - 1)/2, each times MOMENT:
  enough for means and variances that are exact but for the noise. Octaves run over a public range, so no bound is
  asked for.
- a *text* falls into one of B hashed buckets (`intake.hashing`). What is kept is a bucket's number: texts are never
  sent. A column of texts has both cells and buckets, and every value one place, so that numbers among texts count.

A column whose range is public is clipped to it before it is counted, and only octaves of that range are read.

The sum over all records, with Gaussian noise on it, is opened once; all else is post-processing (`findings`). What is
found is the same on every processor: each operation is one that IEEE 754 rounds correctly (+, -, *, /, square roots,
powers of two), sums are `math.fsum`'s, which rounds once, and the one quantile of the normal law is worked out by
MPFR, which rounds every function correctly. No matrix product, whose order of additions is a library's own, and no
other elementary function.

Guarantees: a record changes one place of each column for another. In a number's cells its part of the vector has
squared norm 1 + MOMENT^2 (t^2 + P2(t)^2) <= 1 + 2 MOMENT^2 = 9/8 (t^2 + P2^2 grows to 2 at |t| = 1: P2 in [-1/2, 1]),
a bucket's has 1, and two different places are orthogonal; within one cell the counts cancel. So two records are
sqrt(9/4 a) apart at most with a columns (`spread`), which a test attains in the limit t -> 1. A column that counts
twice (`Survey.twice`: a number that is predicted, whose range scales every error) has its coordinates sent times 2, so
that a is the columns and three more; divided by 2 again, its noise is half. Column names, which of them hold texts, and
the number of records are public. The guarantee covers the thresholds too: which cells exist does not depend on records,
so that no delta is spent on them; a list of *texts* would have to pay for texts that one record
alone holds.
"""

import math
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpmpc.errors import UsageError
from dpmpc.intake.hashing import BUCKETS, bucket_sql
from dpmpc.lazy import dataclass
from dpmpc.learning.quantile_of_noise import upper_quantile
from dpmpc.learning.source import PART, Source, of_means
from dpmpc.learning.survey_numbers import (
    CELLS,
    MOMENT,
    NEAR,
    NUMBER,
    WIDEST,
    Summary,
    cells_of,
    count_numbers,
    summary_of,
    window,
)
from dpmpc.learning.survey_words import CODE, CODES, LETTERS, WEIGHT, Name, add_codes, names_of
from dpmpc.privacy.checks import check_count, check_nonnegative
from dpmpc.privacy.sensitivity import Sensitivity, Weights, arithmetic_bound, owner_weights

if TYPE_CHECKING:
    from dpmpc.intake.table import Table

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FALSE_ALARMS = 1e-3  # expected number of cells kept by noise alone, over all columns
LONE_ALARMS = 1e-7  # as much, of cells that alone would set the scale of a column
TWICE = 2.0  # a range of what is predicted that is too wide scales all errors; of a feature it costs that feature
MANY = 6  # columns from which on that is done: the noise of the others grows by less than a quarter
_BLOCK = 1 << 16  # records that are added up at once
_AHEAD = 2  # such blocks that each core has begun
_FEW = 16  # owners whose sums are made of every block, whether it has records of them or not
_AT_ONCE = 1 << 24  # numbers of owners' vectors that are held at once
WHOLE = 0.5  # of the records: so many numbers make a column of which nothing is known one of numbers


@dataclass(frozen=True)
class Survey(Source):
    """What is asked of every record; public. `numbers`: columns of numbers; `texts`: columns of texts, or of both, or
    of which nothing is known; `buckets`: of each of those; `ranges`: (column, low, high) of numbers, where public.
    `twice`: columns whose coordinates are sent times TWICE, for half the noise of the others: what is predicted.
    `words`: those of `texts` whose buckets carry the code of their texts (`survey_words`), behind all other cells.
    """

    KIND: ClassVar[str] = "survey"

    numbers: tuple[str, ...]
    texts: tuple[str, ...] = ()
    buckets: int = BUCKETS
    ranges: tuple[tuple[str, float, float], ...] = ()
    twice: tuple[str, ...] = ()
    words: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_count("the number of buckets", self.buckets)
        if not self.names:
            raise UsageError("a survey asks about columns; none were named; name at least one", code="missing")
        if len(set(self.names)) < len(self.names):
            raise UsageError(
                f"a survey asks once about each column; got {', '.join(self.names[:8])}; name each once", code="over"
            )
        ranges = tuple((str(name), float(low), float(high)) for name, low, high in self.ranges)
        if not all(name in self.numbers and -WIDEST <= low < high <= WIDEST for name, low, high in ranges):
            raise UsageError(f"ranges of a survey are low < high of its numbers; got {ranges[:4]}; mend them")
        object.__setattr__(self, "ranges", ranges)
        object.__setattr__(self, "twice", tuple(map(str, self.twice)))
        if len(set(self.twice)) < len(self.twice) or not set(self.twice) <= set(self.names):
            raise UsageError(
                f"a survey asks for columns twice that it asks for; got {self.twice[:4]}; mend them", code="unique"
            )
        object.__setattr__(self, "words", tuple(map(str, self.words)))
        if len(set(self.words)) < len(self.words) or not set(self.words) <= set(self.texts):
            raise UsageError(
                f"words are named of columns of texts, each once; got {self.words[:4]}; mend them", code="type"
            )

    @property
    def names(self) -> tuple[str, ...]:
        """All columns, in the order of their coordinates."""
        return (*self.numbers, *self.texts)

    @property
    def about(self) -> list[str]:
        return [f"surveys {', '.join(self.names)}"]

    @property
    def coordinates(self) -> int:
        return self.counted + len(self.words) * self.buckets * CODE

    @property
    def counted(self) -> int:
        """The coordinates of counts and moments, before those of words."""
        return len(self.numbers) * NUMBER + len(self.texts) * (NUMBER + self.buckets)

    def coded(self, total: Floats, name: str) -> Floats:
        """(buckets * CODE,) the cells of the code of one of `words`, of an opened sum."""
        begin = self.counted + self.words.index(name) * self.buckets * CODE
        return np.asarray(total[begin : begin + self.buckets * CODE] / self.times(name))

    def named(self, total: Floats, noise: float, candidates: Iterable[str]) -> dict[str, dict[int, Name]]:
        """Of each of `words`, bucket -> its name, as an opened sum tells, whose noise has this deviation a coordinate;
        the same on every processor. candidates: public."""
        tried = tuple(candidates)
        found = {}
        for name in self.words:
            mine = noise / self.times(name)
            found[name] = names_of(name, self.filled(total, name), self.coded(total, name), mine, tried)
        return found

    def filled(self, total: Floats, name: str) -> Floats:
        """(buckets,) how many records each bucket of one of `texts` has, of an opened sum."""
        end = len(self.numbers) * NUMBER + (self.texts.index(name) + 1) * (NUMBER + self.buckets)
        return np.asarray(total[end - self.buckets : end] / self.times(name))

    def places(self, name: str) -> int:
        """How many places of texts its column has: buckets, times codes where words are named."""
        return self.buckets * (CODES if name in self.words else 1)

    def times(self, name: str) -> float:
        """What a column's coordinates are multiplied by; a power of two, so that sums are exact as before."""
        return TWICE if name in self.twice else 1.0

    @property
    def clip(self) -> float:
        """The largest norm of one record's vector: what an owner clips its mean to, to be safe from its own
        errors."""
        return math.sqrt((1 + 2 * MOMENT**2) * math.fsum(self.times(name) ** 2 for name in self.names))

    @property
    def spread(self) -> float:
        """How far two records' vectors can lie apart, L2: what 2G is for gradients."""
        return math.sqrt(2.0) * self.clip

    @property
    def sensitivity(self) -> Sensitivity:
        """In L1 a column moves by at most 2 (1 + 2 MOMENT) `times`, with words 2 (1 + 4 WEIGHT); in a cell by `times`.
        In L2 by as much with words as without: 1 + 4 WEIGHT^2 <= 1 + 2 MOMENT^2."""
        return Sensitivity(2 * self._length, self.spread, max(map(self.times, self.names)))

    @property
    def _length(self) -> float:
        """The largest L1 norm of one record's vector."""
        plain, coded = 1 + 2 * MOMENT, 1 + LETTERS * WEIGHT
        return math.fsum(self.times(name) * (coded if name in self.words else plain) for name in self.names)

    def by_record(self, sizes: Sequence[int], weights: Weights, dimension: int) -> Sensitivity:
        return of_means(self.sensitivity, self.clip, sizes, weights, dimension)

    def by_owner(self, sizes: Sequence[int], weights: Weights, dimension: int) -> Sensitivity:
        """All records of an owner replaced: its mean lies in the convex hull of records' vectors, no wider than
        these."""
        most = float(owner_weights(sizes, weights).max())
        doubles = arithmetic_bound(self.clip, sizes, weights).within(dimension)
        return (self.sensitivity * most).within(dimension) + doubles

    def by_presence(self, sizes: Sequence[int], weights: Weights, dimension: int) -> Sensitivity:
        absent = Sensitivity(self._length, self.clip, self.sensitivity.linf)  # against the zero vector
        return of_means(absent, self.clip, sizes, weights, dimension)

    def range_of(self, name: str) -> tuple[float, float]:
        """The public range of a column of numbers; all numbers that can be told apart, if there is none."""
        return next(((low, high) for each, low, high in self.ranges if each == name), (-math.inf, math.inf))

    def to_json(self) -> dict[str, Any]:
        value = super().to_json()
        if not self.words:
            del value["words"]
        return value

    def high(self, noise: float, alarms: float = FALSE_ALARMS) -> float:
        """What a count must exceed to stand out of noise of this deviation a coordinate; `alarms`: so many cells do by
        noise alone, over all columns."""
        cells = len(self.names) * CELLS + len(self.texts) * self.buckets
        return noise * upper_quantile(min(0.5, alarms / cells))

    def most_kept(self, records: int, noise: float) -> int:
        """The most buckets of one column that are kept: as many as can stand out, whose counts add up to that of all
        records; `records`: 0 where their number is private, and then as many as do."""
        high = self.high(noise)
        return self.buckets if not records or high * self.buckets <= records else max(1, math.floor(records / high))

    def most_features(self, records: int, noise: float, knots: int = 0) -> int:
        """The most features that its columns can come to, with so many knots to a number."""
        return (2 + max(0, knots - 1)) * len(self.names) + self.most_kept(records, noise) * len(self.texts)

    def encode(self, columns: Mapping[str, Floats]) -> Floats:
        """(coordinates,) the sum over the records of `columns`: name -> (n, 2) numbers and buckets, as a
        `records.schema.Surveyed` column reads them, with words as many buckets as `places`. Secret. Errors: a column
        that is missing."""
        for name in self.names:
            if name not in columns:
                raise UsageError(
                    f"a survey needs its columns; '{name}' is not in the data; add it or leave it out", code="column"
                )
        pairs = [(columns[name][:, 0], columns[name][:, 1]) for name in self.names]
        total: Floats = self._sums(pairs, np.zeros(len(pairs[0][0]), dtype=np.int64), 1)[0]
        return total

    def _sums(
        self, columns: Sequence[tuple["Floats | _CodedCells", Floats | None]], group: Ints, groups: int
    ) -> Floats:
        """(groups, coordinates) the sum over each group's records of `columns`: numbers and buckets (None: no texts)
        of each name. `group`: -1 for a record of none. Every sum is added up in the records' order, whatever the other
        groups hold. Where there is a kernel it gives the same bits."""
        if self.words:
            return self._with_words(columns, group, groups)
        from dpmpc.records.kernel import compiled  # parties have no records

        if (kernel := compiled()) is None:
            return self._by_twin([(_decoded(values), place) for values, place in columns], group, groups)
        total, at = np.zeros((groups, self.coordinates)), 0
        for name, (values, place) in zip(self.names, columns, strict=True):
            buckets = self.buckets if name in self.texts else 0
            if isinstance(values, _CodedCells):
                kernel.coded_cells(values.codes, *values.cells, group, total, at, self.coordinates, groups)
            else:
                flat = [None if each is None else np.ascontiguousarray(each) for each in (values, place)]
                ends = self.range_of(name)
                kernel.cells(*flat, group, len(group), *ends, buckets, total, at, self.coordinates, groups)
            if (times := self.times(name)) != 1.0:
                total[:, at : at + NUMBER + buckets] *= times
            at += NUMBER + buckets
        return total

    def _with_words(
        self, columns: Sequence[tuple["Floats | _CodedCells", Floats | None]], group: Ints, groups: int
    ) -> Floats:
        """The sums without words, and behind them the codes of each column that has them."""
        plain, coded = replace(self, words=()), dict[str, Floats]()
        parts: list[tuple[Floats | _CodedCells, Floats | None]] = []
        for name, (values, place) in zip(self.names, columns, strict=True):
            if name not in self.words:
                parts.append((values, place))
                continue
            added = np.zeros((groups, self.buckets * CODE))
            if place is not None and not isinstance(values, _CodedCells):
                text = np.isinf(values) & (place >= 0)
                mine = text & (group >= 0)
                add_codes(added, place[mine].astype(np.int64), group[mine], self.buckets)
                place = np.where(text, place % self.buckets, place)
            parts.append((values, place))
            coded[name] = self.times(name) * added
        return np.concatenate([plain._sums(parts, group, groups), *(coded[name] for name in self.words)], axis=1)

    def _by_twin(self, columns: Sequence[tuple[Floats, Floats | None]], group: Ints, groups: int) -> Floats:
        """The same by NumPy."""
        if not (within := group >= 0).all():
            group = group[within]
            columns = [(v[within], None if place is None else place[within]) for v, place in columns]
        parts = []
        for name, (values, place) in zip(self.names, columns, strict=True):
            odd = np.isinf(values)
            numbers, mine = np.where(odd, np.nan, values) if odd.any() else values, group
            text = odd & (place >= 0) if place is not None else None
            if text is not None and text.any():
                numbers, mine = numbers[~text], group[~text]
            times = self.times(name)
            parts.append(times * count_numbers(np.clip(numbers, *self.range_of(name)), mine, groups))
            if name in self.texts:
                at = np.zeros(0, dtype=np.int64)
                if text is not None and place is not None:
                    at = group[text] * self.buckets + place[text].astype(np.int64)
                filled = np.bincount(at, minlength=groups * self.buckets)
                parts.append(times * filled.reshape(groups, self.buckets).astype(np.float64))
        return np.concatenate(parts, axis=1)

    def means(self, table: "Table", owner: Ints, sizes: Sequence[int]) -> Iterator[Floats]:
        """As `Source.means`: one reading of the table for some owners at a time."""
        from dpmpc.intake.staging import held_where_few  # which brings a database; parties have no records

        at_once = max(1, _AT_ONCE // self.coordinates)
        with held_where_few(table, self.names) as own:
            for first in range(0, len(sizes), at_once):
                some = sizes[first : first + at_once]
                total = np.zeros((len(some), self.coordinates))
                yield self.mean_of(sum(self.sums(own, owner - first, len(some)), total), some)

    def sums(self, table: "Table", owner: Ints, owners: int) -> Iterator[Floats]:
        """As `Source.sums`; within a term, `_BLOCK` records are added up at once."""
        from dpmpc.records.ordered_pool import in_order
        from dpmpc.records.spelled import read_columns, readers  # which bring a database; parties have no records

        each = list(readers(table, {name: partial(self._asked, name) for name in self.names}).values())

        cells = dict[int, tuple[NDArray[np.int32], Floats]]()  # of each column by codes, those of its values

        def read(k: int, block: list[NDArray[Any]]) -> tuple[Floats | _CodedCells, Floats | None]:
            if (coded := each[k].codes(block)) is not None and coded.values is not None:
                if k not in cells:
                    values = np.where(np.isinf(coded.values), np.nan, coded.values)
                    cells[k] = cells_of(np.clip(values, *self.range_of(self.names[k])))
                return _CodedCells(coded.codes, coded.values, cells[k]), None
            values, *place = each[k].read(block)
            return values, place[0] if place else None

        def added(found: list[list[NDArray[Any]]], mine: Ints) -> tuple[int, Ints, Floats]:
            group = np.where(mine < owners, mine, -1).astype(np.int64, copy=False)  # owners are four bytes a record
            present = np.arange(owners)
            if owners > _FEW:  # a block has records of some of them
                within = group >= 0
                present, group[within] = np.unique(group[within], return_inverse=True)
            columns = [read(k, block) for k, block in enumerate(found)]
            return len(mine), present, self._sums(columns, group, len(present))

        def pieces() -> Iterator[tuple[list[list[NDArray[Any]]], Ints]]:
            begin, quick = 0, all(table[name].kind == "number" for name in self.names)
            for found in read_columns(table, each, _BLOCK, quick):
                yield found, owner[begin : begin + len(found[0][0])]
                begin += len(found[0][0])

        sums, seen = np.zeros((owners, self.coordinates)), 0
        for many, present, part in in_order(lambda piece: added(*piece), pieces(), _AHEAD):
            sums[present] += part
            seen += many
            if seen % PART == 0:
                yield sums
                sums = np.zeros_like(sums)
        if seen % PART:
            yield sums

    def _asked(self, name: str, table: "Table") -> list[str]:
        """SQL for a column's number and bucket; numbers are in no bucket."""
        from dpmpc.intake.table import value_sql

        number = value_sql(table, name, read="either")
        return [number] if table[name].kind == "number" else [number, bucket_sql(table, name, self.places(name))]

    def findings(self, total: Floats, records: int, noise: float, narrow: Container[str] = ()) -> "SurveyFindings":
        """What the opened sum says: total (coordinates,), the number of records, the noise's deviation a coordinate.

        `narrow`: numbers whose range matters more than their last records, such as what is predicted: an empty cell
        that noise keeps doubles the scale of a target and with it all errors, and that of a feature costs little,
        while a feature whose rare large values are cut off says less."""
        if len(total) != self.coordinates:
            raise UsageError(
                f"this survey has {self.coordinates} coordinates; got {len(total)}; use the same survey", code="shape"
            )
        check_nonnegative("noise", noise)
        found: dict[str, FoundColumn] = {}
        at = 0
        for name in self.names:
            times = self.times(name)
            mine = noise / times
            high, sure = self.high(mine), self.high(mine, LONE_ALARMS)
            row, at = total[at : at + NUMBER] / times, at + NUMBER
            kept: tuple[int, ...] = ()
            filled, number = np.zeros(0), True
            if name in self.texts:
                filled, at = total[at : at + self.buckets] / times, at + self.buckets
                kept = _fullest(filled, high, self.most_kept(records, mine))
                spread = not kept and _spread(row, filled, records)
                number = spread or bool((row[1:CELLS] > high).any())
            near = NEAR if name in narrow else math.inf
            summary = summary_of(row, high, sure, mine, *self.range_of(name), near) if number else None
            missing = bool(row[0] > high)
            held = [*([row[0]] if missing else []), *(filled[k] for k in kept)]
            if not number and len(held) == 1 and 0 < records <= held[0] + high:
                kept, missing = (), False  # all records have the one value, or none
            found[name] = FoundColumn(summary, self.buckets, kept, missing)
        return SurveyFindings(found)


@dataclass(frozen=True, eq=False)
class _CodedCells:
    """A column of numbers by codes, the value of each, and each one's cell and moments."""

    codes: NDArray[Any]
    values: Floats
    cells: tuple[NDArray[np.int32], Floats]


def _decoded(column: Floats | _CodedCells) -> Floats:
    return column.values[column.codes] if isinstance(column, _CodedCells) else column


@dataclass(frozen=True)
class FoundColumn:
    """A column: its numbers, if they stand out; the buckets that do, of how many; whether missing values do."""

    numbers: Summary | None
    buckets: int
    kept: tuple[int, ...]
    missing: bool


@dataclass(frozen=True)
class SurveyFindings:
    """What one release told of every column; public."""

    columns: dict[str, FoundColumn]


def _fullest(filled: Floats, high: float, most: int) -> tuple[int, ...]:
    """The buckets whose counts stand out, the `most` fullest of them, in their order."""
    kept = np.flatnonzero(filled > high)
    return tuple(sorted(int(k) for k in kept[np.argsort(-filled[kept], kind="stable")][:most]))


def _spread(row: Floats, filled: Floats, records: int) -> bool:
    """Whether a column of which nothing stands out is taken for numbers: some neighbouring octaves hold most records.
    The sum of few cells is much less noisy than that of all; where noise alone feigns so many, a column of texts gets a
    number that all its records miss, which costs a coordinate, and a column of numbers would be lost."""
    if not records:
        return math.fsum(row[1:CELLS]) > math.fsum(filled)
    return math.fsum(row[2:CELLS][window(row[2:CELLS])]) > WHOLE * records
