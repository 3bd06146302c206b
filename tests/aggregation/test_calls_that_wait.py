"""Processes of a run on this machine meet at the first call: who calls before another is there waits in the kernel."""

import contextlib
import socket

import numpy as np
import pytest

from dpmpc.aggregation.owner.aggregator import Aggregator
from dpmpc.aggregation.owner.local_parties import PartiesHere
from dpmpc.mpc.transport.dial import Call

PARTIES = 3


def test_owners_call_each_party_once_though_none_has_started(monkeypatch: pytest.MonkeyPatch) -> None:
    called, once = list[str](), Call.once

    async def counted(self: Call, *given: object) -> object:
        called.append(self.who)
        return await once(self, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(Call, "once", counted)
    with Aggregator(owners=2, dimension=3, clip=1.0, epsilon=1.0, delta=1e-5, parties=PARTIES) as aggregator:
        aggregator.mean(np.zeros((2, 3)))
    assert sorted(called) == [f"party{i}" for i in range(PARTIES)]


def test_a_call_that_nobody_will_take_ends_with_the_parties() -> None:
    here = PartiesHere(PARTIES)
    with contextlib.ExitStack() as stack:
        stack.callback(here.end)
        where = [*here.parties.addresses, *here.owner_addresses]
        calls = [stack.enter_context(socket.create_connection((each.host, each.port))) for each in where]
        assert len(calls) == 2 * PARTIES
        here.end()
        for call in calls:
            with contextlib.suppress(ConnectionResetError):
                assert call.recv(1) == b""
        for each in where:
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection((each.host, each.port))
