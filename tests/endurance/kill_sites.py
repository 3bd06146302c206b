"""Kills and stops the processes of a run over several machines, starts them again as a service manager would, and
compares what was spent with what was released.

    python -m tests.endurance.kill_sites --kills 50 --runs 20

Three parties and three owners, each a process with a folder and a TLS certificate of its own, on loopback. Processes
die (SIGKILL) at random times and at chosen points: in half a ledger line, between a share and the opening, between two
parties of an owner's upload; one, two or all of them at once. Others are stopped (SIGSTOP), for a moment or for longer
than --stall. Whatever ends with another exit code than 0 is started again with the same command. Runs alternate:
replicated and Shamir sharing, with all owners or with --min-owners 2, with noise and without.

What was really released is told by witness files outside of all that the product writes. At the end of every run:

- every share that left has a line in some ledger, and every release left in one attempt and over one set of owners;
- every vector that a party learned is kept, and all parties and owners have the same;
- the ledgers together have no release twice, and none that was not planned;
- without noise every vector is the sum of exactly its owners;
- the structure of all attempts of all parties holds, and no process is left.
"""

import argparse
import json
import math
import os
import random
import shutil
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import numpy as np

from dpmpc.aggregation.owner.encoding import decode, encode
from dpmpc.aggregation.plan.asked import plan_path
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.wire.paths import ledger_path, opened_path, transcript_path
from dpmpc.aggregation.wire.transcript import digest, read_opened
from dpmpc.consortium.placement import Placement
from dpmpc.consortium.plan_alone import plan_only
from dpmpc.learning.method import Learner
from dpmpc.local.named_records import load_owner
from dpmpc.mpc.contract.backend import DEFAULT, FOR_MANY
from dpmpc.mpc.transport.credentials import make_credentials
from dpmpc.planning.overrides import settled
from dpmpc.planning.request import Request
from dpmpc.privacy.ledger import Ledger
from dpmpc.privacy.ledgers import merge
from dpmpc.run.files import OWN_LEDGER, OWNERS_OPENED
from dpmpc.verify.structure import check_structure
from tests.endurance import forked
from tests.endurance.mortal_sites import OWNER_POINTS, PARTY_POINTS, live

PARTIES, OWNERS, RECORDS, DIMENSION = 3, 3, 30, 4
NAMES = [*(f"party{i}" for i in range(PARTIES)), *(f"owner{j}" for j in range(OWNERS))]
STALL = 4.0  # seconds
WAITS, LIMITS = 15, 60  # stalls: for processes to come; without any progress, which count as a hang
_LOOK = 0.02
KINDS = ({"backend": DEFAULT}, {"backend": DEFAULT, "min_owners": 2}, {"backend": FOR_MANY, "scale": 0.0},
         {"backend": DEFAULT, "min_owners": 2, "scale": 0.0}, {"backend": FOR_MANY, "min_owners": 2})  # fmt: skip


def records_of(j: int) -> dict[str, Any]:
    """The options of owner j's records: everybody has others."""
    return {"data": "synthetic", "max_rows": RECORDS, "seed": j + 1, "test_fraction": 0.0, "evaluate": False}


def plan_for(folder: Path, releases: int, kind: dict[str, Any]) -> Path:
    """The plan's file."""
    request = Request(
        data="synthetic",
        max_rows=RECORDS * OWNERS,
        dimension=DIMENSION,
        owners=OWNERS,
        test_fraction=0.0,
        evaluate=False,
        iterations=releases,
        delta=1e-4,
        parties=PARTIES,
        release_wait=2.0,
        **kind,
    )
    plan_only(request, Placement(out=folder / "plan"))
    return folder / "plan" / "plan.json"


