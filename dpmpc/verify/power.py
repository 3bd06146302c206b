"""How narrow noise must be for a check to fail: the check itself, made again with the noise at hand scaled."""

from collections.abc import Callable

FACTORS = (0.99, 0.98, 0.97, 0.96, 0.95, 0.94, 0.93, 0.92, 0.91, 0.9, 0.85, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.0)


def fails_below(holds: Callable[[float], bool]) -> float | None:
    """The largest factor of the scale, of FACTORS, at which the check does not hold; None where none is."""
    return next((x for x in FACTORS if not holds(x)), None)


def describe(factor: float | None) -> str:
    """The same in words."""
    if factor is None:
        return "would not fail at any smaller scale"
    if factor == 0:
        return "would fail without noise only"
    return f"would fail below {factor:g} times the scale"
