"""What a look says of columns whose type is a number, by NumPy's own figures."""

import math
import re
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpmpc.intake import lint
from dpmpc.intake.profile import look
from dpmpc.intake.reading import count_where
from dpmpc.records.loading import opened

PACKAGE = Path(lint.__file__).parents[1]
ODD = (math.nan, math.inf, -math.inf)


def drawn(rng: np.random.Generator, n: int) -> list[float | None]:
    """Numbers, whole or not, with some that are missing, NaN or infinite, or nothing else."""
    values: list[float | None] = list(np.round(rng.normal(0, 10.0 ** rng.integers(0, 5), n), rng.integers(0, 3)))
    for one in (*ODD, None):
        if rng.random() < 0.4:
            for at in rng.integers(0, n, rng.integers(1, 4)):
                values[at] = one
    if rng.random() < 0.1:
        values = [ODD[k % 3] if rng.random() < 0.5 else None for k in range(n)]
    return values


@pytest.mark.parametrize("n", [60, 21_000])
def test_ends_and_counts_are_those_of_the_finite_numbers(n: int, tmp_path: Path) -> None:
    """Small tables are asked about all columns as one, large ones a column at a time."""
    rng = np.random.default_rng(n)
    columns = {f"c{k}": drawn(rng, n) for k in range(40)}
    assert any(math.isnan(v) for values in columns.values() for v in values if v is not None)
    pq.write_table(pa.table({name: pa.array(v, pa.float64()) for name, v in columns.items()}), tmp_path / "r.parquet")
    with opened(str(tmp_path / "r.parquet"), folder=tmp_path) as (table, _):
        found, _ = look(table)
    for name, values in columns.items():
        there = [v for v in values if v is not None]
        finite = [v for v in there if math.isfinite(v)]
        c = found[name]
        assert (c.missing, c.unread) == (n - len(there), len(there) - len(finite)), name
        if finite:
            assert (c.least, c.greatest) == (min(finite), max(finite)), name
            assert c.whole is all(v == math.floor(v) for v in finite), name
        elif c.kind != "empty":
            assert c.least is None and c.greatest is None, name


def test_what_holds_of_no_row_is_counted_as_none() -> None:
    """Unlike `count_if`, which is NULL where there are no rows; and a test that is NULL does not hold."""
    rows = "(SELECT unnest([1, NULL, 3]) AS x)"
    for relation, expected in ((rows, 1), (f"{rows} WHERE false", 0)):
        assert duckdb.connect().execute(f"SELECT {count_where('x > 1')} FROM {relation}").fetchone() == (expected,)


def test_no_aggregate_has_a_filter() -> None:
    """Each would have DuckDB pick the rows of every column of the query (`reading.only_where`)."""
    texts = {path: path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")}
    assert len(texts) > 100
    assert not [path for path, text in texts.items() if re.search(r"FILTER\s*\(\s*WHERE", text)]
