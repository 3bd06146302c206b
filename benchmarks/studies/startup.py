"""What a person waits for who asks for little: commands and fits beside `python -c "import numpy"`, by turns.

    python benchmarks/studies/startup.py [--repetitions 5] [--verify] [--against COMMIT] [--json FILE]

Each row: the median seconds of the clock and of the processors (all processes that it started included), and both as
multiples of what the import of NumPy takes, so that rows of a busy and of a quiet machine can be compared. A fit is
timed inside a process that has made one already; its processor time is also that of the parties. Each turn has folders
and an account of its own: what was spent on the same records before is read by every party, and a first run has none.
With --verify also the check of a run of 200 releases by fresh ones, once. With --against every turn is made by both
versions, one after the other, and each row is the median of the turns' ratios.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dpmpc.benchmarks.machine import IMPORT, machine
from dpmpc.benchmarks.studies.programs import ROOT, checkout
from dpmpc.folders import passing_folder

WARM_UPS = 1  # turns that are not counted: they write bytecode
_COMMAND = [sys.executable, "-m", "dpmpc"]
_TRAIN = ["--owners", "5", "--method", "gradient", "--epsilon", "1", "--delta", "1e-4", "--iterations", "50", "-M", "3"]
_RELEASES = "200"  # of the run whose check by fresh releases is timed
_FIT = """
import json, os, sys, time, warnings
from pathlib import Path
warnings.simplefilter("ignore")
import numpy as np
from dpmpc.estimators import PrivateLogisticRegression
def processor():
    "Seconds of this process and of those below it that it has not waited for: those that parties are forked from."
    found = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            row = path.read_text().rsplit(")", 1)[1].split()
        except OSError:  # it has ended
            continue
        found += sum(map(int, row[11:15])) if int(row[1]) == os.getpid() else 0
    return sum(os.times()[:4]) + found / os.sysconf("SC_CLK_TCK")
rng = np.random.default_rng(1)
X = rng.uniform(-4, 4, (300, 5))
y, site = (X[:, 0] > 0).astype(int), np.arange(300) % 3
for _ in range(2):
    model = PrivateLogisticRegression(bounds=(-4.0, 4.0), iterations=10, engine=sys.argv[1])
    begin, cpu = time.perf_counter(), processor()
    model.fit(X, y, owners=site)
    end = time.perf_counter()
