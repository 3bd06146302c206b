"""The owners of one process and the public iterate: vectors out, opened means in. Knows nothing of plans or MPC."""

import time
from collections.abc import Iterator, Sequence

import numpy as np

from dpmpc.errors import RecordError, UsageError
from dpmpc.learning.method import DEFAULT_METHOD, METHODS, Floats, Learning, carried, tail_begins
from dpmpc.records.blocks import Records


def check_record_weights(learning: Learning, records: Records) -> None:
    """Errors: UsageError for weights of records that the method is not proved for (see `learning.class_weights`), or
    that are none: beyond 0 to 1."""
    if (w := records.weights) is None:
        return
    if not METHODS[learning.method].weighs:
        raise UsageError(
            f"records count by weights with the method {DEFAULT_METHOD}; got {learning.method}; choose the other, or "
            "leave weights out"
        )
    if w.shape != (records.n,) or not ((w >= 0) & (w <= 1)).all():
        raise RecordError(
            "each record counts 0 to 1 times; a weight lies outside; divide weights by a public bound",
            "each record counts 0 to 1 times; some owner's weights lie outside",
        )


class Learner:
    """Learns from the records of some owners, in step with all others."""

    def __init__(
        self, learning: Learning, iterations: int, records: Records, sizes: Sequence[int], noise: float = 0.0
    ) -> None:
        """`records` are those of these owners, sorted by owner; `sizes`: how many each has. `noise`: the deviation of a
        coordinate of an opened mean, public."""
        self.learning, self.iterations, self.noise = learning, iterations, noise
        self._method = METHODS[learning.method]
        check_record_weights(learning, records)
        self._records = records
        self._offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        assert self._offsets[-1] == records.n
        self.theta = np.zeros(records.d * learning.scores)
        self._moved = np.zeros_like(self.theta)  # by the last release
        self.iteration = 0
        self.compute_s = 0.0  # spent computing vectors
        self._average = np.zeros_like(self.theta)
        self._averaged = 0

    def vectors(self, at_once: int | None = None) -> Iterator[Floats]:
        """The owners' vectors at the present iterate, (k, d) each with k at most `at_once`, in the owners' order."""
        m = len(self._offsets) - 1
        size, factor = at_once or m, self._method.factor(self.learning, self.theta)
        for start in range(0, m, size):
            begin = time.perf_counter()
            offsets = self._offsets[start : start + size + 1]
            records = self._records.part(int(offsets[0]), int(offsets[-1]))
            vectors = self._method.vectors(self.learning, self.theta, records, offsets - offsets[0])
            if factor != 1.0:
                vectors = vectors * factor
            self.compute_s += time.perf_counter() - begin
            yield vectors

    def apply(self, mean: Floats) -> None:
        """Take in one opened mean (d,): the next iterate, or the model. Post-processing."""
        factor = self._method.factor(self.learning, self.theta)
        taken = self._method.take(self.learning, self.theta, mean / factor, self.noise / factor)
        after = carried(self.learning, taken, self._moved)
        self._moved, self.theta = after - self.theta, after
        self.iteration += 1
        average = self.learning.average
        if average == "all" or (average == "tail" and self.iteration >= tail_begins(self.iterations)):
            self._averaged += 1
            self._average += (self.theta - self._average) / self._averaged

    @property
    def model(self) -> Floats:
        """(d,) what would be the result if the run ended now: the iterate, or the average of iterates so far."""
        return self._average.copy() if self._averaged else self.theta
