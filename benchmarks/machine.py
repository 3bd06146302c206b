"""Where and by what a result was measured: commit, versions, processor, load. Reads only public facts of the machine;
never its name.
"""

import importlib.metadata
import mmap
import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from dpmpc.mpc.native.choice import describe
from dpmpc.processes.provenance import commit

IMPORT = "import numpy"
_TOUCHED, _IMPORTS = 1 << 28, 3  # bytes; how often, of which the quickest counts
PACKAGES = ("dpmpc", "mpyc", "numpy", "gmpy2", "cryptography")


def machine() -> dict[str, Any]:
    """JSON-able facts, at the time of the call."""
    return {
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "commit": commit(),
        "versions": {"python": platform.python_version(), **{name: _version(name) for name in PACKAGES}},
        "system": f"{platform.system()} {platform.machine()}",
        "processor": processor(),
        "kernels": describe(),
        "cores": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "load": load(),
        "first_touch_GB_s": round(touched(_TOUCHED), 2),
        "import_numpy_s": round(min(_imported() for _ in range(_IMPORTS)), 3),
    }


def load() -> list[float]:
    """How many processes ran or waited to, of late."""
    return [round(x, 2) for x in os.getloadavg()]


def touched(size: int) -> float:
    """GB a second at which fresh memory comes that is written for the first time: so many bytes, given back after it.
    Where a machine has to fetch it from its host this is a tenth of what it is where the host has given it before."""
    with mmap.mmap(-1, size) as room:
        begin = time.perf_counter()
        for at in range(0, size, mmap.PAGESIZE):
            room[at] = 1
        return size / (time.perf_counter() - begin) / 1e9


def _imported() -> float:
    """Seconds that a fresh process takes that imports NumPy and ends."""
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-c", IMPORT], check=True)
    return time.perf_counter() - begin


def processor() -> str:
    """The processor's model, as the kernel names it."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or "unknown"


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
