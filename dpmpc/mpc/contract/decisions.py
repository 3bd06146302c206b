"""What parties decide of sums of votes before anything of them is opened, and which backend can: a cell's signs where
all its sums stand out of one noise, and nothing of them elsewhere. docs/words.md has what that promises."""

from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dpmpc.errors import UsageError
from dpmpc.lazy import dataclass
from dpmpc.mpc.contract.backend import Counts, Ints, S
from dpmpc.mpc.numbers import field

AT_ONCE = 1 << 16  # sums whose comparisons share their rounds, about
CHANNELS = 4  # of a batch of cells: what is masked and opened, and three programs


HALF = 1 << 60  # half of p = 2^61 - 1, rounded up


@dataclass(frozen=True)
class Decision:
    """Of V (cells, votes), sums over all owners mod p = 2^61 - 1, and one noise eta a cell: a cell passes where

        m(V_j) + eta >= least   for every vote j,     m(v) = min(|v|, 2^60 - |v|),  |v| <= 2^60 - 1 its distance from 0,

    and what is opened of it is then the sign of each V_j, -1 or 1; of a cell that does not pass, zeros. All in grid
    steps. `reach`: what no |V_j| + |eta| of honest owners exceeds: so far m(v) is |v|. Public.

    A sign turns at 0 and half-way round, and m is the distance from both: whatever an owner shares, a sum that moves
    by D moves m by at most D, and turns its sign only where m is at most D before and after. With eta >= least, which
    is as rare as the promise's delta says, every |V_j| must lie in eta - least + 1 .. 2^60 - 2 - (eta - least).
    """

    cells: int
    votes: int
    least: int
    reach: int

    def __post_init__(self) -> None:
        if not (self.cells > 0 and self.votes > 0 and 0 < self.least and 0 < self.reach):
            raise AssertionError("a decision is of votes, by a bound above 0")
        if self.reach + self.least >= HALF:
            raise UsageError(
                "votes are compared below 2^60 grid steps; with their noise they could reach "
                f"{self.reach + self.least:,}; use fewer <<grid_bits>>",
                code="range",
            )

    @property
    def dimension(self) -> int:
        """Of the sums, and of what is opened."""
        return self.cells * self.votes

    @property
    def batches(self) -> tuple["Decision", ...]:
        """The same of some cells at a time, in order."""
        most = max(1, AT_ONCE // self.votes)
        sizes = [min(most, self.cells - at) for at in range(0, self.cells, most)]
        return tuple(Decision(size, self.votes, self.least, self.reach) for size in sizes)


def decided(total: Ints, noise: Ints, decision: Decision) -> Ints:
    """(cells * votes,) what is opened, in the clear: of sums (cells * votes,) and noise (cells,), both secret."""
    sums, eta = total.reshape(decision.cells, decision.votes), noise.reshape(-1, 1)
    above, below = (_positive(eta + each - decision.least + 1) for each in (sums, -sums))
    passed = (above ^ below).all(axis=1, keepdims=True)
    return np.where(passed, np.where(above, 1, -1), 0).reshape(-1).astype(np.int64)


def _positive(numbers: Ints) -> NDArray[np.bool_]:
    """Which are in 1 .. 2^60 - 1, mod p."""
    residue = np.mod(numbers, field.P)
    return (residue >= 1) & (residue < HALF)


@runtime_checkable
class Decides(Protocol[S]):
    """A holder that decides."""

    async def decide(self, total: S, noise: S, decision: Decision, channel: int) -> S:
        """This party's share (cells * votes,) of what is to be opened, of shares of the sums and of the noise.
        `channel`: the first of as many as `CountsDecisions.count_decision` counts. Nobody learns whether a cell passed
        before the share is opened. Errors: CheatError where a party lies, by a backend that checks."""


@runtime_checkable
class CountsDecisions(Protocol):
    """A backend whose holders decide."""

    def check_decisions(self, parties: int, threshold: int) -> None:
        """Errors: UsageError for numbers of parties among which nothing can be decided in secret."""

    def count_decision(self, decision: Decision, parties: int, threshold: int) -> tuple[Counts, ...]:
        """The cost of `Decides.decide`, exactly, by channel."""

    def hiding_decision(self, dimension: int, parties: int, threshold: int) -> float:
        """`distance` of such a decision with so many sums."""

    def undetected_decision(self, decision: Decision, parties: int, threshold: int) -> float:
        """How likely a run, with all its attempts, opens a decision that a cheat has changed, at most; 0 where parties
        are not checked."""


def check_secret(threshold: int) -> None:
    """Errors: UsageError where a party alone reads vectors, so that there is nothing to decide in secret."""
    if threshold < 1:
        raise UsageError(
            "names are decided by parties of which none reads a vector; got the threshold "
            f"{threshold}; use <<parties=3>> or more",
            code="range",
        )
