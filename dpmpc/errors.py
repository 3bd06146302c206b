"""Errors that a user can act on. Each message says the rule, then the value, then the way out; never a secret.

A message names settings, not how one surface spells them: <<parties>> or <<parties=5>>. `str` spells them as Python's
keywords; a surface that prints an error passes its own spelling to `spelt`.

Beside its sentence an error has a `code`, the rule that was broken, and the `setting` that it is about: these stay when
a sentence is worded anew. CODES lists them.

A bug in dpmpc is an AssertionError or any other exception; these are the ones that are not bugs.
"""

import errno
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from pathlib import PurePath
from typing import Any, TypeVar

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


def any_of(threshold: int) -> str:
    """How many parties may do as they like, in words."""
    return "any one" if threshold == 1 else f"any {threshold}"


def some(names: Sequence[str], most: int = 12) -> str:
    """The first of the names, in words; one with a comma in it is quoted where it does not begin with a quote."""
    shown = (f"'{name}'" if "," in name and name[0] not in "'\"" else name for name in names[:most])
    return ", ".join(shown) + (", ..." if len(names) > most else "")


CODES = {  # what an error's `code` says was broken
    "failed": "something could not be done",
    "usage": "what was asked for cannot be",
    "choice": "a setting is one of several values",
    "type": "a setting is of one type",
    "range": "a number lies between two others",
    "unknown": "there is no setting, or name, of that name",
    "unique": "names and values that differ stand once each",
    "shape": "arrays have the size that is asked for",
    "enough": "there are records, owners or columns enough",
    "column": "columns are there, and are what they are used as",
    "plan": "a plan fits together, and all processes have the same",
    "over": "what is done once, or by one alone, is not done again or beside it",
    "keys": "keys and certificates belong to who shows them",
    "memory": "this machine has memory for what is asked",
    "together": "settings that go together, or not",
    "missing": "what a run needs was not said",
    "path": "a file or a folder can be read, or written",
    "file": "a file holds what it should",
    "addresses": "processes have addresses that others reach",
    "budget": "runs stay within what was to be spent",
    "limits": "a plan keeps what an organisation takes part in",
    "records": "records fit; only their owner is told how they do not",
    "spent": "a run whose releases are spent does not go on",
    "ledger": "a ledger has what was spent",
    "not-yet": "what a process needs of its machine is there, and may be later",
    "message": "messages have the form of this version",
    "worker": "workers of an executor bring the sums that they are asked for",
    "peer": "the other processes are there and keep the protocol",
    "cheat": "the checks of what parties do hold",
    "owner": "the checks of an owner's shares hold",
}


Sayable = str | int | float | date | PurePath | type | Sequence[str] | Sequence[int] | Sequence[float] | None
Said = TypeVar("Said", bound=Sayable)


def sayable(value: Said) -> Said:
    """The value, which anybody may read: the name of a column, a file, a type or a setting; what a schema or a user
    says; a number of settings; the size of what is public. Never what was read off a record. In modules that read
    records every error but a `RecordError` says nothing else, and a test holds that. Errors: TypeError for `Private`
    words, for what an array held and for an exception, whose text may quote a record."""
    if isinstance(value, Private | BaseException) or type(value).__module__ == "numpy":
        raise TypeError(f"an error that anybody reads says no {type(value).__name__}; raise a RecordError")
    return value


def _one_line(text: str) -> str:
    """The text with controls as escapes."""
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in text)


def _lines(text: str, below: str) -> str:
    return "\n".join(map(_one_line, (text, *(below.split("\n") if below else ()))))


class Private:
    """Words that may quote a record: for the eyes of its owner alone. They have no text: to format them, or `str` of
    them, is a TypeError; `to_owner` says them, for what only the owner sees."""

    __slots__ = ("_words",)

    def __init__(self, words: str) -> None:
        self._words = words

    def to_owner(self) -> str:
        """The words."""
        return self._words

    def __str__(self) -> str:
        raise TypeError("what may quote a record has no public text; its owner's screen has `to_owner()`")

    def __format__(self, spec: str) -> str:
        return str(self)

    def __repr__(self) -> str:
        return "Private(...)"


