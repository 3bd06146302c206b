"""Records that are parsed once: how often, and that texts held as they stand are those that are cleaned one by one."""

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from dpmpc.intake import lint as oddities
from dpmpc.intake import staging as holding
from dpmpc.intake.csvfile import scan
from dpmpc.intake.profile import look
from dpmpc.intake.spelling import Spelling
from dpmpc.intake.staging import held
from dpmpc.intake.table import Table, value_sql
from dpmpc.records.loading import opened

pytestmark = pytest.mark.usefixtures("small_tables")

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
        monkeypatch.setattr(
            holding, "_tried", lambda t, n, few=few: (tried(t, n)[0], tried(t, n)[1] if few else set(), tried(t, n)[2])
        )
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
        return sum((f"FROM {source}" in query or "'DOUBLE'" in query) and "LIMIT" not in query for query in asked)

    rng = np.random.default_rng(1)
    rows = [
        f"{x:.17g},{y},text {k},site {k % 3}"
        for x, y, k in zip(rng.random(N), range(N), rng.integers(0, 7, N), strict=True)
    ]
    path = tmp_path / "records.csv"
    path.write_text("x0,x1,t0,site\n" + "\n".join(rows) + "\n", encoding="utf-8")
    assert parsed(path) == 1
    path.write_text("x0,x1,t0,site\n" + "\n".join([*rows, "none,1,text 1,site 1"]) + "\n", encoding="utf-8")
    assert parsed(path) == 3  # the last field of x0 is no number: which it is, all fields as texts say
    path.write_text("x0,x1,t0,site\n" + "\n".join([*rows, "NA,1,text 1,site 1"]) + "\n", encoding="utf-8")
    assert parsed(path) == 2  # one is missing, by a word that no record before it has
    path.write_text("x0,x1,t0,site\n" + "\n".join(["NA,1,text 1,site 1", *rows]) + "\n", encoding="utf-8")
    assert parsed(path) == 1
    path.write_text("x0,x1,t0,site\n" + "\n".join([*rows, "1,1, text 1,site 1"]) + "\n", encoding="utf-8")
    assert parsed(path) == 1  # a text with space around it is mended where it is held


def test_numbers_whose_first_ones_are_fine_are_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether points stand between thousands is asked of all records only where it may be so, and where the first
    ones that are read are not all."""
    asked, run = list[str](), Table.run
    monkeypatch.setattr(Table, "run", lambda self, query, *rest: (asked.append(query), run(self, query, *rest))[1])
    rng = np.random.default_rng(2)
    path = tmp_path / "records.csv"
    for rows, fine, readings in ((500, "1.2345", 1), (500, "1.234", 1), (17_000, "1.2345", 1), (17_000, "1.234", 2)):
        lines = [f"{x:.3f},{k % 2}" for k, x in enumerate(rng.random(rows) * 9)]
        path.write_text("x,y\n" + "\n".join([f"{fine},1", *lines]) + "\n", encoding="utf-8")
        with opened(path) as (table, _):
            plain = held(table, table.names)
            asked.clear()
            assert oddities._of_three_digits(plain, ["x"]) == ([] if fine == "1.2345" else ["x"])
            assert sum("round(" in query for query in asked) == readings, (rows, fine)


def test_a_held_number_is_read_without_a_second_look(tmp_path: Path) -> None:
    path = _written(tmp_path / "records.csv", 0)
    with opened(path) as (table, _):
        plain = held(table, table.names)
        assert "isfinite" not in value_sql(plain, "number") and "isfinite" in value_sql(table, "number")
        values = [row[0] for row in plain.rows(value_sql(plain, "number"))]
        assert sum(np.isnan(values)) == sum(field is None for field in _values(plain)["number"]) > 0


@pytest.mark.parametrize(
    ("text", "loose"),
    [
        ("1+-1", True), ("1e+05", False), ("-1", False), ("+", False), ("+,-", False), ("+-", True),
        ("a_b", False), ("a_1", False), ("1_a", False), ("_1", False), ("12_", False), ("1__2", False), ("71_23", True),
        ("1\uff11_\uff12", True), ("1_\uff12", True), ("\uff11_2", True),
    ],
)  # fmt: skip
def test_signs_are_found_across_pieces_too(
    text: str, loose: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "records.csv"
    path.write_text(f"x\n{text}\n", encoding="utf-8")
    for piece in (1, 2, 3, 4, 5, 1 << 20):
        monkeypatch.setattr("dpmpc.intake.csvfile._CHUNK", piece)
        found = scan(path, "records.csv")
        assert found.loose is loose and found.digest == hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("spelling", [Spelling(), Spelling(missing=("c",)), Spelling(units=("kg",))], ids=str)
def test_a_wide_table_is_held_some_columns_at_a_time(
    spelling: Spelling, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No query that parses or mends has more columns than may be at once; what is held is the same, row by row."""
    path, made, run = _written(tmp_path / "records.csv", 3), list[int](), Table.run

    def counting(self: Table, query: str) -> list[tuple[Any, ...]]:
        if "CREATE" in query and "CASE" in query:
            made.append(query.count(" AS h"))
        return run(self, query)

    monkeypatch.setattr(Table, "run", counting)
    found = []
    for most in (holding._AT_ONCE, 3):
        monkeypatch.setattr(holding, "_AT_ONCE", most)
        made.clear()
        with opened(path, spelling=spelling) as (table, _):
            plain = held(table, table.names)
            assert 0 < max(made) <= most and (max(made) > 3) == (most > 3)
            assert plain.n == N and plain.names == table.names
            found.append(([replace(c, sql="") for c in plain.columns], _values(plain)))
    assert found[0] == found[1]


