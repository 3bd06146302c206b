"""Runs over several folders that are carried on by the same calls: parties and owners in one process over TCP, stopped
all at once, with folders that were lost, copied or set back meanwhile. Without noise, so that every sum is exact."""

import asyncio
import contextlib
import shutil
from pathlib import Path

import numpy as np
import pytest

from dpmpc.aggregation.owner.client import OwnerClient
from dpmpc.aggregation.party.job import PartyJob
from dpmpc.aggregation.party.party import run_party
from dpmpc.aggregation.party.resume import check_new, spent_releases, standing
from dpmpc.aggregation.plan.asked import AGREED, Attempt
from dpmpc.aggregation.plan.grid import Ints
from dpmpc.aggregation.plan.here import Here
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.plan.spending import entry_of, reservation_of
from dpmpc.aggregation.wire.paths import ledger_path, opened_path, transcript_path
from dpmpc.aggregation.wire.transcript import read_opened, read_transcript
from dpmpc.mpc.contract.backend import BACKENDS
from dpmpc.mpc.transport.addresses import Endpoint, bound_socket, endpoint_of
from dpmpc.mpc.transport.dial import Call
from dpmpc.mpc.transport.link import Connection
from dpmpc.mpc.transport.rendezvous import Rendezvous
from dpmpc.mpc.transport.wire import Peer
from dpmpc.privacy.budget import reserved
from dpmpc.privacy.ledger import Ledger
from dpmpc.privacy.ledgers import merge, read_ledgers
from tests.refusals import refuses
from tests.runs import HANG as LONG

OWNERS, PARTIES, RELEASES = 2, 3, 8
HANG = LONG


def plan_of(**changes: object) -> Plan:
    settings = {"owners": OWNERS, "dimension": 3, "clip": 1.0, "delta": 1e-5, "releases": RELEASES, "scale": 0.0}
    return Plan.create(**{**settings, **changes})  # type: ignore[arg-type]


def vector(j: int, release: int) -> Ints:
    return np.array([[1 << j, release, 100 * j + release]], dtype=np.int64)


def total(release: int) -> list[int]:
    return np.concatenate([vector(j, release) for j in range(OWNERS)]).sum(axis=0).tolist()  # type: ignore[no-any-return]


History = dict[int, list[int]]


async def owner(
    plan: Plan,
    j: int,
    where: list[Endpoint],
    history: History,
    stop: int,
    spent: int = 0,
    cut_off: bool = False,
    pause: tuple[int, asyncio.Event] | None = None,
) -> None:
    """One owner's process, up to release `stop`: there everything is interrupted. `cut_off`: when it has everything,
    its connections are gone."""
    client = OwnerClient(plan, AGREED, j, j + 1)
    dealer = BACKENDS[plan.backend].dealer(PARTIES, 1)
    try:
        await client.connect(where, HANG)
        attempt, known = await client.begin(spent)
        await (client.join(attempt.first_release) if plan.dropouts else client.ready())
        first = client.joining.first
        for release in known:
            history[release] = (await client.opened(release))[0].tolist()
        for release in range(attempt.first_release, plan.releases):
            if release == stop:
                raise asyncio.CancelledError
            if pause is not None and release == pause[0]:
                await pause[1].wait()
            if release >= first:
                await client.send(release, 0, dealer.deal(vector(j, release)))
            history[release] = (await client.opened(release))[0].tolist()
        await client.costs()
        if cut_off:
            for peer in client.peers.values():
                assert isinstance(peer, Peer)
                peer.abort("it was stopped for too long")
        await client.finish()
    finally:
        client.abandon()
        await asyncio.sleep(0)


