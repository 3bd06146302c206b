"""What a Flower server does with sealed shares: carries them to the parties, and brings back the noisy mean."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from dpmpc.aggregation.owner.accounts import NO_BOOKS, Books
from dpmpc.aggregation.owner.aggregator import ByOneSession
from dpmpc.aggregation.owner.company import company_of
from dpmpc.aggregation.owner.opens_sums import Release
from dpmpc.aggregation.owner.session import Connected
from dpmpc.aggregation.plan.asked import FIRST_ATTEMPT
from dpmpc.aggregation.plan.grid import Floats
from dpmpc.aggregation.plan.here import HERE, Here
from dpmpc.errors import DpmpcError
from dpmpc.flower.gate import frames_of
from dpmpc.flower.party import ROLE
from dpmpc.flower.prepared import Prepared
from dpmpc.mpc.transport.addresses import Endpoint
from dpmpc.privacy.heads import NAME

Sealed = Mapping[int, Sequence[bytes]]  # by owner, the sealed share of each party


class Courier(ByOneSession):
    """Opens the sums of vectors that it never sees (`OpensSums`): what the owners have sealed."""

    called = "courier"
    session: Connected

    def __init__(self, prepared: Prepared, session: Connected) -> None:
        super().__init__(prepared.plan)
        self._prepared, self.session = prepared, session
        self._told: tuple[int, list[bytes]] = -1, []  # of a release: what each party remembers of owners' accounts

    @classmethod
    def between(
        cls,
        prepared: Prepared,
        keys: Path | None,
        here: Here = HERE,
        *,
        addresses: Sequence[Endpoint] | None = None,
        books: Books = NO_BOOKS,
        **role: Any,
    ) -> Self:
        """A courier to parties elsewhere, at `addresses`, which carry on what was interrupted; or to parties of this
        machine, which read their keys from the folder `keys`. `role`: as of `LocalParties`, for tests."""
        plan = prepared.plan
        attempt = FIRST_ATTEMPT if addresses is None else plan.attempt
        if addresses is None:
            role = {"role": ROLE, **role, "extra": {"prepared": prepared.to_text(), "keys": str(keys)}}
        company = company_of(plan, attempt, here, addresses=addresses, books=books, **role)
        return cls(prepared, Connected(plan, company, (0, plan.owners), attempt, here))

    @property
    def token(self) -> str:
        """Of the attempt, which its parties drew when it began; waits until they have met and have their noise."""
        self.wait_for_noise()
        return self.session.token

    def told(self) -> list[bytes]:
        """What each party remembers of owners' accounts before the next release, as clients are to hear it (`heads`);
        nothing where the plan's data has no name. Errors: PeerError when a party leaves."""
        if self._prepared.shows_heads and self._told[0] != self.session.next:
            self.wait_for_noise()
            self._told = self.session.next, self.session.told(self.session.next, NAME * self.plan.owners)
        return self._told[1]

    def wait_for_noise(self) -> None:
        """Returns when the parties have the noise that they make ahead."""
        self.session.ready()

    def catch_up(self) -> list[Release]:
        """The releases that an interrupted run has opened; see `past`."""
        return [release for _, release in self.past().values()]

    def past(self) -> dict[int, tuple[Floats, Release]]:
        """(mean (d,), release) of every release that an interrupted run has opened, by number; those below `next` that
        are not in it are lost. To be called before the first release."""
        self._check_open()
        self.wait_for_noise()
        return {release.number: (self._taken(release), release) for release in self.session.missed()}

    def skip(self) -> None:
        """The next release is lost, though its number may have been sealed for: the parties make it no more, and it
        spends nothing. Errors: PeerError when a party leaves."""
        self._send({})
        self.session.next += 1

    def open(self, vectors: Sealed) -> Release:
        """The next release of the owners' vectors, as they sealed them. Errors: PeerError when a party leaves, or too
        few owners' shares open; then this is closed."""
        return self.deliver(vectors)[1]

    def deliver(self, sealed: Sealed) -> tuple[Floats, Release]:
        """(the noisy mean (d,) of the owners' vectors, the release): as `open`."""
        assert len(sealed) >= self.plan.fewest
        self._send(sealed)
        try:
            release = self.session.opened()
        except DpmpcError as error:
            self.abandon(error)
            raise
        return self._taken(release), release

    def _send(self, sealed: Sealed) -> None:
        self._check_open()
        assert self.session.next < self.plan.releases
        try:
            self.wait_for_noise()
            self.told()  # where nobody has asked for it
            for block, payloads in enumerate(frames_of(self._prepared, sealed)):
                self.session.send(self.session.next, block, payloads)
        except DpmpcError as error:
            self.abandon(error)
            raise
