"""How a query's numbers come: at once where few are known to be, else some at a time; and how often it is planned."""

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from dpmpc.intake.streamed import ONE, streamed
from dpmpc.intake.table import Table, connect
from dpmpc.records.loading import opened


class Refusing:
    """A connection that gives no relation, which DuckDB plans twice."""

    def __init__(self, connection: Any) -> None:
        self.execute = connection.execute


@pytest.mark.parametrize("rows", [1, 2048, ONE])
def test_few_rows_are_the_same_bits_planned_once(rows: int) -> None:
    connection = connect(None, None)
    query = f"SELECT sin(range) AS e0, CAST(range % 7 AS INTEGER) AS e1 FROM range({rows})"
    (known,) = streamed(Refusing(connection), query, 2, rows)  # type: ignore[arg-type]
    (unknown,) = streamed(connection, query, 2, None)
    for one, other in zip(known, unknown, strict=True):
        assert one.dtype == other.dtype and one.tobytes() == other.tobytes()
    assert [len(block[0]) for block in streamed(connection, query, 2, ONE + 1)] == [rows]  # there may be fewer


def test_many_rows_come_some_at_a_time_and_none_as_no_block() -> None:
    connection = connect(None, None)
    query = f"SELECT CAST(range AS DOUBLE) AS e0 FROM range({2 * ONE + 5})"
    blocks = [block[0] for block in streamed(connection, query, 1, 2 * ONE + 5)]
    assert max(map(len, blocks)) <= ONE and np.array_equal(np.concatenate(blocks), np.arange(2 * ONE + 5))
    for known in (0, None):
        assert not list(streamed(connection, "SELECT 1.5::DOUBLE AS e0 FROM range(0)", 1, known))


def test_what_stands_in_a_question_several_times_is_planned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    run = Table.run

    def heard(table: Table, query: str) -> list[tuple[Any, ...]]:
        asked.append(query)
        return run(table, query)

    monkeypatch.setattr(Table, "run", heard)
    texts = np.array([" 1,5", "2\t", None, "x"], dtype=object)
    with opened({"t": texts}) as (table, _):
        sql = table.text("t")
        found = table.one(f"count({sql})", f"min({sql})", f"max(length({sql}))")
    assert found == (3, "1,5", 3) and asked[-1].count("nfc_normalize") == sql.count("nfc_normalize") == 1


def test_what_is_given_some_at_a_time_needs_nothing_that_others_have_imported() -> None:
    code = (
        "import sys; from pathlib import Path; from tempfile import mkdtemp;"
        "from dpmpc.intake.streamed import ONE, streamed; from dpmpc.intake.table import connect;"
        "connection = connect(Path(mkdtemp()), None); query = f'SELECT i::DOUBLE AS x FROM range({ONE + 1}) t(i)';"
        "print(sum(len(part[0]) for part in streamed(connection, query, 1, None)) - ONE)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "1"