async def attempt(
    plan: Plan, out: Path, histories: list[History], stop: int = -1, spent: int = 0, wait: float = HANG
) -> list[BaseException | None]:
    """All processes once; interrupted where the first owner is to send release `stop`. How the parties ended."""
    bound = [bound_socket() for _ in range(2 * PARTIES)]
    where = [endpoint_of(s) for s in bound]
    parties = []
    for i in range(PARTIES):
        folder = out / f"party{i}"
        folder.mkdir(exist_ok=True)
        numbers = bound[i].detach(), bound[PARTIES + i].detach()
        job = PartyJob(
            plan,
            i,
            where[:PARTIES],
            where[PARTIES:],
            Here(out=folder, wait=wait),
            plan.attempt,
            sockets=numbers,
            tolerates_loss=True,
        )
        parties.append(asyncio.ensure_future(run_party(job, lambda t: None, lambda event, **fields: None)))
    owners = [
        asyncio.ensure_future(owner(plan, j, where[PARTIES:], histories[j], stop if j == 0 else -1, spent))
        for j in range(OWNERS)
    ]
    async with asyncio.timeout(HANG):
        await asyncio.wait(owners[:1])
        if stop >= 0:
            for task in (*owners, *parties):
                task.cancel()
        await asyncio.gather(*owners, return_exceptions=stop >= 0)
        return list(await asyncio.gather(*parties, return_exceptions=True))


def run(plan: Plan, out: Path, histories: list[History], **settings: float) -> list[BaseException | None]:
    return asyncio.run(attempt(plan, out, histories, **settings))  # type: ignore[arg-type]


def starts(out: Path, i: int) -> list[tuple[int, int]]:
    events = read_transcript(transcript_path(out / f"party{i}", i))
    return [(e["attempt"], e["first_release"]) for e in events if e["event"] == "start"]


def sent(out: Path) -> dict[int, set[int]]:
    """release -> the attempts in which a share of it left a party."""
    found: dict[int, set[int]] = {}
    for i in range(PARTIES):
        number = -1
        for event in read_transcript(transcript_path(out / f"party{i}", i)):
            number = event.get("attempt", number)
            if event["event"] == "send":
                found.setdefault(event["release"], set()).add(number)
    return found


def spent(out: Path) -> list[int]:
    books = [Ledger.read(ledger_path(out / f"party{i}", i)) for i in range(PARTIES)]
    return sorted(entry.release for entry in merge(books))


@pytest.mark.parametrize("changes", [{}, {"min_owners": 1, "release_wait": HANG}, {"backend": "shamir"}])
def test_the_same_calls_carry_a_run_on(changes: dict[str, object], tmp_path: Path) -> None:
    plan = plan_of(**changes)
    first: list[History] = [{} for _ in range(OWNERS)]
    assert all(isinstance(e, asyncio.CancelledError) for e in run(plan, tmp_path, first, stop=3))
    histories: list[History] = [{} for _ in range(OWNERS)]
    assert run(plan, tmp_path, histories) == [None] * PARTIES
    begun = [starts(tmp_path, i) for i in range(PARTIES)]
    assert begun[0] == begun[1] == begun[2] and begun[0][0] == (0, 0) and begun[0][1][0] == 1
    assert 3 <= begun[0][1][1] <= 4  # a release that some ledger has is not made again
    assert histories[0] == histories[1] and {0, 1, 2} <= histories[0].keys()
    assert all(history[r] == total(r) for history in histories for r in history)
    assert all(len(attempts) == 1 for attempts in sent(tmp_path).values())
    assert spent(tmp_path) == list(range(RELEASES))
    for i in range(PARTIES):  # as if they had died before the owners said that they had everything
        path = transcript_path(tmp_path / f"party{i}", i)
        path.write_text("".join(f"{x}\n" for x in path.read_text().splitlines() if "delivered" not in x))
    again: list[History] = [{} for _ in range(OWNERS)]  # the run is over: who comes gets everything, and no more opens
    assert run(plan, tmp_path, again) == [None] * PARTIES
    assert again == histories and spent(tmp_path) == list(range(RELEASES))


def test_ledgers_tell_two_runs_of_a_plan_apart_by_what_the_parties_drew(tmp_path: Path) -> None:
    plan = plan_of()
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        run(plan, tmp_path / name, [{} for _ in range(OWNERS)])
    one = Ledger.read(ledger_path(tmp_path / "first" / "party0", 0))
    assert one.gaps == one.open == () and len({entry.token for entry in one.entries}) == 1 and one.entries[0].token
    for k, name in ((1, "second"), (2, "first")):
        other = Ledger.read(ledger_path(tmp_path / name / f"party{k}", k))
        twice = 2 if name == "second" else 1
        assert sorted(e.release for e in merge([one, other])) == sorted([*range(RELEASES)] * twice)


