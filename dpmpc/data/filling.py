"""A table's records in their storage, each in its place. Rows are worked out by all cores: each is of one record
alone, so that it is the same to the last bit whoever works it out."""

from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from dpmpc.data.ahead import cores, in_order
from dpmpc.data.blocks import Precision, Records, allocate
from dpmpc.data.mapping import Mapping, zeroed
from dpmpc.data.ownership import EMPTY
from dpmpc.data.table import Floats, Ints

_AHEAD = 8  # steps of each core whose values are held
_NUMBERS = 1 << 18  # of a step: rows that stay in a core's cache while their columns are written

Step = tuple[int, list[Any], Floats]  # the number of the first record, values or codes, one array a column, labels


def filled(mapping: Mapping, n: int, order: Ints, private: Path, memory: int, precision: Precision) -> Records:
    """The records in this order: row k is record order[k], or a zero vector if that is EMPTY. Those that need more than
    half of `memory` lie in a file in `private`. Errors: as `Mapping.blocks`."""
    d = len(mapping.schema.feature_names)
    width = d * (8 if precision == "double" else 4)
    records = allocate(len(order), d, precision, private if len(order) * width > memory // 2 else None)
    records.y[order == EMPTY] = 0.0  # X is zeros when it is made
    place: Ints | None = None
    if len(order) != n or not bool((order == np.arange(n)).all()):
        place, there = np.full(n, -1, dtype=np.int64), np.flatnonzero(order != EMPTY)
        place[order[there]] = there
    step = max(64, _NUMBERS // max(1, d))
    writers = deque(_Writer(mapping, records, place, step) for _ in range(cores()))
    for _ in in_order(partial(_write, writers), _steps(mapping, step), _AHEAD):
        pass
    records.forget()
    return records


def _steps(mapping: Mapping, step: int) -> Iterator[Step]:
    """All records, at most so many at a time."""
    seen = 0
    for values, labels, _ in mapping.blocks():
        for begin in range(0, len(labels), step):
            part = slice(begin, begin + step)
            yield seen + begin, [v[part] for v in values], labels[part]
        seen += len(labels)
    assert seen == mapping.table.n


def _write(writers: "deque[_Writer]", step: Step) -> None:
    """Has one of the writers, of which each thread has one, put some records where they belong."""
    mine = writers.pop()
    try:
        mine(*step)
    finally:
        writers.append(mine)


class _Writer:
    """Puts records into their storage, for one thread at a time. `place` (n,): where each record goes, below 0 for
    nowhere; None: in order."""

    def __init__(self, mapping: Mapping, records: Records, place: Ints | None, step: int) -> None:
        self.records, self.place = records, place
        self.put: Callable[..., None] = mapping.schema.writer()
        d = records.X.shape[1]
        self.room = np.empty((0 if place is None else step, d), dtype=records.X.dtype)

    def __call__(self, first: int, values: list[Any], labels: Floats) -> None:
        """Puts the records from number `first` on, with these values or codes, one array a column, and labels."""
        records, end = self.records, first + len(labels)
        if self.place is None:
            X = records.X[first:end]
            self.put(values, X)
            records.y[first:end] = zeroed(X, labels)
            records.forget(first, end)
            return
        X, to = self.room[: len(labels)], self.place[first:end]
        self.put(values, X)
        y = zeroed(X, labels)
        if to.min() < 0:
            kept = to >= 0
            to, X, y = to[kept], X[kept], y[kept]
        records.X[to] = X
        records.y[to] = y
        records.forget()
