"""Which kernels are in use: the compiled extension, or the NumPy twins. Decided once, at import."""

import os
from types import ModuleType
from typing import TYPE_CHECKING

from dpmpc.errors import UsageError

ENVIRONMENT = "DPMPC_NATIVE"


def choose(wanted: str) -> ModuleType | None:
    """The extension, or None for the twins. Errors: UsageError for a word that means nothing."""
    if wanted not in ("", "on", "portable", "off"):
        raise UsageError(f"{ENVIRONMENT} takes on, portable or off; got {wanted!r}; mend it or unset it")
    if wanted == "off":
        return None
    try:
        from dpmpc.mpc.native import _kernels
    except ImportError:  # installed without a compiler
        return None
    if wanted == "portable":
        _kernels.restrict_to(())
    return _kernels


if TYPE_CHECKING:
    from dpmpc.mpc.native import _kernels

    compiled = _kernels
else:
    compiled = choose(os.environ.get(ENVIRONMENT, ""))


def use_threads(threads: int) -> None:
    """From now on kernels share out long work among so many threads; the twins have one."""
    if compiled is not None:
        compiled.use_threads(threads)


def describe() -> str:
    """What is in use, for reports: `NumPy`, or `C (avx2, ...)` with the processor features it uses."""
    if compiled is None:
        return "NumPy"
    return f"C ({', '.join(compiled.features()) or 'portable'})"
