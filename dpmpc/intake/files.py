"""Files of records: CSV, TSV, Parquet, Arrow and JSON lines, compressed or not, alone, in a folder or by a pattern."""

from __future__ import annotations

import glob
import hashlib
import os
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from dpmpc.errors import RecordError, UsageError, sayable
from dpmpc.folders import below
from dpmpc.intake.csvfile import encoding_of, open_csv, other_kind, readable, scan, transcoded
from dpmpc.intake.engine import duckdb, explained, registered
from dpmpc.intake.packed import packing, unpack
from dpmpc.intake.reading import literal, path_literal
from dpmpc.intake.spelling import PLAIN, Spelling
from dpmpc.intake.table import Column, Table, check_width, quoted
from dpmpc.intake.union import cast, joint, placed
from dpmpc.lazy import dataclass

_CSV = {".csv": None, ".tsv": "\t", ".txt": None, ".data": None}
_JSON = (".jsonl", ".ndjson", ".json")
_PARQUET = (".parquet", ".pq")
_ARROW = (".arrow", ".feather", ".ipc")
_PACKED = (".gz", ".zst")
_KINDS = (*_CSV, *_JSON, *_PARQUET, *_ARROW)
_HEAD = 1 << 16  # bytes that say whether an object holds others
_SETTLED = 5 * 10**9  # nanoseconds: no file system keeps time less finely
_DIGESTS: dict[Path, tuple[tuple[int, ...], str]] = {}  # how a file stood when it was read, and its digest
# (how many records have each key, how many records there are, the source) -> the keys that are columns, in order
Chosen = Callable[[Mapping[str, int], int, str], tuple[str, ...]]
KINDS = "CSV, TSV, Parquet, Arrow or Feather, JSON lines; text also as .gz or .zst"


def open_files(
    source: str | Path,
    connection: duckdb.DuckDBPyConnection,
    folder: Path,
    spelling: Spelling = PLAIN,
    *,
    chosen: Chosen | None = None,
) -> Table:
    """The records in a file, in all files of a folder, or in all files that a pattern names, in the order of the names.
    `chosen`: which keys of JSON objects are columns.

    Errors: no such file, one that is no table, files whose columns differ in name or kind.
    """
    paths = paths_of(str(source))
    name = Path(source).name or str(source)
    found = [_opened(path, connection, folder, spelling=spelling) for path in paths]
    tables = _chosen(found, chosen, name)
    if len(tables) == 1:
        return tables[0]
    for table in tables:
        table.n  # noqa: B018  repairs what needs repair, file by file
    return _joined(tables, name, connection)


def _named(path: Path, folder: Path) -> Path:
    """The path, or a link to the file whose name is text, where an older system wrote the name in other bytes."""
    text = os.fsencode(path).decode(errors="replace")
    if text == str(path):
        return path
    plain = "".join(letter for letter in Path(text).name if letter != "\ufffd")
    link = Path(tempfile.mkdtemp(dir=folder)) / (plain if plain.strip(".") else "records")
    link.symlink_to(path.absolute())
    return link


def open_file(
    path: Path,
    connection: duckdb.DuckDBPyConnection,
    folder: Path,
    *,
    kind: str | None = None,
    names: Sequence[str] | None = None,
    separator: str | None = None,
    comment: str | None = None,
    spelling: Spelling = PLAIN,
    whole: bool = True,
    chosen: Chosen | None = None,
) -> Table:
    """The records in one file. `kind`: its suffix, if its name does not say; the others are for CSV. `whole`: False for
    Parquet alone, of which no more is read than its footer. `chosen`: which keys of JSON objects are columns.

    Errors: as for each kind; a file that changed while it was unpacked.
    """
    found = _opened(
        path, connection, folder, kind=kind, names=names, separator=separator, comment=comment, spelling=spelling,
        whole=whole,
    )  # fmt: skip
    return _chosen([found], chosen, path.name)[0]


