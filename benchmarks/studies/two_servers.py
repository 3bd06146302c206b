"""Two servers beside three parties: noise and releases over loopback, lan and wan, in one run.

    python -m dpmpc.benchmarks.studies.two_servers --json benchmarks/results/two-servers.json

Prints the tables of docs/cost.md, in Markdown, and says to standard error what it measures. It takes some 3 minutes on
two cores: one of them for noise, half of the rest for releases over `wan`. `--quick` takes less.
"""

import argparse
import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from dpmpc.benchmarks import noise, suite, tables
from dpmpc.benchmarks import result_file as records
from dpmpc.benchmarks.cell import BenchCell
from dpmpc.benchmarks.parties import FEW
from dpmpc.benchmarks.plot import seconds
from dpmpc.benchmarks.result_file import Record, Results
from dpmpc.mpc.contract.backend import DEFAULT
from dpmpc.privacy.law import DEFAULT_LAW

WHO = ((suite.TWO[0], 2), (suite.TWO[1], 2), (DEFAULT, 3))
SLOW = ("lan", "wan")
DIMENSIONS = (122, 200)  # 200 is that of the published figure
COUNTS = (FEW, 10_000, 100_000)
Progress = Callable[[str], None]


def cells() -> list[BenchCell]:
    """The releases that are measured."""
    return [
        BenchCell(dimension=d, parties=n, backend=backend, network=network)
        for network in ("loopback", *SLOW)
        for backend, n in WHO
        for d in DIMENSIONS
    ]


def measure(quick: bool, progress: Progress) -> list[Record]:
    """The records of both tables."""
    found = []
    for backend, n in WHO:
        for count in COUNTS[: 2 if quick else 3]:
            progress(f"noise: {count:,} at n={n} {backend}")
            cost = noise.measure_sampler(DEFAULT_LAW, "discrete", n, count, 3 if quick else 5, backend)
            found.append(suite.noise_record(cost, None))
    for backend, n in WHO:
        found += suite.run_noise_over(SLOW, [n], quick, progress, DEFAULT_LAW, backend)
    return found + suite.run_cells(cells(), quick, progress)


def noise_rows(found: Iterable[Record]) -> tables.Rows:
    """The table of noise, header first."""
    rows = [["backend", "n", "network", "Gaussian samples", "time", "samples a second", "bytes a sample", "flows"]]
    for r in found:
        key, rate = r.key, r.values["samples_a_second"]
        row = [key["backend"], str(key["parties"]), key.get("network", "loopback"), f"{key['count']:,}"]
        row += [seconds(r.seconds["draw"].median), f"{rate:,.0f}", f"{r.counts['bytes_a_sample']:,.0f}"]
        rows.append([*row, str(r.counts["rounds"])])
    return rows


def release_rows(found: Iterable[Record]) -> tables.Rows:
    """The table of releases, header first."""
    rows = [["backend", "n", "network", "d", "one release", "quartiles", "noise ahead, a release"]]
    for r in found:
        key, total = r.key, r.seconds["total"]
        row = [key["backend"], str(key["parties"]), key["network"], str(key["dimension"]), seconds(total.median)]
        rows.append([*row, f"{seconds(total.q1)} .. {seconds(total.q3)}", seconds(r.values["noise_offline_s"])])
    return rows


def page(found: Results) -> str:
    """Both tables in Markdown."""
    return "\n\n".join(
        tables.markdown(rows)
        for rows in (noise_rows(found.find("noise")), release_rows(found.find("iteration", owners=BenchCell.owners)))
    )


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="also write everything to this file")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions, and at most 10,000 samples")
    arguments = parser.parse_args()

    def progress(text: str) -> None:
        print(text, file=sys.stderr)

    results = suite.results(arguments.quick, lambda: measure(arguments.quick, progress))
    results = replace(results, findings=())
    if arguments.json is not None:
        records.write_json(results, arguments.json)
    print(page(results))
    print(f"\n{suite.PUBLISHED}")


if __name__ == "__main__":
    main()
