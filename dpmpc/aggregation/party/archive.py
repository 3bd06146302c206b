"""What a party keeps for owners that come when the run is over: everything that was opened, and the end."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from dpmpc.aggregation.plan.asked import Attempt
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.wire.frames import COUNT, NO_TOKEN, READY, PartyCost, pack_beginning
from dpmpc.mpc.transport import channels
from dpmpc.mpc.transport.channels import block_label
from dpmpc.mpc.transport.link import Connection

if TYPE_CHECKING:
    from dpmpc.aggregation.party.resume import Past


class Archive:
    """A finished run at one party. `past` reads what was opened when it is asked for; `note` writes down which owners
    have got everything, so that nobody waits for them again."""

    def __init__(
        self,
        plan: Plan,
        number: int,
        past: "Callable[[], Past]",
        cost: PartyCost,
        delivered: set[int],
        note: Callable[[int, int], None],
    ) -> None:
        self._plan, self._number, self._past, self._cost, self._note = plan, number, past, cost, note
        self.delivered = delivered

    async def serve(self, first: int, end: int, peer: Connection) -> None:
        """Owners that missed the end: all releases, and the costs. Errors: PeerError when they leave."""
        await peer.receive(channels.SPENT)
        self.tells(peer)
        peer.send(channels.READY, READY.pack(0, NO_TOKEN))
        if self._plan.dropouts:
            peer.send(channels.JOIN, COUNT.pack(self._plan.releases))
        peer.send(channels.COST, self._cost.pack())
        await peer.receive(channels.COST)
        self.deliver(first, end)

    def tells(self, peer: Connection) -> None:
        """Sends what was opened. Public among the processes of a run."""
        past = self._past()
        peer.send(channels.BEGIN, pack_beginning(Attempt(self._number, self._plan.releases), past))
        for release, payload in past.items():
            peer.send(block_label(release, -1), payload)

    def deliver(self, first: int, end: int) -> None:
        """These owners have everything."""
        if not set(range(first, end)) <= self.delivered:
            self.delivered.update(range(first, end))
            self._note(first, end)
