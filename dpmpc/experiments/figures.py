"""Figures in the papers' style: a panel a setting, a line a method, a 95 % confidence band, logarithmic gaps."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dpmpc.errors import UsageError
from dpmpc.experiments.summary import Curve

COLORS = {
    "MPC Grad P": "#1f77b4", "MPC Out P": "#2ca02c", "Rajkumar and Agarwal": "#9467bd", "Local Out P": "#ff7f0e",
    "Local Obj P": "#8c564b", "Local Grad P": "#e377c2", "Pathak": "#d62728", "WD-DP": "#17becf",
    "Centralised private": "#555555", "Centralised non-private": "#000000", "Local private": "#bcbd22",
    "GOP": "#2ca02c",
    "LA": "#d62728",
}  # fmt: skip
FEWEST = 4  # runs below which a band says nothing
DASHES = ("-", "--", ":", "-.")


@dataclass(frozen=True)
class Line:
    """A curve with its label. color: of a method of COLORS. points: draw marks alone, for printed numbers."""

    label: str
    curve: Curve
    color: str
    dash: int = 0
    points: bool = False


@dataclass(frozen=True)
class Panel:
    title: str
    x: str
    y: str
    lines: list[Line] = field(default_factory=list)
    log_y: bool = False
    log_x: bool = False
    floor: float | None = None  # the lowest y of a logarithmic axis: values at or below it are drawn there


def draw(path: Path, panels: Sequence[Sequence[Panel]]) -> None:
    """Write a PNG with these rows of panels and one legend. Errors: matplotlib is not installed."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise UsageError("figures need matplotlib; it is not installed; pip install 'dpmpc[plot]'") from error
    rows, columns = len(panels), max(len(row) for row in panels)
    figure = Figure(figsize=(4.1 * columns, 3.1 * rows + 0.9), dpi=90, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(rows, columns, squeeze=False)
    handles: dict[str, Any] = {}
    for i, row in enumerate(panels):
        for j in range(columns):
            axis = axes[i][j]
            if j >= len(row):
                axis.set_axis_off()
                continue
            panel = row[j]
            for line in panel.lines:
                floor = -math.inf if panel.floor is None else panel.floor
                mean = [max(v, floor) for v in line.curve.mean]
                color = COLORS.get(line.color, "#888888")
                if line.points:
                    (handle,) = axis.plot(line.curve.x, mean, "x", color=color, ms=4, mew=0.9)
                else:
                    (handle,) = axis.plot(line.curve.x, mean, DASHES[line.dash], color=color, lw=1.4)
                    low, high = ([max(v, floor) for v in side] for side in (line.curve.low, line.curve.high))
                    if line.curve.count >= FEWEST:
                        axis.fill_between(line.curve.x, low, high, color=color, alpha=0.2, lw=0)
                handles.setdefault(line.label, handle)
            axis.set_title(panel.title, fontsize=9)
            axis.set_xlabel(panel.x, fontsize=8)
            axis.set_ylabel(panel.y, fontsize=8)
            axis.tick_params(which="both", labelsize=7)
            marks = sorted({x for line in panel.lines for x in line.curve.x})
            if 1 < len(marks) <= 6:
                axis.set_xticks(marks)
            axis.grid(alpha=0.25, lw=0.5)
            if panel.log_y:
                axis.set_yscale("log")
            if panel.log_x:
                axis.set_xscale("log")
    figure.legend(
        list(handles.values()),
        list(handles),
        loc="outside lower center",
        ncols=min(2 * columns, 4, len(handles)),
        fontsize=8,
    )
    figure.savefig(path)