def test_folders_that_were_lost_or_set_back_do_not_make_a_release_again(tmp_path: Path) -> None:
    """Party 0 has lost everything, party 1 has its state of an attempt before; party 2 knows."""
    plan = plan_of()
    run(plan, tmp_path, [{} for _ in range(OWNERS)], stop=2)
    shutil.copytree(tmp_path / "party1", tmp_path / "old")
    run(plan, tmp_path, [{} for _ in range(OWNERS)], stop=5)
    before = spent(tmp_path)
    shutil.rmtree(tmp_path / "party0")
    shutil.rmtree(tmp_path / "party1")
    shutil.copytree(tmp_path / "old", tmp_path / "party1")
    histories: list[History] = [{} for _ in range(OWNERS)]
    assert run(plan, tmp_path, histories) == [None] * PARTIES
    assert [len(merge([Ledger.read(ledger_path(tmp_path / f"party{i}", i))])) for i in range(3)] == [RELEASES] * 3
    (_, (number, release)) = starts(tmp_path, 1)
    assert number == 2 and starts(tmp_path, 0) == [(2, release)] and release == len(before)
    known = read_opened(opened_path(tmp_path / "party2", 2), plan.dimension)
    for i in (0, 1):  # what they lacked was told to them, and is kept
        theirs = read_opened(opened_path(tmp_path / f"party{i}", i), plan.dimension)
        assert theirs.keys() == known.keys() == histories[0].keys()
    assert histories[0] == histories[1] and {0, 1, 2, 3, 4} <= histories[0].keys()
    # the copy's lines count once, and nothing beside the plan
    paths = [*(ledger_path(tmp_path / f"party{i}", i) for i in range(PARTIES)), tmp_path / "old" / "ledger_1.jsonl"]
    assert sorted(entry.release for entry in merge(map(Ledger.read, paths))) == list(range(RELEASES))


def test_an_owner_s_ledger_counts_too(tmp_path: Path) -> None:
    """It wrote a line before its vector left, and no party came to write one."""
    plan = plan_of()
    run(plan, tmp_path, [{} for _ in range(OWNERS)], stop=2)
    histories: list[History] = [{} for _ in range(OWNERS)]
    assert run(plan, tmp_path, histories, spent=6) == [None] * PARTIES
    assert starts(tmp_path, 0)[1] == (1, 6) and sorted(histories[0]) == [0, 1, 6, 7]


def test_an_owner_that_has_spent_more_than_was_planned_is_of_another_run(tmp_path: Path) -> None:
    with refuses("peer", 9, 8):
        run(plan_of(), tmp_path, [{} for _ in range(OWNERS)], spent=9)


def test_parties_that_have_opened_different_vectors_do_not_go_on(tmp_path: Path) -> None:
    plan = plan_of()
    run(plan, tmp_path, [{} for _ in range(OWNERS)], stop=3)
    path = opened_path(tmp_path / "party1", 1)
    raw = bytearray(path.read_bytes())
    raw[-1] ^= 1
    path.write_bytes(raw)
    with refuses("peer", 2):
        run(plan, tmp_path, [{} for _ in range(OWNERS)])


def test_a_run_that_is_replaced_needs_another_name(tmp_path: Path) -> None:
    plan = plan_of()
    run(plan, tmp_path, [{} for _ in range(OWNERS)], stop=3)
    ledger = ledger_path(tmp_path / "party0", 0)
    assert 3 <= spent_releases(ledger, plan.run_id) <= 4 and spent_releases(ledger, "another") == 0
    with refuses("over", "run_id", setting="overwrite"):
        check_new([ledger], plan.run_id)
    check_new([ledger, tmp_path / "none"], "another")
    assert standing(plan, tmp_path / "party0", 0).attempts == 1


