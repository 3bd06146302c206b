"""A delimited text file as columns of bytes, parsed by NumPy: half a million rows of 42 fields in seconds.

Rules. A file may be gzip-compressed, and is UTF-8. Its separator is a comma, semicolon, tab or bar; fields may be
quoted with double quotes. Blank lines do not count. Space around a field does not belong to it. A field that is
empty, `?`, `NA`, `N/A` or `null` (any case) is missing. Numbers are decimal, with a point, finite: `nan` and `inf`
are errors.
"""

import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpmpc.errors import UsageError

Texts = NDArray[np.bytes_]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

MISSING = (b"", b"?", b"na", b"n/a", b"null")
_SEPARATORS = (",", ";", "\t", "|")
_LINE, _UNIT = 0x0A, 0x1F
_LONGEST_FIELD = 4096
_DECIMAL = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


@dataclass(frozen=True, eq=False)
class Table(Mapping[str, Texts]):
    """Columns by name, each (n,) bytes of fixed width, cut out of the text when they are asked for.

    bounds[i, k] and bounds[i, k + 1] are the positions of the separators around field k of row i.
    """

    names: tuple[str, ...]
    source: str
    text: NDArray[np.uint8] = field(repr=False)
    bounds: NDArray[np.int64] = field(repr=False)

    @property
    def n(self) -> int:
        """The number of rows."""
        return len(self.bounds)

    def rows(self, index: NDArray[np.int64]) -> "Table":
        """The table of the rows with these numbers, in this order."""
        return Table(self.names, self.source, self.text, self.bounds[index])

    @staticmethod
    def joined(tables: "Sequence[Table]") -> "Table":
        """The rows of tables with equal columns, one table after the other."""
        first = tables[0]
        assert all(table.names == first.names for table in tables)
        start = np.cumsum([0] + [len(table.text) for table in tables])
        return Table(
            first.names,
            first.source,
            np.concatenate([table.text for table in tables]),
            np.concatenate([table.bounds + begin for table, begin in zip(tables, start, strict=False)]),
        )

    def __getitem__(self, name: str) -> Texts:
        k = self.column(name)
        return _cut(self.text, self.bounds[:, k] + 1, self.bounds[:, k + 1].copy(), f"column '{name}' of {self.source}")

    def column(self, name: str) -> int:
        """The number of the column of this name. Errors: there is none."""
        if name not in self.names:
            some = ", ".join(self.names[:12]) + (", ..." if len(self.names) > 12 else "")
            raise UsageError(f"a column must exist to be used; {self.source} has no '{name}'; its columns are {some}")
        return self.names.index(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def __contains__(self, name: object) -> bool:
        return name in self.names


def read_table(
    path: Path, *, names: Sequence[str] | None = None, separator: str | None = None, comment: str | None = None
) -> Table:
    """The table in a text file (gz or not): its first row names the columns unless `names` does.

    Lines that start with `comment` do not count. The separator is found from the first lines unless given.
    Errors: no such file, not text, rows of unequal length (with the line), double or empty column names, no rows.
    """
    data = _read(path)
    if separator is None:
        separator = _sniff(data)
    if b'"' in data:
        data, separator = _unquote(data, separator, path.name), chr(_UNIT)
    bounds, text = _fields(data, separator, comment, path.name, None if names is None else len(names))
    if names is None:
        if len(bounds) == 0:
            raise UsageError(f"a CSV file starts with a row of column names; {path.name} is empty; check the file")
        header = [
            _cut(text, bounds[:1, k] + 1, bounds[:1, k + 1].copy(), "header")[0] for k in range(bounds.shape[1] - 1)
        ]
        names, bounds = [bytes(cell).decode() for cell in header], bounds[1:]
    double = sorted({name for name in names if list(names).count(name) > 1})
    if double or "" in names:
        raise UsageError(f"column names are unique and not empty; {path.name} has {double or ['']}; rename them")
    if len(bounds) == 0:
        raise UsageError(f"a table needs records; {path.name} has column names only; add rows")
    return Table(tuple(names), path.name, text, bounds)


def is_missing(column: Texts) -> Bools:
    """(n,) where a field is missing by the rule above."""
    if column.dtype.itemsize > 4 and len(column) > 4096:  # most columns hold no marker: look at short fields only
        short = np.char.str_len(column) <= 4
        result = np.zeros(len(column), dtype=bool)
        result[short] = np.isin(np.char.lower(column[short].astype("S4")), MISSING)
        return result
    return np.isin(np.char.lower(column), MISSING)


def numbers(column: Texts, what: str) -> Floats:
    """(n,) the fields' values, NaN where missing. Errors: a field that is no finite decimal number."""
    values, bad = parse(column)
    if bad.any():
        shown = bytes(column[np.argmax(bad)])[:40].decode(errors="replace")
        raise UsageError(
            f"{what} must hold finite numbers; it has '{shown}'; correct it, or leave missing values empty"
        )
    return values


def parse(column: Texts) -> tuple[Floats, Bools]:
    """(n,) the fields' values, NaN where missing or no finite decimal number; and where the latter is the case.

    A minus sign and at most 15 digits with a point have the exact value m / 10^k, m < 2^53, k <= 15, so one division
    rounds it just as `float` does. Everything else is left to `float`, once for each distinct text.
    """
    width = column.dtype.itemsize
    cells = np.ascontiguousarray(column).view(np.uint8).reshape(len(column), width)
    mantissa = np.zeros(len(column), dtype=np.int64)
    decimals = np.zeros(len(column), dtype=np.int64)
    plain = (cells[:, 0] != 0) & (cells[:, min(width - 1, 15)] == 0 if width > 15 else True)
    point = np.zeros(len(column), dtype=bool)
    digits = np.zeros(len(column), dtype=bool)
    for k in range(min(width, 15)):
        cell = cells[:, k]
        digit = cell - np.uint8(48)  # wraps round for bytes below '0'
        is_digit = digit <= 9
        is_point = cell == 46
        plain &= is_digit | (cell == 0) | (is_point & ~point) | (cell == 45 if k == 0 else False)
        np.multiply(mantissa, 10, out=mantissa, where=is_digit)
        np.add(mantissa, digit, out=mantissa, where=is_digit)
        decimals += is_digit & point
        point |= is_point
        digits |= is_digit
    plain &= digits
    values = mantissa / 10.0**decimals
    np.negative(values, out=values, where=cells[:, 0] == 45)
    bad = np.zeros(len(column), dtype=bool)
    rest = np.flatnonzero(~plain)
    if len(rest):
        distinct, inverse = np.unique(column[rest], return_inverse=True)
        missing = is_missing(distinct)
        ok = np.array([_DECIMAL.fullmatch(bytes(cell)) is not None for cell in distinct], dtype=bool)
        parsed = np.array([float(cell) if good else np.nan for cell, good in zip(distinct, ok, strict=True)])
        ok &= np.isfinite(parsed) | ~ok
        wrong = ~ok & ~missing
        values[rest] = np.where(ok, parsed, np.nan)[inverse]
        bad[rest] = wrong[inverse]
    return values, bad


def _read(path: Path) -> bytes:
    """The file's bytes, decompressed if they are gzip; without a byte order mark."""
    try:
        data = path.read_bytes()
    except OSError as error:
        reason = error.strerror or "it cannot be read"
        raise UsageError(f"a data file must be readable; {path}: {reason}; check the path") from None
    if data[:2] == b"\x1f\x8b":
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error):
            raise UsageError(f"a .gz file must be whole; {path.name} is damaged; copy it again") from None
    data = data.removeprefix(b"\xef\xbb\xbf")
    if b"\0" in data or chr(_UNIT).encode() in data:
        raise UsageError(f"a data file is text; {path.name} holds binary bytes; save it as CSV in UTF-8")
    if not data.isascii():
        try:
            data.decode()
        except UnicodeDecodeError as error:
            raise UsageError(
                f"a data file is UTF-8; {path.name} is not at byte {error.start}; save it as UTF-8"
            ) from None
    return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in data else data


