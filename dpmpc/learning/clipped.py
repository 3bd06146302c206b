"""What an owner sends for a model of its own making: the mean of its records' vectors, each clipped."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmpc.errors import UsageError
from dpmpc.learning.method import project
from dpmpc.privacy.checks import check_count, check_positive

Floats = NDArray[np.float64]


def clipped_mean(vectors: Any, clip: float, records: int) -> Floats:
    """(d,) the sum of one owner's records' vectors, each clipped to L2 norm `clip`, over its public number of records.
    Secret.

    `vectors`: an array (n, d), one row a record (a gradient of its loss, say), or an iterable of such arrays that is
    never held whole: minibatches of per-record gradients. Double precision whatever the arrays' own.

    Guarantees: replacing one of the records, whatever the model, moves the result by at most 2 clip / `records` in L2
    norm, for one clipped vector of norm at most `clip` is replaced by another; its absence by half of that. `records`
    is the number in the plan, also where fewer rows are given (a minibatch): divided by the rows that are there, one
    record would move it by the more. `Plan.create(records=...)` rests on that.
    Errors: UsageError for no rows, more than `records`, blocks of different width, values that are not finite.
    """
    clip, records = check_positive("the clipping norm", clip), check_count("an owner's number of records", records)
    total: Floats | None = None
    n = 0
    for block in _blocks(vectors):
        if total is None:
            total = np.zeros(block.shape[1])
        if block.shape[1] != len(total):
            raise UsageError(
                f"records' vectors have one dimension; got {len(total)} and {block.shape[1]}; mend them", code="shape"
            )
        if not np.isfinite(block).all():
            raise UsageError(
                "a record's vector must hold finite numbers; one holds NaN or infinity; lower the step", code="range"
            )
        total += project(block, clip).sum(axis=0)
        n += len(block)
    if total is None or not n:
        raise UsageError(
            "an owner's mean needs records; there are none; leave the owner out of the plan", code="enough"
        )
    if n > records:
        raise UsageError(
            f"an owner has as many records' vectors as the plan says at most; the plan says {records}, and there are "
            "more; give each record's once",
            code="plan",
        )
    return total / records


def _blocks(vectors: Any) -> Iterator[Floats]:
    given: Iterable[Any] = [vectors] if hasattr(vectors, "shape") else vectors
    for block in given:
        array = np.asarray(block, dtype=np.float64)
        if array.ndim != 2:
            raise UsageError(
                f"records' vectors are arrays (records, dimension); got shape {array.shape}; mend them", code="shape"
            )
        yield array
