"""Lines that are on disk before what they tell of may happen."""

import os


def write_whole(descriptor: int, payload: bytes) -> None:
    """Writes all of it; on disk when this returns. A file system that is full may take a part of what it is given and
    call that a success: what is left is written again, and its refusal heard. Errors: OSError."""
    while payload:
        payload = payload[os.write(descriptor, payload) :]
    os.fsync(descriptor)
