"""The noisy joint cells of models as a file: what a meta-analysis, or another program, fits its own model to."""

import csv
import io
import itertools

from dpmpc.outcome import spelled
from dpmpc.statistics.blocks import CellCounts, groups
from dpmpc.statistics.joint import INCOMPLETE, Complete
from dpmpc.statistics.kinds.cox import Exits
from dpmpc.statistics.opened import Opened

CELLS = "cells.csv"
HEADER = ("table", "where", "group", "columns", "levels", "exit", "count", "sigma")


def cells_csv(opened: Opened) -> bytes | None:
    """A line a cell of every joint table: what was opened, raw and noisy, in records, and the deviation of its noise,
    which is independent. None where there is no such table. Post-processing of what is public."""
    text, tables = io.StringIO(), 0
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(HEADER)
    for block in opened.layout.blocks:
        if not isinstance(block, CellCounts | Exits) or not block.axes or not isinstance(block.axes[-1], Complete):
            continue
        tables += 1
        *by, joint = block.axes
        raw = opened.raw(block).reshape(groups(block), -1)
        sigma = f"{opened.deviation(block):.10g}"
        each = itertools.product(*(axis.labels for axis in by), joint.labels)
        for (*group, levels), counts in zip(each, raw, strict=True):
            gone = levels == INCOMPLETE  # all of them in the first coordinate, whatever became of them
            for left, count in zip([""] if gone else _exits(block), counts, strict=False):
                names = "" if gone else joint.name
                row = tables, str(block.where), " / ".join(group), names, levels, left, f"{count:.10g}", sigma
                writer.writerow(row)
    return text.getvalue().encode() if tables else None


def _exits(block: CellCounts | Exits) -> list[str]:
    """What each coordinate of a cell counts: of exits with an event in a bin, then without one at a boundary."""
    if isinstance(block, CellCounts):
        return [""]
    edges = [spelled(edge) for edge in block.edges]
    return [*(f"event in {a} to {b}" for a, b in itertools.pairwise(edges)), *(f"left at {edge}" for edge in edges)]
