"""Owners' processes and parties meet, begin, end, die and come again, in every order of events: who calls when, what is
delivered, who notices a loss and when. No clock, no connection: a party's `Admission`, an owner's `Meeting` and what it
has `Needed` are values. Messages of one connection keep their order; those of different ones come in any order.

    python -m tests.aggregation.test_meetings     larger worlds too
"""

import contextlib
import sys
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

import pytest

from dpmpc.aggregation.owner.needed import Needed
from dpmpc.aggregation.party.admission import Admission, Called
from dpmpc.aggregation.wire.frames import OVER, RUNNING, WAITING
from dpmpc.mpc.transport.meeting import Meeting

Line = tuple[int, int, int]  # a connection: owner, party, and a number that no other of both has at that time
STATE = {"waiting": WAITING, "begun": RUNNING, "over": OVER}


@dataclass(frozen=True)
class Owner:
    """An owners' process. `calls`: connections that are not answered; `lines`: those that are, by party; `told`:
    parties that have told it the end; `done`: all have that it is connected with."""

    meeting: Meeting
    needed: Needed
    calls: frozenset[Line] = frozenset()
    lines: tuple[tuple[int, Line], ...] = ()
    told: frozenset[int] = frozenset()
    done: bool = False


@dataclass(frozen=True)
class World:
    """`owners`, `parties`: None for one that is not there. `wires`: by connection and direction ("party": to it), what
    is under way. `kills`: so many may still come. `opened`: the last release is, and stands on every party's disk."""

    owners: tuple[Owner | None, ...]
    parties: tuple[Admission[Line] | None, ...]
    wires: tuple[tuple[tuple[Line, str], tuple[str, ...]], ...] = ()
    kills: int = 0
    opened: bool = False


