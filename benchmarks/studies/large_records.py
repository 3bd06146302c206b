"""Loading and gradients at 10^7 records of 50 features from Parquet, within a given memory; what a person waits for
before the first release on records of their own; and a CSV against an older version.

    python benchmarks/studies/large_records.py parquet --rows 10000000 --memory 2GB [--json FILE]
    python benchmarks/studies/large_records.py own --rows 3000000 [--json FILE]
    python benchmarks/studies/large_records.py csv FILE.csv --target COLUMN --against CHECKOUT_OF_AN_OLDER_VERSION

`own`: 15 columns of numbers, 5 of texts, owner and label, as Parquet and as CSV; each stage's processor seconds beside
those of DuckDB alone, which reads every column of the same file once.

Prints seconds, peak memory, and ratios of times taken in one go on one machine; other work on it raises both.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dpmpc.benchmarks.machine import IMPORT
from dpmpc.benchmarks.studies.startup import measured_here, timed
from dpmpc.folders import passing_folder

OWNERS = 3
NUMBERS, TEXTS = 15, 5  # columns of records of one's own


def parquet(rows: int, columns: int, memory: str, folder: Path, out: Path | None = None) -> None:
    """Makes each owner's file and measures a process that loads it and works out gradients; `out`: a file for the
    figures."""
    import duckdb

    loads: list[dict[str, Any]] = []
    result = {**measured_here(), "rows": rows, "columns": columns, "memory": memory, "loads": loads}
    for owner in range(OWNERS):
        path = folder / f"owner{owner}.parquet"
        if not path.exists():
            features = ", ".join(f"CAST(random() AS DOUBLE) AS x{k}" for k in range(columns))
            duckdb.sql(
                f"COPY (SELECT {features}, CASE WHEN random() < 0.5 THEN 'yes' ELSE 'no' END AS outcome"
                f" FROM range({rows})) TO '{path}' (COMPRESSION lz4, ROW_GROUP_SIZE 122880)"
            )
            os.sync()  # an owner's records lie on its disk; what is still to be written would slow their reading
        ways = [("double", "first")] + [("double", "again"), ("single", "again")] * (owner == 0)
        for precision, reading in ways:  # the second time the system may have the file in memory
            worker = [sys.executable, __file__, "worker", str(path), str(columns), memory, precision, str(folder)]
            found = json.loads(subprocess.run(worker, check=True, capture_output=True).stdout)
            print(owner, reading, precision, found, flush=True)
            loads.append({"owner": owner, "reading": reading, "precision": precision, **found})
    if out is not None:
        out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def worker(path: str, columns: int, memory: str, precision: str, folder: str) -> None:
    """One owner's process: load, read the blocks, work out gradients."""
    import numpy as np

    from dpmpc.learning.erm_blocks import owner_gradients
    from dpmpc.learning.losses import LOGISTIC
    from dpmpc.learning.tiled import over_tiles
    from dpmpc.records import Schema, load
    from dpmpc.records.schema import Labels, Numeric

    schema = Schema(
        tuple(Numeric(f"x{k}", 0.0, 1.0) for k in range(columns)), Labels("outcome", ("yes",), ("no",)), False
    )
    begin = time.perf_counter()
    data = load(path, schema=schema, test_fraction=0.0, memory=memory, precision=precision, folder=Path(folder))  # type: ignore[arg-type]
    loaded, busy = time.perf_counter() - begin, time.process_time()
    records, offsets = data.train, np.array([0, data.n], dtype=np.int64)
    read, gradient = [], []
    theta = np.zeros(data.d)
    for _ in range(7):
        begin = time.perf_counter()
        for _tile, _sum in over_tiles(records, offsets, Read()):
            pass
        read.append(time.perf_counter() - begin)
        begin = time.perf_counter()
        theta = theta - owner_gradients(LOGISTIC, theta, records, offsets)[0]
        gradient.append(time.perf_counter() - begin)
    status = Path("/proc/self/status").read_text().splitlines()
    peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
    print(
        json.dumps(
            {
                "rows": data.n,
                "d": data.d,
                "load_s": round(loaded, 1),
                "load_cpu_s": round(busy, 1),  # of all threads
                "read_s": round(statistics.median(read), 3),
                "gradient_s": round(statistics.median(gradient), 3),
                "ratio": round(statistics.median(gradient) / statistics.median(read), 2),
                "peak_MB": peak // 1000,
                "load_average": round(os.getloadavg()[0], 1),
            }
        )
    )


