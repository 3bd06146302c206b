"""Whole runs through real processes: MPC against the clear engine, the report, the files, resuming, one process at a
time."""

import contextlib
import csv
import json
import os
import signal
from pathlib import Path

import numpy as np
import pytest

from dpmpc.aggregation.plan.asked import plan_path
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.wire.transcript import read_opened, read_transcript
from dpmpc.mpc.transport.site_keys import LIST, SiteKeys
from dpmpc.planning.request import Request
from dpmpc.privacy.ledger import Ledger
from tests.refusals import refuses
from tests.runs import (
    alive,
    children_of,
    dpmpc,
    errors_of,
    opened,
    own_addresses,
    rows,
    run,
    same,
    small,
    started,
    wait_until,
)

REPORT_KEYS = {
    "schema",
    "method",
    "sampler",
    "engine",
    "calibration",
    "owners",
    "owner_sizes",
    "parties",
    "threshold",
    "dimension",
    "iterations",
    "privacy",
    "utility",
    "cost",
}
PRIVACY_KEYS = {
    "epsilon",
    "delta",
    "neighbours",
    "sensitivity",
    "noise_law",
    "noise_scale",
    "statistical_security_bits",
}
COST_KEYS = {"wall_s", "offline_s", "online_s", "per_iteration_s", "bytes_sent", "rounds"}


@pytest.mark.parametrize(
    "options",
    [
        small(method="gradient", weights="size", skew=3.0, average="tail"),
        small(method="output", iterations=None, epsilon=2.0, lam=0.05),
        small(method="gradient", parties=5, radius=0.5, iterations=2),
        small(method="functional", iterations=None, weights="size", skew=3.0),
        small(data="diabetes", owners=4, method="functional", iterations=None),
        small(method="gradient", spread="fixed", iterations=2),
    ],
    ids=["gradient-size", "output", "five-parties", "functional", "functional-ridge", "fixed-sensitivity"],
)
def test_without_noise_mpc_opens_what_the_clear_engine_computes(options: Request, tmp_path: Path) -> None:
    from dataclasses import replace

    options = replace(options, scale=0.0)
    report = run(options, tmp_path / "mpc")
    clear = run(replace(options, engine="clear"), tmp_path / "clear")
    assert same(opened(tmp_path / "mpc"), opened(tmp_path / "clear"))
    with np.load(tmp_path / "mpc" / "model.npz") as a, np.load(tmp_path / "clear" / "model.npz") as b:
        assert np.array_equal(a["theta"], b["theta"]) and np.any(a["theta"])
    assert (report["engine"], clear["engine"]) == ("mpc", "clear")
    assert report["privacy"]["epsilon"] is None and report["privacy"]["noise_scale"] == 0
    for i in range(options.parties):
        theirs = read_opened(tmp_path / "mpc" / f"party_{i}.opened.bin", report["coordinates"])
        assert same(theirs, opened(tmp_path / "mpc"))


def test_the_opened_sum_is_that_of_the_owners_own_vectors(tmp_path: Path) -> None:
    """One noiseless gradient at theta = 0, against a loop over owners and records in plain Python floats. There two
    records' gradients lie 1 apart at most and not 2, so owners send theirs doubled."""
    from dpmpc.local.named_records import load

    options = small(iterations=1, owners=3, max_rows=40, scale=0.0, weights="equal")
    run(options, tmp_path / "run")
    dataset, split = load(options)
    grid = Plan.read(plan_path(tmp_path / "run")).grid
    total = [0] * dataset.d
    for j in range(split.m):
        held = range(int(split.offsets[j]), int(split.offsets[j + 1]))
        for k in range(dataset.d):
            mean = 2 * sum(-float(dataset.y[i]) * 0.5 * float(dataset.X[i, k]) for i in held) / len(held)
            total[k] += round(mean / grid.step)
    values = opened(tmp_path / "run")[0]
    assert np.abs(values - np.array(total)).max() <= 1  # a mean within rounding of half a step may fall on either side
    assert np.abs(values).max() > 100


