"""Errors that a user can act on. Each message says the rule, then the value, then the way out; never a secret.

A message names settings, not how one surface spells them: <<parties>> or <<parties=5>>. `str` spells them as Python's
keywords; a surface that prints an error passes its own spelling to `spelt`.

A bug in dpmpc is an AssertionError or any other exception; these are the ones that are not bugs.
"""

import errno
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_NAMED = re.compile(r"<<([a-z_]+)(?:=(.*?))?>>(?!>)")
_SEVERAL = re.compile(rf"{_NAMED.pattern}(?: / {_NAMED.pattern})*")  # any of them would do
Spelling = Callable[[str, str | None], str]  # a setting's name, and a value to give it -> how a surface writes that


def python_spelling(name: str, value: str | None) -> str:
    """`parties`, or `parties=5`."""
    return name if value is None else f"{name}={value}"


def spelt(text: str, spelling: Spelling = python_spelling) -> str:
    """The text with its settings as a surface writes them. Several that one place says are said once."""

    def said(found: re.Match[str]) -> str:
        return " / ".join(dict.fromkeys(spelling(each[1], each[2]) for each in _NAMED.finditer(found[0])))

    return _SEVERAL.sub(said, text)


def number_of(n: int, one: str, more: str = "") -> str:
    """How many, in words that agree: 1 record, 2 records. `more`: what it is of several, where no s makes it that."""
    return f"{n} {one if n == 1 else more or one + 's'}"


class DpmpcError(Exception):
    """Something could not be done. The command line prints the message in one line and exits with `exit_code`."""

    exit_code = 1

    def __str__(self) -> str:
        return self.spelt(python_spelling)

    def spelt(self, spelling: Spelling) -> str:
        """The message with its settings as a surface writes them."""
        return spelt(super().__str__(), spelling)

    @property
    def message(self) -> str:
        """As it was raised, with settings marked."""
        return super().__str__()


class UsageError(DpmpcError):
    """The caller asked for something that cannot be (a bad value, a missing file or column)."""

    exit_code = 2


class SpentError(UsageError):
    """A run whose releases are spent and were not opened, so that it cannot go on. Every process may know that."""


class RecordError(UsageError):
    """Records that cannot be used, in words that may quote them: for the eyes of their owner alone.

    `public` says the same without a value, a row or a count of records; nothing else of this error may leave the
    owner's screen: what is sent, published, logged or shown as status is `public_text` of an error.
    """

    def __init__(self, private: str, public: str = "") -> None:
        super().__init__(private)
        self.public = public or "the records of an owner do not fit; its own screen says why"


def public_text(error: BaseException) -> str:
    """What may be said of an error to anybody: its message, or the public half of one that may quote records."""
    return spelt(public_message(error))


def public_message(error: BaseException) -> str:
    """The same with its settings marked, for whoever spells them later."""
    if isinstance(error, RecordError):
        return error.public
    return error.message if isinstance(error, DpmpcError) else str(error)


class NotYetError(DpmpcError):
    """What this process needs of its own machine is not there yet, and was waited for: a port that another process
    has, a name that does not resolve, an address that is not on the machine, a clock that is not in step. The same
    command may succeed later."""

    exit_code = 6


class PeerError(DpmpcError):
    """Another process of the run died, never came, or spoke another protocol."""

    exit_code = 3


class CheatError(PeerError):
    """A check of what the parties do has failed: one of them cheats, or computes wrongly. The run is over for good."""

    exit_code = 4


class OwnerError(PeerError):
    """An owner has failed the parties' checks, in a run that ends then. Nothing of the release was spent."""

    exit_code = 5


def machine_text(error: OSError | MemoryError) -> str | None:
    """One line on what the machine refused: no room, no right to write, no memory. None where it was something else.
    It names a file of this machine, and no record."""
    if isinstance(error, MemoryError):
        return "records and noise need memory; this machine has none left; read fewer records with <<max_rows>>"
    place = f" for {error.filename}" if error.filename else ""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"files need room on the disk; none is left{place}; free some, or name another folder"
    if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
        return f"files need a folder that can be written; {error.strerror}{place}; change its rights, or name another"
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return f"a run needs open files and connections; {error.strerror}; raise the limit with `ulimit -n 4096`"
    if error.errno in (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP):
        return (
            f"accounts, ledgers and runs are locked while they are in use; {error.strerror}{place}: this file system "
            "has no locks; name a folder on another with <<out>> and <<account>>"
        )
    if error.errno is not None:
        return f"this machine must do what is asked of it; {error.strerror}{place}; mend that and try again"
    return None


@contextmanager
def as_written(what: str, way: str) -> Iterator[None]:
    """A file that dpmpc wrote, and nobody has changed: where it turns out inside that it is another, that is one line.
    Errors: UsageError, whose cause is where it turned out."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        said = " ".join(f"{type(error).__name__}: {error}".split())
        raise UsageError(f"{what} must be as dpmpc wrote it; it is not: {said[:200]}; {way}") from error


def error_of(message: str, exit_code: int, public: str | None = None) -> DpmpcError:
    """The error that another process reported by its message and exit code; `public`: what may be said of it to
    anybody, where its message may quote records."""
    if public is not None:
        return RecordError(message, public)
    for kind in (UsageError, NotYetError, PeerError, CheatError, OwnerError):
        if kind.exit_code == exit_code:
            return kind(message)
    error = DpmpcError(message)
    error.exit_code = exit_code
    return error


def reworded(error: DpmpcError, say: Callable[[str], str]) -> DpmpcError:
    """The same error in the words that `say` makes of its message, and of what is public of it."""
    public = say(error.public) if isinstance(error, RecordError) else None
    return error_of(say(error.message), error.exit_code, public)
