"""What a look says of habits that no option reads or that look like others: each is named, with the way out, and what
is proposed for one column does no harm to another."""

import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmpc.cli.main import group as dpmpc_command
from dpmpc.cli.main import named
from dpmpc.intake.calendars import clock_time
from dpmpc.intake.lint import identifies
from dpmpc.intake.profile import TableProfile, explore
from dpmpc.intake.scripts import small
from dpmpc.intake.spelling import Spelling
from dpmpc.records import CsvFile
from dpmpc.records.loading import opened
from tests.intake.abroad import ABROAD
from tests.intake.test_other_countries import N, noted, table
from tests.intake.test_profile import run
from tests.refusals import refuses

describe_command = named("describe")

pytestmark = pytest.mark.usefixtures("small_tables")


def looked_at(path: Path) -> TableProfile:
    with opened(CsvFile(path)) as (found, _):
        return explore(found, target="y")[0]


def test_marks_of_high_and_low_make_no_number_negative(tmp_path: Path) -> None:
    marks = ("+", "-", "")
    path = table(tmp_path, v=lambda k: k, cells=lambda k: f"{k}.{k % 9}{marks[k % 3]}", owed=lambda k: f"{k}.5")
    found = looked_at(path)
    assert found.proposed.negative == "" and found["cells"].kind != "number"
    (note,) = (each for each in found.notes if "fields are numbers, and it is read as words" in each)
    assert "'cells'" in note and f"{N // 3} of {N} fields" in note
    owed = table(tmp_path, v=lambda k: k, cells=lambda k: f"{k}.{k % 9}{'-' * (k % 3 == 0)}")
    assert looked_at(owed).proposed.negative == "trailing"


@pytest.mark.parametrize("form", ["{}- EUR", "{} - EUR", "{}-\u20ac", "EUR {}-", "{}-"])
def test_a_minus_between_a_number_and_its_unit_is_proposed(tmp_path: Path, form: str) -> None:
    path = table(tmp_path, v=lambda k: k, owed=lambda k: (form if k % 2 else form.replace("-", "")).format(f"{k}.5"))
    asked = looked_at(path).proposed
    assert asked.negative == "trailing"
    with opened(CsvFile(path), spelling=asked) as (found, _):
        assert explore(found)[0]["owed"].least == 0.5 - max(k for k in range(N) if k % 2) - 1


@pytest.mark.parametrize("minus", "-\u2212\uff0d\u30fc")
def test_results_with_plus_and_minus_are_values_in_any_script(minus: str, tmp_path: Path) -> None:
    plus = "\uff0b" if minus > "\u3000" else "+"
    found = looked_at(table(tmp_path, v=lambda k: k, r=lambda k: (minus, plus, plus * 2)[k % 3]))
    assert found["r"].missing == 0 and found["r"].distinct == 3 and found.proposed.missing == ()


@pytest.mark.parametrize(
    ("field", "units", "what"),
    [
        ("\uff1c0.5", ("\uff1c",), "the limit"),
        ("\u22640.5 mg", ("\u2264", "mg"), "the limit"),
        ("0.5\u672a\u6e80", ("\u672a\u6e80",), "the limit"),
        ("~0.5", ("~",), "the limit"),
        ("0.5*", ("*",), "in them: "),
    ],
)
def test_limits_and_marks_are_said_in_any_script(field: str, units: Any, what: str, tmp_path: Path) -> None:
    path = table(tmp_path, v=lambda k: k, crp=lambda k: field if k % 6 == 0 else f"{k}.25")
    (note,) = noted(path, "which count as")
    assert what in note and f"units={units!r}" in note.replace("\\x3e", ">") and looked_at(path).proposed.units == ()
    with opened(CsvFile(path), spelling=Spelling(units=units)) as (found, _):
        rows = found.rows(found.number("crp"))
    assert rows[0] == rows[6] == (0.5,) and rows[1] == (1.25,)


@pytest.mark.parametrize(
    ("field", "units"),
    [("{}/{} mmHg", ("mmHg",)), ("{} cm / {} kg", ("cm", "kg")), ("{}\uff0f{}", ()), ("{}x{}", ())],
)
def test_pairs_are_said_and_read_with_units_and_in_wide_signs(field: str, units: Any, tmp_path: Path) -> None:
    path = table(tmp_path, v=lambda k: k, bp=lambda k: field.format(110 + k % 30, 60 + k % 25))
    (note,) = noted(path, "two numbers in a field")
    assert "pairs=('bp',)" in note and (f"units={units!r}" in note if units else "units" not in note)
    with opened(CsvFile(path), spelling=Spelling(units=units, pairs=("bp",))) as (found, _):
        rows = found.rows(f"{found.number('bp (1)')}, {found.number('bp (2)')}")
    assert rows == [(110 + k % 30, 60 + k % 25) for k in range(N)]


