"""Checks of what a caller may ask for: every privacy function validates its arguments here, once."""

import math

from dpmpc.errors import UsageError

NEIGHBOURS = "one record of one owner replaced; the numbers of records are public"


def check_epsilon(epsilon: float) -> float:
    """Returns `epsilon` if it is positive and finite."""
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise UsageError(f"epsilon must be positive and finite; got {epsilon:g}; usual values lie between 0.1 and 10")
    return float(epsilon)


def check_delta(delta: float) -> float:
    """Returns `delta` if it lies strictly between 0 and 1."""
    if not 0 < delta < 1:
        raise UsageError(
            f"delta must lie strictly between 0 and 1; got {delta:g}; "
            "take one well below 1/(number of records), or Laplace noise for delta = 0"
        )
    return float(delta)


def check_positive(name: str, value: float) -> float:
    """Returns `value` if it is positive and finite; `name` is what the message calls it."""
    if not (math.isfinite(value) and value > 0):
        raise UsageError(f"{name} must be positive and finite; got {value:g}; give a value above 0")
    return float(value)


def check_nonnegative(name: str, value: float) -> float:
    """Returns `value` if it is at least 0 and finite."""
    if not (math.isfinite(value) and value >= 0):
        raise UsageError(f"{name} must be at least 0 and finite; got {value:g}; give 0 if there is none")
    return float(value)


def check_count(name: str, value: int) -> int:
    """Returns `value` if it is a whole number of at least 1."""
    if int(value) != value or value < 1:
        raise UsageError(f"{name} must be a whole number of at least 1; got {value}; give 1 or more")
    return int(value)


def delta_warning(delta: float, records: int) -> str | None:
    """The warning for a delta of 1/records or more, else None.

    With delta >= 1/n a mechanism that publishes one record chosen at random is (0, delta)-private, so such a promise
    does not even rule that out.
    """
    if delta < 1 / records:
        return None
    return (
        f"delta = {delta:g} is not below 1/n = {1 / records:.3g} for n = {records} records: publishing one random "
        "record outright would keep this promise; choose a smaller delta"
    )
