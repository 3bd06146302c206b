"""Fields of numbers in other dress than any option reads, rows of units, and words that stand in columns of numbers:
a look says so of each, once, and of nothing that only looks like it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dpmpc.cli.describe import command as describe_command
from dpmpc.intake.head import HeaderError
from dpmpc.intake.profile import explore
from dpmpc.intake.spelling import Spelling
from dpmpc.records import CsvFile
from dpmpc.records.loading import opened
from tests.intake.test_profile import run
from tests.tables import write

pytestmark = pytest.mark.usefixtures("small_tables")
N = 400
Field = Callable[[int], str]


def file_of(folder: Path, first: str = "", **columns: Field) -> Path:
    """A file of N records with these columns, each a function of a record's number, and a target."""
    rows = [";".join([field(k) for field in columns.values()] + [("no", "yes")[k % 3 == 0]]) for k in range(N)]
    return write(folder, "\n".join([";".join([*columns, "y"]), *([first] if first else []), *rows]) + "\n")


def notes(path: Path, word: str, **stated: tuple[str, ...]) -> list[str]:
    with opened(CsvFile(path), spelling=Spelling(**stated)) as (table, _):  # type: ignore[arg-type]
        return [note for note in explore(table, target="y")[0].notes if word in note]


@pytest.mark.parametrize(
    ("field", "said"),
    [
        (lambda k: f'"{5 + k % 2}\'{k % 9}"""', True),
        (lambda k: f"{5 + k % 2}′ {k % 9}″", True),
        (lambda k: f"{k % 8}0-{k % 8}9", False),
        (lambda k: f"{k % 12}/15", False),
        (lambda k: f"{k % 5}+", False),
    ],
    ids=("feet", "primes", "ages", "scores", "grades"),
)
def test_measures_of_few_values_are_said_and_categories_are_not(field: Field, said: bool, tmp_path: Path) -> None:
    found = notes(file_of(tmp_path, v=field, w=lambda k: str(k)), "that no option reads")
    assert [note.startswith(f"column 'v': {N} fields") for note in found] == [True] * said


DAY, MONTH, YEAR = (lambda k: f"{1 + k % 28:02}"), (lambda k: f"{1 + k % 12:02}"), (lambda k: f"{10 + k % 14}")


@pytest.mark.parametrize(
    ("order", "field"),
    [
        ("yymmdd", lambda k: YEAR(k) + MONTH(k) + DAY(k)),
        ("ddmmyy", lambda k: f"{29 + k % 2}" + MONTH(k) + f"{50 + k % 40}"),
        ("mmddyy", lambda k: f"{10 + k % 3}" + DAY(k) + f"{50 + k % 40}"),
        ("yyyymmdd", lambda k: "20" + YEAR(k) + MONTH(k) + DAY(k)),
        ("ddmmyyyy", lambda k: f"{10 + k % 20}" + MONTH(k) + "20" + YEAR(k)),
        ("mmddyyyy", lambda k: f"{10 + k % 3}" + DAY(k) + "20" + YEAR(k)),
        ("hhmm", lambda k: f"{100 * (7 * k % 24) + 13 * k % 60}"),
        ("", lambda k: f"{100_000 + 37 * k}"),
        ("", lambda k: f"{20_000_000 + 41 * k}"),
        ("", lambda k: f"{1000 + k}"),
        ("", lambda k: f"{101 + k % 30}"),
    ],
)
def test_dates_and_times_as_one_number_are_said_in_every_order(order: str, field: Field, tmp_path: Path) -> None:
    found = notes(file_of(tmp_path, v=field, w=lambda k: f"{k}.5"), "whole numbers that look like")
    assert [f"({order})" in note for note in found] == [True] * bool(order)
    assert [("yyyymmdd=('v',)" in note) for note in found] == [order == "yyyymmdd"] * bool(order)


def test_a_word_in_several_columns_of_numbers_is_said_once_and_one_of_a_single_column_is_not(tmp_path: Path) -> None:
    def less(often: int, word: str = "N/K") -> Field:
        return lambda k: word if k % often == 0 else str(k)

    path = file_of(tmp_path, a=less(10), b=less(15), c=less(9, "lysed"), d=lambda k: f"{k}.5")
    (note,) = notes(path, "where others have numbers or dates")
    assert note.startswith("'a', 'b' have 'N/K'") and note.endswith("<<spelling=Spelling(missing=('N/K',))>>")
    assert notes(path, "where others have numbers or dates", missing=("N/K",)) == []


