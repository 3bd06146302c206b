"""Who carries sealed shares makes no release of fewer owners than the plan has, and none after the last."""

from types import SimpleNamespace
from typing import Any

from dpmpc.aggregation.owner.carrier import Carrier
from tests.refusals import refuses


def test_neither_too_few_owners_nor_a_release_too_many() -> None:
    sent = list[int]()
    plan: Any = SimpleNamespace(fewest=3, releases=2, adaptive=None)
    session: Any = SimpleNamespace(plan=plan, next=0, ready=lambda: None, send=lambda *what: sent.append(what[0]),
                                   opened=lambda: "opened")  # fmt: skip
    carrier = Carrier(session, lambda sealed: iter([[b""]]))
    with refuses("enough"):
        carrier.open({0: [b""], 1: [b""]})
    assert not sent and carrier.open({k: [b""] for k in range(3)}) == "opened" and sent == [0]
    session.next = 2
    with refuses("over"):
        carrier.open({k: [b""] for k in range(3)})
    with refuses("over"):
        carrier.skip()
    assert sent == [0]
