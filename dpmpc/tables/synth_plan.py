"""The plan of a synthetic table: one to three stages and a release under one promise; and what would tell nothing."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dpmpc.aggregation.plan.checks import of_usual_size
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.errors import UsageError
from dpmpc.learning.naming import STAGE as WORDS
from dpmpc.learning.naming import words_first
from dpmpc.learning.survey import Survey
from dpmpc.privacy.gaussian import epsilon_of_mu, mu_of_budget
from dpmpc.records.origins import Origin
from dpmpc.statistics.columns import Columns
from dpmpc.statistics.tables import STEP, Tables, asked_by
from dpmpc.synthesis import asking
from dpmpc.synthesis.cuts import without_cuts
from dpmpc.synthesis.noisy import Noisy
from dpmpc.synthesis.source import FIRST, Synthesis, synthesis_of
from dpmpc.synthesis.source import SURVEY as SURVEY_STAGE
from dpmpc.synthesis.to_find import ToFind
from dpmpc.tables.stats import noise_of, plan_of_tables
from dpmpc.tables.synth_columns import Public

SURVEY = 0.05  # the part of mu^2 that a survey takes, where cells are not public
HOPELESS = 0.25  # the total variation of a single column's table by noise alone, above which nothing is to be had


@of_usual_size()
def plan_of_synthesis(
    columns: Columns | None, target: str | None, constraints: Sequence[str], sizes: Sequence[int], data: str,
    data_id: str | None, settings: Mapping[str, Any], origin: Origin, *, hopeless: bool = False,
    capacity: bool = False, by_person: bool = False, digits: Mapping[str, int] | None = None,
    to_find: ToFind | None = None, spell: Sequence[str] = (),
) -> Plan:  # fmt: skip
    """The plan: where some number has no cells, or all columns are `to_find`, a survey at `SURVEY` of mu^2, the first
    release at `asking.FIRST` of what is left, and what the whole promise leaves for the second; before all of them the
    words of `spell`, of those that are to be found (`naming.words_first`). Errors: as
    `stats.plan_of_tables`; noise that would drown the tables, unless `hopeless`. `capacity`, `by_person`: as of
    `stats.plan_of_tables`. `digits`: decimals of columns of numbers."""
    epsilon, delta = float(settings.get("epsilon") or 1.0), float(settings.get("delta") or 0.0)
    open_ones = columns is None or bool(without_cuts(columns))
    most = Synthesis(columns, survey=1.0 if open_ones else None, to_find=to_find).cells
    asking.check_columns(most, target)
    widest = asking.second(most, asking.widest(most, target), target)
    plain = plan_of_tables(  # with the errors of what cannot be
        widest, sizes, data, data_id, settings, origin, capacity=capacity, by_person=by_person
    )
    share, mu2 = SURVEY if open_ones else 0.0, mu_of_budget(epsilon, delta) ** 2
    if to_find is not None:
        spelling, mu2 = words_first(spell, mu2, share, delta, epsilon)
        to_find = replace(to_find, spelling=spelling)
    price = epsilon_of_mu((mu2 * (1 - share) * asking.FIRST) ** 0.5, delta)
    survey = epsilon_of_mu((mu2 * share) ** 0.5, delta) if share else None
    places = tuple((digits or {}).items())
    source = Synthesis(columns, target, tuple(constraints), price, survey, not plain.counted, places, to_find)
    plan = replace(plain, source=source)
    if not hopeless:
        refuse_hopeless(asking.first(most), plan.ahead[-1])
    return plan


def planned(
    public: Public, target: str | None, constraints: Sequence[str], sizes: Sequence[int], data: str,
    data_id: str | None, settings: Mapping[str, Any], capacity: Sequence[int] | None,
    digits: Mapping[str, int] | None,
) -> Plan:  # fmt: skip
    """The plan over the columns that are public here. Noise that would drown the tables is refused as each release is
    made (`refusing`). Errors: as `plan_of_synthesis`."""
    origin = public.origin | Origin("survey" if public.surveyed else "public")
    return plan_of_synthesis(
        public.columns, target, constraints, sizes, data, data_id, settings, origin, hopeless=True,
        capacity=capacity is not None, by_person=True, to_find=public.to_find, spell=public.spell,
        digits=None if public.to_find is not None else {**public.places, **(digits or {})},
    )  # fmt: skip


def refusing(whole: Plan) -> Callable[[Plan], None]:
    """Given the plan of each release of this run: refuses one that would tell nothing, of a survey of which nothing
    would stand out, or of first tables that noise drowns (UsageError)."""
    asked = synthesis_of(whole.source)

    def ready(plan: Plan) -> None:
        stage = plan.run_id.partition("+")[2]
        if stage in (WORDS, SURVEY_STAGE):  # of a survey it is known before the words that come first are spent
            refuse_faint(asked.questions, stage_of(whole, SURVEY_STAGE))
        elif stage == FIRST:
            refuse_hopeless(asked_by(plan.source), plan)

    return ready


def stage_of(whole: Plan, name: str) -> Plan:
    """The plan of the stage of this name that is still to come in a plan."""
    return next(each for each in whole.ahead if each.run_id.endswith(f"+{name}"))


def refuse_faint(questions: Survey, plan: Plan) -> None:
    """Errors: UsageError where the records are fewer than what stands out of the survey's noise."""
    n = sum(plan.sizes)
    least = questions.high(noise_of(plan))
    if n <= least:
        raise UsageError(
            f"a survey finds cells of more than {least:,.0f} records beside its noise; there are {n:,}; give "
            "<<bounds>> and <<cuts>>, raise <<epsilon>>, or find more records",
            code="enough",
        )


def refuse_hopeless(tables: Tables, plan: Plan) -> None:
    """Errors: UsageError where noise alone moves the table of some column by more than a quarter of all records."""
    n, off = sum(plan.sizes), moved(tables, plan)
    worst = max(off, key=lambda name: off[name])
    if off[worst] > HOPELESS:
        need = epsilon_of_mu(mu_of_budget(plan.epsilon, plan.delta) * off[worst] / HOPELESS, plan.delta)
        raise UsageError(
            f"a synthetic table must tell something; noise alone would move {100 * min(off[worst], 1):.0f} % of the "
            f"records of '{worst}' from their cells; {need / plan.epsilon:,.1f} times the <<epsilon>> would do, or "
            f"{int(n * off[worst] / HOPELESS) + 1} records in place of {n}, or fewer columns or cells",
            code="enough",
        )


def moved(tables: Tables, plan: Plan) -> dict[str, float]:
    """By column the part of the records that noise alone is expected to move from their cells, from public numbers."""
    alone = tables.opened(np.zeros(tables.coordinates), noise_of(plan) / STEP, plan.sizes)
    noisy, n = Noisy(tables.columns, alone), sum(plan.sizes)
    return {
        name: 0.4 * len(noisy.axes[name].labels) * noisy.deviation([name]) / n  # half of E|noise| a cell
        for name in tables.columns.names
    }
