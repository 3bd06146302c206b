"""What differs between sites by more than noise and chance, column by column, from the cells of each site.

A site's cells x have noise of deviation s a cell; those of the rest, r, the sum over k other sites, sqrt(k) times that.
With n and N records, d = x - (n/N) r is 0 in the mean where all sites' records are drawn from one law, and has in each
cell the variance

    v = s^2 (1 + k (n/N)^2) + p (1 - p) (n + n^2/N),

noise and chance, p the cell's share. Looked at are cells that stand out of t = x + w r, w = N / (k n): with this w the
noise of t is uncorrelated with that of d, so, both being Gaussian to far less than what is tested at, which cells are
looked at says nothing about d. Four tests a site and column share the false alarms that are allowed:

- `elsewhere`: the sum of t d over those cells, normalised: how much the site's records are missing where records are.
  It has one degree of freedom however many cells there are, and is what a wrong coding shows first.
- `coding`: the same, and where they are instead, for each of the `codings` that are tried: numbers multiplied by what
  units differ by, words and the numbers that stand for them, two values exchanged.
- `spread`: the sum of d^2/v, chi-squared: any other difference.
- `missing`: the cell of missing values alone.

The site that differs most is taken out of the rest, and the column is looked at again, so that one site does not make
the others differ. That takes no more false alarms: where nothing differs, the first step bounds them.

Guarantees: where all sites' records are drawn from one law, something is said to differ with probability at most
`ALARMS`, as far as counts are near to Gaussian, and cells of shares t/(n + w N) have the variances above; `simulated`
counts how often it does. All of it is a function of public numbers, and nothing of it is compared across processors.
"""

import math
from collections.abc import Iterator, Sequence
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from dpmpc.lazy import cached_property, dataclass
from dpmpc.learning.survey_numbers import CELLS, LOWEST, OCTAVES

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

ALARMS = 0.045  # that anything is said to differ where nothing does, in a whole meeting
PARTS = {"elsewhere": 0.45, "coding": 0.25, "spread": 0.25, "missing": 0.05}  # of those of a site and column
LOOKED = 2.5  # deviations of its noise that a cell must exceed to be looked at
EXPLAINED = 3.5  # deviations along a coding from which on it is named, where it says more than `elsewhere`
EXCHANGED = "its two most frequent values exchanged"
MISSING, ZERO, ONE = 0, 1, 2 + OCTAVES - LOWEST  # cells: no value, 0, and numbers from 1 to 2
_NUMBERS = {"0 and 1": (ZERO, ONE), "1 and 2": (ONE, ONE + 1), "0, 1 and 2": (ZERO, ONE, ONE + 1),
            "1, 2 and 3": (ONE, ONE + 1), "1 to 4": (ONE, ONE + 1, ONE + 2)}  # fmt: skip
UNITS = (
    ("months", "years", 12.0), ("days", "years", 365.25), ("weeks", "years", 52.18), ("days", "months", 30.44),
    ("days", "weeks", 7.0), ("hours", "days", 24.0), ("minutes", "hours", 60.0), ("pounds", "kilograms", 2.2046),
    ("centimetres", "inches", 2.54), ("centimetres", "metres", 100.0), ("feet", "metres", 3.2808),
    ("grams", "kilograms", 1000.0), ("grams", "ounces", 28.35), ("mmHg", "kPa", 7.5006), ("kJ", "kcal", 4.184),
    ("mg/dL", "mmol/L of glucose", 18.02), ("mg/dL", "mmol/L of cholesterol", 38.67),
    ("umol/L", "mg/dL of creatinine", 88.42), ("umol/L", "mg/dL of bilirubin", 17.1), ("tens", "ones", 10.0),
    ("millionths", "ones", 1e6), ("halves", "ones", 2.0), ("quarters", "ones", 4.0),
)  # fmt: skip


