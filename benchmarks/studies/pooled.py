"""One release with noise from the pool by this version against that of another commit: seconds of each part, by turns.

    python benchmarks/studies/pooled.py [--against COMMIT] [-d 122] [-m 100] [--repetitions 5] [--memory-disk]
                                [--json FILE]

Without --against the other one is 71173d3, checked out as `programs.py` does it. Each turn is a `dpmpc bench iteration`
of both, in processes of their own; figures are medians over the turns of the medians over releases. The barrier, which
71173d3 does not have, is in `open`: so a line is the total less that part. With --memory-disk ledgers are in memory
(/dev/shm), so that what is measured is the processor and not the disk. Run from the repository, with its environment.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

from dpmpc.benchmarks.machine import machine
from dpmpc.benchmarks.studies.programs import ROOT, WALKER, checkout
from dpmpc.folders import passing_folder

_COMMAND = "import sys; from dpmpc.cli import main as m; sys.exit((getattr(m, 'program', None) or m.main)())"
TOTAL, OPEN, REST = "total", "open", "total less open"
MEMORY = Path("/dev/shm")
Seconds = dict[str, float]


def measure(tree: Path, dimension: int, owners: int, disk: Path | None = None) -> Seconds:
    """Medians over releases of a release's parts, by the version in `tree`. `disk`: where its folders are."""
    with passing_folder(where=disk) as folder:
        file = folder / "result.json"
        cell = ["-d", str(dimension), "-m", str(owners), "-M", "3", "--json", str(file)]
        environment = {**os.environ, "PYTHONPATH": str(tree), "TMPDIR": str(folder)}
        command = [sys.executable, "-c", _COMMAND, "bench", "iteration", *cell]
        subprocess.run(command, env=environment, cwd=tree, check=True, stdout=subprocess.DEVNULL)
        record = next(r for r in json.loads(file.read_text(encoding="utf-8"))["records"] if r["kind"] == "iteration")
    found = {part: figure["median"] for part, figure in record["seconds"].items()}
    return {**found, REST: found[TOTAL] - found[OPEN]}


def table(old: list[Seconds], new: list[Seconds]) -> str:
    """Markdown: each part's medians, and the median of the turns' ratios."""
    lines = ["| part | before | now | now of before, median of the turns |", "| --- | --- | --- | --- |"]
    for part in (part for part in old[0] if part in new[0] and not part.startswith("limit")):
        before, now = ([turn[part] for turn in of] for of in (old, new))
        ratio = statistics.median(b / a for a, b in zip(before, now, strict=True))
        figures = (f"{1e6 * statistics.median(of):.0f} µs" for of in (before, now))
        lines.append(f"| {part} | {' | '.join(figures)} | {ratio:.2f} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--against", default=WALKER, help="a commit, or a folder that holds a checkout, compiled")
    parser.add_argument("-d", type=int, default=122)
    parser.add_argument("-m", type=int, default=100)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--memory-disk", action="store_true", help=f"ledgers are in memory: folders in {MEMORY}")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    if arguments.memory_disk and not MEMORY.is_dir():
        parser.error(f"--memory-disk needs {MEMORY}, a disk in memory; leave it out, and set TMPDIR to one")
    disk, before = MEMORY if arguments.memory_disk else None, machine()
    old: list[Seconds] = []
    new: list[Seconds] = []
    with checkout(arguments.against) as tree:
        for _ in range(arguments.repetitions):
            old.append(measure(tree, arguments.d, arguments.m, disk))
            new.append(measure(ROOT, arguments.d, arguments.m, disk))
    print(table(old, new))
    if arguments.json:
        where = "memory" if disk else "temporary folder"
        cell = {"against": arguments.against, "d": arguments.d, "m": arguments.m, "disk": where}
        result = {"machine": before, **cell, "old": old, "new": new}
        arguments.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