def test_dates_that_are_all_still_to_come_are_said(tmp_path: Path) -> None:
    days = {
        "nepal": lambda k: f"20{76 + k % 6}-0{1 + k % 9}-{1 + k % 28:02}",
        "near": lambda k: f"20{10 + k % 80}-01-01",
    }
    (note,) = noted(table(tmp_path, v=lambda k: k, **days), "Gregorian")
    assert "'nepal' has the years 2076 to 2081" in note and note.endswith(
        "if they are of another, write Gregorian dates"
    )


def test_a_word_that_ends_as_id_does_names_no_person(tmp_path: Path) -> None:
    stay = table(tmp_path, v=lambda k: k, **{"V\u00e5rdtid": lambda k: f"{k % 40} d {k % 24} tim"})
    assert not noted(stay, "person") and noted(stay, "no option reads")
    for name in ("V\u00e5rdtid", "Uric acid", "Covid", "Lipid", "valid"):
        assert not identifies(name)
    for name in (
        "id",
        "Patient_ID",
        "PatientId",
        "patientid",
        "RECORDID",
        "caseID",
        "subject id",
        "\u75c5\u6b77\u865f",
    ):
        assert identifies(name)


def test_times_of_four_digits_with_a_word_are_times(tmp_path: Path) -> None:
    hours = {"0005 h": 5, "1430hrs": 870, "2359 Uhr": 1439, "14.30 \u0e19.": 870, "1430": None, "2460hrs": None}
    for text, minutes in hours.items():
        found = clock_time(text)
        assert (None if found is None else round(1440 * found)) == minutes
    found = looked_at(table(tmp_path, v=lambda k: k, t=lambda k: f"{k % 24:02}{k % 60:02}hrs"))
    assert found["t"].kind == "time" and found["t"].unread == 0 and found.proposed.units == ()
    lasting = looked_at(table(tmp_path, v=lambda k: k, t=lambda k: f"{1900 + 17 * k}hrs"))
    assert lasting["t"].kind == "number" and lasting.proposed.units == ("hrs",)


def test_names_are_found_below_titles_that_are_filled_up_with_separators(tmp_path: Path) -> None:
    """As spreadsheets write them, with columns at the end that nobody named."""
    export = next(each for each in ABROAD if each.name == "printed.csv")
    path = export.write(tmp_path, 60)
    with refuses("records", "header=3"), opened(CsvFile(path)):
        pass


def test_a_last_line_of_totals_is_left_out_by_a_look_and_that_is_asked(tmp_path: Path) -> None:
    """Also below titles, so that all that a run needs stands in one line; `--json` has what a look says too."""
    export = next(each for each in ABROAD if each.name == "printed.csv")
    path = export.write(tmp_path, 60)
    with path.open("ab") as file:
        file.write(b"Grand Total,,,,999999,,,,,,\r\n")
    shown = run(describe_command, path, "--target", export.target)
    (line,) = (each for each in shown.output.splitlines() if each.startswith("read as with these options"))
    options = shlex.split(line.partition(": ")[2])
    assert options[-4:] == ["--header", "3", "--footer", "1"] and "printed.csv: 60 records" in shown.output
    assert "please decide: footer: the last line is called a total" in shown.output
    again = run(describe_command, path, "--target", export.target, *options)
    assert "60 records" in again.output and "footer" not in again.output and "read as with" not in again.output
    found = json.loads(run(describe_command, path, "--target", export.target, "--json").stdout)
    assert found["proposed"]["footer"] == 1 and found["stated"] == {} and found["records"] == 60
    kept = json.loads(run(describe_command, export.write(tmp_path, 60), "--target", export.target, "--json").stdout)
    assert "footer" not in kept["proposed"] and not any("total" in line for line in kept["findings"])


def test_fields_that_are_not_read_are_one_line_however_many_columns_have_some(tmp_path: Path) -> None:
    path = table(tmp_path, a=lambda k: "x" if k % 9 == 0 else k, b=lambda k: "y" if k == 7 else k, c=lambda k: k)
    draft = tmp_path / "schema.toml"
    run(describe_command, path, "--target", "y", "--schema", draft)
    said = run(
        dpmpc_command, "train", "--csv", path, "--schema", draft, "--owners", 2, "--epsilon", 5, "--delta", 1e-4,
        "--engine", "clear", "--iterations", 2, "--test-fraction", 0, "--out", tmp_path / "run",
    )  # fmt: skip
    lines = [line for line in said.output.splitlines() if "not read" in line]
    assert lines == ["15 fields are not read and count as missing: 'a' 14, 'b' 1"]


