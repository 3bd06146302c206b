"""One codec: a job and a request come back as they were, and what is no job is refused."""

import json
from pathlib import Path
from typing import Any

import pytest

import dpmpc
from dpmpc.aggregation.party.job import PartyJob
from dpmpc.aggregation.plan.asked import Attempt
from dpmpc.codec import of_json, to_json
from dpmpc.data.spelling import Spelling
from dpmpc.errors import UsageError
from dpmpc.mpc.transport.addresses import Endpoint
from dpmpc.privacy.account import Account
from dpmpc.privacy.budget import Budget
from dpmpc.runs.request import Request

PLAN = dpmpc.Plan.create(owners=2, dimension=2, clip=1.0, delta=1e-5)
WHOLE = PartyJob(
    PLAN, 1, [Endpoint("a", 1)], [Endpoint("b", 2)], Path("x"), 3.0, Attempt(2, 3), Path("keys"), "tcp", (3, 4), 2,
    Budget(1.0, 0.0, Path("r"), Account(Path("f"), True)), Account(Path("f"), True), 9.0, "s", True,
)  # fmt: skip
REQUESTS: list[dict[str, Any]] = [
    {"data": "synthetic", "owners": 3, "delta": 1e-5, "drop": (), "spelling": Spelling(missing=("x",), units=("kg",))},
    {"schema": "s.toml", "owner_sizes": (3, 4), "delta": 1e-5, "parties": 2, "link": 300},
    {"csv": "a.csv", "target": "t", "drop": ("a", "b"), "delta": 1e-5, "owners": 2, "neighbours": "owner"},
]


def through_json(value: Any) -> Any:
    return of_json(type(value), json.loads(json.dumps(to_json(value))))


@pytest.mark.parametrize("value", [WHOLE, PartyJob(PLAN, 0, [], [], Path("y"), 1.0), *(Request(**r) for r in REQUESTS)])
def test_what_one_process_writes_another_reads(value: Any) -> None:
    assert through_json(value) == value == type(value).from_json(value.to_json())


def test_what_is_no_job_is_refused() -> None:
    good = to_json(WHOLE)
    for name, wrong in (("index", "one"), ("addresses", [["a", 1]]), ("attempt", None), ("out", 3), ("sockets", [1])):
        with pytest.raises((ValueError, TypeError)):
            of_json(PartyJob, {**good, name: wrong})
    with pytest.raises(UsageError):
        of_json(PartyJob, {**good, "plan": "{}"})
    with pytest.raises(KeyError):
        of_json(PartyJob, {**good, "more": 1})
