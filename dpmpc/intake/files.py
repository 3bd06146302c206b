"""Files of records: CSV, TSV, Parquet, Arrow and JSON lines, compressed or not, alone, in a folder or by a pattern."""

from __future__ import annotations

import glob
import hashlib
import itertools
import os
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from dpmpc.errors import RecordError, UsageError, sayable
from dpmpc.intake.csvfile import encoding_of, open_csv, other_kind, readable, scan, transcoded
from dpmpc.intake.engine import duckdb, explained, registered
from dpmpc.intake.packed import packing, unpack
from dpmpc.intake.reading import path_literal
from dpmpc.intake.spelling import PLAIN, Spelling
from dpmpc.intake.table import Column, Table, check_width, quoted
from dpmpc.intake.union import cast, joint, placed

_CSV = {".csv": None, ".tsv": "\t", ".txt": None, ".data": None}
_JSON = (".jsonl", ".ndjson", ".json")
_PARQUET = (".parquet", ".pq")
_ARROW = (".arrow", ".feather", ".ipc")
_PACKED = (".gz", ".zst")
_KINDS = (*_CSV, *_JSON, *_PARQUET, *_ARROW)
_SETTLED = 5 * 10**9  # nanoseconds: no file system keeps time less finely
_DIGESTS: dict[Path, tuple[tuple[int, ...], str]] = {}  # how a file stood when it was read, and its digest
KINDS = "CSV, TSV, Parquet, Arrow or Feather, JSON lines; text also as .gz or .zst"


def open_files(
    source: str | Path, connection: duckdb.DuckDBPyConnection, folder: Path, spelling: Spelling = PLAIN
) -> Table:
    """The records in a file, in all files of a folder, or in all files that a pattern names, in the order of the names.

    Errors: no such file, one that is no table, files whose columns differ in name or kind.
    """
    paths = paths_of(str(source))
    tables = [open_file(path, connection, folder, spelling=spelling) for path in paths]
    if len(tables) == 1:
        return tables[0]
    for table in tables:
        table.n  # noqa: B018  repairs what needs repair, file by file
    return _joined(tables, Path(source).name or str(source), connection)


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
) -> Table:
    """The records in one file. `kind`: its suffix, if its name does not say; the others are for CSV. `whole`: False for
    Parquet alone, of which no more is read than its footer.

    Errors: as for each kind; a file that changed while it was unpacked.
    """
    path = _named(path, folder)
    name = path.name
    readable(path)
    suffix = kind or _suffix(path)
    if not whole:
        if suffix not in _PARQUET:
            raise UsageError(
                f"workers read partitions that are Parquet files; {sayable(name)} is none; write it as Parquet, or "
                "leave "
                "<<executor>> out"
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
    if suffix in _JSON:
        table = _json(plain, name, connection, lines=suffix != ".json")
    else:
        table = open_csv(
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
    table = replace(table, loose=seen.loose, spelling=spelling)
    return table if unchanged is None else replace(table, unchanged=unchanged)


def check_unchanged(path: Path, digest: str) -> None:
    """Errors: the file's bytes are not those of this digest."""
    try:
        same = file_digest(path) == digest
    except OSError:
        same = False
    if not same:
        raise UsageError(
            f"a data file must stay as it is while it is read; {path.name} changed; run again when nobody writes to it"
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
            "<<database>>"
        )
    path = Path(source)
    if path.is_dir():
        found = [p for p in path.rglob("*") if p.is_file() and _known(p) and not p.name.startswith((".", "_"))]
    elif any(mark in source for mark in "*?[") and not path.exists():
        found = [Path(p) for p in glob.glob(source, recursive=True) if Path(p).is_file()]
    else:
        return [path]
    if not found:
        raise UsageError(f"<<records>> needs files; {sayable(source)} has none of {KINDS}; check the path")
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
    raise UsageError(f"a file's suffix says its kind ({KINDS}); {path.name} has none of them; {sayable(way)}")


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
            f"{sayable(', '.join(double[:6]) or 'others')}; rename them"
        )
    table = Table(source, tuple(Column(str(n), quoted(str(n)), str(t)) for n, t, *_ in found), relation, connection)
    if table.n == 0:
        raise UsageError(f"a table needs records; {sayable(source)} has none; add rows")
    return table


def _json(path: Path, source: str, connection: duckdb.DuckDBPyConnection, *, lines: bool) -> Table:
    """JSON objects as text: every value as it is written, so that no row decides what the others are."""
    kind = "newline_delimited" if lines else "auto"
    relation = (
        f"read_json({path_literal(path)}, format='{kind}', maximum_depth=1, sample_size=-1, compression='none',"
        " records='true')"
    )
    try:
        found = connection.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()
        columns = [Column(str(row[0]), f"({quoted(str(row[0]))} ->> '$')", "VARCHAR") for row in found]
        table = Table(source, tuple(columns), relation, connection, parsed=True)
        kinds = [f"json_type({quoted(column.name)})" for column in columns]
        plain = (f"count(*) FILTER (WHERE {kind} NOT IN ('OBJECT', 'ARRAY', 'NULL'))" for kind in kinds)
        nested = (f"count(*) FILTER (WHERE {kind} IN ('OBJECT', 'ARRAY'))" for kind in kinds)
        rows, *counts = table.one("count(*)", *itertools.chain(*zip(plain, nested, strict=True)))
        for k in range(len(columns)):  # a column that holds nothing else is no text, as in a Parquet file
            if counts[2 * k + 1] and not counts[2 * k]:
                columns[k] = replace(columns[k], sql=f"[{columns[k].sql}]", type="VARCHAR[]")
        # columns by their names, as other files have them: what is selected of them goes by these
        made = ", ".join(f"{column.sql} AS {quoted(column.name)}" for column in columns)
        by_name = tuple(replace(column, sql=quoted(column.name)) for column in columns)
        table = Table(source, by_name, f"(SELECT {made} FROM {relation})", connection, parsed=True)
    except duckdb.Error as error:
        raise RecordError(explained(error, source), f"{source} cannot be read") from None
    if not rows:
        raise UsageError(f"a table needs records; {sayable(source)} has none; add rows")
    return table


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
            f"an Arrow file must be whole; {path.name} is damaged or no Arrow file; copy it again"
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
            f"Arrow data are read by pyarrow, which is not installed; {sayable(source)} is one; pip install "
            "'dpmpc[arrow]'"
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
    )
