"""The options that name records and say how they are spelled, shared by the commands that read them."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from dpmpc.cli.settings import own_option
from dpmpc.errors import UsageError

_SOURCE = (
    own_option("csv", type=click.Path(path_type=Path)),
    *(own_option(name) for name in ("records", "database", "sql", "memory")),
)
# How an owner's source is spelled is its own business: nothing of this is in a plan. `dpmpc describe` proposes it.
SPELLING = (
    click.Option(["--decimal"], type=click.Choice([".", ","]), help="The decimal sign of your numbers.  [default: .]"),
    click.Option(
        ["--thousands"],
        type=click.Choice([",", ".", "space", "apostrophe"]),
        help="What stands between groups of three digits of your numbers.  [default: nothing]",
    ),
    click.Option(
        ["--dates"],
        type=click.Choice(["dmy", "mdy"]),
        help="The order of day and month of your dates where the year is last; 2024-12-31 is read without.",
    ),
    click.Option(
        ["--calendar"],
        type=click.Choice(["buddhist", "persian"]),
        help="Of your dates, where it is not ours: years of the Buddhist era (2567), or the Persian calendar"
        " (1403-02-15).",
    ),
    click.Option(
        ["--century"],
        type=int,
        metavar="YEAR",
        help="Two digits of a year mean one of the hundred years from this one on.  [default: they are not read]",
    ),
    click.Option(
        ["--missing-word", "missing_word"],
        multiple=True,
        metavar="WORD",
        help="A word or number that means that there is no value, besides empty, ?, NA, N/A and null; age=999 says so"
        " of one column; may be repeated.",
    ),
    click.Option(
        ["--unit"],
        multiple=True,
        metavar="WORD",
        help="A unit before or after your numbers, such as kg or $, that is not part of them; may be repeated.",
    ),
    click.Option(
        ["--negative"],
        type=click.Choice(["trailing", "parentheses"]),
        help="How your numbers below zero are marked, besides a sign before them: 12-, or (12).",
    ),
    click.Option(
        ["--header"],
        type=int,
        metavar="LINE",
        help="The line of your text files that names the columns; those above are not read.  [default: the first]",
    ),
    click.Option(
        ["--footer"],
        type=int,
        metavar="LINES",
        help="How many of the last lines of your text files are no records, such as totals.  [default: none]",
    ),
    click.Option(["--encoding"], metavar="NAME", help="Of your text files, such as cp1252.  [default: utf-8]"),
    click.Option(
        ["--other-decimal"],
        multiple=True,
        metavar="COLUMN",
        help="A column whose numbers have the other decimal sign, point or comma; may be repeated.",
    ),
    click.Option(
        ["--kept-word", "kept_word"],
        multiple=True,
        metavar="WORD",
        help="One of ?, NA, N/A and null that is a value and does not mean that there is none; country=NA says so of"
        " one column; may be repeated.",
    ),
    click.Option(
        ["--words"],
        multiple=True,
        metavar="COLUMN",
        help="A column of codes such as 0123, read as words though they look like numbers; may be repeated.",
    ),
    click.Option(
        ["--yyyymmdd"],
        multiple=True,
        metavar="COLUMN",
        help="A column of dates that are written as one number, such as 20240131; may be repeated.",
    ),
    click.Option(
        ["--pair"],
        multiple=True,
        metavar="COLUMN",
        help="A column with two numbers in a field, such as blood pressure, 120/80: read as two, 'bp (1)' and 'bp (2)';"
        " may be repeated.",
    ),
    click.Option(
        ["--misfits"],
        type=click.Choice(["ask", "zero"]),
        help="Records whose target is missing or none of the schema's: ask stops before anything is spent, zero counts"
        " each as the zero vector, of which nothing is learnt.  [default: zero for a site of a consortium, else ask]",
    ),
)
_NAMES = {"": "", "space": " ", "apostrophe": "'"}


def source_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds --csv, --records, --database, --sql, --memory and the options of spelling to a command, which gets the last
    as `spelling`."""

    def spelled(**given: Any) -> Any:
        spelling = spelling_of(given)
        return command(**given, spelling=spelling)

    spelled.__doc__, spelled.__name__ = command.__doc__, command.__name__
    spelled.__click_params__ = getattr(command, "__click_params__", [])  # type: ignore[attr-defined]
    spelled.__click_params__ += [*reversed(SPELLING), *reversed(_SOURCE)]  # type: ignore[attr-defined]
    return spelled


def warn_of_filters(sql: str | None, settings: Mapping[str, Any]) -> None:
    """Warns of a query that chooses records, whose number is public where owners have no capacities."""
    if sql and not settings.get("capacity"):
        from dpmpc.data.database import filtered_by

        if chosen := filtered_by(sql):
            click.echo(f"warning: {chosen}", err=True)


def spelling_of(given: dict[str, Any]) -> Any:
    """The `Spelling` that the options of spelling say, which are taken out of `given`."""
    from dpmpc.data.spelling import Spelling

    stated = {str(option.name): given.pop(str(option.name)) for option in SPELLING}
    thousands = stated.pop("thousands") or ""
    single = ("decimal", "dates", "calendar", "century", "encoding", "misfits", "negative", "header", "footer")
    settings = {name: stated[name] for name in single}
    return Spelling(
        thousands=_NAMES.get(thousands, thousands),  # type: ignore[arg-type]
        missing=tuple(stated["missing_word"]),
        units=tuple(stated["unit"]),
        other_decimal=tuple(stated["other_decimal"]),
        kept=tuple(stated["kept_word"]),
        words=tuple(stated["words"]),
        yyyymmdd=tuple(stated["yyyymmdd"]),
        pairs=tuple(stated["pair"]),
        **{name: value for name, value in settings.items() if value is not None},
    )


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
