"""What every plan must keep, whoever made it and wherever it comes from: types, ranges, and what goes together."""

import contextlib
import re
from collections.abc import Iterator
from typing import get_args

from dpmpc.aggregation.plan.asked import Asked
from dpmpc.aggregation.plan.decided import check_decided
from dpmpc.aggregation.plan.one_line import is_one_line, one_line
from dpmpc.aggregation.plan.owner_bounds import check_owners_possible
from dpmpc.errors import UsageError, sayable
from dpmpc.learning.task import check_modelled
from dpmpc.mpc.contract.backend import BACKENDS
from dpmpc.mpc.transport.channels import MOST_RELEASES
from dpmpc.privacy.checks import check_count
from dpmpc.privacy.law import LAWS
from dpmpc.privacy.sensitivity import Weights
from dpmpc.records.origins import ELEMENTS, Bounds, in_order
from dpmpc.records.schema import Schema

_PART = re.compile(r"(record|person):[0-9a-f]{16}/[A-Za-z_]\w*")


@contextlib.contextmanager
def of_usual_size() -> Iterator[None]:
    """What is inside works out a plan. Errors: its settings are too large or too small for a computer's numbers."""
    try:
        yield
    except ArithmeticError:
        raise UsageError(
            "noise follows from settings by numbers that a computer can hold; those of this plan are too large or "
            "too small for that; give bounds, penalties, weights and a promise of usual size",
            code="range",
        ) from None


def check_plan(plan: Asked) -> None:
    """Errors: UsageError for a value of another type, or out of its range."""
    for name in ("run_id", "data", "data_id"):
        if not isinstance(getattr(plan, name), str):
            raise UsageError(f"a plan's {name} must be a text; got {getattr(plan, name)!r}; plan again")
    wrong = [(owner, size) for owner, size in enumerate(plan.sizes) if type(size) is not int or size < 1]
    if wrong or not plan.sizes:
        got = f"{wrong[0][1]!r} of owner {wrong[0][0]}" if wrong else "none"
        raise UsageError(f"a plan's sizes, the owners' records, are whole numbers of at least 1; got {got}; plan again")
    for name in ("dimension", "releases"):
        if type(getattr(plan, name)) is not int:
            raise UsageError(f"a plan's {name} must be a whole number; got {getattr(plan, name)!r}; plan again")
    check_count("dimension", plan.dimension)
    if not 1 <= plan.releases <= MOST_RELEASES:
        raise UsageError(f"a run makes 1 to {MOST_RELEASES} releases; got {plan.releases}; ask for fewer", code="range")
    for name, value, allowed in (
        ("weights", plan.weights, get_args(Weights)),
        ("bounds", plan.bounds, get_args(Bounds)),
    ):
        if value not in allowed:
            raise UsageError(f"a plan's {name} is one of {', '.join(map(str, allowed))}; got {value!r}; plan again")
    if not set(plan.rests_on) <= set(ELEMENTS) or tuple(plan.rests_on) != in_order(plan.rests_on):
        known = ", ".join(ELEMENTS)
        raise UsageError(
            f"what a plan's promise rests on is of {known}; got {plan.rests_on!r}; plan again", code="plan"
        )
    if not isinstance(plan.part, str) or (plan.part and not _PART.fullmatch(plan.part)):
        raise UsageError(f"a plan's part is one of an assignment's, or empty; got {plan.part!r}; plan again")
    if not isinstance(plan.stage_of, str) or not re.fullmatch("([0-9a-f]{64})?", plan.stage_of):
        raise UsageError(f"a plan's stage_of is a digest of a plan, or empty; got {plan.stage_of!r}; plan again")
    if not isinstance(plan.passed, float) or not 0 <= plan.passed < 1:
        raise UsageError(f"that a cheat has passed has a probability; got {plan.passed!r}; plan again", code="plan")
    law = LAWS[plan.law]
    law.check_calibration(plan.calibration)
    law.check_delta(plan.delta)
    if type(plan.pool) is not bool:
        raise UsageError(f"a plan's pool must be True or False; got {plan.pool!r}; plan again")
    staged = plan.released or plan.source.schedule.before
    if staged and (plan.calibration != "tight" or plan.scale is not None or not plan.delta):
        raise UsageError(
            "what a run released before is in its promise by the tight calibration at a delta; the plan has another, or"
            " a scale; plan again"
        )
    if plan.names is not None and (len(plan.names.parties), len(plan.names.owners)) != (plan.parties, plan.owners):
        raise UsageError("a plan has no names, or one for every party and owner; these are others; plan again")
    for what, text in (("run_id", plan.run_id), ("data (from data_id)", plan.data), ("data_id", plan.data_id)):
        if not is_one_line(text):
            raise UsageError(
                f"a plan's texts are a line each; its {what} is {one_line(text)[:80]}; plan again", code="plan"
            )
    _check_persons(plan)
    plan.source.check(plan.neighbours, plan.dimension)
    if plan.schema is not None:
        _check_schema(plan, plan.schema)
    if plan.source.draft is not None:
        if plan.schema is not None or plan.bounds != "survey":
            raise UsageError("a plan's schema and bounds come from its survey; this one has others; plan again")
    if not plan.released and any(each.run == plan.run_id for each in plan.origin.found):
        raise UsageError(
            f"a run has a name of its own; {sayable(plan.run_id)} found the schema that it is asked by, and what both "
            "promise together is more; leave the name out, or give another",
            code="unique",
            setting="run_id",
        )
    _check_attendance(plan)
    check_owners_possible(plan)
    check_decided(plan)
    if plan.parties:
        if plan.parties < 1:
            raise UsageError(f"the number of parties must be at least 1; got {plan.parties}; use <<parties=3>>")
        BACKENDS[plan.backend].check(plan.parties, plan.threshold)


