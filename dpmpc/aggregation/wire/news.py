"""How a run is, asked at the parties' ports for owners: by a party that comes again while the others go on without it
or have finished, by an owner that waits for a party that has left."""

import asyncio
from collections.abc import Callable, Sequence

from dpmpc.aggregation.plan.asked import AGREED
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.wire.frames import (
    ANSWER,
    ASKING,
    BEGINNING,
    HAVE,
    HELLO,
    NOBODY,
    OVER,
    RUNNING,
    TELL,
    exact,
    result_size,
    unpack_beginning,
)
from dpmpc.errors import PeerError
from dpmpc.mpc.transport.addresses import Endpoint
from dpmpc.mpc.transport.channels import BEGIN, block_label
from dpmpc.mpc.transport.dial import Call
from dpmpc.mpc.transport.listener import Refused
from dpmpc.mpc.transport.tls import Tls
from dpmpc.mpc.transport.wire import FRAME_COST, Peer

PAUSE = 2.0  # seconds between two questions
_PATIENCE = 5.0  # seconds for an answer
_TIMES = 5  # that a party is told

News = tuple[int, list[int]]  # the run's state, and the parties that have left it


def read_answer(payload: bytes | bytearray) -> tuple[int, bytes, News]:
    """(party, its plan's digest, its news)."""
    party, digest, state, gone = ANSWER.unpack(payload)
    bits = int.from_bytes(gone, "little")
    return party, digest, (state, [j for j in range(8 * len(gone)) if bits >> j & 1])


def names_of_asker(plan: Plan, party: int) -> Sequence[str]:
    """The names of which one must be in the certificate of a process that asks as this party, or as `NOBODY`: an owner.
    Errors: Refused for a party that the plan does not have."""
    if party == NOBODY:
        return ["owners", *(f"owner{j}" for j in range(plan.owners))]
    if party >= plan.parties:
        raise Refused("a party that asks how a run is must be one of its plan; another number came; mend <<index>>")
    return [f"party{party}"]


def elsewhere(plan: Plan) -> str:
    """Where the result of a run is that is over, for who finds no party. Of a stage nobody has one: the run goes on
    from what it opened."""
    if "+" in plan.run_id:
        return ""
    what = "model.npz" if plan.source.TRAINS else "what the run wrote"
    return f"take {what} from another site, it is the same, or "


async def ask(party: int, endpoint: Endpoint, tls: Tls | None, run_id: bytes, greeting: bytes, me: int) -> News | None:
    """What party `party` says of the run; None where it does not answer."""
    return await answer(party, endpoint, tls, run_id, greeting, HELLO.pack(ASKING, me, greeting))


async def past_of(
    party: int, endpoint: Endpoint, tls: Tls | None, plan: Plan, greeting: bytes, me: int
) -> dict[int, bytes] | None:
    """What party `party` opened in a run that is over: by release what owners are sent; None where it does not tell."""
    peer, largest = Peer(f"party {party}", plan.session_id(AGREED)), result_size(plan)
    largest = max(largest, BEGINNING.size + plan.releases)
    try:
        async with asyncio.timeout(_PATIENCE):
            hello = HELLO.pack(ASKING, me | TELL, greeting)
            payload = await Call(endpoint, f"party{party}", tls).once(peer, hello)
            if payload is None or len(payload) != ANSWER.size:
                return None
            found, digest, (state, _) = read_answer(payload)
            if (found, digest, state) != (party, greeting, OVER):
                return None
            peer.admit(largest, (plan.releases + 1) * (largest + FRAME_COST))
            _, known = unpack_beginning(await peer.receive(BEGIN))
        coming = [(release, peer.receive(block_label(release, -1))) for release in known]
        return {release: bytes(exact(peer, await each, result_size(plan))) for release, each in coming}
    except (PeerError, TimeoutError):
        return None
    finally:
        peer.abort("it was asked")


async def say_that_all_is_here(
    party: int, endpoint: Endpoint, tls: Tls | None, run_id: bytes, greeting: bytes, owners: tuple[int, int]
) -> None:
    """Tells a party whose connection was lost that the owners first .. end - 1 have everything, so that it does not
    wait for them. Returns when it knows, or is not there any more."""
    first, end = owners
    for _ in range(_TIMES):
        news = await answer(party, endpoint, tls, run_id, greeting, HELLO.pack(first | HAVE, end, greeting))
        if news is None or news[0] != RUNNING:  # one that waits to begin has no owners to wait for
            return
        await asyncio.sleep(PAUSE)  # it has not opened the last release yet


async def answer(
    party: int, endpoint: Endpoint, tls: Tls | None, run_id: bytes, greeting: bytes, hello: bytes
) -> News | None:
    """What a party answers to this greeting at its port for owners; None where it does not."""
    peer = Peer(f"party {party}", run_id)
    try:
        async with asyncio.timeout(_PATIENCE):
            payload = await Call(endpoint, f"party{party}", tls).once(peer, hello)
    except (PeerError, TimeoutError):
        return None
    finally:
        peer.abort("it was asked")
    if payload is None or len(payload) != ANSWER.size:
        return None
    found, digest, news = read_answer(payload)
    return news if (found, digest) == (party, greeting) else None


async def listen_around(
    endpoints: Sequence[Endpoint],
    tls: Tls | None,
    run_id: bytes,
    greeting: bytes,
    me: int,
    hear: Callable[[int, News], bool],
) -> None:
    """Asks all parties but `me` again and again; returns when `hear` says that this was enough."""
    while True:
        await asyncio.sleep(PAUSE)
        enough = False
        for party, endpoint in enumerate(endpoints):
            if party == me:
                continue
            news = await ask(party, endpoint, tls, run_id, greeting, me)
            enough = (news is not None and hear(party, news)) or enough
        if enough:  # all were asked, and know that this one knows
            return
