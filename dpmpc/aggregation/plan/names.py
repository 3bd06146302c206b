"""The names that a consortium gives its sites, beside the numbers by which its processes know each other."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from dpmpc.errors import DpmpcError, UsageError
from dpmpc.lazy import dataclass
from dpmpc.processes.logs import Log
from dpmpc.processes.status import Emit, Status

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")
_MEANT = re.compile(
    r"(?<![(\w])(?:(parties|owners|sites) (\d{1,6}(?:, \d{1,6})*)|"  # not what is named already
    r"(party|owner|site) (\d{1,6}(?:, \d{1,6}(?=[,;:.)]|$| and | are | have ))*))(?![\w.]\w|\d|\.\.)"
)


@dataclass(frozen=True)
class Names:
    """Names of parties and of owners, by number. Public."""

    parties: tuple[str, ...]
    owners: tuple[str, ...]

    def __post_init__(self) -> None:
        for names in (self.parties, self.owners):
            for name in names:
                check_name(name)
            if twice := [name for name in names if names.count(name) > 1]:
                raise UsageError(f"every site has a name of its own; '{twice[0]}' is there twice; rename one")

    def beside(self, text: str) -> str:
        """The text with the name of every process in it: `party 2` is `charite (party 2)`. Numbers that no process has
        stay, and what is named already."""
        return _MEANT.sub(self._named, text)

    def _named(self, found: re.Match[str]) -> str:
        kind = {"p": "party", "o": "owner", "s": "site"}[(found[1] or found[3])[0]]
        names = self.owners if kind == "owner" else self.parties
        numbers = [int(number) for number in (found[2] or found[4]).split(", ")]
        if any(number >= len(names) for number in numbers):
            return found[0]
        return ", ".join(f"{names[number]} ({kind} {number})" for number in numbers)


def check_name(name: str) -> None:
    """Errors: UsageError for a name that no site may have."""
    if not NAME.fullmatch(name):
        raise UsageError(
            f"a site's name has up to 40 letters, digits, - and _; got {name!r}; it is a folder's name, choose such"
        )


def named_lines(log: Callable[[str], None], called: Callable[[str], str]) -> Callable[[str], None]:
    """The same `log`, whose lines name the processes."""
    return lambda text: log(called(text))


def noted(status: Status, log: Log, emit: Emit, called: Callable[[str], str]) -> tuple[Log, Emit]:
    """The same `log` and `emit`, whose texts name the processes and are noted in the status."""

    def line(text: str) -> None:
        text = called(text)
        status.says(text)
        log(text)

    def say(event: str, **fields: Any) -> None:
        if (text := fields.get("text")) is not None:
            fields["text"] = called(text)
        if status.notes(event, **fields):
            emit(event, **fields)

    return line, say


@contextmanager
def named_errors(called: Callable[[str], str]) -> Iterator[None]:
    """Errors that are raised inside name the processes; `called` is told their messages."""
    try:
        yield
    except DpmpcError as error:
        error.reword(called)
        raise
