"""Inputs stand before a sum opens: an owner and t parties that play together, against unmodified honest parties.

The owner is late at all honest parties but party 0. If that one sends its share of the opening, the cheats read the
noisy sum and then choose what the owner "sent" to the others: shares that go with those that are fixed, and open to
what they like. Without the barrier they succeed, in every backend; with it there is nothing to read.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmpc.aggregation.owner.client import OwnerClient
from dpmpc.aggregation.party.job import PartyJob
from dpmpc.aggregation.party.party import run_party
from dpmpc.aggregation.party.release import ReleaseSteps, Step
from dpmpc.aggregation.plan.asked import FIRST_ATTEMPT
from dpmpc.aggregation.plan.barrier import SAID, has_barrier
from dpmpc.aggregation.plan.grid import Ints
from dpmpc.aggregation.plan.here import Here
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.wire.paths import ledger_path
from dpmpc.mpc.contract.backend import BACKENDS
from dpmpc.mpc.numbers import domains, field
from dpmpc.mpc.numbers.field import Words
from dpmpc.mpc.numbers.prg import Prg
from dpmpc.mpc.numbers.residues import recombine, weighted_sum
from dpmpc.mpc.parties.mesh import Mesh
from dpmpc.mpc.transport.addresses import Endpoint, bound_socket, endpoint_of
from dpmpc.mpc.transport.channels import BARRIER, OPENING, block_label, exchange_label
from dpmpc.privacy.ledger import Ledger
from tests.runs import HANG

D = 4
CHOSEN = np.array([123456, -654321, 42, 7])
BLIND = np.array([-3, 1, 4, 1])  # what the owner shares where nothing was read
HONEST = np.array([[5, -6, 7, 8]])
SETTINGS = {"owners": 2, "dimension": D, "clip": 1.0, "delta": 1e-5, "epsilon": 1.0, "releases": 1, "pool": True}
EARLY = 0  # the honest party whose inputs are in first
CASES = {
    "checked": ({"security": "active"}, (2,)),
    "checked, five": ({"security": "active", "parties": 5}, (1, 4)),
    "shamir-checked": ({"security": "active", "backend": "shamir", "parties": 5}, (1, 4)),
    "sharing": ({}, (1,)),
    "shamir": ({"backend": "shamir", "parties": 5}, (1, 4)),
}
Log = Callable[..., None]


class Cheats:
    """t parties and owner 1. `read`: the noisy sum without that owner, if they get to see it in time."""

    def __init__(self, plan: Plan, parties: tuple[int, ...], out: Path) -> None:
        self.plan, self.parties = plan, parties
        self.ledger, self.spent = ledger_path(out / str(EARLY), EARLY), -1  # lines, when the owner chose
        self.backend, self.t = BACKENDS[plan.backend], plan.threshold
        self.late = [i for i in range(plan.parties) if i not in (*parties, EARLY)]
        self.shares: dict[int, Words] = {}  # of the noisy sum without owner 1
        self.all_here = asyncio.Event()
        self.read: Ints | None = None
        self.saw: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        payload = self.backend.dealer(plan.parties, self.t).deal(np.zeros((1, D), dtype=np.int64))[EARLY]
        self.payload = bytes(payload)  # to the early party: fixed first
        self.fixed = BACKENDS[plan.backend].holder(EARLY, plan.parties, self.t, b"").collect(self.payload, 1, D)
        self.of: dict[int, Words] = {}  # shares of owner 1, when they are chosen

    def step(self, steps: ReleaseSteps) -> Step:
        async def step(number: int) -> Ints:
            me, peers = steps.holder.party, {j: peer for peer, j in steps.holder.connections().items()}
            share = steps.add(number, await steps.inputs(number), await steps.noise(number))
            share = field.sub(share, steps.holder.collect(self.nothing(me), 1, D))
            self.shares[me] = share
            if len(self.shares) == self.t:
                self.all_here.set()
            for peer in peers.values():  # "all my inputs are here"
                peer.send(exchange_label(BARRIER + OPENING + number, 0), SAID.pack(steps.gate.token, number))
            opening = peers[EARLY].receive(exchange_label(OPENING + number, 0))
            if me == self.parties[0]:
                waits = peers[EARLY].receive(exchange_label(BARRIER + OPENING + number, 0))
                await asyncio.wait([opening, waits], return_when=asyncio.FIRST_COMPLETED)
                await self.all_here.wait()
                if opening.done():
                    self.read = field.to_int64(self.sum_of(self.words(opening)))
                self.choose()
            await self.saw
            mine = field.add(share, self.of[me])
            channel = OPENING + number
            after = [(me + k) % self.plan.parties for k in range(1, self.t + 1)]
            for j in after if self.plan.backend == "sharing" else peers:
                peers[j].send(exchange_label(channel, 0), mine.tobytes())
            early = self.words(await opening)
            mine_without = {EARLY: field.sub(early, self.fixed), **self.shares}
            total = field.add(self.secret(mine_without), self.secret({i: self.of[i] for i in mine_without}))
            said = domains.OPENED.digest(steps.holder.run_id, channel, me, value=total.tobytes())
            if "checked" in self.plan.backend:
                for peer in peers.values():
                    peer.send(exchange_label(channel, 1), said)
            return field.to_int64(total)

        return step

    def nothing(self, party: int) -> bytes:
        """What owner 1 sends a cheat, which takes it off again."""
        return bytes(16) + D.to_bytes(8, "little") if party < self.t else bytes(8 * D)

    def words(self, future: Any) -> Words:
        raw = future.result() if isinstance(future, asyncio.Future) else future
        return np.frombuffer(bytes(raw), dtype=np.uint64)

    def secret(self, shares: dict[int, Words]) -> Words:
        return recombine(list(shares.values()), list(shares))

    def sum_of(self, early: Words) -> Words:
        """The noisy sum without owner 1."""
        return self.secret({EARLY: field.sub(early, self.fixed), **self.shares})

    def choose(self) -> None:
        """Owner 1's shares: on a polynomial with the early party's, that opens to what is wanted."""
        wanted = field.from_int64(BLIND if self.read is None else CHOSEN - self.read)
        nodes = {0: wanted, EARLY + 1: self.fixed}
        for i in self.parties[: self.t - 1]:
            nodes[i + 1] = field.uniform(Prg.from_os(), (D,))
        for i in range(self.plan.parties):
            weights = field.lagrange(tuple(nodes), i + 1)
            self.of[i] = weighted_sum(list(nodes.values()), weights) if i + 1 not in nodes else nodes[i + 1]
        self.spent = len(Ledger.read(self.ledger).entries)
        self.saw.set_result(None)

    async def owner(self, where: list[Endpoint]) -> Ints:
        client = OwnerClient(self.plan, FIRST_ATTEMPT, 1, 2)
        try:
            await client.connect(where, HANG)
            await client.ready()
            client.peers[EARLY].send(block_label(0, 0), self.payload)
            for i in self.parties:
                client.peers[i].send(block_label(0, 0), self.nothing(i))
            await self.saw
            for i in self.late:
                client.peers[i].send(block_label(0, 0), self.of[i].tobytes())
            return await finished(client)
        finally:
            client.abandon()


async def finished(client: OwnerClient) -> Ints:
    opened = (await client.opened(0))[0].copy()
    await client.costs()
    await client.finish()
    return opened


async def honest_owner(plan: Plan, where: list[Endpoint]) -> Ints:
    client = OwnerClient(plan, FIRST_ATTEMPT, 0, 1)
    try:
        await client.connect(where, HANG)
        await client.ready()
        await client.send(0, 0, BACKENDS[plan.backend].dealer(plan.parties, plan.threshold).deal(HONEST.copy()))
        return await finished(client)
    finally:
        client.abandon()


async def attack(plan: Plan, cheating: tuple[int, ...], out: Path) -> tuple[Ints, Cheats]:
    """(what every owner got, the cheats)."""
    n, cheats = plan.parties, Cheats(plan, cheating, out)
    bound = [bound_socket() for _ in range(2 * n)]
    where = [endpoint_of(s) for s in bound]
    tasks = []
    for i in range(n):
        (out / str(i)).mkdir()
        numbers = bound[i].detach(), bound[n + i].detach()
        job = PartyJob(plan, i, where[:n], where[n:], Here(out=out / str(i), wait=HANG), sockets=numbers)
        steps: Any = {"make_step": cheats.step} if i in cheating else {}
        tasks.append(run_party(job, lambda text: None, lambda event, **fields: None, **steps))
    async with asyncio.timeout(HANG):
        *_, first, second = await asyncio.gather(*tasks, honest_owner(plan, where[n:]), cheats.owner(where[n:]))
    assert (first == second).all()
    return first, cheats


async def nothing(self: Mesh, share: Any, said: bytes, channel: int) -> None:
    """No barrier."""


@pytest.mark.parametrize("name", list(CASES))
def test_what_the_late_owner_sends_does_not_follow_from_the_sum(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, cheating = CASES[name]
    plan = Plan.create(**{**SETTINGS, **settings})  # type: ignore[arg-type]
    assert plan.backend == name.split(",")[0] and has_barrier(plan)
    (tmp_path / "with").mkdir()
    opened, cheats = asyncio.run(attack(plan, cheating, tmp_path / "with"))
    assert cheats.read is None and cheats.spent == 0  # party 0 said that it is there, spent nothing, showed nothing
    assert (opened != CHOSEN).all()
    sum_without = opened - BLIND
    assert np.abs(sum_without - HONEST[0]).max() < 20 * plan.derived.scale_steps  # the noisy sum, and what was fixed
    monkeypatch.setattr(Mesh, "stand", nothing)  # the control: honest parties as they were before
    (tmp_path / "without").mkdir()
    opened, cheats = asyncio.run(attack(plan, cheating, tmp_path / "without"))
    assert cheats.read is not None and cheats.spent == 1 and (opened == CHOSEN).all()
