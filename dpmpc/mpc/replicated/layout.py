"""Who holds, multiplies and sends what in replicated secret sharing over F_2, for any (n, t) with 2t < n. Pure
combinatorics.

A bit x is the XOR of one component a subset S of n - t parties; the members of S hold x_S. Any t parties miss one
component.
"""

import functools
import itertools

from dpmpc.lazy import cached_property, dataclass
from dpmpc.mpc.numbers.field import subsets as all_subsets

Subset = tuple[int, ...]


@dataclass(frozen=True)
class SharingLayout:
    """The public plan of the sharing engine."""

    parties: int
    threshold: int
    subsets: tuple[Subset, ...]

    @staticmethod
    @functools.cache
    def of(parties: int, threshold: int) -> "SharingLayout":
        """The layout for n parties with threshold t."""
        return SharingLayout(parties, threshold, tuple(all_subsets(parties, threshold)))

    def mine(self, party: int) -> list[Subset]:
        """The components of a party, in the order of its arrays."""
        return [s for s in self.subsets if party in s]

    def target(self, party: int) -> Subset:
        """The component that takes what `party` adds to a product: it and its n - t - 1 successors."""
        return tuple(sorted((party + k) % self.parties for k in range(self.parties - self.threshold)))

    def receivers(self, party: int) -> list[int]:
        """To whom a party sends its part of each product."""
        return [j for j in self.target(party) if j != party]

    @cached_property
    def _products(self) -> dict[int, dict[Subset, list[Subset]]]:
        """For each party, the component products x_S y_S' it computes: S -> all S'. Each pair goes to the least loaded
        common member."""
        load = [0] * self.parties
        plan: dict[int, dict[Subset, list[Subset]]] = {i: {} for i in range(self.parties)}
        pairs = sorted(itertools.product(self.subsets, repeat=2), key=lambda p: len(set(p[0]) & set(p[1])))
        for left, right in pairs:
            party = min(sorted(set(left) & set(right)), key=lambda i: (load[i], left not in plan[i]))
            load[party] += 1
            plan[party].setdefault(left, []).append(right)
        return plan

    def products(self, party: int) -> list[tuple[int, list[int]]]:
        """(k, [l, ...]) for each left component: the party computes the XOR of x_k & (y_l ^ ...), in positions of
        `mine`."""
        place = {s: k for k, s in enumerate(self.mine(party))}
        return [(place[left], [place[r] for r in rights]) for left, rights in self._products[party].items()]

    @property
    def opened_to(self) -> Subset:
        """The last subset: its members see the masked value of a conversion; every other subset holds a mask."""
        return self.subsets[-1]

    @property
    def product_senders(self) -> tuple[int, ...]:
        """The 2t + 1 parties whose shares of degree 2t are opened."""
        return tuple(range(self.parties - 2 * self.threshold - 1, self.parties))

    @cached_property
    def opening_sends(self) -> list[tuple[int, int, tuple[Subset, ...]]]:
        """(sender, receiver, components) that give the members of `opened_to` every component they lack; the load is
        spread."""
        load = [0] * self.parties
        sends: dict[tuple[int, int], list[Subset]] = {}
        for receiver in self.opened_to:
            for s in self.subsets:
                if receiver not in s:
                    sender = min(s, key=lambda i: (load[i], i))
                    load[sender] += 1
                    sends.setdefault((sender, receiver), []).append(s)
        return [(i, j, tuple(parts)) for (i, j), parts in sorted(sends.items())]
