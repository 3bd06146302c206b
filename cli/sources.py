"""The options that name records and say how they are spelled, shared by the commands that read them."""

import csv
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from dpmpc.cli.settings import own_option
from dpmpc.errors import UsageError

_SOURCE = (
    own_option("csv", type=click.Path(path_type=Path)),
    *(own_option(name) for name in ("records", "database", "sql", "memory")),
)


def _one(name: str, kind: Any, help: str, metavar: str | None = None) -> click.Option:
    """An option that is said once. `kind`: a list of what it is one of, or a type."""
    return click.Option([name], type=click.Choice(kind) if isinstance(kind, list) else kind, metavar=metavar, help=help)


def _some(name: str, metavar: str, help: str) -> click.Option:
    """An option that may be said several times."""
    return click.Option([name], multiple=True, metavar=metavar, help=f"{help}; may be repeated.")


# How an owner's source is spelled is its own business: nothing of this is in a plan. `dpmpc describe` proposes it. By
# the names that `Spelling` has.
_SPELLED = {
    "decimal": _one("--decimal", [".", ","], "The decimal sign of your numbers.  [default: .]"),
    "thousands": _one(
        "--thousands",
        [",", ".", "space", "apostrophe"],
        "What stands between groups of three digits of your numbers.  [default: nothing]",
    ),
    "dates": _one(
        "--dates",
        ["dmy", "mdy"],
        "The order of day and month of your dates where the year is last; 2024-12-31 is read without.",
    ),
    "calendar": _one(
        "--calendar",
        ["buddhist", "persian", "minguo"],
        "Of your dates, where it is not ours: years of the Buddhist era (2567), the Persian calendar (1403-02-15), or "
        "years of the Republic of China (113/03/05).",
    ),
    "century": _one(
        "--century",
        int,
        "Two digits of a year mean one of the hundred years from this one on.  [default: they are not read]",
        "YEAR",
    ),
    "missing": _some(
        "--missing-word",
        "WORD",
        "A word or number that means that there is no value, besides empty, ?, NA, N/A and null; age=999 says so of one"
        " column",
    ),
    "units": _some("--unit", "WORD", "A unit before or after your numbers, such as kg or $, that is not part of them"),
    "negative": _one(
        "--negative",
        ["trailing", "parentheses", "triangle"],
        "How your numbers below zero are marked, besides a sign before them: 12-, (12), or △12.",
    ),
    "header": _one(
        "--header",
        int,
        "The line of your text files that names the columns; those above are not read.  [default: the first]",
        "LINE",
    ),
    "no_header": click.Option(
        ["--no-header"],
        is_flag=True,
        default=None,
        help="The first line of your text files is a record: the columns are numbered.",
    ),
    "below": _one(
        "--below",
        int,
        "How many lines below the names of your text files are no records, such as one of units.  [default: none]",
        "LINES",
    ),
    "footer": _one(
        "--footer",
        int,
        "How many of the last lines of your text files are no records, such as totals.  [default: none]",
        "LINES",
    ),
    "encoding": _one("--encoding", str, "Of your text files, such as cp1252.  [default: utf-8]", "NAME"),
    "other_decimal": _some(
        "--other-decimal", "COLUMN", "A column whose numbers have the other decimal sign, point or comma"
    ),
    "kept": _some(
        "--kept-word",
        "WORD",
        "One of ?, NA, N/A and null that is a value and does not mean that there is none; country=NA says so of one"
        " column",
    ),
    "words": _some("--words", "COLUMN", "A column of codes such as 0123, read as words though they look like numbers"),
    "yyyymmdd": _some("--yyyymmdd", "COLUMN", "A column of dates that are written as one number, such as 20240131"),
    "pairs": _some(
        "--pair",
        "COLUMN",
        "A column with two numbers in a field, such as blood pressure, 120/80: read as two, 'bp (1)' and 'bp (2)'",
    ),
    "percents": _some("--percent", "COLUMN", "A column of shares, in which 85% is 0.85, as others of its fields are"),
    "months": _some(
        "--month",
        "WORD=N",
        "What your dates call a month, and its number, where the word is not known or means two: listopada=11",
    ),
    "names": _some(
        "--names",
        "A,B,C",
        "The columns of your text files that no line names, or the keys of your JSON records that are columns "
        "(else the keys of many are)",
    ),
    "misfits": _one(
        "--misfits",
        ["ask", "zero"],
        "Records whose target is missing or none of the schema's: ask stops before anything is spent, zero counts each"
        " as the zero vector, of which nothing is learnt.  [default: zero for a site of a consortium, else ask]",
    ),
}
_FILE = click.Option(
    ["--spelling", "spelling_file"],
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A file with these options, TOML or JSON, as `dpmpc describe --spelling FILE` writes it; options said "
    "beside it come on top.",
)
SPELLING = (_FILE, *_SPELLED.values())
_NAMES = {"space": " ", "apostrophe": "'"}


