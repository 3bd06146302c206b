"""A look at a small table asks about many columns at once."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmpc.intake.profile import explore
from dpmpc.intake.staging import held
from dpmpc.intake.table import Table
from dpmpc.intake.text_facts import counts_of
from dpmpc.records.loading import opened


def test_ten_times_as_many_columns_take_a_query_more_for_sixteen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of each kind: numbers, words, dates, numbers with a unit or a comma, one that has words for missing."""
    asked, run = list[str](), Table.run
    monkeypatch.setattr(Table, "run", lambda self, query: (asked.append(query), run(self, query))[1])
    rng = np.random.default_rng(3)
    kinds: list[Any] = [
        lambda k: f"{rng.normal():.4f}",
        lambda k: f"word{rng.integers(5)}",
        lambda k: f"20{rng.integers(10, 24)}-0{rng.integers(1, 10)}-1{rng.integers(10)}",
        lambda k: f"{rng.integers(1, 300)} mg",
        lambda k: "n/a" if k % 7 == 0 else f"{rng.integers(90)},{rng.integers(10)}",
    ]
    queries = []
    for each in (8, 80):
        columns = [kind for kind in kinds for _ in range(each)]
        rows = [";".join(kind(k) for kind in columns) for k in range(60)]
        path = tmp_path / f"records{each}.csv"
        path.write_text("\n".join([";".join(f"c{i}" for i in range(len(columns))), *rows]) + "\n", encoding="utf-8")
        asked.clear()
        with opened(path) as (table, _):
            found, _ = explore(table)
            assert len(found.columns) == 5 * each
        queries.append(len(asked))
    assert queries[1] - queries[0] <= 360 // 16, queries  # a query a column would be 360 more


def test_what_is_said_of_a_value_is_worked_out_once_a_different_value(tmp_path: Path) -> None:
    """Of a large table too, whose database would rather ask every record whether there is anything to say."""
    path, worked_out = tmp_path / "records.csv", list[float]()
    rows = [f"{k % 5},{'' if k % 7 == 0 else k % 1000}" for k in range(21_000)]
    path.write_text("\n".join(["few,many", *rows]) + "\n", encoding="utf-8")

    def said(value: float) -> str | None:
        worked_out.append(value)
        return None if value == 3 else f"{value:g}"

    with opened(path) as (table, _):
        plain = held(table, table.names)
        plain.connection.create_function("said", said, [float], str, null_handling="special")
        found = counts_of(plain, ["few", "many"], lambda one, name: f"said({one[name].sql})", most=4)
    assert found["few"] == dict.fromkeys(("0", "1", "2", "4"), 4200)
    assert found["many"] == dict.fromkeys(("0", "1", "10", "100"), 18)
    assert len(worked_out) == 5 + 1000
