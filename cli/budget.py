"""`dpmpc budget`: what the ledgers below a directory have spent, or those that an account remembers, and what a budget
has left."""

import json
import math
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click

from dpmpc.errors import DpmpcError, UsageError
from dpmpc.folders import said_path
from dpmpc.privacy.account import Account, Known, account_folder
from dpmpc.privacy.book import Book
from dpmpc.privacy.checks import check_delta
from dpmpc.privacy.composition import OWNER, Spent, parse_budget, releases_left, run_of, spent, total, within
from dpmpc.privacy.entry import Entry
from dpmpc.privacy.ledgers import attempts, copies, ledgers_below, merge, parts, read_ledger
from dpmpc.show.terminal import Column, Row, Terminal

GONE = ("missing", "older")
UNITS = {
    "": "as planned",
    "record": "one record",
    "presence": "one record's presence",
    "person": "one person's records",
    OWNER: "one owner's records",
    "stated": "one stated unit",
}


@click.command()
@click.argument("directory", type=click.Path(path_type=Path), required=False)
@click.option("--account", metavar="DIR", help="Without a directory: folder of the account.  [default: $DPMPC_ACCOUNT]")
@click.option("--data", help="only the data set of this name, or whose digest starts so.")
@click.option("--delta", type=float, help="state epsilon at this delta  [default: the largest that a run promised]")
@click.option("--budget", "limit", metavar="EPS,DELTA", help="compare with this budget; exit code 1 if it is exceeded.")
@click.option("--json", "as_json", is_flag=True, help="print JSON.")
def command(
    directory: Path | None, account: str | None, data: str | None, delta: float | None, limit: str | None, as_json: bool
) -> None:
    """What was spent on each data set: over every ledger*.jsonl in DIRECTORY and below, or without one over all that
    this user's account remembers, also of runs whose folders are gone.

    The ledgers of all processes of one attempt, parties and owners, count once, and so do copies of a ledger; two
    attempts at one plan count twice, whoever's ledgers are there. Ledgers of earlier versions do not name attempts:
    equal lines of different parties count once, and those of two ledgers of one party twice. A line counts as spent
    whether or not its opening came to pass; of a run that went on without a party, that party's ledger counts all that
    was planned. Every data set is priced for each kind of neighbours
    that a run on it promised: one record, or all of one owner's. What runs that are under way have reserved is said
    apart, and counts against --budget.
    """
    budget = None if limit is None else parse_budget(limit)
    known = _remembered(account) if directory is None else _below(directory, account)
    books = [each.book for each in known]
    if delta is not None:
        check_delta(delta)
    elif budget is not None and budget[1] > 0:
        delta = budget[1]
    everything, entries = merge(books), merge(_without_reserved(books))
    names = {digest: name for e in everything for digest, name in zip(e.data, e.names, strict=False)}
    digests = sorted(
        {d for e in everything for d in e.data if data is None or names.get(d) == data or d.startswith(data)},
        key=lambda d: (names.get(d, ""), d),
    )
    if data is not None and not digests:
        raise UsageError(
            f"--data is a name in these ledgers, or begins a digest; got {data!r}; leave it out to see all"
        )
    unknown = sum(book.unknown for book in books)
    rows: list[dict[str, Any]] = []
    for digest in digests:
        mine = [entry for entry in entries if digest in entry.data]
        all_of_it = [entry for entry in everything if digest in entry.data]
        for neighbours in sorted({entry.neighbours for entry in all_of_it}):
            sums = spent(mine, digest, 0.0 if budget is not None and budget[1] == 0 else delta, neighbours)
            row = _row(sums, digest, names.get(digest), neighbours)
            row |= {"attempts": _attempts(_of(books, digest)), "reserved": len(all_of_it) - len(mine)}
            if budget is not None:
                counted = total(all_of_it, neighbours)
                row["within_budget"] = within(counted, budget)
                row["releases_left"] = releases_left(counted.add(all_of_it[-1], unknown), all_of_it[-1], budget)
            rows.append(row)
    result = {
        "ledgers": [str(each.path) for each in known],
        "gone": [{"ledger": str(each.path), "state": each.state} for each in known if each.state in GONE],
        "copies": copies(books),
        "torn": sum(book.torn for book in books),
        "unknown": unknown,
        "budget": budget,
        "data": rows,
        "runs": _runs(books, everything),
        "parts": [asdict(part) for part in parts(books)],
    }
    if as_json:
        click.echo(json.dumps(result, indent=2))
    else:
        _print(result, rows)
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


