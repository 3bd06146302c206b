"""Answers as pictures, in SVG without a library: bars with noise bands, forest plots, survival curves, calibration.

Every picture shows intervals, not estimates alone. Colours tell groups apart in grey print too, by their lightness.
"""

import math
from collections.abc import Sequence
from html import escape

from dpmpc.outcome import Answer, Line
from dpmpc.statistics.cells import spelled

WIDE, LEFT, RIGHT, ROW = 720, 230, 20, 18
_COLOURS = ("#1b4f72", "#d68910", "#148f77", "#884ea0", "#a93226", "#7f8c8d")
_BAND = "#d6e4f0"


def pictures(answer: Answer) -> list[str]:
    """The pictures that suit an answer; none where there is nothing to draw."""
    what = answer.question.split("(")[0].split(" ")[0]
    drawn = [line for line in answer.lines if line.number.estimate is not None]
    if not drawn:
        return []
    if what == "km":
        return [_curves(answer, drawn)]
    if what == "evaluate":
        bins = [line for line in drawn if line.labels[-1].endswith("%")]
        scores = [line for line in drawn if line.statistic in ("AUC", "accuracy", "balanced accuracy", "recall")]
        return [*([_forest(scores, "figure")] if scores else []), *([_calibration(answer, bins)] if bins else [])]
    kinds = {line.statistic: line for line in drawn}
    found = []
    if "percent" in kinds:
        found.append(_bars([line for line in drawn if line.statistic == "percent"], "percent"))
    elif "count" in kinds:
        found.append(_forest([line for line in drawn if line.statistic == "count"], "count"))
    if what != "table1":
        for statistic in kinds:
            if statistic not in ("percent", "count"):
                found.append(_forest([line for line in drawn if line.statistic == statistic], statistic))
    return found


