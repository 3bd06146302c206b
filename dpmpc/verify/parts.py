"""Parts of an axis (releases, or coordinates) whose sums are tested: all, each one, every k-th, stretches.

A test of many parts gives each a share of its false-alarm probability, its weight, fixed beforehand: a fourth to all
together, a fourth to the single ones, a fourth to every k-th from any place on, a fourth to stretches of 2, 4, 8, ...
and to the halves. Parts of equal size and weight are a group, whose extremes alone need a p-value.
"""


import numpy as np

from dpmpc.lazy import cached_property, dataclass
from dpmpc.privacy.exact import Integers, Reals

_SHARE = 1 / 4
_PERIODS = 64  # the largest k of "every k-th"
_FEWER = 16  # of coordinates, where they are combined with parts of releases


@dataclass(frozen=True)
class PartGroup:
    """`count` parts of `size` releases or coordinates each. `weight`: of each of them."""

    kind: str  # "all", "one", "every 7th", "16 in a row"
    count: int
    size: int
    weight: float


@dataclass(frozen=True)
class Parts:
    """The parts of an axis of n `noun`s."""

    noun: str
    n: int
    most: int = _PERIODS

    @cached_property
    def periods(self) -> range:
        """The k of "every k-th"."""
        return range(2, min(self.most, self.n // 2) + 1)

    @cached_property
    def stretches(self) -> list[tuple[int, Integers]]:
        """(length, where they begin): 2, 4, 8, ... in a row, half a length apart; and the two halves."""
        found, length = [], 2
        while length < self.n:
            found.append((length, np.arange(0, self.n - length + 1, length // 2, dtype=np.int64)))
            length *= 2
        half = self.n // 2
        if half > 2 and half not in [length for length, _ in found]:
            found.append((half, np.array([0, self.n - half], dtype=np.int64)))
        return found

    @cached_property
    def groups(self) -> list[PartGroup]:
        """The groups, in the order of the parts in `sums`."""
        groups = [PartGroup("all", 1, self.n, _SHARE)]
        if self.n == 1:
            return groups
        groups.append(PartGroup("one", self.n, 1, _SHARE / self.n))
        weight = _SHARE / max(1, sum(self.periods))
        for k in self.periods:
            long = self.n % k  # the first so many have one more
            groups += [PartGroup(f"every {_th(k)}", long, self.n // k + 1, weight)] if long else []
            groups.append(PartGroup(f"every {_th(k)}", k - long, self.n // k, weight))
        weight = _SHARE / max(1, sum(len(starts) for _, starts in self.stretches))
        groups += [PartGroup(f"{size} in a row", len(starts), size, weight) for size, starts in self.stretches]
        return groups

    @cached_property
    def begins(self) -> Integers:
        """Where each group begins among the parts."""
        return np.cumsum([0, *(group.count for group in self.groups)], dtype=np.int64)[:-1]

    def sums(self, values: Reals) -> Reals:
        """(parts, ...) sums of `values` (n, ...) along the first axis."""
        found = np.empty((sum(group.count for group in self.groups), *values.shape[1:]))
        found[0] = values.sum(axis=0)
        if self.n == 1:
            return found
        end = 1 + self.n
        found[1:end] = values
        for k in self.periods:
            whole = self.n - self.n % k
            every = found[end : end + k]
            np.add.reduce(values[:whole].reshape(-1, k, *values.shape[1:]), axis=0, out=every)
            every[: self.n - whole] += values[whole:]
            end += k
        total = np.concatenate([np.zeros((1, *values.shape[1:])), np.cumsum(values, axis=0)])
        for size, starts in self.stretches:
            np.subtract(total[starts + size], total[starts], out=found[end : end + len(starts)])
            end += len(starts)
        return found

    def name(self, part: int) -> str:
        """Which part this is, in words."""
        k = int(np.searchsorted(self.begins, part, side="right")) - 1
        group, place = self.groups[k], part - int(self.begins[k])
        if group.kind == "all":
            return f"all {self.noun}s"
        if group.kind == "one":
            return f"{self.noun} {place}"
        if group.kind.startswith("every"):
            same = self.groups[k - 1]
            place += same.count if same.kind == group.kind else 0
            return f"{group.kind} {self.noun} from {place} on"
        begin = int(dict(self.stretches)[group.size][place])
        return f"{self.noun}s {begin} to {begin + group.size - 1}"

    def weight(self, kind: str) -> tuple[float, int] | None:
        """(weight, size) of the parts of this kind; None where there are none."""
        found = [(group.weight, group.size) for group in self.groups if group.kind == kind and group.count]
        return found[-1] if found else None


def _th(k: int) -> str:
    return f"{k}{'th' if 10 < k % 100 < 20 else {1: 'st', 2: 'nd', 3: 'rd'}.get(k % 10, 'th')}"


@dataclass(frozen=True)
class PartGrid:
    """Parts of releases by parts of coordinates."""

    releases: Parts
    coordinates: Parts

    @staticmethod
    def of(shape: tuple[int, ...]) -> "PartGrid":
        """For values (K, d)."""
        return PartGrid(Parts("release", shape[0]), Parts("coordinate", shape[1], _FEWER))

    def sums(self, values: Reals) -> Reals:
        """(parts of releases, parts of coordinates) sums of values (K, d). The parts of releases, of which there are
        more, stand together in memory: `extremes` goes along them first."""
        return self.coordinates.sums(np.ascontiguousarray(self.releases.sums(values).T)).T

    @cached_property
    def sizes(self) -> Reals:
        """(groups, groups): how many values a part of each pair of groups has."""
        r, c = (np.array([g.size for g in parts.groups]) for parts in (self.releases, self.coordinates))
        return np.outer(r, c).astype(np.float64)

    @cached_property
    def weights(self) -> Reals:
        """(groups, groups): the weight of each of these parts."""
        r, c = (np.array([g.weight for g in parts.groups]) for parts in (self.releases, self.coordinates))
        return np.outer(r, c)

    def extremes(self, sums: Reals, largest: bool) -> Reals:
        """(groups, groups): the largest or smallest sum of each pair of groups."""
        reduce = np.maximum.reduceat if largest else np.minimum.reduceat
        return np.asarray(reduce(reduce(sums, self.releases.begins, axis=0), self.coordinates.begins, axis=1))

    def name(self, sums: Reals, value: float, groups: tuple[int, int]) -> str:
        """Which part of these groups has this sum, in words."""
        (i, j), ends = groups, []
        for parts, k in ((self.releases, i), (self.coordinates, j)):
            ends.append(slice(int(parts.begins[k]), int(parts.begins[k]) + parts.groups[k].count))
        r, c = np.argwhere(sums[ends[0], ends[1]] == value)[0]
        names = self.releases.name(ends[0].start + int(r)), self.coordinates.name(ends[1].start + int(c))
        return f"{names[0]}, {names[1]}"
