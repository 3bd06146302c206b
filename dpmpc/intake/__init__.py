"""What a file, a database or a frame holds: its records as texts and values, how they are spelled, what stands out.

It imports nothing of the package but errors, lazy and folders.
"""

from typing import TYPE_CHECKING

from dpmpc.lazy import exports

if TYPE_CHECKING:
    from dpmpc.intake.spelling import Spelling

__all__ = ["Spelling"]

# A party, which reads no records, does not import DuckDB.
__getattr__, __dir__ = exports(__name__, {"Spelling": "spelling"})
