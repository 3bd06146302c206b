"""What the noise of a plan will take, before any of it is made."""

from dpmpc.aggregation.plan.plan import Plan
from dpmpc.mpc.contract.backend import BACKENDS, DEFAULT, FOR_MANY
from dpmpc.noise.forecast import Forecast, forecast, refuse_hopeless
from dpmpc.noise.pool import fills


def forecast_of(plan: Plan, releases: int, *, here: bool) -> Forecast | None:
    """What the noise made ahead for so many releases will take; None where none is. `here`: all parties are on this
    machine."""
    if not (plan.parties and plan.pool and plan.derived.mechanism.scale and releases):
        return None
    backend = BACKENDS[plan.backend]
    return forecast(backend, plan.derived.sampler, releases, plan.drawn, plan.parties, plan.threshold, here=here)


def check_possible(plan: Plan, releases: int) -> None:
    """Errors: the noise of so many releases does not fit into the memory of this machine, where all parties are."""
    if plan.parties and plan.derived.mechanism.scale and releases:
        sizes = [plan.dimension] if not plan.pool else [k * plan.dimension for k in fills(releases, plan.dimension)]
        many = f"<<backend={FOR_MANY}>>, " if plan.backend == DEFAULT and 5 < plan.parties <= 32 else ""
        at = plan.derived.sampler, sizes, plan.parties, plan.threshold
        refuse_hopeless(
            BACKENDS[plan.backend],
            *at,
            here=True,
            way_out=f"use {many}a smaller <<parties>> or <<threshold>>, or <<pool=False>>",
        )