def test_what_others_spent_before_an_attempt_counts_once_at_a_party_that_comes_again(tmp_path: Path) -> None:
    """Release 3 has a line at owners only; party 1 has begun the attempt after it, and died before a line of its own.
    When it comes again and others have gone on, what it counts is what was planned."""
    plan = plan_of()
    path = ledger_path(tmp_path / "party1", 1)

    def counted() -> list[int]:
        return sorted(entry.release for entry in merge(read_ledgers(path.parent)))

    with Ledger(path) as ledger:
        ledger.begin(entry_of(plan, Attempt(0), 0, token="1" * 32))
        for release in range(3):
            ledger.append(entry_of(plan, Attempt(0), release))
        ledger.begin(entry_of(plan, Attempt(1, 4), 4, token="2" * 32))
    assert spent_releases(path, plan.run_id) == standing(plan, path.parent, 1).spent == 4
    assert counted() == [0, 1, 2, 3]
    coming = Attempt(2, 4)
    with Ledger(path) as ledger, reserved(ledger, reservation_of(plan, coming), None):
        assert counted() == list(range(plan.releases))
        ledger.goes_on(entry_of(plan, coming, coming.first_release), (0, 2))
    assert counted() == list(range(plan.releases))


def test_a_party_that_comes_again_hears_how_the_run_is(tmp_path: Path) -> None:
    """The others go on without it, and finish; it ends when they say so, and the owners get all from them."""
    plan = plan_of(releases=40)
    histories: list[History] = [{} for _ in range(OWNERS)]

    async def body() -> tuple[list[BaseException | None], list[str]]:
        bound = [bound_socket() for _ in range(2 * PARTIES)]
        where = [endpoint_of(s) for s in bound]
        log: list[str] = []

        def start(i: int, bound_here: bool) -> "asyncio.Task[None]":
            folder = tmp_path / f"party{i}"
            folder.mkdir(exist_ok=True)
            numbers = (bound[i].detach(), bound[PARTIES + i].detach()) if bound_here else None
            job = PartyJob(
                plan, i, where[:PARTIES], where[PARTIES:], Here(out=folder, wait=HANG), AGREED, sockets=numbers,
                tolerates_loss=True,
            )  # fmt: skip
            return asyncio.ensure_future(run_party(job, log.append, lambda event, **fields: None))

        parties = [start(i, True) for i in range(PARTIES)]
        owners = [asyncio.ensure_future(owner(plan, j, where[PARTIES:], histories[j], -1)) for j in range(OWNERS)]
        while len(histories[0]) < 3:
            await asyncio.sleep(0)
        parties[1].cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await parties[1]
        again = start(1, False)
        async with asyncio.timeout(HANG):
            await asyncio.gather(*owners)
            return list(await asyncio.gather(parties[0], again, parties[2], return_exceptions=True)), log

    ends, log = asyncio.run(body())
    assert ends == [None] * PARTIES
    over = "the run is over: the others finished it without this party; the owners have the model"
    assert over in log and sum("left out: parties 0, 2 go on with the run" in line for line in log) == 1
    assert [standing(plan, tmp_path / f"party{i}", i).over for i in range(PARTIES)] == [True, False, True]
    assert histories[0] == histories[1] and sorted(histories[0]) == list(range(40))
    mine = Ledger.read(ledger_path(tmp_path / "party1", 1))
    assert len(mine.entries) < 40 == len(merge([mine]))  # what the others made counts in the ledger of the lost one
    assert [(span.parties, span.end) for span in mine.open] == [((0, 2), 40)]
    assert len(merge(Ledger.read(ledger_path(tmp_path / f"party{i}", i)) for i in range(3))) == 40
    lines = Ledger.read(ledger_path(tmp_path / "party0", 0)).entries
    assert lines[-1].lost == (1,) and lines[0].lost == ()
    assert [e["party"] for e in read_transcript(transcript_path(tmp_path / "party0", 0)) if e["event"] == "lost"] == [1]


