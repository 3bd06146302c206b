"""The owners' side of a run: load records, fix the plan, learn. The same arithmetic with MPC (`OwnerClient`) and in the
clear.

An owner's vector is its mean gradient at the public iterate, or its own optimum; it is clipped, scaled, rounded on the
grid. What is opened is public, and everything computed from it (iterates, averages, the model) is post-processing.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from dpmpc.aggregation.grid import Floats, Ints
from dpmpc.aggregation.owner import blocks_of
from dpmpc.aggregation.plan import Facts, Plan
from dpmpc.data import Dataset, Partition, load_csv, load_dataset, partition
from dpmpc.errors import UsageError
from dpmpc.learning.erm import LOGISTIC, Loss, accuracy, mse, objective, owner_gradients, ridge, solve, solve_owners
from dpmpc.mpc import field
from dpmpc.mpc.field import Words
from dpmpc.runs.request import Options


def load_records(options: Options) -> Dataset:
    """The data set that the options name. Errors: all that loaders refuse; no data set is named."""
    if options.csv is not None:
        assert options.target is not None
        dataset = load_csv(
            Path(options.csv),
            target=options.target,
            owners_column=options.owners_column,
            task=options.task,
            seed=options.seed,
            test_fraction=0.2 if options.test_fraction is None else options.test_fraction,
            intercept=options.intercept is not False,
            max_rows=options.max_rows,
            bounds_file=None if options.bounds_file is None else Path(options.bounds_file),
            missing=options.missing,
            drop=options.drop,
            positive=options.positive,
        )
    elif options.data is not None:
        dataset = load_dataset(
            options.data,
            data_dir=None if options.data_dir is None else Path(options.data_dir),
            seed=options.seed,
            test_fraction=options.test_fraction,
            intercept=options.intercept,
            max_rows=options.max_rows,
            dimension=options.dimension or 10,
            official_test=options.official_test,
        )
    else:
        raise UsageError("owners need records; none were named; add --data NAME or --csv FILE")
    if options.task is not None and options.task != dataset.task:
        raise UsageError(
            f"--task {options.task} does not suit the target of {dataset.name}, which asks for {dataset.task}; leave "
            "--task out"
        )
    return dataset


def load(options: Options) -> tuple[Dataset, Partition]:
    """The data set, its training rows sorted by owner, and the partition that says who holds which.

    Errors: as `load_records`; an owner without records.
    """
    dataset = load_records(options)
    owners = options.owners
    if owners is None and options.owner_sizes is None and dataset.groups is None:
        raise UsageError(
            "the owners must be known; add --owners M, --owner-sizes N1,N2,..., or --owners-column for a CSV file"
        )
    split = partition(
        dataset.n, owners=owners, sizes=options.owner_sizes, skew=options.skew, groups=dataset.groups, seed=options.seed
    )
    order = split.order[: split.n]
    if not np.array_equal(order, np.arange(dataset.n)):
        dataset = replace(dataset, X=dataset.X[order], y=dataset.y[order])
    return dataset, split


def facts_of(dataset: Dataset, split: Partition) -> Facts:
    """What the plan needs to know of the data."""
    return Facts(dataset.name, dataset.task, dataset.d, tuple(int(size) for size in split.sizes), dataset.bounds)


def load_owner(options: Options, plan: Plan, owner: int) -> Dataset:
    """The records of one owner that takes part from its own machine; all are for training, unless a test fraction is
    given.

    Errors: as `load_records`; records that do not have the shape that the plan says this owner's have; bounds that are
    not public, for then every owner would scale its records differently.
    """
    dataset = load_records(replace_fraction(options))
    if dataset.bounds != "public":
        raise UsageError(
            "an owner on its own needs public bounds, the same for all; none were given; add --bounds FILE"
        )
    check_shape(plan, dataset, (dataset.n,), (plan.sizes[owner],))
    return dataset


def replace_fraction(options: Options) -> Options:
    """The options with no test records, unless they were asked for."""
    return replace(options, test_fraction=0.0) if options.test_fraction is None else options


def check_shape(plan: Plan, dataset: Dataset, sizes: tuple[int, ...], planned: tuple[int, ...]) -> None:
    """Errors: the records are not those that the plan was made for, as far as public figures tell."""
    if (dataset.task, dataset.d, sizes) != (plan.task, plan.dimension, planned):
        raise UsageError(
            f"records must have the shape in the plan: {plan.task}, {plan.dimension} features, {sum(planned)} training "
            f"records; these have {dataset.task}, {dataset.d}, {sum(sizes)}; check the file, --bounds and "
            "--test-fraction, or plan again"
        )


def loss_of(plan: Plan) -> Loss:
    """The plan's loss."""
    return LOGISTIC if plan.loss == "logistic" else ridge(plan.G)


