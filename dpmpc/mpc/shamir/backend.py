"""Shamir sharing among many parties: vectors and noise as shares over F_p, p = 2^61 - 1, 2t < n <= 32. Semi-honest.

Noise comes from arithmetic circuits (`circuits.field_sampler`) on the engine `engine`, under keys that each two
parties agree on. A replicated share has comb(n - 1, t) parts; a Shamir share is one number whatever n is.
"""

from pathlib import Path

from dpmpc.circuits.deep import Deep
from dpmpc.circuits.field_sampler import FEW, FieldSampler
from dpmpc.circuits.sampler import Sampler, is_over_field
from dpmpc.errors import UsageError
from dpmpc.mpc.contract.backend import Counts, Holder, Ints, count_here
from dpmpc.mpc.contract.owner_checks import SHARES, FailedOwners, OwnerTest, check_possible
from dpmpc.mpc.contract.seeded import SeededDealer, SeededShares, payload_bytes
from dpmpc.mpc.contract.shares import WORD
from dpmpc.mpc.numbers import domains, field
from dpmpc.mpc.numbers.field import Words
from dpmpc.mpc.owner_checks.checks import DealtCheck
from dpmpc.mpc.owner_checks.counts import count_shares
from dpmpc.mpc.parties.loss_tolerance import LossTolerantMesh, enough
from dpmpc.mpc.parties.mesh import CONNECT_SECONDS, Channel, Mesh
from dpmpc.mpc.parties.opening import open_from_any
from dpmpc.mpc.replicated.pace import MESSAGE_SECONDS, hopeless
from dpmpc.mpc.shamir.burnt import Burnt
from dpmpc.mpc.shamir.counts import CountingArithmetic, count_circuit
from dpmpc.mpc.shamir.engine import CHUNK, ManyEngine
from dpmpc.mpc.shamir.layout import MOST_PARTIES, ManyLayout
from dpmpc.mpc.shamir.pace import sharing_seconds
from dpmpc.mpc.shamir.pair_keys import BatchStreams, PairKeys, agree
from dpmpc.mpc.transport.link import Link, Observe

VERSION = 2  # of the protocol and the order of its streams
BATCH = 1 << 13  # samples that share their rounds: two batches under way take below 100 MB
_BATCHES = 1 << 20  # of one channel, at most


def field_sampler(sampler: Sampler) -> FieldSampler:
    """How the sampler is drawn over F_p. Errors: UsageError for one that has no arithmetic circuit."""
    if not is_over_field(sampler):
        raise UsageError(
            "the backend shamir draws samplers that have an arithmetic circuit, as those of tables have; got the "
            f"sampler {sampler.name}; choose another <<sampler>> of the law, or <<backend=sharing>>",
            code="choice",
        )
    return FieldSampler(sampler)


