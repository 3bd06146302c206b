"""The agreement on the owners of a release under thousands of schedules: frames in any order between links, parties
that die between two frames, links that break at one end first. No sockets: a scheduler delivers one frame at a time."""

import asyncio
import contextlib
import random
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest

from dpmpc.aggregation.party.agreement import Agreement
from dpmpc.aggregation.party.ballot import Ballot, Said
from dpmpc.aggregation.plan.asked import Presence
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.errors import PeerError
from dpmpc.mpc.parties.loss_tolerance import enough

OWNERS, FEWEST = 6, 2
REPORT: Any = Ballot._report  # the property


class End:
    """Party `me`'s end of its connection with `other`."""

    def __init__(self, net: "Net", me: int, other: int) -> None:
        self.name, self.net, self.me, self.other = f"party {other}", net, me, other
        self.lost = False
        self.waiting: dict[int, asyncio.Future[bytearray]] = {}
        self.arrived: dict[int, bytearray] = {}

    def send(self, label: int, payload: bytes) -> None:
        if self.lost or self.me in self.net.dead:
            raise PeerError("lost")
        self.net.wire[self.me, self.other].append((label, payload))
        self.net.sent[self.me] += 1
        if self.net.sent[self.me] == self.net.dies.get(self.me):
            self.net.dead.add(self.me)

    def receive(self, label: int) -> "asyncio.Future[bytearray]":
        future: asyncio.Future[bytearray] = asyncio.get_running_loop().create_future()
        if label in self.arrived:
            future.set_result(self.arrived.pop(label))
        elif self.lost:
            future.set_exception(PeerError("lost"))
            future.exception()
        else:
            self.waiting[label] = future
        return future

    def take(self, label: int, payload: bytes) -> None:
        future = self.waiting.pop(label, None)
        if future is None:
            self.arrived[label] = bytearray(payload)
        elif not future.done():
            future.set_result(bytearray(payload))

    def lose(self) -> None:
        self.lost = True
        for future in self.waiting.values():
            if not future.done():
                future.set_exception(PeerError("lost"))
                future.exception()


class Net:
    """All links; delivers, kills and breaks as the random numbers say."""

    def __init__(self, n: int, t: int, rng: random.Random, deaths: int, cuts: int) -> None:
        self.n, self.t, self.rng = n, t, rng
        pairs = [(i, j) for i in range(n) for j in range(n) if i != j]
        self.ends = {pair: End(self, *pair) for pair in pairs}
        self.wire: dict[tuple[int, int], list[tuple[int, bytes]]] = {pair: [] for pair in pairs}
        self.sent, self.dead = [0] * n, set[int]()
        mortal = rng.sample(range(n), deaths)
        self.dies = {i: rng.randrange(1, 3 * n) for i in mortal}  # after so many frames
        self.fragile = {i for i in mortal if rng.random() < 0.5}  # or as soon as they know the set
        self.cuts = [tuple(sorted(rng.sample(range(n), 2))) for _ in range(cuts)]
        self.due: list[tuple[int, int]] = []  # ends that are going to notice a loss
        self.noticed = set[int]()
        self.haste = rng.choice([0.1, 0.5, 0.9])  # with which losses are noticed, before frames that were sent earlier

    def step(self) -> bool:
        """One frame delivered, or one loss noticed; False where nothing is left to happen."""
        for dead in self.dead - self.noticed:
            self.noticed.add(dead)
            self.due += [(j, dead) for j in range(self.n) if j != dead]
        if self.cuts and self.rng.random() < 0.05:
            low, high = self.cuts.pop()
            self.due += [(low, high), (high, low)]
            self.due += [(j, high) for j in range(self.n) if j not in (low, high)]  # as `LossTolerantMesh` has it
            self.due += [(high, j) for j in range(self.n) if j not in (low, high)]
        # a dead one's frames that are under way may come before the loss is noticed
        ready = [pair for pair, frames in self.wire.items() if frames and not self.ends[pair[::-1]].lost]
        if self.due and (not ready or self.rng.random() < self.haste):
            self.ends[self.due.pop(self.rng.randrange(len(self.due)))].lose()
            return True
        if ready:
            pair = self.rng.choice(ready)
            label, payload = self.wire[pair].pop(0)
            if pair[1] not in self.dead:
                self.ends[pair[::-1]].take(label, payload)
            return True
        if self.cuts:
            self.cuts.pop()
            return True
        return False