print(json.dumps([end - begin, processor() - cpu]))
"""
Row = dict[str, Any]


def commands(folder: Path) -> dict[str, list[str]]:
    """What is timed from the start of a process to its end, by name."""
    out = ["--out", str(folder / "run")]
    first = ["--csv", str(folder / "hospitals.csv"), "--target", "readmitted", "--owners-column", "site"]
    return {
        IMPORT: [sys.executable, "-c", IMPORT],
        "import dpmpc": [sys.executable, "-c", "import dpmpc"],
        "dpmpc --help": [*_COMMAND, "--help"],
        "dpmpc train: README's first": [
            *_COMMAND,
            "train",
            *first,
            "--epsilon",
            "1",
            "--delta",
            "1e-5",
            "--out",
            str(folder / "first"),
        ],
        "dpmpc train: 50 releases": [*_COMMAND, "train", "--data", "breast-cancer", *_TRAIN, *out],
        "dpmpc report": [*_COMMAND, "report", str(folder / "run"), "--out", str(folder / "page.html")],
        "dpmpc verify --structure": [*_COMMAND, "verify", str(folder / "run"), "--structure"],
    }


def timed(words: Sequence[str], environment: Mapping[str, str]) -> tuple[float, float]:
    """(seconds, processor seconds) of a command and all that it starts. Errors: CalledProcessError."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(words, env=environment, check=True, capture_output=True)
    after, end = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    return end - begin, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def turn(folder: Path, engines: Sequence[str], tree: Path | None = None) -> dict[str, tuple[float, float]]:
    """Seconds of one turn, by what took them; by the version in `tree`, if it is given. `engines`: of the fits."""
    environment = dict(os.environ) | {"DPMPC_ACCOUNT": str(folder / "account")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # who installs a package has its bytecode
    if tree is not None:
        environment |= {"PYTHONPATH": str(tree), "PYTHONSAFEPATH": "1"}
    made = [*_COMMAND, "example", "hospitals", "--out", str(folder)]
    subprocess.run(made, env=environment, check=True, capture_output=True)
    found = {what: timed(words, environment) for what, words in commands(folder).items()}
    for engine in engines:
        words = [sys.executable, "-c", _FIT, engine]
        done = subprocess.run(words, env=environment, check=True, capture_output=True, text=True)
        seconds, processor = json.loads(done.stdout)
        found[f"second fit, engine={engine}"] = seconds, processor
    return found


def rows(repetitions: int, engines: Sequence[str] = ("clear", "mpc"), verify: bool = False) -> list[Row]:
    """Medians; the import of NumPy is the first row. `engines`: of the fits. `verify`: with the check of a run."""
    found: dict[str, list[tuple[float, float]]] = {}
    with passing_folder("dpmpc-startup-") as name:
        for k in range(WARM_UPS + repetitions):
            for what, seconds in turn(Path(name, str(k)), engines).items():
                if k >= WARM_UPS:
                    found.setdefault(what, []).append(seconds)
        if verify:
            environment = dict(os.environ) | {"DPMPC_ACCOUNT": str(name / "account")}
            run = [str(name / "long")]
            longer = [_RELEASES if word == "50" else word for word in _TRAIN]
            timed([*_COMMAND, "train", "--data", "breast-cancer", *longer, "--out", *run], environment)
            checked = [*_COMMAND, "verify", *run, "--work", str(name / "work")]
            found[f"dpmpc verify, T = {_RELEASES}"] = [timed(checked, environment)]
    medians = {what: [statistics.median(part) for part in zip(*all_, strict=True)] for what, all_ in found.items()}
    wall, cpu = medians[IMPORT]
    return [
        {"what": what, "seconds": s, "times": s / wall, "processor": p, "processor_times": p / cpu}
        for what, (s, p) in medians.items()
    ]


def ratios(repetitions: int, trees: tuple[Path, Path], engines: Sequence[str] = ("clear", "mpc")) -> list[Row]:
    """Medians over the turns of what the second version takes of what the first one does, of the clock and of the
    processors."""
    found: dict[str, list[tuple[float, ...]]] = {}
    with passing_folder("dpmpc-startup-") as name:
        for k in range(WARM_UPS + repetitions):
            before, now = (turn(Path(name, f"{k}-{which}"), engines, tree) for which, tree in enumerate(trees))
            for what in now if k >= WARM_UPS else ():
                parts = zip(before[what], now[what], strict=True)
                found.setdefault(what, []).append(tuple(b / max(a, 1e-9) for a, b in parts))
    medians = {what: [statistics.median(part) for part in zip(*all_, strict=True)] for what, all_ in found.items()}
    return [{"what": what, "clock": clock, "processor": cpu} for what, (clock, cpu) in medians.items()]


def measured_here() -> Row:
    """The day, how busy this machine is, and what it is: for a result file."""
    here = machine()
    return {"day": here["time"][:10], "load": here["load"][0], "cores": here["cores"], "machine": here}


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--verify", action="store_true")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--against", help="a commit, or a folder that holds a checkout, compiled")
    asked = parser.parse_args(arguments)
    if asked.against is not None:
        with checkout(asked.against) as tree:
            compared = ratios(asked.repetitions, (tree, ROOT))
        print(f"{'now of before':28}{'clock':>9}{'processor':>11}")
        for row in compared:
            print(f"{row['what']:28}{row['clock']:9.2f}{row['processor']:11.2f}")
        if asked.json is not None:
            asked.json.write_text(json.dumps({**measured_here(), "rows": compared}, indent=1) + "\n", encoding="utf-8")
        return
    found = rows(asked.repetitions, verify=asked.verify)
    print(f"{'':28}{'seconds':>9}{'x numpy':>9}{'processor':>11}{'x numpy':>9}")
    for row in found:
        print(
            f"{row['what']:28}{row['seconds']:9.2f}{row['times']:9.1f}{row['processor']:11.2f}"
            f"{row['processor_times']:9.1f}"
        )
    if asked.json is not None:
        named = {str(row["what"]).translate(str.maketrans(" :", "__")): row for row in found}
        asked.json.write_text(json.dumps({**measured_here(), "rows": named}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
