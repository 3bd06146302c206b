"""`dpmpc describe`: a look at one's own records."""

import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dpmpc.cli.everywhere import give
from dpmpc.cli.run_file import said_here
from dpmpc.cli.settings import options_stating, setting_option
from dpmpc.cli.settings import spelling as spelled_here
from dpmpc.cli.sources import memory_of, source_of, source_options
from dpmpc.errors import UsageError, number_of, spelt
from dpmpc.folders import write_file
from dpmpc.show import html
from dpmpc.show.svg import histogram
from dpmpc.show.terminal import Style, Terminal, TextColumn, TextRow
from dpmpc.show.values import json_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dpmpc.intake.describe import Described, Description
    from dpmpc.intake.spelling import Spelling

_EYES = "for the eyes of the records' owner alone: nothing below is protected"
_OUTSIDE = {
    "footer": "footer: the last line is called a total, and is left out; where it is a record, leave <<footer>> out",
    "below": "below the names a row of units is left out; where it is a record, leave <<below>> out",
}
_MANY = 100  # columns: of more, those of which the same is said are on one line
_OF_EACH = 6
_SPARKS = " ▁▂▃▄▅▆▇█"


@click.command("describe")
@click.argument("source", required=False)
@source_options
@click.option("--target", metavar="COLUMN", help="The column to predict: its classes are counted.")
@setting_option("owners_column", help="The column that says who owns a record: no feature, and not in the schema.")
@setting_option("task", help="What --schema is for, where the target does not tell: its numbers may be classes.")
@click.option("--drop", metavar="COLUMN", multiple=True, help="A column to leave out; may be repeated.")
@click.option(
    "--schema",
    "schema_out",
    type=click.Path(path_type=Path),
    help="Write a first schema to edit here, TOML; JSON if its name ends so.",
)
@click.option(
    "--html", "html_out", type=click.Path(path_type=Path), help="Write the same as a web page, with histograms."
)
@click.option("--editor-schema", is_flag=True, help="Print the JSON schema of schema files, for editors, and stop.")
def command(
    source: str | None,
    csv: Path | None,
    records: str | None,
    database: str | None,
    sql: str | None,
    memory: str | None,
    spelling: "Spelling",
    target: str | None,
    owners_column: str | None,
    task: str | None,
    drop: tuple[str, ...],
    schema_out: Path | None,
    html_out: Path | None,
    editor_schema: bool,
) -> None:
    """Describe the records in SOURCE (a file, folder or pattern; or as the options say), for their owner's own eyes.

    Every column at once: what it seems to hold and in which spelling, missing and distinct values, extremes, what a run
    does with it, and the option or the line of a schema that changes that. --schema drafts a schema: ranges and lists
    that come from one's own data are not public, so what it writes says bounds "data" until you replace them.

    \b
    Examples:
      dpmpc describe hospitals.csv --target readmitted --owners-column site --schema schema.toml
      dpmpc describe hospital.csv --decimal , --dates dmy --target outcome --spelling how.toml --html hospital.html
    """
    if editor_schema:
        from dpmpc.records.schema import editor_schema as for_editors

        give(for_editors())
        click.echo(json_text(for_editors()), nl=False)
        return
    from dpmpc.intake.describe import NOT_PUBLIC, describe
    from dpmpc.records.draft import schema_of, toml_of
    from dpmpc.records.loading import opened

    if source is not None and records is not None:
        raise UsageError("one source of records is needed; got SOURCE and --records; leave one out")
    named = source_of(csv, source or records, database, sql)

    def look(by: "Spelling") -> "tuple[Description, Spelling]":
        with opened(named, memory=memory_of(memory), spelling=by, guess=True) as (table, _):
            return describe(table, target=target, owners=owners_column, drop=drop), table.spelling

    found, read = look(spelling)
    asks: tuple[str, ...] = ()
    if outside := dict(found.intake.outside):
        found, _ = look(
            replace(read, footer=outside.get("footer", read.footer), below=outside.get("below", read.below))
        )
        asks = tuple(_OUTSIDE[name] for name in outside)
    intake = replace(found.intake, stated=spelling, asks=(*found.intake.asks, *asks))  # what was guessed is proposed
    found = replace(found, intake=intake)
    # files first: whoever reads what is printed (head, less) may stop reading
    if html_out is not None:
        _write(html_out, page(found, target))
    if schema_out is not None:
        if target is None:
            raise UsageError("a schema names the column to predict; got none; add --target COLUMN", code="column")
        from dpmpc.learning.task import TASKS

        schema = schema_of(found.intake, target, goal=None if task is None else TASKS[task])
        as_text = json_text(schema) if schema_out.suffix == ".json" else None
        _write(schema_out, as_text or toml_of(schema, found.intake))
        click.echo(f'{schema_out}: a first schema, bounds "data"; {NOT_PUBLIC}', err=True)
    if (spelling_out := said_here("spelling_file")) is not None:
        from dpmpc.intake.spelling_file import write_spelling

        write_spelling(spelling_out, found.intake.proposed)
        click.echo(f"{spelling_out}: how these records are spelled; a run takes it with --spelling", err=True)
    give(found.to_json(spelled_here))
    _show(found, target)


