"""Records from wherever users keep them, through a public schema into the unit ball, and who owns which."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpmpc.data.blocks import Records
    from dpmpc.data.dataset import Dataset
    from dpmpc.data.loading import CsvFile, Query, load
    from dpmpc.data.ownership import Partition, partition
    from dpmpc.data.schema import Schema
    from dpmpc.data.sets import NAMES, load_dataset
    from dpmpc.data.spelling import Spelling

_HOMES = {
    "Records": "blocks",
    "Dataset": "dataset",
    "CsvFile": "loading",
    "Query": "loading",
    "load": "loading",
    "Partition": "ownership",
    "partition": "ownership",
    "Schema": "schema",
    "NAMES": "sets",
    "load_dataset": "sets",
    "Spelling": "spelling",
}
__all__ = [
    "NAMES",
    "CsvFile",
    "Dataset",
    "Partition",
    "Query",
    "Records",
    "Schema",
    "Spelling",
    "load",
    "load_dataset",
    "partition",
]


def __getattr__(name: str) -> Any:
    """A name on its first use: a party, which reads no records, does not import DuckDB."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
