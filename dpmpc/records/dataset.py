"""A data set ready for training, and how its records are sampled and split."""

from collections.abc import Callable
from dataclasses import field
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from dpmpc.errors import UsageError, sayable
from dpmpc.intake.table import Floats, Ints, Table, numbers_up_to
from dpmpc.lazy import cached_property, dataclass
from dpmpc.records.blocks import Records
from dpmpc.records.mapping import NO_ENDS, Ends, Unfit
from dpmpc.records.origins import Bounds
from dpmpc.records.schema import Schema
from dpmpc.records.seeds import Stream, generator

Rows = tuple[Ints, Ints]  # the numbers of the training and of the test rows
Split = Callable[[Table, Ints | None, Rows], Rows]  # of a table, its rows' owners, and what the seed has


@dataclass(frozen=True, eq=False)
class Dataset:
    """Training records in the unit ball, and test records, with the schema that made them so.

    `bounds` is "data" where scaling constants were read off the records: then those constants are not covered by the
    privacy guarantee, and a report must say so. `counts`, `beyond` (`Table.beyond`), `misfits`, `ends` and `given`
    depend on records and are for their owner alone.
    """

    name: str
    schema: Schema
    records: Records = field(repr=False)  # training rows first, then test rows
    training: int  # how many are for training
    held_out: int = 0  # how many are for the test, of which `records` may have none
    groups: Ints | None = field(default=None, repr=False)  # (n,) owner number of each training row
    group_names: tuple[str, ...] = ()  # the owners' names, by number
    counts: tuple[Unfit, ...] = field(default=(), repr=False)
    left_out: tuple[tuple[str, str], ...] = ()  # columns that are no features, each with its public reason
    test_groups: Ints | None = field(default=None, repr=False)  # (n,) owner number of each test row
    persons: Rows | None = field(default=None, repr=False)  # the number of each training and of each test row's person
    beyond: int = field(default=0, repr=False)
    misfits: int = field(default=0, repr=False)  # records whose target does not fit: each is the zero vector
    ends: Ends = field(default=NO_ENDS, repr=False)  # the least and the greatest of the targets that fit
    given: tuple[str, ...] = field(default=(), repr=False)  # a line on each column that nearly gives the target

    @property
    def n(self) -> int:
        """The number of training rows."""
        return self.training

    @property
    def d(self) -> int:
        """The number of features."""
        return len(self.feature_names)

    @property
    def task(self) -> str:
        return self.schema.task

    @property
    def classes(self) -> int:
        """How many classes the target has (2 for numbers too)."""
        return self.schema.classes

    @property
    def bounds(self) -> Bounds:
        return self.schema.bounds

    @cached_property
    def feature_names(self) -> tuple[str, ...]:
        return self.schema.feature_names

    @property
    def columns(self) -> dict[str, dict[str, Any]]:
        """Every column of the records that is accounted for, public: `used`, how many features each has; `left_out`,
        why. Nothing in it is made of a record's value."""
        used = {column.name: len(column.features) for column in self.schema.columns}
        return {"used": used, "left_out": dict(self.left_out)}

    @property
    def preprocessing(self) -> dict[str, Any]:
        """The schema as JSON values."""
        return self.schema.to_json()

    @property
    def rows(self) -> int:
        """The number of training and of test rows."""
        return self.training + self.held_out

    @property
    def train(self) -> Records:
        """The training records: each row of norm at most 1, intercept feature included; labels +-1 or in [-1, 1]."""
        return self.records.part(0, self.training)

    @property
    def test(self) -> Records:
        """The test records, scaled as predictions are (`Schema.rows`): of an additive schema not always in the ball.
        None of them where they were not loaded."""
        return self.records.part(self.training, self.records.n)

    def fits(self, part: Records) -> NDArray[np.bool_] | None:
        """(n,) which records of a part have a target: one whose target does not fit is the zero vector, and nothing can
        be held against it. None where all have one. Secret."""
        there = np.ones(part.n, dtype=bool)
        for rows, X in part.blocks() if self.misfits else ():
            there[rows] = X.any(axis=1)
        return None if there.all() else there

    @property
    def X(self) -> Floats:
        return cast(Floats, self.train.X)

    @property
    def y(self) -> Floats:
        return self.records.y[: self.training]

    @property
    def X_test(self) -> Floats:
        return cast(Floats, self.test.X)

    @property
    def y_test(self) -> Floats:
        return self.records.y[self.training :]


def split(
    n: int, *, test_fraction: float, max_rows: int | None, seed: int, groups: Ints | None = None
) -> tuple[Ints, Ints]:
    """The numbers of the training and of the test rows, in random order fixed by the seed.

    max_rows of the n rows are drawn, and round(test_fraction of those) held out; with groups, floor(test_fraction of
    each group's rows), so that no group loses all its rows. If all rows are for training they stay in their order.
    Errors: a fraction outside [0, 1), no training rows left.
    """
    if not 0 <= test_fraction < 1:
        raise UsageError(
            f"the test fraction lies in [0, 1); got {sayable(test_fraction)}; use for instance 0.2", code="range"
        )
    if max_rows is not None and max_rows < 1:
        raise UsageError(
            f"the number of rows to use is at least 1; got {sayable(max_rows)}; leave it out to use all", code="range"
        )
    kind = numbers_up_to(n)
    if test_fraction == 0 and (max_rows is None or max_rows >= n):
        return np.arange(n, dtype=kind), np.zeros(0, dtype=kind)
    drawn = generator(Stream.SPLIT, seed).permutation(np.arange(n, dtype=kind))[:max_rows]
    if groups is None:
        held_out = round(test_fraction * len(drawn))
        if held_out == len(drawn):
            raise UsageError(
                f"training needs records; all {sayable(n)} went to the test set; use a smaller test fraction",
                code="enough",
            )
        return drawn[held_out:], drawn[:held_out]
    test = np.zeros(len(drawn), dtype=bool)
    member = groups[drawn]
    owners = int(groups.max()) + 1
    # of short numbers NumPy sorts by digits: a tenth of the time
    order = np.argsort(member.astype(np.uint16) if owners <= 1 << 16 else member, kind="stable")
    counts = np.bincount(member, minlength=owners)
    if counts.min() < 1:
        raise UsageError(
            f"every owner needs at least one record; a sample of {len(drawn)} rows leaves owner"
            f" {sayable(int(np.argmin(counts)))} none; use more rows",
            code="enough",
        )
    rank = np.arange(len(drawn)) - np.repeat(np.cumsum(counts) - counts, counts)
    test[order] = rank < np.floor(test_fraction * counts)[member[order]]
    return drawn[~test], drawn[test]
