"""Fields of numbers in other dress than any option reads, rows of units, and words that stand in columns of numbers:
a look says so of each, once, and of nothing that only looks like it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from dpmpc.data import CsvFile
from dpmpc.data.intake import explore
from dpmpc.data.loading import opened
from dpmpc.data.spelling import Spelling
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
        (lambda k: f"3{6 + k % 4}·{k % 10}", True),
        (lambda k: f'"{5 + k % 2}\'{k % 9}"""', True),
        (lambda k: f"{5 + k % 2}′ {k % 9}″", True),
        (lambda k: f"{k % 8}0-{k % 8}9", False),
        (lambda k: f"{k % 12}/15", False),
        (lambda k: f"{k % 5}+", False),
    ],
    ids=("raised point", "feet", "primes", "ages", "scores", "grades"),
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


def test_a_row_of_units_is_said_and_a_first_record_without_values_is_not(tmp_path: Path) -> None:
    columns = {name: (lambda k: f"{k}.5") for name in ("weight", "height", "cost")}
    (note,) = notes(file_of(tmp_path, "kg;m;CHF;", **columns), "row of units")
    assert note.startswith("the first record has words where others have numbers (kg, m, CHF)")
    assert notes(file_of(tmp_path, "gone;gone;gone;yes", **columns), "row of units") == []
    assert notes(file_of(tmp_path, "7;8;gone;yes", **columns), "row of units") == []
