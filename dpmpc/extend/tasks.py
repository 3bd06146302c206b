"""What every task must do: its loss is convex with the constants that it states, so that no record pulls harder."""

import numpy as np

from dpmpc.extend.failed import hold
from dpmpc.extend.methods import check_moves, targets
from dpmpc.learning.losses import Loss
from dpmpc.learning.method import METHODS, Floats
from dpmpc.learning.settings import Descent
from dpmpc.learning.task import TASKS, Task
from dpmpc.records.schema import Classes, Labels, Range, Target

CLASSES = 3
POINTS = 4000
CLIPS = (0.25, 2.0)  # of residuals
_ROUNDING = 1e-9
_STEP = 1e-5


def check_task(name: str, trials: int = 200, seed: int = 1) -> float:
    """The largest pull of a record that was found, over the G that the task called `name` claims (at most 1).

    At scores near 0, far away and between, for every kind of target on the schema's scale and several settings: the
    derivative is that of the loss, no longer than G, and along any line it grows, by L times the way at most: so the
    loss is convex, as the bounds of gradients and of optima want it. `taken` is the same twice, and `link` is finite,
    monotone in a score and, of two classes, 0 at 0. Then every method that suits the task moves no further than it
    says (`check_method`).
    Errors: ConformanceError. Cost: some seconds.
    """
    task, random, worst = TASKS[name], np.random.default_rng(seed), 0.0
    hold(task.name == name, f"a task's name is that of its entry; it is {task.name!r} under {name!r}")
    _check_target(task)
    for clip in CLIPS:
        worst = max(worst, _check_loss(name, task.loss(Descent(residual_clip=clip)), random))
    _check_link(task, random)
    for method_name, method in METHODS.items():
        if method.suits(task):
            check_moves(method_name, name, trials, random)
    return worst


def _check_target(task: Task) -> None:
    examples: dict[str, Target] = {
        "two": Labels("t", ("yes",), ("no",)),
        "several": Classes("t", ("a", "b", "c")),
        "number": Range("t", 0.0, 10.0),
    }
    hold(task.kind in examples, f"a task's kind is one of {', '.join(examples)}; got {task.kind!r}")
    taken = task.taken(examples[task.kind])
    hold(type(taken) is type(examples[task.kind]), "a task takes a target as another of the same kind")
    hold(task.taken(taken) == taken, "what a task has taken it takes as it is")


def _check_loss(name: str, loss: Loss, random: np.random.Generator) -> float:
    task = TASKS[name]
    hold(0 < loss.G < np.inf and 0 < loss.L < np.inf, f"G and L are positive and finite; got {loss.G} and {loss.L}")
    y = targets(task.kind, CLASSES, POINTS, random)
    s, way = _scores(task, random), _scores(task, random)
    pull = loss.derivative(s, y)
    hold(pull.shape == s.shape and bool(np.isfinite(pull).all()), "a derivative is finite, one number a score")
    longest = float(_length(pull).max())
    hold(
        longest <= loss.G * (1 + _ROUNDING), f"a derivative has length G = {loss.G:.6g} at most; one has {longest:.6g}"
    )
    length = _length(way)
    unit = (way.T / np.maximum(length, 1e-300)).T
    for step in (1e-3, 0.3, 5.0):
        grown = ((loss.derivative(s + step * unit, y) - pull).T * unit.T).T
        along = grown if grown.ndim == 1 else grown.sum(axis=1)
        slack = _ROUNDING * loss.G
        hold(bool((along >= -slack).all()), "a loss is convex: along a line its derivative grows")
        most = float(along.max() / step)
        hold(
            most <= loss.L * (1 + 1e-6) + slack / step,
            f"a derivative grows by L = {loss.L:.6g} at most; one by {most:.6g}",
        )
    rise = loss.value(s + _STEP * unit, y) - loss.value(s - _STEP * unit, y)
    slope = (pull.T * unit.T).T
    slope = slope if slope.ndim == 1 else slope.sum(axis=1)
    near = _STEP * loss.L + 1e-15 * (1 + np.abs(loss.value(s, y))) / _STEP  # half a bend, and what doubles lose
    hold(bool((np.abs(rise / (2 * _STEP) - slope) <= near).all()), "the derivative is that of the loss's value")
    return longest / loss.G


def _check_link(task: Task, random: np.random.Generator) -> None:
    s = _scores(task, random)
    said = task.link(s)
    hold(said.shape == s.shape and bool(np.isfinite(said).all()), "a link is finite, one number a score")
    if task.kind != "several":
        order = np.argsort(s)
        hold(bool((np.diff(said[order]) >= -1e-12).all()), "a link grows with the score")
    if task.kind == "two":
        zero = task.link(np.zeros(1))
        hold(float(zero[0]) == 0.0, "the log odds are 0 where the score is 0, where the class changes")


def _scores(task: Task, random: np.random.Generator) -> Floats:
    shape = (POINTS, CLASSES) if task.kind == "several" else (POINTS,)
    width = random.choice([0.0, 0.1, 1.0, 10.0, 300.0], size=POINTS)
    return np.asarray((random.normal(size=shape).T * width).T)


def _length(values: Floats) -> Floats:
    return np.abs(values) if values.ndim == 1 else np.asarray(np.linalg.norm(values, axis=1))
