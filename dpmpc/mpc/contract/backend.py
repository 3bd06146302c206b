"""A backend: who computes on shares of vectors, and how. The rest of the house knows vectors of integers.

A share is opaque to everybody but its backend: nobody else may look into it, slice it or send it. A new backend is one
module with the two classes below and an entry of `BACKENDS`, or an entry point of another package in the group
dpmpc.backends.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, NewType, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dpmpc.circuits.sampler import Sampler
from dpmpc.errors import PeerError
from dpmpc.lazy import dataclass
from dpmpc.mpc.transport.heartbeat import STALL
from dpmpc.mpc.transport.link import Connection, Link, Observe
from dpmpc.registry import Registry

Ints = NDArray[np.int64]
Share = NewType("Share", object)
"""Of a vector. What it is, is its backend's business: to everybody else it has no arithmetic, no length and no bytes,
which the type checker holds."""
S = TypeVar("S")  # what a backend's own shares are


@dataclass(frozen=True)
class Counts:
    """What something costs, exactly. Bytes without frame headers, and messages, by sending party."""

    rounds: int = 0
    bytes_sent: tuple[int, ...] = ()
    messages_sent: tuple[int, ...] = ()
    sample: dict[str, int] = field(default_factory=dict)  # by kind of gate (`ands`, `random bits`), for one sample
    distance: float = 0.0  # statistical: between the views that any allowed coalition has of two secrets, at most
    seconds: float | None = None  # about, for a backend so slow that it is said before a run; not exact

    def __add__(self, other: "Counts") -> "Counts":
        """Both, one after the other; gates of a sample do not add up."""
        return Counts(
            self.rounds + other.rounds,
            _sum(self.bytes_sent, other.bytes_sent),
            _sum(self.messages_sent, other.messages_sent),
            other.sample or self.sample,
            self.distance + other.distance,
            other.seconds if self.seconds is None else self.seconds + (other.seconds or 0.0),
        )

    def bytes_with_headers(self, header: int) -> list[int]:
        """By sending party; `header`: of a frame."""
        return [b + header * m for b, m in zip(self.bytes_sent, self.messages_sent, strict=True)]


def count_here(said: int, parties: int) -> Counts:
    """The cost of `Holder.here` with so many bytes: to each other party, in one exchange."""
    others = parties - 1
    return Counts(int(others > 0), (others * said,) * parties, (others,) * parties)


def _sum(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(x + y for x, y in zip(a, b, strict=True)) if a and b else a or b


class Holder(Protocol[S]):
    """One party's end: it holds shares. Made by `Backend.holder`, for one attempt of a run."""

    lost: "asyncio.Future[None]"  # fails with PeerError when another party leaves

    @property
    def party(self) -> int:
        """This party's number."""

    @property
    def threads(self) -> int:
        """Threads that this process computes on; 1 at first."""

    def use_threads(self, threads: int) -> None:
        """Computes on so many threads from now on."""

    @property
    def rounds(self) -> int:
        """Exchanges with other parties so far."""

    @property
    def bytes_sent(self) -> int:
        """To other parties so far, headers included."""

    @property
    def bytes_received(self) -> int:
        """From other parties so far, headers included."""

    @property
    def frames_sent(self) -> int:
        """To other parties so far."""

    async def connect(self, link: Link, digest: bytes, *, seconds: float) -> None:
        """Connect with the other parties; `digest` binds all public parameters. Errors: as `Link.connect`."""

    async def here(self, channel: int, said: bytes = b"") -> None:
        """Returns when all parties have come to this point and have said the same. One exchange. Errors: PeerError for
        one that says something else."""

    async def stand(self, share: S, said: bytes, channel: int) -> None:
        """The barrier before an opening: returns when all parties are as far, for `said`, with the shares that they are
        to open on this channel; from then on no share can be chosen by what others open. Whoever may be lost is not
        waited for. Cost: `Backend.count_barrier`."""

    def collect(self, payload: bytes | bytearray, owners: int, dimension: int) -> S:
        """The share of the sum of `owners` vectors (dimension,), from what a `Dealer` made for this party. No message.

        Errors: PeerError for a payload of another size or with values that no share has.
        """

    def zero(self, dimension: int) -> S:
        """The share of the zero vector."""

    def add(self, a: S, b: S) -> S:
        """The share of the sum of two vectors. No message."""

    async def noise(self, sampler: Sampler, channel: int, count: int) -> S:
        """The share of a vector of `count` fresh samples that nobody knows. `channel`: used once, the same at all
        parties. Cost: `Backend.count_noise`."""

    def kept(self, share: S, places: NDArray[np.bool_]) -> S:
        """The share of the vector with 0 wherever `places` (dimension,) is False; of `Inspects.rows`, places are
        (owners, dimension). No message."""

    def cut(self, share: S, dimension: int) -> list[S]:
        """The share of a long vector, cut into shares of vectors (dimension,)."""

    def join(self, shares: Sequence[S]) -> S:
        """The inverse of `cut`, for shares of any lengths."""

    async def open(self, share: S, channel: int) -> Ints:
        """The vector itself, (dimension,); everybody learns it. Cost: `Backend.count_opening`."""

    def fingerprint(self, share: S) -> str:
        """A digest of this party's share, for its transcript. The share looks uniform to everybody else."""

    def connections(self) -> Mapping[Connection, int]:
        """The connections with other parties, and whose they are."""

    async def close(self, seconds: float = STALL) -> list[int]:
        """Agree with the others that the run is over, then leave. The parties that did not say so: they have left, or
        were silent for so many seconds; everything was opened, and nobody waits for them any longer."""

    def abandon(self) -> None:
        """Leave at once; the others will notice."""


