"""Training on records of one's own beside the plain pipeline on the same file: Polars, `StandardScaler`,
`LogisticRegression` of scikit-learn at their defaults.

    python benchmarks/studies/own_data.py [--rows 3000000] [--turns 1] [--iterations 10] [--json FILE]

Makes 20 columns of numbers, owner and label by a seed, as Parquet and as CSV. Both train on four fifths of the records
and evaluate nothing, in fresh processes by turns: first with the machine's memory as it is found, then after as much of
it was touched as a plain run takes, which the machine may keep at hand. Each row: seconds, processor seconds of all
processes, peak memory of the largest, and what they are of the plain pipeline's. The machine's first-touch rate and the
import of NumPy are in the file, for seconds are of machines that have them.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from dpmpc.benchmarks.machine import touched
from dpmpc.benchmarks.studies.startup import measured_here
from dpmpc.folders import passing_folder

NUMBERS, OWNERS = 20, 5
PACKAGES = ("polars", "scikit-learn", "scipy", "duckdb")
MEMORIES = ("found", "touched")
_TOUCHED = 1000  # bytes a record that are touched: more than either way takes
_PLAIN = """
import sys
import polars
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
path = sys.argv[1]
table = polars.read_parquet(path) if path.endswith("parquet") else polars.read_csv(path)
names = [name for name in table.columns if name not in ("site", "outcome")]
X = table.select(polars.col(names).fill_null(strategy="mean")).to_numpy()
y, n = (table["outcome"] == "yes").to_numpy(), len(table) * 4 // 5
make_pipeline(StandardScaler(), LogisticRegression()).fit(X[:n], y[:n])
"""
# A process of its own, for what it waited for has a maximum of its own, too.
_MEASURED = """
import json, resource, subprocess, sys, time
begin = time.perf_counter()
done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
end, used = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
if done.returncode:
    sys.exit(done.stderr[-2000:])
peak = used.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
print(json.dumps({"seconds": end - begin, "processor": used.ru_utime + used.ru_stime, "peak_bytes": peak}))
"""
Row = dict[str, Any]


def make(rows: int, folder: Path) -> dict[str, Path]:
    """The same records as Parquet and as CSV, by a seed: numbers of two to five figures, some missing."""
    import duckdb

    some = "CASE WHEN random() < 0.05 THEN NULL ELSE round(100 * random(), 2) END"
    spread = ("round(18 + 70 * random())", "round(random() * 2 - 1, 3)", "round(exp(8 * random()))",
              "floor(random() * 5)", some)  # fmt: skip
    numbers = ", ".join(f"CAST({spread[k % len(spread)]} AS DOUBLE) AS x{k}" for k in range(NUMBERS))
    site = f"'site' || CAST(floor(random() * {OWNERS}) AS INTEGER) AS site"
    paths = {kind: folder / f"own.{kind}" for kind in ("parquet", "csv")}
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute("SELECT setseed(0.25)").fetchall()
        connection.execute(
            f"COPY (SELECT {numbers}, {site}, if(random() < 0.3, 'yes', 'no') AS outcome FROM range({rows})) "
            f"TO '{paths['parquet']}'"
        )
        connection.execute(f"COPY (SELECT * FROM '{paths['parquet']}') TO '{paths['csv']}' (HEADER)")
    os.sync()  # what is still to be written would slow their reading
    return paths


def measured(words: Sequence[str], environment: Mapping[str, str]) -> Row:
    """Seconds, processor seconds and the peak memory of the largest process of a command. Errors: it fails."""
    done = subprocess.run([sys.executable, "-c", _MEASURED, *words], env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return dict(json.loads(done.stdout))


def ours(path: Path, folder: Path, iterations: int) -> Row:
    """A `dpmpc train` in a folder and with an account of its own, and what an iteration of it took."""
    with passing_folder(where=folder) as name:
        words = [sys.executable, "-m", "dpmpc", "train", "--records", str(path), "--target", "outcome"]
        words += ["--owners-column", "site", "--epsilon", "1", "--delta", "1e-7", "-M", "3", "--method", "gradient"]
        words += ["--iterations", str(iterations), "--no-evaluate", "--out", f"{name}/run"]
        found = measured(words, {**os.environ, "DPMPC_ACCOUNT": f"{name}/account"})
        rows = Path(name, "run", "history.csv").read_text(encoding="utf-8").splitlines()
        at = rows[0].split(",").index("seconds")
        return {**found, "iteration_s": statistics.median(float(row.split(",")[at]) for row in rows[1:])}


def plain(path: Path) -> Row:
    """The plain pipeline."""
    return measured([sys.executable, "-c", _PLAIN, str(path)], os.environ)


def compared(rows: int, turns: int, iterations: int, folder: Path) -> Iterator[dict[str, Any]]:
    """What a result file has, after each turn."""
    paths, found = make(rows, folder), list[Row]()
    versions = {name: version(name) for name in PACKAGES}
    result = {**measured_here(), "rows": rows, "columns": NUMBERS + 2, "iterations": iterations, "with": versions}
    for memory in MEMORIES:
        for turn in range(turns):
            for kind, path in paths.items():
                if memory == "touched":  # a process of its own, which gives it back
                    words = f"from dpmpc.benchmarks.machine import touched; touched({rows * _TOUCHED})"
                    subprocess.run([sys.executable, "-c", words], check=True)
                one = {"kind": kind, "memory": memory, "turn": turn, "plain": plain(path)}
                found.append({**one, "dpmpc": ours(path, folder, iterations)})
                yield {**result, "turns": found}


def ratios(row: Row) -> dict[str, float]:
    """What ours took of what the plain pipeline did."""
    return {key: row["dpmpc"][key] / row["plain"][key] for key in ("seconds", "processor", "peak_bytes")}


def line(row: Row) -> str:
    """A turn in a line."""
    of, mine = ratios(row), row["dpmpc"]
    return (
        f"{row['kind']:8} memory {row['memory']:8} {mine['seconds']:7.2f} s {of['seconds']:5.2f} of plain, processor "
        f"{mine['processor']:7.2f} s {of['processor']:5.2f}, peak {mine['peak_bytes'] / 1e6:,.0f} MB "
        f"{of['peak_bytes']:5.2f}, an iteration {mine['iteration_s']:.3f} s"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints a line a turn; writes the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=3_000_000)
    parser.add_argument("--turns", type=int, default=1)
    parser.add_argument("--iterations", type=int, default=10)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args(arguments)
    print(f"first touch {touched(1 << 28):.2f} GB/s")
    with passing_folder("dpmpc-own-data-") as name:
        for found in compared(asked.rows, asked.turns, asked.iterations, name):
            print(line(found["turns"][-1]), flush=True)
            if asked.json is not None:
                asked.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
