"""The compiled kernels of records, where there are any: each has a NumPy twin beside its caller, with the same bits."""

import os
from functools import cache
from typing import Any


@cache
def compiled() -> Any:
    """The extension, or None where there is none or DPMPC_NATIVE is off."""
    if os.environ.get("DPMPC_NATIVE", "") == "off":
        return None
    try:
        from dpmpc.records import _rows
    except ImportError:  # installed without a compiler
        return None
    return _rows