def _sniff(data: bytes) -> str:
    """The separator that cuts the first lines into most fields, all lines alike."""
    lines = [line for line in data[: 1 << 16].decode(errors="replace").splitlines() if line.strip()][:20]
    if len(data) > 1 << 16 and len(lines) > 1:
        lines = lines[: max(1, len(lines) - 1)]
    best, most = ",", 1
    for separator in _SEPARATORS:
        counts = {len(row) for row in csv.reader(lines, delimiter=separator, skipinitialspace=True)}
        if len(counts) == 1 and (count := counts.pop()) > most:
            best, most = separator, count
    return best


def _unquote(data: bytes, separator: str, source: str) -> bytes:
    """The same table without quotes, fields set apart by the unit separator; line ends inside fields become spaces."""
    rows = csv.reader(io.StringIO(data.decode(), newline=""), delimiter=separator, skipinitialspace=True, strict=True)
    try:
        lines = [chr(_UNIT).join(row).replace("\n", " ") for row in rows]
    except csv.Error as error:
        raise UsageError(f"quotes must pair up; {source}, line {rows.line_num}: {error}; correct the line") from None
    return "\n".join(lines).encode()


def _fields(
    data: bytes, separator: str, comment: str | None, source: str, width: int | None
) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """(n, c + 1) the positions of the separators around each field of each line that counts, and the text."""
    if not data.endswith(b"\n"):
        data += b"\n"
    text = np.frombuffer(data, dtype=np.uint8)
    ends = np.flatnonzero(text == _LINE)
    starts = np.concatenate([[0], ends[:-1] + 1])
    cuts = np.flatnonzero(text == ord(separator))
    counts = np.diff(np.searchsorted(cuts, np.concatenate([[0], ends])))
    counted = ends > starts
    for i in np.flatnonzero((counts == 0) & counted):  # blank lines have no separator; a one-column table has few lines
        counted[i] = bool(data[starts[i] : ends[i]].strip())
    if comment is not None:
        counted &= text[starts] != ord(comment)
    if not counted.any():
        return np.zeros((0, 2), dtype=np.int64), text
    first = int(np.argmax(counted))
    separators = int(counts[first]) if width is None else width - 1
    if (wrong := counted & (counts != separators)).any():
        line = int(np.argmax(wrong))
        raise UsageError(
            f"every row has as many fields as there are columns, {separators + 1}; {source}, line {line + 1} has"
            f" {counts[line] + 1}; correct it"
        )
    if not counted.all():
        cuts = cuts[np.repeat(counted, counts)]
    inner = cuts.reshape(int(counted.sum()), separators)
    return np.column_stack([starts[counted] - 1, inner, ends[counted]]), text


def _cut(text: NDArray[np.uint8], begin: NDArray[np.int64], end: NDArray[np.int64], what: str) -> Texts:
    """(n,) the bytes text[begin:end] without space around them. `begin` and `end` are overwritten."""
    last = len(text) - 1
    while (blank := (begin < end) & (text[np.minimum(begin, last)] <= 32)).any():
        begin += blank
    while (blank := (begin < end) & (text[np.maximum(end - 1, 0)] <= 32)).any():
        end -= blank
    length = end - begin
    width = max(1, int(length.max(initial=1)))
    if width > _LONGEST_FIELD:
        raise UsageError(f"a field has at most {_LONGEST_FIELD} bytes; {what} holds one of {width}; drop that column")
    cells = np.zeros((len(begin), width), dtype=np.uint8)
    for k in range(width):
        some = slice(None) if k == 0 else np.flatnonzero(length > k)
        cells[some, k] = text[np.minimum(begin[some] + k, last)]
    cells[length == 0, 0] = 0
    return cells.view(f"S{width}")[:, 0]
