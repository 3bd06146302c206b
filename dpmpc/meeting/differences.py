"""What differs between sites by more than noise and chance, column by column, from the cells of each site.

A site's cells x have noise of deviation s a cell; those of the rest, r, the sum over k other sites, sqrt(k) times that.
With n and N records, d = x - (n/N) r is 0 in the mean where all sites' records are drawn from one law, and has in each
cell the variance

    v = s^2 (1 + k (n/N)^2) + p (1 - p) (n + n^2/N),

noise and chance, p the cell's share. What is known of where records lie is t = x + w r, w = N / (k n): with this w the
noise of t is uncorrelated with that of d, so, both being Gaussian to far less than what is tested at, t says nothing
about d: whatever is chosen by it takes no false alarms. Five tests share those that are allowed:

- `moved`: the likelihood ratio of d, given t, of all of the site's records lying in cells of their own against none
  (`Moved`): both what the site lacks where the others' records are and what it has where they have none. Which cells
  these are nobody knows; they are averaged over. Of all tests of this alternative it is the most powerful.
- `elsewhere`: d along t, without what noise has in t: how much the site's records are missing where records are, also
  where it is a part of them.
- `coding`: the same, and where they are instead, for each of the `codings` that are tried: numbers multiplied by what
  units differ by, words and the numbers that stand for them, two values exchanged.
- `spread`: the sum of d^2/v, chi-squared: any other difference.
- `missing`: the cell of missing values alone.

The false alarms of `moved` are shared unevenly among sites and columns (`weights_of`): most go to columns where they
decide, and few to those whose records lie in so few cells that they are seen anyhow. That goes by sums over all sites
alone, whose noise is uncorrelated with that of every d.

The site that differs most is taken out of the rest, and the column is looked at again, so that one site does not make
the others differ. That takes no more false alarms: where nothing differs, the first step bounds them.

Guarantees: where all sites' records are drawn from one law, something is said to differ with probability at most
`ALARMS`, as far as counts are near to Gaussian, and cells of shares t/(n + w N) have the variances above;
`benchmarks/studies/meeting.py` counts how often it does. All of it is a function of public numbers, and nothing of it
is compared across processors.
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

ALARMS = 0.047  # that anything is said to differ where nothing does, in a whole meeting
PARTS = {"moved": 0.65, "elsewhere": 0.1, "coding": 0.1, "spread": 0.1, "missing": 0.05}  # on average
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
    deviation of the noise of a cell of x; `weight`: how many times the usual false alarms `moved` may take."""

    x: Floats
    r: Floats
    n: float
    rest: float
    others: int
    noise: float
    weight: float = 1.0

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
    def known(self) -> Floats:
        """(cells,) `t` less what noise would have: cells that barely stand out count for little."""
        w = self.rest / (self.others * self.n)
        level = (LOOKED * self.noise) ** 2 * (1 + self.others * w * w)
        return np.where(self.t > 0, self.t - level / np.where(self.t > 0, self.t, 1.0), 0.0)

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
        found = [(name, self.along(way)) for name, way in codings(self.known)]
        return sorted(found, key=lambda each: -each[1])

    @cached_property
    def chances(self) -> dict[str, float]:
        """Of each test that can be made: the probability of as much, where nothing differs."""
        normal = NormalDist()
        found = {"missing": 2 * normal.cdf(-abs(float(self.d[MISSING])) / math.sqrt(self.v[MISSING]))}
        looked = self.t > 0
        if looked.any():
            found["moved"] = Moved(self).chance
            found["elsewhere"] = normal.cdf(self.along(self.known))
            found["spread"] = chi_squared_tail(self.squares, int(looked.sum()))
        if self.codings:
            found["coding"] = min(1.0, len(self.codings) * normal.cdf(-self.codings[0][1]))
        return found

    @cached_property
    def chance(self) -> tuple[float, str]:
        """That of any of the tests, and the one that says most."""
        parts = PARTS | {"moved": PARTS["moved"] * self.weight}
        return min((chance / parts[test] if parts[test] else math.inf, test) for test, chance in self.chances.items())

    def difference(self, site: int) -> Difference:
        """What there is to say of it."""
        expected = self.t * (self.n / (self.n + self.rest * self.rest / (self.others * self.n)))
        whole = float(self.known @ expected)
        gone = -float(self.known @ self.d) / whole if whole else 0.0
        noise = math.sqrt(float((self.known * self.known) @ self.v)) / whole if whole else math.inf
        chance, test = self.chance
        missing = (float(self.x[MISSING]) / self.n, float(self.r[MISSING]) / self.rest)
        return Difference(site, test, min(1.0, chance), self._explained(test), gone, noise, missing)

    def _explained(self, test: str) -> str:
        """The coding that explains most, with those that explain nearly as much; "" where none does."""
        best = self.codings[0][1] if self.codings else 0.0
        if test == "missing" or best < EXPLAINED or best < -self.along(self.known):
            return ""
        near = [name for name, z in self.codings if z > best - 0.7][:3]
        return ", or ".join(near)