def test_a_run_leaves_report_model_history_transcripts_and_ledgers(tmp_path: Path) -> None:
    out = tmp_path / "run"
    result = dpmpc(
        "train",
        "--data",
        "breast-cancer",
        "--owners",
        5,
        "--epsilon",
        1,
        "--delta",
        "1e-4",
        "--iterations",
        20,
        "-M",
        3,
        "--out",
        out,
    )
    assert result.returncode == 0, result.stderr
    report = json.loads((out / "report.json").read_text())
    assert (
        report.keys() >= REPORT_KEYS and report["privacy"].keys() >= PRIVACY_KEYS and report["cost"].keys() >= COST_KEYS
    )
    assert report["utility"].keys() >= {"train_loss", "optimality_gap", "test_accuracy", "nonprivate"}
    assert (report["parties"], report["threshold"], report["owners"], report["dimension"]) == (3, 1, 5, 31)
    assert report["privacy"]["epsilon"] == 1 and report["privacy"]["delta"] == 1e-4
    assert report["privacy"]["epsilon_accounted"] <= 1 and len(report["cost"]["bytes_sent"]) == 3
    assert 0.3 < report["utility"]["test_accuracy"] <= 1
    assert f"{report['utility']['test_accuracy']:.4f}" in result.stdout and "0.5 %" not in result.stdout
    with (out / "history.csv").open() as file:
        history = list(csv.DictReader(file))
    assert [int(row["iteration"]) for row in history] == list(range(1, 21))
    assert float(history[-1]["accuracy_outside_guarantee"]) == pytest.approx(report["utility"]["test_accuracy"])
    sizes = [int(row["bytes"]) for row in history]
    assert min(sizes) > 5 * 3 * 31 * 8 and sum(sizes[1:-1]) == sizes[1] * 18  # the same bytes in every iteration
    plan = Plan.read(plan_path(out))
    for i in range(3):
        book = Ledger.read(out / f"ledger_{i}.jsonl")
        assert [entry.release for entry in book.entries] == list(range(20)) and book.entries[
            0
        ].mechanism == plan.derived.mechanism
        events = [e for e in read_transcript(out / f"party_{i}.transcript.jsonl") if e.get("release") == 7]
        assert [e["event"] for e in events] == ["input", "sum", "noise", "add", "stand", "ledger", "send", "open"]
        assert "end" in (out / f"party_{i}.log").read_text()
    again = dpmpc("train", "--data", "breast-cancer", "--owners", 5, "--delta", "1e-4", "--out", out)
    assert again.returncode == 2 and "--overwrite" in again.stderr and (out / "report.json").exists()


def test_the_noise_has_the_scale_of_the_plan(tmp_path: Path) -> None:
    """400 coordinates of noise: opened minus the noiseless sum at theta = 0. |mean| and variance within 6 sigma: false
    alarms 4e-9."""
    options = small(iterations=1, dimension=400, max_rows=100, owners=2, epsilon=0.5)
    run(options, tmp_path / "noisy")
    from dataclasses import replace

    plan = Plan.read(plan_path(tmp_path / "noisy"))
    run(replace(options, scale=0.0, engine="clear"), tmp_path / "exact")
    noise = (opened(tmp_path / "noisy")[0] - opened(tmp_path / "exact")[0]) / plan.derived.mechanism.scale
    assert abs(noise.mean()) < 6 / 20 and abs((noise**2).mean() - 1) < 6 * (2 / 400) ** 0.5


def test_a_run_without_pool_and_without_evaluation(tmp_path: Path) -> None:
    report = run(small(pool=False, iterations=3, method="gradient", law="laplace", delta=None), tmp_path / "run")
    assert report["utility"] is None and report["privacy"]["noise_law"] == "discrete Laplace"
    assert 0 < report["privacy"]["delta"] < 1e-10  # what the MPC's statistical security adds
    assert report["cost"]["rounds_offline"] > 3 * 10 and report["cost"]["rounds_online"] == 6


def test_many_owners_in_several_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """20,000 owners x 60 coordinates are three frames a party; 40,000 x 60 go over the window of consent."""
    from dataclasses import replace

    options = small(owners=40_000, max_rows=80_000, dimension=60, iterations=1, scale=0.0)
    report = run(options, tmp_path / "mpc")
    run(replace(options, engine="clear"), tmp_path / "clear")
    assert same(opened(tmp_path / "mpc"), opened(tmp_path / "clear"))
    assert max(report["cost"]["peak_memory"]) < 1 << 28


