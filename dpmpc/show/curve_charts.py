"""Pictures of an additive model: what each column adds to the score. Public, as the model is."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from dpmpc.folders import write_file
from dpmpc.outcome import Bars, Profile
from dpmpc.show.html import figure, page
from dpmpc.show.svg import bars, profile


class AdditiveChart(Protocol):
    """A model of one curve a column. `profiles`: the curves as shapes, those that move the score most first; `span`:
    the least and the largest that any adds."""

    @property
    def profiles(self) -> Sequence[Profile | Bars]: ...
    @property
    def span(self) -> tuple[float, float]: ...


def charts(model: AdditiveChart) -> list[tuple[str, str]]:
    """(name, SVG) of each curve; all have one scale, so that they compare. Of a model with several scores there is a
    picture for each column and class."""
    found = []
    for shape in model.profiles:
        if isinstance(shape, Bars):
            parts = [(line.labels[0], line.number.estimate or 0.0) for line in shape.lines]
            found.append((shape.title, bars(shape.title, parts, model.span, lambda value: f"{value:+.3g}")))
        else:
            found.append((shape.title, profile(shape.title, shape.points, shape.span)))
    return found


def plot(model: AdditiveChart, path: Path | str, title: str) -> Path:
    """Writes a page with all pictures; its path."""
    figures = "".join(figure(name, svg) for name, svg in charts(model))
    write_file(Path(path), page(f"{title}: what each column adds to the score", f'<div class="pair">{figures}</div>'))
    return Path(path)
