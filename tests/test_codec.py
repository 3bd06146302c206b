"""One codec: jobs, requests, plans and reservations come back as they were; what is none is refused by its field."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import dpmpc
from dpmpc.aggregation.party.job import PartyJob
from dpmpc.aggregation.plan.asked import Attempt
from dpmpc.aggregation.plan.here import Here
from dpmpc.aggregation.plan.limits import Limits
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.plan.spending import reservation_of
from dpmpc.codec import MisfitError, of_json, to_json
from dpmpc.errors import UsageError, owner_text
from dpmpc.intake.spelling import Spelling
from dpmpc.mpc.transport.addresses import Endpoint
from dpmpc.planning.request import Request
from dpmpc.privacy.account import Account
from dpmpc.privacy.budget import Budget
from dpmpc.privacy.ledgers import read_reservations, write_reservation
from tests.refusals import refuses

PLAN = dpmpc.Plan.create(owners=2, dimension=2, clip=1.0, delta=1e-5)
WHOLE = PartyJob(
    PLAN, 1, [Endpoint("a", 1)], [Endpoint("b", 2)],
    Here(out=Path("x"), wait=3.0, index="1", tls=Path("keys"), threads=2, stall=9.0, limits=Limits(law="gaussian")),
    Attempt(2, 3), "tcp", (3, 4), Budget(1.0, 0.0, Path("r"), Account(Path("f"), True)), Account(Path("f"), True), "s",
    True,
)  # fmt: skip
REQUESTS: list[dict[str, Any]] = [
    {"data": "synthetic", "owners": 3, "delta": 1e-5, "drop": (), "spelling": Spelling(missing=("x",), units=("kg",))},
    {"schema": "s.toml", "owner_sizes": (3, 4), "delta": 1e-5, "parties": 2, "link": 300},
    {"csv": "a.csv", "target": "t", "drop": ("a", "b"), "delta": 1e-5, "owners": 2, "neighbours": "owner"},
]


def through_json(value: Any) -> Any:
    return of_json(type(value), json.loads(json.dumps(to_json(value))))


LEAST = PartyJob(PLAN, 0, [], [], Here(out=Path("y")))


@pytest.mark.parametrize("value", [WHOLE, LEAST, *(Request(**r) for r in REQUESTS)])
def test_what_one_process_writes_another_reads(value: Any) -> None:
    assert through_json(value) == value == type(value).from_json(value.to_json())


def test_what_is_no_job_is_refused_by_the_name_of_its_field() -> None:
    good = to_json(WHOLE)
    for name, wrong in (("index", "one"), ("addresses", [["a", 1]]), ("attempt", None), ("out", 3), ("sockets", [1])):
        with pytest.raises(MisfitError, match=name):
            of_json(PartyJob, {**good, name: wrong})
    with pytest.raises(MisfitError, match="attempt has no key 'numbr'") as caught:
        of_json(PartyJob, {**good, "attempt": {"numbr": 1, "first_release": 0}})
    assert caught.value.way == "did you mean 'number'"
    with pytest.raises(UsageError):
        of_json(PartyJob, {**good, "plan": "{}"})
    with pytest.raises(MisfitError, match="no key 'more'"):
        of_json(PartyJob, {**good, "more": 1})
    with pytest.raises(MisfitError, match="has no index"):
        of_json(PartyJob, {name: value for name, value in good.items() if name != "index"})


@pytest.mark.parametrize(
    ("part", "name", "wrong", "says"),
    [
        ("computing", "parties", "3", "a plan's computing has parties '3': expected `int`, got `str`"),
        ("attendance", "role", "all", "a plan's attendance has role 'all', which is one of apart, both"),
        ("promise", "delta", None, "a plan's promise has delta None: expected `float`, got `null`"),
        (None, "sizes", [1, "2"], "a plan has sizes [1, '2']: expected `int`, got `str`"),
        (None, "names", {"parties": [], "owners": [], "sites": []}, "a plan's names has no key 'sites'; take it out"),
        (None, "noise", 5, "a plan's noise is an object; got 5"),
        (None, "source", {}, "a plan has one source"),
    ],
)
def test_a_plan_is_refused_in_one_line_that_names_field_and_rule(
    part: str | None, name: str, wrong: object, says: str
) -> None:
    value = json.loads(PLAN.to_text())
    (value if part is None else value[part])[name] = wrong
    with pytest.raises(UsageError) as caught:
        Plan.from_text(json.dumps(value))
    assert says in owner_text(caught.value) and "\n" not in owner_text(caught.value)
    del (value if part is None else value[part])[name]
    if name != "names":  # which a plan without names has not
        with refuses("file", name):
            Plan.from_text(json.dumps(value))


def test_what_is_reserved_is_read_as_it_was_written(tmp_path: Path) -> None:
    mine = replace(reservation_of(PLAN, Attempt(1, 0)), since=3, by="party 1")
    write_reservation(tmp_path / "ledger_0.jsonl", mine)
    assert read_reservations(tmp_path / "ledger_0.jsonl") == (mine,)
    (file,) = tmp_path.iterdir()
    (good,) = json.loads(file.read_text())
    for change, says in (({"end": "5"}, "end"), ({"ending": 5}, "ending"), ({"entry": {}}, "mechanism")):
        file.write_text(json.dumps([{**good, **change}]))
        with refuses("file", says):
            read_reservations(tmp_path / "ledger_0.jsonl")
