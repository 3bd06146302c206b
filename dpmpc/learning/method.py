"""A method of learning: what an owner sends at an iterate, how far a record can move it, and what an opened mean does.

A new method is a subclass of `Method` and a line in `METHODS`, or an entry point of another package in the group
dpmpc.methods. `Learner` learns by one, in step with all other owners.
"""

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Self, get_args

import numpy as np
from numpy.typing import NDArray

from dpmpc.errors import RecordError, UsageError
from dpmpc.lazy import dataclass
from dpmpc.learning.class_weights import Weighted, check_weights
from dpmpc.learning.lengths import check_step
from dpmpc.learning.losses import Loss
from dpmpc.learning.of_schema import described, invented_of, surveyed_away
from dpmpc.learning.settings import Average, Descent
from dpmpc.learning.source import Following, Invented, Opening, Schedule, Source, Sum, owner_factors
from dpmpc.learning.survey_columns import Draft, columns_line
from dpmpc.learning.task import TASKS, Task
from dpmpc.outcome import Outcome
from dpmpc.privacy.checks import check_count, check_positive
from dpmpc.privacy.law import LAWS
from dpmpc.privacy.persons import Persons
from dpmpc.privacy.sensitivity import Sensitivity, Weights, arithmetic_bound, owner_sensitivity
from dpmpc.records import Dataset
from dpmpc.records.blocks import Records, in_memory
from dpmpc.records.schema import Schema
from dpmpc.registry import Registry
from dpmpc.settings import values_of

