"""`dpmpc stats`: answers about the records of several owners, from one release with one copy of noise."""

import os
import sys
import warnings
from pathlib import Path
from typing import Any

import click

from dpmpc.aggregation.plan.settings import Accounting, Choosing, Computing, PromiseSettings
from dpmpc.cli.defaults import with_delta, with_delta_rule
from dpmpc.cli.everywhere import give
from dpmpc.cli.settings import names_options, options_of
from dpmpc.cli.settings import spelling as as_options
from dpmpc.cli.sources import memory_of, of_records, source_of, warn_of_filters
from dpmpc.errors import UsageError, spelt
from dpmpc.planning.settings import OwnerSettings

_FORMS = ("text", "table", "markdown", "csv", "html")


def run_command(
    questions: tuple[str, ...], queries: Path | None, csv: Path | None, records: str | None, database: str | None,
    sql: str | None, memory: str | None, owners_column: str | None, schema: Path | None, bounds: Path | None,
    model: tuple[str, ...], named: tuple[str, ...], spell: tuple[str, ...], word_list: Path | None,
    about: str, confidence: float,
    at_once: bool, hopeless: bool, dry: bool, of: Path | None,
    form: str | None, table_to: Path | None, everything: bool, out: Path | None, data_id: str | None,
    budget: str | None, account: str | None, wait: float, spelling: Any, **settings: Any,
) -> None:  # fmt: skip
    """Answer questions about the records of several owners, with one copy of noise and intervals that know it.

    All questions are one release under one promise: owners' counts are added up inside MPC, ONE noise vector is added
    there, and only the noisy sums are opened. docs/statistics.md has the language and what intervals mean.

    \b
    Examples:
      dpmpc stats "table1 by readmitted" "mean(age) by sex" --csv hospitals.csv --owners-column site \\
        --bounds bounds.toml --epsilon 1 --delta 1e-5 --out table1
      dpmpc stats "mean(age) by sex" --csv hospitals.csv --owners-column site --name sex --epsilon 1
      dpmpc stats --queries questions.toml --csv all.csv --owners-column site --schema schema.json --dry
      dpmpc stats --of table1 --form table --table-to table1.docx
      dpmpc stats --of table1 --about population --form html
      dpmpc stats "table(ward) by sex" --of synthetic
    """
    from dpmpc.learning.survey_words import read_words
    from dpmpc.outcome import Level
    from dpmpc.show.tables import check_file
    from dpmpc.tables import asked, stats
    from dpmpc.tables.questions import read_queries

    os.umask(0o077)  # what a run writes is for this user alone
    if table_to is not None:
        check_file(table_to)
    level = Level(confidence, about, 0 if at_once else 1)
    every: list[Any] = [*questions, *(read_queries(queries) if queries is not None else [])]
    if of is not None:
        if out:
            raise UsageError("--of is about what was opened; --out was given too; leave it out")
        found = stats.reopened(of, level)
        _show(found.asked(every) if every else found, form, table_to, everything)
        return
    with_delta(settings)
    given = {
        "owners": owners_column, "schema": schema, "bounds": bounds,
        "models": dict(_named(part) for part in model), "memory": memory_of(memory), "spelling": spelling,
        **settings,
    }  # fmt: skip
    source = source_of(csv, records, database, sql)
    warn_of_filters(sql, settings)
    if dry:
        foreseen = asked.dry(source, every, **given)
        give({"expected": foreseen.expected})
        click.echo(foreseen.text(), nl=False)
        return
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", UserWarning)
        found = asked.stats(
            source, every, named=named, spell=spell, words=() if word_list is None else read_words(word_list),
            about=level.about, confidence=confidence, at_once=at_once, data_id=data_id, out=out,  # type: ignore[arg-type]
            hopeless="allow" if hopeless else "refuse", wait=wait, budget=budget, account=account,
            tell=lambda line: click.echo(spelt(line, as_options), err=True), **given,
        )  # fmt: skip
    for each in told:
        click.echo(f"warning: {each.message}", err=True)
    _show(found, form, table_to, everything)
    click.echo(found.guarantee, err=True)


def _show(found: Any, form: str | None, table_to: Path | None, everything: bool) -> None:
    """Prints the answers in a form, and writes the first of their tables as a paper prints it."""
    from dpmpc.show.forms import values

    give(values(found.outcome))
    form = form or ("table" if sys.stdout.isatty() else "text")
    if table_to is not None:
        found.printed(everything=everything)[0].write(table_to)
    if form == "table":
        click.echo("\n".join(map(str, found.printed(everything=everything))))
        return
    click.echo(str(getattr(found, form)()), nl=False)


def _named(part: str) -> tuple[str, str]:
    name, mark, run = part.partition("=")
    if not (name and mark and run):
        raise UsageError(f"a model is named for evaluate(NAME): --model NAME=RUN; got {part}; write it so")
    return name, run


_OWN = [
    click.Argument(["questions"], nargs=-1, metavar="[QUESTION]..."),
    click.Option(["--queries"], type=click.Path(path_type=Path), help="A TOML file with queries = [...]."),
    click.Option(["--owners-column"], metavar="COLUMN", help="The column that says whose each record is."),
    click.Option(["--schema"], type=click.Path(path_type=Path), help="A public schema: what may be asked."),
    click.Option(["--bounds"], type=click.Path(path_type=Path), help="Or bounds: column = [low, high] or texts. "
                 "Without either a private survey of the columns that questions name comes first."),
    *names_options(),
    click.Option(["--model"], multiple=True, metavar="NAME=RUN", help="A model that evaluate(NAME) is about."),
    click.Option(
        ["--about"], type=click.Choice(("data", "population")), default="data",
        help="What intervals hold: what these records say, or a population that they are drawn from.  [default: data]",
    ),
    click.Option(["--confidence"], type=float, default=0.95, help="Of each interval.  [default: 0.95]"),
    click.Option(["--at-once"], is_flag=True, help="Intervals that hold for all numbers at once."),
    click.Option(["--hopeless"], is_flag=True, help="Ask even what the noise will drown."),
    click.Option(["--dry"], is_flag=True, help="Say what the intervals will be, from public numbers; spend nothing."),
    click.Option(
        ["--of"], type=click.Path(path_type=Path),
        help="Answer from a release, or a synthetic table, that is there; spend nothing.",
    ),
    click.Option(
        ["--form"], type=click.Choice(_FORMS),
        help="Of what is printed; table: as papers print it, no wider than the terminal.  [default: table on a "
        "terminal, else text]",
    ),
    click.Option(
        ["--table-to"], type=click.Path(path_type=Path), metavar="FILE",
        help="Write the first table as papers print it: .txt, .md, .html, .tex, .csv or .docx.",
    ),
    click.Option(["--everything"], is_flag=True, help="In tables of papers, the levels that may be nobody's too."),
    click.Option(["--out"], type=click.Path(path_type=Path), help="A new folder for the answers in every form, "
                 "for --of.  [default: they are printed alone]"),
    click.Option(["--data-id"], metavar="TEXT", help="Name under which ledgers add up what is spent."),
    *options_of(Accounting),
    *options_of(OwnerSettings, without=("owners", "owner_sizes", "skew")),
    click.Option(["--wait"], type=float, default=60.0, help="Seconds for parties to come.  [default: 60]"),
]  # fmt: skip
_LATER = ("pool", "check_owners", "link")
_PROMISE = options_of(PromiseSettings, Choosing, Computing, without=_LATER)
command = of_records("stats", run_command, _OWN, with_delta_rule(_PROMISE))
