"""`duckdb` and `nanoarrow`, imported when something of them is first used: a party of a run, which has all the
library's modules and reads no record, does without."""

import importlib
from types import ModuleType
from typing import TYPE_CHECKING, Any

__all__ = ["duckdb", "nanoarrow"]


class _Late(ModuleType):
    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self.__name__), name)


if TYPE_CHECKING:
    import duckdb
    import nanoarrow
else:
    duckdb, nanoarrow = _Late("duckdb"), _Late("nanoarrow")
