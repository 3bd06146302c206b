"""What the entries of ledgers cost together, and whether another run still fits into a budget."""

from collections.abc import Sequence
from dataclasses import dataclass

from dpmpc.errors import UsageError
from dpmpc.privacy.checks import check_count, check_delta, check_epsilon
from dpmpc.privacy.guarantee import failure_factor
from dpmpc.privacy.law import LAWS
from dpmpc.privacy.ledger import Entry
from dpmpc.privacy.mechanism import Mechanism
from dpmpc.privacy.spending import NOTHING_HIDDEN, Spending

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


def total(entries: Sequence[Entry]) -> Spending:
    """The totals over `entries`."""
    return sum((spending_of(entry.mechanism) for entry in entries), start=Spending())


def spent(entries: Sequence[Entry], data: str, delta: float | None = None) -> Spent:
    """What `entries` spent on the data set of digest `data`, at `delta`: by default the largest any of its runs
    promised (or, for Laplace noise, the sum of its failures)."""
    mine = [entry for entry in entries if data in entry.data]
    sums = total(mine)
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
) -> None:
    """Returns if `releases` more releases of `planned` on each of `data` stay within `budget` = (epsilon, delta).

    UsageError otherwise. `unknown`: torn lines of unknown price (`Book.unknown`), counted like `planned`. The
    comparison allows for 1e-9 relative rounding, so that a run planned for exactly what is left is let through.
    """
    epsilon, delta = check_epsilon(budget[0]), budget[1]
    if delta != 0:
        check_delta(delta)
    check_count("releases", releases)
    for digest in data:
        before = total([entry for entry in entries if digest in entry.data]) + spending_of(planned, unknown)
        after = before + spending_of(planned, releases)
        if not within(after, budget):
            left = releases_left(before, planned, budget, releases)
            raise UsageError(
                f"the budget for data {digest[:16]} is epsilon {epsilon:g}, delta {delta:g}; {before.releases} "
                f"releases are spent and {releases} more would make epsilon {after.epsilon(delta):.4g}; "
                f"plan at most {left} at this scale, add noise, or raise --budget"
            )


def within(spending: Spending, budget: tuple[float, float]) -> bool:
    """Whether the releases stay within (epsilon, delta), up to 1e-9 relative for the arithmetic."""
    return spending.epsilon(budget[1]) <= budget[0] * (1 + _ROUNDING)


def parse_budget(text: str) -> tuple[float, float]:
    """(epsilon, delta) written "EPS,DELTA", as on the command line; delta may be 0."""
    try:
        epsilon, delta = (float(part) for part in text.split(","))
    except ValueError:
        raise UsageError(f"a budget is two numbers EPS,DELTA; got {text!r}; write for example 1,1e-5") from None
    if delta != 0:
        check_delta(delta)
    return check_epsilon(epsilon), delta