def test_dates_and_times_that_are_written_as_numbers_of_other_kinds_are_said(tmp_path: Path) -> None:
    others = {
        "roc": lambda k: f"1{k % 14:02}{1 + k % 12:02}{1 + k % 28:02}",
        "point": lambda k: f"{k % 24}.{k % 60:02}",
        "price": lambda k: f"{k % 24}.{(7 * k) % 100:02}",
        "code": lambda k: 1000001 + 997 * k,
    }
    notes = noted(table(tmp_path, v=lambda k: k, **others), "that look like")
    assert [note.split("'")[1] for note in notes] == ["roc", "point"]
    assert "dates (yyymmdd)" in notes[0] and "has numbers that look like times of day (hh.mm)" in notes[1]
    odd = {"roc": lambda k: f"民國{100 + k % 14}年{1 + k % 12}月{1 + k % 28}日", "ends": lambda k: f"{k}.5 (0.4-4.0)"}
    assert [note.split("'")[1] for note in noted(table(tmp_path, **odd), "no option reads")] == ["roc", "ends"]


def test_a_word_for_the_zone_of_a_time_is_read_over_as_an_offset_is(tmp_path: Path) -> None:
    texts = {"05-Mar-2024 12:00 EST": 19787.5, "2024-03-05 12:00 CEST": 19787.5, "2024-03-05 12:00:00 MESZ": 19787.5,
             "2024-03-05 12:00 AM PST": 19787.0, "2024-03-05 PST": None, "2024-03-05 12:00 est": None}  # fmt: skip
    assert [Spelling().days(text) for text in texts] == [*texts.values()]
    with opened({"d": np.array([*texts], dtype=object), "k": np.arange(len(texts))}) as (found, _):
        assert [row[0] for row in found.rows(found.days("d"), 'ORDER BY "k"')] == [*texts.values()]


def test_capitals_of_every_script_become_the_same_small_letters_in_python_as_in_a_query(tmp_path: Path) -> None:
    letters = [chr(k) for k in range(1, 0x20000) if chr(k).isalpha()] + ["ΑΎΓΟΥΣΤΟΣ", "ΣΑΣ ΣΑΣ", "BİLİNMİYOR"]
    path = table(tmp_path, v=lambda k: k)
    with opened(CsvFile(path)) as (found, _):
        ((lowered,),) = found.connection.execute(
            "SELECT list_transform(?::VARCHAR[], lambda x: lower(x))", [letters]
        ).fetchall()
    assert lowered == [small(each) for each in letters]


@pytest.mark.parametrize(
    ("fields", "stated"),
    [
        (("BİLİNMİYOR", "Bilinmiyor"), ("bilinmiyor", "BİLİNMİYOR", "v=BİLİNMİYOR")),
        (("ΆΓΝΩΣΤΟΣ", "Άγνωστος"), ("άγνωστος", "ΆΓΝΩΣΤΟΣ", "v=ΆΓΝΩΣΤΟΣ", "v=Άγνωστος")),
    ],
)
def test_words_for_missing_are_those_in_capitals_too(
    fields: tuple[str, ...], stated: tuple[str, ...], tmp_path: Path
) -> None:
    cells = (*fields, "1.5", "2.5")
    path = table(tmp_path, v=lambda k: cells[k % 4], w=lambda k: k)
    for word in stated:
        with opened(CsvFile(path), spelling=Spelling(missing=(word,))) as (found, _):
            column = explore(found)[0]["v"]
        assert column.kind == "number" and column.present == N // 2, word
        if "=" not in word:
            assert all(Spelling(missing=(word,)).is_missing(each) for each in fields)


@pytest.mark.parametrize("month", ["ΑΎΓΟΥΣΤΟΣ", "Αύγουστος", "HAZİRAN", "haziran", "MAYIS"])
def test_months_in_capitals_are_read_in_python_as_in_a_query(month: str, tmp_path: Path) -> None:
    path = table(tmp_path, v=lambda k: f"{k % 28 + 1} {month} 2024", w=lambda k: k)
    with opened(CsvFile(path)) as (found, _):
        assert explore(found)[0]["v"].kind == "date"
    assert Spelling().days(f"3 {month} 2024") is not None
