"""Records that are parsed once: how often, and that texts held as they stand are those that are cleaned one by one."""

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmpc.data import holding, oddities
from dpmpc.data.csvfile import scan
from dpmpc.data.holding import held
from dpmpc.data.intake import look
from dpmpc.data.loading import opened
from dpmpc.data.spelling import Spelling
from dpmpc.data.table import Table, value_sql

N = 3000
WORDS = {
    "plain": ["a", "b", "c d", ""],
    "spaced": ["a", " a", "a ", "b\t", "c"],
    "missing": ["x", "NA", "n/a", "?", "null", "y"],
    "accents": ["cafe\u0301", "caf\u00e9", "stra\u00dfe", "\u00c5"],
    "case": ["True", "true", "TRUE", "False"],
    "mixed": ["1", "2.50", "two", "-"],
    "late": ["1", "2", "3"],
    "latetext": ["red", "blue"],
}


def _written(path: Path, seed: int) -> Path:
    rng = np.random.default_rng(seed)
    columns: dict[str, Any] = {name: rng.choice(words, N).tolist() for name, words in WORDS.items()}
    columns["number"] = [f"{x:.6g}" if x > -1.5 else "" for x in rng.normal(size=N)]
    columns["many"] = [f"word {k}" for k in rng.integers(0, 900, N)]
    columns["late"][-1] = "nan" if seed % 2 else "four"
    columns["latetext"][-400:] = [f" late {k}" for k in range(400)]
    lines = [",".join(columns), *map(",".join, zip(*columns.values(), strict=True))]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def _values(table: Table) -> dict[str, list[Any]]:
    return {c.name: [row[0] for row in table.rows(c.sql)] for c in table.columns}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_texts_are_held_as_they_are_cleaned(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spelling = Spelling(missing=("c",)) if seed > 1 else Spelling()
    tried, found = holding._tried, []
    for few in (True, False):
        path = _written(tmp_path / f"{few}.csv", seed)
        monkeypatch.setattr(holding, "_tried", lambda t, n, few=few: tried(t, n) if few else (tried(t, n)[0], set()))
        with opened(path, spelling=spelling) as (table, _):
            plain = held(table, table.names)
            assert {c.type for c in plain.columns} == {"VARCHAR", "DOUBLE"}
            assert all(c.clean == (c.type == "VARCHAR") and c.finite == (c.type == "DOUBLE") for c in plain.columns)
            assert plain["number"].finite and not plain["late"].finite
            found.append(_values(plain))
    assert found[0] == found[1]
    assert None in found[0]["missing"] and "a " not in found[0]["spaced"] and "" not in found[0]["plain"]


@pytest.mark.slow
def test_records_are_parsed_once_and_again_where_the_first_said_the_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, run = list[str](), Table.run
    monkeypatch.setattr(Table, "run", lambda self, query: (asked.append(query), run(self, query))[1])

    def parsed(path: Path) -> int:
        """How often the file is read whole by a look at its records."""
        asked.clear()
        with opened(path) as (table, _):
            source = table.relation
            look(table, target="t0")
        return sum(f"FROM {source}" in query and "LIMIT" not in query for query in asked)

    rng = np.random.default_rng(1)
    rows = [
        f"{x:.17g},{y},text {k},site {k % 3}"
        for x, y, k in zip(rng.random(N), range(N), rng.integers(0, 7, N), strict=True)
    ]
    path = tmp_path / "records.csv"
    path.write_text("x0,x1,t0,site\n" + "\n".join(rows) + "\n", encoding="utf-8")
    assert parsed(path) == 1
    path.write_text("x0,x1,t0,site\n" + "\n".join([*rows, "none,1,text 1,site 1"]) + "\n", encoding="utf-8")
    assert parsed(path) == 2  # the last field of x0 is no number
    path.write_text("x0,x1,t0,site\n" + "\n".join([*rows, "1,1, text 1,site 1"]) + "\n", encoding="utf-8")
    assert parsed(path) == 1  # a text with space around it is mended where it is held


def test_numbers_whose_first_ones_are_fine_are_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether points stand between thousands is asked of all records only where it may be so."""
    asked, one = list[Any](), Table.one
    monkeypatch.setattr(
        Table,
        "one",
        lambda self, *parts, relation=None: (asked.append((parts, relation)), one(self, *parts, relation=relation))[1],
    )
    rng = np.random.default_rng(2)
    path = tmp_path / "records.csv"
    for fine, readings in (("1.2345", 1), ("1.234", 2)):
        rows = [f"{x:.3f},{k % 2}" for k, x in enumerate(rng.random(500) * 9)]
        path.write_text("x,y\n" + "\n".join([*rows, f"{fine},1"]) + "\n", encoding="utf-8")
        with opened(path) as (table, _):
            plain = held(table, table.names)
            asked.clear()
            assert oddities._of_three_digits(plain, ["x"]) == (["x"] if readings == 2 else [])
            assert len(asked) == readings


def test_a_held_number_is_read_without_a_second_look(tmp_path: Path) -> None:
    path = _written(tmp_path / "records.csv", 0)
    with opened(path) as (table, _):
        plain = held(table, table.names)
        assert "isfinite" not in value_sql(plain, "number") and "isfinite" in value_sql(table, "number")
        values = [row[0] for row in plain.rows(value_sql(plain, "number"))]
        assert sum(np.isnan(values)) == sum(field is None for field in _values(plain)["number"]) > 0


@pytest.mark.parametrize(
    ("text", "loose"),
    [("1+-1", True), ("1e+05", False), ("a_b", True), ("-1", False), ("+", False), ("+,-", False), ("+-", True)],
)
def test_signs_are_found_across_pieces_too(
    text: str, loose: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "records.csv"
    path.write_text(f"x\n{text}\n", encoding="utf-8")
    for piece in (1, 2, 3, 1 << 20):
        monkeypatch.setattr("dpmpc.data.csvfile._CHUNK", piece)
        found = scan(path, "records.csv")
        assert found.loose is loose and found.digest == hashlib.sha256(path.read_bytes()).hexdigest()