class Moved:
    """That all of a site's records lie in cells of their own, as those of the others do, against no difference: the
    likelihood ratio of its d, given t, twice over.

    A cell is empty; or it has so many of the others' records as m of the site's would be, and none of its: d is -m in
    the mean, t is k w n/N m .. in r alone; or m of the site's, and none of theirs; or both, as far as the coding keeps
    some. m is one of `STEPS` numbers, or, of the site's own, what the others have in some cell. Each cell by itself is
    a mixture of these, weighed by what t says; d has the density f1 there and f0 = N(0, v) where nothing differs.

    That leaves out what is known of all cells together: every record lies somewhere, so that the site's own cells hold
    as many as it has, and so do those of the others. `whole` is the ratio of mixtures in which they do, but for a
    factor of t alone: of placements of numbers of records, on a grid of `GRID` steps, whose sum is all of them or up to
    `SPARE` steps less; x tells of the site's, r of the others', each by itself, as their noise is uncorrelated.

    Guarantees: `chance` is P0(f1/f0 >= e^LEAST, whole >= what was found | t), estimated by drawing d from f1, where the
    mean of f0/f1 over draws that reach both is that probability; where f0/f1 is below `SURE`, it stands instead, as a
    bound (Markov).
    """

    KEPT, OWN, CELLS_EACH = 0.02, 0.5, 3.0  # priors: cells of both; of m as the others have; cells of each kind
    STEPS, FEWEST, MOST = 8, 0.06, 0.9  # of m, as shares of n
    DRAWS, SURE = 500, 1e-6
    NEAR, MORE = 0.004, 1500  # a probability below which so many more are drawn: it decides
    LEAST = 1.0  # log of the ratio below which nothing is drawn: the probability is then taken for 1
    GRID, SPARE, EACH = 20, 2, 0.2  # EACH: cells that have so many steps, before it is known that all have all records
    FULLEST = 24  # cells in which records may lie: those with most
    POINTS, BEYOND = 96, 6.0  # of d at which each cell's ratio is worked out; deviations that they reach beyond means

    def __init__(self, of: Compared) -> None:
        some = np.arange(len(of.x)) != MISSING
        w = of.rest / (of.others * of.n)
        self._of, self._w = of, w
        self._t, self.d, self.v = (of.x + w * of.r)[some], of.d[some], of.v[some]
        both = self._t
        share = of.share[some]
        spread = of.noise**2 * (1 + of.others * w * w) + share * (1 - share) * (of.n + w * w * of.rest)
        m = np.geomspace(self.FEWEST * of.n, self.MOST * of.n, self.STEPS)
        theirs = w * of.rest / of.n  # of both, for one of the site's
        seen = of.known[some]
        seen = seen[seen > 0] / theirs
        prior = math.log(self.CELLS_EACH / len(both))
        steps, own = -math.log(self.STEPS), math.log(self.OWN if len(seen) else 1.0)
        kinds = [
            (np.zeros(1), np.zeros(1), math.log1p(-3 * self.CELLS_EACH / len(both))),
            (theirs * m, -m, prior + steps),
            (m, m, prior + steps + own),
            ((1 + theirs) * m, np.zeros_like(m), prior + steps + math.log(self.KEPT)),
        ]
        if len(seen):
            kinds.append((seen, seen, prior - math.log(len(seen)) + math.log1p(-self.OWN)))
        logs = [prior - (both[:, None] - mean) ** 2 / (2 * spread[:, None]) for mean, _, prior in kinds]
        each = np.concatenate(logs, axis=1)
        each -= each.max(axis=1, keepdims=True)
        self._log_weights: Floats = each - np.log(np.exp(each).sum(axis=1, keepdims=True))
        self.weights: Floats = np.exp(self._log_weights)
        self.means: Floats = np.concatenate([mean for _, mean, _ in kinds])
        least, most = min(self.means.min(), self.d.min()), max(self.means.max(), self.d.max())
        reach = self.BEYOND * math.sqrt(float(self.v.max()))
        self._at = np.linspace(least - reach, most + reach, self.POINTS)

    def logs(self, d: Floats) -> Floats:
        """(cells, k) the log of each cell's ratio, of its d (cells, k) or those of all cells (1, k)."""
        tilted = d[..., None] * (self.means / self.v[:, None, None]) - self.means**2 / (2 * self.v[:, None, None])
        tilted += self._log_weights[:, None]  # in logs: what has no weight in numbers may be all that is left
        top = tilted.max(axis=-1, keepdims=True)
        return np.asarray(np.log(np.exp(tilted - top).sum(axis=-1)) + top[..., 0])

    @cached_property
    def _logs(self) -> Floats:
        """(cells, points) the same at the points of all cells."""
        return self.logs(self._at[None, :])

    def drawn(self, d: Floats) -> Floats:
        """(draws,) the log of the ratio of d (draws, cells): on lines between points."""
        place = np.clip((d - self._at[0]) / (self._at[1] - self._at[0]), 0, self.POINTS - 1.001)
        below = place.astype(np.int64)
        part, cell = place - below, np.arange(d.shape[-1])
        logs = (1 - part) * self._logs[cell, below] + part * self._logs[cell, below + 1]
        return np.asarray(logs.sum(axis=-1))

    @cached_property
    def chance(self) -> float:
        """That of as large a ratio where nothing differs."""
        found = float(self.logs(self.d[:, None]).sum())
        if found < self.LEAST:
            return 1.0
        if found > -math.log(self.SURE):
            return math.exp(-min(found, 700.0))
        random, reach = np.random.default_rng(1), self.whole(self.d[None])
        total, drawn = 0.0, 0
        for draws in (self.DRAWS, self.MORE):
            total, drawn = total + self._reached(random, draws, reach), drawn + draws
            if total > self.NEAR * drawn:
                break
        return min(1.0, total / drawn or math.exp(-found))

    def _reached(self, random: np.random.Generator, draws: int, reach: Floats) -> float:
        """The sum of f0/f1 over so many draws that reach `LEAST` and, of `whole`, this."""
        which = (random.random((draws, len(self.d), 1)) > self.weights.cumsum(axis=1)).sum(axis=-1)
        means = self.means[np.minimum(which, len(self.means) - 1)]
        d = means + random.normal(size=means.shape) * np.sqrt(self.v)
        ratios = self.drawn(d)
        d, ratios = d[ratios >= self.LEAST], ratios[ratios >= self.LEAST]
        return float(np.exp(-ratios[self.whole(d) >= reach]).sum())

    def whole(self, d: Floats) -> Floats:
        """(draws,) the log of the ratio of d (draws, cells) where all records lie somewhere, up to a function of t."""
        of = self._of
        r = (self._t - d) / (self._w + of.ratio)
        there = max(1.0 - float(of.share[MISSING]), 1 / self.GRID)
        own = self._placed(d + of.ratio * r, of.n * there, of.noise)
        theirs = self._placed(r, of.rest * there, of.noise * math.sqrt(of.others))
        empty = of.noise**2 * (1 + of.others * of.ratio**2)  # the variance of d in an empty cell
        return np.asarray(own + theirs + (d * d * (0.5 / self.v - 0.5 / empty)).sum(axis=1))

    def _placed(self, y: Floats, n: float, noise: float) -> Floats:
        """(draws,) the log of the sum, over placements of n records in cells, of the ratio of y (draws, cells) to that
        of cells that are all empty. By a product of polynomials in the number placed, a cell at a time."""
        m = np.arange(1, self.GRID + 1) * (n / self.GRID)
        empty = noise**2
        v = empty + m * (1 - m / n) + (n / self.GRID) ** 2 / 12  # and what is between two steps of the grid
        y = -np.sort(-y, axis=1)
        logs = y[:, : self.FULLEST, None] ** 2 / (2 * empty) - (y[:, : self.FULLEST, None] - m) ** 2 / (2 * v)
        logs += math.log(self.EACH / y.shape[1]) - np.log(v / empty) / 2
        sums, found = np.zeros((len(y), self.GRID + 1)), np.zeros(len(y))
        sums[:, 0] = 1.0
        for each in np.moveaxis(logs, 1, 0):
            top = np.maximum(each.max(axis=1), 0.0)
            weights = np.exp(each - top[:, None])
            before = np.concatenate([np.zeros((len(y), self.GRID)), sums[:, :-1]], axis=1)
            moved = np.lib.stride_tricks.sliding_window_view(before, self.GRID, axis=1)
            sums = sums * np.exp(-top)[:, None] + np.einsum("dum,dm->du", moved, weights[:, ::-1])
            total = sums.sum(axis=1)
            sums /= total[:, None]
            found += top + np.log(total)
        all_placed = sums[:, self.GRID - self.SPARE :].sum(axis=1)
        return np.asarray(found + np.log(np.maximum(all_placed, 1e-300)))


