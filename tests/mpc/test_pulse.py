"""Heartbeats: who has stalled, who is waited for. No clocks: every beat is a call."""

import asyncio
from dataclasses import dataclass, field

import pytest

from dpmpc.errors import UsageError
from dpmpc.mpc.pulse import Pulse


@dataclass
class Other:
    """A connection as a pulse sees it."""

    name: str
    lost: str | None = None
    heard: bool = False
    spoke: bool = False
    silence: float = 0.0
    pending: float = 0.0
    awaited: bool = False
    beats: int = field(default=0)

    def beat(self) -> None:
        self.beats += 1

    def abort(self, why: str) -> None:
        self.lost = why


def with_pulse(stall: float, body: "object") -> list[str]:
    """What is said while `body(pulse)` runs."""
    said: list[str] = []

    async def main() -> None:
        pulse = Pulse(stall, said.append)
        try:
            body(pulse)  # type: ignore[operator]
        finally:
            pulse.stop()

    asyncio.run(main())
    return said


def test_a_peer_that_is_silent_for_the_limit_is_dropped_and_no_other() -> None:
    silent, alive, busy = Other("party 1"), Other("party 2"), Other("owner 3")

    def body(pulse: Pulse) -> None:
        for other in (silent, alive, busy):
            pulse.watch(other)
        for _ in range(19):
            alive.heard = busy.heard = busy.spoke = True
            pulse.tick()
        assert silent.lost is None
        alive.heard = True
        pulse.tick()

    with_pulse(20.0, body)
    assert silent.lost == "nothing was heard of it for 20 s, --stall"
    assert alive.lost is None and busy.lost is None
    assert (alive.beats, busy.beats) == (20, 1)  # who says something else needs no heartbeat


def test_one_word_begins_the_silence_anew() -> None:
    other = Other("party 1")

    def body(pulse: Pulse) -> None:
        pulse.watch(other)
        for k in range(100):
            other.heard = k % 19 == 0
            pulse.tick()

    with_pulse(20.0, body)
    assert other.lost is None


def test_who_is_waited_for_is_said_every_ten_seconds() -> None:
    slow, quiet, idle = Other("party 1", awaited=True), Other("party 2", awaited=True), Other("owner 0")

    def body(pulse: Pulse) -> None:
        for other in (slow, quiet, idle):
            pulse.watch(other)
        for k in range(29):
            slow.heard = idle.heard = True
            quiet.heard = k < 15
            pulse.tick()

    said = with_pulse(60.0, body)
    assert said == [
        "waiting for party 1 (10 s), party 2 (10 s)",
        "waiting for party 2 (nothing heard for 5 s)",  # party 1 lives, and waits for it too
    ]


def test_what_has_not_come_is_waited_for_too_and_nobody_once_it_is_here() -> None:
    missing = ["party 2 (h:1, nobody listens there)"]

    def body(pulse: Pulse) -> None:
        with pulse.waiting(lambda: ", ".join(missing)):
            for _ in range(10):
                pulse.tick()
            missing.clear()
            for _ in range(10):
                pulse.tick()
        for _ in range(10):
            pulse.tick()

    assert with_pulse(60.0, body) == ["waiting for party 2 (h:1, nobody listens there) (10 s)"]


def test_a_long_list_is_cut() -> None:
    def body(pulse: Pulse) -> None:
        for k in range(50):
            pulse.watch(Other(f"owner {k}", awaited=True, heard=True))
        for _ in range(10):
            pulse.tick()

    (line,) = with_pulse(60.0, body)
    assert line.endswith("(nothing heard for 9 s), 42 more")


@pytest.mark.parametrize("seconds", [0.0, 2.9, float("nan"), float("inf"), 1e9])
def test_limits_that_a_few_beats_do_not_fit_are_refused(seconds: float) -> None:
    with pytest.raises(UsageError, match="--stall is a number of seconds, at least 3"):
        Pulse(seconds)
