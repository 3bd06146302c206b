"""The same records from every kind of source give the same model, bit for bit; and every refusal is one line."""

import hashlib
import json
import sqlite3
import sys
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather as feather
import pytest

from dpmpc.errors import UsageError, owner_text
from dpmpc.intake import Spelling, files
from dpmpc.intake.database import filtered_by, open_database
from dpmpc.intake.files import check_unchanged, file_digest
from dpmpc.intake.staging import held
from dpmpc.records import CsvFile, Dataset, Query, Schema, load
from dpmpc.records.loading import OpenTable, opened
from dpmpc.records.schema import Date, Labels, Numeric
from tests.tables import cells_of, write

sys.path.append(str(Path(__file__).resolve().parents[2] / "examples"))
from postgres_server import postgres_server, server_folder

from tests.refusals import Rule, breaks, named, refuses

pytestmark = pytest.mark.usefixtures("small_tables")

N = 60
SCHEMA = Schema.from_json(
    {
        "version": 2,
        "columns": [
            {"kind": "number", "name": "count", "low": 0, "high": 100},
            {"kind": "number", "name": "share", "low": -2, "high": 2},
            {"kind": "number", "name": "price", "low": 0, "high": 50},
            {"kind": "category", "name": "grade", "categories": [1, 2, 3]},
            {"kind": "category", "name": "ward", "categories": ["a", "b", "ü c"]},
            {"kind": "category", "name": "smoker", "categories": [True, False]},
        ],
        "target": {"kind": "label", "name": "y", "positive": [1], "negative": [0]},
    }
)


def rows_of(seed: int = 1) -> list[dict[str, Any]]:
    """Integers, floats, decimals, booleans, texts and labels, all but the label sometimes missing."""
    rng, rows = np.random.default_rng(seed), []
    for _ in range(N):
        row: dict[str, Any] = {
            "y": int(rng.integers(2)),
            "count": int(rng.integers(101)),
            "share": float(rng.standard_normal()),
            "price": Decimal(int(rng.integers(10**6))) / 10**4,
            "grade": int(rng.integers(1, 5)),
            "ward": str(rng.choice(["a", "b", "ü c", "d"])),
            "smoker": bool(rng.integers(2)),
            "unused": "x",
        }
        rows.append({key: None if key != "y" and rng.random() < 0.1 else value for key, value in row.items()})
    return rows


def as_text(value: Any) -> str:
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def arrow_table(rows: list[dict[str, Any]]) -> pa.Table:
    kinds = {
        "count": pa.int16(),
        "share": pa.float64(),
        "price": pa.decimal128(9, 4),
        "grade": pa.uint8(),
        "y": pa.int64(),
    }
    table = pa.Table.from_pylist(rows)
    for name, kind in kinds.items():
        table = table.set_column(table.column_names.index(name), name, table[name].cast(kind))
    coded = table["ward"].dictionary_encode()
    return table.set_column(table.column_names.index("ward"), "ward", coded)


def as_csv(rows: list[dict[str, Any]], folder: Path) -> Any:
    lines = [";".join(rows[0]), *(";".join(as_text(value) for value in row.values()) for row in rows)]
    return CsvFile(write(folder, "\n".join(lines), "a.txt"))


def as_tsv_zst(rows: list[dict[str, Any]], folder: Path) -> Any:
    import zstandard

    names = list(rows[0])[::-1]  # another order of columns, and numbers spelled in other ways
    spelled = [{**row, "grade": row["grade"] and f"{row['grade']}.0", "y": f"{row['y']}e0"} for row in rows]
    lines = ["\t".join(names), *("\t".join(as_text(row[name]) or "NA" for name in names) for row in spelled)]
    text = "\r\n".join(lines).replace("true", "True").encode()
    return str(write(folder, zstandard.ZstdCompressor().compress(text), "a.tsv.zst"))


def as_json_lines(rows: list[dict[str, Any]], folder: Path) -> Any:
    text = "\n".join(json.dumps(row, default=float) for row in rows)
    return str(write(folder, text, "a.jsonl"))


def as_parquet(rows: list[dict[str, Any]], folder: Path) -> Any:
    duckdb.from_arrow(arrow_table(rows)).write_parquet(str(folder / "a.parquet"))
    return folder / "a.parquet"


