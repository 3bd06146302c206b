"""Random oblivious transfers in bulk from trees of keys: SoftSpokenOT (Roy 2022), with 128 / k trees of 2^k leaves;
k = 1 is IKNP (Ishai et al. 2003).

The chooser knows all leaves of its trees. From their streams it makes u, uniform bits, and v; the offerer, who lacks
leaf Delta_i of tree i, makes w with w_j = v_j XOR u_j Delta for every transfer j. The hash H of a row gives the chooser
H(v_j) and the offerer H(w_j), H(w_j XOR Delta): of two random strings the chooser holds number u_j. Larger k sends
less, 128 / k - 1 bits a transfer, and computes more, 2^k AES bits a tree.

What must never happen is that a stream's words are used twice: both choices of a transfer, or the same noise, would
come out again. The counter of every leaf's AES is *batch << 32 | block*, a batch's number can be begun once, and the
keys live and die with the connection. H(x) = pi(y) XOR y with y = x XOR T, where pi is AES under a fresh key for each
batch and direction, and piece of it, and T is the transfer's tweak: random, public, another one for every transfer. So
equal rows, which nobody but one that breaks the streams could have, would not be equal strings.

Three messages: corrections, a challenge, an answer (`consistency`). A chooser makes its planes again after the
challenge, from the same words of its streams, where they are too many to be kept.

Guarantees: computational; the chooser may deviate, the offerer must not use a string before `OfferedBatch.holds` says
True. Delta is uniform, belongs to one direction of one session, and enters masks and offsets alone: no branch, no
address.
"""

import secrets
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from dpmpc.errors import PeerError
from dpmpc.lazy import dataclass
from dpmpc.mpc.native import ot
from dpmpc.mpc.native.aes import KeyStream
from dpmpc.mpc.native.layers import new_words
from dpmpc.mpc.numbers import domains
from dpmpc.mpc.two_servers import consistency, trees
from dpmpc.mpc.two_servers.consistency import ANSWER_BYTES, CHALLENGE_BYTES, EXTRA_WORDS, Place, Sums

Words = NDArray[np.uint64]

BITS = 128
LEVELS = (1, 2, 4, 8)
_STRIDE = 32  # words of a leaf's stream that are made at a time
_PIECE = 448  # words of a plane at a time: what stays in a core's cache; of 512 all rows begin in one of its sets
KEPT = 1 << 20  # words: a chooser keeps the planes of a batch that has no more, 8 MiB, until it is challenged
_MOST_WORDS = 1 << 32  # of a part of a batch: half of what the counter has room for
# (slots, low words (strings, 64, slots, words), the same of the high words where they are wanted); of a slot, lane l of
# W words is row l // W, word l % W
Take = Callable[[slice, Words, Words | None], None]


@dataclass(frozen=True)
class _Begun:
    """A part of a batch. `position`: of the streams; `place`: tells it from all others."""

    streams: "_Streams"
    slots: int
    words: int
    position: int
    place: Place

    def pieces(self) -> Iterator[tuple[slice | None, int, int]]:
        """(slots, words of a plane, their position) that are made at a time; at the end the extra slot, as None."""
        end = 0
        for piece, size, place in pieces(self.slots, self.words):
            yield piece, size, self.position + place
            end = place + _strides(size)
        yield None, EXTRA_WORDS, self.position + end

    def hashes(self) -> Iterator[tuple[bytes, Words]]:
        """(schedule, tweaks) for `ot.hashes` of each piece, in order. All public. A key is a piece's own, so pieces may
        have the same tweaks: what differs is its key or its place."""
        made, sizes = domains.ROWS.digest(*self.place), [size for _, size, _ in pieces(self.slots, self.words)]
        keys = ot.stream(made[: trees.KEY_BYTES], 0, 2 * len(sizes)).view(np.uint8).reshape(-1, trees.KEY_BYTES)
        tweaks = self.tweaks(made[trees.KEY_BYTES :], max(sizes, default=0))
        for key, size in zip(keys, sizes, strict=True):
            yield ot.schedule_of(key[None]), tweaks[: 64 + size]

    @staticmethod
    def tweaks(key: bytes, words: int) -> Words:
        """(64 + words, 2): of a transfer's bit and of its word, for planes of so many words."""
        return KeyStream(key).words((64 + words, 2))


