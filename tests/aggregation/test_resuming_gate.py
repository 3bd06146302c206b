"""Owners that leave, come late and return: three parties and eight owners over TCP, in one process. Without noise, so
that every opened sum is exactly that of the owners in its set."""

import asyncio
import dataclasses
import json
import random
from pathlib import Path

import numpy as np
import pytest

from dpmpc.aggregation.owner.client import OwnerClient
from dpmpc.aggregation.party.job import PartyJob
from dpmpc.aggregation.party.party import run_party
from dpmpc.aggregation.plan.asked import FIRST_ATTEMPT, Presence
from dpmpc.aggregation.plan.grid import Ints
from dpmpc.aggregation.plan.here import Here
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.wire.paths import ledger_path, transcript_path
from dpmpc.aggregation.wire.transcript import read_transcript
from dpmpc.errors import PeerError, UsageError
from dpmpc.mpc.contract.backend import BACKENDS
from dpmpc.mpc.transport.addresses import Endpoint, bound_socket, endpoint_of
from dpmpc.privacy.ledger import Ledger
from dpmpc.verify.structure import check_structure
from tests.runs import HANG

OWNERS, PARTIES, RELEASES, FEWEST = 8, 3, 30, 4


def plan_of(scale: float | None = 0.0, releases: int = RELEASES) -> Plan:
    return Plan.create(
        owners=OWNERS,
        dimension=3,
        clip=1.0,
        epsilon=1.0,
        delta=1e-5,
        releases=releases,
        parties=PARTIES,
        scale=scale,
        min_owners=FEWEST,
        release_wait=0.5,
    )


def vector(j: int, release: int) -> Ints:
    """What owner j sends: every subset of owners has another sum."""
    return np.array([[1 << j, release, 100 * j + release]], dtype=np.int64)


History = dict[int, tuple[list[int], Presence]]


class Killed(Exception):
    """An owner that was told to die."""


class OneOwner:
    """An owner's process: connects, catches up, takes part; dies when it is told to."""

    def __init__(self, plan: Plan, j: int, where: list[Endpoint]) -> None:
        self.plan, self.j, self.where = plan, j, where
        self.history: History = {}
        self.dies_at: tuple[int, str] | None = None
        self.lives = 0
        self.late: list[int] = []  # releases that were made while it caught up
        self.may_catch_up: asyncio.Event | None = None
        self.pauses: dict[int, asyncio.Event] = {}  # before its vector of a release
        self.joined = False  # whether this life has heard with which release it may begin

    async def live(self) -> None:
        """One life. What it knew is lost with it."""
        self.history, self.lives, self.joined = {}, self.lives + 1, False
        client = OwnerClient(self.plan, FIRST_ATTEMPT, self.j, self.j + 1)
        dealer = BACKENDS["sharing"].dealer(PARTIES, 1)
        try:
            await client.connect(self.where, HANG)
            await client.join(0)
            joins = client.joining.first
            self.joined = True
            if self.lives > 1 and self.may_catch_up is not None:
                await self.may_catch_up.wait()
            for release in range(self.plan.releases):
                if client.missed(release):
                    self.late += [release] if release >= joins else []
                else:
                    self._may_die(release, "before")
                    if release in self.pauses:
                        await self.pauses[release].wait()
                    payloads = dealer.deal(vector(self.j, release))
                    if self.dies_at is not None and self.dies_at[0] <= release:  # at some parties only
                        client.peers[0].send(0x100000 * (release + 1) + 1, payloads[0])
                        await asyncio.sleep(0)
                        self._may_die(release, "between")
                    await client.send(release, 0, payloads)
                    self._may_die(release, "after")
                total, _, present = await client.opened(release)
                assert present is not None
                self.history[release] = (total.tolist(), present)
            await client.finish()
        finally:
            client.abandon()
            await asyncio.sleep(0)

    def _may_die(self, release: int, point: str) -> None:
        if self.dies_at is not None and self.dies_at[0] <= release and self.dies_at[1] == point:
            self.dies_at = None
            raise Killed


