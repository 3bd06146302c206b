"""Owners that come late, leave and come again while releases are made, in every order of events at several parties:
who is let in and told a release first, whose shares arrive where, who dies with what under way, when a party stops
waiting and when it publishes. No clock, no connection: `Participation` and `FirstRelease` are values. Messages of one
connection keep their order. The agreement on a release's owners is one step here: `test_ballots` has its orders.

What holds in every world: all parties add up the same sharings, of exactly the owners that were agreed on, no owner
twice; and from each of them the run can end, with the whole history at every owner, though no party's patience ends.

    python -m tests.aggregation.test_participation     larger worlds too
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, NamedTuple
from unittest.mock import patch

import pytest

from dpmpc.aggregation.owner.joining import FirstRelease
from dpmpc.aggregation.party.participation import Participation
from dpmpc.aggregation.plan.asked import Presence
from dpmpc.aggregation.wire.frames import LATER

Sharing = tuple[int, int, int]  # first owner, end, life: each life of a process shares its vectors once
Word = tuple[str, int]
Range = tuple[int, int]


class Guest(NamedTuple):
    """A process at a party. `due`: the frame that is read next; the number of a release: its shares."""

    owners: Range
    life: int
    due: str | int = "known"


@dataclass(frozen=True)
class Process:
    """`heard`: by party, how many releases it was told; `named`: by party, the release that it may begin with."""

    owners: Range
    life: int
    here: frozenset[int] = frozenset()
    named: tuple[tuple[int, int], ...] = ()
    heard: tuple[int, ...] = ()
    joining: FirstRelease | None = None
    next: int = 0
    sent: int = -1
    done: bool = False


@dataclass(frozen=True)
class Party:
    """`report`: the owners whose shares it said it has; `agreed`: those of the open release; `published`: so many."""

    participation: Participation[Sharing] = field(default_factory=lambda: Participation.of(0))
    guests: tuple[Guest, ...] = ()
    report: Presence | None = None
    agreed: Presence | None = None
    published: int = 0


@dataclass(frozen=True)
class World:
    """`sums`: by release, the sharings that the first party added up. `wires`: by slot of a process and party, what
    is under way to the party. `deaths`: so many were."""

    processes: tuple[Process | None, ...]
    parties: tuple[Party, ...]
    wires: tuple[tuple[tuple[int, int], tuple[Word, ...]], ...] = ()
    deaths: int = 0
    sums: tuple[tuple[Sharing, ...], ...] = ()


@dataclass(frozen=True)
class Game:
    """`ranges`: by the number of deaths so far, the owners that each slot's process plays, None for none. Slot 0 dies,
    as often as there are further ranges. `patient`: parties wait for whoever takes part."""

    ranges: tuple[tuple[Range | None, ...], ...]
    parties: int = 2
    releases: int = 2
    fewest: int = 1
    patient: bool = False

    def begin(self) -> World:
        """The last slot's process, which does not die, is there first: every party has named a release to it."""
        world = World((None,) * len(self.ranges[0]), (Party(),) * self.parties)
        if self.ranges[0][-1] is not None:
            world = self.born(world, len(self.ranges[0]) - 1, self.ranges[0][-1])
        while world.wires:
            ((k, i), words), *_ = world.wires
            world = self.party_hears(with_wire(world, (k, i), words[1:]), k, i, words[0])
        return world

    def good(self, world: World) -> bool:
        due = zip(self.ranges[world.deaths], world.processes, strict=True)
        return all(each is not None and each.done for owners, each in due if owners is not None)

    # -- moves -------------------------------------------------------------------------------------------------------
    def moves(self, world: World) -> Iterator[World]:
        """Every world that comes next, where nobody dies."""
        for k, process in enumerate(world.processes):
            owners = self.ranges[world.deaths][k]
            if process is None and owners is not None:
                yield self.born(world, k, owners)
            elif process is not None and process.joining is not None and not process.done:
                yield from self.goes_on(world, k, process, process.joining)
        for (k, i), words in world.wires:
            yield self.party_hears(with_wire(world, (k, i), words[1:]), k, i, words[0])
        for i, party in enumerate(world.parties):
            yield from self.releases_of(world, i, party)

    def deaths(self, world: World) -> Iterator[World]:
        """Slot 0's process dies: what it has sent to a party arrives before that is noticed, or does not."""
        process = world.processes[0]
        if process is None or process.done or world.deaths + 1 >= len(self.ranges):
            return
        for arrives in product((True, False), repeat=self.parties):
            after = with_process(replace(world, deaths=world.deaths + 1), 0, None)
            for i, kept in enumerate(arrives):
                words = dict(world.wires).get((0, i), ()) if kept else ()
                if ("hello", process.life) in words:  # a later process's is accepted later
                    words = ()
                after = with_wire(after, (0, i), (*words, ("gone", process.life)))
            yield after

    def born(self, world: World, k: int, owners: Range) -> World:
        process = Process(owners, world.deaths, heard=(0,) * self.parties)
        return self.says(with_process(world, k, process), k, ("hello", world.deaths))

    def goes_on(self, world: World, k: int, process: Process, joining: FirstRelease) -> Iterator[World]:
        told = all(count > process.next for count in process.heard)
        if process.next == self.releases:
            yield with_process(world, k, replace(process, done=True))
        elif process.sent == process.next or joining.misses(process.next, told=told):
            if told:
                yield with_process(world, k, replace(process, next=process.next + 1))
        else:
            words = [("begin", process.next)] * joining.behind + [("share", process.next)]
            sent = replace(process, sent=process.next, joining=joining.begins())
            yield self.says(with_process(world, k, sent), k, *words)

    def releases_of(self, world: World, i: int, party: Party) -> Iterator[World]:
        """A party reports, adds up what was agreed on, or publishes."""
        participation, release = party.participation, party.published
        if release == self.releases:
            return
        if participation.open > release:  # closed
            if all(each.participation.open > release for each in world.parties):
                after = with_party(world, i, replace(party, published=release + 1))
                for k, owners in enumerate(self.ranges[world.deaths]):
                    here = [g for g in party.guests if g.owners == owners and g.owners[0] in participation.served]
                    if here and (process := world.processes[k]) is not None and process.life == here[0].life:
                        after = self.tells(after, k, i, ("result", release))
                yield after
        elif party.agreed is not None:
            closed, found = participation.closes(release).taken(release, party.agreed)
            added = tuple(each.share for each in found)
            of = tuple(j for first, end, _ in added for j in range(first, end))
            assert of == party.agreed, f"agreed on {party.agreed}, added up {of}"
            sums = world.sums if len(world.sums) > release else (*world.sums, added)
            assert sums[release] == added, f"parties add up {sums[release]} and {added}"
            yield with_party(replace(world, sums=sums), i, replace(party, participation=closed, agreed=None))
        elif party.report is None:
            present = participation.present(release)
            waits = self.patient and participation.late(release, [guest.owners[0] for guest in party.guests])
            if len(present) >= self.fewest and not waits:
                yield self.agreed(with_party(world, i, replace(party, report=present)))

    def agreed(self, world: World) -> World:
        """All have reported: they agree on the owners that all have, or report again."""
        reports = [party.report for party in world.parties]
        if None in reports:
            return world
        common = tuple(sorted(set.intersection(*(set(report) for report in reports if report is not None))))
        found = common if len(common) >= self.fewest else None
        return replace(world, parties=tuple(replace(each, report=None, agreed=found) for each in world.parties))

    # -- what is heard -----------------------------------------------------------------------------------------------
    def party_hears(self, world: World, k: int, i: int, word: Word) -> World:
        (what, number), party = word, world.parties[i]
        process = world.processes[k]
        if what == "gone":
            left = tuple(each for each in party.guests if (self.slot(each), each.life) != (k, number))
            return with_party(world, i, replace(party, guests=left))
        if what == "hello":
            owners = self.ranges[number][k]
            assert owners is not None
            rest = (each for each in party.guests if each.owners[1] <= owners[0] or owners[1] <= each.owners[0])
            guests = tuple(sorted((*rest, Guest(owners, number)), key=lambda each: each.owners))
            come = party.participation.comes(*owners)
            world = with_party(world, i, replace(party, guests=guests, participation=come))
            lives = process is not None and process.life == number
            return self.tells(world, k, i, ("in", 0)) if lives else world
        guest = next((each for each in party.guests if k == self.slot(each)), None)
        if guest is None:
            return world
        (first, end), participation, due = guest.owners, party.participation, guest.due
        if what == "known":
            participation, release = participation.names(first, end, lost=False)
            due = "begin"
            if process is not None and process.life == guest.life:
                world = self.tells(world, k, i, ("join", release), *(("result", r) for r in range(party.published)))
        elif what == "begin":
            late = number == LATER
            participation = participation.lags(first) if late else participation.joins(first, number)
            due = due if late else number
        elif due == number:
            participation, due = participation.shared(number, first, end, (first, end, guest.life)), number + 1
        guests = tuple(guest._replace(due=due) if each == guest else each for each in party.guests)
        return with_party(world, i, replace(party, participation=participation, guests=guests))

    def slot(self, guest: Guest) -> int:
        return self.ranges[guest.life].index(guest.owners)

    def process_hears(self, world: World, k: int, i: int, word: Word) -> World:
        (what, number), process = word, world.processes[k]
        assert process is not None
        if what == "in":
            process = replace(process, here=process.here | {i})
            world = with_process(world, k, process)
            return self.says(world, k, ("known", 0)) if len(process.here) == self.parties else world
        if what == "join":
            process = replace(process, named=(*process.named, (i, number)))
            if len(process.named) == self.parties:
                joining = FirstRelease().named([each for _, each in process.named], 0, self.releases)
                process = replace(process, joining=joining)
                less = [j for j, each in process.named if each < joining.first]
                return self.says(with_process(world, k, process), k, ("begin", LATER), to=less)
        else:
            assert process.heard[i] == number, "a release is told twice, or not at all"
            process = replace(process, heard=tuple(n + (j == i) for j, n in enumerate(process.heard)))
        return with_process(world, k, process)

    # -- wires -------------------------------------------------------------------------------------------------------
    def says(self, world: World, k: int, *words: Word, to: Iterable[int] | None = None) -> World:
        """A process says something to all parties, or to some."""
        for i in range(self.parties) if to is None else to:
            world = with_wire(world, (k, i), (*dict(world.wires).get((k, i), ()), *words))
        return world

    def tells(self, world: World, k: int, i: int, *words: Word) -> World:
        """A party says something to a process. It is heard at once: one that hears it later is one that acts later."""
        for word in words:
            world = self.process_hears(world, k, i, word)
        return world


