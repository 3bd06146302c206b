from typing import Any

from numpy.typing import NDArray

def features(
    sources: tuple[NDArray[Any], ...],
    columns: NDArray[Any],
    constants: NDArray[Any],
    n: int,
    d: int,
    X: NDArray[Any],
    seen: NDArray[Any],
) -> None: ...
def place(
    X: NDArray[Any],
    factors: NDArray[Any],
    labels: NDArray[Any],
    to: NDArray[Any],
    n: int,
    d: int,
    out: NDArray[Any],
    y: NDArray[Any],
    single: bool,
) -> None: ...
def cells(
    values: NDArray[Any],
    places: NDArray[Any] | None,
    group: NDArray[Any],
    n: int,
    low: float,
    high: float,
    buckets: int,
    out: NDArray[Any],
    at: int,
    stride: int,
    groups: int,
) -> None: ...
