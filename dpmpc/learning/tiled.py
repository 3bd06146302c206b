"""Records tile by tile, in one fixed order, on all cores.

A tile is some rows of one owner, or all rows of some small owners in a row; where tiles begin follows from the owners'
sizes and from how many numbers a record is kept as alone. A tile is worked out by one thread, with BLAS held to one
thread, and tiles are added up in their order: so a result is the same to the last bit, however much is held in memory
at once, wherever the records lie, and however many cores there are. What is held at once are `ahead` tiles for each
core.
"""

import contextlib
import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from dpmpc.learning.away import Away, Tile, Work
from dpmpc.learning.matrix import at_once, matrix_of
from dpmpc.processes.cores import one_thread
from dpmpc.records.blocks import Records

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Result = TypeVar("Result")


def tile_rows(width: int) -> int:
    """How many rows of so many numbers a tile has at most: a power of two, 64 to 8,192, so that it has about 2^18."""
    return at_once(width)


def tiles(offsets: Ints, width: int) -> Iterator[Tile]:
    """The tiles of owners j = 0 ... m - 1 that hold rows offsets[j] : offsets[j + 1], in order."""
    most, j, m = tile_rows(width), 0, len(offsets) - 1
    while j < m:
        begin, end = int(offsets[j]), int(offsets[j + 1])
        if end - begin >= most:
            for at in range(begin, end, most):
                stop = min(at + most, end)
                yield Tile(at, stop, j, np.array([0, stop - at], dtype=np.int64))
            j += 1
            continue
        last = int(np.searchsorted(offsets, begin + most, side="right")) - 1
        yield Tile(begin, int(offsets[last]), j, np.asarray(offsets[j : last + 1] - begin, dtype=np.int64))
        j = last


def over_tiles(
    records: Records,
    offsets: Ints,
    work: Work,
    *,
    cores: int | None = None,
    ahead: int = 4,
    asked: Callable[[Tile], bool] = lambda tile: True,
) -> Iterator[tuple[Tile, tuple[Floats, ...]]]:
    """The work's sums of every tile, in the tiles' order. They are made by threads here, or where the records are.
    `asked`: whether a tile's are needed; others may be left out."""
    if isinstance(records, Away):
        yield from records.sums(list(tiles(offsets, records.width)), work)
        return

    def one(tile: Tile) -> tuple[Floats, ...]:
        rows = slice(tile.begin, tile.end)
        weights = None if records.weights is None else records.weights[rows]
        result = work(tile, matrix_of(records, tile.begin, tile.end), records.y[rows], weights)
        records.forget(tile.begin, tile.end)
        return result

    yield from in_threads([tile for tile in tiles(offsets, records.width) if asked(tile)], one, cores, ahead)


def in_threads(
    every: list[Tile], one: Callable[[Tile], Result], cores: int | None, ahead: int
) -> Iterator[tuple[Tile, Result]]:
    """one(tile) of every tile, in order."""
    if cores is None:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with one_thread(), contextlib.ExitStack() as stack:
        if len(every) <= 2 or cores == 1:  # not worth a thread
            yield from ((tile, one(tile)) for tile in every)
            return
        pool = stack.enter_context(ThreadPoolExecutor(cores))
        waiting: deque[tuple[Tile, Future[Result]]] = deque()
        for tile in every:
            waiting.append((tile, pool.submit(one, tile)))
            if len(waiting) >= ahead * cores:
                done, future = waiting.popleft()
                yield done, future.result()
        for done, future in waiting:
            yield done, future.result()
