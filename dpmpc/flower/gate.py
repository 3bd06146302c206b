"""A party's end of its connection with the server of a Flower run, which carries owners' sealed shares.

The server plays no owner: it can read no share and change none. For a release it sends which owners answered, then
their sealed shares in blocks. A party opens each, drops those that do not open or are no shares, and agrees with the
other parties, in one round, on the owners whose shares have reached all of them and come from one sharing; that set is
the release's. Only then are they added up. Until then they are kept as they came, sealed, on disk where they are many.

Nothing here depends on a record, and the sum's sensitivity does not depend on who is there; see docs/privacy.md.
"""

import asyncio
import struct
import tempfile
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import IO, Any

from dpmpc.aggregation.party.admission import Guest
from dpmpc.aggregation.party.owner_gate import OwnerGate
from dpmpc.aggregation.party.release import Skipped
from dpmpc.aggregation.plan.asked import Presence
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.wire.frames import (
    WINDOW,
    exact,
    pack_presence,
    presence_bytes,
    tagged_presence_bytes,
    unpack_presence,
)
from dpmpc.errors import PeerError
from dpmpc.flower.heads import ClientHeads
from dpmpc.flower.prepared import Prepared
from dpmpc.flower.sealing import Opener, Purpose
from dpmpc.mpc.contract.backend import Share
from dpmpc.mpc.transport.channels import PRESENCE, block_label, exchange_label, heads_label
from dpmpc.mpc.transport.wire import FRAME_COST, Peer
from dpmpc.privacy.heads import HEAD

_OWNER = struct.Struct("<I")
_BLOCK = 1 << 22  # bytes of sealed shares that travel in one frame, unless one share is longer
_IN_MEMORY = 1 << 26  # bytes of sealed shares that a party keeps in memory
_TAG = 8  # bytes of the name of a sharing that parties compare


