"""A survey is spent once. Whoever dies at its end, and comes again when all others have gone on to what follows, gets
what was opened from them: the run is carried on."""

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dpmpc.aggregation.party import owner_gate, start
from dpmpc.aggregation.party import party as party_module
from dpmpc.aggregation.party.behind import Behind, behind
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.wire import news
from dpmpc.aggregation.wire.paths import transcript_path
from dpmpc.aggregation.wire.transcript import OpenedVectors
from dpmpc.consortium.placement import Placement
from dpmpc.consortium.plan_alone import plan_only
from dpmpc.errors import UsageError
from dpmpc.learning.model import read_model
from dpmpc.planning.request import Request
from dpmpc.privacy.ledgers import merge, read_ledgers
from dpmpc.records.schema import Numeric, Schema
from dpmpc.run import stages
from tests.machines import process, sites, together
from tests.made_up_sites import EACH, OWNERS, TARGETS, files, planned
from tests.refusals import refuses
from tests.runs import HANG, own_addresses


class Died(Exception):
    """A process ends in the middle of what it does."""


def carried_on(plan: Path, out: Path, victim: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Plays a run in which a process dies and is started again, when two parties have the survey behind them."""
    gone_on, addresses, records, far = threading.Event(), own_addresses(3), files(out), list[int]()

    def looked(plan: Plan, folder: Path, party: int, memory: Any, sites: Any = None) -> Any:
        found = behind(plan, folder, party, memory, sites)
        far.extend([party] if found else [])
        if len(far) >= 2:
            gone_on.set()
        return found

    monkeypatch.setattr(party_module, "behind", looked)
    monkeypatch.setattr(owner_gate, "PARTY_SECONDS", 0.0)
    monkeypatch.setattr(news, "PAUSE", 0.05)  # seconds between two questions
    monkeypatch.setattr(start, "PAUSE", 0.05)
    monkeypatch.setattr(owner_gate, "FOLLOWED_SECONDS", 0.0)

    def part(name: str) -> Callable[[], None]:
        record = records[int(name[5:])] if name.startswith("owner") else None
        return process(plan, out, name, addresses, record, HANG)

    def dies() -> None:
        with pytest.raises(Died):
            part(victim)()
        assert gone_on.wait(HANG)
        part(victim)()

    names = ["0", "1", "2", "owner0", "owner1", "owner2"]
    assert together([dies if name == victim else part(name) for name in names]) == [None] * 6
    models = [read_model(out / name).theta for name in names]
    assert all((model == models[0]).all() for model in models)
    for name in names:
        spent = merge(read_ledgers(out / name))
        assert sum(entry.run.endswith("+survey") for entry in spent) == 1 and len(spent) == 5


def once_in(thread: str, call: Any) -> Any:
    """The same call, in which this thread dies when it first comes to it."""
    left = [1]

    def dying(*arguments: Any) -> Any:
        if threading.current_thread().name == thread and left:
            left.pop()
            raise Died
        return call(*arguments)

    return dying


@pytest.mark.parametrize(
    ("victim", "thread", "where", "step"),
    [
        ("owner1", "site 4", stages, "after_first"),
        ("1", "site 1", OpenedVectors, "append"),  # two of three have opened it without its help: its share had left
    ],
)
def test_one_that_died_before_it_kept_the_survey_gets_it_from_those_that_went_on(
    victim: str, thread: str, where: Any, step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = planned(tmp_path / "made", backend="shamir")
    monkeypatch.setattr(where, step, once_in(thread, getattr(where, step)))
    carried_on(plan, tmp_path, victim, monkeypatch)


def test_parties_that_tell_different_sums_are_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    """And nobody tells, where nobody has it."""
    told: dict[int, Any] = {0: {0: b"one"}, 2: None}

    async def past_of(party: int, *rest: Any) -> Any:
        return told[party]

    monkeypatch.setattr(start, "past_of", past_of)
    monkeypatch.setattr(start, "PAUSE", 0.0)
    job = SimpleNamespace(owner_addresses=[None] * 3, index=1, plan=None)
    beginning: Any = SimpleNamespace(job=job, tls=None, greeting=b"")
    ask = start.PartyStart.told
    assert asyncio.run(ask(beginning)) == {0: b"one"}
    told[2] = {0: b"two"}
    with refuses("peer"):
        asyncio.run(ask(beginning))
    told.update({0: None, 2: None})
    assert asyncio.run(ask(beginning)) == {}


def test_stages_that_are_over_are_known_by_the_runs_name(tmp_path: Path) -> None:
    """Folders of something else, and of other runs, are none."""
    plan = Plan.read(planned(tmp_path / "made"))
    (tmp_path / "run" / "other").mkdir(parents=True)
    (tmp_path / "run" / "other" / "plan_0.json").write_text("{}")
    assert behind(plan, tmp_path / "run", 0, None) == {}
    with pytest.raises(UsageError):
        Plan.read(tmp_path / "run" / "other" / "plan_0.json")
    assert Behind(plan.first, tmp_path, 0).plan.run_id == f"{plan.run_id}+survey"


@pytest.mark.parametrize("late", [{}, {"backend": "shamir"}])
def test_a_site_whose_party_alone_has_the_end_gets_it_from_it(late: dict[str, Any], tmp_path: Path) -> None:
    """It died when its party had opened everything and its owner had kept nothing, and comes when all others have
    ended. Its party and its owner then meet without a wire, and nobody has sent a byte."""
    Schema((Numeric("age", 0.0, 150.0),), TARGETS["two classes"]).write(tmp_path / "schema.json")
    asked = Request(
        schema=str(tmp_path / "schema.json"), epsilon=1.0, delta=1e-5, owner_sizes=(EACH,) * OWNERS, iterations=1,
        test_fraction=0.0, role="both", parties=3, **late,
    )  # fmt: skip
    plan_only(asked, Placement(out=tmp_path / "plan"))
    plan, records = tmp_path / "plan" / "plan.json", files(tmp_path)
    assert sites(plan, tmp_path, records) == [None] * 3
    out, model = tmp_path / "1", (tmp_path / "0" / "model.npz").read_bytes()
    for path in ("model.npz", "report.json", "owners.opened.bin", "history.csv"):
        (out / path).unlink()
    transcript = transcript_path(out, 1)
    lines = transcript.read_text().splitlines(keepends=True)
    transcript.write_text("".join(line for line in lines if '"owners":[1,2]' not in line or "delivered" not in line))
    process(plan, out.parent, "1", own_addresses(3), records[1], HANG, role="both")()
    assert (out / "model.npz").read_bytes() == model
