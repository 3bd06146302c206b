"""A target that is read off the records: neighbours that both get one get the same one."""

import random
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pytest

from dpmpc.errors import UsageError
from dpmpc.records import classes
from dpmpc.records.classes import target_read, values_of
from dpmpc.records.derive import TableSettings
from dpmpc.records.draft import MOST_CLASSES
from dpmpc.records.loading import opened
from dpmpc.records.schema import Classes, Labels, Range
from tests.refusals import refuses

QUANTITY = Range("y", -1.0, 1.0)
ODD = ["a", "b", "c", "7", "8", "9", "2.5", "seldom", "A", "true", "TRUE"]


def read(values: list[str], moved: int, goal: Any = None) -> Any:
    """The target, with its classes; None for a refusal."""
    frame = pd.DataFrame({"y": values})
    with opened(frame) as (table, _):
        try:
            found = target_read(table, TableSettings("y", goal=goal), moved, QUANTITY)
        except UsageError:
            return None
    return found


def tables(draw: random.Random, n: int, moved: int) -> list[str]:
    """Records whose target is near an edge: a label, classes, whole numbers or a quantity, some values in few."""
    kind = draw.choice(["two", "texts", "numbers", "many", "mixed"])
    pools = {
        "two": ["a", "b"], "texts": list("abc"), "numbers": ["0", "1"],
        "many": [str(k) for k in range(MOST_CLASSES + 4)], "mixed": ["a", "1"],
    }  # fmt: skip
    values = [draw.choice(pools[kind]) for _ in range(n)]
    for _ in range(draw.choice([0, 0, 1, moved, moved + 1, 2 * moved + 1])):
        values[draw.randrange(n)] = draw.choice(ODD)
    return values


@pytest.mark.parametrize("moved", [1, 3, 25])
def test_neighbours_that_both_get_a_target_get_the_same(moved: int) -> None:
    draw, alike, seen = random.Random(moved), 0, set[str]()
    for _ in range(80):
        n = draw.choice([12, 60, 150])
        one = tables(draw, n, moved)
        other = list(one)
        fresh = draw.choice([ODD, [str(k) for k in range(60)], [draw.choice(ODD)], one])
        for place in draw.sample(range(n), min(n, draw.randint(1, moved))):
            other[place] = draw.choice(fresh)
        first, second = read(one, moved), read(other, moved)
        assert first is None or second is None or first == second, (one, other)
        alike += first is not None and second is not None
        seen |= {type(first).__name__}
    assert alike > 3 and len(seen) > 1


def test_what_a_person_may_add_decides_nothing() -> None:
    """Two classes and a person's 25 records: of 25 other whole numbers, which would be a quantity among 27 values."""
    one = ["0", "1"] * 100
    other = [*one[:-25], *map(str, range(30, 55))]
    assert isinstance(read(one, 1), Labels) and isinstance(read(one, 25), Labels)
    assert read(other, 25) is None
    assert isinstance(read(other, 1), Range)  # for records it is far from every edge


def test_with_the_margin_taken_out_a_record_decides() -> None:
    one, other = ["a", "b"] * 20, ["a", "b"] * 19 + ["a", "c"]
    assert read(one, 1) == Labels("y", ("b",), ("a",)) and read(other, 1) is None
    with mock.patch.object(classes, "decided", lambda count, bound, moved: count > 0):
        assert isinstance(read(other, 1), Classes)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["no", "yes"] * 9, Labels), (["1", "1.0", "0", "0.00"] * 9, Labels), (["x", "y", "z"] * 9, Classes),
        (["True", "true", "FALSE"] * 9, Labels), ([f"{k}.5" for k in range(60)], Range),
        ([str(k % 5) for k in range(60)], type(None)), ([str(k) for k in range(59)] + ["x"], type(None)),
        ([f"w{k}" for k in range(60)], type(None)), (["x", "y", "z"] * 9 + ["w"], type(None)),
    ],
)  # fmt: skip
def test_what_a_target_is(values: list[str], kind: type) -> None:
    assert type(read(values, 1)) is kind


def test_counts_are_those_of_python(tmp_path: Path) -> None:
    draw = np.random.default_rng(5)
    values = [str(v) for v in draw.choice(["a", "b", "1", "1.0", "2", "True", "true", ""], 400)]
    with opened(pd.DataFrame({"y": values})) as (table, _):
        found = values_of(table, "y")
    same = {"1.0": "1", "True": "true"}
    mine = pd.Series([same.get(v, v) for v in values if v]).value_counts()
    assert dict(found.common) == {str(k): int(v) for k, v in mine.items()}
    assert (found.there, found.words) == (int(mine.sum()), int(mine[["a", "b", "true"]].sum()))
    assert found.beyond(2) == int(mine.sort_values(ascending=False).iloc[2:].sum())


def test_the_way_out_of_a_class_that_few_have_is_to_state_the_classes() -> None:
    values = ["a", "b"] * 20 + ["c"]
    with opened(pd.DataFrame({"y": values})) as (table, _):
        with refuses("records", "y"):
            target_read(table, TableSettings("y"), 1, QUANTITY)
    stated = TableSettings("y", classes=("a", "b", "c")).stated
    assert stated is not None and stated == Classes("y", ("a", "b", "c"))