class DpmpcError(Exception):
    """Something could not be done. The command line prints the message in one line and exits with `exit_code`.

    Guarantees: controls are written as escapes, so a message is a line, but for those `below` it, and changes nothing
    on a screen, whatever a file calls its columns."""

    exit_code = 1
    code = "failed"

    def __init__(self, text: str = "", *, code: str = "", setting: str | None = None, below: str = "") -> None:
        """`text`: the rule; the value; the way out. `code`: one of CODES, by default that of the class; `setting`: what
        it is about, by default the first that the text names. `below`: lines that point at a place of what was given,
        or what a process said last."""
        super().__init__(_lines(text, below))
        if code:
            self.code = code
        self._setting = setting

    def __str__(self) -> str:
        return self.spelt(python_spelling)

    def spelt(self, spelling: Spelling) -> str:
        """The message with its settings as a surface writes them."""
        return spelt(super().__str__(), spelling)

    @property
    def message(self) -> str:
        """As it was raised, with settings marked."""
        return super().__str__()

    @property
    def to_owner(self) -> str:
        """The same for the owner of the records at hand, who may read more (`RecordError`)."""
        return self.message

    @property
    def setting(self) -> str | None:
        """The name of the setting that it is about; None for none. Public: of words that may quote a record, where a
        value could be marked as a setting is, nothing is read."""
        found = _NAMED.search(self.message)
        return self._setting or (found[1] if found else None)

    def __reduce__(self) -> Any:
        return _unpickled, (type(self), self.args, vars(self))

    def reword(self, say: Callable[[str], str]) -> None:
        """From now on it says what `say` makes of its messages; code and setting stay."""
        self._setting = self.setting
        text, _, below = say(self.message).partition("\n")
        self.args = (_lines(text, below), *self.args[1:])


def _unpickled(kind: type[DpmpcError], args: tuple[Any, ...], state: dict[str, Any]) -> DpmpcError:
    """The error as it was, whatever its class is made from."""
    error = kind.__new__(kind, *args)
    error.args = args
    vars(error).update(state)
    return error


class UsageError(DpmpcError):
    """The caller asked for something that cannot be (a bad value, a missing file or column)."""

    exit_code = 2
    code = "usage"


class NotInstalledError(UsageError, AttributeError):
    """A public name of a package of dpmpc, which needs a package that is not installed: an attribute that is not
    there."""


class SpentError(UsageError):
    """A run whose releases are spent and were not opened, so that it cannot go on. Every process may know that."""

    code = "spent"


class RecordError(UsageError):
    """Records that cannot be used. Its message says so without a value, a row or a count of records, to anybody: that
    is what `str` gives, what is sent, published, logged or shown as status. `private` says the same in words that may
    quote records: a note of the exception, which Python shows below it, and `to_owner` for a surface of their owner."""

    code = "records"

    def __init__(self, private: str, public: str = "", *, code: str = "", setting: str | None = None) -> None:
        super().__init__(
            public or "the records of an owner do not fit; its own screen says why", code=code, setting=setting
        )
        self._keep(private)

    def _keep(self, private: str) -> None:
        private = _one_line(private)
        self.private = Private(private)
        self.__notes__ = [spelt(private)]

    @property
    def to_owner(self) -> str:
        return self.private.to_owner()

    def reword(self, say: Callable[[str], str]) -> None:
        super().reword(say)
        self._keep(say(self.to_owner))


def owner_text(error: BaseException, spelling: Spelling = python_spelling) -> str:
    """What is said of an error to the owner of the records at hand, and to nobody else."""
    return spelt(error.to_owner, spelling) if isinstance(error, DpmpcError) else str(error)


def public_text(error: BaseException) -> str:
    """What may be said of an error to anybody: its message, without what may quote records."""
    return spelt(public_message(error))


