"""The columns that a survey over several machines asked about, and of which it found nothing."""

from pathlib import Path

from dpmpc.aggregation.plan.plan import Plan
from dpmpc.learning.survey_columns import SURVEY
from dpmpc.records.loading import NOTHING_STOOD_OUT
from dpmpc.records.schema import Schema
from dpmpc.runs.job import WHOLE


def found_nothing(out: Path, schema: Schema) -> tuple[tuple[str, str], ...]:
    """The columns that the survey of a run asked about and of which nothing stood out, each with that reason: the same
    at every process. Public; () where there was no survey."""
    whole = out / SURVEY / WHOLE
    draft = Plan.read(whole).source.draft if whole.is_file() else None
    if draft is None:
        return ()
    known = {column.name for column in schema.columns}
    names = (*(column.name for column in draft.columns), *draft.unknown)
    return tuple((name, NOTHING_STOOD_OUT) for name in names if name not in known)
