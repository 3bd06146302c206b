"""Own data beside the plain pipeline: the same records for both, the peak of what a command starts, a table of it."""

import json
import os
import sys
from pathlib import Path

import duckdb
import pytest

from dpmpc.benchmarks import machine
from dpmpc.benchmarks.studies import own_data
from website.waiting import plain

ROWS = 2000


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return own_data.make(ROWS, tmp_path_factory.mktemp("own"))


def test_both_files_have_the_same_records(files: dict[str, Path], tmp_path: Path) -> None:
    texts = f"read_csv('{files['csv']}', types={{'outcome': 'VARCHAR'}})"
    found = [duckdb.sql(f"SELECT * FROM {of}") for of in (f"'{files['parquet']}'", texts)]
    assert [table.columns for table in found] == [[f"x{k}" for k in range(20)] + ["site", "outcome"]] * 2
    first, second = ([tuple(map(str, row[:20])) + row[20:] for row in table.fetchall()] for table in found)
    assert len(first) == ROWS
    assert [[None if v == "None" else float(v) for v in row[:20]] for row in first] == [
        [None if v == "None" else float(v) for v in row[:20]] for row in second
    ]
    assert [row[20:] for row in first] == [row[20:] for row in second]
    again = own_data.make(ROWS, tmp_path)
    assert again["csv"].read_bytes() == files["csv"].read_bytes()


def test_the_peak_is_of_the_largest_process_that_a_command_starts() -> None:
    size = 200 << 20
    inner = f"x = bytearray({size}); x[::4096] = bytes(len(x[::4096]))"
    words = [sys.executable, "-c", f"import subprocess, sys; subprocess.run([sys.executable, '-c', {inner!r}])"]
    least = own_data.measured([sys.executable, "-c", ""], os.environ)["peak_bytes"]
    found = own_data.measured(words, os.environ)
    assert size <= found["peak_bytes"] <= size + least + (8 << 20)
    assert 0 < least < size / 4 and found["processor"] > 0


def test_a_command_that_fails_is_no_result() -> None:
    with pytest.raises(RuntimeError, match="not today"):
        own_data.measured([sys.executable, "-c", "raise SystemExit('not today')"], os.environ)


def test_a_turn_is_in_the_file_and_in_the_page(files: dict[str, Path], tmp_path: Path) -> None:
    turn = {"kind": "csv", "memory": "found", "turn": 0, "plain": own_data.plain(files["csv"])}
    turn["dpmpc"] = own_data.ours(files["csv"], tmp_path, 2)
    assert not list(tmp_path.iterdir())
    result = {
        "machine": machine.machine(), "rows": ROWS, "columns": 22, "iterations": 2, "with": {"polars": "1"},
        "turns": [turn],
    }  # fmt: skip
    path = tmp_path / "plain.json"
    path.write_text(json.dumps(result))
    text, of = plain(path), own_data.ratios(turn)
    assert set(of) == {"seconds", "processor", "peak_bytes"} and all(value > 0 for value in of.values())
    assert f"| CSV | found | {turn['dpmpc']['seconds']:.1f} | {of['seconds']:.2f} |" in text
    assert "GB/s, `import numpy` in" in text and "2,000 records of 22 columns, 2 iterations, polars 1" in text
    assert f"{of['peak_bytes']:.2f} of plain"[:4] in own_data.line(turn)


def test_a_machine_says_how_fresh_memory_comes() -> None:
    found = machine.machine()
    assert found["first_touch_GB_s"] >= 0 and found["import_numpy_s"] > 0
    assert machine.touched(1 << 20) > 0
