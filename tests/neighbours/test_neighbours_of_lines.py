"""One record of a text file is another line: it is read by itself, or the file is refused without a word of it; what
the first lines and the last ones are taken for does not move with it either."""

import itertools
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmpc.records.loading import CsvFile
from tests.neighbours.test_neighbours_of_sources import differing, seen

N = 40
KINDS = {
    "whole": lambda k: str(k % 7), "fractions": lambda k: f"{k % 7}.25", "texts": lambda k: "abc"[k % 3],
    "dates": lambda k: f"2024-01-{1 + k % 28:02d}", "codes": lambda k: f"{k % 7:03d}", "nothing": lambda k: "",
}  # fmt: skip
LINES: dict[str, bytes | str] = {
    "empty fields": ",,", "short": "1", "blank": "", "blanks": "   ", "quote": '"', "open quote": '"abc,1,a',
    "quotes": '"a ""b""",1,a', "comment": "# total,1,a", "another separator": "1;2,1,a", "tabs": "1\t2,1,a",
    "total": "Total,300,", "names": "x,z,o", "units": "kg,mm,a", "return": "3,1,a\r", "return within": "3\r,1,a",
    "mark of order": "\ufeff3,1,a", "another encoding": b"caf\xe9,1,a", "accent": "caf\u00e9,1,a", "said": "sep=;",
    "long": "x" * 5000 + ",1,a", "minus nothing": "-0.0,1,a", "tiny": "4.9e-324,1,a", "hexadecimal": "0x10,1,a",
    "separator at the end": "3,1,a,", "a field more": "3,1,a,9", "spaces": " 3 , 1 ,a", "dash": "-,1,a",
    "infinite": "inf,1,a", "beyond a number": "1e999,1,a", "underscore": "1_0,1,a", "signs": "+-1,1,a",
    "code for none": "999,1,a", "word for none": "NA,1,a", "rule": "---,---,---", "separators": ";" * 16,
    "date": "2024-01-02,1,a", "comma": '"3,5",1,a', "parentheses": "(3),1,a", "share": "3%,1,a",
    "money": "\u20ac 3,1,a", "no width": "3\u200b,1,a", "no break": "3\u00a0,1,a", "digit elsewhere": "\u0663,1,a",
    "wide digit": "\uff13,1,a",
    "backslash": "\\,1,a", "apostrophes": "'3',1,a", "nul": "a\0b,1,a", "vertical tab": "3\v4,1,a",
    "line of Unicode": "3\u20284,1,a", "next line": "3\x854,1,a", "separator of files": "3\x1c4,1,a",
}  # fmt: skip
SEPARATORS, ENDS, PLACES = (",", ";", "\t"), ("\n", "\r\n"), (0, 1, N // 2, N - 1)


def written(path: Path, kind: str, separator: str, end: str, odd: tuple[int, str | bytes] | None) -> CsvFile:
    """A file of N records, of which one may be another line."""
    rows = [f"{KINDS[kind](k)},{k % 5},{'ab'[k % 2]}".replace(",", separator).encode() for k in range(N)]
    if odd is not None:
        place, line = odd
        rows[place] = line if isinstance(line, bytes) else line.replace(",", separator).encode()
    path.write_bytes(end.encode().join([separator.join("xzo").encode(), *rows, b""]))
    return CsvFile(path)


def cases(part: int, of: int) -> Iterator[tuple[str, str, str, str, int]]:
    """Every `of`-th; by command, all of them."""
    yield from itertools.islice(itertools.product(SEPARATORS, ENDS, KINDS, LINES, PLACES), part, None, of)


def held_against(separator: str, end: str, kind: str, name: str, place: int, folder: Path) -> str:
    """What is not as it should be; "" for nothing. A blank line is no record, and a file with one more is refused or is
    a table with a record less, which is no neighbour."""
    path = folder / "t.csv"
    one = seen(written(path, kind, separator, end, None))
    other = seen(written(path, kind, separator, end, (place, LINES[name])))
    if isinstance(one, str):
        return "" if isinstance(other, str) else "refused without it alone"
    if isinstance(other, str):
        text = LINES[name]
        word = next((part for part in str(text).replace(",", " ").split() if len(part) > 3), "")
        return f"its line is in what all may know: {other}" if word and word in other else ""
    if one[0] != other[0]:
        return f"columns {one[0]} and {other[0]}"
    if len(one[1]) != len(other[1]):
        return "" if not str(LINES[name]).strip() else f"{len(other[1])} records"
    odd = set(differing(one, other)) - {place}
    return f"{len(odd)} records read differently" if odd else ""


def all_held(part: int, of: int) -> tuple[int, list[str]]:
    """How many files were compared, and what was not as it should be."""
    every, wrong = list(cases(part, of)), list[str]()
    with tempfile.TemporaryDirectory() as folder:
        for case in every:
            if text := held_against(*case, Path(folder)):
                wrong.append(f"{case}: {text}")
    return len(every), wrong


@pytest.mark.parametrize("part", range(3))
def test_one_line_changes_its_own_record_alone(part: int) -> None:
    tried, wrong = all_held(part * 61, 199)
    assert not wrong and tried > 30


def test_a_line_that_decides_for_others_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The generator itself: a dash that has all other numbers rounded, and a refusal that shows its line."""
    dash, long = (",", "\n", "fractions", "dash", 1), (",", "\n", "whole", "short", 1)
    assert held_against(*dash, tmp_path) == held_against(*long, tmp_path) == ""

    true = seen

    def decided(source: CsvFile) -> Any:
        found, text = true(source), Path(source.path).read_text()
        if isinstance(found, str):
            return f"{found}: {LINES['another separator']}"
        return (found[0], np.round(found[1]), found[2]) if "\n-," in text else found

    monkeypatch.setattr("tests.neighbours.test_neighbours_of_lines.seen", decided)
    assert held_against(*dash, tmp_path) == f"{N - 1} records read differently"
    monkeypatch.setitem(LINES, "short", "Mustermann")
    monkeypatch.setitem(LINES, "another separator", "Mustermann")
    assert "in what all may know" in held_against(*long, tmp_path)


def test_what_a_file_is_read_as_is_told_apart() -> None:
    """The generator itself: two readings that differ in one record are."""
    assert differing(([], np.array([1.0, 2.0]), ["", ""]), ([], np.array([1.0, 3.0]), ["", ""])) == [1]
