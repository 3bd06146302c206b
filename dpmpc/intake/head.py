"""What the first lines of a text file are: titles, the names of the columns, notes and units below them, records.

One look decides, by the shape of the columns below. What is not plain is proposed and not taken: the file's owner
states it. Names of columns are public, so the first line is taken for them only where it differs in kind from the
records below it, or where somebody said so.
"""

import csv
import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from dpmpc.errors import RecordError
from dpmpc.intake.scripts import LIKELY_MISSING, small
from dpmpc.intake.spelling import MISSING, bare, numbered, stating
from dpmpc.lazy import dataclass, regex

SEPARATORS = (",", ";", "\t", "|")
_WITHIN = frozenset(" \t\u00a0\u3000\"'.-+:/\\_()[]{}<>@&#%$=?*")  # signs that stand in values and names
_FEW_LINES = 5
_NEARLY = 0.9
_TOP = 12  # lines, among which the one is that names the columns
_HEAD = 1 << 16  # bytes, whose lines are looked at
_DIGITS, _LETTERS, _SIGNS = regex(r"\d[\d.,' ]*"), regex(r"[^\W\d_]+"), regex(r"^[\W_]+")
_FIGURE = regex(r"[^\w\s]{0,3}\s?\d")  # where a field begins that is a number, a date, an amount, a limit
_NUMBER = regex(r"[^\w\s]{0,3}\s?\d[\d.,:/ '\u2019-]*\s?[^\W\d]{0,4}\W?")
_ATTRIBUTE = regex(r"(?i)@attribute\s+(?:'([^']+)'|\"([^\"]+)\"|(\S+))")
_COMMA_CUT = regex(r"\d[;\t|]\d")  # what a separator leaves of two numbers with decimal commas
_BARE_COMMA = regex(r"(?<!\d),|,(?!\d)")  # one that is no decimal comma
_SOME = 5  # columns of numbers, which say how a row is written
_LIKE = 20  # rows, of which some have fields that look like those of the others
_BLANKS = regex(r"\S {2,}\S")  # between two columns of a text that is laid out for the eye
_MOSTLY = 0.6
_NONE = {*MISSING, "none", "unknown", "unbekannt", "inconnu"}
# How often a name is a value of its column, and a file has no names; how much likelier names have to be.
_ALIKE, _NAMELESS, _PLAINLY = 1 / 200, 1 / 20, 3


class UnstatedError(RecordError):
    """Something of a file that its owner must state. `likely`: the settings that read it as it seems to be meant;
    `rule`: what is said before the way out."""

    likely: Mapping[str, Any] = {}
    rule = ""


class HeaderError(UnstatedError):
    """The first row of a file does not plainly name its columns."""


@dataclass(frozen=True)
class Row:
    """A row that is not empty: its cells, its first line and its last one."""

    cells: list[str]
    first: int
    last: int


