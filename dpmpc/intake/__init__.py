"""What a file, a database or a frame holds: its records as texts and values, how they are spelled, what stands out.

It imports nothing of the package but errors, lazy and folders.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpmpc.intake.spelling import Spelling

__all__ = ["Spelling"]


def __getattr__(name: str) -> Any:
    """A name on its first use: a party, which reads no records, does not import DuckDB."""
    if name != "Spelling":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from dpmpc.intake.spelling import Spelling

    return Spelling
