"""Two result files of `dpmpc bench` side by side, for a page: what is counted exactly, and times as medians by kind of
cell."""

import statistics
from collections.abc import Iterable, Iterator
from typing import Any

from dpmpc.benchmarks import tables
from dpmpc.benchmarks.compare import Change, compare
from dpmpc.benchmarks.result_file import Record, Results, by_key
from dpmpc.benchmarks.suite import TWO

_WHOLE = {"noise": "draw", "iteration": "total", "growth": "run"}  # the seconds of a whole cell
_SAID = {"noise": "noise", "iteration": "a release", "growth": "a whole run"}


def text(old: Results, new: Results) -> str:
    """How many cells and counts are equal, a table of those that differ, and one of the ratios of times."""
    found, before, after = compare(old, new), by_key(old.records), by_key(new.records)
    both = [(before[name], after[name]) for name in before if name in after]
    counted = sum(len(a.counts) for a, _ in both)
    changed = [each for each in found.changes if each.ratio is None]
    cells = len({each.record.name for each in changed})
    said = [
        f"{len(both)} cells are in both files, {len(found.only_old)} in the older one alone, {len(found.only_new)} in "
        f"the newer one alone. {len(both) - cells} cells count the same in all, and of {counted:,} counts "
        f"{counted - len(changed):,} are equal."
    ]
    if changed:
        said.append(tables.markdown([["of", "what is counted", "cells that differ", "by", "why"], *_changes(changed)]))
    if found.drift is not None:
        said.append(
            f"Bare TCP, which no code of ours changes, took {found.drift:.2f} times as long in the newer file. Times "
            "as fast, not net of that:"
        )
    said.append(tables.markdown([["of", "cells", "times as fast, median", "least", "most"], *_times(both)]))
    if not found.same_machine:
        said.append("The files are of different machines, so times say little.")
    return "\n\n".join(said)


def _kind(record: Record) -> str:
    """Cells that are told together."""
    key, said = record.key, [_SAID.get(record.kind, record.kind)]
    if "backend" in key:
        said += [f"`{key['backend']}`", f"n = {key['parties']}"]
    if key.get("network", "loopback") != "loopback":
        said.append(key["network"])
    return ", ".join(said)


def _changes(changed: Iterable[Change]) -> Iterator[list[str]]:
    groups: dict[tuple[str, str], list[Change]] = {}
    for each in changed:
        groups.setdefault((_kind(each.record), each.name), []).append(each)
    alike: dict[tuple[str, ...], list[str]] = {}  # what is counted, by all else that a row says
    for (kind, name), of in groups.items():
        row = kind, str(len(of)), _by([(c.old, c.new) for c in of]), _why(of[0].record, name)
        alike.setdefault(row, []).append(name.replace("_", " "))
    for (kind, number, by, why), names in alike.items():
        yield [kind, ", ".join(names), number, by, why]


def _by(pairs: list[tuple[Any, Any]]) -> str:
    """What new ones are more than old ones: one difference, or what they are of the old ones."""
    if not all(isinstance(number, int | float) for pair in pairs for number in pair):
        return ""
    differences = {round(b - a, 6) for a, b in pairs}
    if len(differences) == 1:
        return f"{differences.pop():+,g}"
    ratios = [b / a for a, b in pairs if a]
    return f"{min(ratios):.4f} to {max(ratios):.4f} times" if ratios else ""


def _why(record: Record, name: str) -> str:
    """What this version counts otherwise than d7b2672 did."""
    backend, noise = str(record.key.get("backend")), record.kind == "noise" or name.startswith("noise")
    two = backend.partition("-")[0] in TWO  # `ot-k8`: a way of it
    if backend == "mpyc":
        return "frames of this package's links"
    if noise and record.key.get("method") == "functional":
        return "another scale of the noise"
    if noise:
        return "the check of transfers" if two else "larger batches"
    return "servers promise their shares" if two else "the barrier"


def _times(both: list[tuple[Record, Record]]) -> Iterator[list[str]]:
    groups: dict[str, list[float]] = {}
    for a, b in both:
        name = _WHOLE.get(a.kind, "")
        if name in a.seconds and name in b.seconds:
            groups.setdefault(_kind(a), []).append(a.seconds[name].median / b.seconds[name].median)
    for kind, ratios in groups.items():
        yield [kind, str(len(ratios)), *(f"{of(ratios):.2f}" for of in (statistics.median, min, max))]
