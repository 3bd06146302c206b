"""The structure check on transcripts: a real run holds, and every way of tampering with its records is seen."""

import asyncio
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dpmpc.aggregation.plan.active import batches_due
from dpmpc.circuits.sampler import Sampler, discrete_gaussian
from dpmpc.mpc.contract.backend import BACKENDS
from dpmpc.noise.draw import batches_of
from dpmpc.noise.pool import CAPACITY, Pool
from dpmpc.privacy.book import LedgerError
from dpmpc.verify.canaries import Canaries, canary_plan
from dpmpc.verify.fresh import by_parties
from dpmpc.verify.run_files import AttemptEvents, read_records
from dpmpc.verify.structure import check_structure, structure_of
from dpmpc.verify.verification import verify_structure
from tests.refusals import refuses

Event = dict[str, Any]
Edit = Callable[[list[Event]], None]


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    plan = canary_plan("gaussian", 3, 5, 4, epsilon=2, delta=1e-3, parties=3, threshold=1)
    out = tmp_path_factory.mktemp("honest")
    by_parties(plan, Canaries(plan, 1), out)
    return out


def edited(run: Path, to: Path, party: int, edit: Edit) -> Path:
    """A copy of the run in which a party's transcript says something else."""
    out = to / "run"
    shutil.copytree(run, out)
    path = out / f"party_{party}.transcript.jsonl"
    events = [json.loads(line) for line in path.read_text().splitlines()]
    edit(events)
    path.write_text("".join(json.dumps(event) + "\n" for event in events))
    return out


def at(events: list[Event], kind: str, release: int = 2) -> int:
    return next(k for k, e in enumerate(events) if e["event"] == kind and e.get("release") == release)


def remove(kind: str) -> Edit:
    return lambda events: events.__delitem__(at(events, kind))


def repeat(kind: str) -> Edit:
    return lambda events: events.insert(at(events, kind), events[at(events, kind)])


def swap(one: str, other: str) -> Edit:
    def edit(events: list[Event]) -> None:
        i, j = at(events, one), at(events, other)
        events[i], events[j] = events[j], events[i]

    return edit


def change(kind: str, **fields: Any) -> Edit:
    return lambda events: events[at(events, kind)].update(fields)


def frames(channel: int, way: str, peer: str, record: list[Any]) -> Edit:
    def edit(events: list[Event]) -> None:
        next(e for e in events if e.get("channel") == channel)[way][peer] = record

    return edit


def another_channel(events: list[Event]) -> None:
    events.insert(-1, {"event": "traffic", "channel": 77, "sent": {"1": [1, 40, "ab"]}, "received": {}})


def test_a_real_run_holds(honest: Path) -> None:
    evidence = check_structure(honest)
    assert evidence.holds, evidence.failed
    assert len(evidence.checks) == 10
    flows = next(check for check in evidence.checks if check.name.startswith("both ends"))
    # a ring of 3 for 4 openings and 1 noise batch; each to both others for 4 barriers
    assert flows.detail == "39 flows compared by digest"


OTHER = "ab" * 32


@pytest.mark.parametrize(
    ("edit", "seen_by"),
    [
        (remove("input"), "every owner's input once"),
        (repeat("input"), "every owner's input once"),
        (change("input", owners=[0, 1]), "every owner's input once"),
        (remove("noise"), "one noise vector per release"),
        (repeat("noise"), "one noise vector per release"),
        (change("noise", index=1), "one noise vector per release"),
        (repeat("add"), "one noise vector per release"),
        (remove("add"), "one noise vector per release"),
        (swap("input", "noise"), "noise after the last owner's input"),
        (swap("noise", "add"), "noise after the last owner's input"),
        (swap("ledger", "send"), "ledger line before every opening"),
        (remove("ledger"), "ledger line before every opening"),
        (change("ledger", line=OTHER), "ledger line before every opening"),
        (repeat("send"), "each release opened once"),
        (repeat("open"), "each release opened once"),
        (change("open", digest=OTHER), "all parties agree on what was opened"),
        (change("sum", event="peek"), "one run, one plan"),
        (lambda events: events[0].update(plan=OTHER), "one run, one plan"),
        (lambda events: events[0].update(run="another"), "one run, one plan"),
        (another_channel, "nothing opened besides the release"),
        (frames(1002, "sent", "1", [2, 80, OTHER]), "nothing opened besides the release"),
        (frames(1002, "sent", "2", [1, 40, OTHER]), "nothing opened besides the release"),
        (frames(1002, "sent", "1", [1, 40, OTHER]), "both ends of every connection agree"),
        (frames(1 << 24, "received", "2", [1, 40, OTHER]), "both ends of every connection agree"),
        (frames(1 << 24, "sent", "1", [33, 5, OTHER]), "noise made once"),
    ],
)
def test_every_edit_is_seen(honest: Path, tmp_path: Path, edit: Edit, seen_by: str) -> None:
    failed = check_structure(edited(honest, tmp_path, 0, edit)).failed
    assert any(name.startswith(seen_by) for name in failed), failed


