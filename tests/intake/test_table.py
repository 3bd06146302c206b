"""Text files as columns: against Python's own csv module and float, and what is refused."""

import csv
import gzip
import io
import random
import shutil
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from dpmpc.errors import owner_text, public_text
from dpmpc.intake import packed
from dpmpc.intake import table as table_module
from dpmpc.intake.engine import explained
from dpmpc.intake.partitions import check_names_of
from dpmpc.intake.profile import look
from dpmpc.intake.spelling import canonical, is_missing, is_number
from dpmpc.intake.table import Table, code_sql, value_sql
from dpmpc.records.loading import CsvFile, opened
from tests.refusals import Rule, breaks, refuses
from tests.tables import csv_cells, write

pytestmark = pytest.mark.usefixtures("small_tables")


def values_of(texts: list[str], folder: Path) -> Any:
    """(n,) what a CSV column of these texts is as numbers: NaN where missing, infinite where no number."""
    path = write(folder, "k,v\n" + "".join(f'{k},"{text}"\n' for k, text in enumerate(texts)))
    with opened(CsvFile(path)) as (table, _):
        return np.concatenate([block[0] for block in table.blocks([value_sql(table, "v")])])


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_separators_and_line_ends_are_found(tmp_path: Path, separator: str, end: str) -> None:
    rows = [["age", "job", "y"], ["31", "nurse", "1"], ["", "x", "0"], ["7", "", "1"]]
    names, cells = csv_cells(write(tmp_path, end.join(separator.join(row) for row in rows)))
    assert names == ("age", "job", "y") and cells == rows[1:]


@pytest.mark.parametrize("seed", range(6))
def test_random_tables_read_as_the_csv_module_reads_them(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    alphabet = 'ab1.é, ;"' if seed % 2 else "ab1.é;-"
    rows = [["".join(rng.choices(alphabet, k=rng.randrange(7))).strip() for _ in range(4)] for _ in range(50)]
    rows = [["p", "q", "r", "s"], *([cell or "-" for cell in row] for row in rows)]
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL if seed == 1 else csv.QUOTE_MINIMAL).writerows(rows)
    assert csv_cells(write(tmp_path, text.getvalue()), separator=",")[1] == [
        [cell.strip() for cell in row] for row in rows[1:]
    ]


def test_quoted_line_ends_and_separators_stay_in_their_field(tmp_path: Path) -> None:
    path = write(tmp_path, 'a,b\n"one\ntwo, three","say ""x"""\n')
    assert csv_cells(path)[1] == [["one two, three", 'say "x"']]


def test_gz_bom_blank_lines_comments_and_space(tmp_path: Path) -> None:
    text = b"\xef\xbb\xbf a , b \n\n|remark, with commas,,\n 1 ,  two words \n   \n3,\t4\n\n"
    names, cells = csv_cells(write(tmp_path, gzip.compress(text), "t.csv.gz"), comment="|")
    assert names == ("a", "b") and cells == [["1", "two words"], ["3", "4"]]


def test_zstandard_of_several_frames(tmp_path: Path) -> None:
    import zstandard

    both = zstandard.ZstdCompressor().compress(b"a,b\n1,2\n") + zstandard.ZstdCompressor().compress(b"3,4\n")
    assert csv_cells(write(tmp_path, both, "t.csv.zst"))[1] == [["1", "2"], ["3", "4"]]
    with refuses("usage", "t.csv.zst"):
        csv_cells(write(tmp_path, both[:-3], "t.csv.zst"))


@pytest.mark.parametrize(("kind", "honest"), [("gz", False), ("zst", False), ("zst", True)])
def test_a_packed_file_unpacks_within_measure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, honest: bool
) -> None:
    """A bomb is refused before a byte is written where it says its size, else soon after; nothing of it is left."""
    import zstandard

    monkeypatch.setattr(packed, "_UNJUDGED", 1 << 20)
    monkeypatch.setattr(packed, "_RATIO", 100)
    pack = gzip.compress if kind == "gz" else zstandard.ZstdCompressor().compress
    large, small = pack(bytes(1 << 25)), pack(b"1")
    path = write(tmp_path, large + small if honest else small + large, f"t.csv.{kind}")
    folder = tmp_path / "copies"
    folder.mkdir()
    asked: list[int] = []
    check = packed.check_room

    def counting(name: str, whole: int, size: int, written: int, folder: Path) -> None:
        asked.append(written)
        check(name, whole, size, written, folder)

    monkeypatch.setattr(packed, "check_room", counting)
    with refuses("records", 100, "t.csv") as refused:
        packed.unpack(Path(path), folder / "0.text")
    assert "t.csv" not in public_text(refused.value)
    assert not list(folder.iterdir())
    assert (len(asked) == 1) is honest and max(asked) < 1 << 23


