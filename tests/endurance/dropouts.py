"""Owners that are killed and started again at random while a run goes on, each a process of its own.

    python -m tests.endurance.dropouts --owners 50 --releases 200

Three parties, m owners, `--min-owners`; a third of the owners are victims, killed (SIGKILL) at random over all the
releases, whatever they are at, and started again with the same command, as a service manager would. There is no noise,
so every opened sum is exact. At the end, from the files alone: every party's ledger has the same set of owners for
every release, every opened vector is the sum that the clear arithmetic gives on that set, and every owner has the same
model. AssertionError where not.
"""

import argparse
import json
import os
import random
import tempfile
import time
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import numpy as np

from dpmpc.aggregation.owner.encoding import decode, encode
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.wire.paths import ledger_path, opened_path
from dpmpc.aggregation.wire.transcript import read_opened
from dpmpc.consortium.placement import Placement
from dpmpc.consortium.plan_alone import plan_only
from dpmpc.learning.method import Learner
from dpmpc.local.named_records import load_owner
from dpmpc.planning.overrides import settled
from dpmpc.planning.request import Request
from dpmpc.privacy.ledger import Ledger
from tests.endurance import forked

PARTIES, RECORDS, DIMENSION = 3, 30, 4
PATIENCE = "900"  # seconds: the death of a process is seen at once, and one that is slow has not died
_LOOK = 0.02  # seconds between two looks


def records_of(j: int) -> dict[str, Any]:
    """The options of owner j's records: everybody has others."""
    return {"data": "synthetic", "max_rows": RECORDS, "seed": j + 1, "test_fraction": 0.0, "evaluate": False}


def plan_for(owners: int, releases: int, folder: Path) -> Path:
    """The plan's file."""
    request = Request(
        data="synthetic",
        max_rows=RECORDS * owners,
        dimension=DIMENSION,
        owners=owners,
        test_fraction=0.0,
        evaluate=False,
        iterations=releases,
        delta=1e-4,
        scale=0.0,
        parties=PARTIES,
        min_owners=owners // 2,
        release_wait=5.0,
    )
    plan_only(request, Placement(out=folder / "plan"))
    return folder / "plan" / "plan.json"


def command(name: str, plan: Path, folder: Path, host: str) -> list[str]:
    """The command of one process."""
    where = [part for i in range(PARTIES) for part in ("-P", f"{host}:{11_365 + i}")]
    records = []
    if name.startswith("owner"):
        seed = str(int(name[5:]) + 1)
        records = ["--data", "synthetic", "--max-rows", str(RECORDS), "--dimension", str(DIMENSION), "--seed", seed]
        records += ["--test-fraction", "0", "--no-evaluate"]
    return [
        *("train", "--plan", str(plan), "-I", name.removeprefix("party"), "--threads", "1"),
        *("--stall", PATIENCE, "--wait", PATIENCE),
        *(*where, *records, "--epsilon", "inf", "--out", str(folder / name)),  # there is no noise, and no promise
    ]


def check(plan: Plan, folder: Path) -> dict[str, Any]:
    """Asserts what must hold of the files; the figures."""
    sets = []
    for i in range(PARTIES):
        book = Ledger.read(ledger_path(folder / f"party{i}", i))
        sets.append([entry.present for entry in book.entries])
        assert [entry.release for entry in book.entries] == list(range(plan.releases))
    assert sets[1:] == sets[:-1], "the ledgers name other owners"
    opened = read_opened(opened_path(folder / "party0", 0), plan.dimension)
    learners = []
    for j in range(plan.owners):
        promise = {"epsilon": plan.epsilon, "delta": plan.delta, "threshold": plan.threshold, "planned": True}
        request = Request(**{**records_of(j), **settled(plan), **promise, "dimension": DIMENSION})
        dataset = load_owner(request, plan, j)
        learners.append(Learner(plan.learning, plan.releases, dataset.train, plan.sizes[j : j + 1]))
    for release, present in enumerate(sets[0]):
        assert present is not None and len(present) >= plan.fewest
        steps = [encode(plan, np.concatenate(list(learners[j].vectors())), j) for j in present]
        total = np.concatenate(steps).sum(axis=0)
        assert (total == opened[release]).all(), f"release {release} is not the sum of its owners"
        for learner in learners:
            learner.apply(decode(plan, total, present))
    models = [np.load(folder / f"owner{j}" / "model.npz")["theta"] for j in range(plan.owners)]
    assert all((model == learners[0].model).all() for model in models), "the owners' models differ"
    missing = [plan.owners - len(present or ()) for present in sets[0]]
    return {
        "releases": plan.releases,
        "releases_without_some_owners": sum(map(bool, missing)),
        "missing_at_most": max(missing),
        "models_equal_the_clear_ones": len(models),
    }


def kill_owners(owners: int, releases: int, kills: int, folder: Path, seed: int, host: str) -> dict[str, Any]:
    """The figures of a run whose owners are killed so many times."""
    rng = random.Random(seed)
    plan_file = plan_for(owners, releases, folder)
    plan = Plan.read(plan_file)
    names = [*(f"party{i}" for i in range(PARTIES)), *(f"owner{j}" for j in range(owners))]
    victims = rng.sample(names[PARTIES:], max(1, owners // 3))
    due = sorted((rng.randrange(1, releases) for _ in range(kills)), reverse=True)  # after so many releases
    begin, done, restarts = time.perf_counter(), 0, 0
    context, killed = forked.server(), set[str]()
    running: dict[str, BaseProcess] = {}

    def start(name: str) -> None:
        arguments = command(name, plan_file, folder, host), folder / f"{name}.txt"
        running[name] = context.Process(target=forked.dpmpc, args=arguments)
        running[name].start()

    def opened() -> int:
        path = opened_path(folder / "party0", 0)
        return path.stat().st_size // (16 + 8 * plan.dimension) if path.exists() else 0

    try:
        for name in names:
            start(name)
        while any(process.exitcode is None for process in running.values()):
            for name, process in list(running.items()):
                if process.exitcode not in (None, 0):
                    assert name in victims, (name, (folder / f"{name}.txt").read_text()[-2000:])
                    start(name)
                    restarts += 1
            made = opened()
            while due and due[-1] <= made:
                victim = rng.choice(victims)
                due.pop()
                if running[victim].exitcode is None:
                    running[victim].kill()
                    killed.add(victim)
                    done += 1
            time.sleep(_LOOK)
    finally:
        for process in running.values():
            process.kill()
            process.join()
    return {
        "owners": owners,
        "owners_killed": len(killed),
        "killed": done,
        "started_again": restarts,
        **check(plan, folder),
        "seconds": round(time.perf_counter() - begin, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--owners", type=int, default=50)
    parser.add_argument("--releases", type=int, default=200)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    host = f"127.40.{1 + os.getpid() // 250 % 250}.{1 + os.getpid() % 250}"
    with tempfile.TemporaryDirectory() as folder:
        figures = kill_owners(arguments.owners, arguments.releases, arguments.kills, Path(folder), arguments.seed, host)
    print(json.dumps(figures, indent=2))
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
