"""The owners' listener of a party: who is admitted, who is told why not, and how much an owner may send."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import numpy as np

from dpmpc.aggregation.owner.client import OwnerClient
from dpmpc.aggregation.party.owner_gate import OwnerGate
from dpmpc.aggregation.plan.asked import FIRST_ATTEMPT
from dpmpc.aggregation.plan.identities import greeting
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.errors import PeerError
from dpmpc.mpc.contract.backend import BACKENDS
from dpmpc.mpc.transport.abort_reason import Told
from dpmpc.mpc.transport.addresses import bound_socket, endpoint_of
from dpmpc.mpc.transport.dial import START
from dpmpc.mpc.transport.in_memory import InMemory
from tests.refusals import refuses
from tests.runs import HANG

PLAN = Plan.create(owners=3, dimension=4, clip=1.0, epsilon=1.0, delta=1e-5, releases=2, parties=1)


@contextlib.asynccontextmanager
async def gate_of(plan: Plan = PLAN, secret: str = "") -> "AsyncIterator[tuple[OwnerGate, list[object], list[str]]]":
    """The only party's gate, where it listens, what it logs."""
    log: list[str] = []
    bound = bound_socket()
    where = [endpoint_of(bound)]
    holder = BACKENDS["sharing"].holder(0, 1, 0, plan.session_id(FIRST_ATTEMPT))
    gate = OwnerGate(plan, FIRST_ATTEMPT, holder, log=log.append, secret=secret)
    await gate.listen(where[0], None, bound)
    try:
        async with asyncio.timeout(HANG):
            yield gate, where, log  # type: ignore[misc]
    finally:
        gate.abandon()
        await asyncio.sleep(0)


def owner(j: int, plan: Plan = PLAN, **settings: str) -> OwnerClient:
    return OwnerClient(plan, FIRST_ATTEMPT, j, j + 1, **settings)  # type: ignore[arg-type]


def test_only_who_knows_the_secret_of_a_run_takes_part() -> None:
    async def body() -> None:
        async with gate_of(secret="known to few") as (gate, where, log):
            stranger = owner(0)
            with refuses("plan", 0, kind=PeerError):
                await stranger.connect(where, HANG)  # type: ignore[arg-type]
            owners = [owner(j, secret="known to few") for j in range(3)]
            await asyncio.gather(gate.admit(HANG), *(o.connect(where, HANG) for o in owners))  # type: ignore[arg-type]
            assert len(log) == 1 and log[0].startswith("refused owner 0: owners and parties must have the same plan")
            for each in owners:
                each.abandon()

    asyncio.run(body())
    assert greeting(PLAN, FIRST_ATTEMPT, "a") != greeting(PLAN, FIRST_ATTEMPT, "b")


def test_an_owner_that_leaves_before_all_are_here_may_come_again() -> None:
    """Killed, failed, or called again while its first connection only seems to live: the last one counts."""

    async def body() -> None:
        async with gate_of() as (gate, where, log):
            admitted = asyncio.ensure_future(gate.admit(HANG))
            killed, failed, first = owner(0), owner(1), owner(2)
            for each in (killed, failed, first):
                await each.connect(where, HANG)  # type: ignore[arg-type]
                if each is killed:
                    killed.abandon()
                if each is failed:
                    await failed.leave("its records are wrong")
            assert not admitted.done()
            again = [owner(j) for j in (0, 1)]
            await asyncio.gather(admitted, *(o.connect(where, HANG) for o in again))  # type: ignore[arg-type]
            assert any("owner 1 left before the run began: its records are wrong" in line for line in log), log
            for each in (first, *again):
                each.abandon()

    asyncio.run(body())


def test_the_second_of_two_owners_of_one_name_counts_and_the_first_is_told() -> None:
    async def body() -> None:
        async with gate_of() as (gate, where, _):
            first, second = owner(0), owner(0)
            await first.connect(where, HANG)  # type: ignore[arg-type]
            await second.connect(where, HANG)  # type: ignore[arg-type]
            with refuses("peer", 0, setting="index"):
                await first.ready()
            assert [first for first, _, _ in gate._admission.guests] == [0]
            second.abandon()

    asyncio.run(body())


def test_the_owner_of_this_process_is_not_replaced_by_another() -> None:
    """It needs no certificate and beats on nothing; its last word is heard, and ends the run."""

    async def body() -> None:
        async with gate_of() as (gate, where, log):
            to_party, to_owner = InMemory.pair("party 0", "owner 1")
            mine = OwnerClient(PLAN, FIRST_ATTEMPT, 1, 2, {0: to_party})
            gate.join(to_owner)
            await mine.connect(where, HANG)  # type: ignore[arg-type]
            with refuses("plan", 1, setting="index", kind=PeerError):
                await owner(1).connect(where, HANG)  # type: ignore[arg-type]
            others = [owner(j) for j in (0, 2)]
            await asyncio.gather(gate.admit(HANG), *(o.connect(where, HANG) for o in others))  # type: ignore[arg-type]
            assert len(log) == 1 and gate.connections()[1] is to_owner and len(gate._heartbeat._peers) == 2
            await mine.leave("owner 1 left before the last release")
            with refuses("peer", 1, kind=Told):
                gate.lost.result()
            for each in others:
                each.abandon()

    asyncio.run(body())


def test_owners_that_never_come_are_named() -> None:
    async def body() -> None:
        async with gate_of() as (gate, where, _):
            here = owner(1)
            await here.connect(where, HANG)  # type: ignore[arg-type]
            with refuses("peer", 2, 3, 0):
                await gate.admit(0.0)
            here.abandon()

    asyncio.run(body())


def test_an_owner_may_send_what_is_due_and_no_more() -> None:
    """Its own vector's shares at a time, and few frames that nobody has asked for."""

    async def body() -> None:
        async with gate_of() as (gate, where, _):
            big, many = owner(0), owner(1)
            for each in (big, many):
                await each.connect(where, HANG)  # type: ignore[arg-type]
            peers = {first: peer for first, _, peer in gate._admission.guests}
            await big.send(0, 0, [np.zeros(PLAN.dimension + 1, dtype="<u8").tobytes()])
            for block in range(20):
                many.peers[0].send(1000 + block, bytes(8 * PLAN.dimension))
            for peer in peers.values():
                await peer.gone(HANG)
            assert peers[0].lost == "it announced a frame of 40 bytes, above the 32 allowed"
            assert "bytes allowed that nobody had asked for" in str(peers[1].lost)
            for each in (big, many):
                each.abandon()

    asyncio.run(body())


def test_the_wait_for_parties_ends_with_the_owners_that_are_missing_too() -> None:
    """By this party's own clock, or as another party told; any other error stays."""

    async def body() -> None:
        async with gate_of() as (gate, where, _):
            here = owner(1)
            await here.connect(where, HANG)  # type: ignore[arg-type]
            text = f"every party must come within 3 s; missing: party 0 (there){{}}{START}, or mend it"
            wanted = text.format("; nor has this party heard of owner 0, owner 2")
            assert gate.beside(PeerError(text.format(""))).message == wanted
            told = gate.beside(Told(text.format(""), "party 1"))
            assert isinstance(told, Told) and (told.cause, told.teller) == (wanted, "party 1")
            other = PeerError("party 1 belongs to another run")
            assert gate.beside(other) is other
            gate.turn_away()
            late = owner(0)
            with refuses("peer", 0, setting="addresses"):
                await late.connect(where, 0.3)  # type: ignore[arg-type]
            here.abandon()

    asyncio.run(body())