@dataclass(frozen=True)
class Difference:
    """A site that differs from the rest in a column. `site`: its place among those compared; `test`: which said so;
    `chance`: of any difference as large in this column at this site, if there were none; `coding`: what explains it,
    "" for nothing; `share` and `noise`: of its records, so many lie where the others' do not, and the deviation of
    that; `missing`: its share of missing values and the others'."""

    site: int
    test: str
    chance: float
    coding: str
    share: float
    noise: float
    missing: tuple[float, float]


@dataclass(frozen=True)
class Compared:
    """One site's cells of a column beside those of `others` more: x, r (cells,), their numbers of records, the
    deviation of the noise of a cell of x."""

    x: Floats
    r: Floats
    n: float
    rest: float
    others: int
    noise: float

    @property
    def ratio(self) -> float:
        return self.n / self.rest

    @cached_property
    def d(self) -> Floats:
        """(cells,) by how much the site has more than its share."""
        return np.asarray(self.x - self.ratio * self.r)

    @cached_property
    def t(self) -> Floats:
        """(cells,) what is looked at of both together; 0 elsewhere."""
        w = self.rest / (self.others * self.n)
        both = self.x + w * self.r
        looked = both > LOOKED * self.noise * math.sqrt(1 + self.others * w * w)
        looked[MISSING] = False
        return np.where(looked, both, 0.0)

    @cached_property
    def share(self) -> Floats:
        """(cells,) the share of all records in each cell, of both together."""
        w = self.rest / (self.others * self.n)
        return np.asarray(np.clip((self.x + w * self.r) / (self.n + w * self.rest), 0.0, 1.0))

    @cached_property
    def v(self) -> Floats:
        """(cells,) the variance of `d` where nothing differs."""
        noise = self.noise**2 * (1 + self.others * self.ratio**2)
        return np.asarray(noise + self.share * (1 - self.share) * (self.n + self.n * self.ratio))

    @cached_property
    def squares(self) -> float:
        """The sum of d^2/v over what is looked at."""
        looked = self.t > 0
        return math.fsum(self.d[looked] ** 2 / self.v[looked])

    def along(self, way: Floats) -> float:
        """How many deviations `d` lies in this direction (cells,)."""
        scale = math.sqrt(float((way * way) @ self.v))
        return float(way @ self.d) / scale if scale else 0.0

    @cached_property
    def codings(self) -> list[tuple[str, float]]:
        """What explains a difference, and how many deviations it is along it, largest first."""
        found = [(name, self.along(way)) for name, way in codings(self.t)]
        return sorted(found, key=lambda each: -each[1])

    @cached_property
    def chances(self) -> dict[str, float]:
        """Of each test that can be made: the probability of as much, where nothing differs."""
        normal = NormalDist()
        found = {"missing": 2 * normal.cdf(-abs(float(self.d[MISSING])) / math.sqrt(self.v[MISSING]))}
        looked = self.t > 0
        if looked.any():
            found["elsewhere"] = normal.cdf(self.along(self.t))
            found["spread"] = chi_squared_tail(self.squares, int(looked.sum()))
        if self.codings:
            found["coding"] = min(1.0, len(self.codings) * normal.cdf(-self.codings[0][1]))
        return found

    @cached_property
    def chance(self) -> tuple[float, str]:
        """That of any of the tests, and the one that says most."""
        return min((chance / PARTS[test], test) for test, chance in self.chances.items())

    def difference(self, site: int) -> Difference:
        """What there is to say of it."""
        expected = self.t * (self.n / (self.n + self.rest * self.rest / (self.others * self.n)))
        whole = float(self.t @ expected)
        gone = -float(self.t @ self.d) / whole if whole else 0.0
        noise = math.sqrt(float((self.t * self.t) @ self.v)) / whole if whole else math.inf
        chance, test = self.chance
        missing = (float(self.x[MISSING]) / self.n, float(self.r[MISSING]) / self.rest)
        return Difference(site, test, min(1.0, chance), self._explained(test), gone, noise, missing)

    def _explained(self, test: str) -> str:
        """The coding that explains most, with those that explain nearly as much; "" where none does."""
        best = self.codings[0][1] if self.codings else 0.0
        if test == "missing" or best < EXPLAINED or best < -self.along(self.t):
            return ""
        near = [name for name, z in self.codings if z > best - 0.7][:3]
        return ", or ".join(near)