@dataclass(frozen=True)
class Game:
    """The rules of a world: so many owners and parties; `late`: owners may be missing, `fewest` are enough. `lags`: a
    pair may have so many connections at a time, all but one of them not yet forgotten at an end."""

    owners: int
    parties: int
    late: bool = False
    fewest: int = 1
    lags: int = 2

    def owner(self) -> Owner:
        return Owner(Meeting(frozenset(range(self.parties)), again=False), Needed(self.parties, 0, True))

    def party(self) -> Admission[Line]:
        return Admission(self.owners, returns=True, late=self.late)

    def begin(self, kills: int) -> World:
        return World((self.owner(),) * self.owners, (self.party(),) * self.parties, kills=kills)

    # -- moves -------------------------------------------------------------------------------------------------------
    def moves(self, world: World) -> Iterator[World]:
        """Every world that comes next, where nothing befalls anybody."""
        for k, owner in enumerate(world.owners):
            if owner is None:
                yield replace(world, owners=put(world.owners, k, self.owner()))
            elif owner.meeting.stage == "waiting":
                called = {line[1] for line in owner.calls} | owner.meeting.here
                for i in set(range(self.parties)) - called:
                    if world.parties[i] is not None:
                        yield from self.call(world, k, owner, i)
        for i, party in enumerate(world.parties):
            if party is None:
                again = self.party().ends() if world.opened else self.party()
                yield replace(world, parties=put(world.parties, i, again))
            elif party.stage == "waiting" and (party.here >= self.fewest if self.late else not party.missing):
                yield replace(world, parties=put(world.parties, i, party.begins()))
        if self.opens(world):
            ended = tuple(each.ends() for each in world.parties if each is not None)
            after = replace(world, parties=ended, opened=True)
            for party in ended:
                for _, _, line in party.guests:
                    after = self.say(after, line, "owner", "end")
            yield after
        for (line, to), words in world.wires:
            yield self.heard(self.taken(world, line, to), line, to, words[0])

    def kills(self, world: World) -> Iterator[World]:
        """Every world in which a process dies."""
        if world.kills:
            fewer = replace(world, kills=world.kills - 1)
            yield from (self.owner_ends(fewer, k) for k, each in enumerate(world.owners) if each and not each.done)
            yield from (self.party_ends(fewer, i) for i, each in enumerate(world.parties) if each is not None)

    def opens(self, world: World) -> bool:
        """Whether the last release can be opened: all parties have begun, and have living connections with the same
        owners, who have met; all of them, where none may be missing."""
        if any(party is None or party.stage != "begun" for party in world.parties):
            return False
        met = {k for k, each in enumerate(world.owners) if each is not None and each.meeting.stage == "met"}
        lines = {line for k in met for _, line in world.owners[k].lines}  # type: ignore[union-attr]
        at = [{line[0] for _, _, line in party.guests if line in lines} for party in world.parties if party is not None]
        common = set.intersection(*at)
        return len(common) >= (self.fewest if self.late else self.owners)

    # -- what happens ------------------------------------------------------------------------------------------------
    def call(self, world: World, k: int, owner: Owner, i: int) -> Iterator[World]:
        """One call; none while both have as many as `lags` says."""
        both = {line for (line, _), _ in world.wires if line[:2] == (k, i)} | {
            line for at, line in owner.lines if at == i
        }
        kept = {line for each in world.parties if each for _, _, line in each.guests if line[:2] == (k, i)}
        party = world.parties[i]
        if len(both if party is not None and party.stage == "over" else both | kept) < self.lags:
            line = next(each for n in range(9) if (each := (k, i, n)) not in both | kept)
            called = replace(owner, calls=owner.calls | {line})
            yield self.say(replace(world, owners=put(world.owners, k, called)), line, "party", "hello")

    def heard(self, world: World, line: Line, to: str, word: str) -> World:
        k, i, _ = line
        if to == "party":
            party = world.parties[i]
            return world if party is None else self.party_hears(world, party, line, word)
        owner = world.owners[k]
        return world if owner is None else self.owner_hears(world, owner, line, word)

    def party_hears(self, world: World, party: Admission[Line], line: Line, word: str) -> World:
        k, i, _ = line
        if word == "gone":
            return self.party_is(world, i, party.loses(line))
        after, called = party.comes(k, k + 1, line)
        for _, dropped in called.dropped if called.then in ("admit", "serve") else ():
            world = self.say(world, dropped, "owner", "gone")
        if called.then in ("turn away", "begin anew"):
            world = self.say(world, line, "owner", "gone")
        else:
            world = self.say(world, line, "owner", after.stage)
        if called.then == "serve":
            world = self.say(world, line, "owner", "end")
        return self.party_is(world, i, after)

    def party_is(self, world: World, i: int, party: Admission[Line]) -> World:
        world = replace(world, parties=put(world.parties, i, party))
        return self.party_ends(world, i) if party.stage == "failed" else world

    def party_ends(self, world: World, i: int) -> World:
        """Its connections end; another process may take its place."""
        mine = {line for (line, to), _ in world.wires if line[1] == i and to == "party"}
        mine |= {line for each in world.owners if each for line in each.calls if line[1] == i}
        mine |= {line for each in world.owners if each for at, line in each.lines if at == i}
        world = replace(world, parties=put(world.parties, i, None), wires=without(world.wires, mine, "party"))
        for line in sorted(mine):
            world = self.say(world, line, "owner", "gone")
        return world

    def owner_hears(self, world: World, owner: Owner, line: Line, word: str) -> World:
        k, i, _ = line
        if line in owner.calls:
            owner = replace(owner, calls=owner.calls - {line})
            if word == "gone":  # it calls again
                return replace(world, owners=put(world.owners, k, owner))
            meeting = owner.meeting.comes(i)
            needed, excused = owner.needed.hears(i, (STATE[word], []), meeting.here)
            for j in excused:
                meeting = meeting.excuses(j)
            lines = (*owner.lines, (i, line))
            met = needed.meets(meeting.here) if meeting.stage == "met" else needed
            fresh = replace(owner, meeting=meeting, needed=met, lines=lines)
            return self.settled(world, k, fresh)
        if (i, line) not in owner.lines:
            return world
        if word == "end":
            return self.settled(world, k, replace(owner, told=owner.told | {i}))
        if owner.meeting.stage == "waiting":
            meeting, needed = owner.meeting.loses(i, final=False), owner.needed
        else:
            meeting, needed = owner.meeting, owner.needed.loses(i)
        left = tuple(each for each in owner.lines if each[1] != line)
        after = replace(owner, meeting=meeting, needed=needed, lines=left, told=owner.told - {i})
        if meeting.stage == "failed" or needed.failed:
            return self.owner_ends(replace(world, owners=put(world.owners, k, after)), k)
        return self.settled(world, k, after)

    def settled(self, world: World, k: int, owner: Owner) -> World:
        """It is done when all parties that it is connected with have told it the end."""
        world = replace(world, owners=put(world.owners, k, owner))
        if owner.meeting.stage != "met" or owner.told != {i for i, _ in owner.lines}:
            return world
        done = replace(owner, done=True, lines=(), calls=frozenset(), told=frozenset())
        return replace(self.owner_ends(world, k), owners=put(world.owners, k, done))

    def owner_ends(self, world: World, k: int) -> World:
        """As `party_ends`, of an owners' process."""
        owner = world.owners[k]
        assert owner is not None
        mine = owner.calls | {line for _, line in owner.lines}
        wires = without(world.wires, {line for (line, _), _ in world.wires if line[0] == k}, "owner")
        world = replace(world, owners=put(world.owners, k, None), wires=wires)
        for line in sorted(mine):
            world = self.say(world, line, "party", "gone")
        return world

    # -- wires -------------------------------------------------------------------------------------------------------
    def say(self, world: World, line: Line, to: str, word: str) -> World:
        """Something is under way; to nobody, where the other end's process has gone."""
        if (world.parties[line[1]] if to == "party" else world.owners[line[0]]) is None:
            return world
        wires = dict(world.wires)
        wires[line, to] = (*wires.get((line, to), ()), word)
        return replace(world, wires=tuple(sorted(wires.items())))

    def taken(self, world: World, line: Line, to: str) -> World:
        wires = dict(world.wires)
        wires[line, to] = wires[line, to][1:]
        return replace(world, wires=tuple(sorted((at, words) for at, words in wires.items() if words)))


