"""The Gaussian mechanism over T adaptive releases: scale, epsilon, delta and number of releases, each from the others.

T releases of L2 sensitivity Delta with N(0, sigma^2 I) noise are exactly as private as one release with
mu = sqrt(T) Delta / sigma, and then

    delta(epsilon) = Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu)            (calibration "tight")

is the smallest delta that holds (derived in docs/privacy.md). "zcdp" uses rho = mu^2/2 and epsilon = rho + 2 sqrt(rho
L), L = log(1/delta), solved exactly: rho = (sqrt(L + epsilon) - sqrt(L))^2. "paper" is the printed formula of
Jayaraman et al. 2018, Theorem 3.4, which drops the term rho: mu = epsilon / sqrt(2 L).

Every inverse is rounded to the private side by 1e-12 relative, which is more than the arithmetic can be wrong by.
Source: Balle and Wang 2018, Theorem 8 (one release); Dong, Roth and Su 2022, Corollary 3.3 (composition);
Bun and Steinke 2016, Propositions 1.3, 1.6 and Lemma 1.7 (zCDP).
"""

import functools
import math
from collections.abc import Callable
from typing import Literal

from dpmpc.errors import UsageError
from dpmpc.privacy.checks import check_count, check_delta, check_epsilon, check_positive

Calibration = Literal["tight", "zcdp", "paper"]

_SAFE = 1e-12
_UNIT = 2.0**-52
# Half of the 20 nodes and weights of Gauss and Legendre, which others take an eigenvalue solver for, and so other last
# bits on other processors.
_HALF = (
    (0.07652652113349734, 0.15275338713072628), (0.22778585114164507, 0.14917298647260424),
    (0.37370608871541955, 0.1420961093183824), (0.5108670019508271, 0.1316886384491769),
    (0.636053680726515, 0.1181945319615186), (0.7463319064601508, 0.1019301198172407),
    (0.8391169718222188, 0.08327674157670471), (0.912234428251326, 0.06267204833410879),
    (0.9639719272779138, 0.040601429800386446), (0.993128599185095, 0.017614007139150893),
)  # fmt: skip
_NODES = (*(-node for node, _ in reversed(_HALF)), *(node for node, _ in _HALF))
_WEIGHTS = (*(weight for _, weight in reversed(_HALF)), *(weight for _, weight in _HALF))
_FROM_START = tuple((1 + node, weight) for node, weight in zip(_NODES, _WEIGHTS, strict=True))  # of the interval
_ROOT_2, _ROOT_HALF_PI = math.sqrt(2), math.sqrt(math.pi / 2)


def _mills(x: float) -> float:
    """Mills' ratio Phi(-x)/phi(x), relative error below 2e-13, for x > -37.

    Every party derives its noise scale, so this does without SciPy, whose import would cost a party more than its run.
    Source for large x: Laplace's continued fraction 1/(x + 1/(x + 2/(x + ...))).
    """
    if x < 5:
        return _ROOT_HALF_PI * math.exp(x * x / 2) * math.erfc(x / _ROOT_2)
    fraction = x
    for k in range(24, 0, -1):  # as precise as a double from x = 5 on
        fraction = x + k / fraction
    return 1 / fraction


def log_ndtr(x: float) -> float:
    """log Phi(x)."""
    if x < 0:
        return math.log(_mills(-x)) - x * x / 2 - 0.5 * math.log(2 * math.pi)
    return math.log1p(-math.erfc(x / math.sqrt(2)) / 2)


