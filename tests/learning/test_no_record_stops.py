"""No record decides whether its owner's process goes on, whatever public numbers a plan, a model or the other owners
have brought: of who stops, others read what no noise covers and no ledger counts. Records are of every ugly kind within
what features are; public numbers at the very ends of what is let through. With each mend taken out the same records
stop some and not others."""

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from dpmpc.errors import UsageError
from dpmpc.learning.method import FAR, Learner, Learning, check_near
from dpmpc.learning.output import OUTPUT, reached
from dpmpc.learning.task import TASKS
from dpmpc.records.blocks import in_memory
from tests.refusals import refuses

D, N = 16, 12
Floats = Any
GRADIENTS = TASKS.names()
OUTPUTS = [name for name in GRADIENTS if OUTPUT.suits(TASKS[name])]


def rows() -> Iterator[tuple[str, Floats]]:
    """Features of records, in the unit ball."""
    draw, signs = np.random.default_rng(7), np.where(np.arange(D) % 2, 1.0, -1.0)
    halves = np.where(np.arange(D) < D // 2, 1.0, -1.0)
    for name, row in {
        "zeros": np.zeros(D), "ones": np.ones(D), "signs": signs, "halves": halves, "first": np.eye(D)[0],
        "tiny": np.full(D, 5e-324), "small": 1e-160 * signs, "one of many": np.eye(D)[0] + 1e-9 * signs,
    }.items():  # fmt: skip
        yield name, np.tile(row / max(1.0, float(np.linalg.norm(row))), (N, 1))
    some = draw.standard_normal((N, D))
    yield "drawn", some / np.linalg.norm(some, axis=1)[:, None]
    yield "drawn signs", draw.choice([-1.0, 1.0], (N, D)) / np.sqrt(D)
    yield "apart", np.concatenate([np.eye(D)[[0] * (N // 2)], -np.eye(D)[[0] * (N // 2)]])
    yield "nearly alike", np.eye(D)[[0] * N] + 1e-12 * draw.standard_normal((N, D))


def targets(task: str) -> Iterator[Floats]:
    kind = TASKS[task].kind
    low, high = {"two": (-1.0, 1.0), "several": (0.0, 2.0)}.get(kind, (-1.0, 1.0))
    yield np.full(N, high)
    yield np.full(N, low)
    yield np.where(np.arange(N) % 2, low, high)
    yield np.where(np.arange(N) < N // 2, high, low)


def learning(task: str, **settings: Any) -> Learning:
    classes = {"classes": 3} if TASKS[task].kind == "several" else {}
    return Learning(**{"method": "gradient", "task": task, "lam": 1e-3, "average": "none", **classes, **settings})


def stopped(made: Learning, theta: Floats | None = None) -> list[str]:
    """The records of which no vector is had."""
    found = []
    for (name, X), y in itertools.product(rows(), targets(made.task)):
        learner = Learner(made, 3, in_memory(X, y), [N], 1.0)
        if theta is not None:
            learner.theta = theta
        try:
            with np.errstate(all="ignore"):
                vectors = np.concatenate(list(learner.vectors()))
        except (UsageError, np.linalg.LinAlgError, FloatingPointError):
            found.append(name)
        else:
            found += [] if np.isfinite(vectors).all() else [name]
    return found


def iterates(size: int, far: float) -> list[Floats]:
    k = np.arange(size)
    return [
        far * each
        for each in (np.ones(size), np.where(k % 2, 1.0, -1.0), np.where(k < size // 2, 1.0, -1.0), np.eye(size)[0])
    ]


@pytest.mark.parametrize("spread", ["theta", "fixed"])
@pytest.mark.parametrize("task", GRADIENTS)
def test_no_record_overflows_at_an_iterate_that_is_let_through(task: str, spread: str) -> None:
    made = learning(task, spread=spread)
    for theta in iterates(D * made.scores, FAR):
        assert check_near(theta) is theta and not stopped(made, theta)


@pytest.mark.parametrize("task", GRADIENTS)
def test_farther_iterates_would_ask_exact_questions_and_are_refused(task: str) -> None:
    """Some records stop, some do not: an answer without noise, and without a line in a ledger."""
    made = learning(task, spread="fixed")
    number = len(list(rows())) * len(list(targets(task)))
    told = [len(stopped(made, theta)) for theta in iterates(D * made.scores, 1.6e308)]
    assert any(0 < each < number for each in told)
    for theta in [*iterates(D, 1.01 * FAR), np.full(D, np.nan), np.full(D, np.inf)]:
        with refuses("range", setting="step"):
            check_near(theta)


def test_a_large_mean_ends_all_owners_alike_by_what_was_opened() -> None:
    made = learning("ridge", step=1.0)
    ends = []
    for _, X in rows():
        learner = Learner(made, 3, in_memory(X, np.ones(N)), [N], 1.0)
        with refuses("range", setting="step"), np.errstate(all="ignore"):
            for _ in range(30):
                list(learner.vectors())
                learner.apply(np.full(D, 1e99))
        ends.append(learner.iteration)
    assert len(set(ends)) == 1


@pytest.mark.parametrize("task", OUTPUTS)
@pytest.mark.parametrize("lam", [1.0, 1e-2, 1e-4, 1e-6])
def test_every_optimum_is_reached_at_the_least_tolerance(task: str, lam: float) -> None:
    made = learning(task, method="output", lam=lam)
    least = learning(task, method="output", lam=lam, solver_tolerance=reached(made))
    least.check("record", D * least.scores)
    assert not stopped(least)
    below = learning(task, method="output", lam=lam, solver_tolerance=reached(made) / 2)
    with refuses("range", setting="solver_tolerance"):
        below.check("record", D * below.scores)


@pytest.mark.parametrize("task", OUTPUTS)
def test_a_lower_tolerance_would_ask_exact_questions(task: str) -> None:
    told = stopped(learning(task, method="output", lam=1e-2, solver_tolerance=1e-18))
    assert told and "zeros" not in told
