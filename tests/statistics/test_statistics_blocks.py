"""Bounds on how far two records' vectors lie apart, against all pairs; totals, against plain counting."""

import csv
import random
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from statistics_tests import AGE, ARM, DOSE, HEIGHT, SEX, SITE, farthest

from dpmpc.errors import UsageError
from dpmpc.records.loading import CsvFile, opened
from dpmpc.records.schema import Categorical, Classes, Labels, Numeric, Schema, Surveyed
from dpmpc.statistics.blocks import Block, CellCounts, Moments, Products, Tree, width
from dpmpc.statistics.cells import Axis, Bins, Levels, RecordFields, even, logarithmic, octaves
from dpmpc.statistics.columns import Bucketed, Category, Columns, Quantity, category
from dpmpc.statistics.layout import Layout, Unit
from dpmpc.statistics.scores import Feature, ScoreModel
from dpmpc.statistics.tables import Tables
from dpmpc.statistics.values import Scaled
from dpmpc.statistics.where import Among, Between, Where
from dpmpc.tables.stats import owned
from tests.refusals import refuses

WOMEN = Where((Among(SEX, (0,)),))
TREATED = Where((Among(ARM, (0,)),))
SMALL = Where((Between(HEIGHT, 1.0, 1.5), Among(ARM, (0, 1))))
GROUPS: tuple[tuple[Axis, ...], ...] = ((), (Levels(SEX),), (Levels(SITE), Levels(SEX)))
CONDITIONS = (Where(), TREATED, SMALL)


def kinds(axes: tuple[Axis, ...], where: Where) -> list[Block]:
    """A block of every kind."""
    return [
        CellCounts(axes, where),
        CellCounts((*axes, even(AGE, 6)), where),
        Moments(Scaled(AGE), False, axes, where),
        Moments(Scaled(DOSE), True, axes, where),
        Tree(Scaled(DOSE), 4, axes, where),
        Products((Scaled(AGE),), axes, where),
        Products((Scaled(AGE), Scaled(DOSE)), axes, where),
    ]


BLOCKS = [block for axes, where in product(GROUPS, CONDITIONS) for block in kinds(axes, where)]


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: f"{type(block).__name__}-{len(block.axes)}-{block.where}")
def test_no_pair_of_records_is_farther_apart_than_claimed_and_some_are_as_far(block: Block) -> None:
    """L2 and Linf are attained to one part in 1,000 wherever a group can be left, all norms hold everywhere."""
    found = farthest(Layout((block,), (1.0,)))
    for kind, norms in found.items():
        claimed = Layout((block,), (1.0,), Unit(kind)).distance((1,))  # type: ignore[arg-type]
        for seen, bound in zip(norms, (claimed.l1, claimed.l2, claimed.linf), strict=True):
            assert seen <= bound
        assert norms[1] >= 0.999 * claimed.l2 and norms[2] >= 0.999 * claimed.linf
        if not isinstance(block, Products) or block.axes or kind == "presence":
            assert norms[0] >= 0.98 * claimed.l1  # the L1 norm of a parabola's top is between two numbers


def test_a_bound_that_leaves_the_square_out_is_found_too_small() -> None:
    """The search sees what is wrong: a count of full weight beside t and T2 moves by more than 2."""
    block = Moments(Scaled(AGE), True, (Levels(SEX),))
    scale = 1 << 20
    vector = {1.0: np.array([scale, scale, 0.6 * scale])}[1.0]
    assert np.sqrt(2 * vector @ vector) > block.reach(scale).replaced.l2 * 1.07


@pytest.mark.parametrize("seed", range(12))
def test_whole_releases_of_random_blocks_are_bounded(seed: int) -> None:
    rng = np.random.default_rng(seed)
    chosen = [BLOCKS[k] for k in rng.choice(len(BLOCKS), size=rng.integers(2, 6), replace=False)]
    layout = Layout.of([(block, float(rng.uniform(0.2, 5.0))) for block in chosen])
    for kind, norms in farthest(layout, 5).items():
        claimed = Layout(layout.blocks, layout.weights, Unit(kind)).distance((1,))  # type: ignore[arg-type]
        scaled = zip(layout.blocks, layout.scales, strict=True)
        if kind == "presence":
            assert claimed.linf == max(block.reach(scale).absent.linf for block, scale in scaled)
        own = Layout.of(zip(layout.blocks, layout.weights, strict=True))
        bound = own.distance((1,)) if kind == "record" else None
        if bound is not None:
            assert all(a <= b for a, b in zip(norms, (bound.l1, bound.l2, bound.linf), strict=True))
            assert norms[1] >= 0.45 * bound.l2  # blocks of which none excludes another reach 1