def lines_of(path: Path) -> Iterator[str]:
    """The file's lines with their ends (any of \\n, \\r\\n and \\r), without a byte order mark."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        yield from file


def declared(path: Path) -> str:
    """The separator in a first line `sep=;`, which Excel writes and reads; nothing if there is none."""
    first = next(lines_of(path), "").strip("\r\n")
    return first[4:] if first[:4].lower() == "sep=" and len(first) == 5 else ""


def surplus(row: Sequence[str], width: int) -> bool:
    """Whether a row has separators at its end beyond this width, and nothing between them."""
    return len(row) > width and not any(cell.strip() for cell in row[width:])


def separator_of(path: Path, header: int = 0) -> str:
    """The separator that cuts the first lines, from line `header` on, into most fields, all lines alike; where none
    does, the one by which most lines have as many fields as each other, empty ones at their ends aside. One that leaves
    another separator between two digits cuts decimal commas, and is none where another will do. Where none of the usual
    ones cuts nearly all lines alike, or commas stand between digits alone, another sign is one that does, and blanks
    where they cut them into several fields."""
    with path.open("rb") as file:
        head = file.read(_HEAD + 1)
    text = head[:_HEAD].decode("utf-8-sig", errors="replace").split("\n")[max(0, header - 1) :]
    text = [line for part in text for line in part.split("\r")]
    lines = [line for line in text if line.strip()]
    if len(head) > _HEAD and len(lines) > 1:
        lines = lines[:-1]
    found, all_alike = list[tuple[bool, int, int, int, str]](), False
    for k, separator in enumerate(SEPARATORS):
        first, rows, width = _cut(lines, separator)
        if width > 1:
            alike, all_alike = len(rows), True
        else:
            width = max(Counter(map(len, rows)).items(), key=lambda item: (item[1], item[0]), default=(1, 0))[0]
            alike = sum(len(row) == width or surplus(row, width) for row in rows)
            if width < 2 or 2 * alike <= len(lines):  # a comma will do for a file of one column
                continue
        cut = any(_COMMA_CUT.search(cell) for row in first for cell in row)
        found.append((not cut, alike, width, -k, separator))
    _, alike, _, _, best = max(found, default=(True, 0, 0, 0, ","))
    plain = (all_alike or alike >= _NEARLY * len(lines)) and (best != "," or any(map(_BARE_COMMA.search, lines)))
    return ("" if plain else _other_separator(lines)) or best


def _cut(lines: Sequence[str], separator: str) -> tuple[list[list[str]], list[list[str]], int]:
    """The first rows, all rows, and how many fields the first ones have, all alike; 0 where these differ."""
    rows = list(csv.reader(lines, delimiter=separator, skipinitialspace=True))
    first = rows[:20][:-1] or rows[:20]  # the last may be cut within quotes
    width = len(first[0]) if first else 0
    return first, rows, width * all(len(row) == width or surplus(row, width) for row in first)


def _other_separator(lines: Sequence[str]) -> str:
    """The sign, of those that stand in no number, date or word, that cuts nearly all first lines into as many fields as
    each other, the line of names perhaps into one less; a blank where that makes more than the three of a date,
    of some lines; else nothing."""
    held = Counter(sign for line in lines for sign in {*line} - _WITHIN - {*SEPARATORS} if not sign.isalnum())
    found = [(0, 0, "")]
    for sign in (*sorted(sign for sign in held if 2 * held[sign] > len(lines)), " "):
        rows = list(csv.reader([line.rstrip(sign) for line in lines], delimiter=sign, skipinitialspace=True))
        width, alike = max(Counter(map(len, rows)).items(), key=lambda item: (item[1], item[0]), default=(1, 0))
        named = (width, width - 1) if sign != " " or all('"' in line for line in lines) else (width,)
        several = width > (3 if sign == " " else 1 + (alike < len(rows) - 1)) and (sign != " " or alike > _FEW_LINES)
        first = next((len(row) for row in rows if len(row) >= width - 1), 0) in named
        if alike >= _NEARLY * len(rows) and ((several and first) or (width > 1 and _led(rows[0], width))):
            found.append((alike, width, sign))
    return max(found)[-1]


def _led(first: Sequence[str], width: int) -> bool:
    """Whether a row has one field more than others for a sign, such as #, that stands before the names."""
    return len(first) == width + 1 and bool(first[0].strip()) and not any(map(str.isalnum, first[0]))


def check_head(path: Path, name: str, separator: str) -> None:
    """Errors: the first row does not plainly name the columns. It does where it fills the table, has a word above some
    column of numbers, a number above none, and nothing that stands again below it, and where a record follows it."""
    try:
        _check_attributes(path, name)
        rows = _rows(path, separator)
    except (UnicodeError, csv.Error):  # whoever reads the rows says what is wrong
        return
    if declared(path):
        rows = rows[1:]
    if len(rows) < 2:
        return
    width = _width(rows)
    _check_cut(rows, name, separator)
    kinds = _numeric(rows, width)
    plainly = (k for k, row in enumerate(rows[: _TOP + 1]) if _is_record(row.cells, kinds, rows, width, True))
    wide = any(rows[0].cells[width:])  # of settings of a program, as it stands above the names
    heads = (k for k in plainly if not (_run(rows[k].cells) or (wide and k == 0)))
    plain = next((k for k in heads if k + 1 == len(rows) or _words_in(rows[k + 1].cells, kinds) < 2), 0)
    names = _line_of_names(rows[:plain], width)
    between = range(names + 1, plain)
    first = next((k for k in between if _is_record(rows[k].cells, kinds, rows, width)), plain)
    below = rows[first].first - rows[names].last - 1 if plain else 0
    likely = ({"header": rows[names].first} if names else {}) | ({"below": below} if below else {})
    if likely:
        _refuse_lines(name, rows, names, below, likely)
    if doubt := _doubt(rows, kinds, width):
        _refuse_names(name, rows[0], doubt, width)


