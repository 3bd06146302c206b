"""The columns that a survey over several machines asked about, and of which it found nothing."""

from pathlib import Path

from dpmpc.aggregation.plan.plan import Plan
from dpmpc.learning.of_schema import surveyed_away
from dpmpc.learning.survey_columns import SURVEY
from dpmpc.records.schema import Schema
from dpmpc.run.files import WHOLE


def draft_in(out: Path) -> Schema | None:
    """What was known of the schema before the survey of the run in this folder; None where it had none."""
    whole = out / SURVEY / WHOLE
    return Plan.read(whole).source.draft if whole.is_file() else None


def found_nothing(out: Path, schema: Schema) -> tuple[tuple[str, str], ...]:
    """The columns that the survey of a run asked about and of which nothing stood out, each with that reason: the same
    at every process. Public; () where there was no survey."""
    return surveyed_away(draft_in(out), schema)
