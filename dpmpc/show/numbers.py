"""How a number is written with its interval, everywhere: 0.90 [0.88, 0.92], with a star where it is conservative."""

import math
from typing import Any

from dpmpc.outcome import NO_ESTIMATE, Number


def shown(number: Number, *, whole: bool = False) -> str:
    """An estimate and its interval, to the digits that the noise leaves; a star where it is conservative. An interval
    that is open on one side has its end alone; a value without interval, such as a p-value, three digits. whole: of
    people, who are not shown in parts; the interval then reaches to the next whole numbers."""
    star = "*" if "conservative" in number.note else ""
    if number.low is not None and number.high == math.inf:
        return f">= {number.low:.3g}{star}" if number.low > 0 else "not told"
    if number.estimate is None:
        return NOTHING_TOLD
    if number.low is None or number.high is None:
        return f"{number.estimate:.3g}" if number.estimate >= 0.0001 else "< 0.0001"
    if number.low == 0 and "open below" in number.note:
        return f"<= {number.high:.3g}{star}"
    reach = (number.high - number.low) / 4 if number.noise is None else number.noise
    digits = 1 - math.floor(math.log10(reach)) if reach > 0 else 6
    places = min(max(digits, 0), 10)
    if reach <= 0:
        return f"{number.estimate:.10g}"
    if whole and places:
        return f"{round(number.estimate)} [{math.floor(number.low)}, {math.ceil(number.high)}]{star}"
    low, value, high = (f"{round(v, digits if digits >= 0 else 0) + 0.0:.{places}f}" for v in (
        number.low, number.estimate, number.high))  # fmt: skip
    return f"{value} [{low}, {high}]{star}"


def number_of_json(value: dict[str, Any] | None) -> Number:
    """A number as files have it: what is not said of it is left out."""
    found = value or {}
    note = str(found.get("note", ""))
    return Number(found.get("estimate"), found.get("noise"), found.get("low"), found.get("high"), note)


NOTHING_TOLD = NO_ESTIMATE.partition(":")[0]
