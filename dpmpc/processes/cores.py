"""How many threads a process may use."""

import os


def threads_for(processes: int) -> int:
    """Threads for each of so many equal processes on this machine: the cores that this process may use, divided among
    them; at least 1."""
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)) // processes)
    return max(1, (os.cpu_count() or 1) // processes)
