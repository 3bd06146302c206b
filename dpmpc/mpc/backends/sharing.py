"""Secret sharing with an honest majority: vectors as Shamir shares over F_p, p = 2^61 - 1; noise by Boolean circuits on
replicated shares over F_2, converted. Semi-honest, 2t < n."""

import math

import numpy as np

from dpmpc.circuits.program import Program
from dpmpc.circuits.sampler import Sampler, lanes_for
from dpmpc.circuits.trace import evaluate
from dpmpc.errors import UsageError
from dpmpc.mpc import field
from dpmpc.mpc.backend import Counts, Ints
from dpmpc.mpc.backends.seeded import SeededDealer, SeededShares, payload_bytes
from dpmpc.mpc.backends.shares import WORD
from dpmpc.mpc.engines.counting import CountingBatch
from dpmpc.mpc.engines.counting_fixed import CountingFixed
from dpmpc.mpc.engines.counting_owners import count_owner_checks
from dpmpc.mpc.engines.owner_norms import NormCheck
from dpmpc.mpc.engines.sharing import SharingBatch
from dpmpc.mpc.engines.sharing_fixed import SharedFixed
from dpmpc.mpc.field import Words
from dpmpc.mpc.link import Observe
from dpmpc.mpc.outliving import enough
from dpmpc.mpc.owner_checks import NORMS, SHARES, Found, OwnerTest, check_possible
from dpmpc.mpc.reopening import ReopeningSession
from dpmpc.mpc.session import check_threshold

MOST_PARTS = 500  # the pairs of parts, whose products each AND takes, are listed ahead: with more that takes minutes


class SharingHolder(SeededShares, ReopeningSession):
    """A party's end; a share is an array of field elements (dimension,)."""

    async def here(self, channel: int) -> None:
        await self.open(self.zero(1), channel)

    async def noise(self, sampler: Sampler, channel: int, count: int) -> Words:
        with self.needing_all():
            return await self.draw(sampler, channel, count)

    async def draw(self, sampler: Sampler, channel: int, count: int) -> Words:
        """As `noise`, while all parties are there."""
        batch = SharingBatch(self, channel, lanes_for(sampler, count))
        values = await sampler.circuit(batch, SharedFixed(batch) if sampler.uses_fixed else None)
        return less_offset(values.reshape(-1)[:count], sampler.offset)

    async def open(self, share: Words, channel: int) -> Ints:
        return field.to_int64(await self.open_from_left(share, channel))

    async def inspect(self, rows: list[Words], test: OwnerTest, channel: int) -> Found:
        with self.needing_all():
            return await NormCheck(self, channel, test).run(rows)


class Sharing:
    """See the module."""

    name = "sharing"
    resumes = True
    largest = (field.P - 1) // 2

    def threshold(self, parties: int) -> int:
        return (parties - 1) // 2

    def check(self, parties: int, threshold: int) -> None:
        check_threshold(parties, threshold)
        if (parts := math.comb(parties - 1, threshold)) > MOST_PARTS:
            raise UsageError(
                f"a replicated share has comb(n - 1, t) parts, at most {MOST_PARTS}; with n = {parties} and "
                f"t = {threshold} there are {parts:,}; use --backend shamir, or a smaller -T"
            )

    def spare(self, parties: int, threshold: int) -> int:
        """All but t + 1 and more than half."""
        return parties - enough(parties, threshold)

    def owner_checks(self, parties: int, threshold: int) -> tuple[str, ...]:
        check_possible(threshold)
        return SHARES, NORMS

    def count_owner_checks(self, test: OwnerTest, parties: int, threshold: int) -> tuple[Counts, ...]:
        return count_owner_checks(test, parties, threshold)

    def dealer(self, parties: int, threshold: int) -> SeededDealer:
        return SeededDealer(parties, threshold)

    def payload_bytes(self, parties: int, threshold: int, owners: int, dimension: int) -> tuple[int, ...]:
        return payload_bytes(parties, threshold, owners * dimension)

    def holder(
        self, party: int, parties: int, threshold: int, run_id: bytes, observe: Observe | None = None
    ) -> SharingHolder:
        return SharingHolder(party, parties, threshold, run_id, observe)

    def drawn(self, sampler: Sampler, parties: int, threshold: int, samples: int, failure: float) -> Sampler:
        return sampler

    def count_noise(self, sampler: Sampler, count: int, parties: int, threshold: int) -> Counts:
        batch, fixed = _counted(sampler, count, parties, threshold)
        # of the one conversion a lane, see circuits.convert
        hiding = 2.0 ** (-field.BITS * batch.masks) if batch.masks else 0.0
        return Counts(
            rounds=batch.rounds,
            bytes_sent=tuple(batch.bytes_sent),
            messages_sent=tuple(batch.messages_sent),
            sample={
                "ands": batch.ands * batch.lanes // max(count, 1),
                "random bits": batch.random_bits * batch.lanes // max(count, 1),
            },
            distance=batch.lanes * (fixed.distance if fixed is not None else hiding),
        )

    def count_opening(self, dimension: int, parties: int, threshold: int) -> Counts:
        sent = (threshold * WORD * dimension,) * parties
        return Counts(int(parties > 1), sent, (threshold,) * parties)


def _counted(sampler: Sampler, count: int, parties: int, threshold: int) -> tuple[CountingBatch, CountingFixed | None]:
    batch = CountingBatch(lanes_for(sampler, count), parties, threshold)
    fixed = CountingFixed(batch) if sampler.uses_fixed else None
    evaluate(sampler.circuit(batch, fixed))
    return batch, fixed


def programs_of(sampler: Sampler, count: int, parties: int, threshold: int) -> list[Program]:
    """The programs that the parties run to draw `count` samples, in order."""
    return _counted(sampler, count, parties, threshold)[0].programs


def less_offset(values: Words, offset: int) -> Words:
    """Shares of value - offset: a public constant is its own share at every party."""
    return field.sub(values, np.full(1, offset % field.P, dtype=np.uint64)) if offset else values


SHARING = Sharing()
