"""Every owner a party, one process a site: on one machine, one by one with TLS, interrupted, refused."""

import contextlib
import json
import os
import signal
import socket
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dpmpc.aggregation.plan.asked import plan_path
from dpmpc.aggregation.plan.barrier import count_barrier
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.consortium.placement import Placement
from dpmpc.consortium.start import start
from dpmpc.errors import DpmpcError, UsageError, owner_text
from dpmpc.local.named_records import load
from dpmpc.mpc.contract.backend import BACKENDS
from dpmpc.mpc.transport.wire import HEADER
from dpmpc.planning.request import Request
from dpmpc.planning.training import facts_of, plan_of
from dpmpc.verify.verification import verify_structure
from tests.refusals import refuses
from tests.runs import children_of, dpmpc, errors_of, opened, own_addresses, rows, run, same, small, started, wait_until


def both(n: int = 3, **changes: object) -> Request:
    """A small run of n sites."""
    return small(**{"owners": n, "parties": n, "role": "both", "backend": "shamir", **changes})


def test_sites_open_what_the_clear_engine_computes_and_their_own_shares_stay_at_home(tmp_path: Path) -> None:
    """Every byte that a party receives for a release: barriers, openings, and the vectors of n - 1 owners."""
    request = both(iterations=3, scale=0.0, weights="size")
    report = run(request, tmp_path / "sites")
    clear = run(replace(request, engine="clear", role="apart"), tmp_path / "clear")
    assert same(opened(tmp_path / "sites"), opened(tmp_path / "clear"))
    with np.load(tmp_path / "sites" / "model.npz") as a, np.load(tmp_path / "clear" / "model.npz") as b:
        assert np.array_equal(a["theta"], b["theta"]) and np.any(a["theta"])
    assert report["iterations"] == clear["iterations"] and report["backend"] == "shamir"
    logs = [(tmp_path / "sites" / f"site_{i}.log").read_text() for i in range(3)]
    assert all("party: connected" in text and "owner: connected" in text for text in logs)
    assert not list((tmp_path / "sites").glob("party_*.log"))
    shorter = run(replace(request, iterations=1), tmp_path / "shorter")
    plan = Plan.read(plan_path(tmp_path / "sites"))
    counts = count_barrier(plan) + BACKENDS["shamir"].count_opening(plan.dimension, 3, 1)
    opening = counts.bytes_with_headers(HEADER.size)[0]
    payloads = BACKENDS["shamir"].payload_bytes(3, 1, 1, plan.dimension)
    assert payloads == (24, 8 * plan.dimension, 8 * plan.dimension)  # party 0 expands a seed
    vectors = [2 * (HEADER.size + size) for size in payloads]
    received = zip(shorter["cost"]["bytes_received"], report["cost"]["bytes_received"], strict=True)
    assert [b - a for a, b in received] == [2 * (opening + each) for each in vectors]


def test_one_process_a_site_and_an_interrupted_run_goes_on_with_new_keys(tmp_path: Path) -> None:
    out = tmp_path / "run"
    words = "--data synthetic --max-rows 300 --dimension 4 --owners 3 -M 3 --role both --backend shamir --delta 1e-4"
    with started("train", *words.split(), "--iterations", "150", "--no-evaluate", "--out", out) as process:
        wait_until(lambda: rows(out) > 5 or process.poll() is not None)
        children = children_of(process.pid)
        assert len(children) == 3
        os.kill(children[1], signal.SIGKILL)
        errors = errors_of(process)
    assert process.returncode == 3 and "site 1 was killed (SIGKILL)" in errors and "carry on with --resume" in errors
    resumed = dpmpc("train", "--resume", out)
    assert resumed.returncode == 0, resumed.stderr
    report = json.loads((out / "report.json").read_text())
    assert report["attempts"] == 2 and 140 < report["iterations"] <= 150
    assert verify_structure(out).holds
    for i in range(3):
        lines = (out / f"used_{i}.txt").read_text().splitlines()
        assert [line for line in lines if line.startswith("epoch")] == ["epoch 1", "epoch 2"]
        assert {line.split()[1] for line in lines if line.startswith("batch")} == {"1", "2"}


