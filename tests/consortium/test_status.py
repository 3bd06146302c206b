"""`dpmpc status` beside a run and after it: what it says is what the run did."""

import json
import os
import shutil
import signal
from pathlib import Path

import numpy as np
import pytest

from dpmpc.aggregation.plan.asked import plan_path
from dpmpc.aggregation.plan.here import Here
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.consortium.status import read_status
from dpmpc.local.launcher import train
from dpmpc.planning.request import Request
from dpmpc.privacy.ledger import Ledger
from dpmpc.processes.status import read_state
from tests.refusals import refuses
from tests.runs import children_of, dpmpc, errors_of, started, wait_until

WORDS = "--data synthetic --max-rows 200 --dimension 4 --owners 3 --delta 1e-4 --iterations 2000 --no-evaluate"


def test_a_run_is_followed_beside_it_and_after_it_was_killed(tmp_path: Path) -> None:
    out = tmp_path / "run"
    with refuses("path"):
        read_status(out)
    words = [*WORDS.split(), "--log-json", "--log-level", "debug", "--out", out]
    with started("train", *words) as process:
        wait_until(lambda: _releases(out) > 20 or process.poll() is not None)
        found = read_status(out).to_json()
        by_name = {state["process"]: state for state in found["processes"]}
        assert sorted(by_name) == ["owners", "party 0", "party 1", "party 2"]
        assert all(state["alive"] and state["phase"] == "releasing" for state in by_name.values())
        assert by_name["party 1"]["connected"] == ["party 0", "party 2", "the owners' process (0..2)"]
        assert by_name["owners"]["connected"] == ["party 0", "party 1", "party 2"]
        assert 0 < by_name["party 0"]["release"] <= 2000 and by_name["party 0"]["rate"] > 0
        assert 0 < found["spent"]["epsilon"] < found["spent"]["of_epsilon"] == 1.0
        os.kill(children_of(process.pid)[2], signal.SIGKILL)
        errors = errors_of(process)
    assert "was killed (SIGKILL)" in json.loads(errors.splitlines()[-1])["text"]
    after = read_status(out)
    phases = {state.process: state.phase for state in after.processes}
    assert phases["party 2"] == "ended without a word" and phases["owners"] == "failed"
    assert "SIGKILL" in next(state.event for state in after.processes if state.process == "owners")
    plan = Plan.read(plan_path(out))
    lines = max(len(Ledger.read(path).entries) for path in out.glob("ledger_?.jsonl"))
    assert after.spent is not None and lines == after.spent.releases < plan.releases and not after.model
    log = [json.loads(line) for line in (out / "party_0.log").read_text().splitlines()]
    assert {line["level"] for line in log} >= {"debug", "info"}
    shown = dpmpc("status", out).stdout
    assert "party 2: ended without a word, " in shown and "owners: failed, " in shown
    assert f"spent: {lines} releases, epsilon " in shown
    assert json.loads(dpmpc("status", out, "--json").stdout) == json.loads(json.dumps(after.to_json()))


def test_stages_are_shown_while_they_run_and_counted_after(tmp_path: Path) -> None:
    """A survey in the middle has processes and a plan, of which nothing is in the run's own folder yet."""
    rng = np.random.default_rng(1)
    lines = [f"{rng.integers(18, 90)},{rng.choice(['in', 'out'])},{'AB'[k % 2]},{k % 3 % 2}" for k in range(600)]
    path = tmp_path / "records.csv"
    path.write_text("\n".join(["age,ward,site,ill", *lines]) + "\n")
    request = Request(
        csv=str(path), target="ill", owners_column="site", epsilon=3.0, delta=1e-4, evaluate=False, iterations=2
    )
    train(request, Here(out=tmp_path / "run"))
    found = read_status(tmp_path / "run")
    assert found.spent is not None and (found.spent.releases, found.spent.stages) == (3, ("survey",))
    assert (found.plan.releases, found.planned) == (2, 3)
    assert found.spent.lines == 3 and found.spent.epsilon == pytest.approx(found.spent.of_epsilon, rel=1e-2)
    said = dpmpc("status", tmp_path / "run").stdout
    assert "3 releases planned" in said and "3 releases (survey among them)" in said
    begun = tmp_path / "begun"
    shutil.copytree(tmp_path / "run" / "survey", begun / "survey")
    before = read_status(begun)
    assert before.spent is not None and before.spent.stages == ("survey",) and not before.model
    assert 0 < before.spent.epsilon < 3  # type: ignore[operator]
    assert "party 0 (survey)" in {state.process for state in before.processes}


def _releases(out: Path) -> int:
    states = [state for path in out.glob("status_*.json") if (state := read_state(path)) is not None]
    return min(state.release for state in states) if len(states) == 4 else 0
