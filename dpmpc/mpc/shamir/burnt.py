"""What has been used up, on disk before it is used: the epochs of a run's pair keys, and the batches of each epoch.

A process that is started again finds every epoch it ever began, and begins a later one: no stream of an earlier process
can be drawn again, even if its keys were the same (they are not: each epoch agrees on new ones). The file holds
numbers that everybody knows, nothing secret.
"""

import os
from pathlib import Path

from dpmpc.errors import UsageError
from dpmpc.processes.durable import write_whole


class Burnt:
    """An append-only record; with `path` None it lives as long as the process, as its keys do."""

    def __init__(self, path: Path | None) -> None:
        """Errors: UsageError for a file that is not such a record."""
        self._path = path
        self._epoch = 0  # the last that began, in this process or before
        self._current: int | None = None  # the one that this process began
        self._batches: set[int] = set()
        if path is not None and path.exists():
            text = path.read_bytes()
            for line in text[: text.rfind(b"\n") + 1].splitlines():  # a torn last line was never used
                self._epoch = max(self._epoch, self._read(line))
            os.truncate(path, text.rfind(b"\n") + 1)

    def _read(self, line: bytes) -> int:
        kind, *numbers = line.split()
        if (kind, len(numbers)) not in {(b"epoch", 1), (b"batch", 2)} or not all(n.isdigit() for n in numbers):
            raise UsageError(
                f"a record of used keys holds lines 'epoch E' and 'batch E B'; {self._path} has another; "
                "start a new run in a new folder",
                code="file",
            )
        return int(numbers[0])

    @property
    def next_epoch(self) -> int:
        """The least epoch that may begin."""
        return self._epoch + 1

    def begin(self, epoch: int) -> None:
        """Begin an epoch; it is on disk when this returns."""
        if epoch <= self._epoch:  # holds under -O too: an epoch that begins twice draws its streams twice
            raise AssertionError(f"epoch {epoch} asked for, {self._epoch} has begun")
        self._append(f"epoch {epoch}\n")
        self._epoch = self._current = epoch
        self._batches = set()

    def burn(self, epoch: int, batch: int) -> None:
        """Use up a batch of the epoch that this process began last; it is on disk when this returns."""
        if epoch != self._current or batch in self._batches:
            raise AssertionError(f"batch {batch} of epoch {epoch} is used already, or not this process's")
        self._append(f"batch {epoch} {batch}\n")
        self._batches.add(batch)

    def _append(self, line: str) -> None:
        if self._path is None:
            return
        new = not self._path.exists()
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            write_whole(descriptor, line.encode())
        finally:
            os.close(descriptor)
        if new:  # the file's name too
            folder = os.open(self._path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