def weights_of(counts: Floats, sizes: Sequence[int], noise: Floats) -> Floats:
    """(sites, columns) how many times the usual false alarms `moved` may take at a site and column: 1 on average.
    counts: (sites, columns, cells); noise: (columns,).

    Of the difference that all of a site's records lie elsewhere the deviations mu are foreseen, from sums over all
    sites. The bounds mu/2 + c/mu, at the c that spends all, find most such differences on average (Spjotvoll 1972).
    Guarantees: sum_j n_j x_j is uncorrelated with the noise of every x_j - (n_j/N_j) r_j."""
    n = np.asarray(sizes, dtype=np.float64)
    mu = np.zeros(counts.shape[:2])
    for k in range(counts.shape[1]):
        both = np.tensordot(n, counts[:, k], axes=1) / (n @ n)  # (cells,) shares, of noise as follows
        level = LOOKED * noise[k] / math.sqrt(n @ n)
        share = np.where(both > level, both - level**2 / np.maximum(both, level), 0.0)
        share[MISSING] = 0.0
        if not share.any():
            continue
        for j, own in enumerate(n):
            rest = n.sum() - own
            ratio, theirs = own / rest, both * (n @ n) / (n @ n - own * own)  # as if none of it were the site's
            v = noise[k] ** 2 * (1 + (len(n) - 1) * ratio**2) + share * (1 - share) * (own + own * ratio)
            mu[j, k] = own * float(share @ theirs) / math.sqrt(float((share * share) @ v))
    if not mu.any():
        return np.ones_like(mu)
    tests, normal = mu.size, NormalDist()
    low, high = -64.0, 64.0
    spent = ALARMS * PARTS["moved"]
    for _ in range(60):
        c = (low + high) / 2
        levels = _levels(mu, c, normal)
        low, high = (c, high) if levels.sum() > spent else (low, c)
    return np.asarray(_levels(mu, high, normal) * (tests / spent))


def _levels(mu: Floats, c: float, normal: NormalDist) -> Floats:
    """The false alarms of bounds mu/2 + c/mu."""
    return np.array([[normal.cdf(-each / 2 - c / each) if each > 0 else 0.0 for each in row] for row in mu.tolist()])


def differences(
    counts: Floats, sizes: Sequence[int], noise: float, tests: int, weights: Floats | None = None
) -> list[Difference]:
    """The sites that differ in a column, the one that does most first. counts: (sites, cells) with noise of this
    deviation a cell; sizes: of records; tests: how many sites and columns the whole meeting compares; weights: of each
    site in this column (`weights_of`), by default 1. Public."""
    weights = np.ones(len(sizes)) if weights is None else weights
    among, found = list(range(len(sizes))), list[Difference]()
    while len(among) > 1:
        total, records = counts[among].sum(axis=0), float(sum(sizes[j] for j in among))
        k, each = len(among) - 1, list[tuple[Compared, int]]()
        for j in among:
            n, x, weight = sizes[j], counts[j], float(weights[j])
            each.append((Compared(x, total - x, n, records - n, k, noise, weight), j))
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
