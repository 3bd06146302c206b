"""The key stream of AES-128 in counter mode: OpenSSL, through `cryptography`, or this extension's AES units.

Both give the same words. The extension makes them where they are wanted: in a new array, or, for a `Stretch`, inside
another kernel, so that masks are never written to memory.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmpc.mpc.native import choice

Words = NDArray[np.uint64]

_ZEROS = bytes(1 << 16)


class Stretch(NamedTuple):
    """Words of a key stream that a kernel makes by itself: from the word `position` on."""

    schedule: bytes
    position: int


class KeyStream:
    """AES-128 of 0, 1, 2, ... (16 bytes, most significant first) under `key`, as a stream of words."""

    __slots__ = ("_encryptor", "_position", "_schedule")

    def __init__(self, key: bytes) -> None:
        self._position = 0
        self._schedule = b""
        if choice.compiled is not None and "aes" in choice.compiled.features():
            self._schedule = choice.compiled.aes_schedule(key)
        else:
            self._encryptor = _encryptor(key)

    def words(self, shape: tuple[int, ...]) -> Words:
        """The next words, in a new array."""
        if not self._schedule:
            return self._words_twin(shape)
        out = np.empty(shape, dtype=np.uint64)
        choice.compiled.aes_words(self._schedule, self._position, out)
        self._position += out.size
        return out

    def reserve(self, shape: tuple[int, ...]) -> Words | Stretch:
        """The next words, as a stretch if a kernel can make them, else in a new array."""
        if not self._schedule:
            return self._words_twin(shape)
        stretch = Stretch(self._schedule, self._position)
        self._position += math.prod(shape)
        return stretch

    def _words_twin(self, shape: tuple[int, ...]) -> Words:
        size = 8 * math.prod(shape)
        zeros = _ZEROS if size <= len(_ZEROS) else bytes(size)
        out = np.empty(size // 8 + 2, dtype=np.uint64)  # the cipher asks for a block of slack
        self._encryptor.update_into(memoryview(zeros)[:size], out.data.cast("B"))
        return out[: size // 8].reshape(shape)


def _encryptor(key: bytes) -> Any:
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes  # 6 MB that a party may not need

    return Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()
