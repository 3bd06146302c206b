"""A session in which one party may do anything: keys to which every member contributes, streams bound to their subset,
openings that no single share can change. Security with abort: the first check that fails is the end.
"""

import hashlib
import secrets
from typing import Any

import numpy as np

from dpmpc.errors import CheatError, PeerError
from dpmpc.mpc import field
from dpmpc.mpc.channels import KEYS, KEYS_SAME, KEYS_SHOWN
from dpmpc.mpc.field import Words
from dpmpc.mpc.link import Observe
from dpmpc.mpc.mesh import Channel
from dpmpc.mpc.native.residues import recombine
from dpmpc.mpc.prg import Prg
from dpmpc.mpc.security import Verdict
from dpmpc.mpc.session import Session, Subset

_KEPT = 5  # arrays, for two batches
_PART = 32  # bytes of what a member contributes to a key, of a promise and of a digest


class CheckedSession(Session):
    """As `Session`. After a failed check every later call fails with the same error."""

    over: CheatError | None = None

    def __init__(self, party: int, parties: int, threshold: int, run_id: bytes, observe: Observe | None = None) -> None:
        super().__init__(party, parties, threshold, run_id, observe)
        self._scratch: list[Words] = []
        self._verdicts: list[Verdict] = []

    def judged(self, verdict: Verdict) -> None:
        """Note a batch whose ANDs held, as all parties have said."""
        self._verdicts.append(verdict)

    def verdicts(self) -> list[Verdict]:
        """Those since this was asked last."""
        found, self._verdicts = self._verdicts, []
        return found

    def borrow(self, words: int) -> Words:
        """(2, words) to write into: of an earlier batch where one was given back, for new memory is slow."""
        fitting = [k for k, whole in enumerate(self._scratch) if whole.size >= 2 * words]
        whole = self._scratch.pop(fitting[0]) if fitting else np.empty(2 * words, dtype=np.uint64)
        return whole[: 2 * words].reshape(2, words)

    def give_back(self, array: Words) -> None:
        """What was borrowed, for a later batch."""
        assert isinstance(array.base, np.ndarray)
        self._scratch = [*self._scratch[-_KEPT:], array.base]

    def cheat(self, what: str, party: int | None = None) -> CheatError:
        """The error to raise where `what` did not hold, seen of `party` if that is said; from now on all is over."""
        whom = "the parties" if party is None else f"party {party}"
        return self.over_for(
            f"a check failed: {what}, as party {self.party} sees it of {whom}; a party cheats or its machine is "
            "faulty; find out which, then start a new run"
        )

    def over_for(self, why: str) -> CheatError:
        """The error to raise; from now on all is over."""
        error = CheatError(why)
        self.over = self.over or error
        return error

    def still_on(self) -> None:
        """Errors: CheatError when a check has failed in this session."""
        if self.over is not None:
            raise self.over

    def stream(self, subset: Subset, *domain: bytes | int | str) -> Prg:
        """As `Session.stream`; equal keys of two subsets would give different words."""
        return Prg(self._keys[subset], self.run_id, "subset", *subset, "for", *domain)

    async def _agree_on_keys(self) -> None:
        """Every member of a subset contributes 32 bytes to its key: promised by a hash, then shown, then a hash of the
        key is compared among all. The key is a hash of run, subset and contributions, so no member chooses it, and no
        two subsets have one.

        Cost: three frames to each other party. Errors: CheatError for a contribution that was not promised, or members
        with different keys.
        """
        own = {s: secrets.token_bytes(_PART) for s in self.mine}
        shared = {j: [s for s in self.mine if j in s] for j in self.peers}
        promises = {s: _hash("promise", self.run_id, s, self.party, own[s]) for s in self.mine}
        promised = await self._trade(KEYS, {j: [promises[s] for s in shared[j]] for j in self.peers})
        shown = await self._trade(KEYS_SHOWN, {j: [own[s] for s in shared[j]] for j in self.peers})
        parts = {s: {self.party: own[s]} for s in self.mine}
        for j in self.peers:
            for s, promise, part in zip(shared[j], promised[j], shown[j], strict=True):
                if _hash("promise", self.run_id, s, j, part) != promise:
                    raise self.cheat("a promised part of a key", j)
                parts[s][j] = part
        for s in self.mine:
            self._keys[s] = _hash("key", self.run_id, s, len(s), b"".join(parts[s][i] for i in s))
        same = {s: _hash("same", self.run_id, s, len(s), self._keys[s]) for s in self.mine}
        said = await self._trade(KEYS_SAME, {j: [same[s] for s in shared[j]] for j in self.peers})
        for j in self.peers:
            if said[j] != [same[s] for s in shared[j]]:
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

    async def open_words(self, shares: Words, channel: Channel) -> Words:
        """As `Session.open_words`, from the shares of all parties, which must lie on one polynomial; the digests of
        what came out are compared.

        Cost: two rounds; to each other party 8 bytes a value, and 32. Errors: CheatError, before any party has given
        the values out, for shares below p that are of no one polynomial (any one wrong share, where t + 2 <= n) or
        another digest; PeerError for words that no share has.
        """
        self.still_on()
        flat = np.ascontiguousarray(shares).reshape(-1)
        others = sorted(self.peers)
        received = await channel.words(dict.fromkeys(others, flat), others, flat.size)
        for i, words in zip(others, received, strict=True):
            if words.max(initial=0) >= field.P:
                raise self.cheat("a share below p = 2^61 - 1", i)
        rows = {self.party: flat, **dict(zip(others, received, strict=True))}
        first = sorted(rows)[: self.threshold + 1]
        for i in sorted(rows)[self.threshold + 1 :]:
            weights = field.lagrange(tuple(k + 1 for k in first), i + 1)
            due = np.zeros_like(flat)
            for k, weight in zip(first, weights, strict=True):
                due = field.add(due, field.mul(rows[k], weight))
            if not (due == rows[i]).all():
                raise self.cheat(f"that the shares opened on channel {channel.ident} are of one vector")
        opened = recombine([rows[k] for k in first], first).reshape(shares.shape)
        digest = _hash("opened", self.run_id, (), channel.ident, np.ascontiguousarray(opened).tobytes())
        for i, said in zip(others, await channel.exchange(dict.fromkeys(others, digest), others), strict=True):
            if bytes(said) != digest:
                raise self.cheat(f"the vector opened on channel {channel.ident}", i)
        return opened


def _hash(purpose: str, run_id: bytes, subset: Subset, number: int, value: Any) -> bytes:
    parts = [purpose.encode(), run_id, repr((subset, number)).encode(), value]
    return hashlib.sha256(b"".join(len(part).to_bytes(8, "little") + part for part in parts)).digest()
