"""Heartbeats: who has stalled, who is waited for. No clocks: every beat is a call."""

import asyncio
from dataclasses import dataclass, field

import pytest

from dpmpc.errors import CheatError, PeerError, UsageError
from dpmpc.mpc.transport.abort_reason import public_reason, stays_away, was_away, without_a_word
from dpmpc.mpc.transport.heartbeat import Heartbeat
from tests.refusals import refuses


@dataclass
class Other:
    """A connection as a heartbeat sees it."""

    name: str
    lost: str | None = None
    heard: bool = False
    spoke: bool = False
    silence: float = 0.0
    pending: float = 0.0
    awaited: bool = False
    socket: None = None
    waits_for: str = ""
    beats: int = field(default=0)

    told: str = ""

    def beat(self, waits_for: str = "") -> None:
        self.beats += 1
        self.told = waits_for

    def abort(self, why: str) -> None:
        self.lost = why


def with_pulse(stall: float, body: "object") -> list[str]:
    """What is said while `body(heartbeat)` runs."""
    said: list[str] = []

    async def main() -> None:
        heartbeat = Heartbeat(stall, said.append)
        try:
            body(heartbeat)  # type: ignore[operator]
        finally:
            heartbeat.stop()

    asyncio.run(main())
    return said


def test_a_peer_that_is_silent_for_the_limit_is_dropped_and_no_other() -> None:
    silent, alive, busy = Other("party 1"), Other("party 2"), Other("owner 3")

    def body(heartbeat: Heartbeat) -> None:
        for other in (silent, alive, busy):
            heartbeat.watch(other)
        for _ in range(19):
            alive.heard = busy.heard = busy.spoke = True
            heartbeat.tick()
        assert silent.lost is None
        alive.heard = True
        heartbeat.tick()

    with_pulse(20.0, body)
    assert silent.lost == "nothing was heard of it for 20 s, stall"
    assert alive.lost is None and busy.lost is None
    assert (alive.beats, busy.beats) == (20, 1)  # who says something else needs no heartbeat


def test_one_word_begins_the_silence_anew() -> None:
    other = Other("party 1")

    def body(heartbeat: Heartbeat) -> None:
        heartbeat.watch(other)
        for k in range(100):
            other.heard = k % 19 == 0
            heartbeat.tick()

    with_pulse(20.0, body)
    assert other.lost is None


def test_who_is_waited_for_is_said_every_ten_seconds() -> None:
    slow, quiet, idle = Other("party 1", awaited=True), Other("party 2", awaited=True), Other("owner 0")

    def body(heartbeat: Heartbeat) -> None:
        for other in (slow, quiet, idle):
            heartbeat.watch(other)
        for k in range(29):
            slow.heard = idle.heard = True
            quiet.heard = k < 15
            heartbeat.tick()

    said = with_pulse(60.0, body)
    assert said == [
        "waiting for party 1 (10 s), party 2 (10 s)",
        "waiting for party 2 (nothing heard for 5 s)",  # party 1 lives, and waits for it too
    ]


def test_what_has_not_come_is_waited_for_too_and_nobody_once_it_is_here() -> None:
    missing = ["party 2 (h:1, nobody listens there)"]

    def body(heartbeat: Heartbeat) -> None:
        with heartbeat.waiting(lambda: ", ".join(missing)):
            for _ in range(10):
                heartbeat.tick()
            missing.clear()
            for _ in range(10):
                heartbeat.tick()
        for _ in range(10):
            heartbeat.tick()

    assert with_pulse(60.0, body) == ["waiting for party 2 (h:1, nobody listens there) (10 s)"]


def test_who_is_missing_is_said_by_everybody_and_nobody_who_waits_for_it_is_blamed() -> None:
    """What party 1 waits for goes with its heartbeats; an owner that waits for parties 1 and 2 says that, once."""
    party, other = Other("party 1", awaited=True), Other("party 2", awaited=True)
    owner = Other("owner 0")

    def at_the_party(heartbeat: Heartbeat) -> None:
        heartbeat.watch(owner)
        with heartbeat.waiting(lambda: "owner 1, party 3 (h:1, nobody listens there)"):
            heartbeat.tick()
            assert owner.told == "owner 1, party 3"
        heartbeat.tick()
        assert owner.told == ""

    assert with_pulse(60.0, at_the_party) == []
    party.waits_for, other.waits_for = "owner 1, party 3", "owner 1"

    def at_the_owner(heartbeat: Heartbeat) -> None:
        for each in (party, other):
            heartbeat.watch(each)
        with heartbeat.waiting(lambda: "party 3 (h:4, nobody listens there)"):
            for _ in range(10):
                party.heard = other.heard = True
                heartbeat.tick()
        party.waits_for = other.waits_for = ""
        for _ in range(10):
            party.heard = other.heard = True
            heartbeat.tick()

    assert with_pulse(60.0, at_the_owner) == [
        "waiting for party 3 (h:4, nobody listens there) (10 s), owner 1 (10 s)",
        "waiting for party 1 (20 s), party 2 (20 s)",
    ]


def test_a_long_list_is_cut() -> None:
    def body(heartbeat: Heartbeat) -> None:
        for k in range(50):
            heartbeat.watch(Other(f"owner {k}", awaited=True, heard=True))
        for _ in range(10):
            heartbeat.tick()

    (line,) = with_pulse(60.0, body)
    assert line.endswith("(nothing heard for 9 s), 42 more")


@pytest.mark.parametrize("seconds", [0.0, 2.9, float("nan"), float("inf"), 1e9])
def test_limits_that_a_few_beats_do_not_fit_are_refused(seconds: float) -> None:
    with refuses("range", 3, setting="stall"):
        Heartbeat(seconds)


def test_a_process_that_was_away_for_the_limit_says_so_and_blames_nobody() -> None:
    """Asked by whoever has lost a peer, before the next beat and after it; not for less, and not for ever."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        begin, passed = loop.time(), [0.0]
        loop.time = lambda: begin + passed[0]  # type: ignore[method-assign]
        heartbeat = Heartbeat(5.0)
        assert heartbeat.away == 0.0
        heartbeat.watch(Other("party 1"))
        for passed[0], away in ((4.9, 0.0), (9.0, 9.0)):
            assert heartbeat.away == pytest.approx(away)
        heartbeat._next()
        for passed[0], away in ((9.5, 9.0), (13.9, 9.0), (14.5, 5.5)):  # the last without a beat since
            assert heartbeat.away == pytest.approx(away)
        passed[0] = 13.0
        heartbeat._next()
        assert heartbeat.away == pytest.approx(9.0)
        passed[0] = 14.5
        assert heartbeat.away == 0.0
        heartbeat.stop()
        del loop.time

    asyncio.run(main())


def test_what_ends_a_process_that_was_away_is_its_absence_but_for_cheats_and_refusals() -> None:
    lost = PeerError(without_a_word("owner 0", "connection closed"))
    assert "it has ended or was killed" in str(lost)
    said = was_away("party 0", lost, 9.0, 5.0)
    assert isinstance(said, PeerError) and "party 0 was away for 9 s, longer than the 5 s" in said.message
    assert "owner 0" not in said.message and "have gone on without it, or have ended" in public_reason("party 0", said)
    assert was_away("party 0", lost, 0.0, 5.0) is lost
    for error in (CheatError("x"), stays_away("party 1"), UsageError("x"), KeyboardInterrupt()):
        assert was_away("party 0", error, 9.0, 5.0) is error
