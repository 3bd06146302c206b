"""One look at every column: exports of several countries and random mixes of habits, from file to schema and model."""

import json
import math
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from dpmpc.cli.main import group as dpmpc_command
from dpmpc.cli.main import named
from dpmpc.codec import of_json
from dpmpc.errors import RecordError, owner_text
from dpmpc.intake import describe as describe_module
from dpmpc.intake.csvfile import EncodingError
from dpmpc.intake.profile import TableProfile, explore, look
from dpmpc.intake.reading import days_sql, number_sql
from dpmpc.intake.spelling import Spelling
from dpmpc.intake.table import Table
from dpmpc.records import CsvFile, Schema, load
from dpmpc.records.draft import rounded
from dpmpc.records.loading import opened
from dpmpc.records.schema import VERSION
from tests.intake.abroad import ABROAD
from tests.intake.exports import EXPORTS, GERMAN, Export, random_export
from tests.refusals import Rule, breaks, refuses
from tests.tables import write

describe_command = named("describe")

pytestmark = pytest.mark.usefixtures("small_tables")


def run(command: Any, *arguments: object) -> Result:
    return CliRunner().invoke(command, [str(a) for a in arguments], standalone_mode=False, catch_exceptions=False)


def settled(spelling: Spelling, export: Export) -> Spelling:
    """What the exports say must be stated, but for an encoding that the file's own mark says."""
    return replace(spelling, encoding="" if export.encoding in ("utf-8", "utf-16", "utf-8-sig") else export.encoding)


def accounted_for(found: TableProfile, export: Export) -> None:
    """Every column of an export is found, and its spelling."""
    assert {c.name: c.kind for c in found.columns if c.role == "feature"} == export.kinds
    assert replace(found.proposed, encoding="") == replace(export.spelling, encoding="")
    assert {c.name for c in found.features} == {
        name for name, kind in export.kinds.items() if kind in ("number", "category", "date", "time")
    }
    for c in found.columns:
        assert c.does and c.why and (c.change or c.kind in ("constant", "empty") or c.role == "target")
        assert c.kind not in ("number", "date") or c.unread == 0 or c.name == "PCR"  # which has remarks


def taken_over(path: Path, export: Export) -> TableProfile:
    """What is found where a second look takes over what the first found of columns whose fields it reads alike, of as
    many columns as it can: each has many texts then. It is what is found without."""
    with pytest.MonkeyPatch.context() as patch, opened(CsvFile(path), guess=True) as (table, _):
        patch.setattr("dpmpc.intake.dictionary.MOST", 4)
        patch.setattr("dpmpc.intake.profile.ONCE", 0)
        return explore(table, target=export.target)[0]


@pytest.mark.parametrize("seed", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in range(1, 12))])
def test_random_mixes_of_habits_are_found(seed: int, tmp_path: Path) -> None:
    export = random_export(seed)
    path = export.write(tmp_path, 300, seed)
    with opened(CsvFile(path)) as (table, _):
        found, _plain = explore(table, target=export.target)
    assert {c.name: c.kind for c in found.columns if c.role == "feature"} == export.kinds
    if seed < 6:
        assert taken_over(path, export) == found
    assert all(c.unread == 0 for c in found.columns) and found.asks == ()
    assert found.proposed == replace(export.spelling, missing=tuple(w.lower() for w in export.spelling.missing))