def test_an_interrupted_run_is_carried_on_within_its_budget(tmp_path: Path) -> None:
    out = tmp_path / "run"
    arguments = "train --data synthetic --max-rows 100 --dimension 3 --owners 2 --delta 1e-3 --no-evaluate".split()
    with started(*arguments, "--iterations", "400", "-M", "3", "--out", out) as process:
        wait_until(lambda: rows(out) > 50)
        victims = children_of(process.pid)
        assert len(victims) == 3
        os.kill(victims[2], signal.SIGKILL)
        errors = errors_of(process)
        assert process.returncode == 3 and "was killed (SIGKILL)" in errors and "Traceback" not in errors
    assert alive(victims) == []
    kept = rows(out)
    before = {path: read_opened(path, 3) for path in out.glob("*.opened.bin")}
    result = dpmpc("train", "--resume", out)
    assert result.returncode == 0, result.stderr
    report = json.loads((out / "report.json").read_text())
    spent = max(len(Ledger.read(out / f"ledger_{i}.jsonl").entries) for i in range(3))
    assert kept > 50 and report["attempts"] == 2 and spent == 400 and 398 <= report["iterations"] <= 400
    assert rows(out) == report["iterations"]
    with (out / "history.csv").open() as file:
        listed = {int(row["release"]) for row in csv.DictReader(file)}
    assert set().union(*before.values()) <= listed
    assert dpmpc("train", "--resume", out).returncode == 2


def test_processes_started_one_by_one(tmp_path: Path) -> None:
    common = ["train", "--data", "synthetic", "--max-rows", "60", "--dimension", "3", "--owners", "4"]
    common += ["--delta", "1e-3", "--iterations", "5"]
    planned = dpmpc(*common, "-M", 3, "--plan-only", "--out", tmp_path / "plan")
    assert planned.returncode == 0 and "grid steps" in planned.stdout
    plan = ["--plan", tmp_path / "plan" / "plan.json", *own_addresses(3)]
    with contextlib.ExitStack() as stack:
        parties = [stack.enter_context(started("train", *plan, "-I", i, "--out", tmp_path / f"p{i}")) for i in range(3)]
        result = dpmpc(*common, *plan, "-I", "owners", "--out", tmp_path / "owners")
        errors = [errors_of(party) for party in parties]
        assert result.returncode == 0, (result.stderr, errors)
        assert [party.returncode for party in parties] == [0, 0, 0], errors
    assert json.loads((tmp_path / "owners" / "report.json").read_text())["iterations"] == 5
    for i in range(3):
        assert same(read_opened(tmp_path / f"p{i}" / f"party_{i}.opened.bin", 3), opened(tmp_path / "owners"))


def test_owners_and_parties_each_on_their_own_with_tls(tmp_path: Path) -> None:
    """Three owners' processes with a CSV file each, two parties, a plan with a schema, made without any record."""
    rng = np.random.default_rng(3)
    sizes = (20, 30, 25)
    columns = [{"kind": "number", "name": name, "low": 0, "high": 1} for name in "uv"]
    target = {"kind": "label", "name": "y", "positive": ["yes"], "negative": ["no"]}
    (tmp_path / "schema.json").write_text(json.dumps({"columns": columns, "target": target}))
    for j, size in enumerate(sizes):
        table = rng.random((size, 2))
        lines = ["u,v,y", *(f"{u:.4f},{v:.4f},{'yes' if u > v else 'no'}" for u, v in table)]
        (tmp_path / f"site{j}.csv").write_text("\n".join(lines) + "\n")
    assert dpmpc("keys", "-M", 2, "--owners", 3, "--out", tmp_path / "keys").returncode == 0
    for name in ("party0", "party1", "owner0", "owner1", "owner2"):
        folder = tmp_path / f"keys_{name}"
        folder.mkdir()
        for file in ("ca.crt", f"{name}.crt", f"{name}.key"):
            (folder / file).write_bytes((tmp_path / "keys" / file).read_bytes())
    planned = dpmpc(
        "train",
        "--owner-sizes",
        "20,30,25",
        "--schema",
        tmp_path / "schema.json",
        "--delta",
        "1e-3",
        "--iterations",
        4,
        "-M",
        2,
        "--plan-only",
        "--out",
        tmp_path / "plan",
    )
    assert planned.returncode == 0, planned.stderr
    common = ["train", "--plan", tmp_path / "plan" / "plan.json", "-T", 0, *own_addresses(2)]

    def command(name: str, *more: str | Path) -> list[str | Path]:
        where = ["-I", name.removeprefix("party"), "--tls", tmp_path / f"keys_{name}", "--out", tmp_path / name]
        return [*common, *where, *more]

    commands = [command(f"party{i}") for i in range(2)]
    commands += [command(f"owner{j}", "--csv", tmp_path / f"site{j}.csv") for j in range(3)]
    with contextlib.ExitStack() as stack:
        processes = [stack.enter_context(started(*each)) for each in commands]
        errors = [errors_of(process) for process in processes]
        assert [process.returncode for process in processes] == [0] * 5, errors
    first = opened(tmp_path / "owner0")
    assert len(first) == 4 and same(first, opened(tmp_path / "owner1")) and same(first, opened(tmp_path / "owner2"))
    with np.load(tmp_path / "owner0" / "model.npz") as a, np.load(tmp_path / "owner2" / "model.npz") as b:
        assert np.array_equal(a["theta"], b["theta"])
    wrong = dpmpc(
        *common,
        "-I",
        "owner1",
        "--csv",
        tmp_path / "site0.csv",
        "--tls",
        tmp_path / "keys_owner1",
        "--out",
        tmp_path / "x",
    )
    assert wrong.returncode == 2 and "as many training records as the plan says, 30" in wrong.stderr
    for name in ("owner2", "party1"):  # a list of keys that was for another plan
        (tmp_path / f"keys_{name}" / LIST).write_text(SiteKeys("0" * 64, ()).to_text())
        records = ("--csv", tmp_path / "site2.csv") if name == "owner2" else ()
        late = dpmpc(*command(name, *records, "--wait", "1", "--out", tmp_path / f"late_{name}"))
        assert late.returncode == 2 and "a list of keys is for one plan; it is for 0000000000000000" in late.stderr


