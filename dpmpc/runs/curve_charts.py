"""Pictures of an additive model: what each column adds to the score. Public, as the model is."""

from pathlib import Path

from dpmpc.folders import write_file
from dpmpc.learning.additive import Additive, profiles, span_of
from dpmpc.outcome import Bars
from dpmpc.show.html import figure, page
from dpmpc.show.svg import bars, picture


def charts(model: Additive) -> list[tuple[str, str]]:
    """(name, SVG) of each curve, those that move the score most first; all have one scale, so that they compare. Of a
    model with several scores there is a picture for each column and class."""
    span, found = span_of(model), []
    for shape in profiles(model):
        if isinstance(shape, Bars):
            parts = [(line.labels[0], line.number.estimate or 0.0) for line in shape.lines]
            found.append((shape.title, bars(shape.title, parts, span, lambda value: f"{value:+.3g}")))
        else:
            found.append((shape.title, picture(shape)))
    return found


def plot(model: Additive, path: Path | str, title: str) -> Path:
    """Writes a page with all pictures; its path."""
    figures = "".join(figure(name, svg) for name, svg in charts(model))
    write_file(Path(path), page(f"{title}: what each column adds to the score", f'<div class="pair">{figures}</div>'))
    return Path(path)
