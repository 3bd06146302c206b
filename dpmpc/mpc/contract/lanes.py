"""Lanes to words and back: transposes of 64 x 64 bits. Touches nothing.

Lane order is an arbitrary bijection that every engine shares: lane l of W words is bit l // W of word l % W.
"""

import numpy as np
from numpy.typing import NDArray

from dpmpc.mpc.native.planes import transpose

Words = NDArray[np.uint64]


def words_for(lanes: int) -> int:
    """Words that hold one bit of each lane."""
    return (lanes + 63) // 64


def from_planes(planes: Words) -> Words:
    """Numbers (64 W,), one a lane, from bit planes (width, W), least significant first; width <= 64."""
    return transpose(planes, 64).reshape(-1)


def to_planes(numbers: Words, width: int) -> Words:
    """Bit planes (width, W) of the numbers (64 W,); the inverse of `from_planes`."""
    return transpose(numbers.reshape(64, -1), width)
