"""What a synthetic table will be like and what it costs, from public numbers, before anything is spent."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

from dpmpc.aggregation.plan.keywords import SourceKeywords
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.intake.missing import keeping
from dpmpc.intake.spelling import PLAIN, Spelling
from dpmpc.learning.naming import STAGE as WORDS
from dpmpc.mpc.contract.backend import BACKENDS
from dpmpc.noise.forecast import forecast
from dpmpc.processes.room import free_memory
from dpmpc.records.loading import Source, opened
from dpmpc.records.schema import Schema
from dpmpc.settings import keywords
from dpmpc.statistics.tables import asked_by
from dpmpc.synthesis import asking
from dpmpc.synthesis.source import SURVEY, synthesis_of
from dpmpc.tables.stats import OfTables, kept_of, owned
from dpmpc.tables.synth import cuts_of, lines_of, named_columns
from dpmpc.tables.synth_columns import names_read, public_columns
from dpmpc.tables.synth_plan import moved, planned, stage_of


@keywords(OfTables)
def dry(
    records: Source, *, owners: str | None = None, schema: Schema | Path | str | None = None,
    bounds: Mapping[str, Any] | Path | str | None = None, cuts: Mapping[str, Any] | Path | str | None = None,
    cells: int | None = None, drop: Sequence[str] = (), named: Sequence[str] = (), words: Sequence[str] = (),
    spell: Sequence[str] = (), target: str | None = None,
    constraints: Sequence[str] | Path | str | None = None, memory: int | None = None, spelling: Spelling = PLAIN,
    digits: Mapping[str, int] | None = None, capacity: Sequence[int] | None = None, **settings: Unpack[SourceKeywords],
) -> str:  # fmt: skip
    """Lines: records, columns and cells; the part of each column's records that noise alone is expected to move; what
    the releases take. Nothing is spent; of records only their owners are read. Errors: as of `synth`."""
    drop = (*drop, *named_columns(settings))
    read, of = names_read(schema, bounds, owners, drop), kept_of(settings, owners)
    with opened(records, memory=memory, spelling=spelling, person=of, names=read) as (table, _):
        public = public_columns(
            table, owners, schema, bounds, cuts_of(cuts), cells, drop, digits, 1, named, words, spell
        )
        public.check(target, lines_of(constraints), digits or {})
        table = table if public.columns is None else keeping(table, public.columns.listed)
        sizes = owned(table, public.names, owners, settings, capacity)[2]
    what = "records" if capacity is None else "places for records"
    said = [f"{sum(sizes):,} {what} of {len(sizes)} owners, {len(public.names)} columns"]
    second = planned(public, target, lines_of(constraints), sizes, table.source, None, settings, capacity, digits)
    if public.spell:
        promise = stage_of(second, WORDS).epsilon
        said.append(f"Words of {', '.join(public.spell)} are opened first, with epsilon {promise:.3g}.")
    if public.surveyed:
        promise = stage_of(second, SURVEY).epsilon
        said.append(f"A private survey with epsilon {promise:.3g} finds cells first; what follows is about that.")
    if public.to_find is not None:
        return "\n".join([*said, "Columns are not public: give bounds to see what noise does to them."]) + "\n"
    first = second.ahead[-1]
    second = replace(second, source=synthesis_of(second.source).widest, released=second.before)
    return "\n".join([*said, *_noise(first, second), *_costs(first, second)]) + "\n"


def _noise(first: Plan, second: Plan) -> list[str]:
    both = [moved(asked_by(plan.source), plan) for plan in (first, second)]
    worst = sorted(both[0], key=lambda name: -both[0][name])
    cells = asking.cells_of(asked_by(first.source).columns)
    rows = [f"  {name}: {cells[name]} cells, {_percent(both[0][name])}, {_percent(both[1][name])}" for name in worst]
    return ["Noise alone is expected to move, in the first release and in the second, of the records of:", *rows]


def _costs(first: Plan, second: Plan) -> list[str]:
    found = []
    for name, plan in (("First", first), ("Second, at most", second)):
        cost = forecast(
            BACKENDS[plan.backend], plan.derived.sampler, 1, plan.dimension, plan.parties, plan.threshold, here=True
        )
        found.append(f"{name}: {plan.dimension:,} numbers; {cost}; about {cost.memory / 1e6:,.0f} MB of memory a party")
    free = free_memory() / 1e6
    return [*found, f"Of memory {free:,.0f} MB are free."]


def _percent(part: float) -> str:
    return f"{min(100 * part, 100):.2g} %"
