"""What a private run will reach, rehearsed on synthetic records of the same shape: public numbers in, an expected gap
out.

The synthetic records look like scaled tables: a shared direction (an intercept beside the others) and features whose
variance falls as i^-1.5, in the unit ball; labels from a linear model of norm 15, each counted with its probability,
so that the best model is known and nothing is learnt by heart. Their only link to a user's records is the dimension;
the noise is that of the real number of records. The gap is of the mean loss alone unless an objective is asked for
with a lam of its own. Held against five public sets (455 to 50,000 records, 10 to 123 features, epsilon 0.1 to 2, one
gap each at 10 to 3,000 units of step times iterations, lam 1e-3) the expected gap is off by a factor 1.55 in the root
mean square of its logarithm, which `experiment utility` measures again.
"""

import math
from collections.abc import Callable
from typing import Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dpmpc.lazy import cached_property, dataclass
from dpmpc.learning import erm, functional
from dpmpc.learning.losses import LOGISTIC, RESIDUAL_CLIP, Loss, expit, ridge
from dpmpc.privacy.checks import check_count, check_nonnegative
from dpmpc.privacy.spread import logistic_reach, logistic_spread

Floats = NDArray[np.float64]
Task = Literal["logistic", "ridge"]

RECORDS = 1000
WIDEST = 200  # features rehearsed at most; more are rehearsed as these, with their noise's norm kept
SHARED = 0.4  # of every record's squared norm: the direction that all have in common
DECAY, SIGNAL = 1.5, 0.5  # variance of feature i falls as i^-DECAY, its coefficient as i^-SIGNAL
TRUTH = {"logistic": 15.0, "ridge": 2.0}
RESIDUAL = 0.3  # noise of a ridge target, whose range is [-1, 1]
RUNS = 4
LOCAL_OWNERS = 12
NEWTON = 20  # steps to an optimum
SHORTER = 40  # times at most that one is halved
SETTLED = 1e-12  # of the optimum: a step that is shorter is the last
FLATTEST = 1e-9  # curvature that is added where an objective has none


