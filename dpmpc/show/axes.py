"""Pictures as Matplotlib's axes, to be restyled, saved and printed: the same shapes that pages draw as SVG.

Drawn through pyplot, so that a notebook shows them in place and `matplotlib.rc_context` styles them. An interval is
drawn wherever there is one: no estimate that noise moved stands alone.
"""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from dpmpc.errors import UsageError
from dpmpc.folders import replaced
from dpmpc.outcome import Bars, Calibration, Curves, Forest, Heat, Line, Number, Profile, Shape

_INCHES = 6.4
_SIDE = 2  # pictures beside each other


def drawn(shapes: Sequence[Shape], ax: Any = None) -> Any:
    """The axes of one shape, or an array of axes. Errors: UsageError where Matplotlib is not installed, or where there
    are several pictures and one `ax`."""
    if ax is not None:
        if len(shapes) != 1:
            raise UsageError(f"ax takes one picture; there are {len(shapes)}; leave it out")
        draw(shapes[0], ax)
        return ax
    return _figure(shapes)[1]


def saved(shapes: Sequence[Shape], path: Path) -> Path:
    """Writes the pictures in the form that the path ends in; the path."""
    pyplot, axes = _figure(shapes)
    figure = (axes if len(shapes) == 1 else axes[0]).figure
    try:
        with replaced(path) as beside, beside.open("wb") as file:
            figure.savefig(file, format=path.suffix[1:].lower(), bbox_inches="tight")
    finally:
        pyplot.close(figure)
    return path


def _figure(shapes: Sequence[Shape]) -> tuple[Any, Any]:
    """(pyplot, the axes of one shape or an array of them)."""
    try:
        from matplotlib import pyplot
    except ImportError:
        raise UsageError("a picture needs Matplotlib; it is not installed; pip install matplotlib") from None
    axes: Any
    if len(shapes) == 1:
        figure, axes = pyplot.subplots(figsize=(_INCHES, _height(shapes[0])), layout="constrained")
        draw(shapes[0], axes)
        return pyplot, axes
    across = min(_SIDE, len(shapes))
    down = math.ceil(len(shapes) / across)
    tall = max(map(_height, shapes))
    figure, grid = pyplot.subplots(
        down, across, figsize=(_INCHES * across, min(tall * down, 200.0)), squeeze=False, layout="constrained"
    )
    axes = grid.ravel()
    for each, shape in zip(axes, shapes, strict=False):
        draw(shape, each)
    for each in axes[len(shapes) :]:
        figure.delaxes(each)
    return pyplot, axes[: len(shapes)]


def _height(shape: Shape) -> float:
    """Inches."""
    if isinstance(shape, Bars | Forest):
        return max(1.8, 0.8 + 0.26 * len(shape.lines))
    if isinstance(shape, Heat):
        return max(2.4, 1.2 + 0.3 * len({_down(line) for line in shape.lines}))
    return _INCHES if isinstance(shape, Calibration) else 4.4


def draw(shape: Shape, ax: Any) -> None:
    """Draws a shape on axes."""
    ways: dict[type, Callable[[Any, Any], None]] = {
        Bars: _bars, Forest: _forest, Curves: _curves, Calibration: _calibration, Heat: _heat, Profile: _profile,
    }  # fmt: skip
    ways[type(shape)](shape, ax)
    ax.set_title(shape.title)


def _name(line: Line) -> str:
    return " · ".join(label for label in line.labels if label) or line.statistic


def _reach(number: Number) -> tuple[float, float] | None:
    """How far the interval goes below and above the estimate; None where it has no ends."""
    if number.estimate is None or number.low is None or number.high is None:
        return None
    if not (math.isfinite(number.low) and math.isfinite(number.high)):
        return None
    return max(number.estimate - number.low, 0.0), max(number.high - number.estimate, 0.0)


def _known(lines: Sequence[Line]) -> list[tuple[Line, float]]:
    return [(line, line.number.estimate) for line in lines if line.number.estimate is not None]


