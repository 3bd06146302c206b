"""Where and by what a result was measured: commit, versions, processor, load. Reads only public facts of the machine;
never its name.
"""

import importlib.metadata
import os
import platform
import time
from pathlib import Path
from typing import Any

from dpmpc.mpc.native.choice import describe
from dpmpc.processes.provenance import commit

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
        "load": [round(x, 2) for x in os.getloadavg()],
    }


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
