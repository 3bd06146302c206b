"""Pictures of an additive model: what each column adds to the score. Public, as the model is."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpmpc.folders import write_file
from dpmpc.show.html import figure, page
from dpmpc.show.svg import bars, profile

Floats = NDArray[np.float64]
Score = float | list[float]  # one, or one a class


class Curve(Protocol):
    """What a column adds to the score; `learning.additive.Curve` says of each what it is."""

    @property
    def name(self) -> str: ...
    @property
    def scale(self) -> str: ...
    @property
    def points(self) -> Sequence[float]: ...
    @property
    def scores(self) -> Sequence[Score]: ...
    @property
    def table(self) -> Mapping[str, Score]: ...
    @property
    def buckets(self) -> int: ...
    @property
    def missing(self) -> Score: ...


class Additive(Protocol):
    """A model of such curves. `classes`: the names of its scores, where it has several."""

    @property
    def curves(self) -> Sequence[Curve]: ...
    @property
    def width(self) -> int: ...
    @property
    def classes(self) -> Sequence[str]: ...


def charts(model: Additive) -> list[tuple[str, str]]:
    """(name, SVG) of each curve, those that move the score most first; all have one scale, so that they compare. Of a
    model with several scores there is a picture for each column and class."""
    names = [""] if model.width == 1 else [f", {name}" for name in model.classes]
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
    figures = "".join(figure(name, svg) for name, svg in charts(model))
    write_file(Path(path), page(f"{title}: what each column adds to the score", f'<div class="pair">{figures}</div>'))
    return Path(path)


def _column(scores: Sequence[Score], k: int) -> Floats:
    return np.array([np.atleast_1d(score)[k] for score in scores], dtype=np.float64)


def _line(curve: Curve, k: int, name: str, span: tuple[float, float]) -> str:
    xs, ys = np.asarray(curve.points), _column(curve.scores, k)
    if curve.scale != "linear":  # straight in the logarithm: drawn through points between
        shift = 0.0 if curve.scale == "log" else 1.0
        at = np.linspace(math.log(xs[0] + shift), math.log(xs[-1] + shift), 60)
        ys = np.interp(at, np.log(xs + shift), ys)
        xs = np.exp(at) - shift
    return profile(name, list(zip(xs.tolist(), ys.tolist(), strict=True)), span)


def _bars(curve: Curve, k: int, name: str, span: tuple[float, float]) -> str:
    values = dict(zip(curve.table, _column(tuple(curve.table.values()), k).tolist(), strict=True))
    named = [(f"bucket {label}" if curve.buckets else label, value) for label, value in values.items()]
    return bars(name, sorted(named, key=lambda pair: -pair[1]), span, lambda value: f"{value:+.3g}")
