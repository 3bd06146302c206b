"""What stands above and below the records of a text file: titles, a first line `sep=;`, lines of totals and remarks.

They are found here and proposed, for the file's owner states which line names the columns and how many of the last
lines are no records.
"""

import csv
import re
import shutil
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from dpmpc.errors import RecordError, UsageError, sayable
from dpmpc.intake.spelling import stating
from dpmpc.lazy import regex

SEPARATORS = (",", ";", "\t", "|")
TOTALS = (
    "total", "totals", "total:", "grand total", "subtotal", "sum", "sums", "sum:", "summe", "summe:", "gesamt",
    "gesamt:", "gesamtsumme", "insgesamt", "somme", "total g\u00e9n\u00e9ral", "suma", "total general", "totale",
    "somma", "soma", "total geral", "totaal", "som", "totalt", "toplam", "genel toplam", "razem", "celkem",
    "\u0438\u0442\u043e\u0433\u043e", "\u0432\u0441\u0435\u0433\u043e", "\u5408\u8ba1", "\u5408\u8a08",
    "\u603b\u8ba1", "\u7dcf\u8a08", "\u5c0f\u8ba1", "\ud569\uacc4", "\u0e23\u0e27\u0e21", "\u062c\u0645\u0639",
)  # fmt: skip
TOTAL = regex(rf"({'|'.join(re.escape(word) for word in dict.fromkeys(TOTALS))})[ :]*(\d[\d.,' ]*.*|\(.*\))?")
_TOP = 12  # lines, among which the one is that names the columns
_LAST = 8  # lines at most that are proposed as no records
_TAIL = 1 << 16  # bytes that are looked at for them


class HeaderError(RecordError):
    """The first row of a file does not name its columns. `likely`: the line that seems to; `rule`: what is said before
    the way out."""

    likely, rule = 0, ""


class FooterError(RecordError):
    """The last lines of a file are no records. `likely`: how many; `rule`: what is said before the way out."""

    likely, rule = 0, ""