class _Streams:
    """Leaves, and the guard that no part of their streams is used twice."""

    def __init__(self, leaves: Words, k: int, session: bytes, direction: int) -> None:
        self._schedules: bytearray | None = bytearray(ot.schedule_of(trees.keys_of(leaves)))
        self.k, self._session, self._direction = k, session, direction
        self._begun: set[tuple[int, int]] = set()

    def begin(self, batch: int, slots: int, words: int, part: int) -> "_Begun":
        """A part, 0 or 1, of a batch; none begins twice."""
        fits = 0 <= batch < 1 << 31 and part in (0, 1)
        if (batch, part) in self._begun or not fits:  # holds under -O too: the same transfers would come again
            raise AssertionError(f"batch {batch} of oblivious transfers was begun already")
        if (slots + 1) * (words + _STRIDE) >= _MOST_WORDS:
            raise AssertionError(f"a batch takes less than 2^32 words of a stream; got {slots} slots of {words}")
        self._begun.add((batch, part))
        return _Begun(self, slots, words, batch << 33 | part << 32, (self._session, self._direction, batch, part))

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
        place += _strides(size)


def chance(transfers: int, words: int) -> float:
    """How likely hashes of so many transfers, in planes of so many words, meet by chance, at most: docs/two-servers.md
    has the bound, for AES as an ideal cipher."""
    return 4.0 * transfers * 64 * max(_PIECE, words) * 2.0**-BITS


