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

import numpy as np
from numpy.typing import NDArray

from dpmpc.errors import PeerError
from dpmpc.mpc.native import ot
from dpmpc.mpc.ot import trees

Words = NDArray[np.uint64]

BITS = 128
LEVELS = (1, 2, 4, 8)
_STRIDE = 32  # words of a leaf's stream that are made at a time
_PIECE = 512  # words of a plane at a time: what stays in a core's cache
_MOST_WORDS = 1 << 32  # of a part of a batch: half of what the counter has room for
# (slots, low words (strings, 64, slots, words), the same of the high words where they are wanted); of a slot, lane l of
# W words is row l // W, word l % W
Take = Callable[[slice, Words, Words | None], None]


class _Streams:
    """Leaves, and the guard that no part of their streams is used twice."""

    def __init__(self, leaves: Words, k: int, session: bytes, direction: int) -> None:
        self._schedules: bytearray | None = bytearray(ot.schedule_of(trees.keys_of(leaves)))
        self.k, self._session, self._direction = k, session, direction
        self._begun: set[tuple[int, int]] = set()

    def begin(self, batch: int, slots: int, words: int, part: int) -> tuple[int, bytes]:
        """(position of the streams, key of the hash) of a part, 0 or 1, of a batch; none begins twice."""
        fits = 0 <= batch < 1 << 31 and part in (0, 1)
        if (batch, part) in self._begun or not fits:  # holds under -O too: the same transfers would come again
            raise AssertionError(f"batch {batch} of oblivious transfers was begun already")
        if slots * (words + _STRIDE) >= _MOST_WORDS:
            raise AssertionError(f"a batch takes less than 2^32 words of a stream; got {slots} slots of {words}")
        self._begun.add((batch, part))
        key = hashlib.sha256(
            b"dpmpc OT hash" + self._session + batch.to_bytes(4, "little") + bytes([part, self._direction])
        )
        raw = np.frombuffer(key.digest()[: trees.KEY_BYTES], dtype=np.uint8)
        return batch << 33 | part << 32, ot.schedule_of(raw[None])

    def columns(self, position: int, planes: Words, *more: Words) -> None:
        """As `ot.columns`."""
        assert self._schedules is not None, "the keys of this session's oblivious transfers are erased"
        ot.columns(self._schedules, self.k, position, planes, *more)

    def erase(self) -> None:
        """Overwrites the keys: nothing can be made any more."""
        if self._schedules is not None:
            self._schedules[:] = bytes(len(self._schedules))
            self._schedules = None


def pieces(slots: int, words: int) -> Iterator[tuple[slice, int, int]]:
    """(slots, words of a plane, their place in the streams) that are made at a time. Places begin where kernels like
    it."""
    most, place = max(1, _PIECE // words), 0
    for start in range(0, slots, most):
        end = min(slots, start + most)
        size = (end - start) * words
        yield slice(start, end), size, place
        place += -(-size // _STRIDE) * _STRIDE


class _Room:
    """Memory for a piece, used again for every piece of a batch: pages that were touched once are quick."""

    def __init__(self, strings: int, slots: int, words: int) -> None:
        size = max((size for _, size, _ in pieces(slots, words)), default=0)
        self._planes = np.empty(BITS * size, dtype=np.uint64)
        self._sums = np.empty(BITS * size if strings == 1 else 0, dtype=np.uint64)
        self._strings = np.empty(2 * strings * 64 * size, dtype=np.uint64)

    def planes(self, size: int) -> Words:
        return self._planes[: BITS * size].reshape(BITS, size)

    def sums(self, trees: int, size: int) -> Words:
        return self._sums[: trees * size].reshape(trees, size)

    def strings(self, count: int, parts: int, size: int) -> Words:
        return self._strings[: count * parts * 64 * size].reshape(count, parts, 64, size)


def _give(take: Take, part: slice, strings: Words, words: int) -> None:
    shaped = strings.reshape(*strings.shape[:3], -1, words)
    take(part, shaped[:, 0], shaped[:, 1] if shaped.shape[1] == 2 else None)


def correction_words(k: int, slots: int, words: int) -> int:
    """The words that a chooser sends for a batch of `slots` slots of 64 `words` transfers."""
    return (BITS // k - 1) * slots * words


class Chooser:
    """The receiving side of one direction: of every transfer it learns one string, by a random choice."""

    def __init__(self, leaves: Words, k: int, session: bytes, direction: int) -> None:
        """`leaves`: all, (128 / k, 2^k, 2)."""
        self._streams = _Streams(leaves, k, session, direction)
        self.k = k

    def batch(
        self, number: int, slots: int, words: int, take: Take, wide: int = 0, part: int = 0
    ) -> tuple[Words, Words]:
        """(choices (slots, words), correction to be sent): `take` gets the strings piece by piece, those of the last
        `wide` slots with their high words."""
        position, schedule = self._streams.begin(number, slots, words, part)
        choices = np.empty((slots, words), dtype=np.uint64)
        correction = np.empty(correction_words(self.k, slots, words), dtype=np.uint64)
        room, count, done = _Room(1, slots, words), BITS // self.k, 0
        for piece, size, place in pieces(slots, words):
            planes, sums = room.planes(size), room.sums(count, size)
            self._streams.columns(position + place, planes, sums)
            choices[piece] = sums[0].reshape(-1, words)
            into = correction[done : done + (count - 1) * size].reshape(-1, size)
            np.bitwise_xor(sums[1:], sums[0], out=into)
            done += into.size
            strings = room.strings(1, 2 if piece.stop > slots - wide else 1, size)
            ot.hashes(planes, schedule, np.zeros((1, 2), dtype=np.uint64), strings)
            _give(take, piece, strings, words)
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
        self,
        number: int,
        slots: int,
        words: int,
        correction: bytes | bytearray | memoryview,
        take: Take,
        wide: int = 0,
        part: int = 0,
    ) -> None:
        """Takes the chooser's correction; `take` gets both strings of each transfer piece by piece. Errors: PeerError
        for a correction of another length."""
        if len(correction) != 8 * correction_words(self.k, slots, words):
            raise PeerError(
                f"a correction of {slots * words * 64} transfers has {8 * correction_words(self.k, slots, words)} "
                f"bytes; {len(correction)} came; are all parties of one version?"
            )
        fixes = np.frombuffer(correction, dtype="<u8")
        position, schedule = self._streams.begin(number, slots, words, part)
        room, done = _Room(2, slots, words), 0
        for piece, size, place in pieces(slots, words):
            count, planes = (BITS // self.k - 1) * size, room.planes(size)
            self._streams.columns(position + place, planes, planes[:0], fixes[done : done + count], self._masks)
            done += count
            strings = room.strings(2, 2 if piece.stop > slots - wide else 1, size)
            ot.hashes(planes, schedule, self._offsets, strings)
            _give(take, piece, strings, words)

    def erase(self) -> None:
        self._streams.erase()
        self._masks[:] = 0
        self._offsets[:] = 0
