"""A session in which t parties may do anything: keys to which every member contributes, and what it is used for."""

import secrets

import numpy as np

from dpmpc.errors import PeerError
from dpmpc.mpc.native.layers import LINE, on_line
from dpmpc.mpc.numbers import domains
from dpmpc.mpc.numbers.field import Words
from dpmpc.mpc.parties.checked_mesh import CheckedMesh
from dpmpc.mpc.parties.session import Session, Subset
from dpmpc.mpc.transport.channels import KEYS, KEYS_SAME, KEYS_SHOWN
from dpmpc.mpc.transport.link import Observe

_KEPT = 7  # arrays beside the one given back, for two batches
_PART = 32  # bytes of what a member contributes to a key, of a promise and of a digest


def _room(size: int) -> int:
    """2^k or 3 2^(k-1), at least `size`."""
    above = 1 << max(size - 1, 1).bit_length()
    return above // 4 * 3 if size <= above // 4 * 3 else above


class CheckedSession(CheckedMesh, Session):
    """As `Session`. After a failed check every later call fails with the same error."""

    threshold: int

    def __init__(self, party: int, parties: int, threshold: int, run_id: bytes, observe: Observe | None = None) -> None:
        super().__init__(party, parties, threshold, run_id, observe)
        self._scratch: list[Words] = []

    def borrow(self, rows: int, words: int, most: int = 0) -> Words:
        """(rows, words) to write into: of an earlier batch where one was given back, for new memory is slow. Batches of
        two draws differ a little, so there is room for more; what is never written takes no memory. `most`: words of a
        row that are wanted later of what is given back."""
        size, least = rows * words, rows * max(words, most)
        fitting = [(whole.size, k) for k, whole in enumerate(self._scratch) if whole.size >= least + LINE]
        whole = self._scratch.pop(min(fitting)[1]) if fitting else np.empty(_room(least) + LINE, dtype=np.uint64)
        return on_line(whole, size).reshape(rows, words)

    def give_back(self, array: Words) -> None:
        """What was borrowed, for a later batch."""
        assert isinstance(array.base, np.ndarray)
        self._scratch = [*self._scratch[-_KEPT:], array.base]

    async def _agree_on_keys(self) -> None:
        """Every member of a subset contributes 32 bytes to its key: promised by a hash, then shown, then a hash of the
        key is compared among all. The key is a hash of run, subset and contributions, so no member chooses it, and no
        two subsets have one.

        Cost: three frames to each other party. Errors: CheatError for a contribution that was not promised, or members
        with different keys.
        """
        own = {s: secrets.token_bytes(_PART) for s in self.mine}
        shared = {j: [s for s in self.mine if j in s] for j in self.peers}
        run, me = self.run_id, self.party
        promises = {s: domains.KEY_PROMISE.digest(run, bytes(s), me, value=own[s]) for s in self.mine}
        promised = await self._trade(KEYS, {j: [promises[s] for s in shared[j]] for j in self.peers})
        shown = await self._trade(KEYS_SHOWN, {j: [own[s] for s in shared[j]] for j in self.peers})
        parts = {s: {self.party: own[s]} for s in self.mine}
        for j in self.peers:
            for s, promise, part in zip(shared[j], promised[j], shown[j], strict=True):
                if domains.KEY_PROMISE.digest(run, bytes(s), j, value=part) != promise:
                    raise self.cheat("a promised part of a key", j)
                parts[s][j] = part
        for s in self.mine:
            self._keys[s] = domains.KEY.digest(run, bytes(s), value=b"".join(parts[s][i] for i in s))

        def same(s: Subset, party: int) -> bytes:
            return domains.KEY_SAME.digest(run, bytes(s), party, value=self._keys[s])

        said = await self._trade(KEYS_SAME, {j: [same(s, me) for s in shared[j]] for j in self.peers})
        for j in self.peers:
            if said[j] != [same(s, j) for s in shared[j]]:
                raise self.cheat("a key of random streams", j)

    async def _trade(self, label: int, outgoing: dict[int, list[bytes]]) -> dict[int, list[bytes]]:
        """To each other party, and from each: as many pieces of 32 bytes."""
        for j, pieces in outgoing.items():
            self.peers[j].send(label, b"".join(pieces))
        result = {}
        for j, pieces in outgoing.items():
            payload = bytes(await self.peers[j].receive(label))
            if len(payload) != _PART * len(pieces):
                raise PeerError(
                    f"party {j} sent {len(payload)} bytes of keys where {_PART * len(pieces)} were due; are all "
                    "parties of one version?"
                )
            result[j] = [payload[at : at + _PART] for at in range(0, len(payload), _PART)]
        return result
