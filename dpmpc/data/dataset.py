"""A data set ready for training, and how its records are sampled and split."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dpmpc.data.preprocess import Bounds, Preprocessing, Raw, Task
from dpmpc.data.seeds import Stream, generator
from dpmpc.errors import UsageError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Dataset:
    """Training and test records in the unit ball, with what made them so.

    `bounds` is "data" where scaling constants were read off the records: then those constants are not covered by the
    privacy guarantee, and a report must say so.
    """

    name: str
    task: Task
    X: Floats = field(repr=False)  # (n, d) training rows, each of norm <= 1, intercept feature included
    y: Floats = field(repr=False)  # (n,) +-1 (logistic) or in [-1, 1] (ridge)
    X_test: Floats = field(repr=False)
    y_test: Floats = field(repr=False)
    feature_names: tuple[str, ...]
    preprocessing: dict[str, object] = field(repr=False)  # Preprocessing.to_json()
    bounds: Bounds
    groups: Ints | None = field(default=None, repr=False)  # (n,) owner number of each training row
    group_names: tuple[str, ...] = ()  # the owners' names, by number

    @property
    def n(self) -> int:
        """The number of training rows."""
        return len(self.y)

    @property
    def d(self) -> int:
        """The number of features."""
        return len(self.feature_names)


def split(
    n: int, *, test_fraction: float, max_rows: int | None, seed: int, groups: Ints | None = None
) -> tuple[Ints, Ints]:
    """The numbers of the training and of the test rows, in random order fixed by the seed.

    max_rows of the n rows are drawn, and round(test_fraction of those) held out; with groups, floor(test_fraction of
    each group's rows), so that no group loses all its rows. Errors: a fraction outside [0, 1), no training rows left.
    """
    if not 0 <= test_fraction < 1:
        raise UsageError(f"the test fraction lies in [0, 1); got {test_fraction}; use for instance 0.2")
    if max_rows is not None and max_rows < 1:
        raise UsageError(f"the number of rows to use is at least 1; got {max_rows}; leave it out to use all")
    drawn = generator(Stream.SPLIT, seed).permutation(n)[:max_rows].astype(np.int64)
    if groups is None:
        held_out = round(test_fraction * len(drawn))
        if held_out == len(drawn):
            raise UsageError(f"training needs records; all {n} went to the test set; use a smaller test fraction")
        return drawn[held_out:], drawn[:held_out]
    test = np.zeros(len(drawn), dtype=bool)
    member = groups[drawn]
    order = np.argsort(member, kind="stable")
    counts = np.bincount(member, minlength=int(groups.max()) + 1)
    if counts.min() < 1:
        raise UsageError(
            f"every owner needs at least one record; a sample of {len(drawn)} rows leaves owner"
            f" {int(np.argmin(counts))} none; use more rows"
        )
    rank = np.arange(len(drawn)) - np.repeat(np.cumsum(counts) - counts, counts)
    test[order] = rank < np.floor(test_fraction * counts)[member[order]]
    return drawn[~test], drawn[test]


def build(
    name: str,
    preprocessing: Preprocessing,
    columns: Mapping[str, Raw],
    training: int,
    *,
    groups: Ints | None = None,
    group_names: tuple[str, ...] = (),
) -> Dataset:
    """The data set of these columns, whose first `training` rows are for training and the others for the test."""
    X, y = preprocessing.transform(columns), preprocessing.labels(columns)
    return Dataset(
        name=name,
        task=preprocessing.task,
        X=X[:training],
        y=y[:training],
        X_test=X[training:],
        y_test=y[training:],
        feature_names=preprocessing.feature_names,
        preprocessing=preprocessing.to_json(),
        bounds=preprocessing.bounds,
        groups=None if groups is None else groups[:training],
        group_names=group_names,
    )
