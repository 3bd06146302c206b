"""One piece of work: a method on a partition, all its budgets and seeds at once; and the rows it makes.

A task is a value: its key is a digest of all it says, so that finished tasks are recognised in a later run, and any
row can be computed again from its own seed.
"""

import hashlib
from dataclasses import astuple
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpmpc.errors import UsageError
from dpmpc.lazy import dataclass
from dpmpc.learning import erm
from dpmpc.privacy.gaussian import Calibration
from dpmpc.records import load_dataset, partition
from dpmpc_experiments import attack, kdd98
from dpmpc_experiments.method import Method, Run
from dpmpc_experiments.methods import METHODS
from dpmpc_experiments.nonconvex import SIGMOID_SQUARED
from dpmpc_experiments.records import Problem, Records

STEPS = (0.01, 0.05, 0.1, 0.5, 1.0)  # Kang et al. 2019 choose the step size among these
RESIDUAL_CLIP = 1.0  # of ridge: the targets' range is [-1, 1]
REACH = 10.0  # a public guess of |theta*|, for choosing it


@dataclass(frozen=True)
class Source:
    """Which records: a set of `dpmpc.records` by name, how many of its rows, the test part, and the loss.

    fold k >= 0 tests on the k-th of five parts of a shuffled set; fold -1 on a random test_fraction. label "attack":
    KDDCup99's connections are attacks or normal, instead of denial of service or not. The papers' vectors have no
    intercept.
    """

    dataset: str
    seed: int
    lam: float
    max_rows: int | None = None
    test_fraction: float = 0.2
    fold: int = -1
    loss: str = "logistic"
    label: str = ""
    intercept: bool = False


@dataclass(frozen=True)
class Task:
    """A method on one partition. at: the numbers of updates recorded. block b > 0: means over the models after t,
    ..., t + b - 1 updates too, for t = 1, b + 1, ... up to `iterations`, as one row each.

    owners: "even:M", "random:M", "skew:M:U", "shares:0.1,0.9" or "simplex:M" (see `owner_sizes`).
    """

    experiment: str
    source: Source
    owners: str
    owner_seed: int
    method: str
    calibration: Calibration
    epsilons: tuple[float, ...]
    delta: float
    iterations: int
    eta: float
    seeds: tuple[int, ...]
    at: tuple[int, ...]
    step_of: str = ""
    block: int = 0

    @property
    def blocks(self) -> tuple[int, ...]:
        """The first update of every block."""
        return tuple(range(1, self.iterations - self.block + 2, self.block)) if self.block else ()

    @property
    def key(self) -> str:
        """A digest of all of the task."""
        return hashlib.sha256(repr(astuple(self)).encode()).hexdigest()[:12]

    @property
    def rows(self) -> int:
        """How many rows it makes."""
        return len(self.epsilons) * len(self.seeds) * (len(self.at) + len(self.blocks))


COLUMNS = (
    "task", "dataset", "label", "fold", "loss", "lam", "n", "d", "owners", "owner_seed", "n_min", "method",
    "calibration",
    "epsilon", "delta", "iterations", "eta", "law", "scale", "claimed_delta", "true_epsilon", "true_delta", "seed",
    "iteration", "block", "objective", "gap", "gradient_norm", "score", "score_loss", "score_off",
)  # fmt: skip
Row = dict[str, str | float | int]


def execute(task: Task, data_dir: Path | None) -> list[Row]:
    """The rows of a task, in the order of budgets, seeds and iterations; blocks after single iterations.

    score_loss is the optimum's test score minus the model's, score_off its absolute value: in a block, the means of
    both.
    """
    records = load_records(task.source, data_dir)
    problem = make_problem(records, task.owners, task.owner_seed)
    method = METHODS[task.method]
    runs = []
    for epsilon in task.epsilons:
        plain = Run(0, epsilon, task.delta, task.iterations, task.eta or 1.0, task.calibration)
        eta = task.eta or step_size(METHODS[task.step_of or task.method], problem, plain)
        runs += [Run(seed, epsilon, task.delta, task.iterations, eta, task.calibration) for seed in task.seeds]
    inside = {t for start in task.blocks for t in range(start, start + task.block)}
    every = sorted(inside | set(task.at))
    models = method.models(problem, runs, every)
    metrics = _metrics(records, models, [every.index(t) for t in task.at])
    groups = [(t, 0, [every.index(t)]) for t in task.at]
    groups += [(t, task.block, list(range(every.index(t), every.index(t) + task.block))) for t in task.blocks]
    rows: list[Row] = []
    for k, run in enumerate(runs):
        claim = method.claim(problem, run)
        common: Row = {
            "task": task.key, "dataset": task.source.dataset, "label": task.source.label, "fold": task.source.fold,
            "loss": task.source.loss,
            "lam": task.source.lam, "n": problem.n, "d": records.d, "owners": task.owners,
            "owner_seed": task.owner_seed, "n_min": int(problem.sizes.min()), "method": task.method,
            "calibration": task.calibration, "epsilon": run.epsilon, "delta": run.delta, "iterations": run.iterations,
            "eta": run.eta, "law": claim.law, "scale": claim.scale, "claimed_delta": claim.claimed[1],
            "true_epsilon": claim.true[0], "true_delta": claim.true[1], "seed": run.seed,
        }  # fmt: skip
        for t, block, members in groups:
            means: Row = {name: float(values[members, k].mean()) for name, values in metrics.items()}
            rows.append(common | {"iteration": t, "block": block} | means)
    return rows


