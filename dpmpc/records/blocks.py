"""Records as numbers, and their labels, in memory or in a nameless file that is mapped into memory.

Those of a schema are kept as places and factors (`records.design`), others as rows of features.

The file is made in the run's private folder and loses its name at once, so the system frees it when the process ends,
however it ends. Its room is reserved when it is made: a full disk is found before the first row is written. Both kinds
of storage start at a page boundary, so arithmetic on them is the same to the last bit.
"""

import mmap
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dpmpc.errors import RecordError
from dpmpc.lazy import dataclass
from dpmpc.records.design import Compact, RecordDesign

Floats = NDArray[np.float64]
Precision = Literal["double", "single"]
Rows = NDArray[np.float64] | NDArray[np.float32] | NDArray[np.uint8]
_BLOCK = 1 << 18  # numbers of rows that are written out at once
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
    """n records and y (n,) labels. `held`: rows (n, d) in the unit ball; with a `design` places (n, width), packed
    where it says so, and `factors` (n,), 0 for a zero vector; in double or single precision. `weights` (n,): how much
    each counts, 0 to 1; None: all alike.

    `resident`: whether pages that were read may stay in memory; if not, `forget` gives them back to the system, which
    keeps what it can of the file in its own cache.
    """

    held: Rows = field(repr=False)
    y: Floats = field(repr=False)
    resident: bool = True
    _map: mmap.mmap | None = field(default=None, repr=False)
    _first: int = 0  # the row of the mapping at which what is held starts
    weights: Floats | None = field(default=None, repr=False)
    _file: _Descriptor | None = field(default=None, repr=False)
    design: RecordDesign | None = field(default=None, repr=False)
    factors: Floats | None = field(default=None, repr=False)

    @property
    def n(self) -> int:
        return len(self.y)

    @property
    def d(self) -> int:
        """How many features a record has."""
        return int(self.held.shape[1]) if self.design is None else self.design.d

    @property
    def width(self) -> int:
        """How many numbers a record is kept as."""
        return int(self.held.shape[1]) if self.design is None else self.design.width

    @property
    def X(self) -> Rows:
        """(n, d) all rows. Those of a design are written out afresh each time: `rows` and `blocks` hold some alone."""
        return self.held if self.design is None else self.rows(0, self.n)

    def rows(self, begin: int, end: int) -> Floats:
        """(end - begin, d) these rows in double precision; written out, where they are kept as places."""
        matrix = self.compact(begin, end)
        return double(self.held[begin:end]) if matrix is None else matrix.rows()

    def compact(self, begin: int, end: int) -> Compact | None:
        """These rows, not written out; None where they are."""
        if self.design is None or self.factors is None:
            return None
        return Compact(self.design, self.held[begin:end], self.factors[begin:end])

    def blocks(self) -> Iterator[tuple[slice, Floats]]:
        """All rows in double precision, some at a time."""
        step = max(64, _BLOCK // max(1, self.d))
        for begin in range(0, self.n, step):
            part = slice(begin, min(begin + step, self.n))
            yield part, self.rows(part.start, part.stop)
            self.forget(part.start, part.stop)

    def part(self, begin: int, end: int) -> "Records":
        """The rows begin ... end - 1 of the same storage."""
        weights, factors = (None if each is None else each[begin:end] for each in (self.weights, self.factors))
        return replace(
            self,
            held=self.held[begin:end],
            y=self.y[begin:end],
            _first=self._first + begin,
            weights=weights,
            factors=factors,
        )

    def put(self, to: NDArray[np.int64], held: Rows, factors: Floats | None, y: Floats) -> None:
        """Puts what is held of some records, contiguous and of the records' precision, their factors and their labels
        into rows `to`, all different. Through a mapping the system would read, or clear, every page of a file first."""
        self.y[to] = y
        if self.factors is not None:
            self.factors[to] = factors
        if self._file is None:
            self.held[to] = held
            return
        if len(to) == 0:
            return
        rows: Any = held
        if bool((np.diff(to) < 0).any()):
            order = np.argsort(to)
            to, rows = to[order], held[order]
        cuts = np.concatenate([[0], np.flatnonzero(np.diff(to) != 1) + 1, [len(to)]])
        for begin, end in pairwise(cuts.tolist()):
            at = (self._first + int(to[begin])) * rows.strides[0]
            if rows.shape[1]:
                self._file.write(memoryview(rows[begin:end]).cast("B"), at)

    def forget(self, begin: int = 0, end: int | None = None) -> None:
        """Gives back the memory of rows that were read or written, if they are in a file and not to stay."""
        if self.resident or self._map is None or not hasattr(self._map, "madvise"):
            return
        width = self.held.strides[0]
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


def allocate(
    n: int, width: int, precision: Precision, folder: Path | None, design: RecordDesign | None = None
) -> Records:
    """Room for n records of so many numbers, all 0: in a nameless file in `folder`, or in memory. With a design they
    are places, packed where it says so, and each record has a factor. Errors: the disk is full."""
    dtype, numbers = np.dtype(DTYPES[precision]), width
    if design is not None and design.packing is not None:
        dtype, width = np.dtype(np.uint8), design.packing.size
    size = max(1, n * width * dtype.itemsize)
    factors = None if design is None else np.zeros(n)
    y = np.empty(n)
    if folder is None:
        # of this process alone: fresh pages of shared memory take the kernel half as long again. Large pages are not
        # asked for: on a virtual machine they took three times as long
        room = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        return Records(np.frombuffer(room, dtype, n * width).reshape(n, width), y, design=design, factors=factors)
    with tempfile.TemporaryFile(dir=folder) as file:  # mapping and descriptor keep it
        try:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, size)
            else:
                os.ftruncate(file.fileno(), size)
        except OSError as error:
            raise _no_room(n, numbers, size, error.strerror or "it is full") from None
        room = mmap.mmap(file.fileno(), size)
        kept = _Descriptor(os.dup(file.fileno()))
    held = np.frombuffer(room, dtype, n * width).reshape(n, width)
    return Records(held, y, False, room, _file=kept, design=design, factors=factors)