def _root(f: Callable[[float], float], low: float, high: float) -> float:
    """Where the increasing or decreasing `f` changes its sign between `low` and `high`, to some units in the last
    place; `low` where it does not. Interpolates where that is sure to shrink the interval, and halves it otherwise: a
    quarter of the evaluations of halving alone. Source: Chandrupatla 1997."""
    a, b = high, low
    fa, fb = f(a), f(b)
    if (fa > 0) == (fb > 0):
        return low
    part = 0.5
    while True:
        x = a + part * (b - a)
        fx = f(x)
        if (fx > 0) == (fa > 0):
            c, fc = a, fa
        else:
            c, fc, b, fb = b, fb, a, fa
        a, fa = x, fx
        best, least = (a, fa) if abs(fa) < abs(fb) else (b, fb)
        step = 2 * _UNIT * abs(best) / abs(b - a)
        if step > 0.5 or least == 0:
            return best
        place, rise = (a - b) / (c - b), (fa - fb) / (fc - fb)
        part = 0.5
        if rise * rise < place and (1 - rise) ** 2 < 1 - place:  # the parabola through all three is monotone
            part = fa / (fb - fa) * fc / (fb - fc) + (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
        part = min(max(part, step), 1 - step)


def _mills_slope(x: float) -> float:
    """1 - x * Mills(x), that is minus the derivative of Mills' ratio; relative error below 1e-11 for x > -1."""
    if x < 50:
        return 1 - x * _mills(x)
    y = 1 / (x * x)
    return y * (1 - 3 * y * (1 - 5 * y * (1 - 7 * y * (1 - 9 * y))))


def log_delta(epsilon: float, mu: float) -> float:
    """log delta(epsilon) of the Gaussian mechanism with sensitivity/scale ratio `mu`; epsilon >= 0.

    With a = epsilon/mu - mu/2 and b = a + mu, e^epsilon phi(b) = phi(a), so delta = phi(a) (R(a) - R(b)) for Mills'
    ratio R: no overflow, and no difference of nearly equal tails; for small mu the difference is the integral of -R'.
    """
    a = epsilon / mu - mu / 2
    b = epsilon / mu + mu / 2
    if a < -10:  # delta is near 1 and R(a) overflows
        return math.log(math.exp(log_ndtr(-a)) - math.exp(-a * a / 2 - 0.5 * math.log(2 * math.pi)) * _mills(b))
    if mu < 0.5:
        half = mu / 2
        difference = half * math.fsum([w * _mills_slope(a + half * z) for z, w in _FROM_START])
    else:
        difference = _mills(a) - _mills(b)
    return -a * a / 2 - 0.5 * math.log(2 * math.pi) + math.log(difference)


def mu_of_budget(epsilon: float, delta: float, calibration: Calibration = "tight") -> float:
    """The largest mu = sqrt(T) * sensitivity / sigma that the calibration allows for (epsilon, delta).

    Guarantees: for "tight" and "zcdp" every mechanism with this mu or less is (epsilon, delta)-private; for "paper"
    only what `gaussian_epsilon(..., "tight")` says of the resulting scale.
    """
    epsilon, delta = check_epsilon(epsilon), check_delta(delta)
    L = math.log(1 / delta)
    if calibration == "paper":
        return epsilon / math.sqrt(2 * L)
    zcdp = math.sqrt(2) * epsilon / (math.sqrt(L + epsilon) + math.sqrt(L))
    if calibration == "zcdp":
        return zcdp * (1 - _SAFE)
    _check_calibration(calibration)
    return _tight_mu(epsilon, delta, zcdp)


@functools.lru_cache(maxsize=1024)  # adviser, survey and plan ask about the same budget, each several times
def _tight_mu(epsilon: float, delta: float, zcdp: float) -> float:
    target = math.log(delta)
    low = high = math.log(zcdp)
    while log_delta(epsilon, math.exp(high)) <= target:
        high += 0.5
    root = _root(lambda x: log_delta(epsilon, math.exp(x)) - target, low, high)
    return math.exp(root) * (1 - _SAFE)


_NO_PRIVACY = 1e4  # mu from which doubles cannot tell a from -mu / 2; zCDP is within 0.2 % there, from above


@functools.lru_cache(maxsize=1024)  # a plan is derived several times in a process, by the same steps
def epsilon_of_mu(mu: float, delta: float, calibration: Calibration = "tight") -> float:
    """The epsilon of the calibration at `delta` for a given mu; 0 when delta alone already covers it."""
    check_positive("mu = sqrt(releases) * sensitivity / scale", mu)
    L = math.log(1 / check_delta(delta))
    if calibration == "paper":
        return mu * math.sqrt(2 * L)
    zcdp = mu * mu / 2 + mu * math.sqrt(2 * L)
    if calibration == "zcdp":
        return zcdp * (1 + _SAFE)
    _check_calibration(calibration)
    target = math.log(delta)
    if mu > _NO_PRIVACY:
        return zcdp * (1 + _SAFE)
    if log_delta(0.0, mu) <= target:
        return 0.0
    return _root(lambda e: log_delta(e, mu) - target, 0.0, zcdp) * (1 + _SAFE)


def delta_of_mu(mu: float, epsilon: float, calibration: Calibration = "tight") -> float:
    """The delta of the calibration at `epsilon` for a given mu (0 when it underflows)."""
    check_positive("mu = sqrt(releases) * sensitivity / scale", mu)
    epsilon = check_epsilon(epsilon)
    if calibration == "paper":
        return math.exp(-((epsilon / mu) ** 2) / 2)
    if calibration == "zcdp":
        rho = mu * mu / 2
        return 1.0 if epsilon <= rho else math.exp(-((epsilon - rho) ** 2) / (4 * rho)) * (1 + _SAFE)
    _check_calibration(calibration)
    return min(1.0, math.exp(log_delta(epsilon, mu)) * (1 + _SAFE))


def gaussian_scale(
    epsilon: float, delta: float, sensitivity: float, releases: int = 1, calibration: Calibration = "tight"
) -> float:
    """The standard deviation a coordinate that `releases` releases of L2 sensitivity `sensitivity` need.

    In the units of `sensitivity`. Guarantees: with calibration "tight" or "zcdp" the whole sequence of releases, chosen
    adaptively, is (epsilon, delta)-private for the neighbours of the sensitivity; "tight" is the smallest such scale.
    """
    check_positive("sensitivity", sensitivity)
    return math.sqrt(check_count("releases", releases)) * sensitivity / mu_of_budget(epsilon, delta, calibration)


def gaussian_epsilon(
    sigma: float, delta: float, sensitivity: float, releases: int = 1, calibration: Calibration = "tight"
) -> float:
    """The epsilon at `delta` of `releases` releases with noise N(0, sigma^2 I) and L2 sensitivity `sensitivity`."""
    return epsilon_of_mu(gaussian_mu(sigma, sensitivity, releases), delta, calibration)


def gaussian_delta(
    sigma: float, epsilon: float, sensitivity: float, releases: int = 1, calibration: Calibration = "tight"
) -> float:
    """The delta at `epsilon` of `releases` releases with noise N(0, sigma^2 I) and L2 sensitivity `sensitivity`."""
    return delta_of_mu(gaussian_mu(sigma, sensitivity, releases), epsilon, calibration)


def gaussian_releases(
    sigma: float, epsilon: float, delta: float, sensitivity: float, calibration: Calibration = "tight"
) -> int:
    """The largest number of releases with scale `sigma` that stays within (epsilon, delta); 0 if not even one does."""
    check_positive("sensitivity", sensitivity)
    ratio = mu_of_budget(epsilon, delta, calibration) * check_positive("noise scale sigma", sigma) / sensitivity
    return math.floor(ratio * ratio * (1 + _SAFE / 10))


def gaussian_mu(sigma: float, sensitivity: float, releases: int = 1) -> float:
    """mu = sqrt(releases) * sensitivity / sigma: all that the privacy of Gaussian releases depends on."""
    check_positive("sensitivity", sensitivity)
    check_positive("noise scale sigma", sigma)
    return math.sqrt(check_count("releases", releases)) * sensitivity / sigma


def _check_calibration(calibration: str) -> None:
    if calibration != "tight":
        raise UsageError(f"calibration must be tight, zcdp or paper; got {calibration!r}; use tight", code="choice")
