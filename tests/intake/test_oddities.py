"""What is odd about whole columns is said once, to their owner, by every surface; what only looks odd is not."""

import ast
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from dpmpc.cli.main import group
from dpmpc.cli.settings import spelling
from dpmpc.errors import python_spelling, spelt
from dpmpc.estimators import PrivateLogisticRegression
from dpmpc.intake.column_profile import dropping
from dpmpc.intake.footer import TOTALS
from dpmpc.intake.profile import look
from dpmpc.intake.spelling import Spelling
from dpmpc.records import CsvFile, Schema
from dpmpc.records.derive import TableSettings, looked
from dpmpc.records.loading import opened
from dpmpc.records.mapping import Mapping
from dpmpc.records.schema import NOTHING_STOOD_OUT, VERSION
from tests.refusals import Rule, breaks, refuses
from tests.tables import write

pytestmark = pytest.mark.usefixtures("small_tables")

N = 200
WORDS = ("n/a", "k.A.", "-", ".")
HEAD = "id,age,again,rest,y\n"


def records(n: int = N) -> list[list[str]]:
    rng = np.random.default_rng(5)
    pairs = zip(rng.integers(18, 90, n), rng.normal(70, 9, n), strict=True)
    return [[f"p{k}", f"{a}", f"{a}", f"{b:.1f}", "no" if k % 3 else "yes"] for k, (a, b) in enumerate(pairs)]


def text_of(rows: list[list[str]], head: str = HEAD) -> str:
    return head + "".join(",".join(row) + "\n" for row in rows)


def notes(path: Path, spelling: Spelling | None = None) -> tuple[str, ...]:
    with opened(CsvFile(path), spelling=spelling or Spelling()) as (table, _):
        return look(table, target="y")[0].notes


def test_columns_that_are_there_twice_are_said(tmp_path: Path) -> None:
    rows = records()
    (note,) = notes(write(tmp_path, text_of(rows)))
    assert note == "column 'again' has the same value as column 'age' in every record; leave it out: <<drop=['again']>>"
    rows[7][2] = "17"  # one value is enough to be another column
    assert notes(write(tmp_path, text_of(rows))) == ()
    leak = [[*row[:2], row[4], *row[3:]] for row in rows]
    (note,) = notes(write(tmp_path, text_of(leak)))
    assert note.startswith("column 'again' has the same value as the target 'y' in every record")
    (note,) = notes(write(tmp_path, text_of(rows, "id,age,age,rest,y\n")))
    assert note == "2 columns are called 'age', and are 'age (1)', 'age (2)' here; leave out what is not meant"


def test_an_identifier_that_several_records_share_points_at_persons(tmp_path: Path) -> None:
    """By name and number alone: few wards, a key of every record and a drug's name say nothing of persons."""
    rows = [[str(1000 + k % 70), row[1], str(k % 5), row[3], row[4]] for k, row in enumerate(records())]
    (note,) = notes(write(tmp_path, text_of(rows, "Patient-ID,age,ward_id,rest,y\n")))
    assert note.startswith(
        "column 'Patient-ID' has 70 different values in 200 records"
    ) and "--person Patient-ID" in spelt(note, spelling)
    texts = [[f"P{row[0]}", *row[1:]] for row in rows]
    (note,) = notes(write(tmp_path, text_of(texts, "patient_id,age,ward_id,rest,y\n")))
    assert note.startswith("column 'patient_id' has 70 different values")
    assert notes(write(tmp_path, text_of(texts, "drug,age,ward_id,rest,y\n"))) == ()
    once = [[str(1000 + k), *row[1:]] for k, row in enumerate(rows)]
    assert notes(write(tmp_path, text_of(once, "patient_id,age,ward_id,rest,y\n"))) == ()


