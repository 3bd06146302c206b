"""The plan of a synthetic table over several machines: one or two stages and a release under one promise."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from dpmpc.aggregation.plan.checks import of_usual_size
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.privacy.gaussian import epsilon_of_mu, mu_of_budget
from dpmpc.records.origins import Origin
from dpmpc.statistics.columns import Columns
from dpmpc.synthesis import asking
from dpmpc.synthesis.cuts import at_most, without_cuts
from dpmpc.synthesis.source import Synthesis
from dpmpc.tables.stats import plan_of_tables
from dpmpc.tables.synth_releases import SURVEY, refuse_hopeless


@of_usual_size()
def plan_of_synthesis(
    columns: Columns, target: str | None, constraints: Sequence[str], sizes: Sequence[int], data: str,
    data_id: str | None, settings: Mapping[str, Any], origin: Origin, *, hopeless: bool = False,
    capacity: bool = False, by_person: bool = False, digits: Mapping[str, int] | None = None,
) -> Plan:  # fmt: skip
    """The plan: where some number has no cells a survey at `SURVEY` of mu^2, the first release at `asking.FIRST` of
    what is left, and what the whole promise leaves for the second. Errors: as `stats.plan_of_tables`; noise that would
    drown the tables, unless `hopeless`. `capacity`, `by_person`: as of `stats.plan_of_tables`. `digits`: decimals of
    columns of numbers."""
    epsilon, delta = float(settings["epsilon"]), float(settings.get("delta") or 0.0)
    most = at_most(columns)
    asking.check_columns(most, target)
    widest = asking.second(most, asking.widest(most, target), target)
    plain = plan_of_tables(  # with the errors of what cannot be
        widest, sizes, data, data_id, settings, origin, capacity=capacity, by_person=by_person
    )
    mu2, share = mu_of_budget(epsilon, delta) ** 2, SURVEY if without_cuts(columns) else 0.0
    price = epsilon_of_mu((mu2 * (1 - share) * asking.FIRST) ** 0.5, delta)
    survey = epsilon_of_mu((mu2 * share) ** 0.5, delta) if share else None
    places = tuple((digits or {}).items())
    source = Synthesis(columns, target, tuple(constraints), price, survey, not plain.counted, places)
    plan = replace(plain, source=source)
    if not hopeless:
        refuse_hopeless(asking.first(most), plan.ahead[-1])
    return plan
