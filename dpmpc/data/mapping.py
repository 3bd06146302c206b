"""Records through a schema: blocks of rows in the unit ball and labels, and what did not fit, counted by column."""

import difflib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmpc.data.hashing import bucket_sql
from dpmpc.data.schema import Categorical, Classes, Column, Labels, Numeric, Schema, Surveyed
from dpmpc.data.spelling import canonical
from dpmpc.data.table import Floats, Ints, Table, code_sql, literal, some, value_sql
from dpmpc.errors import UsageError

_MOSTLY = 0.9  # a column is mended, not trained on, if so much of it is unknown, clipped or missing


@dataclass(eq=False)
class Counts:
    """What did not fit into one column's public constants. For the owner's own eyes: it depends on records."""

    name: str
    rows: int = 0
    missing: int = 0
    unknown: int = 0  # values that no category list has
    clipped: int = 0  # numbers outside the range

    @property
    def warning(self) -> str | None:
        """A line on a column nearly all of whose values do not fit, or None."""
        for count, what in ((self.unknown, "unknown"), (self.clipped, "clipped"), (self.missing, "missing")):
            if self.rows and count >= _MOSTLY * self.rows:
                return f"column '{self.name}': {count} of {self.rows} values are {what}; check the file and the schema"
        return None


@dataclass(eq=False)
class Mapping:
    """A table seen through a schema. `counts` fill up while `blocks` is read."""

    table: Table
    schema: Schema
    labels: bool = True  # whether the target is read too
    counts: dict[str, Counts] = field(default_factory=dict)

    def __post_init__(self) -> None:
        absent = [column.name for column in self.schema.columns if column.name not in self.table]
        if absent:
            near = difflib.get_close_matches(absent[0], self.table.names, 1, 0.7)
            hint = f" (is '{near[0]}' '{absent[0]}'?)" if near else ""
            raise UsageError(f"the model needs its columns; {', '.join(absent[:8])} not in the data{hint}; add them")
        if self.labels and self.schema.target.name not in self.table:
            raise UsageError(
                f"labels come from the target column; '{self.schema.target.name}' is not in the data; name another"
            )

    def blocks(self, extra: list[str] | None = None) -> Iterator[tuple[list[NDArray[Any]], Floats, list[NDArray[Any]]]]:
        """For some rows at a time: the values or codes of each of the schema's columns, the labels (rows,), and the
        values of extra SQL expressions. Without labels, zeros.

        Errors: a number that is none, a label that is missing or of neither class.
        """
        schema, table = self.schema, self.table
        each = [self._sql(column) for column in schema.columns]
        expressions = [expression for some in each for expression in some]
        if self.labels:
            expressions.append(self._target_sql())
        d = sum(map(len, each))
        self.counts = {column.name: Counts(column.name) for column in schema.columns}
        stream = table.blocks([*expressions, *(extra or [])])
        for block in stream:
            values, labels = _gathered(block, [len(some) for some in each]), block[d] if self.labels else None
            if self._wrong(values, labels):
                stream.close()  # type: ignore[attr-defined]  # the next query needs the connection
                raise UsageError(self._complaint(values, labels))
            for column, part in zip(schema.columns, values, strict=True):
                self._count(column, part)
            y = np.zeros(len(values[0])) if labels is None else schema.target.values(labels)
            yield values, y, block[d + self.labels :]

    def _sql(self, column: Column) -> list[str]:
        """SQL for a column's value or code; for a surveyed one, both its number and its bucket."""
        if isinstance(column, Surveyed):
            return [value_sql(self.table, column.name), bucket_sql(self.table, column.name, column.buckets)]
        if isinstance(column, Numeric):
            return [value_sql(self.table, column.name)]
        return [code_sql(self.table, column.name, {value: k for k, value in enumerate(column.values)})]

    def _target_sql(self) -> str:
        target = self.schema.target
        return (
            code_sql(self.table, target.name, target.codes)
            if isinstance(target, Labels | Classes)
            else value_sql(self.table, target.name)
        )

    def _count(self, column: Column, values: NDArray[Any]) -> None:
        counts = self.counts[column.name]
        counts.rows += len(values)
        if isinstance(column, Categorical):
            counts.missing += int(np.count_nonzero(values == -1))
            counts.unknown += int(np.count_nonzero(values == -2))
            return
        if isinstance(column, Surveyed):
            gone = column.gone(values)
            text = np.isinf(values[:, 0]) & ~gone
            counts.missing += int(np.count_nonzero(gone))
            counts.unknown += int(np.count_nonzero(text & ~np.isin(values[:, 1], column.kept)))
            counts.clipped += int(np.count_nonzero((values[:, 0] < column.low) & ~text))
            counts.clipped += int(np.count_nonzero((values[:, 0] > column.high) & ~text))
            return
        counts.missing += int(np.count_nonzero(np.isnan(values)))
        counts.clipped += int(np.count_nonzero(values < column.low) + np.count_nonzero(values > column.high))

    def _wrong(self, values: list[NDArray[Any]], labels: NDArray[Any] | None) -> bool:
        """Whether some value is no number where one is due, or some label of neither class."""
        if any(_infinite(part) for part in values):
            return True
        if labels is None:
            return False
        if isinstance(self.schema.target, Labels | Classes):
            return bool(np.isnan(self.schema.target.values(labels)).any())
        return not np.isfinite(labels).all()

    def _complaint(self, values: list[NDArray[Any]], labels: NDArray[Any] | None) -> str:
        """What is wrong, with the first value at fault."""
        for column, part in zip(self.schema.columns, values, strict=True):
            if _infinite(part):
                return (
                    f"column '{column.name}' must hold finite numbers; it has {self._shown(column.name)}; correct it,"
                    " or leave missing values empty"
                )
        target = self.schema.target
        assert labels is not None
        if isinstance(target, Labels):
            others = target.negative is None
            shown = self._shown(target.name, f"{self._target_sql()} {'=' if others else '<'} {-1 if others else 0}")
            return (
                f"the target '{target.name}' is {target.positive_name} or {target.negative_name}; a record has"
                f" {shown}; correct or remove such records"
            )
        if isinstance(target, Classes):
            shown = self._shown(target.name, f"{self._target_sql()} < 0")
            return (
                f"the target '{target.name}' is one of {some(target.names, 6)}; a record has {shown}; correct or remove"
                " such records"
            )
        if np.isinf(labels).any():
            return (
                f"ridge needs a target of finite numbers; '{target.name}' holds {self._shown(target.name)}; choose"
                " another target"
            )
        return f"the target '{target.name}' is never missing; a record has none; remove such records"

    def _shown(self, name: str, wrong: str | None = None) -> str:
        """The first value of a column that is wrong (by default: that is no finite number), in quotes."""
        wrong = f"isinf({value_sql(self.table, name)})" if wrong is None else wrong
        found = self.table.rows(self.table.text(name), f"WHERE {wrong} LIMIT 1")
        return "''" if not found or found[0][0] is None else f"'{str(found[0][0])[:40]}'"

    def arrays(self) -> tuple[Floats, Floats]:
        """(n, d) rows and (n,) labels in memory, for tables that fit. Errors: as `blocks`."""
        parts = []
        for values, y, _ in self.blocks():
            X = np.empty((len(y), len(self.schema.feature_names)))
            self.schema.rows(values, X)
            parts.append((X, y))
        return np.concatenate([X for X, _ in parts]), np.concatenate([y for _, y in parts])