def rows_of_frame(prepared: Prepared) -> int:
    """How many owners' sealed shares travel in one frame."""
    return max(1, _BLOCK // max(prepared.sealed_bytes))


def frames_of(prepared: Prepared, sealed: Mapping[int, Sequence[bytes]]) -> Iterator[list[bytes]]:
    """The frames of a release, as lists of one payload a party: who answered, then blocks of their sealed shares.
    `sealed`: by owner, a sealed share a party."""
    owners, parties = sorted(sealed), range(prepared.plan.parties)
    yield [b"".join(map(_OWNER.pack, owners))] * len(parties)
    rows = rows_of_frame(prepared)
    for start in range(0, len(owners), rows):
        yield [b"".join(sealed[owner][party] for owner in owners[start : start + rows]) for party in parties]


class _Kept:
    """The sealed shares of one release, on disk where they are many, and the sharing that each is of. `offered`: how
    many came, whether or not they open."""

    def __init__(self, size: int, offered: int) -> None:
        self._size, self.offered = size, offered
        self._file: IO[bytes] = tempfile.SpooledTemporaryFile(_IN_MEMORY)
        self._at: dict[int, int] = {}
        self.tags: dict[int, bytes] = {}

    def add(self, owner: int, sealed: bytes | memoryview) -> None:
        self._at[owner] = self._file.tell()
        self.tags[owner] = bytes(sealed[:_TAG])
        self._file.write(sealed)

    def of(self, owner: int) -> bytes:
        self._file.seek(self._at[owner])
        return self._file.read(self._size)

    def close(self) -> None:
        self._file.close()


class SealedGate(OwnerGate):
    """As `OwnerGate`, for one process that carries sealed shares of some of the owners."""

    def __init__(self, prepared: Prepared, opener: Opener, *arguments: Any, **settings: Any) -> None:
        memory = None if settings.get("secret") else settings.get("memory")  # here parties and clients are one machine
        super().__init__(*arguments, **{**settings, "memory": None})  # the server has no account
        self._prepared, self._opener = prepared, opener
        self._heads = ClientHeads(self.plan, self.holder.party, memory) if prepared.shows_heads else None
        self._kept: dict[int, _Kept] = {}
        self._agreed: Presence = ()
        self._elsewhere = False  # whether another party has shares of the release

    def _came(self, first: int, end: int, peer: Guest) -> None:
        if isinstance(peer, Peer):
            largest = max(_OWNER.size * self.plan.owners, rows_of_frame(self._prepared) * self._size)
            peer.admit(largest, (WINDOW + 2) * (largest + FRAME_COST))

    def abandon(self) -> None:
        """As `OwnerGate.abandon`; what was kept is thrown away."""
        super().abandon()
        while self._kept:
            self._kept.popitem()[1].close()
        if self._heads is not None:
            try:
                self._heads.keep(first=False)
            except PeerError as error:
                self._log(error.message)

    @property
    def _size(self) -> int:
        return self._prepared.sealed_bytes[self.holder.party]

    def _purpose(self, release: int, owner: int) -> Purpose:
        return Purpose(self._prepared.digest, self.token, release, owner)

    async def agree(self, release: int) -> Presence:
        """The owners whose shares of this release have reached all parties. One round, when the server has sent them.
        Errors: PeerError where they are too few: nothing was spent; `Skipped` where the server has none for anybody."""
        ((_, _, peer),) = self._admission.guests
        if self._heads is not None:
            peer.send(heads_label(release), self._heads.begin(release, self._purpose))
        kept = self._kept[release] = await self._take(release, peer)
        if self._heads is not None:
            await asyncio.to_thread(self._heads.keep, first=True)
        self._agreed = await self._common(release, kept.tags)
        if kept.offered == 0 and not self._elsewhere:
            self._forget_release(release)
            raise Skipped
        if len(self._agreed) < self.plan.fewest:
            raise PeerError(
                f"a release needs {self.plan.fewest} of {self.plan.owners} owners; of release {release} the shares of "
                f"{len(self._agreed)} have reached all parties and open; see the parties' logs"
            )
        return self._agreed

    async def _take(self, release: int, peer: Guest) -> _Kept:
        """What the server sends of a release, as far as it opens, is a share, and comes from an account that goes
        on."""
        owners = self._owners_of(peer, await peer.receive(block_label(release, 0)))
        kept, rows, size = _Kept(self._size, len(owners)), rows_of_frame(self._prepared), self._size
        starts = range(0, len(owners), rows)
        if WINDOW <= len(starts):
            peer.send(block_label(release, 0), b"")
        for block, start in enumerate(starts, start=1):
            group = owners[start : start + rows]
            payload = memoryview(exact(peer, await peer.receive(block_label(release, block)), len(group) * size))
            for k, owner in enumerate(group):
                sealed = payload[k * size : (k + 1) * size]
                try:
                    self._open(release, owner, sealed, sees=True)
                except PeerError as error:
                    self._log(f"the share of owner {owner} is dropped: {error.message}")
                else:
                    kept.add(owner, sealed)
            if block + WINDOW <= len(starts):
                peer.send(block_label(release, block), b"")
        return kept

    def _owners_of(self, peer: Guest, payload: bytearray) -> list[int]:
        """Who answered, in order. Errors: PeerError for a list that names an owner twice, or one there is not."""
        if len(payload) % _OWNER.size == 0:
            owners = [owner for (owner,) in _OWNER.iter_unpack(payload)]
            if all(a < b for a, b in pairwise([*owners, self.plan.owners])):
                return owners
        raise PeerError(f"{peer.name} must name each owner that answered once, in order; it sent something else")

    def _open(self, release: int, owner: int, sealed: bytes | memoryview, *, sees: bool = False) -> Share:
        purpose, heads = self._purpose(release, owner), self._heads
        if heads is None:
            return self._adder.alone(self._opener.open(sealed, purpose), owner)
        payload = self._opener.open(sealed, purpose, heads.told(release, owner))
        share = self._adder.alone(payload[HEAD:], owner)
        if sees:
            heads.see(owner, payload[:HEAD])
        return share

    def _forget_release(self, release: int) -> None:
        self._kept.pop(release).close()
        if self._heads is not None:
            self._heads.end(release)

    async def _common(self, release: int, tags: Mapping[int, bytes]) -> Presence:
        """The owners of whom all parties have shares of one and the same sharing. One round."""
        parties, plan = list(self.holder.connections()), self.plan
        label = exchange_label(PRESENCE + release, 0)
        for connection in parties:
            connection.send(label, pack_tags(plan, tags))
        common, self._elsewhere = set(tags), False
        for connection, awaited in [(connection, connection.receive(label)) for connection in parties]:
            theirs = unpack_tags(plan, exact(connection, await awaited, tagged_presence_bytes(plan)))
            self._elsewhere |= bool(theirs)
            common &= {owner for owner, tag in theirs.items() if tags.get(owner) == tag}
        return tuple(sorted(common))

    async def contributions(self, release: int) -> AsyncIterator[tuple[int, int, Share]]:
        """As `OwnerGate.contributions`, of those that the parties agreed on, in runs of neighbouring numbers."""
        kept = self._kept[release]
        for first, end in _runs(self._agreed):
            total = self._open(release, first, kept.of(first))
            for owner in range(first + 1, end):
                await asyncio.sleep(0)  # heartbeats
                total = self._adder.add(total, self._open(release, owner, kept.of(owner)))
            yield first, end, total
        self._forget_release(release)


def pack_tags(plan: Plan, tags: Mapping[int, bytes]) -> bytes:
    """Whose shares are here, and the name of each one's sharing."""
    return pack_presence(plan, tuple(tags)) + b"".join(tags.get(j, bytes(_TAG)) for j in range(plan.owners))


def unpack_tags(plan: Plan, payload: bytes | bytearray) -> dict[int, bytes]:
    """What `pack_tags` packed. Errors: PeerError for a bit that no owner has."""
    size = presence_bytes(plan)
    present, names = unpack_presence(plan, payload[:size]), payload[size:]
    return {j: bytes(names[j * _TAG : (j + 1) * _TAG]) for j in present}


def _runs(owners: Iterable[int]) -> Iterator[tuple[int, int]]:
    """(first, end) of the runs of neighbouring numbers, in order."""
    first = end = -1
    for owner in owners:
        if owner == end:
            end += 1
            continue
        if first >= 0:
            yield first, end
        first, end = owner, owner + 1
    if first >= 0:
        yield first, end
