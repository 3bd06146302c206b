"""What a party writes about a run: the transcript of its MPC events, and the vectors that were opened. Neither holds a
secret.

Transcript: JSON lines in the order of the events, each flushed to the kernel before the next step, so that a killed
process loses none. Opened vectors: fixed-width records, so that a run can be resumed from the last opened iterate even
if the owners' process died first.
"""

import hashlib
import struct
from io import RawIOBase
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from dpmpc.aggregation.plan.grid import Ints
from dpmpc.errors import UsageError

CHECKED = "checked"  # the event of a batch whose check held
STAND = "stand"  # the event of a barrier: all parties have all inputs
SKIPPED = "skipped"  # the event of a release that nobody makes
ABORT = "abort"  # the event of a failed check
_RECORD = struct.Struct("<4sIQ")  # magic, dimension, release
_MAGIC = b"dpr2"


def digest(values: Ints) -> str:
    """SHA-256 of an opened vector's little-endian numbers."""
    return hashlib.sha256(np.ascontiguousarray(values, dtype="<i8").data.cast("B")).hexdigest()


class Transcript:
    """An open transcript; events are written by `flush`, in one piece."""

    def __init__(self, path: Path) -> None:
        """Appends to an earlier attempt's; a torn last line of that one is cut off."""
        self._file = path.open("ab", buffering=0)
        self._file.truncate(whole_lines(path))
        self._waiting: list[bytes] = []

    def note(self, event: str, **fields: Any) -> None:
        """Queue one event."""
        self._waiting.append(msgspec.json.encode({"event": event, **fields}))

    def flush(self) -> None:
        """Write what is queued."""
        _write(self._file, b"".join(line + b"\n" for line in self._waiting))
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
            f"a run has a transcript of each party; {path}: {error.strerror}; of several machines, copy every party's "
            "party_* and ledger_* into one run directory",
            code="path",
        ) from None
    lines.pop()
    try:
        decode = msgspec.json.Decoder().decode
        return [decode(line) for line in lines]
    except ValueError as error:
        raise UsageError(f"a transcript is JSON lines; {path}: {error}; restore the file", code="file") from None


def whole_lines(path: Path) -> int:
    """The bytes of a file up to the end of its last whole line."""
    return path.read_bytes().rfind(b"\n") + 1


class OpenedVectors:
    """An open file of opened vectors, one record a release."""

    def __init__(self, path: Path) -> None:
        """Appends to an earlier attempt's; a torn last record of that one is cut off."""
        self._file = path.open("ab", buffering=0)
        self._file.truncate(_whole_records(path))

    def append(self, release: int, values: Ints) -> None:
        """Write one record; it survives the death of this process."""
        _write(self._file, _RECORD.pack(_MAGIC, values.size, release) + values.astype("<i8").tobytes())

    def close(self) -> None:
        self._file.close()


def read_opened(path: Path, dimension: int) -> dict[int, Ints]:
    """release -> opened vector. A torn last record is left out; a missing file holds none. Errors: another
    dimension."""
    raw = path.read_bytes() if path.exists() else b""
    result: dict[int, Ints] = {}
    size = _RECORD.size + 8 * dimension
    for at in range(0, len(raw) - size + 1, size):
        magic, d, release = _RECORD.unpack_from(raw, at)
        if magic != _MAGIC or d != dimension:
            raise UsageError(
                f"opened vectors must have dimension {dimension}; {path} holds another kind of record at byte {at}; "
                "restore the file",
                code="file",
            )
        result[release] = np.frombuffer(raw, dtype="<i8", count=dimension, offset=at + _RECORD.size).astype(np.int64)
    return result


def _whole_records(path: Path) -> int:
    """The bytes of a file of opened vectors up to the end of its last whole record; all of them if it is another
    file."""
    size = path.stat().st_size
    with path.open("rb") as file:
        first = file.read(_RECORD.size)
    if len(first) < _RECORD.size:
        return 0 if _MAGIC.startswith(first[: len(_MAGIC)]) else size
    magic, dimension, _ = _RECORD.unpack(first)
    return size - size % (_RECORD.size + 8 * dimension) if magic == _MAGIC else size


def _write(file: RawIOBase, payload: bytes) -> None:
    """All of it: a write to a file may take a part only."""
    left = memoryview(payload)
    while left:
        left = left[file.write(left) :]