if TYPE_CHECKING:
    from dpmpc.intake.table import Table
    from dpmpc.records.check import Findings

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Learning(Descent, Source):
    """How a model is learned: all public numbers that the owners' vectors and the iterates depend on, chosen where
    nobody had said them. `classes`: how many softmax regression tells apart. `presence`: whether the promise is of a
    record's presence, so that `factor` goes by how far a gradient lies from zero, not from another; a plan derives it
    of its neighbours. `weights`:
    of the classes (`class_weights`), () where all are alike. `survey`: the one that comes before, and decides on the
    schema, while it is still to be made.
    """

    KIND: ClassVar[str] = "learning"
    TRAINS: ClassVar[bool] = True
    BY_SCHEMA: ClassVar[tuple[str, ...]] = ("task", "classes")
    RESULT: ClassVar[str] = "model.npz"
    MAKES: ClassVar[str] = "the model"
    DOES: ClassVar[str] = "training"
    BEFORE: ClassVar[str] = "one that found how columns are spread"

    method: str
    task: str
    lam: float
    average: Average = "tail"
    classes: int = 2
    presence: bool = False
    weights: tuple[float, ...] = ()
    survey: Draft | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.survey, dict):  # out of a file
            object.__setattr__(self, "survey", Draft(**self.survey))
        if not isinstance(self.survey, Draft | None):
            raise UsageError(f"a survey before training is an object; got {self.survey!r}; plan again")
        if self.average not in get_args(Average):
            raise UsageError(
                f"the average must be one of {', '.join(get_args(Average))}; got {self.average!r}; choose one"
            )
        task = TASKS[self.task]
        if not METHODS[self.method].suits(task):
            raise UsageError(
                f"method {self.method} is not for {self.task} regression; use another, such as {DEFAULT_METHOD}"
            )
        if check_count("the number of classes", self.classes) < 2:
            raise UsageError(
                f"a model tells at least 2 classes apart; got {self.classes}; check the target", code="enough"
            )
        check_positive("lam", self.lam)
        check_weights(self.weights, self.classes)
        weighed = self.weights or (self.survey is not None and self.survey.balanced)
        if weighed and (task.kind == "number" or not METHODS[self.method].weighs):
            raise UsageError(
                f"<<class_weight>> is for classes and the method {DEFAULT_METHOD}; got {self.task} regression by "
                f"{self.method}; leave it out",
                code="together",
            )
        if METHODS[self.method].repeats:
            check_step(self.step_length, self.loss.L, self.lam, self.momentum or 0.0)
        if self.survey is not None and (self.survey.schema.task, self.survey.schema.classes) != (
            self.task,
            self.classes,
        ):
            raise UsageError(f"a survey's draft is of the plan's task and classes; this plan has {self.task} with "
                             f"{self.classes} and another draft; plan again")  # fmt: skip

    @property
    def draft(self) -> Schema | None:
        return None if self.survey is None else self.survey.schema

    @property
    def settled(self) -> dict[str, Any]:
        return values_of(self, Descent) | {name: getattr(self, name) for name in ("method", "task", "lam", "average")}

    def outcome(self, opened: Opening) -> Outcome:
        """The model, the same that every owner writes; nothing where no schema says what it is of."""
        if opened.schema is None:
            return Outcome()
        from dpmpc.learning.model import model_file

        schema = Schema.from_json(opened.schema)
        nothing = in_memory(np.empty((0, len(schema.feature_names))), np.empty(0))
        learner = Learner(self, opened.releases, nothing, (0,), opened.sums[0].noise / opened.divisor)
        for each in opened.sums:
            learner.apply(each.total / each.count)
        data = Dataset(opened.data, schema, nothing, 0, left_out=surveyed_away(opened.draft, schema))
        return Outcome(files={self.RESULT: model_file(learner.model, data, opened.run, self.weights)})

    @property
    def comes_to(self) -> str:
        return f"{self.MAKES} comes to `run/{self.RESULT}`"

    def purpose(self, data: str, schema: Schema | None) -> str:
        does = "predicts" if schema is None else TASKS[schema.task].help
        target = "" if schema is None else f" for '{schema.target.name}'"
        return f"one model{target} that {does} ('{data}')"

    def held_against(self, table: "Table", schema: Schema | None, sizes: Sequence[int] = ()) -> "Findings":
        from dpmpc.records.check import check

        return check(described(schema), table, sizes)

    def invented(self, schema: Schema | None) -> Iterator[tuple[str, Invented]]:
        yield from invented_of(described(schema))

    @property
    def schedule(self) -> Schedule:
        return Schedule() if self.survey is None else Schedule(self.survey.stages)

    @property
    def deciding(self) -> int:
        return 0 if self.survey is None else len(self.survey.stages) - 1

    @property
    def about(self) -> list[str]:
        if self.survey is None:
            return super().about
        counts = ", weights of classes by its counts of labels" if self.survey.balanced else ""
        return [f"{columns_line(self.survey.schema)}{counts}", *self.survey.about_words]

    def length(self, features: int) -> int:
        """The coordinates of an owner's vector."""
        return METHODS[self.method].coordinates(features) * self.scores

    def longest(self, count: int, noise: float) -> int | None:
        return None if self.survey is None else self.length(self.survey.longest(count, noise))

    def follows(self, opened: Sum) -> Following:
        if self.survey is None:
            return super().follows(opened)
        if self.survey.spelling is not None:
            return Following(replace(self, survey=self.survey.told(opened)))
        schema = self.survey.after(opened)
        weights = self.survey.weights(opened) or self.weights
        learning = replace(self, survey=None, weights=weights)
        return Following(learning, self.length(len(schema.feature_names)), schema.to_json())

    def check_records(self, table: "Table") -> None:
        """Before a survey: a column that is not there."""
        for name in () if self.survey is None else self.survey.schema.unknown:
            table[name]

    def check(self, neighbours: str, dimension: int) -> None:
        super().check(neighbours, dimension)
        if self.survey is not None and neighbours == "owner":
            raise UsageError(
                "a survey of columns is for neighbours by record; the plan's are owners; plan again", code="together"
            )
        METHODS[self.method].check(self)

    def promised(self, neighbours: str) -> Self:
        return replace(self, presence=neighbours == "presence")

    def to_json(self) -> dict[str, Any]:
        made = super().to_json()
        del made["presence"]
        return made if self.survey is None else {**made, "survey": self.survey.to_json()}

    @property
    def loss(self) -> Loss:
        """The loss of one record's score."""
        task = TASKS[self.task]
        loss = task.loss(self)
        return Weighted(loss, self.weights, task.kind == "several") if self.weights else loss

    @property
    def scores(self) -> int:
        """How many scores a record has; a model has so many numbers for each feature."""
        return TASKS[self.task].scores(self.classes)

    @property
    def step_length(self) -> float:
        """As given, else 1 / (L + lam)."""
        return 1 / (self.loss.L + self.lam) if self.step is None else self.step

    @property
    def clip(self) -> float:
        """The norm that an owner's vector cannot exceed."""
        return METHODS[self.method].clip(self)

    def by_record(self, sizes: Sequence[int], weights: Weights, dimension: int) -> Sensitivity:
        moved = METHODS[self.method].sensitivity(self, sizes, weights, dimension)
        return self._computed(moved, sizes, weights, dimension)

    def by_presence(self, sizes: Sequence[int], weights: Weights, dimension: int) -> Sensitivity | None:
        moved = METHODS[self.method].presence(self, sizes, weights, dimension)
        return None if moved is None else self._computed(moved, sizes, weights, dimension)

    def moved(
        self, neighbours: str, sizes: Sequence[int], weights: Weights, dimension: int, persons: Persons | None = None
    ) -> Sensitivity:
        """That of these neighbours, of which `persons` says what is kept. Errors: UsageError for a method that does not
        know of a record's presence."""
        known = self.levels(neighbours, sizes, weights, dimension, persons)
        if neighbours not in known:
            raise UsageError(
                f"a promise of a record's presence, or of persons, needs a method that bounds absence; {self.method} "
                "does not; promise neighbours by record"
            )
        return known[neighbours]

    def _computed(self, exact: Sensitivity, sizes: Sequence[int], weights: Weights, dimension: int) -> Sensitivity:
        doubles = arithmetic_bound(METHODS[self.method].arithmetic(self), sizes, weights)
        return exact.within(dimension) + doubles.within(dimension)

    def by_owner(self, sizes: Sequence[int], weights: Weights, dimension: int) -> Sensitivity:
        method = METHODS[self.method]
        reach, factors = method.reach(self), owner_factors(sizes, weights)
        moved = owner_sensitivity(reach, factors, sum(factors)).within(dimension)
        if reach < method.clip(self):  # beyond which a vector is cut off, whatever doubles made of it
            moved += arithmetic_bound(method.arithmetic(self), sizes, weights).within(dimension)
        return moved