def lines_of(path: Path) -> Iterator[str]:
    """The file's lines with their ends (any of \\n, \\r\\n and \\r), without a byte order mark."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        yield from file


def declared(path: Path) -> str:
    """The separator in a first line `sep=;`, which Excel writes and reads; nothing if there is none."""
    first = next(lines_of(path), "").strip("\r\n")
    return first[4:] if first[:4].lower() == "sep=" and first[4:] in SEPARATORS else ""


def surplus(row: Sequence[str], width: int) -> bool:
    """Whether a row has separators at its end beyond this width, and nothing between them."""
    return len(row) > width and not any(cell.strip() for cell in row[width:])


def check_first(path: Path, name: str, separator: str) -> None:
    """Errors: a row below the first seems to name the columns: it fills a table of several columns whose first lines
    do not, and has words alone."""
    try:
        texts = [line for line in islice(lines_of(path), _TOP)]
    except UnicodeError:
        return
    cut = any(len(row) > 1 for _, row in islice(_each_line(texts, separator), 1))
    for mark in (separator,) if cut else dict.fromkeys((separator, *SEPARATORS)):
        rows = [(row, k) for k, row in _each_line(texts, mark) if any(cell.strip() for cell in row)]
        if declared(path):
            rows = rows[1:]
        width = max((k for row, _ in rows for k, cell in enumerate(row, 1) if cell.strip()), default=0)
        rows = [(row[:width], k) for row, k in rows]  # without columns at the end that are empty, as spreadsheets write
        if width < 3 or not _titled(rows[0][0], width):
            continue
        full = next((at for at, (row, _) in enumerate(rows) if at and _is_full(row, width)), 0)
        below = rows[full + 1][0] if full and full + 1 < len(rows) else []
        if len(below) >= width and _names_alone(rows[full][0], width) and not _names_alone(below, width):
            row, k = rows[full]
            rule = (
                f"the first row of a data file names its columns; that of {name} does not, and line {k} seems to "
                f"({', '.join(' '.join(cell.split())[:20] for cell in row[:4])}, ...)"
            )
            error = HeaderError(
                f"{rule}; state {stating(header=k)}, or take the lines above it away ({stating(header=rows[0][1])} "
                "where the first row is meant)",
                "the first row of an owner's file does not seem to name its columns",
            )
            error.likely, error.rule = k, rule
            raise error


def _each_line(texts: Sequence[str], separator: str) -> Iterator[tuple[int, list[str]]]:
    """Each row's cells, and its first line's number; none after a quote that is not closed within these lines."""
    reader, before = csv.reader(texts, delimiter=separator, skipinitialspace=True), 0
    while True:
        try:
            row = next(reader, None)
        except csv.Error:  # a line that is too long, which whoever reads the rows refuses
            return
        if row is None or sum(text.count('"') for text in texts[before : reader.line_num]) % 2:
            return
        yield before + 1, row
        before = reader.line_num


def _is_full(row: Sequence[str], width: int) -> bool:
    """Whether there are so many cells, none of them empty."""
    return sum(bool(cell.strip()) for cell in row) == width


def _cells(text: str, separator: str) -> list[str]:
    """Those of a line; none of one that is too long, which whoever reads the rows refuses."""
    try:
        return next(csv.reader([text], delimiter=separator, skipinitialspace=True), [])
    except csv.Error:
        return []


def _titled(row: Sequence[str], width: int) -> bool:
    """Whether at least half of the cells, of which there should be so many, are empty or not there."""
    return 2 * sum(bool(cell.strip()) for cell in row) <= width


def _names_alone(row: Sequence[str], width: int) -> bool:
    """Whether there are so many different names and nothing else."""
    cells = [cell.strip() for cell in row]
    return len(cells) == width and all(cells) and not any(cell[0] in "0123456789+-.<>=" for cell in cells)


def check_last(path: Path, name: str, separator: str, width: int) -> None:
    """Errors: the last lines have fewer fields than `width` or no field with a value, while those above are rows."""
    texts, whole = _last_lines(path)
    rows = [_cells(text, separator) for _, text in texts]
    odd = 0
    for (_, text), row in reversed(list(zip(texts, rows, strict=True))):
        record = len(row) >= width and any(cell.strip() for cell in row)
        if text.count('"') % 2 or (record and not (odd and _is_total(row))):
            break
        odd += 1
    above = len(rows) - odd
    if not 0 < odd <= _LAST or above < (2 if whole else 1):
        return
    shown = next((cell.strip()[:20] for row in rows[above:] for cell in row if cell.strip()), "")
    last = "the last line" if odd == 1 else f"the last {odd} lines"
    rule = (
        f"every row is a record with as many fields as there are columns, {width}; {last} of {name} "
        f"{'is none' if odd == 1 else 'are none'}" + (f" ('{shown}')" if shown else "")
    )
    error = FooterError(
        f"{rule}; state {stating(footer=odd)}, or correct the file", "the last lines of an owner's file are no records"
    )
    error.likely, error.rule = odd, rule
    raise error


def _is_total(row: Sequence[str]) -> bool:
    """Whether a row is called a total where it begins, and has cells without a value."""
    first = next((cell.strip().lower() for cell in row if cell.strip()), "")
    return bool(TOTAL.fullmatch(first)) and not all(cell.strip() for cell in row)


def _last_lines(path: Path) -> tuple[list[tuple[int, str]], bool]:
    """The last lines of a file that are not blank, each with where it begins in bytes; whether the first line of the
    file is among them."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        begin = file.seek(max(0, size - _TAIL))
        tail = file.read()
    found, at = [], begin
    for line in tail.splitlines(keepends=True):
        if line.strip():
            found.append((at, line.decode("utf-8-sig", errors="replace").strip("\r\n")))
        at += len(line)
    return (found if begin == 0 else found[1:]), begin == 0


def without_last(path: Path, name: str, lines: int, folder: Path) -> Path:
    """A copy of a text file without so many of its last lines that are not blank. Errors: there are not so many of at
    most some kilobytes; the disk is full."""
    texts, _ = _last_lines(path)
    if len(texts) < lines:
        raise UsageError(f"<<footer>> is a number of last lines; {sayable(name)} has not {sayable(lines)}; correct it")
    copy = folder / f"{len(list(folder.iterdir()))}.cut"
    try:
        with path.open("rb") as file, copy.open("wb") as out:
            shutil.copyfileobj(file, out)
            out.truncate(texts[-lines][0])
    except OSError as error:
        raise UsageError(
            f"records need room on the disk while they are read; {sayable(name)}: {error.strerror}; free some"
        ) from None
    return copy
