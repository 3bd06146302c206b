"""From an owner's vector to the integers that enter MPC: check, clip, weight, round. Normative rules: `grid`."""

import sys
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from dpmpc.aggregation.plan.asked import Presence
from dpmpc.aggregation.plan.grid import Floats, Ints
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.errors import UsageError
from dpmpc.learning.method import project

_NO_NUMBERS = "cmMSU"  # complex, times, texts: NumPy would make doubles of them without a word


def encode(plan: Plan, vectors: Floats, first: int = 0) -> Ints:
    """Grid steps (k, d) of the vectors (k, d) of owners first .. first + k - 1: each clipped to the plan's norm,
    multiplied by its owner's factor, rounded half to even, and 0 where only other owners count (`Source.own`).
    Secret."""
    clipped = project(vectors, plan.clip)
    if plan.weights == "size":
        clipped = clipped * np.array(plan.factors[first : first + len(vectors)], dtype=np.float64)[:, None]
    steps = plan.grid.encode(clipped)
    own = [plan.source.own(j, j + 1) for j in range(first, first + len(vectors))] if plan.source.tells_owners else []
    for k, places in enumerate(own):
        if places is not None:
            steps[k, ~places] = 0
    return steps


def decode(plan: Plan, total: Ints, present: Presence | None = None) -> Floats:
    """The mean (d,) that an opened sum in grid steps over the owners `present` stands for; None: over all."""
    return plan.grid.decode(total) / plan.divisor_of(present)


def as_blocks(vectors: Any, owners: int, dimension: int, rows: int) -> Iterator[Floats]:
    """The vectors of `owners` owners as float64 arrays (k, dimension) with k = rows but for the last.

    `vectors`: an array (owners, dimension) of any precision or a SciPy sparse one, or an iterable of arrays
    (dimension,) or (k, dimension). None is copied whole: what is in double precision at a time are `rows` rows. Errors:
    UsageError for another number of vectors, another dimension, or values that are not finite numbers (of an array,
    before the first block is given out); nothing of a vector is in the message.
    """
    whole = isinstance(vectors, np.ndarray) or hasattr(vectors, "tocsr") or not isinstance(vectors, Iterable)
    given = [vectors] if whole else vectors
    seen, held, block = 0, 0, np.empty((0, dimension))
    if whole:  # nothing is sent of an array that a later row spoils
        for _ in _pieces(vectors, dimension, rows):
            pass
    for array in (piece for item in given for piece in _pieces(item, dimension, rows)):
        seen += len(array)
        if seen > owners:
            break
        if not held and len(array) == rows:
            yield array
            continue
        while len(array):
            if not held:
                block = np.empty((min(rows, owners), dimension))
            take = min(len(block) - held, len(array))
            block[held : held + take] = array[:take]
            array, held = array[take:], held + take
            if held == len(block):
                yield block
                held = 0
    if seen != owners:
        raise UsageError(
            f"there must be one vector for each of the {owners} owners; got {'more' if seen > owners else seen}; give "
            f"an array ({owners}, {dimension}) or as many vectors",
            code="shape",
        )
    if held:
        yield block[:held]


def _pieces(item: Any, dimension: int, rows: int) -> Iterator[Floats]:
    """The rows of one item, some at a time, in double precision. Errors: as `as_blocks`."""
    if hasattr(item, "tocsr"):
        item = item.tocsr()
    if getattr(item, "ndim", 1) != 2 or item.shape[0] <= rows:
        yield _array(item, dimension)
        return
    for begin in range(0, item.shape[0], rows):
        yield _array(item[begin : begin + rows], dimension)


def _kind(item: Any) -> str:
    return f"{type(item).__name__} of {item.dtype}" if isinstance(item, np.ndarray) else type(item).__name__


def _is_masked(item: Any) -> bool:
    """Whether it is a masked array: there is none before somebody imported numpy.ma."""
    return "numpy.ma" in sys.modules and bool(np.ma.isMaskedArray(item))


def _array(item: Any, dimension: int) -> Floats:
    if hasattr(item, "toarray"):
        if item.shape[1] != dimension:
            raise UsageError(
                f"a vector has dimension {dimension}; got an array of shape {item.shape}; mend the vectors or plan "
                "again",
                code="shape",
            )
        item = item.toarray()
    try:
        found = np.asarray(item)
        words = found.dtype.kind == "O" and any(isinstance(value, str | bytes) for value in found.flat)
        if found.dtype.kind in _NO_NUMBERS or words or _is_masked(item):
            raise TypeError
        array = np.asarray(found, dtype=np.float64)
    except (TypeError, ValueError):
        raise UsageError(
            f"a vector holds {dimension} numbers; got something else ({_kind(item)}); give NumPy arrays of floats",
            code="type",
        ) from None
    if array.ndim == 1:
        array = array[None, :]
    if array.ndim != 2 or array.shape[1] != dimension:
        raise UsageError(
            f"a vector has dimension {dimension}; got an array of shape {array.shape}; mend the vectors or plan again",
            code="shape",
        )
    if not np.isfinite(array).all():
        raise UsageError("a vector must hold finite numbers; one holds NaN or infinity; clean it first", code="range")
    return array
