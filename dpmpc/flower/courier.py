"""What a Flower server does with sealed shares: carries them to the parties, and brings back the noisy mean."""

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from dpmpc.aggregation.owner.company import company_of
from dpmpc.aggregation.owner.encoding import decode
from dpmpc.aggregation.owner.session import WAIT, Connected, Release
from dpmpc.aggregation.plan.asked import FIRST_ATTEMPT, Attempt
from dpmpc.aggregation.plan.grid import Floats
from dpmpc.aggregation.plan.guarantee import report_of
from dpmpc.aggregation.wire.frames import PartyCost
from dpmpc.errors import DpmpcError, PeerError, UsageError
from dpmpc.flower.gate import frames_of
from dpmpc.flower.party import ROLE
from dpmpc.flower.prepared import Prepared
from dpmpc.mpc.transport.addresses import Endpoint
from dpmpc.mpc.transport.heartbeat import STALL
from dpmpc.privacy.heads import NAME

Sealed = Mapping[int, Sequence[bytes]]  # by owner, the sealed share of each party


class Courier:
    """Opens the sums of vectors that it never sees (`OpensSums`): what the owners have sealed."""

    def __init__(self, prepared: Prepared, session: Connected) -> None:
        self._prepared, self._session, self.plan = prepared, session, prepared.plan
        self.bound = self.plan.adaptive  # of clipping, if it follows the vectors
        self._told: tuple[int, list[bytes]] = -1, []  # of a release: what each party remembers of owners' accounts
        self._closed = False

    @classmethod
    def between(
        cls,
        prepared: Prepared,
        keys: Path | None,
        *,
        out: Path | None = None,
        addresses: Sequence[Endpoint] | None = None,
        tls: Path | None = None,
        wait: float = WAIT,
        stall: float = STALL,
        **settings: Any,
    ) -> Self:
        """A courier to parties elsewhere, at `addresses`, which carry on what was interrupted; or to parties of this
        machine, with `settings` (of `LocalParties`), which read their keys from the folder `keys`."""
        plan = prepared.plan
        attempt = FIRST_ATTEMPT if addresses is None else plan.attempt
        if addresses is None:
            settings |= {"role": ROLE, "extra": {"prepared": prepared.to_text(), "keys": str(keys)}}
        company = company_of(plan, attempt, out, None, addresses, wait, stall, settings)
        return cls(prepared, Connected(plan, company, (0, plan.owners), attempt, tls=tls, wait=wait, stall=stall))

    @property
    def attempt(self) -> Attempt:
        """The attempt of the run, agreed on where the parties do that; what is sealed is bound to its token."""
        return self._session.attempt

    @property
    def next(self) -> int:
        """The release that is made next."""
        return self._session.next

    @property
    def bytes_before(self) -> int:
        """Sent by all processes when the noise made ahead was there."""
        return self._session.bytes_before

    @property
    def parties_lost(self) -> list[int]:
        """See `OpensSums`."""
        return self._session.parties_lost

    @property
    def token(self) -> str:
        """Of the attempt, which its parties drew when it began; waits until they have met and have their noise."""
        self.wait_for_noise()
        return self._session.token

    def told(self) -> list[bytes]:
        """What each party remembers of owners' accounts before the next release, as clients are to hear it (`heads`);
        nothing where the plan's data has no name. Errors: PeerError when a party leaves."""
        if self._prepared.shows_heads and self._told[0] != self.next:
            self.wait_for_noise()
            self._told = self.next, self._session.told(self.next, NAME * self.plan.owners)
        return self._told[1]

    def wait_for_noise(self) -> None:
        """Returns when the parties have the noise that they make ahead."""
        self._session.ready()

    def catch_up(self) -> list[Release]:
        """The releases that an interrupted run has opened; see `past`."""
        return [release for _, release in self.past().values()]

    def past(self) -> dict[int, tuple[Floats, Release]]:
        """(mean (d,), release) of every release that an interrupted run has opened, by number; those below `next` that
        are not in it are lost. To be called before the first release."""
        self._check_open()
        self.wait_for_noise()
        return {release.number: (self._taken(release), release) for release in self._session.missed()}

    def _taken(self, release: Release) -> Floats:
        """The mean (d,) of a release; a bound that follows the vectors moves."""
        mean = decode(self.plan, release.total, release.present)
        if self.bound is not None:
            mean, self.bound = self.bound.decode(mean)
        return mean

    def skip(self) -> None:
        """The next release is lost, though its number may have been sealed for: the parties make it no more, and it
        spends nothing. Errors: PeerError when a party leaves."""
        self._send({})
        self._session.next += 1

    def open(self, vectors: Sealed) -> Release:
        """The next release of the owners' vectors, as they sealed them. Errors: PeerError when a party leaves, or too
        few owners' shares open; then this is closed."""
        return self.deliver(vectors)[1]

    def deliver(self, sealed: Sealed) -> tuple[Floats, Release]:
        """(the noisy mean (d,) of the owners' vectors, the release): as `open`."""
        assert len(sealed) >= self.plan.fewest
        self._send(sealed)
        try:
            release = self._session.opened()
        except DpmpcError as error:
            self.abandon(error)
            raise
        return self._taken(release), release

    def _send(self, sealed: Sealed) -> None:
        self._check_open()
        assert self.next < self.plan.releases
        try:
            self.wait_for_noise()
            self.told()  # where nobody has asked for it
            for block, payloads in enumerate(frames_of(self._prepared, sealed)):
                self._session.send(self.next, block, payloads)
        except DpmpcError as error:
            self.abandon(error)
            raise

    def _check_open(self) -> None:
        if self._closed:
            raise UsageError("a closed courier makes no releases; this one is closed; make another")

    def report(self) -> dict[str, Any]:
        """The promise and everything it rests on: JSON values, as `Aggregator.report`."""
        return report_of(self.plan, self.bound, self.next, self.parties_lost)

    def costs(self) -> list[PartyCost]:
        """Every party's costs, after the last release."""
        self._check_open()
        return self._session.costs()

    def finish(self) -> list[PartyCost]:
        """Every party's costs, after the last release; closes the courier."""
        costs = self.costs()
        self._session.finish()
        self.abandon()
        return costs

    def close(self) -> None:
        """End the parties that were started here, and all connections."""
        if not self._closed and self.next >= self.plan.releases:
            with contextlib.suppress(PeerError):  # everything was opened already
                self.finish()
        self.abandon()

    def abandon(self, error: BaseException | None = None) -> None:
        """End everything at once; parties elsewhere are told why, as far as it is public. May be called twice."""
        if not self._closed:
            self._closed = True
            self._session.abandon(error)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.abandon(error)
