"""What stands above and below the records of a file, and habits of offices that looked like something else."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmpc.errors import RecordError, owner_text
from dpmpc.estimators import PrivateRidge
from dpmpc.intake.profile import explore, look
from dpmpc.intake.spelling import PLAIN, Spelling
from dpmpc.records.loading import CsvFile, load, opened
from tests.refusals import refuses
from tests.runs import dpmpc

pytestmark = pytest.mark.usefixtures("small_tables")

ROWS = [f"{20 + k % 70};{k % 7},{k % 10};{('no', 'yes')[k % 3 == 0]}" for k in range(90)]


def write(folder: Path, text: str, encoding: str = "utf-8") -> CsvFile:
    path = folder / "a.csv"
    path.write_bytes(text.encode(encoding))
    return CsvFile(path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("below", "lines"),
    [
        (["Total: 90"], 1),
        (["", "Summe;44"], 1),
        ([";;", "Summe;44", "", "gedruckt am 1.2.2024"], 3),
        (['"made by ""us"""'], 1),
        ([";;;"], 1),
    ],
)
def test_last_lines_that_are_no_records_are_asked_for_once_with_all_else(
    below: list[str], lines: int, tmp_path: Path
) -> None:
    source = write(tmp_path, "\r\n".join(["größe;wert;y", *ROWS, *below]) + "\r\n", "cp1252")
    with pytest.raises(RecordError) as error:
        load(source, target="y")
    for part in ("encoding='cp1252'", f"footer={lines}", "decimal=','"):
        assert part in owner_text(error.value)
    assert "44" not in error.value.message and "Total" not in error.value.message
    data = load(source, target="y", test_fraction=0.0, spelling=Spelling(",", encoding="cp1252", footer=lines))
    assert data.n == 90 and data.feature_names[:2] == ("größe", "wert")


def test_other_last_lines_are_what_they_were(tmp_path: Path) -> None:
    with opened(write(tmp_path, "a;b;c\n1;2;3\n")) as (table, _):
        assert table.n == 1
    with opened(write(tmp_path, 'a;b;c\n1;2;"x\ny\nz"\n4;5;6;;\n')) as (table, _):
        assert table.n == 2
    with (
        refuses("records", 92, 4),
        opened(write(tmp_path, "\n".join(["a;b;y", *ROWS, "1;2;3;4"]))) as (table, _),
    ):
        assert table.n
    with (
        refuses("records", "a.csv"),
        opened(write(tmp_path, "\n".join(["a;b;y", *ROWS, "1;2"]))),
    ):
        pass
    with (
        refuses("range", 99, setting="footer"),
        opened(CsvFile(tmp_path / "a.csv"), spelling=Spelling(footer=99)),
    ):
        pass
    with refuses("range", -1, setting="footer"):
        Spelling(footer=-1)


@pytest.mark.slow
def test_a_file_that_must_be_guessed_also_says_that_its_target_needs_a_task(tmp_path: Path) -> None:
    source = write(tmp_path, "\n".join(["größe;y", *(f"{k % 9};{k % 3}" for k in range(90))]), "cp1252")
    with refuses("records", "encoding='cp1252'", "y", "task=ridge"):
        load(source, target="y")
    plain = write(tmp_path, "\n".join(["a;y", *(f"{k % 9},5;{k % 9},50" for k in range(90))]))
    with refuses("records", "decimal=','", "y", "task=ridge"):
        load(plain, target="y")
    asked = dpmpc("train", "--csv", plain.path, "--target", "y", "--task", "ridge", "--epsilon", 1, "--delta", 1e-5)
    assert asked.returncode and "has numbers" not in asked.stderr


def found_in(folder: Path, values: list[str], spelling: Spelling = PLAIN) -> tuple[str, str, Spelling]:
    """The kind of a column as a look has it, why, and what it proposes."""
    text = "\n".join(["v;y", *(f"{value};{k % 2}" for k, value in enumerate(values))])
    with opened(write(folder, text), spelling=spelling) as (table, _):
        intake, _ = explore(table, target="y")
    return intake["v"].kind, intake["v"].why, intake.proposed