@dataclass
class Run:
    """One run and its processes."""

    folder: Path
    keys: Path
    plan_file: Path
    host: str
    rng: random.Random
    running: dict[str, BaseProcess] = field(default_factory=dict)
    finished: set[str] = field(default_factory=set)
    counts: Counter[str] = field(default_factory=Counter)
    stopped: dict[str, float] = field(default_factory=dict)  # until when
    points: dict[str, str] = field(default_factory=dict)  # name -> where it is to die next time
    codes: Counter[str] = field(default_factory=Counter)
    stall: float = STALL

    def __post_init__(self) -> None:
        self._context = forked.server("tests.endurance.mortal_sites")

    def command(self, name: str) -> list[str]:
        """The same command each time."""
        where = [part for i in range(PARTIES) for part in ("-P", f"{self.host}:{11_365 + i}")]
        records = []
        if name.startswith("owner"):
            seed = str(int(name[5:]) + 1)
            records = ["--data", "synthetic", "--max-rows", str(RECORDS), "--dimension", str(DIMENSION)]
            records += ["--seed", seed, "--test-fraction", "0", "--no-evaluate"]
        accepted = [] if Plan.read(self.plan_file).derived.mechanism.scale else ["--epsilon", "inf"]
        return [
            *("train", "--plan", str(self.plan_file), "-I", name.removeprefix("party"), "--tls", str(self.keys)),
            *(*where, *records, *accepted, "--stall", str(self.stall), "--wait", str(WAITS * self.stall)),
            *("--threads", "1", "--out", str(self.folder / name)),
        ]

    def start(self, name: str) -> None:
        """Start it, or start it again."""
        point = self.points.pop(name, None)
        certain = self.folder / f"{name}.died"
        arguments = (
            name,
            self.command(name),
            self.folder / f"{name}.witness",
            self.folder / f"{name}.txt",
            point,
            self.rng.randrange(1, 6) if point not in ("over",) else 1,
            str(certain),
        )
        process = self._context.Process(target=live, args=arguments)
        process.start()
        self.running[name] = process

    def look(self) -> None:
        """What has ended is started again, unless it is over for it; what has been stopped for long enough goes on."""
        now = time.monotonic()
        for name, until in list(self.stopped.items()):
            if now >= until:
                del self.stopped[name]
                self._signal(name, signal.SIGCONT)
        for name, process in list(self.running.items()):
            if process.exitcode is None:
                continue
            process.join()
            del self.running[name]
            self.stopped.pop(name, None)
            died = self.folder / f"{name}.died"
            if died.exists():
                died.unlink()
                self.counts["killed at a point"] += 1
            self.codes[f"{process.exitcode}"] += 1
            assert process.exitcode in (0, 3, -signal.SIGKILL), (name, process.exitcode, self.tail(name))
            if process.exitcode == 0:
                self.finished.add(name)
            else:
                self.start(name)

    def tail(self, name: str) -> str:
        """The last that it said."""
        path = self.folder / f"{name}.txt"
        return path.read_text()[-1500:] if path.exists() else ""

    def _signal(self, name: str, number: signal.Signals) -> bool:
        process = self.running.get(name)
        if process is None or process.pid is None or process.exitcode is not None:
            return False
        os.kill(process.pid, number)
        return True

    def strike(self) -> None:
        """One of the things that happen to processes."""
        rng, alive = self.rng, [name for name in self.running if name not in self.stopped]
        if not alive:
            return
        kind = rng.choices(["kill", "two", "all", "pause", "stop", "stop and kill", "point"], [8, 2, 1, 2, 2, 2, 8])[0]
        victims = alive if kind == "all" else rng.sample(alive, min(len(alive), 2 if kind == "two" else 1))
        for name in victims:
            if kind in ("pause", "stop", "stop and kill"):
                if self._signal(name, signal.SIGSTOP):
                    self.counts["paused" if kind == "pause" else "stopped"] += 1
                    self.stopped[name] = time.monotonic() + (0.5 if kind == "pause" else 2.5 * self.stall)
                continue
            if kind == "point":
                self.points[name] = rng.choice(PARTY_POINTS if name.startswith("party") else OWNER_POINTS)
            if self._signal(name, signal.SIGKILL):
                self.counts["killed"] += 1

    def struck(self) -> int:
        """Kills and stops so far."""
        return sum(self.counts.values())

    def progress(self) -> object:
        """Changes as long as anything is spent, opened or finished."""
        kept = [path for end in ("ledger_*.jsonl", "*.opened.bin") for path in sorted(self.folder.glob(f"*/{end}"))]
        return list(map(_size, kept)), len(self.finished), self.struck()

    def end(self) -> int:
        """Ends what is left; how many processes that was."""
        left = [process for process in self.running.values() if process.exitcode is None]
        for process in left:
            process.kill()
            process.join()
        return len(left)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:  # an owner that begins again gets the history anew
        return 0


