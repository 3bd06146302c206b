"""A file of texts is parsed once, and one of Parquet, of which nothing is held, is read as often as is said here:
DuckDB's own log of its queries says how often one reads a file that is not for its first records alone."""

import csv
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpmpc
from dpmpc.intake import numbers, table
from dpmpc.intake.profile import look
from dpmpc.intake.spelling import Spelling
from dpmpc.records import loading

OF_THE_FILE = re.compile(r"read_csv\(|\bcsv[0-9a-f]{16}\b")
N = 30_000  # records: tables of up to 20,000 are asked about in other ways


def write(path: Path, decimal: str = ".", separator: str = ",", thousandths: bool = False) -> None:
    """Numbers of many digits and of few, words, days, sites and a target."""
    rng = np.random.default_rng(3)
    lines = [separator.join(["x", "z", "age", "word", "seen", "site", "y"])]
    for k, (x, z) in enumerate(rng.normal(size=(N, 2)).tolist()):
        second = f"{1 + abs(z):.3f}" if thousandths else f"{z:.2f}"
        numbers = [repr(x).replace(".", decimal), second.replace(".", decimal)]
        words = [str(20 + k % 70), "abc"[k % 3], f"20{k % 20:02d}-03-0{1 + k % 9}", f"s{k % 3}"]
        lines.append(separator.join([*numbers, *words, "yes" if x > 0 else "no"]))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.fixture
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where every connection writes down what is asked of it."""
    connect, made = table.connect, tmp_path / "logs"

    def noting(*given: Any, **named: Any) -> Any:
        connection = connect(*given, **named)
        made.mkdir(exist_ok=True)
        where = made / str(len(list(made.iterdir())))
        connection.execute(f"CALL enable_logging('QueryLog', storage='file', storage_config={{'path': '{where}'}})")
        return connection

    monkeypatch.setattr(loading, "connect", noting)
    return made


def asked(logs: Path) -> list[str]:
    """The queries, those for the first records apart."""
    found = list[str]()
    for path in logs.glob("*/*entries*"):
        with path.open(encoding="utf-8", newline="") as file:
            said = [row["message"] for row in csv.DictReader(file)]
        found += [words for words in said if "LIMIT" not in words and " VIEW " not in words]
    return found


def scans(logs: Path) -> int:
    """How many queries read the file, its first records apart."""
    return sum(bool(OF_THE_FILE.search(words)) for words in asked(logs))


def of_column(logs: Path, name: str) -> int:
    """How many queries read this column of a Parquet file: others do not decode it."""
    return sum("read_parquet(" in words and f'"{name}"' in words for words in asked(logs))


def trained(folder: Path, **way: Any) -> None:
    named = {"target": "y", "owners": None if "owners_column" in way else 3} | way
    dpmpc.train(
        folder / "run", csv=str(folder / "records.csv"), epsilon=2.0, delta=1e-6, engine="clear", evaluate=False,
        method="gradient", iterations=2, **named,
    )  # fmt: skip


@pytest.mark.parametrize("way", [
    {}, {"spelling": Spelling(decimal=",")}, {"owners_column": "site"}, {"target": "x", "task": "ridge"},
    {"spelling": Spelling(missing=("word=a",))}, {"positive": "no", "drop": ("seen",)},
])  # fmt: skip
def test_training_parses_a_file_once(way: dict[str, Any], logs: Path, tmp_path: Path) -> None:
    """The look, what it finds odd, the target, owners, the survey and the records."""
    path, comma = tmp_path / "records.csv", way.get("spelling") == Spelling(decimal=",")
    write(path, *((",", ";") if comma else (".", ",")))
    trained(tmp_path, **way)
    assert scans(logs) == 1


def test_points_that_may_stand_between_thousands_are_looked_for_once_more(logs: Path, tmp_path: Path) -> None:
    """The fields themselves say how many digits they have, which a number does not: only where the first records leave
    it open. The count of scans can see a second one."""
    write(tmp_path / "records.csv", thousandths=True)
    trained(tmp_path)
    assert scans(logs) == 2


def test_a_look_parses_a_file_once(logs: Path, tmp_path: Path) -> None:
    path = tmp_path / "records.csv"
    write(path)
    with loading.opened(str(path), folder=tmp_path) as (found, _):
        look(found)
    assert scans(logs) == 1


def write_parquet(path: Path, odd: bool = False) -> None:
    """Columns of numbers, of which the first has some that are not finite where it is `odd`."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(N, 12))
    label = (x[:, 0] > 0).astype(np.int64)
    if odd:
        x[:3, 0] = np.nan, np.inf, -np.inf
    pq.write_table(pa.table({f"x{k}": x[:, k] for k in range(12)} | {"y": label}), path)


@pytest.mark.parametrize("odd", [False, True])
def test_a_look_reads_a_column_of_numbers_twice(odd: bool, logs: Path, tmp_path: Path) -> None:
    """For counts and ends, and for how often ends and codes are there. What is finite is asked only of columns whose
    ends are not."""
    path = tmp_path / "records.parquet"
    write_parquet(path, odd)
    with loading.opened(str(path), folder=tmp_path) as (found, _):
        look(found)
    assert (of_column(logs, "x0"), of_column(logs, "x1")) == (2 + odd, 2)


@pytest.mark.parametrize("iterations", [2, 5])
def test_training_reads_a_column_of_numbers_five_times(iterations: int, logs: Path, tmp_path: Path) -> None:
    """Twice for the look, for the survey and for the records; and once whether it gives the target."""
    write_parquet(tmp_path / "records.parquet")
    dpmpc.train(
        tmp_path / "run", records=str(tmp_path / "records.parquet"), target="y", owners=3, epsilon=2.0, delta=1e-6,
        engine="clear", evaluate=False, method="gradient", iterations=iterations,
    )  # fmt: skip
    assert of_column(logs, "x1") == 5


@pytest.mark.parametrize("odd", [False, True])
def test_a_look_at_many_records_reads_a_column_of_numbers_once(
    odd: bool, logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counts, ends, codes and what is finite; what would have to hold of all records the first ones refute."""
    monkeypatch.setattr(numbers, "EXACT", N - 1)
    path = tmp_path / "records.parquet"
    write_parquet(path, odd)
    with loading.opened(str(path), folder=tmp_path) as (found, _):
        look(found)
    assert (of_column(logs, "x0"), of_column(logs, "x1")) == (1, 1)


@pytest.mark.parametrize("columns", [12, 0])
def test_training_on_many_records_reads_a_column_of_numbers_once(
    columns: int, logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The look's reading is kept: the survey, the records and what gives the target read nothing more. Without room for
    it each reads the column."""
    monkeypatch.setattr(numbers, "EXACT", N - 1)
    monkeypatch.setattr(loading, "kept_within", lambda memory: 3 * columns << 20)
    write_parquet(tmp_path / "records.parquet")
    dpmpc.train(
        tmp_path / "run", records=str(tmp_path / "records.parquet"), target="y", owners=3, epsilon=2.0, delta=1e-6,
        engine="clear", evaluate=False, method="gradient", iterations=2,
    )  # fmt: skip
    assert of_column(logs, "x1") == (1 if columns else 4)
