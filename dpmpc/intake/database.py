"""Records from a database: one query to SQLite or PostgreSQL, read once, in one snapshot, read only.

Credentials come from the environment (PGUSER, PGPASSWORD, PGPASSFILE, PGSERVICE) or the password file, as libpq has
it; a password in the URL is refused, for command lines are seen by others. Neither URL nor login nor the server's own
words, which may quote records, get into messages.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, parse_qs, quote, unquote, urlsplit

from dpmpc.errors import RecordError, UsageError
from dpmpc.intake.csvfile import spooled, write_csv
from dpmpc.intake.engine import duckdb
from dpmpc.intake.fields import field
from dpmpc.intake.scratch import with_room
from dpmpc.intake.spelling import PLAIN, Spelling
from dpmpc.intake.table import Column, Table
from dpmpc.lazy import regex

_LOOPBACK = ("", "localhost", "127.0.0.1", "::1")
_BOOLEAN, _FLOAT4 = 16, 700
_USED = (_BOOLEAN, 18, 19, 20, 21, 23, 25, 26, _FLOAT4, 701, 1042, 1043, 1700, 2950)  # numbers, texts, uuid
_FRACTIONS = (_FLOAT4, 701, 1700)
_DATES = (1082, 1083, 1114, 1184, 1186, 1266)


_LITERALS = regex(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*|/\*.*?\*/", re.S)
_FILTERS = regex(
    r"\b(where|having|limit|offset|fetch|tablesample|join|lateral|distinct|group\s+by|intersect|except|qualify)\b|"
    r"\b(?:from)\s+[\w.]+(?:\s+(?:as\s+)?\w+)?\s*(,)",
    re.I,
)


def filtered_by(query: str | None) -> str:
    """What to tell the owner of records whose query chooses them; "" where it takes a table as it is.

    How many records there are is public, so whoever changes one that the query takes, or leaves out, changes a public
    number: with places of a capacity it does not. A view that chooses looks like a table."""
    found = _FILTERS.search(_LITERALS.sub(" ", query or ""))
    if found is None:
        return ""
    said = found[1].upper() if found[1] else "of several tables"
    return (
        f"the query chooses records ({said}): how many it finds is public, exactly, and no promise covers "
        "it; take all records, or hide their number with a capacity (docs/privacy.md)"
    )


def open_database(
    url: str,
    query: str,
    connection: duckdb.DuckDBPyConnection,
    folder: Path,
    *,
    empty: bool = False,
    spelling: Spelling = PLAIN,
    names: Sequence[str] = (),
) -> Table:
    """The rows of a query, copied into `folder`. `url`: sqlite:///FILE, or postgresql://[HOST[:PORT]]/DATABASE.
    `spelling`: of its texts; what the database has as a number is one whatever it says. `names`: what the columns are
    called in it, if the query calls them otherwise.

    Errors: a database that is away or says no, a query that it cannot answer, no rows unless it may be `empty`, columns
    of one name.
    """
    scheme, _, rest = url.partition(":")
    path = folder / f"{len(list(folder.iterdir()))}.rows.csv"
    query = query.strip().rstrip(";").strip()
    if not query:
        raise UsageError(
            "<<database>> needs a query; <<sql>> is empty; write for example <<sql>> 'SELECT * FROM patients'"
        )
    with with_room("the query's rows"):
        if scheme == "sqlite":
            file = _file(unquote(rest.removeprefix("//").partition("?")[0]))
            columns, longest = _sqlite(file, query, path, spelling, names)
        elif scheme in ("postgresql", "postgres"):
            columns, longest = _postgresql(url, query, path, spelling, names)
        else:
            raise UsageError(
                "<<database>> is sqlite:///FILE or postgresql://HOST/DATABASE; got another scheme; for other databases"
                " export to Parquet"
            )
    relation = spooled(path, len(columns), longest)
    size = path.stat().st_size
    table = Table(f"the {scheme} query", columns, relation, connection, parsed=True, spelling=spelling, size=size)
    if not empty and not table.rows("1", "LIMIT 1"):
        raise UsageError("a table needs records; the query has no rows; change <<sql>>", code="enough")
    return table


def reachable(url: str) -> str:
    """The URL as another process reaches the same database by it. Errors: it has a password, or names no file here."""
    scheme, _, rest = url.partition(":")
    if scheme == "sqlite":
        path = _file(unquote(rest.removeprefix("//").partition("?")[0])).absolute()
        return f"sqlite:///{quote(str(path))}"
    _options(url)
    return url


def _file(name: str) -> Path:
    """The SQLite file that the rest of a URL names: /relative, //absolute, or a plain path. Errors: there is none."""
    plain = name.lstrip("/")
    for path in (Path("/" + plain),) if name.startswith("//") else (Path(plain), Path(name)):
        if path.is_file():
            return path
    raise UsageError("a database must be there; <<database>> names no SQLite file; check the path", code="path")


