"""How much memory a process may use."""

import contextlib
import math
import os

from dpmpc.errors import UsageError, sayable

_UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
_LEAST = 512 * 10**6
_KEPT = 1 << 28  # bytes: what of columns is read again beyond it takes less than as much memory is worth


def parse_memory(text: str) -> int:
    """The bytes that a size such as 2GB means. Errors: it is none, or below 512 MB, which the libraries need."""
    number = text.strip().lower().removesuffix("ib") if text.strip().lower().endswith("ib") else text.strip().lower()
    digits = number.rstrip("kmgtb ")
    unit = number[len(digits) :].strip()
    unit = unit if unit.endswith("b") or not unit else unit + "b"
    with contextlib.suppress(ValueError):
        size = float(digits) * _UNITS[unit] if unit in _UNITS else -1.0
        if math.isfinite(size) and size >= _LEAST:
            return int(size)
    raise UsageError(
        f"<<memory>> is a size from 512MB on, such as 2GB; got '{sayable(text[:20])}'; correct it", code="range"
    )


def usual_memory() -> int:
    """Half of this machine's memory, in bytes."""
    return max(_LEAST, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2)


def kept_within(memory: int) -> int:
    """How many bytes of columns that were read may be kept, of so many that a process may use."""
    return min(_KEPT, memory // 8)
