"""Where the figures of a run over several machines lie, and what they say."""

from pathlib import Path

from dpmpc.codec import loads
from dpmpc.show.figures import Line, figure_lines

FIGURES = "figures.json"


def read_lines(run: Path) -> list[Line]:
    """The lines of the figures that a run over several machines opened, at any of its processes; [] where there are
    none."""
    path = run / FIGURES
    if not path.exists():
        return []
    found = loads(path.read_text(encoding="utf-8"))
    return figure_lines(found) + [("warning", text) for text in found["warnings"]]
