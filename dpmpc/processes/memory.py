"""This process's memory: how the allocator treats freed blocks, when garbage is looked for, and how much was in use at
most."""

import contextlib
import gc
import resource
import sys
from collections.abc import Iterator
from pathlib import Path

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # names of glibc's mallopt
_LARGEST = 32 << 20  # what glibc takes at most: larger arrays go back to the kernel
_KEPT = 256 << 20


def keep_freed_blocks() -> None:
    """Let the C library keep up to 256 MiB of freed memory for the next arrays.

    By default glibc hands every freed array above 128 KiB back to the kernel, and the next array of that size pays for
    fresh zeroed pages, which costs as much as the field arithmetic on it. Without glibc: does nothing.
    """
    import ctypes  # which `dpmpc --help` does without

    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return
    mallopt(_MMAP_THRESHOLD, _LARGEST)
    mallopt(_TRIM_THRESHOLD, _KEPT)


@contextlib.contextmanager
def importing() -> Iterator[None]:
    """Python looks for no garbage within, nor later among what was imported. Imports leave none to speak of, and to
    look through what they have made so far, again and again, takes a seventh of their time, and after them a thirtieth
    of a short command's."""
    usual, before = gc.isenabled(), len(sys.modules)
    gc.disable()
    try:
        yield
    finally:
        if len(sys.modules) > before:
            gc.freeze()
        if usual:
            gc.enable()


def peak_memory() -> int:
    """The most bytes of memory this process has had resident.

    From /proc on Linux: getrusage there reports the parent's size at the fork if that was larger.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
