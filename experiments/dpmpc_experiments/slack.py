"""Objective perturbation: the extra regulariser that makes the Jacobian of the perturbed minimiser private too."""

import math

from scipy.stats import chi2


def slack(epsilon: float, lam: float, n: float, c: float) -> tuple[float, float]:
    """(Delta, epsilon'): extra regularisation, and what is left of epsilon for the noise; c bounds the second
    derivative.

    Source: Chaudhuri et al. 2011, Algorithm 2; Rajkumar and Agarwal 2012, Procedure 2 (computeSlack); they agree, since
    log(1 + 2c/(n lam) + c^2/(n lam)^2) = 2 log(1 + c/(n lam)).
    """
    left = epsilon - 2.0 * math.log1p(c / (n * lam))
    if left > 0:
        return 0.0, left
    return c / (n * math.expm1(epsilon / 4)) - lam, epsilon / 2


def gaussian_objective_scale(epsilon: float, delta: float, d: int) -> float:
    """sigma*: the standard deviation of Gaussian objective noise on the sum of n losses with |gradient change| <= 2.

    Solves Pr(U <= (sigma^2 epsilon - 2)^2 / (4 sigma^2)) = 1 - delta for U ~ chi^2 with d degrees of freedom: with q
    the quantile, sigma = (sqrt(q) + sqrt(q + 2 epsilon)) / epsilon.
    Source: Rajkumar and Agarwal 2012, Procedure 3. Departure: it prints (sigma epsilon - 2)^2, which for epsilon < 2
    sqrt(q) holds only at sigma = 2/(epsilon + 2 sqrt(q)), a noise that *falls* as privacy grows. The density ratio is
    exp((|b'|^2 - |b|^2)/(2 sigma^2)) <= exp((4|b| + 4)/(2 sigma^2)), at most e^epsilon iff |b| <= (sigma^2 epsilon -
    2)/2.
    """
    root = math.sqrt(chi2.ppf(1.0 - delta, d))
    return (root + math.sqrt(root * root + 2.0 * epsilon)) / epsilon
