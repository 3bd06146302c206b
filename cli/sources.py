"""The options that name records, shared by the commands that read them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from dpmpc.errors import UsageError


def source_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds --csv, --records, --database, --sql and --memory to a command."""
    for option in reversed(
        (
            click.option("--csv", type=click.Path(path_type=Path), help="Records in a CSV file with a header."),
            click.option(
                "--records",
                metavar="SOURCE",
                help="Records in a file, a folder or a pattern of files: CSV, TSV, Parquet, Arrow or Feather, JSON "
                "lines; text also as .gz or .zst.",
            ),
            click.option(
                "--database",
                metavar="URL",
                help="With --sql: records in sqlite:///FILE or postgresql://HOST/DATABASE. Login by PGUSER, PGPASSWORD "
                "or a password file, never in the URL.",
            ),
            click.option("--sql", metavar="QUERY", help="With --database: one SELECT; its rows are the records."),
            click.option("--memory", metavar="SIZE", help="What this process may use, such as 2GB."),
        )
    ):
        command = option(command)
    return command


def source_of(csv: Path | None, records: str | None, database: str | None, sql: str | None) -> Any:
    """The source that these options name. Errors: none, or more than one."""
    from dpmpc.data import CsvFile, Query

    given = [part for part in (csv, records, database) if part is not None]
    if len(given) != 1 or (database is None) != (sql is None):
        raise UsageError(
            f"one source of records is needed; got {len(given)}; give --csv FILE, --records SOURCE, or --database URL"
            " with --sql QUERY"
        )
    return CsvFile(csv) if csv is not None else Query(database, sql or "") if database is not None else records


def memory_of(memory: str | None) -> int | None:
    """The bytes that --memory means."""
    from dpmpc.data.memory import parse_memory

    return None if memory is None else parse_memory(memory)