@pytest.mark.parametrize("word", ["Total", "Summe", "GESAMT", "Toplam", "合计"])
def test_a_row_of_totals_is_said_and_a_category_of_that_name_is_not(word: str, tmp_path: Path) -> None:
    assert word.lower() in TOTALS
    rows = [[row[0], row[1], "1", *row[3:]] for row in records()]
    total = [word, str(sum(int(row[1]) for row in rows)), "1", "", "no"]
    (note,) = notes(write(tmp_path, text_of([*rows, total])))
    assert note.startswith("1 record of 'id' is called a total or a sum; a row of totals is no record")
    operated = [[row[0], row[1], word if k % 4 else "partial", *row[3:]] for k, row in enumerate(rows)]
    assert notes(write(tmp_path, text_of(operated))) == ()


def test_codes_for_missing_and_dates_as_numbers_are_said_where_they_stand_out(tmp_path: Path) -> None:
    rows = [[row[0], row[1], "20240" + str(k % 9 + 1) + f"{k % 28 + 1:02d}", row[3], row[4]]
            for k, row in enumerate(records())]  # fmt: skip
    (day,) = notes(write(tmp_path, text_of(rows)))
    assert day.startswith("column 'again' has whole numbers that look like dates (yyyymmdd), and are read as numbers")
    coded = [[row[0], "999" if k % 10 == 0 else row[1], "1", "-99" if k % 7 == 0 else row[3], row[4]]
             for k, row in enumerate(rows)]  # fmt: skip
    age, rest = notes(write(tmp_path, text_of(coded)))
    assert age == (
        "column 'age': 20 records have 999, far from all other numbers; to state that it says that there is none: "
        "<<spelling=Spelling(missing=('age=999',))>>"
    )
    assert rest.startswith("column 'rest': 29 records have -99,")
    empty = [["" if field in ("999", "-99") else field for field in row] for row in coded]
    assert notes(write(tmp_path, text_of(empty))) == ()
    near = [[row[0], f"{k % 100}", "1", row[3], row[4]] for k, row in enumerate(rows)]  # 99 is one of these
    assert notes(write(tmp_path, text_of(near))) == ()


@pytest.mark.parametrize("classes", [("no", "No", "yes", "yes"), ("no", "no", "no", "no "), ("a b", "a  b", "c", "d")])
def test_classes_that_differ_in_case_or_spaces_only_are_refused(classes: tuple[str, ...], tmp_path: Path) -> None:
    rows = [[*row[:4], f'"{classes[k % 4]}"'] for k, row in enumerate(records())]
    path = write(tmp_path, text_of(rows))
    with opened(CsvFile(path)) as (table, _):
        if classes[-1] == "no ":  # space around a field is none of it
            looked(table, TableSettings("y"))
            return
        with refuses("records", "y") as error:
            looked(table, TableSettings("y"))
    assert "no" not in error.value.message.replace("owner", "").split()