def _below(directory: Path, account: str | None) -> list[Known]:
    if account is not None:
        raise UsageError("ledgers are those below a directory, or an account's; both were named; leave one of them out")
    if directory.is_file() and directory.suffix != ".jsonl":
        raise UsageError(f"a ledger is a file ledger*.jsonl; {directory} is another; name a run's directory")
    paths = ledgers_below(directory)
    if not paths:
        raise UsageError(f"a ledger is a file ledger*.jsonl; {directory} holds none; name a run's directory")
    return [Known(path, "there", read_ledger(path)) for path in paths]


def _remembered(account: str | None) -> list[Known]:
    """Every ledger that the account knows, once. Errors: it knows none."""
    folder = account_folder() if account is None else said_path(account, "account")
    own, found = Account(folder), dict[str, Known]()
    for digest in own.data():
        for each in own.known(digest):
            found.setdefault(each.book.source, each)
    if not found:
        raise UsageError(
            f"an account remembers what runs on named data have spent; {folder} has nothing; name a run's directory or "
            "another <<account>>"
        )
    return list(found.values())


def _without_reserved(books: Sequence[Book]) -> list[Book]:
    """Without what living writers have reserved; what was reserved in a ledger that is gone counts as spent."""
    return [book if book.path is None else book.unreserved for book in books]


def _of(books: Sequence[Book], digest: str) -> list[Book]:
    """The ledgers with their lines on one data set."""
    found = []
    for book in books:
        kept = [k for k, entry in enumerate(book.entries) if digest in entry.data]
        if kept:
            entries = tuple(book.entries[k] for k in kept)
            found.append(replace(book, entries=entries, keys=tuple(book.keys[k] for k in kept)))
    return found


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


def _print(result: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    terminal = Terminal(sys.stdout, width=170)
    columns = ["data", "neighbours", "runs", "attempts", "releases", "reserved", "epsilon", "delta"]
    if result["budget"] is not None:
        columns += ["within_budget", "releases_left"]
    shown = [{**row, "data": row["name"] or row["data"], "neighbours": UNITS[row["neighbours"] or ""]} for row in rows]
    terminal.table(
        [Column(name.replace("_", " "), right=name not in ("data", "neighbours")) for name in columns],
        [Row([_cell(row[name]) for name in columns]) for row in shown],
    )
    for group in result["copies"]:
        terminal.text(f"{len(group)} ledgers are copies of one and count once: {', '.join(group)}")
    for each in result["gone"]:
        terminal.text(f"ledger {each['ledger']} is {each['state']}: all that was reserved for it counts")
    for part in result["parts"]:
        have = f"; the ledgers of parties {', '.join(map(str, part['parties']))} have them" if part["parties"] else ""
        terminal.text(
            f"run {part['run']} went on elsewhere: {part['lines']} releases have a line here, "
            f"{part['counted']} of {part['planned']} planned are counted, for others made the rest, or may{have}"
        )
    if result["torn"]:
        terminal.text(f"{result['torn']} torn lines (a crash while writing) are counted as spent")
    if result["unknown"]:
        terminal.text(f"{result['unknown']} of them could not be priced: the ledger holds nothing else")


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "NO"
    if isinstance(value, float):
        return f"{value:.5g}"
    return "inf" if value is None else str(value)