def test_a_budget_is_kept_over_runs(tmp_path: Path) -> None:
    options = small(epsilon=1.0, delta=1e-6, budget="1.2,1e-5")
    run(options, tmp_path / "first")
    with refuses("budget", "synthetic", "epsilon 1.2", 4, setting="budget") as caught:
        run(options, tmp_path / "second")
    assert caught.value.exit_code == 2 and not (tmp_path / "second" / "report.json").exists()
    with refuses(
        "budget", "synthetic", "epsilon 1.2", setting="budget"
    ):  # overwriting a run does not give its budget back
        run(options, tmp_path / "first", overwrite=True)


def test_a_party_on_its_own_keeps_the_budget(tmp_path: Path) -> None:
    run(small(epsilon=1.0, delta=1e-6), tmp_path / "first")
    plan = tmp_path / "first" / "plan.json"  # a plan that was run before
    common = ("train", "--plan", plan, "--out", tmp_path / "second", "--wait", "0.2", "--budget")
    refused = dpmpc(*common, "1.2,1e-5", "-I", 0)
    assert refused.returncode == 2 and "the budget for data" in refused.stderr, refused.stderr
    allowed = dpmpc(*common, "3,1e-5", "-I", 0)
    assert allowed.returncode == 3 and "missing: party" in allowed.stderr, allowed.stderr  # nobody else was started
    owner = (*common, "0.7,1e-5", "-I", "owner0", "--csv", "x")
    named = ("--data-id", "synthetic")
    for more, said in (((), "is for the records of one --data-id"), (named, "the budget for data")):
        refused = dpmpc(*owner, *more)  # before a record is read, and whatever the plan calls the records
        assert refused.returncode == 2 and said in refused.stderr, refused.stderr


def test_paper_calibration_says_what_it_really_gives(tmp_path: Path) -> None:
    report = run(small(calibration="paper", engine="clear", epsilon=0.5, delta=1e-3, iterations=10), tmp_path / "run")
    paper = report["privacy"]["paper"]
    assert paper["claims"] == {"epsilon": 0.5, "delta": 1e-3}
    assert report["privacy"]["epsilon"] == paper["really"]["epsilon"] != 0.5
    wide = run(
        small(calibration="paper", engine="clear", method="output", iterations=None, delta=None, dimension=25),
        tmp_path / "out",
    )
    assert wide["privacy"]["epsilon"] == pytest.approx(5.0, rel=0.01)  # sqrt(d) times what Theorem 3.1 claims


def test_options_survive_json() -> None:
    options = small(owner_sizes=(3, 4), owners=None, drop=())
    assert Request.from_json(json.loads(json.dumps(options.to_json()))) == options


def test_a_resume_of_nothing_is_refused(tmp_path: Path) -> None:
    from dpmpc.consortium.placement import Placement
    from dpmpc.consortium.start import carry_on

    with refuses("file", "request.json", setting="resume"):
        carry_on(Placement(out=tmp_path), lambda event: None)
