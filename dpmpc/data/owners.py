"""Who holds which row: the partition of a training set over its owners. Row numbers and sizes are public."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmpc.data.seeds import Stream, generator
from dpmpc.errors import UsageError

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Partition:
    """Owner j holds rows order[offsets[j]:offsets[j+1]]; every owner holds at least one, no row is held twice."""

    order: Ints
    offsets: Ints

    @property
    def m(self) -> int:
        """The number of owners."""
        return len(self.offsets) - 1

    @property
    def n(self) -> int:
        """The number of rows that owners hold; below the data's own number where sizes or a skew leave some over."""
        return int(self.offsets[-1])

    @property
    def sizes(self) -> Ints:
        """(m,) the number of rows of each owner."""
        return np.diff(self.offsets)


def partition(
    n: int,
    *,
    owners: int | None = None,
    sizes: Sequence[int] | None = None,
    skew: float | None = None,
    groups: NDArray[np.int64] | None = None,
    seed: int,
) -> Partition:
    """A partition of n rows, the same for the same arguments: by one of

    - owners: m owners, sizes that differ by one at most;
    - sizes: the m sizes; rows beyond their sum are held by nobody;
    - owners and skew u: the first floor(m/2) owners hold s rows each, the others floor(u s), s as large as possible;
      at most about m (u + 1) rows are left over. Source: Kang et al. 2019 section 5, u = n_max/n_min with two groups;
    - groups (n,): the owner of each row, numbered from 0 (rows stay in their order within an owner).

    Errors: sizes that are not positive or exceed n, more owners than rows, skew below 1, an owner without rows.
    """
    if n < 1:
        raise UsageError("owners need records; there are no training rows; use a smaller test fraction")
    if sum(given is not None for given in (sizes, skew, groups)) > 1:
        raise UsageError("owners are set in one way; several were given; choose one of sizes, skew and owners column")
    if groups is not None:
        return _by_groups(n, owners, groups)
    if sizes is not None:
        counts = np.array(list(sizes), dtype=np.int64)
        if owners is not None and owners != len(counts):
            raise UsageError(
                f"one size for each owner; {len(counts)} sizes for {owners} owners; give --owners or sizes"
            )
    elif owners is None:
        raise UsageError("the owners must be known; none were given; give a number of owners, sizes or a column")
    elif owners < 1 or owners > n:
        raise UsageError(
            f"the number of owners lies between 1 and the {n} training rows; got {owners}; change --owners"
        )
    elif skew is not None:
        counts = _skewed(n, owners, skew)
    else:
        counts = np.full(owners, n // owners, dtype=np.int64)
        counts[: n % owners] += 1
    if len(counts) == 0 or counts.min() < 1:
        raise UsageError(f"every owner needs at least one record; sizes are {_shown(counts)}; leave empty owners out")
    if counts.sum() > n:
        raise UsageError(
            f"owners' sizes may sum to at most the {n} training rows; they sum to {counts.sum()}; lower them"
        )
    order = generator(Stream.OWNERS, seed).permutation(n)[: counts.sum()].astype(np.int64)
    return Partition(order, _offsets(counts))


def _by_groups(n: int, owners: int | None, groups: NDArray[np.int64]) -> Partition:
    if len(groups) != n:
        raise UsageError(f"the owners column names an owner for each of {n} rows; it has {len(groups)}; fix the column")
    if groups.min() < 0:
        raise UsageError(f"owners are numbered from 0; the owners column holds {groups.min()}; renumber them")
    counts = np.bincount(groups).astype(np.int64)
    if counts.min() < 1:
        empty = int(np.argmin(counts))
        raise UsageError(f"every owner needs at least one record; owner {empty} has none; leave it out")
    if owners is not None and owners != len(counts):
        raise UsageError(f"the owners column decides their number; it has {len(counts)}, not {owners}; drop --owners")
    return Partition(np.argsort(groups, kind="stable").astype(np.int64), _offsets(counts))


def _skewed(n: int, owners: int, skew: float) -> Ints:
    if not (np.isfinite(skew) and skew >= 1):
        raise UsageError(f"the skew largest/smallest is at least 1; got {skew}; use 1 for an even split")
    if owners < 2:
        raise UsageError(f"a skew needs two groups of owners; there is {owners} owner; use at least 2 owners")
    small = owners // 2
    size = int(n / (small + skew * (owners - small)))
    if size < 1:
        raise UsageError(
            f"every owner needs at least one record; skew {skew} over {owners} owners leaves the smaller ones"
            f" none of {n} rows; use fewer owners or a smaller skew"
        )
    return np.array([size] * small + [int(skew * size)] * (owners - small), dtype=np.int64)


def _offsets(counts: Ints) -> Ints:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def _shown(counts: Ints) -> str:
    return ",".join(map(str, counts[:8])) + (",..." if len(counts) > 8 else "")