@pytest.mark.parametrize("values", [["1234 AB", "9711 LM", "3511 CE"], ["99213", "99214", "0001A"]])
def test_codes_with_letters_are_no_numbers_with_units(values: list[str], tmp_path: Path) -> None:
    kind, _, proposed = found_in(tmp_path, values * 30)
    assert kind == "category" and not proposed.units


def test_numbers_with_leading_zeros_may_have_units(tmp_path: Path) -> None:
    assert found_in(tmp_path, [f"{k:03d}Y" for k in range(1, 61)])[2].units == ("Y",)


@pytest.mark.parametrize("form", ["PID{:08d}", "K{}", "{}A"])
def test_numbers_with_letters_that_are_all_different_are_no_amounts(form: str, tmp_path: Path) -> None:
    """With a unit they would be a number in every record, which a survey makes a feature of."""
    rows = [form.format(271_828 + 37 * k) for k in range(90)]
    path = write(tmp_path, "\n".join(["Pat.-ID;v;y", *(f"{row};{k % 9};{k % 2}" for k, row in enumerate(rows))]))
    with opened(path) as (table, _):
        intake, _ = explore(table, target="y")
    assert intake["Pat.-ID"].kind == "identifier" and not intake.proposed.units
    kind, _, proposed = found_in(tmp_path, [f"EUR{k},50" for k in range(1000, 1090)])
    assert kind == "number" and proposed.units == ("EUR",)  # these are amounts


def test_one_word_among_many_numbers_is_a_remark(tmp_path: Path) -> None:
    """A twelfth of the fields, of forty numbers: a category of forty temperatures would be none."""
    kind, why, _ = found_in(tmp_path, [f"{36 + k % 40 / 10:.1f}" if k % 8 else "미측정" for k in range(400)])
    assert kind == "number" and why == "350 of 400 values are numbers"
    assert found_in(tmp_path, [str(k % 8) if k % 8 else "none" for k in range(400)])[0] == "category"


@pytest.mark.parametrize("zero", ["٠", "۰", "०", "０", "0"])
def test_identifiers_in_any_digits_are_identifiers(zero: str, tmp_path: Path) -> None:
    digits = {48 + d: ord(zero) + d for d in range(10)}
    kind, why, _ = found_in(tmp_path, [f"{271_828 * k % 9_999_991:07d}".translate(digits) for k in range(90)])
    assert kind == "number" and why == "whole numbers, all different: an identifier?"
    assert found_in(tmp_path, [f"{k % 7:04d}".translate(digits) for k in range(90)])[2].words == ("v",)


@pytest.mark.slow
@pytest.mark.parametrize("mark", ["X", "1", "√"])
def test_a_mark_or_none_is_a_category(mark: str, tmp_path: Path) -> None:
    assert found_in(tmp_path, [mark, "", ""] * 30)[:2] == ("category", "one value or none")
    assert found_in(tmp_path, [mark] * 90)[0] == "constant"
    rows = "\n".join(["v;w;y", *(f"{mark if k % 3 else ''};{k % 8};{k % 2}" for k in range(90))])
    data = load(write(tmp_path, rows), target="y", test_fraction=0.0)
    assert any(name.startswith("v") for name in data.feature_names)


@pytest.mark.parametrize(
    ("field", "value", "spelling"),
    [
        ("385,-", 385, Spelling(",", units=(",-",))),
        ("€ 1.385,--", 1385, Spelling(",", ".", units=("€", ",--"))),
        ("12.–", 12, Spelling(units=(".–",))),
        ("385,-", None, Spelling(",", negative="trailing")),
        ("385-", -385, Spelling(",", negative="trailing")),
        ("5 -", -5, Spelling(",", negative="trailing")),
    ],
)
def test_whole_amounts_that_end_in_a_dash_are_not_negative(
    field: str, value: float | None, spelling: Spelling, tmp_path: Path
) -> None:
    assert spelling.number(field) == value
    with opened(write(tmp_path, f"v;y\n{field};1\n"), spelling=spelling) as (table, _):
        assert table.one(table.number("v")) == (value,)


