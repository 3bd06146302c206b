"""A pseudorandom generator: AES-128 in counter mode under a derived key. Touches no network and no file."""

import hashlib
import secrets

import numpy as np
from numpy.typing import NDArray

from dpmpc.mpc.native.aes import KeyStream, Stretch


class Prg:
    """A stream of pseudorandom words that every holder of `key` can draw in the same order.

    The AES key is SHA-256(key, length-prefixed domain) truncated to 128 bits: streams of different domains are
    independent. One stream serves one purpose of one batch, so the counter stays far below 2^48 blocks (distinguishing
    advantage of counter mode < 2^-33 even there; 2^-69 for 2^30 blocks).
    """

    __slots__ = ("_stream",)

    def __init__(self, key: bytes, *domain: bytes | int | str) -> None:
        digest = hashlib.sha256(len(key).to_bytes(8, "little") + key)
        for part in domain:
            if isinstance(part, int):
                raw = b"i" + part.to_bytes(16, "little", signed=True)
            else:
                raw = b"b" + part if isinstance(part, bytes) else b"s" + part.encode()
            digest.update(len(raw).to_bytes(8, "little") + raw)
        self._stream = KeyStream(digest.digest()[:16])

    @classmethod
    def from_os(cls) -> "Prg":
        """A stream under a fresh key from the operating system."""
        return cls(secrets.token_bytes(32))

    def words(self, shape: tuple[int, ...]) -> NDArray[np.uint64]:
        """The next uint64 words of the stream."""
        return self._stream.words(shape)

    def reserve(self, shape: tuple[int, ...]) -> NDArray[np.uint64] | Stretch:
        """The next words of the stream, to be made by the kernel that uses them, where that can be."""
        return self._stream.reserve(shape)