def differences(counts: Floats, sizes: Sequence[int], noise: float, tests: int) -> list[Difference]:
    """The sites that differ in a column, the one that does most first. counts: (sites, cells) with noise of this
    deviation a cell; sizes: of records; tests: how many sites and columns the whole meeting compares. Public."""
    among, found = list(range(len(sizes))), list[Difference]()
    while len(among) > 1:
        total, records = counts[among].sum(axis=0), float(sum(sizes[j] for j in among))
        each = [
            (Compared(counts[j], total - counts[j], sizes[j], records - sizes[j], len(among) - 1, noise), j)
            for j in among
        ]
        most, site = min(each, key=lambda pair: (pair[0].chance[0], -pair[0].squares))  # chances may all be 0
        if most.chance[0] > ALARMS / tests:
            break
        found.append(most.difference(site))
        among.remove(site)
    return found


def codings(t: Floats) -> Iterator[tuple[str, Floats]]:
    """The codings that are tried, by what they would do to records that lie as t (cells,): (name, direction)."""
    numbers, words = t.copy(), t.copy()
    numbers[CELLS:], words[:CELLS] = 0.0, 0.0
    if numbers.any():
        for larger, smaller, factor in UNITS:
            for name, times in ((f"{larger} for {smaller}", factor), (f"{smaller} for {larger}", 1 / factor)):
                yield name, multiplied(numbers, times) - numbers
    if words.any():
        for name, cells in _NUMBERS.items():
            way = -words
            way[list(cells)] += words.sum() / len(cells)
            yield f"numbers such as {name} for words", way
    labels = words.copy()
    labels[[ZERO, ONE, ONE + 1]] = t[[ZERO, ONE, ONE + 1]]
    if np.count_nonzero(labels) > 1:
        first, second = np.argsort(-labels, kind="stable")[:2]
        way = np.zeros_like(t)
        way[[first, second]] = t[second] - t[first], t[first] - t[second]
        if way.any():
            yield EXCHANGED, way


def multiplied(t: Floats, factor: float) -> Floats:
    """(cells,) where numbers that lie as t would lie if each were so many times as large, and evenly over their octave
    on a logarithmic scale."""
    octaves = math.log2(factor)
    down = math.floor(octaves)
    found = np.zeros_like(t)
    found[:2] = t[:2]
    for begin in (2, 2 + OCTAVES):
        part = t[begin : begin + OCTAVES]
        for by, weight in ((down, 1 - (octaves - down)), (down + 1, octaves - down)):
            if abs(by) < OCTAVES and weight:
                to, of = (slice(by, None), slice(None, -by or None)) if by >= 0 else (slice(None, by), slice(-by, None))
                found[begin : begin + OCTAVES][to] += weight * part[of]
    return found


def chi_squared_tail(x: float, degrees: int) -> float:
    """P(X > x) of a chi-squared variable with so many degrees of freedom: the finite sums, Abramowitz and Stegun
    26.4.4 and 26.4.5."""
    half = max(x, 0.0) / 2
    if degrees % 2 == 0:
        term, total = 1.0, 1.0
        for k in range(1, degrees // 2):
            term *= half / k
            total += term
        return min(1.0, math.exp(-half) * total)
    total, term = math.erfc(math.sqrt(half)), math.sqrt(half / math.pi) * 2 * math.exp(-half)
    for k in range(1, (degrees + 1) // 2):
        total += term
        term *= half / (k + 0.5)
    return min(1.0, total)
