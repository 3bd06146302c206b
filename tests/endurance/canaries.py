"""Records with unmistakable texts, numbers and days go through every command, well and badly; then every file that a
run has left is searched for them: plan, transcript, status, logs, ledgers, models, reports, pictures. So is everything
that any process sends over a socket, before TLS encrypts it (`watching/sitecustomize.py`).

    python -m tests.endurance.canaries            # all scenarios
    python -m tests.endurance.canaries --list
    python -m tests.endurance.canaries train-ridge stats-table1

Only what an owner reads on its own screen, and files that a command says are the owner's own (--private), may quote a
record.
"""

import argparse
import contextlib
import csv
import datetime
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from dpmpc.records.schema import Categorical, Date, Labels, Numeric, Schema
from tests.endurance.canary_search import (
    DAYS,
    INPUTS,
    NUMBERS,
    WORDS,
    environment,
    found,
    sent,
)
from tests.forked_commands import Forked, Server
from tests.runs import own_addresses

COMMAND = (sys.executable, "-P", "-m", "dpmpc.cli.main")
HANG = 300
Row = dict[str, str]


def records(task: str, n: int, odd: bool = True) -> list[Row]:
    """Records with canaries in columns of every kind: extremes, rare values, rare days, an identifier, free text; with
    `odd`, words among numbers too."""
    rng = np.random.default_rng(1)
    rows: list[Row] = []
    for k in range(n):
        y = {"logistic": str(rng.integers(2)), "softmax": "abc"[rng.integers(3)], "ridge": f"{rng.normal():.3f}"}[task]
        rows.append(
            {
                "id": f"{WORDS[0]}{k}",
                "note": f"file {k} of {WORDS[1]}",
                "amount": f"{rng.uniform(0, 1000):.2f}",
                "ward": str(rng.choice(["surgery", "general"])),
                "born": f"200{rng.integers(10)}-0{rng.integers(1, 9)}-1{rng.integers(10)}",
                "stage": str(rng.integers(1, 5)),
                "site": "abc"[k % 3],
                "y": y,
            }
        )
    rows[3]["amount"], rows[4]["amount"] = NUMBERS[0], NUMBERS[1]
    rows[7]["ward"], rows[8]["ward"] = WORDS[1], WORDS[2]
    rows[9]["born"], rows[10]["born"] = DAYS
    rows[12]["stage"] = NUMBERS[3]
    if odd:
        rows[5]["amount"], rows[11]["stage"] = WORDS[0], WORDS[2]
    if task == "ridge":
        rows[0]["y"], rows[1]["y"] = NUMBERS[2], NUMBERS[1]
    return rows