def with_process(world: World, k: int, process: Process | None) -> World:
    return replace(world, processes=(*world.processes[:k], process, *world.processes[k + 1 :]))


def with_party(world: World, i: int, party: Party) -> World:
    return replace(world, parties=(*world.parties[:i], party, *world.parties[i + 1 :]))


def with_wire(world: World, at: tuple[int, int], words: tuple[Word, ...]) -> World:
    wires = {**dict(world.wires), at: words}
    return replace(world, wires=tuple(sorted((at, each) for at, each in wires.items() if each)))


def explored(game: Game, most: int = 3_000_000) -> int:
    """How many worlds there are. Errors: AssertionError for one in which parties add up different vectors, for an end
    in which somebody waits, and for one from which the run cannot end any more without another death."""
    first = game.begin()
    number, due, before = {first: 0}, [first], list[list[int]]([[]])
    good: list[int] = []
    while due:
        world = due.pop()
        happen = set(game.moves(world))
        if game.good(world):
            good.append(number[world])
        else:
            assert happen, f"somebody waits for ever: {world}"
        for after in happen | set(game.deaths(world)):
            if after not in number:
                number[after] = len(number)
                before.append([])
                due.append(after)
            if after in happen:  # nobody may count on a death
                before[number[after]].append(number[world])
        assert len(number) <= most, "too many worlds"
    reach, todo = set(good), list(good)
    while todo:
        fresh = set(before[todo.pop()]) - reach
        reach |= fresh
        todo += fresh
    assert len(reach) == len(number), f"from {len(number) - len(reach)} of {len(number)} worlds no run ends"
    return len(number)


