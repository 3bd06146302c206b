"""Openings that go on without parties: lost at any point, cut off from one another, refusing; over TCP, in one
process."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
import pytest

from dpmpc.errors import PeerError
from dpmpc.mpc.contract.backend import count_here
from dpmpc.mpc.numbers import field
from dpmpc.mpc.numbers.prg import Prg
from dpmpc.mpc.parties.loss_tolerance import enough
from dpmpc.mpc.replicated.backend import SHARING, SharingHolder
from dpmpc.mpc.shamir.backend import SHAMIR
from dpmpc.mpc.transport.addresses import bound_socket, endpoint_of
from dpmpc.mpc.transport.channels import BARRIER, OPENING, exchange_label
from dpmpc.mpc.transport.dial import TcpLink
from dpmpc.mpc.transport.wire import HEADER, Peer
from tests.refusals import refuses
from tests.runs import HANG

Parties = list[SharingHolder]


def with_parties(
    n: int, t: int, body: Callable[[Parties], Awaitable[None]], *, backend: Any = SHARING, tolerate: bool = True
) -> None:
    """Runs `body` on n connected holders that have made all noise."""

    async def main() -> None:
        parties = [backend.holder(i, n, t, b"outliving") for i in range(n)]
        bound = [bound_socket() for _ in range(n)]
        where = [endpoint_of(s) for s in bound]
        try:
            async with asyncio.timeout(HANG):
                links = [TcpLink(i, where, bound=s) for i, s in enumerate(bound)]
                await asyncio.gather(*(p.connect(k, seconds=HANG) for p, k in zip(parties, links, strict=True)))
                for party in parties if tolerate else ():
                    party.tolerate_loss()
                await body(parties)
        finally:
            for party in parties:
                party.abandon()
            await asyncio.sleep(0.01)

    asyncio.run(main())


def shares_of(value: int, n: int, t: int) -> np.ndarray:
    return field.share(field.from_int64(np.array([value, -value], dtype=np.int64)), n, t, Prg.from_os())


def cut(one: SharingHolder, other: SharingHolder) -> None:
    """The connection of two parties breaks; both live."""
    peer = one.peers[other.party]
    assert isinstance(peer, Peer)
    peer.abort("the network failed")


async def kill(party: SharingHolder) -> None:
    for peer in party.peers.values():
        assert isinstance(peer, Peer)
        peer.abort("killed")


@pytest.mark.parametrize(("n", "t", "victims"), [(3, 1, [1]), (5, 2, [4, 2]), (5, 1, [0, 3]), (4, 1, [2])])
def test_sums_open_from_those_left_and_cost_no_more_before(n: int, t: int, victims: list[int]) -> None:
    async def body(parties: Parties) -> None:
        shares = shares_of(7, n, t)
        sent = [p.bytes_sent for p in parties]
        opened = await asyncio.gather(*(p.open(shares[p.party], OPENING) for p in parties))
        assert all(o.tolist() == [7, -7] for o in opened)
        assert [p.bytes_sent - b for p, b in zip(parties, sent, strict=True)] == [t * (HEADER.size + 16)] * n
        left = list(parties)
        for k, victim in enumerate(victims):
            await kill(parties[victim])
            left.remove(parties[victim])
            shares = shares_of(k, n, t)
            opened = await asyncio.gather(*(p.open(shares[p.party], OPENING + 1 + k) for p in left))
            assert all(o.tolist() == [k, -k] for o in opened) and not any(p.lost.done() for p in left)
        assert all(sorted(p.gone) == sorted(victims) for p in left) and len(left) >= enough(n, t)

    with_parties(n, t, body)


@pytest.mark.parametrize(("n", "t", "victim"), [(3, 1, 1), (5, 2, 0)])
def test_a_barrier_waits_for_all_that_are_left(n: int, t: int, victim: int) -> None:
    async def body(parties: Parties) -> None:
        frames, rounds = [p.bytes_sent for p in parties], [p.rounds for p in parties]
        await asyncio.gather(*(p.stand(None, b"release 0", OPENING) for p in parties))
        due = count_here(9, n).bytes_with_headers(HEADER.size)
        assert [p.bytes_sent - b for p, b in zip(parties, frames, strict=True)] == due
        assert [p.rounds - r for p, r in zip(parties, rounds, strict=True)] == [1] * n
        left = [p for p in parties if p.party != victim]
        tasks = [asyncio.ensure_future(p.stand(None, b"release 1", OPENING + 1)) for p in left]
        opened = await asyncio.gather(*(p.open(share, 9) for p, share in zip(parties, shares_of(7, n, t), strict=True)))
        assert all(o.tolist() == [7, -7] for o in opened)  # frames that were sent later have come
        assert not any(task.done() for task in tasks)  # the victim has not said it
        await kill(parties[victim])
        await asyncio.gather(*tasks)
        said = [asyncio.ensure_future(p.here(5, b"%d" % (p is left[0]))) for p in left]
        found = await asyncio.gather(*said, return_exceptions=True)
        assert isinstance(found[0], PeerError) and "at one point of one attempt" in str(found[0])

    with_parties(n, t, body)


@pytest.mark.parametrize("victim", range(5))
def test_a_party_that_dies_when_only_some_have_its_share(victim: int) -> None:
    """Those who have gone on send theirs again to the one that waits: nobody is left behind."""

    async def body(parties: Parties) -> None:
        shares = shares_of(7, 5, 2)
        left = [p for p in parties if p.party != victim]
        tasks = [asyncio.ensure_future(p.open(shares[p.party], OPENING)) for p in left]
        after = (victim + 1) % 5  # the only one that gets it
        parties[victim].peers[after].send(OPENING << 32, shares[victim].data.cast("B"))
        first = next(task for p, task in zip(left, tasks, strict=True) if p.party == after)
        assert (await first).tolist() == [7, -7]
        assert not all(task.done() for task in tasks)
        await kill(parties[victim])
        assert all(o.tolist() == [7, -7] for o in await asyncio.gather(*tasks))

    with_parties(5, 2, body)


@pytest.mark.parametrize(("a", "b"), [(0, 1), (0, 2), (1, 2)])
def test_of_two_that_have_lost_each_other_the_higher_one_is_left_out(a: int, b: int) -> None:
    async def body(parties: Parties) -> None:
        third = parties[3 - a - b]
        shares = shares_of(5, 3, 1)
        cut(parties[a], parties[b])
        both = [third, parties[a]]
        opened = await asyncio.gather(*(p.open(shares[p.party], OPENING) for p in both))
        assert all(o.tolist() == [5, -5] for o in opened)
        with pytest.raises(PeerError):
            await parties[b].lost  # it has lost one, and is told by the other
        assert [sorted(p.gone) for p in both] == [[b], [b]] and not any(p.lost.done() for p in both)

    with_parties(3, 1, body)


def test_of_a_network_in_two_the_smaller_part_ends() -> None:
    """n = 5 in 3 + 2, and t = 1: two parties could open, and must not."""

    async def body(parties: Parties) -> None:
        for a in (0, 1, 2):
            for b in (3, 4):
                cut(parties[a], parties[b])
        for p in parties[3:]:
            with pytest.raises(PeerError):
                await p.lost
        shares = shares_of(5, 5, 1)
        opened = await asyncio.gather(*(p.open(shares[p.party], OPENING) for p in parties[:3]))
        assert all(o.tolist() == [5, -5] for o in opened)

    with_parties(5, 1, body)


def test_one_party_too_many_ends_the_run_with_the_first_cause() -> None:
    async def body(parties: Parties) -> None:
        await kill(parties[2])
        shares = shares_of(5, 3, 1)
        await asyncio.gather(*(p.open(shares[p.party], OPENING) for p in parties[:2]))
        await kill(parties[1])
        with refuses("peer", 2):
            await parties[0].lost

    with_parties(3, 1, body)


def test_noise_needs_all_and_a_refusal_is_no_loss() -> None:
    async def body(parties: Parties) -> None:
        await kill(parties[1])
        while not parties[0].gone:
            await asyncio.sleep(0)
        with refuses("peer", 1):
            await parties[0].noise(None, 1 << 24, 4)  # type: ignore[arg-type]

    async def refusal(parties: Parties) -> None:
        for peer in parties[1].peers.values():
            assert isinstance(peer, Peer)
            peer.farewell("party 1 stopped, for it was not used as it must be; its own log says how")
        for p in (parties[0], parties[2]):
            with refuses("peer", 1):
                await p.lost

    with_parties(3, 1, body)
    with_parties(3, 1, refusal)


@pytest.mark.parametrize("backend", [SHARING, SHAMIR], ids=["sharing", "shamir"])
def test_where_all_are_needed_nothing_is_opened_without_one(backend: Any) -> None:
    """Party 1 is lost when party 2 has said everything and party 0 nothing. Whatever runs first at party 0, it sends no
    frame and opens nothing: its transcript would hold a release of which it sent no share, with nobody lost."""

    async def body(parties: Parties) -> None:
        shares = shares_of(7, 3, 1)
        early = [asyncio.ensure_future(parties[2].stand(None, b"said", OPENING))]
        early += [asyncio.ensure_future(parties[2].open(shares[2], OPENING))]
        from_two = parties[0].peers[2]
        assert isinstance(from_two, Peer)
        due = [exchange_label(BARRIER + OPENING, 0), exchange_label(OPENING, 0)]
        while not all(map(from_two.has, due)):
            await asyncio.sleep(0)
        await kill(parties[1])
        while not parties[0].gone:
            await asyncio.sleep(0)
        before = parties[0].frames_sent
        for late in (parties[0].stand(None, b"said", OPENING), parties[0].open(shares[0], OPENING)):
            with refuses("peer", 1):
                await late
        assert parties[0].frames_sent == before
        for each in early:
            each.cancel()
        await asyncio.gather(*early, return_exceptions=True)

    with_parties(3, 1, body, backend=backend, tolerate=False)


@pytest.mark.parametrize(
    ("n", "t", "spare"), [(1, 0, 0), (2, 0, 0), (3, 1, 1), (4, 1, 1), (5, 1, 2), (5, 2, 2), (7, 2, 3)]
)
def test_a_run_needs_more_than_half_of_its_parties(n: int, t: int, spare: int) -> None:
    assert SHARING.spare(n, t) == spare == n - enough(n, t)
    assert 2 * enough(n, t) > n and enough(n, t) > t