def _sqlite(
    file: Path, query: str, path: Path, spelling: Spelling, called: Sequence[str]
) -> tuple[tuple[Column, ...], int]:
    """The columns of a query, and how many bytes its longest row has, copied to `path`."""
    import sqlite3  # which few runs need

    try:
        database = sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)
    except sqlite3.Error:
        raise UsageError("a database must be readable; the SQLite file is not; check its permissions") from None

    def rows(cursor: sqlite3.Cursor) -> Iterator[list[str | None]]:
        """SQLite has a type for each value, none for a column: each is spelled by itself."""
        for row in cursor:
            yield [
                field(v) if not isinstance(v, float) else str(field(v)).replace(".", signs[k])
                for k, v in enumerate(row)
            ]

    try:
        cursor = database.execute(query)
        if cursor.description is None:
            raise UsageError("<<sql>> is one SELECT; this one gives no rows; write a SELECT")
        names = [str(part[0]) for part in cursor.description]
        signs = [spelling.of(name).decimal for name in [*called, *names[len(called) :]]]
        longest = write_csv(rows(cursor), path)
    except sqlite3.OperationalError as error:
        rule = "<<sql>> must be a query that the database can answer"
        raise RecordError(f"{rule}; {error}; correct it", f"{rule}; this one is not; correct it") from None
    except (sqlite3.Error, UnicodeDecodeError):
        raise UsageError("a database must be whole; SQLite cannot read this one; check the file", code="file") from None
    finally:
        database.close()
    return tuple(Column(name, f"c{k}", "VARCHAR") for k, name in enumerate(names)), longest


def _postgresql(
    url: str, query: str, path: Path, spelling: Spelling, called: Sequence[str]
) -> tuple[tuple[Column, ...], int]:
    """As `_sqlite`; each column by its declared type."""
    try:
        import psycopg
        from psycopg.conninfo import make_conninfo
    except ImportError:
        raise UsageError(
            "PostgreSQL is read by psycopg, which is not installed; pip install 'psycopg[binary]'"
        ) from None
    parts, options = _options(url)
    if (parts.hostname or options.get("host", "")) not in _LOOPBACK and "sslmode" not in options:
        options["sslmode"] = "require"  # libpq would go on in the clear
    target = parts._replace(query="").geturl()
    try:
        options |= {"connect_timeout": "10", "application_name": "dpmpc"}
        with psycopg.connect(make_conninfo(target, **options)) as database:
            return _copied(database, query, path, spelling, called)
    except psycopg.Error as error:
        raise UsageError(_refused(error)) from None


def _options(url: str) -> tuple[SplitResult, dict[str, str]]:
    """The parts of a URL, and what it says after its question mark. Errors: it has a password."""
    parts = urlsplit(url)
    options = {key: values[-1] for key, values in parse_qs(parts.query).items()}
    if parts.password or "password" in options:
        raise UsageError(
            "a password does not belong into a command line, where others see it; <<database>> has one; put it into"
            " PGPASSWORD or a password file (PGPASSFILE) and change it",
            code="together",
        )
    return parts, options


def _copied(
    database: Any, query: str, path: Path, spelling: Spelling, called: Sequence[str]
) -> tuple[tuple[Column, ...], int]:
    """Copies the query's rows as CSV, in one read-only snapshot; numbers as their shortest exact text."""
    database.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
    database.execute("SET LOCAL extra_float_digits = 1")
    described = database.execute(f"SELECT * FROM ({query}) AS records LIMIT 0".encode()).description or []
    names = [part.name for part in described]
    signs = [spelling.of(name).decimal for name in [*called, *names[len(called) :]]]
    columns = tuple(
        Column(name, _spelled(k, part.type_code, signs[k]), _type(part.type_code))
        for k, (name, part) in enumerate(zip(names, described, strict=True))
    )
    widened = ", ".join(f"c{k}::float8" if part.type_code == _FLOAT4 else f"c{k}" for k, part in enumerate(described))
    aliases = ", ".join(f"c{k}" for k in range(len(described)))
    copy = f"COPY (SELECT {widened} FROM ({query}) AS records({aliases})) TO STDOUT (FORMAT csv, ENCODING 'UTF8')"
    longest = 0
    with path.open("wb") as file, database.cursor().copy(copy.encode()) as rows:
        for row in rows:  # the server sends each by itself
            longest = max(longest, len(row))
            file.write(row)
    return columns, longest


def _type(oid: int) -> str:
    """DuckDB's word for a PostgreSQL type, for refusals; what is used is text, as every number came."""
    if oid in _USED:
        return "VARCHAR"
    return "DATE" if oid in _DATES else "BLOB"


def _spelled(k: int, oid: int, sign: str) -> str:
    """SQL for the text of a column: a number's has the decimal sign that its owner stated."""
    if oid in _FRACTIONS and sign != ".":
        return f"replace(c{k}, '.', '{sign}')"
    return f"CASE c{k} WHEN 't' THEN 'true' WHEN 'f' THEN 'false' END" if oid == _BOOLEAN else f"c{k}"


def _refused(error: Any) -> str:
    """One line on what PostgreSQL said, without its words where they may hold a login or a record."""
    state = str(error.sqlstate or "")
    said = str(getattr(error.diag, "message_primary", None) or "")[:160]
    if state.startswith("28") or "password" in str(error) or "authentication" in str(error):
        return "a database must let us in; it refused the login; set PGUSER and PGPASSWORD, or a password file"
    if state == "3D000" or ("does not exist" in str(error) and not state):
        return "a database must be there; the server does not have this one, or this user; check <<database>> and "
        "PGUSER"
    if state.startswith("42"):
        return f"<<sql>> must be a query that the database can answer; {said}; correct it"
    if state.startswith("25"):
        return "<<sql>> only reads; this query writes; write a SELECT"
    if state:
        return f"<<sql>> must be a query that the database can answer; it failed with SQLSTATE {state}; correct it"
    return "a database must answer; the server does not; check that it runs, its host and port, and TLS"