@pytest.mark.parametrize("missed", [3, RELEASES - 1])
def test_an_owner_comes_again_to_the_run_or_to_its_end(missed: int, tmp_path: Path) -> None:
    """In the middle it joins; after the last release the parties are still there, and it is not made to wait."""
    plan = plan_of(min_owners=1, release_wait=0.2)
    histories: list[History] = [{} for _ in range(OWNERS)]

    async def body() -> list[BaseException | None]:
        bound = [bound_socket() for _ in range(2 * PARTIES)]
        where = [endpoint_of(s) for s in bound]
        parties = []
        for i in range(PARTIES):
            folder = tmp_path / f"party{i}"
            folder.mkdir()
            numbers = bound[i].detach(), bound[PARTIES + i].detach()
            job = PartyJob(
                plan, i, where[:PARTIES], where[PARTIES:], Here(out=folder, wait=HANG), AGREED, sockets=numbers,
                tolerates_loss=True,
            )  # fmt: skip
            parties.append(asyncio.ensure_future(run_party(job, lambda t: None, lambda event, **fields: None)))
        stays = asyncio.ensure_future(owner(plan, 0, where[PARTIES:], histories[0], -1))
        leaves = asyncio.ensure_future(owner(plan, 1, where[PARTIES:], {}, missed))
        await asyncio.wait([leaves])
        if missed == RELEASES - 1:
            await stays
        async with asyncio.timeout(HANG):
            await asyncio.gather(stays, owner(plan, 1, where[PARTIES:], histories[1], -1))
            return list(await asyncio.gather(*parties))

    assert asyncio.run(body()) == [None] * PARTIES
    assert histories[0] == histories[1] and sorted(histories[0]) == list(range(RELEASES))


def test_an_owner_that_was_cut_off_at_the_end_is_not_waited_for(tmp_path: Path) -> None:
    """It was stopped for so long that the parties gave up its connections; it has everything, and says so anew. Without
    that the parties would wait for as long as for owners that have nothing."""
    plan = plan_of()
    told: list[str] = []

    async def body() -> list[BaseException | None]:
        bound = [bound_socket() for _ in range(2 * PARTIES)]
        where = [endpoint_of(s) for s in bound]
        parties = []
        for i in range(PARTIES):
            (tmp_path / f"party{i}").mkdir()
            numbers = bound[i].detach(), bound[PARTIES + i].detach()
            own = Here(out=tmp_path / f"party{i}", wait=1e5)
            job = PartyJob(
                plan, i, where[:PARTIES], where[PARTIES:], own, AGREED, sockets=numbers, tolerates_loss=True
            )  # fmt: skip
            parties.append(asyncio.ensure_future(run_party(job, told.append, lambda event, **fields: None)))
        async with asyncio.timeout(HANG):
            await asyncio.gather(*(owner(plan, j, where[PARTIES:], {}, -1, cut_off=j == 1) for j in range(OWNERS)))
            return list(await asyncio.gather(*parties))

    assert asyncio.run(body()) == [None] * PARTIES
    for i in range(PARTIES):
        assert standing(plan, tmp_path / f"party{i}", i).delivered == set(range(OWNERS))


