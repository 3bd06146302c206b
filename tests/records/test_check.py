"""`check`, `describe` and `predict` as a user has them, and four sites that write the same records in four ways."""

import html.parser
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from click.testing import CliRunner, Result

from dpmpc.cli.main import named
from dpmpc.consortium.placement import Placement
from dpmpc.consortium.plan_alone import plan_only
from dpmpc.intake.spelling import Spelling
from dpmpc.intake.writing import write_table
from dpmpc.local.named_records import with_spelling
from dpmpc.planning.request import Request
from dpmpc.records import CsvFile, Schema, load
from dpmpc.records.check import check, schema_in
from dpmpc.records.loading import opened
from dpmpc.records.schema import Classes
from tests.refusals import breaks, refuses
from tests.tables import cells_of, write

check_command = named("check")
describe_command = named("describe")

pytestmark = pytest.mark.usefixtures("small_tables")

SCHEMA = {
    "columns": [
        {"kind": "number", "name": "age", "low": 0, "high": 120},
        {"kind": "category", "name": "stage", "categories": [1, 2, 3, 4]},
        {"kind": "category", "name": "ward", "categories": ["surgery", "general"]},
    ],
    "target": {"kind": "label", "name": "died", "positive": [1], "negative": [0]},
}
ROWS = [(20 + k, 1 + k % 4, ("surgery", "general")[k % 2], k % 3 % 2) for k in range(40)]


def site(folder: Path, name: str, text: str) -> CsvFile:
    return CsvFile(write(folder, text, name))


def run(command: Any, *arguments: object) -> Result:
    return CliRunner().invoke(command, [str(a) for a in arguments], standalone_mode=False, catch_exceptions=False)


def planned(folder: Path, sizes: Sequence[int] = (50, 50), **schema: object) -> Path:
    """The file of a plan for owners of so many records."""
    path = write(folder, json.dumps({**SCHEMA, **schema}), "of_the_plan.json")
    out = folder / f"plan{len(list(folder.iterdir()))}"
    plan_only(Request(schema=str(path), epsilon=1.0, delta=1e-5, owner_sizes=tuple(sizes)), Placement(out=out))
    return out / "plan.json"


@pytest.fixture
def schema(tmp_path: Path) -> Path:
    return write(tmp_path, json.dumps(SCHEMA, indent=1), "schema.json")


def test_four_sites_that_write_alike_records_in_four_ways(tmp_path: Path, schema: Path) -> None:
    """Other orders of columns, 4.0 for 4, other separators, an extra column: the same rows, in the same order."""
    schema = Schema.read(schema)
    spellings = (
        ("age,stage,ward,died", "{a},{s},{w},{d}"),
        ("died;ward;stage;age", "{d}.0;{w};{s}.0;{a}.00"),
        ("ward\tage\tdied\tstage", " {w} \t{a}\t+{d}\t0{s}"),
        ("id,age,stage,ward,died", 'p{a},"{a}",{s}e0,"{w}",{d}'),
    )
    sites = [
        site(tmp_path, f"{k}.csv", "\n".join([header, *(form.format(a=a, s=s, w=w, d=d) for a, s, w, d in ROWS)]))
        for k, (header, form) in enumerate(spellings)
    ]
    data = [load(source, schema=schema, test_fraction=0.0) for source in sites]
    for other in data[1:]:
        assert np.array_equal(other.X, data[0].X) and np.array_equal(other.y, data[0].y)
        assert other.preprocessing == data[0].preprocessing and other.schema.digest == schema.digest
    assert not any(c.unknown or c.missing for other in data for c in other.counts)


def test_what_a_model_file_says_does_not_depend_on_how_a_record_is_spelled(tmp_path: Path) -> None:
    bounds: Any = {"a": [0, 5], "y": [0, 1]}
    plain = load(site(tmp_path, "1.csv", "a,y\n1,1\n2,0\n3,0\n"), target="y", bounds=bounds, test_fraction=0.0)
    spelled = load(site(tmp_path, "2.csv", "a,y\n1,1.0\n2,0\n3,0\n"), target="y", bounds=bounds, test_fraction=0.0)
    one_class = load(site(tmp_path, "3.csv", "a,y\n1,0\n2,0\n3,0\n"), target="y", bounds=bounds, test_fraction=0.0)
    assert plain.preprocessing == spelled.preprocessing == one_class.preprocessing
    assert np.array_equal(plain.y, spelled.y) and plain.task == one_class.task == "logistic"
    with refuses("records", "0.5"):  # the records do not decide what the bounds mean
        load(site(tmp_path, "4.csv", "a,y\n1,0.5\n2,0\n"), target="y", bounds=bounds)


