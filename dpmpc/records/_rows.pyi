from typing import Any

from numpy.typing import NDArray

def places(
    sources: tuple[NDArray[Any], ...],
    columns: NDArray[Any],
    constants: NDArray[Any],
    n: int,
    size: int,
    P: NDArray[Any],
    seen: NDArray[Any],
) -> None: ...
def squares(*design_places_single_n_packed_out: Any) -> None: ...
def rows(*design_places_single_n_packed_factors_X: Any) -> None: ...
def scores(*design_places_single_n_packed_K_factors_theta_out_codes: Any) -> None: ...
def sums(*design_places_single_n_packed_K_factors_coefficients_cuts_out: Any) -> None: ...
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
def coded_cells(
    codes: NDArray[Any],
    cells: NDArray[Any],
    moments: NDArray[Any],
    group: NDArray[Any],
    out: NDArray[Any],
    at: int,
    stride: int,
    groups: int,
) -> None: ...
