"""Which backend a run gets where nobody names one: replicated sharing or Shamir sharing, whichever computes less; two
parties, who have no honest majority, compute by oblivious transfer unless threshold 0 is asked for.

A replicated share of n parties with threshold t has comb(n - 1, t) parts, and an AND of two of them takes each party
comb(n, t)^2 / n products of parts: 7 at n = 3, 20 at 5, 38 at 6, 175 at 7, 1,764 at 9, 10^7 at 16. A Shamir share is
one number whatever n is. So the rule counts, for one sample, the words of 64 bits that a party computes with.
"""

import functools
import math

from dpmpc.circuits.sampler import Sampler
from dpmpc.errors import UsageError
from dpmpc.mpc.contract.backend import BACKENDS, DEFAULT, FOR_MANY, FOR_TWO
from dpmpc.privacy.law import LAWS

SHARING_WORDS = (
    16  # replicated words that take as long as one random sharing of Shamir's, made and used; measured 12..33
)
_SCALE = float(1 << 20)  # gates hardly depend on it
_LANES = 1 << 12
_CLEAR = 20  # products of parts that an AND may take without a count: n = 5, six times as fast for any law
_LARGEST = (7, 3)  # (n, t) at which gates are counted for larger ones, which have no fewer


@functools.lru_cache(maxsize=256)
def default_backend(law: str, sampler: str, parties: int, threshold: int | None) -> str:
    """The name of the backend that draws this law's sampler with less computing at each party. Two parties, which have
    no honest majority, compute by oblivious transfer, unless threshold 0 is asked for.

    Every process of a run takes the backend from the plan; only whoever plans counts. Errors: UsageError as the
    registry of laws has it.
    """
    if parties == 2 and threshold != 0:
        return FOR_TWO
    t = (parties - 1) // 2 if threshold is None else threshold
    if parties < 3 or not 1 <= t or not 2 * t < parties or sampler not in LAWS[law].samplers:
        return DEFAULT  # which says what is wrong, if anything is
    if math.comb(parties, t) ** 2 / parties <= _CLEAR:
        return DEFAULT
    try:
        chosen = LAWS[law].sampler(sampler, _SCALE)
        ours = BACKENDS[FOR_MANY].count_noise(chosen, _LANES, 3, 1).sample
    except UsageError:  # a law that has no arithmetic circuit
        return DEFAULT
    return FOR_MANY if replicated_words(chosen, parties, t) > SHARING_WORDS * sum(ours.values()) else DEFAULT


def replicated_words(sampler: Sampler, parties: int, threshold: int) -> float:
    """Words that a party of the replicated engine computes with for one sample: products of parts, and parts drawn."""
    parts = math.comb(parties, threshold)
    at = (parties, threshold) if parts <= math.comb(*_LARGEST) else _LARGEST
    gates = BACKENDS[DEFAULT].count_noise(sampler, _LANES, *at).sample
    return (gates["ands"] * parts**2 / parties + gates["random bits"] * math.comb(parties - 1, threshold)) / 64
