"""What the entries of ledgers cost together, and whether another run still fits into a budget."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from dpmpc.errors import UsageError
from dpmpc.privacy.checks import check_count, check_delta, check_epsilon
from dpmpc.privacy.entry import Entry
from dpmpc.privacy.guarantee import failure_factor
from dpmpc.privacy.law import LAWS
from dpmpc.privacy.mechanism import Mechanism
from dpmpc.privacy.spending import NOTHING_HIDDEN, Spending

OWNER = "owner"  # the coarsest neighbours: all of one owner's records
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

    A record is a part of an owner's records, so what was noted for owners bounds records too. A stated unit bounds
    nothing but itself; every unit is bounded by its owner's whole contribution, where that was noted.
    """
    mine = entry.neighbours
    if not neighbours or mine in (neighbours, OWNER) or (not mine and neighbours != OWNER):
        return entry.mechanism
    if entry.owner_sensitivity is None:
        return None
    return replace(entry.mechanism, sensitivity=entry.owner_sensitivity)


def total(entries: Sequence[Entry], neighbours: str = "") -> Spending:
    """The totals over `entries`, for these neighbours; by default each for those of its own line."""
    counts = Counter(mechanism_for(entry, neighbours) for entry in entries)
    return sum(
        (NOTHING_HIDDEN.times(k) if m is None else spending_of(m, k) for m, k in counts.items()), start=Spending()
    )


def spent(entries: Sequence[Entry], data: str, delta: float | None = None, neighbours: str = "") -> Spent:
    """What `entries` spent on the data set of digest `data`, at `delta`: by default the largest any of its runs
    promised (or, for Laplace noise, the sum of its failures)."""
    mine = [entry for entry in entries if data in entry.data]
    sums = total(mine, neighbours)
    if delta is None:
        delta = max((entry.delta for entry in mine), default=0.0)
        if delta == 0 and sums.failure > 0:
            delta = min(0.5, failure_factor(sums.pure + 2 * sums.log_ratio) * sums.failure * (1 + 1e-9))
    return Spent(data, len({entry.run for entry in mine}), sums.releases, sums.epsilon(delta), delta)


def releases_left(before: Spending, planned: Mechanism, budget: tuple[float, float], at_most: int = 10**9) -> int:
    """The largest number (up to `at_most`) of further releases of `planned` that stays within `budget`."""
    low, high = 0, at_most + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if within(before + spending_of(planned, middle), budget) else (low, middle)
    return low


def require_budget(
    entries: Sequence[Entry],
    data: Sequence[str],
    planned: Mechanism,
    releases: int,
    budget: tuple[float, float],
    unknown: int = 0,
    neighbours: str = "",
    names: Sequence[str] = (),
) -> None:
    """Returns if `releases` more releases of `planned` on each of `data` stay within `budget` = (epsilon, delta).

    UsageError otherwise. `unknown`: torn lines of unknown price (`Book.unknown`), counted like `planned`. The
    comparison allows for 1e-9 relative rounding, so that a run planned for exactly what is left is let through.
    `neighbours`: of `planned`, and of the budget. `names`: of `data`, for the error.
    """
    epsilon, delta = check_epsilon(budget[0]), budget[1]
    if delta != 0:
        check_delta(delta)
    if releases:
        check_count("releases", releases)
    for digest in data:
        mine = [entry for entry in entries if digest in entry.data]
        before = total(mine, neighbours) + spending_of(planned, unknown)
        after = before + spending_of(planned, releases)
        if not within(after, budget):
            left = releases_left(before, planned, budget, releases)
            name = dict(zip(data, names, strict=False)).get(digest, digest[:16])
            raise UsageError(
                f"the budget for data {name} is epsilon {epsilon:g}, delta {delta:g}; {before.releases} "
                f"releases are spent or reserved and {releases} more would make epsilon {after.filtered(delta):.4g}; "
                f"plan at most {left} at this scale, add noise, or raise --budget"
            )


def within(spending: Spending, budget: tuple[float, float]) -> bool:
    """Whether the releases stay within (epsilon, delta), up to 1e-9 relative for the arithmetic, by what is proved of
    filters."""
    return spending.filtered(budget[1]) <= budget[0] * (1 + _ROUNDING)


def parse_budget(text: str) -> tuple[float, float]:
    """(epsilon, delta) written "EPS,DELTA", as on the command line; delta may be 0."""
    try:
        epsilon, delta = (float(part) for part in text.split(","))
    except ValueError:
        raise UsageError(f"a budget is two numbers EPS,DELTA; got {text!r}; write for example 1,1e-5") from None
    if delta != 0:
        check_delta(delta)
    return check_epsilon(epsilon), delta
