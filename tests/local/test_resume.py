"""A run whose parties are killed at every stage of a release, and carried on each time.

Checked after every attempt, from the files that real processes left: no release without a ledger line, no opened
vector lost.
"""

import asyncio
import contextlib
import multiprocessing
import os
import signal
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dpmpc.aggregation.owner.aggregator import Aggregator
from dpmpc.aggregation.party.job import PartyJob
from dpmpc.aggregation.party.owner_gate import OwnerGate
from dpmpc.aggregation.party.party import run_party
from dpmpc.aggregation.plan.asked import FIRST_ATTEMPT, Attempt, plan_path
from dpmpc.aggregation.plan.grid import Ints
from dpmpc.aggregation.plan.here import Here
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.wire.paths import transcript_path
from dpmpc.aggregation.wire.transcript import OpenedVectors, read_transcript
from dpmpc.errors import PeerError
from dpmpc.mpc.contract.backend import Holder
from dpmpc.mpc.transport.addresses import bound_socket, endpoint_of
from dpmpc.planning.training import Facts, plan_of
from dpmpc.privacy.ledger import Ledger
from dpmpc.privacy.ledgers import merge
from dpmpc.run.resume import begun_as, last_attempt, left, note_attempt, opened_anywhere
from tests.refusals import refuses
from tests.runs import HANG, small

STAGES = ("begin", "collect", "noise", "add", "stand", "ledger", "open", "publish")
KILLS = len(STAGES)
PARTIES = 3


def _party(job: PartyJob, sockets: tuple[socket.socket, socket.socket], stage: str, release: int) -> None:
    """One party; it kills itself right after `stage` of `release`."""

    def observe(now: str, number: int, holder: Holder, gate: OwnerGate) -> None:
        if (now, number) == (stage, release):
            os.kill(os.getpid(), signal.SIGKILL)

    job = replace(job, sockets=(sockets[0].detach(), sockets[1].detach()))
    with _but_no_waiting():
        asyncio.run(run_party(job, lambda text: None, lambda event, **fields: None, observe))


@contextlib.contextmanager
def _but_no_waiting() -> Iterator[None]:
    """Losses are expected; that somebody waited for as long as he may is not."""
    try:
        yield
    except PeerError as error:
        assert f"within {HANG:g} s" not in str(error), error


def _vectors(release: int) -> Ints:
    return np.array([[release, 10, -3], [release, -10, 3]], dtype=np.int64)


def _attempt(plan: Plan, attempt: Attempt, out: Path, victim: int, stage: str, release: int) -> None:
    """One attempt with all processes; `victim` kills itself, unless `stage` never comes."""
    sockets = [(bound_socket(), bound_socket()) for _ in range(PARTIES)]
    addresses, owner_addresses = ([endpoint_of(pair[k]) for pair in sockets] for k in range(2))
    context = multiprocessing.get_context("forkserver")  # for speed: imports are paid once, not 300 times
    context.set_forkserver_preload(["tests.preload", "test_resume"])
    processes = []
    for i in range(PARTIES):
        job = PartyJob(plan, i, addresses, owner_addresses, Here(out=out, wait=HANG), attempt)
        process = context.Process(target=_party, args=(job, sockets[i], stage if i == victim else "", release))
        process.start()
        processes.append(process)
    for bound in (bound for pair in sockets for bound in pair):
        bound.close()
    with _but_no_waiting(), contextlib.closing(OpenedVectors(out / "owners.opened.bin")) as file:
        with Aggregator.of_plan(plan, Here(wait=HANG), addresses=owner_addresses, attempt=attempt) as aggregator:
            for number in range(attempt.first_release, plan.releases):
                file.append(number, aggregator.open_steps([_vectors(number)]).total)
    for process in processes:
        process.join(HANG)
        assert process.exitcode in (0, -signal.SIGKILL), "a party outlived the run, or waited for nobody"


def _check(plan: Plan, out: Path) -> int:
    """Asserts that every release that left a party has a ledger line; the number of those that were opened
    somewhere.
    """
    books = [Ledger.read(out / f"ledger_{i}.jsonl") for i in range(PARTIES)]
    spent = [entry.release for entry in merge(books)]
    assert len(spent) == len(set(spent)) <= plan.releases
    sent = {
        event["release"]
        for i in range(PARTIES)
        for event in read_transcript(transcript_path(out, i))
        if event["event"] in ("send", "open")
    }
    opened = opened_anywhere(out, plan).keys()
    assert opened <= sent <= set(spent)
    return len(opened)


@pytest.mark.slow
def test_kills_lose_no_iterate_and_no_ledger_line(tmp_path: Path) -> None:
    request = small(owners=2, iterations=4 * KILLS, dimension=3, scale=0.0)  # quick: no sampler
    plan = plan_of(request, Facts("synthetic", "logistic", 3, (50, 50), "public"))
    plan.write(plan_path(tmp_path))
    attempt, kept = FIRST_ATTEMPT, dict[int, Ints]()
    for kill in range(KILLS):
        release = attempt.first_release + kill % 2
        note_attempt(tmp_path, attempt)
        _attempt(plan, attempt, tmp_path, kill % PARTIES, STAGES[kill % len(STAGES)], release)
        _check(plan, tmp_path)
        since = left(begun_as(plan, tmp_path), tmp_path)
        attempt, known = since.attempt, since.known
        assert release <= attempt.first_release <= release + 2 and attempt.number == kill + 1
        assert all(np.array_equal(known[number], values) for number, values in kept.items())
        kept = known
    assert len(kept) >= KILLS // 2 + 2  # one in every other attempt, and those that were cut short after the opening
    _attempt(plan, attempt, tmp_path, 0, "", -1)
    assert _check(plan, tmp_path) == len(kept) + plan.releases - attempt.first_release


def test_a_run_with_other_records_or_options_is_not_carried_on(tmp_path: Path) -> None:
    plan = plan_of(small(), Facts("synthetic", "logistic", 3, (50, 50), "public"))
    plan.write(plan_path(tmp_path))
    for request, sizes in ((small(), (50, 51)), (small(epsilon=2.0), (50, 50))):
        with refuses("plan", tmp_path):
            begun_as(plan_of(request, Facts("synthetic", "logistic", 3, sizes, "public")), tmp_path)


def test_an_attempt_is_never_numbered_twice(tmp_path: Path) -> None:
    """Whether the owners' note of it or a party's transcript is lost."""
    assert last_attempt(tmp_path) == FIRST_ATTEMPT
    note_attempt(tmp_path, Attempt(2, 7))
    assert last_attempt(tmp_path) == Attempt(2, 7)
    transcript_path(tmp_path, 1).write_text('{"event":"start","attempt":3,"first_release":9}\n')
    assert last_attempt(tmp_path) == Attempt(3, 9)


def test_files_that_disagree_on_an_opened_vector_are_refused(tmp_path: Path) -> None:
    plan = plan_of(small(), Facts("synthetic", "logistic", 3, (50, 50), "public"))
    for name, value in (("party_0", 1), ("party_1", 2)):
        with contextlib.closing(OpenedVectors(tmp_path / f"{name}.opened.bin")) as file:
            file.append(0, np.full(3, value, dtype=np.int64))
    with refuses("file", 0, tmp_path / "party_1.opened.bin"):
        opened_anywhere(tmp_path, plan)
