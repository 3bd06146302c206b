"""Figures in the papers' style: a panel a setting, a line a method, a 95 % confidence band, logarithmic gaps."""

import math
from collections.abc import Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from dpmpc.errors import UsageError
from dpmpc.lazy import dataclass
from dpmpc_experiments.summary import Curve

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
    limits: tuple[float, float] | None = None  # of a linear y axis


@dataclass(frozen=True)
class Dot:
    """One method in a dot plot: our mean with its interval, and the printed value if there is one."""

    label: str
    mean: float
    low: float
    high: float
    color: str
    printed: float | None = None


@dataclass(frozen=True)
class DotPanel:
    """Methods as rows, a metric across, logarithmic unless said; the same labels in every panel of a figure."""

    title: str
    x: str
    dots: list[Dot]
    log: bool = True


def draw_dots(path: Path, panels: Sequence[DotPanel], floor: float) -> None:
    """Write a PNG with one panel beside the other: a dot and interval a method, a diamond for what is printed.

    Values at or below `floor` are drawn there. Errors: matplotlib is not installed.
    """
    figure, axes = _figure(1, len(panels), 4.1 * len(panels) + 1.2, 0.34 * max(len(p.dots) for p in panels) + 1.3)
    names = list(dict.fromkeys(dot.label for panel in panels for dot in panel.dots))
    for axis, panel in zip(axes[0], panels, strict=True):
        for dot in panel.dots:
            y, color = -names.index(dot.label), COLORS.get(dot.color, "#888888")
            low, high = max(dot.low, floor), max(dot.high, floor)
            axis.plot([low, high], [y, y], color=color, lw=3, alpha=0.35, solid_capstyle="butt")
            axis.plot([max(dot.mean, floor)], [y], "o", color=color, ms=6)
            if dot.printed is not None:
                axis.plot([max(dot.printed, floor)], [y], "D", mfc="none", mec="black", ms=8)
        if panel.log:
            axis.set_xscale("log")
            _plain_ticks(axis)
        axis.set_yticks([-i for i in range(len(names))], names if axis is axes[0][0] else [""] * len(names))
        axis.set_ylim(0.6 - len(names), 0.6)
        axis.set_title(panel.title, fontsize=9)
        axis.set_xlabel(panel.x, fontsize=8)
        axis.tick_params(which="both", labelsize=8)
        axis.grid(alpha=0.25, lw=0.5)
    figure.savefig(path)


def _plain_ticks(axis: Any) -> None:
    """Few numbers on a logarithmic axis, as they are written."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = axis.get_xlim()
    subs = (1.0,) if high / low > 100 else (1.0, 2.0, 5.0) if high / low > 3 else tuple(float(k) for k in range(1, 10))
    axis.xaxis.set_major_locator(LogLocator(10, subs=subs, numticks=6 if high / low > 1e4 else 12))
    axis.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}" if 1e-3 <= x < 1e4 else f"{x:.0e}"))
    axis.xaxis.set_minor_formatter(NullFormatter())


def _figure(rows: int, columns: int, width: float, height: float) -> tuple[Any, Any]:
    """An empty figure and its axes (rows, columns). Errors: matplotlib is not installed."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise UsageError("figures need matplotlib; it is not installed; pip install matplotlib") from error
    dpi = 90 if width * height < 80 else 78  # eight panels stay below 150 kB
    figure = Figure(figsize=(width, height), dpi=dpi, layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(rows, columns, squeeze=False)


def draw(path: Path, panels: Sequence[Sequence[Panel]]) -> None:
    """Write a PNG with these rows of panels and one legend. Errors: matplotlib is not installed."""
    rows, columns = len(panels), max(len(row) for row in panels)
    figure, axes = _figure(rows, columns, 4.1 * columns, 3.1 * rows + 0.9)
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
            if panel.limits is not None:
                axis.set_ylim(panel.limits)
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
