"""Secret sharing with an honest majority: vectors as Shamir shares over F_p, p = 2^61 - 1; noise by Boolean circuits on
replicated shares over F_2, converted. Semi-honest, 2t < n."""

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from dpmpc.circuits.sampler import Sampler, lanes_for
from dpmpc.errors import PeerError
from dpmpc.mpc import field
from dpmpc.mpc.backend import Counts, Ints
from dpmpc.mpc.engines.clear import evaluate
from dpmpc.mpc.engines.counting import CountingEngine
from dpmpc.mpc.engines.counting_fixed import CountingFixed
from dpmpc.mpc.engines.sharing import SharingEngine
from dpmpc.mpc.engines.sharing_fixed import SharedFixed
from dpmpc.mpc.field import Words
from dpmpc.mpc.link import Observe
from dpmpc.mpc.prg import Prg
from dpmpc.mpc.session import Session, check_threshold

WORD = 8  # bytes of a share of a number


class SharingHolder(Session):
    """A party's end; a share is an array of field elements (dimension,)."""

    async def here(self, channel: int) -> None:
        await self.open(self.zero(1), channel)

    def collect(self, payload: bytes | bytearray, owners: int, dimension: int) -> Words:
        if len(payload) != WORD * owners * dimension:
            raise PeerError(
                f"{owners} shares of {dimension} numbers have {WORD * owners * dimension} bytes; {len(payload)} came; "
                "are all processes of one version?"
            )
        shares = np.frombuffer(payload, dtype="<u8").reshape(owners, dimension)
        if shares.max(initial=0) >= field.P:
            raise PeerError("shares must be below p = 2^61 - 1; larger ones came; are all processes of one version?")
        return field.total(shares)

    def zero(self, dimension: int) -> Words:
        return np.zeros(dimension, dtype=np.uint64)

    def add(self, a: Words, b: Words) -> Words:
        return field.add(a, b)

    async def noise(self, sampler: Sampler, channel: int, count: int) -> Words:
        engine = SharingEngine(self, channel, lanes_for(sampler, count))
        values = await sampler.circuit(engine, SharedFixed(engine) if sampler.uses_fixed else None)
        return less_offset(values.reshape(-1)[:count], sampler.offset)

    def cut(self, share: Words, dimension: int) -> list[Words]:
        return list(share.reshape(-1, dimension))

    def join(self, shares: Sequence[Words]) -> Words:
        return np.concatenate(shares)

    async def open(self, share: Words, channel: Any) -> Ints:
        return field.to_int64(await self.open_words(share, self.channel(channel)))

    def fingerprint(self, share: Words) -> str:
        return hashlib.sha256(np.ascontiguousarray(share, dtype="<u8").tobytes()).hexdigest()


class SharingDealer:
    """Shamir shares of integer vectors."""

    def __init__(self, parties: int, threshold: int) -> None:
        self._parties, self._threshold = parties, threshold
        self._prg = Prg.from_os()

    def deal(self, vectors: Ints) -> list[Any]:
        shares = field.share(field.from_int64(vectors), self._parties, self._threshold, self._prg)
        return [memoryview(row).cast("B") for row in shares]


class Sharing:
    """See the module."""

    name = "sharing"
    largest = (field.P - 1) // 2

    def threshold(self, parties: int) -> int:
        return (parties - 1) // 2

    def check(self, parties: int, threshold: int) -> None:
        check_threshold(parties, threshold)

    def dealer(self, parties: int, threshold: int) -> SharingDealer:
        return SharingDealer(parties, threshold)

    def payload_bytes(self, parties: int, threshold: int, owners: int, dimension: int) -> tuple[int, ...]:
        return (WORD * owners * dimension,) * parties

    def holder(
        self, party: int, parties: int, threshold: int, run_id: bytes, observe: Observe | None = None
    ) -> SharingHolder:
        return SharingHolder(party, parties, threshold, run_id, observe)

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
