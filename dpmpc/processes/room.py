"""How much memory this machine has left for new processes."""

import contextlib
import os
from pathlib import Path

_GROUP = Path("/sys/fs/cgroup")  # of this process, in a container of its own


def free_memory() -> int:
    """Bytes that processes may take without others being put out, as the kernel estimates it; where it does not say,
    all that the machine has. At most what a container leaves."""
    free = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with contextlib.suppress(OSError, ValueError, IndexError):
        lines = Path("/proc/meminfo").read_text().splitlines()
        free = next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")), free)
    with contextlib.suppress(OSError, ValueError):  # "max", or no such file: no limit
        limit, used = (int((_GROUP / name).read_text()) for name in ("memory.max", "memory.current"))
        free = min(free, max(0, limit - used))
    return free