def put(every: tuple[Any, ...], at: int, one: Any) -> tuple[Any, ...]:
    return (*every[:at], one, *every[at + 1 :])


def without(wires: Any, lines: set[Line], to: str) -> Any:
    return tuple(each for each in wires if not (each[0][0] in lines and each[0][1] == to))


def safe(game: Game, world: World) -> None:
    """What holds at all times."""
    for party in world.parties:
        if party is None:
            continue
        owners = [j for first, end, _ in party.guests for j in range(first, end)]
        assert len(owners) == len(set(owners)), "an owner is in twice"
        if party.stage == "begun" and not game.late:
            assert sorted(owners) == list(range(game.owners)), "a run has begun without an owner"


def explored(game: Game, kills: int, most: int = 3_000_000) -> int:
    """How many worlds there are. Errors: AssertionError for an unsafe one, for an end in which somebody waits, and for
    one from which no good end can be reached any more, be it without another death."""
    first = game.begin(kills)
    number, due, before = {first: 0}, deque([first]), list[list[int]]([[]])
    good: list[int] = []
    while due:
        world = due.popleft()
        safe(game, world)
        at = number[world]
        happen = set(game.moves(world))
        over = all(each is not None and each.stage == "over" for each in world.parties)
        if over and all(each is not None and each.done for each in world.owners):
            good.append(at)
        else:
            assert happen, f"somebody waits for ever: {world}"
        for after in happen:
            if after not in number:
                number[after] = len(number)
                before.append([])
                due.append(after)
            before[number[after]].append(at)
        for after in game.kills(world):  # not a way to a good end: nobody may count on a death
            if after not in number:
                number[after] = len(number)
                before.append([])
                due.append(after)
        assert len(number) <= most, "too many worlds"
    reach, todo = set(good), list(good)
    while todo:
        for at in before[todo.pop()]:
            if at not in reach:
                reach.add(at)
                todo.append(at)
    assert len(reach) == len(number), f"from {len(number) - len(reach)} of {len(number)} worlds no run ends"
    return len(number)


CASES = [
    ("nobody dies", Game(2, 2), 0),
    ("one of two owners or a party dies", Game(2, 1), 1),
    ("one of two parties or the owner dies", Game(1, 2, lags=1), 1),
    ("owners come late", Game(2, 1, late=True), 1),
]
LARGER = [
    ("one of two parties or the owner dies, and losses are noticed late", Game(1, 2), 1),
    ("two owners, two parties, a death", Game(2, 2, lags=1), 1),
    ("two owners, one party, two deaths", Game(2, 1), 2),
]


@pytest.mark.parametrize(("name", "game", "kills"), CASES, ids=[case[0] for case in CASES])
def test_in_every_order_all_that_live_come_to_the_end(name: str, game: Game, kills: int) -> None:
    assert explored(game, kills) > 50


def forgets(self: Any, gone: object, *, final: bool = False) -> Any:
    return self


def turns_away(self: Admission[Line], first: int, end: int, guest: Line) -> tuple[Admission[Line], Called[Line]]:
    """Who comes again when the run has begun."""
    return (self, Called("turn away")) if self.stage == "begun" else COMES(self, first, end, guest)


def keeps(self: Admission[Line], first: int, end: int, guest: Line) -> tuple[Admission[Line], Called[Line]]:
    return replace(self, guests=(*self.guests, (first, end, guest))), Called("admit")


COMES = Admission.comes
WAITS = "waits for ever|no run ends"


@pytest.mark.parametrize(
    ("worse", "said"),
    [
        ([(Admission, "loses", forgets), (Admission, "comes", turns_away)], WAITS),
        ([(Admission, "comes", keeps)], "in twice"),
        ([(Meeting, "loses", forgets), (Needed, "loses", forgets)], WAITS),
    ],
    ids=["a party forgets a loss", "a party keeps a first connection", "an owner forgets a loss"],
)
def test_values_that_forget_are_found(worse: list[tuple[Any, str, Callable[..., Any]]], said: str) -> None:
    """The negative controls. A party notices the end of a process by its loss or as it comes again: each is enough."""
    with contextlib.ExitStack() as patched:
        for where, method, instead in worse:
            patched.enter_context(patch.object(where, method, instead))
        with pytest.raises(AssertionError, match=said):
            explored(Game(2, 1), 1)


if __name__ == "__main__":
    for name, game, kills in [*CASES, *LARGER]:
        print(f"{name}: {explored(game, kills):,} worlds, all of them end well")
        sys.stdout.flush()