def test_words_for_what_is_missing_are_proposed_by_look_and_check(tmp_path: Path) -> None:
    rows = [[*row[:2], "1", WORDS[k // 4 % 4] if k % 4 == 0 else row[3], row[4]] for k, row in enumerate(records())]
    path = write(tmp_path, text_of(rows))
    (note,) = notes(path)
    fields = sum(row[3] in WORDS[1:] for row in rows)  # n/a is one that nobody need state
    assert note.startswith(f"{fields} fields of rest look like words for what is missing")
    options = shlex.split(spelt(note, spelling).partition("state that they are: ")[2])
    assert sorted(options[1::2]) == ["-", ".", "k.a."]
    assert notes(path, Spelling(missing=tuple(options[1::2]))) == ()
    column = {"kind": "number", "name": "rest", "low": 0, "high": 150}
    target = {"kind": "label", "name": "y", "positive": ["yes"], "negative": ["no"]}
    schema = tmp_path / "schema.json"
    Schema.from_json({"version": VERSION, "columns": [column], "target": target}).write(schema)
    for more, said in (([], True), (options, False)):
        shown = CliRunner().invoke(group, ["check", "--schema", str(schema), "--csv", str(path), *more])
        assert shown.exit_code == 0 and ("to state that they are: --missing-word" in shown.output) == said


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,y\n1,0\n", breaks("enough")),
        ("a,b,c,y\n" + "".join(f"x{k},same,,{k % 2}\n" for k in range(60)), breaks("records", "a: identifier")),
    ],
)
def test_records_of_which_nothing_can_be_learnt_are_refused_before_a_survey(
    text: str, words: Rule, tmp_path: Path
) -> None:
    with opened(CsvFile(write(tmp_path, text))) as (table, _), refuses(words):
        looked(table, TableSettings("y"))


@pytest.mark.filterwarnings("ignore:column 'id'.* stood out of the survey's noise:UserWarning")
def test_an_estimator_looks_as_train_does_and_accounts_for_every_column(tmp_path: Path) -> None:
    n = 1500
    rows = records(n)
    frame = pd.DataFrame(rows, columns=["id", "age", "again", "rest", "y"]).astype({"age": float, "again": float})
    frame["ward"] = np.where(np.arange(n) % 5 < 2, "north", "south")
    frame["rest"] = [value.replace(".", ",") for value in frame["rest"]]
    y = frame.pop("y")
    asked = {"epsilon": 8.0, "delta": 1e-5, "engine": "clear", "classes": ["no", "yes"], "iterations": 2}
    with refuses("records", 1, "spelling=Spelling", "decimal=','", kind=ValueError):
        PrivateLogisticRegression(**asked).fit(frame, y)
    model = PrivateLogisticRegression(**asked, spelling=Spelling(","), data_id="looked at")
    with pytest.warns(UserWarning, match="'again' has the same value as column 'age'.*'id' looks like identifier"):
        model.fit(frame, y)
    assert {*model.columns_["used"], *model.columns_["left_out"]} == {*frame.columns}
    # a bucket of ids, each of few records, may stand out by the noise's chance
    assert model.columns_["left_out"] == {"id": NOTHING_STOOD_OUT} or (
        not model.columns_["left_out"] and "id" in model.columns_["used"]
    )
    assert sum(model.columns_["used"].values()) == len(model.coef_) and len(model.predict(frame)) == n


def test_a_column_of_which_a_survey_published_nothing_blames_no_file(tmp_path: Path) -> None:
    """Ids, of which it found that some are missing; wards, of which it found two; a number."""
    columns = [
        {"kind": "surveyed", "name": "id", "buckets": 16, "missing": True},
        {"kind": "surveyed", "name": "age", "number": True, "low": 20, "high": 60},
        {"kind": "surveyed", "name": "ward", "buckets": 16, "kept": [3]},
    ]
    target = {"kind": "label", "name": "y", "positive": ["yes"], "negative": ["no"]}
    schema = Schema.from_json({"version": VERSION, "columns": columns, "target": target, "bounds": "survey"})
    odd = {"id": np.array([f"p{k}" for k in range(50)], dtype=object), "age": np.array(["old"] * 50, dtype=object),
           "ward": np.array([f"w{k}" for k in range(50)], dtype=object)}  # fmt: skip
    with opened(odd) as (table, _):
        mapping = Mapping(table, schema, labels=False)
        mapping.arrays()
    said = {name: counts.warning for name, counts in mapping.counts.items()}
    assert said["id"] is None and said["age"] is not None
    assert said["age"].startswith("column 'age': 50 of 50 values are no numbers, and no word stood out of the survey's")
    assert "the file" not in said["age"]
    assert said["ward"] is not None and "none of those that stood out of the survey's noise" in said["ward"]


@pytest.mark.parametrize("name", ["age", "blood pressure", "o'neil", "a>>b", "größe"])
def test_a_note_names_columns_as_its_surface_writes_them(name: str) -> None:
    note = f"leave it out: {dropping([name, 'x'])}"
    words = shlex.split(spelt(note, spelling).removeprefix("leave it out: "))
    assert words == ["--drop", name, "--drop", "x"]
    as_python = spelt(note, python_spelling).removeprefix("leave it out: drop=")
    assert ast.literal_eval(as_python) == [name, "x"]


def test_no_surface_of_python_is_told_of_options(tmp_path: Path) -> None:
    rows = [[row[0], "999" if k % 10 == 0 else row[1], row[2], "-" if k % 4 == 0 else row[3], row[4]]
            for k, row in enumerate(records())]  # fmt: skip
    for note in notes(write(tmp_path, text_of(rows))):
        assert "--" not in spelt(note) and "<<" not in spelt(note)