def _show(found: "Description", target: str | None) -> None:
    from dpmpc.errors import some
    from dpmpc.intake.column_profile import dropping

    terminal = Terminal(sys.stdout)
    intake = found.intake
    title = f"{intake.source}: {_many(found)}; {_EYES}"
    terminal.line(title, style="bold")
    for line in spelled(found):
        terminal.line(line, style="yellow")
    widest = min(10, max((len(end) for described in found.columns for end in described.ends), default=0))  # a date's
    named = min(18, max((len(described.looked.name) for described in found.columns), default=0))
    columns = (
        TextColumn("column", long="cut", least=named, most=24),
        TextColumn("kind", long="whole"),
        TextColumn("missing", right=True, long="whole"),
        TextColumn("distinct", right=True, long="whole"),
        TextColumn("from", long="cut", least=widest, most=12),
        TextColumn("to", long="cut", least=widest, most=12),
        TextColumn("values", long="cut", least=12),
    )
    many = len(found.columns) > _MANY
    groups = _alike(found.columns) if many else [(described,) for described in found.columns]
    shown = {described.looked.name for group in groups for described in group[:_OF_EACH]}
    rows = []
    for described in found.columns:
        c = described.looked
        if c.name in shown:
            cells = (c.name, c.kind, str(c.missing), str(c.distinct), *described.ends, _spark(described))
            rows.append(TextRow(cells, "" if c.used or c.role == "target" else "dim"))
    terminal.table(columns, rows, rule=True)
    if len(shown) < len(found.columns):
        terminal.line(f"of columns that are alike the first {_OF_EACH} are shown; --json and --html have them all")
    for group in groups:
        c = group[0].looked
        change = spelt(dropping(["COLUMN"]) if c.used and len(group) > 1 else c.change, spelled_here)
        change = f" [to change it: {change}]" if change else ""
        notes = "".join(f"; {note}" for note in group[0].notes)
        style: Style = "" if c.used or c.role != "feature" else "yellow"
        names = c.name
        if len(group) > 1:
            names = f"{some([each.looked.name for each in group], _OF_EACH)} ({len(group):,} columns, as {c.name} is)"
        terminal.line(f"{names}: {c.kind}, {c.does}: {c.why}{notes}{change}", style=style)
    if target is not None:
        terminal.line(f"{target}: {_balance(found, target)}")


def _alike(columns: "Sequence[Described]") -> "list[tuple[Described, ...]]":
    """The columns of which the same is said but for numbers and words, in the order of their first ones."""
    groups: dict[object, list[Described]] = {}
    for described in columns:
        c = described.looked
        said = re.sub(r"'[^']*'|\d+", "", "; ".join((c.does, c.why, *described.notes)))
        groups.setdefault((c.kind, c.role, said, "" if c.used else c.change), []).append(described)
    return [tuple(group) for group in groups.values()]


def _many(found: "Description") -> str:
    return f"{number_of(found.intake.rows, 'record')}, {number_of(len(found.columns), 'column')}"


def spelled(found: "Description") -> list[str]:
    """What must be stated for the records to be read as is shown, and what fields alone do not tell."""
    intake = found.intake
    lines = []
    if intake.proposed != intake.stated:
        lines.append(f"read as with these options, which a run needs too: {options_stating(intake.proposed.options())}")
    return [*lines, *(spelt(line, spelled_here) for line in intake.findings)]


def _balance(found: "Description", target: str) -> str:
    column = found.intake[target]
    if not column.listed or len(column.values) > 20:
        return f"{column.kind}, {column.distinct} values"
    counts = [*sorted(column.values), *([("no value", column.missing)] if column.missing else [])]
    total = sum(count for _, count in counts)
    said = ", ".join(f"{value} {count} ({count / total:.1%})" for value, count in counts)
    if column.distinct == 1 and column.missing:
        from dpmpc.intake.column_profile import quoted

        way = spelt(f"<<classes={quoted(['', column.values[0][0]])}>>", spelled_here)
        said += f"; where a field without a value is the other class, a run needs {way}"
    return said


def _spark(column: "Described") -> str:
    counts = [count for _, count in column.bars]
    most = max(counts, default=0)
    return "".join(_SPARKS[0 if not count else 1 + 7 * count // most] for count in counts) if most else ""


def page(found: "Description", target: str | None) -> str:
    """The description as one web page that needs nothing else."""
    intake = found.intake
    parts = [html.lines([f"{_many(found)}; {_EYES}."], "warning"), html.lines(spelled(found), "warning")]
    if target is not None:
        parts.append(html.lines([f"{target}: {_balance(found, target)}"]))
    head = ("column", "kind", "missing", "distinct", "from", "to", "values", "what a run does", "notes")
    rows = []
    for described in found.columns:
        c = described.looked
        change = [f"to change it: {spelt(c.change, spelled_here)}"] if c.change else []
        notes = "; ".join((c.why, *described.notes, *change))
        bars = histogram(c.name, described.bars)
        rows.append((c.name, c.kind, str(c.missing), str(c.distinct), *described.ends, bars, c.does, notes))
    return html.page(intake.source, "".join([*parts, html.table("Columns", head, rows, raw=(6,))]))


def _write(path: Path, text: str) -> None:
    """Writes a file that its owner alone may read. Errors: it cannot be written."""
    try:
        write_file(path, text)
    except OSError as error:
        raise UsageError(f"an output file must be writable; {path}: {error.strerror}; name another") from None