@runtime_checkable
class Gathers(Protocol[S]):
    """A holder that puts shares into a longer one as they are made: nothing is held twice."""

    def zero(self, dimension: int) -> S:
        """As `Holder.zero`, in memory of its own."""

    def put(self, whole: S, at: int, share: S) -> None:
        """Puts a share into `whole`, from coordinate `at` on."""


@runtime_checkable
class Remembers(Protocol):
    """A holder that notes on disk what it has used up, where a run of its own may be started again."""

    def remember(self, folder: Path) -> None:
        """Where to keep the notes; called once, before `Holder.connect`. Errors: UsageError for unreadable ones."""


@runtime_checkable
class Resumes(Protocol):
    """A backend whose holders are `Renewed`."""

    resumes: bool  # whether a run on several machines can be carried on


@runtime_checkable
class Renewed(Protocol):
    """A holder that binds its keys and streams to `run_id` as it is when its link has connected: the parties agree on
    the attempt only when they meet."""

    run_id: bytes


@runtime_checkable
class ToleratesLoss(Protocol):
    """A holder that goes on without some parties, once it is told that all noise is made."""

    gone: dict[int, PeerError]  # parties that have left, and why
    on_gone: Callable[[int, PeerError], None]  # hears of each

    def tolerate_loss(self) -> None:
        """From now on the loss of a party that is not needed does not end the run."""


class Dealer(Protocol):
    """The owners' end: makes shares of their vectors with randomness of the operating system."""

    def deal(self, vectors: Ints) -> list[Any]:
        """One payload a party, of the vectors (k, d): buffers to send as they are. Secret from all but that party."""


@runtime_checkable
class Spares(Protocol):
    """A backend whose sums can be opened without some of the parties."""

    def spare(self, parties: int, threshold: int) -> int:
        """How many parties may leave once noise is made."""


@runtime_checkable
class Hides(Protocol):
    """A backend that knows what its noise leaves unhidden without counting its messages, which takes longer."""

    def hiding(self, sampler: Sampler, count: int, parties: int, threshold: int) -> float:
        """`Backend.count_noise(...).distance`."""


@runtime_checkable
class Paced(Protocol):
    """A backend that can say how long its noise takes a party of this machine."""

    def noise_seconds(self, sampler: Sampler, count: int, parties: int, threshold: int, cost: Counts) -> float | None:
        """Seconds of one core, about, for a draw of `count` samples whose counted cost is `cost`; None: not known."""


