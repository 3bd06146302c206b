"""Conformance tests: what another package brings passes them, and what is slightly wrong does not."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from dpmpc.extend import (  # fmt: skip
    LAWS,
    METHODS,
    SOURCES,
    TASKS,
    ConformanceError,
    Opening,
    Outcome,
    Sensitivity,
    Source,
    Spending,
    Task,
    check_law,
    check_method,
    check_source,
    check_task,
)
from dpmpc.extend.laws import hockey_stick
from dpmpc.learning.gradient import GradientMethod as Gradient
from dpmpc.learning.tasks import RidgeRegression
from dpmpc.learning.vectors import Vectors
from dpmpc.privacy.laplace_law import LaplaceLaw
from tests.refusals import Rule, breaks, refuses


@pytest.mark.parametrize("name", LAWS.names())
def test_our_laws_pass(name: str) -> None:
    check_law(name, backends=())


@pytest.mark.parametrize("name", METHODS.names())
def test_our_methods_pass_and_come_near_their_claims(name: str) -> None:
    trials = 100 if METHODS[name].repeats else 25  # of one release each vector is a whole fit
    assert 0.2 < check_method(name, trials=trials) <= 1


@pytest.mark.parametrize("name", TASKS.names())
def test_our_tasks_pass_and_reach_their_bound(name: str) -> None:
    assert 0.99 < check_task(name, trials=20) <= 1


def test_our_sources_pass() -> None:
    check_source(Vectors(norm=2.0), (10, 20), 5)


def wrong(monkeypatch: pytest.MonkeyPatch, registry: Any, name: str, thing: Any) -> None:
    monkeypatch.setitem(registry._loaded, name, thing)


def test_a_law_that_is_priced_too_low_or_draws_something_else_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    class Cheap(LaplaceLaw):
        def spending(self, mechanism: Any) -> Spending:
            return super().spending(mechanism.__class__(**{**vars(mechanism), "scale": mechanism.scale * 1.01}))

    class Narrow(LaplaceLaw):
        def exact(self, scale: float, discrete: bool) -> Any:
            return super().exact(scale * 1.2, discrete)

    wrong(monkeypatch, LAWS, "laplace", Cheap())
    with pytest.raises(ConformanceError, match=r"costs epsilon .*, but the exact law loses"):
        check_law("laplace", backends=())
    wrong(monkeypatch, LAWS, "laplace", Narrow())
    with pytest.raises(ConformanceError, match="samples follow `exact`"):
        check_law("laplace", backends=())


def test_a_method_that_claims_a_little_less_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    class Bold(Gradient):
        def sensitivity(self, *arguments: Any) -> Sensitivity:
            return super().sensitivity(*arguments) * 0.9

    class Long(Gradient):
        def clip(self, learning: Any) -> float:
            return 0.9 * super().clip(learning)

    wrong(monkeypatch, METHODS, "gradient", Bold())
    with pytest.raises(ConformanceError, match="one record moves the mean by"):
        check_method("gradient")
    wrong(monkeypatch, METHODS, "gradient", Long())
    with pytest.raises(ConformanceError, match="no vector exceeds clip"):
        check_method("gradient")


class Ridge(RidgeRegression):
    """Ridge regression with one thing changed in its loss."""

    def __init__(self, **changed: Any) -> None:
        self.changed = changed

    def loss(self, how: Any) -> Any:
        right = super().loss(how)
        return type("Changed", (), {name: getattr(right, name) for name in dir(right) if name[0] != "_"} | {
            name: staticmethod(made(right)) if callable(made(right)) else made(right)
            for name, made in self.changed.items()
        })()  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"G": lambda right: 0.99 * right.G}, "has length G"),
        ({"L": lambda right: 0.99 * right.L}, "grows by L"),
        ({"derivative": lambda right: lambda s, y: right.G * np.sin(s - y)}, "a loss is convex"),
        ({"derivative": lambda right: lambda s, y: 0.99 * right.derivative(s, y)}, "that of the loss's value"),
    ],
    ids=["bound", "smoothness", "convexity", "value"],
)
def test_a_task_whose_loss_is_not_what_it_says_fails(
    changed: dict[str, Any], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong(monkeypatch, TASKS, "ridge", Ridge(**changed))
    with pytest.raises(ConformanceError, match=said):
        check_task("ridge", trials=20)


def test_a_task_whose_link_turns_scores_round_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    class Turned(RidgeRegression):
        def link(self, scores: Any) -> Any:
            return -scores

    class Moved(RidgeRegression):
        def taken(self, target: Any) -> Any:
            return replace(target, high=target.high + 1)

    for task, said in ((Turned(), "grows with the score"), (Moved(), "it takes as it is")):
        wrong(monkeypatch, TASKS, "ridge", task)
        with pytest.raises(ConformanceError, match=said):
            check_task("ridge", trials=20)
    assert isinstance(task, Task)


def test_a_source_that_forgets_or_contradicts_itself_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    class Other(Vectors):
        pass

    with pytest.raises(ConformanceError, match="is the entry of its KIND"):
        check_source(Other(norm=1.0), (10,), 3)
    monkeypatch.setitem(SOURCES._loaded, "vectors", Other)  # type: ignore[arg-type]

    def by_record(self: Source, *_: Any) -> Sensitivity:
        return Sensitivity(l1=9.0, l2=0.1, linf=0.1)

    monkeypatch.setattr(Other, "by_record", by_record)
    with pytest.raises(ConformanceError, match=r"l1 <= sqrt\(d\) l2"):
        check_source(Other(norm=1.0), (10,), 3)


@pytest.mark.parametrize(
    ("outcome", "broken"),
    [
        (lambda state: Outcome(lines=(str(state.append(0) or len(state)),)), "follows from what was opened alone"),
        (lambda state: Outcome(section={"share": float("nan")}), "are JSON values"),
        (lambda state: Outcome(section={"share": np.float32(1)}), "are JSON values"),
        (lambda state: Outcome(files={"../x.csv": "1"}), breaks("path", "../x.csv")),
        (lambda state: Outcome(files={"ledger_0.jsonl": "1"}), breaks("path", "ledger_0.jsonl")),
        (lambda state: Outcome(files={"Plan.json": "1"}), breaks("path", "Plan.json")),
    ],
)
def test_a_source_whose_outcome_is_not_one_fails(
    outcome: Callable[[list[int]], Outcome], broken: Rule | str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Other(Vectors):
        def outcome(self, opened: Opening) -> Outcome:
            return outcome(state)

    state: list[int] = []
    monkeypatch.setitem(SOURCES._loaded, "vectors", Other)  # type: ignore[arg-type]
    with refuses(broken) if isinstance(broken, Rule) else pytest.raises(ConformanceError, match=broken):
        check_source(Other(norm=1.0), (10,), 3)


def test_a_source_that_makes_up_other_columns_than_it_reads_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    class Other(Vectors):
        OF_RECORDS = True
        reads = ("age", "dose")

        def invented(self, schema: object) -> Iterator[tuple[str, tuple[float, float]]]:
            yield "age", (0.0, 1.0)

    monkeypatch.setitem(SOURCES._loaded, "vectors", Other)  # type: ignore[arg-type]
    with pytest.raises(ConformanceError, match="made-up records have the columns that are read"):
        check_source(Other(norm=1.0), (10,), 3)


def test_the_independent_price_of_a_discrete_laplace_is_the_known_one() -> None:
    """P(x) / P(x - 1) is exp(1 / b): delta is 0 at epsilon 1/b, and tanh-like below."""
    law = LAWS["laplace"].exact(50.0, True)
    assert hockey_stick(law, 1, 1 / 50) < 1e-8 < hockey_stick(law, 1, 0.9 / 50)