def learning_of(source: Source) -> Learning:
    """A source that trains, as one. Errors: UsageError for any other."""
    if not isinstance(source, Learning):
        raise UsageError(f"a training run needs a plan of train; this one is of {source.KIND}; name another plan")
    return source


FAR = 1e100  # of a number of an iterate: so far every score, gradient and sum of them in doubles is finite


def check_near(theta: Floats) -> Floats:
    """The public iterate, or model. Guarantees: with it no record's vector overflows, so no record decides whether an
    owner's process goes on: whoever plans a long step, or brings a model, would else read from who stops, exactly and
    unpaid, what no noise covers. Errors: UsageError for one that is farther than `FAR`, of public numbers alone."""
    if not (np.abs(theta) <= FAR).all():  # nor what is no number
        raise UsageError(
            f"an iterate, or a model, lies within {FAR:g} in every coordinate; this one does not; lower the <<step>>",
            code="range",
        )
    return theta


class Method(ABC):
    """One method; it holds no state."""

    name: ClassVar[str]  # on the command line and in plans
    repeats: ClassVar[bool]  # whether it makes many releases, one an iteration, or a single one
    law: ClassVar[str]  # of its noise, if nothing else is asked for and no delta is given
    lam: ClassVar[float]  # regularisation, likewise
    help: ClassVar[str]  # what an owner sends, for the command line
    tasks: ClassVar[tuple[str, ...]] = ("logistic", "ridge")  # that it is for, unless `suits` says so otherwise
    weighs: ClassVar[bool] = False  # whether it is for records that count by their class

    def check(self, learning: Learning) -> None:  # noqa: B027
        """Errors: UsageError for public numbers with which some records' vectors could not be had; by default none."""

    lam_moves: ClassVar[bool] = False  # whether its sensitivity depends on lam

    def suits(self, task: Task) -> bool:
        """Whether it is for this task."""
        return task.name in self.tasks

    def law_for(self, delta: float | None) -> str:
        """The law of its noise at this delta, if nothing else is asked for."""
        return self.law

    @property
    def may_be_pure(self) -> bool:
        """Whether its own noise keeps delta = 0 where no delta is given."""
        return LAWS[self.law_for(None)].pure

    def coordinates(self, features: int) -> int:
        """The length of an owner's vector."""
        return features

    def factor(self, learning: "Learning", theta: Floats) -> float:
        """What owners multiply their vectors by at the public iterate `theta` before rounding, and the opened mean is
        divided by: at least 1. `clip` and `sensitivity` are of the multiplied vectors."""
        return 1.0

    @abstractmethod
    def clip(self, learning: Learning) -> float:
        """The norm that an owner's vector cannot exceed."""

    def reach(self, learning: Learning) -> float:
        """Half of how far two vectors of one owner can lie apart, whatever its records are: the norm, or less."""
        return self.clip(learning)

    @abstractmethod
    def sensitivity(self, learning: Learning, sizes: Sequence[int], weights: Weights, dimension: int) -> Sensitivity:
        """How far one record moves the weighted mean of the owners' vectors (dimension,), in the norms in which that
        is known; rounding and arithmetic come on top."""

    def presence(
        self, learning: Learning, sizes: Sequence[int], weights: Weights, dimension: int
    ) -> Sensitivity | None:
        """How far one record moves it by being absent: as one of zero features, which adds the zero vector to a sum
        over records whose number stays. As `sensitivity`; None: nothing is proved, and no such promise is made."""
        return None

    def arithmetic(self, learning: Learning) -> float:
        """A norm that bounds what an owner's vector is the mean of: see `arithmetic_bound`."""
        return self.clip(learning)

    @abstractmethod
    def vectors(self, learning: Learning, theta: Floats, records: Records, offsets: Ints) -> Floats:
        """(m, d): what each of m owners sends at the public iterate `theta`; owner j holds rows offsets[j]:offsets[j+1]
        of the records. Secret."""

    @abstractmethod
    def update(self, learning: Learning, theta: Floats, mean: Floats) -> Floats:
        """The next iterate, (d,), from the opened mean. Public."""

    def take(self, learning: Learning, theta: Floats, mean: Floats, noise: float) -> Floats:
        """As `update`, for methods that use how much noise, its deviation a coordinate, the opened mean has. Public."""
        return self.update(learning, theta, mean)


