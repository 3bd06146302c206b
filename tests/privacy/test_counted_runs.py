"""Runs are counted as people count: what a run surveys and evaluates is not a second run."""

from dpmpc.learning.naming import STAGE
from dpmpc.learning.survey_columns import SURVEY
from dpmpc.privacy.composition import PARTS, run_of
from dpmpc.statistics.held_out import EVALUATION
from dpmpc.statistics.study import QUESTIONS
from dpmpc.synthesis.source import FIRST


def test_parts_of_a_run_are_that_run() -> None:
    assert {f"+{QUESTIONS}", f"+{STAGE}", f"+{SURVEY}", f"+{FIRST}", f"+{EVALUATION}"} == set(PARTS)
    assert {run_of(name) for name in ("a", f"a+{SURVEY}", f"a+{EVALUATION}")} == {"a"}
    assert run_of("a+b") == "a+b" and run_of("+surveyed") == "+surveyed"
