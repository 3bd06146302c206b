"""report.svg: how the model converged and what each iteration took.

With averaging over the tail the model is the iterate until half of the iterations are over, and the average of
iterates from there on: utility jumps there, and a line says so.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dpmpc.folders import write_file
from dpmpc.outcome import Iteration
from dpmpc.show.svg import HEIGHT, WIDTH, Trace, alone, bars, chart, duration, placed, text

FIGURES = {"two": "AUC", "several": "balanced accuracy", "number": "R2"}  # that curves show
_ABOVE, _NAME = 34, 24  # the heights of the heading, and of the name of a panel


def draw(path: Path, rows: Sequence[Iteration], report: dict[str, Any], mark: int | None) -> None:
    """Writes the picture of a run. `mark`: as of `curves_of`."""
    parts, beside = costs_of(rows, report["cost"])
    panels = [*curves_of(rows, report, mark), ("Seconds of noise and releases", bars("seconds", parts))]
    privacy = report["privacy"]
    promise = "no noise" if privacy["epsilon"] is None else f"ε = {privacy['epsilon']:.4g}, δ = {privacy['delta']:.2g}"
    title = f"{report['data']}: {report['owners']} owners, method {report['method']}, {promise}"
    width, height = WIDTH * len(panels), _ABOVE + _NAME + HEIGHT
    shapes = [text(width / 2, 22, title, kind="name")]
    for k, (name, panel) in enumerate(panels):
        shapes.append(text(WIDTH * (k + 0.5), _ABOVE + 16, name, kind="name"))
        shapes.append(placed(panel, WIDTH * k, _ABOVE + _NAME))
    rest = f"Beside that, start, load, evaluate: {duration(beside)}"
    shapes.append(text(width - WIDTH / 2, height - 6, rest, kind="name"))
    write_file(path, alone(title, shapes, width, height))


def curves_of(rows: Sequence[Iteration], report: dict[str, Any], mark: int | None) -> list[tuple[str, str]]:
    """The curves of utility that the run has, each with its name. `mark`: the iteration from which the model is an
    average of iterates; None for none."""
    utility = report["utility"]
    if utility is None:
        return []
    curves = []
    gap = [(row.iteration, row.gap) for row in rows if row.gap is not None]
    score = [(row.iteration, row.figure) for row in rows if row.figure is not None]
    if len(gap) > 1:
        curves.append(("Optimality gap", chart(Trace("optimality gap", gap, log=True, mark=mark))))
    if len(score) > 1:
        plain = utility["nonprivate"]["figures"]
        name = FIGURES[plain["kind"]]
        level = plain["numbers"][name]["estimate"]
        beside = None if level is None else ("without noise", level)
        curves.append((f"{name}, held-out records", chart(Trace(name, score, reference=beside, mark=mark))))
    return curves


def costs_of(rows: Sequence[Iteration], cost: dict[str, Any]) -> tuple[list[tuple[str, float]], float]:
    """Where the time of noise and releases went, in seconds, and what starting, loading and evaluating took beside."""
    online = sum(row.seconds for row in rows if row.seconds is not None)
    compute = min(cost["owners_compute_s"], online)
    parts = [("noise ahead", cost["offline_s"]), ("owners compute", compute), ("shares, sum, open", online - compute)]
    return parts, max(0.0, cost["wall_s"] - cost["offline_s"] - online)
