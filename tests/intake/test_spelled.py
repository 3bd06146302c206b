"""Columns of few spellings: what is worked out once a spelling is what is worked out once a record, to the last bit."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmpc.intake import table as tables
from dpmpc.intake import text_facts as texts
from dpmpc.intake.column_profile import ColumnProfile
from dpmpc.intake.csvfile import open_csv
from dpmpc.intake.dictionary import TIMES, different, few, figureless, lacks
from dpmpc.intake.hashing import BUCKETS, bucket_sql
from dpmpc.intake.profile import look
from dpmpc.intake.staging import held
from dpmpc.intake.table import Block, Table, code_sql, value_sql
from dpmpc.intake.text_facts import facts_of_texts
from dpmpc.records import spelled
from dpmpc.records.classes import target_read
from dpmpc.records.derive import TableSettings
from dpmpc.records.loading import opened
from dpmpc.records.mapping import first_missing, first_row, owner_numbers
from dpmpc.records.schema import Labels, Range
from dpmpc.records.spelled import readers

pytestmark = pytest.mark.usefixtures("small_tables")

TEXTS = [None, "", " 7 ", "7", "1e3", "-0.1", "nan", "1_0", "it's", "a\\tb", "a\tb", "True", "NA", "2024-03-05",
         "Mar 5, 2024", "é", "0x10", "inf"]  # fmt: skip


def asked(table: Table) -> list[str]:
    """Of every kind that is asked of a column of texts."""
    return [
        value_sql(table, "t", read="either"),
        value_sql(table, "t", read="date"),
        bucket_sql(table, "t", BUCKETS),
        code_sql(table, "t", {"7": 0, "true": 1, "é": 2}),
    ]


@pytest.mark.parametrize("many", [False, True])
def test_a_spelling_is_read_as_its_records_are(tmp_path: Path, many: bool) -> None:
    rng = np.random.default_rng(3)
    texts = [TEXTS[k] for k in rng.integers(len(TEXTS), size=3000)]
    if many:  # of which each may be different: asked record by record
        texts = [text if k % 2 else f"{text} {k}" for k, text in enumerate(texts)]
    with opened({"t": np.array(texts, dtype=object)}, folder=tmp_path) as (table, _):
        how = readers(table, {"t": asked})["t"]
        assert bool(how.values) is not many
        plain = [np.concatenate(parts) for parts in zip(*table.blocks(asked(table)), strict=True)]
        found = [np.concatenate(parts) for parts in zip(*map(how.read, table.blocks(how.expressions)), strict=True)]
    for one, other in zip(plain, found, strict=True):
        assert one.dtype == other.dtype and one.tobytes() == other.tobytes()


def test_one_late_spelling_too_many_is_seen(tmp_path: Path) -> None:
    texts = ["a"] * 20000 + [f"b{k}" for k in range(300)]
    with opened({"t": np.array(texts, dtype=object)}, folder=tmp_path) as (table, _):
        assert not readers(table, {"t": asked})["t"].values


def test_numbers_are_asked_for_themselves(tmp_path: Path) -> None:
    with opened({"t": np.arange(5.0)}, folder=tmp_path) as (table, _):
        how = readers(table, {"t": lambda each: [value_sql(each, "t")]})["t"]
        assert not how.values and how.expressions == (value_sql(table, "t"),)


def test_all_columns_are_asked_in_one_query_and_none_has_another_ones_spellings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = {
        "a": np.array(["x", "7", None, " 7 ", "x"], dtype=object),
        "b": np.array(["y", "x", "it's", "2024-03-05", ""], dtype=object),
        "c": np.arange(5.0),
    }

    def both(name: str) -> Callable[[Table], list[str]]:
        return lambda each: [value_sql(each, name, read="either"), bucket_sql(each, name, BUCKETS)]

    queries, read = [], Table.blocks

    def counted(self: Table, expressions: Sequence[str], tail: str = "") -> Iterator[Block]:
        queries.append(tuple(expressions))
        return read(self, expressions, tail)

    monkeypatch.setattr(Table, "blocks", counted)
    with opened(columns, folder=tmp_path) as (table, _):
        made = readers(table, {name: both(name) for name in columns})
        assert len(queries) == 1 and len(queries[0]) == len(set(queries[0])) == 4  # which, the value, two buckets
        for name, how in made.items():
            plain = [np.concatenate(parts) for parts in zip(*read(table, both(name)(table)), strict=True)]
            found = [np.concatenate(parts) for parts in zip(*map(how.read, read(table, how.expressions)), strict=True)]
            assert [each.tobytes() for each in plain] == [each.tobytes() for each in found]
            assert all(len(values) == {"a": 4, "b": 6}[name] for values in how.values)


@pytest.mark.parametrize(("rows", "columns", "together"), [(1500, 5, True), (1500, 2, False), (2049, 3, False)])
def test_columns_of_many_spellings_are_planned_once_and_read_as_each_by_itself(
    tmp_path: Path, rows: int, columns: int, together: bool
) -> None:
    """Of few records and several columns; to the last bit."""
    rng = np.random.default_rng(5)
    names = ['a"b', "t", "list", "(v)", "e0"][:columns]
    texts = {n: [TEXTS[k] for k in rng.integers(len(TEXTS), size=rows)] for n in names}
    kept = {n: [t if k % 2 else f"{t} {k}" for k, t in enumerate(some)] for n, some in texts.items()}
    with opened({n: np.array(some, dtype=object) for n, some in kept.items()}, folder=tmp_path) as (table, _):
        both = {n: (lambda t, n=n: [value_sql(t, n, read="either"), bucket_sql(t, n, BUCKETS)]) for n in names}
        made = readers(table, both)
        one, query = (
            tables.asked(", ".join(asked), table.relation, "").count("written_days(")
            for asked in ([both["t"](table)[0]], [each for how in made.values() for each in how.expressions])
        )
        assert query == (one if together else one * columns) > 0
        for name, how in made.items():
            plain = [np.concatenate(parts) for parts in zip(*table.blocks(both[name](table)), strict=True)]
            found = [np.concatenate(parts) for parts in zip(*table.blocks(how.expressions), strict=True)]
            assert [each.tobytes() for each in plain] == [each.tobytes() for each in found]


@pytest.mark.parametrize("many", [False, True])
def test_different_values_are_those_of_all_records_and_few_are_asked_for_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, many: bool
) -> None:
    rng = np.random.default_rng(3)
    texts = [TEXTS[k] for k in rng.integers(len(TEXTS), size=3000)]
    if many:
        texts = [text if k % 2 else f"{text} {k}" for k, text in enumerate(texts)]
    with opened({"t": np.array(texts, dtype=object)}, folder=tmp_path) as (table, _):
        there = f"WHERE NOT {table.missing('t')}"
        plain = table.rows("t, count(*)", f"{there} GROUP BY 1 ORDER BY 1")
        queries: list[str] = []
        run = Table.run

        def counted(self: Table, query: str) -> list[tuple[Any, ...]]:
            queries.append(query)
            return run(self, query)

        monkeypatch.setattr(Table, "run", counted)
        found = [table.rows(f"t, {TIMES}", "ORDER BY 1", different(table, "t")) for _ in range(2)]
        readings = sum(table.relation in query for query in queries)
        assert found == [plain, plain] and (few(table, "t") is None) is many
        assert readings == (3 if many else 1)  # of the first records, which are all; with many each time
        assert not lacks(table, "t") and first_missing(table, "t") == first_row(table, table.missing("t")) > 0


def test_a_column_without_missing_values_needs_no_reading_to_say_so(tmp_path: Path) -> None:
    with opened({"t": np.array(["a", "b"] * 50, dtype=object)}, folder=tmp_path) as (table, _):
        assert lacks(table, "t") and first_missing(table, "t") == 0
    with opened({"t": np.array(["a", "NA"] * 50, dtype=object)}, folder=tmp_path) as (table, _):
        assert not lacks(table, "t") and first_missing(table, "t") == 2


@pytest.mark.slow
def test_what_a_look_finds_does_not_depend_on_names_or_on_other_columns(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    names = ["k", "t", "n", "d", "o", "u", "b", "c", "v", "e0", "h0", "r0"]  # as queries call what they work out
    texts = [*TEXTS, "3,5", "(5)", "5-", "12:30", "1 kg", "1,234.5"]
    values = {name: [texts[k] for k in rng.integers(len(texts), size=200)] for name in names}
    values["u"] = [None] * 200
    values["d"] = [f"{text} {k}" for k, text in enumerate(values["d"])]
    values["k"][0] = "7" * 300  # too long to be listed
    numbers = {name.upper(): rng.integers(0, 4, 200).astype(float) for name in ("ka", "ta")} | {"t1": np.arange(200.0)}

    def found(named: dict[str, str]) -> list[ColumnProfile]:
        columns = {named[name]: np.array(column, dtype=object) for name, column in values.items()}
        with opened(columns | numbers, folder=tmp_path) as (table, _):
            together = [column for column in look(table)[0].columns if column.name in columns]
        for name, column in columns.items():
            with opened({name: column}, folder=tmp_path) as (table, _):
                assert look(table)[0].columns == tuple(each for each in together if each.name == name)
        return [replace(each, name="", why="", forms=each.forms and replace(each.forms, name="")) for each in together]

    assert found({name: name for name in names}) == found({name: f"column {k}" for k, name in enumerate(names)})


@pytest.mark.parametrize("name", ["k", "t", "v"])
def test_a_target_may_be_called_as_queries_call_counts(tmp_path: Path, name: str) -> None:
    with opened({name: np.array(["a", "b", "b"] * 9, dtype=object)}, folder=tmp_path) as (table, _):
        assert target_read(table, TableSettings(name), 1, Range(name, 0.0, 1.0)) == Labels(name, ("b",), ("a",))
        assert owner_numbers(table, name)[1] == ("a", "b")


WORDS = (
    "f", "m", "cardiology", "médecine", "内科", "inf", "-Infinity", "nan", "epoch", "today", "true", "May", "noon",
    "Mon", "令和元年", "+", "-", "()", "a b", " f ", "n/d", "?", "", None, "++", "kl", "h:m", "e", "x.y",
)  # fmt: skip


def test_texts_without_figures_are_asked_little_and_read_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What would read numbers and dates in them takes DuckDB longer to parse than to run."""
    columns = {"a": np.array(WORDS * 3, dtype=object), "b": np.array(["x", "y", None] * len(WORDS), dtype=object)}
    queries, rows, streamed = list[str](), Table.run, tables.streamed

    def seen(connection: object, query: str, *more: object) -> object:
        queries.append(query)
        return streamed(connection, query, *more)  # type: ignore[arg-type]

    def look() -> tuple[dict[str, dict[str, object]], list[bytes], int]:
        queries.clear()
        with opened(columns, folder=tmp_path) as (table, _):
            plain = held(table, list(columns))
            facts = facts_of_texts(plain, list(columns))
            made = readers(plain, {name: lambda each, name=name: read(each, name) for name in columns})
            return facts, [values.tobytes() for how in made.values() for values in how.values], sum(map(len, queries))

    def read(table: Table, name: str) -> list[str]:
        return [value_sql(table, name, read=kind) for kind in ("number", "date", "time", "either")]

    monkeypatch.setattr(Table, "run", lambda self, query: queries.append(query) or rows(self, query))
    monkeypatch.setattr(tables, "streamed", seen)
    short = look()
    monkeypatch.setattr(texts, "figureless", lambda some: False)
    monkeypatch.setattr(spelled, "figureless", lambda some: False)
    long = look()
    assert short[:2] == long[:2] and short[1]
    assert 5 * short[2] < long[2]


@pytest.mark.parametrize("text", ["1", "a1", "٣", "½", "Ⅳ", "二", "x\u00a0", "\U0001f51f", "€"])
def test_what_may_be_a_figure_is_one(text: str) -> None:
    assert figureless(word for word in WORDS if word) and not figureless(["a", text])


def test_files_read_together_have_views_of_their_own(tmp_path: Path) -> None:
    made = []
    with opened({"t": np.array(["a"])}, folder=tmp_path) as (table, _):
        for k in range(3):
            path = tmp_path / f"{k}.csv"
            path.write_text(f"n,m\n{k},0\n")
            made.append(open_csv(path, f"{k}.csv", table.connection, tmp_path))
        assert [each.one("max(c0)")[0] for each in made] == ["0", "1", "2"]
