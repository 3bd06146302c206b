"""Processes that must all be connected before a run begins, as a value: who is needed, who is here, and what the loss
of one means. `rendezvous` has the connections; `tests/aggregation/test_meetings.py` tries every order of events."""

from dataclasses import replace
from typing import Literal

from dpmpc.lazy import dataclass

Stage = Literal["waiting", "met", "failed"]


@dataclass(frozen=True)
class Meeting:
    """`needed`, `here`: processes by number; `again`: whether one that leaves before all are here may come again; if
    not, its loss is the run's. `stage`: "met" from when all were here once."""

    needed: frozenset[int]
    again: bool
    here: frozenset[int] = frozenset()
    stage: Stage = "waiting"

    def comes(self, number: int) -> "Meeting":
        """This one is here now."""
        return replace(self, needed=self.needed | {number}, here=self.here | {number})._on()

    def excuses(self, number: int) -> "Meeting":
        """This one is not waited for any more."""
        return self if number in self.here else replace(self, needed=self.needed - {number})._on()

    def loses(self, number: int, *, final: bool) -> "Meeting":
        """The connection with one that was here has ended; `final`: it said why the run ends. After all have met a
        loss is no matter of the meeting."""
        if self.stage != "waiting":
            return self
        return replace(self, stage="failed") if final or not self.again else self.leaves(number)

    def leaves(self, number: int) -> "Meeting":
        """The connection with this one is given up; it may have come by another."""
        return replace(self, here=self.here - {number})

    @property
    def missing(self) -> list[int]:
        """Those that are not here, in order."""
        return sorted(self.needed - self.here)

    def _on(self) -> "Meeting":
        return replace(self, stage="met") if self.stage == "waiting" and not self.missing else self