def test_a_row_of_units_is_left_out_and_a_first_record_without_values_is_not(tmp_path: Path) -> None:
    columns = {name: (lambda k: f"{k}.5") for name in ("weight", "height", "cost")}
    path = file_of(tmp_path, "kg;kg/m2;CHF;", **columns)
    with pytest.raises(HeaderError) as error, opened(CsvFile(path)):
        pass
    assert error.value.likely == {"below": 1} and "kg" not in error.value.message
    shown = run(describe_command, path, "--target", "y").output
    assert f": {N} records" in shown and "needs too: --below 1\n" in shown
    again = run(describe_command, path, "--target", "y", "--below", 1).output
    assert f": {N} records" in again and "please decide" not in again and "needs too" not in again
    with opened(CsvFile(path), spelling=Spelling(below=2)) as (table, _):
        assert table.n == N - 1 and table.rows(table.number("cost"), "LIMIT 1") == [(1.5,)]
    assert notes(file_of(tmp_path, "gone;gone;gone;yes", **columns), "row of units") == []
    assert notes(file_of(tmp_path, "7;8;gone;yes", **columns), "row of units") == []


@pytest.mark.parametrize(
    "unit",
    ["m2", "kg/m2", "m3/h", "mL/min/1.73m2", "ml/min/1,73 m²", "x10^9/L", "×10^9/L", "*10E3/uL", "mmol l-1", "€/m2"],
)
def test_units_with_powers_are_proposed_and_read(unit: str, tmp_path: Path) -> None:
    path = file_of(tmp_path, v=lambda k: f"{k}.5 {unit}", w=lambda k: f"{k}{unit}")
    with opened(CsvFile(path), guess=True) as (table, _):
        found = explore(table, target="y")[0]
    assert found.proposed.units == (unit,) and (found["v"].kind, found["w"].kind) == ("number", "number")
    spelling = Spelling(units=(unit,))
    with opened(CsvFile(path), spelling=spelling) as (table, _):
        rows = table.rows(f"{table.number('v')}, {table.number('w')}")
    assert rows == [(k + 0.5, k) for k in range(N)]
    assert spelling.number(f"12.5 {unit}") == 12.5 and spelling.number(unit) is None


def test_codes_that_end_in_figures_have_no_unit(tmp_path: Path) -> None:
    """Wards, places and procedures: what stands after the first figures is another number."""
    codes = {
        "v": lambda k: f"{k}A1",
        "w": lambda k: f"{k}/h2",
        "x": lambda k: f"{k}R2024",
        "z": lambda k: f"{k % 40}-B",
    }
    with opened(CsvFile(file_of(tmp_path, **codes))) as (table, _):
        found = explore(table, target="y")[0]
    assert not {*found.proposed.units} & {"A1", "h2", "/h2", "R2024"}


@pytest.mark.parametrize("decimal", [".", ","])
def test_a_raised_point_is_one_of_decimals(decimal: Any, tmp_path: Path) -> None:
    path = file_of(tmp_path, v=lambda k: f"3{6 + k % 4}·{k % 10}", w=lambda k: f"{k}{decimal}5")
    spelling = Spelling(decimal)
    with opened(CsvFile(path), spelling=spelling) as (table, _):
        assert explore(table, target="y")[0]["v"].kind == "number"
        rows = table.rows(table.number("v"))
    assert rows == [(float(f"3{6 + k % 4}.{k % 10}"),) for k in range(N)]
    assert spelling.number("-0·5") == -0.5 and spelling.number("1·2·3") is None


WORDS = ("р.", "г.", "r.", "року", "года", "р", "лет")  # the first five say "year" after a date
AROUND = ("{} ygffz", "circa {}", "ελμζβ {} ж", "가나다 {}", "{} เวลาทำ", "about {} kg2")
CORES = ("12.03.20{}", "20{}-03-12", "14:{}", "7 239 3{}", "5,411.{}", "3.{}")


def test_dates_and_figures_among_words_are_read_or_said(tmp_path: Path) -> None:
    """Also where the order of day and month was found in them: a look reads what it proposes, or names the column."""
    forms = [f"{{}} січня 20{{}} {word}" for word in WORDS] + [f"{{}}.02.20{{}} {word}" for word in WORDS]
    dates = {f"date{i}": (lambda k, form=form: form.format(13 + k % 16, 10 + k % 50)) for i, form in enumerate(forms)}
    texts = [around.format(core) for core in CORES for around in AROUND]
    others = {f"text{i}": (lambda k, form=form: form.format(10 + k % 50)) for i, form in enumerate(texts)}
    columns, read, named = [*dates.items(), *others.items()], set[str](), set[str]()
    for first in range(0, len(columns), 9):  # of more than ten the names are not all said
        with opened(CsvFile(file_of(tmp_path, **dict(columns[first : first + 9]))), guess=True) as (table, _):
            found = explore(table, target="y")[0]
        read |= {c.name for c in found.columns if c.kind in ("number", "date", "time") and not c.unread}
        named |= {note.split("'")[1] for note in found.notes if note.startswith("column '")}
    assert [name in read for name in dates] == [True, True, True, True, True, False, False] * 2
    assert {*dates, *others} <= read | named