TWICE: tuple[tuple[Range | None, ...], ...] = (((0, 1), (1, 2)),) * 2
SPLIT: tuple[tuple[Range | None, ...], ...] = (((0, 2), None, (2, 3)), (None, (1, 2), (2, 3)))
CASES = [
    ("a party, an owner dies", Game(TWICE, parties=1)),
    ("a party with patience, an owner dies", Game(TWICE, parties=1, patient=True)),
    ("two parties with patience, an owner dies", Game(TWICE, releases=1, patient=True)),
    ("a process of two owners dies, another comes for one", Game(SPLIT, parties=1, patient=True)),
]
LARGER = [
    ("two parties, two releases, an owner dies", Game(TWICE, patient=True)),
    ("the same without patience", Game(TWICE)),
    ("two parties, a process of two owners dies", Game(SPLIT, releases=1)),
    ("three parties, an owner dies", Game(TWICE, parties=3, releases=1, patient=True)),
    ("an owner dies twice", Game((*TWICE, TWICE[0]), parties=1)),
]


@pytest.mark.parametrize(("name", "game"), CASES, ids=[case[0] for case in CASES])
def test_in_every_order_one_sharing_of_an_owner_counts_and_all_come_to_the_end(name: str, game: Game) -> None:
    assert explored(game) > 1000


NAMES = Participation.names


def the_same(self: Participation[Any], first: int, end: int, *, lost: bool) -> tuple[Participation[Any], int]:
    """The open release, whoever was here before."""
    return NAMES(self, first, end, lost=lost)[0], self.open


def by_first(self: Participation[Any], first: int, end: int, *, lost: bool) -> tuple[Participation[Any], int]:
    """It is known of a process by its first owner alone."""
    named = NAMES(replace(self, told=self.told & {first}), first, end, lost=lost)
    return replace(named[0], told=self.told | {first}), named[1]


@pytest.mark.parametrize(
    ("worse", "game", "said"),
    [
        (("names", the_same), Game(TWICE, parties=2, releases=1), "parties add up"),
        (("names", by_first), Game(SPLIT, parties=1), "added up|not here"),
        (("lags", lambda self, first: self), Game(TWICE, releases=1, patient=True), "waits for ever|no run ends"),
    ],
    ids=["an owner shares twice", "owners are known by the first", "a party is not told of one that lags"],
)
def test_rules_that_do_not_hold_are_found(worse: tuple[str, Callable[..., Any]], game: Game, said: str) -> None:
    """The negative controls."""
    with patch.object(Participation, *worse), pytest.raises(AssertionError, match=said):
        explored(game)


if __name__ == "__main__":
    for name, game in [*CASES, *LARGER]:
        print(f"{name}: {explored(game):,} worlds, all of them end well")
        sys.stdout.flush()
