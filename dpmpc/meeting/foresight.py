"""Before anything is spent: how large a difference a meeting would see, from public sizes alone, and which epsilon it
would take.

Seen is a difference of which the test `elsewhere` says so with probability `SEEN`: of n records a share f lies where
the others' do not, in a column whose records lie evenly in c cells. d then is -f n/c in each of these, so that along
them it is f n / sqrt(c v) deviations, v of `differences`, and that must be its bound and z(SEEN) more. Where f is 1 the
test `moved` says so no later than if these cells were known to it and its share of false alarms an even one: it does
not know them, but it sees as well where the site's records are instead. Codings
that are tried by name show earlier.
"""

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import TYPE_CHECKING

from dpmpc.errors import number_of
from dpmpc.meeting.differences import ALARMS, PARTS
from dpmpc.privacy.gaussian import epsilon_of_mu, mu_of_budget

if TYPE_CHECKING:
    from dpmpc.meeting.source import MeetingSource

SEEN = 0.95
VALUES = (2, 6)  # that a column's records are spread over: a yes or no, a number or a list
_MIDDLE = 4


def bound(tests: int, test: str = "elsewhere") -> float:
    """How many deviations a difference must be where so many sites and columns are compared, to be seen by a test."""
    normal = NormalDist()
    return -normal.inv_cdf(ALARMS * PARTS[test] / tests) + normal.inv_cdf(SEEN)


def least(sizes: Sequence[int], site: int, noise: float, tests: int, values: int) -> float:
    """The least share of a site's records whose wrong coding is seen; above 1 where not even that of all is."""
    n, others = sizes[site], len(sizes) - 1
    ratio = n / (sum(sizes) - n)
    chance = (n + n * ratio) * (1 - 1 / values) / values
    v = noise**2 * (1 + others * ratio**2) + chance
    deviation = math.sqrt(values * v) / n  # of the share
    share, whole = bound(tests) * deviation, bound(tests, "moved") * deviation
    return share if share <= 1 else max(1.0, whole)  # where all are moved, that is seen earlier


def needed(sizes: Sequence[int], noise: float, tests: int, epsilon: float, delta: float) -> float:
    """The epsilon by which the wrong coding of all records of any site is seen in a column of some values; inf where
    chance alone hides it. `noise`: at `epsilon`."""
    most = math.inf
    for n in sizes:
        others, ratio = len(sizes) - 1, n / (sum(sizes) - n)
        chance = (n + n * ratio) * (1 - 1 / _MIDDLE) / _MIDDLE
        left = (n / bound(tests, "moved")) ** 2 / _MIDDLE - chance
        most = min(most, math.sqrt(max(left, 0.0) / (1 + others * ratio**2)))
    if not most:
        return math.inf
    return epsilon_of_mu(mu_of_budget(epsilon, delta) * noise / most, delta)


def lines_of(meeting: "MeetingSource", sizes: Sequence[int], noise: float) -> list[str]:
    """A line for each weight of columns."""
    tests, found = meeting.owners * len(meeting.columns), []
    order = sorted(range(len(sizes)), key=lambda j: sizes[j])
    for times in sorted({meeting.asks.times(name) for name in meeting.columns}, reverse=True):
        names = [name for name in meeting.columns if meeting.asks.times(name) == times]
        said = []
        for site in {sizes[j]: j for j in (order[0], order[-1])}.values():
            each = [(values, least(sizes, site, noise / times, tests, values)) for values in VALUES]
            shares = [f"{share:.0%}" if share <= 1 else "not even all" for _, share in each]
            said.append(
                f"of a site's {number_of(sizes[site], 'record')} {shares[0]} where a column has {VALUES[0]} frequent "
                f"values, {shares[1]} where it has {VALUES[1]}"
            )
        found.append(
            f"{', '.join(names[:8])}{f' and {len(names) - 8} more' if len(names) > 8 else ''}: counts are off by "
            f"{noise / times:.3g}; coded otherwise, so many are seen in {SEEN:.0%} of meetings: {'; '.join(said)}"
        )
    return found