def as_feather(rows: list[dict[str, Any]], folder: Path) -> Any:
    feather.write_feather(arrow_table(rows), str(folder / "a.feather"))
    return folder / "a.feather"


def as_folder(rows: list[dict[str, Any]], folder: Path) -> Any:
    (folder / "parts").mkdir()
    for k in range(3):
        part = [{name: row[name] for name in sorted(row)} if k == 1 else row for row in rows[20 * k : 20 * k + 20]]
        duckdb.from_arrow(arrow_table(part)).write_parquet(str(folder / "parts" / f"{k}.parquet"))
    write(folder / "parts", "not read", "_SUCCESS")
    return folder / "parts"


def as_pattern(rows: list[dict[str, Any]], folder: Path) -> Any:
    for k in range(3):
        as_csv(rows[20 * k : 20 * k + 20], folder).path.rename(folder / f"part{k}.csv")
    return str(folder / "part?.csv")


def as_sqlite(rows: list[dict[str, Any]], folder: Path) -> Any:
    with sqlite3.connect(folder / "a.db") as database:
        database.execute("CREATE TABLE t (y, count INTEGER, share REAL, price, grade, ward TEXT, smoker TEXT, unused)")
        values = [
            [v if isinstance(v, int | float) and not isinstance(v, bool) else as_text(v) for v in r.values()]
            for r in rows
        ]
        database.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)
    database.close()
    return Query(f"sqlite:///{folder / 'a.db'}", "SELECT * FROM t;")


def as_polars(rows: list[dict[str, Any]], folder: Path) -> Any:
    return pl.from_arrow(arrow_table(rows))


def as_pandas(rows: list[dict[str, Any]], folder: Path) -> Any:
    frame = pd.DataFrame(rows)
    return frame.assign(
        price=[v if v is None else float(v) for v in frame["price"]], ward=frame["ward"].astype("category")
    )


def as_numpy(rows: list[dict[str, Any]], folder: Path) -> Any:
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    numbers = ("count", "share", "price", "grade", "y")
    return {
        name: np.array([np.nan if v is None else float(v) for v in values])
        if name in numbers
        else np.array([as_text(v) for v in values])
        for name, values in columns.items()
    }


def as_arrow(rows: list[dict[str, Any]], folder: Path) -> Any:
    return arrow_table(rows)


def as_relation(rows: list[dict[str, Any]], folder: Path) -> Any:
    return duckdb.from_arrow(arrow_table(rows))


WAYS: list[Callable[[list[dict[str, Any]], Path], Any]] = [
    as_tsv_zst,
    as_json_lines,
    as_parquet,
    as_feather,
    as_folder,
    as_pattern,
    as_sqlite,
    as_polars,
    as_pandas,
    as_numpy,
    as_arrow,
    as_relation,
]


def loaded(source: Any, **given: Any) -> Dataset:
    return load(source, schema=SCHEMA, test_fraction=0.0, **given)


@pytest.fixture(scope="module")
def by_hand() -> tuple[Any, Any]:
    """From the rows themselves, but for the last bits."""
    X = np.zeros((N, 3 + 3 + 3 + 2 + 1))
    for row, out in zip(rows_of(), X, strict=True):
        for k, (name, low, high) in enumerate((("count", 0, 100), ("share", -2, 2), ("price", 0, 50))):
            value = row[name]
            middle = value is None
            out[k] = 0 if middle else 2 * ((min(max(float(value), low), high) - low) / (high - low)) - 1
        for k, word in enumerate(
            (("grade", 1), ("grade", 2), ("grade", 3), ("ward", "a"), ("ward", "b"), ("ward", "ü c"))
        ):
            out[3 + k] = row[word[0]] == word[1]
        out[9], out[10], out[11] = row["smoker"] is True, row["smoker"] is False, 1
    X *= ((1 - 2.0**-44) / np.maximum(1, np.sqrt(np.einsum("nd,nd->n", X, X))))[:, None]
    return X, np.array([2.0 * row["y"] - 1 for row in rows_of()])


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    """Of a CSV file."""
    data = loaded(as_csv(rows_of(), tmp_path_factory.mktemp("csv")))
    return data.X, data.y


