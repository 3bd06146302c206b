"""Comparisons that go deep share their deep bits: which samples do, which draw each of them takes, what that can break.

A comparison of 63 equality bits ends within the first k0 but for a chance of 2^-k0. So a sample has k0 bits of its own,
and a group of samples shares a few *deep draws*: complete samples of their own given that the first k0 bits are equal.
The r-th sample of a group whose k0 bits are all equal takes the r-th deep draw in place of its own value. Which index,
sign and bits it takes there is as good as its own: they are fresh, and independent of its first k0 bits.

Guarantees: let D_i say that sample i goes deep, and A that more than `slots` of a group do. Given any D_1 .. D_g
outside A, the samples are independent and each has the law that it has without sharing, given D_i: those with D_i = 0
have used nothing shared, the others a draw each of their own. The joint law of a group is therefore the product law
outside A, and the two differ in total variation by at most P(A) = P(Binomial(g, 2^-k0) > slots). In A, ranks beyond
`slots` take a value of the polynomial below that means nothing: neither the joint law nor any sample's own law is kept
there, and no bound on its size. So a group is charged P(A) once, as a whole; bounding each sample's own law and adding
up would not bound the joint law. D_i, the ranks and A stay secret.
"""

import functools
import math
from fractions import Fraction

import numpy as np

from dpmpc.lazy import cached_property, dataclass

from .arithmetic import Arithmetic, P, Public, Values, multiply

PAIRINGS = 3  # of the deep draws' prefix products: few products, and they end before the samples' own


@dataclass(frozen=True)
class Deep:
    """How comparisons share their deep bits; public.

    The defaults cost fewest bits and products among those that add less than 2^-69 to a sample's distance.
    """

    depth: int = 14  # k0: equality bits of a comparison's own
    slots: int = 7  # deep draws of a group
    group: int = 320  # samples of a group, at most

    def __post_init__(self) -> None:
        assert self.depth >= 1 and self.slots >= 1 and 2 <= self.group <= self.slots << self.depth

    def groups(self, count: int) -> int:
        """Groups that hold `count` samples."""
        return -(-count // self.group)

    def size(self, count: int) -> int:
        """Samples of each group: all groups are equal, and the last samples of the last may be left over."""
        return -(-count // max(1, self.groups(count)))

    def failure(self, size: int) -> Fraction:
        """P(A) for one group of `size` comparisons, exactly."""
        deep = Fraction(1, 1 << self.depth)
        within = sum(
            (math.comb(size, k) * deep**k * (1 - deep) ** (size - k) for k in range(min(size, self.slots) + 1)),
            Fraction(0),
        )
        return 1 - within

    @cached_property
    def per_sample(self) -> Fraction:
        """What a sample is charged for one comparison, so that every draw of N samples, for any N, pays for all of its
        groups.

        N samples are m = ceil(N / group) groups of g = ceil(N / m), so N > m (g - 1) and m P(A_g) is below N times
        P(A_g) / (g - 1). That grows with g up to `group`: P(A_g) is convex in g up to slots 2^k0, for its increment is
        comb(g, slots) q^(slots + 1) (1 - q)^(g - slots), and P(A_1) = 0.
        """
        return self.failure(self.group) / (self.group - 1)

    def charge(self, comparisons: int) -> float:
        """`per_sample` for samples of so many comparisons, each with deep draws of its own; rounded up."""
        return float(comparisons * self.per_sample) * (1 + 2.0**-40)

    def joint(self, count: int, comparisons: int = 1) -> Fraction:
        """A bound on the distance of the joint law of `count` samples from that without sharing: every group once."""
        return self.groups(count) * comparisons * self.failure(self.size(count))


@functools.lru_cache(maxsize=16)
def _interpolation(slots: int) -> Public:
    """(slots, slots): coefficients of the polynomial of degree slots - 1 from its values at 1 .. slots, mod p; row j is
    that of x^j."""
    rows = []
    for r in range(1, slots + 1):
        poly, scale = [1], 1
        for s in range(1, slots + 1):
            if s != r:  # times (x - s) / (r - s)
                poly = [(a - s * b) % P for a, b in zip([0, *poly], [*poly, 0], strict=True)]
                scale = scale * (r - s) % P
        inverse = pow(scale, -1, P)
        rows.append([c * inverse % P for c in poly])
    centred = [[c - P if c > P // 2 else c for c in column] for column in zip(*rows, strict=True)]
    return np.array(centred, dtype=np.int64)


async def rank_powers(engine: Arithmetic, goes_deep: Values, slots: int) -> Values:
    """(slots, g, *tail): D rank^j for j = 0 .. slots - 1, where rank counts the samples from the first to this one that
    go deep; `goes_deep` is D (g, *tail).

    Cost: slots - 1 products a sample, 1 + ceil(log2(slots - 1)) rounds.
    """
    rank, step = goes_deep, 1
    while step < len(goes_deep):
        rank = engine.join([rank[:step], engine.add(rank[step:], rank[:-step])])
        step *= 2
    powers = goes_deep[None]
    if slots > 1:
        powers = engine.join([powers, (await multiply(engine, goes_deep, rank))[None]])
    while len(powers) < slots:  # (D rank)^j = D rank^j for j >= 1, because D^2 = D
        most = min(slots, 2 * len(powers) - 1)
        exponents = range(len(powers), most)
        left = engine.join([powers[j // 2 : j // 2 + 1] for j in exponents])
        right = engine.join([powers[j - j // 2 : j - j // 2 + 1] for j in exponents])
        powers = engine.join([powers, await multiply(engine, left, right)])
    return powers


def deal_out(engine: Arithmetic, draws: Values, size: int) -> Values:
    """(slots, size, *tail): what the powers of a rank are to be multiplied with, so that the sum is the draw of that
    rank; `draws` (slots, *tail). Local."""
    each = engine.matrix(_interpolation(len(draws)), draws)[:, None]
    return engine.add(each, engine.constant(np.zeros((1, size), dtype=np.int64)))
