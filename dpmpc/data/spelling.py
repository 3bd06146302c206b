"""How a value is spelled: what counts as missing, what as a number, and which spellings are the same value.

Texts only, so that a process that reads no records can check a schema without a database engine.
"""

import math
import re

MISSING = ("", "?", "na", "n/a", "null")
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def is_number(text: str) -> bool:
    """Whether a text is a finite decimal number."""
    return NUMBER.fullmatch(text) is not None and math.isfinite(float(text))


def is_missing(text: str | None) -> bool:
    """Whether a text means that there is no value."""
    return text is None or text.lower() in MISSING


def canonical(text: str) -> str:
    """The spelling under which values are compared: the shortest one of a number, so that `4.0` is `4`; true, false."""
    text = text.strip()
    if is_number(text):
        return f"{float(text) + 0.0!r}".removesuffix(".0")
    return text.lower() if text.lower() in ("true", "false") else text
