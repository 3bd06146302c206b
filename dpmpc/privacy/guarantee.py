"""From the ideal mechanism to what is really run: a Guarantee, and the price of samplers and MPC that are not perfect.

A failure probability is a bound on the total-variation distance between the real and the ideal output (for MPC: between
the adversary's real view and a view simulated from the ideal output), on *each* of two neighbours, over the whole run.
"""

import math

from dpmpc.errors import UsageError
from dpmpc.lazy import dataclass
from dpmpc.privacy.checks import NEIGHBOURS, check_nonnegative


@dataclass(frozen=True)
class Guarantee:
    """(epsilon, delta) of everything a run opens, and the parts that delta is the sum of.

    `parts` has the keys `mechanism` (delta of the ideal noise), `sampler` and `mpc` (what their failures add to delta).
    `delta` is at most 1; a delta of 1 promises nothing.
    """

    epsilon: float
    delta: float
    parts: dict[str, float]
    neighbours: str = NEIGHBOURS

    def __str__(self) -> str:
        return f"({self.epsilon:.6g}, {self.delta:.6g})-differential privacy; neighbours: {self.neighbours}"


def combine(
    epsilon: float,
    delta: float = 0.0,
    *,
    log_ratio: float = 0.0,
    sampler_failure: float = 0.0,
    mpc_failure: float = 0.0,
) -> Guarantee:
    """The guarantee of a run whose ideal mechanism is (epsilon, delta)-private.

    `log_ratio` t: the real output's probabilities lie within e^{-t} .. e^{t} times the ideal ones (sum over
    coordinates and releases). `sampler_failure`, `mpc_failure`: total variation over the whole run, for example
    T*d*tau and 2^-kappa.

    Guarantees: P <= e^t P', P' <= e^epsilon Q' + delta, Q' <= e^t Q give (epsilon + 2t, e^t delta). Then P <= P' + eta,
    Q' <= Q + eta give (epsilon, delta + (1 + e^epsilon) eta): docs/privacy.md, "Samplers and MPC that are not perfect".
    """
    t = check_nonnegative("log_ratio", log_ratio)
    epsilon = check_nonnegative("epsilon", epsilon) + 2 * t
    factor = failure_factor(epsilon)
    parts = {
        "mechanism": min(1.0, math.exp(min(t, 700.0)) * check_nonnegative("delta", delta)),
        "sampler": min(1.0, factor * check_nonnegative("sampler_failure", sampler_failure)),
        "mpc": min(1.0, factor * check_nonnegative("mpc_failure", mpc_failure)),
    }
    return Guarantee(epsilon=epsilon, delta=min(1.0, math.fsum(parts.values())), parts=parts)


def paid(epsilon: float, delta: float, failures: float) -> float:
    """What failures of so much in all, sampler's and MPC's, take from `delta` at `epsilon`. Errors: UsageError where
    nothing is left of it."""
    spent = failure_factor(epsilon) * failures
    if spent < delta:
        return spent
    most = math.log(delta / failures) - 1e-3 if failures < delta else 0.0
    way = f"ask for epsilon at most {most:.4g}, or " if most > 0.01 else ""
    raise UsageError(
        f"failures of sampler and MPC must leave some of delta; theirs, {failures:.3g}, count 1 + e^epsilon times and "
        f"come to {spent:.3g} at epsilon {epsilon:g} and delta {delta:g}; {way}raise delta or the security in bits",
        code="range",
    )


def failure_factor(epsilon: float) -> float:
    """1 + e^epsilon: what a failure probability is multiplied by when it is added to delta (capped to stay finite)."""
    return 1 + math.exp(min(epsilon, 700.0))
