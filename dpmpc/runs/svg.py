"""Charts as SVG text: lines over iterations, bars of seconds. Colours come from the page, so both themes fit."""

import math
from collections.abc import Sequence
from html import escape

from dpmpc.lazy import dataclass

WIDTH, HEIGHT = 460, 250
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 14, 14, 40


@dataclass(frozen=True)
class Curve:
    """A quantity by iteration. `reference`: a level to compare with. `mark`: the iteration where averaging begins."""

    name: str
    points: Sequence[tuple[int, float]]
    log: bool = False
    reference: tuple[str, float] | None = None
    mark: int | None = None


def chart(curve: Curve) -> str:
    """The curve as an SVG element, with a text that says the same."""
    xs, ys = [x for x, _ in curve.points], [y for _, y in curve.points]
    levels = [*ys, *([curve.reference[1]] if curve.reference else [])]
    low, high, ticks = _log_scale(levels) if curve.log else even_scale(levels)

    def across(x: float) -> float:
        return _LEFT + (x - xs[0]) / max(1, xs[-1] - xs[0]) * (WIDTH - _LEFT - _RIGHT)

    def up(y: float) -> float:
        y = math.log10(max(y, 10.0**low)) if curve.log else y
        return HEIGHT - _BOTTOM - (y - low) / (high - low) * (HEIGHT - _TOP - _BOTTOM)

    parts = []
    for tick in ticks:
        at = up(tick)
        parts.append(f'<line class="grid" x1="{_LEFT}" y1="{at:.1f}" x2="{WIDTH - _RIGHT}" y2="{at:.1f}"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{tick:.3g}</text>')
    for x in sorted({xs[0], (xs[0] + xs[-1]) // 2, xs[-1]}):
        parts.append(f'<text x="{across(x):.1f}" y="{HEIGHT - _BOTTOM + 16}" text-anchor="middle">{x}</text>')
    parts.append(f'<text x="{(WIDTH + _LEFT) / 2}" y="{HEIGHT - 6}" text-anchor="middle">iteration</text>')
    if curve.reference:
        name, level = curve.reference
        parts.append(
            f'<line class="level" x1="{_LEFT}" y1="{up(level):.1f}" x2="{WIDTH - _RIGHT}" y2="{up(level):.1f}"/>'
            f'<text x="{_LEFT + 6}" y="{up(level) + 14:.1f}">{escape(name)}</text>'
        )
    if curve.mark is not None and xs[0] < curve.mark <= xs[-1]:
        at = across(curve.mark)
        parts.append(
            f'<line class="mark" x1="{at:.1f}" y1="{_TOP}" x2="{at:.1f}" y2="{HEIGHT - _BOTTOM}"/>'
            f'<text x="{at + 5:.1f}" y="{HEIGHT - _BOTTOM - 6}">averaging begins</text>'
        )
    path = " ".join(f"{across(x):.1f},{up(y):.1f}" for x, y in curve.points)
    parts.append(f'<polyline class="curve" points="{path}"/>')
    said = f"{curve.name}: {ys[0]:.4g} at iteration {xs[0]}, {ys[-1]:.4g} at iteration {xs[-1]}"
    return drawn(said, parts, HEIGHT)


def bars(title: str, parts: Sequence[tuple[str, float]]) -> str:
    """Seconds as bars, each with its number."""
    most = max((value for _, value in parts), default=0.0) or 1.0
    height, shapes = 16 + 34 * len(parts), []
    for k, (name, value) in enumerate(parts):
        y, width = 12 + 34 * k, max(2.0, value / most * (WIDTH - 230))
        shapes.append(f'<text x="142" y="{y + 15}" text-anchor="end">{escape(name)}</text>')
        shapes.append(f'<rect class="bar" x="150" y="{y}" width="{width:.1f}" height="22"/>')
        shapes.append(f'<text x="{156 + width:.1f}" y="{y + 15}">{duration(value)}</text>')
    said = f"{title}: " + ", ".join(f"{name} {duration(value)}" for name, value in parts)
    return drawn(said, shapes, height)


def duration(seconds: float) -> str:
    """Seconds for people: three digits and a unit."""
    if seconds >= 1:
        return f"{seconds:.3g} s" if seconds < 1000 else f"{seconds:,.0f} s"
    return f"{1e3 * seconds:.3g} ms" if seconds >= 1e-3 else f"{1e6 * seconds:.3g} µs"


def drawn(said: str, parts: Sequence[str], height: float) -> str:
    """The parts as one SVG element that says the text."""
    body = "".join(parts)
    return f'<svg role="img" viewBox="0 0 {WIDTH} {height}" aria-label="{escape(said)}">{body}</svg>'


def even_scale(values: Sequence[float]) -> tuple[float, float, list[float]]:
    """(low, high, ticks) of an axis on which these values lie."""
    low, high = min(values), max(values)
    spread = (high - low) or abs(high) or 1.0
    step = 10.0 ** math.floor(math.log10(spread / 3))
    step *= next(k for k in (1, 2, 5, 10) if spread / (k * step) <= 5)
    low, high = math.floor(low / step) * step, math.ceil(high / step) * step
    if low == high:
        high = low + step
    return low, high, [low + k * step for k in range(round((high - low) / step) + 1)]


def _log_scale(values: Sequence[float]) -> tuple[float, float, list[float]]:
    positive = [value for value in values if value > 0] or [1.0]
    low, high = math.log10(min(positive)), math.log10(max(positive))
    low, high = low - 0.05 * (high - low or 1), high + 0.05 * (high - low or 1)
    whole = range(math.floor(low), math.ceil(high) + 1)
    ticks = [m * 10.0**k for k in whole for m in (1, 2, 3, 5) if low <= math.log10(m * 10.0**k) <= high]
    while len(ticks) > 7:
        ticks = ticks[::2]
    if len(ticks) < 3:  # less than a decade: evenly between the ends
        ticks = [10 ** (low + k * (high - low) / 4) for k in range(5)]
    return low, high, ticks