def _gathered(block: list[NDArray[Any]], widths: list[int]) -> list[NDArray[Any]]:
    """One array a column: (n,), or (n, w) of a column that has several."""
    found, at = [], 0
    for width in widths:
        found.append(block[at] if width == 1 else np.stack(block[at : at + width], axis=1))
        at += width
    return found


def _infinite(part: NDArray[Any]) -> bool:
    """Whether a column of numbers holds something else; in a surveyed one texts are welcome."""
    return part.ndim == 1 and part.dtype.kind == "f" and bool(np.isinf(part).any())


def complete(table: Table, schema: Schema) -> Table:
    """The records that miss none of the schema's columns. Errors: there are none."""
    missing = [
        f"{code_sql(table, column.name, {v: k for k, v in enumerate(column.values)})} = -1"
        if isinstance(column, Categorical)
        else table.missing(column.name)
        for column in schema.columns
    ]
    left = replace(table, relation=f"(SELECT * FROM {table.relation} WHERE NOT ({' OR '.join(missing)}))")
    if left.n == 0:
        raise UsageError(
            f"training needs complete records; every record of {table.source} misses a value; fill instead"
        )
    return left


def owner_numbers(table: Table, name: str) -> tuple[str, tuple[str, ...]]:
    """SQL for the number of each record's owner, and the owners' names in the order of their numbers.

    Errors: a record without owner; names that are nearly the same (`VA`, `va`).
    """
    text = table.text(name)
    if row := first_row(table, table.missing(name)):
        raise UsageError(f"every record has an owner; '{name}' is empty in record {row}; fill it in")
    spellings = [str(row[0]) for row in table.rows(f"DISTINCT {text}")]
    names = sorted({canonical(spelling) for spelling in spellings}, key=str.encode)
    alike: dict[str, str] = {}
    for owner in names:
        plain = "".join(character for character in owner.casefold() if character.isalnum()) or owner
        if plain in alike:
            raise UsageError(
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


def owners_of(table: Table, sql: str) -> Ints:
    """(n,) the number of each record's owner."""
    return np.concatenate([codes for (codes,) in table.blocks([sql])]).astype(np.int64)