def test_a_party_that_rewrites_its_whole_release_still_differs_from_its_neighbours(
    honest: Path, tmp_path: Path
) -> None:
    """Party 0 claims it opened something else, consistently in its own transcript: the receivers know better."""

    def edit(events: list[Event]) -> None:
        events[at(events, "send")]["digest"] = OTHER
        events[at(events, "open")]["digest"] = OTHER
        next(e for e in events if e.get("channel") == 1002)["sent"]["1"][2] = OTHER

    failed = check_structure(edited(honest, tmp_path, 0, edit)).failed
    assert failed == ["both ends of every connection agree", "all parties agree on what was opened"]


def test_a_run_cut_short_holds_without_its_last_release(honest: Path, tmp_path: Path) -> None:
    out = edited(honest, tmp_path, 1, lambda events: events.__delitem__(slice(at(events, "noise", 3), None)))
    evidence = check_structure(out)
    assert evidence.holds, evidence.failed
    assert "cut short" in evidence.note and "party 1" in evidence.note


def test_the_note_says_what_of_a_run_the_verdict_is_not_on(honest: Path) -> None:
    """A run that ended after its survey holds as far as it came: whoever reads the verdict must see how far."""
    records = read_records(honest)
    assert structure_of(records).note == "3 transcripts"
    short = tuple(
        tuple(
            replace(attempt, events=tuple(e for e in attempt.events if e.get("release", 0) < 1)) for attempt in attempts
        )
        for attempts in records.attempts
    )
    assert structure_of(replace(records, attempts=short)).note == "3 transcripts; 1 of 4 releases were opened"
    surveyed = replace(records, plan=replace(records.plan, run_id=f"{records.plan.run_id}+survey"))
    wanted = "3 transcripts; of the survey alone, no other release of the run"
    assert structure_of(surveyed).note == wanted


def test_files_are_held_against_transcripts(honest: Path, tmp_path: Path) -> None:
    shutil.copytree(honest, tmp_path / "a")
    path = tmp_path / "a" / "party_2.opened.bin"
    raw = bytearray(path.read_bytes())
    raw[36] ^= 1  # behind the heads of the file and of its first record
    path.write_bytes(raw)
    assert check_structure(tmp_path / "a").failed == ["all parties agree on what was opened"]

    shutil.copytree(honest, tmp_path / "b")
    ledger = tmp_path / "b" / "ledger_1.jsonl"
    lines = ledger.read_bytes().splitlines(keepends=True)
    ledger.write_bytes(b"".join(lines[:-1]))  # the chain holds, but a release that was opened is gone
    assert check_structure(tmp_path / "b").failed == ["ledger line before every opening"]
    ledger.write_bytes(b"".join(lines[1:]))
    with refuses("ledger", 1, kind=LedgerError):
        check_structure(tmp_path / "b")


@pytest.mark.parametrize(
    "line", ["[1]", '{"event":"noise","release":1}', "{", '{"event":"open","release":"x","digest":"y"}']
)
def test_lines_that_are_no_events_are_refused(honest: Path, tmp_path: Path, line: str) -> None:
    shutil.copytree(honest, tmp_path / "run")
    with (tmp_path / "run" / "party_0.transcript.jsonl").open("a") as file:
        file.write(line + "\n")
    with refuses("file"):
        check_structure(tmp_path / "run")