def test_a_csv_file_is_what_its_rows_say(tmp_path: Path, by_hand: tuple[Any, Any]) -> None:
    data = loaded(as_csv(rows_of(), tmp_path))
    assert np.abs(data.X - by_hand[0]).max() < 1e-13 and np.array_equal(data.y, by_hand[1])


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_every_source_gives_the_same_bits(way: Any, tmp_path: Path, expected: tuple[Any, Any]) -> None:
    data = loaded(way(rows_of(), tmp_path))
    assert np.array_equal(data.X, expected[0]) and np.array_equal(data.y, expected[1])
    counts = {c.name: (c.missing, c.unknown, c.clipped) for c in data.counts}
    rows = rows_of()
    assert counts["grade"] == (sum(r["grade"] is None for r in rows), sum(r["grade"] == 4 for r in rows), 0)
    assert counts["price"][2] == sum(r["price"] is not None and r["price"] > 50 for r in rows) > 0


@pytest.mark.slow
@pytest.mark.parametrize("way", [as_parquet, as_json_lines, as_pandas], ids=lambda way: way.__name__)
def test_without_a_schema_the_same_one_is_found(way: Any, tmp_path: Path) -> None:
    given: dict[str, Any] = {"target": "y", "drop": ["unused"], "seed": 3}
    one, other = load(as_csv(rows_of(), tmp_path), **given), load(way(rows_of(), tmp_path), **given)
    assert one.bounds == other.bounds == "data" and one.schema.target == other.schema.target
    named = [{column.name: column for column in found.schema.columns} for found in (one, other)]
    assert named[0] == named[1]
    places = [one.schema.feature_names.index(name) for name in other.schema.feature_names]  # JSON's are by their names
    if way is as_json_lines:  # a norm is a sum in the columns' order
        np.testing.assert_allclose(one.X[:, places], other.X, rtol=0, atol=2.0**-50)
    else:
        assert np.array_equal(one.X, other.X) and one.schema == other.schema


needs_server = pytest.mark.skipif(server_folder() is None, reason="Debian's package postgresql is not installed")