async def decide(plan: Plan, net: Net) -> list[Presence | BaseException]:
    """What each party comes to; its death is a cancellation."""

    async def party(i: int) -> Presence:
        mine = set(net.rng.sample(range(OWNERS), net.rng.randrange(FEWEST, OWNERS + 1)))
        peers = {net.ends[i, j]: j for j in range(net.n) if j != i}
        holder: Any = SimpleNamespace(party=i, connections=lambda: peers)
        agreement = Agreement(plan, holder, 7, enough(net.n, net.t))
        late = iter(range(OWNERS))

        async def more() -> bool:
            mine.add(next(late, 0))  # one comes after the other
            return True

        return await agreement.reached(lambda: tuple(sorted(mine)), more)

    tasks = [asyncio.ensure_future(party(i)) for i in range(net.n)]
    while not all(task.done() for task in tasks):
        for _ in range(8):
            await asyncio.sleep(0)
        net.dead |= {i for i in net.fragile if tasks[i].done()}
        for i in net.dead:
            tasks[i].cancel()
        if not net.step():
            for _ in range(50):
                await asyncio.sleep(0)
            break
    hanging = [i for i, task in enumerate(tasks) if not task.done()]
    for task in tasks:
        task.cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert not hanging or not net.step(), "the scheduler stopped too early"
    assert not hanging, f"parties {hanging} wait for ever"
    return list(results)


def plan_for(n: int, t: int) -> Plan:
    return Plan.create(
        owners=OWNERS, dimension=2, clip=1.0, delta=1e-5, parties=n, threshold=t, min_owners=FEWEST, scale=0.0
    )


def outcomes(n: int, t: int, deaths: int, cuts: int, seeds: range) -> list[list[Presence]]:
    """The sets that the parties of each schedule came to."""
    plan, found = plan_for(n, t), []
    for seed in seeds:
        net = Net(n, t, random.Random(1000 * n + 100 * t + 10 * deaths + cuts + 100_000 * seed), deaths, cuts)
        results = asyncio.run(decide(plan, net))
        ended = (tuple, PeerError, asyncio.CancelledError)
        assert all(isinstance(r, ended) for r in results), (seed, results)
        found.append([r for r in results if isinstance(r, tuple)])
    return found


CASES = [(3, 1, 0, 0), (3, 1, 1, 0), (3, 1, 2, 0), (3, 1, 0, 1), (5, 2, 2, 0), (5, 1, 2, 1), (5, 2, 3, 1), (4, 1, 1, 1)]


@pytest.mark.parametrize(("n", "t", "deaths", "cuts"), CASES)
def test_there_is_one_set_whatever_fails(n: int, t: int, deaths: int, cuts: int) -> None:
    """And where few enough have failed, all that are left come to it."""
    all_sets = outcomes(n, t, deaths, cuts, range(60))
    assert all(len(set(sets)) <= 1 for sets in all_sets)
    if deaths + cuts <= n - enough(n, t):
        assert all(len(sets) >= n - deaths - cuts for sets in all_sets)
        assert {len(sets[0]) for sets in all_sets} > {FEWEST}  # not always the same


def test_a_set_that_is_not_reported_as_locked_may_be_followed_by_another() -> None:
    """The negative control: whoever knows the set dies, and the others begin anew."""

    def forgetful(self: Ballot) -> Said:
        return REPORT.fget(self)._replace(number=0, locked=())  # type: ignore[misc]

    def silent(self: Ballot, owners: Presence, sent: Any) -> Any:
        return replace(self, stage="agreed", found=owners), sent

    with patch.object(Ballot, "_report", property(forgetful)), patch.object(Ballot, "_agreed", silent):
        found = []
        for seed in range(300):
            with contextlib.suppress(AssertionError):  # somebody waits for one that has gone ahead
                found += outcomes(3, 1, 1, 0, range(seed, seed + 1))
    assert any(len(set(sets)) > 1 for sets in found)
