"""Who holds which row: the partition of a training set over its owners, and places, filled by rows or empty.

Row numbers and sizes are public; where there are places, their numbers are, and which of them are filled is private."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpmpc.errors import RecordError, UsageError, sayable
from dpmpc.intake.table import numbers_up_to
from dpmpc.lazy import dataclass
from dpmpc.records.seeds import Stream, generator

Ints = NDArray[np.int64]
EMPTY = -1  # a place without a record


@dataclass(frozen=True)
class KeptOwners:
    """The column of persons, how many records of each an owner keeps, and the column of owners, if all are here; at how
    many of them a person is at most, where that is said."""

    column: str
    rows: int
    owners: str | None = None
    most: int | None = None


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
        raise UsageError("owners need records; there are no training rows; use a smaller test fraction", code="enough")
    if sum(given is not None for given in (sizes, skew, groups)) > 1:
        raise UsageError(
            "owners are set in one way; several were given; choose one of sizes, skew and owners column",
            code="together",
        )
    if groups is not None:
        return _by_groups(n, owners, groups)
    if sizes is not None:
        counts = np.array(list(sizes), dtype=np.int64)
        if owners is not None and owners != len(counts):
            raise UsageError(
                f"one size for each owner; {len(counts)} sizes for {sayable(owners)} owners; give <<owners>> or sizes",
                code="shape",
            )
    elif owners is None:
        raise UsageError(
            "the owners must be known; none were given; give a number of owners, sizes or a column", code="missing"
        )
    elif owners < 1 or owners > n:
        raise UsageError(
            f"the number of owners lies between 1 and the {sayable(n)} training rows; got {sayable(owners)}; change "
            "<<owners>>",
            code="range",
        )
    elif skew is not None:
        counts = _skewed(n, owners, skew)
    else:
        counts = np.full(owners, n // owners, dtype=np.int64)
        counts[: n % owners] += 1
    if len(counts) == 0 or counts.min() < 1:
        raise UsageError(
            f"every owner needs at least one record; sizes are {sayable(_shown(counts))}; leave empty owners out",
            code="enough",
        )
    if counts.sum() > n:
        raise UsageError(
            f"owners' sizes may sum to at most the {sayable(n)} training rows; they sum to "
            f"{sayable(int(counts.sum()))}; "
            "lower them",
            code="range",
        )
    order = generator(Stream.OWNERS, seed).permutation(np.arange(n, dtype=numbers_up_to(n)))[: counts.sum()]
    return Partition(order, _offsets(counts))


def placed(
    split: Partition, persons: Ints | None, groups: Ints | None, rows: int, capacity: Sequence[int] | None
) -> Partition:
    """Who holds which row, with EMPTY for places that no record fills: `rows` places for each person, and at each owner
    places for `capacity` records or persons, if that is given. `split`: of records; of persons where there are some,
    numbered from 0 in the order of `persons`, unless `groups` say whose each record is.

    Errors: RecordError for an owner with more records or persons than its capacity."""
    each: list[Ints] = []
    for j in range(split.m):
        mine = split.order[int(split.offsets[j]) : int(split.offsets[j + 1])]
        each.append(mine if persons is None else _in_places(mine, persons, groups is None, rows))
    if capacity is not None:
        width = 1 if persons is None else rows
        places = fitting([len(own) // width for own in each], capacity)
        each = [
            np.concatenate([own, np.full(n * width - len(own), EMPTY, dtype=np.int64)])
            for own, n in zip(each, places, strict=True)
        ]
    return Partition(np.concatenate(each), _offsets(np.array([len(own) for own in each])))


def shares(
    n: int, persons: Ints | None, groups: Ints | None, *, rows: int = 1, capacity: Sequence[int] | None = None,
    owners: int | None = None, sizes: Sequence[int] | None = None, skew: float | None = None, seed: int,
) -> Partition:  # fmt: skip
    """As `ownership.partition` of n rows, with places: `placed`. Where persons are shared out, `sizes` are numbers of
    persons."""
    if n == 0 and capacity is not None:  # how many there are is private: places stay empty
        split = Partition(np.zeros(0, dtype=np.int64), np.zeros(len(capacity) + 1, dtype=np.int64))
    elif persons is None or groups is not None:
        split = partition(n, owners=owners, sizes=sizes, skew=skew, groups=groups, seed=seed)
    else:
        split = partition(len(np.unique(persons)), owners=owners, sizes=sizes, skew=skew, seed=seed)
    if persons is None and capacity is None:
        return split
    return placed(split, persons, groups, rows, capacity)


def fitting(found: Sequence[int], capacity: Sequence[int]) -> tuple[int, ...]:
    """The capacities of owners that have so many records, or persons. Errors: they are not one for each owner;
    RecordError for an owner that has more."""
    if len(capacity) != len(found) or min(capacity) < 1:
        raise UsageError(
            f"<<capacity>> is a whole number above 0 for each owner; got {len(capacity)} for {len(found)} owners; mend "
            "it"
        )
    for j, (size, places) in enumerate(zip(found, capacity, strict=True)):
        if size > places:
            raise RecordError(
                f"an owner has at most as many records, or persons, as its capacity; owner {j} has {size} and a "
                f"capacity of {places}; raise <<capacity>>",
                "an owner has at most as many records, or persons, as its capacity; one has more; plan again",
            )
    return tuple(capacity)


def _by_groups(n: int, owners: int | None, groups: NDArray[np.int64]) -> Partition:
    if len(groups) != n:
        raise UsageError(
            f"the owners column names an owner for each of {sayable(n)} rows; it has {len(groups)}; fix the column",
            code="shape",
        )
    if groups.min() < 0:
        raise RecordError(
            f"owners are numbered from 0; the owners column holds {groups.min()}; renumber them",
            "owners are numbered from 0; an owners column holds another number; renumber them",
        )
    counts = np.bincount(groups).astype(np.int64)
    if counts.min() < 1:
        empty = int(np.argmin(counts))
        raise UsageError(
            f"every owner needs at least one record; owner {sayable(int(empty))} has none; leave it out", code="enough"
        )
    if owners is not None and owners != len(counts):
        raise UsageError(
            f"the owners column decides their number; it has {len(counts)}, not {sayable(owners)}; drop <<owners>>",
            code="together",
        )
    short = groups.astype(np.uint16) if len(counts) <= 1 << 16 else groups  # NumPy sorts these by digits
    return Partition(np.argsort(short, kind="stable").astype(numbers_up_to(n)), _offsets(counts))


def _skewed(n: int, owners: int, skew: float) -> Ints:
    if not (np.isfinite(skew) and skew >= 1):
        raise UsageError(
            f"the skew largest/smallest is at least 1; got {sayable(skew)}; use 1 for an even split", code="range"
        )
    if owners < 2:
        raise UsageError(
            f"a skew needs two groups of owners; there is {sayable(owners)} owner; use at least 2 owners", code="enough"
        )
    small = owners // 2
    size = int(n / (small + skew * (owners - small)))
    if size < 1:
        raise UsageError(
            f"every owner needs at least one record; skew {sayable(skew)} over {sayable(owners)} owners leaves the "
            "smaller ones"
            f" none of {sayable(n)} rows; use fewer owners or a smaller skew",
            code="enough",
        )
    return np.array([size] * small + [int(skew * size)] * (owners - small), dtype=np.int64)


def _offsets(counts: Ints) -> Ints:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def _shown(counts: Ints) -> str:
    return ",".join(map(str, counts[:8])) + (",..." if len(counts) > 8 else "")


def _in_places(mine: Ints, persons: Ints, by_person: bool, rows: int) -> Ints:
    """The rows of some persons, `rows` places for each. `mine`: numbers of rows, or of persons (`by_person`)."""
    if by_person:
        there = np.unique(persons)[mine]
        mine = np.flatnonzero(np.isin(persons, there)).astype(np.int64)
    who, number = np.unique(persons[mine], return_inverse=True)
    order = np.argsort(number, kind="stable")
    counts = np.bincount(number, minlength=len(who))
    within = np.arange(len(mine)) - np.repeat(np.cumsum(counts) - counts, counts)
    assert counts.max(initial=0) <= rows
    found = np.full(len(who) * rows, EMPTY, dtype=np.int64)
    found[number[order] * rows + within] = mine[order]
    return found
