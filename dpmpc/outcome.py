"""What comes of a run, as values without a form: numbers with intervals and notes, files, a section of the report,
lines for people. Public. A source makes an `Outcome` of what its releases opened; `dpmpc.show` has the forms.
"""

import math
from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any

from dpmpc.errors import UsageError
from dpmpc.lazy import cached_property, dataclass


@dataclass(frozen=True)
class Level:
    """What intervals hold: `confidence` for each number, or for all `answers` numbers at once; about the `data`, so
    that noise alone is in them, or about the `population` that records are drawn from one by one."""

    confidence: float = 0.95
    about: str = "data"
    answers: int = 1

    def __post_init__(self) -> None:
        if not 0.5 <= self.confidence < 1 or self.about not in ("data", "population"):
            raise UsageError(
                f"intervals have a confidence from 0.5 to 1 and are about the data or the population; got "
                f"{self.confidence} and {self.about!r}; write 0.95 and 'data'",
                code="range",
            )

    @cached_property
    def z(self) -> float:
        """How many deviations an interval reaches: two-sided, and Sidak's for several answers at once, which holds
        whatever their correlations are."""
        from statistics import NormalDist

        return -NormalDist().inv_cdf((1 - self.confidence ** (1 / self.answers)) / 2)

    @property
    def population(self) -> bool:
        return self.about == "population"


def spelled(value: float) -> str:
    """A number in at most six digits, and all of a whole one: of a label, an edge, a tick."""
    return f"{value:.0f}" if abs(value) < 1e15 and value == int(value) else f"{value:.6g}"


def hidden(low: float | None, high: float | None) -> bool:
    """Whether an interval of a share leaves nothing out, so that noise hides the share."""
    return (low, high) == (0.0, 1.0)


@dataclass(frozen=True)
class Number:
    """An answer: the estimate, the deviation that the noise gives it, and its interval; None where there is none.
    `note`: what there is to say of it, such as "conservative"."""

    estimate: float | None
    noise: float | None
    low: float | None
    high: float | None
    note: str = ""

    def mapped(self, factor: float, shift: float = 0.0) -> "Number":
        """The same on another scale; factor > 0."""
        values = (None if v is None else shift + factor * v for v in (self.estimate, self.low, self.high))
        estimate, low, high = values
        return Number(estimate, None if self.noise is None else factor * self.noise, low, high, self.note)

    def within(self, low: float, high: float) -> "Number":
        """The same with the part of the interval that is possible; the estimate stays as it is."""
        if self.low is None or self.high is None:
            return self
        first, last = (min(max(v, low), high) for v in (self.low, self.high))
        return Number(self.estimate, self.noise, first, last, self.note)

    def root(self) -> "Number":
        """Square roots, 0 of what is negative; the noise to first order."""
        if self.estimate is None or self.low is None or self.high is None:
            return self
        value, low, high = (math.sqrt(max(v, 0.0)) for v in (self.estimate, self.low, self.high))
        noise = None if self.noise is None or not value else self.noise / (2 * value)
        return Number(value, noise, low, high, self.note)


NO_ESTIMATE = "no estimate: the noise is as large as the count that is divided by"
NONE = Number(None, None, None, None, NO_ESTIMATE)


@dataclass(frozen=True)
class Line:
    """One number of an answer: the labels of its row, what it is, and the number."""

    labels: tuple[str, ...]
    statistic: str
    number: Number


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


@dataclass(frozen=True)
class Profile:
    """What a column adds to a score at each of its values, as a line through points. `span`: of all columns' scores,
    so that pictures of one model compare."""

    title: str
    points: tuple[tuple[float, float], ...]
    span: tuple[float, float]

    @property
    def lines(self) -> tuple[Line, ...]:
        """The points as numbers that no noise is known of."""
        return tuple(Line((spelled(x),), "score", Number(y, None, None, None)) for x, y in self.points)


Shape = Bars | Forest | Curves | Calibration | Heat | Profile


@dataclass(frozen=True)
class Answer:
    """All numbers of a question. `headers`: what each label of a line is; `grouped`: whether the first is its `by`.
    `shapes`: its pictures, as values that whoever shows them renders. `what`, `columns`: the kind of question and the
    columns that it names, for whoever puts answers together in one table."""

    question: str
    headers: tuple[str, ...]
    lines: tuple[Line, ...]
    grouped: bool = False
    notes: tuple[str, ...] = ()
    shapes: tuple[Shape, ...] = ()
    what: str = ""
    columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class Iteration:
    """One iteration of training, as history.csv has it. Utility is None with --no-evaluate; seconds and bytes are None
    where an interrupted run did not note them.

    `seconds`: the iteration without its evaluation. `bytes`: what all processes sent in it, headers included.
    `owners`: how many were in it, where some may be missing or fail their checks; None: all. `failed`: the numbers of
    those that failed, with spaces between; empty for none. `figure`: what does not flatter
    (`local.history.figure_name`).
    """

    iteration: int
    release: int
    loss: float | None
    gap: float | None
    score: float | None
    seconds: float | None
    bytes: int | None
    owners: int | None = None
    failed: str = ""
    figure: float | None = None


@dataclass(frozen=True)
class Outcome:
    """What the opened sums of a source mean. `answers`: numbers with intervals, under `title`; `level`: what they hold;
    `about`: lines that stand before them, such as the promise; `costs`: by question, its part of the promise.
    `section`: JSON values for report.json. `files`: by name, what is kept beside the report; all of it computed of
    public numbers. `lines`: for people, what numbers alone do not say. `warnings`: what there is to be said against
    it."""

    answers: tuple[Answer, ...] = ()
    title: str = "Results"
    level: Level = field(default_factory=Level)
    about: tuple[str, ...] = ()
    costs: tuple[tuple[str, float], ...] = ()
    section: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, str | bytes] = field(default_factory=dict)
    lines: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def told(self) -> bool:
        """Whether there is something for people to read."""
        return bool(self.answers or self.lines)

    @property
    def held(self) -> Level:
        """What the intervals hold, with the number of answers where it is all at once."""
        many = sum(len(answer.lines) for answer in self.answers)
        return replace(self.level, answers=self.level.answers or max(many, 1))
