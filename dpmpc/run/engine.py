"""The releases of a plan, one after another, at the owners of this process: the one loop that opens sums.

Every way to run a plan comes here: training, questions, a survey, an evaluation, a synthetic table, a fit; with parties
of this machine, of others or beside the owner. They differ in what the owners send and in what becomes of a sum
(`Sends`), and in where the parties are (`Seat`), not in the order of steps. Each opened sum is in this process's folder
before anything is made of it, and what is made of the last one is kept before the parties hear that it is here, where
they can be asked again; so a process that dies at any point finds what was paid for when it comes again (`resume`).
"""

import contextlib
import time
from collections.abc import Callable, Sequence
from typing import Any, Self

from dpmpc.aggregation.owner.aggregator import Aggregator
from dpmpc.aggregation.owner.carrier import Carrier
from dpmpc.aggregation.owner.ending import Ending
from dpmpc.aggregation.owner.opens_sums import OpensSums, Release
from dpmpc.aggregation.owner.own_ledger import OwnLedger
from dpmpc.aggregation.party.noise_source import about_noise
from dpmpc.aggregation.plan.asked import AGREED, Attempt
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.wire.frames import PartyCost
from dpmpc.aggregation.wire.transcript import OpenedVectors
from dpmpc.errors import SpentError
from dpmpc.run.files import OWNERS_OPENED
from dpmpc.run.forecast import forecast_of
from dpmpc.run.opening import AsSeveral, carrying, connected
from dpmpc.run.owners import Ended, Made, Opens, Sends
from dpmpc.run.resume import Since
from dpmpc.run.seat import Seat


def releases(
    plan: Plan,
    owners: Sends,
    seat: Seat,
    since: Since,
    *,
    keeps: Callable[[Ended], None],
    ends: contextlib.ExitStack | None = None,
) -> Ended:
    """Makes the releases of a plan that are left, and returns what became of them. `since`: what earlier attempts left.
    `keeps`: writes down what comes of them. `ends`: the parties take leave while others go on, and are gone at the end
    of this stack.

    Errors: as of `Releasing`."""
    with Releasing(plan, owners, seat, since) as made:
        for _ in range(made.next, plan.releases):
            made.open()
        return made.end(keeps, ends)


