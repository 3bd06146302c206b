"""Checks of what a caller may ask for: every privacy function validates its arguments here, once."""

import math
from numbers import Integral, Real

from dpmpc.errors import UsageError

LEAST = 1e-300  # of epsilon and delta: what follows from smaller ones is no number of usual precision any more
NEIGHBOURS = "one record of one owner replaced; the numbers of records are public"
PRESENCE_NEIGHBOURS = "one record of one owner absent, zero in its place; the numbers of records are public"
OWNER_NEIGHBOURS = "all records of one owner replaced; the numbers of records are public"

PERSON_NEIGHBOURS = "all records of one person replaced, at every owner; the numbers of persons are public"

NEIGHBOURS_OF = {
    "record": NEIGHBOURS,
    "presence": PRESENCE_NEIGHBOURS,
    "person": PERSON_NEIGHBOURS,
    "owner": OWNER_NEIGHBOURS,
}


def check_number(name: str, value: object) -> float:
    """Returns `value` as a float if it is a real number of any type; `name` is what the message calls it."""
    if type(value) is float:  # nearly always; to ask for an abstract class takes ten times as long
        return value
    if not isinstance(value, Real) or isinstance(value, bool):
        raise UsageError(f"{name} must be a number; got {value!r}; give a number", code="type")
    return float(value)


def check_whole(name: str, value: object) -> int:
    """Returns `value` as an int if it is a whole number of any type."""
    number = check_number(name, value)
    if not (isinstance(value, Integral) or number.is_integer()):
        raise UsageError(f"{name} must be a whole number; got {value}; give one without a fraction", code="type")
    return int(value) if isinstance(value, Integral) else int(number)


def check_epsilon(epsilon: float) -> float:
    """Returns `epsilon` if it is positive and finite."""
    value = check_number("epsilon", epsilon)
    if not LEAST <= value < math.inf:
        raise UsageError(
            f"<<epsilon>> must be positive and finite; got {value:g}; usual values lie between 0.1 and 10", code="range"
        )
    return value


def check_delta(delta: float) -> float:
    """Returns `delta` if it lies strictly between 0 and 1."""
    value = check_number("delta", delta)
    if not LEAST <= value < 1:
        raise UsageError(
            f"<<delta>> must lie strictly between 0 and 1; got {value:g}; "
            "take one well below 1/(number of records), or Laplace noise for delta = 0",
            code="range",
        )
    return value


def check_positive(name: str, value: float) -> float:
    """Returns `value` if it is positive and finite."""
    value = check_number(name, value)
    if not (math.isfinite(value) and value > 0):
        raise UsageError(f"{name} must be positive and finite; got {value:g}; give a value above 0", code="range")
    return value


def check_nonnegative(name: str, value: float) -> float:
    """Returns `value` if it is at least 0 and finite."""
    value = check_number(name, value)
    if not (math.isfinite(value) and value >= 0):
        raise UsageError(f"{name} must be at least 0 and finite; got {value:g}; give 0 if there is none", code="range")
    return value


def check_count(name: str, value: int) -> int:
    """Returns `value` if it is a whole number of at least 1."""
    if check_whole(name, value) < 1:
        raise UsageError(f"{name} must be a whole number of at least 1; got {value}; give 1 or more", code="range")
    return check_whole(name, value)


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
