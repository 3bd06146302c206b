"""Known inputs: data sets with canaries, and the owners' vectors they lead to through the owners' own code.

Every release has data of its own. The largest influence that the accounting allows for a record, 2G/n_j, is nearly
attained: at theta = M u the records +-c w - s u with label 1 are both misclassified by far, so that the slope of the
loss is G at either, and their gradients are nearly opposite, along w. Either there is one canary for each coordinate k
>= 1, w = e_k and u = e_0; or one alone that moves all coordinates alike, w = (1, ..., 1) / sqrt(d). All are owner 0's;
all other records have random labels. Neighbouring data sets differ in one bit; with `copies`, in that of so many equal
records.
"""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dpmpc.aggregation.owner.encoding import encode
from dpmpc.aggregation.plan.grid import Floats, Ints
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.wire.frames import rows_of_block
from dpmpc.lazy import dataclass
from dpmpc.learning.method import DEFAULT_METHOD, Learner
from dpmpc.mpc.contract.backend import DEFAULT
from dpmpc.planning.request import Request
from dpmpc.planning.training import Facts, plan_of
from dpmpc.records.blocks import in_memory

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
class KnownInputs:
    """The inputs of one release: what is shared, its exact sum (d,), the sum if all bits were 0, the bits; and by how
    much the sum is larger if all bits are 1."""

    halves: list[list[Ints]]  # blocks of each owners' process
    total: Ints
    base: Ints
    bits: NDArray[np.bool_]
    step: Ints


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
    copies: int = 1,
) -> Plan:
    """The plan of `releases` releases on data sets of their own: (epsilon, delta) is what each of them promises. Owners
    have room for so many `copies` of every canary."""
    request = Request(
        data=CANARIES,
        owners=owners,
        method=DEFAULT_METHOD,
        iterations=1,
        epsilon=epsilon,
        delta=delta,
        law=law,
        sampler=sampler or "",
        backend=backend,
        parties=parties,
        threshold=threshold,
        pool=True,
    )
    one = plan_of(request, Facts(CANARIES, "logistic", dimension, (1 + copies * (dimension - 1),) * owners, "public"))
    scale = one.derived.scale_steps * one.grid.step / one.divisor
    return replace(one, releases=releases, scale=scale, grid_bits=one.grid.bits)


def processes_of(owners: int) -> list[tuple[int, int]]:
    """The ranges of owners that connect as one process each: two processes, so that there is a last one."""
    return [(0, (owners + 1) // 2), ((owners + 1) // 2, owners)]


class Canaries:
    """Data sets for one plan, each with the vectors they lead to. `seed` fixes them; noise is never seeded."""

    def __init__(
        self, plan: Plan, seed: int, vectors: Vectors = owners_vectors, *, diagonal: bool = False, copies: int = 1
    ) -> None:
        d, (n,) = plan.dimension, set(plan.sizes)
        self.plan, self._vectors, self._copies, self.diagonal = plan, vectors, copies, diagonal
        self._rng = np.random.default_rng(seed)
        aside = np.eye(d)[0] if not diagonal else (np.eye(d)[0] - np.eye(d)[1]) / math.sqrt(2)  # u
        self._along = np.eye(d)[1:] if not diagonal else np.full((1, d), 1 / math.sqrt(d))  # w
        assert len(self._along) * copies < n
        self._theta = FAR * aside
        X = self._rng.standard_normal((plan.owners * n, d))
        self._X = X / np.linalg.norm(X, axis=1, keepdims=True)
        # a gradient is minus the record: bit 1 raises the sum
        self._ones, self._zeros = (
            np.repeat(sign * math.sqrt(1 - TILT**2) * self._along - TILT * aside, copies, axis=0) for sign in (-1, 1)
        )

    def draw(self) -> KnownInputs:
        """The inputs of the next release."""
        plan, rng, d, X = self.plan, self._rng, self.plan.dimension, self._X
        y = np.where(rng.random(len(X)) < 0.5, 1.0, -1.0)
        bits = rng.random(len(self._along)) < 0.5
        mine = slice(1, 1 + len(self._ones))
        y[mine] = 1.0
        X[mine] = np.where(np.repeat(bits, self._copies)[:, None], self._ones, self._zeros)
        halves = [self._of(X, y, first, end) for first, end in processes_of(plan.owners)]
        total = sum((block.sum(axis=0) for blocks in halves for block in blocks), start=np.zeros(d, dtype=np.int64))
        own = halves[0][0][0]
        X[mine] = self._ones
        ones = self._of(X, y, 0, 1)[0][0]
        X[mine] = self._zeros
        zeros = self._of(X, y, 0, 1)[0][0]
        return KnownInputs(halves, total, total - own + zeros, bits, ones - zeros)

    def _of(self, X: Floats, y: Floats, first: int, end: int) -> list[Ints]:
        n = self.plan.sizes[0]
        rows = slice(first * n, end * n)
        return self._vectors(self.plan, self._theta, X[rows], y[rows], first, end)