async def run(plan: Plan, out: Path, body: "object", wait: float = HANG) -> None:
    """The parties of a run, and `body(where owners call)` beside them."""
    bound = [bound_socket() for _ in range(2 * PARTIES)]
    where = [endpoint_of(s) for s in bound]
    jobs = [
        PartyJob(
            plan,
            i,
            where[:PARTIES],
            where[PARTIES:],
            Here(out=out, wait=wait),
            sockets=(bound[i].detach(), bound[PARTIES + i].detach()),
        )
        for i in range(PARTIES)
    ]
    plan.write(out / "plan.json")
    parties = [asyncio.ensure_future(run_party(job, lambda t: None, lambda event, **fields: None)) for job in jobs]
    try:
        async with asyncio.timeout(HANG):
            await asyncio.gather(*parties, body(where[PARTIES:]))  # type: ignore[operator]
    finally:
        for party in parties:
            party.cancel()
        await asyncio.gather(*parties, return_exceptions=True)


def check(plan: Plan, out: Path, histories: list[History]) -> list[Presence]:
    """Every release is the sum of exactly the owners in its set; all owners, parties and files tell the same."""
    for history in histories:
        assert history == histories[0] and sorted(history) == list(range(plan.releases))
    sets = [present for _, present in histories[0].values()]
    for release, (total, present) in histories[0].items():
        assert total == sum(vector(j, release)[0] for j in present).tolist(), (release, present)
        assert len(present) >= plan.fewest
    for i in range(PARTIES):
        book = Ledger.read(ledger_path(out, i))
        assert [entry.present for entry in book.entries] == sets
        told = [e["owners"] for e in read_transcript(transcript_path(out, i)) if e["event"] == "present"]
        assert [tuple(owners) for owners in told] == sets
    return sets


@pytest.mark.slow
def test_owners_die_and_return_and_every_sum_is_that_of_its_set(tmp_path: Path) -> None:
    """A third of the owners at a time are killed at random points, between two parties too, and come again."""
    plan, rng = plan_of(), random.Random(5)
    owners: list[OneOwner] = []

    async def lives(owner: OneOwner) -> None:
        while True:
            try:
                return await owner.live()
            except Killed:
                await asyncio.sleep(0)

    async def body(where: list[Endpoint]) -> None:
        owners.extend(OneOwner(plan, j, where) for j in range(OWNERS))
        victims = {j: iter(sorted(rng.sample(range(1, RELEASES - 5), 4))) for j in (1, 4, 6)}

        async def kill() -> None:
            while True:
                for j, deaths in list(victims.items()):
                    if owners[j].dies_at is None:
                        at = next(deaths, None)
                        if at is None:
                            del victims[j]
                        else:
                            owners[j].dies_at = (at, rng.choice(["before", "between", "after"]))
                if not victims:
                    return
                await asyncio.sleep(0.01)

        killing = asyncio.ensure_future(kill())
        await asyncio.gather(*(lives(owner) for owner in owners))
        killing.cancel()  # an owner that was missing to the end does not die its last death

    asyncio.run(run(plan, tmp_path, body))
    sets = check(plan, tmp_path, [owner.history for owner in owners])
    assert sum(owner.lives for owner in owners) >= OWNERS + 6
    assert any(len(present) < OWNERS for present in sets)
    assert {j for present in sets for j in present} == set(range(OWNERS))


def test_an_owner_that_comes_late_joins_with_the_history(tmp_path: Path) -> None:
    plan = plan_of(releases=6)
    owners: list[OneOwner] = []

    async def body(where: list[Endpoint]) -> None:
        owners.extend(OneOwner(plan, j, where) for j in range(OWNERS))
        early = [asyncio.ensure_future(owner.live()) for owner in owners[:-1]]
        while len(owners[0].history) < 2:
            await asyncio.sleep(0.001)
        await asyncio.gather(owners[-1].live(), *early)

    # it cannot join before: the others wait for nobody that was never there
    asyncio.run(run(plan, tmp_path, body))
    sets = check(plan, tmp_path, [owner.history for owner in owners])
    assert sets[0] == tuple(range(OWNERS - 1))


