"""`Evaluated`: training over several machines, and one release after it of how good the model is on held-out records.

Every owner holds out a public number of its records, which no stage before and no release of training reads; the parts
are drawn by the owner once, of ids alone (`privacy.assignment.Parted`). Where there are places, of persons or up to a
capacity, either part has some, and a hash of the id says in which one a record, or a person at all owners, may be.
After training every process makes the model of what was opened, and of the model the question; the sum over held-out
records is opened with noise for the plan's (epsilon, delta), which none of them has paid yet. So the run costs the
larger price, not the sum.

The model that is evaluated is the one that is written, with numbers rounded to multiples of `GRAIN`: processors add in
different orders, and all processes have to ask the same question to the last bit.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from dpmpc.errors import UsageError
from dpmpc.lazy import dataclass
from dpmpc.learning.method import Learner, Learning
from dpmpc.learning.source import Opening, Schedule, Source, Stage, Sum
from dpmpc.learning.task import TASKS, modelled
from dpmpc.outcome import Outcome
from dpmpc.privacy.assignment import Parted
from dpmpc.records.blocks import in_memory
from dpmpc.records.schema import Classes, Labels, Numeric, Range, Schema, Target
from dpmpc.statistics.evaluated import CELLS, figures_of, tables_of
from dpmpc.statistics.figures import Figures
from dpmpc.statistics.tables import STEP, asked_by

EVALUATION = "evaluation"  # the name of the stage
TRAINING, HELD_OUT = "training", "held_out"  # the parts of the data
GRAIN = 0.5**20


@dataclass(frozen=True, kw_only=True)
class Evaluated(Learning):
    """Training on all but `held` of each owner's `records`, and an evaluation on these. `draw`: the same for plans in
    which records keep their part. `share`: of records with places, or of the persons in a `column`, how many are held
    out; 0 where parts have exact sizes. `cells`: of a score. Public."""

    KIND: ClassVar[str] = "evaluated"
    UNITS: ClassVar[tuple[str, ...]] = ("record", "presence", "person")

    records: tuple[int, ...]
    held: tuple[int, ...]
    draw: str
    share: float = 0.0
    column: str = ""
    cells: int = CELLS[-1]

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_parts()

    def _check_parts(self) -> None:
        numbers = (*self.records, *self.held)
        good = len(self.records) == len(self.held) > 0 and all(type(n) is int for n in numbers)
        if (
            type(self.draw) is not str
            or not good
            or not all(0 < held < n for held, n in zip(self.held, self.records, strict=True))
        ):
            raise UsageError(
                "each owner holds out some of its records, and not all; the plan says otherwise of one; plan again"
            )
        if self.cells not in CELLS:
            raise UsageError(f"a score has one of {CELLS} cells; the plan says {self.cells!r}; plan again", code="plan")
        drawn = self.share or self.column != ""
        if type(self.share) is not float or type(self.column) is not str or (drawn and not _drawable(self.share)):
            raise UsageError(
                f"a share between 0 and 1 of places, or of persons, is held out; the plan says {self.share!r}; plan "
                "again"
            )

    @staticmethod
    def of(
        learning: Learning,
        records: Sequence[int],
        held: Sequence[int],
        draw: str,
        share: float = 0.0,
        column: str = "",
        cells: int = CELLS[-1],
    ) -> "Evaluated":
        """The same training, with an evaluation after it."""
        values = {each.name: getattr(learning, each.name) for each in fields(Learning)}
        return Evaluated(
            **values, records=tuple(records), held=tuple(held), draw=draw, share=share, column=column, cells=cells
        )

    @property
    def schedule(self) -> Schedule:
        after = Stage(EVALUATION, _longest(self.task, self.classes, self.cells), None, HELD_OUT, self.held)
        return Schedule(super().schedule.before, (after,))

    def parted(self, data_id: str) -> Parted | None:
        trained = tuple(n - k for n, k in zip(self.records, self.held, strict=True))
        return parts_of(data_id, self.draw, trained, self.held, self.share, self.column)

    def ends(self, stage: Stage, opened: Sequence[Sum], plan: Any) -> Source:
        if plan.schema is None:
            raise UsageError("a model is evaluated by the schema that maps its records; the plan has none; plan again")
        schema = Schema.from_json(plan.schema)
        nothing = in_memory(np.empty((0, len(schema.feature_names))), np.empty(0))
        learner = Learner(self, plan.releases, nothing, (0,), opened[0].noise / plan.divisor)
        for each in opened:
            learner.apply(each.total / each.count)
        theta = np.round(np.asarray(learner.model) / GRAIN) * GRAIN + 0.0
        return tables_of(schema, theta, self.weights, cells=self.cells)

    def concluded(self, stages: Mapping[str, tuple[Source, Opening]]) -> Outcome:
        """The figures of the model on the held-out records."""
        if EVALUATION not in stages:
            return Outcome()
        figures = figures_in(*stages[EVALUATION])
        return Outcome(section={"figures": figures.to_json()}, warnings=figures.warnings)


def figures_in(evaluation: Source, opened: Opening) -> Figures:
    """The figures of a model, of what its evaluation has opened."""
    last = opened.last
    return figures_of(asked_by(evaluation), last.total / STEP, last.noise / STEP, opened.sizes)


@lru_cache(maxsize=64)
def parts_of(
    data_id: str, draw: str, trained: tuple[int, ...], held: tuple[int, ...], share: float = 0.0, column: str = ""
) -> Parted:
    """The parts of the records of this digest, so many of each owner, or places for so many; the rest as of
    `Evaluated`."""
    sizes = {TRAINING: trained, HELD_OUT: held}
    if not share:
        return Parted.of(data_id, draw, sizes)
    out = _fraction(share)
    weights = {TRAINING: out.denominator - out.numerator, HELD_OUT: out.numerator}
    return Parted.into_places(data_id, draw, weights, sizes, column)


def _fraction(share: float) -> Fraction:
    return Fraction(share).limit_denominator(1000)


def _drawable(share: float) -> bool:
    """Whether a share leaves something of both parts."""
    return 0 < share < 1 and 0 < _fraction(share) < 1


@lru_cache(maxsize=64)
def _longest(task: str, classes: int, cells: int) -> Source:
    """The question about a model of made-up columns, whose cells are as many as any model of the task has."""
    target: Target = Labels("y", ("1",), ("0",))
    if TASKS[task].kind == "several":
        target = Classes("y", tuple(str(k) for k in range(classes)))
    elif TASKS[task].kind == "number":
        target = Range("y", 0.0, 1.0)
    schema = modelled(Schema((Numeric("x", 0.0, 1.0),), target), task)
    theta = np.outer((0.1, 1.0), np.arange(1, TASKS[task].scores(classes) + 1))
    return tables_of(schema, theta, cells=cells)
