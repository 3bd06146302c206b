"""`dpmpc check`: a dry run of one owner's records against the schema of a plan."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dpmpc.cli.everywhere import give
from dpmpc.cli.settings import setting_option
from dpmpc.cli.settings import spelling as as_options
from dpmpc.cli.sources import memory_of, source_of, source_options
from dpmpc.errors import DpmpcError, Spelling, UsageError, number_of, reworded, spelt
from dpmpc.show.terminal import Style, Terminal, TextColumn, TextRow

if TYPE_CHECKING:
    from dpmpc.intake.spelling import Spelling as Spelt
    from dpmpc.records.check import Findings

_MANY = 100  # columns: of more, those are shown of which there is something to say


@click.command("check")
@click.option("--plan", "plan_file", type=click.Path(path_type=Path), help="The plan of a run; its schema is used.")
@click.option("--schema", "schema_file", type=click.Path(path_type=Path), help="A schema file, instead of a plan.")
@source_options
@setting_option("ids")
def command(
    plan_file: Path | None,
    schema_file: Path | None,
    csv: Path | None,
    records: str | None,
    database: str | None,
    sql: str | None,
    memory: str | None,
    ids: str | None,
    spelling: "Spelt",
) -> int:
    """Hold your records against a schema, without a run: missing, unknown and clipped values by column; against a plan
    also whether they are as many as it says, and are known again by their ids where it holds some out; beside a kit's
    plan, as many as it says of that site.

    For the owner's own eyes; nothing is sent anywhere. Exit code 1 if a run would refuse the records.

    \b
    Examples:
      dpmpc check --schema schema.toml --csv north.csv
      dpmpc check --plan plan.json --csv mine.csv
    """
    from dpmpc.aggregation.plan.plan import Plan
    from dpmpc.consortium.kit import owner_of_kit
    from dpmpc.local.named_records import held_against, with_ids, with_spelling
    from dpmpc.planning.request import Request
    from dpmpc.records.check import check, schema_in
    from dpmpc.records.loading import opened

    if (plan_file is None) == (schema_file is None):
        raise UsageError(
            "records are held against one schema; none or two were given; add --plan FILE or --schema FILE",
            code="together",
        )
    plan = None if plan_file is None else Plan.read(plan_file)
    schema = schema_in(schema_file) if schema_file is not None else None
    sizes = plan.all_sizes if plan is not None and plan.counted else ()
    if plan_file is not None and len(sizes) > 1 and (mine := owner_of_kit(plan_file)) is not None:
        sizes = sizes[mine : mine + 1]
    source = source_of(csv, records, database, sql)
    spelling = spelling if plan_file is None else spelling.among_others  # as an owner's process of that run reads
    say = as_options if plan_file is None else _of_a_plan(plan_file)
    read = schema or (None if plan is None else plan.mapped_by)
    names = read.names if read is not None else () if plan is None else plan.source.reads
    named = (*names, ids, None if plan is None else plan.person) if names else ()
    with _saying(say), opened(source, memory=memory_of(memory), spelling=spelling, names=named) as (table, _):
        if plan is not None:
            result, of = held_against(plan, table, sizes), f"what run {plan.run_id} reads"
            if plan.source.parted(plan.data_id) is not None:
                own = Request(
                    csv=None if csv is None else str(csv),
                    records=records,
                    database=database,
                    sql=sql,
                    ids=ids,
                    planned=True,
                    evaluate=False,
                )
                result = with_ids(result, own, plan, table)
        else:
            assert schema is not None
            result, of = (
                with_spelling(check(schema, table, sizes), table, False, schema.unknown, schema.target.name),
                f"schema {schema.digest[:16]}",
            )
        name = table.source
    give({"records": result.rows, "columns": result.counts, "said": [
        {"severity": each.severity, "column": each.column, "text": spelt(each.text, say)} for each in result.said
    ], "refused": result.refused, "unfit": result.unfit})  # fmt: skip
    _show(result, f"{name}: {number_of(result.rows, 'record')}; {of}; for your own eyes", say)
    return 1 if result.refused or result.unfit else 0


def _show(result: "Findings", title: str, say: Spelling) -> None:
    """Prints what was found: a table of counts by column, and a line on each thing that there is to say."""
    terminal = Terminal(sys.stdout)
    terminal.text(title, "bold")
    titles = ("missing", "not read", "unknown", "clipped")
    counts = [(c.name, *(str(n or "") for n in (c.missing, c.unread, c.unknown, c.clipped))) for c in result.counts]
    told = [row for row in counts if any(row[1:])] if len(counts) > _MANY else counts
    counts, left = told[:_MANY], (len(counts) - len(told), len(told[_MANY:]))
    if counts:
        terminal.table(
            [TextColumn("column"), *(TextColumn(title, right=True) for title in titles)],
            map(TextRow, counts),
            rule=True,
        )
    if any(left):
        terminal.line(
            f"not shown: {left[0]:,} columns of which nothing is to be said" + f", {left[1]:,} more" * bool(left[1])
        )
    colours: dict[str, Style] = {"refused": "red", "unfit": "red", "warning": "yellow", "note": "dim"}
    for finding in result.said:
        text = f"{finding.severity}: {finding.column}: {spelt(finding.text, say)}"
        terminal.line(text, style=colours[finding.severity])
    if result.refused:
        terminal.line("a run would refuse these records", style="red")
    elif result.unfit:
        terminal.line("a run would go on, and learn hardly anything of what does not fit", style="red")


def _of_a_plan(plan_file: Path) -> Spelling:
    """How settings are spelled for who holds records against a plan: options of this command as such, others where the
    plan has them from."""
    from dpmpc.consortium.joining import kit_spelling
    from dpmpc.consortium.kit import is_kit

    flags = {flag for param in command.params for flag in param.opts}
    in_kit = is_kit(plan_file.absolute().parent)

    def say(name: str, value: str | None) -> str:
        option = as_options(name, value)
        if option.split()[0] in flags:
            return option
        return kit_spelling(name, value) if in_kit else f"`dpmpc train {option}`, which makes the plan"

    return say


@contextmanager
def _saying(say: Spelling) -> Iterator[None]:
    """Errors that are raised inside name settings so."""
    try:
        yield
    except DpmpcError as error:
        raise reworded(error, lambda text: spelt(text, say)) from None
