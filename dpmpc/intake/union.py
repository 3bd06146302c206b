"""Columns of several files as those of one table: one type for each, whichever file a value is read from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dpmpc.errors import UsageError, sayable
from dpmpc.intake.table import Column, Table, quoted


def _empty(column: Column) -> bool:
    """Whether it is of the type that a column without any value has in its file."""
    return column.type.strip('"') == "NULL"


def joint(sources: Sequence[str], columns: Sequence[tuple[Column, ...]]) -> tuple[Column, ...]:
    """The columns that these tables, each named by its source, have together, in the first one's order. A column whose
    types differ is of DOUBLE or of texts; one that has no value in a table is there of the others' type. Errors: names
    that differ; numbers in one table and texts or dates in another."""
    by_name = [{column.name: column for column in each} for each in columns]
    for source, names in zip(sources, by_name, strict=True):
        if set(names) != set(by_name[0]):
            odd = sorted(set(names) ^ set(by_name[0]))
            raise UsageError(
                f"files of one folder have the same columns; {sayable(sources[0])} and {sayable(source)} differ in"
                f" {sayable(', '.join(odd[:6]))}; make them alike",
                code="column",
            )
    return tuple(_joint(name, sources, [names[name] for names in by_name]) for name in by_name[0])


def _joint(name: str, sources: Sequence[str], columns: Sequence[Column]) -> Column:
    there = [(source, each) for source, each in zip(sources, columns, strict=True) if not _empty(each)]
    if not there:
        return Column(name, quoted(name), "VARCHAR")
    first_source, first = there[0]
    for source, other in there:
        if other.kind != first.kind:
            raise UsageError(
                f"a column has one type in all files; '{sayable(name)}' is {sayable(first.type.lower())} in "
                f"{sayable(first_source)}"
                f" and {sayable(other.type.lower())} in {sayable(source)}; make them alike",
                code="column",
            )
    types = {each.type for _, each in there}
    word = types.pop() if len(types) == 1 else "DOUBLE" if first.kind == "number" else "VARCHAR"
    return Column(name, quoted(name), word)


def cast(table: Table, column: Column) -> str:
    """SQL for a table's column as the type that it has in the joint one."""
    if column.type == "DOUBLE" and not _empty(table[column.name]):
        return table.number(column.name)
    return f"CAST({table[column.name].sql} AS {column.type})"


def placed(columns: tuple[Column, ...]) -> tuple[Column, ...]:
    """The same columns, called by their place."""
    return tuple(replace(column, sql=f"c{k}") for k, column in enumerate(columns))
