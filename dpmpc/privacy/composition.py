"""What the entries of ledgers cost together, and whether another run still fits into a budget."""

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from dpmpc.errors import UsageError
from dpmpc.lazy import dataclass
from dpmpc.privacy.assignment import apart
from dpmpc.privacy.checks import check_count, check_delta, check_epsilon
from dpmpc.privacy.entry import Entry
from dpmpc.privacy.guarantee import failure_factor
from dpmpc.privacy.law import LAWS
from dpmpc.privacy.mechanism import Mechanism
from dpmpc.privacy.spending import NOTHING_HIDDEN, Spending

RECORD, OWNER = "record", "owner"  # the neighbours of lines that do not say; the coarsest ones: all of one owner's
_WAYS = 256  # choices of parts that are looked at one by one
PARTS = ("+questions", "+words", "+survey", "+first", "+evaluation")  # ends of names of parts of a run
_ROUNDING = 1e-9  # relative; what the arithmetic of an accounting may be off by


def spending_of(mechanism: Mechanism, releases: int = 1) -> Spending:
    """What `releases` releases of `mechanism` cost. Errors: UsageError for a law that is not installed here."""
    if not releases:
        return Spending()
    one = LAWS[mechanism.law].spending(mechanism) if mechanism.scale else NOTHING_HIDDEN
    return one.times(releases)


@dataclass(frozen=True)
class Spent:
    """What was spent on one data set: (epsilon, delta) over `releases` releases of `runs` runs."""

    data: str
    runs: int
    releases: int
    epsilon: float
    delta: float


def mechanism_for(entry: Entry, neighbours: str) -> Mechanism | None:
    """The entry's mechanism with the sensitivity for these neighbours ("" for those that the line names); None where no
    bound is known.

    The line's own price for them, where it has one. Else an owner's: records, their presence, its persons and every
    stated unit are parts of what one owner gives. A record's price is none for a record's presence: where that was
    proved, the line says so. Lines that do not say what they compare are of records.
    """
    prices = {entry.neighbours or RECORD: entry.mechanism.sensitivity, **dict(entry.prices)}
    moved = prices.get(neighbours or entry.neighbours or RECORD, prices.get(OWNER))
    return None if moved is None else replace(entry.mechanism, sensitivity=moved)


class Prices:
    """What releases cost on one data set, for one kind of neighbours: how many of each price, on each part of the data.

    Disjoint parts cost the larger, where the neighbours lie in one part (`assignment`): a record is in one part of
    every assignment, and pays for the releases on these and on the whole. `ways` has what it pays, for each choice of
    parts that there may be; a total is the largest of them.
    """

    def __init__(self, neighbours: str = "", entries: Iterable[Entry] = ()) -> None:
        """`neighbours`: by default each line's own."""
        self._neighbours = neighbours
        self._counts: Counter[tuple[Mechanism | None, tuple[str, str] | None]] = Counter()
        for entry in entries:
            self.add(entry)

    def add(self, entry: Entry, times: int = 1) -> "Prices":
        """Counts so many more like this line; itself."""
        own = self._neighbours or entry.neighbours or RECORD
        self._counts[mechanism_for(entry, self._neighbours), apart(entry.part, own)] += times
        return self

    def copy(self) -> "Prices":
        """Another with the same counts."""
        other = Prices(self._neighbours)
        other._counts = self._counts.copy()
        return other

    @property
    def releases(self) -> int:
        """How many."""
        return self._counts.total()

    def ways(self) -> list[Spending]:
        """The totals, one for each choice of a part of every assignment; all added up where there are very many."""
        whole, parts = Spending(), dict[str, dict[str, Spending]]()
        for (mechanism, place), count in self._counts.items():
            cost = NOTHING_HIDDEN.times(count) if mechanism is None else spending_of(mechanism, count)
            if place is None:
                whole += cost
            else:
                of = parts.setdefault(place[0], {})
                of[place[1]] = of.get(place[1], Spending()) + cost
        if math.prod(map(len, parts.values())) > _WAYS:
            return [sum((cost for of in parts.values() for cost in of.values()), start=whole)]
        return [sum(choice, start=whole) for choice in itertools.product(*(of.values() for of in parts.values()))]

    def epsilon(self, delta: float) -> float:
        """As `Spending.epsilon`, of the part that costs most."""
        return max(way.epsilon(delta) for way in self.ways())

    def filtered(self, delta: float) -> float:
        """As `Spending.filtered`, of the part that costs most."""
        return max(way.filtered(delta) for way in self.ways())

    def least_delta(self) -> float:
        """The delta of failures alone."""
        failing = [way for way in self.ways() if way.failure]
        return max((_delta_of_failures(way) for way in failing), default=0.0)


