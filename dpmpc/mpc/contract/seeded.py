"""Shamir shares of which t are expanded from seeds: an owner sends n - t vectors instead of n.

The parties 0 .. t - 1 get a fresh seed of the operating system each (`secrets`), with the number of words it stands
for, and expand it by the project's AES stream; the parties t .. n - 1 get words.

Guarantees: a polynomial of degree t is determined by its value at 0 and its values at t other points, and every choice
of these is one. So for every fixed secret t uniform values at the points 1 .. t are a uniform polynomial: with uniform
words in place of the streams the n shares have the very law of `field.share`, and any t of them are uniform whatever
the secret is. A coalition that holds some of the seeds knows those shares, as it would anyway; the streams that its
other shares depend on are under seeds that it does not know, so what it sees is as close to uniform as AES in counter
mode (`Prg`), for each seed of 128 bits. A seed serves one block of one release and is never used again.

Cost: 8 d (n - t) + 24 t bytes a vector of d words, where a block has one; a seed serves all vectors of a block.
"""

import secrets
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from dpmpc.errors import PeerError
from dpmpc.mpc.contract.backend import Ints
from dpmpc.mpc.contract.shares import WORD, FieldShares
from dpmpc.mpc.numbers import domains, field
from dpmpc.mpc.numbers.field import Words
from dpmpc.mpc.numbers.prg import Prg

_SEED = struct.Struct("<16sQ")  # the seed, and how many words it stands for
_BLOCK = 1 << 14  # words that are expanded and shared at a time: they stay in a core's cache


class SeededDealer:
    """The owners' end."""

    def __init__(self, parties: int, threshold: int) -> None:
        self._parties, self._threshold = parties, threshold

    def deal(self, vectors: Ints) -> list[Any]:
        seeds = [secrets.token_bytes(16) for _ in range(self._threshold)]
        streams = [domains.DEALT.stream(seed, party) for party, seed in enumerate(seeds)]
        rows = shares_beside(vectors, self._parties, streams)
        return [*(_SEED.pack(seed, vectors.size) for seed in seeds), *(memoryview(row).cast("B") for row in rows)]


class SeededShares(FieldShares):
    """The local half of a holder with `party` and `threshold`."""

    party: int
    threshold: int

    def collect(self, payload: bytes | bytearray, owners: int, dimension: int) -> Words:
        if self.party >= self.threshold:
            return super().collect(payload, owners, dimension)
        return field.total(self._words(payload, owners, dimension))  # below p, as they are expanded

    def _words(self, payload: bytes | bytearray, owners: int, dimension: int) -> Words:
        if self.party >= self.threshold:
            return super()._words(payload, owners, dimension)
        words = owners * dimension
        if len(payload) != _SEED.size or _SEED.unpack(payload)[1] != words:
            raise PeerError(
                f"{owners} shares of {dimension} numbers come as a seed of {_SEED.size} bytes for {words} words; "
                f"{len(payload)} bytes came; are all processes of one version?",
                code="message",
            )
        seed, _ = _SEED.unpack(payload)
        return expanded(domains.DEALT.stream(seed, self.party), words).reshape(owners, dimension)


def payload_bytes(parties: int, threshold: int, words: int) -> tuple[int, ...]:
    """The sizes, by party, of what `SeededDealer.deal` makes of so many words."""
    return (_SEED.size,) * threshold + (WORD * words,) * (parties - threshold)


def expanded(stream: Prg, words: int) -> Words:
    """The next `words` field elements of a stream, exactly uniform given uniform bits. In blocks, as the dealer draws
    them: where a word has to be drawn again depends on where blocks begin."""
    if words <= _BLOCK:
        return field.uniform(stream, (words,))
    result = np.empty(words, dtype=np.uint64)
    for start in range(0, words, _BLOCK):
        block = result[start : start + _BLOCK]
        block[:] = field.uniform(stream, block.shape)
    return result


def shares_beside(values: Ints, parties: int, streams: Sequence[Prg]) -> Words:
    """The shares of the parties t .. n - 1, (n - t, *values.shape), of secret `values`, signed or reduced, where those
    of the parties 0 .. t - 1 are the words of t streams. With t = 0 every share is the value."""
    flat, t = np.ascontiguousarray(values).reshape(-1), len(streams)
    shares = np.empty((parties - t, flat.size), dtype=np.uint64)
    for start in range(0, flat.size, _BLOCK):
        value = flat[start : start + _BLOCK]
        drawn = [field.uniform(stream, (1, value.size)) for stream in streams]
        known = drawn[0] if t == 1 else np.concatenate([*drawn, np.empty((0, value.size), dtype=np.uint64)])
        field.continue_into(shares, start, value, known)
    return shares.reshape(parties - t, *values.shape)
