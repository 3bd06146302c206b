"""Text files as columns: against Python's own csv module and float, and what is refused."""

import csv
import gzip
import io
import random
from pathlib import Path

import numpy as np
import pytest

from dpmpc.data.table import Table, is_missing, numbers, parse, read_table
from dpmpc.errors import UsageError


def write(folder: Path, text: str | bytes, name: str = "t.csv") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def cells(table: Table) -> list[list[str]]:
    return [list(row) for row in zip(*([bytes(c).decode() for c in table[name]] for name in table), strict=True)]


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_separators_and_line_ends_are_found(tmp_path: Path, separator: str, end: str) -> None:
    rows = [["age", "job", "y"], ["31", "nurse", "1"], ["", "x", "0"], ["7", "", "1"]]
    table = read_table(write(tmp_path, end.join(separator.join(row) for row in rows)))
    assert table.names == ("age", "job", "y") and table.n == 3 and cells(table) == rows[1:]


@pytest.mark.parametrize("seed", range(6))
def test_random_tables_read_as_the_csv_module_reads_them(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    alphabet = 'ab1.é, ;"' if seed % 2 else "ab1.é;-"
    rows = [["".join(rng.choices(alphabet, k=rng.randrange(7))).strip() for _ in range(4)] for _ in range(50)]
    rows = [["p", "q", "r", "s"], *([cell or "-" for cell in row] for row in rows)]
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL if seed == 1 else csv.QUOTE_MINIMAL).writerows(rows)
    got = cells(read_table(write(tmp_path, text.getvalue()), separator=","))
    assert got == [[cell.strip() for cell in row] for row in rows[1:]]


def test_quoted_line_ends_and_separators_stay_in_their_field(tmp_path: Path) -> None:
    table = read_table(write(tmp_path, 'a,b\n"one\ntwo, three","say ""x"""\n'))
    assert cells(table) == [["one two, three", 'say "x"']]


def test_gz_bom_blank_lines_comments_and_space(tmp_path: Path) -> None:
    text = b"\xef\xbb\xbf a , b \n\n|remark, with commas,,\n 1 ,  two words \n   \n3,\t4\n\n"
    table = read_table(write(tmp_path, gzip.compress(text), "t.csv.gz"), comment="|")
    assert table.names == ("a", "b") and cells(table) == [["1", "two words"], ["3", "4"]]


def test_names_may_be_given_and_rows_chosen(tmp_path: Path) -> None:
    table = read_table(write(tmp_path, "1,x\n2,yy\n3,z\n"), names=("n", "t"))
    assert table.rows(np.array([2, 0, 0]))["t"].tolist() == [b"z", b"x", b"x"]
    both = Table.joined([table, table.rows(np.array([1]))])
    assert both["n"].tolist() == [b"1", b"2", b"3", b"2"] and both["t"].tolist()[1::2] == [b"yy", b"yy"]


def test_one_column_with_empty_fields_has_no_blank_rows(tmp_path: Path) -> None:
    assert read_table(write(tmp_path, "a\n1\n\n2\n"))["a"].tolist() == [b"1", b"2"]


def test_numbers_equal_float_to_the_last_bit() -> None:
    rng = random.Random(7)
    texts = [
        "0",
        "-0",
        "0.",
        ".5",
        "-.5",
        "1e3",
        "-2.5E-7",
        "+4",
        "123456789012345",
        "1234567890123456789",
        "0.1",
        "-7",
    ]
    for _ in range(3000):
        digits = "".join(rng.choices("0123456789", k=rng.randrange(1, 20)))
        place = rng.randrange(len(digits) + 1)
        texts.append(rng.choice(["", "-"]) + digits[:place] + rng.choice([".", ""]) + digits[place:])
    values, bad = parse(np.array([text.encode() for text in texts]))
    expected = np.array([float(text) for text in texts])
    assert (
        not bad.any() and np.array_equal(values, expected) and np.array_equal(np.signbit(values), np.signbit(expected))
    )


def test_what_is_no_number_and_what_is_missing() -> None:
    wrong = np.array(
        [b"x", b"1,5", b"1_0", b"nan", b"inf", b"-inf", b"1e999", b".", b"-", b"--1", b"1-", b"0x1", b"1.2.3", b"1 2"]
    )
    values, bad = parse(wrong)
    assert bad.all() and np.isnan(values).all()
    missing = np.array([b"", b"?", b"NA", b"na", b"N/A", b"null", b"NULL"])
    values, bad = parse(missing)
    assert not bad.any() and np.isnan(values).all() and is_missing(missing).all()
    assert not is_missing(np.array([b"none", b"unknown", b"0", b"nan", b"naa"])).any()
    long = np.array([b"?", b"nothing missing", b"null", b"nul"] * 2000)
    assert np.array_equal(is_missing(long), np.tile([True, False, True, False], 2000))
    with pytest.raises(UsageError, match="it has 'inf'"):
        numbers(np.array([b"1", b"inf"]), "column 'a'")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "empty"),
        (b"a,b\n", "column names only"),
        (b"a,b\n1,2\n3\n", "line 3 has 1"),
        (b"a,b\n1,2\n\n3,4,5\n", "line 4 has 3"),
        (b"a,a\n1,2\n", "unique"),
        (b"a,\n1,2\n", "not empty"),
        (b"a,b\n\x001,2\n", "binary"),
        (b"a,b\n\xff,2\n", "UTF-8"),
        (b'a,b\n"1,2\n', "quotes must pair up"),
        (b"\x1f\x8b\x08 broken", "damaged"),
    ],
)
def test_unreadable_files_are_usage_errors(tmp_path: Path, content: bytes, words: str) -> None:
    with pytest.raises(UsageError, match=words) as error:
        read_table(write(tmp_path, content))
    assert "\n" not in str(error.value)


def test_missing_file_column_and_overlong_field(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        read_table(tmp_path / "none.csv")
    with pytest.raises(UsageError, match="Is a directory"):
        read_table(tmp_path)
    table = read_table(write(tmp_path, "a,b\n1," + "x" * 5000 + "\n"))
    assert table["a"].tolist() == [b"1"]
    with pytest.raises(UsageError, match="drop that column"):
        table["b"]
    with pytest.raises(UsageError, match="has no 'c'; its columns are a, b"):
        table["c"]
