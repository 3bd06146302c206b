"""What a person is shown of a plan before taking part in it."""

from collections.abc import Sequence

from dpmpc.aggregation.plan.check_figures import owners_line, security_line
from dpmpc.aggregation.plan.guarantee import promise_of, share_of
from dpmpc.aggregation.plan.one_line import one_line
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.errors import number_of
from dpmpc.learning.survey_columns import columns_line
from dpmpc.mpc.contract.levels import described
from dpmpc.mpc.contract.security import security_of
from dpmpc.records.schema import Schema


def _blind(threshold: int) -> str:
    if not threshold:
        return "each reads what owners send"
    return "none alone learns anything" if threshold == 1 else f"any {threshold} together learn nothing"


def taking_part(plan: Plan, addresses: Sequence[str] = ()) -> list[str]:
    """What a process is about to take part in, a line each: the true guarantee, who computes, what is opened, of what.
    Public. Cost: nothing beyond the plan's derivation."""
    if plan.parties:
        called = [plan.called(f"party {i} ({address})") for i, address in enumerate(addresses)]
        where = f": {', '.join(called if plan.names else addresses)}" if addresses else ""
        how = described(plan.backend)
        how += f": {security_line(plan)}" if security_of(plan.backend) == "active" else ""
        who = f"{plan.parties} parties, of which {_blind(plan.threshold)} ({how}){where}"
    else:
        who = "one process that sees all vectors (engine clear)"
    schema = plan.source.about
    if plan.schema is not None and plan.schema_digest is not None:
        schema = [
            f"schema {plan.schema_digest[:16]}: {columns_line(Schema.from_json(plan.schema))} ({plan.bounds} bounds)"
        ]
    schedule, coming = plan.source.schedule, plan.before[len(plan.released) :]
    after = "".join(f", after {_one(stage.name)}" for stage in schedule.before)
    most = "at most " if any(not stage.asks for stage in schedule.before) else ""
    releases = number_of(plan.releases, "release")
    what = f"{number_of(plan.owners, 'owner')}, {most}{number_of(plan.dimension, 'coordinate')}, {releases}{after}"
    asked: list[str] = []
    began = False
    for stage, mechanism in zip(schedule.before, coming, strict=True):
        share, order = share_of(plan, mechanism), "then" if asked else "first"
        line = f"{order} {_one(stage.name)} of {stage.source.coordinates} coordinates, {share:.0%} of the budget"
        if stage.asks:
            asked += [f"{line}, of all records", *(f"asks: {text}" for text in stage.asks)]
        else:
            schema = [*schema, line] if began else [f"{line}: {schema[0]}", *schema[1:]]
            began = True
    schema = [*asked, *([f"then trains: {schema[0]}", *schema[1:]] if asked and not began else schema)]
    held = "records" if plan.counted else "places for records"
    schema += [
        f"then {stage.name}: one release of {sum(stage.sizes):,} other {held}, which no other release is of"
        f"{' but the questions' * bool(stage.shared)}, so that no record pays twice; "
        f"{stage.source.coordinates} coordinates at most"
        for stage in schedule.after
    ]
    lines = [
        f"run {plan.run_id} on '{plan.data}' (data id {plan.data_id[:16]}): {what}",
        promise_of(plan).sentence,
        *([] if plan.names is None else [f"records of {_owners_shown(plan)}"]),
        f"computed by {who}",
        *schema,
    ]
    return [one_line(line) for line in (*lines, *([owners_line(plan)] if plan.checks_owners else []))]


def _one(stage: str) -> str:
    """A stage's name with its article."""
    return stage if stage.endswith("s") else f"a {stage}"


def _owners_shown(plan: Plan) -> str:
    """The owners' names and numbers of records, as far as a line holds them."""
    assert plan.names is not None
    shown = [f"{name} with {size:,}" for name, size in zip(plan.names.owners, plan.all_sizes, strict=True)]
    return ", ".join(shown[:8]) + (f" and {len(shown) - 8} more" if len(shown) > 8 else "")
