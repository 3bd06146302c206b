"""Two servers without a third: vectors as additive shares over F_p, p = 2^61 - 1. Semi-honest, either server alone.

What the backends of two servers have in common. Owners deal v as (r, v - r); servers add up. An opening is a promise
each way, then the shares: neither server chooses its own when it has seen the other's. How the two make noise is the
backend's own.
"""

import secrets
from typing import Any

import numpy as np

from dpmpc.circuits.sampler import Sampler
from dpmpc.errors import PeerError, UsageError
from dpmpc.mpc.contract.backend import Counts, Ints
from dpmpc.mpc.contract.shares import WORD, FieldShares
from dpmpc.mpc.numbers import domains, field
from dpmpc.mpc.numbers.field import Words
from dpmpc.mpc.numbers.prg import Prg
from dpmpc.mpc.parties.mesh import Channel
from dpmpc.mpc.transport.link import Observe
from dpmpc.mpc.two_servers.pair import ServerPair

SERVERS = 2
_SALT = 32  # bytes: no share can be tried out against a promise of it
_PROMISE = 32


class TwoServersHolder(FieldShares, ServerPair):
    """A server's end; a share is an array of field elements (dimension,)."""

    def __init__(self, party: int, k: int, run_id: bytes, observe: Observe | None = None) -> None:
        super().__init__(party, k, run_id, observe)
        self._promised: dict[int, tuple[Channel, bytes, bytes, bytes]] = {}  # channel, said, own salt, other's promise

    async def stand(self, share: Words, said: bytes, channel: int) -> None:
        """The barrier is the opening's first round: the promises of both shares."""
        self.still_on()
        link, salt = self.channel(channel), secrets.token_bytes(_SALT)
        mine = self._promise(self.party, channel, said, salt, share)
        (theirs,) = await link.exchange({self.other: mine}, [self.other])
        self._promised[channel] = link, said, salt, bytes(theirs)

    def _promise(self, party: int, channel: int, said: bytes, salt: bytes, share: Words) -> bytes:
        """SHA-256 of a share, of whose, for what, salted."""
        value = np.ascontiguousarray(share).data.cast("B")
        return domains.OPENING.digest(self.run_id, self.session, channel, party, said, salt, value=value)

    async def open(self, share: Words, channel: int) -> Ints:
        """As `Holder.open`; with its barrier, where there was none. Errors: CheatError for another share than the one
        that was promised."""
        self.still_on()
        if channel not in self._promised:
            await self.stand(share, b"", channel)
        link, said, salt, promise = self._promised.pop(channel)
        flat = np.ascontiguousarray(share)
        (payload,) = await link.exchange({self.other: b"".join((salt, flat.data.cast("B")))}, [self.other])
        if len(payload) != _SALT + flat.nbytes:
            raise PeerError(
                f"party {self.other} sent {len(payload)} bytes of an opening where {_SALT + flat.nbytes} were due; are "
                "all parties of one version?",
                code="message",
            )
        theirs = np.frombuffer(payload, dtype="<u8", offset=_SALT)
        if self._promise(self.other, channel, said, bytes(payload[:_SALT]), theirs) != promise:
            raise self.cheat(f"the promise of the share opened on channel {channel}", self.other)
        if theirs.max(initial=0) >= field.P:
            raise PeerError(
                f"party {self.other} must send shares below p = 2^61 - 1; larger ones came; are all parties of one "
                "version?",
                code="message",
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
                f"<<backend={self.name}>> is for 2 parties; got {parties}; use <<parties=2>>, or "
                "<<backend=sharing>> for more",
                code="range",
            )
        if threshold != 1:
            raise UsageError(
                f"with <<backend={self.name}>> either of the 2 parties learns nothing alone: t = 1; got t = "
                f"{threshold}; "
                "leave <<threshold>> out, or use <<backend=sharing>> <<threshold=0>>, which hides nothing from either",
                code="together",
            )

    def dealer(self, parties: int, threshold: int) -> AdditiveDealer:
        return AdditiveDealer()

    def drawn(self, sampler: Sampler, parties: int, threshold: int, samples: int, failure: float) -> Sampler:
        return sampler

    def payload_bytes(self, parties: int, threshold: int, owners: int, dimension: int) -> tuple[int, ...]:
        return (WORD * owners * dimension,) * parties

    def count_barrier(self, said: int, parties: int) -> Counts:
        return Counts()

    def count_opening(self, dimension: int, parties: int, threshold: int) -> Counts:
        return Counts(2, (_PROMISE + _SALT + WORD * dimension,) * parties, (2,) * parties)
