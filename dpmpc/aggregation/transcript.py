"""What a party writes about a run: the transcript of its MPC events, and the vectors that were opened. Neither holds a
secret.

Transcript: JSON lines in the order of the events, each flushed to the kernel before the next step, so that a killed
process loses none. Opened vectors: fixed-width records, so that a run can be resumed from the last opened iterate even
if the owners' process died first.
"""

import hashlib
import json
import struct
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from dpmpc.errors import UsageError
from dpmpc.mpc.field import Words

_RECORD = struct.Struct("<4sIQ")  # magic, dimension, release
_MAGIC = b"dpr1"


def digest(values: Words) -> str:
    """SHA-256 of a vector's little-endian words."""
    return hashlib.sha256(np.ascontiguousarray(values, dtype="<u8").tobytes()).hexdigest()


class Transcript:
    """An open transcript; events are written by `flush`, in one piece."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("ab", buffering=0)
        self._waiting: list[bytes] = []

    def note(self, event: str, **fields: Any) -> None:
        """Queue one event."""
        self._waiting.append(json.dumps({"event": event, **fields}, separators=(",", ":")).encode())

    def flush(self) -> None:
        """Write what is queued."""
        self._file.write(b"".join(line + b"\n" for line in self._waiting))
        self._waiting.clear()

    def close(self) -> None:
        self.flush()
        self._file.close()


def read_transcript(path: Path) -> list[dict[str, Any]]:
    """The events of a transcript, in order; a torn last line is left out. Errors: no such file, or a line that is not
    an event."""
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise UsageError(
            f"a run has a transcript of each party; {path}: {error.strerror}; check the run directory"
        ) from None
    lines.pop()
    try:
        return [json.loads(line) for line in lines]
    except ValueError as error:
        raise UsageError(f"a transcript is JSON lines; {path}: {error}; restore the file") from None


class Opened:
    """An open file of opened vectors, one record a release."""

    def __init__(self, path: Path) -> None:
        self._file: BinaryIO = path.open("ab", buffering=0)

    def append(self, release: int, values: Words) -> None:
        """Write one record; it survives the death of this process."""
        self._file.write(_RECORD.pack(_MAGIC, values.size, release) + values.astype("<u8").tobytes())

    def close(self) -> None:
        self._file.close()


def read_opened(path: Path, dimension: int) -> dict[int, Words]:
    """release -> opened vector. A torn last record is left out; a missing file holds none. Errors: another
    dimension."""
    raw = path.read_bytes() if path.exists() else b""
    result: dict[int, Words] = {}
    size = _RECORD.size + 8 * dimension
    for at in range(0, len(raw) - size + 1, size):
        magic, d, release = _RECORD.unpack_from(raw, at)
        if magic != _MAGIC or d != dimension:
            raise UsageError(
                f"opened vectors must have dimension {dimension}; {path} holds another kind of record at byte {at}; "
                "restore the file"
            )
        result[release] = np.frombuffer(raw, dtype="<u8", count=dimension, offset=at + _RECORD.size).astype(np.uint64)
    return result
