"""With which release an owners' process begins where it may come late, as a value. `session` and `client` have the
connections; every order of events is tried in `tests/aggregation/test_participation.py`."""

from collections.abc import Collection
from dataclasses import replace

from dpmpc.lazy import dataclass


@dataclass(frozen=True)
class FirstRelease:
    """`first`: the release with which this process may begin; `behind`: the parties wait to hear with which it does."""

    first: int = 0
    behind: bool = False

    def named(self, releases: Collection[int], least: int, most: int) -> "FirstRelease":
        """Every party that is left has named a release; from `least` on nothing is spent here, and there are `most`.
        The latest counts: no party has closed it, and none has a share of it from an earlier process."""
        return replace(self, first=min(max(*releases, least), most), behind=True)

    def misses(self, release: int, *, told: bool) -> bool:
        """Whether this process gets a release without having taken part; `told`: all parties have published it."""
        return release < self.first or (self.behind and told)

    def begins(self) -> "FirstRelease":
        """The parties hear with which release it begins, as it sends its shares."""
        return replace(self, behind=False)
