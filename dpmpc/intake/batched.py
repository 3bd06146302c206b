"""What is asked of many columns of a small table in one query: as if they were one column, beside the number of each.

A query over a wide table costs more the wider the table is, and to plan an expression takes longer than to work it out
for a few thousand fields. So a query a column makes the cost quadratic in columns, and an expression a column dear.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from dpmpc.intake.once import bound, worked_out
from dpmpc.intake.reading import count_where
from dpmpc.intake.table import Table
from dpmpc.lazy import dataclass

COLUMN = '"(column)"'  # no column of records has such a name
SMALL = 20_000  # records: of more, what is worked out costs more than what is planned
_FIELDS = 400_000  # that one query asks about
_AT_ONCE = 2000  # columns of one query
_FIRST = 1 << 14  # records that refute most of what is said of all
_VALUE, _READ = '"(v)"', '"(r)"'


@dataclass(frozen=True)
class Alike:
    """Columns of one type that are spelled alike. `table` has one column in place of all, of the `name`, whose fields
    are those of `relation`, each with the number of its COLUMN among `names`."""

    names: tuple[str, ...]
    table: Table
    relation: str

    @property
    def name(self) -> str:
        """The one column's name."""
        return self.table.columns[0].name

    @property
    def value(self) -> str:
        """SQL for the one column's field."""
        return _VALUE


def alike(table: Table, names: Sequence[str], rows: int, tail: str = "") -> Iterator[Alike]:
    """Some columns, those that are spelled alike together, as many at once as a query holds. `rows`: how many records
    are asked about, those that `tail` (LIMIT) leaves."""
    groups: dict[object, list[str]] = defaultdict(list)
    for name in names:
        groups[spelled(table, name)].append(name)
    relation = f"(SELECT * FROM {table.relation} {tail})" if tail else table.relation
    at_once = max(1, min(_AT_ONCE, _FIELDS // max(1, rows)))
    for each in groups.values():
        for begin in range(0, len(each), at_once):
            some = tuple(each[begin : begin + at_once])
            column = replace(table[some[0]], sql=_VALUE, value=_READ if table[some[0]].value else "")
            yield Alike(some, replace(table, columns=(column,)), fields_of(table, some, relation))


def fields_of(table: Table, names: Sequence[str], relation: str, first: int = 0) -> str:
    """The relation of all fields of some columns that are spelled alike, each with the number of its COLUMN: the first
    one's is `first`."""
    parts = [f"unnest([{', '.join(table[name].sql for name in names)}]) AS {_VALUE}"]
    if table[names[0]].value:
        parts.append(f"unnest([{', '.join(table[name].value for name in names)}]) AS {_READ}")
    parts.append(f"unnest(range({first}, {first + len(names)})) AS {COLUMN}")
    return f"(SELECT {', '.join(parts)} FROM {relation})"


def spelled(table: Table, name: str) -> object:
    """What columns have in common whose fields are read by one expression."""
    column, spelling = table[name], table.spelling
    ways = spelling.of(column.name), spelling.markers(column.name), table.worded(name)
    return column.type, column.clean, column.finite, bool(column.value), ways


def in_lists(
    table: Table, names: Sequence[str], said: Callable[[Table, str], str], key: Callable[[str], object]
) -> tuple[str, dict[str, str]]:
    """(a relation, SQL for the value of each column in it): one expression a row for all columns that are spelled alike
    and are of one `key`, over a list of their fields. What `said` gives for one column is planned once for all."""
    groups: dict[object, list[str]] = defaultdict(list)
    for name in names:
        groups[key(name), spelled(table, name)].append(name)
    lists, found = [], dict[str, str]()
    for k, some in enumerate(groups.values()):
        one = replace(table, columns=(replace(table[some[0]], sql=_VALUE),))
        fields = ", ".join(table[name].sql for name in some)
        lists.append(f'list_transform([{fields}], lambda {_VALUE}: {bound(said(one, some[0]))}) AS "(list {k})"')
        found |= {name: f'"(list {k})"[{at}]' for at, name in enumerate(some, 1)}
    select, relation = worked_out(", ".join(("*", *lists)), table.relation)
    return f"(SELECT {select} FROM {relation})", found


def asked_of(
    table: Table, names: Sequence[str], asked: Callable[[Table, str], list[str]], rows: int, limit: int | None = None
) -> dict[str, tuple[Any, ...]]:
    """Some aggregates of each column. `rows`: of the table, of which the first alone are asked about if there is a
    limit. Of a large one, all columns' aggregates stand in one query."""
    tail, rows = (f"LIMIT {limit}", min(rows, limit)) if limit is not None else ("", rows)
    found = dict[str, tuple[Any, ...]]()
    if 0 < rows <= SMALL:
        for some in alike(table, names, rows, tail):
            select = ", ".join((COLUMN, *asked(some.table, some.name)))
            found |= {some.names[at]: (*each,) for at, *each in table.rows(select, f"GROUP BY {COLUMN}", some.relation)}
        return found
    parts = {name: asked(table, name) for name in names}
    flat = [part for each in parts.values() for part in each]
    relation = f"(SELECT * FROM {table.relation} {tail})" if tail else None
    answers = iter(table.one(*flat, relation=relation) if flat else ())
    return {name: tuple(next(answers) for _ in each) for name, each in parts.items()}


def none_of(table: Table, tests: Sequence[str]) -> list[bool]:
    """Of each SQL condition, whether it holds for no record. Most are refuted by the first records, which is all that
    is read of a large table then. Cost: a query for the first records, one for all where some are left."""
    found = [True] * len(tests)
    for some in (_FIRST, None) if table.n > _FIRST else (None,):
        left = [k for k, none in enumerate(found) if none]
        if left:
            relation = f"(SELECT * FROM {table.relation} LIMIT {some})" if some else None
            counts = table.one(*(count_where(tests[k]) for k in left), relation=relation)
            for k, count in zip(left, counts, strict=True):
                found[k] = not count
    return found
