"""What a party writes about a run: the transcript of its MPC events, and the vectors that were opened. Neither holds a
secret.

Transcript: JSON lines in the order of the events, each flushed to the kernel before the next step, so that a killed
process loses none. Opened vectors: fixed-width records, so that a run can be resumed from the last opened iterate even
if the owners' process died first.
"""

import contextlib
import errno
import hashlib
import os
import stat
import struct
import tempfile
from io import RawIOBase
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from dpmpc.aggregation.plan.grid import Ints
from dpmpc.errors import UsageError
from dpmpc.folders import make_folder

CHECKED = "checked"  # the event of a batch whose check held
STAND = "stand"  # the event of a barrier: all parties have all inputs
SKIPPED = "skipped"  # the event of a release that nobody makes
ABORT = "abort"  # the event of a failed check
_RECORD = struct.Struct("<4sIQ")  # magic, dimension, release
_MAGIC = b"dpr2"
_NONCE = 12
_HEAD = struct.Struct(f"<4s{_NONCE}s")  # of a file: magic, a name at random
_HEAD_MAGIC = b"dph1"


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
    """An open file of opened vectors: a head of its own, then one record a release.

    What was opened is public and paid for: where the disk does not take it, it is kept in this machine's folder for
    what is passing, under the name that the head has at random, and is read from there, until it finds its place.
    """

    def __init__(self, path: Path) -> None:
        """Appends to an earlier attempt's; a torn last record of that one is cut off, and what was kept elsewhere is
        taken in."""
        self._file = path.open("ab", buffering=0)
        self._end = _whole_records(path)
        self._file.truncate(self._end)
        if not self._end:
            self._put(_HEAD.pack(_HEAD_MAGIC, os.urandom(_NONCE)))
        self._spare = _spare(path)
        if self._spare is not None and (kept := _read_spare(self._spare)):
            self._put(kept)
            self._spare.unlink(missing_ok=True)

    def append(self, release: int, values: Ints) -> None:
        """Write one record; it survives the death of this process. Errors: OSError where no disk takes it."""
        record = _RECORD.pack(_MAGIC, values.size, release) + values.astype("<i8").tobytes()
        try:
            self._put(record)
        except OSError as error:
            with contextlib.suppress(OSError):
                self._file.truncate(self._end)
            try:
                _write_spare(self._spare, record)
            except OSError:
                raise error from None

    def _put(self, records: bytes) -> None:
        _write(self._file, records)
        self._end += len(records)

    def close(self) -> None:
        self._file.close()


def read_opened(path: Path, dimension: int) -> dict[int, Ints]:
    """release -> opened vector. A torn last record is left out; a missing file holds none. Errors: another
    dimension."""
    raw = path.read_bytes() if path.exists() else b""
    size, result = _RECORD.size + 8 * dimension, dict[int, Ints]()
    kept = _read_spare(spare) if (spare := _spare(path)) is not None else b""
    for records in (raw[_HEAD.size :] if raw.startswith(_HEAD_MAGIC) else raw, kept):
        for at in range(0, len(records) - size + 1, size):
            magic, d, release = _RECORD.unpack_from(records, at)
            if magic != _MAGIC or d != dimension:
                raise UsageError(
                    f"opened vectors must have dimension {dimension}; {path} holds another kind of record at byte "
                    f"{at}; restore the file",
                    code="file",
                )
            vector = np.frombuffer(records, dtype="<i8", count=dimension, offset=at + _RECORD.size)
            result[release] = vector.astype(np.int64)
    return result


def holds_nothing(path: Path) -> bool:
    """Whether a file is empty, absent, or of opened vectors of which there are none, here or kept elsewhere."""
    if not path.exists() or not (size := path.stat().st_size):
        return True
    spare = _spare(path)
    return size <= _HEAD.size and spare is not None and not _read_spare(spare)


def _spare(path: Path) -> Path | None:
    """Where records are kept that the disk of this file did not take: in a folder of this user's alone. None for a file
    without a head."""
    if not path.exists():
        return None
    with path.open("rb") as file:
        head = file.read(_HEAD.size)
    if len(head) < _HEAD.size or not head.startswith(_HEAD_MAGIC):
        return None
    return Path(tempfile.gettempdir()) / f"dpmpc-opened-{os.getuid()}" / f"{_HEAD.unpack(head)[1].hex()}.bin"


def _write_spare(spare: Path | None, record: bytes) -> None:
    """Errors: OSError."""
    if spare is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    with contextlib.suppress(UsageError):
        make_folder(spare.parent, "what was opened is kept", private=True)
    if not _of_this_user(spare.parent):
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM), str(spare.parent))
    with open(os.open(spare, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab", buffering=0) as file:
        before = os.fstat(file.fileno()).st_size
        try:
            _write(file, record)
        except OSError:
            file.truncate(before)
            raise


def _read_spare(spare: Path) -> bytes:
    """The records that are kept there; none where anybody but this user could have put them there."""
    with contextlib.suppress(OSError):
        if _of_this_user(spare.parent):
            return spare.read_bytes()
    return b""


def _of_this_user(folder: Path) -> bool:
    """Whether it is a folder, and no link to one, of this user, that nobody else may write to. Errors: OSError."""
    found = folder.lstat()
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022


def _whole_records(path: Path) -> int:
    """The bytes of a file of opened vectors up to the end of its last whole record; all of them if it is another
    file."""
    size = path.stat().st_size
    with path.open("rb") as file:
        first = file.read(_HEAD.size)
        before = _HEAD.size if first.startswith(_HEAD_MAGIC) else 0
        if size < before or (not before and _HEAD_MAGIC.startswith(first[: len(_HEAD_MAGIC)])):
            return 0
        file.seek(before)
        first = file.read(_RECORD.size)
    if len(first) < _RECORD.size:
        return before if _MAGIC.startswith(first[: len(_MAGIC)]) else size
    magic, dimension, _ = _RECORD.unpack(first)
    return size - (size - before) % (_RECORD.size + 8 * dimension) if magic == _MAGIC else size


def _write(file: RawIOBase, payload: bytes) -> None:
    """All of it: a write to a file may take a part only."""
    left = memoryview(payload)
    while left:
        left = left[file.write(left) :]
