"""Files whose fields other signs than the usual ones part, or that lack a name: read as they are meant, or refused with
a way out that works."""

from pathlib import Path

import pytest

from dpmpc.errors import RecordError, owner_text
from dpmpc.intake.head import HeaderError, separator_of
from dpmpc.intake.lint import factors
from dpmpc.intake.profile import explore
from dpmpc.intake.spelling import Spelling
from dpmpc.records import CsvFile
from dpmpc.records.loading import opened
from tests.intake.corpus.judge import followed

ROWS = [(k, "north" if k % 3 else "new south", 20 + k % 50, "yes" if k % 2 else "no") for k in range(80)]
NAMES = ("id", "site", "age", "ill")


def _file(path: Path, separator: str, names: tuple[str, ...] = NAMES, first: str = "") -> Path:
    lines = [separator.join(f'"{name}"' for name in names)]
    lines += [separator.join(f'"{value}"' if isinstance(value, str) else f"{value}" for value in row) for row in ROWS]
    path.write_text(first + "".join(f"{line}\n" for line in lines))
    return path


@pytest.mark.parametrize("separator", ["^", "~", "\x01", "\x1f", "\u00a6", " "])
def test_a_sign_that_cuts_all_lines_alike_is_a_separator(separator: str, tmp_path: Path) -> None:
    for first in ("", f"sep={separator}\n"):
        path = _file(tmp_path / "t.csv", separator, first=first)
        with opened(CsvFile(path)) as (table, _):
            assert [column.name for column in table.columns] == [*NAMES] and table.n == 80
            assert table.rows(table.text("site"), "LIMIT 2") == [("new south",), ("north",)]


def test_signs_within_values_part_nothing(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    for name, value in (
        ("mail", "a{}@b.org"),
        ("seen", "2024-01-01 10:{:02d}:00"),
        ("score", "{}/30"),
        ("text", "so {}"),
        ("date of birth", "{} Jan 1950"),
    ):
        path.write_text(f"{name}\n" + "".join(value.format(k % 60) + "\n" for k in range(60)))
        assert separator_of(path) == ","


def test_blanks_that_part_no_record_alike_are_said(tmp_path: Path) -> None:
    """A date and a time beside each other are two fields of one column, whose name is one."""
    path = tmp_path / "t.csv"
    lines = [f"{k:8d} {'north':10s} 2024-01-0{1 + k % 9} 10:00:00 yes" for k in range(60)]
    path.write_text("\n".join(["id       site       admitted            ill", *lines, ""]))
    with pytest.raises(RecordError) as error, opened(CsvFile(path)):
        pass
    assert "blanks alone stand between columns" in owner_text(error.value)
    path.write_text("".join(f'"{k},north,""yes"""\n' for k in range(60)))
    with pytest.raises(RecordError) as error, opened(CsvFile(path)):
        pass
    assert "each line is one field in quotes" in owner_text(error.value)


@pytest.mark.parametrize("separator", [",", ";", " "])
def test_a_name_too_few_is_the_one_of_row_numbers_if_its_owner_says_so(separator: str, tmp_path: Path) -> None:
    path = _file(tmp_path / "t.csv", separator, NAMES[1:])
    with pytest.raises(HeaderError) as error, opened(CsvFile(path)):
        pass
    spelling = followed(Spelling(), owner_text(error.value))
    assert spelling.names == ("column 1", "site", "age", "ill") and spelling.below == 1
    with opened(CsvFile(path), spelling=spelling) as (table, _):
        found, _plain = explore(table)
        assert found.rows == 80 and found["age"].least == 20 and found["column 1"].kind == "identifier"
    path.write_text("site,age\n" + "".join(f"north,{k % 9},{k}\n" for k in range(60)))  # which has no name?
    with pytest.raises(RecordError) as refused, opened(CsvFile(path)):
        pass
    assert "line 2 has 3" in owner_text(refused.value)


def test_years_that_name_columns_are_proposed_as_names(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("place,2019,2020,ill\n" + "".join(f"p{k},{k % 7}.5,{k % 9}.25,{k % 2}\n" for k in range(60)))
    with pytest.raises(HeaderError) as error, opened(CsvFile(path)):
        pass
    assert error.value.likely == {"header": 1}
    path.write_text("place,41,20,ill\n" + "".join(f"p{k},{k % 7}.5,{k % 9}.25,{k % 2}\n" for k in range(60)))
    with pytest.raises(HeaderError) as error, opened(CsvFile(path)):
        pass
    assert error.value.likely == {"no_header": True}


def test_what_is_beside_a_number_may_be_a_factor() -> None:
    """A sign that makes thousands of numbers is no unit; one that some fields lack is."""
    mixed = {f"{k}.5K": 1 for k in range(1, 9)} | {f"{100 * k}": 1 for k in range(1, 10)}
    alike = {f"{k}.5 kg": 1 for k in range(60, 90)} | {f"{k}": 1 for k in range(60, 90)} | {"0": 9}
    assert factors(mixed, Spelling(units=("K",))) == ("5.5K", "500")
    assert factors(alike, Spelling(units=("kg",))) == ("", "")
    lines = [f"{k % 9 + 1}.5K" if k % 2 else str(100 + k) for k in range(200)]
    source = {"fans": lines, "y": [k % 2 for k in range(200)]}
    for spelling in (Spelling(), Spelling(units=("K",))):
        with opened(source, spelling=spelling) as (table, _):
            found, _plain = explore(table)
        assert found.proposed.units == spelling.units
        assert any("'fans'" in line and "seems to be a factor" in line for line in found.findings)
