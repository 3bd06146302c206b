"""CSV text for DuckDB: separator, header and encoding found here, and every oddity named by its line.

A file is UTF-8, or UTF-16 if its mark says so, or in the encoding that its owner stated; its separator is a comma,
semicolon, tab or bar, what a first line `sep=;` says, as Excel has it, or a sign that cuts all lines alike; fields may
be quoted with double quotes; blank lines do not count. DuckDB reads it strictly. What it will not read goes through
Python's csv module, which either finds the line at fault or makes a clean copy (blank lines with spaces, lines that
start with a comment, mixed ends, several blanks between columns).
"""

from __future__ import annotations

import codecs
import csv
import hashlib
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np

from dpmpc.errors import RecordError, UsageError, number_of, sayable
from dpmpc.intake.encodings import likely, two_bytes
from dpmpc.intake.engine import duckdb
from dpmpc.intake.footer import check_last, without_last
from dpmpc.intake.head import SEPARATORS, UnstatedError, check_head, declared, lines_of, separator_of, surplus
from dpmpc.intake.reading import literal, path_literal
from dpmpc.intake.scratch import with_room
from dpmpc.intake.spelling import bare, numbered, stating
from dpmpc.intake.table import Column, Table, check_names, check_width, unused
from dpmpc.intake.written import no_pipe
from dpmpc.lazy import dataclass

_CHUNK = 1 << 20
_LINE_BREAK = re.compile(r"\s*[\r\n]+\s*")
_LONGEST_LINE = 1 << 21  # DuckDB holds several times as much for each thread


@dataclass(frozen=True)
class Scan:
    """What one look at all bytes of a text file says."""

    digest: str
    loose: bool
    ended: bool  # some line ends with a separator


_AT_ENDS = tuple(f"{separator}{end}".encode() for separator in SEPARATORS for end in "\n\r")
_SEPARATES = np.isin(np.arange(256), [ord(separator) for separator in SEPARATORS])  # of each byte


def scan(path: Path, name: str) -> Scan:
    """The digest of a text file, whether it has signs that DuckDB takes for parts of numbers, and whether a line ends
    with a separator. Errors: it cannot be
    read, or is not text in UTF-8. Cost: one reading; of large files a second thread works out the digest."""
    ended = b""  # how the chunks before end
    digest, decoder, position, loose = hashlib.sha256(), codecs.getincrementaldecoder("utf-8")(), 0, False
    at_end = False
    with readable(path).open("rb") as file, ThreadPoolExecutor(1) as beside:
        hashed: Future[None] | None = None
        while chunk := file.read(_CHUNK):
            if hashed is not None:
                hashed.result()
            if len(chunk) == _CHUNK:
                hashed = beside.submit(digest.update, chunk)
            else:
                digest.update(chunk)
            if b"\0" in chunk:
                way = other_kind(path)
                if not way and position == 0 and (wide := two_bytes(chunk)):
                    raise _not_utf8(path, name, chunk.index(b"\0"), wide)
                way = way or "save it as CSV in UTF-8"
                raise UsageError(
                    f"a data file is text; {sayable(name)} holds binary bytes; {sayable(way)}", code="file"
                )
            loose = loose or _is_loose(ended + chunk)
            at_end = at_end or _has_open_line(chunk) or ended[-1:] + chunk[:1] in _AT_ENDS
            ended = (ended + chunk[-2:])[-2:]
            pending = len(decoder.getstate()[0])
            if pending or not chunk.isascii():
                try:
                    decoder.decode(chunk)
                except UnicodeDecodeError as error:
                    at = position - pending + error.start
                    raise _not_utf8(path, name, at) from None
            position += len(chunk)
    if pending := len(decoder.getstate()[0]):
        raise _not_utf8(path, name, position - pending)
    return Scan(digest.hexdigest(), loose, at_end or ended[-1:].decode("latin-1") in SEPARATORS)


def _has_open_line(chunk: bytes) -> bool:
    """Whether a line within some bytes ends with a separator. The ends are found first: two bytes at once are found a
    tenth as fast as one, and there are many pairs."""
    signs = np.frombuffer(chunk, np.uint8)
    ends = (np.flatnonzero(signs[1:] == end) for end in b"\n\r" if end in chunk)
    return any(bool(_SEPARATES[signs[at]].any()) for at in ends)


