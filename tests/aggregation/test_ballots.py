"""The agreement on the owners of a release, in every order of events: what is delivered, who dies and when, which link
breaks and who notices first. No clock, no connection: ballots are values.

    python -m tests.aggregation.test_ballots     the larger worlds too
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from unittest.mock import patch

import pytest

from dpmpc.aggregation.party.ballot import Ballot, BallotMessage, Said
from dpmpc.aggregation.plan.asked import Presence

Wire = tuple[tuple[int, Said], ...]


@dataclass(frozen=True)
class World:
    """All parties' ballots, what is under way from i to j, in order, who is dead, and which losses i may notice of j.
    `deaths`, `cuts`: so many may still come."""

    ballots: tuple[Ballot, ...]
    wires: tuple[tuple[tuple[int, int], Wire], ...] = ()
    dead: frozenset[int] = frozenset()
    broken: frozenset[tuple[int, int]] = frozenset()
    deaths: int = 0
    cuts: int = 0


class Game:
    """The moves of a world. `here`: by party, the owners whose shares it has at first; later it has all."""

    def __init__(self, here: tuple[Presence, ...], enough: int, fewest: int) -> None:
        self.here, self.n = here, len(here)
        self.all = tuple(sorted(set().union(*map(set, here))))
        self.first = tuple(Ballot(i, frozenset(range(self.n)) - {i}, enough, fewest) for i in range(self.n))

    def begin(self, deaths: int, cuts: int) -> World:
        world = World(self.first, deaths=deaths, cuts=cuts)
        for i in range(self.n):
            world = self.settled(world, i)
        return world

    def settled(self, world: World, i: int) -> World:
        """Party i begins what is due."""
        while world.ballots[i].stage in ("due", "short"):
            mine = self.here[i] if world.ballots[i].round == 0 else self.all
            world = self.after(world, i, world.ballots[i].begin(mine))
        return world

    def after(self, world: World, i: int, step: tuple[Ballot, tuple[BallotMessage, ...]]) -> World:
        ballot, sent = step
        wires = dict(world.wires)
        for each in sent:
            for j in each.to:
                if j not in ballot.lost and j not in world.dead and world.ballots[j].stage != "agreed":
                    wires[i, j] = (*wires.get((i, j), ()), (each.exchange, each.said))
        ballots = (*world.ballots[:i], ballot, *world.ballots[i + 1 :])
        done = {j for j, each in enumerate(ballots) if each.stage in ("agreed", "alone")} | world.dead
        kept = tuple(sorted((at, wire) for at, wire in wires.items() if wire and at[1] not in done))
        return replace(world, ballots=ballots, wires=kept)

    def moves(self, world: World) -> Iterator[World]:
        """Every world that comes next, where nothing befalls anybody."""
        over = {i for i, ballot in enumerate(world.ballots) if not ballot.waits} | world.dead
        for (i, j), wire in world.wires:
            if j not in over and i not in world.ballots[j].lost:
                exchange, said = wire[0]
                rest = tuple(sorted({**dict(world.wires), (i, j): wire[1:]}.items()))
                taken = replace(world, wires=tuple(each for each in rest if each[1]))
                yield self.settled(self.after(taken, j, world.ballots[j].hears(i, exchange, said)), j)
        for j, i in world.broken:
            if j not in over and i not in world.ballots[j].lost:
                yield self.settled(self.after(world, j, world.ballots[j].loses(i)), j)

    def accidents(self, world: World) -> Iterator[World]:
        """Every world in which somebody dies, or a link breaks."""
        if world.deaths:
            for i in set(range(self.n)) - world.dead:
                noticed = frozenset((j, i) for j in range(self.n) if j != i)
                yield replace(world, dead=world.dead | {i}, broken=world.broken | noticed, deaths=world.deaths - 1)
        if world.cuts:  # as `LossTolerantMesh` has it: of two that lose each other all others lose the second
            for low in range(self.n):
                for high in range(low + 1, self.n):
                    gone = frozenset((j, high) for j in range(self.n) if j != high)
                    back = frozenset((high, j) for j in range(self.n) if j != high)
                    yield replace(world, broken=world.broken | gone | back, cuts=world.cuts - 1)


def explored(game: Game, deaths: int = 0, cuts: int = 0) -> tuple[int, list[World]]:
    """How many worlds there are, and those in which nothing more happens. Errors: AssertionError for two sets."""
    first = game.begin(deaths, cuts)
    seen, due, ends = {first}, [first], list[World]()
    while due:
        world = due.pop()
        found = {ballot.found for ballot in world.ballots if ballot.stage == "agreed"}
        assert len(found) <= 1, f"two sets: {found}"
        happen, befall = set(game.moves(world)), set(game.accidents(world))
        if not happen:
            ends.append(world)
        after = happen | befall
        fresh = after - seen
        seen |= fresh
        due += fresh
    return len(seen), ends


def all_that_are_left_agree(ends: list[World], fewest: int) -> None:
    """Of each end: those that nobody lost have the set, if they are enough."""
    for world in ends:
        lost = {i for _, i in world.broken}
        well = [ballot for i, ballot in enumerate(world.ballots) if i not in lost | world.dead]
        if well and len(well) >= well[0].enough:
            assert all(ballot.stage == "agreed" for ballot in well), [ballot.stage for ballot in world.ballots]
            assert all(len(ballot.found) >= fewest for ballot in well)


CASES = [
    ("same", ((0, 1), (0, 1), (0, 1)), 0, 0),
    ("differ", ((0, 1, 2), (0, 1), (1, 2, 0)), 0, 0),
    ("few at first", ((0, 1), (1, 2), (0, 2)), 0, 0),
    ("a death", ((0, 1, 2), (0, 1), (0, 1)), 1, 0),
]
LARGER = [
    ("a cut", ((0, 1, 2), (0, 1), (0, 1)), 0, 1),
    ("two deaths", ((0, 1, 2), (0, 1), (0, 1)), 2, 0),
]


@pytest.mark.parametrize(("name", "here", "deaths", "cuts"), CASES, ids=[case[0] for case in CASES])
def test_in_every_order_there_is_one_set_and_all_that_are_left_have_it(
    name: str, here: tuple[Presence, ...], deaths: int, cuts: int
) -> None:
    """Three parties of which two suffice. A set is of owners whose shares all who locked it have."""
    game = Game(here, enough=2, fewest=2)
    count, ends = explored(game, deaths, cuts)
    assert count > 50 and ends
    all_that_are_left_agree(ends, 2)
    for world in ends:
        for ballot in world.ballots:
            assert set(ballot.found) <= set(game.all)


def test_a_party_that_forgets_its_lock_can_split_them() -> None:
    """The negative control: reports without locks, nobody told; the search finds two sets."""
    report = Ballot._report

    def forgetful(self: Ballot) -> Said:
        return report.fget(self)._replace(number=0, locked=())  # type: ignore[attr-defined,no-any-return]

    def silent(
        self: Ballot, owners: Presence, sent: tuple[BallotMessage, ...]
    ) -> tuple[Ballot, tuple[BallotMessage, ...]]:
        return replace(self, stage="agreed", found=owners), sent

    with (
        patch.object(Ballot, "_report", property(forgetful)),
        patch.object(Ballot, "_agreed", silent),
        pytest.raises(AssertionError, match="two sets"),
    ):
        explored(Game(((0, 1, 2), (0, 1), (0, 1)), enough=2, fewest=2), deaths=1)


if __name__ == "__main__":
    for name, here, deaths, cuts in [*CASES, *LARGER]:
        game = Game(here, enough=2, fewest=2)
        count, ends = explored(game, deaths, cuts)
        all_that_are_left_agree(ends, 2)
        print(f"{name}: {count:,} worlds, {len(ends):,} ends, one set in each")
        sys.stdout.flush()
