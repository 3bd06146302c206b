"""Sites' own names beside the numbers of their processes: in every text, once each, and never a wrong one."""

from pathlib import Path

import pytest

from dpmpc.aggregation.plan.names import Names, named_errors, noted
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.plan.shown import taking_part
from dpmpc.errors import RecordError, UsageError
from dpmpc.mpc.transport.abort_reason import Told
from dpmpc.processes.status import Status
from tests.refusals import refuses

NAMES = Names(("akh", "charite", "insel"), ("north", "south"))
TEXTS = {
    "party 1 left": "charite (party 1) left",
    "waiting for owner 0, owner 1 (3 s)": "waiting for north (owner 0), south (owner 1) (3 s)",
    "parties 0, 2 go on": "akh (party 0), insel (party 2) go on",
    "owner 1, 0 bytes": "south (owner 1), 0 bytes",
    "parties 0, 2 are here": "akh (party 0), insel (party 2) are here",
    "the shares of owner 0, 1: no": "the shares of north (owner 0), south (owner 1): no",
    "as party 2: owner 1 failed": "as insel (party 2): south (owner 1) failed",
    "party 1, release 5": "charite (party 1), release 5",
    "party 0 of 3, threshold 1": "akh (party 0) of 3, threshold 1",
    "site 2 is late": "insel (site 2) is late",
    "akh (party 0) left": "akh (party 0) left",
    "owner 7 is none": "owner 7 is none",
    "party_1.log, owner3, owners 0..1, 3 parties": "party_1.log, owner3, owners 0..1, 3 parties",
    "party 1.5 and party 12": "party 1.5 and party 12",
    "counterparty 1": "counterparty 1",
}


@pytest.mark.parametrize("text", TEXTS)
def test_numbers_get_their_names_once(text: str) -> None:
    assert NAMES.beside(text) == TEXTS[text]
    assert NAMES.beside(TEXTS[text]) == TEXTS[text]


def test_names_are_part_of_the_plan_where_it_has_any() -> None:
    plain = Plan.create(owners=2, dimension=3, clip=1.0, delta=1e-5, run_id="r")
    assert '"names"' not in plain.to_text() and plain.called("party 1") == "party 1"
    named = Plan.from_text(plain.to_text()[:-1] + ',"names":{"owners":["a","b"],"parties":["x","y","z"]}}')
    assert named.names == Names(("x", "y", "z"), ("a", "b")) and named.called("owner 1") == "b (owner 1)"
    shown = " ".join(taking_part(named, ["h:1", "h:2", "h:3"]))
    assert "x (party 0) (h:1), y (party 1) (h:2), z (party 2) (h:3)" in shown


@pytest.mark.parametrize(
    "names",
    [
        '{"owners":["a"],"parties":["x","y","z"]}',
        '{"owners":["a","a"],"parties":["x","y","z"]}',
        '{"owners":["a","b\\u001b"],"parties":["x","y","z"]}',
        '{"owners":["a",1],"parties":["x","y","z"]}',
        '{"owners":["a","b"],"parties":["x","y","z"],"more":1}',
        '{"owners":["a","b"]}',
        "[]",
    ],
)
def test_names_that_are_none_are_refused(names: str) -> None:
    text = Plan.create(owners=2, dimension=3, clip=1.0, delta=1e-5, run_id="r").to_text()
    with pytest.raises(UsageError):
        Plan.from_text(f'{text[:-1]},"names":{names}}}')


def test_errors_keep_their_kind_and_their_public_half() -> None:
    with refuses("peer", 1, 0, kind=Told) as told:
        with named_errors(NAMES.beside):
            raise Told("owner 1 stopped", "party 0")
    assert told.value.cause == "owner 1 stopped"
    with pytest.raises(RecordError) as private, named_errors(NAMES.beside):
        raise RecordError("row 3 of owner 1: Jane", "owner 1 has a row")
    assert private.value.message == "south (owner 1) has a row" and "Jane" not in private.value.message


def test_lines_and_events_name_processes_and_are_noted(tmp_path: Path) -> None:
    seen: list[object] = []
    with Status(tmp_path / "s.json", "owner 0") as status:
        log, emit = noted(
            status, seen.append, lambda event, **fields: seen.append((event, fields)), NAMES.beside
        )  # fmt: skip
        emit("stage", text="owner 1 is late", phase="x")
        log("party 2 is here")
        emit("begin", phase="y")
        assert (status.state.event, status.state.phase) == ("insel (party 2) is here", "y")
    assert seen == [("stage", {"text": "south (owner 1) is late", "phase": "x"}), "insel (party 2) is here"]
