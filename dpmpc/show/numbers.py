"""How a number is written with its interval, everywhere: 0.90 [0.88, 0.92], with a star where it is conservative."""

import math
from typing import Any

from dpmpc.outcome import NO_ESTIMATE, Number


def shown(number: Number) -> str:
    """An estimate and its interval, to the digits that the noise leaves; a star where it is conservative."""
    if number.estimate is None or number.low is None or number.high is None:
        return _NONE
    reach = (number.high - number.low) / 4 if number.noise is None else number.noise
    digits = 1 - math.floor(math.log10(reach)) if reach > 0 else 6
    places = min(max(digits, 0), 10)
    if reach <= 0:
        return f"{number.estimate:.10g}"
    low, value, high = (f"{round(v, digits if digits >= 0 else 0) + 0.0:.{places}f}" for v in (
        number.low, number.estimate, number.high))  # fmt: skip
    return f"{value} [{low}, {high}]" + ("*" if number.note == "conservative" else "")


def number_of_json(value: dict[str, Any] | None) -> Number:
    """A number as files have it: what is not said of it is left out."""
    found = value or {}
    note = str(found.get("note", ""))
    return Number(found.get("estimate"), found.get("noise"), found.get("low"), found.get("high"), note)


_NONE = NO_ESTIMATE.partition(":")[0]