def held_in_memory(size: int, memory: int) -> bool:
    """Whether features of so many bytes lie in memory, of which so much may be used; else in a file."""
    return size <= memory // 2


def check_room(n: int, width: int, precision: Precision, memory: int, folder: Path) -> None:
    """Errors: n records of so many numbers would have to lie on the disk of `folder`, which has less room."""
    size, free = n * width * np.dtype(DTYPES[precision]).itemsize, shutil.disk_usage(folder).free
    why = f"{free / 1e9:.3g} GB are free"
    if not held_in_memory(size, memory) and size > free:
        raise _no_room(n, width, size, why)


def _no_room(n: int, width: int, size: int, why: str) -> RecordError:
    way = "free some, name another <<out>>, raise <<memory>>, take <<precision=single>>, or <<drop>> columns"
    return RecordError(
        f"records need {size / 1e9:.3g} GB on the disk of the run's folder, {n} of {width} numbers; {why}; {way}",
        "records need more room than the disk of the run's folder has",
    )


def arranged(records: Records, order: NDArray[np.int64], folder: Path | None) -> Records:
    """The records order[0], order[1], ... in storage of the same kind, in `folder` (default: for temporary files). A
    negative number is a zero vector, whose loss has no gradient whatever its label.

    Errors: the disk is full.
    """
    width = records.held.shape[1]
    precision: Precision = "double" if records.held.dtype == np.float64 else "single"
    where = None if records.resident else folder or Path(tempfile.gettempdir())
    result = allocate(len(order), width, precision, where, records.design)
    if not records.n:  # all places are empty, and take a record that is zero
        one = None if records.weights is None else np.ones(1)
        none = None if records.factors is None else np.zeros(1)
        zeros: Rows = np.zeros((1, width), records.held.dtype)
        records = replace(records, held=zeros, y=np.zeros(1), weights=one, factors=none)
    step = max(1, (1 << 22) // max(1, width))
    for begin in range(0, len(order), step):
        rows = order[begin : begin + step]
        np.take(records.held, np.maximum(rows, 0), axis=0, out=result.held[begin : begin + len(rows)])
        result.held[begin : begin + len(rows)][rows < 0] = 0.0
        result.forget(begin, begin + len(rows))
        records.forget()
    result.y[:] = np.where(order < 0, 0.0, records.y[order])
    if result.factors is not None and records.factors is not None:
        result.factors[:] = np.where(order < 0, 0.0, records.factors[order])
    return result if records.weights is None else replace(result, weights=records.weights[order])


def in_memory(X: Rows, y: Floats, weights: Floats | None = None) -> Records:
    """Records that are arrays already."""
    return Records(X, y, weights=weights)