@pytest.mark.parametrize("kind", ["gz", "zst"])
def test_a_packed_file_leaves_room_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    import zstandard

    pack = gzip.compress if kind == "gz" else zstandard.ZstdCompressor().compress
    path = write(tmp_path, pack(b"a,b\n" + b"1,2\n" * 1000) + pack(b"3,4\n"), f"t.csv.{kind}")
    folder = tmp_path / "copies"
    folder.mkdir()
    usage = shutil.disk_usage(tmp_path)
    for free, works in ((1 << 26, False), ((1 << 26) + 4003, False), ((1 << 26) + 4008, True)):
        monkeypatch.setattr(shutil, "disk_usage", lambda folder, free=free: usage._replace(free=free))
        if works:
            packed.unpack(Path(path), folder / "0.text")
            assert (folder / "0.text").stat().st_size == 4008
        else:
            with refuses("records", f"{free:,}"):
                packed.unpack(Path(path), folder / "0.text")
            assert not list(folder.iterdir())


def test_blank_lines_with_spaces_do_not_count_and_the_rest_is_read_as_ever(tmp_path: Path) -> None:
    """DuckDB refuses such a file; the clean copy that is made then must read as the file itself would."""
    odd = 'a,b\n1,"x, y"\n   \n 2 ,z\n\n3,"p\nq"\n'
    assert csv_cells(write(tmp_path, odd))[1] == csv_cells(write(tmp_path, odd.replace("   \n", "")))[1]
    assert csv_cells(write(tmp_path, odd))[1] == [["1", "x, y"], ["2", "z"], ["3", "p q"]]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("first", ["", "sep=,\n", "\n"])
def test_a_name_over_several_lines_costs_no_record(tmp_path: Path, first: str, end: str) -> None:
    """A quoted line break in a header, as spreadsheets write it: each counts as one line to DuckDB's `skip`."""
    text = first + f'"age {end} (years)",b,"dose{end}{end}mg"{end}' + "".join(f"{k},x,{k}{end}" for k in range(5))
    names, cells = csv_cells(write(tmp_path, text))
    assert names == ("age (years)", "b", "dose mg") and cells == [[str(k), "x", str(k)] for k in range(5)]


def test_names_may_be_given(tmp_path: Path) -> None:
    assert csv_cells(write(tmp_path, "1,x\n2,yy\n3,z\n"), names=("n", "t")) == (
        ("n", "t"),
        [["1", "x"], ["2", "yy"], ["3", "z"]],
    )


def test_one_column_with_empty_fields_has_no_blank_rows(tmp_path: Path) -> None:
    assert csv_cells(write(tmp_path, "a\n1\n\n2\n"))[1] == [["1"], ["2"]]


def test_numbers_equal_float_to_the_last_bit(tmp_path: Path) -> None:
    rng = random.Random(7)
    texts = ["0", "-0", "0.", ".5", "-.5", "1e3", "-2.5E-7", "+4", "123456789012345", "1234567890123456789", "0.1"]
    for _ in range(3000):
        digits = "".join(rng.choices("0123456789", k=rng.randrange(1, 20)))
        place = rng.randrange(len(digits) + 1)
        exponent = rng.choice(["", "", f"e{rng.randrange(-330, 290)}"])
        texts.append(rng.choice(["", "-"]) + digits[:place] + rng.choice([".", ""]) + digits[place:] + exponent)
    values, expected = values_of(texts, tmp_path), np.array([float(text) for text in texts])
    assert np.array_equal(values, expected) and np.array_equal(np.signbit(values), np.signbit(expected))


def test_what_is_no_number_and_what_is_missing(tmp_path: Path) -> None:
    wrong = ["x", "1,5", "1_0", "nan", "inf", "-inf", "1e999", ".", "-", "--1", "+-1", "1-", "0x1", "1.2.3", "١x"]
    assert np.isinf(values_of(wrong, tmp_path)).all()
    assert not any(map(is_number, wrong)) and is_number("1e3") and not is_number("1_0")
    missing = ["", "?", "NA", "na", "N/A", "null", "NULL", " ? ", "\tNA\n"]
    assert np.isnan(values_of(missing, tmp_path)).all() and all(is_missing(text.strip()) for text in missing)
    there = ["none", "unknown", "0", "nan", "naa"]
    assert not np.isnan(values_of(there, tmp_path)).any() and not any(map(is_missing, there))