def check(run: Run) -> dict[str, Any]:
    """Asserts what must hold of the files that a run left; the figures."""
    plan, folder = Plan.read(run.plan_file), run.folder
    books = [Ledger.read(ledger_path(folder / f"party{i}", i)) for i in range(PARTIES)]
    own = [Ledger.read(folder / f"owner{j}" / OWN_LEDGER) for j in range(OWNERS)]
    spent = Counter(entry.release for entry in merge(books))
    assert len(merge([*books, *own])) >= len(spent), "owners' ledgers hide releases"
    twice_told = Counter(entry.release for entry in merge([*books, *own]))
    apart = {release: count for release, count in twice_told.items() if count > 1}
    assert not apart, f"owners' ledgers count apart: {apart}"
    sent: dict[int, set[tuple[str, str]]] = {}
    learned: dict[int, set[str]] = {}
    for path in folder.glob("party*.witness"):
        for line in path.read_text().splitlines():
            kind, attempt, number, what = line.split()
            if kind == "sent":
                sent.setdefault(int(number), set()).add((attempt, what))
            else:
                learned.setdefault(int(number), set()).add(what)
    beyond = sorted(sent.keys() - spent.keys())
    assert not beyond, f"released without a ledger line: {beyond}"
    twice = {release: how for release, how in sent.items() if len(how) > 1}
    assert not twice, f"shares left in two attempts, or over two sets: {twice}"
    assert not spent or max(spent.values()) == 1, f"counted twice: {spent}"
    unplanned = spent.keys() - set(range(plan.releases))
    assert not unplanned, f"releases that nobody planned: {unplanned}"
    opened = [read_opened(opened_path(folder / f"party{i}", i), plan.dimension) for i in range(PARTIES)]
    theirs = [read_opened(folder / f"owner{j}" / OWNERS_OPENED, plan.dimension) for j in range(OWNERS)]
    for release, seen in learned.items():
        assert len(seen) == 1, f"parties learned two vectors of release {release}"
        kept = {digest(each[release]) for each in (*opened, *theirs) if release in each}
        assert kept <= seen, f"release {release}: another vector was kept than was learned"
    known = [{release: digest(total) for release, total in each.items()} for each in theirs]
    assert known[1:] == known[:-1], "the owners know different releases"
    lost = [release for each in opened for release in each if release not in known[0]]
    assert not lost, f"opened and kept by a party, and lost: {lost}"
    models = [np.load(folder / f"owner{j}" / "model.npz")["theta"] for j in range(OWNERS)]
    assert all((model == models[0]).all() for model in models), "the owners' models differ"
    if not plan.derived.mechanism.scale:
        _check_sums(plan, theirs[0], sent)
    attempts = _structure(run, plan)
    lines = sum(book.lines for book in (*books, *own))
    return {
        "attempts": attempts,
        "releases spent": len(spent),
        "releases of which a share left": len(sent),
        "releases in the model": len(known[0]),
        "releases without a party": sum(bool(entry.lost) for entry in books[0].entries),
        "ledger lines": lines,
        "torn": sum(book.torn for book in (*books, *own)),
    }


def _check_sums(plan: Plan, opened: dict[int, Any], sent: dict[int, set[tuple[str, str]]]) -> None:
    """Every opened vector is the sum over its owners at the iterate that all had."""
    learners = []
    for j in range(OWNERS):
        promise = {"epsilon": plan.epsilon, "delta": plan.delta, "threshold": plan.threshold, "planned": True}
        request = Request(**{**records_of(j), **settled(plan), **promise, "dimension": DIMENSION})
        learners.append(
            Learner(plan.learning, plan.releases, load_owner(request, plan, j).train, plan.sizes[j : j + 1])
        )
    for release in sorted(opened):
        ((_, who),) = sent[release]
        present = tuple(range(OWNERS)) if who == "all" else tuple(map(int, who.split(",")))
        steps = [encode(plan, np.concatenate(list(learners[j].vectors())), j) for j in present]
        total = np.concatenate(steps).sum(axis=0)
        assert (total == opened[release]).all(), f"release {release} is not the sum of its owners {present}"
        for learner in learners:
            learner.apply(decode(plan, total, present if plan.dropouts else None))


