"""Bit planes to numbers and back: transposes of 64 x 64 bits, many side by side."""

import numpy as np
from numpy.typing import NDArray

from dpmpc.mpc.native import choice

Words = NDArray[np.uint64]

_STEPS = [
    (32, np.uint64(0x00000000FFFFFFFF)),
    (16, np.uint64(0x0000FFFF0000FFFF)),
    (8, np.uint64(0x00FF00FF00FF00FF)),
    (4, np.uint64(0x0F0F0F0F0F0F0F0F)),
    (2, np.uint64(0x3333333333333333)),
    (1, np.uint64(0x5555555555555555)),
]


def transpose(block: Words, rows: int) -> Words:
    """The first `rows` <= 64 rows of the transpose: bit l of out[i, w] is bit i of block[l, w], for block (at most 64,
    W), whose missing rows are 0; (rows, W)."""
    if choice.compiled is None:
        return transpose_twin(block, rows)
    out = np.empty((rows, block.shape[1]), dtype=np.uint64)
    choice.compiled.transpose(np.ascontiguousarray(block), out, block.shape[1])
    return out


def transpose_twin(block: Words, rows: int) -> Words:
    """As `transpose`. Source: Hacker's Delight 7-3."""
    x = np.zeros((64, block.shape[1]), dtype=np.uint64)
    x[: len(block)] = block
    for j, mask in _STEPS:
        halves = x.reshape(32 // j, 2, j, -1)
        shift = np.uint64(j)
        low, high = halves[:, 0], halves[:, 1]
        swap = ((low >> shift) ^ high) & mask
        high ^= swap
        low ^= swap << shift
    return x[:rows]
