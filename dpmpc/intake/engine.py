"""`duckdb` and `nanoarrow`, imported when something of them is first used: a party of a run, which has all the
library's modules and reads no record, does without."""

import contextlib
import importlib
import re
from types import ModuleType
from typing import TYPE_CHECKING, Any

__all__ = ["duckdb", "explained", "nanoarrow", "registered"]


class _Late(ModuleType):
    """What the first of some modules has that there is and has it."""

    def __init__(self, *names: str) -> None:
        super().__init__(names[-1])
        self._names = names

    def __getattr__(self, name: str) -> Any:
        for module in self._names[:-1]:
            with contextlib.suppress(ImportError, AttributeError):
                return getattr(importlib.import_module(module), name)
        return getattr(importlib.import_module(self._names[-1]), name)


if TYPE_CHECKING:
    import duckdb
    import nanoarrow
else:
    # `_duckdb` is what `duckdb` has its connections and errors from; what that adds takes longer to import than a small
    # file to read. Versions that call it otherwise have it in `duckdb` alone.
    duckdb, nanoarrow = _Late("_duckdb", "duckdb"), _Late("nanoarrow")


def registered(connection: Any, name: str, value: Any) -> None:
    """Makes a Python object (a frame, arrays by name) a view of this connection. The whole package has to be imported
    for it: it sets up what scans objects of Arrow, which frames of pandas may be made of."""
    importlib.import_module("duckdb")
    connection.register(name, value)


def interrupted(error: Exception) -> bool:
    """Whether a signal (Ctrl-C, SIGTERM) ended a query: DuckDB then raises an error of its own, of one of two types."""
    text = str(error)
    return isinstance(error, duckdb.InterruptException) or text == "Query interrupted" or "KeyboardInterrupt" in text


def explained(error: Exception, source: str) -> str:
    """One line on what DuckDB says of a source: rule, value, way out. Errors: KeyboardInterrupt where a signal ended
    the query, of which the source is no cause."""
    if interrupted(error):
        raise KeyboardInterrupt from None
    text = str(error).split("\n")[0]
    lowered = str(error).lower()
    if "no space left" in lowered or "failed to offload" in lowered or "max_temp_directory_size" in lowered:
        return f"records need room on the disk while they are read; it is full at {source}; free some, or name another"
    if isinstance(error, duckdb.OutOfMemoryException) or "out of memory" in lowered:
        return f"records are read within <<memory>>; {source} needs more; raise it"
    if any(word in lowered for word in ("parquet", "magic bytes", "snappy", "thrift", "prefetch registered", "gzip")):
        return f"a data file must be whole; {source} is damaged or cut short; copy it again"
    if "malformed json" in lowered or "json transform error" in lowered:
        where = re.search(r"in line (\d+)", lowered)
        return (
            f"each line is a JSON object with every key once; {source}, line {where[1] if where else '?'}; correct it"
        )
    text = re.sub(r"^[\w ]*Error: ", "", text)
    return f"records must be readable; {source}: {text[:160]}; correct the source"