def test_missing_files_and_runs_without_parties_are_refused(honest: Path, tmp_path: Path) -> None:
    with refuses("file", "plan.json"):
        check_structure(tmp_path)
    shutil.copytree(honest, tmp_path / "run")
    (tmp_path / "run" / "party_1.transcript.jsonl").unlink()
    with refuses("path"):
        check_structure(tmp_path / "run")
    plan = json.loads((honest / "plan.json").read_text())
    (tmp_path / "run" / "plan.json").write_text(
        json.dumps({**plan, "computing": {**plan["computing"], "parties": 0}}, sort_keys=True)
    )
    with refuses("missing", setting="engine"):
        check_structure(tmp_path / "run")


def test_verdict_as_json(honest: Path, tmp_path: Path) -> None:
    verification = verify_structure(honest)
    verification.write(tmp_path / "verify.json")
    value = json.loads((tmp_path / "verify.json").read_text())
    assert (tmp_path / "verify.json").stat().st_mode & 0o777 == 0o600
    assert value["holds"] is True and value["structure"]["holds"] is True
    assert {"name", "holds", "detail"} <= set(value["structure"]["checks"][0])
    with refuses("path", setting="json"):
        verification.write(tmp_path / "missing" / "verify.json")


@pytest.mark.parametrize(("dimension", "releases"), [(5, 4), (100, 1000), (1 << 15, 3), (70_000, 300)])
@pytest.mark.parametrize("pool", [True, False])
@pytest.mark.parametrize(("backend", "parties", "threshold"), [("ot", 2, 1), ("sharing", 3, 1), ("checked", 5, 2)])
def test_batches_are_those_of_the_pool(
    dimension: int, releases: int, pool: bool, backend: str, parties: int, threshold: int
) -> None:
    """The oracle is the pool itself, driven without parties."""
    sizes: list[int] = []
    sampler = discrete_gaussian(2.0**20)

    class Noted:
        threads = 1

        def batch_samples(self, sampler: Sampler, count: int) -> int:
            return max(batches_of(BACKENDS[backend], sampler, count, parties, threshold))

        async def noise(self, sampler: object, channel: int, count: int) -> Any:
            sizes.append(count)
            return np.zeros(count, dtype=np.uint64)

        def join(self, shares: Any) -> Any:
            return np.concatenate(shares)

        def cut(self, share: Any, size: int) -> Any:
            return list(share.reshape(-1, size))

    async def drive() -> None:
        made = Pool(Noted(), sampler, releases, dimension, capacity=CAPACITY if pool else dimension)  # type: ignore[arg-type]
        if pool:
            await made.fill()
        assert [(await made.take())[0] for _ in range(releases)] == list(range(releases))

    asyncio.run(drive())
    asked = {"dimension": dimension, "drawn": dimension, "pool": pool}
    plan = SimpleNamespace(**asked, backend=backend, parties=parties, threshold=threshold)
    due = batches_due(plan, sampler, releases)  # type: ignore[arg-type]
    assert sorted(due) == sorted(sizes) and sum(due) == dimension * releases


def test_shares_that_came_late_belong_to_their_opening() -> None:
    """Where a party was lost, an opening may be over and noted before all shares are there; else a second record is one
    too many."""

    def traffic(**received: list[Any]) -> dict[str, Any]:
        return {
            "event": "traffic",
            "channel": 1050,
            "sent": {"2": [1, 32, "a"]} if "0" in received else {},
            "received": received,
        }

    first, late = traffic(**{"0": [1, 32, "b"]}), traffic(**{"4": [1, 32, "c"]})
    lost = {"event": "lost", "party": 3, "next": 44}
    (joined,) = AttemptEvents(1, {}, (lost, first, late), True).traffic
    assert joined["received"] == {"0": [1, 32, "b"], "4": [1, 32, "c"]} and joined["sent"] == first["sent"]
    assert AttemptEvents(1, {}, (first, late), True).traffic == [first, late]
    assert AttemptEvents(1, {}, (lost, first, first), True).traffic == [first, first]  # twice the same frames are seen