def _structure(run: Run, plan: Plan) -> int:
    """The number of attempts; what every party wrote of them holds together."""
    together = run.folder / "together"
    together.mkdir()
    plan.write(plan_path(together))
    for i in range(PARTIES):
        for path in (ledger_path, transcript_path, opened_path):
            shutil.copy(path(run.folder / f"party{i}", i), path(together, i))
    structure = check_structure(together)
    noisy = plan.derived.mechanism.scale  # what is said of noise fails for a plan without any
    failed = [c for c in structure.checks if not c.holds and (noisy or "noise" not in c.name.split(",")[0])]
    assert not failed, failed
    return len({e["attempt"] for i in range(PARTIES) for e in _starts(transcript_path(together, i))})


def _starts(path: Path) -> list[dict[str, Any]]:
    events = [json.loads(line) for line in path.read_text().splitlines()]
    return [event for event in events if event["event"] == "start"]


def kill_sites(
    kills: int, folder: Path, seed: int, *, kind: dict[str, Any] | None = None, host: str = "", say: bool = False,
    stall: float = STALL,
) -> dict[str, Any]:  # fmt: skip
    """The figures of a run whose processes were killed or stopped `kills` times. AssertionError if anything does not
    hold."""
    rng, begin = random.Random(seed), time.monotonic()
    folder.mkdir(parents=True, exist_ok=True)
    kind = KINDS[seed % len(KINDS)] if kind is None else kind
    make_credentials(folder / "keys", NAMES)
    plan_file = plan_for(folder, 200 + 40 * kills, kind)
    run = Run(folder, folder / "keys", plan_file, host or own_host(seed), rng, stall=stall)
    for name in NAMES:
        run.start(name)
    due, seen, at = math.inf, run.progress(), begin
    try:
        while len(run.finished) < len(NAMES):
            run.look()
            now = time.monotonic()
            if run.struck() < kills and now >= due:
                run.strike()
                due = now + rng.choice([0.0, 0.3, 1.0, 2.5, 5.0]) * rng.random()
            if (present := run.progress()) != seen:
                due = now if due == math.inf else due  # from the first file on: a run may be over within a second
                seen, at = present, now
            waiting = sorted(set(NAMES) - run.finished)
            assert now - at < LIMITS * stall, f"{waiting} hang: {[run.tail(name)[-300:] for name in waiting]}"
            time.sleep(_LOOK)
    finally:
        orphans = run.end()
    assert not orphans
    figures = {"seed": seed, "kind": kind, **run.counts, "exit codes": dict(run.codes), **check(run)}
    figures["seconds"] = round(time.monotonic() - begin, 1)
    if say:
        print(json.dumps(figures), flush=True)
    return figures


def own_host(seed: int) -> str:
    """A loopback address of this process's own."""
    return f"127.{41 + seed % 50}.{1 + os.getpid() // 250 % 250}.{1 + os.getpid() % 250}"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--stall", type=float, default=STALL, help="seconds; more where much else is done")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--keep", type=Path, help="where the folder of a run that fails is kept")
    given = parser.parse_args(arguments)
    total: Counter[str] = Counter()
    for number in range(given.runs):
        folder = Path(tempfile.mkdtemp())
        try:
            figures = kill_sites(given.kills, folder / "run", given.seed + number, say=True, stall=given.stall)
        except BaseException:
            if given.keep is not None:
                shutil.move(folder, given.keep)
            raise
        shutil.rmtree(folder)
        total.update({name: value for name, value in figures.items() if isinstance(value, int) and name != "seed"})
        total["runs finished"] += 1
    summary = {
        **total,
        "kills and stops": sum(total[name] for name in ("killed", "stopped", "paused", "killed at a point")),
        "lost ledger entries": 0,
        "releases opened beyond the ledgers": 0,
        "hangs above the limits": 0,
        "orphans": 0,
    }
    print(json.dumps(summary, indent=2))
    if given.json:
        given.json.write_text(json.dumps(summary, indent=2) + "\n")


if __name__ == "__main__":
    main()
