"""Processes that must all be connected before a run begins. Until then one that leaves may come again, if that is said;
from then on its loss is the run's."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from dpmpc.errors import PeerError
from dpmpc.mpc.transport.abort_reason import Told
from dpmpc.mpc.transport.link import Connection, Parting
from dpmpc.mpc.transport.meeting import Meeting
from dpmpc.mpc.transport.wire import Peer


class Rendezvous:
    """The processes `needed`, by number, and those that are here."""

    def __init__(self, needed: Iterable[int], on_lost: Callable[[Connection, PeerError], None], *, again: bool) -> None:
        """`again`: whether one that leaves before all are here may come again; if not, its loss is the run's. `on_lost`
        hears of losses after all have come. Needs a running event loop."""
        self._meeting = Meeting(frozenset(needed), again)
        self.here: dict[int, Connection] = {}
        self._on_lost = on_lost
        self._left: dict[int, asyncio.Event] = {}
        self._complete: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._calling: list[asyncio.Future[None]] = []

    def missing(self) -> list[int]:
        """Those that are not here, in order."""
        return self._meeting.missing

    def come(self, number: int, peer: Connection) -> None:
        """This one is here now."""
        assert number not in self.here
        self.here[number] = peer
        self._left[number] = asyncio.Event()
        self._take(self._meeting.comes(number))

    def excuse(self, number: int) -> None:
        """This one is not waited for any more."""
        self._take(self._meeting.excuses(number))

    def _take(self, meeting: Meeting) -> None:
        self._meeting = meeting
        if meeting.stage == "met" and not self._complete.done():
            self._complete.set_result(None)

    def lost(self, peer: Connection, error: PeerError) -> None:
        """A connection has ended; one that never came is nobody's affair."""
        number = next((number for number, each in self.here.items() if each is peer), None)
        if number is None:
            return
        if self._complete.done():
            self._on_lost(peer, error)
            return
        self._take(self._meeting.loses(number, final=isinstance(error, Told)))
        if self._meeting.stage == "failed":
            self._complete.set_exception(error)
        else:
            del self.here[number]
            if isinstance(peer, Peer):
                peer.discard()
            self._left[number].set()

    def forget(self, number: int, why: str) -> None:
        """This one has come again by another connection; the one it has is told so."""
        peer = self.here.pop(number, None)
        if peer is not None:
            self._take(self._meeting.leaves(number))
            self._left[number].set()
            if isinstance(peer, Parting):
                peer.farewell(why)
            if isinstance(peer, Peer):
                peer.discard()
            peer.close()

    def keep_calling(self, number: int, call: Callable[[], Awaitable[Connection]]) -> None:
        """Calls this one, and again when it has left; `call` has it `come`."""

        async def calling() -> None:
            while True:
                peer = await call()
                if self.here.get(number) is peer:
                    await self._left[number].wait()

        task = asyncio.ensure_future(calling())
        task.add_done_callback(lambda done: done.cancelled() or done.exception())  # the first one's is raised
        self._calling.append(task)

    async def all_come(self) -> None:
        """Returns when all are here. Errors: PeerError of a call that cannot succeed, or that the run has failed."""
        if not self.missing():
            return
        await asyncio.wait([self._complete, *self._calling], return_when=asyncio.FIRST_COMPLETED)
        for task in self._calling:
            if task.done():
                task.result()
        self._complete.result()

    async def end(self, reason: str = "") -> None:
        """Nobody else is called. `reason`: why this process leaves, for those that it has greeted and not checked yet:
        they may have it among those that are here. Returns when they have had a moment to read it."""
        for task in self._calling:
            task.cancel(reason or None)
        if not self._complete.done():
            self._complete.set_result(None)
        elif not self._complete.cancelled():
            self._complete.exception()  # whoever waits has it
        if reason:
            await asyncio.gather(*self._calling, return_exceptions=True)