def batch_sizes(samples: int) -> list[int]:
    """The samples of each batch of a draw: as equal as can be."""
    number = -(-samples // BATCH)
    return [(k + 1) * samples // number - k * samples // number for k in range(number)]


def count_batch(sampler: FieldSampler, samples: int, parties: int, threshold: int) -> CountingArithmetic:
    """What one batch costs, exactly."""
    lanes = sampler.lanes(samples)
    return count_circuit(lambda engine: sampler.circuit(engine, samples), lanes, parties, threshold)


class ManyHolder(SeededShares, Mesh):
    """A party's keys, and noise under them; a share is an array of field elements (dimension,)."""

    kind: str  # of protocol: parties of two kinds have no keys in common

    def __init__(self, party: int, parties: int, threshold: int, run_id: bytes, observe: Observe | None = None) -> None:
        super().__init__(party, parties, run_id, observe)
        self.threshold = threshold
        self.layout = ManyLayout.of(parties, threshold)
        self.burnt = Burnt(None)
        self._keys: PairKeys | None = None

    def remember(self, folder: Path) -> None:
        """Epochs and batches are burnt in a file there from now on."""
        self.burnt = Burnt(folder / f"used_{self.party}.txt")

    async def connect(self, link: Link, digest: bytes = bytes(32), *, seconds: float = CONNECT_SECONDS) -> None:
        """As `Mesh.connect`; then each two parties agree on a key. Without TLS these messages could be changed under
        way: loopback only."""
        await super().connect(link, digest, seconds=seconds)
        parameters = (VERSION, self.kind, BATCH, CHUNK, FEW, Deep(), self.parties, self.threshold)
        everything = domains.PARAMETERS.digest(self.kind, value=digest + repr(parameters).encode())
        self._keys = await agree(self, self.threshold, self.burnt, everything)

    async def open(self, share: Words, channel: int) -> Ints:
        raise NotImplementedError

    async def draw(self, sampler: Sampler, channel: int, count: int) -> Words:
        """See `Holder.noise`."""
        assert self._keys is not None, "noise is made between connected parties"
        chosen, link = field_sampler(sampler), self.channel(channel)
        parts = []
        for k, samples in enumerate(batch_sizes(count)):
            with self._keys.batch(channel * _BATCHES + k) as streams:
                values = await self.batch(chosen, samples, link, k, streams)
            parts.append(values.reshape(-1)[:samples])
        return self.join(parts) if parts else self.zero(0)

    async def batch(
        self, sampler: FieldSampler, samples: int, channel: Channel, number: int, streams: BatchStreams
    ) -> Words:
        """The shares of at least so many samples, of the channel's batch of this number."""
        raise NotImplementedError


class ShamirHolder(ManyHolder, LossTolerantMesh):
    """A party's end."""

    kind = "semi-honest"

    def __init__(self, party: int, parties: int, threshold: int, run_id: bytes, observe: Observe | None = None) -> None:
        super().__init__(party, parties, threshold, run_id, observe)
        self._products: dict[tuple[Sampler, int], int] = {}

    async def noise(self, sampler: Sampler, channel: int, count: int) -> Words:
        with self.needing_all():
            return await self.draw(sampler, channel, count)

    async def batch(
        self, sampler: FieldSampler, samples: int, channel: Channel, number: int, streams: BatchStreams
    ) -> Words:
        """See `ManyHolder.batch`."""
        products = self._planned(sampler, samples)
        engine = ManyEngine(self.party, channel, self.layout, streams, sampler.lanes(samples), products)
        values: Words = await sampler.circuit(engine, samples)
        return values

    def _planned(self, sampler: FieldSampler, samples: int) -> int:
        """Products of a batch."""
        key = sampler.sampler, samples
        if key not in self._products:
            cost = count_batch(sampler, samples, self.parties, self.threshold)
            self._products[key] = cost.products * cost.lanes
        return self._products[key]

    async def open(self, share: Words, channel: int) -> Ints:
        self.check_needed()
        return field.to_int64(await open_from_any(self, self.threshold, share, channel))

    async def inspect(self, rows: list[Words], test: OwnerTest, channel: int) -> FailedOwners:
        with self.needing_all():
            return await DealtCheck(self, self.threshold, channel, test).run(rows)


class Shamir:
    """See the module."""

    name = "shamir"
    resumes = True
    largest = (field.P - 1) // 2

    def threshold(self, parties: int) -> int:
        return (parties - 1) // 2 if parties >= 3 else -1  # with t = 0 a share is the secret

    def check(self, parties: int, threshold: int) -> None:
        if parties > MOST_PARTIES and 1 <= threshold and 2 * threshold < parties:
            raise UsageError(
                f"noise is made by {MOST_PARTIES} parties at most; with <<parties={parties}>> "
                f"<<threshold={threshold}>> only replicated "
                f"sharing is left, with which {hopeless(parties, threshold)}; mend <<parties>>"
            )
        ManyLayout.of(parties, threshold)

    def spare(self, parties: int, threshold: int) -> int:
        """All but t + 1 and more than half."""
        return parties - enough(parties, threshold)

    def owner_checks(self, parties: int, threshold: int) -> tuple[str, ...]:
        check_possible(threshold)
        return (SHARES,)

    def count_owner_checks(self, test: OwnerTest, parties: int, threshold: int) -> tuple[Counts, ...]:
        return (count_shares(test, parties, threshold, dealt=True).counts(),)

    def dealer(self, parties: int, threshold: int) -> SeededDealer:
        return SeededDealer(parties, threshold)

    def payload_bytes(self, parties: int, threshold: int, owners: int, dimension: int) -> tuple[int, ...]:
        return payload_bytes(parties, threshold, owners * dimension)

    def holder(
        self, party: int, parties: int, threshold: int, run_id: bytes, observe: Observe | None = None
    ) -> Holder[Words]:
        return ShamirHolder(party, parties, threshold, run_id, observe)

    def drawn(self, sampler: Sampler, parties: int, threshold: int, samples: int, failure: float) -> Sampler:
        return sampler

    def counted(self, sampler: FieldSampler, samples: int, parties: int, threshold: int) -> CountingArithmetic:
        """What one batch costs, exactly."""
        return count_batch(sampler, samples, parties, threshold)

    def count_noise(self, sampler: Sampler, count: int, parties: int, threshold: int) -> Counts:
        """Exact but for bits drawn again, one in 2^61. `distance` is what shared deep bits may cost the joint law of
        all samples; views alone are told apart by nobody."""
        chosen = field_sampler(sampler)
        sizes = batch_sizes(count)
        costs = {size: self.counted(chosen, size, parties, threshold) for size in set(sizes)}
        total = Counts(distance=count * chosen.group)
        for size in sizes:
            cost = costs[size]
            total += Counts(cost.exchanges, tuple(cost.bytes_sent), tuple(cost.messages_sent))
        gates = {
            "products": sum(costs[size].products * costs[size].lanes for size in sizes),
            "random bits": sum(costs[size].random_bits_drawn * costs[size].lanes for size in sizes),
        }
        return Counts(
            total.rounds,
            total.bytes_sent,
            total.messages_sent,
            {kind: number // max(count, 1) for kind, number in gates.items()},
            total.distance,
        )

    def noise_seconds(self, sampler: Sampler, count: int, parties: int, threshold: int, cost: Counts) -> float:
        """Sharings at this machine's pace, and messages."""
        sharings = count * sum(cost.sample.values())
        messages = max(cost.messages_sent, default=0)
        return sharings * sharing_seconds(parties, threshold) + messages * MESSAGE_SECONDS

    def count_barrier(self, said: int, parties: int) -> Counts:
        return count_here(said, parties)

    def count_opening(self, dimension: int, parties: int, threshold: int) -> Counts:
        sent = ((parties - 1) * WORD * dimension,) * parties
        return Counts(1, sent, (parties - 1,) * parties)


SHAMIR = Shamir()