class Releasing:
    """The releases of a plan that are left, one after another as they are asked for, as a context: what was opened
    before is taken, and the parties have the noise that they make ahead, when it begins. At its end before all are made
    the parties are told to stop."""

    def __init__(self, plan: Plan, owners: Sends, seat: Seat, since: Since) -> None:
        """`since`: what earlier attempts left. Errors, as it begins: SpentError where all releases are spent and none
        was opened; as of `connected`."""
        self._plan, self._owners, self._seat, self._since = plan, owners, seat, since
        self._stack, self._parties = contextlib.ExitStack(), contextlib.ExitStack()
        self._taken, self._sent, self._seconds = 0, 0, list[float]()
        self._last: Release | None = None
        self._kept: OpenedVectors | None = None
        self._opener: OpensSums[Any]

    def __enter__(self) -> Self:
        with self._stack as opening:
            self._begin(opening)
            self._stack = opening.pop_all()
        return self

    def __exit__(self, *error: Any) -> bool | None:
        return self._stack.__exit__(*error)

    def _begin(self, stack: contextlib.ExitStack) -> None:
        plan, seat, since, emit = self._plan, self._seat, self._since, self._owners.hears
        for number in sorted(since.known):
            self._take(Release(number, since.known[number], 0, since.present.get(number)))
        _check_left(plan, since.attempt.first_release, self._taken)
        mine = None if seat.out is None else OpenedVectors(seat.out / OWNERS_OPENED)
        kept = None if mine is None else stack.enter_context(contextlib.closing(mine))
        ledger = None if seat.own_ledger is None else stack.enter_context(
            OwnLedger(
                seat.own_ledger, plan, since.attempt, seat.books.budget, seat.books.account(plan), seat.called
            )
        )  # fmt: skip
        if plan.parties:
            emit("stage", text="connecting", phase="connecting")
        stack.enter_context(self._parties)
        opens = self._owners.opens or _connected(plan, seat, emit)
        opener = self._opener = self._parties.enter_context(opens(since, ledger))
        emit("stage", text=_noise_ahead(plan, seat, since.attempt), phase="making noise")
        opener.wait_for_noise()
        self._sent = opener.session.bytes_before
        emit("ready", sent=self._sent)
        emit("stage", text=self._owners.doing, phase="releasing")
        self._kept = kept
        while several := opener.catch_up():  # others go on meanwhile
            for release in several:
                self._take(release)
                self._sent = max(self._sent, release.bytes_sent)
        _check_left(plan, self.next, self._taken)
        if (attempt := opener.session.attempt).number:
            seat.say(f"attempt {attempt.number} goes on with release {self.next}; {self._taken} were opened before")

    def _take(self, release: Release) -> None:
        """One that was made before this process came."""
        if self._kept is not None:
            self._kept.append(release.number, release.total)
        self._owners.takes(release, None)
        self._last, self._taken = release, self._taken + 1

    @property
    def next(self) -> int:
        """The release that is made next."""
        return self._opener.session.next

    @property
    def carrier(self) -> Carrier:
        """Who carries what owners elsewhere have sealed."""
        assert isinstance(self._opener, Carrier)
        return self._opener

    def open(self) -> Release:
        """The next release, of the owners' vectors, when they have taken it. Errors: PeerError when a party leaves."""
        number, begin = self.next, time.perf_counter()
        release = self._last = self._opener.open(self._owners.vectors())
        if self._kept is not None:
            self._kept.append(number, release.total)
        self._seconds.append(time.perf_counter() - begin)
        self._owners.hears("release", done=number + 1)
        self._owners.takes(release, Made(self._seconds[-1], release.bytes_sent - self._sent))
        self._sent = release.bytes_sent
        return release

    def end(self, keeps: Callable[[Ended], None], ends: contextlib.ExitStack | None) -> Ended:
        """What became of them, when all are made. Arguments as of `releases`."""
        opener = self._opener
        if ends is not None:
            assert isinstance(opener, Aggregator)
            result = self._ended(())
            keeps(result)
            self._parties.enter_context(Ending(opener))
            ends.push(self._parties.pop_all())
            return result
        comes_again = self._since.attempt == AGREED
        if comes_again:
            keeps(self._ended(opener.costs()))
        result = self._ended(self.part())
        if not comes_again:
            keeps(result)
        return result

    def part(self) -> Sequence[PartyCost]:
        """Takes leave of the parties when all releases are made or lost; those that were started here are over then.
        Returns their costs."""
        costs = self._opener.finish()
        if self._seat.parties is not None:
            self._seat.parties.wait()
        return costs

    def _ended(self, costs: Sequence[PartyCost]) -> Ended:
        assert self._last is not None
        session = self._opener.session
        return Ended(session.attempt, self._last, self._seconds, self._taken, costs, session.parties_lost)


def _connected(plan: Plan, seat: Seat, emit: Callable[..., None]) -> Opens:
    def opens(since: Since, ledger: OwnLedger | None) -> contextlib.AbstractContextManager[OpensSums[Any]]:
        if seat.carries is not None:
            return carrying(plan, seat, since.attempt)
        if seat.processes:
            return AsSeveral(plan, seat, since.attempt)
        aggregator = connected(plan, seat, since.attempt, ledger)
        emit("connections", of=lambda: list(map(plan.called, aggregator.session.connected)))
        return aggregator

    return opens


def _check_left(plan: Plan, first: int, taken: int) -> None:
    """Errors: SpentError for a run that can open nothing more, and of which nothing is known."""
    if first >= plan.releases and not taken:
        which = "its release is" if plan.releases == 1 else f"all {plan.releases} releases are"
        none = "was not opened" if plan.releases == 1 else "none was opened"
        raise SpentError(
            f"a run goes on within its budget; {which} spent and {none}; start a new run, with a budget of its own"
        )


def _noise_ahead(plan: Plan, seat: Seat, attempt: Attempt) -> str:
    """What is said while noise is made, or the others are waited for."""
    left, alone = plan.releases - attempt.first_release, seat.addresses is None
    expected = forecast_of(plan, left, here=alone) or about_noise(plan, left)
    return f"making noise: {expected}" if expected else "starting" if alone else "meeting the others"
