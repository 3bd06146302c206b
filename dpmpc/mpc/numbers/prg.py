"""A pseudorandom generator: AES-128 in counter mode under a derived key. Touches no network and no file.

A process that forks would go on with the same stream in both: so a stream of the operating system's takes a new key in
the child, and one that others know too is not used there.
"""

import hashlib
import os
import secrets

import numpy as np
from numpy.typing import NDArray

from dpmpc.mpc.native.aes import KeyStream, Stretch


class _Process:
    """This one."""

    forks = 0  # that led to it


def _forked() -> None:
    _Process.forks += 1


os.register_at_fork(after_in_child=_forked)


def forks() -> int:
    """How many forks led to this process: another number than before means that it is another process."""
    return _Process.forks


class Prg:
    """A stream of pseudorandom words that every holder of `key` can draw in the same order.

    The AES key is SHA-256(key, length-prefixed domain) truncated to 128 bits: streams of different domains are
    independent. One stream serves one purpose of one batch, so the counter stays far below 2^48 blocks (distinguishing
    advantage of counter mode < 2^-33 even there; 2^-69 for 2^30 blocks).
    """

    __slots__ = ("_forks", "_fresh", "_stream")

    def __init__(self, key: bytes, *domain: bytes | int | str) -> None:
        digest = hashlib.sha256(len(key).to_bytes(8, "little") + key)
        for part in domain:
            if isinstance(part, int):
                raw = b"i" + part.to_bytes(16, "little", signed=True)
            else:
                raw = b"b" + part if isinstance(part, bytes) else b"s" + part.encode()
            digest.update(len(raw).to_bytes(8, "little") + raw)
        self._stream = KeyStream(digest.digest()[:16])
        self._fresh, self._forks = False, forks()

    @classmethod
    def from_os(cls) -> "Prg":
        """A stream under a fresh key from the operating system; under another one in a process that is forked later."""
        made = cls(secrets.token_bytes(32))
        made._fresh = True
        return made

    def _here(self) -> KeyStream:
        """The stream, unless it is another process's."""
        if self._forks != forks():
            if not self._fresh:  # holds under -O too: masks would repeat
                raise AssertionError("a stream of random words is used by the process that began it")
            self._stream, self._forks = KeyStream(secrets.token_bytes(16)), forks()
        return self._stream

    def words(self, shape: tuple[int, ...]) -> NDArray[np.uint64]:
        """The next uint64 words of the stream."""
        return self._here().words(shape)

    def reserve(self, shape: tuple[int, ...]) -> NDArray[np.uint64] | Stretch:
        """The next words of the stream, to be made by the kernel that uses them, where that can be."""
        return self._here().reserve(shape)
