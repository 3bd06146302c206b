"""A run whose parties are killed a hundred times, at every stage of a release, and carried on each time.

Checked after every attempt, from the files that real processes left: no release without a ledger line, no opened
vector lost.
"""

import asyncio
import contextlib
import multiprocessing
import os
import signal
from pathlib import Path

import numpy as np
import pytest

from dpmpc.aggregation.grid import Ints
from dpmpc.aggregation.owner import OwnerClient, OwnerGate
from dpmpc.aggregation.party import PartyJob, run_party, transcript_path
from dpmpc.aggregation.plan import Facts, Plan, make_plan, plan_path
from dpmpc.aggregation.transcript import Opened, read_transcript
from dpmpc.errors import PeerError, UsageError
from dpmpc.mpc.loopback import free_base_port
from dpmpc.mpc.session import Session, endpoints_here
from dpmpc.privacy.ledger import Ledger, merge
from dpmpc.runs.launcher import owner_endpoints
from dpmpc.runs.resume import opened_anywhere, resume
from tests.runs import small

STAGES = ("begin", "collect", "noise", "add", "ledger", "open", "publish")
KILLS = 100
PARTIES = 3


def _party(job: PartyJob, stage: str, release: int) -> None:
    """One party; it kills itself right after `stage` of `release`."""

    def observe(now: str, number: int, session: Session, gate: OwnerGate) -> None:
        if (now, number) == (stage, release):
            os.kill(os.getpid(), signal.SIGKILL)

    with contextlib.suppress(PeerError):
        asyncio.run(run_party(job, lambda text: None, lambda event, **fields: None, observe))


def _vectors(release: int) -> Ints:
    return np.array([[release, 10, -3], [release, -10, 3]], dtype=np.int64)


async def _owners(plan: Plan, out: Path, base: int) -> None:
    client = OwnerClient(plan)
    try:
        await client.connect(owner_endpoints(endpoints_here(PARTIES, base)), 10)
        await client.ready()
        with contextlib.closing(Opened(out / "owners.opened.bin")) as file:
            for release in range(plan.first_release, plan.releases):
                values, _ = await client.release(release, [_vectors(release)])
                file.append(release, values)
        await client.finish()
    finally:
        client.abandon()
        await asyncio.sleep(0)


def _attempt(plan: Plan, out: Path, victim: int, stage: str, release: int) -> None:
    """One attempt with all processes; `victim` kills itself, unless `stage` never comes."""
    base = free_base_port(2 * PARTIES)
    addresses = endpoints_here(PARTIES, base)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.preload", "tests.test_resume"])
    processes = []
    for i in range(PARTIES):
        job = PartyJob(plan, i, addresses, owner_endpoints(addresses), out, 10)
        process = context.Process(target=_party, args=(job, stage if i == victim else "", release))
        process.start()
        processes.append(process)
    with contextlib.suppress(PeerError):
        asyncio.run(_owners(plan, out, base))
    for process in processes:
        process.join(15)
        assert process.exitcode is not None, "a party outlived the run"


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
def test_a_hundred_kills_lose_no_iterate_and_no_ledger_line(tmp_path: Path) -> None:
    options = small(owners=2, iterations=4 * KILLS, dimension=3, noiseless=True)  # quick: no sampler
    plan = fresh = make_plan(options, Facts("synthetic", "logistic", 3, (50, 50), "public"))
    plan.write(plan_path(tmp_path))
    kept: dict[int, np.ndarray] = {}
    for kill in range(KILLS):
        release = plan.first_release + kill % 2
        _attempt(plan, tmp_path, kill % PARTIES, STAGES[kill % len(STAGES)], release)
        _check(plan, tmp_path)
        plan, known = resume(tmp_path, fresh)
        plan.write(plan_path(tmp_path))
        assert release <= plan.first_release <= release + 2 and plan.attempt == kill + 1
        assert all(np.array_equal(known[number], values) for number, values in kept.items())
        kept = known
    assert len(kept) > KILLS  # two releases an attempt, less those that were cut short
    _attempt(plan, tmp_path, 0, "", -1)
    assert _check(plan, tmp_path) == len(kept) + plan.releases - plan.first_release


def test_a_run_with_other_records_or_options_is_not_carried_on(tmp_path: Path) -> None:
    plan = make_plan(small(), Facts("synthetic", "logistic", 3, (50, 50), "public"))
    plan.write(plan_path(tmp_path))
    for options, sizes in ((small(), (50, 51)), (small(epsilon=2.0), (50, 50))):
        with pytest.raises(UsageError, match="records and options it began with"):
            resume(tmp_path, make_plan(options, Facts("synthetic", "logistic", 3, sizes, "public")))


def test_files_that_disagree_on_an_opened_vector_are_refused(tmp_path: Path) -> None:
    plan = make_plan(small(), Facts("synthetic", "logistic", 3, (50, 50), "public"))
    for name, value in (("party_0", 1), ("party_1", 2)):
        with contextlib.closing(Opened(tmp_path / f"{name}.opened.bin")) as file:
            file.append(0, np.full(3, value, dtype=np.uint64))
    with pytest.raises(UsageError, match="release 0 differs"):
        opened_anywhere(tmp_path, plan)
