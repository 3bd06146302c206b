"""A pseudorandom generator: AES-128 in counter mode under a derived key. Touches no network and no file."""

import hashlib
import secrets

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

_ZEROS = memoryview(bytes(1 << 16))
_SLACK = 16  # bytes that the cipher wants to see after what it writes


class Prg:
    """A stream of pseudorandom words that every holder of `key` can draw in the same order.

    The AES key is SHA-256(key, length-prefixed domain) truncated to 128 bits: streams of different domains are
    independent. One stream serves one purpose of one batch, so the counter stays far below 2^48 blocks (distinguishing
    advantage of counter mode < 2^-33 even there; 2^-69 for 2^30 blocks).
    """

    __slots__ = ("_encryptor",)

    def __init__(self, key: bytes, *domain: bytes | int | str) -> None:
        digest = hashlib.sha256(len(key).to_bytes(8, "little") + key)
        for part in domain:
            if isinstance(part, int):
                raw = b"i" + part.to_bytes(16, "little", signed=True)
            else:
                raw = b"b" + part if isinstance(part, bytes) else b"s" + part.encode()
            digest.update(len(raw).to_bytes(8, "little") + raw)
        self._encryptor = Cipher(algorithms.AES(digest.digest()[:16]), modes.CTR(bytes(16))).encryptor()

    @classmethod
    def from_os(cls) -> "Prg":
        """A stream under a fresh key from the operating system."""
        return cls(secrets.token_bytes(32))

    def words(self, shape: tuple[int, ...]) -> NDArray[np.uint64]:
        """The next uint64 words of the stream."""
        out = np.empty(shape, dtype=np.uint64)
        self.fill(out)
        return out

    def fill(self, out: NDArray[np.uint64]) -> None:
        """Write the next words of the stream over a contiguous array, piece by piece through a core's cache."""
        view = out.reshape(-1).data.cast("B")
        for start in range(0, len(view), len(_ZEROS)):
            piece = min(len(_ZEROS), len(view) - start)
            if start + piece + _SLACK <= len(view):
                self._encryptor.update_into(_ZEROS[:piece], view[start:])
            else:
                view[start : start + piece] = self._encryptor.update(_ZEROS[:piece])

    def mask(self, values: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """values XOR the next words of the stream, as a new array of the same shape."""
        if not values.size:
            return values
        flat = np.ascontiguousarray(values)
        return self._apply(flat.data.cast("B"), flat.nbytes).reshape(values.shape)

    def _apply(self, data: memoryview, size: int) -> NDArray[np.uint64]:
        out = np.empty(size // 8 + 2, dtype=np.uint64)  # the cipher asks for a block of slack
        self._encryptor.update_into(data, out.data.cast("B"))
        return out[: size // 8]