def test_blocks_that_no_record_leaves_together_reach_the_whole_bound() -> None:
    blocks = (CellCounts((Levels(SEX),)), Tree(Scaled(AGE), 4), Moments(Scaled(DOSE), True, (Levels(SITE),)))
    layout = Layout(blocks, (1.0, 3.0, 0.5))
    norms = farthest(layout, 5)["record"]
    assert 0.99999 <= norms[1] / layout.distance((1,)).l2 <= 1


def test_owners_and_persons_move_the_sum_by_as_much_as_claimed() -> None:
    """An owner's 7 records all replaced; a person's 3 rows at 2 owners, slots of which may be empty."""
    block = CellCounts((Levels(SEX), Levels(SITE)), WOMEN)
    layout, scale = Layout((block,), (1.0,)), 1 << 20
    women = RecordFields(3, {SEX: np.array([0, 0, 1]), SITE: np.array([0, 1, 0])})
    a, b, nobody = layout.encode(women, np.arange(3), 3).astype(float)
    assert not nobody.any()
    owner = Layout((block,), (1.0,), Unit("owner")).distance((4, 7, 5))
    assert np.linalg.norm(7 * a - 7 * b) == pytest.approx(owner.l2, rel=1e-9) and owner.l1 == 14 * scale
    person = Layout((block,), (1.0,), Unit("person", rows=3, owners=2)).distance((50, 70))
    assert np.linalg.norm(6 * a - 6 * b) == pytest.approx(person.l2, rel=1e-9)
    lone = CellCounts((), WOMEN)  # one cell: an empty slot is farther from it than any record
    assert Layout((lone,), (1.0,), Unit("person", rows=3)).distance((9,)).l2 == pytest.approx(3 * scale, rel=1e-9)
    assert Layout((CellCounts(()),), (1.0,)).distance((9,)).l2 == 0  # the number of records is public


def test_scales_follow_the_root_rule_and_lower_the_sum_of_variances() -> None:
    blocks = (CellCounts((even(AGE, 40),)), Moments(Scaled(DOSE), True), Tree(Scaled(AGE), 8))
    layout = Layout(blocks, (1.0, 4.0, 1.0))
    worth = np.array([block.worth * weight for block, weight in zip(blocks, layout.weights, strict=True)])
    unit = np.array([block.reach(1 << 20).replaced.l2 / (1 << 20) for block in blocks])

    def variances(scales: np.ndarray) -> float:
        return float((worth / scales**2).sum() * (scales**2 * unit**2).sum())

    best = variances(np.array(layout.scales, dtype=float))
    rng = np.random.default_rng(3)
    assert all(best <= variances(np.array(layout.scales) * rng.uniform(0.7, 1.4, 3)) * (1 + 1e-9) for _ in range(200))
    assert max(layout.scales) == 1 << 20
    assert sum(layout.shares((1,))) == pytest.approx(1)


# -- totals ------------------------------------------------------------------------------------------------------------
def people(n: int, seed: int = 1) -> RecordFields:
    rng = np.random.default_rng(seed)
    return RecordFields(n, {
        SEX: rng.choice([0, 1, -1, -2], n, p=[0.5, 0.4, 0.07, 0.03]),
        SITE: rng.integers(-2, 3, n),
        AGE: np.where(rng.random(n) < 0.1, np.nan, rng.normal(50, 20, n)),
        DOSE: np.where(rng.random(n) < 0.1, np.nan, rng.normal(1, 1, n)),
        ARM: rng.integers(-2, 2, n),
        HEIGHT: rng.uniform(0.9, 2.1, n),
    })  # fmt: skip


def test_totals_are_those_of_plain_counting_for_every_owner_and_any_order() -> None:
    records, owner = people(3000), np.random.default_rng(2).integers(-1, 4, 3000)
    layout = Layout(tuple(BLOCKS), (1.0,) * len(BLOCKS))
    total = layout.encode(records, owner, 4)
    order = np.random.default_rng(5).permutation(3000)
    shuffled = RecordFields(3000, {field: array[order] for field, array in records.values.items()})
    assert (layout.encode(shuffled, owner[order], 4) == total).all()
    one = Layout(
        (CellCounts((Levels(SEX), Levels(SITE)), Where((Between(AGE, 30.0, 50.0), Among(SITE, (0, 2))))),), (1.0,)
    )
    counts = one.encode(records, owner, 4) // (1 << 20)
    age, ward = records[AGE], records[SITE]
    inside = (age >= 30) & (age <= 50) & ((ward == 0) | (ward == 2))
    place = {0: 0, 1: 1, -2: 2, -1: 3}
    expected = Counter(
        (int(j), place[int(s)], place.get(int(w), int(w)) if w >= 0 else (3 if w == -2 else 4))
        for j, s, w, ok in zip(owner, records[SEX], ward, inside, strict=True) if ok and j >= 0
    )  # fmt: skip
    for (j, s, w), number in expected.items():
        assert counts[j, s * 5 + w] == number
    assert counts.sum() == sum(expected.values())


