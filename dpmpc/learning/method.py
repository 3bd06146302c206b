"""A method of learning: what an owner sends at an iterate, how far a record can move it, and what an opened mean does.

A new method is a subclass of `Method` and a line in `METHODS`, or an entry point of another package in the group
dpmpc.methods.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from dpmpc.data.blocks import Records
from dpmpc.errors import UsageError
from dpmpc.learning.losses import LOGISTIC, Loss, ridge
from dpmpc.learning.softmax import SOFTMAX
from dpmpc.privacy.checks import check_count, check_nonnegative, check_positive
from dpmpc.privacy.law import LAWS
from dpmpc.privacy.sensitivity import Sensitivity, Weights, arithmetic_bound, owner_sensitivity
from dpmpc.registry import Registry

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Task = Literal["logistic", "ridge", "softmax"]
Average = Literal["none", "tail", "all"]
Spread = Literal["theta", "fixed"]


@dataclass(frozen=True)
class Learning:
    """How a model is learned: all public numbers that the owners' vectors and the iterates depend on.

    `residual_clip`: G of ridge regression. `radius`: of the ball that iterates or local models are projected onto.
    `spread`: whether two records' gradients are taken to differ by what is possible at theta, or always by 2G.
    `classes`: how many softmax regression tells apart.
    """

    method: str
    task: Task
    lam: float
    residual_clip: float = 1.0
    step: float | None = None
    radius: float | None = None
    average: Average = "tail"
    solver_tolerance: float = 1e-8
    spread: Spread = "theta"
    classes: int = 2

    def __post_init__(self) -> None:
        for name, value, allowed in (
            ("task", self.task, Task),
            ("average", self.average, Average),
            ("spread", self.spread, Spread),
        ):
            if value not in get_args(allowed):
                raise UsageError(f"the {name} must be one of {', '.join(get_args(allowed))}; got {value!r}; choose one")
        check_nonnegative("solver tolerance", self.solver_tolerance)
        if self.task not in METHODS[self.method].tasks:
            raise UsageError(
                f"method {self.method} is not for {self.task} regression; use another, such as {DEFAULT_METHOD}"
            )
        if check_count("the number of classes", self.classes) < 2:
            raise UsageError(f"a model tells at least 2 classes apart; got {self.classes}; check the target")
        for name in ("lam", "residual_clip", "step", "radius"):
            number = getattr(self, name)
            if number is not None or name in ("lam", "residual_clip"):
                check_positive(name.replace("_", " "), number)

    @property
    def loss(self) -> Loss:
        """The loss of one record's score."""
        if self.task == "softmax":
            return SOFTMAX
        return LOGISTIC if self.task == "logistic" else ridge(self.residual_clip)

    @property
    def scores(self) -> int:
        """How many scores a record has; a model has so many numbers for each feature."""
        return self.classes if self.task == "softmax" else 1

    @property
    def step_length(self) -> float:
        """As given, else 1 / (L + lam)."""
        return 1 / (self.loss.L + self.lam) if self.step is None else self.step

    @property
    def clip(self) -> float:
        """The norm that an owner's vector cannot exceed."""
        return METHODS[self.method].clip(self)

    def sensitivity(self, sizes: Sequence[int], weights: Weights, rounding: float = 0.0) -> Sensitivity:
        """How far one record moves the weighted mean of the owners' vectors, as computed in doubles."""
        method = METHODS[self.method]
        rounding += arithmetic_bound(method.arithmetic(self), sizes, weights)
        return method.sensitivity(self, sizes, weights, rounding)

    def owner_sensitivity(self, sizes: Sequence[int], weights: Weights, rounding: float = 0.0) -> Sensitivity:
        """How far all of one owner's records together move the weighted mean of the owners' vectors, as computed in
        doubles."""
        method = METHODS[self.method]
        reach, factors = method.reach(self), [1] * len(sizes) if weights == "equal" else sizes
        if reach < method.clip(self):  # beyond which a vector is cut off, whatever doubles made of it
            rounding += arithmetic_bound(method.arithmetic(self), sizes, weights)
        return owner_sensitivity(reach, factors, sum(factors), rounding)

    def to_json(self) -> dict[str, Any]:
        """The same as JSON values."""
        return asdict(self)


class Method(ABC):
    """One method; it holds no state."""

    name: ClassVar[str]  # on the command line and in plans
    repeats: ClassVar[bool]  # whether it makes many releases, one an iteration, or a single one
    law: ClassVar[str]  # of its noise, if nothing else is asked for and no delta is given
    lam: ClassVar[float]  # regularisation, likewise
    help: ClassVar[str]  # what an owner sends, for the command line
    tasks: ClassVar[tuple[str, ...]] = ("logistic", "ridge")  # that it is for
    rehearsed_wide: ClassVar[bool] = True  # whether fewer features than there are may rehearse it
    lam_moves: ClassVar[bool] = False  # whether its sensitivity depends on lam

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
    def sensitivity(self, learning: Learning, sizes: Sequence[int], weights: Weights, rounding: float) -> Sensitivity:
        """How far one record moves the weighted mean of the owners' vectors; `rounding` is that part of it."""

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
)
DEFAULT_METHOD = "gradient"


def project(vectors: Floats, bound: float) -> Floats:
    """The rows of `vectors` (m, d), each projected onto the ball of radius `bound`. A projection is non-expansive."""
    norms = np.sqrt(np.einsum("md,md->m", vectors, vectors))
    if not (norms > bound).any():
        return vectors
    return np.asarray(vectors * np.minimum(1.0, bound / np.maximum(norms, 1e-300))[:, None], dtype=np.float64)


def tail_begins(iterations: int) -> int:
    """The first iteration that a tail average takes in, counted from 1: the last half."""
    return math.floor(iterations / 2) + 1
