"""An owner whose records workers read: seconds and bytes of a pass over Parquet partitions, beside one release.

    python benchmarks/studies/executed_owner.py --rows 10000000 --workers 1,2 [--copies 10] [--passes 3] [--json FILE]

Each copy is the same rows once more, by other names of the same files: 10^8 records take the disk of 10^7.

The workers are those of a Dask cluster on this machine, processes of one thread each, and every pass reads the
partitions anew. Bytes are those of tasks and of answers, as they are pickled; memory is the largest of a worker's. One
release is a noisy sum of the gradient's length among three parties on this machine, whose noise is ready. Prints JSON
lines, and writes them with the machine's name to FILE, of which docs/howto/cluster.md is written. Other work on the
machine raises the seconds, and hardly those of the workers' processors.
"""

import argparse
import json
import os
import pickle
import resource
import statistics
import time
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

import numpy as np

from dpmpc.benchmarks.machine import machine
from dpmpc.folders import make_folder, passing_folder

PARTS = 16


class Counting(Executor):
    """Another executor, whose messages' bytes are counted."""

    def __init__(self, of: Executor) -> None:
        self.of, self.out, self.back = of, 0, 0

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> "Future[Any]":
        self.out += len(pickle.dumps((fn, args)))
        future = self.of.submit(fn, *args, **kwargs)
        future.add_done_callback(self._count)
        return future

    def _count(self, future: "Future[Any]") -> None:
        self.back += len(pickle.dumps(future.result()))

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self.of.shutdown(wait=wait)


def write(folder: Path, rows: int, columns: int, copies: int = 1) -> None:
    """Partitions of numbers in 32 bits and a label."""
    import duckdb

    each = -(-rows // PARTS)
    for part in range(PARTS):
        begin, end = part * each, min(rows, (part + 1) * each)
        path = folder / f"part-{part:03}.parquet"
        if path.exists() or begin >= end:
            continue
        spread = (f"CAST(hash(i * {columns} + {k}) % 2000001 / 1e6 - 1 AS FLOAT) AS x{k}" for k in range(columns))
        select = (
            f"SELECT {', '.join(spread)}, if(hash(i) % 2 = 0, 'yes', 'no') AS label FROM range({begin}, {end}) t(i)"
        )
        duckdb.sql(f"COPY ({select}) TO '{path}.new' (FORMAT parquet, ROW_GROUP_SIZE 122880)")
        Path(f"{path}.new").rename(path)
    for more in range(PARTS, copies * PARTS):
        of, path = folder / f"part-{more % PARTS:03}.parquet", folder / f"part-{more:03}.parquet"
        if of.exists() and not path.exists():
            os.link(of, path)


def measured(folder: Path, columns: int, workers: int, passes: int) -> dict[str, Any]:
    """Seconds, bytes and memory of the first pass, which looks at all records, and of later ones."""
    from distributed import LocalCluster

    from dpmpc.intake.spelling import PLAIN
    from dpmpc.learning.away import Away, owner_of
    from dpmpc.learning.erm_blocks import owner_gradients
    from dpmpc.learning.losses import LOGISTIC
    from dpmpc.learning.tiled import tiles
    from dpmpc.processes.elsewhere import Workers
    from dpmpc.processes.executors import executor_maker
    from dpmpc.records.schema import Labels, Numeric, Schema

    schema = Schema(tuple(Numeric(f"x{k}", -1.0, 1.0) for k in range(columns)), Labels("label", ("yes",), ("no",)))
    with LocalCluster(
        n_workers=workers, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None
    ) as cluster:
        counting = Counting(executor_maker(f"dask:{cluster.scheduler_address}")(workers))
        here = Workers(lambda count: counting, workers)
        begin = time.perf_counter()
        owner = owner_of(here, str(folder), PLAIN, None)
        opened = time.perf_counter() - begin
        away, offsets = Away(owner, schema, "double"), np.array([0, owner.n])
        whole = list(tiles(offsets, away.d))
        begin = time.perf_counter()
        away.looked_over(whole)
        first = time.perf_counter() - begin
        counting.out = counting.back = 0
        client = counting.of._client  # type: ignore[attr-defined]
        seconds, busy, theta = [], [], np.zeros(away.d)
        for _ in range(passes):
            begin, worked = time.perf_counter(), sum(client.run(time.process_time).values())
            theta = theta - owner_gradients(LOGISTIC, theta, away, offsets)[0]
            seconds.append(time.perf_counter() - begin)
            busy.append(sum(client.run(time.process_time).values()) - worked)
        peak = client.run(lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
        here.close()
    return {
        "rows": owner.n, "columns": columns, "workers": workers, "open_s": round(opened, 1), "first_s": round(first, 1),
        "pass_s": round(statistics.median(seconds), 1),
        "pass_processor_s": round(statistics.median(busy), 1), "tasks": -(-len(whole) // owner.tiles),
        "bytes_out": counting.out // passes, "bytes_back": counting.back // passes,
        "worker_MB": max(peak.values()) // 1000, "theta": theta[:2].tolist(), "load": round(os.getloadavg()[0], 1),
    }  # fmt: skip


def one_release(dimension: int, times: int = 20) -> dict[str, Any]:
    """Seconds of a release among three parties here, with the noise ready."""
    import dpmpc

    with dpmpc.Aggregator(
        owners=3, dimension=dimension, clip=1.0, epsilon=1.0, delta=1e-6, releases=times, neighbours="owner"
    ) as aggregator:
        aggregator.wait_for_noise()
        seconds = []
        for _ in range(times):
            begin = time.perf_counter()
            aggregator.sum(np.zeros((3, dimension)))
            seconds.append(time.perf_counter() - begin)
    return {"release_s": round(statistics.median(seconds), 4), "dimension": dimension}


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--copies", type=int, default=1)
    parser.add_argument("--workers", default="1,2")
    parser.add_argument("--passes", type=int, default=3)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--json", type=Path, metavar="FILE")
    asked = parser.parse_args()
    with passing_folder() as temporary:
        folder = asked.folder or temporary
        make_folder(folder, "--folder must be one that can be written")
        write(folder, asked.rows, asked.columns, asked.copies)
        size = sum(path.stat().st_size for path in folder.iterdir())
        found = {"machine": machine(), "parquet_GB": round(size / 1e9, 2), "partitions": len(list(folder.iterdir()))}
        found["workers"] = rows = list[dict[str, Any]]()
        for workers in map(int, asked.workers.split(",")):
            rows.append(measured(folder, asked.columns, workers, asked.passes))
            print(json.dumps(rows[-1]), flush=True)
    found |= one_release(asked.columns + 1)
    print(json.dumps({name: value for name, value in found.items() if name != "workers"}), flush=True)
    if asked.json is not None:
        asked.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