@dataclass(frozen=True)
class _Objects:
    """A file of n JSON objects, of which `counts` have each key."""

    place: str  # what `read_json` is told of it
    source: str
    connection: duckdb.DuckDBPyConnection
    counts: Counter[str]
    n: int
    finished: Callable[[Table], Table]
    size: int  # in bytes

    def table(self, names: Sequence[str], others: frozenset[str]) -> Table:
        """The objects as rows: every value of these keys as it is written, lists and objects too, so that no row
        decides what the others are. Errors: a line that is no object."""
        typed = ", ".join(f"{literal(name)}: 'JSON'" for name in names)
        made = ", ".join(f"({quoted(name)} ->> '$') AS {quoted(name)}" for name in names)
        relation = f"(SELECT {made} FROM read_json({self.place}, columns={{{typed}}}, records='true'))"
        columns = tuple(Column(name, quoted(name), "VARCHAR") for name in names)
        table = Table(
            self.source, columns, relation, self.connection, parsed=True, uncounted=others, size=self.size
        )  # fmt: skip
        table.one(f"count({columns[0].sql})")
        return self.finished(table)


def _chosen(found: Sequence[Table | _Objects], chosen: Chosen | None, source: str) -> list[Table]:
    """The tables, those of objects with the columns that follow from all of these together."""
    objects = [each for each in found if isinstance(each, _Objects)]
    if not objects:
        return [each for each in found if isinstance(each, Table)]
    if chosen is None:
        raise TypeError(f"{source} is JSON: which keys are columns has to be said")
    counts = sum((each.counts for each in objects), Counter[str]())
    names = chosen(counts, sum(each.n for each in objects), source)
    others = frozenset(counts) - set(names)
    return [each if isinstance(each, Table) else each.table(names, others) for each in found]


def _opened(
    path: Path,
    connection: duckdb.DuckDBPyConnection,
    folder: Path,
    *,
    kind: str | None = None,
    names: Sequence[str] | None = None,
    separator: str | None = None,
    comment: str | None = None,
    spelling: Spelling = PLAIN,
    whole: bool = True,
) -> Table | _Objects:
    path = _named(path, folder)
    name = path.name
    readable(path)
    suffix = kind or _suffix(path)
    if not whole:
        if suffix not in _PARQUET:
            raise UsageError(
                f"workers read partitions that are Parquet files; {sayable(name)} is none; write it as Parquet, or "
                "leave "
                "<<executor>> out",
                code="together",
            )
        return replace(_parquet(path, connection), spelling=spelling)
    if suffix in _PARQUET or suffix in _ARROW:
        digest = file_digest(path)
        opened = _parquet(path, connection) if suffix in _PARQUET else _arrow(path, connection)
        return replace(opened, unchanged=partial(check_unchanged, path, digest), spelling=spelling)
    plain, unchanged = path, None
    if packing(path):
        plain = _unpacked(path, folder)
    if (encoding := encoding_of(plain, spelling.encoding)) != "utf-8":
        digest = file_digest(path)
        plain = transcoded(plain, name, encoding, folder)
        check_unchanged(path, digest)
    stood = _stands(plain)
    seen = scan(plain, name)
    if plain is path:
        _keep(path, stood, seen.digest)
        unchanged = partial(check_unchanged, path, seen.digest)

    def finished(table: Table) -> Table:
        table = replace(table, loose=seen.loose, spelling=spelling)
        return table if unchanged is None else replace(table, unchanged=unchanged)

    if suffix in _JSON:
        return _json(plain, name, connection, finished, lines=suffix != ".json")
    return finished(
        open_csv(
            plain,
            name,
            connection,
            folder,
            names=names or spelling.names or None,
            separator=separator or _CSV.get(suffix),
            comment=comment,
            loose=seen.loose,
            header=spelling.header,
            footer=spelling.footer,
            below=spelling.below,
            headless=spelling.no_header,
            ended=seen.ended,
        )
    )


def check_unchanged(path: Path, digest: str) -> None:
    """Errors: the file's bytes are not those of this digest."""
    try:
        same = file_digest(path) == digest
    except OSError:
        same = False
    if not same:
        raise UsageError(
            f"a data file must stay as it is while it is read; {path.name} changed; run again when nobody writes to it",
            code="file",
        )


