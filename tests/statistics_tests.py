"""All records there are, for practical purposes: every level, and the numbers at which bounds bind."""

import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmpc.statistics.cells import RecordFields
from dpmpc.statistics.columns import Category, Columns, Quantity, category
from dpmpc.statistics.layout import Layout

SEX = category("sex", ("F", "M"))
SITE = category("ward", ("a", "b", "c"))
AGE = Quantity("age", 20.0, 80.0)
DOSE = Quantity("dose", -1.0, 3.0)
ARM = category("arm", ("x", "y"))
HEIGHT = Quantity("height", 1.0, 2.0)
COLUMNS = Columns((SEX, SITE, AGE, DOSE, ARM, HEIGHT))


def values_of(column: Any, numbers: int = 9) -> list[float]:
    """Values of a column that matter: bounds, what lies between, beyond them and far beyond; missing and unknown."""
    if isinstance(column, Quantity):
        inside = np.linspace(column.low, column.high, numbers)
        return [*inside, column.low - 1.0, column.high + 1.0, 1e300, -1e300, np.nan]
    assert isinstance(column, Category)
    return [*range(len(column.levels)), -1, -2]


def everybody(layout: Layout, numbers: int = 9) -> RecordFields:
    """The records with every combination of those values, in the columns that the release reads."""
    each = list(itertools.product(*(values_of(column, numbers) for column in layout.fields)))
    found = {}
    for k, column in enumerate(layout.fields):
        array = np.array([row[k] for row in each])
        found[column] = array if isinstance(column, Quantity) else array.astype(np.int64)
    return RecordFields(len(each), found)


def vectors(layout: Layout, records: RecordFields) -> NDArray[np.float64]:
    """(different records, dimension) the vector of each record."""
    some = [records.part(k, k + 5000) for k in range(0, records.n, 5000)]
    parts = [_different(layout.encode(part, np.arange(part.n), part.n)) for part in some]
    return _different(np.concatenate(parts)).astype(np.float64)


def _different(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """The different rows, told apart by a random linear form: of 10^6 two have the same once in 10^7 draws, and one of
    them is missing then."""
    form = np.random.default_rng().integers(-(1 << 63), (1 << 63) - 1, size=rows.shape[1])
    return rows[np.unique(rows @ form, return_index=True)[1]]


def farthest(layout: Layout, numbers: int = 9) -> dict[str, tuple[float, float, float]]:
    """(L1, L2, Linf) of the pair of vectors that lie farthest apart, and of the one that is farthest from zero."""
    found = vectors(layout, everybody(layout, numbers))  # records that look alike count once
    assert np.square(found).sum(axis=1).max() < 2.0**50  # numbers of steps: squares of lengths, too, are exact
    size = np.abs(found)
    zero = size.sum(axis=1).max(), np.sqrt((size * size).sum(axis=1)).max(), size.max()
    pair = _apart(found), _straight(found), float((found.max(axis=0) - found.min(axis=0)).max())
    return {"record": pair, "presence": (float(zero[0]), float(zero[1]), float(zero[2]))}


def _apart(rows: NDArray[np.float64]) -> float:
    """The largest L1 distance of two rows. Rows that lie no farther from a middle than the rest of what was found
    cannot be farther apart, and are not asked about."""
    away = np.abs(rows - np.median(rows, axis=0)).sum(axis=1)
    order = np.argsort(-away)
    rows, away, found = rows[order], away[order], 0.0
    for k, row in enumerate(rows):
        end = int(np.searchsorted(-away, away[k] - found))  # the rows before it: away[k] + away > found
        if end <= k:
            break
        found = max(found, float(np.abs(rows[k:end] - row).sum(axis=1).max()))
    return found


def _straight(rows: NDArray[np.float64]) -> float:
    """The largest L2 distance of two rows of whole numbers."""
    squares, found = np.square(rows).sum(axis=1), 0.0
    for k in range(0, len(rows), 256):
        apart = squares[k : k + 256, None] + squares - 2 * (rows[k : k + 256] @ rows.T)
        found = max(found, float(apart.max()))
    return float(np.sqrt(found))
