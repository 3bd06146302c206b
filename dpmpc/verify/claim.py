"""What a plan claims of one of its releases, from the accounting that the report uses."""

from dpmpc.aggregation.plan import Plan
from dpmpc.privacy.composition import spending_of
from dpmpc.privacy.law import LAWS, without_failures


def claimed_epsilon(plan: Plan) -> float:
    """The epsilon of one release at the plan's delta, for noise of the exact law.

    The failures of sampler and MPC are left out: far below what any audit sees, and so large in what can be proved of
    the approximate samplers that their claim would be empty.
    """
    one = spending_of(without_failures(plan.derived.mechanism))
    return one.pure if LAWS[plan.law].pure and not one.rho else one.epsilon(plan.delta)


def shift_of(plan: Plan) -> float:
    """The largest influence of one record on one coordinate, in units of the noise scale."""
    return plan.derived.sensitivity_steps / plan.derived.mechanism.scale
