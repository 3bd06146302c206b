"""What every method of learning must do: no record moves its vectors further than it says."""

import numpy as np

from dpmpc.extend.failed import hold
from dpmpc.learning.method import METHODS, Floats, Ints, Learning
from dpmpc.learning.source import owner_factors
from dpmpc.learning.task import TASKS
from dpmpc.privacy.sensitivity import Weights
from dpmpc.records.blocks import Records
from dpmpc.records.schema import Kind

SIZES = (3, 5, 1)
FEATURES = 4
_ROUNDING = 1e-9


def check_method(name: str, trials: int = 300, seed: int = 1) -> float:
    """The largest move of the weighted mean that was found, over what the method called `name` claims (at most 1):
    one record of one owner is replaced by another, random ones, such on the edge of the unit ball along the iterate
    and against it, and zero ones, for both weights and each of the method's tasks.

    Errors: ConformanceError: a vector beyond `clip`, or a move beyond the claim in any norm; an iterate of another
    length after `update`. Cost: `trials` pairs a task and weighting.
    """
    method, random, worst = METHODS[name], np.random.default_rng(seed), 0.0
    hold(method.name == name, f"a method's name is that of its entry; it is {method.name!r} under {name!r}")
    for name_of_task, task in TASKS.items():
        if method.suits(task):
            worst = max(worst, check_moves(name, name_of_task, trials, random))
    return worst


def check_moves(method: str, task: str, trials: int, random: np.random.Generator) -> float:
    """As `check_method`, of one task."""
    classes = 3 if TASKS[task].kind == "several" else 2
    learning = Learning(method=method, task=task, lam=METHODS[method].lam, classes=classes)
    return max(_check(learning, weights, trials, random) for weights in ("equal", "size"))


def _check(learning: Learning, weights: Weights, trials: int, random: np.random.Generator) -> float:
    method = METHODS[learning.method]
    scores = FEATURES * learning.scores
    dimension = method.coordinates(scores)
    claimed = learning.by_record(SIZES, weights, dimension)
    norms = {1: claimed.l1, 2: claimed.l2, np.inf: claimed.linf}
    offsets = np.concatenate([[0], np.cumsum(SIZES)])
    factors = np.array(owner_factors(SIZES, weights), dtype=np.float64)
    worst = 0.0
    for trial in range(trials):
        theta = random.normal(size=scores) * random.choice([0.0, 0.3, 3.0, 30.0])
        records = _records(learning, theta, sum(SIZES), random)
        row = int(random.integers(sum(SIZES)))
        other = _records(learning, theta, sum(SIZES), random)
        X, y = records.X.copy(), records.y.copy()
        X[row], y[row] = other.X[row], other.y[row]
        pair = [_mean(learning, theta, each, offsets, factors) for each in (records, Records(X, y))]
        moved = pair[0] - pair[1]
        for order, most in norms.items():
            found = float(np.linalg.norm(moved, order)) if len(moved) else 0.0
            hold(
                found <= most * (1 + _ROUNDING),
                f"{learning.method}, {learning.task}: one record moves the mean by {found:.6g} in norm {order}, the"
                f" method claims {most:.6g}",
            )
            worst = max(worst, found / most)
        if trial == 0:
            after = method.take(learning, theta, pair[0] / method.factor(learning, theta), 0.0)
            hold(after.shape == theta.shape, f"{learning.method}: an update keeps the iterate's length")
    return worst


def _mean(learning: Learning, theta: Floats, records: Records, offsets: Ints, factors: Floats) -> Floats:
    method = METHODS[learning.method]
    rows = method.vectors(learning, theta, records, offsets) * method.factor(learning, theta)
    norms = np.linalg.norm(rows, axis=1)
    hold(bool((norms <= method.clip(learning) * (1 + _ROUNDING)).all()), f"{learning.method}: no vector exceeds clip")
    return np.asarray(factors @ rows / factors.sum())


def _records(learning: Learning, theta: Floats, count: int, random: np.random.Generator) -> Records:
    """Records in the unit ball: inside it, on its edge, along the iterate, against it, and zero ones."""
    X = random.normal(size=(count, FEATURES))
    along = theta[:FEATURES] if np.linalg.norm(theta[:FEATURES]) else random.normal(size=FEATURES)
    kind = random.integers(5, size=count)
    X[kind == 3], X[kind == 4] = along, -along
    norms = np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-300)
    X = X / norms * np.where(kind[:, None] == 0, random.uniform(size=(count, 1)), 1.0) * (1 - 1e-12)
    X[random.uniform(size=count) < 0.1] = 0.0
    return Records(X, targets(TASKS[learning.task].kind, learning.classes, count, random))


def targets(kind: Kind, classes: int, count: int, random: np.random.Generator) -> Floats:
    """(count,) targets of this kind, on the schema's scale; of a quantity often on its ends."""
    if kind == "several":
        return random.integers(classes, size=count).astype(np.float64)
    return random.choice([-1.0, 1.0] if kind == "two" else [-1.0, 1.0, 0.0, 0.5, -0.9], size=count)
