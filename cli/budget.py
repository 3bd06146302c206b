"""`dpmpc budget`: what was spent on each data set, as the account and the ledgers below a directory have it, and what a
budget has left."""

import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from dpmpc.cli.everywhere import give
from dpmpc.errors import DpmpcError, UsageError
from dpmpc.folders import said_path
from dpmpc.privacy.account import Account, account_folder
from dpmpc.privacy.book import Book
from dpmpc.privacy.checks import check_delta
from dpmpc.privacy.composition import Spent, parse_budget, releases_left, run_of, total, within
from dpmpc.privacy.data_names import data_digest
from dpmpc.privacy.entry import Entry
from dpmpc.privacy.ledgers import attempts, ledgers_below
from dpmpc.privacy.seen import UNITS, Seen, seen
from dpmpc.show.terminal import Terminal, TextColumn, TextRow


@click.command()
@click.argument("directory", type=click.Path(path_type=Path), required=False)
@click.option("--account", metavar="DIR", help="Folder of the account.  [default: $DPMPC_ACCOUNT]")
@click.option("--data", help="only the data set of this name, or whose digest starts so.")
@click.option("--delta", type=float, help="state epsilon at this delta  [default: the largest that a run promised]")
@click.option("--budget", "limit", metavar="EPS,DELTA", help="compare with this budget; exit code 1 if it is exceeded.")
def command(
    directory: Path | None, account: str | None, data: str | None, delta: float | None, limit: str | None
) -> None:
    """What was spent on each data set that the account knows, also by runs whose folders are gone; with DIRECTORY, on
    each that a ledger*.jsonl there or below is of, by the account and by those ledgers together.

    The ledgers of all processes of one attempt, parties and owners, count once, and so do copies of a ledger; two
    attempts at one plan count twice, whoever's ledgers are there. Ledgers of earlier versions do not name attempts:
    equal lines of different parties count once, and those of two ledgers of one party twice. A line counts as spent
    whether or not its opening came to pass; of a run that went on without a party, that party's ledger counts all that
    was planned. Every data set is priced for each kind of neighbours
    that a run on it promised: one record, or all of one owner's. What runs that are under way have reserved is said
    apart, and counts against --budget, which is compared at its own delta. Names that differ in blanks, case or width
    alone are one.

    Example: dpmpc budget demo
    """
    budget = None if limit is None else parse_budget(limit)
    if delta is not None:
        check_delta(delta)
        if budget is not None and budget[1] != delta:
            raise UsageError(
                f"a budget is compared at its own delta; it is {budget[1]:g}, and --delta {delta:g} was given too; "
                "leave --delta out"
            )
    found = _found(directory, account)
    books, everything, names = found.books, found.everything, found.names
    digests = sorted(
        {
            d
            for e in everything
            for d in e.data
            if data is None or names.get(d) == data or d in (data, data_digest(data)) or d.startswith(data)
        },
        key=lambda d: (names.get(d, ""), d),
    )
    if data is not None and not digests:
        raise UsageError(
            f"--data is a name in these ledgers, or begins a digest; got {data!r}; leave it out to see all"
        )
    unknown = sum(book.unknown for book in books)
    rows: list[dict[str, Any]] = []
    for digest in digests:
        made = [entry for entry in found.made if digest in entry.data]
        all_of_it = [entry for entry in everything if digest in entry.data]
        for neighbours in sorted({entry.neighbours for entry in all_of_it}):
            sums = found.spent(digest, delta if budget is None else budget[1], neighbours)
            row = _row(sums, digest, names.get(digest), neighbours)
            row |= {"attempts": _attempts(found.of(digest).books), "reserved": len(all_of_it) - len(made)}
            if budget is not None:
                counted = total(all_of_it, neighbours)
                row["within_budget"] = within(counted, budget)
                row["releases_left"] = releases_left(counted.add(all_of_it[-1], unknown), all_of_it[-1], budget)
            rows.append(row)
    result = {
        "account": None if found.account is None else str(found.account.folder),
        "below": None if found.below is None else str(found.below),
        **found.facts(),
        "budget": budget,
        "data": rows,
        "runs": _runs(books, everything),
        "unseen": found.unseen(),
    }
    give(result)
    _print(found, budget, rows)
    exceeded = sorted({str(row["name"] or row["data"]) for row in rows if row.get("within_budget") is False})
    if budget is not None and exceeded:
        raise DpmpcError(
            f"the budget is epsilon {budget[0]:g}, delta {budget[1]:g}; it is exceeded for data {', '.join(exceeded)}; "
            "plan no further run on it"
        )