@dataclass(frozen=True)
class RehearsalRecords:
    """The rehearsal's records for d features: X (RECORDS, d'), y, the objective's optimum and what it starts from.

    lam: of the objective that gaps are measured on; 0 for the mean loss alone."""

    dimension: int
    task: Task
    lam: float = 0.0
    residual_clip: float = RESIDUAL_CLIP
    presence: bool = False

    def __post_init__(self) -> None:
        check_count("the number of features", self.dimension)
        check_nonnegative("regularisation lam", self.lam)

    @cached_property
    def loss(self) -> Loss:
        return LOGISTIC if self.task == "logistic" else ridge(self.residual_clip)

    @property
    def width(self) -> int:
        """d': the features rehearsed."""
        return min(self.dimension, WIDEST)

    @property
    def spread(self) -> float:
        """By what the noise a coordinate is raised, so that its norm is that of d features."""
        return math.sqrt(self.dimension / self.width)

    def records(self, count: int, seed: int) -> tuple[Floats, Floats]:
        """(X (count, d'), y (count,)) from the rehearsal's law."""
        rng = np.random.default_rng([0x5E77, seed])
        d = self.width
        X = np.full((count, d), math.sqrt(SHARED))
        if d > 1:
            order = np.arange(1.0, d)
            variance = order**-DECAY / (order**-DECAY).sum() * (1 - SHARED)
            X[:, 1:] = rng.standard_normal((count, d - 1)) * np.sqrt(variance)
        X /= np.maximum(np.linalg.norm(X, axis=1), 1e-9)[:, None]
        score = X @ self.truth
        if self.task == "logistic":
            return X, np.where(rng.random(count) < 1 / (1 + np.exp(-score)), 1.0, -1.0)
        return X, np.clip(score + RESIDUAL * rng.standard_normal(count), -1.0, 1.0)

    @cached_property
    def truth(self) -> Floats:
        """The linear model behind the labels, (d',)."""
        d = self.width
        if d == 1:
            return np.array([TRUTH[self.task] / 4])
        sign = np.where(np.random.default_rng(0x5E77).random(d - 1) < 0.5, 1.0, -1.0)
        w = np.append(0.0, sign * np.arange(1.0, d) ** -SIGNAL)
        return np.asarray(w * TRUTH[self.task] / np.linalg.norm(w))

    @cached_property
    def data(self) -> tuple[Floats, Floats]:
        return self.records(RECORDS, 0)

    @cached_property
    def labels(self) -> tuple[tuple[Floats, Floats], ...]:
        """The labels of `data` and their weights, (y (RECORDS, 1), weight (RECORDS, 1)) each: both classes with their
        probabilities, or the target."""
        X, y = self.data
        if self.task == "ridge":
            return ((y[:, None], np.ones((RECORDS, 1))),)
        p = (1 / (1 + np.exp(-(X @ self.truth))))[:, None]
        return ((np.ones((RECORDS, 1)), p), (-np.ones((RECORDS, 1)), 1 - p))

    def _mean(self, of: Callable[[Floats, Floats], Floats], scores: Floats) -> Floats:
        """(RECORDS, k) a function of scores and labels, in expectation over the labels."""
        return np.asarray(sum(weight * of(scores, y) for y, weight in self.labels))

    def _slopes(self, scores: Floats) -> Floats:
        """(RECORDS, k) the loss's derivative, in expectation over the labels; of logistic loss in closed form."""
        if self.task == "ridge":
            return self._mean(self.loss.derivative, scores)
        (_, positive), _ = self.labels
        return np.asarray(expit(scores) - positive)

    @cached_property
    def optimum(self) -> Floats:
        """By Newton's method from the truth, which it is without lam, but for the sampled targets of ridge. A step that
        would raise the objective is shortened: where residuals are clipped a whole one may end anywhere."""
        X, theta = self.data[0], self.truth
        for _ in range(NEWTON):
            scores = (X @ theta)[:, None]
            slope = self._slopes(scores)[:, 0] @ X / RECORDS + self.lam * theta
            curved = self._mean(self.loss.second_derivative, scores)
            hessian = (X * curved).T @ X / RECORDS + max(self.lam, FLATTEST) * np.eye(self.width)
            step = np.linalg.solve(hessian, slope)
            if np.linalg.norm(step) <= SETTLED * np.linalg.norm(theta):
                break
            most = self._objective(theta[None])[0] + FLATTEST
            theta = next(
                (t for k in range(SHORTER) if self._objective((t := theta - step / 2**k)[None])[0] <= most), theta
            )
        return np.asarray(theta)

    @cached_property
    def start(self) -> float:
        """J(0) - J*: what there is to gain."""
        return float(self.gap(np.zeros((1, self.width)))[0])

    def gap(self, models: Floats) -> Floats:
        """J - J* of each row of models (k, d')."""
        return self._objective(models) - float(self._objective(self.optimum[None])[0])

    def _objective(self, models: Floats) -> Floats:
        """J of each row of models (k, d')."""
        value = self._mean(self.loss.value, self.data[0] @ models.T).mean(axis=0)
        return np.asarray(value + 0.5 * self.lam * np.einsum("kd,kd->k", models, models))

    def gradient(
        self, sigma: float, iterations: int, step: float, lam: float, momentum: float = 0.0
    ) -> dict[str, float]:
        """The expected gap of `iterations` noisy gradient steps, by which iterates are averaged: "none" or "tail".

        sigma: noise a coordinate on one mean gradient, for sensitivity 2G, or G of a record's presence; logistic owners
        scale it with theta (`privacy.spread`). lam: of the descent.
        """
        X = self.data[0]
        rng = np.random.default_rng([0x5E77, 1])
        theta, tail, counted = np.zeros((RUNS, self.width)), np.zeros((RUNS, self.width)), 0
        moved = np.zeros_like(theta)
        for t in range(1, check_count("iterations", iterations) + 1):
            slope = self._slopes(X @ theta.T).T @ X / RECORDS + lam * theta
            noise = sigma * self.spread * rng.standard_normal(theta.shape)
            if self.task == "logistic":
                norms = [float(np.linalg.norm(row)) for row in theta]
                scaled = [logistic_reach(r) if self.presence else logistic_spread(r) / 2 for r in norms]
                noise *= np.array(scaled)[:, None]
            moved = momentum * moved - step * (slope + noise)
            theta = theta + moved
            if 2 * t > iterations:
                counted += 1
                tail += (theta - tail) / counted
        return {"none": float(self.gap(theta).mean()), "tail": float(self.gap(tail).mean())}

    def functional(self, sigma: float, lam: float) -> float:
        """The expected gap of the functional mechanism with this noise a coordinate of the mean coefficients."""
        d, X = self.width, self.data[0]
        exact = functional.coefficients(X, sum((y * weight for y, weight in self.labels), np.zeros((RECORDS, 1)))[:, 0])
        rng = np.random.default_rng([0x5E77, 2])
        noisy = [exact + sigma * rng.standard_normal(len(exact)) for _ in range(RUNS)]
        models = np.stack([functional.minimiser(vector, d, self.task, lam, sigma) for vector in noisy])
        return float(self.gap(models).mean())

    def output(self, deviation: float, owners: int, records: int, lam: float) -> float:
        """The expected gap of averaged local optima with noise of this deviation a coordinate.

        The owners regularise by `lam`; the gap is of this stage's objective. `records`: of one owner; LOCAL_OWNERS of
        them are trained, so that averaging over more owners is not counted.
        """
        held = min(records, RECORDS)
        parts = [self.records(held, seed + 1) for seed in range(min(owners, LOCAL_OWNERS))]
        local = [erm.solve(self.loss, X, y, lam).theta for X, y in parts]
        if owners == 1 and records >= RECORDS:
            local = [erm.solve(self.loss, *self.data, lam).theta]
        rng = np.random.default_rng([0x5E77, 3])
        noise = deviation * self.spread * rng.standard_normal((4 * RUNS, self.width))
        return float(self.gap(np.mean(local, axis=0) + noise).mean())


@runtime_checkable
class Rehearsed(Protocol):
    """A method of one release that knows what it will reach: the adviser may choose it."""

    def rehearse(
        self, stage: RehearsalRecords, deviation: float, owners: int, records: int, lam: float
    ) -> float | None:
        """The expected gap with noise of this deviation on a coordinate of the opened mean; `records`: of an owner,
        about. None where the features are too many for it."""


@runtime_checkable
class Descends(Protocol):
    """A method of many releases that knows what it will reach, likewise."""

    def rehearse_descent(
        self, stage: RehearsalRecords, sigma: float, iterations: int, step: float, lam: float, momentum: float
    ) -> dict[str, float]:
        """The expected gap by which iterates are averaged: "none" or "tail". As `RehearsalRecords.gradient`."""
