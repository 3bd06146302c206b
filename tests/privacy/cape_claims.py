"""What the CAPE paper states beside what a run can do, to be tested: equations, gains, noise of pairs, the guarantee of
its noise in whole grid steps. Its notation and the derivation are those of `dpmpc.privacy.cape`."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from dpmpc.circuits.sampler import Sampler
from dpmpc.errors import UsageError
from dpmpc.mpc.clear.noise import clear_noise
from dpmpc.mpc.numbers.prg import Prg
from dpmpc.noise.zero_sum import Ints
from dpmpc.privacy.cape import Floats
from dpmpc.privacy.checks import check_count, check_delta, check_epsilon, check_positive
from dpmpc.privacy.discrete import ROUNDING_WIDTH, rounding_log_ratio, smoothing_error
from dpmpc.privacy.gaussian import epsilon_of_mu
from dpmpc.privacy.guarantee import Guarantee, combine


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


def dropped_variance(sites: int, dropped: int) -> float:
    """The noise of the mean over survivors, relative to tau^2: (k + 1) / (S (S - k)) when k sites vanish *after* e
    was dealt.

    Their e_s no longer cancel: Var sum_survivors e = tau^2 (S - k) k / S. The paper's "gain of S whatever drops out"
    holds for sites that vanish before the noise is dealt (then S is the survivors' number).
    """
    left = check_count("the number of sites left", check_count("the number of sites", sites) - dropped)
    return (dropped + 1) / (sites * left)


def conventional_scale(epsilon: float, delta: float, sensitivity: float) -> float:
    """Equation (1), the classical Gaussian mechanism: sqrt(2 log(1.25/delta)) Delta / epsilon; proved for epsilon <
    1."""
    return math.sqrt(2 * math.log(1.25 / check_delta(delta))) * sensitivity / check_epsilon(epsilon)


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


def from_pairs(
    site: int, keys: Mapping[int, bytes], sampler: Sampler, run: bytes, release: int, dimension: int
) -> Ints:
    """e_s (d,) of one site, in grid steps: secret; over all sites the e_s sum to exactly 0.

    keys: for every other site r the key that `site` and r alone hold. `run` and `release` name the streams: a vector
    is used for one release of one run, for the difference of two messages under one e_s shows the difference of the
    data.
    Guarantees: e_s is a sum of S - 1 independent draws of the sampler, so Var e_s = (S - 1) scale^2 and
    Cov(e_r, e_s) = -scale^2; with scale = kappa/sqrt(S) these are Algorithm 1's.
    Cost: S - 1 draws a coordinate at each site, no message, no round.
    """
    if site in keys:
        raise UsageError(f"a site shares no key with itself; keys of site {site} name it; give those of the others")
    total = np.zeros(dimension, dtype=np.int64)
    for other, key in keys.items():
        low, high = min(site, other), max(site, other)
        shared = clear_noise(sampler, dimension, Prg(key, "zero-sum", run, release, low, high))
        total += shared if site == low else -shared
    return total