class Read:
    """The sum of all numbers that are held: what reading them costs."""

    def shapes(self, owners: int, d: int) -> tuple[tuple[int, ...], ...]:
        return ((),)

    def __call__(self, tile: Any, X: Any, y: Any, weights: Any) -> tuple[Any, ...]:
        return (X.compact.places.sum(),)


def own(rows: int, folder: Path, out: Path | None = None) -> None:
    """Makes both files and measures a process for each; `out`: a file for the figures."""
    import duckdb

    spread = ("round(18 + 70 * random())", "random() * 2 - 1", "exp(8 * random())", "floor(random() * 5)",
              "CASE WHEN random() < 0.05 THEN NULL ELSE 100 * random() END")  # fmt: skip
    numbers = [f"CAST({spread[k % 5]} AS DOUBLE) AS x{k}" for k in range(NUMBERS)]
    texts = [f"'text ' || CAST(floor(random() * {3 + k}) AS INTEGER) AS t{k}" for k in range(TEXTS)]
    rest = "'site' || CAST(floor(random() * 5) AS INTEGER) AS site, if(random() < 0.3, 'yes', 'no') AS outcome"
    duckdb.execute("SELECT setseed(0.25)").fetchall()
    duckdb.sql(f"COPY (SELECT {', '.join(numbers + texts)}, {rest} FROM range({rows})) TO '{folder}/own.parquet'")
    duckdb.sql(f"COPY (SELECT * FROM '{folder}/own.parquet') TO '{folder}/own.csv' (HEADER)")
    os.sync()
    environment = {**os.environ, "DPMPC_ACCOUNT": str(folder / "account")}
    least = min(timed([sys.executable, "-c", IMPORT], environment)[1] for _ in range(3))
    result: dict[str, Any] = {**measured_here(), "rows": rows}
    for kind in ("parquet", "csv"):
        command = [sys.executable, __file__, "own-worker", f"{folder}/own.{kind}"]
        found = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        train = [sys.executable, "-m", "dpmpc", "train", "--records", f"{folder}/own.{kind}", "--target", "outcome"]
        train += ["--owners-column", "site", "--epsilon", "1", "--delta", "1e-6", "-M", "3", "--method", "output"]
        before, *found["dpmpc train"] = begun([*train, "--out", f"{folder}/run-{kind}"], environment)
        scan = found["scan"][1]
        result[kind] = {what.split()[-1]: {"seconds": s, "processor": cpu} for what, (s, cpu) in found.items()}
        result[kind]["before"] = {"seconds": before}
        print(f"{kind:8} before the first release {before:.2f} s")
        for what, (wall, cpu) in found.items():
            print(
                f"{kind:8} {what:11} {wall:7.2f} s {cpu:7.2f} s of processor {cpu / scan:6.1f} x scan"
                f" {cpu / least:7.1f} x {IMPORT}",
                flush=True,
            )
    if out is not None:
        out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def begun(words: Sequence[str], environment: Mapping[str, str]) -> tuple[float, float, float]:
    """(seconds until it says that it trains, seconds in all, processor seconds) of a `dpmpc train`. Errors: it fails,
    or never says so."""
    before, begin, trains = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter(), None
    with subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as run:
        assert run.stderr is not None
        for line in run.stderr:
            if trains is None and line.strip() == "training":
                trains = time.perf_counter() - begin
    after, end = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    assert run.returncode == 0 and trains is not None, words
    return trains, end - begin, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def own_worker(path: str) -> None:
    """One owner's process: a plain scan, the look, who owns what, the survey's vectors, and loading by a schema."""
    import duckdb
    import numpy as np

    from dpmpc.learning.survey import Survey
    from dpmpc.records import Schema, load
    from dpmpc.records.derive import TableSettings, looked
    from dpmpc.records.loading import OpenTable, opened
    from dpmpc.records.mapping import owner_numbers, owners_of
    from dpmpc.records.schema import Labels, Surveyed

    numbers, texts = tuple(f"x{k}" for k in range(NUMBERS)), tuple(f"t{k}" for k in range(TEXTS))
    knots = tuple(np.linspace(0.0, 100.0, 6))
    columns = [Surveyed(name, True, 0.0, 100.0, missing=True, knots=knots) for name in numbers]
    columns += [Surveyed(name, buckets=256, kept=tuple(range(0, 256, 32))) for name in texts]
    schema = Schema(tuple(columns), Labels("outcome", ("yes",), ("no",)), True, basis="additive", bounds="survey")
    found: dict[str, tuple[float, float]] = {}

    def staged(what: str, call: Callable[[], Any]) -> Any:
        begin, busy = time.perf_counter(), time.process_time()
        result = call()
        found[what] = time.perf_counter() - begin, time.process_time() - busy
        return result

    staged("scan", lambda: duckdb.execute(f"SELECT * FROM '{path}'").fetchnumpy())
    with opened(path, folder=Path(path).parent) as (table, private):
        if table.parsed:
            table = staged("look", lambda: looked(table, TableSettings("outcome", "site", (), None, None, True))[1])
        owner = staged("owners", lambda: owners_of(table, owner_numbers(table, "site")[0]))
        sizes = tuple(int(n) for n in np.bincount(owner))
        survey = Survey(numbers, texts)
        staged("survey", lambda: list(survey.means(table, owner, sizes)))
        staged("load", lambda: load(OpenTable(table, private), schema=schema, owners_column="site"))
    print(json.dumps(found))


