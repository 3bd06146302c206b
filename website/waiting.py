"""Parts of pages from the files of programs in `benchmarks/` that have shapes of their own: what people wait for
(`startup.py`, `large_records.py`, `own_data.py`), workers of a cluster (`executed_owner.py`), other packages
(`peers.py`), kernels (`kernels.py`), and versions by turns (`programs.py`, `pooled.py`)."""

import json
import statistics
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from dpmpc.benchmarks import tables
from dpmpc.benchmarks.studies import kernels as timed
from dpmpc.benchmarks.studies import own_data, programs
from dpmpc.benchmarks.studies import pooled as turns_of_releases

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
    """Older files do not name the machine."""
    machine = found.get("machine")
    if machine is None:
        return f"On {found['day']}, {found['cores']} cores, load {found['load']:.0f}"
    said = (
        f"On {machine['time'][:10]}, commit {machine['commit']}, {machine['processor']}, {machine['cores']} cores, "
        f"load {machine['load'][0]:.0f}, kernels {machine['kernels']}"
    )
    if "first_touch_GB_s" in machine:  # older files do not say what else seconds depend on
        touch, numpy = machine["first_touch_GB_s"], machine["import_numpy_s"]
        said += f", fresh memory at {touch:.2g} GB/s, `import numpy` in {numpy:.2f} s"
    return said


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


def plain(path: Path) -> str:
    """Training on records of one's own beside the plain pipeline, by turns."""
    found = json.loads(path.read_text(encoding="utf-8"))
    rows = [["file", "memory", "`dpmpc train`, s", "of plain", "processor s", "of plain", "peak, GB", "of plain",
             "an iteration, s"]]  # fmt: skip
    for row in found["turns"]:
        of, mine = own_data.ratios(row), row["dpmpc"]
        rows.append(
            [_KINDS[row["kind"]], row["memory"], f"{mine['seconds']:.1f}", f"{of['seconds']:.2f}",
             f"{mine['processor']:.1f}", f"{of['processor']:.2f}", f"{mine['peak_bytes'] / 1e9:.2f}",
             f"{of['peak_bytes']:.2f}", f"{mine['iteration_s']:.2f}"]
        )  # fmt: skip
    versions = ", ".join(f"{name} {number}" for name, number in found["with"].items())
    return (
        f"{_when(found)}, {found['rows']:,} records of {found['columns']} columns, {found['iterations']} iterations, "
        f"{versions}:\n\n{tables.markdown(rows)}"
    )


_KINDS = {"parquet": "Parquet", "csv": "CSV"}
_LOADS = {  # of an owner's file that is read within a given memory
    "reading": ("read", "s"),
    "precision": ("precision", "s"),
    "load_s": ("load, s", ".1f"),
    "load_cpu_s": ("of it processor, s", ".1f"),
    "read_s": ("read blocks, s", ".2f"),
    "gradient_s": ("gradient, s", ".2f"),
    "ratio": ("gradient / read", ".2f"),
    "peak_MB": ("peak, MB", ".0f"),
}


def loads(path: Path) -> str:
    """What reading an owner's file within a given memory takes, and gradients over it."""
    found = json.loads(path.read_text(encoding="utf-8"))
    rows = [["owner", *(called for called, _ in _LOADS.values())]]
    rows += [[str(row["owner"]), *(format(row[key], f) for key, (_, f) in _LOADS.items())] for row in found["loads"]]
    return f"{_when(found)}, {found['rows']:,} records of {found['columns']} features:\n\n{tables.markdown(rows)}"


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


def kernels(path: Path) -> str:
    """Each kernel's twin over the kernel, by family."""
    found = json.loads(path.read_text(encoding="utf-8"))
    sizes = list(found["seconds"])
    head = f"NumPy twin's time over the kernel's, rows of {' / of '.join(sizes)} words"
    rows, slower = [["kernels of", head]], list[str]()
    for family, names in found["families"].items():
        said = []
        for name in names:
            ratios = [twin / ours for ours, twin in (found["seconds"][size][name] for size in sizes)]
            said.append(f"{name} {' / '.join(f'{r:.1f}' if r < 10 else f'{r:.0f}' for r in ratios)}")
            slower += [name] * (min(ratios) < 1 / timed.SLOWER)
        rows.append([family, "; ".join(said)])
    which = f"Slower than the twin: {', '.join(slower)}." if slower else "None is slower than its twin."
    return f"{_when(found)}, medians of {found['repetitions']}:\n\n{tables.markdown(rows)}\n\n{which}"


def turns(path: Path) -> str:
    """Noise of two versions by turns."""
    found = json.loads(path.read_text(encoding="utf-8"))
    shown = programs.table(found)
    return f"{_when(found)}:\n\n{shown}" if "machine" in found else shown


def pooled(path: Path) -> str:
    """A release with noise from the pool by two versions, by turns."""
    found = json.loads(path.read_text(encoding="utf-8"))
    old, new, rest = found["old"], found["new"], turns_of_releases.REST
    of = {part: statistics.median(b[part] / a[part] for a, b in zip(old, new, strict=True)) for part in (rest, "total")}
    where = "in memory" if found["disk"] == "memory" else "in the folder for temporary files"
    return (
        f"{_when(found)}, d = {found['d']}, {found['m']} owners, ledgers {where}, {len(old)} turns. A release takes "
        f"{of['total']:.2f} of what it took at {found['against']}. Without the part in which parties open, where the "
        f"barrier is, it takes {of[rest]:.2f}:\n\n{turns_of_releases.table(old, new)}"
    )


_PASS = {  # a pass of workers over an owner's partitions
    "pass_processor_s": ("a pass, seconds of the workers' processors", ".1f"),
    "pass_s": ("a pass, seconds of the clock", ".1f"),
    "bytes_out": ("bytes from the owner to workers, a pass", ",.0f"),
    "bytes_back": ("bytes from workers to the owner, a pass", ",.0f"),
    "worker_MB": ("memory of a worker at its peak, MB", ".0f"),
}


def cluster(path: Path) -> str:
    """A pass over an owner's partitions by workers of a cluster, beside one release."""
    found = json.loads(path.read_text(encoding="utf-8"))
    by = sorted(found["workers"], key=lambda row: row["workers"])
    rows = [["", *(f"{row['workers']} worker{'s' if row['workers'] > 1 else ''}" for row in by)]]
    rows += [[called, *(format(row[key], digits) for row in by)] for key, (called, digits) in _PASS.items()]
    return (
        f"{_when(found)}: {by[0]['rows']:,} records of {by[0]['columns']} numbers, in {found['partitions']} Parquet "
        f"files of {found['parquet_GB']} GB together. One release of d = {found['dimension']}, its noise ready, takes "
        f"{found['release_s']:.4f} s.\n\n{tables.markdown(rows)}"
    )


PARTS: Mapping[str, Callable[[Path], str]] = {
    "cluster": cluster,
    "commands": commands,
    "own": own,
    "plain": plain,
    "peers": peers,
    "kernels": kernels,
    "loads": loads,
    "turns": turns,
    "pooled": pooled,
}
