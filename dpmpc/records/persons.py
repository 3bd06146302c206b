"""Records by person: the first K of each that are kept, and places, filled by records or empty.

Which records are kept follows from their own person's records alone: the first K in the source's order, at each owner.
So replacing one person changes what is in its own places and nowhere else. Ids are compared as texts, exactly (but for
space and the encoding of accents): of a person whose id is spelt in two ways two are made, of two persons with one id
one.
"""

from dataclasses import replace

import numpy as np

from dpmpc.errors import RecordError
from dpmpc.intake.reading import count_where
from dpmpc.intake.table import Ints, Table
from dpmpc.records.dataset import split
from dpmpc.records.mapping import owner_numbers
from dpmpc.records.ownership import KeptOwners

_NUMBER, _OWNER, _AT, _RANK = "dpmpc_person", "dpmpc_owner", "dpmpc_at", "dpmpc_rank"


def kept(table: Table, of: KeptOwners) -> Table:
    """The table with the first records of each person alone, which `persons_of` numbers. Records without person are
    left out where misfits count as zero vectors: a person's records are then those that have its id. Errors:
    RecordError for a record without person, a person at more owners than is said. Cost: a copy of the table, and
    sorting it twice."""
    nobodys = without_person(table, of)
    if nobodys and table.spelling.misfits != "zero":
        raise RecordError(
            f"every record is of a person; '{of.column}' of {table.source} is empty in some; fill it in",
            f"every record is of a person; the column '{of.column}' is empty in some",
        )
    who = f"CAST({table.text(of.column)} AS VARCHAR)"
    whose = "0" if of.owners is None else table.text(of.owners)
    _check_most(table, of, who, whose)
    there = table.n
    table.run(
        f"CREATE OR REPLACE TEMP TABLE dpmpc_persons AS SELECT * EXCLUDE ({_AT}, {_OWNER}, {_NUMBER}, {_RANK}), "
        f"CAST(dense_rank() OVER (ORDER BY {_NUMBER}) - 1 AS INTEGER) AS {_NUMBER} FROM (SELECT *, row_number() OVER "
        f"(PARTITION BY {_NUMBER}, {_OWNER} ORDER BY {_AT}) AS {_RANK} FROM (SELECT *, row_number() OVER () AS {_AT}, "
        f"{who} AS {_NUMBER}, {whose} AS {_OWNER} FROM {table.relation} WHERE NOT {table.missing(of.column)})) "
        f"WHERE {_RANK} <= {of.rows} ORDER BY {_AT}"
    )
    table.unchanged()
    first = replace(table, relation="dpmpc_persons", along=_NUMBER, repair=None, unchanged=lambda: None)
    return replace(first, beyond=there - nobodys - first.n)


def without_person(table: Table, of: KeptOwners) -> int:
    """How many records have no person."""
    return int(table.one(count_where(table.missing(of.column)))[0])


def _check_most(table: Table, of: KeptOwners, who: str, whose: str) -> None:
    """Errors: RecordError where some person is at more owners than is said: what a promise would assume is not so."""
    if of.owners is None or not of.most:
        return
    (most,) = table.one(
        "max(k)", relation=f"(SELECT count(DISTINCT {whose}) AS k FROM {table.relation} GROUP BY {who})"
    )
    if most is not None and most > of.most:
        raise RecordError(
            f"no person is at more owners than the promise says, {of.most}; some of '{of.column}' in {table.source} "
            f"are at {most}; give <<person_owners={most}>>, or leave <<person_owners>> out",
            f"no person is at more owners than the promise says, {of.most}; some of the column '{of.column}' are",
        )


def touched_at_most(table: Table, kept: KeptOwners | None) -> int:
    """How many records the promise's neighbours differ in at most: one, or all of a person's that are kept."""
    if kept is None:
        return 1
    owners = 1 if kept.owners is None else len(owner_numbers(table, kept.owners)[1])
    return kept.rows * (kept.most or owners)


def said_of(beyond: int, rows: int) -> str:
    """What an owner is told, on its own screen, of records that no place is for; "" for none."""
    if not beyond:
        return ""
    what = "1 record is" if beyond == 1 else f"{beyond:,} records are"
    places = "1 place" if rows == 1 else f"{rows} places"
    return f"{what} not used: each person has {places} at an owner, which earlier records fill"


def persons_of(table: Table) -> Ints:
    """(n,) the number of each record's person, of a table that `kept` made."""
    return np.concatenate([np.zeros(0, np.int64), *(codes.astype(np.int64) for (codes,) in table.blocks([_NUMBER]))])


def persons_at(table: Table, owner: str) -> tuple[int, ...]:
    """How many persons each owner has, of a table that `kept` made; `owner`: SQL for the number of a record's owner."""
    found = table.rows(f"{owner} AS owner, count(DISTINCT {_NUMBER})", "GROUP BY 1 ORDER BY 1")
    return tuple(int(row[1]) for row in found)


def drawn_apart(persons: Ints, fraction: float, seed: int) -> tuple[Ints, Ints]:
    """The rows for training and for the test, in their order: a part of the persons, drawn by the seed, is held out.
    Errors: no person is left for training."""
    there = np.unique(persons)
    _, test = split(len(there), test_fraction=fraction, max_rows=None, seed=seed)
    held = np.isin(persons, there[test])
    every = np.arange(len(persons), dtype=np.int64)
    return every[~held], every[held]
