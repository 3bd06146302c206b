"""A run that ends while whoever has its releases goes on."""

import threading

import numpy as np
import pytest

from dpmpc import Aggregator
from dpmpc.aggregation.owner.ending import Ending
from dpmpc.errors import PeerError
from tests.refusals import refuses


def made(engine: str) -> Aggregator:
    return Aggregator(owners=3, dimension=2, clip=1.0, delta=1e-5, engine=engine)  # type: ignore[arg-type]


def test_parties_part_in_another_thread_and_are_gone_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    with made("mpc") as aggregator:
        aggregator.mean(np.zeros((3, 2)))
        finish, where = aggregator.session.finish, list[int]()
        monkeypatch.setattr(aggregator.session, "finish", lambda: where.append(threading.get_ident()) or finish())
        with Ending(aggregator):
            pass
        assert len(where) == 1 and where[0] != threading.get_ident()
        processes = aggregator.session._company._parties.parties._supervisor.processes  # type: ignore[attr-defined]
        assert [process.code for process in processes] == [0, 0, 0]
        with refuses("over"):
            aggregator.mean(np.zeros((3, 2)))


def test_what_fails_meanwhile_is_raised_at_the_end_and_ends_all(monkeypatch: pytest.MonkeyPatch) -> None:
    aggregator = made("clear")
    aggregator.mean(np.zeros((3, 2)))
    told = list[BaseException | None]()
    monkeypatch.setattr(aggregator.session, "abandon", told.append)

    def fails() -> None:
        raise PeerError("party 1 has left")

    monkeypatch.setattr(aggregator.session, "finish", fails)
    reached = False
    with refuses("peer", 1), Ending(aggregator):
        reached = True
    assert reached and [str(each) for each in told] == ["party 1 has left"]


def test_an_error_within_ends_the_parties_at_once() -> None:
    aggregator = made("mpc")
    aggregator.mean(np.zeros((3, 2)))
    with pytest.raises(KeyError, match="within"), Ending(aggregator):
        raise KeyError("within")
    processes = aggregator.session._company._parties.parties._supervisor.processes  # type: ignore[attr-defined]
    assert None not in [process.code for process in processes]
    aggregator.close()  # again: nothing is left to do