def _strides(size: int) -> int:
    return -(-size // _STRIDE) * _STRIDE


class _Room:
    """Memory for a piece, used again for every piece of a batch: pages that were touched once are quick. It begins with
    a cache line: kernels take one of each row at a time."""

    def __init__(self, strings: int, slots: int, words: int) -> None:
        size = max((size for _, size, _ in pieces(slots, words)), default=EXTRA_WORDS)
        self._planes = new_words((BITS * size,))
        self._sums = new_words((BITS * size if strings == 1 else 0,))
        self._strings = new_words((2 * strings * 64 * size,))

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
    """The words that a chooser sends for a batch of `slots` slots of 64 `words` transfers, and the extra one."""
    return (BITS // k - 1) * (slots * words + EXTRA_WORDS)


class Chooser:
    """The receiving side of one direction: of every transfer it learns one string, by a random choice."""

    def __init__(self, leaves: Words, k: int, session: bytes, direction: int) -> None:
        """`leaves`: all, (128 / k, 2^k, 2)."""
        self._streams = _Streams(leaves, k, session, direction)

    def begin(self, number: int, slots: int, words: int, part: int = 0) -> "ChosenBatch":
        """A batch, with its choices and its correction."""
        return ChosenBatch(self._streams.begin(number, slots, words, part))

    def erase(self) -> None:
        self._streams.erase()


class ChosenBatch:
    """A chooser's batch. `choices` (slots, words), secret; `correction`, to be sent."""

    def __init__(self, begun: _Begun) -> None:
        self._begun, streams = begun, begun.streams
        self._room, count, done = _Room(1, begun.slots, begun.words), BITS // streams.k, 0
        self.choices = np.empty((begun.slots, begun.words), dtype=np.uint64)
        self.correction = np.empty(correction_words(streams.k, begun.slots, begun.words), dtype=np.uint64)
        self._extra = np.zeros((1, EXTRA_WORDS), dtype=np.uint64)
        self._answered = False
        keeps = BITS * sum(size for _, size, _ in begun.pieces()) <= KEPT
        self._kept: list[Words] = []
        for piece, size, position in begun.pieces():
            sums = self._room.sums(count, size)
            planes = new_words((BITS, size)) if keeps else self._room.planes(size)
            streams.columns(position, planes, sums)
            if keeps:
                self._kept.append(planes)
            if piece is None:
                self._extra[:] = sums[0]
            else:
                self.choices[piece] = sums[0].reshape(-1, begun.words)
            into = self.correction[done : done + (count - 1) * size].reshape(-1, size)
            np.bitwise_xor(sums[1:], sums[0], out=into)
            done += into.size

    def answer(self, challenge: bytes | bytearray | memoryview, take: Take, wide: int = 0) -> bytes:
        """What is to be sent back; `take` gets the strings piece by piece, those of the last `wide` slots with their
        high words. Once: a second challenge would show more of the choices. Errors: PeerError for a challenge of
        another length."""
        if self._answered:  # holds under -O too
            raise AssertionError("a challenge is answered once")
        self._answered = True
        if len(challenge) != CHALLENGE_BYTES:
            raise PeerError(
                f"a challenge has {CHALLENGE_BYTES} bytes; {len(challenge)} came; are all parties of one version?",
                code="message",
            )
        begun, streams = self._begun, self._begun.streams
        sums, hashes = Sums(bytes(challenge), begun.place, BITS + 1), begun.hashes()
        for number, (piece, size, position) in enumerate(begun.pieces()):
            if self._kept:
                planes = self._kept[number]
            else:
                planes = self._room.planes(size)
                streams.columns(position, planes)
            if piece is None:
                sums.end(planes, self._extra)
                continue
            sums.add(planes, self.choices[piece].reshape(1, -1))
            strings = self._room.strings(1, 2 if piece.stop > begun.slots - wide else 1, size)
            ot.hashes(planes, *next(hashes), np.zeros((1, 2), dtype=np.uint64), strings)
            _give(take, piece, strings, begun.words)
        self._kept = []
        return consistency.answer(sums.total, begun.place)


class Offerer:
    """The sending side of one direction: of every transfer it knows both strings."""

    def __init__(self, leaves: Words, delta: Words, k: int, session: bytes, direction: int) -> None:
        """`leaves`: (128 / k, 2^k, 2), relabelled, the first of each tree unknown; `delta`: (128 / k,), its path."""
        self._streams = _Streams(leaves, k, session, direction)
        bits = (delta[:, None] >> np.arange(k, dtype=np.uint64)) & np.uint64(1)
        self._masks = np.uint64(0) - bits.reshape(-1)
        packed = bits.reshape(2, 64) << np.arange(64, dtype=np.uint64)
        self._offsets = np.stack([np.zeros(2, dtype=np.uint64), np.bitwise_or.reduce(packed, axis=1)])

    def begin(
        self, number: int, slots: int, words: int, correction: bytes | bytearray | memoryview, part: int = 0
    ) -> "OfferedBatch":
        """A batch, with its challenge, once the chooser's correction has come. Errors: PeerError for a correction of
        another length."""
        due = 8 * correction_words(self._streams.k, slots, words)
        if len(correction) != due:
            raise PeerError(
                f"a correction of {slots * words * 64} transfers has {due} bytes; {len(correction)} came; are all "
                "parties of one version?",
                code="message",
            )
        begun = self._streams.begin(number, slots, words, part)
        return OfferedBatch(begun, np.frombuffer(correction, dtype="<u8"), self._masks, self._offsets)

    def erase(self) -> None:
        self._streams.erase()
        self._masks[:] = 0
        self._offsets[:] = 0


class OfferedBatch:
    """An offerer's batch. `challenge`: to be sent; it was drawn when the correction had come."""

    def __init__(self, begun: _Begun, correction: Words, masks: Words, offsets: Words) -> None:
        self.challenge = secrets.token_bytes(CHALLENGE_BYTES)
        self._begun, self._correction, self._masks, self._offsets = begun, correction, masks, offsets
        self._sums = Sums(self.challenge, begun.place, BITS)

    def make(self, take: Take, wide: int = 0) -> None:
        """`take` gets both strings of each transfer piece by piece; to be used once the answer is right."""
        begun, streams, done = self._begun, self._begun.streams, 0
        room, hashes = _Room(2, begun.slots, begun.words), begun.hashes()
        for piece, size, position in begun.pieces():
            count, planes = (BITS // streams.k - 1) * size, room.planes(size)
            fixes = self._correction[done : done + count].reshape(-1, size)
            streams.columns(position, planes, planes[:0], fixes, self._masks)
            done += count
            if piece is None:
                self._sums.end(planes)
                continue
            self._sums.add(planes)
            strings = room.strings(2, 2 if piece.stop > begun.slots - wide else 1, size)
            ot.hashes(planes, *next(hashes), self._offsets, strings)
            _give(take, piece, strings, begun.words)

    def holds(self, answer: bytes | bytearray | memoryview) -> bool:
        """Whether the chooser's answer is right; to be asked after `make`. Errors: PeerError for one of another
        length."""
        if len(answer) != ANSWER_BYTES:
            raise PeerError(
                f"an answer to a challenge has {ANSWER_BYTES} bytes; {len(answer)} came; are all parties of one "
                "version?",
                code="message",
            )
        return consistency.holds(bytes(answer), self._sums.total, self._masks, self._begun.place)
