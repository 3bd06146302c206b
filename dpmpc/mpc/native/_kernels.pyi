"""The compiled extension, as mypy sees it. Arrays are C-contiguous, of the type named; outputs overlap no input."""

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]

def features() -> list[str]: ...
def restrict_to(names: tuple[str, ...]) -> list[str]: ...
def transpose(block: Words, out: Words, words: int) -> None: ...
