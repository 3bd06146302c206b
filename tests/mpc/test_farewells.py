"""Whoever leaves a meeting tells those that it has greeted and not checked yet: they may have admitted it by then. Who
comes when all have left is told that nobody is there."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

import pytest

from dpmpc.aggregation.owner.client import OwnerClient
from dpmpc.aggregation.plan.asked import FIRST_ATTEMPT
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.errors import PeerError
from dpmpc.mpc.transport.abort_reason import Told
from dpmpc.mpc.transport.addresses import Endpoint, bound_socket, endpoint_of
from dpmpc.mpc.transport.dial import NOBODY_AT_ALL, NOT_CALLED, TcpLink, not_here
from dpmpc.mpc.transport.link import Connection, Hello
from dpmpc.mpc.transport.listener import Listener
from dpmpc.mpc.transport.reaching import NOBODY_LISTENS
from dpmpc.mpc.transport.wire import Peer
from tests.refusals import refuses
from tests.runs import HANG

CAUSE = PeerError("owner 7 refuses to take part; its own screen says why")
RUN = b"run"
PLAN = Plan.create(owners=2, dimension=2, clip=1.0, delta=1e-5, epsilon=1.0, parties=2, backend="ot")
Leaves = Callable[[list[object], "asyncio.Event"], Awaitable[None]]


async def party_zero(where: list[object], greeted: asyncio.Event) -> None:
    """Calls the other party, and is cancelled for a cause before it is answered."""
    link = TcpLink(0, where)  # type: ignore[arg-type]
    await leaves(link.connect(Hello(0, 2, bytes(32)), RUN, HANG, lambda peer, error: None, None), greeted)


async def owners(where: list[object], greeted: asyncio.Event) -> None:
    """As `party_zero`."""
    client = OwnerClient(PLAN, FIRST_ATTEMPT)
    await leaves(client.connect(where, HANG), greeted)  # type: ignore[arg-type]


async def leaves(meeting: Awaitable[object], greeted: asyncio.Event) -> None:
    task = asyncio.ensure_future(meeting)
    await greeted.wait()
    task.cancel(CAUSE)
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("caller", [party_zero, owners])
def test_who_was_greeted_and_not_checked_hears_why(caller: Leaves) -> None:
    async def body() -> list[PeerError]:
        heard: list[PeerError] = []
        greeted, told = asyncio.Event(), asyncio.Event()
        bound = bound_socket()

        def lost(peer: Connection, error: PeerError) -> None:
            heard.append(error)
            told.set()

        def admit(peer: Peer, greeting: bytearray) -> None:  # and its answer is under way for ever
            peer.admit()
            greeted.set()

        listener = Listener(lambda: Peer("a caller", run_id, lost), admit, lambda text: None)
        run_id = RUN if caller is party_zero else PLAN.session_id(FIRST_ATTEMPT)
        await listener.open(endpoint_of(bound), bound, None, "the other must listen")
        await caller([endpoint_of(bound)] * 2, greeted)
        await told.wait()
        listener.close()
        return heard

    heard = asyncio.run(body())
    assert heard and all(isinstance(error, Told) and error.cause == CAUSE.message for error in heard)


def test_who_comes_when_all_have_left_is_told_that_nobody_is_there() -> None:
    """By what is said while it waits, and at the end; not where one of them has come, or answers."""
    with contextlib.ExitStack() as stack:  # bound, but nobody listens
        there = [endpoint_of(stack.enter_context(bound_socket())) for _ in range(3)]
        who_comes_late(there)


def who_comes_late(there: list[Endpoint]) -> None:
    silent = {j: (there[j], why) for j, why in ((0, NOT_CALLED), (2, NOBODY_LISTENS))}
    text = f"party 0 ({there[0]}, {NOT_CALLED}), party 2 ({there[2]}, {NOBODY_LISTENS}; {NOBODY_AT_ALL})"
    assert not_here(silent, alone=True) == text
    assert not_here(silent, alone=False) == text.replace(f"; {NOBODY_AT_ALL}", "")
    assert NOBODY_AT_ALL not in not_here({**silent, 2: (there[2], "it hangs up")}, alone=True)
    assert not_here({}, alone=True) == ""
    with refuses("peer", NOBODY_LISTENS, NOBODY_AT_ALL, setting="addresses") as said:
        asyncio.run(OwnerClient(PLAN, FIRST_ATTEMPT).connect(there[:2], 0.3))
    assert str(said.value).count(NOBODY_AT_ALL) == 1 and "\n" not in str(said.value)
    link = TcpLink(0, there[:2])
    with refuses("peer", NOBODY_LISTENS, NOBODY_AT_ALL, setting="addresses"):
        asyncio.run(link.connect(Hello(0, 2, bytes(32)), RUN, 0.3, lambda peer, error: None, None))
