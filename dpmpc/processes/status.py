"""How far a process of a run is, in a small file beside its log: written by the process, read by `dpmpc status`.

Public facts only: phase, releases, names of connected processes, what is waited for. The file is written in place, at
most twice a second, and is locked by its process for as long as that lives; the kernel gives the lock back when it
dies, in whatever way. So a reader knows whether what it reads is still true.
"""

import contextlib
import json
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from dpmpc.errors import DpmpcError, machine_text, public_message
from dpmpc.lazy import dataclass
from dpmpc.processes.locks import is_held, lock
from dpmpc.processes.logs import level_of

_APART = 0.5  # seconds between two writings of what only counts
_TRIES = 50  # to read, a few milliseconds apart: a writer is quicker than that

Emit = Callable[..., None]
STARTING, FINISHED, FAILED, GONE = "starting", "finished", "failed", "ended without a word"
LEFT_OUT, BY_OTHERS = "left out", "left out to the end"  # a party without which the run goes on, and was finished


@dataclass
class State:
    """What a process says of itself. Times are Unix ones; `began`: when its first release was opened; `first`: how
    many there were then; `event` marks the settings that it names."""

    process: str
    run: str = ""
    phase: str = STARTING
    release: int = 0
    releases: int = 0
    first: int = 0
    connected: list[str] = field(default_factory=list)
    event: str = ""
    event_time: float = 0.0
    code: str = ""  # of the error that ended it, one of `errors.CODES`
    setting: str | None = None  # that this is about
    began: float | None = None
    last: float | None = None  # when its last release so far was
    updated: float = 0.0
    alive: bool = False  # as a reader finds it

    @property
    def rate(self) -> float | None:
        """Releases a second since the first; None before the second."""
        if self.began is None or self.last is None or self.release <= self.first or self.last <= self.began:
            return None
        return (self.release - self.first) / (self.last - self.began)


class Status:
    """The writing end, of one process. Used from one thread at a time."""

    def __init__(self, path: Path, process: str, run: str = "", releases: int = 0) -> None:
        """A file that cannot be written is left alone: a run does not depend on it."""
        self.state = State(process, run=run, releases=releases)
        self._connected: Callable[[], Iterable[str]] = lambda: ()
        self._fd: int | None = None
        with contextlib.suppress(OSError):
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
            if not lock(self._fd):
                os.close(self._fd)
                self._fd = None
        self._write()

    def notes(self, event: str, **fields: Any) -> bool:
        """Notes an event, and returns whether it is for others too: `connections`, `begin`, `ready` and
        `release` are not. A `phase` among its fields is the process's phase from then on."""
        if event == "release":
            self._release(fields["done"])
            return False
        self.state.phase = fields.get("phase", self.state.phase)
        if event == "connections":
            self._connected = fields["of"]
        elif event == "begin":
            self.state.first = self.state.release = fields.get("first", self.state.release)
            self.state.releases = fields.get("releases", self.state.releases)
            self.state.run = fields.get("run", self.state.run)
        self._write()
        return event not in ("connections", "begin", "ready")

    def says(self, text: str) -> None:
        """Keeps the last line of the log above debugging; of a process that is left out, why it is."""
        if level_of(text) == "debug":  # a line a release, which `release` counts
            return
        if self.state.phase != LEFT_OUT or not text.startswith("waiting for "):
            self.state.event, self.state.event_time = text, time.time()
            self._write()

    def refresh(self) -> None:
        """Write what has changed since, at most every half second."""
        if time.time() - self.state.updated >= _APART:
            self._write()

    def _release(self, done: int) -> None:
        self.state.last = time.time()
        if self.state.began is None:
            self.state.began, self.state.first = self.state.last, done
        self.state.release = done
        self.refresh()

    def _write(self) -> None:
        if self._fd is None:
            return
        self.state.connected = sorted(set(self._connected()))
        self.state.updated = time.time()
        text = json.dumps(vars(self.state)).encode()
        with contextlib.suppress(OSError):
            os.pwrite(self._fd, text, 0)
            os.ftruncate(self._fd, len(text))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connected = lambda: ()
        finished = BY_OTHERS if self.state.phase == LEFT_OUT else FINISHED
        self.state.phase = finished if kind is None else FAILED
        if error is not None:
            self.state.event_time = time.time()
            self.state.event = f"error: {machine_text(error) or 'this program met a fault; its log says where'}"
            if isinstance(error, DpmpcError):
                self.state.event = f"error: {public_message(error)}"
                self.state.code, self.state.setting = error.code, error.setting
        self._write()
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


def read_state(path: Path) -> State | None:
    """What the process of this file said last, and whether it lives; None for a file that is none."""
    alive = _held(path)
    for _ in range(_TRIES):  # half of a writing may be seen; it is whole a moment later
        try:
            state = msgspec.json.decode(path.read_bytes(), type=State)
        except (OSError, msgspec.MsgspecError, RecursionError):
            time.sleep(0.002)
            continue
        state.alive = alive
        if not alive and state.phase not in (FINISHED, BY_OTHERS, FAILED):
            state.phase = GONE
        return state
    return None


def status_path(out: Path, who: str) -> Path:
    """Where the process `who` (party_0, owners, owner_3) keeps its status."""
    return out / f"status_{who}.json"


def _held(path: Path) -> bool:
    """Whether a process writes this file."""
    try:
        return is_held(path)
    except OSError:  # a file system without locks
        return False
