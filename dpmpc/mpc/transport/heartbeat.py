"""Heartbeats: who lives, who has stalled, who is waited for.

A process beats on each of its connections every second in which it says nothing else. A peer from which nothing at all
came for `stall` seconds is dropped: it was stopped, or its machine or the network is gone. Long work is no stall, for
the event loop answers while other threads compute. Seconds are counted in beats of this process, so that one that was
itself stopped, or asleep, blames nobody for the time: it says how long it was away, where the others have lost it.

What is waited for longer than ten seconds is said, once every ten: who has not come, and not who waits for that one
too: a heartbeat carries for whom its sender waits outside of its connections. Touches no clock but the loop's own
timer.
"""

import asyncio
import contextlib
import re
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from dpmpc.errors import UsageError
from dpmpc.mpc.transport.abort_reason import UNHEARD
from dpmpc.mpc.transport.addresses import bear_with

WAIT = 60.0  # seconds for the other processes to come, where one command starts them all
WAIT_FOR_PEOPLE = 600.0  # the same, where people start them on machines of their own
STALL = 60.0  # seconds
BEAT = 1.0  # seconds
LEAST_STALL = 3.0  # seconds: a few beats
SAY = 10.0  # seconds between two lines on what is waited for
_BESIDES = re.compile(r" \([^()]*\)")  # where somebody is missed, and why: known to whoever calls there
_QUIET = 3.0  # seconds without a heartbeat, from which on a peer is called silent


class Watched(Protocol):
    """What a connection tells of itself."""

    name: str
    lost: str | None
    heard: bool
    spoke: bool
    silence: float
    pending: float
    waits_for: str

    @property
    def awaited(self) -> bool:
        """Whether somebody waits for a frame of this peer."""

    @property
    def socket(self) -> Any:
        """The kernel's socket below the connection; None when there is none."""

    def beat(self, waits_for: str = "") -> None:
        """Say that this process lives, and for whom it waits."""

    def abort(self, why: str) -> None:
        """Drop the connection."""


class _Wait:
    """Something that is waited for outside of connections."""

    def __init__(self, who: Callable[[], str]) -> None:
        self.who, self.pending = who, 0.0


def check_stall(seconds: float) -> float:
    """The seconds. Errors: UsageError where a few heartbeats do not fit."""
    if not LEAST_STALL <= seconds < 1e6:
        raise UsageError(
            f"<<stall>> is a number of seconds, at least {LEAST_STALL:g}; got {seconds:g}; {STALL:g} is usual",
            code="range",
        )
    return seconds


class Heartbeat:
    """The heartbeats of one process, on its event loop."""

    def __init__(self, stall: float = STALL, say: Callable[[str], None] = lambda text: None) -> None:
        """`say` gets the lines on who is waited for."""
        self.stall = check_stall(stall)
        self.say = say
        self.each_beat: Callable[[], None] = lambda: None  # is called at every beat
        self.instead = ""  # what is said to be waited for, in place of all else
        self._peers: list[Watched] = []
        self._waits: list[_Wait] = []
        self._lacks = _Wait(str)  # of this machine
        self._beats = 0
        self._timer: asyncio.TimerHandle | None = None
        self._since = 0.0  # when this process beat last, or began to
        self._away = self._woke = 0.0  # seconds for which it beat not at all, and when it did again
        self._ended = False

    @property
    def connected(self) -> list[str]:
        """The names of those that are watched and not lost."""
        return [peer.name for peer in list(self._peers) if peer.lost is None]

    @property
    def away(self) -> float:
        """The seconds for which this process was stopped, or asleep, where that was as long as `stall` and it has woken
        less than that ago: the others have lost it. Else 0. To be asked by whoever has lost a peer, too."""
        if self._timer is None:
            return 0.0
        now = asyncio.get_running_loop().time()
        if now - self._since >= self.stall:
            return now - self._since
        return self._away if self._away and now - self._woke < self.stall else 0.0

    def watch(self, peer: Watched) -> None:
        """Beat on this connection from now on, until it ends. The kernel bears with it as long."""
        if peer.socket is not None:
            bear_with(peer.socket, self.stall)
        self._peers.append(peer)
        self._begin()

    @contextlib.contextmanager
    def waiting(self, who: Callable[[], str]) -> Iterator[None]:
        """While inside, what `who()` names is waited for; an empty text is nobody."""
        wait = _Wait(who)
        self._waits.append(wait)
        self._begin()
        try:
            yield
        finally:
            self._waits.remove(wait)

    def lack(self, text: str) -> None:
        """What this process lacks of its own machine is waited for from now on, and said at once; "" is nothing."""
        if self._lacks in self._waits:
            self._waits.remove(self._lacks)
        if text:
            if text != self._lacks.who():
                self.say(f"waiting for {text}")
                self._lacks = _Wait(lambda: text)
            self._waits.append(self._lacks)
            self._begin()

    def stop(self) -> None:
        """No more beats."""
        self._ended = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _begin(self) -> None:
        if self._timer is None and not self._ended:
            loop = asyncio.get_running_loop()
            self._since, self._timer = loop.time(), loop.call_later(BEAT, self._next)

    def _next(self) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._since >= self.stall:
            self._away, self._woke = now - self._since, now
        self._timer = None
        self.tick()
        if self._peers or self._waits:
            self._begin()

    def tick(self) -> None:
        """One beat."""
        self._peers = [peer for peer in self._peers if peer.lost is None]
        missing = ", ".join(dict.fromkeys(_BESIDES.sub("", who) for wait in self._waits if (who := wait.who())))
        for peer in self._peers:
            if not peer.spoke:
                peer.beat(missing)
            peer.silence = 0.0 if peer.heard else peer.silence + BEAT
            peer.pending = peer.pending + BEAT if peer.awaited else 0.0
            peer.spoke = peer.heard = False
            if peer.silence >= self.stall:
                peer.abort(f"{UNHEARD} {self.stall:g} s, stall")
        for wait in self._waits:
            wait.pending = wait.pending + BEAT if wait.who() else 0.0
        self._beats += 1
        self.each_beat()
        if self._beats * BEAT % SAY == 0:
            self._tell()

    def _tell(self) -> None:
        late = [peer for peer in self._peers if peer.pending >= SAY and peer.lost is None]
        silent = [peer for peer in late if peer.silence >= _QUIET]
        for_whom = [f"{peer.name} ({peer.pending:.0f} s)" for peer in late if peer not in silent]
        missing = {wait.who(): wait.pending for wait in self._waits if wait.pending >= SAY}
        for peer in late:
            for who in filter(None, peer.waits_for.split(", ")):
                if not any(who in known for known in missing):
                    missing[who] = peer.pending
        if missing:  # those who are here wait for the same
            for_whom = []
        if silent:
            for_whom = [f"{peer.name} (nothing heard for {peer.silence:.0f} s)" for peer in silent]
        for_whom += [f"{who} ({seconds:.0f} s)" for who, seconds in missing.items()]
        if for_whom and self.instead:
            for_whom = [self.instead]
        if for_whom:
            shown = for_whom[:8] + ([f"{len(for_whom) - 8} more"] if len(for_whom) > 8 else [])
            self.say(f"waiting for {', '.join(shown)}")