def source_options(command: Callable[..., Any], own: Callable[[Any], Any] | None = None) -> Callable[..., Any]:
    """Adds --csv, --records, --database, --sql, --memory and the options of spelling to a command, which gets the last
    as `spelling`. `own`: the spelling of what a command's RUN has, on top of which options are said, as of a file."""

    def spelled(**given: Any) -> Any:
        spelling = spelling_of(given, None if own is None else partial(own, given["run"]))
        return command(**given, spelling=spelling)

    spelled.__doc__, spelled.__name__ = command.__doc__, command.__name__
    spelled.__click_params__ = getattr(command, "__click_params__", [])  # type: ignore[attr-defined]
    spelled.__click_params__ += [*reversed(SPELLING), *reversed(_SOURCE)]  # type: ignore[attr-defined]
    return spelled


def of_records(
    name: str, run: Callable[..., Any], own: Sequence[click.Parameter], more: Sequence[click.Parameter]
) -> click.Command:
    """A command about records: its own options, those of `source_options`, and more."""
    called = source_options(run)
    options = reversed(called.__click_params__)  # type: ignore[attr-defined]
    return click.Command(name, callback=called, params=[*own, *options, *more], help=run.__doc__)


def warn_of_filters(sql: str | None, settings: Mapping[str, Any]) -> None:
    """Warns of a query that chooses records, whose number is public where owners have no capacities."""
    if sql and not settings.get("capacity"):
        from dpmpc.intake.database import filtered_by

        if chosen := filtered_by(sql):
            click.echo(f"warning: {chosen}", err=True)


def spelling_of(given: dict[str, Any], own: Callable[[], Any] | None = None) -> Any:
    """The `Spelling` that the options of spelling say, which are taken out of `given`: those of the file, else `own`
    ones, and what is said on top of them. `describe` writes the file, which need not be there."""
    from dpmpc.intake.spelling import PLAIN, Spelling
    from dpmpc.intake.spelling_file import read_spelling

    path = given.pop("spelling_file", None)
    context = click.get_current_context(silent=True)
    made = context is not None and context.info_name == "describe" and path is not None and not path.exists()
    base = (PLAIN if own is None else own()) if path is None or made else read_spelling(path)
    stated = {field: given.pop(str(option.name)) for field, option in _SPELLED.items()}
    lines = csv.reader(stated["names"] or (), skipinitialspace=True)
    stated["names"] = tuple(name for line in lines for name in line)
    stated["thousands"] = _NAMES.get(stated["thousands"], stated["thousands"])
    said: dict[str, Any] = {field: value for field, value in stated.items() if value is not None}
    for field, value in said.items():
        if isinstance(value, tuple):
            said[field] = (*getattr(base, field), *value)
    return Spelling(**{**base.options(), **said})


def source_of(csv: Path | None, records: str | None, database: str | None, sql: str | None) -> Any:
    """The source that these options name. Errors: none, or more than one."""
    from dpmpc.records import CsvFile, Query

    given = [part for part in (csv, records, database) if part is not None]
    if len(given) != 1 or (database is None) != (sql is None):
        raise UsageError(
            f"one source of records is needed; got {len(given)}; give --csv FILE, --records SOURCE, or --database URL"
            " with --sql QUERY",
            code="missing",
        )
    return CsvFile(csv) if csv is not None else Query(database, sql or "") if database is not None else records


def memory_of(memory: str | None) -> int | None:
    """The bytes that --memory means."""
    from dpmpc.records.memory import parse_memory

    return None if memory is None else parse_memory(memory)
