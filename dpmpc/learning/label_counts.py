"""How many records each class has, from the noisy counts of a survey in which the target is one more column."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpmpc.errors import UsageError
from dpmpc.intake.hashing import BUCKETS, bucket
from dpmpc.learning.survey import Survey
from dpmpc.learning.survey_numbers import CELLS, NUMBER, cell_of
from dpmpc.records.schema import Classes, Labels, Target

Floats = NDArray[np.float64]


def counted(target: Target | str) -> str:
    """The target's column, whose classes a survey can count. Errors: two classes share a cell of its counts, or the
    target is a quantity."""
    if not isinstance(target, Labels | Classes):
        name = target if isinstance(target, str) else target.name
        raise UsageError(f"<<class_weight>> is for classes; '{name}' is a quantity; leave it out", code="together")
    each = [{_place(target.name, value, BUCKETS) for value in values} for values in _values(target)]
    places = [place for some in each for place in some]
    if len(set(places)) < len(places):
        raise UsageError(
            f"a survey counts classes that fall into different cells; two of '{target.name}' share one; state "
            "<<class_weight>> with a number for each class",
            code="unique",
        )
    return target.name


def label_counts(questions: Survey, total: Floats, target: Labels | Classes, n: int) -> Sequence[float]:
    """The noisy number of records of each class, of n; total (coordinates,): the survey's opened sum."""
    at = 0
    for name in questions.names:
        wide = NUMBER + (questions.buckets if name in questions.texts else 0)
        if name == target.name:
            break
        at += wide
    row = total[at : at + wide]
    found: list[float] = []
    of_class = _values(target)
    for values in of_class:
        places = {_place(target.name, value, questions.buckets) for value in values}
        found.append(float(sum(row[place] for place in places if place < len(row))))
    for k, values in enumerate(of_class):
        if not values or "" in values:  # all others, or those without a value, which no coordinate of a value counts
            found[k] = n - sum(found[:k]) - sum(found[k + 1 :])
    return found


def _values(target: Labels | Classes) -> list[tuple[str, ...]]:
    """The spellings of each class, the negative one first; none of the one that all others are."""
    if isinstance(target, Labels):
        return [tuple(map(str, values)) for values in (target.negative or (), target.positive)]
    return [(name,) for name in target.names]


def _place(name: str, value: str, buckets: int) -> int:
    """The coordinate of a value within its column's."""
    try:
        number = float(value)
    except ValueError:
        return NUMBER + bucket(name, value, buckets)
    cell = int(cell_of(np.array([number]))[0][0])
    assert cell < CELLS
    return cell
