"""Secret sharing with an honest majority: vectors as Shamir shares over F_p, p = 2^61 - 1; noise by Boolean circuits on
replicated shares over F_2, converted. Semi-honest, 2t < n."""

from typing import Any

import numpy as np

from dpmpc.circuits.sampler import Sampler, lanes_for
from dpmpc.mpc import field
from dpmpc.mpc.backend import Counts, Ints
from dpmpc.mpc.backends.shares import WORD, ShamirDealer, ShamirShares
from dpmpc.mpc.engines.clear import evaluate
from dpmpc.mpc.engines.counting import CountingEngine
from dpmpc.mpc.engines.counting_fixed import CountingFixed
from dpmpc.mpc.engines.sharing import SharingEngine
from dpmpc.mpc.engines.sharing_fixed import SharedFixed
from dpmpc.mpc.field import Words
from dpmpc.mpc.link import Observe
from dpmpc.mpc.session import Session, check_threshold


class SharingHolder(ShamirShares, Session):
    """A party's end; a share is an array of field elements (dimension,)."""

    async def here(self, channel: int) -> None:
        await self.open(self.zero(1), channel)

    async def noise(self, sampler: Sampler, channel: int, count: int) -> Words:
        engine = SharingEngine(self, channel, lanes_for(sampler, count))
        values = await sampler.circuit(engine, SharedFixed(engine) if sampler.uses_fixed else None)
        return less_offset(values.reshape(-1)[:count], sampler.offset)

    async def open(self, share: Words, channel: Any) -> Ints:
        return field.to_int64(await self.open_words(share, self.channel(channel)))


class Sharing:
    """See the module."""

    name = "sharing"
    largest = (field.P - 1) // 2

    def threshold(self, parties: int) -> int:
        return (parties - 1) // 2

    def check(self, parties: int, threshold: int) -> None:
        check_threshold(parties, threshold)

    def dealer(self, parties: int, threshold: int) -> ShamirDealer:
        return ShamirDealer(parties, threshold)

    def payload_bytes(self, parties: int, threshold: int, owners: int, dimension: int) -> tuple[int, ...]:
        return (WORD * owners * dimension,) * parties

    def holder(
        self, party: int, parties: int, threshold: int, run_id: bytes, observe: Observe | None = None
    ) -> SharingHolder:
        return SharingHolder(party, parties, threshold, run_id, observe)

    def drawn(self, sampler: Sampler, parties: int, threshold: int, samples: int, failure: float) -> Sampler:
        return sampler

    def count_noise(self, sampler: Sampler, count: int, parties: int, threshold: int) -> Counts:
        engine = CountingEngine(lanes_for(sampler, count), parties, threshold)
        fixed = CountingFixed(engine) if sampler.uses_fixed else None
        evaluate(sampler.circuit(engine, fixed))
        masks = len(engine.layout.subsets) - 1
        hiding = 2.0 ** (-field.BITS * masks) if masks else 0.0  # of the one conversion a lane, see circuits.convert
        return Counts(
            rounds=engine.rounds,
            bytes_sent=tuple(engine.bytes_sent),
            messages_sent=tuple(engine.messages_sent),
            sample={
                "ands": engine.ands * engine.lanes // max(count, 1),
                "random bits": engine.random_bits_drawn * engine.lanes // max(count, 1),
            },
            distance=engine.lanes * (fixed.distance if fixed is not None else hiding),
        )

    def count_opening(self, dimension: int, parties: int, threshold: int) -> Counts:
        sent = (threshold * WORD * dimension,) * parties
        return Counts(int(parties > 1), sent, (threshold,) * parties)


def less_offset(values: Words, offset: int) -> Words:
    """Shares of value - offset: a public constant is its own share at every party."""
    return field.sub(values, np.full(1, offset % field.P, dtype=np.uint64)) if offset else values


SHARING = Sharing()
