"""A task: what a model says of a record, by which loss it learns that, and how far one record can pull.

A new task is a subclass of `Task` and a line in `TASKS`, or an entry point of another package in the group
dpmpc.tasks.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from dpmpc.errors import UsageError
from dpmpc.learning.losses import Loss
from dpmpc.learning.settings import Descent
from dpmpc.records.schema import USUAL, Kind, Schema, Target
from dpmpc.registry import Registry

Floats = NDArray[np.float64]
WORDS: Mapping[Kind, str] = {"two": "two classes", "several": "classes", "number": "a quantity"}
_FIGURES: Mapping[Kind, str] = {"two": "AUC", "several": "balanced accuracy", "number": "R2"}


class Task(ABC):
    """One task; it holds no state.

    Guarantees: a method of gradients or of optima takes from a task that its loss is convex in the score with
    |dl/ds| <= G (L2 norm, of K scores) and |d2l/ds2| <= L, for every score and every target on the schema's scale: -1
    and 1, class numbers, or [-1, 1] of a quantity. Records lie in the unit ball, so a record's gradient has norm G at
    most, and all sensitivities follow (`privacy.sensitivity`). `dpmpc.extend.check_task` tries to refute that.
    """

    name: ClassVar[str]  # on the command line and in plans
    kind: ClassVar[Kind]  # of target that it is for
    help: ClassVar[str]  # what a model of it says, for people: "says which of two classes"
    spread: ClassVar[Literal["fixed", "reach", "pairs"]] = "fixed"
    """What `amplification` goes by: nothing, G is all that is known; how far a gradient lies from zero; or how far two
    lie apart, so that one may be longer than G times it."""
    rehearsed: ClassVar[bool] = False  # whether the adviser can rehearse it; it has a rule for all others

    @abstractmethod
    def loss(self, how: Descent) -> Loss:
        """The loss of one record's score or scores. `how`: the settings of learning, such as `residual_clip`."""

    def taken(self, target: Target) -> Target:
        """The target as this task takes it, in public constants alone. Errors: it takes none such."""
        return target

    def link(self, scores: Floats) -> Floats:
        """What the scores say, as this kind of target is read: (n,) the log odds of the positive class, 0 where the
        score is 0; (n, K) log probabilities of the classes, up to a number a record; (n,) the expected target on the
        schema's scale, [-1, 1]."""
        return scores

    def amplification(self, theta: Floats, scores: int, presence: bool) -> float:
        """G over half of how far two records' gradients can lie apart at the public `theta`, of so many numbers for
        each feature, or, for `presence`, over how far one can lie from zero: at least 1."""
        return 1.0

    def scores(self, classes: int) -> int:
        """How many scores a record has; a model has so many numbers for each feature."""
        return classes if self.kind == "several" else 1

    @property
    def figure(self) -> str:
        """The figure that is looked at while a model is learned, which says more than `score` does."""
        return _FIGURES[self.kind]

    @property
    def score(self) -> str:
        """What a test score is: accuracy, or mse of the target on the scale of [-1, 1]."""
        return "mse" if self.kind == "number" else "accuracy"


TASKS: Registry[Task] = Registry(
    "task",
    "dpmpc.tasks",
    {
        "logistic": "dpmpc.learning.tasks:LOGISTIC_REGRESSION",
        "softmax": "dpmpc.learning.tasks:SOFTMAX_REGRESSION",
        "ridge": "dpmpc.learning.tasks:RIDGE_REGRESSION",
        "ordinal": "dpmpc.learning.ordinal:ORDINAL_REGRESSION",
        "median": "dpmpc.learning.quantiles:MEDIAN",
        "quantile10": "dpmpc.learning.quantiles:QUANTILE10",
        "quantile90": "dpmpc.learning.quantiles:QUANTILE90",
    },
    lambda thing: isinstance(thing, Task),
)


def modelled(schema: Schema, name: str | None) -> Schema:
    """The schema whose target is modelled by the task called `name`; None: by the one that the schema has.

    Errors: UsageError for a task that no package here has, that is for another kind of target, or that is not the
    schema's own.
    """
    task = TASKS[name or schema.task]
    if task.kind != schema.kind:
        raise UsageError(
            f"the task {task.name} is for {WORDS[task.kind]}; the target '{schema.target.name}' is"
            f" {WORDS[schema.kind]}, which asks for {USUAL[schema.kind]}; leave <<task>> out"
        )
    if schema.task not in (task.name, USUAL[schema.kind]):
        raise UsageError(
            f"the schema says how its target is modelled: {schema.task}; got {task.name}; leave <<task>> out"
        )
    made = msgspec.structs.replace(schema, task=task.name, target=task.taken(schema.target))
    return schema if made == schema else made


def check_modelled(schema: Schema, name: str) -> None:
    """Errors: UsageError unless a plan's schema is as the task called `name` takes it."""
    if schema.task != name or modelled(schema, name) != schema:
        raise UsageError(
            f"a plan's task is its schema's, whose target is as the task takes it; the plan has {name}, its schema"
            f" {schema.task}; plan again"
        )
