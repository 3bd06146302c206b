"""Locks on files that tell whether their writer lives: the kernel gives them back when it dies."""

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path


def lock(descriptor: int) -> bool:
    """Whether the writer's lock was had; a shared one, of somebody who only looks (`is_held`), is waited for."""
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            pass
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        time.sleep(0.001)


def is_held(path: Path) -> bool:
    """Whether a living process has this file's lock. Errors: OSError where the file system has no locks."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


@contextlib.contextmanager
def alone_at(path: Path) -> Iterator[None]:
    """Waits until no other process is inside for this file, and keeps others waiting; the file is made where there is
    none, and stays. Errors: OSError where it cannot be written."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
