"""What a refusal is held to: its class, the rule that was broken, the setting that it is about, and the values that it
names. Never its words."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from dpmpc.errors import (
    CheatError,
    DpmpcError,
    NotYetError,
    OwnerError,
    PeerError,
    RecordError,
    SpentError,
    UsageError,
    owner_text,
)

Kind = type[BaseException] | tuple[type[BaseException], ...]
OF_A_CODE: dict[str, Kind] = {
    kind.code: kind
    for kind in (DpmpcError, UsageError, SpentError, RecordError, NotYetError, PeerError, CheatError, OwnerError)
}
OF_A_CODE[CheatError.code] = PeerError  # who hears first of a cheat is by chance: the others are told of it by a peer


@dataclass(frozen=True)
class Rule:
    """A rule that is broken: its `code` (`dpmpc.errors.CODES`), the setting (None: of none), texts and numbers that the
    message names, and the class of the error, by default that of the code: of one without a class, UsageError."""

    code: str
    values: tuple[object, ...] = ()
    setting: str | None = None
    kind: Kind | None = None

    @property
    def raised(self) -> Kind:
        return self.kind or OF_A_CODE.get(self.code, UsageError)

    def held(self, error: BaseException) -> None:
        """Errors: AssertionError where the error is of another rule, setting or value."""
        assert isinstance(error, DpmpcError), repr(error)
        text = owner_text(error)
        found, due = (error.code, error.setting), (self.code, self.setting)
        assert found == due, f"broken is {found}, not {due}: {text}"
        missing = [value for value in self.values if not named(str(value), text)]
        assert not missing, f"no {missing} in: {text}"


def breaks(code: str, *values: object, setting: str | None = None, kind: Kind | None = None) -> Rule:
    """For tables of refusals."""
    return Rule(code, values, setting, kind)


def named(value: str, text: str) -> bool:
    """Whether the text has the value as a whole: 1 is not in 13, 0.1 or 1,000."""
    before = r"(?<![\w])(?<!\d[.,])" if value[:1].isalnum() else ""
    after = r"(?!\w)(?![.,]\d)" if value[-1:].isalnum() else ""
    return re.search(before + re.escape(value) + after, text) is not None


@contextmanager
def refuses(
    broken: str | Rule, *values: object, setting: str | None = None, kind: Kind | None = None
) -> Iterator[pytest.ExceptionInfo[BaseException]]:
    """`pytest.raises` by rule, setting and value."""
    due = broken if isinstance(broken, Rule) else breaks(broken, *values, setting=setting, kind=kind)
    with pytest.raises(due.raised) as caught:
        yield caught
    due.held(caught.value)


def hold_words(matches: Callable[..., bool] = pytest.RaisesExc.matches) -> None:
    """From now on `pytest.raises` with `match=` fails at an error that has a code, whatever class it is caught by."""

    def of_others(self: Any, error: BaseException | None) -> bool:
        assert self.match is None or not isinstance(error, DpmpcError), f"hold it by `refuses`: {error!r}"
        return matches(self, error)

    pytest.RaisesExc.matches = of_others  # type: ignore[assignment, method-assign]


@contextmanager
def in_one_line(parts: int = 3) -> Iterator[pytest.ExceptionInfo[BaseException]]:
    """A UsageError of whatever rule, in one line: the rule; the value; the way out."""
    with pytest.raises(UsageError) as caught:
        yield caught
    text = owner_text(caught.value)
    assert "\n" not in text and len(text.split("; ")) >= parts and all(text.split("; ")), text
