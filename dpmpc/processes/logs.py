"""Logs: a line an event, with the time and a level; as text, or as JSON for programs that collect logs.

What is logged and how is chosen once for a command and the processes that it starts, by two variables of the
environment, which `--log-level` and `--log-json` set; a third says how its surface spells settings. A line's level is
its first word: "error: ...", "warning: ...", "debug: ..."; all others are information. No line holds a value of a
record or a share.
"""

import contextlib
import importlib
import json
import logging
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TextIO

from dpmpc.errors import Spelling, spelt

Log = Callable[[str], None]
LEVELS = ("debug", "info", "warning", "error")
LOGGER = logging.getLogger("dpmpc")  # what programs that use the library listen to
LOGGER.addHandler(logging.NullHandler())
_NUMBERS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
LEVEL, JSON, SPELLING = "DPMPC_LOG_LEVEL", "DPMPC_LOG_JSON", "DPMPC_LOG_SPELLING"
_OWN = "dpmpc."  # no other package spells settings
_ROLES = ("party: ", "owner: ")  # of a process that is both
_WARNINGS = ("refused ", "waiting for ")
_entered: list[str] = []  # surfaces of this process, the innermost first
_outer: list[str] = []  # those of the process that started it


def choose(level: str | None, as_json: bool) -> None:
    """Log so from now on, in this process and those that it starts."""
    if level is not None:
        os.environ[LEVEL] = level
    if as_json:
        os.environ[JSON] = "1"


@contextlib.contextmanager
def speaking(surface: str) -> Iterator[None]:
    """Logs that are opened meanwhile, here and in processes that start meanwhile, spell settings as the function
    "module:function" of this package does. What it leaves marked is for the surface around it."""
    if not _entered:
        _outer[:] = os.environ.get(SPELLING, "").split()
    _entered.insert(0, surface)
    _tell_surfaces()
    try:
        yield
    finally:  # sites in threads of one process do not leave in the order in which they came
        _entered.remove(surface)
        _tell_surfaces()


def _tell_surfaces() -> None:
    os.environ[SPELLING] = " ".join(dict.fromkeys((*_entered, *_outer)))


def _surfaces() -> list[str]:
    return [name for name in os.environ.get(SPELLING, "").split() if name.startswith(_OWN)]


def _spoken(text: str, surfaces: list[str]) -> str:
    """The text with its settings as these surfaces write them, the innermost first; then as Python does. They are
    imported where a text marks a setting: a party needs none as a rule."""
    for name in surfaces if "<<" in text else ():
        module, _, function = name.partition(":")
        spelling: Spelling = getattr(importlib.import_module(module), function)
        text = spelt(text, spelling)
    return spelt(text)


def spoken(text: str) -> str:
    """The text with its settings as logs that are opened now would write them."""
    return _spoken(text, _surfaces())


def as_json() -> bool:
    """Whether lines are JSON."""
    return os.environ.get(JSON) == "1"


def level_of(text: str) -> str:
    """The level of a line."""
    for role in _ROLES:
        text = text.removeprefix(role)
    first = text.partition(":")[0]
    if first in LEVELS:
        return first
    return "warning" if text.startswith(_WARNINGS) else "info"


def wanted(level: str) -> bool:
    """Whether lines of this level are logged."""
    least = os.environ.get(LEVEL, "info")
    return LEVELS.index(level) >= LEVELS.index(least if least in LEVELS else "info")


def heard(level: str) -> bool:
    """Whether anybody hears lines of this level: the log, or who listens to the logger."""
    return LOGGER.isEnabledFor(_NUMBERS[level]) or wanted(level)


def json_line(text: str, **fields: Any) -> str:
    """A line as a JSON object: time (UTC), level, text, and what else is known."""
    return json.dumps({"time": now(), "level": level_of(text), "text": text, **fields}, ensure_ascii=False)


def now() -> str:
    """The time, UTC, to the millisecond."""
    seconds = time.time()
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
    return f"{stamp}.{int(seconds * 1000) % 1000:03d}Z"


def log_to(file: TextIO) -> Log:
    """A function that writes one line with the time to `file`, if its level is wanted, and gives it to the logger
    `dpmpc`, whose own level holds there."""
    named = isinstance(file.name, str) and not file.name.startswith("<")  # a descriptor has a number
    name = {"process": Path(file.name).stem} if named else {}
    surfaces = _surfaces()

    def log(text: str) -> None:
        text = _spoken(text, surfaces)  # what another site said comes with its settings marked, too
        LOGGER.log(_NUMBERS[level_of(text)], "%s", text)
        if wanted(level_of(text)):
            print(json_line(text, **name) if as_json() else f"{now()} {text}", file=file, flush=True)

    return log
