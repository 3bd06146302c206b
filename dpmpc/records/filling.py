"""A table's records in their storage, each in its place. Rows are worked out by all cores: each is of one record
alone, so that it is the same to the last bit whoever works it out."""

from collections import deque
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

from dpmpc.intake.table import Block, Floats, Ints, numbers_up_to
from dpmpc.lazy import dataclass
from dpmpc.records.blocks import Precision, Records, allocate, held_in_memory
from dpmpc.records.mapping import Mapping, Unfit
from dpmpc.records.ordered_pool import cores, in_order
from dpmpc.records.ownership import EMPTY
from dpmpc.records.rows import Rows

_AHEAD = 8  # steps of each core whose values are held
_AT_ONCE = 1 << 20  # records whose places are worked out at once
_ROOM = 8  # places that need more than this part of the memory are packed: what is worked out of codes takes longer

Step = tuple[int, Block, Floats]  # the number of the first record, what was read, one array an expression, labels


@dataclass(frozen=True, eq=False)
class RowPlaces:
    """Where n records go among `rows` rows. `of` (n,): each one's row, below 0 for nowhere; None: in order. `empty`:
    the rows of none."""

    n: int
    rows: int
    of: Ints | None
    empty: Ints


def placed(order: Ints, n: int) -> RowPlaces:
    """Where each of n records goes: row k is record order[k], or of none if that is EMPTY."""
    return RowPlaces(n, len(order), _places(order, n), np.flatnonzero(order == EMPTY))


def filled(
    mapping: Mapping, places: RowPlaces, training: int, private: Path, memory: int, precision: Precision
) -> Records:
    """The records in these places; a row of none is a zero vector. Those that need more than an eighth of `memory` are
    held by codes where they can be, and those that then need more than half lie in a file in `private`. The first
    `training` lie in the unit ball; those after them are held out, and scaled as for predictions (`Schema.rows`). The
    mapping has what did not fit. Errors: as `Mapping.blocks`."""
    plain = places.rows * mapping.schema.design.width * (8 if precision == "double" else 4)
    packed = precision if plain > memory // _ROOM else None
    made = [Rows(mapping, held_from=training, packed=packed) for _ in range(cores())]
    design = made[0].design
    size = plain if design.packing is None else places.rows * design.packing.size
    where = None if held_in_memory(size, memory) else private
    records = allocate(places.rows, design.width, precision, where, design)
    records.y[places.empty] = 0.0  # factors are zeros when they are made
    for _ in in_order(partial(_put, deque(made), records, places.of), _steps(mapping, made[0].at_once), _AHEAD):
        pass
    records.forget()
    mapping.counts = {column.name: Unfit(column.name) for column in mapping.schema.columns}
    for rows in made:
        for name, counts in rows.counts.items():
            mapping.counts[name].add(counts)
    return records


def _places(order: Ints, n: int) -> Ints | None:
    """(n,) where each of n records belongs, below 0 for nowhere; None: all are in order."""
    parts = [slice(begin, begin + _AT_ONCE) for begin in range(0, len(order), _AT_ONCE)]
    if len(order) == n and all((order[part] == np.arange(part.start, min(n, part.stop))).all() for part in parts):
        return None
    place = np.full(n, -1, dtype=numbers_up_to(len(order)))
    for part in parts:
        there = np.flatnonzero(order[part] != EMPTY)
        place[order[part][there]] = part.start + there
    return place


def _steps(mapping: Mapping, step: int) -> Iterator[Step]:
    """All records, at most so many at a time."""
    seen = 0
    for block, labels in mapping.raw():
        for begin in range(0, len(labels), step):
            part = slice(begin, begin + step)
            yield seen + begin, [values[part] for values in block], labels[part]
        seen += len(labels)
    assert seen == mapping.table.n


def _put(made: "deque[Rows]", records: Records, place: Ints | None, step: Step) -> None:
    """Has one of the makers of rows, of which each thread has one, put some records where they belong. `place` (n,):
    below 0 for nowhere; None: in order."""
    first, block, labels = step
    end, mine = first + len(labels), made.pop()
    try:
        mine.into(records, block, labels, np.arange(first, end) if place is None else place[first:end])
    finally:
        made.append(mine)
    records.forget(*(() if place is not None else (first, end)))