# -- one by one ------------------------------------------------------------------------------------------------------
def test_sites_in_folders_of_their_own_with_tls(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    columns = [{"kind": "number", "name": name, "low": 0, "high": 1} for name in "ab"]
    target = {"kind": "label", "name": "sick", "positive": ["1"], "negative": ["0"]}
    (tmp_path / "schema.json").write_text(json.dumps({"columns": columns, "target": target}))
    for i in range(3):
        x = rng.uniform(size=(30, 2)).round(3)
        lines = ["a,b,sick", *(f"{a},{b},{int(a > b)}" for a, b in x)]
        (tmp_path / f"{i}.csv").write_text("\n".join(lines) + "\n")
    shape = "--owner-sizes 30,30,30 --delta 1e-4 --iterations 3 -M 3 --role both --backend shamir --plan-only"
    schema = ["--schema", tmp_path / "schema.json"]
    planned = dpmpc("train", *schema, *shape.split(), "--out", tmp_path / "plan")
    assert planned.returncode == 0 and "3 parties, 9 samples: about" in planned.stdout, planned.stderr
    assert dpmpc("keys", "-M", 3, "--owners", 3, "--out", tmp_path / "keys").returncode == 0
    addresses = own_addresses(3)
    sites = contextlib.ExitStack()
    processes = []
    for i in range(3):
        site = tmp_path / f"site{i}"
        site.mkdir()
        for name in ("ca.crt", *(f"{role}{i}.{end}" for role in ("party", "owner") for end in ("crt", "key"))):
            (site / name).write_bytes((tmp_path / "keys" / name).read_bytes())
        options = ["--plan", tmp_path / "plan" / "plan.json", "--role", "both", "--tls", site, "-I", i]
        options += ["--csv", tmp_path / f"{i}.csv"]
        processes.append(sites.enter_context(started("train", *options, *addresses, "--out", site / "run")))
    with sites:
        errors = [errors_of(process) for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0], errors
    models = [np.load(tmp_path / f"site{i}" / "run" / "model.npz")["theta"] for i in range(3)]
    assert np.any(models[0]) and all(np.array_equal(m, models[0]) for m in models)
    for i in range(3):
        names = {path.name for path in (tmp_path / f"site{i}" / "run").iterdir()}
        assert {f"site_{i}.log", f"ledger_{i}.jsonl", f"used_{i}.txt", "report.json", "history.csv"} <= names
        assert not any(f"party_{j}" in name for name in names for j in range(3) if j != i)


def _plan(folder: Path, **changes: object) -> Path:
    request = both(**changes)
    folder.mkdir(parents=True, exist_ok=True)
    plan_of(request, facts_of(*load(request))).write(folder / "plan.json")
    return folder / "plan.json"


def refused(folder: Path, request: Request | None, says: str, **where: object) -> None:
    """`start` ends with one line that has these words."""
    with pytest.raises(DpmpcError) as error:
        start(request, Placement(out=folder / "out", **where), lambda event: None)  # type: ignore[arg-type]
    assert says in owner_text(error.value) and "\n" not in owner_text(error.value)


def test_roles_that_do_not_go_together_are_refused_in_a_line(tmp_path: Path) -> None:
    plan, apart = _plan(tmp_path / "both"), _plan(tmp_path / "apart", role="apart")
    request = both()
    alone = "in this plan every owner is a party, one process a site; index={} would be one without the other"
    refused(
        tmp_path, request, alone.format("owner2") + "; add role=both and give index=2", plan_file=plan, index="owner2"
    )
    refused(tmp_path, None, alone.format("1"), plan_file=plan, index="1")
    refused(tmp_path, request, alone.format("owners"), plan_file=plan, index="owners")
    refused(tmp_path, request, "this one has them apart", plan_file=apart, index="1", role="both")
    for index in ("owner1", "owners"):
        with refuses("together", index, setting="role"):
            Placement(out=tmp_path, index=index, role="both", plan_file=plan)
    with refuses("together", "index=1", "plan_file=FILE", setting="role"):
        Placement(out=tmp_path, index="1", role="both")
    for changes in ({"owners": 4}, {"owners": None, "owner_sizes": (50, 50)}):
        with refuses("together", 3, setting="role"):
            both(**changes)
    with refuses("together", 3, 5, setting="role"):
        replace(Plan.read(plan), parties=5)
    with refuses("together", "engine=clear", setting="role"):
        both(engine="clear")


@pytest.mark.parametrize(("parties", "threshold"), [(33, None), (33, 5), (6, 3), (8, 4), (4, 2)])
def test_numbers_of_parties_that_cannot_be_are_refused_in_a_line(parties: int, threshold: int | None) -> None:
    with pytest.raises(UsageError) as error:
        small(parties=parties, threshold=threshold)
    says = "noise is made by 32 parties at most" if parties == 33 else f"got t = {threshold}, n = {parties}"
    assert says in owner_text(error.value) and "\n" not in owner_text(error.value)


def test_each_role_s_failure_says_whose_it_is(tmp_path: Path) -> None:
    plan = _plan(tmp_path)
    addresses = own_addresses(3)[1::2]
    host, port = addresses[1].split(":")
    with socket.create_server((host, int(port))):
        where = {**site(plan, addresses), "wait": 0.5}
        refused(tmp_path, csv(tmp_path, 33), "as party 1: party 1 must listen on", **where)
    refused(tmp_path, csv(tmp_path, 50), "as owner 1: owners hold as many training records", **site(plan, addresses))


def csv(folder: Path, records: int) -> Request:
    """A request of one site with so many records of the plan's own schema."""
    rng = np.random.default_rng(0)
    lines = ["x0,x1,x2,x3,label"]
    lines += [",".join([*(f"{v:.3f}" for v in rng.uniform(size=4)), str(k % 2 * 2 - 1)]) for k in range(records)]
    (folder / "site.csv").write_text("\n".join(lines) + "\n")
    source = {"csv": str(folder / "site.csv"), "target": "label", "intercept": False}
    return both(data=None, max_rows=None, dimension=None, owners=None, **source)


def site(plan: Path, addresses: list[str]) -> dict[str, object]:
    """Where site 1 of the plan is."""
    return {"plan_file": plan, "index": "1", "role": "both", "addresses": addresses, "overwrite": True, "wait": 30.0}