def test_moments_trees_and_products_hold_the_sums_of_their_numbers() -> None:
    records, s = people(2000), float(1 << 20)
    t, u = Scaled(AGE).of(records), Scaled(DOSE).of(records)
    known = ~np.isnan(t)

    def total(block: Block) -> np.ndarray:
        return Layout((block,), (1.0,)).encode(records)[0] / s

    second = total(Moments(Scaled(AGE), True))
    assert second == pytest.approx([0.8 * known.sum(), t[known].sum(), (0.6 * (2 * t[known] ** 2 - 1)).sum()], abs=2e-3)
    nodes = total(Tree(Scaled(AGE), 5))
    leaf = np.minimum(((t[known] + 1) / 2 * 32).astype(int), 31)
    assert nodes[0] == known.sum() and (nodes[31:] == np.bincount(leaf, minlength=32)).all()
    assert all(nodes[k] == nodes[2 * k + 1] + nodes[2 * k + 2] for k in range(31))
    both = known & ~np.isnan(u)
    z = np.stack([np.full(both.sum(), np.sqrt(0.5)), t[both] / 2, u[both] / 2])
    G = z @ z.T
    expected = [G[i, j] * (1 if i == j else np.sqrt(2)) for i in range(3) for j in range(i, 3)]
    assert total(Products((Scaled(AGE), Scaled(DOSE)))) == pytest.approx(expected, abs=2e-3)


# -- axes --------------------------------------------------------------------------------------------------------------
def test_every_value_has_one_cell() -> None:
    values = np.array([np.nan, -5.0, 19.99, 20.0, 39.9, 40.0, 80.0, 80.1, 1e300])
    assert list(even(AGE, 3).place(RecordFields(9, {AGE: values}))) == [5, 0, 0, 1, 1, 2, 3, 4, 4]
    assert even(AGE, 3).labels == ("< 20", "[20, 40)", "[40, 60)", "[60, 80]", "> 80", "(missing)")
    gain = Quantity("gain", 0.0, 100000.0)
    cells = octaves(gain)
    assert cells.edges[:3] == (0.0, 1.0, 2.0) and cells.edges[-1] == 2.0**17
    both = octaves(Quantity("x", -8.0, 8.0), 1.0).edges
    assert both == (-8.0, -4.0, -2.0, -1.0, 1.0, 2.0, 4.0, 8.0)
    assert logarithmic(Quantity("y", 1.0, 1000.0), 3).edges == pytest.approx((1, 10, 100, 1000))


def test_what_cannot_be_asked_is_refused() -> None:
    with refuses("range", "dose", -1):
        logarithmic(DOSE, 4)
    with refuses("range", "age", "[20.0, 50.0, 40.0]"):
        Bins(AGE, (20.0, 50.0, 40.0))
    with refuses("missing"):
        Layout.of([])
    with refuses("range", 1048576, 4012009):
        Layout.of([(CellCounts((even(AGE, 2000), even(DOSE, 2000))), 1.0)])
    with refuses("choice", "house"):
        Unit("house")  # type: ignore[arg-type]
    with refuses("column", "dosis", "dose"):
        Columns((SEX, DOSE))["dosis"]


def test_columns_come_from_a_schema() -> None:
    from dpmpc.records.schema import Categorical, Labels, Numeric, Schema, Surveyed

    schema = Schema(
        (
            Numeric("age", 17, 90), Categorical("race", ("A", "Other", "(missing)")),
            Surveyed("gain", True, -1.0, 3.0), Surveyed("job", False, 0, 0, 64, (3, 9)), Numeric("constant", 1, 1),
        ),
        Labels("income", ("1", "yes"), None),
    )  # fmt: skip
    columns = Columns.of_schema(schema)
    assert columns.names == ("age", "race", "gain", "job", "income")
    gain, job, income = columns["gain"], columns["job"], columns["income"]
    assert isinstance(gain, Quantity) and (gain.low, gain.high) == (-3.0, 5.0)
    assert Levels(job).labels == ("bucket 3", "bucket 9", "(other)", "(missing)")  # type: ignore[arg-type]
    numbers = np.array([np.inf, np.inf, np.nan, np.inf, 7.0, 7.0, np.inf])
    assert list(job.read([numbers, np.array([3.0, 9.0, -1.0, 5.0, 3.0, -1.0, -1.0])])) == [0, 1, -1, -2, -2, -2, -1]
    assert isinstance(income, Category) and Levels(income).labels == ("other", "1", "(missing)")
    assert list(income.read([np.array([1, 0, -1, -2])])) == [1, 0, -1, 0]
    assert width(CellCounts((Levels(columns["race"]),))) == 4  # type: ignore[arg-type]