def _row(sums: Spent, digest: str, name: str | None, neighbours: str) -> dict[str, Any]:
    """What was spent on a data set, by one kind of neighbours."""
    return {
        "data": digest,
        "name": name,
        "neighbours": neighbours or None,
        "runs": sums.runs,
        "attempts": 0,
        "releases": sums.releases,
        "reserved": 0,
        "epsilon": sums.epsilon if math.isfinite(sums.epsilon) else None,
        "delta": sums.delta,
    }


def _found(directory: Path | None, account: str | None) -> Seen:
    """What is seen. Errors: there is no ledger below the directory; without one, the account knows nothing."""
    folder = account_folder() if account is None else said_path(account, "account")
    if directory is None:
        found = seen(Account(folder))
        if not found.known:
            raise UsageError(
                f"an account remembers what runs on named data have spent; {folder} has nothing; name a run's directory"
                " or another <<account>>"
            )
        return found
    if directory.is_file() and directory.suffix != ".jsonl":
        raise UsageError(f"a ledger is a file ledger*.jsonl; {directory} is another; name a run's directory")
    if not ledgers_below(directory):
        raise UsageError(f"a ledger is a file ledger*.jsonl; {directory} holds none; name a run's directory")
    return seen(Account(folder), directory)


def _attempts(books: Sequence[Book]) -> int:
    """How often all runs were tried; what a run surveys or evaluates is not tried apart."""
    most: dict[str, int] = {}
    for name, count in attempts(books).items():
        most[run_of(name)] = max(count, most.get(run_of(name), 0))
    return sum(most.values())


def _runs(books: Sequence[Book], entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """One row a run: on what, how many attempts, the releases of each attempt number."""
    counts = attempts(books)
    rows: dict[str, dict[str, Any]] = {}
    for entry in entries:
        row = rows.setdefault(
            entry.run,
            {
                "run": entry.run,
                "data": list(entry.names or entry.data),
                "neighbours": entry.neighbours or None,
                "attempts": counts[entry.run],
                "releases": 0,
            },
        )
        row["releases"] += 1
    return list(rows.values())


def _print(found: Seen, budget: tuple[float, float] | None, rows: list[dict[str, Any]]) -> None:
    terminal = Terminal(sys.stdout, width=170)
    columns = ["data", "neighbours", "runs", "attempts", "releases", "reserved", "epsilon", "delta"]
    if budget is not None:
        columns += ["within_budget", "releases_left"]
    shown = [{**row, "data": row["name"] or row["data"], "neighbours": UNITS[row["neighbours"] or ""]} for row in rows]
    terminal.table(
        [TextColumn(name.replace("_", " "), right=name not in ("data", "neighbours")) for name in columns],
        [TextRow([_cell(row[name]) for name in columns]) for row in shown],
    )
    if budget is None:
        terminal.text("epsilon is that of all runs together at the delta beside it, for the neighbours beside it")
    else:
        terminal.text(
            f"compared with epsilon {budget[0]:g} at delta {budget[1]:g}, the budget's own: epsilon is stated there, "
            "for the neighbours beside it"
        )
    terminal.text(f"seen: {found.where()}")
    for text in found.unseen():
        terminal.text(text)


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "NO"
    if isinstance(value, float):
        return f"{value:.5g}"
    return "inf" if value is None else str(value)