def _span(lines: Sequence[Line], zero: bool) -> tuple[float, float]:
    """The range of an axis that has all intervals on it."""
    ends = [end for line in lines for end in (line.number.low, line.number.high, line.number.estimate)]
    known = [end for end in ends if end is not None]
    low, high = min([*known, 0.0] if zero else known), max(known)
    room = (high - low or abs(high) or 1.0) * 0.04
    return (low if zero and low == 0 else low - room), high + room


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers between two: from 4 to 10 of them."""
    unit = 10.0 ** math.floor(math.log10((high - low) / 4))
    step = max(size * unit for size in (1, 2, 5) if size * unit <= (high - low) / 4)
    return [k * step for k in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _name(line: Line) -> str:
    return " · ".join(label for label in line.labels if label) or line.statistic


def _rows(lines: Sequence[Line], title: str, zero: bool, bars: bool) -> str:
    """One row a number, under an axis: its interval and, with `bars`, a bar from 0."""
    low, high = _span(lines, zero)
    inner, tall = WIDE - LEFT - RIGHT, ROW * len(lines) + 40

    def x(value: float) -> float:
        return LEFT + inner * (value - low) / (high - low)

    parts = [
        f'<line x1="{x(t):.1f}" x2="{x(t):.1f}" y1="18" y2="{tall - 20}" stroke="#ddd"/>'
        f'<text x="{x(t):.1f}" y="{tall - 6}" text-anchor="middle">{spelled(t)}</text>'
        for t in _ticks(low, high)
    ]
    for k, line in enumerate(lines):
        number, y = line.number, 18 + ROW * k + ROW / 2
        assert number.estimate is not None and number.low is not None and number.high is not None
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{escape(_name(line)[:34])}</text>')
        if bars:
            a, b = sorted((x(0.0), x(number.estimate)))
            parts.append(f'<rect x="{a:.1f}" y="{y - 6:.1f}" width="{b - a:.1f}" height="12" fill="{_BAND}"/>')
        parts.append(
            f'<line x1="{x(number.low):.1f}" x2="{x(number.high):.1f}" y1="{y:.1f}" y2="{y:.1f}" stroke="{_COLOURS[0]}"'
            f' stroke-width="2"/><circle cx="{x(number.estimate):.1f}" cy="{y:.1f}" r="3" fill="{_COLOURS[0]}"/>'
        )
    return _svg(tall, title, parts)


def _bars(lines: Sequence[Line], title: str) -> str:
    return _rows(lines, title, zero=True, bars=True)


def _forest(lines: Sequence[Line], title: str) -> str:
    return _rows(lines, title, zero=False, bars=False)


def _curves(answer: Answer, lines: Sequence[Line]) -> str:
    """Steps of survival with the interval as a band, one colour an arm."""
    arms = list(dict.fromkeys(line.labels[: int(answer.grouped)] for line in lines))
    latest = max(float(line.labels[-1]) for line in lines)
    x, y = _frame(latest)
    parts = _axes(latest, 1.0)
    for k, arm in enumerate(arms):
        mine = [line for line in lines if line.labels[: int(answer.grouped)] == arm]
        colour, before, at = _COLOURS[k % len(_COLOURS)], (1.0, 1.0, 1.0), 0.0
        path = f"M{x(0):.1f},{y(1):.1f}"
        for line in mine:
            end, number = float(line.labels[-1]), line.number
            low, value, high = number.low or 0.0, number.estimate or 0.0, number.high or 0.0
            parts.append(
                f'<rect x="{x(at):.1f}" y="{y(before[2]):.1f}" width="{x(end) - x(at):.1f}" '
                f'height="{y(before[0]) - y(before[2]):.1f}" fill="{colour}" opacity=".15"/>'
            )
            path += f"H{x(end):.1f}V{y(value):.1f}"
            before, at = (low, value, high), end
        parts.append(f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        name = arm[0] if arm else "all"
        parts.append(f'<text x="{WIDE - 130}" y="{30 + 16 * k}" fill="{colour}">{escape(name)}</text>')
    return _svg(300, "survival", parts)


def _calibration(answer: Answer, lines: Sequence[Line]) -> str:
    """Predicted against observed percent, the diagonal beside them."""
    x, y = _frame(100.0)
    parts = [*_axes(100.0, 100.0), f'<path d="M{x(0):.1f},{y(0):.1f}L{x(100):.1f},{y(1):.1f}" stroke="#999" fill="none"'
             ' stroke-dasharray="4"/>']  # fmt: skip
    groups = list(dict.fromkeys(line.labels[:-1] for line in lines))
    for line in lines:
        first = float(line.labels[-1].split("-")[0])
        k = groups.index(line.labels[:-1])
        colour, number = _COLOURS[k % len(_COLOURS)], line.number
        at = x(first + 5 + 1.2 * k)
        low, value, high = number.low or 0.0, number.estimate or 0.0, number.high or 0.0
        parts.append(f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{y(low / 100):.1f}" y2="{y(high / 100):.1f}" '
                     f'stroke="{colour}" stroke-width="2"/><circle cx="{at:.1f}" cy="{y(value / 100):.1f}" r="3" '
                     f'fill="{colour}"/>')  # fmt: skip
    for k, group in enumerate(groups):
        if group:
            colour = _COLOURS[k % len(_COLOURS)]
            parts.append(f'<text x="{LEFT + 10}" y="{30 + 16 * k}" fill="{colour}">{escape(group[0])}</text>')
    return _svg(300, "calibration: predicted percent across, observed percent up", parts)


def _frame(latest: float) -> tuple["_Place", "_Place"]:
    return _Place(60, (WIDE - 80) / latest), _Place(270, -240)


class _Place:
    """Where a value is drawn."""

    def __init__(self, start: float, slope: float) -> None:
        self.start, self.slope = start, slope

    def __call__(self, value: float) -> float:
        return self.start + self.slope * value


def _axes(latest: float, top: float) -> list[str]:
    x, y = _frame(latest)
    across = [f'<text x="{x(t):.1f}" y="290" text-anchor="middle">{spelled(t)}</text>' for t in _ticks(0.0, latest)]
    up = [
        f'<line x1="60" x2="{WIDE - 20}" y1="{y(v):.1f}" y2="{y(v):.1f}" stroke="#ddd"/>'
        f'<text x="52" y="{y(v) + 4:.1f}" text-anchor="end">{spelled(v * top)}</text>'
        for v in (0.0, 0.25, 0.5, 0.75, 1.0)
    ]
    return [*up, *across]


def _svg(tall: int, title: str, parts: Sequence[str]) -> str:
    return (
        f'<svg viewBox="0 0 {WIDE} {tall}" width="{WIDE}" height="{tall}" role="img" aria-label="{escape(title)}" '
        f'font-size="12" font-family="sans-serif"><text x="4" y="12" font-weight="bold">{escape(title)}</text>'
        f"{''.join(parts)}</svg>"
    )
