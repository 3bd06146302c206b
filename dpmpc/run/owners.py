"""The owners of a run that are played here, as the engine has them: what they send, and what becomes of it."""

import contextlib
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from dpmpc.aggregation.owner.opens_sums import OpensSums, Release
from dpmpc.aggregation.owner.own_ledger import OwnLedger
from dpmpc.aggregation.plan.asked import Attempt
from dpmpc.aggregation.wire.frames import PartyCost
from dpmpc.lazy import dataclass
from dpmpc.run.resume import Since


@dataclass(frozen=True)
class Made:
    """What a release took that was made now: seconds, and the bytes that all processes sent for it."""

    seconds: float
    sent: int


@dataclass(frozen=True)
class Ended:
    """What became of a run's releases here, public. `attempt`: the one that ended; `last`: the last sum that was
    opened; `seconds`: of each release that was made now; `replayed`: how many were made before this process came;
    `costs`: of the parties; `lost`: those that left."""

    attempt: Attempt
    last: Release
    seconds: Sequence[float]
    replayed: int
    costs: Sequence[PartyCost]
    lost: Sequence[int]


Opens = Callable[[Since, OwnLedger | None], contextlib.AbstractContextManager[OpensSums[Any]]]


class Sends(Protocol):
    """The owners of a run's releases that are played here. `opens`: who opens the sums; None: who is connected."""

    @property
    def opens(self) -> Opens | None: ...

    @property
    def doing(self) -> str:
        """What they do while releases are made, for people."""

    def vectors(self) -> Any:
        """The next release's vectors, (owners, d), whole or in blocks. Secret."""

    def takes(self, release: Release, made: Made | None) -> None:
        """A sum was opened, and is kept. `made`: None for one that was opened before this process came."""

    def keeps(self, ended: Ended) -> None:
        """All are opened: writes down what comes of them."""

    def hears(self, event: str, **fields: Any) -> None:
        """What becomes of the releases meanwhile, for people."""


def nobody(event: str, **fields: Any) -> None:
    """Hears an event and does nothing."""