def test_nobody_waits_for_an_owner_that_catches_up(tmp_path: Path) -> None:
    """An owner returns and takes its time with the history. The others' releases do not wait for it, though each could
    for longer than the test lasts; then it takes what was made meanwhile, and takes part in the rest."""
    plan, back, on = dataclasses.replace(plan_of(), release_wait=10 * HANG), asyncio.Event(), asyncio.Event()
    owners: list[OneOwner] = []

    async def body(where: list[Endpoint]) -> None:
        owners.extend(OneOwner(plan, j, where) for j in range(OWNERS))
        owners[5].dies_at, owners[5].may_catch_up = (3, "after"), back
        owners[2].pauses = {4: on, 9: back}
        others = [asyncio.ensure_future(owner.live()) for j, owner in enumerate(owners) if j != 5]
        with pytest.raises(Killed):
            await owners[5].live()
        returned = asyncio.ensure_future(owners[5].live())
        while owners[5].lives < 2 or not owners[5].joined:
            await asyncio.sleep(0.001)
        on.set()
        while len(owners[2].history) < 9:
            await asyncio.sleep(0.001)
        back.set()
        await asyncio.gather(returned, *others)

    asyncio.run(run(plan, tmp_path, body))
    sets = check(plan, tmp_path, [owner.history for owner in owners])
    everybody, without = tuple(range(OWNERS)), tuple(j for j in range(OWNERS) if j != 5)
    assert sets[:3] == [everybody] * 3 and sets[4:9] == [without] * 5
    assert any(5 in present for present in sets[9:])
    assert set(range(5, 9)) <= set(owners[5].late)


def test_the_structure_of_such_a_run_holds_and_a_forged_set_does_not(tmp_path: Path) -> None:
    plan = plan_of(scale=None, releases=3)

    async def body(where: list[Endpoint]) -> None:
        await asyncio.gather(*(OneOwner(plan, j, where).live() for j in range(1, OWNERS)))

    asyncio.run(run(plan, tmp_path, body))
    structure = check_structure(tmp_path)
    assert structure.holds, structure.failed
    path = transcript_path(tmp_path, 1)
    lines = path.read_text().splitlines()
    k = next(k for k, line in enumerate(lines) if json.loads(line)["event"] == "present")
    event = json.loads(lines[k])
    lines[k] = json.dumps({**event, "owners": event["owners"][:-1]}, separators=(",", ":"))
    path.write_text("\n".join(lines) + "\n")
    assert not check_structure(tmp_path).holds


def test_too_few_owners_end_a_run_by_name(tmp_path: Path) -> None:
    plan = plan_of(releases=2)

    async def body(where: list[Endpoint]) -> None:
        await asyncio.gather(*(OneOwner(plan, j, where).live() for j in range(FEWEST - 1)), return_exceptions=True)

    with pytest.raises(PeerError) as raised:
        asyncio.run(run(plan, tmp_path, body, wait=1.0))
    assert "at least 4 of 8 owners must come" in str(raised.value)
    assert "owner 3, owner 4, owner 5, owner 6, owner 7" in str(raised.value)


def test_plans_say_how_many_owners_are_enough() -> None:
    plan = plan_of()
    assert plan.dropouts and plan.fewest == FEWEST and Plan.from_text(plan.to_text()) == plan
    assert plan.divisor_of(None) == OWNERS and plan.divisor_of((0, 3, 5)) == 3
    for wrong in (-1, 0, OWNERS + 1):
        with pytest.raises(UsageError):
            Plan.create(owners=OWNERS, dimension=3, clip=1.0, epsilon=1.0, delta=1e-5, min_owners=wrong)
    everybody = Plan.create(owners=OWNERS, dimension=3, clip=1.0, epsilon=1.0, delta=1e-5, min_owners=OWNERS)
    assert not everybody.dropouts
    # the noise, in steps of the sum, is that of all owners, whoever comes
    assert (
        plan_of(scale=None).derived.mechanism
        == Plan.create(
            owners=OWNERS, dimension=3, clip=1.0, epsilon=1.0, delta=1e-5, releases=RELEASES
        ).derived.mechanism
    )
