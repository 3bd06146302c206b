"""`dpmpc budget`: what the ledgers below a directory have spent, and what a budget has left."""

import json
import math
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from dpmpc.errors import DpmpcError, UsageError
from dpmpc.privacy.checks import check_delta
from dpmpc.privacy.composition import parse_budget, releases_left, spending_of, spent, total, within
from dpmpc.privacy.ledger import Ledger, merge


@click.command()
@click.argument("directory", type=click.Path(path_type=Path))
@click.option("--data", help="only the data set whose digest starts so.")
@click.option("--delta", type=float, help="state epsilon at this delta  [default: the largest that a run promised]")
@click.option("--budget", "limit", metavar="EPS,DELTA", help="compare with this budget; exit code 1 if it is exceeded.")
@click.option("--json", "as_json", is_flag=True, help="print JSON.")
def command(directory: Path, data: str | None, delta: float | None, limit: str | None, as_json: bool) -> None:
    """What was spent on each data set, over every ledger*.jsonl in DIRECTORY and below.

    Copies of one release in several parties' ledgers (ledger_0.jsonl, ledger_1.jsonl, ...) count once; lines in two
    ledgers of the same party count twice, for a plan may have been run twice. A line counts as spent whether or not
    its opening came to pass.
    """
    budget = None if limit is None else parse_budget(limit)
    paths = sorted(directory.rglob("ledger*.jsonl")) if directory.is_dir() else [directory]
    if not paths:
        raise UsageError(f"a ledger is a file ledger*.jsonl; {directory} holds none; name a run's directory")
    if delta is not None:
        check_delta(delta)
    elif budget is not None and budget[1] > 0:
        delta = budget[1]
    books = [Ledger.read(path) for path in paths]
    entries = merge(books)
    digests = sorted({digest for entry in entries for digest in entry.data if digest.startswith(data or "")})
    if data is not None and not digests:
        raise UsageError(f"--data must begin a digest in {directory}'s ledgers; got {data!r}; leave it out to see all")
    unknown = sum(book.unknown for book in books)
    rows = []
    for digest in digests:
        sums = spent(entries, digest, 0.0 if budget is not None and budget[1] == 0 else delta)
        mine = [entry for entry in entries if digest in entry.data]
        row: dict[str, object] = {
            "data": digest,
            "runs": sums.runs,
            "releases": sums.releases,
            "epsilon": sums.epsilon if math.isfinite(sums.epsilon) else None,
            "delta": sums.delta,
        }
        if budget is not None:
            last = mine[-1].mechanism
            row["within_budget"] = within(total(mine), budget)
            row["releases_left"] = releases_left(total(mine) + spending_of(last, unknown), last, budget)
        rows.append(row)
    result = {
        "ledgers": [str(path) for path in paths],
        "torn": sum(book.torn for book in books),
        "unknown": unknown,
        "budget": budget,
        "data": rows,
    }
    if as_json:
        click.echo(json.dumps(result, indent=2))
    else:
        _print(result, rows)
    exceeded = [str(row["data"]) for row in rows if row.get("within_budget") is False]
    if budget is not None and exceeded:
        raise DpmpcError(
            f"the budget is epsilon {budget[0]:g}, delta {budget[1]:g}; it is exceeded for data {', '.join(exceeded)}; "
            "plan no further run on it"
        )


def _print(result: dict[str, object], rows: list[dict[str, object]]) -> None:
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=150)
    table = Table(box=None, padding=(0, 2, 0, 0))
    columns = ["data", "runs", "releases", "epsilon", "delta"]
    if result["budget"] is not None:
        columns += ["within_budget", "releases_left"]
    for column in columns:
        table.add_column(column.replace("_", " "), justify="left" if column == "data" else "right")
    for row in rows:
        table.add_row(*(_cell(row[column]) for column in columns))
    console.print(table)
    if result["torn"]:
        console.print(f"{result['torn']} torn lines (a crash while writing) are counted as spent")
    if result["unknown"]:
        console.print(f"{result['unknown']} of them could not be priced: the ledger holds nothing else")


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "NO"
    if isinstance(value, float):
        return f"{value:.5g}"
    return "inf" if value is None else str(value)
