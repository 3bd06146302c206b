"""Kills parties at every point of a release, carries the run on each time, and compares what was spent with what was
released.

    python -m tests.endurance.kill_parties --kills 100
    python -m tests.endurance.kill_parties --every release   # and --every start: before each write, sync and frame

The whole product runs: launcher, owners' process, three parties over TCP, noise inside MPC, ledgers, --resume. What was
really released is told by witness files that the parties' processes write outside of all that the product writes:
every share that left, every vector that was learned. After each kill, from the files alone:

- every release of which a share left has a line in some ledger, and the accounted epsilon is at least that of the
  releases of which one left;
- every vector that any party learned is known to the run that carries on, bit by bit.

The run has a budget that is exactly its own promise. Just before it dies the party asks for one release of another run
on the same data, as that run's party would: it must be refused, for all is spent or reserved. When all processes are
gone, another run can have exactly the releases that have no ledger line: nothing reserved is lost, nothing stays
reserved.

At the end `dpmpc train --resume` finishes the run, and the structure of all its attempts must hold.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from unittest.mock import patch

from dpmpc.aggregation.plan.asked import FIRST_ATTEMPT, plan_path
from dpmpc.aggregation.plan.here import Here
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.plan.spending import entry_of
from dpmpc.aggregation.wire.paths import ledger_path
from dpmpc.aggregation.wire.transcript import digest
from dpmpc.errors import DpmpcError, UsageError
from dpmpc.local.launcher import train
from dpmpc.mpc.contract.backend import DEFAULT, FOR_TWO, GARBLED
from dpmpc.planning.request import Request
from dpmpc.privacy.account import Account
from dpmpc.privacy.budget import Budget, check_fits
from dpmpc.privacy.composition import spending_of, total
from dpmpc.privacy.ledger import Ledger
from dpmpc.privacy.ledgers import Reservation, merge
from dpmpc.run.resume import begun_as, left, opened_anywhere
from dpmpc.verify.structure import check_structure
from tests.endurance.mortal import EVENT, POINTS, ROLE

WAIT = 900.0  # seconds for processes to come, and to be heard of, on a machine with much other work
BACKENDS = {DEFAULT: 3, FOR_TWO: 2, GARBLED: 2}  # and the parties of a run


@dataclass(frozen=True)
class State:
    """After a kill: releases with a ledger line, of which a share left, learned by a party, known to a resume."""

    spent: int
    sent: int
    learned: int
    known: int
    accounted: float
    released: float  # epsilon
    next: int  # the release with which a resume begins
    free: int  # releases that another run could have


def account_at(out: Path) -> Account:
    """The account of a run in this folder."""
    return Account(out.with_name("account"))


def free_releases(out: Path, plan: Plan) -> int:
    """How many releases of this price another run on the same data could reserve now."""
    budget = Budget(plan.epsilon, plan.delta, out.parent)
    mine = entry_of(plan, FIRST_ATTEMPT, 0)
    books = budget.books(mine.data)

    def refused(releases: int) -> bool:
        try:
            check_fits(budget, Reservation(replace(mine, run="another"), 0, releases), books, out / "ledger_9.jsonl")
        except UsageError:
            return True
        return False

    low, high = 0, plan.releases + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if refused(middle) else (middle, high)
    return low


def witnessed(out: Path) -> tuple[set[int], dict[int, str]]:
    """(releases of which a share left a party, release -> digest of the vector that a party learned)."""
    sent: set[int] = set()
    learned: dict[int, str] = {}
    for path in out.glob("witness_*.txt"):
        for line in path.read_text().splitlines():
            kind, release, seen = line.split()
            assert kind != "reserved", f"before {path.stem} died another run could have {release} releases"
            if kind == "rival":
                continue
            if kind == "sent":
                sent.add(int(release))
            else:
                assert learned.setdefault(int(release), seen) == seen, f"parties learned two vectors of {release}"
    return sent, learned


def check(out: Path) -> State:
    """Asserts what must hold of the files in `out`; the counts."""
    plan = Plan.read(plan_path(out))
    books = [Ledger.read(ledger_path(out, i)) for i in range(plan.parties) if ledger_path(out, i).exists()]
    entries = merge(books)
    spent = {entry.release for entry in entries}
    sent, learned = witnessed(out)
    assert sent <= spent, f"released without a ledger line: {sorted(sent - spent)}"
    accounted = total(entries).epsilon(plan.delta)
    released = spending_of(plan.derived.mechanism, len(sent)).epsilon(plan.delta)
    assert accounted >= released, f"accounted {accounted}, released {released}"
    known = opened_anywhere(out, plan)
    lost = [r for r, seen in learned.items() if r not in known or digest(known[r]) != seen]
    assert not lost, f"learned by a party, but lost: {lost}"
    attempt = left(begun_as(plan, out), out).attempt
    remembered = merge(Budget(plan.epsilon, plan.delta, None, account_at(out)).books([plan.data_id]))
    assert {entry.release for entry in remembered} == spent, "the account remembers what the ledgers say"
    free = free_releases(out, plan)
    assert free == plan.releases - len(entries), f"{free} releases are free, {len(entries)} of {plan.releases} spent"
    first = attempt.first_release
    return State(len(spent), len(sent), len(learned), len(known), accounted, released, first, free)


def request_of(iterations: int, backend: str, out: Path) -> Request:
    """A run whose budget is exactly its own promise."""
    return Request(
        data="synthetic",
        max_rows=120,
        dimension=6,
        owners=3,
        iterations=iterations,
        delta=1e-4,
        evaluate=False,
        budget="1,1e-4",
        account=str(account_at(out).folder),
        parties=BACKENDS[backend],
        backend=backend,
    )


def kill_at_every_event(
    out: Path, *, backend: str = DEFAULT, start: bool = False, victim: int = 1, stride: int = 1, first: int = 1,
    most: int = 100, say: bool = False,
) -> int:  # fmt: skip
    """How often a party was killed: before its `first` write, sync or frame that leaves since a release began, or with
    `start` since its process did, before every `stride`-th after it, until there are no more, or `most` times; the run
    is carried on each time, and what `check` holds after each. AssertionError if anything was lost."""
    request, state = request_of(most + 2, backend, out), State(0, 0, 0, 0, 0.0, 0.0, 0, 0)
    for kill in range(most):
        order = f"{victim}:{EVENT}{first + kill * stride}:{-1 if start else state.next}"
        try:
            with patch.dict(os.environ, {"KILL": order, "WITNESS": str(out)}):
                train(request, Here(out=out, wait=WAIT, stall=WAIT), resume=(out / "plan.json").exists(), role=ROLE)
        except DpmpcError as error:
            assert f"party {victim} was killed" in str(error), f"kill {order}: {error}"
        else:
            structure = check_structure(out)
            assert structure.holds, structure.failed
            return kill
        state = check(out)
        if say:
            print(f"kill {kill + 1}: {order}: {state}", flush=True)
    return most


def kill_parties(
    kills: int, out: Path, *, points: Sequence[str] = POINTS, say: bool = False, backend: str = DEFAULT
) -> dict[str, object]:
    """The figures of a run that was killed `kills` times. AssertionError if anything was lost or not accounted for."""
    request = request_of(4 * kills, backend, out)
    begin, by_point = time.perf_counter(), dict.fromkeys(points, 0)
    state = State(0, 0, 0, 0, 0.0, 0.0, 0, 0)
    for kill in range(kills):
        point, victim = points[kill % len(points)], (kill + kill // len(points)) % BACKENDS[backend]
        order = f"{victim}:{point}:{state.next + (kill // len(points)) % 3}"
        try:
            with patch.dict(os.environ, {"KILL": order, "WITNESS": str(out)}):
                train(request, Here(out=out, wait=WAIT, stall=WAIT), resume=kill > 0, role=ROLE)
        except DpmpcError as error:
            assert f"party {victim} was killed" in str(error), f"kill {kill} at {point}: {error}"
        else:
            raise AssertionError(f"kill {order} did not happen")
        state = check(out)
        rivals = sum(path.read_text().count("rival") for path in out.glob("witness_*.txt"))
        assert rivals == kill + 1, f"{rivals} of {kill + 1} dying parties asked whether anything was free"
        by_point[point] += 1
        if say:
            print(f"kill {kill + 1}: party {victim}, {point}: {state}", flush=True)
    resumed = subprocess.run(
        [sys.executable, "-m", "dpmpc.cli.main", "train", "--resume", str(out)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert resumed.returncode == 0, resumed.stderr
    plan = Plan.read(plan_path(out))
    books = [Ledger.read(ledger_path(out, i)) for i in range(plan.parties)]
    assert len({entry.release for entry in merge(books)}) == plan.releases, (
        "every planned release is spent, and no other"
    )
    structure = check_structure(out)
    assert structure.holds, structure.failed
    report = json.loads((out / "report.json").read_text())
    return {
        "kills": kills,
        "by_point": by_point,
        "attempts": report["attempts"],
        "planned": plan.releases,
        "ledger_lines_at_most": max(book.lines for book in books),
        "torn_lines": sum(book.torn for book in books),
        "spent_at_last_kill": state.spent,
        "share_left_at_last_kill": state.sent,
        "learned_and_kept_at_last_kill": state.learned,
        "epsilon_accounted_at_last_kill": state.accounted,
        "epsilon_released_at_last_kill": state.released,
        "iterations_in_the_model": report["iterations"],
        "releases_another_run_could_have_while_a_party_lived": 0,
        "releases_another_run_could_have_after_a_kill": "those without a ledger line, each time",
        "structure": "holds",
        "seconds": round(time.perf_counter() - begin, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--runs", type=int, default=1, help="so many runs, each killed so often")
    parser.add_argument("--backend", choices=BACKENDS, default=DEFAULT, help="three parties, or two servers")
    parser.add_argument("--every", choices=("release", "start"), help="before each write, sync and frame of this")
    parser.add_argument("--stride", type=int, default=1, help="with --every: only before each so many")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    if arguments.every:
        with tempfile.TemporaryDirectory() as directory:
            deaths = kill_at_every_event(
                Path(directory) / "run", backend=arguments.backend, start=arguments.every == "start",
                stride=arguments.stride, say=True,
            )  # fmt: skip
        print(f"killed {deaths} times: nothing lost, nothing spent twice")
        return
    runs = []
    for number in range(arguments.runs):
        with tempfile.TemporaryDirectory() as directory:
            runs.append(kill_parties(arguments.kills, Path(directory) / "run", say=True, backend=arguments.backend))
        print(f"run {number + 1} of {arguments.runs}: {json.dumps(runs[-1])}", flush=True)
    text = json.dumps(runs[0] if len(runs) == 1 else {"kills": arguments.kills * len(runs), "runs": runs}, indent=2)
    print(text)
    if arguments.json:
        arguments.json.write_text(text + "\n")


if __name__ == "__main__":
    main()
