"""What a plan claims of one of its releases, from the accounting that the report uses."""

from dataclasses import replace

from dpmpc.aggregation.plan import Plan
from dpmpc.privacy.composition import Cost


def claimed_epsilon(plan: Plan) -> float:
    """The epsilon of one release at the plan's delta, for noise of the exact law.

    The failures of sampler and MPC are left out: far below what any audit sees, and so large in what can be proved of
    the approximate samplers that their claim would be empty.
    """
    one = Cost().plus(replace(plan.mechanism(), tv=0.0, mpc_failure=0.0))
    return one.pure if plan.law == "laplace" else one.epsilon(plan.delta)


def shift_of(plan: Plan) -> float:
    """The largest influence of one record on one coordinate, in units of the noise scale."""
    return plan.sensitivity_steps / plan.noise_steps