def _check_cut(rows: Sequence[Row], name: str, separator: str) -> None:
    """Errors: lines are one field each, which other fields stand in; the names are one less than the fields of every
    row."""
    first = rows[0].cells
    if all(len(row.cells) == 1 for row in rows):
        inner = {len(next(csv.reader([row.cells[0]], delimiter=sign))) for sign in SEPARATORS for row in rows[:1]}
        way = "each line is one field in quotes; take the quotes at its ends away" if max(inner) > 1 else ""
        if not way and len(_BLANKS.findall(first[0])) > 1:
            way = "blanks alone stand between columns; save it with commas between them"
        if way:
            raise RecordError(f"a separator stands between the fields of a data file; of {name}, {way}")
    ids = [row.cells[0] for row in rows[1:]]
    longer = all(len(row.cells) == len(first) + 1 for row in rows[1:]) and any(row.cells[-1] for row in rows[1:])
    if longer and len(rows) > 3 and len({*ids}) == len(ids) and all(ids) and len({*first}) == len(first) and all(first):
        rule = (
            f"every row has as many fields as there are columns; that of the names of {name} has one less than others"
        )
        way = "where its first column has no name, state {}, or add its name"
        _refuse(rule, way, names=(numbered(1), *first), below=1)
    if len(rows) > 2 and all(len(row.cells) == len(first) - 1 for row in rows[1:]) and _led(first, len(first) - 1):
        rule = f"the first row of a data file names its columns; that of {name} begins with {first[0][:8]}"
        _refuse(rule, "state {}, or take that sign away", names=tuple(first[1:]), below=rows[0].last)


def _check_attributes(path: Path, name: str) -> None:
    """Errors: the file is an ARFF file, whose names are lines of their own."""
    names, line, word = list[str](), 0, ""
    for text in lines_of(path):
        line, word = line + 1, text.strip()
        if word and (word[0] not in "@%" or word.lower() == "@data"):
            break
        if found := _ATTRIBUTE.match(word):
            names.append(next(filter(None, found.groups())))
    if names and word.lower() == "@data":
        rule = f"a data file has a row of names; {name} is ARFF, where each has a line"
        _refuse(rule, "state {}", names=tuple(names), below=line)


def _refuse(rule: str, way: str, **likely: Any) -> None:
    """Errors, always: a rule, and the way out with what is likely to be meant."""
    error = HeaderError(f"{rule}; {way.format(stating(**likely))}")
    error.likely, error.rule = likely, rule
    raise error


def _rows(path: Path, separator: str) -> list[Row]:
    """The rows of the first lines that are not empty; none after a quote that is not closed within these."""
    texts, size = list[str](), 0
    for line in lines_of(path):
        texts.append(line if separator != " " else line.rstrip() + "\n")
        size += len(line)
        if size > _HEAD:
            break
    found, before = list[Row](), 0
    reader = csv.reader(texts, delimiter=separator, skipinitialspace=True)
    for cells in reader:
        if sum(text.count('"') for text in islice(texts, before, reader.line_num)) % 2:
            break
        if any(cell.strip() for cell in cells):
            found.append(Row([bare(cell) for cell in cells], before + 1, reader.line_num))
        before = reader.line_num
    return found