def write(path: Path, rows: list[Row]) -> Path:
    """The records as a CSV file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


PLAYED: set[str] = set()  # the commands that a scenario has called


FORKED: list[Server] = []  # what commands are forked from, where they are no programs of their own


@contextlib.contextmanager
def forked(folder: Path) -> Iterator[None]:
    """Commands share their imports, which are made in that folder; what is watched of a process is of those forked from
    it too."""
    FORKED.append(Server(environment(folder)))
    try:
        yield
    finally:
        FORKED.pop().end()


def begun(folder: Path, *arguments: str | Path | float) -> "subprocess.Popen[str] | Forked":
    """A command of dpmpc in that folder, under way."""
    PLAYED.add(str(arguments[0]))
    if FORKED:
        with contextlib.chdir(folder):
            return FORKED[0].start([*map(str, arguments)], environment(folder))
    return subprocess.Popen(
        [*COMMAND, *map(str, arguments)], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=environment(folder),
    )  # fmt: skip


Done = subprocess.CompletedProcess[str]


def ended(process: "subprocess.Popen[str] | Forked") -> Done:
    """The same, over."""
    with process:
        try:
            output, errors = process.communicate(timeout=HANG)
        finally:
            process.kill()
    assert process.returncode is not None
    return Done(process.args, process.returncode, output, errors)


def run(folder: Path, *arguments: str | Path | float) -> Done:
    """A command of dpmpc in that folder."""
    return ended(begun(folder, *arguments))


@dataclass(frozen=True)
class Scenario:
    """What happens in a fresh folder, whether the last command is to succeed, and the commands that are called; of
    `sends` it sends over."""

    play: "Play"
    succeeds: bool
    commands: tuple[str, ...] = ("train",)
    sends: frozenset[str] = frozenset()


Play = Callable[[Path], Done]
Change = Callable[[list[Row]], None]


def training(
    task: str,
    *more: str | float,
    odd: bool = False,
    change: Change | None = None,
    then: Sequence[Sequence[str]] = (),
) -> Play:
    """`dpmpc train` on canaries, and commands on the run after it."""

    def play(folder: Path) -> Done:
        rows = records(task, 600, odd)
        if change:
            change(rows)
        path = write(folder / INPUTS / "records.csv", rows)
        options = ["--csv", path, "--target", "y", "--owners-column", "site", "--epsilon", 2, "--delta", 1e-4,
                   "--out", "run", "-M", 3, *more]  # fmt: skip
        result = run(folder, "train", *options)
        return after(folder, result, then, path)

    return play


def after(folder: Path, result: Done, then: Sequence[Sequence[str]], path: Path) -> Done:
    """The last of the commands on a run, as long as each succeeds."""
    for command in then:
        if result.returncode == 0:
            result = run(folder, *(word.replace("RECORDS", str(path)) for word in command))
    return result


# What is public of the columns; all canaries lie outside it.
BOUNDS = {"y": ["0", "1"], "ward": ["surgery", "general"], "amount": [0, 1000], "born": ["2000-01-01", "2010-12-31"]}


def asking(*queries: str, more: Sequence[str] = ()) -> Play:
    """`dpmpc stats` on canaries."""

    def play(folder: Path) -> Done:
        path = write(folder / INPUTS / "records.csv", records("logistic", 600, odd=False))
        bounds = folder / "bounds.json"
        bounds.write_text(json.dumps(BOUNDS))
        return run(folder, "stats", *queries, "--bounds", bounds, "--csv", path, "--owners-column", "site",
                   "--epsilon", 2, "--delta", 1e-4, "--out", "run", "-M", 3, *more)  # fmt: skip

    return play


def drawing(folder: Path) -> Done:
    """`dpmpc synth` on canaries, and questions to the synthetic table."""
    path = write(folder / INPUTS / "records.csv", records("logistic", 600, odd=False))
    (folder / "bounds.json").write_text(json.dumps({name: each for name, each in BOUNDS.items() if name != "born"}))
    result = run(folder, "synth", "--csv", path, "--owners-column", "site", "--bounds", "bounds.json", "--target", "y",
                 "--cells", 4, "--epsilon", 4, "--delta", 1e-4, "--out", "run", "--hopeless", "--drop", "id",
                 "--drop", "note", "--drop", "born", "--drop", "stage")  # fmt: skip
    return after(folder, result, (("stats", "count by y", "--of", "run"),), path)


def meeting(folder: Path) -> Done:
    """`dpmpc meet` on canaries."""
    path = write(folder / INPUTS / "records.csv", records("logistic", 600, odd=False))
    return run(folder, "meet", "--csv", path, "--owners-column", "site", "--target", "y", "--epsilon", 2,
               "--delta", 1e-4, "--out", "run", "-M", 3)  # fmt: skip


def at_home(folder: Path) -> Done:
    """What an owner does with its own records alone; what is for its eyes goes where its records are."""
    path = write(folder / INPUTS / "records.csv", records("logistic", 600, odd=False))
    mine = f"{INPUTS}/draft.toml"
    result = run(folder, "describe", path, "--target", "y", "--schema", mine, "--html", f"{INPUTS}/own.html")
    return after(folder, result, (("check", "--schema", mine, "--csv", "RECORDS"),), path)


def without_records(folder: Path) -> Done:
    """Commands that read none, in a folder that has some."""
    path = write(folder / INPUTS / "records.csv", records("logistic", 30))
    commands: Sequence[Sequence[str]] = (
        ("account", "--epsilon", "0.5", "--delta", "1e-3", "--iterations", "100", "--owners", "100",
         "--smallest", "500", "--json"),
        ("advise", "--owners", "10", "--total", "6000", "--dimension", "5", "--epsilon", "1", "--delta", "1e-5"),
        ("sample", "--law", "gaussian", "--scale", "65536", "--count", "64", "-M", "3", "--out", "sample.json"),
        ("circuit", "gaussian", "--out", "circuit.json"),
        ("bench", "iteration", "-d", "8", "-m", "2", "-M", "3", "--quick", "--out", "bench.json"),
        ("experiment", "table1", "--out", "table", "--repeats", "1", "--jobs", "1"),
    )  # fmt: skip
    return after(folder, run(folder, "example", "hospitals", "--out", "made", "--records", "120"), commands, path)


def sites(folder: Path) -> Done:
    """Three hospitals, each owner and party, by TLS: from the first file to the report. The records of one are read by
    workers of an executor, and all logs are those for debugging."""
    rows = records("logistic", 600, odd=False)
    for k, name in enumerate("abc"):
        write(folder / INPUTS / f"site{k}.csv", [row for row in rows if row["site"] == name])
    columns = (Categorical("ward", ("surgery", "general")), Numeric("amount", 0.0, 1000.0), Numeric("stage", 1.0, 4.0),
               Date("born", datetime.date(2000, 1, 1), datetime.date(2010, 12, 31)))  # fmt: skip
    Schema(columns, Labels("y", ("1",), ("0",))).write(folder / "schema.json")
    sizes = ",".join(str(sum(row["site"] == name for row in rows)) for name in "abc")
    kits = [f"kits/site{k}" for k in range(3)]
    made = after(
        folder,
        run(folder, "init", "--role", "both", *own_addresses(3), "--owner-sizes", sizes, "--schema", "schema.json",
            "--epsilon", 1, "--delta", 1e-5, "--iterations", 2),
        (
            ("plan", "consortium.toml"), ("kit", "consortium.toml", "--out", "kits"), ("rehearse", "kits"),
            ("keys", "request", *kits), ("keys", "sign", *kits, "--authority", "authority"),
            ("check", "--plan", "kits/site0/plan.json", "--csv", f"{INPUTS}/site0.csv"),
        ),
        folder,
    )  # fmt: skip
    if made.returncode:
        return made
    sources = [["--csv", f"{INPUTS}/site{k}.csv"] for k in range(2)]
    parts = folder / INPUTS / "site2"
    parts.mkdir()
    whole = pd.read_csv(folder / INPUTS / "site2.csv", dtype=str)
    for k, part in enumerate((whole[:90], whole[90:])):
        part.to_parquet(parts / f"{k}.parquet")
    sources.append(["--records", str(parts), "--executor", "tests.learning.test_away:threads", "--workers", "2"])
    joined = [begun(folder, "join", kit, *sources[k], "--log-level", "debug") for k, kit in enumerate(kits)]
    results = [ended(each) for each in joined]
    result = next((each for each in results if each.returncode), results[0])
    commands = (
        ("status", kits[0], "--json"), ("verify", "kits", "--structure"), ("budget", "kits", "--json"),
        ("report", kits[0]), ("predict", f"{kits[0]}/run", "--csv", "RECORDS", "--out", f"{INPUTS}/p.csv"),
    )  # fmt: skip
    return after(folder, result, commands, folder / INPUTS / "site0.csv")


def by_library(kind: str) -> Play:
    """The library on a frame of canaries, with its debug log."""

    def play(folder: Path) -> Done:
        path = write(folder / INPUTS / "records.csv", records("logistic", 600, odd=False))
        program = [sys.executable, "-P", "-m", "tests.endurance.canary_library", kind, str(path)]
        return ended(
            subprocess.Popen(program, cwd=folder, env=environment(folder), stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True)
        )  # fmt: skip

    return play


def set_(row: int, name: str, value: str) -> Change:
    """One field changed."""

    def change(rows: list[Row]) -> None:
        rows[row][name] = value

    return change


AFTER = (
    ("check", "--schema", "run/survey/schema.json", "--csv", "RECORDS"),  # its dictionary is for its owner's screen
    ("verify", "run", "--structure"),
    ("report", "run"),
    ("status", "run", "--html", "status.html", "--metrics", "status.prom"),
    ("predict", "run", "--csv", "RECORDS", "--out", f"{INPUTS}/p.csv"),
)
TASKS = ("logistic", "softmax", "ridge")
ALL_BUT_TEXTS = ("--drop", "amount", "--drop", "ward", "--drop", "born", "--drop", "stage")
SITES = (
    "init", "plan", "kit", "keys", "rehearse", "check", "join", "status", "verify", "budget", "report", "predict",
)  # fmt: skip
LIBRARY = (  # what it does with records as they are, and what it refuses
    "train", "train by records", "stats", "synth", "fit", "train on a misfit", "train on misspelled numbers",
    "stats of no such column", "synth of misspelled numbers",
)  # fmt: skip
NO_RECORDS = ("example", "account", "advise", "sample", "circuit", "bench", "experiment")
SCENARIOS: dict[str, Scenario] = {
    **{
        f"train-{task}": Scenario(training(task, "--task", task, then=AFTER), True, ("train", *(c[0] for c in AFTER)),
                                  frozenset({"plain"}))
        for task in TASKS
    },
    "three sites": Scenario(sites, True, SITES, frozenset({"plain", "tls"})),
    "a synthetic table": Scenario(drawing, True, ("synth", "stats"), frozenset({"plain"})),
    "a meeting": Scenario(meeting, True, ("meet",), frozenset({"plain"})),
    "an owner alone": Scenario(at_home, True, ("describe", "check")),
    "no records": Scenario(without_records, True, NO_RECORDS),
    **{f"records-{task}": Scenario(training(task, "--preprocessing", "records"), True) for task in TASKS},
    "train-pure": Scenario(training("logistic", "--law", "laplace", "--iterations", 2), True),
    "train-active": Scenario(training("logistic", "--security", "active", "--iterations", 2), True),
    "train-two-servers": Scenario(training("logistic", "--backend", "ot", "-M", 2, "--iterations", 2), True),
    "train-output": Scenario(training("logistic", "--method", "output"), True),
    "train-functional": Scenario(training("ridge", "--task", "ridge", "--method", "functional"), True),
    "train-clear": Scenario(training("softmax", "--task", "softmax", "--engine", "clear"), True),
    "odd-values": Scenario(training("logistic", odd=True), True),
    "odd-values-records": Scenario(training("logistic", "--preprocessing", "records", odd=True), True),
    "a class of one record": Scenario(training("logistic", change=set_(20, "y", WORDS[0])), False),
    "a target that is missing": Scenario(training("logistic", change=set_(20, "y", "")), False),
    "a target that is no number": Scenario(training("ridge", "--task", "ridge", change=set_(20, "y", WORDS[1])), False),
    "an infinite target": Scenario(training("ridge", "--task", "ridge", change=set_(20, "y", "1e999")), False),
    "dropped but one": Scenario(training("logistic", *ALL_BUT_TEXTS, "--preprocessing", "records"), False),
    "debug log": Scenario(training("logistic", "--iterations", 2, "--log-level", "debug"), True),
    "counts": Scenario(asking("count", "count by y", "table(y, ward)"), True, ("stats",)),
    "moments": Scenario(asking("mean(amount)", "median(amount)", "table1 by y"), True, ("stats",)),
    "groups of values": Scenario(asking("count by ward", "count where ward = surgery"), True, ("stats",)),
    **{
        f"library: {kind}": Scenario(by_library(kind), not {"of", "on"} & {*kind.split()}, ()) for kind in LIBRARY
    },
    "no such column": Scenario(asking("mean(ammount)"), False, ("stats",)),
    "json log": Scenario(training("logistic", "--iterations", 2, "--log-json", change=set_(20, "y", WORDS[0])), False),
}  # fmt: skip


def trial(name: str, folder: Path) -> list[str]:
    """What is wrong with a scenario: canaries in files, or another end than expected."""
    scenario = SCENARIOS[name]
    PLAYED.clear()
    result = scenario.play(folder)
    kinds, hits = sent(folder)
    wrong = [*found(folder), *hits]
    if result.returncode == 0 and not scenario.sends <= kinds:
        wrong.append(f"what was sent over {', '.join(sorted(scenario.sends - kinds))} was not seen")
    if scenario.succeeds and PLAYED != set(scenario.commands):
        wrong.append(f"played {sorted(PLAYED)}, said {sorted(scenario.commands)}")
    if "Traceback" in result.stderr:
        wrong.append(f"a traceback: {result.stderr.splitlines()[-1]}")
    if scenario.succeeds != (result.returncode == 0):
        wrong.append(f"ended with {result.returncode}: {result.stderr.strip().splitlines()[-1:]}")
    return wrong


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenarios", nargs="*", help="those to play; all without any")
    parser.add_argument("--list", action="store_true", help="name them")
    chosen = parser.parse_args()
    if chosen.list:
        print(*SCENARIOS, sep="\n")
        return
    bad = 0
    for name in chosen.scenarios or SCENARIOS:
        with tempfile.TemporaryDirectory() as folder:
            wrong = trial(name, Path(folder))
        bad += bool(wrong)
        print(f"{name}: {'; '.join(wrong) or 'no canary in any file or frame'}", flush=True)
    print(f"{bad} of {len(chosen.scenarios or SCENARIOS)} scenarios left a canary or ended otherwise than expected")
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
