"""Records through a public schema into the unit ball, and who owns which."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpmpc.records.blocks import Records
    from dpmpc.records.dataset import Dataset
    from dpmpc.records.loading import CsvFile, Query, load
    from dpmpc.records.ownership import Partition, partition
    from dpmpc.records.schema import Schema
    from dpmpc.records.sets import NAMES, load_dataset

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
}
__all__ = [
    "NAMES",
    "CsvFile",
    "Dataset",
    "Partition",
    "Query",
    "Records",
    "Schema",
    "load",
    "load_dataset",
    "partition",
]


def __getattr__(name: str) -> Any:
    """A name on its first use: a party, which reads no records, does not import DuckDB."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
