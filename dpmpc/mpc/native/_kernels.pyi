"""The compiled extension, as mypy sees it. Arrays are C-contiguous, of the type named; outputs overlap no input."""

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]
Ints = NDArray[np.int32]
Source = Words | tuple[bytes, int]

def features() -> list[str]: ...
def restrict_to(names: tuple[str, ...]) -> list[str]: ...
def transpose(block: Words, out: Words, words: int) -> None: ...
def aes_schedule(key: bytes) -> bytes: ...
def aes_words(schedule: bytes, position: int, out: Words) -> None: ...
def run_layer(
    state: Words,
    shape: tuple[int, int, int, int],
    deposits: tuple[tuple[Ints, int, tuple[Source, ...]], ...],
    xors: Ints,
    ands: Ints,
    pairs: Ints,
    own: tuple[Source, ...],
    message: Words,
    tiles: tuple[int, int],
) -> None: ...
def gather(state: Words, shape: tuple[int, ...], slots: Ints, out: Words) -> None: ...
def weighted_sum(values: tuple[Words, ...], factors: Words, constant: int, out: Words) -> None: ...
