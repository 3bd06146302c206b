"""What was spent, as far as it is seen from here: the one reader of all that prints spending or holds a run against it.

Two places are looked at: an account, which remembers also the runs whose folders are gone, and the ledgers below a
folder, which may have come from other machines. A ledger that both know counts once, and so does every release in
several ledgers (`ledgers.merge`). Whoever prints it says at which delta and for whom (`UNITS`), and what could not be
seen (`Seen.unseen`).
"""

from collections.abc import Iterable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from dpmpc.lazy import cached_property, dataclass, regex
from dpmpc.privacy.account import Account, Known
from dpmpc.privacy.book import Book
from dpmpc.privacy.composition import OWNER, Spent, spent
from dpmpc.privacy.data_names import same_names
from dpmpc.privacy.entry import Entry
from dpmpc.privacy.ledgers import copies, ledgers_below, merge, parts, read_ledger, read_ledgers
from dpmpc.processes.locks import is_held

GONE = ("missing", "older")
UNITS = {
    "": "as planned",
    "record": "one record",
    "presence": "one record's presence",
    "person": "one person's records",
    OWNER: "one owner's records",
    "stated": "one stated unit",
}
_DIGEST = regex("[0-9a-f]{64}").fullmatch  # an account has a file of this name; a ledger may come from anybody
ELSEWHERE = (
    "what ran on other machines, for other users or with another account is not seen, but for the ledgers that are here"
)


def ledgers_of(root: Path | None, account: Account | None, data: Iterable[str]) -> tuple[list[Path], list[Known]]:
    """(every ledger that counts for these data sets, those that the account remembers and that are not there): below
    `root`, and in the account. Errors: as `Account.known`."""
    there = [] if root is None else ledgers_below(root)
    if account is None:
        return there, []
    found = {path.resolve() for path in there}
    gone: dict[str, Known] = {}
    moved: dict[str, Path] = {}
    for digest in data:
        known = account.known(digest)
        if any(each.state in GONE for each in known) and not moved:
            moved = {book.source: book.path for book in read_ledgers(Path(), files=there) if book.path}
            known = account.known(digest, moved)
        for each in known:
            if each.state not in ("there", "at work"):
                gone[each.book.source] = each
            elif each.path.resolve() not in found:
                found.add(each.path.resolve())
                there.append(each.path)
    return there, list(gone.values())


def seen(account: Account | None, below: Path | None = None, data: Iterable[str] | None = None) -> "Seen":
    """All spending on the data sets of these digests: by default on those that the ledgers below the folder are of, or
    without one on all that the account knows. Errors: LedgerError for a ledger or an account that was changed."""
    own = [] if below is None else [read_ledger(path) for path in ledgers_below(below)]
    if data is None:
        of_ledgers = {digest for book in own for entry in _all(book) for digest in entry.data if _DIGEST(digest)}
        data = sorted(of_ledgers) if below is not None else [] if account is None else account.data()
    paths, gone = ledgers_of(below, account, data)
    read = {book.path: book for book in own}
    known = [
        Known(path, "at work" if is_held(path) else "there", read.get(path) or read_ledger(path)) for path in paths
    ]
    return Seen((*known, *gone), account, below)


def _all(book: Book) -> tuple[Entry, ...]:
    return (*book.entries, *book.reserved, *book.planned)


def _shown(path: Path, whole: bool) -> str:
    return str(path) if whole else f"“{path.name}”"


@dataclass(frozen=True)
class Seen:
    """The ledgers that were seen, and what of each counts; where they were looked for."""

    known: tuple[Known, ...]
    account: Account | None
    below: Path | None

    @property
    def books(self) -> list[Book]:
        """What counts, ledger by ledger."""
        return [each.book for each in self.known]

    @cached_property
    def everything(self) -> tuple[Entry, ...]:
        """Every release once, those that living writers have reserved among them."""
        return merge(self.books)

    @cached_property
    def made(self) -> tuple[Entry, ...]:
        """Every release once, without what living writers have reserved; what was reserved in a ledger that is gone
        counts as spent."""
        return merge(book if book.path is None else book.unreserved for book in self.books)

    @property
    def names(self) -> dict[str, str]:
        """digest -> what the data set is called, as far as lines say it."""
        return {digest: name for e in self.everything for digest, name in zip(e.data, e.names, strict=False)}

    def spent(self, data: str, delta: float | None = None, neighbours: str = "") -> Spent:
        """What was spent on one data set, as of `composition.spent`."""
        return spent(self.made, data, delta, neighbours)

    def where(self, *, whole: bool = True) -> str:
        """Where this was seen, in words. `whole`: with whole paths, for this machine's own terminal."""
        found = [] if self.account is None else [f"the account in {_shown(self.account.folder, whole)}"]
        found += [] if self.below is None else [f"the ledgers below {_shown(self.below, whole)}"]
        return " and ".join(found) or "nothing"

    def facts(self) -> dict[str, Any]:
        """What of it is not plain, as JSON values: ledgers that are gone, copies, torn lines, parts of runs."""
        return {
            "ledgers": [str(each.path) for each in self.known],
            "gone": [{"ledger": str(each.path), "state": each.state} for each in self.known if each.state in GONE],
            "copies": copies(self.books),
            "torn": sum(book.torn for book in self.books),
            "unknown": sum(book.unknown for book in self.books),
            "parts": [asdict(part) for part in parts(self.books)],
            "spelled": same_names(name for entry in self.everything for name in entry.names),
        }

    def unseen(self, *, whole: bool = True) -> list[str]:
        """What could not be seen or is not as it was written, a sentence each; the last one is always true. `whole`: as
        of `where`."""
        facts, found = self.facts(), list[str]()
        for group in facts["spelled"]:
            found.append(f"{', '.join(map(repr, group))} count as one name: they differ in blanks, case or width alone")
        for group in facts["copies"]:
            paths = ", ".join(_shown(Path(path), whole) for path in group)
            found.append(f"{len(group)} ledgers are copies of one and count once: {paths}")
        for each in facts["gone"]:
            name = _shown(Path(each["ledger"]), whole)
            found.append(f"ledger {name} is {each['state']}: all that was reserved for it counts")
        for part in facts["parts"]:
            have = f"; the ledgers of parties {', '.join(map(str, part['parties']))} have them" * bool(part["parties"])
            found.append(
                f"run {part['run']} went on elsewhere: {part['lines']} releases have a line here, {part['counted']} of "
                f"{part['planned']} planned are counted, for others made the rest, or may{have}"
            )
        if facts["torn"]:
            found.append(f"{facts['torn']} torn lines (a crash while writing) are counted as spent")
        if facts["unknown"]:
            found.append(f"{facts['unknown']} of them could not be priced: the ledger holds nothing else")
        if self.account is None:
            found.append("no account was looked at")
        return [*found, ELSEWHERE]

    def of(self, data: str) -> "Seen":
        """The same with the ledgers alone that have a line on this data set."""
        kept = []
        for each in self.known:
            book = each.book
            at = [k for k, entry in enumerate(book.entries) if data in entry.data]
            if at:
                entries, keys = tuple(book.entries[k] for k in at), tuple(book.keys[k] for k in at)
                kept.append(replace(each, book=replace(book, entries=entries, keys=keys)))
        return replace(self, known=tuple(kept))
