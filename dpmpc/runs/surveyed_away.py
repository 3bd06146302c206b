"""The columns that a survey over several machines asked about, and of which it found nothing."""

from pathlib import Path

from dpmpc.aggregation.plan.plan import Plan
from dpmpc.learning.method import Learning
from dpmpc.learning.survey_columns import SURVEY
from dpmpc.records.loading import NOTHING_STOOD_OUT
from dpmpc.records.schema import Schema
from dpmpc.runs.job import WHOLE


def found_nothing(out: Path, schema: Schema) -> tuple[tuple[str, str], ...]:
    """The columns that the survey of a run asked about and of which nothing stood out, each with that reason: the same
    at every process. Public; () where there was no survey."""
    whole = out / SURVEY / WHOLE
    source = Plan.read(whole).source if whole.is_file() else None
    if not isinstance(source, Learning) or source.survey is None:
        return ()
    draft, known = source.survey.schema, {column.name for column in schema.columns}
    names = (*(column.name for column in draft.columns), *draft.unknown)
    return tuple((name, NOTHING_STOOD_OUT) for name in names if name not in known)
