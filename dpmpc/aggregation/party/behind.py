"""The stages of a run that a party has behind it: who missed the end of one gets it from the gate of what follows. A
process that was killed in a survey may come again when all others have settled it, and nobody listens for it there."""

import contextlib
from collections.abc import Coroutine, Mapping
from pathlib import Path
from typing import Any

from dpmpc.aggregation.party.archive import Archive
from dpmpc.aggregation.party.resume import standing
from dpmpc.aggregation.plan.asked import AGREED
from dpmpc.aggregation.plan.identities import greeting, shows_accounts
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.wire.account_heads import Remembered
from dpmpc.aggregation.wire.frames import ANSWER, COUNT, OVER, WINDOW, PartyCost
from dpmpc.errors import PeerError, UsageError
from dpmpc.lazy import dataclass
from dpmpc.mpc.native.speed import MOST_SAID
from dpmpc.mpc.transport import channels
from dpmpc.mpc.transport.wire import FRAME_COST, Peer
from dpmpc.privacy.heads import MOST_SHOWN, Memory

_NO_COST = PartyCost(0, 0, 0, 0, 0, 0.0, 0.0, 0)
_NONE_GONE = bytes(64)


@dataclass(frozen=True)
class Behind:
    """A stage whose release party `party` has opened, in its folder `out`. `memory`: of the heads of owners'
    accounts; `sites`: the digest of the list of keys."""

    plan: Plan
    out: Path
    party: int
    memory: Memory | None = None
    sites: bytes = b""

    def answers(self, peer: Peer, *, tells: bool = False) -> None:
        """One that asks hears that the stage is over; `tells`: and what was opened."""
        self._greets(peer)
        peer.admit(0, 0)
        if tells:
            self._archive().tells(peer)

    def _archive(self) -> Archive:
        found = standing(self.plan, self.out, self.party)
        return Archive(self.plan, found.attempts - 1, lambda: found.past, _NO_COST, set(), lambda first, end: None)

    def serves(self, first: int, end: int, peer: Peer) -> Coroutine[Any, Any, None]:
        """Lets the owners first .. end - 1 in; to be awaited: they get what was opened, and the end, or have left."""
        self._greets(peer)
        peer.expects_end = True
        largest = max(COUNT.size + MOST_SAID, MOST_SHOWN)
        peer.admit(largest, (WINDOW + 2) * (largest + FRAME_COST))
        return self._serve(first, end, peer)

    def _greets(self, peer: Peer) -> None:
        peer.belongs_to(self.plan.session_id(AGREED))
        mine = greeting(self.plan, AGREED, sites=self.sites)
        peer.send(channels.HELLO, ANSWER.pack(self.party, mine, OVER, _NONE_GONE))

    async def _serve(self, first: int, end: int, peer: Peer) -> None:
        with contextlib.suppress(PeerError):
            if shows_accounts(self.plan):
                accounts = Remembered(self.plan, self.party, self.memory)
                accounts.ask(peer, first, end)
                accounts.see(peer.name, first, end, await peer.receive(channels.ACCOUNT))
            await self._archive().serve(first, end, peer)


def behind(plan: Plan, out: Path, party: int, memory: Memory | None, sites: bytes = b"") -> Mapping[bytes, Behind]:
    """The stages of the same run that are over at this party, by their greetings: in the folders beside `out`, in it,
    and in the one that it is in."""
    base, found = _base(plan.run_id), dict[bytes, Behind]()
    around = [out.parent, *_folders(out.parent), *_folders(out)] if plan.attempt == AGREED else []
    for folder in around:
        with contextlib.suppress(OSError, UsageError):  # a folder of something else
            other = Plan.read(folder / f"plan_{party}.json")
            if _base(other.run_id) != base or other.run_id == plan.run_id or other.attempt != AGREED:
                continue
            if standing(other, folder, party).over:
                found[greeting(other, AGREED, sites=sites)] = Behind(other, folder, party, memory, sites)
    return found


def _base(run_id: str) -> str:
    return run_id.partition("+")[0]


def _folders(folder: Path) -> list[Path]:
    return sorted(each for each in folder.iterdir() if each.is_dir()) if folder.is_dir() else []
