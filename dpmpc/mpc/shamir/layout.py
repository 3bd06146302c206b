"""Who deals, masks, opens and sends what in Shamir sharing over F_p among many parties. Pure combinatorics and public
constants.

Party i sits at the point i + 1. *Dealings*: every party deals random sharings of degree t; the t parties after the
dealer take their shares from streams they have in common with it, it chooses its own, and the n - t - 1 others are sent
theirs, which those t + 1 determine. n dealings give n - t sharings that nobody knows, by a Vandermonde matrix whose
points are powers of two, so that its products are rotations (Damgaard and Nielsen 2007). *Kings*: a vector of products
is cut into n slices, and party k opens slice k.
"""

import functools

from dpmpc.errors import UsageError
from dpmpc.lazy import cached_property, dataclass
from dpmpc.mpc.numbers import field

MOST_PARTIES = 32  # the extraction allows 61, 128-bit sums of products 63


@dataclass(frozen=True)
class ManyLayout:
    """The public plan of the engine for n parties with threshold t, 1 <= t, 2t < n <= 32."""

    parties: int
    threshold: int
    prime: int = field.P

    def __post_init__(self) -> None:
        if not 3 <= self.parties <= MOST_PARTIES:
            raise UsageError(
                f"Shamir sharing among many parties takes 3 to {MOST_PARTIES} of them; got n = {self.parties}; "
                f"mend <<parties>>",
                code="range",
            )
        if not 1 <= self.threshold or not 2 * self.threshold < self.parties:
            raise UsageError(
                f"the threshold t must satisfy 1 <= t and 2t < n, for with t = 0 a share is the secret; got "
                f"t = {self.threshold}, n = {self.parties}; mend <<threshold>> or <<parties>>",
                code="range",
            )

    @staticmethod
    @functools.cache
    def of(parties: int, threshold: int) -> "ManyLayout":
        """The layout for n parties with threshold t. Errors: UsageError unless 1 <= t, 2t < n, 3 <= n <= 32."""
        return ManyLayout(parties, threshold)

    # -- random sharings -----------------------------------------------------------------------------------------------
    @property
    def extracted(self) -> int:
        """Sharings that one dealing of each party gives."""
        return self.parties - self.threshold

    def columns(self, count: int) -> int:
        """Dealings of each party that give `count` sharings."""
        return -(-count // self.extracted)

    def seeded(self, dealer: int) -> list[int]:
        """Those who take their shares from streams in common with the dealer."""
        return [(dealer + k) % self.parties for k in range(1, self.threshold + 1)]

    def sent(self, dealer: int) -> list[int]:
        """Those whom the dealer sends their shares."""
        return [(dealer + k) % self.parties for k in range(self.threshold + 1, self.parties)]

    def dealers_to(self, party: int) -> list[int]:
        """Those who send `party` its share."""
        return [(party - k) % self.parties for k in range(self.threshold + 1, self.parties)]

    @cached_property
    def _interpolations(self) -> list[list[list[int]]]:
        return [self._interpolation(dealer) for dealer in range(self.parties)]

    def interpolation(self, dealer: int) -> list[list[int]]:
        """Row for each of `sent`: its share from the shares of the dealer and of `seeded`."""
        return self._interpolations[dealer]

    def _interpolation(self, dealer: int) -> list[list[int]]:
        given = tuple(i + 1 for i in (dealer, *self.seeded(dealer)))
        return [list(field.lagrange(given, receiver + 1, self.prime)) for receiver in self.sent(dealer)]

    @property
    def checks_degrees(self) -> bool:
        """Whether the shares of honest parties could be of no polynomial of degree t: there are t + 1 or more of them,
        and t + 1 are always of one."""
        return self.parties > 2 * self.threshold + 1

    # -- products ------------------------------------------------------------------------------------------------------
    @cached_property
    def at_zero(self) -> list[int]:
        """Coefficients that give the value at 0 of a polynomial of degree below n from all n shares."""
        return list(field.lagrange(tuple(range(1, self.parties + 1)), 0, self.prime))

    def bounds(self, count: int, king: int) -> tuple[int, int]:
        """The slice of a vector of `count` words that `king` opens."""
        return king * count // self.parties, (king + 1) * count // self.parties

    def untold(self, king: int) -> list[int]:
        """The t parties whose share of what `king` opens is 0."""
        return [(king + k) % self.parties for k in range(1, self.threshold + 1)]

    def told(self, king: int) -> list[int]:
        """The n - t - 1 others."""
        return [(king + k) % self.parties for k in range(self.threshold + 1, self.parties)]

    def kings_of(self, party: int) -> list[int]:
        """The kings that tell `party` what they opened."""
        return [k for k in range(self.parties) if party in self.told(k)]

    def weight(self, king: int, party: int) -> int:
        """f(party + 1) for the polynomial f of degree t that is 1 at 0 and 0 at the points of `untold(king)`: e f is a
        sharing of an e that `king` opened."""
        return field.lagrange((0, *(j + 1 for j in self.untold(king))), party + 1, self.prime)[0]
