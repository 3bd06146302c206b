"""The head of an account's file, as an owner shows it to its peers, and what they remember of it.

A file that was put back from a backup, or a second machine with a file of its own, has forgotten what was spent since.
Nobody sees that in the file; but whoever was shown its head before does. A head is the number of lines and one digest
that chains the digests of all of them: head(0) = 32 zero bytes, head(k) = SHA-256(head(k - 1), SHA-256(line k)). That a
file goes on from a head is shown by the digests of the lines since. Every line that a writer has finished holds 128
random bits, so its digest says nothing of what the line says: a peer learns how many lines there are, never which runs
they are of. (Half of a line that a process left when it died has no more than its length to hide.)

Guarantees: an honest owner whose file lacks a line that a peer was shown is told so, and sends no vector. An owner that
makes up digests deceives its peers about nobody's records but its own.
"""

import hashlib
import json
import os
import struct
import tempfile
from collections.abc import Sequence
from pathlib import Path

from dpmpc.codec import loads
from dpmpc.errors import UsageError
from dpmpc.folders import make_folder
from dpmpc.lazy import dataclass
from dpmpc.privacy.ledger import sync_directory
from dpmpc.processes.locks import alone_at

_LOCK = "heads.lock"
_RULE = "what an owner has shown of its account is remembered"
_HEAD = struct.Struct("<Q32s")
_DIGEST = 32
HEAD = _HEAD.size  # bytes of a head
NAME = 16  # bytes of a head's name
MOST_LINES = 1 << 13  # since the peer was shown the file
MOST_SHOWN = _HEAD.size + MOST_LINES * _DIGEST  # bytes


class HeadError(ValueError):
    """A file that does not go on from the head that was remembered; how, in words for a message."""


@dataclass(frozen=True)
class Head:
    """How many lines a file has, and what chains their digests. Public."""

    lines: int = 0
    digest: bytes = bytes(_DIGEST)

    def after(self, digests: Sequence[bytes]) -> "Head":
        """The head when lines of these digests have followed."""
        digest = self.digest
        for each in digests:
            digest = hashlib.sha256(b"dpmpc head\0" + digest + each).digest()
        return Head(self.lines + len(digests), digest)

    def pack(self) -> bytes:
        """40 bytes."""
        return _HEAD.pack(self.lines, self.digest)

    @staticmethod
    def unpack(payload: bytes | bytearray) -> "Head":
        """What `pack` packed. Errors: HeadError for other bytes."""
        if len(payload) != _HEAD.size:
            raise HeadError("what was sent is no head")
        return Head(*_HEAD.unpack(payload))


def name_of(head: Head, purpose: bytes) -> bytes:
    """16 bytes for one purpose, which say nothing of the head to who does not know it."""
    return hashlib.sha256(b"dpmpc name of a head\0" + purpose + head.pack()).digest()[:NAME]


def goes_on(digests: Sequence[bytes], name: bytes, purpose: bytes) -> bool:
    """Whether a file with lines of these digests has, or had, the head that is called so for this purpose."""
    head = Head()
    return name_of(head, purpose) == name or any(
        name_of(head := head.after([each]), purpose) == name for each in digests
    )


def shown(digests: Sequence[bytes], remembered: Head) -> bytes:
    """What an owner shows a peer that remembers this head, of a file with lines of these digests: the head, and the
    digests of the lines since; to one that remembers none, the head as it is now.

    Errors: HeadError where the file lacks lines that the peer was shown, or has others in their place."""
    if not remembered.lines:
        return Head().after(digests).pack()
    if len(digests) < remembered.lines:
        raise HeadError(f"it has {len(digests)} lines, and had {remembered.lines}")
    if Head().after(digests[: remembered.lines]) != remembered:
        raise HeadError(f"its first {remembered.lines} lines are others than they were")
    since = digests[remembered.lines :]
    if len(since) > MOST_LINES:
        raise HeadError(f"{len(since)} lines have followed, and {MOST_LINES} can be shown")
    return remembered.pack() + b"".join(since)


def seen(payload: bytes | bytearray, remembered: Head) -> Head:
    """The head that an owner has shown, to be remembered. Errors: HeadError where it does not go on from the one that
    is remembered, or there is none."""
    if not payload:
        if remembered.lines:
            raise HeadError(f"none was shown, and one of {remembered.lines} lines before")
        return remembered
    base, rest = Head.unpack(payload[: _HEAD.size]), payload[_HEAD.size :]
    if len(rest) % _DIGEST:
        raise HeadError("what was sent is no head")
    if remembered.lines and base != remembered:
        raise HeadError(f"it has {base.lines} lines, and had {remembered.lines}, or others")
    return base.after([bytes(rest[k : k + _DIGEST]) for k in range(0, len(rest), _DIGEST)])


class Memory:
    """The heads that others have shown of their accounts for one data set, in `folder`: a file each, and a lock."""

    def __init__(self, folder: Path, data: str) -> None:
        """`data`: the digest of the data's name. Touches nothing."""
        self._folder, self._data = folder, data

    def path(self, who: str) -> Path:
        """The file on whoever is called so."""
        digest = hashlib.sha256(f"{self._data}\0{who}".encode()).hexdigest()
        return self._folder / f"{digest[:32]}.json"

    def of(self, who: str) -> Head:
        """What is remembered; no lines, where nothing is. Errors: UsageError for a file that cannot be read."""
        path = self.path(who)
        try:
            value = loads(path.read_text(encoding="utf-8"))
            return Head(int(value["lines"]), bytes.fromhex(value["digest"]))
        except FileNotFoundError:
            return Head()
        except (OSError, ValueError, KeyError, TypeError):
            raise UsageError(
                f"what an owner has shown of its account is remembered in a file; {path} cannot be read; restore it",
                code="file",
            ) from None

    def keep(self, who: str, head: Head) -> None:
        """Remembers it, unless a longer one is, which another party of this machine was shown, and may be keeping at
        the same time; on disk when this returns. Errors: UsageError where it cannot be written."""
        if head.lines <= self.of(who).lines:  # what is remembered only grows
            return
        try:
            make_folder(self._folder, _RULE, "mend <<account>>", private=True)
            with alone_at(self._folder / _LOCK):
                if head.lines > self.of(who).lines:
                    self._write(who, head)
        except OSError as error:
            raise UsageError(f"{_RULE}; {self.path(who)}: {error.strerror}; mend <<account>>") from None

    def _write(self, who: str, head: Head) -> None:
        value = {"who": who, "data": self._data, "lines": head.lines, "digest": head.digest.hex()}
        descriptor, fresh = tempfile.mkstemp(dir=self._folder)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(value, file)
            file.flush()
            os.fsync(file.fileno())
        Path(fresh).replace(self.path(who))
        sync_directory(self._folder)
