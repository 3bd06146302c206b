"""Records through a public schema into the unit ball, and who owns which."""

from typing import TYPE_CHECKING

from dpmpc.lazy import exports

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

# A party, which reads no records, does not import DuckDB.
__getattr__, __dir__ = exports(__name__, _HOMES)
