"""How many bytes a record loading takes, as allocations count them; what is held in a file lies in no file with a name.

What NumPy allocates is traced; places themselves are mapped, and are counted by their shape. What DuckDB holds it says.
"""

import dataclasses
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpmpc.intake import numbers, staging, table
from dpmpc.intake.profile import look
from dpmpc.intake.staging import give_back, held
from dpmpc.intake.table import connect, numbers_up_to
from dpmpc.records import Dataset, Schema, filling, load
from dpmpc.records.blocks import Precision
from dpmpc.records.dataset import split
from dpmpc.records.loading import CsvFile, OpenTable, open_source, opened
from dpmpc.records.ownership import partition
from dpmpc.records.schema import Labels, Numeric
from dpmpc.records.seeds import Stream, generator

N, COLUMNS, OWNERS = 400_000, 12, 5
NAMES = tuple(f"x{k}" for k in range(COLUMNS))
SCHEMA = Schema(tuple(Numeric(name, 0.0, 1.0) for name in NAMES), Labels("y", ("yes",), ("no",)), True)
# labels and factors 16; who owns which and whose those for training are, 8; which these are, in which order, and where
# each belongs, 12; the codes of owners and labels, which are read once, 2; what some of it is made of on its way
A_RECORD = 46
ONCE = 2 << 20  # bytes, however many records there are: what is read at a time, modules


@pytest.fixture(scope="module")
def parquet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("large") / "own.parquet"
    with connected(path.parent) as connection:
        numbers = ", ".join(f"random() AS {name}" for name in NAMES)
        rest = f"'site' || CAST(floor({OWNERS} * random()) AS INTEGER) AS site, if(random() < 0.3, 'yes', 'no') AS y"
        connection.execute(f"COPY (SELECT {numbers}, {rest} FROM range({N})) TO '{path}'")
    return path


@contextmanager
def connected(folder: Path) -> Iterator[Any]:
    connection = connect(folder, None)
    try:
        yield connection
    finally:
        connection.close()


def loaded(path: Path, *, held_out: bool = True, columns: int = COLUMNS, precision: Precision = "double") -> Dataset:
    """As a run does it: sorted by owner."""

    def arranging(n: int, persons: Any, groups: Any) -> Any:
        return partition(n, groups=groups, seed=1).order

    schema = Schema(SCHEMA.columns[:columns], SCHEMA.target, True)
    return load(
        path, schema=schema, owners_column="site", arranging=arranging, held_out=held_out, precision=precision
    )


def peak(path: Path, **how: Any) -> tuple[int, Dataset]:
    """(the most bytes that arrays had at once, what was loaded)."""
    loaded(path, **how)  # what is imported and compiled on the way
    tracemalloc.start()
    try:
        data = loaded(path, **how)
        return tracemalloc.get_traced_memory()[1], data
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("held_out", [True, False])
def test_bytes_a_record(parquet: Path, held_out: bool) -> None:
    most, data = peak(parquet, held_out=held_out)
    assert most <= A_RECORD * N + ONCE, most / N
    assert data.rows == N and data.records.n == (N if held_out else data.training)
    assert data.records.held.nbytes == 8 * COLUMNS * data.records.n


LARGE, PROCESS = 10**7, 120 << 20  # records; bytes that a process has before it loads any


@pytest.mark.parametrize(("precision", "size"), [("double", 8), ("single", 4)])
def test_ten_million_records_of_fifty_numbers_have_room(precision: Precision, size: int, parquet: Path) -> None:
    """Places have as many bytes a number as the precision says; what else arrays hold is as much a record whatever its
    columns are, so it is as much of 50. Rounded places are not made as whole doubles first."""
    for columns in (3, COLUMNS):
        most, data = peak(parquet, columns=columns, precision=precision)
        assert most <= A_RECORD * N + ONCE, most / N
        assert data.records.held.nbytes == size * columns * N and data.records.held.dtype.itemsize == size
    assert LARGE * (A_RECORD + 4 * 50) + ONCE + PROCESS < 2.6e9