METHODS: Registry[Method] = Registry(
    "method of learning",
    "dpmpc.methods",
    {
        "gradient": "dpmpc.learning.gradient:GRADIENT",
        "output": "dpmpc.learning.output:OUTPUT",
        "functional": "dpmpc.learning.coefficients:FUNCTIONAL",
    },
    lambda thing: isinstance(thing, Method),
)
DEFAULT_METHOD = "gradient"


def project(vectors: Floats, bound: float) -> Floats:
    """The rows of `vectors` (m, d), each projected onto the ball of radius `bound`. A projection is non-expansive."""
    norms = np.sqrt(np.einsum("md,md->m", vectors, vectors))
    if not (norms > bound).any():
        return vectors
    return np.asarray(vectors * np.minimum(1.0, bound / np.maximum(norms, 1e-300))[:, None], dtype=np.float64)


def carried(learning: Learning, taken: Floats, moved: Floats) -> Floats:
    """(d,) the iterate that `taken` becomes after a move of `moved` (d,): heavy-ball momentum, of public numbers alone.

    Stable, for any records, wherever the step is below 2 (1 + momentum)/(L + lam). Source: Polyak 1964."""
    if not learning.momentum:
        return taken
    after = taken + learning.momentum * moved
    return after if learning.radius is None else project(after[None, :], learning.radius)[0]


