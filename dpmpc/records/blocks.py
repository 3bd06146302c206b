"""Records as numbers: rows of features and labels, in memory or in a nameless file that is mapped into memory.

The file is made in the run's private folder and loses its name at once, so the system frees it when the process ends,
however it ends. Its room is reserved when it is made: a full disk is found before the first row is written. Both kinds
of storage start at a page boundary, so arithmetic on them is the same to the last bit.
"""

import mmap
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dpmpc.errors import RecordError
from dpmpc.lazy import dataclass

Floats = NDArray[np.float64]
Precision = Literal["double", "single"]
Rows = NDArray[np.float64] | NDArray[np.float32]
DTYPES: dict[Precision, type[np.floating[Any]]] = {"double": np.float64, "single": np.float32}


class _Descriptor:
    """A file that is open as long as somebody has this."""

    def __init__(self, number: int) -> None:
        self.number = number

    def write(self, data: memoryview, at: int) -> None:
        """Puts bytes at a place of the file."""
        while len(data):
            done = os.pwrite(self.number, data, at)
            data, at = data[done:], at + done

    def __del__(self, close: Callable[[int], None] = os.close) -> None:
        close(self.number)


@dataclass(frozen=True, eq=False)
class Records:
    """n records: X (n, d) rows in the unit ball, in double or single precision, and y (n,) labels. `weights` (n,): how
    much each counts, 0 to 1; None: all alike.

    `resident`: whether pages that were read may stay in memory; if not, `forget` gives them back to the system, which
    keeps what it can of the file in its own cache.
    """

    X: Rows = field(repr=False)
    y: Floats = field(repr=False)
    resident: bool = True
    _map: mmap.mmap | None = field(default=None, repr=False)
    _first: int = 0  # the row of the mapping at which X starts
    weights: Floats | None = field(default=None, repr=False)
    _file: _Descriptor | None = field(default=None, repr=False)

    @property
    def n(self) -> int:
        return len(self.y)

    @property
    def d(self) -> int:
        """How many features a record has."""
        return int(self.X.shape[1])

    def part(self, begin: int, end: int) -> "Records":
        """The rows begin ... end - 1 of the same storage."""
        weights = None if self.weights is None else self.weights[begin:end]
        first = self._first + begin
        return Records(self.X[begin:end], self.y[begin:end], self.resident, self._map, first, weights, self._file)

    @property
    def filed(self) -> bool:
        """Whether they lie in a file: rows are then put by `put` sooner than into X. For a write through the mapping
        the system reads, or clears, every page before."""
        return self._file is not None

    def put(self, to: NDArray[np.int64], X: Rows, y: Floats) -> None:
        """Puts the rows X, contiguous and of the records' precision, and the labels y into rows `to`, all different."""
        self.y[to] = y
        if self._file is None:
            self.X[to] = X
            return
        if len(to) == 0:
            return
        rows: Any = X
        if bool((np.diff(to) < 0).any()):
            order = np.argsort(to)
            to, rows = to[order], X[order]
        cuts = np.concatenate([[0], np.flatnonzero(np.diff(to) != 1) + 1, [len(to)]])
        for begin, end in pairwise(cuts.tolist()):
            at = (self._first + int(to[begin])) * rows.strides[0]
            self._file.write(memoryview(rows[begin:end]).cast("B"), at)

    def forget(self, begin: int = 0, end: int | None = None) -> None:
        """Gives back the memory of rows that were read or written, if they are in a file and not to stay."""
        if self.resident or self._map is None or not hasattr(self._map, "madvise"):
            return
        width = self.X.strides[0]
        low = (self._first + begin) * width // mmap.PAGESIZE * mmap.PAGESIZE
        high = (self._first + (self.n if end is None else end)) * width
        if high > low:
            self._map.madvise(mmap.MADV_DONTNEED, low, high - low)


def double(X: Rows) -> Floats:
    """X in double precision; a new array starts where any other does, for alignment may decide a product's last bit."""
    if X.dtype == np.float64:
        return np.asarray(X)
    room = np.empty(X.size + 8)
    start = -(room.ctypes.data // 8) % 8
    result = room[start : start + X.size].reshape(X.shape)
    result[:] = X
    return result


def allocate(n: int, d: int, precision: Precision, folder: Path | None) -> Records:
    """Room for n records of d features: in a nameless file in `folder`, or in memory. Errors: the disk is full."""
    dtype = np.dtype(DTYPES[precision])
    size = max(1, n * d * dtype.itemsize)
    y = np.empty(n)
    if folder is None:
        # of this process alone: fresh pages of shared memory take the kernel half as long again. Large pages are not
        # asked for: on a virtual machine they took three times as long
        room = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        return Records(np.frombuffer(room, dtype, n * d).reshape(n, d), y)
    with tempfile.TemporaryFile(dir=folder) as file:  # mapping and descriptor keep it
        try:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, size)
            else:
                os.ftruncate(file.fileno(), size)
        except OSError as error:
            raise _no_room(n, d, size, error.strerror or "it is full") from None
        room = mmap.mmap(file.fileno(), size)
        kept = _Descriptor(os.dup(file.fileno()))
    return Records(np.frombuffer(room, dtype, n * d).reshape(n, d), y, False, room, _file=kept)


def held_in_memory(size: int, memory: int) -> bool:
    """Whether features of so many bytes lie in memory, of which so much may be used; else in a file."""
    return size <= memory // 2


def check_room(n: int, d: int, precision: Precision, memory: int, folder: Path) -> None:
    """Errors: n records of d features would have to lie on the disk of `folder`, which has less room."""
    size, free = n * d * np.dtype(DTYPES[precision]).itemsize, shutil.disk_usage(folder).free
    why = f"{free / 1e9:.3g} GB are free"
    if not held_in_memory(size, memory) and size > free:
        raise _no_room(n, d, size, why)


def _no_room(n: int, d: int, size: int, why: str) -> RecordError:
    way = "free some, name another <<out>>, raise <<memory>>, take <<precision=single>>, or <<drop>> columns of"
    return RecordError(
        f"features need {size / 1e9:.3g} GB on the disk of the run's folder, for {n} records of {d}; {why}; {way} many "
        "values",
        "features need more room than the disk of the run's folder has",
    )


def arranged(records: Records, order: NDArray[np.int64], folder: Path | None) -> Records:
    """The records order[0], order[1], ... in storage of the same kind, in `folder` (default: for temporary files). A
    negative number is a zero vector, whose loss has no gradient whatever its label.

    Errors: the disk is full.
    """
    d = records.X.shape[1]
    precision: Precision = "double" if records.X.dtype == np.float64 else "single"
    where = None if records.resident else folder or Path(tempfile.gettempdir())
    result = allocate(len(order), d, precision, where)
    if not len(records.X):  # all places are empty, and take a record that is zero
        one = None if records.weights is None else np.ones(1)
        records = in_memory(np.zeros((1, d), records.X.dtype), np.zeros(1), one)
    step = max(1, (1 << 22) // max(1, d))
    for begin in range(0, len(order), step):
        rows = order[begin : begin + step]
        np.take(records.X, np.maximum(rows, 0), axis=0, out=result.X[begin : begin + len(rows)])
        result.X[begin : begin + len(rows)][rows < 0] = 0.0
        result.forget(begin, begin + len(rows))
        records.forget()
    result.y[:] = np.where(order < 0, 0.0, records.y[order])
    return result if records.weights is None else replace(result, weights=records.weights[order])


def in_memory(X: Rows, y: Floats, weights: Floats | None = None) -> Records:
    """Records that are arrays already."""
    return Records(X, y, weights=weights)
