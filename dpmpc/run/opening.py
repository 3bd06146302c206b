"""Whoever opens the sums of a plan: made here, and nowhere else outside of `aggregation`."""

import contextlib
from collections.abc import Iterable, Sequence
from typing import Any, Self

from dpmpc.aggregation.owner.aggregator import Aggregator
from dpmpc.aggregation.owner.carrier import Carrier
from dpmpc.aggregation.owner.local_parties import PartiesHere
from dpmpc.aggregation.owner.opens_sums import Release
from dpmpc.aggregation.owner.own_ledger import OwnLedger
from dpmpc.aggregation.owner.session import Connected, session_of
from dpmpc.aggregation.plan.asked import FIRST_ATTEMPT, Attempt
from dpmpc.aggregation.plan.grid import Ints
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.wire.frames import PartyCost
from dpmpc.run.seat import Seat


def connected(plan: Plan, seat: Seat, attempt: Attempt = FIRST_ATTEMPT, ledger: OwnLedger | None = None) -> Aggregator:
    """What opens the releases of a plan for the owners here: connected with the parties, as a context. `ledger`: of
    this process. Errors: PeerError when a party does not come; UsageError for what no run can do."""
    return Aggregator.of_plan(
        plan,
        seat.here,
        parties=seat.parties,
        addresses=seat.addresses,
        owners=seat.owners,
        attempt=attempt,
        say=seat.say,
        ledger=ledger,
        books=seat.books,
    )


def carrying(plan: Plan, seat: Seat, attempt: Attempt = FIRST_ATTEMPT) -> Carrier:
    """What carries to the parties what the owners of a plan have sealed, as a context. Errors: as `connected`."""
    assert seat.carries is not None
    session = session_of(
        plan, seat.here, parties=seat.parties, addresses=seat.addresses, attempt=attempt, books=seat.books
    )
    assert isinstance(session, Connected)
    return Carrier(session, seat.carries.frames, seat.carries.heads)


class AsSeveral:
    """Opens the sums of owners that are played here as several processes would play them, each with a session of its
    own (`OpensSums`), as a context. Its vectors are given by process, in grid steps."""

    def __init__(self, plan: Plan, seat: Seat, attempt: Attempt = FIRST_ATTEMPT) -> None:
        """The parties of `seat` are given their job. Errors: as `connected`."""
        parties = seat.parties
        assert isinstance(parties, PartiesHere)
        parties.begin(plan, attempt)
        self._all = [Aggregator.joining(plan, parties, owners, seat.here) for owners in seat.processes]
        self.session = self._all[0].session
        self._stack = contextlib.ExitStack()

    def wait_for_noise(self) -> None:
        """See `OpensSums`."""
        for each in self._all:
            each.wait_for_noise()

    def catch_up(self) -> list[Release]:
        """None: they were there from the beginning."""
        return []

    def open(self, vectors: Sequence[Iterable[Ints]]) -> Release:
        """The next release."""
        pending = [each.begin_steps(blocks) for each, blocks in zip(self._all, vectors, strict=True)]
        first, *_ = [release.result() for release in pending]
        return first

    def costs(self) -> list[PartyCost]:
        """See `OpensSums`."""
        first, *_ = [each.costs() for each in self._all]
        return first

    def finish(self) -> list[PartyCost]:
        """See `OpensSums`."""
        first, *_ = [each.finish() for each in self._all]
        return first

    def __enter__(self) -> Self:
        for each in self._all:
            self._stack.enter_context(each)
        return self

    def __exit__(self, *error: Any) -> bool | None:
        return self._stack.__exit__(*error)