def _rows(lines: Sequence[Line], ax: Any, bars: bool) -> None:
    """One row a number, from top to bottom."""
    known = _known(lines)
    for k, (line, value) in enumerate(known):
        if bars:
            ax.barh(k, value, height=0.7, color="C0", alpha=0.35)
        reach = _reach(line.number)
        if reach is not None:
            ax.errorbar([value], [k], xerr=[[reach[0]], [reach[1]]], fmt="o", color="C0", capsize=2, markersize=4)
        elif not bars:
            ax.plot([value], [k], "o", color="C0", markersize=4)
    ax.set_yticks(range(len(known)), [_name(line) for line, _ in known])
    ax.set_ylim(len(known) - 0.4, -0.6)
    ax.grid(axis="x", alpha=0.3)


def _bars(shape: Bars, ax: Any) -> None:
    _rows(shape.lines, ax, bars=True)


def _forest(shape: Forest, ax: Any) -> None:
    lines = [line for line in shape.lines if not shape.ratios or (line.number.estimate or 0.0) > 0]
    _rows(lines, ax, bars=False)
    if shape.ratios:
        ax.set_xscale("log")
        ax.axvline(1.0, color="0.4", linestyle="--", linewidth=1)


def _curves(shape: Curves, ax: Any) -> None:
    grouped = int(shape.grouped)
    arms = list(dict.fromkeys(line.labels[:grouped] for line in shape.lines))
    for k, arm in enumerate(arms):
        mine = [line for line in shape.lines if line.labels[:grouped] == arm]
        at = [0.0, *(float(line.labels[-1]) for line in mine)]
        values, lows, highs = ([1.0] for _ in range(3))
        for line in mine:
            number = line.number
            values.append(number.estimate or 0.0)
            lows.append(number.low or 0.0)
            highs.append(values[-1] if number.high is None else number.high)
        ax.step(at, values, where="post", color=f"C{k % 10}", label=arm[0] if arm else "all")
        ax.fill_between(at, lows, highs, step="post", color=f"C{k % 10}", alpha=0.2, linewidth=0)
    ax.set_ylim(0.0, 1.02)
    ax.set_xlim(left=0.0)
    ax.legend()


def _calibration(shape: Calibration, ax: Any) -> None:
    groups = list(dict.fromkeys(line.labels[:-1] for line in shape.lines))
    for line, value in _known(shape.lines):
        low, high = (float(end) for end in line.labels[-1].rstrip("%").split("-"))
        k, reach = groups.index(line.labels[:-1]), _reach(line.number.mapped(0.01))
        label = line.labels[0] if len(line.labels) > 1 else None
        known = label in ax.get_legend_handles_labels()[1]
        ax.errorbar(
            [(low + high) / 200], [value / 100], yerr=None if reach is None else [[reach[0]], [reach[1]]], fmt="o",
            color=f"C{k % 10}", capsize=2, label=None if known else label,
        )  # fmt: skip
    ax.axline((0, 0), slope=1, color="0.4", linestyle="--", linewidth=1)
    ax.set_xlabel("predicted probability")
    ax.set_ylabel("observed share")
    ax.set_aspect("equal")
    if len(groups) > 1:
        ax.legend()


def _down(line: Line) -> str:
    return line.labels[-2] if len(line.labels) > 1 else ""


def _heat(shape: Heat, ax: Any) -> None:
    downs = list(dict.fromkeys(map(_down, shape.lines)))
    acrosses = list(dict.fromkeys(line.labels[-1] for line in shape.lines))
    cells = [[math.nan] * len(acrosses) for _ in downs]
    for line, value in _known(shape.lines):
        cells[downs.index(_down(line))][acrosses.index(line.labels[-1])] = value
    ax.figure.colorbar(ax.imshow(cells, aspect="auto", cmap="Blues", vmin=0), ax=ax)
    ax.set_xticks(range(len(acrosses)), acrosses, rotation=45, ha="right")
    ax.set_yticks(range(len(downs)), downs)


def _profile(shape: Profile, ax: Any) -> None:
    ax.plot([x for x, _ in shape.points], [y for _, y in shape.points])
    ax.axhline(0.0, color="0.4", linestyle="--", linewidth=1)
    ax.set_ylim(*shape.span)
    ax.set_ylabel("adds to the score")