def tail_begins(iterations: int) -> int:
    """The first iteration that a tail average takes in, counted from 1: the last half."""
    return math.floor(iterations / 2) + 1


# -- learning by a method: the owners of one process, and the public iterate
def check_record_weights(learning: Learning, records: Records) -> None:
    """Errors: UsageError for weights of records that the method is not proved for (see `learning.class_weights`), or
    that are none: beyond 0 to 1."""
    if (w := records.weights) is None:
        return
    if not METHODS[learning.method].weighs:
        raise UsageError(
            f"records count by weights with the method {DEFAULT_METHOD}; got {learning.method}; choose the other, or "
            "leave weights out",
            code="together",
        )
    if w.shape != (records.n,) or not ((w >= 0) & (w <= 1)).all():
        raise RecordError(
            "each record counts 0 to 1 times; a weight lies outside; divide weights by a public bound",
            "each record counts 0 to 1 times; some owner's weights lie outside",
        )


class Learner:
    """Learns from the records of some owners, in step with all others."""

    def __init__(
        self, learning: Learning, iterations: int, records: Records, sizes: Sequence[int], noise: float = 0.0
    ) -> None:
        """`records` are those of these owners, sorted by owner; `sizes`: how many each has. `noise`: the deviation of a
        coordinate of an opened mean, public."""
        self.learning, self.iterations, self.noise = learning, iterations, noise
        self._method = METHODS[learning.method]
        check_record_weights(learning, records)
        self._records = records
        self._offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        if self._offsets[-1] != records.n:  # holds under -O too
            raise AssertionError("sizes are those of the owners whose records these are")
        self.theta = np.zeros(records.d * learning.scores)
        self._moved = np.zeros_like(self.theta)  # by the last release
        self.iteration = 0
        self.compute_s = 0.0  # spent computing vectors
        self._average = np.zeros_like(self.theta)
        self._averaged = 0

    def vectors(self, at_once: int | None = None) -> Iterator[Floats]:
        """The owners' vectors at the present iterate, (k, d) each with k at most `at_once`, in the owners' order."""
        m = len(self._offsets) - 1
        size, factor = at_once or m, self._method.factor(self.learning, self.theta)
        for start in range(0, m, size):
            begin = time.perf_counter()
            offsets = self._offsets[start : start + size + 1]
            records = self._records.part(int(offsets[0]), int(offsets[-1]))
            vectors = self._method.vectors(self.learning, self.theta, records, offsets - offsets[0])
            if factor != 1.0:
                vectors = vectors * factor
            self.compute_s += time.perf_counter() - begin
            yield vectors

    def apply(self, mean: Floats) -> None:
        """Take in one opened mean (d,): the next iterate, or the model. Post-processing."""
        factor = self._method.factor(self.learning, self.theta)
        taken = self._method.take(self.learning, self.theta, mean / factor, self.noise / factor)
        after = check_near(carried(self.learning, taken, self._moved))
        self._moved, self.theta = after - self.theta, after
        self.iteration += 1
        average = self.learning.average
        if average == "all" or (average == "tail" and self.iteration >= tail_begins(self.iterations)):
            self._averaged += 1
            self._average += (self.theta - self._average) / self._averaged

    @property
    def model(self) -> Floats:
        """(d,) what would be the result if the run ended now: the iterate, or the average of iterates so far."""
        return self._average.copy() if self._averaged else self.theta
