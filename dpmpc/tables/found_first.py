"""Questions about columns of which nothing is stated: a private survey finds them first, under one promise.

Of the mu^2 of the promise the survey takes the part that a synthetic table's does (`synth_plan.SURVEY`), and the
answers what is left. Only the columns that questions name are surveyed. What a question may be about follows from the
kinds of columns in their file, before anything is spent; one that cannot be asked of what the survey found is left out,
and said so.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dpmpc.aggregation.plan.plan import Plan
from dpmpc.errors import UsageError, spelt
from dpmpc.intake.spelling import Spelling
from dpmpc.learning.naming import STAGE as WORDS
from dpmpc.learning.naming import words_first
from dpmpc.outcome import Level
from dpmpc.privacy.gaussian import epsilon_of_mu, mu_of_budget
from dpmpc.records.loading import Source, opened
from dpmpc.records.mapping import owner_numbers
from dpmpc.records.origins import Origin
from dpmpc.records.persons import touched_at_most
from dpmpc.run.once import unfinished
from dpmpc.run.run import run
from dpmpc.run.seat import Seat
from dpmpc.statistics.columns import OWNER
from dpmpc.statistics.mentioned import Asked, check_may_be_asked, mentioned
from dpmpc.statistics.tables import asked_by
from dpmpc.synthesis.source import SURVEY
from dpmpc.synthesis.surveyed_tables import SurveyedTables, surveyed_tables_of
from dpmpc.synthesis.to_find import ToFind
from dpmpc.tables.answer_files import ANSWERS
from dpmpc.tables.of_table import OfTable
from dpmpc.tables.questions import check_spelled, tell_of
from dpmpc.tables.stats import Statistics, kept_of, opened_tables, owned, plan_of_survey
from dpmpc.tables.synth_columns import to_find
from dpmpc.tables.synth_plan import SURVEY as SHARE
from dpmpc.tables.synth_plan import refuse_faint, stage_of

_LEFT = "ask nothing about them, or state their values in <<bounds>>"


def found_first(
    records: Source, queries: Sequence[Asked], owners: str | None, named: Sequence[str], words: Sequence[str],
    spell: Sequence[str], level: Level, refuse: bool, capacity: Sequence[int] | None, data_id: str | None,
    memory: int | None, spelling: Spelling, seat: Seat, tell: Callable[[str], None] | None, settings: Mapping[str, Any],
) -> Statistics:  # fmt: skip
    """As `stats`, whose other arguments these are. Errors: as of `stats`; a question that can be asked of nothing that
    a survey may find; a survey that finds nothing."""
    if seat.out is not None:
        unfinished(seat.out, ANSWERS, WORDS, SURVEY, "")
    of = kept_of(settings, owners)
    with opened(records, memory=memory, spelling=spelling, person=of) as (table, _):
        columns = _asked_first(table, queries, owners, named, words, spell, touched_at_most(table, of), settings)
        check_spelled(table, columns.names, _LEFT)
        own, number, sizes = owned(table, columns.names, owners, settings, capacity)
        names = owner_numbers(own, str(owners))[1] if mentioned(queries, (OWNER,)) else ()
        given = table.source, data_id, settings, capacity is not None
        plan = planned(queries, columns, names, sizes, *given, spell=spell)
        asked = surveyed_tables_of(plan.source)

        def ready(next_one: Plan) -> None:
            if "+" in next_one.run_id:  # of a survey it is known before the words that come first are spent
                if refuse:
                    refuse_faint(asked.questions, stage_of(plan, SURVEY))
                return
            tables = asked_by(next_one.source)
            for line in asked.left_out(tables):
                (tell or _warn)(line)
            tell_of(own, tables, tell)

        done = run(plan, OfTable("stats", own, number, ready), seat)
    return opened_tables(done.own, level)


def planned(
    queries: Sequence[Asked], to_find: ToFind, owners: Sequence[str], sizes: Sequence[int], data: str,
    data_id: str | None, settings: Mapping[str, Any], capacity: bool, *, spell: Sequence[str] = (),
) -> Plan:  # fmt: skip
    """The plan: the words of the columns of `spell`, where there are any (`naming.words_first`), a survey at its part
    of mu^2, and what the whole promise leaves for the answers. Errors: as of `stats.plan_of_survey`."""
    epsilon, delta = float(settings.get("epsilon") or 1.0), float(settings.get("delta") or 0.0)
    plain = plan_of_survey(
        to_find.survey, sizes, data, data_id, settings, capacity=capacity, origin=Origin("survey")
    )
    spelling, mu2 = words_first(spell, mu_of_budget(epsilon, delta) ** 2, SHARE, delta, epsilon)
    price, to_find = epsilon_of_mu((mu2 * SHARE) ** 0.5, delta), replace(to_find, spelling=spelling)
    source = SurveyedTables(tuple(queries), to_find, price, tuple(owners))
    return replace(plain, source=source, dimension=source.longest(0, 0.0))


def _asked_first(
    table: Any, queries: Sequence[Asked], owners: str | None, named: Sequence[str], words: Sequence[str],
    spell: Sequence[str], touched: int, settings: Mapping[str, Any],
) -> ToFind:  # fmt: skip
    """What is surveyed: the columns that questions name."""
    left = {owners, settings.get("person")}
    names = mentioned(queries, [name for name in table.names if name not in left])
    if not names:
        raise UsageError(
            "what may be asked follows from <<schema>> or <<bounds>>, or from a survey of the columns that questions "
            "name; they name none that is here; give public bounds, or ask about columns",
            code="together",
        )
    found = to_find(table, names, {}, touched, named, words, spell)
    check_may_be_asked(queries, found.survey.numbers, found.survey.texts)
    return found


def _warn(line: str) -> None:
    import warnings

    warnings.warn(spelt(line), stacklevel=4)


