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
from dpmpc.privacy.checks import check_count, check_delta, check_epsilon, check_positive
from dpmpc.privacy.discrete import ROUNDING_WIDTH, rounding_log_ratio, smoothing_error
from dpmpc.privacy.gaussian import epsilon_of_mu
from dpmpc.privacy.guarantee import Guarantee, combine

Floats = NDArray[np.float64]


def most_colluding(sites: int) -> int:
    """ceil(S/3) - 1: the most colluding sites that Theorem 1 allows."""
    return math.ceil(check_count("the number of sites", sites) / 3) - 1


def own_deviation(tau: float, sites: int) -> float:
    """Equation (3): the standard deviation of g_s, tau / sqrt(S)."""
    return tau / math.sqrt(check_count("the number of sites", sites))


def aggregate_deviation(taus: Sequence[float], weights: Sequence[float]) -> float:
    """The noise of sum_s w_s a_s when each site's own noise is tau_s / sqrt(S) and the weighted e_s cancel.

    Lemma 1: tau / S = tau_c for weights 1/S and equal tau. With tau_s = kappa/n_s and w_s = n_s/n: kappa/n.
    """
    return math.sqrt(math.fsum((w * own_deviation(t, len(taus))) ** 2 for w, t in zip(weights, taus, strict=True)))


def conventional_deviation(taus: Sequence[float], weights: Sequence[float]) -> float:
    """The same when every site adds independent noise of tau_s: what CAPE compares with (section 3.1)."""
    return math.sqrt(math.fsum((w * t) ** 2 for w, t in zip(weights, taus, strict=True)))


def gain(taus: Sequence[float]) -> float:
    """Proposition 1: tau_conv^2 / tau_cape^2 = S for equal weights, whatever the tau_s are."""
    weights = [1.0 / len(taus)] * len(taus)
    return (conventional_deviation(taus, weights) / aggregate_deviation(taus, weights)) ** 2


def variance_ratio(sizes: Sequence[int], sensitivity: Callable[[float], float] = lambda n: 1.0 / n) -> float:
    """H(n) = tau_cape^2 / tau_c^2 = sum_s Delta(n_s)^2 / (S^3 Delta(n)^2): plain mean of sites of these sizes.

    Remark 3 (Delta(n) = 1/n): H >= 1, with 1 at equal sizes alone: 1/n^2 is convex, so its sum is Schur-convex.
    Proposition 2: for convex Delta, H is least at equal sizes, where it is (Delta(n/S) / (S Delta(n)))^2: CAPE has
    the centre's noise iff Delta(n/S) = S Delta(n); for general Delta iff sum_s Delta(n_s)^2 = S^3 Delta(n)^2.
    Departure: with weights n_s/n instead (`aggregate_deviation`) the ratio is 1 for all sizes if Delta(n) = c/n.
    """
    if not sizes or min(sizes) < 1:
        raise UsageError(f"every site holds at least one record; got sizes {list(sizes)[:8]}; leave empty sites out")
    return math.fsum(sensitivity(n) ** 2 for n in sizes) / (len(sizes) ** 3 * sensitivity(sum(sizes)) ** 2)


def dropped_variance(sites: int, dropped: int) -> float:
    """The noise of the mean over survivors, relative to tau^2: (k + 1) / (S (S - k)) when k sites vanish *after* e
    was dealt.

    Their e_s no longer cancel: Var sum_survivors e = tau^2 (S - k) k / S. The paper's "gain of S whatever drops out"
    holds for sites that vanish before the noise is dealt (then S is the survivors' number).
    """
    left = check_count("the number of sites left", check_count("the number of sites", sites) - dropped)
    return (dropped + 1) / (sites * left)


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


def conventional_scale(epsilon: float, delta: float, sensitivity: float) -> float:
    """Equation (1), the classical Gaussian mechanism: sqrt(2 log(1.25/delta)) Delta / epsilon; proved for epsilon <
    1."""
    return math.sqrt(2 * math.log(1.25 / check_delta(delta))) * sensitivity / check_epsilon(epsilon)


def epsilon_table(mu: float, delta: float, sites: int, honest: int) -> dict[str, float]:
    """epsilon at delta of the noise with which MPC has this mu, for each way to make it (total noise the same)."""
    table = {"mpc": epsilon_of_mu(mu, delta)}
    for name in ("masks", "cape", "pairs", "none"):
        table[name] = epsilon_of_mu(mu * collusion_factor(sites, honest, name), delta)
    return table


