"""Parts of pages on what people wait for, from the files that `benchmarks/startup.py` and `large_records.py` write."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from dpmpc.benchmarks import tables

_STAGES = {"scan": "scan of all columns", "look": "look", "survey": "a survey's vectors", "load": "loading"}
_COLUMNS = {"seconds": 2, "times": 1, "processor": 2, "processor_times": 1}  # and their digits


def _when(found: Mapping[str, Any]) -> str:
    return f"On {found['day']}, {found['cores']} cores, load {found['load']:.0f}"


def commands(path: Path) -> str:
    """What small commands take."""
    found = json.loads(path.read_text(encoding="utf-8"))
    rows = [["", "seconds", "x `import numpy`", "processor s", "x `import numpy`"]]
    rows += [
        [row["what"], *(f"{row[key]:.{digits}f}" for key, digits in _COLUMNS.items())] for row in found["rows"].values()
    ]
    return f"{_when(found)}:\n\n{tables.markdown(rows)}"


def own(path: Path) -> str:
    """What reading records of one's own takes, by stage, and a whole run."""
    found = json.loads(path.read_text(encoding="utf-8"))
    rows = [["", "Parquet, s", "processor s", "CSV, s", "processor s"]]
    for stage, called in {**_STAGES, "train": "`dpmpc train --method output` in all"}.items():
        took = [found[kind].get(stage) for kind in ("parquet", "csv")]
        rows.append([called, *(f"{t[key]:.1f}" if t else "" for t in took for key in ("seconds", "processor"))])
    return f"{_when(found)}, {found['rows']:,} records:\n\n{tables.markdown(rows)}"


PARTS: Mapping[str, Callable[[Path], str]] = {"commands": commands, "own": own}
