"""The noise that the tool adds: discrete Gaussian and discrete Laplace on the grid, with every error counted.

All lengths are in grid steps. The opened vector is an integer sum plus integer noise, so what is accounted is exactly
what is computed; floating point enters only where the budget is evaluated.

Discrete Gaussian: DG(sigma) has P(x) proportional to exp(-x^2 / 2 sigma^2) on the integers. It is, up to a factor
e^{+-t} in every probability, N(0, sigma^2 - s^2) followed by a random rounding that does not look at the data, so it
inherits the exact accounting of the continuous law with a variance smaller by s^2 (s = 1.5; derivation in
docs/privacy.md, "Discrete Gaussian"). For narrow noise the zCDP bound of Canonne, Kamath and Steinke 2020, which
needs no width, is used where it is better.
"""

import math
from typing import Literal

from dpmpc.errors import UsageError
from dpmpc.privacy.checks import check_count, check_delta, check_epsilon, check_nonnegative, check_positive
from dpmpc.privacy.gaussian import gaussian_delta, gaussian_epsilon, gaussian_scale
from dpmpc.privacy.guarantee import Guarantee, combine, paid
from dpmpc.privacy.sensitivity import Sensitivity

ROUNDING_WIDTH = 1.5


def smoothing_error(s: float) -> float:
    """The e of: sum over integers x of exp(-(x-c)^2 / 2s^2) lies in s sqrt(2 pi) (1 +- e) for every real c; s >= 0.5.

    By Poisson summation e = 2 sum_{k>=1} exp(-2 pi^2 s^2 k^2), at most 2.02 exp(-2 pi^2 s^2) for s >= 0.5.
    """
    if not s >= 0.5:
        raise UsageError(
            f"the width of a discrete Gaussian must be at least 0.5 grid steps here; got {s:g}; refine the grid",
            code="range",
        )
    return 2.02 * math.exp(-2 * math.pi**2 * s * s)


def rounding_log_ratio(sigma_steps: float, s: float = ROUNDING_WIDTH) -> float:
    """The t a coordinate: DG(sigma) and the randomly rounded N(0, sigma^2 - s^2) have pmfs within a factor e^{+-t}."""
    return -math.log1p(-smoothing_error(s)) + math.log1p(smoothing_error(sigma_steps))


def discrete_gaussian_guarantee(
    sigma_steps: float,
    sensitivity_steps: float,
    releases: int,
    dimension: int,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    tv_per_coordinate: float = 0.0,
    log_ratio_per_coordinate: float = 0.0,
    mpc_failure: float = 0.0,
) -> Guarantee:
    """The guarantee of `releases` openings with discrete Gaussian noise of parameter `sigma_steps` on each coordinate.

    `sensitivity_steps` is the L2 sensitivity of the *integer* sum, rounding included. Give exactly one of `delta`
    (delta of the ideal noise; the result's delta is larger by the failures) and `epsilon` (likewise).
    `tv_per_coordinate` and `log_ratio_per_coordinate` are the sampler's certificate: total variation, or log of the
    largest pmf ratio, of one sample from DG(sigma). `mpc_failure`: of the MPC over the whole run.

    Guarantees: the returned (epsilon, delta) holds for any adaptive sequence of such releases.
    """
    check_positive("sigma in grid steps", sigma_steps)
    check_positive("sensitivity in grid steps", sensitivity_steps)
    if (epsilon is None) == (delta is None):
        raise UsageError(
            f"give exactly one of epsilon and delta; got epsilon={epsilon}, delta={delta}; the other follows",
            code="together",
        )
    coordinates = check_count("releases", releases) * check_count("dimension", dimension)
    sampler = coordinates * check_nonnegative("log ratio of the sampler", log_ratio_per_coordinate)
    candidates: list[Guarantee] = []
    for effective, t, calibration in _accounts(sigma_steps, coordinates):
        t += sampler
        if delta is not None:
            e0, d0 = gaussian_epsilon(effective, delta, sensitivity_steps, releases, calibration), delta
        else:
            assert epsilon is not None
            if check_epsilon(epsilon) <= 2 * t:
                continue
            e0 = epsilon - 2 * t
            d0 = gaussian_delta(effective, e0, sensitivity_steps, releases, calibration)
        candidates.append(
            combine(
                e0,
                d0,
                log_ratio=t,
                sampler_failure=coordinates * check_nonnegative("total variation of the sampler", tv_per_coordinate),
                mpc_failure=mpc_failure,
            )
        )
    if not candidates:
        raise UsageError(
            f"epsilon must exceed twice the sampler's log ratio; got {epsilon:g}; use a better sampler", code="range"
        )
    return min(candidates, key=lambda g: (g.epsilon, g.delta))


