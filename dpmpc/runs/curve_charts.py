"""Pictures of an additive model: what each column adds to the score. Public, as the model is."""

import math
from html import escape
from pathlib import Path

import numpy as np

from dpmpc.folders import write_file
from dpmpc.learning.additive import Additive, Curve, Floats
from dpmpc.runs.svg import HEIGHT, WIDTH, drawn, even_scale

_LEFT, _RIGHT, _TOP, _BOTTOM, _ROW = 58, 14, 14, 40, 22
_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; margin: 1rem auto; padding: 0 1rem; max-width: 62rem;
  --ink: #1b1f24; --line: #c9d0d8; --accent: #0b5cad; --dim: #4d5761; --paper: #fff;
  color: var(--ink); background: var(--paper); }
@media (prefers-color-scheme: dark) { body { --ink: #e8ebee; --line: #46505a; --accent: #7db8f5; --dim: #a9b4bf;
  --paper: #14181c; } }
.pair { display: grid; grid-template-columns: 1fr 1fr; gap: 1.2rem; } figcaption { font-weight: 600; }
svg { width: 100%; } svg text { fill: var(--ink); font: 12px system-ui, sans-serif; }
.grid { stroke: var(--line); stroke-width: .6; } .level { stroke: var(--dim); stroke-dasharray: 5 4; }
.curve { fill: none; stroke: var(--accent); stroke-width: 2; } .bar { fill: var(--accent); }
"""


def charts(model: Additive) -> list[tuple[str, str]]:
    """(name, SVG) of each curve, those that move the score most first; all have one scale, so that they compare. Of a
    model with several scores there is a picture for each column and class."""
    names = [""] if model.width == 1 else [f", {name}" for name in getattr(model.target, "names", ())]
    found = []
    for curve in model.curves:
        for k, suffix in enumerate(names):
            parts = [_column(curve.scores, k), _column(tuple(curve.table.values()), k), _column((curve.missing,), k)]
            found.append((float(np.ptp(np.concatenate(parts))), curve, k, f"{curve.name}{suffix}"))
    found.sort(key=lambda each: -each[0])
    every = [_column((*c.scores, *c.table.values(), c.missing), k) for _, c, k, _ in found]
    span = (float(min(v.min() for v in every)), float(max(v.max() for v in every)))
    pictures = []
    for _, curve, k, name in found:
        if curve.points:
            pictures.append((name, _line(curve, k, name, span)))
        if curve.table:
            pictures.append((f"{name}, texts" if curve.points else name, _bars(curve, k, name, span)))
    return pictures


def plot(model: Additive, path: Path | str, title: str) -> Path:
    """Writes a page with all pictures; its path."""
    figures = "".join(f"<figure><figcaption>{escape(name)}</figcaption>{svg}</figure>" for name, svg in charts(model))
    path = Path(path)
    write_file(
        path,
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{_STYLE}</style></head><body><h1>{escape(title)}: what each column adds to the score</h1>"
        f'<div class="pair">{figures}</div></body></html>\n',
    )
    return path


def _column(scores: tuple[float | list[float], ...], k: int) -> Floats:
    return np.array([np.atleast_1d(score)[k] for score in scores], dtype=np.float64)


def _line(curve: Curve, k: int, name: str, span: tuple[float, float]) -> str:
    low, high, ticks = even_scale(span)
    xs, ys = np.asarray(curve.points), _column(curve.scores, k)
    if curve.scale != "linear":  # straight in the logarithm: drawn through points between
        shift = 0.0 if curve.scale == "log" else 1.0
        at = np.linspace(math.log(xs[0] + shift), math.log(xs[-1] + shift), 60)
        ys = np.interp(at, np.log(xs + shift), ys)
        xs = np.exp(at) - shift

    def across(x: float) -> float:
        return _LEFT + float((x - xs[0]) / ((xs[-1] - xs[0]) or 1.0)) * (WIDTH - _LEFT - _RIGHT)

    def up(y: float) -> float:
        return HEIGHT - _BOTTOM - (y - low) / (high - low) * (HEIGHT - _TOP - _BOTTOM)

    parts = []
    for tick in ticks:
        parts.append(f'<line class="grid" x1="{_LEFT}" y1="{up(tick):.1f}" x2="{WIDTH - _RIGHT}" y2="{up(tick):.1f}"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{up(tick) + 4:.1f}" text-anchor="end">{tick:.3g}</text>')
    places = {xs[0]: "start", (xs[0] + xs[-1]) / 2: "middle", xs[-1]: "end"}
    for x, anchor in places.items():
        parts.append(f'<text x="{across(x):.1f}" y="{HEIGHT - _BOTTOM + 16}" text-anchor="{anchor}">{x:.4g}</text>')
    parts.append(f'<line class="level" x1="{_LEFT}" y1="{up(0):.1f}" x2="{WIDTH - _RIGHT}" y2="{up(0):.1f}"/>')
    path = " ".join(f"{across(x):.1f},{up(y):.1f}" for x, y in zip(xs.tolist(), ys.tolist(), strict=True))
    parts.append(f'<polyline class="curve" points="{path}"/>')
    said = f"{name}: adds {ys[0]:.3g} at {xs[0]:.4g}, {ys[-1]:.3g} at {xs[-1]:.4g}"
    return drawn(said, parts, HEIGHT)


def _bars(curve: Curve, k: int, name: str, span: tuple[float, float]) -> str:
    values = dict(zip(curve.table, _column(tuple(curve.table.values()), k).tolist(), strict=True))
    low, high = min(span[0], 0.0), max(span[1], 0.0)
    room = WIDTH - 210

    def across(v: float) -> float:
        return 150 + (v - low) / ((high - low) or 1.0) * room

    parts = []
    for i, (label, value) in enumerate(sorted(values.items(), key=lambda pair: -pair[1])):
        y, ends = 12 + _ROW * i, sorted((across(0), across(value)))
        shown = f"bucket {label}" if curve.buckets else label
        parts.append(f'<text x="142" y="{y + 13}" text-anchor="end">{escape(shown[:20])}</text>')
        parts.append(f'<rect class="bar" x="{ends[0]:.1f}" y="{y}" width="{ends[1] - ends[0]:.1f}" height="16"/>')
        parts.append(f'<text x="{WIDTH - 4}" y="{y + 13}" text-anchor="end">{value:+.3g}</text>')
    said = f"{name}: " + ", ".join(f"{label} {value:+.3g}" for label, value in values.items())
    return drawn(said, parts, 16 + _ROW * len(values))
