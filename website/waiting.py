"""Parts of pages on what people wait for, from the files that `benchmarks/startup.py` and `large_records.py`
write, and beside other packages, from that of `benchmarks/peers.py`."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from dpmpc.benchmarks import tables

_STAGES = {
    "scan": "scan of all columns",
    "look": "look",
    "survey": "a survey's vectors",
    "load": "loading",
    "before": "`dpmpc train` until its first release begins",
    "train": "`dpmpc train --method output` in all",
}
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
    for stage, called in _STAGES.items():
        took = [found[kind].get(stage, {}) for kind in ("parquet", "csv")]
        if any(took):
            each = [f"{t[key]:.1f}" if key in t else "" for t in took for key in ("seconds", "processor")]
            rows.append([called, *each])
    return f"{_when(found)}, {found['rows']:,} records:\n\n{tables.markdown(rows)}"


_PEERS = {  # who computes, and what the law is
    "dpmpc": ("three parties, one may look", "discrete Gaussian, exact to its [certificate](noise.md)"),
    "spu": ("three by ABY3, one may look", "Box-Muller of uniforms, 18 bits of fraction"),
    "crypten": ("two, and a dealer who sees all masks", "its own Box-Muller, 16 bits of fraction"),
}


def peers(path: Path) -> str:
    """Noise here beside other packages' samplers."""
    found = json.loads(path.read_text(encoding="utf-8"))
    rows = [["samples", "package", "who computes", "a second", "bytes a sample", "variance", "largest", "law"]]
    for row in found["rows"]:
        who, law = _PEERS[row["who"]]
        rows.append(
            [f"{row['count']:,}", row["version"], who, f"{row['rate']:,.0f}", f"{row['bytes']:,.0f}",
             f"{row['variance']:.3f}", f"{row['largest']:.2f}", law]
        )  # fmt: skip
    return f"{_when(found)}:\n\n{tables.markdown(rows)}"


PARTS: Mapping[str, Callable[[Path], str]] = {"commands": commands, "own": own, "peers": peers}
