"""Records through a schema: blocks of rows in the unit ball and labels, and what did not fit, counted by column."""

import difflib
import math
from collections.abc import Iterator, Sequence
from collections.abc import Mapping as Mapping_
from dataclasses import field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmpc.errors import RecordError, UsageError, number_of, sayable, some
from dpmpc.intake.dictionary import different, lacks
from dpmpc.intake.hashing import bucket_sql
from dpmpc.intake.reading import count_where, literal
from dpmpc.intake.spelling import canonical, stating
from dpmpc.intake.table import Block, Floats, Ints, Table, code_sql, numbers_up_to, value_sql
from dpmpc.lazy import cached_property, dataclass
from dpmpc.records.schema import Categorical, Classes, Column, Date, Labels, Numeric, Range, Schema, Surveyed, Target
from dpmpc.records.spelled import ColumnReader
from dpmpc.records.spelled import readers as readers_of

Ends = tuple[float, float]
NO_ENDS: Ends = (math.inf, -math.inf)
_MOSTLY = 0.9  # a column is mended, not trained on, if so much of it is unknown, clipped or missing


@dataclass(eq=False)
class Unfit:
    """What did not fit into one column's public constants. For the owner's own eyes: it depends on records."""

    name: str
    rows: int = 0
    missing: int = 0
    unknown: int = 0  # values that no category list has
    clipped: int = 0  # numbers or dates outside the range
    unread: int = 0  # texts that are no number, or no date, where one is due: they count as missing
    surveyed: bool = False  # whether what is known of it came out of a survey, which publishes what stands out
    silent: bool = False  # whether that is no value at all: at most how often there is none

    @property
    def warning(self) -> str | None:
        """A line on a column nearly all of whose values do not fit, or None."""
        if self.silent:
            return None
        if self.surveyed and 0 < self.unknown >= _MOSTLY * (self.rows - self.missing):
            return (
                f"column '{self.name}': {self.unknown} of {self.rows} values are none of those that stood out of the "
                "survey's noise, so the model does not tell them apart; check how they are spelled"
            )
        if self.surveyed and 0 < self.unread >= _MOSTLY * (self.rows - self.missing):
            return (
                f"column '{self.name}': {self.unread} of {self.rows - self.missing} values are no numbers, and no word "
                "stood out of the survey's noise, so they count as missing; check how they are spelled; words that "
                "are listed in a schema, or in bounds, are public and are read"
            )
        for count, what in (
            (self.unknown, "unknown"),
            (self.clipped, "clipped"),
            (self.unread, "not read"),
            (self.missing + self.unread, "missing"),
        ):
            if self.rows and count >= _MOSTLY * self.rows:
                where = "check the file, how it spells numbers and dates, and the schema"
                return f"column '{self.name}': {count} of {self.rows} values are {what}; {where}"
        return None

    def of_survey(self, column: Surveyed) -> None:
        """Notes that they are of a column as a survey found it."""
        self.surveyed, self.silent = True, not (column.number or column.kept)

    def add(self, other: "Unfit") -> None:
        """Counts as many more as another has."""
        for name in ("rows", "missing", "unknown", "clipped", "unread"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.surveyed, self.silent = self.surveyed or other.surveyed, self.silent or other.silent

    def add_surveyed(self, column: Surveyed, values: NDArray[Any], times: Ints | None = None) -> None:
        """Counts values (n, 2) of a column as a survey found it. Of numbers or texts of which it published nothing none
        is odd: they are not what it was looking for. `times`: as of `counted`."""
        self.of_survey(column)
        gone = column.gone(values)
        self.missing += _many(gone, times)
        text = np.isinf(values[:, 0]) & ~gone
        if column.kept:
            self.unknown += _many(text & ~np.isin(values[:, 1], column.kept), times)
        elif column.number:
            self.unread += _many(text, times)
        if column.number:
            self.clipped += _many((values[:, 0] < column.low) & ~text, times)
            self.clipped += _many((values[:, 0] > column.high) & ~text, times)


def _many(which: NDArray[np.bool_], times: Ints | None) -> int:
    """How many there are of these, each so many times."""
    return int(np.count_nonzero(which) if times is None else times[which].sum())


@dataclass(eq=False)
class Mapping:
    """A table seen through a schema. `counts` fill up while `blocks` is read."""

    table: Table
    schema: Schema
    labels: bool = True  # whether the target is read too
    whole: bool = False  # whether a quantity beyond the target's range stays beyond it: what is never trained on
    counts: dict[str, Unfit] = field(default_factory=dict)
    misfits: int = 0  # records that count as zero vectors
    ends: Ends = NO_ENDS  # the least and the greatest of the targets that fit
    classes: tuple[int, ...] = ()  # how many of them are of each class, when `targets` has read them

    def __post_init__(self) -> None:
        absent = [column.name for column in self.schema.columns if column.name not in self.table]
        if absent:
            plain = {name.casefold(): name for name in self.table.names}
            near = difflib.get_close_matches(absent[0].casefold(), plain, 1, 0.7)
            hint = f" (is '{plain[near[0]]}' '{absent[0]}'?)" if near else ""
            raise UsageError(
                f"a model needs all its columns; {sayable(', '.join(absent[:8]))} not in the data{sayable(hint)}; "
                "add them",
                code="column",
            )
        if self.labels and self.schema.target.name not in self.table:
            raise UsageError(
                f"labels come from the target column; '{self.schema.target.name}' is not in the data; name another",
                code="column",
            )

    @cached_property
    def readers(self) -> list[ColumnReader]:
        """Of each of the schema's columns."""
        asked = {column.name: partial(column_sql, column=column) for column in self.schema.columns}
        return list(readers_of(self.table, asked).values())

    def raw(self, extra: Sequence[str] = ()) -> Iterator[tuple[Block, Floats]]:
        """For some rows at a time: what is read of the columns and of extra SQL expressions, one array an expression,
        and the labels (rows,). Errors: as `blocks`."""
        expressions = [expression for each in self.readers for expression in each.expressions]
        d = len(expressions)
        if self.labels:
            expressions.append(self._target_sql())
        self.misfits, self.ends = 0, NO_ENDS
        quick = all(self.table[column.name].kind == "number" for column in self.schema.columns)
        stream = self.table.blocks([*expressions, *extra], quick=quick and not extra)
        for block in stream:
            y = self._fitting(block.pop(d)) if self.labels else np.zeros(len(block[0]))
            if y is None:
                stream.close()  # type: ignore[attr-defined]  # the next query needs the connection
                raise self._complaint()
            yield block, y

    def targets(self) -> None:
        """Reads the target alone: `misfits`, `ends` and `classes` are then of all records. Errors: as `blocks`."""
        self.misfits, self.ends = 0, NO_ENDS
        values_of = class_values(self.schema.target)
        found = np.zeros(len(values_of), dtype=np.int64)
        stream = self.table.blocks([self._target_sql()])
        for (values,) in stream:
            y = self._fitting(values)
            if y is None:
                stream.close()  # type: ignore[attr-defined]  # the next query needs the connection
                raise self._complaint()
            found += np.array([np.count_nonzero(y == value) for value in values_of], dtype=np.int64)
        self.classes = tuple(found.tolist())

    def _fitting(self, values: NDArray[Any]) -> Floats | None:
        """(rows,) the targets that were read, as the schema has them, NaN where one does not fit; they are counted.
        None where one does not fit and was not stated to count as a zero vector."""
        target = self.schema.target
        y = target.scaled(values) if self.whole and isinstance(target, Range) else target.values(values)
        wrong = np.isnan(y)
        if wrong.any() and self.table.spelling.misfits != "zero":
            return None
        self.misfits += int(np.count_nonzero(wrong))
        if len(there := y[~wrong]):
            self.ends = min(self.ends[0], float(there.min())), max(self.ends[1], float(there.max()))
        return y

    def blocks(self, extra: list[str] | None = None) -> Iterator[tuple[list[NDArray[Any]], Floats, list[NDArray[Any]]]]:
        """For some rows at a time: the values or codes of each of the schema's columns, the labels (rows,), and the
        values of extra SQL expressions. Without labels, zeros. What reads as no number or date is missing (NaN).

        Errors: a label that is missing or of no class, unless the owner stated that such records count as zero
        vectors: their label is then NaN.
        """
        readers, columns = self.readers, self.schema.columns
        d = sum(len(each.expressions) for each in readers)
        self.counts = {column.name: Unfit(column.name) for column in columns}
        for block, y in self.raw(extra or []):
            yield read(block, readers, columns, self.counts), y, block[d:]

    def _target_sql(self) -> str:
        target = self.schema.target
        return (
            code_sql(self.table, target.name, target.codes)
            if isinstance(target, Labels | Classes)
            else value_sql(self.table, target.name)
        )

    def _complaint(self) -> RecordError:
        """What is wrong with the target, with how many records and the first value at fault."""
        target = self.schema.target
        wrong = misfit_sql(self.table, self.schema)
        count = self.table.one(count_where(wrong))[0]
        found = self.table.rows(self.table.text(target.name), f"WHERE {wrong} LIMIT 1")
        shown = "''" if not found or found[0][0] is None else f"'{str(found[0][0])[:40]}'"
        if isinstance(target, Labels):
            rule = f"the target '{target.name}' is {target.positive_name} or {target.negative_name}"
        elif isinstance(target, Classes):
            rule = f"the target '{target.name}' is one of {some(target.names, 6)}"
        else:
            rule = f"the target '{target.name}' is a finite number"
        return RecordError(
            f"{rule}; a record has {shown} ({count} of {self.table.n} do not fit); correct or remove such records, or"
            f" let them count as zero vectors: {stating(misfits='zero')}",
            f"{rule}; some owner's records do not fit",
        )

    def arrays(self, *, ball: bool = True) -> tuple[Floats, Floats]:
        """(n, d) rows and (n,) labels in memory, for tables that fit; `ball` as of `Schema.rows`. Errors: as
        `blocks`."""
        parts = []
        for values, labels, _ in self.blocks():
            X = np.empty((len(labels), len(self.schema.feature_names)))
            self.schema.rows(values, X, ball=ball)
            parts.append((X, zeroed(X, labels)))
        return np.concatenate([X for X, _ in parts]), np.concatenate([y for _, y in parts])


def targets_of(table: Table, schema: Schema) -> tuple[int, tuple[int, ...]]:
    """(how many records have a target that does not fit, and count as zero vectors; how many of the others are of each
    class): one pass over them. Errors: as of `Mapping`, and as its `blocks`."""
    mapping = Mapping(table, schema)
    mapping.targets()
    return mapping.misfits, mapping.classes


def class_values(target: Target) -> tuple[float, ...]:
    """What stands for each class of a target in labels; none for a quantity."""
    if isinstance(target, Range):
        return ()
    return (-1.0, 1.0) if isinstance(target, Labels) else tuple(map(float, range(len(target.names))))


def one_value(target: Target, ends: Ends, n: int) -> str:
    """What is to be said of the target of so many records where all that fit have these ends, and so are one class or
    one number; empty where they differ. For the eyes of whoever has the records, as nobody else may know it."""
    if ends[0] != ends[1]:
        return ""
    if isinstance(target, Range):
        value = f"{float(target.original(np.array(ends[0]))):.6g}"
    elif isinstance(target, Classes):
        value = f"'{target.names[int(ends[0])]}'"
    else:
        value = f"'{target.positive_name if ends[0] > 0 else target.negative_name}'"
    alike = f"'{target.name}' is {value} in {number_of(n, 'record')}, all that fit"
    return f"a model learns from targets that differ; {alike}; look whether some are missing"


def zeroed(X: NDArray[Any], labels: Floats) -> Floats:
    """(n,) the labels, 0 where there was none; the rows of X (n, d) for these become zero vectors, whose loss has no
    gradient and which no label can move."""
    gone = np.isnan(labels)
    if gone.any():
        X[gone] = 0.0
        labels = np.where(gone, 0.0, labels)
    return labels


def column_sql(table: Table, column: Column) -> list[str]:
    """SQL for the value or code of a column of a schema; for a surveyed one its number, and its bucket if it may have
    texts."""
    if isinstance(column, Surveyed):
        number = value_sql(table, column.name, read="either")
        if table[column.name].kind in ("number", "date"):
            return [number]
        return [number, bucket_sql(table, column.name, column.buckets)]
    if isinstance(column, Numeric | Date):
        return [value_sql(table, column.name, read=column.reads if isinstance(column, Date) else "number")]
    return [code_sql(table, column.name, {value: k for k, value in enumerate(column.values)})]


def read(
    block: Block, readers: Sequence[ColumnReader], columns: Sequence[Column], counts: Mapping_[str, Unfit]
) -> list[NDArray[Any]]:
    """The values or codes of these columns, one array a column, of what was read of them: (n,), or (n, 2) of a surveyed
    one. What reads as no number or date is missing (NaN); `counts` go on with what does not fit."""
    found, at = [], 0
    for column, reader in zip(columns, readers, strict=True):
        parts = reader.read(block[at : at + len(reader.expressions)])
        found.append(counted(counts[column.name], column, beside(parts) if isinstance(column, Surveyed) else parts[0]))
        at += len(reader.expressions)
    return found


def beside(parts: list[NDArray[Any]]) -> NDArray[Any]:
    """(n, 2) numbers and buckets, each column's values side by side; a column without texts has no buckets."""
    pair = np.empty((2, len(parts[0])))
    pair[0], pair[1] = parts[0], parts[1] if len(parts) > 1 else -1.0
    return pair.T


def counted(counts: Unfit, column: Column, values: NDArray[Any], times: Ints | None = None) -> NDArray[Any]:
    """The values, of which what does not fit is counted and what is not read is missing. `times`: how often each is
    there; None: once."""
    counts.rows += len(values) if times is None else int(times.sum())
    if isinstance(column, Categorical):
        counts.missing += _many(values == -1, times)
        counts.unknown += _many(values == -2, times)
        return values
    if isinstance(column, Surveyed):
        counts.add_surveyed(column, values, times)
        return values
    there = np.isfinite(values)
    outside = (values < column.low) | (values > column.high)
    if not there.all():
        gone = np.isnan(values)
        counts.missing += _many(gone, times)
        counts.unread += _many(~there & ~gone, times)
        values, outside = np.where(there, values, np.nan), outside & there
    counts.clipped += _many(outside, times)
    return values


def misfit_sql(table: Table, schema: Schema) -> str:
    """SQL for whether a record's target is missing or does not fit the schema's."""
    target = schema.target
    if isinstance(target, Labels):
        code = code_sql(table, target.name, target.codes)
        return f"{code} = -1" if target.negative is None else f"{code} < 0"
    if isinstance(target, Classes):
        return f"{code_sql(table, target.name, target.codes)} < 0"
    return f"NOT isfinite({value_sql(table, target.name)})"


def complete(table: Table, schema: Schema) -> Table:
    """The records that miss none of the schema's columns. Errors: there are none."""
    missing = [
        f"{column_sql(table, column)[0]} = -1"
        if isinstance(column, Categorical)
        else table.missing(column.name)
        if isinstance(column, Surveyed)
        else f"NOT isfinite({column_sql(table, column)[0]})"
        for column in schema.columns
    ]
    left = replace(table, relation=f"(SELECT * FROM {table.relation} WHERE NOT ({' OR '.join(missing)}))")
    if left.n == 0:
        raise RecordError(
            f"training needs complete records; every record of {table.source} misses a value; fill instead"
        )
    return left


def owner_numbers(table: Table, name: str) -> tuple[str, tuple[str, ...]]:
    """SQL for the number of each record's owner, and the owners' names in the order of their numbers.

    Errors: a record without owner; names that are nearly the same (`VA`, `va`).
    """
    text = table.text(name)
    if row := first_missing(table, name):
        raise RecordError(f"every record has an owner; '{name}' is empty in record {row}; fill it in")
    spellings = [str(row[0]) for row in table.rows(f"DISTINCT {text}", relation=different(table, name))]
    names = sorted({canonical(spelling) for spelling in spellings}, key=str.encode)
    alike: dict[str, str] = {}
    for owner in names:
        plain = "".join(character for character in owner.casefold() if character.isalnum()) or owner
        if plain in alike:
            raise RecordError(
                f"owners' names differ clearly; '{name}' of {table.source} has '{alike[plain]}' and '{owner}'; give"
                " one owner one spelling"
            )
        alike[plain] = owner
    place = {owner: k for k, owner in enumerate(names)}
    cases = ", ".join(literal(spelling) for spelling in spellings)
    places = ", ".join(str(place[canonical(spelling)]) for spelling in spellings)
    return f"CAST(list_extract([{places}], enum_code(CAST({text} AS ENUM({cases}))) + 1) AS INTEGER)", tuple(names)


def first_row(table: Table, condition: str) -> int:
    """The number, from 1, of the first record for which the SQL condition holds; 0 if there is none."""
    seen = 0
    for (flags,) in table.blocks([f"CAST({condition} AS INTEGER)"]):
        if flags.any():
            return seen + int(np.argmax(flags)) + 1
        seen += len(flags)
    return 0


def first_missing(table: Table, name: str) -> int:
    """The number, from 1, of the first record that misses a column's value; 0 if there is none."""
    return 0 if lacks(table, name) else first_row(table, table.missing(name))


def owners_in(table: Table, name: str) -> tuple[Ints, tuple[str, ...]]:
    """(n,) the number of each record's owner, and the owners' names. A survey and the training after it ask alike: the
    table is read once. Errors: as `owner_numbers`."""
    key = f"owners {name}"
    if key not in table.found:
        sql, names = owner_numbers(table, name)
        numbers = owners_of(table, sql).astype(numbers_up_to(table.n))  # as long as all records are held
        numbers.setflags(write=False)
        table.found[key] = numbers, names
    found: tuple[Ints, tuple[str, ...]] = table.found[key]
    return found


def owners_of(table: Table, sql: str) -> Ints:
    """(n,) the number of each record's owner."""
    return np.concatenate([codes for (codes,) in table.blocks([sql])]).astype(np.int64)