@pytest.mark.slow
@pytest.mark.parametrize("export", [*EXPORTS, *ABROAD], ids=lambda e: e.name)
def test_from_file_to_model_in_the_first_try(export: Export, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """describe proposes the options, and drafts a schema that train accepts; every column is accounted for."""
    looked: list[TableProfile] = []

    def heard(*arguments: Any, **settings: Any) -> tuple[TableProfile, Table]:
        found, plain = explore(*arguments, **settings)
        looked.append(found)
        return found, plain

    monkeypatch.setattr(describe_module, "explore", heard)
    rows = 2100 if export is GERMAN else 300  # more than DuckDB reads at once
    path, draft, out = export.write(tmp_path, rows), tmp_path / "schema.toml", tmp_path / "run"
    if export in EXPORTS[::5]:  # as `explore` has it of all of them above
        first = run(describe_command, path, "--target", export.target, "--json")
        proposed = json.loads(first.stdout)["proposed"]
        assert of_json(Spelling, {**proposed, "encoding": ""}) == replace(export.spelling, encoding="")
    shown = run(describe_command, path, "--target", export.target, "--schema", draft)
    accounted_for(looked[-1], export)
    if export in EXPORTS:
        assert taken_over(path, export) == looked[-1]
    line = next((line for line in shown.output.splitlines() if line.startswith("read as with these options")), "")
    options = shlex.split(line.partition(": ")[2])
    assert bool(options) == bool(settled(export.spelling, export).options())
    for name, kind in export.kinds.items():
        assert f"{name}: {kind}, " in shown.output
    schema = Schema.read(draft)
    used = {column.name for column in schema.columns}
    assert used == {name for name, kind in export.kinds.items() if kind in ("number", "category", "date", "time")}
    left = draft.read_text().partition("# Left out:")[2]
    assert all(json.dumps(name, ensure_ascii=False) in left for name in export.kinds.keys() - used)
    trained = run(
        dpmpc_command, "train", "--csv", path, "--schema", draft, *options, "--owners", 2, "--epsilon", 5,
        "--delta", 1e-5, "--engine", "clear", "--iterations", 3, "--out", out,
    )  # fmt: skip
    assert trained.exit_code == 0, trained.output
    model = np.load(out / "model.npz")
    assert tuple(model["feature_names"]) == schema.feature_names
    predicted = run(dpmpc_command, "predict", out, "--csv", path, *options)
    assert predicted.exit_code == 0
    assert len(predicted.stdout.splitlines()) == 1 + rows


def spelled(texts: list[str], spelling: Spelling, sql: str) -> list[float | None]:
    with opened({"t": np.array(texts, dtype=object), "k": np.arange(len(texts))}) as (table, _):
        made = number_sql if sql == "number" else days_sql
        text = table.text("t")
        expression = made(text, spelling, loose=True) if sql == "number" else made(text, spelling)  # type: ignore[call-arg]
        found = [row[0] for row in table.rows(expression, 'ORDER BY "k"')]
        return [None if value is None or not math.isfinite(value) else value for value in found]


def fields(seed: int, n: int = 4000) -> list[str]:
    """Numbers and dates in all spellings, and what is nearly one."""
    rng = np.random.default_rng(seed)

    def field() -> str:
        what = rng.random()
        if what < 0.4:
            tails = (
                "",
                ",5",
                ".5",
                ".123",
                ",123",
                ",123,456",
                ".123.456,7",
                ",23,456",
                ",23,456.7",
                "'123",
                "\u202f123",
                "\u00a0123,4",
                "e5",
                "_1",
            )
            digits = (str(rng.integers(10 ** rng.integers(1, 8))),)
            units = ("", "$", "$ ", "CHF ", "€"), ("", " kg", "%", "kg", " lb", "\u00a0€")
            parts = (("", "-", "+"), units[0], ("", "-"), digits, tails, units[1])
            made = "".join(str(rng.choice(part)) for part in parts)
            return str(rng.choice(["", "", "", "(", "\u2212"])) + made + str(rng.choice(["", "", "", ")"]))
        if what < 0.5:
            word = str(rng.choice(["Mar", "march", "SEPT", "Sep.", "May", "Juni", "Oktober", "Dec", "Febr", "jan"]))
            day, year = str(rng.integers(33)) + str(rng.choice(["", "st", "th"])), rng.choice(["2024", "99", "1900"])
            marks = [str(rng.choice(["-", " ", "/", ". ", ", ", "", " of "])) for _ in range(2)]
            parts = [day, word, year] if rng.random() < 0.6 else [word, day, year]
            return parts[0] + marks[0] + parts[1] + marks[1] + parts[2] + str(rng.choice(["", " 10:30", " 1:05 pm"]))
        if what < 0.55:
            year, month, day = rng.integers(1890, 2030), rng.integers(14), rng.integers(33)
            return f"{year}年{month}月{day}{rng.choice(['日', '', '号'])}"
        if what < 0.8:
            two = [f"{rng.integers(33):0{rng.integers(1, 3)}d}" for _ in range(2)]
            year = f"{rng.choice([1899, 1999, 2024, 21, 99, 0, 5]):0{rng.choice([2, 4])}d}"
            clock = rng.choice(["", " 10:30", "T23:59:59", "T24:00", " 11:15 PM", " 12:00 am", " 0:15 pm", "T10:00:00Z",
                                "T10:00:00.123+02:00", ", 3:04", " 10:5"])  # fmt: skip
            return str(rng.choice(["-", "/", "."])).join([*two, year] if rng.random() < 0.6 else [year, *two]) + clock
        return "".join(rng.choice(list("0123456789.,' -/:kgeE+"), rng.integers(1, 9)))

    return [field().strip() for _ in range(n)]


SPELLINGS = (
    Spelling(),
    Spelling(","),
    Spelling(",", ".", "dmy"),
    Spelling(".", ",", "mdy", 1930),
    Spelling(",", " ", "dmy", 2000),
    Spelling(".", "'", units=("CHF", "kg", "€")),
    Spelling(",", units=("$", "%", "kg", "€")),
)


@pytest.mark.parametrize(
    "spelling", [SPELLINGS[0], *(pytest.param(s, marks=pytest.mark.slow) for s in SPELLINGS[1:])], ids=str
)
def test_the_database_reads_a_field_as_the_rule_says(spelling: Spelling) -> None:
    texts = fields(1)
    for sql, rule in (("number", spelling.number), ("days", spelling.days)):
        expected = [rule(text) for text in texts]
        assert sum(value is not None for value in expected) > 30
        assert spelled(texts, spelling, sql) == expected


@pytest.mark.slow
@pytest.mark.parametrize("spelling", SPELLINGS[1:4], ids=str)
def test_what_a_field_reads_as_depends_on_that_field_alone(spelling: Spelling, tmp_path: Path) -> None:
    """One record "1,5" does not turn every "1.234" into 1234: each row of a file is what it is in other company, and
    some are what they are in a file of their own."""
    texts = [text for text in fields(2, 80) if text and "\n" not in text]
    schema = Schema.from_json(
        {"version": VERSION, "columns": [{"kind": "number", "name": "v", "low": -1e5, "high": 1e5},
                                   {"kind": "date", "name": "v2", "first": "1900-01-01", "last": "2030-01-01"}],
         "target": {"kind": "label", "name": "y", "positive": [1], "negative": [0]}}
    )  # fmt: skip

    def rows(some: list[str]) -> Any:
        table = {"v": np.array(some, dtype=object), "v2": np.array(some, dtype=object), "y": np.ones(len(some))}
        return load(table, schema=schema, test_fraction=0.0, spelling=spelling).X

    together = rows(texts)
    mixed = np.random.default_rng(3).permutation(len(texts))
    for company in (*np.array_split(mixed, 4), *mixed[:6, None]):
        assert np.array_equal(rows([texts[k] for k in company]), together[company]), company


def test_a_field_like_1_point_234_is_what_was_stated(tmp_path: Path) -> None:
    path = write(tmp_path, "v;y\n1.234;0\n1,5;1\n1.234,5;0\n")
    for spelling, expected in (
        (Spelling(), [1.234, None, None]),
        (Spelling(","), [None, 1.5, None]),
        (Spelling(",", "."), [1234, 1.5, 1234.5]),
    ):
        with opened(CsvFile(path), spelling=spelling) as (table, _):
            assert [row[0] for row in table.rows(f"{table.number('v')}, c0")] == expected


def test_encodings_are_stated_or_marked_and_else_named(tmp_path: Path) -> None:
    text = "Prénom,y\nZoë,1\n"
    for encoding, stated in (("cp1252", "cp1252"), ("latin-1", "iso-8859-1"), ("utf-16", ""), ("utf-8-sig", "cp1252")):
        path = write(tmp_path, text.encode(encoding))
        with opened(CsvFile(path), spelling=Spelling(encoding=stated)) as (table, _):
            assert table.names == ("Prénom", "y") and table.rows(table.text("Prénom")) == [("Zoë",)]
    path = write(tmp_path, text.encode("cp1252"))
    with (
        refuses("records", 2, "encoding='cp1252'", kind=EncodingError),
        opened(CsvFile(path)),
    ):
        pass
    with refuses("records", "cp1252", kind=EncodingError):
        with opened(CsvFile(write(tmp_path, b"a,b\n\x81,1\n")), spelling=Spelling(encoding="cp1252")):
            pass
    assert '"encoding": "cp1252"' in run(describe_command, write(tmp_path, text.encode("cp1252")), "--json").stdout


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"decimal": ";"}, breaks("choice", ";", setting="decimal")),
        ({"decimal": ",", "thousands": ","}, breaks("unique", ",", setting="decimal")),
        ({"units": ("5",)}, breaks("type", 5, setting="units")),
        ({"century": 30}, breaks("range", 30, setting="century")),
        ({"encoding": "klingon"}, breaks("unknown", "klingon", setting="encoding")),
    ],
)
def test_spellings_that_cannot_be(given: dict[str, Any], words: Rule) -> None:
    with refuses(words):
        Spelling(**given)
    assert of_json(Spelling, json.loads(json.dumps(SPELLINGS[5].options()))) == SPELLINGS[5]


