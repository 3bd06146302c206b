"""Lines that are on disk before what they tell of may happen."""

import os


def write_all(descriptor: int, payload: bytes) -> None:
    """Writes all of it, for whoever reads the file; it is not on disk yet. A file system that is full may take a part
    of what it is given and call that a success: what is left is written again, and its refusal heard. Errors: OSError.
    """
    while payload:
        payload = payload[os.write(descriptor, payload) :]


def sync(descriptor: int) -> None:
    """Returns when all that anybody has written to the file is on disk. Errors: OSError."""
    os.fsync(descriptor)


def write_whole(descriptor: int, payload: bytes) -> None:
    """As `write_all`; on disk when this returns."""
    write_all(descriptor, payload)
    sync(descriptor)