@runtime_checkable
class Batches(Protocol):
    """A backend that says how many samples share their rounds."""

    def batch_samples(self, sampler: Sampler, count: int, parties: int, threshold: int) -> int:
        """The samples of a batch of a draw of `count`, at most: more pay rounds less often, and take more memory."""


@runtime_checkable
class InBatches(Protocol):
    """A holder of a backend that `Batches`."""

    def batch_samples(self, sampler: Sampler, count: int) -> int:
        """As the backend says."""


@runtime_checkable
class Needs(Protocol):
    """A backend whose noise can take more than a machine has; it says so without counting, which may take long then."""

    def noise_needs(self, sampler: Sampler, count: int, parties: int, threshold: int) -> tuple[float, int] | None:
        """(seconds of one core, bytes) of a party, about, for one batch of `count` samples; None: not known."""


@runtime_checkable
class Backend(Protocol):
    """A way to compute on shares; it holds no state."""

    name: str  # on the command line and in plans
    largest: int  # an opened number lies in -largest .. largest

    def threshold(self, parties: int) -> int:
        """The largest number of parties that may put together what they see, by default."""

    def check(self, parties: int, threshold: int) -> None:
        """Errors: UsageError for a number of parties or a threshold that this backend cannot do."""

    def dealer(self, parties: int, threshold: int) -> Dealer:
        """The owners' end."""

    def payload_bytes(self, parties: int, threshold: int, owners: int, dimension: int) -> tuple[int, ...]:
        """The sizes, by party, of what `Dealer.deal` makes of so many vectors."""

    def holder(
        self, party: int, parties: int, threshold: int, run_id: bytes, observe: Observe | None = None
    ) -> Holder[Share]:
        """A party's end. `observe` sees every frame between parties. Needs a running event loop."""

    def drawn(self, sampler: Sampler, parties: int, threshold: int, samples: int, failure: float) -> Sampler:
        """The sampler as this backend draws it in a run of so many samples, whose openings may fail by `failure`
        together: itself, or one of the same law and scale with a certificate of its own."""

    def count_noise(self, sampler: Sampler, count: int, parties: int, threshold: int) -> Counts:
        """The cost of `Holder.noise`, exactly."""

    def count_barrier(self, said: int, parties: int) -> Counts:
        """The cost of `Holder.stand` with so many bytes, exactly, on the channel `BARRIER` of its own; none where the
        opening's own channel has it."""

    def count_opening(self, dimension: int, parties: int, threshold: int) -> Counts:
        """The cost of `Holder.open`, exactly."""


BACKENDS: Registry[Backend] = Registry(
    "backend",
    "dpmpc.backends",
    {
        "sharing": "dpmpc.mpc.replicated.backend:SHARING",
        "checked": "dpmpc.mpc.checked.backend:CHECKED",
        "shamir": "dpmpc.mpc.shamir.backend:SHAMIR",
        "shamir-checked": "dpmpc.mpc.shamir_checked.backend:SHAMIR_CHECKED",
        "mpyc": "dpmpc.mpc.mpyc.backend:MPYC",
        "ot": "dpmpc.mpc.two_servers.backend:OT",
        "ot-k1": "dpmpc.mpc.two_servers.backend:OT_1",
        "ot-k2": "dpmpc.mpc.two_servers.backend:OT_2",
        "ot-k8": "dpmpc.mpc.two_servers.backend:OT_8",
        "garbled": "dpmpc.mpc.two_servers.backend:GARBLED",
    },
    lambda thing: isinstance(thing, Backend),
)
DEFAULT = "sharing"
FOR_TWO = "ot"  # two parties have no honest majority
FOR_MANY = "shamir"  # where replicated shares have too many parts
GARBLED = "garbled"  # of two parties too, in a constant number of rounds
CHECKED = {"sharing": "checked", "shamir": "shamir-checked"}  # by backend: the same, and its parties are checked
BY_LEVEL = {2: "ot-k2", 4: FOR_TWO, 8: "ot-k8"}  # by the k of its transfers' trees, of 2^k leaves
