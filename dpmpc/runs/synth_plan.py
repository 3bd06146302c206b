"""The plan of a synthetic table over several machines: a stage and a release under one promise."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.plan.stages import stage_plan
from dpmpc.data.schema import Bounds
from dpmpc.errors import UsageError
from dpmpc.privacy.gaussian import epsilon_of_mu, mu_of_budget
from dpmpc.runs.stats import plan_of_tables
from dpmpc.runs.synth_releases import refuse_hopeless
from dpmpc.statistics.columns import Columns
from dpmpc.synthesis import asking
from dpmpc.synthesis.cuts import stated, without_cuts
from dpmpc.synthesis.source import Synthesis


def plan_of_synthesis(
    columns: Columns, target: str | None, constraints: Sequence[str], sizes: Sequence[int], data: str,
    data_id: str | None, settings: Mapping[str, Any], bounds: Bounds, *, hopeless: bool = False,
) -> Plan:  # fmt: skip
    """The plan: the first release at `asking.FIRST` of mu^2, and what the whole promise leaves for the second. Errors:
    as `stats.plan_of_tables`; noise that would drown the tables, unless `hopeless`."""
    epsilon, delta = float(settings["epsilon"]), float(settings.get("delta") or 0.0)
    widest = asking.second(columns, asking.widest(columns, target))
    plain = plan_of_tables(widest, sizes, data, data_id, settings, bounds)  # with the errors of what cannot be
    price = epsilon_of_mu(mu_of_budget(epsilon, delta) * asking.FIRST**0.5, delta)
    source = Synthesis(columns, target, tuple(constraints), price)
    stages = [stage_plan(plain, stage) for stage in source.schedule.before]
    if not hopeless:
        refuse_hopeless(asking.first(columns), stages[0])
    return replace(plain, source=source, before=tuple(stage.derived.mechanism for stage in stages))


def with_cells(columns: Columns, cuts: Mapping[str, Any], cells: int | None) -> Columns:
    """The columns with public cells. Errors: some have none, as no survey comes first here."""
    found = stated(columns, cuts, cells)
    if without_cuts(found):
        raise UsageError(
            f"cells of numbers are public here; {', '.join(without_cuts(found))} have none; give <<cells>>, or <<cuts>>"
        )
    return found
