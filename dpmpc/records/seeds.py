"""Random numbers for data and splits, from a user's seed. Never for protocol randomness."""

from enum import IntEnum

import numpy as np

from dpmpc.errors import UsageError, sayable


class Stream(IntEnum):
    """Uses of one seed that must not share random numbers. Values are part of what a seed means: do not change them."""

    SPLIT = 0x5911
    OWNERS = 0x0A11
    SYNTHETIC = 0x5F17


def generator(stream: Stream, seed: int) -> np.random.Generator:
    """A generator that is the same for the same stream and seed. Errors: a negative seed."""
    if seed < 0:
        raise UsageError(f"a seed is a whole number from 0 on; got {sayable(seed)}; use for instance 1", code="range")
    return np.random.default_rng([int(stream), seed])