@needs_server
@pytest.mark.slow
def test_postgresql(tmp_path: Path, expected: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    import psycopg

    with postgres_server() as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        with psycopg.connect(server.url) as database:
            database.execute(
                "CREATE TABLE t (y int2, count int8, share float8, price numeric(9, 4), grade int, ward text,"
                ' smoker bool, unused varchar, born date, "Born" float4)'
            )
            rows = [[*row.values(), "2001-02-03", 0.1] for row in rows_of()]
            with database.cursor() as cursor:
                cursor.executemany(f"INSERT INTO t VALUES ({', '.join(['%s'] * 10)})", rows)
        data = loaded(Query(server.url, "SELECT * FROM t"))
        assert np.array_equal(data.X, expected[0]) and np.array_equal(data.y, expected[1])
        with opened(Query(server.url, 'SELECT y, "Born" FROM t'), spelling=Spelling(",", ".")) as (table, _):
            assert table.one(f"min({table.number('Born')})")[0] == float(np.float32(0.1))
        check_refusals(server, monkeypatch)


def check_refusals(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every refusal is one line, and none holds the login, the URL or a record."""
    wrong = [
        (server.url, "SELECT * FROM absent", 'relation "absent" does not exist'),
        (server.url, "SELECT count, y, count FROM t", "column names are unique"),
        (server.url, "SELECT count, share, price, grade, ward, smoker FROM t", "labels come from the target column"),
        (server.url, "SELECT * FROM t WHERE false", "the query has no rows"),
        (server.url, "SELECT ward::int AS w FROM t", "SQLSTATE 22P02"),
        (server.url, "SELECT y, ward::bytea AS raw FROM t", "can be one (raw: other)"),
        (server.url, "DELETE FROM t", "sql"),
        (server.url + "x", "SELECT 1", "the server does not have this one"),
        (
            server.url.replace("127.0.0.1", f"owner:{server.password}@127.0.0.1"),
            "SELECT 1",
            "a password does not belong",
        ),
        (server.url.rpartition(":")[0] + ":1/hospital", "SELECT 1", "a database must answer"),
        ("mysql://host/db", "SELECT 1", "another scheme"),
        (server.url, " ; ", "sql is empty"),
    ]
    for url, sql, words in wrong:
        with pytest.raises(UsageError) as error:
            if "raw" in sql:
                load(Query(url, sql), target="y")
            else:
                loaded(Query(url, sql))
        said = owner_text(error.value)
        assert words in said and "\n" not in said, said
        assert server.password not in said and "127.0.0.1" not in said and "ü c" not in said
    monkeypatch.setenv("PGPASSWORD", "wrong")
    with refuses("usage", "login"):
        loaded(Query(server.url, "SELECT 1"))


def test_sqlite_refusals(tmp_path: Path) -> None:
    query = as_sqlite(rows_of(), tmp_path)
    for sql, words in (
        ("SELECT * FROM absent", breaks("records", setting="sql")),
        ("DELETE FROM t", breaks("records", setting="sql")),
        ("SELECT y, y FROM t", breaks("unique", "y")),
        ("SELECT * FROM t WHERE 0", breaks("enough", setting="sql")),
    ):
        with refuses(words) as error:
            loaded(Query(query.url, sql))
        assert "\n" not in owner_text(error.value)
    with refuses("path", setting="database"):
        loaded(Query("sqlite:///nowhere.db", "SELECT 1"))
    write(tmp_path, b"SQLite format 3\0" + b"x" * 4000, "bad.db")
    with refuses("file"):
        loaded(Query(f"sqlite:///{tmp_path / 'bad.db'}", "SELECT * FROM t"))
    with sqlite3.connect(tmp_path / "b.db") as database:
        database.execute("CREATE TABLE t (b, y)")
        database.executemany("INSERT INTO t VALUES (?, ?)", [(b"\0\xff", k % 2) for k in range(4)])
    with refuses("records", "b: empty"):
        load(Query(f"sqlite:///{tmp_path / 'b.db'}", "SELECT * FROM t"), target="y")


def test_dates_are_features_and_lists_and_bytes_are_left_out(tmp_path: Path) -> None:
    duckdb.sql(
        "COPY (SELECT DATE '2001-02-03' + k::INT AS born, [1, 2] AS many, 'x'::BLOB AS raw, k AS a, k % 2 AS y"
        " FROM range(9) r(k))"
        f" TO '{tmp_path}/d.parquet'"
    )
    assert load(tmp_path / "d.parquet", target="y").feature_names == ("born", "a", "(intercept)")
    schema = Schema((Date("born", date(2001, 2, 3), date(2001, 2, 11)),), Labels("y", ("1",), ("0",)), intercept=False)
    data = load(tmp_path / "d.parquet", schema=schema, test_fraction=0.0)
    assert np.allclose(data.X[:, 0], np.arange(9) / 8, atol=1e-12)
    lists = Schema((Numeric("many", 0, 1),), schema.target)
    with refuses("usage", "many", "d.parquet", setting="drop"):
        load(tmp_path / "d.parquet", schema=lists)


@pytest.mark.parametrize("cut", [0.3, 0.7, 0.999])
@pytest.mark.parametrize("way", [as_parquet, as_feather], ids=lambda way: way.__name__)
def test_a_file_cut_short_is_damaged(way: Any, cut: float, tmp_path: Path) -> None:
    path = way(rows_of(), tmp_path)
    path.write_bytes(path.read_bytes()[: int(cut * path.stat().st_size)])
    with pytest.raises(UsageError) as error:
        loaded(path)
    assert (error.value.code, error.value.setting) in (("file", None), ("records", None))  # before it is read, or then
    assert named(path.name, owner_text(error.value)) and "\n" not in owner_text(error.value)


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path: Path) -> None:
    for path in (as_csv(rows_of(), tmp_path).path, as_parquet(rows_of(), tmp_path)):
        with (
            opened(CsvFile(path) if path.suffix == ".txt" else path) as (table, _),
            refuses("file"),
        ):
            for _ in table.blocks([table.number("count") + " + 0"]):
                size, times = path.stat().st_size, path.stat().st_mtime_ns
                data = path.read_bytes()
                path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
                assert path.stat().st_size == size and times
    digest = file_digest(path)
    path.unlink()
    with refuses("file"):
        check_unchanged(path, digest)


@pytest.mark.parametrize("way", [as_csv, as_parquet], ids=lambda way: way.__name__)
def test_a_file_that_stands_is_read_for_its_digest_once(
    way: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However often it is asked whether it has changed; what was changed in the last seconds is read each time."""
    asked = []
    digest = hashlib.file_digest
    monkeypatch.setattr(hashlib, "file_digest", lambda file, name: asked.append(file.name) or digest(file, name))
    source = way(rows_of(), tmp_path)
    path = source.path if isinstance(source, CsvFile) else source
    for settled, readings in ((2**62, 3), (-(2**62), 0 if way is as_csv else 1)):  # a text is scanned when it is opened
        monkeypatch.setattr(files, "_SETTLED", settled)
        asked.clear()
        with opened(source) as (table, _):
            for _ in range(2 if way is as_parquet else 3):
                table.unchanged()
        assert len(asked) == readings
    found = file_digest(path)
    path.write_bytes(path.read_bytes() + b"\n")
    assert file_digest(path) == hashlib.sha256(path.read_bytes()).hexdigest() != found


def test_what_is_held_is_read_from_the_source_no_more(tmp_path: Path, expected: tuple[Any, Any]) -> None:
    """So a text is parsed once, however often its records are needed."""
    source = as_csv(rows_of(), tmp_path)
    with opened(source) as (table, private):
        names = [*(column.name for column in SCHEMA.columns), "y"]
        records = OpenTable(held(table, names), private)
        source.path.unlink()
        again = loaded(records)
    assert (again.X == expected[0]).all() and (again.y == expected[1]).all()
    with refuses("path"):
        loaded(source)


def test_folders_whose_files_differ(tmp_path: Path) -> None:
    write(tmp_path, "a,y\n1,0\n", "1.csv")
    write(tmp_path, "a,b\n1,0\n", "2.csv")
    with refuses("column", "1.csv", "2.csv"):
        load(tmp_path, target="y")
    (tmp_path / "2.csv").unlink()
    duckdb.sql(f"COPY (SELECT 1 AS a, 0 AS y) TO '{tmp_path}/3.parquet'")
    with refuses("column", "a", "1.csv", "3.parquet"):
        load(tmp_path, target="y")
    duckdb.sql(f"COPY (SELECT 'x' AS a, 0 AS y) TO '{tmp_path}/1.parquet'")
    (tmp_path / "1.csv").unlink()
    with refuses("column", "a", "1.parquet", 3):
        load(tmp_path, target="y")


@pytest.mark.parametrize(
    ("name", "text", "broken"),
    [
        ("a.xyz", "a\n1\n", breaks("file", "a.xyz", setting="csv")),
        ("a.jsonl", '{"a": 1}\n{"a": \n', breaks("records", "a.jsonl")),
        ("a.jsonl", '{"y": 1, "a": 1, "a": 2}\n' * 2, breaks("records", "a.jsonl")),
        ("a.parquet", "no parquet", breaks("records", "a.parquet")),
        ("a.arrow", "no arrow", breaks("file", "a.arrow")),
        ("a.csv.gz", "no gzip but text\n1\n", breaks("column", "y")),
        ("a.jsonl", "", breaks("enough", "a.jsonl")),
    ],
)
def test_files_that_are_no_tables(tmp_path: Path, name: str, text: str, broken: Rule) -> None:
    with refuses(broken) as error:
        load(str(write(tmp_path, text, name)), target="y")
    assert "\n" not in owner_text(error.value)


def test_sources_that_are_not_there(tmp_path: Path) -> None:
    for source, words in (
        ("https://example.org/a.csv", breaks("path", setting="records")),
        (str(tmp_path / "*.csv"), breaks("path", setting="records")),
        (str(tmp_path), breaks("path", setting="records")),
        (str(tmp_path / "a.parquet"), breaks("path")),
        (42, breaks("type")),
        ({"a": np.zeros(3), "y": np.zeros(2)}, breaks("shape", 2)),
        ({"a": np.zeros((3, 2)), "y": np.zeros(3)}, breaks("shape", 2)),
        ({"a": np.zeros(3, dtype=complex), "y": np.zeros(3)}, breaks("column", "a")),
        (pd.DataFrame([[1, 2]], columns=["y", "y"]), breaks("unique", "y")),
        (pd.DataFrame({"a": [], "y": []}), breaks("enough")),
    ):
        with refuses(words):
            load(source, target="y")


def test_names_that_differ_in_case_only(tmp_path: Path) -> None:
    """DuckDB takes VA and va for one name. In CSV both are read; elsewhere they are refused rather than mixed up."""
    names, cells = cells_of(CsvFile(write(tmp_path, "VA,va\n1,2\n")))
    assert names == ("VA", "va") and cells == [["1", "2"]]
    pa.parquet = pytest.importorskip("pyarrow.parquet")
    pa.parquet.write_table(pa.table({"VA": [1], "va": [2]}), str(tmp_path / "a.parquet"))
    with refuses("unique", "VA", "va"):
        load(tmp_path / "a.parquet", target="va")


def test_the_spool_of_a_query_is_private_and_gone(tmp_path: Path) -> None:
    query, connection = as_sqlite(rows_of(), tmp_path), duckdb.connect()
    table = open_database(query.url, query.sql, connection, tmp_path)
    assert table.n == N
    with opened(query, folder=tmp_path) as (_table, private):
        assert (private.stat().st_mode & 0o777) == 0o700 and any(private.iterdir())
    assert not private.exists()


def test_nothing_is_printed_or_fetched() -> None:
    """A slow reading draws no bar on standard output, and no extension is loaded over the network."""
    with opened({"a": np.zeros(3)}) as (table, _):
        for setting in ("enable_progress_bar", "autoinstall_known_extensions", "autoload_known_extensions"):
            assert table.connection.execute(f"SELECT current_setting('{setting}')").fetchall() == [(False,)]


def test_a_query_that_chooses_records_is_warned_about() -> None:
    """Quoted words and comments choose nothing."""
    for query, said in (
        ("SELECT * FROM patients WHERE ill = 1", "WHERE"),
        ("select age from a join b using (id)", "JOIN"),
        ("SELECT DISTINCT age FROM a", "DISTINCT"),
        ("SELECT age FROM a LIMIT 5", "LIMIT"),
        ("SELECT age FROM a OFFSET 5", "OFFSET"),
        ("SELECT age FROM a ORDER BY b FETCH FIRST 5 ROWS ONLY", "FETCH"),
        ("SELECT age FROM a TABLESAMPLE SYSTEM (5)", "TABLESAMPLE"),
        ("SELECT a.age FROM a, b", "of several tables"),
        ("SELECT a.age FROM s.a AS x , b", "of several tables"),
        ("SELECT age, sex FROM s.a AS x ORDER BY age, sex", ""),
        ("SELECT 'where' AS x, \"limit\" FROM a -- where\n", ""),
        ("SELECT age, whereabouts FROM a /* having */", ""),
    ):
        text = filtered_by(query)
        assert (f"({said})" in text and "capacity" in text) if said else text == "", query
    assert filtered_by(None) == ""


@pytest.mark.parametrize(
    ("name", "head", "known", "about"),
    [
        ("t.duckdb", b"12345678DUCK\0", "DuckDB", None),
        ("t.duckdb", b"a;b\n", "DuckDB", None),
        ("t.bin", b"SQLite format 3\0", "SQLite", "database"),
        ("t.xlsx", b"PK\x03\x04\0", "spreadsheet", None),
        ("t.bin", b"abc", "rename", "csv"),
    ],
)
def test_a_file_of_another_kind_is_told_the_way_by_what_it_is(
    name: str, head: bytes, known: str, about: str | None, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(head)
    with refuses("file", name, known, setting=about), opened(tmp_path / name):
        pass
    if b"\0" in head:
        with refuses("file", name, known, setting=about), opened(CsvFile(tmp_path / name)):
            pass


@pytest.mark.parametrize("name", ["?1", "*", "x[1]", "[x]1", "~t", "it's {x}", "{x,y}1", "a b"])
def test_a_file_is_read_by_its_name_which_is_no_pattern(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for neighbour in ("x1", "y1"):
        pd.DataFrame({"a": [1.0, 2.0]}).to_parquet(f"{neighbour}.parquet")
        Path(f"{neighbour}.csv").write_text("a\n1\n2\n")
    folder = Path(name)
    folder.mkdir()
    for path in (Path(f"{name}.csv"), Path(f"{name}.parquet"), folder / f"{name}.csv"):
        if path.suffix == ".csv":
            path.write_text("a\n7\n")
        else:
            pd.DataFrame({"a": [7.0]}).to_parquet(str(path.absolute()))
        with opened(path) as (table, _):
            assert table.n == 1 and table.one(f"sum({table.number('a')})")[0] == 7.0
