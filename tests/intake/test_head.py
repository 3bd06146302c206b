"""The first lines of a file: names are taken where they differ in kind from the records, and stated otherwise."""

from pathlib import Path

import numpy as np
import pytest

from dpmpc.errors import RecordError, owner_text
from dpmpc.intake.head import HeaderError
from dpmpc.intake.spelling import Spelling
from dpmpc.records import CsvFile
from dpmpc.records.loading import opened
from tests.refusals import refuses
from tests.tables import write

N = 60
RECORDS = [f"{20 + k % 50}.3{k % 7},{k % 9},{'fm'[k % 2]},{k % 2}" for k in range(N)]
WORDS = [f"{'abc'[k % 3]},{'de'[k % 2]},{'fghi'[k % 4]}" for k in range(N)]


def names_of(path: Path, **stated: object) -> tuple[tuple[str, ...], int]:
    with opened(CsvFile(path), spelling=Spelling(**stated)) as (table, _):  # type: ignore[arg-type]
        return table.names, table.n


@pytest.mark.parametrize("records", [RECORDS, WORDS])
def test_a_first_line_that_is_a_record_gives_no_names(records: list[str], tmp_path: Path) -> None:
    """Whatever record comes first: names are public, and none of its fields becomes one."""
    width = records[0].count(",") + 1
    for first in range(0, N, 7):
        path = write(tmp_path, "\n".join(records[first:] + records[:first]) + "\n")
        with pytest.raises(HeaderError) as error:
            names_of(path)
        assert error.value.likely == {"no_header": True} and not set("0123456789") & set(error.value.message)
        assert names_of(path, no_header=True) == (tuple(f"column {k + 1}" for k in range(width)), N)
        called = tuple("pqrs"[:width])
        assert names_of(path, names=called) == (called, N)
        assert names_of(path, header=1)[1] == N - 1


@pytest.mark.parametrize("records", [RECORDS, WORDS])
def test_a_first_line_that_differs_in_kind_names_the_columns(records: list[str], tmp_path: Path) -> None:
    names = ("age", "visits", "sex", "sick")[: records[0].count(",") + 1]
    path = write(tmp_path, "\n".join([",".join(names), *records]) + "\n")
    assert names_of(path) == (names, N)


def test_a_first_line_with_a_number_above_numbers_is_asked_about(tmp_path: Path) -> None:
    path = write(tmp_path, "\n".join(["country,2019,2020", *(f"c{k},{k},{k}" for k in range(N))]) + "\n")
    with pytest.raises(HeaderError):
        names_of(path)
    assert names_of(path, header=1) == (("country", "2019", "2020"), N)


def test_second_lines_of_names_and_merged_titles_are_found_together(tmp_path: Path) -> None:
    body = [f"{k};Area {k};{k % 7};{k / 8:.3f};{k % 2}" for k in range(N)]
    head = ["Report, of 2024;", ";", "No;Area;Men;;Sick", ";;First;Second;"]
    path = write(tmp_path, "\n".join([*head, *body]) + "\n")
    with pytest.raises(RecordError) as error:
        names_of(path)
    assert "state spelling=Spelling(header=3, below=1)" in owner_text(error.value)
    found, rows = names_of(path, header=3, below=1)
    assert found == ("No", "Area", "Men", "column 4", "Sick") and rows == N


def test_one_separator_too_many_in_single_rows_is_refused_and_in_all_is_a_habit(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    rows = [f"{k},{rng.integers(9)},{k % 2}," for k in range(N)]
    names = "age,stay,y,note"
    odd = [row if k % 4 else row.replace(",", ",1,", 1) for k, row in enumerate(rows)]
    with pytest.raises(RecordError) as error:
        names_of(write(tmp_path, "\n".join([names, *odd]) + "\n"))
    assert "line 2 has 5, and 14 rows more have another number" in owner_text(error.value)
    assert names_of(write(tmp_path, "\n".join([names, *(f"{row}," for row in rows)]) + "\n"))[1] == N
    assert names_of(write(tmp_path, "\n".join([f"{names},", *(f"{row}," for row in rows)]) + "\n"))[1] == N


def test_a_line_of_names_and_names_are_not_stated_together() -> None:
    with refuses("together", 2, setting="names"):
        Spelling(header=2, no_header=True)
