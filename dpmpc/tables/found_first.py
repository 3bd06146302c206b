"""Questions about columns of which nothing is stated: a private survey finds them first, under one promise.

Of the mu^2 of the promise the survey takes the part that a synthetic table's does (`synth_releases.SURVEY`), and the
answers what is left. Only the columns that questions name are surveyed. What a question may be about follows from the
kinds of columns in their file, before anything is spent; one that cannot be asked of what the survey found is left out,
and said so.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dpmpc.errors import UsageError, spelt
from dpmpc.intake.spelling import Spelling
from dpmpc.learning.naming import STAGE
from dpmpc.outcome import Level
from dpmpc.records.loading import Source, opened
from dpmpc.records.persons import touched_at_most
from dpmpc.run.once import unfinished
from dpmpc.run.seat import Seat
from dpmpc.statistics.mentioned import Asked, askable, check_may_be_asked, mentioned
from dpmpc.statistics.tables import Tables
from dpmpc.synthesis.source import SURVEY
from dpmpc.tables.answer_files import ANSWERS
from dpmpc.tables.questions import check_spelled, tell_of
from dpmpc.tables.stats import Statistics, called, kept_of
from dpmpc.tables.synth_columns import Public, surveyed_columns, surveyed_first
from dpmpc.tables.synth_releases import Releases

_LEFT = "ask nothing about them, or state their values in <<bounds>>"


def found_first(
    records: Source, queries: Sequence[Asked], owners: str | None, named: Sequence[str], words: Sequence[str],
    level: Level, refuse: bool, capacity: Sequence[int] | None, data_id: str | None, memory: int | None,
    spelling: Spelling, seat: Seat, tell: Callable[[str], None] | None, settings: Mapping[str, Any],
    spell: Sequence[str] = (),
) -> Statistics:  # fmt: skip
    """As `stats`, whose other arguments these are. Errors: as of `stats`; a question that can be asked of nothing that
    a survey may find; a survey that finds nothing."""
    folder = None if seat.out is None else Path(seat.out)
    if folder is not None:
        unfinished(folder, ANSWERS, STAGE, SURVEY)
    of = kept_of(settings, owners)
    with opened(records, memory=memory, spelling=spelling, person=of) as (table, _):
        public = _asked_first(table, queries, owners, named, words, touched_at_most(table, of), settings, spell)
        assert public.survey is not None
        check_spelled(table, public.survey.numbers, _LEFT)
        with Releases.of(table, public, owners, data_id, seat, settings, capacity, stages=("",)) as run:
            spelled = run.words(public.spell, public.survey) if public.spell else None
            total, noise = run.survey(public.survey, refuse)
            columns = surveyed_columns(public, total, noise, least=1, spelled=spelled)
            kept, left = askable(queries, columns)
            for line in left:
                (tell or _warn)(line)
            if not kept:
                raise UsageError(f"a question is about what a survey found; none can be asked: {left[0]}; ask others")
            tables = called(Tables.of(columns, kept, None, {}), run.table, owners)
            tell_of(run.table, tables, tell)
            found = run.release(tables, "", 1.0, False)
    return replace(found, level=level)


def _asked_first(
    table: Any, queries: Sequence[Asked], owners: str | None, named: Sequence[str], words: Sequence[str],
    touched: int, settings: Mapping[str, Any], spell: Sequence[str],
) -> Public:  # fmt: skip
    """What is surveyed: the columns that questions name."""
    left = {owners, settings.get("person")}
    names = mentioned(queries, [name for name in table.names if name not in left])
    if not names:
        raise UsageError(
            "what may be asked follows from <<schema>> or <<bounds>>, or from a survey of the columns that questions "
            "name; they name none that is here; give public bounds, or ask about columns"
        )
    public = surveyed_first(table, names, {}, touched, named, words, spell)
    assert public.survey is not None
    check_may_be_asked(queries, public.survey.numbers, public.survey.texts)
    return public


def _warn(line: str) -> None:
    import warnings

    warnings.warn(spelt(line), stacklevel=4)


