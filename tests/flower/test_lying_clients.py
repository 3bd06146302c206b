"""Clients that deviate, against an unmodified server: whatever a reply holds, it is left out or it is shares; and
nobody speaks in another owner's place where that one answers."""

import itertools
import logging
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("flwr", reason="Flower is an extra: pip install 'dpmpc[flower]'")

from flwr.app import Array, ArrayRecord, ConfigRecord, Error, Message, MetricRecord, RecordDict

import dpmpc
from dpmpc.benchmarks.flower_grid import InlineGrid
from dpmpc.flower import ask, prepare
from dpmpc.flower.messages import Replies, read_replies
from dpmpc.flower.prepared import Prepared
from dpmpc.flower.words import OWNER, PLAN, RECORD, RELEASE, SEALED, SHARES
from tests.flower.test_flower_questions import app, grid_of, people, plan

OWNERS = 4
TOLD = dpmpc.Limits(epsilon=math.inf, by_owner=True)


@pytest.fixture
def prepared(tmp_path: Path) -> Prepared:
    InlineGrid([])  # a message needs a run
    promise: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-5, "releases": 2, "min_owners": 1}
    return prepare(tmp_path / "p", owners=OWNERS, dimension=3, clip=1.0, **promise)


def reply(node: int, about: Any, shares: Any) -> Message:
    records = {name: record for name, record in ((RECORD, about), (SHARES, shares)) if record is not None}
    asked = Message(RecordDict(), dst_node_id=node, message_type="train")
    return Message(RecordDict(records), reply_to=asked)


def said(prepared: Prepared, **other: Any) -> ConfigRecord:
    return ConfigRecord({PLAN: prepared.digest.hex(), RELEASE: 0, OWNER: 1, **other})


def shares(prepared: Prepared, longer: int = 0, kind: str = SEALED) -> ArrayRecord:
    sizes = [size + longer for size in prepared.sealed_bytes]
    return ArrayRecord(
        {str(k): Array(dtype="uint8", shape=(n,), stype=kind, data=bytes(n)) for k, n in enumerate(sizes)}
    )


def test_whatever_a_reply_holds_it_is_left_out_or_it_is_shares(prepared: Prepared) -> None:
    """Every record in the place of every other, with values of every type that Flower has; one good pair among them.
    No reply raises: one client would end the round of all."""
    abouts: list[Any] = [said(prepared, **{name: value}) for name, value in itertools.product(
        (PLAN, RELEASE, OWNER), (True, -1, OWNERS, 10**18, 0.5, "1", b"1", [1], [], [b"1"], ["1"]),
    )]  # fmt: skip
    wrong: list[Any] = [
        None, ConfigRecord({}), MetricRecord({}), ArrayRecord({}), MetricRecord({RELEASE: 0, OWNER: 1, "0": 1}),
        *(ConfigRecord({str(k): value for k in range(3)}) for value in (b"x", "x", 1, 1.0, True, [b"x"])),
        MetricRecord({str(k): [1, 2] for k in range(3)}), shares(prepared, 1), shares(prepared, -1),
        shares(prepared, kind="numpy.ndarray"), ArrayRecord({"0": Array("uint8", (0,), SEALED, b"")}),
    ]  # fmt: skip
    good = said(prepared), shares(prepared)
    taken = 0
    for about, held in itertools.product([*abouts, *wrong, good[0]], [*wrong, good[1]]):
        found = read_replies(prepared, [reply(7, about, held)], 0)
        taken += bool(found.sealed)
        right = about is good[0] and held is good[1]
        assert bool(found.sealed) is right is not bool(found.problems), (about, held)
    assert taken == 1


def test_what_a_client_gives_as_its_reason_is_one_line(prepared: Prepared) -> None:
    asked = Message(RecordDict(), dst_node_id=7, message_type="train")
    error = Message(Error(code=0, reason="\x1b[2Jall is well\nround 1: done\udc80" * 100), reply_to=asked)
    (problem,) = read_replies(prepared, [error], 0).problems
    assert problem.isprintable() and len(problem) <= 500


def came(prepared: Prepared, nodes: list[tuple[int, int]], known: dict[int, int] | None = None) -> Replies:
    """What is read of nodes that each say an owner's number."""
    replies = [reply(node, said(prepared, **{OWNER: owner}), shares(prepared)) for node, owner in nodes]
    return read_replies(prepared, replies, 0, known)


def test_of_two_that_come_as_one_owner_the_known_one_counts_or_neither(prepared: Prepared) -> None:
    """In every order, so that nobody gains by being quicker."""
    for nodes in itertools.permutations([(7, 0), (8, 0), (9, 1)]):
        assert came(prepared, list(nodes)).sealed.keys() == {1}
        assert came(prepared, list(nodes), {8: 0}).numbers == {8: 0, 9: 1}
        assert came(prepared, list(nodes), {7: 0, 8: 0}).sealed.keys() == {1}
        found = came(prepared, list(nodes), {8: 2, 7: 0})  # a node is one owner
        assert found.numbers == {7: 0, 9: 1} and any("was owner 2 came as owner 0" in each for each in found.problems)
    assert came(prepared, [(7, 0)], {8: 0}).numbers == {7: 0}  # a node that began anew has another name


def answers(folder: Path, tmp: Path, change: Callable[[ConfigRecord], None]) -> InlineGrid:
    """The clients of a plan of questions, the last of which says another thing of its reply."""
    grid = grid_of(folder, tmp, limits=TOLD)
    honest = app(folder, tmp / f"account {OWNERS - 1}", people, limits=TOLD)

    def lies(message: Message, context: Any) -> Message:
        made = honest(message, context)
        change(made.content[RECORD])
        return made

    grid._apps[OWNERS] = lies
    return grid


def test_no_client_fills_the_cells_of_an_owner_that_answers(tmp_path: Path, caplog: Any) -> None:
    """Questions by owner, without noise. The last client says that it is owner 0: the owner that it names has nothing
    in the answers, and is named; nobody's count is another's."""
    folder = plan(tmp_path / "p", ["count by owner"], scale=0.0)
    with caplog.at_level(logging.WARNING, "flwr"):
        found = ask(answers(folder, tmp_path, lambda about: about.update({OWNER: 0})), folder)
    assert found.present == (1, 2)
    assert [round(float(each)) for each in found.total] == [0, 400, 300, 0]
    assert "2 clients came as owner 0; none counts" in caplog.text


def test_shares_that_were_sealed_for_one_owner_are_nobody_elses(tmp_path: Path) -> None:
    """The reply of the last client is relabelled as of owner 0, who stays away: parties open none of it."""
    folder = plan(tmp_path / "p", ["count by owner"], scale=0.0)
    grid = answers(folder, tmp_path, lambda about: about.update({OWNER: 0}))
    grid._fails = {1}
    assert ask(grid, folder).present == (1, 2)
