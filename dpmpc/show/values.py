"""What a command gives, as JSON: the one place where a result becomes text that programs read."""

import dataclasses
import json
import math
from collections.abc import Mapping
from datetime import date
from enum import Enum
from pathlib import PurePath
from typing import Any


def plain(value: Any) -> Any:
    """A result as JSON values: objects by their `to_json`, dataclasses by their fields, arrays as lists, paths and
    dates as texts, infinities and NaN as null, which is all that JSON has for them; else its text."""
    if value is None or isinstance(value, bool | str | int):
        return value.value if isinstance(value, Enum) else value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if hasattr(value, "to_json"):
        return plain(value.to_json())
    if hasattr(value, "tolist"):  # NumPy's
        return plain(value.tolist())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {each.name: plain(getattr(value, each.name)) for each in dataclasses.fields(value)}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(each) for each in (sorted(value) if isinstance(value, set | frozenset) else value)]
    if isinstance(value, PurePath | date):
        return str(value)
    return str(value)


def json_text(value: Any) -> str:
    """The result as a JSON text, which ends in a line end; the same for every command and every file of results."""
    return json.dumps(plain(value), ensure_ascii=False, indent=2, allow_nan=False) + "\n"
