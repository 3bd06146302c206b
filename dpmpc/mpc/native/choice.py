"""Which kernels are in use: the compiled extension, or the NumPy twins. Decided once, at import."""

import os
from types import ModuleType
from typing import TYPE_CHECKING

from dpmpc.errors import UsageError

ENVIRONMENT = "DPMPC_NATIVE"
KERNELS = 2  # of what the extension's functions take; a build of another number is not used
TWINS = "NumPy"
"""What `describe` calls the NumPy twins."""


def choose(wanted: str) -> ModuleType | None:
    """The extension, or None for the twins. `wanted`: on (or nothing), off, portable, or features of the processor with
    commas between: no other is used then. Errors: UsageError for a word that means nothing here."""
    if wanted == "off":
        return None
    try:
        from dpmpc.mpc.native import _kernels as found
    except ImportError:  # installed without a compiler
        found = None  # type: ignore[assignment]
    if (
        found is not None and getattr(found, "KERNELS", 0) != KERNELS
    ):  # a clone went on, and its extension was not built again
        found = None  # type: ignore[assignment]
    features = found.features() if found is not None else []
    if wanted in ("", "on"):
        return found
    names = () if wanted == "portable" else tuple(wanted.split(","))
    if not set(names) <= set(features):
        raise UsageError(
            f"{ENVIRONMENT} takes on, portable, off, or some features of this processor, of {','.join(features)}; "
            f"got {wanted!r}; mend it or unset it",
            code="choice",
        )
    if found is not None:
        found.restrict_to(names)
    return found


if TYPE_CHECKING:
    from dpmpc.mpc.native import _kernels

    compiled = _kernels
else:
    compiled = choose(os.environ.get(ENVIRONMENT, ""))


def use_threads(threads: int) -> None:
    """From now on kernels share out long work among so many threads; the twins have one."""
    if compiled is not None:
        compiled.use_threads(threads)


def threads() -> int:
    """How many threads share out long work in this process."""
    return 1 if compiled is None else compiled.threads()


def describe() -> str:
    """What is in use, for reports: `NumPy`, or `C (avx2, ...)` with the processor features it uses."""
    if compiled is None:
        return TWINS
    return f"C ({', '.join(compiled.features()) or 'portable'})"