class Learner:
    """The owners of one process and the public iterate: vectors out, opened sums in."""

    def __init__(self, plan: Plan, X: Floats, y: Floats, first: int = 0, end: int | None = None) -> None:
        """X (n, d) and y (n,) hold the records of owners first .. end - 1, sorted by owner."""
        self.plan, self.loss = plan, loss_of(plan)
        self._X, self._y = X, y
        self._first, self._end = first, plan.owners if end is None else end
        self._offsets = np.concatenate([[0], np.cumsum(plan.sizes[self._first : self._end])]).astype(np.int64)
        assert self._offsets[-1] == len(y)
        self.theta = np.zeros(plan.dimension)
        self.iteration = 0
        self.compute_s = 0.0  # spent computing vectors
        self._average = np.zeros(plan.dimension)
        self._averaged = 0

    def vectors(self) -> Iterator[Ints]:
        """The owners' integer vectors (owners, d) at the present iterate, block by block as `blocks_of` has it."""
        plan = self.plan
        for start, end in blocks_of(self._first, self._end, plan.dimension):
            offsets = self._offsets[start - self._first : end - self._first + 1]
            begin = time.perf_counter()
            rows = slice(int(offsets[0]), int(offsets[-1]))
            X, y, offsets = self._X[rows], self._y[rows], offsets - offsets[0]
            if plan.method == "gradient":
                vectors = owner_gradients(self.loss, self.theta, X, y, offsets)
            else:
                vectors, norms = solve_owners(self.loss, X, y, offsets, plan.lam, plan.solver_tolerance / 10)
                if norms.max() > plan.solver_tolerance:
                    raise UsageError(  # neither who nor how far: both depend on records
                        f"every local optimum must reach a gradient norm of {plan.solver_tolerance:g}; not all did; "
                        "raise --solver-tolerance or --lam"
                    )
            vectors = clip(vectors, plan.clip)
            if plan.weights == "size":
                vectors = vectors * np.diff(offsets)[:, None]
            steps = plan.grid.encode(vectors)
            self.compute_s += time.perf_counter() - begin
            yield steps

    def apply(self, opened: Words) -> None:
        """Take in one opened sum (d,): the next iterate, or the model."""
        plan = self.plan
        aggregate = plan.grid.decode(field.to_int64(opened)) / plan.divisor
        if plan.method == "output":
            theta = aggregate
        else:
            theta = self.theta - plan.step * (aggregate + plan.lam * self.theta)
        if plan.radius is not None:
            theta = clip(theta[None, :], plan.radius)[0]
        self.theta = theta
        self.iteration += 1
        if plan.average == "all" or (plan.average == "tail" and 2 * self.iteration > plan.releases):
            self._averaged += 1
            self._average += (theta - self._average) / self._averaged

    @property
    def model(self) -> Floats:
        """(d,) what would be the result if the run ended now: the iterate, or the average of iterates so far."""
        return self._average.copy() if self._averaged else self.theta


def clip(vectors: Floats, bound: float) -> Floats:
    """The rows of `vectors` (m, d), each projected onto the ball of radius `bound`. A projection is non-expansive."""
    norms = np.sqrt(np.einsum("md,md->m", vectors, vectors))
    if not (norms > bound).any():
        return vectors
    return np.asarray(vectors * np.minimum(1.0, bound / np.maximum(norms, 1e-300))[:, None], dtype=np.float64)


def clear_release(learner: Learner, noise: Ints) -> Words:
    """What MPC opens for these owners when its noise is `noise` (d,): the sum in grid steps, in the clear."""
    total = sum(
        (vectors.sum(axis=0) for vectors in learner.vectors()), start=np.zeros(learner.plan.dimension, dtype=np.int64)
    )
    return field.from_int64(total + noise)


class Evaluator:
    """Utility on the plain data of a local run; outside the guarantee."""

    def __init__(self, plan: Plan, dataset: Dataset) -> None:
        self.loss, self.lam, self.data = loss_of(plan), plan.lam, dataset
        self.score_name = "accuracy" if plan.task == "logistic" else "mse"
        self._score: Callable[[Floats, Floats, Floats], float] = accuracy if plan.task == "logistic" else mse
        self.optimum = solve(self.loss, dataset.X, dataset.y, plan.lam, 1e-9).theta
        self.best = self.objective(self.optimum)

    def objective(self, theta: Floats) -> float:
        return objective(self.loss, theta, self.data.X, self.data.y, self.lam)

    def score(self, theta: Floats) -> float | None:
        """Accuracy or mean squared error on the test rows; None if there are none."""
        return self._score(theta, self.data.X_test, self.data.y_test) if len(self.data.y_test) else None
