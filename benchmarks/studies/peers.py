"""Gaussian noise here beside what users of other packages write, in one run on one machine, by turns.

    python -m venv spu && spu/bin/pip install spu                      # Python 3.10 or 3.11
    python -m venv crypten && SKLEARN_ALLOW_DEPRECATED_SKLEARN_PACKAGE_INSTALL=True \\
        crypten/bin/pip install crypten torch==2.5.1
    python -m dpmpc.benchmarks.studies.peers --spu spu/bin/python --crypten crypten/bin/python \\
        --json benchmarks/results/peers.json

Every peer is optional; all processes talk over loopback. Each row: samples a second (the median of the draws after a
warm-up; start-up and connections are not counted), the bytes that the busiest party sends for a sample, and of one draw
that is opened the variance and the largest value in standard deviations.
"""

import argparse
import json
import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dpmpc.benchmarks.studies.startup import measured_here

COUNTS = "122,10000,100000"
SCALE = float(1 << 20)  # grid steps of ours
Row = dict[str, Any]


def ours(count: int, repetitions: int) -> Row:
    """The exact discrete Gaussian among three processes, and one draw of it that is opened."""
    import dpmpc
    from dpmpc.benchmarks.noise import measure_sampler
    from dpmpc.noise.sampling import sample

    cost = measure_sampler("gaussian", "discrete", 3, count, repetitions)
    _, values = sample("gaussian", SCALE, count, parties=3, opened=True)
    assert values is not None
    z = values / SCALE
    found = {"variance": float(z.var()), "largest": float(abs(z).max())}
    return {"version": f"dpmpc {dpmpc.__version__}", "rate": cost.rate, "bytes": cost.bytes / count, **found}


def theirs(python: str, program: str, count: int, repetitions: int) -> Row:
    """The same by a peer's Python. Errors: CalledProcessError where it fails."""
    command = [python, str(Path(__file__).with_name(program)), str(count), str(repetitions)]
    said = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True).stdout
    found: Row = json.loads(said.strip().splitlines()[-1])
    rate = count / statistics.median(found.pop("seconds"))
    return {**found, "rate": rate, "bytes": found["bytes"] / count}


def measured(pythons: Mapping[str, str], counts: Sequence[int], repetitions: int) -> dict[str, Any]:
    """What the result file has."""
    draws: dict[str, Callable[[int, int], Row]] = {"dpmpc": ours}
    for name, python in pythons.items():
        draws[name] = lambda count, times, p=python, n=name: theirs(p, f"peer_{n}.py", count, times)  # type: ignore[misc]
    found: dict[str, Any] = {**measured_here(), "rows": []}
    for count in counts:
        for name, draw in draws.items():
            row = {"who": name, "count": count, **draw(count, repetitions)}
            print(json.dumps(row), flush=True)
            found["rows"].append(row)
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("spu", "crypten"):
        parser.add_argument(f"--{name}", metavar="PYTHON", help=f"a Python that has the package {name}")
    parser.add_argument("--counts", default=COUNTS)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args(arguments)
    pythons = {name: python for name in ("spu", "crypten") if (python := getattr(asked, name))}
    found = measured(pythons, [int(each) for each in asked.counts.split(",")], asked.repetitions)
    if asked.json is not None:
        asked.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