def test_check_counts_by_column_and_says_what_would_be_refused(tmp_path: Path, schema: Path) -> None:
    text = "age,stage,ward,died,extra\n" + "130,1,Surgery,1,x\n,9,general,0,x\n-1,,surgery,1.0,x\n50,4.0,?,0,x\n"
    with opened(site(tmp_path, "a.csv", text)) as (table, _):
        result = check(Schema.read(schema), table)
    assert not result.refused and result.rows == 4
    counts = {c.name: (c.missing, c.unknown, c.clipped) for c in result.counts}
    assert counts == {"age": (1, 0, 2), "stage": (1, 1, 0), "ward": (1, 1, 0)}
    said = " | ".join(f"{f.severity} {f.column} {f.text}" for f in result.found)
    assert "'9' x 1" in said and "'Surgery' x 1 (listed as 'surgery')" in said and "2 of 4 records are 1 (+1)" in said
    assert "note extra not in the schema" in said
    wrong = "age,ward,died\n" + "old,surgery,2\n" * 3
    with opened(site(tmp_path, "b.csv", wrong)) as (table, _):
        result = check(Schema.read(schema), table)
    refused = {f.column: f.text for f in result.found if f.severity == "refused"}
    assert refused["stage"] == "not in b.csv" and "age" not in refused
    noted = {f.column: f.text for f in result.found if f.severity == "note"}
    assert "3 fields are no number as they are spelled, and count as missing: 'old' x 3" in noted["age"]
    assert "3 records have neither class: '2' x 3" in refused["died"] and "or let them count" in refused["died"]


def test_misfits_that_count_as_stated_are_not_refused(tmp_path: Path, schema: Path) -> None:
    path = site(tmp_path, "b.csv", "age,stage,ward,died\n" + "50,1,surgery,2\n" * 3 + "50,1,surgery,1\n")
    with opened(path, spelling=Spelling(misfits="zero")) as (table, _):
        result = check(Schema.read(schema), table)
    [said] = [f for f in result.found if "neither class" in f.text]
    assert not result.refused and result.unfit and said.severity == "unfit"  # three of four
    assert "3 records have neither class: '2' x 3 (of 4); each counts as the zero vector" in said.text


def test_check_warns_of_a_column_that_is_nearly_all_unknown_or_clipped(tmp_path: Path, schema: Path) -> None:
    lines = "".join(f"{1000 if k else 5},x{k % 2},{'general' if k else 'x'},{k % 2}\n" for k in range(20))
    with opened(site(tmp_path, "a.csv", "age,stage,ward,died\n" + lines)) as (table, _):
        found = check(Schema.read(schema), table).found
    warned = {f.column: f.text for f in found if f.severity == "warning"}
    assert "19 of 20 values are clipped" in warned["age"] and "20 of 20 values are unknown" in warned["stage"]
    assert "ward" not in warned


CODED = {
    "age in months": lambda row: (row[0] * 12, *row[1:]),
    "other codes": lambda row: (row[0], f"stage {'I' * row[1]}", *row[2:]),
    "another language": lambda row: (*row[:2], {"surgery": "Chirurgie", "general": "Innere"}[row[2]], row[3]),
    "the target in words": lambda row: (*row[:3], ("well", "ill")[row[3]]),
    "age in words": lambda row: ("old", *row[1:]),
}