def csv(path: Path, target: str, against: Path, options: list[str]) -> None:
    """`dpmpc train` on a CSV file with an older version and with this one, in turn: as the older one does it, which
    reads bounds off the records, and with the private survey that this one makes by default."""
    here = Path(__file__).resolve().parents[2]
    versions = {
        "old": (against, []),
        "new": (here, ["--preprocessing", "records"]),
        "new, with a survey": (here, []),
    }
    seconds: dict[str, list[float]] = {name: [] for name in versions}
    peaks: dict[str, int] = {}
    for repetition in range(3):
        for name in list(versions)[:: 1 if repetition % 2 == 0 else -1]:
            root, more = versions[name]
            with passing_folder() as out:
                command = [sys.executable, "-m", "dpmpc.cli.main", "train", "--csv", str(path), "--target", target]
                command += ["--epsilon", "1", "--delta", "1e-6", "--out", f"{out}/run", *options, *more]
                begin = time.perf_counter()
                process = subprocess.Popen(
                    command,
                    cwd=root,
                    env={**os.environ, "PYTHONPATH": str(root)},
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
                _, code, usage = os.wait4(process.pid, 0)
                assert code == 0, command
                seconds[name].append(time.perf_counter() - begin)
                assert json.loads(Path(f"{out}/run/report.json").read_text())["data"]
                peaks[name] = usage.ru_maxrss // 1000
                print(name, round(seconds[name][-1], 1), "load average", round(os.getloadavg()[0], 1), flush=True)
    medians = {name: statistics.median(times) for name, times in seconds.items()}
    for name, median in medians.items():
        print(f"{name}: {median:.1f} s, {median / medians['old']:.3f} times the old, {peaks[name]} MB")


def main() -> None:
    if sys.argv[1:2] == ["worker"]:
        path, columns, memory, precision, folder = sys.argv[2:]
        worker(path, int(columns), memory, precision, folder)
        return
    if sys.argv[1:2] == ["own-worker"]:
        own_worker(sys.argv[2])
        return
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("parquet")
    one.add_argument("--rows", type=int, default=10_000_000)
    one.add_argument("--columns", type=int, default=50)
    one.add_argument("--memory", default="2GB")
    one.add_argument("--folder", type=Path, default=None)
    one.add_argument("--json", type=Path)
    three = commands.add_parser("own")
    three.add_argument("--rows", type=int, default=3_000_000)
    three.add_argument("--json", type=Path)
    two = commands.add_parser("csv")
    two.add_argument("file", type=Path)
    two.add_argument("--target", required=True)
    two.add_argument("--against", type=Path, required=True)
    given, rest = parser.parse_known_args()
    if given.command == "csv":
        csv(given.file, given.target, given.against, rest)
        return
    with passing_folder() as temporary:
        if given.command == "own":
            own(given.rows, temporary, given.json)
            return
        parquet(given.rows, given.columns, given.memory, given.folder or temporary, given.json)


if __name__ == "__main__":
    main()