def covariance(sites: int, zero_sum: str = "cape") -> tuple[Floats, Floats]:
    """(A, K): the adversary-independent picture of the noise in units of kappa, for checking by linear algebra.

    Row s of A expresses what site s adds to its n_s f(D_s) by independent standard normals: x_1 .. x_S (or one for
    each pair) and then g_1 .. g_S. K lists, for every source, the sites that know it: K[s, i] = 1.
    """
    own = np.eye(sites) / math.sqrt(sites)
    if zero_sum == "cape":
        zero, known = np.eye(sites) - 1.0 / sites, np.eye(sites)
    else:
        pairs = [(i, j) for i in range(sites) for j in range(i + 1, sites)]
        zero, known = np.zeros((sites, len(pairs))), np.zeros((sites, len(pairs)))
        for k, (i, j) in enumerate(pairs):
            zero[i, k], zero[j, k] = 1.0 / math.sqrt(sites), -1.0 / math.sqrt(sites)
            known[[i, j], k] = 1.0
    return np.concatenate([zero, own], axis=1), np.concatenate([known, np.eye(sites)], axis=1)


def discrete_guarantee(
    own_steps: float,
    zero_sum_steps: float,
    change_steps: float,
    sites: int,
    honest: int,
    dimension: int,
    delta: float,
    *,
    zero_sum: str = "cape",
    releases: int = 1,
    tv_per_sample: float = 0.0,
) -> Guarantee:
    """The guarantee of CAPE in whole grid steps, towards colluding sites: what `noise.zero_sum` makes, every error
    counted.

    own_steps: the parameter of each site's discrete Gaussian g_s; zero_sum_steps: of x_s ("cape") or of one pair's
    draw ("pairs"). change_steps: how far one record moves a site's integer vector, L2, rounding included. `delta` is
    that of the ideal law; the result's is larger by the samplers' failures.

    Guarantees: the colluders know an integer linear image z of the honest draws: (sum of x, x + g), or B w + g for
    pairs w. Its probability is a sum of Gaussian weights over a lattice of preimages. By Poisson summation that is a
    Gaussian weight of z with the continuous covariance V, times 1 +- e with e <= (1 + smoothing_error(v))^N - 1: N =
    H - 1 and v = width/sqrt(H) for {x : sum x = 0}, whose dual has |w|^2 >= (1/H) sum_(i<H) w_i^2; N the number of
    pairs and v^2 the least eigenvalue of (I/x2 + B'B/g2)^-1 for pairs. A Gaussian on the integers is within e^(+-t)
    of a random rounding of width s = 1.5 of N(., V - s^2 I) (docs/privacy.md, "Discrete Gaussian", step 2, which
    needs V - s^2 I to be positive alone). So mu is at most 1/sqrt(1 - s^2/v) times that of V, v its least eigenvalue.
    """
    H, g2, x2 = honest, own_steps**2, zero_sum_steps**2
    check_positive("noise in grid steps", min(own_steps, zero_sum_steps))
    if zero_sum == "cape":
        # V of (sum x, x + g): [[H x2, x2 1'], [x2 1, (x2 + g2) I]]; its 2 x 2 part along 1 has determinant H x2 g2
        least = H * x2 * g2 / ((H + 1) * x2 + g2)
        mu2 = change_steps**2 * (1 / (H * g2) + (1 - 1 / H) / (x2 + g2))
        narrow, terms, coordinates = math.sqrt(x2 * g2 / (x2 + g2) / H), H - 1, H + 1
    elif zero_sum == "pairs":
        least = g2
        mu2 = change_steps**2 * (1 / (H * g2) + (1 - 1 / H) / (H * x2 + g2))
        narrow, terms, coordinates = math.sqrt(x2 * g2 / (g2 + H * x2)), H * (H - 1) // 2, H
    else:
        raise UsageError(f"zero-sum noise on the grid is made by cape or pairs; got {zero_sum!r}; use one of these")
    if least <= 4 * ROUNDING_WIDTH**2 or narrow < 1.0:
        raise UsageError(
            "noise must be wider than the grid for exact accounting; its narrowest width is "
            f"{min(narrow, least**0.5):.3g} steps; refine the grid"
        )
    mu = math.sqrt(mu2 * releases / (1 - ROUNDING_WIDTH**2 / least))
    lattice = math.expm1(terms * math.log1p(smoothing_error(narrow)))
    # twice, for the constants that make both laws sum to 1
    t = 2 * releases * dimension * (coordinates * rounding_log_ratio(math.sqrt(least)) + 2 * lattice)
    draws = releases * dimension * (terms + H if zero_sum == "pairs" else 2 * H)
    return combine(epsilon_of_mu(mu, delta), delta, log_ratio=t, sampler_failure=draws * tv_per_sample)
