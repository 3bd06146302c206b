"""The agreement on the owners of one release, at one party, as a value: what it knows, and what it says next.

`agreement` has the argument. Here is neither a clock nor a connection: a ballot begins a round with the owners whose
shares are here, hears what others say, loses parties, and gives the next ballot and the messages to send. So every
order of events can be tried (`tests/aggregation/test_ballots.py`).
"""

from dataclasses import replace
from typing import Literal, NamedTuple

from dpmpc.aggregation.plan.asked import Presence
from dpmpc.lazy import dataclass

TOLD = (1 << 31) - 1  # the exchange in which what was agreed is told
Stage = Literal["due", "reporting", "apart", "locking", "short", "agreed", "alone"]


class Said(NamedTuple):
    """A message: the parties that its sender is connected with, itself among them; owners; its lock, (round, owners)
    with (0, ()) for none."""

    parties: tuple[int, ...]
    owners: Presence
    number: int
    locked: Presence


class BallotMessage(NamedTuple):
    """A message to some parties, in an exchange: 2k is round k's report, 2k + 1 its lock."""

    to: tuple[int, ...]
    exchange: int
    said: Said


@dataclass(frozen=True)
class Ballot:
    """`others`: all other parties; `enough`: so many must lock, more than half of all; `fewest`: owners that a release
    needs. `stage`: "due": the round `round` is to begin; "reporting" and "locking": it waits for others' reports, or
    locks; "apart": reports were of different connections; "short": too few owners, all saw (`found`); "agreed": on
    `found`; "alone": too few parties are left. `heard`: by (party, exchange)."""

    me: int
    others: frozenset[int]
    enough: int
    fewest: int
    round: int = 0
    stage: Stage = "due"
    left: tuple[int, ...] = ()
    lost: frozenset[int] = frozenset()
    present: Presence = ()
    lock: tuple[int, Presence] = (0, ())
    heard: frozenset[tuple[int, int, Said]] = frozenset()
    found: Presence = ()

    def begin(self, present: Presence) -> "tuple[Ballot, tuple[BallotMessage, ...]]":
        """The round begins: a report to all that are left. `present`: the owners whose shares are here."""
        assert self.stage in ("due", "short")
        left = tuple(sorted(self.others - self.lost))
        if len(left) + 1 < self.enough:
            return replace(self, stage="alone", left=left), ()
        begun = replace(self, stage="reporting", left=left, present=present)
        return begun._on((BallotMessage(left, 2 * self.round, begun._report),))

    def hears(self, party: int, exchange: int, said: Said) -> "tuple[Ballot, tuple[BallotMessage, ...]]":
        """Another party has said something, be it early or late."""
        return replace(self, heard=self.heard | {(party, exchange, said)})._on()

    def loses(self, party: int) -> "tuple[Ballot, tuple[BallotMessage, ...]]":
        """A connection has ended."""
        return replace(self, lost=self.lost | {party})._on()

    @property
    def waits(self) -> bool:
        """Whether something has to be heard, or somebody lost, before it goes on."""
        return self.stage in ("reporting", "apart", "locking")

    @property
    def awaited(self) -> tuple[int, ...]:
        """The exchanges that may move it."""
        own = {"reporting": (2 * self.round,), "locking": (2 * self.round + 1,)}.get(self.stage, ())
        return (*own, 2 * self.round + 2, TOLD)

    @property
    def _report(self) -> Said:
        return Said(tuple(sorted((self.me, *self.left))), self.present, *self.lock)

    def _of(self, exchange: int) -> dict[int, Said]:
        """What those that are left have said in an exchange."""
        return {party: said for party, which, said in self.heard if which == exchange and party in self.left}

    def _on(self, sent: tuple[BallotMessage, ...] = ()) -> "tuple[Ballot, tuple[BallotMessage, ...]]":
        """As far as it goes with what is known. `sent`: what is to be sent before anything else."""
        if self.stage == "reporting" and len(reports := self._of(2 * self.round)) == len(self.left):
            return self._reported([*reports.values(), self._report], sent)
        if self.stage == "locking" and len(self._of(2 * self.round + 1)) >= self.enough - 1:
            return self._agreed(self.lock[1], sent)
        gone_on = self._of(2 * self.round + 2) or self._of(TOLD) or self.lost.intersection(self.left)
        if self.waits and gone_on:
            told = [said.owners for _, which, said in self.heard if which == TOLD]
            if told:
                return self._agreed(told[0], sent)
            return replace(self, stage="due", round=self.round + 1), sent
        return self, sent

    def _reported(
        self, reports: list[Said], sent: tuple[BallotMessage, ...]
    ) -> "tuple[Ballot, tuple[BallotMessage, ...]]":
        """All reports of a round are here, the own one last."""
        if any(report.parties != reports[-1].parties for report in reports):
            return replace(self, stage="apart")._on(sent)
        number, locked = max((report.number, report.locked) for report in reports)
        if not number:
            locked = tuple(sorted(set.intersection(*(set(report.owners) for report in reports))))
            if len(locked) < self.fewest:
                return replace(self, stage="short", round=self.round + 1, found=locked), sent
        assert number or set(locked) <= set(self.present), "a party locks what it has"
        locks = replace(self, stage="locking", lock=(self.round + 1, locked))
        said = Said(reports[-1].parties, locked, *locks.lock)
        return locks._on((*sent, BallotMessage(self.left, 2 * self.round + 1, said)))

    def _agreed(self, owners: Presence, sent: tuple[BallotMessage, ...]) -> "tuple[Ballot, tuple[BallotMessage, ...]]":
        """Whoever is in another round is told so."""
        tell = BallotMessage(tuple(sorted(self.others - self.lost)), TOLD, Said((), owners, 0, ()))
        return replace(self, stage="agreed", found=owners), (*sent, tell)
