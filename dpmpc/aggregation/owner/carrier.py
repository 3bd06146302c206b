"""Who opens the sums of vectors that it never sees: owners elsewhere have sealed a share for each party, and this
process carries them there, release after release."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from dpmpc.aggregation.owner.aggregator import ByOneSession
from dpmpc.aggregation.owner.opens_sums import Release
from dpmpc.aggregation.owner.session import Connected
from dpmpc.errors import DpmpcError, UsageError

Sealed = Mapping[int, Sequence[bytes]]  # by owner, the sealed share of each party
Frames = Callable[[Sealed], Iterator[Sequence[bytes]]]  # how they travel: blocks of one payload a party


class Carrier(ByOneSession):
    """Opens the sums of what the owners have sealed (`OpensSums`)."""

    called = "courier"
    session: Connected

    def __init__(self, session: Connected, frames: Frames, heads: int = 0) -> None:
        """`heads`: bytes of what each party tells clients before a release that it remembers of their accounts; 0 where
        it tells nothing."""
        super().__init__(session.plan)
        self.session, self._frames, self._heads = session, frames, heads
        self._told: tuple[int, list[bytes]] = -1, []  # of a release

    @property
    def token(self) -> str:
        """Of the attempt, which its parties drew when it began; waits until they have met and have their noise."""
        self.wait_for_noise()
        return self.session.token

    def told(self) -> list[bytes]:
        """What each party remembers of owners' accounts before the next release, as clients are to hear it; nothing
        where none is told. Errors: PeerError when a party leaves."""
        if self._heads and self._told[0] != self.session.next:
            self.wait_for_noise()
            self._told = self.session.next, self.session.told(self.session.next, self._heads)
        return self._told[1]

    def wait_for_noise(self) -> None:
        """Returns when the parties have the noise that they make ahead."""
        self.session.ready()

    def catch_up(self) -> list[Release]:
        """The releases that an interrupted run has opened; those below `next` that are not among them are lost. To be
        called before the first release."""
        self._check_open()
        self.wait_for_noise()
        return list(self.session.missed())

    def skip(self) -> None:
        """The next release is lost, though its number may have been sealed for: the parties make it no more, and it
        spends nothing. Errors: PeerError when a party leaves."""
        self._send({})
        self.session.next += 1

    def open(self, vectors: Sealed) -> Release:
        """The next release of the owners' vectors, as they sealed them. Errors: fewer owners than a release has;
        PeerError when a party leaves, or too few owners' shares open; then this is closed."""
        if len(vectors) < self.plan.fewest:
            raise UsageError(
                f"a release has {self.plan.fewest} owners at least; {len(vectors)} have sealed; skip it", code="enough"
            )
        self._send(vectors)
        try:
            return self.session.opened()
        except DpmpcError as error:
            self.abandon(error)
            raise

    def _send(self, sealed: Sealed) -> None:
        self._check_left()
        try:
            self.wait_for_noise()
            self.told()  # where nobody has asked for it
            for block, payloads in enumerate(self._frames(sealed)):
                self.session.send(self.session.next, block, payloads)
        except DpmpcError as error:
            self.abandon(error)
            raise