def file_digest(path: Path) -> str:
    """SHA-256 of the file's bytes. They are read once as long as the file stands as it stood then: the same file of the
    same size, last changed (by the system's word, which nobody sets back) seconds before it was read."""
    stands = _stands(path)
    known = _DIGESTS.get(path)
    if known is not None and known[0] == stands:
        return known[1]
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    _keep(path, stands, found)
    return found


def _keep(path: Path, stood: tuple[int, ...], digest: str) -> None:
    """Keeps what was read of a file that stood so before and stands so now, and that nobody has changed for a while."""
    if _stands(path) == stood and time.time_ns() - max(stood[-2:]) > _SETTLED:
        _DIGESTS[path] = stood, digest


def _stands(path: Path) -> tuple[int, ...]:
    """What any change of a file changes, up to how finely a file system keeps time."""
    seen = path.stat()
    return seen.st_dev, seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns


def files_digest(source: str) -> str:
    """SHA-256 over the bytes of all files that a source names, in the order in which they are read."""
    return hashlib.sha256("".join(map(file_digest, paths_of(source))).encode()).hexdigest()


def paths_of(source: str) -> list[Path]:
    """The files that a source names, in the order in which they are read. Errors: it names none."""
    if "://" in source:
        raise UsageError(
            "<<records>> names files on this machine; got a URL; copy the file here, or read a database with "
            "<<database>>",
            code="path",
        )
    path = Path(source)
    if path.is_dir():
        found = [p for p in below(path, "*") if p.is_file() and _known(p) and not p.name.startswith((".", "_"))]
    elif any(mark in source for mark in "*?[") and not path.exists():
        found = [Path(p) for p in glob.glob(source, recursive=True) if Path(p).is_file()]
    else:
        return [path]
    if not found:
        raise UsageError(f"<<records>> needs files; {sayable(source)} has none of {KINDS}; check the path", code="path")
    return sorted(found)


def _known(path: Path) -> bool:
    return path.suffix in _KINDS or (path.suffix in _PACKED and Path(path.stem).suffix in _KINDS)


def _suffix(path: Path) -> str:
    """The suffix that says the file's kind; by its first bytes where the name has none."""
    suffix = Path(path.stem).suffix if path.suffix.lower() in _PACKED else path.suffix
    if suffix.lower() in _KINDS:
        return suffix.lower()
    with path.open("rb") as file:
        head = file.read(6)
    if head[:4] == b"PAR1":
        return ".parquet"
    if head == b"ARROW1":
        return ".arrow"
    way = other_kind(path) or "rename it, or use <<csv>>"
    raise UsageError(
        f"a file's suffix says its kind ({KINDS}); {path.name} has none of them; {sayable(way)}", code="file"
    )


def _unpacked(path: Path, folder: Path) -> Path:
    """A plain copy of a compressed file. Errors: as `unpack`; it changes meanwhile."""
    digest = file_digest(path)
    plain = folder / f"{len(list(folder.iterdir()))}.text"
    unpack(path, plain)
    check_unchanged(path, digest)
    return plain


def _parquet(path: Path, connection: duckdb.DuckDBPyConnection) -> Table:
    relation = f"read_parquet({path_literal(path)})"
    try:
        fields = connection.execute(f"SELECT name, num_children FROM parquet_schema({path_literal(path)})").fetchall()
        named = _top_level(fields)
        check_width(len(named), path.name)
        return described(relation, path.name, named, connection)
    except duckdb.Error as error:
        raise RecordError(explained(error, path.name), f"{path.name} cannot be read") from None


def _top_level(fields: list[tuple[Any, ...]]) -> list[str]:
    """The names of a Parquet file's columns; the first field is the root, children follow their parent."""
    names, skip = [], 0
    for name, children in fields[1:]:
        if skip == 0:
            names.append(str(name))
        else:
            skip -= 1
        skip += int(children or 0)
    return names


