"""Oblivious transfers in bulk: the columns of SoftSpokenOT and the hash of its rows
(`dpmpc.mpc.two_servers.extension`)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmpc.mpc.native import choice
from dpmpc.mpc.native.planes import transpose

Words = NDArray[np.uint64]
Bytes = NDArray[np.uint8]

_NOTHING = np.zeros(0, dtype=np.uint64)
_KEY, _SCHEDULE = 16, 176  # bytes


def schedule_of(keys: Bytes) -> bytes:
    """What the kernels take for the AES keys (count, 16): their round keys, or the keys themselves. Secret."""
    if _native():
        return b"".join(choice.compiled.aes_schedule(key.tobytes()) for key in keys)
    return keys.tobytes()


def _native() -> bool:
    return choice.compiled is not None and "aes" in choice.compiled.features()


def columns(
    schedules: bytes | bytearray,
    k: int,
    position: int,
    planes: Words,
    sums: Words = _NOTHING,
    fixes: Words = _NOTHING,
    masks: Words = _NOTHING,
) -> None:
    """Writes planes (128, words), and sums (128 / k, words) unless they are empty, of 128 / k trees of 2^k leaves.

    Leaf y of a tree gives words position, position + 1, ... of its key stream, an even one first; plane k tree + b is
    the XOR of the streams of the leaves y with bit b, the sum that of all. `fixes` (128 / k - 1, words) are XORed to
    the planes of trees 1, 2, ... where `masks` (128,) is all ones.
    """
    if len(schedules) == (128 // k << k) * _SCHEDULE:
        choice.compiled.ot_columns(schedules, k, position, planes, sums, fixes, masks)
    else:
        _columns_twin(schedules, k, position, planes, sums, fixes, masks)


def _columns_twin(
    keys: bytes | bytearray, k: int, position: int, planes: Words, sums: Words, fixes: Words, masks: Words
) -> None:
    words = planes.shape[1]
    for tree in range(128 // k):
        first = (tree << k) * _KEY
        streams = np.array(
            [stream(keys[first + _KEY * y : first + _KEY * (y + 1)], position, words) for y in range(1 << k)]
        )
        for b in range(k):
            planes[tree * k + b] = np.bitwise_xor.reduce(streams[1::2], axis=0)
            streams = streams[::2] ^ streams[1::2]
        if len(sums):
            sums[tree] = streams[0]
        if len(fixes) and tree:
            planes[tree * k : (tree + 1) * k] ^= fixes[tree - 1] & masks[tree * k : (tree + 1) * k, None]


def stream(key: bytes | bytearray, position: int, words: int) -> Words:
    """Words position, position + 1, ... of the key stream of AES-128 in counter mode."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    skip = position % 2
    counter = (position // 2).to_bytes(16, "big")
    made = Cipher(algorithms.AES(key), modes.CTR(counter)).encryptor().update(bytes(8 * (words + skip)))
    return np.frombuffer(made, dtype="<u8")[skip:]


def hashes(planes: Words, schedule: bytes, tweaks: Words, offsets: Words, out: Words) -> None:
    """Writes pi(y) ^ y with y = x ^ t ^ d for every bit column x of the planes (128, words), its tweak t, and offset d
    of (count, 2).

    `out`, (count, parts, 64, words), gets the low words of the hashes, and with two parts the high ones; bit b of word
    w gives [..., b, w]. Its tweak is tweaks[b] ^ tweaks[64 + w], of (64 + words, 2), public. pi is AES under the key of
    `schedule`.
    """
    if len(schedule) == _SCHEDULE:
        choice.compiled.ot_hashes(planes, schedule, tweaks, offsets, out)
    else:
        _hashes_twin(planes, schedule, tweaks, offsets, out)


def _hashes_twin(planes: Words, key: bytes, tweaks: Words, offsets: Words, out: Words) -> None:
    x = np.stack([transpose(half, 64) for half in (planes[:64], planes[64:])], axis=-1)  # (64, words, 2)
    x ^= tweaks[:64, None] ^ tweaks[None, 64:]
    cipher = _cipher(key)
    for m, offset in enumerate(offsets):
        shifted = np.ascontiguousarray(x ^ offset, dtype="<u8")
        hashed = np.frombuffer(cipher.update(shifted.tobytes()), dtype="<u8").reshape(x.shape) ^ shifted
        for part in range(out.shape[1]):
            out[m, part] = hashed[..., part]


def _cipher(key: bytes) -> Any:
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    return Cipher(algorithms.AES(key), modes.ECB()).encryptor()
