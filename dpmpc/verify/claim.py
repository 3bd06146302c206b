"""What a plan claims of one of its releases, from the accounting that the report uses."""

from dpmpc.plan import Plan
from dpmpc.spending import Cost


def claimed_epsilon(plan: Plan) -> float:
    """The epsilon of one release at the plan's delta; for Laplace noise without the sampler's failures, below 2^-50."""
    one = Cost().plus(plan.mechanism())
    return one.pure if plan.law == "laplace" else one.epsilon(plan.delta)


def shift_of(plan: Plan) -> float:
    """The largest influence of one record on one coordinate, in units of the noise scale."""
    return plan.sensitivity_steps / plan.noise_steps
