"""Which parties an owners' process needs, as a value: what parties say of a run, and what the loss of one means.
`client` has the connections; every order of events is tried in `tests/aggregation/test_meetings.py`."""

from collections.abc import Collection
from dataclasses import replace

from dpmpc.aggregation.wire.frames import OVER, RUNNING
from dpmpc.aggregation.wire.news import News
from dpmpc.lazy import dataclass


@dataclass(frozen=True)
class Needed:
    """`parties`: how many there are; `spare`: so many may be missing; `returns`: whether processes may come again. Else
    nobody is left out, and what one party says of others is not believed. `left_out`: parties without which the run
    goes on, as others say; they may be back. `lost`: parties that are not connected any more."""

    parties: int
    spare: int
    returns: bool
    left_out: frozenset[int] = frozenset()
    lost: frozenset[int] = frozenset()

    def hears(self, party: int, news: News, here: Collection[int]) -> "tuple[Needed, frozenset[int]]":
        """A party has said how the run is; also, which parties are not waited for any more. `here`: those that are
        connected. Where the run is over one party is enough."""
        if not self.returns:
            return self, frozenset()
        state, gone = news[0], frozenset(news[1])
        if state == OVER:
            return replace(self, spare=self.parties - 1), self._all - set(here) if party in here else gone
        return replace(self, left_out=self.left_out | gone) if state == RUNNING else self, gone

    def meets(self, here: Collection[int]) -> "Needed":
        """Nobody else is waited for. One that was left out waits for the end, and answers nothing."""
        return replace(self, lost=self._all - (set(here) - self.left_out))

    def loses(self, party: int) -> "Needed":
        """A party has left."""
        return replace(self, lost=self.lost | {party})

    @property
    def failed(self) -> bool:
        """Whether too many have left."""
        return len(self.lost) > self.spare

    @property
    def _all(self) -> frozenset[int]:
        return frozenset(range(self.parties))
