"""Known inputs: data sets with canaries, and the owners' vectors they lead to through the owners' own code.

Every release has data of its own. The largest influence that the accounting allows for a record, 2G/n_j, is nearly
attained: at theta = M e_0 the records +-c e_k - s e_0 with label 1 are both misclassified by far, so that the loss's
slope is G at either, and their gradients are nearly opposite. There is one canary for each coordinate k >= 1, all of
owner 0; all other records have random labels. Neighbouring data sets differ in one bit.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dpmpc.aggregation.encoding import encode
from dpmpc.aggregation.frames import rows_of_block
from dpmpc.aggregation.grid import Floats, Ints
from dpmpc.aggregation.plan import Plan
from dpmpc.data.blocks import in_memory
from dpmpc.learning.learner import Learner
from dpmpc.mpc.backend import DEFAULT
from dpmpc.runs.planning import Facts, plan_of
from dpmpc.runs.request import Request

CANARIES = "canaries"  # the name of the data
TILT = 0.02  # s
FAR = 2000.0  # M

Vectors = Callable[[Plan, Floats, Floats, Floats, int, int], list[Ints]]


def owners_vectors(plan: Plan, theta: Floats, X: Floats, y: Floats, first: int, end: int) -> list[Ints]:
    """The integer vectors of owners first .. end - 1, block by block, as training makes them. X (n, d): theirs."""
    learner = Learner(plan.learning, plan.releases, in_memory(X, y), plan.sizes[first:end])
    learner.theta = theta
    rows = rows_of_block(plan.dimension)
    return [encode(plan, block, first + k * rows) for k, block in enumerate(learner.vectors(rows))]


@dataclass(frozen=True)
class Known:
    """The inputs of one release: what is shared, its exact sum (d,), the sum if all bits were 0, the bits (d - 1,)."""

    halves: list[list[Ints]]  # blocks of each owners' process
    total: Ints
    base: Ints
    bits: NDArray[np.bool_]


def canary_plan(
    law: str,
    owners: int,
    dimension: int,
    releases: int,
    *,
    epsilon: float,
    delta: float,
    parties: int,
    threshold: int,
    sampler: str | None = None,
    backend: str = DEFAULT,
) -> Plan:
    """The plan of `releases` releases on data sets of their own: (epsilon, delta) is what each of them promises."""
    request = Request(
        data=CANARIES,
        owners=owners,
        method="gradient",
        iterations=1,
        epsilon=epsilon,
        delta=delta or None,
        law=law,
        sampler=sampler,
        backend=backend,
        parties=parties,
        threshold=threshold,
        pool=True,
    )
    one = plan_of(request, Facts(CANARIES, "logistic", dimension, (dimension,) * owners, "public"))
    scale = one.derived.scale_steps * one.grid.step / one.divisor
    return replace(one, releases=releases, scale=scale, grid_bits=one.grid.bits)


def processes_of(owners: int) -> list[tuple[int, int]]:
    """The ranges of owners that connect as one process each: two processes, so that there is a last one."""
    return [(0, (owners + 1) // 2), ((owners + 1) // 2, owners)]


class Canaries:
    """Data sets for one plan, each with the vectors they lead to. `seed` fixes them; noise is never seeded."""

    def __init__(self, plan: Plan, seed: int, vectors: Vectors = owners_vectors) -> None:
        assert set(plan.sizes) == {plan.dimension}
        self.plan, self._vectors = plan, vectors
        self._rng = np.random.default_rng(seed)
        self._theta = np.zeros(plan.dimension)
        self._theta[0] = FAR
        X = self._rng.standard_normal((plan.owners * plan.dimension, plan.dimension))
        self._X = X / np.linalg.norm(X, axis=1, keepdims=True)
        self._ones = self._canaries(-1.0)  # a gradient is minus the record: bit 1 raises the sum
        self._zeros = self._canaries(1.0)

    def _canaries(self, sign: float) -> Floats:
        d = self.plan.dimension
        rows = sign * math.sqrt(1 - TILT**2) * np.eye(d)[1:]
        rows[:, 0] = -TILT
        return rows

    def draw(self) -> Known:
        """The inputs of the next release."""
        plan, rng, d, X = self.plan, self._rng, self.plan.dimension, self._X
        y = np.where(rng.random(len(X)) < 0.5, 1.0, -1.0)
        bits = rng.random(d - 1) < 0.5
        y[1:d] = 1.0
        X[1:d] = np.where(bits[:, None], self._ones, self._zeros)
        halves = [self._of(X, y, first, end) for first, end in processes_of(plan.owners)]
        total = sum((block.sum(axis=0) for blocks in halves for block in blocks), start=np.zeros(d, dtype=np.int64))
        mine = self._of(X, y, 0, 1)[0][0]
        X[1:d] = self._zeros
        return Known(halves, total, total - mine + self._of(X, y, 0, 1)[0][0], bits)

    def _of(self, X: Floats, y: Floats, first: int, end: int) -> list[Ints]:
        d = self.plan.dimension
        rows = slice(first * d, end * d)
        return self._vectors(self.plan, self._theta, X[rows], y[rows], first, end)