def _check_attendance(plan: Asked) -> None:
    """Errors: UsageError for owners that cannot be so few, or be parties too."""
    if not 1 <= plan.fewest <= plan.owners:
        raise UsageError(
            f"<<min_owners>> must lie in 1..{plan.owners}, the number of owners; got {plan.min_owners}; leave it out "
            "for all"
        )
    if plan.role == "both" and plan.dropouts:
        raise UsageError(
            f"with <<role=both>> an owner cannot be missing where its party is there; got <<min_owners>> "
            f"{plan.min_owners}; leave one of them out"
        )
    if plan.role == "both" and plan.owners != plan.parties:
        raise UsageError(
            f"with <<role=both>> every owner is a party, one process a site; got {plan.owners} owners and "
            f"{plan.parties} "
            "parties; give as many of both with <<parties>>, or leave <<role>> out",
            code="together",
        )


def _check_persons(plan: Asked) -> None:
    """Errors: UsageError for a promise of persons that nobody could keep, or half of one."""
    if type(plan.capacity) is not bool:
        raise UsageError(f"a plan's sizes are capacities or not; got {plan.capacity!r}; give true or false")
    own = not plan.source.OF_RECORDS
    if plan.neighbours == "person" and plan.person is None and not own:
        raise UsageError(
            "a promise of persons needs the column that says which person a record is of; there is none; add "
            "<<person=COLUMN>>",
            code="missing",
        )
    if plan.neighbours == "person" and plan.person_owners > plan.owners:
        raise UsageError(
            f"a person is at {plan.owners} owners at most; got <<person_owners={plan.person_owners}>>; leave it out",
            code="range",
        )
    if own and plan.capacity:
        raise UsageError(
            "places that may be empty are filled by dpmpc, of records; this plan's vectors are a program's; plan again"
        )


def _check_schema(plan: Asked, value: object) -> None:
    """Errors: UsageError for what is no schema, or one that does not suit the rest of the plan."""
    if not isinstance(value, dict):
        raise UsageError(f"a plan's schema is an object; got {str(value)[:40]}; plan again")
    schema = Schema.from_json(value)
    if schema.to_json() != value:
        raise UsageError("a plan's schema must be spelled as dpmpc spells it; this one is not; plan again")
    for name, asked, made in (
        (
            "dimension",
            plan.dimension,
            plan.learning.length(len(schema.feature_names)),
        ),
        ("number of classes", plan.learning.classes, schema.classes),
        ("bounds", plan.bounds, schema.bounds),
    ):
        if asked != made:
            raise UsageError(
                f"a plan's {name} is its schema's; the plan has {asked}, its schema {made}; plan again", code="plan"
            )
    check_modelled(schema, plan.learning.task)