def test_an_owner_that_has_the_end_from_one_party_tells_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes when all is over, and the first party that answers is enough for it. The others, which it never reached,
    would wait for it as long as for an owner that has nothing."""
    plan = plan_of(min_owners=1, release_wait=0.01)
    call = OwnerClient._call

    async def first_party_only(self: OwnerClient, rendezvous: Rendezvous, party: int, how: Call) -> Connection:
        if self.first == 1 and party:
            await asyncio.get_running_loop().create_future()
        return await call(self, rendezvous, party, how)

    monkeypatch.setattr(OwnerClient, "_call", first_party_only)
    histories: list[History] = [{} for _ in range(OWNERS)]

    async def body() -> list[BaseException | None]:
        bound = [bound_socket() for _ in range(2 * PARTIES)]
        where = [endpoint_of(s) for s in bound]
        parties = []
        for i in range(PARTIES):
            (tmp_path / f"party{i}").mkdir()
            numbers = bound[i].detach(), bound[PARTIES + i].detach()
            own = Here(out=tmp_path / f"party{i}", wait=1e5)
            job = PartyJob(
                plan, i, where[:PARTIES], where[PARTIES:], own, AGREED, sockets=numbers, tolerates_loss=True
            )  # fmt: skip
            parties.append(asyncio.ensure_future(run_party(job, lambda t: None, lambda event, **fields: None)))
        async with asyncio.timeout(HANG):
            await owner(plan, 0, where[PARTIES:], histories[0], -1)
            await owner(plan, 1, where[PARTIES:], histories[1], -1)
            return list(await asyncio.gather(*parties))

    assert asyncio.run(body()) == [None] * PARTIES
    assert histories[0] == histories[1] and sorted(histories[0]) == list(range(RELEASES))
    for i in range(PARTIES):
        assert standing(plan, tmp_path / f"party{i}", i).delivered == set(range(OWNERS))


def test_an_owner_that_comes_again_when_the_parties_have_ended_learns_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its ledger has all releases: nobody has to come again. One with releases to make waits for the parties."""
    plan = plan_of()
    monkeypatch.setattr("dpmpc.mpc.transport.heartbeat.LEAST_STALL", 0.1)
    with contextlib.closing(bound_socket()) as taken:
        where = [endpoint_of(taken)] * PARTIES  # nobody listens there

        async def call(all_made: bool) -> None:
            client = OwnerClient(plan, AGREED, 0, 1, stall=0.1, all_made=all_made)
            try:
                await client.connect(where, HANG if all_made else 0.3)
            finally:
                client.abandon()

        with refuses("peer", "0.1", setting="stall"):
            asyncio.run(call(all_made=True))
        with refuses("peer", "0.3", setting="addresses"):
            asyncio.run(call(all_made=False))


def test_an_owner_that_comes_again_does_not_count_on_a_party_that_is_left_out(tmp_path: Path) -> None:
    """Party 1 and owner 1 were killed and are back; the run goes on without the party, and with the owner: nobody waits
    for `release_wait`."""
    plan = plan_of(releases=12, min_owners=1, release_wait=1e5)
    histories: list[History] = [{} for _ in range(OWNERS)]

    async def body() -> None:
        bound = [bound_socket() for _ in range(2 * PARTIES)]
        where = [endpoint_of(s) for s in bound]
        log: list[str] = []
        until = asyncio.Event()

        def start(i: int, numbers: tuple[int, int] | None) -> "asyncio.Task[None]":
            (tmp_path / f"party{i}").mkdir(exist_ok=True)
            own = Here(out=tmp_path / f"party{i}", wait=HANG)
            job = PartyJob(
                plan, i, where[:PARTIES], where[PARTIES:], own, AGREED, sockets=numbers, tolerates_loss=True
            )  # fmt: skip
            return asyncio.ensure_future(run_party(job, log.append, lambda event, **fields: None))

        def waiting(words: str) -> bool:
            return not any(words in line for line in log)

        parties = [start(i, (bound[i].detach(), bound[PARTIES + i].detach())) for i in range(PARTIES)]
        stays = asyncio.ensure_future(owner(plan, 0, where[PARTIES:], histories[0], -1, pause=(6, until)))
        leaves = asyncio.ensure_future(owner(plan, 1, where[PARTIES:], {}, 4))
        async with asyncio.timeout(HANG):
            await asyncio.wait([leaves])
            parties[1].cancel()
            await asyncio.wait([parties[1]])
            again = start(1, None)
            while waiting("go on with the run"):
                await asyncio.sleep(0.01)
            back = asyncio.ensure_future(owner(plan, 1, where[PARTIES:], histories[1], -1))
            while 5 not in histories[1]:  # it has the history, and is about to take part
                await asyncio.sleep(0.01)
            until.set()
            await asyncio.gather(stays, back, parties[0], parties[2], again)

    asyncio.run(body())
    assert histories[0] == histories[1] and sorted(histories[0]) == list(range(12))
    assert [histories[0][r] for r in (3, 8)] == [total(3), total(8)]  # both owners are in them
    assert histories[0][5] == vector(0, 5)[0].tolist()