def test_row_4_000_000_may_be_the_first_with_text(tmp_path: Path) -> None:
    """A value far behind everything that a look at the first rows sees decides like any other."""
    path = write(tmp_path, "a,b\n" + "1,2\n" * 60_000 + "x,2\n")
    with opened(CsvFile(path)) as (table, _):
        values = np.concatenate([block[0] for block in table.blocks([value_sql(table, "a")])])
        assert len(values) == 60_001 and np.isinf(values).sum() == 1 and np.isinf(values[-1])


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("4.0", "4"),
        ("04", "4"),
        ("4e0", "4"),
        ("+4", "4"),
        ("-0", "0"),
        ("TRUE", "true"),
        ("False", "false"),
        ("a\nb", "a b"),
    ],
)
def test_values_are_compared_as_what_they_are(tmp_path: Path, text: str, same: str) -> None:
    assert canonical(text) == canonical(same) == same and canonical("4a") != canonical("4")
    path = write(tmp_path, f'k,v\n1,"{text}"\n2,{same}\n3,other\n4,\n')
    with opened(CsvFile(path)) as (table, _):
        codes = [block[0] for block in table.blocks([code_sql(table, "v", {"else": 0, same: 7})])]
        assert codes[0].tolist() == [7, 7, -2, -1]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", breaks("file")),
        (b"a,b\n", breaks("enough")),
        (b"a,b\n1,2\n3\n", breaks("records", "t.csv")),
        (b"a,b\n1,2\n3\n4,5\n", breaks("records", 3, 1)),
        (b"a,b\n1,2\n\n3,4,5\n", breaks("records", 4, 3)),
        (b"a,a,a (1)\n1,2,3\n", breaks("unique", "a (1)")),
        (b"a,b\n\x001,2\n", breaks("file")),
        (b"a,b\n\xff,2\n", breaks("records", "UTF", -8)),
        (b"a,b\n1,\xc3", breaks("records", "UTF", -8, "t.csv", 6)),
        (b'a,b\n"1,2\n', breaks("records", 2)),
        (b"\x1f\x8b\x08 broken", breaks("usage", "t.csv")),
        (b"\xff\xfea\x00,\x00b\x00\n\x00", breaks("enough")),  # UTF-16, as its mark says
    ],
)
def test_unreadable_files_are_usage_errors(tmp_path: Path, content: bytes, words: Rule) -> None:
    with refuses(words) as error:
        csv_cells(write(tmp_path, content))
    assert "\n" not in owner_text(error.value)


@pytest.mark.parametrize(
    ("content", "names"),
    [
        ("a,a,b\n1,2,3\n", ("a (1)", "a (2)", "b")),  # neither is taken for the other
        ("a,b,\n1,2,\n3,4,\n", ("a", "b", "column 3")),
        ("a,b\n1,2,\n3,4,\n5,6,\n", ("a", "b")),  # lines that end with a separator, and a header that does not
        ("a;b\n1;2;;\n3;4\n5;6;;;\n7;8\n9;10\n", ("a", "b")),
    ],
)
def test_headers_as_offices_send_them(tmp_path: Path, content: str, names: tuple[str, ...]) -> None:
    with opened(CsvFile(write(tmp_path, content))) as (table, _):
        assert table.names == names
        assert table.n == content.count("\n") - 1
        assert table.rows(table.text(names[1]))[0] == ("2",)
        looked = look(table)[0]
        assert ("its header is empty" in looked.columns[-1].why) == (names[-1] == "column 3")
        assert ("2 columns are called 'a'" in looked.columns[0].why) == (names[0] == "a (1)")


def test_missing_file_and_column(tmp_path: Path) -> None:
    with refuses("path"):
        csv_cells(tmp_path / "none.csv")
    with refuses("path"):
        csv_cells(tmp_path)
    with (
        opened(CsvFile(write(tmp_path, "a,b\n1,2\n"))) as (table, _),
        refuses("column", "c"),
    ):
        table["c"]


MANY = (*(f"x{k}" for k in range(300)), "readmitted")


@pytest.mark.parametrize("columns", [("age", "ward", "readmitted"), MANY], ids=len)
def test_a_mistyped_column_is_answered_with_the_nearest(columns: tuple[str, ...], tmp_path: Path) -> None:
    """The same words where a table is asked for it, a look, and a part of a file."""
    rows = [",".join(columns), ",".join("1" for _ in columns), ",".join("2" for _ in columns)]
    path = write(tmp_path, "\n".join(rows) + "\n")
    with opened(CsvFile(path)) as (table, _):
        with refuses("column", "did you mean 'readmitted'?"):
            table["readmited"]
        with refuses("column", "did you mean 'readmitted'?"):
            look(table)[0]["readmited"]
    with refuses("column", "did you mean 'readmitted'?"):
        check_names_of("part.csv", [(name, "VARCHAR") for name in columns], ["readmited"])


def test_a_query_asks_for_so_many_sums_at_most(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """DuckDB ends the process at ten thousand."""
    path = tmp_path / "records.csv"
    path.write_text("a\n1\n2\n")
    monkeypatch.setattr(table_module, "_AT_ONCE", 2)
    with opened(CsvFile(path)) as (table, _):
        asked = [f"sum({table.number('a')}) + {k}" for k in range(5)]
        seen: list[str] = []
        monkeypatch.setattr(Table, "run", lambda self, query, run=Table.run: seen.append(query) or run(self, query))
        assert table.one(*asked) == (3, 4, 5, 6, 7) and len(seen) == 3


@pytest.mark.parametrize("error", [RuntimeError("Query interrupted"), duckdb.InterruptException("Interrupted!")])
def test_a_query_that_a_signal_ends_is_no_fault_of_the_source(error: Exception) -> None:
    with pytest.raises(KeyboardInterrupt):
        explained(error, "records.csv")