def test_words_that_one_column_keeps_are_missing_in_the_others(tmp_path: Path) -> None:
    """Columns are asked about together; what counts as missing is each one's own."""
    path = tmp_path / "records.parquet"
    rows = "SELECT ['NA', 'DE', 'FR'][k % 3 + 1] AS land, ['NA', 'x', 'y'][k % 3 + 1] AS ward FROM range(600) r(k)"
    duckdb.sql(f"COPY ({rows}) TO '{path}'")
    with opened(path, spelling=Spelling(kept=("land=NA",))) as (table, _):
        found, _ = look(table)
    assert (found["land"].missing, found["ward"].missing) == (0, 200)


ODD = (
    "1",
    " 2 ",
    "+3",
    "-4.50",
    "1e3",
    "",
    '""',
    '" 5"',
    "NA",
    "nan",
    "inf",
    "-inf",
    "1e400",
    "1_0",
    "1_",
    "+-1",
    "0x1F",
)
ODD = (
    *ODD,
    "1,5",
    "\uff11",
    "\uff11_\uff10",
    "1\u00a0",
    "\t6",
    "true",
    "2024-01-01",
    "1.7976931348623157e308",
    "4.9e-324",
    "12.",
)


@pytest.mark.parametrize(
    "odd", [odd if k % 3 == 0 else pytest.param(odd, marks=pytest.mark.slow) for k, odd in enumerate(ODD)], ids=ascii
)
def test_numbers_that_the_parser_reads_are_those_of_their_texts(odd: str, tmp_path: Path) -> None:
    """Whatever one field is, at the top or far down: the same columns, kinds and bits, and with a sign in the header
    that DuckDB would take for a part of a number."""
    numbers, found = np.random.default_rng(3).normal(size=N), list[Any]()
    for at in (0, N):
        rows = [f"{x!r};{k};w{k % 7}" for k, x in enumerate(numbers.tolist())]
        rows[at:at] = [f"{odd};1;w1"]
        path = tmp_path / f"records{at}.csv"
        path.write_text("patient_x;y;t\n" + "\n".join(rows) + "\n", encoding="utf-8")
        with opened(path) as (table, _):
            assert table.typed is not None
            for each in (table, replace(table, typed=None)):
                plain = held(each, each.names)
                bits = [np.array(row, dtype=float).tobytes() for row in plain.rows("h1")]
                found.append((plain.columns, _values(plain), bits))
        assert found[-1] == found[-2]