def public_message(error: BaseException) -> str:
    """The same with its settings marked, for whoever spells them later."""
    return error.message if isinstance(error, DpmpcError) else str(error)


class NotYetError(DpmpcError):
    """What this process needs of its own machine is not there yet, and was waited for: a port that another process
    has, a name that does not resolve, an address that is not on the machine, a clock that is not in step. The same
    command may succeed later."""

    exit_code = 6
    code = "not-yet"

    def __init__(
        self, text: str = "", *, code: str = "", setting: str | None = None, below: str = "", lacks: str = ""
    ) -> None:
        """`lacks`: what is waited for, in a few words."""
        super().__init__(text, code=code, setting=setting, below=below)
        self.lacks = lacks


class PeerError(DpmpcError):
    """Another process of the run died, never came, or spoke another protocol."""

    exit_code = 3
    code = "peer"


class CheatError(PeerError):
    """A check of what the parties do has failed: one of them cheats, or computes wrongly. The run is over for good."""

    exit_code = 4
    code = "cheat"


class OwnerError(PeerError):
    """An owner has failed the parties' checks, in a run that ends then. Nothing of the release was spent."""

    exit_code = 5
    code = "owner"


def machine_text(error: BaseException) -> str | None:
    """One line on what the machine refused: no room, no right to write, no memory, no thread. None where it was
    something else. It names a file of this machine, and no record."""
    if isinstance(error, MemoryError):
        return "records and noise need memory; this machine has none left; read fewer records with <<max_rows>>"
    if isinstance(error, RuntimeError) and error.args == ("can't start new thread",):  # as Python says it, and no more
        return "a run needs threads and processes; this machine starts no more; raise the limit with `ulimit -u`"
    if not isinstance(error, OSError):
        return None
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
    if error.errno is not None and not isinstance(error, ConnectionError | TimeoutError):  # of those a stack is of use
        return f"this machine must do what is asked of it; {error.strerror}{place}; mend that and try again"
    match error.args:
        case ([(*_, why), *_],):  # of a folder that was copied: (from, to, why) of each file that was not
            return f"this machine must do what is asked of it; {_one_line(str(why))}; mend that and try again"
    return None


@contextmanager
def as_written(what: str, way: str) -> Iterator[None]:
    """A file that dpmpc wrote, and nobody has changed: where it turns out inside that it is another, that is one line.
    Errors: UsageError, whose cause is where it turned out."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        said = " ".join(f"{type(error).__name__}: {error}".split())
        raise UsageError(f"{what} must be as dpmpc wrote it; it is not: {said[:200]}; {way}", code="file") from error


_KINDS = {kind.code: kind for kind in (UsageError, SpentError, NotYetError, PeerError, CheatError, OwnerError)}


def to_event(error: DpmpcError) -> dict[str, Any]:
    """An error as JSON values, from a process to who started it: all that `error_of` needs. What may quote a record is
    in `private`."""
    private = {"private": error.to_owner} if isinstance(error, RecordError) else {}
    told = {"message": error.message, "exit_code": error.exit_code, "code": error.code, "setting": error.setting}
    return {**told, **private}


def error_of(
    message: str, exit_code: int, code: str = "", setting: str | None = None, private: str | None = None
) -> DpmpcError:
    """The error that another process reported (`to_event`)."""
    if private is not None:
        return RecordError(private, message, code=code, setting=setting)
    text, _, below = message.partition("\n")
    known = _KINDS.get(code)
    if known is None or known.exit_code != exit_code:
        known = next((kind for kind in _KINDS.values() if kind.exit_code == exit_code), None)
    if known is not None:
        return known(text, code=code, setting=setting, below=below)
    error = DpmpcError(text, code=code, setting=setting, below=below)
    error.exit_code = exit_code
    return error


def reworded(error: DpmpcError, say: Callable[[str], str]) -> DpmpcError:
    """Another error of the same kind in the words that `say` makes of its messages, with the same code and setting."""
    other = error_of(**to_event(error))
    other.reword(say)
    return other