def total(entries: Iterable[Entry], neighbours: str = "") -> Prices:
    """What `entries` cost, for these neighbours; by default each for those of its own line."""
    return Prices(neighbours, entries)


def _delta_of_failures(way: Spending) -> float:
    return min(0.5, failure_factor(way.pure + 2 * way.log_ratio) * way.failure * (1 + _ROUNDING))


def run_of(name: str) -> str:
    """The run that a ledger's name belongs to, as people count: a survey and an evaluation are parts of theirs."""
    for part in PARTS:
        name = name.removesuffix(part)
    return name


def spent(entries: Sequence[Entry], data: str, delta: float | None = None, neighbours: str = "") -> Spent:
    """What `entries` spent on the data set of digest `data`, at `delta`: by default the largest any of its runs
    promised (or, for Laplace noise, the sum of its failures)."""
    mine = [entry for entry in entries if data in entry.data]
    sums = Prices(neighbours, mine)
    if delta is None:
        delta = max((entry.delta for entry in mine), default=0.0) or sums.least_delta()
    return Spent(data, len({run_of(entry.run) for entry in mine}), sums.releases, sums.epsilon(delta), delta)


def releases_left(before: Prices, planned: Entry, budget: tuple[float, float], at_most: int = 10**9) -> int:
    """The largest number (up to `at_most`) of further releases like `planned` that stays within `budget`."""
    low, high = 0, at_most + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if within(before.copy().add(planned, middle), budget) else (low, middle)
    return low


def require_budget(
    entries: Sequence[Entry], planned: Entry, releases: int, budget: tuple[float, float], unknown: int = 0
) -> None:
    """Returns if `releases` more releases like `planned` stay within `budget` = (epsilon, delta) on each of its data,
    for its neighbours.

    UsageError otherwise. `unknown`: torn lines of unknown price (`Book.unknown`), counted like `planned`. The
    comparison allows for 1e-9 relative rounding, so that a run planned for exactly what is left is let through.
    """
    epsilon, delta = check_epsilon(budget[0]), budget[1]
    if delta != 0:
        check_delta(delta)
    if releases:
        check_count("releases", releases)
    for digest in planned.data:
        before = Prices(planned.neighbours, (entry for entry in entries if digest in entry.data)).add(planned, unknown)
        after = before.copy().add(planned, releases)
        if not within(after, budget):
            left = releases_left(before, planned, budget, releases)
            name = dict(zip(planned.data, planned.names, strict=False)).get(digest, digest[:16])
            raise UsageError(
                f"the budget for data {name} is epsilon {epsilon:g}, delta {delta:g}; {before.releases} "
                f"releases are spent or reserved and {releases} more would make epsilon {after.filtered(delta):.4g}; "
                f"plan at most {left} at this scale, add noise, or raise <<budget>>",
                code="budget",
            )


def require_stages(
    before: Sequence[Entry], after: Sequence[Entry], planned: Entry, budget: tuple[float, float], unknown: int = 0
) -> None:
    """Returns if `after` stays within `budget` on each data set of `planned`, for its neighbours: what counts with all
    stages of a run, where `before` counts without them. UsageError otherwise. `unknown`: as of `require_budget`."""
    for digest in planned.data:
        sums = [Prices(planned.neighbours, (e for e in es if digest in e.data)) for es in (before, after)]
        whole = sums[1].add(planned, unknown)
        if not within(whole, budget):
            name = dict(zip(planned.data, planned.names, strict=False)).get(digest, digest[:16])
            raise UsageError(
                f"all stages of a run must fit into the budget for data {name}, epsilon {budget[0]:g}, delta "
                f"{budget[1]:g}; {sums[0].releases} releases are spent or reserved and all of this run would make "
                f"epsilon {whole.filtered(budget[1]):.4g}; wait for runs beside it, add noise, or raise <<budget>>",
                code="budget",
            )


def within(spending: Spending | Prices, budget: tuple[float, float]) -> bool:
    """Whether the releases stay within (epsilon, delta), up to 1e-9 relative for the arithmetic, by what is proved of
    filters."""
    return spending.filtered(budget[1]) <= budget[0] * (1 + _ROUNDING)


def parse_budget(text: str) -> tuple[float, float]:
    """(epsilon, delta) written "EPS,DELTA", as on the command line; delta may be 0."""
    try:
        epsilon, delta = (float(part) for part in text.split(","))
    except (TypeError, ValueError, AttributeError):
        raise UsageError(
            f'<<budget>> is two numbers in one text, EPS,DELTA; got {text!r}; write for example "1,1e-5"', code="type"
        ) from None
    if delta != 0:
        check_delta(delta)
    return check_epsilon(epsilon), delta