def discrete_gaussian_scale(
    epsilon: float,
    delta: float,
    sensitivity_steps: float,
    releases: int,
    dimension: int,
    *,
    tv_per_coordinate: float = 0.0,
    log_ratio_per_coordinate: float = 0.0,
    mpc_failure: float = 0.0,
) -> float:
    """The parameter sigma, in grid steps, with which everything a run opens is (epsilon, delta)-private *in total*.

    Arguments as in `discrete_gaussian_guarantee`; the sampler's and the MPC's failures (`mpc_failure`: of the whole
    run) are paid from `delta` first. UsageError when they alone exceed it.
    """
    epsilon, delta = check_epsilon(epsilon), check_delta(delta)
    check_positive("sensitivity in grid steps", sensitivity_steps)
    coordinates = check_count("releases", releases) * check_count("dimension", dimension)
    spent = paid(epsilon, delta, coordinates * tv_per_coordinate + mpc_failure)
    scales: list[float] = []
    ways: tuple[tuple[Literal["tight", "zcdp"], float], ...] = (("tight", ROUNDING_WIDTH), ("zcdp", 0.0))
    for calibration, s in ways:
        # sigma >= s, so rounding_log_ratio(sigma) <= rounding_log_ratio(s)
        t = coordinates * (log_ratio_per_coordinate + (rounding_log_ratio(s) if s else 0.0))
        if epsilon > 2 * t:
            ideal = gaussian_scale(
                epsilon - 2 * t, (delta - spent) * math.exp(-t), sensitivity_steps, releases, calibration
            )
            scales.append(math.hypot(ideal, s) * (1 + 1e-12))
    if not scales:
        raise UsageError(
            f"epsilon must exceed twice the sampler's log ratio; got {epsilon:g}; use a better sampler", code="range"
        )
    return min(scales)


def discrete_laplace_scale(epsilon: float, l1_steps: float, releases: int = 1) -> float:
    """The b, in grid steps, of P(x) proportional to exp(-|x|/b) for pure epsilon over `releases` releases.

    `l1_steps` is the L1 sensitivity of the integer sum, which is whole, so its floor may be given (`l1_steps_of`).
    """
    check_positive("L1 sensitivity in grid steps", l1_steps)
    return check_count("releases", releases) * l1_steps / check_epsilon(epsilon)


def l1_steps_of(steps: Sensitivity) -> int:
    """floor(min(l1, l2^2)): a bound on the L1 norm of an integer vector whose norms are at most those of `steps`."""
    check_positive("sensitivity in grid steps", steps.linf)
    return math.floor(min(steps.in_norm(1), steps.l2**2) * (1 + 1e-12))


def whole(steps: Sensitivity) -> Sensitivity:
    """The same of integer vectors, whose L1 norms are whole."""
    return Sensitivity(float(l1_steps_of(steps)), steps.l2, steps.linf)


def discrete_laplace_guarantee(
    b_steps: float,
    l1_steps: float,
    releases: int,
    dimension: int,
    *,
    tv_per_coordinate: float = 0.0,
    log_ratio_per_coordinate: float = 0.0,
    mpc_failure: float = 0.0,
) -> Guarantee:
    """The guarantee of `releases` openings with discrete Laplace noise of scale `b_steps` on each coordinate.

    Guarantees: pure epsilon = releases * l1_steps / b for the ideal law; delta is what the sampler (its cut tail is
    part of `tv_per_coordinate`) and the MPC add.
    """
    check_positive("Laplace scale in grid steps", b_steps)
    check_positive("L1 sensitivity in grid steps", l1_steps)
    coordinates = check_count("releases", releases) * check_count("dimension", dimension)
    return combine(
        releases * l1_steps / b_steps,
        log_ratio=coordinates * check_nonnegative("log ratio of the sampler", log_ratio_per_coordinate),
        sampler_failure=coordinates * check_nonnegative("total variation of the sampler", tv_per_coordinate),
        mpc_failure=mpc_failure,
    )


def _accounts(sigma_steps: float, coordinates: int) -> list[tuple[float, float, Literal["tight", "zcdp"]]]:
    """(effective sigma, log ratio over all coordinates, calibration) of each valid way to account DG(sigma)."""
    ways: list[tuple[float, float, Literal["tight", "zcdp"]]] = [(sigma_steps, 0.0, "zcdp")]
    if sigma_steps > ROUNDING_WIDTH:
        effective = math.sqrt(sigma_steps**2 - ROUNDING_WIDTH**2)
        ways.append((effective, coordinates * rounding_log_ratio(sigma_steps), "tight"))
    return ways
