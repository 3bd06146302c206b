"""`dpmpc describe`: a look at one's own records."""

import html
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpmpc.cli.sources import memory_of, source_of, source_options
from dpmpc.errors import UsageError

if TYPE_CHECKING:
    from dpmpc.data.describe import Described

_EYES = "for the eyes of the records' owner alone: nothing below is protected"
_SPARKS = " ▁▂▃▄▅▆▇█"


@click.command("describe")
@click.argument("source", required=False)
@source_options
@click.option("--target", metavar="COLUMN", help="The column to predict: its classes are counted.")
@click.option("--drop", metavar="COLUMN", multiple=True, help="A column to leave out of --schema; may be repeated.")
@click.option(
    "--schema", "schema_out", type=click.Path(path_type=Path), help="Write a first schema to edit here (JSON)."
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
    target: str | None,
    drop: tuple[str, ...],
    schema_out: Path | None,
    html_out: Path | None,
    editor_schema: bool,
) -> None:
    """Describe the records in SOURCE (a file, folder or pattern; or as the options say), for their owner's own eyes.

    Columns, kinds, missing and distinct values, extremes, histograms, columns that are nearly constant or unique.
    --schema drafts a schema from them: ranges and lists that come from one's own data are not public, so what it
    writes says bounds "data" until you replace them.

    \b
    Examples:
      dpmpc describe hospital.parquet --target outcome
      dpmpc describe --csv hospital.csv --target outcome --schema schema.json --html hospital.html
    """
    if editor_schema:
        from dpmpc.data.schema import editor_schema as for_editors

        click.echo(json.dumps(for_editors(), indent=2))
        return
    from dpmpc.data.describe import NOT_PUBLIC, balance, describe, draft
    from dpmpc.data.loading import opened

    if source is not None and records is not None:
        raise UsageError("one source of records is needed; got SOURCE and --records; leave one out")
    with opened(source_of(csv, source or records, database, sql), memory=memory_of(memory)) as (table, _):
        columns = describe(table)
        name = table.source
    classes = balance(columns, target) if target is not None else {}
    _show(name, columns, classes, target)
    if html_out is not None:
        _write(html_out, page(name, columns, classes, target))
    if schema_out is not None:
        _write(schema_out, json.dumps(draft(columns, target, drop).to_json(), indent=2) + "\n")
        click.echo(f'{schema_out}: a first schema, bounds "data"; {NOT_PUBLIC}', err=True)


def _show(name: str, columns: "list[Described]", classes: Any, target: str | None) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table as Grid
    from rich.text import Text

    console = Console(highlight=False)
    console.print(
        Text(f"{name}: {columns[0].rows} records, {len(columns)} columns; {_EYES}", style="bold"), soft_wrap=True
    )
    grid = Grid(box=box.SIMPLE, pad_edge=False)
    grid.add_column("column", overflow="ellipsis", max_width=24, no_wrap=True)
    grid.add_column("kind", no_wrap=True)
    grid.add_column("missing", justify="right", no_wrap=True)
    grid.add_column("distinct", justify="right", no_wrap=True)
    grid.add_column("from", overflow="ellipsis", max_width=12, no_wrap=True)
    grid.add_column("to", overflow="ellipsis", max_width=12, no_wrap=True)
    grid.add_column("values", no_wrap=True, overflow="crop")
    for c in columns:
        cells = (c.name, c.kind, str(c.missing), str(c.distinct), _said(c.least), _said(c.greatest), _spark(c))
        grid.add_row(*(Text(part) for part in cells))
    console.print(grid)
    for c in columns:
        for note in c.notes:
            console.print(Text(f"{c.name}: {note}", style="yellow"), soft_wrap=True)
    if classes:
        total = sum(classes.values())
        text = ", ".join(f"{value} {count} ({count / total:.1%})" for value, count in classes.items())
        console.print(Text(f"{target}: {text}"))


def _said(value: Any) -> str:
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _spark(column: "Described") -> str:
    counts = [count for _, count in column.bars]
    most = max(counts, default=0)
    return "".join(_SPARKS[0 if not count else 1 + 7 * count // most] for count in counts) if most else ""


def page(name: str, columns: "list[Described]", classes: Any, target: str | None) -> str:
    """The description as one web page that needs nothing else."""
    parts = [
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>",
        f"<title>{html.escape(name)}</title><style>",
        "body{font:14px system-ui,sans-serif;margin:2em auto;max-width:72em;color:#222}table{border-collapse:collapse}",
        "td,th{padding:.3em .8em;text-align:left;border-bottom:1px solid #ddd;vertical-align:middle}",
        ".n{text-align:right}.note{color:#a40}.warn{background:#fff3cd;padding:.6em 1em}rect{fill:#3b6ea5}",
        "</style></head><body>",
        f"<h1>{html.escape(name)}</h1><p class='warn'>{columns[0].rows} records, {len(columns)} columns; {_EYES}.</p>",
    ]
    if classes:
        rows = "".join(f"<tr><td>{html.escape(str(v))}</td><td class='n'>{k}</td></tr>" for v, k in classes.items())
        parts.append(f"<h2>{html.escape(str(target))}</h2><table>{rows}</table>")
    parts.append(
        "<h2>Columns</h2><table><tr><th>column<th>kind<th>missing<th>distinct<th>from<th>to<th>values<th>notes</tr>"
    )
    for c in columns:
        parts.append(
            f"<tr><td>{html.escape(c.name)}<td>{c.kind}<td class='n'>{c.missing}<td class='n'>{c.distinct}"
            f"<td>{html.escape(_said(c.least))}<td>{html.escape(_said(c.greatest))}<td>{_bars(c)}"
            f"<td class='note'>{html.escape('; '.join(c.notes))}</tr>"
        )
    return "\n".join([*parts, "</table></body></html>\n"])


def _bars(column: "Described") -> str:
    most = max((count for _, count in column.bars), default=0)
    if not most:
        return ""
    step = 240 / len(column.bars)
    bars = "".join(
        f"<rect x='{k * step:.1f}' y='{48 - 48 * count / most:.1f}' width='{step - 1:.1f}'"
        f" height='{48 * count / most:.1f}'>"
        f"<title>{html.escape(label)}: {count}</title></rect>"
        for k, (label, count) in enumerate(column.bars)
    )
    return f"<svg width='240' height='48' role='img' aria-label='{html.escape(column.name)}'>{bars}</svg>"


def _write(path: Path, text: str) -> None:
    """Writes a file that its owner alone may read. Errors: it cannot be written."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise UsageError(f"an output file must be writable; {path}: {error.strerror}; name another") from None