_NUMBERS = ("0", "-0", "1", "01", "1e0", "7", "007", "12345678901234567891", "0.1", "0.10", "1e22", "1e-320", "2.5", "")
_ODD = (
    "x",
    "nan",
    "inf",
    "1e999",
    "1_0",
    "NA",
    "true",
    "1 000",
    "\uff11",
    "0x1",
    "1,5",
    "2024-03-05",
    'a"b',
    "e\u0301",
)


@pytest.mark.parametrize("seed", range(12))
def test_a_record_is_read_alike_whatever_the_others_hold(seed: int, tmp_path: Path) -> None:
    """Columns all of whose values are numbers are held as numbers: one record's text makes all of them texts, and may
    not move another record's vector, which no distance of one record covers. Files of 20 records of one owner, and one
    of another owner that is odd or not."""
    draw = random.Random(seed)
    schema = Schema(
        (
            Surveyed("b", buckets=8, kept=tuple(range(8)), missing=True),
            Categorical("c", ("1", "7", "12345678901234567891", "0.1", "1e22", "true", "x")),
            Surveyed("n", number=True, low=-5.0, high=50.0, missing=True),
        ),
        Labels("y", ("1", "true"), None), True, "fill", "survey",
    )  # fmt: skip
    asked = ["table(b)", 'table(c) where b = "bucket 3"', "table(y)", "median(n)", "mean(n)", "table(c, y)"]
    tables = Tables.of(Columns.of_schema(schema), asked)
    rows = [[draw.choice(_NUMBERS) for _ in "bcny"] for _ in range(20)]
    last = ["1", "1", "1", "1"]
    found = []
    for k, other in enumerate((last, [draw.choice(_ODD) for _ in "bcny"])):
        path = tmp_path / f"{k}.csv"
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([[*"bcny", "site"], *([*row, "a"] for row in rows), [*other, "z"]])
        with opened(CsvFile(path)) as (table, _):
            own, owner, sizes = owned(table, tables.reads, "site")
            assert sizes == (20, 1)
            found.append(tables.encode(own, owner, len(sizes))[0])
    assert np.array_equal(*found)


@pytest.mark.parametrize("classes", [2, 4])
def test_a_records_score_does_not_depend_on_its_place(classes: int) -> None:
    """A matrix product rounds a row otherwise where few rows are left over; records that are alike were then in other
    cells, as others came or went."""
    rng = np.random.default_rng(classes)
    columns = tuple(Numeric(f"x{k}", -1.0, 1.0) for k in range(40))
    names = ("no", "yes", "perhaps", "never")[:classes]
    target = Labels("y", ("yes",), ("no",)) if classes == 2 else Classes("y", names)
    schema = Schema(columns, target, True, "fill", "public")
    for n in (1, 2, 3, 5, 7, 61, 200):
        theta = rng.normal(size=(41, 1 if classes == 2 else classes))
        model, one = ScoreModel.of(schema, theta), {Feature(column): rng.uniform(-1, 1) for column in columns}
        scores = model.scores(RecordFields(n, {field: np.full(n, value) for field, value in one.items()}))
        assert np.array_equal(scores, np.broadcast_to(scores[:1], scores.shape))


@pytest.mark.parametrize(
    ("column", "change"),
    [
        (0, {"codes": [["F", 0], ["M", 7]]}),
        (0, {"codes": [["F", -1], ["M", 1]]}),
        (0, {"others": 2}),
        (1, {"kept": [1, 8]}),
        (1, {"kept": [1, 1]}),
        (1, {"others": 3}),
        (2, {"low": float("nan")}),
        (2, {"high": float("inf")}),
        (2, {"low": 99.0}),
    ],
)
def test_a_plan_whose_columns_are_none_is_refused(column: int, change: dict[str, Any]) -> None:
    """A value with a level that the column has not would end an owner's process, if some record has that value."""
    columns = Columns((category("sex", ("F", "M")), Bucketed("city", 8, (1, 3)), Quantity("age", 18.0, 90.0)))
    value = Tables.of(columns, ["table(sex, city)", "mean(age)"]).to_json()
    assert Tables.from_json(value)
    value["columns"][column] |= change
    with pytest.raises(UsageError):
        Tables.from_json(value)
