"""Pictures of answers as values: what is drawn, and of which lines. Whoever shows them renders them.

Every picture shows intervals, not estimates alone; lines without an estimate are left out by the renderer.
"""

from dpmpc.lazy import dataclass
from dpmpc.statistics.asking import Line


@dataclass(frozen=True)
class Bars:
    """One row a number with a bar from 0, its interval on it."""

    title: str
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class Forest:
    """One row a number: its interval, its estimate; `ratios`: on a logarithmic axis with a mark at 1."""

    title: str
    lines: tuple[Line, ...]
    ratios: bool = False


@dataclass(frozen=True)
class Curves:
    """Steps over the number that the last label is, one colour a group, intervals as bands."""

    title: str
    lines: tuple[Line, ...]
    grouped: bool


@dataclass(frozen=True)
class Calibration:
    """Observed against predicted percent, the last label saying from where to where."""

    title: str
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class Heat:
    """A field of cells, darker where the number is larger: the last label across, the one before it down."""

    title: str
    lines: tuple[Line, ...]


Shape = Bars | Forest | Curves | Calibration | Heat
