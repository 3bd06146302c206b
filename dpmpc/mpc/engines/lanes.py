"""Lanes to words and back: transposes 64 x 64 blocks of bits. Touches nothing.

Lane order is an arbitrary bijection that every engine shares: lane l of W words is bit l // W of word l % W.
"""

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]

_STEPS = [
    (32, np.uint64(0x00000000FFFFFFFF)),
    (16, np.uint64(0x0000FFFF0000FFFF)),
    (8, np.uint64(0x00FF00FF00FF00FF)),
    (4, np.uint64(0x0F0F0F0F0F0F0F0F)),
    (2, np.uint64(0x3333333333333333)),
    (1, np.uint64(0x5555555555555555)),
]


def words_for(lanes: int) -> int:
    """Words that hold one bit of each lane."""
    return (lanes + 63) // 64


def _transpose(block: Words) -> Words:
    """Bit matrices transposed: bit l of out[i, w] is bit i of block[l, w], for block (64, W)."""
    x = block.copy()
    for j, mask in _STEPS:
        halves = x.reshape(32 // j, 2, j, -1)
        shift = np.uint64(j)
        low, high = halves[:, 0], halves[:, 1]
        swap = ((low >> shift) ^ high) & mask
        high ^= swap
        low ^= swap << shift
    return x


def from_planes(planes: Words) -> Words:
    """Numbers (64 W,), one a lane, from bit planes (width, W), least significant first; width <= 64."""
    block = np.zeros((64, planes.shape[1]), dtype=np.uint64)
    block[: len(planes)] = planes
    return _transpose(block).reshape(-1)


def to_planes(numbers: Words, width: int) -> Words:
    """Bit planes (width, W) of the numbers (64 W,); the inverse of `from_planes`."""
    return _transpose(numbers.reshape(64, -1))[:width]
