"""Two servers without a third: vectors as additive shares over F_p, p = 2^61 - 1. Semi-honest, either server alone.

What the backends of two servers have in common. Owners deal v as (r, v - r); servers add up; an opening is one message
each way. How the two make noise is the backend's own.
"""

from typing import Any

import numpy as np

from dpmpc.circuits.sampler import Sampler
from dpmpc.errors import PeerError, UsageError
from dpmpc.mpc import field
from dpmpc.mpc.backend import Counts, Ints
from dpmpc.mpc.backends.shares import WORD, FieldShares
from dpmpc.mpc.field import Words
from dpmpc.mpc.ot.pair import Pair
from dpmpc.mpc.prg import Prg

SERVERS = 2


class TwoServersHolder(FieldShares, Pair):
    """A server's end; a share is an array of field elements (dimension,)."""

    async def here(self, channel: int) -> None:
        await self.open(self.zero(1), channel)

    async def open(self, share: Words, channel: int) -> Ints:
        flat = np.ascontiguousarray(share)
        (theirs,) = await self.channel(channel).words({self.other: flat}, [self.other], flat.size)
        if theirs.max(initial=0) >= field.P:
            raise PeerError(
                f"party {self.other} must send shares below p = 2^61 - 1; larger ones came; are all parties of one "
                "version?"
            )
        return field.to_int64(field.add(flat, theirs))


class AdditiveDealer:
    """Additive shares of integer vectors: a uniform one for server 0, the difference for server 1."""

    def __init__(self) -> None:
        self._prg = Prg.from_os()

    def deal(self, vectors: Ints) -> list[Any]:
        values = field.from_int64(vectors)
        first = field.uniform(self._prg, values.shape)
        return [memoryview(row).cast("B") for row in np.stack([first, field.sub(values, first)])]


class TwoServers:
    """What backends of two servers answer alike."""

    name = ""
    resumes = True
    largest = (field.P - 1) // 2

    def threshold(self, parties: int) -> int:
        return 1 if parties == SERVERS else -1

    def check(self, parties: int, threshold: int) -> None:
        if parties != SERVERS:
            raise UsageError(
                f"--backend {self.name} is for 2 parties; got {parties}; use -M 2, or --backend sharing for more"
            )
        if threshold != 1:
            raise UsageError(
                f"with --backend {self.name} either of the 2 parties learns nothing alone: t = 1; got t = {threshold}; "
                "leave -T out, or use --backend sharing -T 0, which hides nothing from either"
            )

    def dealer(self, parties: int, threshold: int) -> AdditiveDealer:
        return AdditiveDealer()

    def drawn(self, sampler: Sampler, parties: int, threshold: int, samples: int, failure: float) -> Sampler:
        return sampler

    def payload_bytes(self, parties: int, threshold: int, owners: int, dimension: int) -> tuple[int, ...]:
        return (WORD * owners * dimension,) * parties

    def count_opening(self, dimension: int, parties: int, threshold: int) -> Counts:
        return Counts(1, (WORD * dimension,) * parties, (1,) * parties)
