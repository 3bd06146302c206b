"""How many threads a process may use."""

import os
from contextlib import AbstractContextManager
from functools import cache
from typing import Any


def threads_for(processes: int) -> int:
    """Threads for each of so many equal processes on this machine: the cores that this process may use, divided among
    them; at least 1."""
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)) // processes)
    return max(1, (os.cpu_count() or 1) // processes)


def one_thread() -> AbstractContextManager[object]:
    """BLAS works on one thread within: a product is then the same to the last bit however many cores there are."""
    return _blas().limit(limits=1)  # type: ignore[no-any-return]


@cache
def _blas() -> Any:
    from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]  # where no product is made, unused

    return ThreadpoolController()
