"""Random oblivious transfers in bulk from trees of keys: SoftSpokenOT (Roy 2022), semi-honest, with 128 / k trees of
2^k leaves; k = 1 is IKNP (Ishai et al. 2003).

The chooser knows all leaves of its trees. From their streams it makes u, uniform bits, and v; the offerer, who lacks
leaf Delta_i of tree i, makes w with w_j = v_j XOR u_j Delta for every transfer j. The hash H of a row gives the chooser
H(v_j) and the offerer H(w_j), H(w_j XOR Delta): of two random strings the chooser holds number u_j. Larger k sends
less, 128 / k - 1 bits a transfer, and computes more, 2^k AES bits a tree.

What must never happen is that a stream's words are used twice: both choices of a transfer, or the same noise, would
come out again. The counter of every leaf's AES is *batch << 32 | block*, a batch's number can be begun once, and the
keys live and die with the connection. H(x) = pi(x) XOR x with pi a fresh AES key for each batch and direction.

Guarantees: computational; semi-honest, for the corrections of a chooser are not checked. Delta is uniform, belongs to
one direction of one session, and enters masks and offsets alone: no branch, no address.
"""

import hashlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmpc.errors import PeerError
from dpmpc.mpc.native import ot
from dpmpc.mpc.ot import trees

Words = NDArray[np.uint64]

BITS = 128
LEVELS = (1, 2, 4, 8)
_PIECE = 2048  # words of a plane at a time: what stays in a core's cache
_MOST_WORDS = 1 << 32  # of a batch: its part of the counter
# (slots, low words (strings, 64, slots, words), the same of the high words where they are wanted); of a slot, lane l of
# W words is row l // W, word l % W
Take = Callable[[slice, Words, Words | None], None]


class _Streams:
    """Leaves, and the guard that no part of their streams is used twice."""

    def __init__(self, leaves: Words, k: int, session: bytes, direction: int) -> None:
        self._schedules: bytearray | None = bytearray(ot.schedule_of(trees.keys_of(leaves)))
        self.k, self._session, self._direction = k, session, direction
        self._begun: set[int] = set()

    def begin(self, batch: int, slots: int, words: int) -> tuple[int, bytes]:
        """(position of the streams, key of the hash) of a batch; no number begins twice."""
        if batch in self._begun or not 0 <= batch < 1 << 31:  # holds under -O too: the same transfers would come again
            raise AssertionError(f"batch {batch} of oblivious transfers was begun already")
        if slots * words >= _MOST_WORDS:
            raise AssertionError(f"a batch takes less than 2^32 words of a stream; got {slots} slots of {words}")
        self._begun.add(batch)
        key = hashlib.sha256(b"dpmpc OT hash" + self._session + batch.to_bytes(4, "little") + bytes([self._direction]))
        raw = np.frombuffer(key.digest()[: trees.KEY_BYTES], dtype=np.uint8)
        return batch << 33, ot.schedule_of(raw[None])

    def columns(self, position: int, words: int, **more: Any) -> tuple[Words, Words]:
        """As `ot.columns`."""
        assert self._schedules is not None, "the keys of this session's oblivious transfers are erased"
        return ot.columns(self._schedules, self.k, position, words, **more)

    def erase(self) -> None:
        """Overwrites the keys: nothing can be made any more."""
        if self._schedules is not None:
            self._schedules[:] = bytes(len(self._schedules))
            self._schedules = None


def pieces(slots: int, words: int) -> Iterator[tuple[slice, int]]:
    """(slots, words of a plane) that are made at a time."""
    most = max(1, _PIECE // words)
    for start in range(0, slots, most):
        end = min(slots, start + most)
        yield slice(start, end), (end - start) * words


def correction_words(k: int, slots: int, words: int) -> int:
    """The words that a chooser sends for a batch of `slots` slots of 64 `words` transfers."""
    return (BITS // k - 1) * slots * words


class Chooser:
    """The receiving side of one direction: of every transfer it learns one string, by a random choice."""

    def __init__(self, leaves: Words, k: int, session: bytes, direction: int) -> None:
        """`leaves`: all, (128 / k, 2^k, 2)."""
        self._streams = _Streams(leaves, k, session, direction)
        self.k = k

    def batch(self, number: int, slots: int, words: int, take: Take, wide: int = 0) -> tuple[Words, Words]:
        """(choices (slots, words), correction to be sent): `take` gets the strings piece by piece, those of the last
        `wide` slots with their high words."""
        position, schedule = self._streams.begin(number, slots, words)
        choices = np.empty((slots, words), dtype=np.uint64)
        correction = np.empty(correction_words(self.k, slots, words), dtype=np.uint64)
        done = 0
        for part, size in pieces(slots, words):
            planes, sums = self._streams.columns(position + part.start * words, size, sums=True)
            choices[part] = sums[0].reshape(-1, words)
            into = correction[done : done + (len(sums) - 1) * size].reshape(-1, size)
            np.bitwise_xor(sums[1:], sums[0], out=into)
            done += into.size
            parts = 2 if part.stop > slots - wide else 1
            strings = ot.hashes(planes, schedule, np.zeros((1, 2), dtype=np.uint64), parts)
            strings = strings.reshape(len(strings), parts, 64, -1, words)
            take(part, strings[:, 0], strings[:, 1] if parts == 2 else None)
        return choices, correction

    def erase(self) -> None:
        self._streams.erase()


class Offerer:
    """The sending side of one direction: of every transfer it knows both strings."""

    def __init__(self, leaves: Words, delta: Words, k: int, session: bytes, direction: int) -> None:
        """`leaves`: (128 / k, 2^k, 2), relabelled, the first of each tree unknown; `delta`: (128 / k,), its path."""
        self._streams = _Streams(leaves, k, session, direction)
        self.k = k
        bits = (delta[:, None] >> np.arange(k, dtype=np.uint64)) & np.uint64(1)
        self._masks = np.uint64(0) - bits.reshape(-1)
        packed = bits.reshape(2, 64) << np.arange(64, dtype=np.uint64)
        self._offsets = np.stack([np.zeros(2, dtype=np.uint64), np.bitwise_or.reduce(packed, axis=1)])

    def batch(
        self, number: int, slots: int, words: int, correction: bytes | bytearray | memoryview, take: Take, wide: int = 0
    ) -> None:
        """Takes the chooser's correction; `take` gets both strings of each transfer piece by piece. Errors: PeerError
        for a correction of another length."""
        if len(correction) != 8 * correction_words(self.k, slots, words):
            raise PeerError(
                f"a correction of {slots * words * 64} transfers has {8 * correction_words(self.k, slots, words)} "
                f"bytes; {len(correction)} came; are all parties of one version?"
            )
        fixes = np.frombuffer(correction, dtype="<u8")
        position, schedule = self._streams.begin(number, slots, words)
        done = 0
        for part, size in pieces(slots, words):
            count = (BITS // self.k - 1) * size
            planes, _ = self._streams.columns(
                position + part.start * words, size, sums=False, fixes=fixes[done : done + count], masks=self._masks
            )
            done += count
            parts = 2 if part.stop > slots - wide else 1
            strings = ot.hashes(planes, schedule, self._offsets, parts)
            strings = strings.reshape(len(strings), parts, 64, -1, words)
            take(part, strings[:, 0], strings[:, 1] if parts == 2 else None)

    def erase(self) -> None:
        self._streams.erase()
        self._masks[:] = 0
        self._offsets[:] = 0