@pytest.mark.parametrize("how", CODED)
def test_check_fails_where_hardly_anything_of_a_column_fits(tmp_path: Path, schema: Path, how: str) -> None:
    """In each of the ways in which one site of several codes a column otherwise; half of the values are enough."""
    head = "age,stage,ward,died"
    for share, fails in ((len(ROWS), True), (len(ROWS) // 2 + 1, True), (len(ROWS) // 2, False)):
        rows = [CODED[how](row) if k < share else row for k, row in enumerate(ROWS)]
        lines = "\n".join([head, *(",".join(map(str, row)) for row in rows), ""])
        written = write(tmp_path, lines, f"site{share}.csv")
        result = run(check_command, "--schema", schema, "--records", written, "--misfits", "zero")
        assert (result.return_value == 1) == ("unfit: " in result.output) == fails, (share, result.output)
        last = result.output.splitlines()[-1]
        assert not fails or last == "a run would go on, and learn hardly anything of what does not fit"


def test_check_command(tmp_path: Path, schema: Path) -> None:
    good = write(tmp_path, "age,stage,ward,died\n1,2,general,0\n3,4,surgery,1\n", "good.csv")
    bad = write(tmp_path, "age,ward,died\n1,general,0\n", "bad.csv")
    plan = planned(tmp_path)
    bare = write(tmp_path, json.dumps({"epsilon": 1}), "bare.json")
    result = run(check_command, "--plan", planned(tmp_path, [2, 2]), "--csv", good)
    assert result.return_value == 0 and "2 records" in result.output and "for your own eyes" in result.output
    result = run(check_command, "--schema", schema, "--records", bad)
    assert result.return_value == 1 and "refused: stage: not in bad.csv" in result.output
    none = write(tmp_path, '"x, y",died\n1,0\n', "none.csv")
    result = run(check_command, "--schema", schema, "--records", none)
    assert result.return_value == 1 and "refused: age, stage, ward: not in none.csv\n" in result.output
    assert result.output.count("none.csv") == 2 and "note: 'x, y': not in the schema" in result.output  # title and line
    assert schema_in(plan).digest == schema_in(schema).digest
    with refuses("plan", "bare.json", setting="schema"):
        schema_in(bare)
    with refuses("together"):
        run(check_command, "--csv", good)
    with refuses("missing", 0):
        run(check_command, "--schema", schema)


def rows_of(count: int) -> str:
    return "age,stage,ward,died\n" + "".join(f"{k},{k % 4 + 1},general,{k % 2}\n" for k in range(count))


@pytest.mark.parametrize(("sizes", "rows", "fits"), [([150, 140], 100, False), ([150, 140], 150, True),
                                                     ([90, 100], 100, True), ([90, 110], 100, False),
                                                     ([40, 60], 100, True)])  # fmt: skip
def test_a_plan_of_other_sizes_is_refused_as_the_run_would(
    tmp_path: Path, sizes: list[int], rows: int, fits: bool
) -> None:
    plan = planned(tmp_path, sizes)
    result = run(check_command, "--plan", plan, "--csv", write(tmp_path, rows_of(rows), "a.csv"))
    assert result.return_value == (0 if fits else 1), result.output
    shown = ", ".join(map(str, sizes))
    said = f"refused: records: owners hold as many training records as the plan says, {shown}; these are {rows}; check"
    assert (said in result.output) == (not fits)


def test_records_that_miss_a_value_are_not_counted_where_they_are_dropped(tmp_path: Path) -> None:
    plan = planned(tmp_path, [101, 101], missing="drop")
    for text, code in ((rows_of(101) + ",2,general,1\n", 0), (rows_of(100) + ",2,general,1\n", 1)):
        assert run(check_command, "--plan", plan, "--csv", write(tmp_path, text, "a.csv")).return_value == code


def test_a_target_that_does_not_fit_stops_an_owner_of_a_plan_by_its_word_alone(tmp_path: Path, schema: Path) -> None:
    """As `join`, which takes such a record for the zero vector."""
    plan = planned(tmp_path, [101, 101])
    odd = write(tmp_path, rows_of(100) + "30,2,general,\n", "odd.csv")
    for words, code in ((("--plan", plan), 0), (("--plan", plan, "--misfits", "ask"), 1), (("--schema", schema), 1)):
        result = run(check_command, *words, "--csv", odd)
        assert result.return_value == code and "'' x 1" in result.output, words
        assert ("a run would refuse" in result.output) == bool(code) != ("warning: died" in result.output)


@pytest.mark.slow
def test_many_copies_of_records_are_noted(tmp_path: Path, schema: Path) -> None:
    once = rows_of(30)
    twice = once + once.partition("\n")[2]
    for text, noted in ((once, False), (once + "0,1,general,0\n", False), (twice, True)):
        result = run(check_command, "--schema", schema, "--csv", write(tmp_path, text, "a.csv"))
        assert result.return_value == 0
        assert ("note: records: 30 of 60 are exact copies of others" in result.output) == noted


MESSY = (
    "id,age,ward,same,empty,born,died\n"
    + "".join(f"p{k},{k % 50 + 20},{'ABab'[k % 4]},x,,2001-02-0{k % 9 + 1},{k % 2}\n" for k in range(200))
    + "p200,,?,x,,2001-02-03,1\n"
)


class _Tags(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.seen.append(tag)


def test_describe_says_what_a_table_holds(tmp_path: Path) -> None:
    path, page, draft = write(tmp_path, MESSY, "<m>.csv"), tmp_path / "m.html", tmp_path / "s.toml"
    result = run(describe_command, path, "--target", "died", "--html", page, "--schema", draft)
    said = " ".join(result.output.split())
    assert "for the eyes of the records' owner alone" in said and "died: 0 100 (49.8%), 1 101 (50.2%)" in said
    assert "id: identifier, left out: 201 of 201 values are there once" in said and "same: constant, left out" in said
    assert "empty: empty, left out" in said and "born: date, days since a date" in said
    assert "'A' and 'a' differ in case only" in said and "[to change it: --drop ward]" in said
    assert "not public: the guarantee does not cover them" in said
    tags = _Tags()
    tags.feed(page.read_text())
    assert tags.seen.count("svg") >= 5 and "script" not in tags.seen and "m" not in tags.seen
    assert page.stat().st_mode & 0o777 == draft.stat().st_mode & 0o777 == 0o600
    schema = Schema.read(draft)
    assert [c.name for c in schema.columns] == ["age", "ward", "born"] and schema.bounds == "data"
    assert '# - "id": identifier' in draft.read_text()
    data = load(CsvFile(path), schema=schema, test_fraction=0.0)
    assert data.n == 201 and not any(c.unknown or c.clipped for c in data.counts)


@pytest.mark.slow
def test_describe_of_typed_columns_and_refusals(tmp_path: Path) -> None:
    duckdb.sql(
        f"COPY (SELECT k AS a, k % 3 = 0 AS b, DATE '2001-01-01' + k::INT AS c, [k] AS l, k / 1e300 * 1e300 AS f,"
        f" k % 2 AS y"
        f" FROM range(50) t(k)) TO '{tmp_path}/t.parquet' "
    )
    result = run(describe_command, tmp_path / "t.parquet")
    assert result.exit_code == 0 and "number" in result.output and "date" in result.output
    (tmp_path / "d.csv").write_text(
        "day,site,x,y\n" + "".join(f"2023-01-17,{'abc'[k % 3]},{k},{k % 2}\n" for k in range(50))
    )
    asked = (tmp_path / "d.csv", "--target", "y", "--owners-column", "site")  # as `train` has it
    result = run(describe_command, *asked, "--schema", tmp_path / "s.toml")
    said = " ".join(result.output.split())
    assert "19374" not in said and said.count("2023-01-17") == 2 and "site: category, says who owns a record" in said
    assert [column.name for column in Schema.read(tmp_path / "s.toml").columns] == ["x"]
    day = json.loads(run(describe_command, *asked, "--json").stdout)["columns"][0]
    assert (day["kind"], day["least"], day["greatest"]) == ("constant", "2023-01-17", "2023-01-17")
    with refuses("column", "z"):
        run(describe_command, tmp_path / "t.parquet", "--target", "z")
    with refuses("column"):
        run(describe_command, tmp_path / "t.parquet", "--schema", tmp_path / "s.json")
    assert json.loads(run(describe_command, "--editor-schema").output)["$schema"].startswith("https://json-schema.org")


@pytest.mark.parametrize(
    "name", ["p.csv", "p.tsv", "p.csv.gz", "p.tsv.zst", "p.jsonl", "p.parquet", "p.arrow", "p.feather"]
)
def test_what_is_written_is_read_again(tmp_path: Path, name: str) -> None:
    columns = {"y": np.array(["yes", "nö, no"], dtype=object), "chance": np.array([0.1, 1 / 3])}
    write_table(columns, tmp_path / name)
    names, cells = cells_of(tmp_path / name)
    assert names == (("chance", "y") if name == "p.jsonl" else ("y", "chance"))  # keys have no order
    read = {each: [row[k] for row in cells] for k, each in enumerate(names)}
    assert read["y"] == ["yes", "nö, no"] and [float(each) for each in read["chance"]] == [0.1, 1 / 3]
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_what_cannot_be_written(tmp_path: Path) -> None:
    for path, words in (
        (tmp_path / "p.xls", breaks("path", "p.xls", setting="out")),
        (tmp_path / "no" / "p.csv", breaks("path", setting="out")),
    ):
        with refuses(words):
            write_table({"a": np.zeros(2)}, path)


@pytest.mark.slow
def test_identifiers_are_left_out_near_names_and_small_classes_refused(tmp_path: Path) -> None:
    for n in (12, 738):  # however small the file
        text = "id,x,y\n" + "".join(f"patient {k if k > n // 4 else 0},{k},{k % 2}\n" for k in range(n))
        assert load(site(tmp_path, "a.csv", text), target="y").feature_names[-2:] == ("x", "(intercept)")
    owners = "x,who,y\n" + "".join(f"{k},{('VA', 'va', 'NY')[k % 3]},{k % 2}\n" for k in range(30))
    with refuses("records", "who", "b.csv", "VA", "va"):
        load(site(tmp_path, "b.csv", owners), target="y", owners_column="who")
    numbered = owners.replace("VA", "7").replace("va", "7.0")
    assert load(site(tmp_path, "c.csv", numbered), target="y", owners_column="who").group_names == ("7", "NY")
    three = "x,y\n" + "".join(f"{k},{k % 3}\n" for k in range(30))
    with refuses("records", "y", 3, 0, 1):
        load(site(tmp_path, "d.csv", three), target="y")
    assert load(site(tmp_path, "d.csv", three), target="y", task="ridge").task == "ridge"


@pytest.mark.slow
def test_columns_that_are_numbers_but_for_a_few_values(tmp_path: Path) -> None:
    """One `unknown` far down does not turn ages into a hundred categories."""
    lines = [f"{20 + k % 70},{k % 2}" for k in range(2000)]
    data = load(site(tmp_path, "a.csv", "\n".join(["age,y", *lines, "unknown,1"])), target="y", test_fraction=0.0)
    assert data.feature_names == ("age", "(intercept)") and data.counts[0].unread == 1
    with refuses("records", 2002, 3):
        load(site(tmp_path, "a.csv", "\n".join(["age,y", *lines, "31,5,1"])), target="y")
    shares = "\n".join(["share,y", *(f"{k % 45} %,{k % 2}" for k in range(90))])
    with refuses("records", "units=('%',)"):
        load(site(tmp_path, "b.csv", shares), target="y")
    dotted = "\n".join(["day,y", *(f"{k % 9 + 10}.03.2021,{k % 2}" for k in range(90))])
    with refuses("records", "dates='dmy'"):
        load(site(tmp_path, "c.csv", dotted), target="y")


def test_a_class_that_an_owner_lacks_is_said_and_surveyed_columns_are_accounted_for(tmp_path: Path) -> None:
    schema = Schema((), Classes("y", ("a", "b", "c")), unknown=("dose", "ward", "none"))
    path = tmp_path / "mine.csv"
    path.write_text("dose,ward,none,y\n" + "".join(f"{k}.5,{'nsw'[k % 3]},,{'ab'[k % 2]}\n" for k in range(60)))
    with opened(CsvFile(path)) as (table, _):
        found = with_spelling(check(schema, table), table, surveyed=schema.unknown)
    lines = found.lines()
    assert not found.refused
    assert any("c x 0; of c the model learns from other owners' records alone" in line for line in lines)
    (surveyed,) = (line for line in lines if line.startswith("note: surveyed"))
    assert "dose looks like number, ward looks like category, none looks like empty (60 missing)" in surveyed


@pytest.mark.parametrize(
    ("words", "severity"),
    [("0010", "unfit"), ("nnnn", "warning"), ("nnny", "note"), ("yyyy", "warning"), ("1111", "warning")],
)
def test_a_target_written_in_other_words_does_not_fit(tmp_path: Path, words: str, severity: str) -> None:
    """Where `positive` alone is public all else is the other class: a site that writes 0 and 1 for yes and no has no
    record of the one. One with no such record at all has one other word."""
    spelled = {"n": "no", "y": "yes"}
    text = "age,ill\n" + "".join(f"50,{spelled.get(word, word)}\n" for word in words)
    target = {"kind": "label", "name": "ill", "positive": ["yes"], "negative": None}
    public = {"columns": [{"kind": "number", "name": "age", "low": 0, "high": 120}], "target": target}
    schema = Schema.read(write(tmp_path, json.dumps(public), "public.json"))
    with opened(site(tmp_path, "a.csv", text)) as (table, _):
        found = check(schema, table).found
    (said,) = [f for f in found if f.column == "ill"]
    assert said.severity == severity
    assert severity != "unfit" or "all others are the other class: '0' x 3, '1' x 1;" in said.text
