"""How good a public model is on records that it was not trained on, as one value: from one noisy release, inside the
promise, with intervals that know the noise; or from plain records of a local run, outside of it.

Accuracy never stands alone: the share of the commonest class, which a model that always says that class reaches, stands
beside it. The class that is said follows from a rule that is public and fixed before anything is evaluated: the sign
of the score, which is a probability of w- / (w- + w+) where classes were weighted with w- and w+.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dpmpc.lazy import dataclass
from dpmpc.learning.class_weights import corrected
from dpmpc.learning.softmax import predicted
from dpmpc.outcome import Number, hidden
from dpmpc.records.schema import Classes, Labels, Range, Target

Floats = NDArray[np.float64]
Kind = Literal["two", "several", "number"]
BALANCING = "balanced class weights"  # in files that all sites have; each surface puts its own words there
GROUPS = 10  # of a plain calibration: records by predicted probability, as many in each


@dataclass(frozen=True)
class Group:
    """Records whose predicted probability of the positive class lies together: its mean, the share that is positive,
    and about how many they are."""

    predicted: float
    observed: Number
    records: float


@dataclass(frozen=True)
class Figures:
    """Public if `inside` the promise, else as plain as the records. `rule`: how the class is chosen. `numbers`: name to
    value. `by_class`: class to name to value, of several. `confusion`: rows by true class, columns by the class that
    was said. `records`: held out, in all. Probabilities are corrected for class weights. Numbers of a regression are
    in the target's own units."""

    kind: Kind
    inside: bool
    records: int
    target: str
    classes: tuple[str, ...] = ()
    rule: str = ""
    numbers: Mapping[str, Number] = field(default_factory=dict)
    by_class: Mapping[str, Mapping[str, Number]] = field(default_factory=dict)
    confusion: tuple[tuple[Number, ...], ...] = ()
    calibration: tuple[Group, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """JSON values; what has no estimate is null."""
        value: dict[str, Any] = asdict(self)
        return _known(value)  # type: ignore[no-any-return]

    @property
    def warnings(self) -> tuple[str, ...]:
        """What makes these figures worth nothing, or less than they look."""
        return tuple(_warnings(self))


def rule_of(target: Target, weights: Sequence[float] | None = None) -> str:
    """How the class is chosen, in words; weights: of the classes (negative, positive), or of each."""
    if isinstance(target, Labels):
        negative, positive = weights or (1.0, 1.0)
        return f"'{target.positive_name}' is said where its probability is above {negative / (negative + positive):.3g}"
    if isinstance(target, Classes):
        times = " times its weight" if weights else ""
        return f"the class whose probability{times} is largest is said"
    return ""


def plain(target: Target, scores: Floats, y: Floats, weights: Sequence[float] | None = None) -> Figures | None:
    """The figures of the records of which a model says `scores` (`Task.link`), with these targets (n,), as the schema
    has them, without noise; None of no records. Secret."""
    n = len(y)
    if not n:
        return None
    rule = rule_of(target, weights)
    if isinstance(target, Labels):
        p = corrected(target, scores, weights)
        numbers, confusion = _of_two(scores, y > 0, p)
        groups = tuple(_calibrated(p, y > 0))
        names = (target.negative_name, target.positive_name)
        return Figures("two", False, n, target.name, names, rule, _exact(numbers), {}, confusion, groups)
    if isinstance(target, Classes):
        return _of_several(target, scores, y.astype(np.int64), rule, weights)
    return Figures("number", False, n, target.name, numbers=_exact(_of_numbers(target, scores, y)))


def plain_one(
    name: str, target: Target, scores: Floats, y: Floats, weights: Sequence[float] | None = None
) -> float | None:
    """One of the figures of `plain`; None of no records, or where there is no such figure. Where it is the AUC of two
    classes the others, which take longer, are not worked out. Secret."""
    if name == "AUC" and isinstance(target, Labels) and len(y):
        return auc(scores, y > 0)
    found = plain(target, scores, y, weights)
    return None if found is None else found.numbers[name].estimate


def _of_two(
    scores: Floats, truth: NDArray[np.bool_], p: Floats
) -> tuple[dict[str, float | None], tuple[tuple[Number, ...], ...]]:
    said = scores > 0
    table = [[int(np.sum((truth == a) & (said == b))) for b in (False, True)] for a in (False, True)]
    negative, positive = (sum(row) for row in table)
    specificity = table[0][0] / negative if negative else None
    sensitivity = table[1][1] / positive if positive else None
    both = None if specificity is None or sensitivity is None else (specificity + sensitivity) / 2
    n = len(truth)
    numbers = {
        "AUC": auc(scores, truth),
        "balanced accuracy": both,
        "sensitivity": sensitivity,
        "specificity": specificity,
        "accuracy": (table[0][0] + table[1][1]) / n,
        "base rate": max(negative, positive) / n,
        "positive": positive / n,
        "Brier score": float(np.mean((p - truth) ** 2)),
    }
    return numbers, _counted(table)


def _of_several(
    target: Classes, scores: Floats, y: NDArray[np.int64], rule: str, weights: Sequence[float] | None
) -> Figures:
    names, n, said = target.names, len(y), predicted(scores)
    table = [[int(np.sum((y == a) & (said == b))) for b in range(len(names))] for a in range(len(names))]
    each, p = np.array(table), corrected(target, scores, weights)
    by_class: dict[str, Mapping[str, Number]] = {}
    recalls = []
    for k, name in enumerate(names):
        row, column = int(each[k].sum()), int(each[:, k].sum())
        recall = each[k, k] / row if row else None
        recalls.append(recall)
        found = {"recall": recall, "precision": each[k, k] / column if column else None, "AUC": auc(p[:, k], y == k)}
        by_class[name] = _exact(found)
    known = [r for r in recalls if r is not None]
    numbers = {
        "balanced accuracy": float(np.mean(known)) if len(known) == len(names) else None,
        "accuracy": float(np.trace(each) / n),
        "base rate": float(each.sum(axis=1).max() / n),
    }
    return Figures("several", False, n, target.name, names, rule, _exact(numbers), by_class, _counted(table))


def _of_numbers(target: Range, scores: Floats, y: Floats) -> dict[str, float | None]:
    truth, said = target.original(y), target.original(scores)
    wrong, away = truth - said, truth - truth.mean()
    spread = float(np.mean(away**2))
    return {
        "R2": 1 - float(np.mean(wrong**2)) / spread if spread else None,
        "rmse": float(np.sqrt(np.mean(wrong**2))),
        "mean error": float(np.mean(wrong)),
        "rmse of the mean": float(np.sqrt(spread)),
    }


def auc(scores: Floats, truth: NDArray[np.bool_]) -> float | None:
    """The chance that a positive record's score is above a negative one's, ties by half; None without one of both."""
    positive = int(truth.sum())
    negative = len(truth) - positive
    if not positive or not negative:
        return None
    values, place, many = np.unique(scores, return_inverse=True, return_counts=True)
    last = np.cumsum(many)
    ranks = (last - (many - 1) / 2)[place]
    assert len(values)
    return float((ranks[truth].sum() - positive * (positive + 1) / 2) / (positive * negative))


def _calibrated(p: Floats, truth: NDArray[np.bool_]) -> Iterator[Group]:
    order = np.argsort(p, kind="stable")
    for part in np.array_split(order, min(GROUPS, len(order))):
        share = float(truth[part].mean())
        yield Group(float(p[part].mean()), Number(share, None, None, None), len(part))


def _exact(numbers: Mapping[str, float | None]) -> dict[str, Number]:
    return {name: Number(None if v is None else float(v), None, None, None) for name, v in numbers.items()}


def _counted(table: Sequence[Sequence[int]]) -> tuple[tuple[Number, ...], ...]:
    return tuple(tuple(Number(float(count), None, None, None) for count in row) for row in table)


def _warnings(figures: Figures) -> Iterator[str]:
    if figures.kind == "number":
        r2 = figures.numbers["R2"]
        if r2.estimate is not None and (r2.estimate if r2.high is None else r2.high) <= 0:
            yield "the model predicts no better than the mean would (R2 is not above 0)"
        return
    share = figures.numbers["AUC"] if figures.inside and figures.kind == "two" else None
    if share is not None and (share.estimate is None or hidden(share.low, share.high)):
        yield (
            "noise hides how well the model tells the classes apart: too few held-out records have the rarer class; "
            "hold out more, or use a larger epsilon"
        )
    said = [_total(row[k] for row in figures.confusion) for k in range(len(figures.classes))]
    alone = [k for k in range(len(said)) if not any(said[:k] + said[k + 1 :])]
    if len(alone) == 1:
        every = "every held-out record"
        if figures.inside:
            every = "every held-out record, or of so many that noise hides the others"
        yield (
            f"the model says '{figures.classes[alone[0]]}' of {every}: its accuracy is that class's share; give the "
            f"rarer class more weight with {BALANCING}"
        )
        return
    names = ("accuracy", "base rate", "balanced accuracy")
    accuracy, base, balanced = (figures.numbers[name].estimate for name in names)
    better = balanced is not None and balanced > 1 / len(figures.classes) + 0.05  # as weights of classes want it
    if accuracy is not None and base is not None and accuracy <= base and not better:
        yield (
            f"accuracy {accuracy:.4f} is no better than always saying the commonest class ({base:.4f}); look at "
            "AUC and balanced accuracy"
        )


def _total(cells: Iterator[Number]) -> float:
    """How many records a class was said of, 0 where that may be noise alone."""
    found = list(cells)
    total = math.fsum(number.estimate or 0.0 for number in found)
    noise = math.hypot(*(number.noise or 0.0 for number in found))
    return total if total > 2.5 * noise else 0.0


def _known(value: Any) -> Any:
    """The same without what is not said of a number."""
    if isinstance(value, dict):
        return {k: _known(v) for k, v in value.items() if not (k in ("note", "noise") and not v)}
    return [_known(part) for part in value] if isinstance(value, list | tuple) else value
