"""Logs: a line an event, with the time and a level; as text, or as JSON for programs that collect logs.

What is logged and how is chosen once for a command and the processes that it starts, by two variables of the
environment, which `--log-level` and `--log-json` set. A line's level is its first word: "error: ...", "warning: ...",
"debug: ..."; all others are information. No line holds a value of a record or a share.
"""

import json
import logging
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

from dpmpc.errors import spelt

Log = Callable[[str], None]
LEVELS = ("debug", "info", "warning", "error")
LOGGER = logging.getLogger("dpmpc")  # what programs that use the library listen to
LOGGER.addHandler(logging.NullHandler())
_NUMBERS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
LEVEL, JSON = "DPMPC_LOG_LEVEL", "DPMPC_LOG_JSON"
_ROLES = ("party: ", "owner: ")  # of a process that is both
_WARNINGS = ("refused ", "waiting for ")


def choose(level: str | None, as_json: bool) -> None:
    """Log so from now on, in this process and those that it starts."""
    if level is not None:
        os.environ[LEVEL] = level
    if as_json:
        os.environ[JSON] = "1"


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

    def log(text: str) -> None:
        text = spelt(text)  # what another site said comes with its settings marked
        LOGGER.log(_NUMBERS[level_of(text)], "%s", text)
        if wanted(level_of(text)):
            print(json_line(text, **name) if as_json() else f"{now()} {text}", file=file, flush=True)

    return log
