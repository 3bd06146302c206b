"""What stands below the records of a text file: lines of totals and remarks.

They are found here and proposed, for the file's owner states how many of the last lines are no records.
"""

import csv
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from dpmpc.errors import UsageError, sayable
from dpmpc.intake.head import UnstatedError
from dpmpc.intake.scratch import with_room
from dpmpc.intake.spelling import stating
from dpmpc.lazy import regex

TOTALS = (
    "total", "totals", "total:", "grand total", "subtotal", "sum", "sums", "sum:", "summe", "summe:", "gesamt",
    "gesamt:", "gesamtsumme", "insgesamt", "somme", "total g\u00e9n\u00e9ral", "suma", "total general", "totale",
    "somma", "soma", "total geral", "totaal", "som", "totalt", "toplam", "genel toplam", "razem", "celkem",
    "\u0438\u0442\u043e\u0433\u043e", "\u0432\u0441\u0435\u0433\u043e", "\u5408\u8ba1", "\u5408\u8a08",
    "\u603b\u8ba1", "\u7dcf\u8a08", "\u5c0f\u8ba1", "\ud569\uacc4", "\u0e23\u0e27\u0e21", "\u062c\u0645\u0639",
)  # fmt: skip
TOTAL = regex(rf"({'|'.join(re.escape(word) for word in dict.fromkeys(TOTALS))})[ :]*(\d[\d.,' ]*.*|\(.*\))?")
_LAST = 8  # lines at most that are proposed as no records, but for those of one field
_ROWS = 20  # above them: fewer do not say how full a record is
_TAIL = 1 << 16  # bytes that are looked at for them


class FooterError(UnstatedError):
    """The last lines of a file are no records."""


def _cells(text: str, separator: str) -> list[str]:
    """Those of a line; none of one that is too long, which whoever reads the rows refuses."""
    try:
        return next(csv.reader([text], delimiter=separator, skipinitialspace=True), [])
    except csv.Error:
        return []


def check_last(path: Path, name: str, separator: str, width: int) -> None:
    """Errors: the last lines have fewer fields than `width`, or no field with a value, or one alone where all others
    have several, while those above are rows."""
    texts, whole = _last_lines(path)
    rows = [_cells(text, separator) for _, text in texts]
    filled = [sum(map(bool, map(str.strip, row))) for row in rows]
    body = filled[len(filled) // 2 : -_LAST]
    least = 2 if len(body) >= _ROWS and width > 2 and min(body) > 1 else 1
    odd = 0
    for (_, text), row, many in reversed(list(zip(texts, rows, filled, strict=True))):
        record = len(row) >= width and many >= least
        if text.count('"') % 2 or (record and not (odd and _is_total(row))):
            break
        odd += 1
    above = len(rows) - odd
    remarks = width > 2 and odd <= above and max(filled[above:], default=0) < 2  # of which there may be many
    if not 0 < odd or (odd > _LAST and not remarks) or above < (2 if whole else 1):
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
    error.likely, error.rule = {"footer": odd}, rule
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
        raise UsageError(
            f"<<footer>> is a number of last lines; {sayable(name)} has not {sayable(lines)}; correct it", code="range"
        )
    copy = folder / f"{len(list(folder.iterdir()))}.cut"
    with with_room(name), path.open("rb") as file, copy.open("wb") as out:
        shutil.copyfileobj(file, out)
        out.truncate(texts[-lines][0])
    return copy
