"""Where processes are: what a party listens on, how long they wait, who may return."""

import asyncio
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from dpmpc.aggregation.plan.asked import plan_path
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.wire.transcript import OpenedVectors
from dpmpc.consortium.placement import Placement
from dpmpc.consortium.start import prepare_owners
from dpmpc.errors import UsageError
from dpmpc.local.job import SAID
from dpmpc.mpc.parties.session import Session
from dpmpc.mpc.transport.addresses import Endpoint, bound_socket, endpoint_of
from dpmpc.mpc.transport.dial import TcpLink
from dpmpc.run.files import OWNERS_OPENED
from tests.refusals import refuses
from tests.runs import HANG

CALLED = ("a.example:1000", "b.example:2000", "c.example:3000")


def test_a_party_listens_where_it_says_and_is_called_where_the_others_say(tmp_path: Path) -> None:
    where = Placement(out=tmp_path, addresses=CALLED, index="1", tls=tmp_path, listen="0.0.0.0")
    parties, owners = where.listening(1, where.endpoints(3))
    assert parties == [Endpoint("a.example", 1000), Endpoint("0.0.0.0", 2000), Endpoint("c.example", 3000)]
    assert owners == [Endpoint("a.example", 1003), Endpoint("0.0.0.0", 2003), Endpoint("c.example", 3003)]
    where = Placement(out=tmp_path, addresses=CALLED, index="2", tls=tmp_path, listen="[::]:77")
    parties, owners = where.listening(2, where.endpoints(3))
    assert parties[2] == Endpoint("::", 77) and owners[2] == Endpoint("::", 80)


def test_a_party_that_listens_everywhere_needs_tls(tmp_path: Path) -> None:
    where = Placement(out=tmp_path, addresses=("127.0.0.1:1", "127.0.0.2:1"), index="1", listen="0.0.0.0")
    with refuses("addresses", "0.0.0.0", setting="tls"):
        where.listening(1, where.endpoints(2))
    for index, addresses in (("owners", CALLED), ("owner1", CALLED), ("1", ()), (None, ())):
        with pytest.raises(UsageError):
            Placement(out=tmp_path, addresses=addresses, index=index, plan_file=tmp_path, listen="0.0.0.0")


def test_who_is_started_alone_waits_longer(tmp_path: Path) -> None:
    assert Placement(out=tmp_path).patience == 60 and Placement(out=tmp_path, index="0").patience == 600
    assert Placement(out=tmp_path, index="0", wait=3.0).patience == 3
    for code, stall in (("range", 0), ("range", 2), ("type", float("nan"))):
        with refuses(code, stall, setting="stall"):
            Placement(out=tmp_path, stall=stall)


def test_folders_are_for_their_user_alone(tmp_path: Path) -> None:
    out = tmp_path / "run"
    out.mkdir(mode=0o755)
    prepare_owners(Placement(out=out), None)
    assert out.stat().st_mode & 0o777 == 0o700


def test_an_owner_returns_to_the_same_run_and_to_no_other(tmp_path: Path) -> None:
    for fewest in (2, None):
        plan = Plan.create(owners=3, dimension=2, clip=1.0, epsilon=1.0, delta=1e-5, releases=4, min_owners=fewest)
        out, file = tmp_path / str(fewest), tmp_path / f"{fewest}.json"
        where = Placement(out=out, index="owner1", plan_file=file)
        assert not prepare_owners(where, plan)
        plan.write(plan_path(out))
        opened = OpenedVectors(out / OWNERS_OPENED)
        opened.append(0, plan.grid.encode(_zeros()))
        opened.close()
        with refuses("over", out / OWNERS_OPENED, setting="out"):
            prepare_owners(where, replace(plan, releases=5))
        (out / "report.json").write_text("{}")  # and nothing of the sum: it died between the two
        assert not prepare_owners(where, plan)
        assert not (out / OWNERS_OPENED).exists()  # the parties give the history anew
        for name in ("report.json", SAID):
            (out / name).write_text("{}")
        assert prepare_owners(where, plan) and (out / "report.json").exists()  # over
        assert not prepare_owners(replace(where, overwrite=True), plan) and not (out / "report.json").exists()


def _zeros() -> "object":
    import numpy as np

    return np.zeros(2)


def test_parties_meet_over_ipv6() -> None:
    try:
        bound = [bound_socket("::1") for _ in range(2)]
    except OSError:
        pytest.skip("this machine has no IPv6")

    async def meet() -> None:
        where = [endpoint_of(s) for s in bound]
        sessions = [Session(i, 2, 0, b"run") for i in range(2)]
        await asyncio.gather(
            *(s.connect(TcpLink(i, where, bound=bound[i]), seconds=HANG) for i, s in enumerate(sessions))
        )
        assert all(peer.socket.family == socket.AF_INET6 for s in sessions for peer in s.peers.values())  # type: ignore[attr-defined]
        for session in sessions:
            session.abandon()
        await asyncio.sleep(0)

    asyncio.run(meet())
