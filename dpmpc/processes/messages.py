"""What a process and the one that started it say to each other: JSON lines, in which arrays and bytes are base64.

Both ends are this user's own processes, on pipes that nobody else can open. Touches nothing.
"""

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np


def dumps(value: Any) -> bytes:
    """One line, without its end. Tuples come back as lists, paths as strings."""
    return json.dumps(value, separators=(",", ":"), default=_encode).encode()


def loads(line: bytes | bytearray | str) -> Any:
    """The value of a line that `dumps` made."""
    return json.loads(line, object_hook=_decode)


def _encode(value: Any) -> Any:
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        raw = base64.b64encode(np.ascontiguousarray(value).data.cast("B") if value.size else b"")
        return {"array": raw.decode(), "dtype": value.dtype.str, "shape": value.shape}
    if isinstance(value, bytes | bytearray):
        return {"bytes": base64.b64encode(value).decode()}
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} does not go into a message")


def _decode(value: dict[str, Any]) -> Any:
    if value.keys() == {"array", "dtype", "shape"}:
        raw = bytearray(base64.b64decode(value["array"]))
        return np.frombuffer(raw, dtype=np.dtype(value["dtype"])).reshape(value["shape"])
    if value.keys() == {"bytes"}:
        return base64.b64decode(value["bytes"])
    return value