def described(relation: str, source: str, named: list[str] | None, connection: duckdb.DuckDBPyConnection) -> Table:
    """The table of a relation whose columns have types. `named`: what the source calls them."""
    found = connection.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()
    names = [str(row[0]) for row in found]
    if named is not None and named != names:
        lowered = Counter(name.lower() for name in named)
        double = sorted({name for name in named if lowered[name.lower()] > 1})
        raise UsageError(
            f"column names differ in more than case; {sayable(source)} has "
            f"{sayable(', '.join(double[:6]) or 'others')}; rename them",
            code="unique",
        )
    table = Table(source, tuple(Column(str(n), quoted(str(n)), str(t)) for n, t, *_ in found), relation, connection)
    if table.n == 0:
        raise UsageError(f"a table needs records; {sayable(source)} has none; add rows", code="enough")
    return table


def _json(
    path: Path, source: str, connection: duckdb.DuckDBPyConnection, finished: Callable[[Table], Table], *, lines: bool
) -> _Objects:
    """JSON objects with their keys counted. Errors: no JSON, no objects."""
    place = f"{path_literal(path)}, format='{'newline_delimited' if lines else 'auto'}', compression='none'"
    keys = "list_append(list_distinct(json_keys(json)), NULL)"  # a null a record: how many there are
    whole = f"SELECT unnest({keys}) AS key FROM read_json({place}, columns={{json: 'JSON'}}, records='false')"
    try:
        found = connection.execute(f"SELECT key, count(*) FROM ({whole}) GROUP BY key").fetchall()
    except duckdb.Error as error:
        raise RecordError(explained(error, source), f"{source} cannot be read") from None
    counts = Counter({key: int(count) for key, count in found})
    if not (n := counts.pop(None, 0)):
        raise UsageError(f"a table needs records; {sayable(source)} has none; add rows", code="enough")
    with path.open("rb") as file:
        head = file.read(_HEAD).strip()
    if n == 1 and head[:1] == b"{" and (b"{" in head[1:] or b"[" in head):
        raise UsageError(
            f"JSON has an object for each record; {sayable(source)} is one object that holds others; write an array of "
            "its records, as to_json(orient='records') does",
            code="file",
        )
    return _Objects(place, source, connection, counts, n, finished, path.stat().st_size)


def _arrow(path: Path, connection: duckdb.DuckDBPyConnection) -> Table:
    """An Arrow file (Feather version 2), read by pyarrow in batches."""
    dataset = pyarrow_module("pyarrow.dataset", path.name)
    import pyarrow as pa

    try:
        opened = dataset.dataset(path, format="ipc")
        check_width(len(opened.schema.names), path.name)
        view = f"arrow_{abs(hash(str(path)))}"
        registered(connection, view, opened)
        return described(view, path.name, list(opened.schema.names), connection)
    except (pa.ArrowException, OSError):
        raise UsageError(
            f"an Arrow file must be whole; {path.name} is damaged or no Arrow file; copy it again", code="file"
        ) from None
    except duckdb.Error as error:
        raise RecordError(explained(error, path.name), f"{path.name} cannot be read") from None


def pyarrow_module(name: str, source: str) -> Any:
    """A module of pyarrow. Errors: it is not installed."""
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError:
        raise UsageError(
            f"Arrow data are read by pyarrow, which is not installed; {sayable(source)} is one; pip install pyarrow"
        ) from None


def _joined(tables: list[Table], source: str, connection: duckdb.DuckDBPyConnection) -> Table:
    """The rows of tables with the same columns, one table after the other."""
    columns = placed(joint([table.source for table in tables], [table.columns for table in tables]))
    parts = [
        "SELECT " + ", ".join(f"{cast(table, c)} AS {c.sql}" for c in columns) + f" FROM {table.relation}"
        for table in tables
    ]
    checks: list[Callable[[], None]] = [table.unchanged for table in tables]

    def unchanged() -> None:
        for check in checks:
            check()

    return Table(
        source,
        columns,
        f"({' UNION ALL '.join(parts)})",
        connection,
        any(table.loose for table in tables),
        unchanged,
        parsed=any(table.parsed for table in tables),
        spelling=tables[0].spelling,
        size=sum(table.size for table in tables),
        uncounted=frozenset().union(*(table.uncounted for table in tables)),
    )