def _is_loose(chunk: bytes) -> bool:
    """Whether bytes have what DuckDB takes for a part of a number: `_` between two digits, or `+-`."""
    if b"+" in chunk and b"+-" in chunk:  # one byte is found ten times as fast as two
        return True
    if b"_" not in chunk:
        return False
    if not chunk.isascii():  # digits of other scripts may be read as ours
        return True
    signs = np.frombuffer(chunk, np.uint8)
    digits = (signs >= ord("0")) & (signs <= ord("9"))
    return bool(((signs[1:-1] == ord("_")) & digits[:-2] & digits[2:]).any())


NOT_ENCODED = "a text file of an owner is not in the encoding that was stated"


class EncodingError(UnstatedError):
    """A file whose text is not in the encoding that it should be in."""


def _not_utf8(path: Path, name: str, at: int, seems: str = "") -> EncodingError:
    seems = seems or likely(path)
    rule = f"a data file is UTF-8; {name} is not at byte {at} (it seems to be {seems})"
    error = EncodingError(f"{rule}; state {stating(encoding=seems)}, or save it as UTF-8", NOT_ENCODED)
    error.likely, error.rule = {"encoding": seems}, rule
    return error


def encoding_of(path: Path, stated: str) -> str:
    """The encoding of a text file: as its byte order mark says, else as stated, else UTF-8."""
    with readable(path).open("rb") as file:
        head = file.read(3)
    if head[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return "utf-16"
    return "utf-8" if head == codecs.BOM_UTF8 or not stated else codecs.lookup(stated).name


def transcoded(path: Path, name: str, encoding: str, folder: Path) -> Path:
    """A copy of a text file in UTF-8. Errors: its text is in another encoding; the disk is full."""
    copy = folder / f"{len(list(folder.iterdir()))}.utf8"
    try:
        out_of = path.open(encoding=encoding, newline="")
        with with_room(name), out_of as file, copy.open("w", encoding="utf-8", newline="") as out:
            while piece := file.read(_CHUNK):
                out.write(piece)
    except UnicodeError:
        raise EncodingError(
            f"a data file is in the encoding that was stated; {name} is not in {encoding}; correct <<encoding>>",
            NOT_ENCODED,
        ) from None
    return copy


def readable(path: Path) -> Path:
    """The path. Errors: it is no file that can be read."""
    try:
        with no_pipe(path, "a data").open("rb"):
            return path
    except OSError as error:
        reason = error.strerror or "it cannot be read"
        raise UsageError(
            f"a data file must be readable; {sayable(path)}: {sayable(reason)}; check the path", code="path"
        ) from None


# Files of records that are no tables here: a suffix, where the first bytes begin to say so and what they are, the way.
_OTHERS: tuple[tuple[tuple[str, ...], int, bytes, str], ...] = (
    ((".duckdb", ".ddb"), 8, b"DUCK", "it is a DuckDB database: write a table with COPY ... TO 'table.parquet'"),
    ((".sqlite", ".sqlite3", ".db"), 0, b"SQLite format 3", "it is a SQLite database: use <<database>> and <<sql>>"),
    ((".zip",), 0, b"", "it is an archive: unpack it"),
    ((".xlsx", ".xlsm", ".ods"), 0, b"PK\x03\x04", "it is a spreadsheet: save its sheet as CSV in UTF-8"),
    ((".xls",), 0, b"\xd0\xcf\x11\xe0", "it is a spreadsheet: save its sheet as CSV in UTF-8"),
    ((".sav",), 0, b"$FL2", "it is a file of SPSS: export it as CSV in UTF-8"),
    ((".dta",), 0, b"<stata_dta>", "it is a file of Stata: export it as CSV in UTF-8"),
    ((".sas7bdat", ".xpt"), 0, b"HEADER RECORD***", "it is a file of SAS: export it as CSV in UTF-8"),
    ((".rds", ".rda", ".rdata"), 0, b"RDX", "it is a file of R: save its table with write.csv"),
    ((".pkl", ".pickle"), 0, b"", "it is a file of Python: save its table as Parquet"),
    ((".sql",), 0, b"", "it is SQL: load it into a database and use <<database>> and <<sql>>"),
    ((".parquet", ".pq"), 0, b"PAR1", "it is Parquet: use <<records>>"),
    ((".arrow", ".feather"), 0, b"ARROW1", "it is Arrow: use <<records>>"),
)


_BEGIN = rb"(?is)(\xef\xbb\xbf)?\s*"
_TEXTS = (  # files of text that are no tables, by their beginning
    (re.compile(_BEGIN + rb"<(\?xml|!doctype|html|table)"), "it is a page or XML: save its table as CSV in UTF-8"),
    (re.compile(_BEGIN + rb"[\[{]\s*[\[{]?\s*\"[^\"]*\"\s*:"), "it is JSON: call it .json and use <<records>>"),
    (
        re.compile(
            _BEGIN + rb"((--|/\*)[^\n]*\n\s*)*"
            rb"((create|drop) (table|database|schema|view)|insert into [^\n]*(values|\()|set \S+ ?=|begin transaction;)"
        ),
        "it is SQL: load it into a database and use <<database>> and <<sql>>",
    ),
)


def other_kind(path: Path) -> str:
    """What a file is that holds no text, and how its records get here, by its first bytes, else by its suffix; "" where
    neither is known."""
    with path.open("rb") as file:
        head = file.read(16)
    by_bytes = [way for _, begin, first, way in _OTHERS if first and head[begin:].startswith(first)]
    by_suffix = [way for suffixes, _, _, way in _OTHERS if path.suffix.lower() in suffixes]
    packed = path.suffix.lower() == ".zip"  # as spreadsheets are
    return next(iter(by_suffix + by_bytes if packed else by_bytes + by_suffix), "")


def open_csv(
    path: Path,
    name: str,
    connection: duckdb.DuckDBPyConnection,
    folder: Path,
    *,
    names: Sequence[str] | None = None,
    separator: str | None = None,
    comment: str | None = None,
    loose: bool = True,
    header: int = 0,
    footer: int = 0,
    below: int = 0,
    headless: bool = False,
    ended: bool = True,
) -> Table:
    """The table in a text file: its first row names the columns unless `names` does, or none does (`headless`), so that
    they are numbered; every value is text.

    Lines that start with `comment` do not count, nor do those above line `header`, `below` ones under it and the last
    `footer` ones. The separator is found from the first lines unless given (`ended`: a
    line may end with one). `folder` may get a clean copy. Columns
    without a name, or with one that others have, get one that says so; a line break in a name, as spreadsheets have it,
    is a space. Errors: rows of unequal length (with the line), but for empty fields at the ends of all; quotes that
    do not pair up; no rows; a first row that does not plainly name the columns, where nothing was stated of it; last
    lines that are no rows, where `footer` is 0.
    """
    with path.open("rb") as file:
        head = file.read(1 << 12)
    if way := next((way for first, way in _TEXTS if first.match(head)), ""):
        raise UsageError(f"a data file is a table; {sayable(name)} is none; {sayable(way)}", code="file")
    if footer:
        path = without_last(path, name, footer, folder)
    separator = declared(path) or separator or separator_of(path, header)
    broken = False
    if headless and names is None:
        names = [numbered(k) for k in range(1, _fields(path, name, separator, comment, header, below) + 1)]
    skip, notes = max(bool(declared(path)), header - 1) + below, [""] * len(names or ())
    if names is None:
        if not (header or below) and comment is None:
            check_head(path, name, separator)
        found, skip = _header(path, name, separator, comment, header)
        skip += below
        check_width(len(found), name)
        whole = [_LINE_BREAK.sub(" ", word) for word in found]
        broken = whole != found
        names, notes = distinct_names(whole)
    check_names(names, name)
    columns = tuple(Column(word, f"c{k}", "VARCHAR", note=notes[k]) for k, word in enumerate(names))
    width = len(columns)
    if not footer and comment is None and width > 1:
        check_last(path, name, separator, width)
    view = unused("csv")

    read = partial(_relation, path, width, separator, skip)

    def look_at() -> None:
        connection.execute(f"CREATE OR REPLACE TEMP VIEW {view} AS SELECT * FROM {read()}")

    def repair() -> None:
        clean = folder / f"{len(list(folder.iterdir()))}.csv"
        _clean(path, clean, name, separator, comment, width, skip)
        nonlocal read
        read = partial(_relation, clean, width, ",", 0)
        look_at()

    look_at()
    typed = view, lambda numbers: read(numbers)
    size = path.stat().st_size
    table = Table(name, columns, view, connection, loose, repair=repair, parsed=True, typed=typed, size=size)
    # in a file of one column DuckDB takes a blank line for a record; a header over several lines is one line to `skip`
    ended = ended or separator not in SEPARATORS
    apart = comment is None and width > 1 and separator != " " and not broken
    if not apart or (ended and _moved(connection, path, width, separator, skip)):
        repair()
        table = replace(table, repair=None)
    if not table.rows("1", "LIMIT 1"):
        raise UsageError(f"a table needs records; {sayable(name)} has column names only; add rows", code="enough")
    return table


def distinct_names(found: Sequence[str]) -> tuple[list[str], list[str]]:
    """A name of its own for each column of a header, and what its owner should know of it: 'column 3' where there is
    none; 'dose (1)', 'dose (2)' where two are called dose, so that neither is taken for the other."""
    names, notes = list(found), [""] * len(found)
    called, before = Counter(found), Counter[str]()
    for k, word in enumerate(found):
        if not word:
            names[k], notes[k] = numbered(k + 1), "its header is empty"
        elif called[word] > 1:
            before[word] += 1
            names[k] = f"{word} ({before[word]})"
            notes[k] = f"{called[word]} columns are called '{word}'"
    return names, notes


def _relation(
    path: Path, width: int, separator: str, skip: int, numbers: Collection[str] = (), *, longest: int = 0,
    ends: bool = False, padded: bool = False,
) -> str:  # fmt: skip
    """SQL for the records of a text file. `numbers`: columns c0, c1, ... that are read as numbers, not as texts.
    `longest`: bytes that a row may have, where that is more than usual. `ends`: lines end in \\n. `padded`: a row may
    have fewer fields, those that it lacks are NULL, and those that are empty are not."""
    most = ", new_line='\\n'" * ends + ", parallel=false, nullstr='\ue000\ue001'" * padded
    columns = ", ".join(f"'c{k}': '{'DOUBLE' if f'c{k}' in numbers else 'VARCHAR'}'" for k in range(width))
    return (
        f"read_csv({path_literal(path)}, auto_detect=false, header=false, skip={skip}, delim={literal(separator)},"
        f" quote='\"', escape='\"', strict_mode=true, null_padding={padded},"
        f" max_line_size={max(_LONGEST_LINE, longest)}, compression='none'{most}, columns={{{columns}}})"
    )


def _header(path: Path, name: str, separator: str, comment: str | None, header: int) -> tuple[list[str], int]:
    """The column names in the first row that counts, and how many lines there are up to its end."""
    said, above = bool(declared(path)), max(0, header - 1)
    for row, line in _rows(islice(lines_of(path), above, None), name, separator, comment):
        if any(map(bare, row)) and not (said and line + above == 1):
            return [bare(cell) for cell in row], line + above
    raise UsageError(
        f"a CSV file starts with a row of column names; {sayable(name)} is empty; check the file", code="file"
    )


def _moved(connection: duckdb.DuckDBPyConnection, path: Path, width: int, separator: str, skip: int) -> bool:
    """Whether some rows, and not all, have an empty field more than there are columns, which DuckDB takes for no field:
    another separator in such a row moves its fields by a column."""
    query = f"SELECT count(*), count(c{width}) FROM {_relation(path, width + 1, separator, skip, padded=True)}"
    try:
        ((rows, longer),) = connection.execute(query).fetchall()
    except duckdb.Error:  # whoever reads the rows says what is wrong
        return False
    return bool(0 < longer < rows)


def _fields(path: Path, name: str, separator: str, comment: str | None, header: int, below: int) -> int:
    """How many fields the first record has, of a file that has no row of names."""
    skip = max(bool(declared(path)), header - 1) + below
    for row, _ in _rows(islice(lines_of(path), skip, None), name, separator, comment):
        return len(row)
    raise UsageError(f"a table needs records; {sayable(name)} is empty; check the file")


def _rows(lines: Iterable[str], name: str, separator: str, comment: str | None) -> Iterator[tuple[list[str], int]]:
    """The rows that count, each with the number of its last line. Errors: quotes that do not pair up."""
    dropped, last = 0, ""  # comments never reach the csv module: they may hold quotes

    def counted() -> Iterator[str]:
        nonlocal dropped, last
        for last in lines:
            line = last
            if comment is not None and line.startswith(comment):
                dropped += 1
            else:
                yield line if separator != " " else line.rstrip() + "\n"

    csv.field_size_limit(_LONGEST_LINE)
    reader = csv.reader(counted(), delimiter=separator, skipinitialspace=True, strict=True)
    try:
        for row in reader:
            if len(row) > 1 or (row and row[0].strip()):
                yield row, reader.line_num + dropped
    except csv.Error as error:
        line = reader.line_num + dropped
        if "field limit" in str(error):
            raise RecordError(
                f"a field has up to {_LONGEST_LINE} bytes; {name}, line {line}: one is longer; close a quote that is "
                "open there, or take such a column out of the file"
            ) from None
        way = "correct the line"
        if '\\"' in last:
            way = 'export it with a quote within a field as "", not as \\"'
        raise RecordError(f"quotes must pair up; {name}, line {line}: {error}; {way}") from None


def _clean(path: Path, clean: Path, name: str, separator: str, comment: str | None, width: int, skip: int) -> None:
    """Writes a copy of the rows after the first `skip` lines, which DuckDB can read.

    Errors: rows of another length than `width`, with the first one's line and how many there are; a full disk.
    """
    odd: list[int] = []  # the first one's line and fields, and the lines of others
    longer: list[int] = []  # the same of those with separators at their end: a file's habit where all rows have them
    rows, single = 0, False  # single: fields are in single quotes
    with with_room(name), clean.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL, lineterminator="\n")
        for row, line in _rows(lines_of(path), name, separator, comment):
            if line <= skip:
                continue
            rows += 1
            if surplus(row, width):
                longer += [line] if longer else [line, len(row)]
                row = row[:width]
            if len(row) != width:
                odd += [line] if odd else [line, len(row)]
                single |= any(cell[:1] == "'" for cell in row) and any(cell[-1:] == "'" for cell in row)
            writer.writerow(row)
    if longer and len(longer) - 1 < rows:  # a row of its own would be moved by a column
        odd = [*min(longer[:2], odd[:2] or longer[:2]), *sorted([*longer[1:], *odd[1:]])[1:]]
    if odd:
        first, fields, *others = odd
        more = f", and {number_of(len(others), 'row more has', 'rows more have')} another number" if others else ""
        raise RecordError(
            f"every row has as many fields as there are columns, {width}; {name}, line {first} has {fields}{more}; "
            f"correct {'them' if others else 'it'}" + ", or export it with double quotes around fields, not '" * single
        )


def write_csv(rows: Iterable[Sequence[str | None]], path: Path) -> int:
    """Writes rows for `spooled`, None as an empty field. Returns how many bytes the longest row has at most."""
    longest = 0

    def measured() -> Iterator[Sequence[str | None]]:
        nonlocal longest
        for row in rows:
            longest = max(longest, sum(8 * len(value) + 3 for value in row if value is not None) + 3 * len(row))
            yield row

    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(measured())
    return longest


def spooled(path: Path, width: int, longest: int = 0) -> str:
    """The relation of a CSV file without header that `write_csv` or a database wrote, none of whose rows has more bytes
    than `longest`. Its lines end in \\n, whatever stands in its fields."""
    return _relation(path, width, ",", 0, longest=longest, ends=True)