@pytest.mark.slow
def test_all_that_must_be_stated_is_asked_at_once_and_for_the_owner_alone(tmp_path: Path) -> None:
    path = GERMAN.write(tmp_path, 200)
    with pytest.raises(RecordError) as error:
        load(CsvFile(path), target=GERMAN.target)
    said = owner_text(error.value)
    for name in ("Gewicht", "Kosten", "Aufnahme", "Kalium"):
        assert name in said or "..." in said
    for setting in ("decimal=','", "thousands='.'", "dates='dmy'", "units=('kg',)"):
        assert setting in said
    assert error.value.message == "an owner's records are spelled otherwise than it stated"
    data = load(CsvFile(path), target=GERMAN.target, spelling=replace(GERMAN.spelling), test_fraction=0.0)
    assert {name.partition("#")[0] for name in data.feature_names[:-1]} == {
        name for name, kind in GERMAN.kinds.items() if kind in ("number", "category", "date")
    }


TABLES = {
    "no usable column": (
        "a,b,y\n" + "".join(f"x{k},same,{k % 2}\n" for k in range(30)),
        breaks("records", "t.csv"),
    ),
    "one class": ("a,y\n" + "".join(f"{k % 7},0\n" for k in range(30)), breaks("records", "y", 0)),
    "one record": ("a,y\n1,0\n", breaks("enough")),
    "a class that one record has": (
        "a,y\n" + "".join(f"{k % 7},{k == 3:d}\n" for k in range(30)),
        breaks("records", 1),
    ),
    "no target": ("a,b\n1,0\n2,1\n", breaks("column", "y")),
}


