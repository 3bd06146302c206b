"""What a Flower server does with sealed shares: carries them to the parties, and brings back the noisy mean.

A client of `run` like any other, but that the server says when a release is made: when its clients have answered."""

import contextlib
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from dpmpc.aggregation.owner.accounts import NO_BOOKS, Books
from dpmpc.aggregation.owner.carrier import Sealed
from dpmpc.aggregation.owner.encoding import decode
from dpmpc.aggregation.owner.local_parties import PartiesHere
from dpmpc.aggregation.owner.opens_sums import Release
from dpmpc.aggregation.plan.asked import plan_path
from dpmpc.aggregation.plan.grid import Floats
from dpmpc.aggregation.plan.guarantee import report_of
from dpmpc.aggregation.plan.here import HERE, Here
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.errors import PeerError
from dpmpc.flower.gate import frames_of
from dpmpc.flower.party import ROLE
from dpmpc.flower.prepared import Prepared
from dpmpc.mpc.transport.addresses import Endpoint
from dpmpc.privacy.heads import NAME
from dpmpc.run.owners import Ended, Made
from dpmpc.run.resume import Since
from dpmpc.run.run import RecordsHere, rounds
from dpmpc.run.seat import Carries, Seat


class Courier(RecordsHere):
    """The owners of a Flower run, as its server has them (`run.owners.Sends`): it knows what they sealed, and what was
    opened. A context, at whose end the parties are told that no more comes.

    `bound`: of clipping, if it follows the vectors; `past`: (mean (d,), release) of all that was opened before the
    server came, by number; those below `next` that are not in it are lost."""

    doing, opens = "carrying sealed shares", None

    def __init__(self, prepared: Prepared, seat: Seat, stack: contextlib.ExitStack) -> None:
        """With the parties of `seat`. `stack`: is closed with this. Errors: as of `rounds`."""
        self.plan, self.bound = prepared.plan, prepared.plan.adaptive
        self.past: dict[int, tuple[Floats, Release]] = {}
        self._sealed: Sealed = {}
        self._mean: Floats | None = None
        heads = NAME * self.plan.owners if prepared.shows_heads else 0
        seat = replace(seat, carries=Carries(partial(frames_of, prepared), heads))
        self._stack, self._rounds = stack, stack.enter_context(rounds(self.plan, self, seat))

    @classmethod
    def between(
        cls,
        prepared: Prepared,
        keys: Path | None,
        here: Here = HERE,
        *,
        addresses: Sequence[Endpoint] | None = None,
        books: Books = NO_BOOKS,
    ) -> Self:
        """A courier to parties elsewhere, at `addresses`, which carry on what was interrupted; or to parties of this
        machine, which read their keys from the folder `keys`, and write into that of `here`."""
        with contextlib.ExitStack() as opening:
            parties = None
            if addresses is None:
                job = {"prepared": prepared.to_text(), "keys": str(keys)}
                parties = PartiesHere(prepared.plan.parties, here, books, role=ROLE, extra=job)
                opening.callback(parties.end)
                if here.out is not None:
                    prepared.plan.write(plan_path(here.out))
            seat = Seat(here.but(out=None), books, parties, addresses)
            courier = cls(prepared, seat, opening)
            courier._stack = opening.pop_all()
        return courier

    # -- as a run has them ---------------------------------------------------------------------------------------------
    def plays(self, plan: Plan, seat: Seat, since: Since) -> AbstractContextManager[Self]:
        """These."""
        return nullcontext(self)

    def vectors(self) -> Sealed:
        """What they sealed for the next release."""
        return self._sealed

    def takes(self, release: Release, made: Made | None) -> None:
        """The bound moves."""
        self._mean = decode(self.plan, release.total, release.present)
        if self.bound is not None:
            self._mean, self.bound = self.bound.decode(self._mean)
        if made is None:
            self.past[release.number] = self._mean, release

    def keeps(self, ended: Ended) -> None:
        """The server has the means."""

    def hears(self, event: str, **fields: Any) -> None:
        """Flower's own log says enough."""

    # -- as a server has it --------------------------------------------------------------------------------------------
    @property
    def next(self) -> int:
        """The release that is made next."""
        return self._rounds.next

    @property
    def token(self) -> str:
        """Of the attempt, which its parties drew when it began."""
        return self._rounds.carrier.token

    def told(self) -> list[bytes]:
        """What each party remembers of owners' accounts before the next release, as clients are to hear it (`heads`);
        nothing where the plan's data has no name. Errors: PeerError when a party leaves."""
        return self._rounds.carrier.told()

    def skip(self) -> None:
        """The next release is lost, though its number may have been sealed for: the parties make it no more, and it
        spends nothing. Errors: PeerError when a party leaves."""
        self._rounds.carrier.skip()

    def deliver(self, sealed: Sealed) -> tuple[Floats, Release]:
        """(the noisy mean (d,) of the owners' vectors, the release): of what they sealed. Errors: PeerError when a
        party leaves, or too few owners' shares open; then this is closed."""
        self._sealed = sealed
        release = self._rounds.open()
        assert self._mean is not None
        return self._mean, release

    def report(self) -> dict[str, Any]:
        """The promise and everything it rests on, how many releases were made, warnings: JSON values."""
        return report_of(self.plan, self.bound, self.next, self._rounds.carrier.session.parties_lost)

    def abandon(self, error: BaseException | None = None) -> None:
        """Ends everything at once; parties elsewhere are told why, as far as it is public."""
        self._rounds.carrier.abandon(error)
        self._stack.close()

    def close(self) -> None:
        """Ends it: agreed with the parties after all planned releases; before, they are told to stop."""
        with self._stack, contextlib.suppress(PeerError):  # everything was opened already
            if self.next >= self.plan.releases:
                self._rounds.part()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        if kind is not None:
            return self._stack.__exit__(kind, error, trace)
        self.close()
        return None