def test_of_places_in_a_file_arrays_hold_none(parquet: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is made of them on their way does not grow with records: not a byte of a column is kept."""
    monkeypatch.setattr(filling, "held_in_memory", lambda size, memory: False)
    found = []
    for columns in (3, COLUMNS):
        schema = Schema(SCHEMA.columns[:columns], SCHEMA.target, True)
        load(parquet, schema=schema, precision="single", test_fraction=0.0)
        tracemalloc.start()
        try:
            data = load(parquet, schema=schema, precision="single", test_fraction=0.0)
            found.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
        assert not data.records.resident and data.records.held.nbytes == 4 * columns * N
    few, many = found
    assert few <= A_RECORD * N + ONCE and many - few < (COLUMNS - 3) * N
    assert LARGE * A_RECORD + ONCE + PROCESS < 0.6e9


@pytest.mark.parametrize(("many", "size"), [(200, 1), (3000, 2), (None, 4)])
def test_places_of_few_numbers_are_codes_of_one_byte_or_two(
    many: int | None, size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of columns that were looked at, in single precision, where places would need more than an eighth of the memory; a
    record of 50 such numbers has 50 times as much."""
    monkeypatch.setattr(table, "AT_ONCE", 1 << 12)
    monkeypatch.setattr(numbers, "EXACT", 1000)  # so many records are many
    rng, n, columns = np.random.default_rng(3), 20_000 if many else 70_000, 5
    drawn = rng.random((columns, n)) if many is None else rng.integers(0, many, (columns, n)) / many
    said = {f"x{k}": values for k, values in enumerate(drawn)} | {"y": np.where(drawn[0] > 0.3, "yes", "no")}
    pq.write_table(pa.table(said), path := tmp_path / "few.parquet")
    schema = Schema(SCHEMA.columns[:columns], SCHEMA.target, True)
    with opened(str(path), folder=tmp_path) as (source, private):
        look(source, target="y", owners=None)
        for memory, each in ((4 * 4 * columns * n, size), (32 * columns * n - 1, size), (32 * columns * n, 4)):
            data = load(OpenTable(source, private), schema=schema, precision="single", memory=memory)
            assert data.records.held.nbytes == each * columns * n and data.records.resident


def test_numbers_of_eight_bytes_would_be_found(parquet: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("dataset", "ownership", "filling", "mapping"):
        monkeypatch.setattr(f"dpmpc.records.{module}.numbers_up_to", lambda n: np.int64)
    most, _ = peak(parquet, held_out=True)
    assert most > A_RECORD * N + ONCE


def test_who_is_held_out_is_who_was_with_numbers_of_eight_bytes() -> None:
    for n, seed in ((1, 1), (2, 5), (1000, 7), (70_001, 3)):
        drawn = generator(Stream.SPLIT, seed).permutation(n)
        train, test = split(n, test_fraction=0.3, max_rows=None, seed=seed)
        assert train.dtype == numbers_up_to(n)
        assert np.array_equal(np.concatenate([test, train]), drawn)
        drawn = generator(Stream.OWNERS, seed).permutation(n)
        assert np.array_equal(partition(n, owners=1, seed=seed).order, drawn)
    assert numbers_up_to((1 << 31) - 1) is np.int32 and numbers_up_to(1 << 31) is np.int64


def test_records_of_the_test_are_left_out_where_nobody_reads_them(parquet: Path) -> None:
    """Those for training are the same to the last bit, and all records are counted."""
    whole, some = loaded(parquet), loaded(parquet, held_out=False)
    assert some.records.n == some.training == whole.training and some.held_out == whole.held_out == whole.test.n > 0
    assert some.train.held.tobytes() == whole.train.held.tobytes()
    assert some.y.tobytes() == whole.y.tobytes() and some.ends == whole.ends
    assert [dataclasses.astuple(counts) for counts in some.counts] == [
        dataclasses.astuple(counts) for counts in whole.counts
    ]


def test_places_of_records_are_found_part_by_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filling, "_AT_ONCE", 7)
    rng = np.random.default_rng(2)
    for n in (1, 6, 7, 8, 50):
        assert filling._places(np.arange(n), n) is None
        order = np.concatenate([rng.permutation(n)[: n - n // 3], np.full(3, -1)])
        order = order[rng.permutation(len(order))]
        place = filling._places(order, n)
        assert place is not None
        there = place >= 0
        assert there.sum() == (order >= 0).sum() and np.array_equal(order[place[there]], np.flatnonzero(there))


def of_texts(folder: Path) -> Path:
    path, rng = folder / "texts.csv", np.random.default_rng(4)
    lines = ["a,b,c,site,y"]
    for k, (a, b) in enumerate(rng.normal(size=(30_000, 2)).tolist()):
        lines.append(f"{a!r},{b:.2f},word{k % 9},s{k % 3},{'yes' if a > 0 else 'no'}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_a_large_source_is_held_in_a_file_without_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, names = of_texts(tmp_path), ["a", "b", "c", "site", "y"]
    found, memory = [], []
    for large in (1 << 40, 1):
        monkeypatch.setattr(staging, "LARGE", large)
        private = tmp_path / f"private {large}'s"
        private.mkdir()
        with connected(private) as connection:
            table = held(open_source(CsvFile(path), connection, private), names)
            found.append([(column, table.rows(column.sql)) for column in table.columns])
            ((there,),) = connection.execute(
                "SELECT sum(memory_usage_bytes) FROM duckdb_memory() WHERE tag = 'IN_MEMORY_TABLE'"
            ).fetchall()
            memory.append(there)
            assert not list(private.iterdir())  # no record lies in a file that has a name
            assert held(open_source(CsvFile(path), connection, private), names).n == 30_000  # into the same file
            assert not list(private.iterdir())
    assert found[0] == found[1]
    assert memory[0] > 30_000 * 16 and memory[1] < memory[0] / 10


def test_what_lies_in_memory_is_not_written_to_the_disk_to_be_given_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(staging, "_LITTLE", "1MB")
    with connected(tmp_path) as connection:
        found = held(open_source(CsvFile(of_texts(tmp_path)), connection, tmp_path), ["a", "b", "c", "site", "y"])
        holding = "SELECT sum(memory_usage_bytes), sum(temporary_storage_bytes) FROM duckdb_memory()"
        before = connection.execute(holding).fetchall()
        give_back(found)
        assert connection.execute(holding).fetchall() == before and before[0][0] > 10**6


@pytest.mark.parametrize("memory", [None, 3 * 10**9])
def test_what_was_read_of_a_file_is_given_back(
    memory: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit is then as it was, and what is asked again is read again."""
    monkeypatch.setattr(staging, "LARGE", 1)
    monkeypatch.setattr(staging, "_LITTLE", "1MB")
    path, holding = tmp_path / "numbers.csv", "SELECT sum(memory_usage_bytes) FROM duckdb_memory()"
    limit = "SELECT current_setting('memory_limit')"
    connection = connect(tmp_path, memory)
    try:
        connection.execute(f"COPY (SELECT random() AS a, random() AS b FROM range(200000)) TO '{path}' (HEADER)")
        found = held(open_source(CsvFile(path), connection, tmp_path), ["a", "b"])
        sums = ", ".join(f"max({column.sql})" for column in found.columns)
        before, said = found.rows(sums), connection.execute(limit).fetchall()
        ((full,),) = connection.execute(holding).fetchall()
        give_back(found)
        ((little,),) = connection.execute(holding).fetchall()
        assert full > 200_000 * 8 and little <= 10**6 and little < full / 2, (full, little)
        assert connection.execute(limit).fetchall() == said and found.rows(sums) == before
    finally:
        connection.close()


READING = """
import sys
from pathlib import Path
from dpmpc.intake.table import connect
from dpmpc.processes.memory import peak_memory
from dpmpc.records.loading import open_source
connection = connect(Path(sys.argv[1]).parent, None, threads=int(sys.argv[2]))
table = open_source(sys.argv[1], connection, Path(sys.argv[1]).parent)
table.n
before = peak_memory()
threads = lambda: connection.cursor().execute("SELECT current_setting('threads')").fetchall()[0][0]
seen, rows = set(), 0
for block in table.blocks([f"coalesce(x{k}, 0)" for k in range(20)], quick=sys.argv[3] == "quick"):
    seen.add(threads())
    rows += len(block[0])
print(peak_memory() - before, rows, *seen, threads())
"""


def test_numbers_are_read_within_so_many_bytes(tmp_path: Path) -> None:
    """By one thread, which has one group of rows in memory where each of several has one; then by all again. A group of
    20 numbers is 20 MB, and another becomes arrays while one is worked on."""
    path = tmp_path / "wide.parquet"
    with connected(tmp_path) as connection:
        numbers = ", ".join(f"random() AS x{k}" for k in range(20))
        connection.execute(f"COPY (SELECT {numbers} FROM range(1000000)) TO '{path}'")
    taken = {}
    for way, at_once in (("quick", 1), ("slow", 4)):
        words = [sys.executable, "-c", READING, str(path), "4", way]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        most, rows, during, after = map(int, done.stdout.split())
        assert (rows, during, after) == (1_000_000, at_once, 4)
        taken[way] = most
    assert taken["quick"] < 260e6 and 1.5 * taken["quick"] < taken["slow"], taken  # some 190 and 410 MB