@pytest.mark.parametrize("name", TABLES)
def test_tables_that_cannot_be_trained_on_get_one_line(name: str, tmp_path: Path) -> None:
    text, broken = TABLES[name]
    with refuses(broken) as error:
        load(CsvFile(write(tmp_path, text)), target="y")
    assert "\n" not in owner_text(error.value)
    if "y" in text.partition("\n")[0]:  # to look at it is always possible
        assert run(describe_command, write(tmp_path, text), "--target", "y").exit_code == 0


@pytest.mark.slow
def test_wide_tables(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    names = [f"c{k}" for k in range(200)]
    rows = [
        ",".join([*(f"{v:.3f}" if k % 2 else "abc"[int(v * 3)] for k, v in enumerate(rng.random(200))), str(k % 2)])
        for k in range(40)
    ]
    path = write(tmp_path, "\n".join([",".join([*names, "y"]), *rows]))
    with opened(CsvFile(path)) as (table, _):
        found, _plain = look(table, target="y")
    assert [c.kind for c in found.columns[:200]] == ["category", "number"] * 100


def test_ranges_hold_all_values_and_are_none_of_them() -> None:
    rng = np.random.default_rng(3)
    for _ in range(2000):
        span = 10.0 ** rng.uniform(-6, 9)
        low = rng.normal() * span * 10.0 ** rng.integers(-3, 4)
        a, b = rounded(low, low + span)
        assert a <= low and low + span <= b and b - a <= 1.5 * (low + span - low) + 1e-9 * abs(low)
        assert low not in (a, b) and low + span not in (a, b)
    assert rounded(17, 97) == (10, 100) and rounded(0, 1) == (0, 1) and rounded(1.5, 1.5)[0] < 1.5
    assert rounded(-1.7e308, 1.7e308) == (-8e307, 8e307)  # what is larger is clipped: a range has a width
    for low, high in ((0.0, 5e-324), (1.2345678901234, 1.2345678901236), (-1.7e308, 3.0), (1.7e308, 1.7e308)):
        ends = rounded(low, high)
        assert ends[0] < ends[1] and np.isfinite(ends[1] - ends[0]) and low not in ends[low == 0 :] and high not in ends


def test_records_that_do_not_fit_count_as_zero_vectors_when_that_was_stated(tmp_path: Path) -> None:
    path = write(tmp_path, "a,y\n1,0\n2,1\n3,maybe\n4,\n")
    schema = Schema.from_json(
        {"version": VERSION, "columns": [{"kind": "number", "name": "a", "low": 0, "high": 4}],
         "target": {"kind": "label", "name": "y", "positive": [1], "negative": [0]}}
    )  # fmt: skip
    with refuses("records", "maybe", 2, 4) as error:
        load(CsvFile(path), schema=schema)
    assert "maybe" not in error.value.message and "2" not in error.value.message
    data = load(CsvFile(path), schema=schema, spelling=Spelling(misfits="zero"), test_fraction=0.0)
    assert data.n == 4 and not data.X[2:].any() and data.X[:2, 1].all() and data.y.tolist() == [-1, 1, 0, 0]


@pytest.mark.parametrize(
    ("text", "spelling", "number"),
    [
        ("\u22121.5", Spelling(), -1.5),
        (" \u22125 kg", Spelling(units=("kg",)), -5.0),
        ("($1,234.50)", Spelling(thousands=",", units=("$",)), -1234.5),
        ("(1.234,50 €)", Spelling(",", ".", units=("€",)), -1234.5),
        ("(5)", Spelling(units=("$",)), None),  # a mark or an amount: ambiguity reads nothing
        ("($5)", Spelling(), None),
        ("($-5)", Spelling(units=("$",)), None),
        ("\u2212\u22125", Spelling(), None),
        ("5\u2212", Spelling(), None),
    ],
)
def test_negative_numbers_as_accounts_and_spreadsheets_write_them(
    text: str, spelling: Spelling, number: float | None
) -> None:
    assert spelling.number(text) == number
    assert spelled([text.strip()], spelling, "number") == [number]


def test_what_is_said_of_a_column_is_so(tmp_path: Path) -> None:
    rows = [
        f"{7000 + k};P{k // 2};{'<5' if k % 9 == 0 else '1000+' if k % 9 == 1 else f'{k},25'};{k % 2}"
        for k in range(3000)
    ]
    path = write(tmp_path, "Fall;Schein;CRP;y\n" + "\n".join(rows))
    with opened(CsvFile(path)) as (table, _):
        found, _plain = explore(table, target="y")
    assert found["Fall"].kind == "identifier" and found["Fall"].distinct == 3000
    assert found["Schein"].why == "1500 different values: too many to list"
    assert found["CRP"].odd == ("1000+", "<5") and found["CRP"].unread == 668
    assert [value for value, _ in found["y"].values] == ["0", "1"]  # in the spelling of a file with decimal commas
    lines = [line for line in found.findings if not line.startswith("please decide")]
    assert len(lines) == 5 and lines[-1].endswith("to leave them out: <<drop=['Fall', 'Schein']>>")
    assert lines[0].startswith("column 'CRP' has fields such as '<5', which count as missing")
