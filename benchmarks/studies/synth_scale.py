"""A synthetic table of many columns and records, from a Parquet file through real parties: predicted and measured.

    python benchmarks/studies/synth_scale.py --rows 1000000 --columns 40

Columns of ten levels each, every one leaning on the one before it, three owners, epsilon 1. Prints what `--dry` says
beforehand, then processor seconds and peak memory of this process and of the largest party, what a party sent, and how
far the tables of two columns are off. Other work on the machine raises the clock's seconds.
"""

import argparse
import resource
import time
from pathlib import Path
from typing import Any

from dpmpc.folders import passing_folder

LEVELS, OWNERS = 10, 3


def written(path: Path, rows: int, columns: int) -> None:
    """A Parquet file: each column is the one before it in 6 of 10 rows, else any level."""
    import numpy as np
    import pyarrow
    import pyarrow.parquet

    random = np.random.default_rng(1)
    names = np.array([f"l{k}" for k in range(LEVELS)], dtype=object)
    made = {"site": pyarrow.array(random.choice(["a", "b", "c"], rows, p=[0.5, 0.3, 0.2]))}
    before = random.integers(LEVELS, size=rows)
    for k in range(columns):
        before = np.where(random.random(rows) < 0.6, before, random.integers(LEVELS, size=rows))
        made[f"c{k}"] = pyarrow.DictionaryArray.from_arrays(before.astype(np.int8), names)
    pyarrow.parquet.write_table(pyarrow.table(made), path)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=40)
    asked = parser.parse_args()
    import dpmpc
    from dpmpc.tables.synth_dry import dry

    with passing_folder() as folder:
        path = folder / "records.parquet"
        written(path, asked.rows, asked.columns)
        bounds = {f"c{k}": [f"l{j}" for j in range(LEVELS)] for k in range(asked.columns)}
        promise: dict[str, Any] = {"owners": "site", "bounds": bounds, "epsilon": 1.0, "delta": 1e-7, "parties": 3}
        print(dry(str(path), **promise))
        began = time.perf_counter()
        made = dpmpc.synth(str(path), data_id="scale", **promise)
        off = sum(error.whole for error in made.errors) / len(made.errors)
        print(f"{len(made.frame()):,} rows in {time.perf_counter() - began:.0f} s by the clock")
    for what, who in (("this process", resource.RUSAGE_SELF), ("parties", resource.RUSAGE_CHILDREN)):
        used = resource.getrusage(who)
        print(f"{what}: {used.ru_utime + used.ru_stime:.0f} s of processor, {used.ru_maxrss / 1024:.0f} MB at the peak")
    print(f"a party sent at most {made.bytes_of_parties / 1e6:.1f} MB; expected error of a pair {off:.3f}")


if __name__ == "__main__":
    main()
