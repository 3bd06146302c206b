"""A private folder for what a run writes beside its results: copies of records on their way into features.

Only its owner may enter (0700). It is removed at the end; after a crash by the next process that makes one beside it,
for a lock tells which folders still have a process. Features themselves lie in files without a name (`blocks`), which
the system frees with the process, however it ends.
"""

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from dpmpc.errors import UsageError, sayable

_PREFIX = "dpmpc-records-"
_FRESH_S = 60.0  # a folder so young may not be locked yet


@contextlib.contextmanager
def with_room(source: str) -> Iterator[None]:
    """For what is written while a source is read. Errors: the disk does not take it."""
    try:
        yield
    except OSError as error:
        raise UsageError(
            f"records need room on the disk while they are read; {sayable(source)}: {sayable(error.strerror)}; free "
            "some"
        ) from None


@contextlib.contextmanager
def scratch_folder(parent: Path | None = None) -> Iterator[Path]:
    """A new private folder below `parent` (default: the system's folder for temporary files), removed at the end.

    Errors: the parent cannot be written.
    """
    base = Path(tempfile.gettempdir()) if parent is None else parent
    sweep(base)
    try:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=base))  # 0700
    except OSError as error:
        raise UsageError(
            f"records need a folder for temporary files; {sayable(base)}: {error.strerror}; name another with <<out>>"
        ) from None
    lock = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def in_scratch(path: Path) -> bool:
    """Whether a file lies in such a folder, so that its name says nothing."""
    return any(part.startswith(_PREFIX) for part in path.parts[:-1])


def sweep(base: Path, fresh: float = _FRESH_S) -> int:
    """Removes the folders that crashed processes of this user left in `base`; returns how many. `fresh`: the age in
    seconds below which one may not be locked yet; 0 where nobody else works in `base`."""
    removed = 0
    for folder in base.glob(f"{_PREFIX}*"):
        try:
            status = folder.stat()
            if status.st_uid != os.getuid() or time.time() - status.st_mtime < fresh:
                continue
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError:  # gone, or not ours
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
            removed += 1
        except BlockingIOError:
            pass  # its process lives
        finally:
            os.close(lock)
    return removed


def sweep_below(folder: Path) -> None:
    """The same in a run's folder and in those of its stages, where nobody but the caller's process makes any."""
    for each in (folder, *folder.glob("*/")):
        sweep(each, fresh=0)