def _width(rows: Sequence[Row]) -> int:
    """How many columns most of the later rows have, without those at the end that are empty in all of them."""
    later = rows[len(rows) // 2 :]
    width = Counter(len(row.cells) for row in later).most_common(1)[0][0]
    filled = max(k for row in rows for k, cell in enumerate(row.cells[:width], 1) if cell or k == 1)
    return min(width, filled)


def _numeric(rows: Sequence[Row], width: int) -> set[int]:
    """The columns most of whose values, in the later rows, begin as numbers, dates and amounts do."""
    later = rows[max(1, len(rows) // 2) :]
    found = set[int]()
    for k in range(width):
        there = [row.cells[k] for row in later if len(row.cells) > k and not is_none(row.cells[k])]
        if there and sum(_FIGURE.match(cell) is not None for cell in there) >= _MOSTLY * len(there):
            found.add(k)
    return found


def _is_record(cells: Sequence[str], numeric: set[int], rows: Sequence[Row], width: int, plain: bool = False) -> bool:
    """Whether a row may be one of those below it: about as full, and not of several words where they have numbers;
    `plain`: whether it is, for it has a number there."""
    fill = sorted(sum(map(bool, row.cells[:width])) for row in rows[len(rows) // 2 :])
    if len(cells) < width or 2 * sum(map(bool, cells[:width])) < fill[len(fill) // 2]:
        return False
    there = [cells[k] for k in numeric if not is_none(cells[k])]
    figures = [k for k in sorted(numeric) if not is_none(cells[k]) and _FIGURE.match(cells[k])][:_SOME]
    if figures and 2 * sum(_has_like(cells, k, rows) for k in figures) >= len(figures):
        return True
    return not plain and len(set(there)) < 2 and not (there and _is_strange(cells, numeric, rows, width))


def _has_like(cells: Sequence[str], k: int, rows: Sequence[Row]) -> bool:
    """Whether a figure is written as that of some other row of its column is, digits and signs between them aside: 5s
    and 15-11-2023 are not as 12.5 is. Of few rows it is taken to be, and where most are written each in its own way."""
    shapes = [_shape(row.cells[k]) for row in rows if len(row.cells) > k and row.cells is not cells]
    return len(shapes) < _LIKE or _shape(cells[k]) in shapes or 2 * len(set(shapes)) > len(shapes)


def _words_in(cells: Sequence[str], numeric: set[int]) -> int:
    """How many columns of numbers a row has words in, as names below others have."""
    there = (cells[k] for k in numeric if k < len(cells) and not is_none(cells[k]))
    return sum(not _FIGURE.match(cell) for cell in there)


def _shape(cell: str) -> str:
    """How a field is written, signs before it aside: 9 for a number, a for a word."""
    return _LETTERS.sub("a", _DIGITS.sub("9", _SIGNS.sub("", cell)))


def _is_strange(cells: Sequence[str], numeric: set[int], rows: Sequence[Row], width: int) -> bool:
    """Whether a row has a value that no other has in each column of words where few differ."""
    found = list[bool]()
    for k in set(range(width)) - numeric:
        others = [row.cells[k] for row in rows if len(row.cells) > k and row.cells is not cells]
        if cells[k] and 2 * len(set(others)) <= len(others):
            found.append(cells[k] not in others)
    return bool(found) and all(found)


def _line_of_names(head: Sequence[Row], width: int) -> int:
    """Which of the rows above the records names the columns: the first that fills them all, else more than half."""
    filled = [0 if any(row.cells[width:]) else sum(map(bool, row.cells[:width])) for row in head]
    full = (k for k, count in enumerate(filled) if count >= width)
    return next(full, next((k for k, count in enumerate(filled) if 2 * count > width), 0))


def _doubt(rows: Sequence[Row], numeric: set[int], width: int) -> str:
    """What makes it doubtful that the first row names the columns; nothing where it differs in kind from the others."""
    cells, others = rows[0].cells[:width], [row for row in rows[1:] if row.cells != rows[0].cells]
    number = next((k for k in sorted(numeric) if k < len(cells) and _NUMBER.fullmatch(cells[k])), None)
    if number is not None:
        return f"has the number {cells[number][:20]} where others have numbers"
    worded = [k for k in numeric if k < len(cells) and not is_none(cells[k])]
    below = [{row.cells[k] for row in others if len(row.cells) > k} for k in range(len(cells))]
    again = [k for k, cell in enumerate(cells) if cell and cell in below[k]]
    if again and not _are_names(cells, worded, len(again), others):
        return f"has '{cells[again[0]][:20]}', as a line below it has"
    # where all is words, a record would hardly have one that no other has in each of some columns of few
    several = [k for k, cell in enumerate(cells) if cell and 2 * len(below[k]) <= len(others)]
    if worded or len(several) >= min(2, width):
        return ""
    return "has words, as those below it have"


def _are_names(cells: Sequence[str], worded: Sequence[int], again: int, others: Sequence[Row]) -> bool:
    """Whether a first row that has `again` values of those below it names the columns none the less: a record of these
    records would have words, each another, where others have numbers, more seldom by far than a name is a value."""
    record = _NAMELESS
    for word in dict.fromkeys(cells[k] for k in worded):  # records lack several values by one word
        record *= max((1 + _words_at(others, k)) / (2 + len(others)) for k in worded if cells[k] == word)
    return _PLAINLY * record < _ALIKE**again


def _run(cells: Sequence[str]) -> bool:
    """Whether the numbers of a row, beside its words, follow each other by one step, as years that are names of columns
    do, and numbers of a record hardly."""
    numbers = [int(cell) for cell in cells if cell.isascii() and cell.isdigit() and len(cell) < 7]
    words = sum(bool(cell) and not _FIGURE.match(cell) for cell in cells)
    steps = {b - a for a, b in itertools.pairwise(numbers)}
    years = all(1800 <= n < 2200 for n in numbers)  # of which each may stand over several columns
    even = (steps <= {0, 1} and years and bool(steps)) or (len(steps) == 1 and 0 not in steps and len(numbers) > 3)
    return even and words > 0 and len(numbers) + words == sum(map(bool, cells))


def _words_at(rows: Sequence[Row], k: int) -> int:
    """How many rows have a word in a column of numbers."""
    return sum(len(row.cells) > k and bool(row.cells[k]) and not _FIGURE.match(row.cells[k]) for row in rows)


def is_none(cell: str) -> bool:
    """Whether a cell says that there is no value, as that of a record may."""
    return cell.lower() in _NONE or (len(cell) < 24 and small(cell) in LIKELY_MISSING)


def _refuse_lines(name: str, rows: Sequence[Row], names: int, below: int, likely: Mapping[str, Any]) -> None:
    """Errors, always: other lines stand above the names, or between them and the records."""
    row = rows[names]
    shown = ", ".join(" ".join(cell.split())[:20] for cell in row.cells[:4])
    under = "" if not below else f"{below} line{'s' * (below > 1)} below it {'are' if below > 1 else 'is'} no record"
    if names:
        rule = (
            f"the first row of a data file names its columns; that of {name} does not, and line {row.first} seems to "
            f"({shown}, ...)" + (f", and {under}" if under else "")
        )
    else:
        rule = f"records follow the names of columns; of {name}, {under} ({shown}, ...)"
    others = f"take {'the lines above it' if names else 'such lines'} away"
    error = HeaderError(
        f"{rule}; state {stating(**likely)}, or {others} ({stating(header=rows[0].first)} where the first row is meant"
        f"{'' if names else ' and all others are records'})",
        "the first lines of an owner's file do not seem to be names and records",
    )
    error.likely, error.rule = likely, rule
    raise error


def _refuse_names(name: str, row: Row, doubt: str, width: int) -> None:
    """Errors, always: the first row may be a record, whose fields would become names, which are public."""
    line = f"line {row.first}"
    rule = f"the first line of a data file names its columns, which are public; of {name}, {line} {doubt}"
    called = tuple("abcdefghijklmnopqrstuvwxyz"[:width]) if width <= 4 else ("a", "b", "c")
    more = "" if width <= 4 else ", ..."
    give = f"give {width} names, such as {stating(names=called)}{more}"
    meant, none = stating(header=row.first), stating(no_header=True)
    cells = row.cells[:width]
    names = ("words" in doubt or _run(cells)) and len({*cells}) == len(cells) and all(cells)
    error = HeaderError(
        f"{rule}; state {meant} where it does name them; where it is a record, {none}, or {give}"
        if names
        else f"{rule}; state {none} where it is a record, or {give}; {meant} where it does name them",
        "the first line of an owner's file may be a record: it does not plainly name the columns",
    )
    error.likely, error.rule = ({"header": row.first} if names else {"no_header": True}), rule
    raise error
