"""report.png: how the model converged and what each iteration took. Needs matplotlib (the extra `plot`); without it
nothing is drawn.

With averaging over the tail the model is the iterate until half of the iterations are over, and the average of
iterates from there on: utility jumps there, and a line says so.
"""

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dpmpc.learning.method import tail_begins
from dpmpc.runs.history import Row, read_history

_PANEL, _HEIGHT, _BELOW, _ABOVE = 4.2, 3.6, 0.6, 0.68  # inches: a panel's width, the picture's height, margins


def draw(run: Path, report: dict[str, Any]) -> Path | None:
    """The path of the picture of the run in `run`, or None without matplotlib."""
    if importlib.util.find_spec("matplotlib") is None:
        return None
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    rows = read_history(run / "history.csv")
    utility, cost = report["utility"], report["cost"]
    left_panels = 2 if utility is not None and len(rows) > 1 else 0
    width = _PANEL * (left_panels + 1)
    figure = Figure(figsize=(width, _HEIGHT))
    FigureCanvasAgg(figure)
    axes = [
        figure.add_axes((left / width, _BELOW / _HEIGHT, wide / width, 1 - (_BELOW + _ABOVE) / _HEIGHT))
        for left, wide in _places(left_panels)
    ]
    mark = averaging_begins(report)
    if left_panels:
        _curve(axes[0], rows, [row.gap for row in rows], "optimality gap J(θ) − J(θ*)", None, mark)
        axes[0].set_yscale("log")
        name = "test_accuracy" if "test_accuracy" in utility else "test_mse"
        _curve(axes[1], rows, [row.score for row in rows], name.replace("_", " "), utility["nonprivate"][name], mark)
    _costs(axes[-1], rows, cost)
    privacy = report["privacy"]
    promise = "no noise" if privacy["epsilon"] is None else f"ε = {privacy['epsilon']:.4g}, δ = {privacy['delta']:.2g}"
    figure.suptitle(f"{report['data']}: {report['owners']} owners, method {report['method']}, {promise}", fontsize=10)
    path = run / "report.png"
    figure.savefig(path, dpi=120)
    return path


def _places(left_panels: int) -> list[tuple[float, float]]:
    """(left edge, width) of every panel in inches: fixed margins, as a layout that measures its texts takes longer
    than the rest of the picture. The last panel has the names of its bars beside it."""
    names = 1.3
    return [
        *((_PANEL * k + 0.65, _PANEL - 0.85) for k in range(left_panels)),
        (_PANEL * left_panels + names, _PANEL - names - 0.15),
    ]


def averaging_begins(report: dict[str, Any]) -> int | None:
    """The iteration from which the model is an average of iterates; None if it never is, or always."""
    releases = report["privacy"]["releases"]
    return tail_begins(releases) if report["learning"]["average"] == "tail" and releases > 1 else None


def costs_of(rows: Sequence[Row], cost: dict[str, Any]) -> tuple[list[tuple[str, float]], float]:
    """Where the time of noise and releases went, in seconds, and what starting, loading and evaluating took beside."""
    online = sum(row.seconds for row in rows if row.seconds is not None)
    compute = min(cost["owners_compute_s"], online)
    parts = [("noise ahead", cost["offline_s"]), ("owners compute", compute), ("shares, sum, open", online - compute)]
    return parts, max(0.0, cost["wall_s"] - cost["offline_s"] - online)


def duration(seconds: float) -> str:
    """Seconds for people: three digits and a unit."""
    if seconds >= 1:
        return f"{seconds:.3g} s" if seconds < 1000 else f"{seconds:,.0f} s"
    return f"{1e3 * seconds:.3g} ms" if seconds >= 1e-3 else f"{1e6 * seconds:.3g} µs"


def _curve(
    axis: Any, rows: list[Row], values: list[float | None], name: str, reference: float | None, mark: int | None
) -> None:
    known = [(row.iteration, value) for row, value in zip(rows, values, strict=True) if value is not None]
    if known:
        axis.plot(*zip(*known, strict=True), color="tab:blue", linewidth=1.4, label="private")
    if reference is not None:
        axis.axhline(reference, color="tab:gray", linestyle="--", linewidth=1, label="without privacy")
    if mark is not None and known and known[0][0] < mark <= known[-1][0]:
        axis.axvline(mark, color="tab:orange", linestyle=":", linewidth=1.2, label="averaging begins")
    if len(axis.get_legend_handles_labels()[0]) > 1:
        axis.legend(frameon=False, fontsize=8)
    axis.set_xlabel("iteration", fontsize=9)
    axis.set_title(name, fontsize=9)
    axis.tick_params(which="both", labelsize=8)
    axis.grid(alpha=0.25)


def _costs(axis: Any, rows: list[Row], cost: dict[str, Any]) -> None:
    """Where the time of noise and releases went: bars, in seconds, each with its number."""
    parts, beside = costs_of(rows, cost)
    names, seconds = zip(*reversed(parts), strict=True)
    bars = axis.barh(names, seconds, color=["tab:green", "tab:orange", "tab:blue"])
    axis.bar_label(bars, labels=[duration(value) for value in seconds], fontsize=8, padding=3)
    axis.set_xlim(0, 1.3 * max(seconds) or 1)
    axis.set_title("seconds of noise and releases", fontsize=9)
    axis.set_xlabel(f"beside that, start, load, evaluate: {duration(beside)}", fontsize=9)
    axis.tick_params(labelsize=8)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