def test_whole_amounts_are_proposed_beside_others(tmp_path: Path) -> None:
    kind, _, proposed = found_in(tmp_path, [f"€ {k},-" if k % 2 else f"€ {k},50" for k in range(90)])
    assert kind == "number" and set(proposed.units) == {"€", ",-"} and not proposed.negative


def test_frames_say_in_a_line_what_is_to_be_changed() -> None:
    with refuses("unique"), opened({"": np.ones(9), "a": np.ones(9)}):
        pass
    with refuses("records", 1, kind=ValueError):
        PrivateRidge(epsilon=1.0, delta=1e-5, engine="clear").fit(
            np.arange(90.0)[:, None], [f"{k},5 €" for k in range(90)]
        )


@pytest.mark.parametrize("word", ["\\N", "#WERT!", "#VALEUR!", "#¡DIV/0!", "#NV"])
def test_what_programs_write_for_no_value_is_named(word: str, tmp_path: Path) -> None:
    with opened(write(tmp_path, "\n".join(["v;y", *(f"{word if k % 9 == 0 else k};{k % 2}" for k in range(90))]))) as (
        table,
        _,
    ):
        assert word.lower() in look(table, target="y")[0].proposed.missing


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("12MAY2023:06:00:00", 19489.25),
        ("12/May/2023:06:00:00 +0200", 19489.25),
        ("12/05/2023 06.00", 19489.25),
        ("2023-05-12 06.00.00", 19489.25),
        ("12.05.2023 06.00", 19489.25),
    ],
)
def test_times_after_dates_as_programs_and_people_write_them(text: str, days: float, tmp_path: Path) -> None:
    spelling = Spelling(dates="dmy")
    assert spelling.days(text) == days
    with opened(write(tmp_path, f"v;y\n{text};1\n"), spelling=spelling) as (table, _):
        assert table.one(table.days("v")) == (days,)


@pytest.mark.parametrize("where", ["first", "last"])
@pytest.mark.parametrize(("length", "fits"), [(200_000, True), (3_000_000, False)])
def test_a_long_field_is_read_or_named(where: str, length: int, fits: bool, tmp_path: Path) -> None:
    long = f"1;{'a' * length};yes"
    rows = [f"{k % 9};b;{('no', 'yes')[k % 2]}" for k in range(50)]
    source = write(tmp_path, "\n".join(["x;note;y", *([long, *rows] if where == "first" else [*rows, long])]) + "\n")
    if fits:
        with opened(source) as (table, _):
            assert table.n == 51
    else:
        with refuses("records", 2097152, "a.csv"):
            load(source, target="y")


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.zip", "a.parquet", "a.jsonl", "a"])
def test_a_pipe_is_refused_before_it_is_opened(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever opens one that nobody writes to waits for ever."""
    pipe = tmp_path / name
    os.mkfifo(pipe)

    def opens(path: Path, *rest: Any, **more: Any) -> Any:
        raise AssertionError(path)

    monkeypatch.setattr(Path, "open", opens)
    monkeypatch.setattr(Path, "read_bytes", opens)
    with refuses("path"), opened(CsvFile(pipe)):
        pass


@pytest.mark.parametrize(("names", "end", "columns", "found"), [("a;b;y", ";1,5", 3, 4), ("a;b;c;y", "", 4, 3)])
def test_rows_unlike_the_names_are_held_against_the_names(
    names: str, end: str, columns: int, found: int, tmp_path: Path
) -> None:
    """Decimal commas cut each record alike, but not its names."""
    rows = "".join(f"{row}{end}\n" for row in ROWS)
    with refuses("records", columns, found, 2, 89):
        with opened(write(tmp_path, f"{names}\n{rows}")):
            pass