def _metrics(records: Records, models: NDArray[np.float64], single: list[int]) -> dict[str, NDArray[np.float64]]:
    """Every metric of models (t, runs, d) as (t, runs), in the order of COLUMNS; gradient norms at `single` times
    alone."""
    objective, score = records.objective(models), records.test_score(models)
    norms = np.full(objective.shape, np.nan)
    norms[single] = records.gradient_norms(models[single])
    return {
        "objective": objective,
        "gap": objective - records.smallest,
        "gradient_norm": norms,
        "score": score,
        "score_loss": records.best_score - score,
        "score_off": np.abs(records.best_score - score),
    }


def step_size(method: Method, problem: Problem, run: Run) -> float:
    """The step of STEPS that minimises REACH^2/(2 eta T) + eta d sigma^2/2, the convex bound on the gap after T
    updates.

    Source: Kang et al. 2019 choose among the same five by cross-validation, whose cost in privacy they do not count.
    This choice reads nothing but public numbers.
    """
    sigma = method.claim(problem, run).scale
    bound = [REACH**2 / (2 * eta * run.iterations) + eta * problem.records.d * sigma**2 / 2 for eta in STEPS]
    return STEPS[int(np.argmin(bound))]


@lru_cache(maxsize=3)
def load_records(source: Source, data_dir: Path | None) -> Records:
    """The records of a source, with their optimum and distinct rows computed once a process."""
    if source.dataset == "kddcup98":
        path = kdd98.find(data_dir)
        if path is None:
            raise UsageError(
                f"kddcup98 needs {kdd98.FILES[0]}; it is not in {data_dir}; give its folder with <<data_dir>>",
                code="path",
            )
        regression = kdd98.load(path, source.seed, source.max_rows, source.test_fraction)
        return Records(source.dataset, erm.ridge(1.0), source.lam, *regression)
    fraction = 0.2 if source.fold >= 0 else source.test_fraction
    if source.label == "attack":
        data = attack.load(data_dir, source.seed, source.max_rows, fraction)
    else:
        data = load_dataset(
            source.dataset,
            data_dir=data_dir,
            seed=source.seed,
            test_fraction=fraction,
            intercept=source.intercept,
            max_rows=source.max_rows,
        )
    X, y, X_test, y_test = data.X, data.y, data.X_test, data.y_test
    if source.fold >= 0:
        X, y = np.concatenate([X, X_test]), np.concatenate([y, y_test])
        held_out = np.arange(len(y)) % 5 == source.fold
        X, y, X_test, y_test = X[~held_out], y[~held_out], X[held_out], y[held_out]
    losses: dict[str, erm.Loss] = {
        "logistic": erm.LOGISTIC,
        "sigmoid": SIGMOID_SQUARED,
        "ridge": erm.ridge(RESIDUAL_CLIP),
    }
    return Records(source.dataset, losses[source.loss], source.lam, X, y, X_test, y_test)


def make_problem(records: Records, owners: str, seed: int) -> Problem:
    """The records in the hands of the owners of `owner_sizes`."""
    share = partition(records.n, sizes=owner_sizes(records.n, owners, seed), seed=seed)
    return Problem(records, share.order, share.offsets)


def owner_sizes(n: int, owners: str, seed: int) -> list[int]:
    """How many of n records each owner holds.

    even:M       as even as can be; M = "all" gives every owner one record.
    random:M     a random point of the simplex, no owner below a tenth of an even share (Kang et al. 2019: "a
    threshold of the
                 smallest data set's size").
    skew:M:U     half of the owners hold U times as much as the other half (Kang et al. 2019, u = n_max/n_min).
    simplex:M    a random point of the simplex, no owner empty (Rajkumar and Agarwal 2012, section 6, 1a).
    shares:LIST  these fractions (their section 6, 1b).
    """
    kind, _, rest = owners.partition(":")
    rng = np.random.default_rng([seed, 0x51E5])
    if kind == "even":
        m = n if rest == "all" else int(rest)
        return [n // m + (j < n % m) for j in range(m)]
    if kind == "skew":
        text_m, _, text_u = rest.partition(":")
        m, u = int(text_m), float(text_u)
        weights = np.where(np.arange(m) < m // 2, 1.0, u)
        return _round(weights / weights.sum() * n, n)
    if kind == "random":
        m = int(rest)
        return _round(n * (0.1 / m + 0.9 * rng.dirichlet(np.ones(m))), n)
    if kind == "simplex":
        return _round(n * rng.dirichlet(np.ones(int(rest))), n)
    if kind == "shares":
        return _round(n * np.array([float(x) for x in rest.split(",")]), n)
    raise UsageError(
        f"owners are even:M, random:M, skew:M:U, simplex:M or shares:LIST; got '{owners}'; use one of these",
        code="choice",
    )


def _round(parts: NDArray[np.float64], n: int) -> list[int]:
    sizes = np.maximum(1, np.floor(parts)).astype(int)
    sizes[int(np.argmax(sizes))] += n - int(sizes.sum())
    return [int(size) for size in sizes]
