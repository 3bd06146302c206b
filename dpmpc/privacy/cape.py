"""CAPE (Imtiaz, Mohammadi and Sarwate 2019): noise of which most cancels in the sum, and what colluding sites make of
it.

S sites hold n_s records each, n in all. A record at site s moves n_s f(D_s) by at most c (2G for mean gradients, 1
for a mean of numbers in [0, 1]), so f(D_s) by Delta_s = c/n_s. With kappa the noise that a trusted centre would put
on the *sum* (tau_s = kappa/n_s is what site s would add if it published alone, tau_c = kappa/n the centre's), site s
sends

    a_s = f(D_s) + e_s + g_s,   Var e_s = (1 - 1/S) tau_s^2 (2),   Var g_s = tau_s^2 / S (3),   sum_s n_s e_s = 0,

and the aggregator takes sum_s (n_s/n) a_s, whose noise is sum_s (n_s/n) g_s, of variance tau_c^2: the centre's (Lemma
1). For n_s = n/S these are the paper's Algorithms 1 and 2. **Inferred**: the seed's text has lost its formulas
(1)-(5); what is here follows from the sentences around them, and the tests rebuild it from covariance matrices.

**What is known to whom** (our derivation of Theorem 1). Let b_s = n_s a_s - n_s f(D_s) be the noise in sums. With
e_s n_s = x_s - (1/S) sum_r x_r and x_s independent N(0, kappa^2), H honest sites and S - H colluding ones, who know
their own x_s, e_s, g_s and the broadcast sum of all x: for them the honest sum of x is a known number, and given it
the honest x have covariance kappa^2 (I - 11'/H). So the honest sites' outputs are Gaussian with covariance

    kappa^2 (I - 11'/H) + (kappa^2/S) I:   kappa^2/S along 1 / sqrt(H),   kappa^2 (1 + 1/S) across.

One record moves one coordinate by c, of which c/sqrt(H) lies along 1, hence

    mu^2 = (c/kappa)^2 (S/H + (1 - 1/H) S/(S + 1)),

and the outputs are exactly as private as one Gaussian release with this mu (`gaussian`): tight for every (epsilon,
delta). A trusted centre, or noise made inside MPC, has mu = c/kappa whoever colludes; sites that add independent
noise of the same total have mu = sqrt(S) c/kappa.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from dpmpc.errors import UsageError
from dpmpc.privacy.checks import check_count, check_epsilon, check_positive
from dpmpc.privacy.gaussian import epsilon_of_mu

Floats = NDArray[np.float64]


def most_colluding(sites: int) -> int:
    """ceil(S/3) - 1: the most colluding sites that Theorem 1 allows."""
    return math.ceil(check_count("the number of sites", sites) / 3) - 1


def variance_ratio(sizes: Sequence[int], sensitivity: Callable[[float], float] = lambda n: 1.0 / n) -> float:
    """H(n) = tau_cape^2 / tau_c^2 = sum_s Delta(n_s)^2 / (S^3 Delta(n)^2): plain mean of sites of these sizes.

    Remark 3 (Delta(n) = 1/n): H >= 1, with 1 at equal sizes alone: 1/n^2 is convex, so its sum is Schur-convex.
    Proposition 2: for convex Delta, H is least at equal sizes, where it is (Delta(n/S) / (S Delta(n)))^2: CAPE has
    the centre's noise iff Delta(n/S) = S Delta(n); for general Delta iff sum_s Delta(n_s)^2 = S^3 Delta(n)^2.
    Departure: with weights n_s/n instead the ratio is 1 for all sizes if Delta(n) = c/n.
    """
    if not sizes or min(sizes) < 1:
        raise UsageError(f"every site holds at least one record; got sizes {list(sizes)[:8]}; leave empty sites out")
    return math.fsum(sensitivity(n) ** 2 for n in sizes) / (len(sizes) ** 3 * sensitivity(sum(sizes)) ** 2)


def collusion_factor(sites: int, honest: int, zero_sum: str = "cape") -> float:
    """mu / mu_MPC for the honest sites' outputs in the sight of the S - H others and everybody outside.

    zero_sum: how e_s is made, always with own noise kappa^2/S:
    - "cape": as in Algorithm 1, sqrt(S/H + (1 - 1/H) S/(S + 1));
    - "pairs": as a sum of one shared Gaussian of variance kappa^2/S with every other site: the same covariance, but a
      colluding site knows its own pairs, so the honest ones keep kappa^2 (H/S)(I - 11'/H):
      sqrt(S/H + (1 - 1/H) S/(H + 1));
    - "masks": uniform on the ring (secure aggregation), which is what both tend to as e grows: sqrt(S/H);
    - "none": independent noise of the same total, sqrt(S).
    """
    check_count("the number of sites", sites)
    if not 1 <= check_count("the number of honest sites", honest) <= sites:
        raise UsageError(f"between 1 and all {sites} sites are honest; got {honest}; give their number")
    along, across = sites / honest, 1.0 - 1.0 / honest
    if zero_sum == "cape":
        return math.sqrt(along + across * sites / (sites + 1))
    if zero_sum == "pairs":
        return math.sqrt(along + across * sites / (honest + 1))
    if zero_sum == "masks":
        return math.sqrt(along)
    if zero_sum == "none":
        return math.sqrt(sites)
    raise UsageError(f"zero-sum noise is made by cape, pairs, masks or none; got {zero_sum!r}; use one of these")


def theorem_delta(epsilon: float, mu: float) -> float:
    """delta of Theorem 1's relation: 2 (s/(epsilon - m)) phi((epsilon - m)/s) with m = mu^2/2, s = mu; 1 if epsilon
    <= m.

    The log ratio z is N(m, s^2); 2 Q(x) <= 2 phi(x)/x. The factor 2 (both tails) and the tail bound are not needed:
    `gaussian_delta` is exact. Inferred from the proof's last lines; (4) and (5) are m and s^2.
    """
    check_epsilon(epsilon)
    check_positive("mu", mu)
    x = (epsilon - mu * mu / 2) / mu
    if x <= 0:
        return 1.0
    return min(1.0, 2.0 / x * math.exp(-x * x / 2) / math.sqrt(2 * math.pi))


def epsilon_table(mu: float, delta: float, sites: int, honest: int) -> dict[str, float]:
    """epsilon at delta of the noise with which MPC has this mu, for each way to make it (total noise the same)."""
    table = {"mpc": epsilon_of_mu(mu, delta)}
    for name in ("masks", "cape", "pairs", "none"):
        table[name] = epsilon_of_mu(mu * collusion_factor(sites, honest, name), delta)
    return table
