"""Processes that refuse to take part, in every role: those that wait hear it, and end with one line. Real sockets, real
roles; nobody waits longer than it takes."""

import math
import socket
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

import dpmpc
from dpmpc.aggregation.party.owner_gate import OwnerGate
from dpmpc.aggregation.plan.identities import greeting
from dpmpc.aggregation.wire import refusal
from dpmpc.aggregation.wire.frames import ASKING, HAVE, HELLO
from dpmpc.consortium.placement import Placement
from dpmpc.consortium.start import start
from dpmpc.errors import PeerError, UsageError, owner_text
from dpmpc.flower import ShareParty, prepare
from dpmpc.flower.prepared import key_path
from dpmpc.mpc.transport.addresses import owner_endpoints, parse_endpoints
from dpmpc.mpc.transport.listener import Refused
from dpmpc.planning.request import Request
from dpmpc.privacy.ledger import Ledger
from tests.refusals import refuses
from tests.runs import HANG, own_addresses

ANY, NONE = dpmpc.Limits(epsilon=math.inf), dpmpc.Limits(epsilon=1e-9, delta=1e-5)


class Meeting:
    """Processes of one plan, each in a thread, that wait for others; and what each ended with."""

    def __init__(self, folder: Path, parties: int = 3, **settings: object) -> None:
        base = {"owners": 3, "dimension": 2, "clip": 1.0, "delta": 1e-5, "epsilon": 1.0, "parties": parties}
        self.plan = dpmpc.Plan.create(**(base | settings))  # type: ignore[arg-type]
        self.folder, self.addresses = folder, own_addresses(parties)[1::2]
        self.ended: dict[str, dpmpc.DpmpcError | None] = {}
        self.threads: list[threading.Thread] = []

    def comes(self, name: str, call: Callable[[], None]) -> None:
        def body() -> None:
            try:
                call()
                self.ended[name] = None
            except dpmpc.DpmpcError as error:
                self.ended[name] = error

        self.threads.append(threading.Thread(target=body))
        self.threads[-1].start()

    def settings(self, name: str, limits: dpmpc.Limits) -> dict[str, object]:
        return {"out": self.folder / name, "wait": HANG, "limits": limits, "account": self.folder / f"account {name}"}

    def party(self, i: int, limits: dpmpc.Limits = ANY) -> None:
        dpmpc.Party(self.plan, i, self.addresses, **self.settings(f"party {i}", limits)).run()  # type: ignore[arg-type]

    def owner(self, j: int, limits: dpmpc.Limits = ANY) -> None:
        with dpmpc.Owner(self.plan, j, self.addresses, **self.settings(f"owner {j}", limits)) as me:  # type: ignore[arg-type]
            me.mean(np.zeros(2))

    def site(self, i: int, limits: dpmpc.Limits = ANY) -> None:
        with dpmpc.Site(self.plan, i, self.addresses, **self.settings(f"site {i}", limits)) as me:  # type: ignore[arg-type]
            me.mean(np.zeros(2))

    def wait_for(self, parties: list[int]) -> None:
        """Returns when these parties listen for owners."""
        for i in parties:
            host, port = self.addresses[i].rsplit(":", 1)
            while True:
                assert all(thread.is_alive() for thread in self.threads), "a process ended before it listened"
                with closing(socket.socket()) as caller:
                    if caller.connect_ex((host, int(port) + len(self.addresses))) == 0:
                        break

    def end(self) -> None:
        for thread in self.threads:
            thread.join(HANG)
        assert not any(thread.is_alive() for thread in self.threads)

    def spent(self) -> int:
        return sum(len(Ledger.read(path).entries) for path in self.folder.glob("**/ledger_*.jsonl"))


def all_heard(meeting: Meeting, who: str) -> None:
    """Whoever waited ends with one line that names who refuses, and nothing was spent."""
    meeting.end()
    for name, error in meeting.ended.items():
        assert isinstance(error, PeerError), f"{name}: {error}"
        assert f"{who} refuses to take part" in owner_text(error) and "\n" not in owner_text(error), f"{name}: {error}"
    assert meeting.spent() == 0


@pytest.mark.parametrize("parties", [3, 2], ids=["three parties", "two servers"])
@pytest.mark.parametrize("who", ["owner 1", "last party"])
def test_owners_and_parties_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parties: int, who: str) -> None:
    came = threading.Semaphore(0)
    monkeypatch.setattr(OwnerGate, "_came", lambda self, first, end, peer: came.release())
    meeting = Meeting(tmp_path, parties, releases=2)
    refusing = who if who.startswith("owner") else f"party {parties - 1}"
    here = [i for i in range(parties) if refusing != f"party {i}"]
    for i in here:
        meeting.comes(f"party {i}", lambda i=i: meeting.party(i))  # type: ignore[misc]
    meeting.comes("owner 0", lambda: meeting.owner(0))
    meeting.wait_for(here)
    for _ in here:  # whoever comes when all is over hears nothing
        assert came.acquire(timeout=HANG)
    with refuses("limits", 1):
        meeting.owner(1, NONE) if who == "owner 1" else meeting.party(parties - 1, NONE)
    all_heard(meeting, refusing)


def test_sites(tmp_path: Path) -> None:
    meeting = Meeting(tmp_path, 3, role="both")
    for i in (0, 2):
        meeting.comes(f"site {i}", lambda i=i: meeting.site(i))  # type: ignore[misc]
    meeting.wait_for([0, 2])
    with refuses("limits", 1):
        meeting.site(1, NONE)
    all_heard(meeting, "party 1")


def test_processes_of_the_command_line(tmp_path: Path) -> None:
    meeting = Meeting(tmp_path)
    meeting.plan.write(tmp_path / "plan.json")

    def train(index: int, limits: dpmpc.Limits) -> None:
        where = Placement(
            out=tmp_path / f"party {index}", addresses=tuple(meeting.addresses), index=str(index), limits=limits,
            wait=HANG, plan_file=tmp_path / "plan.json", account=str(tmp_path / f"account {index}"),
        )  # fmt: skip
        start(None, where, lambda event: None)

    for i in (1, 2):
        meeting.comes(f"party {i}", lambda i=i: train(i, ANY))  # type: ignore[misc]
    meeting.wait_for([1, 2])
    with refuses("limits", 1):
        train(0, NONE)
    all_heard(meeting, "party 0")


def test_owners_without_a_plan_file(tmp_path: Path) -> None:
    """The plan is made from the options, alike everywhere: parties that have it hear owners that refuse it."""
    meeting = Meeting(tmp_path)
    request = Request(
        data="synthetic", max_rows=60, dimension=2, owners=3, iterations=1, delta=1e-4, evaluate=False, parties=3,
        test_fraction=0.0,
    )  # fmt: skip

    def train(index: str, limits: dpmpc.Limits | None) -> None:
        where = Placement(
            out=tmp_path / index, addresses=tuple(meeting.addresses), index=index, limits=limits, wait=HANG,
            account=str(tmp_path / f"account {index}"),
        )  # fmt: skip
        start(request, where, lambda event: None)

    for i in range(3):
        meeting.comes(f"party {i}", lambda i=i: train(str(i), None))  # type: ignore[misc]
    meeting.wait_for([0, 1, 2])
    with refuses("limits"):
        train("owners", NONE)
    all_heard(meeting, "the owners' process (0..2)")


def test_parties_of_a_flower_run(tmp_path: Path) -> None:
    given = prepare(tmp_path / "keys", owners=3, dimension=2, clip=1.0, delta=1e-5, epsilon=1.0)
    addresses = own_addresses(3)[1::2]
    meeting = Meeting(tmp_path)
    meeting.addresses = addresses

    def party(i: int, limits: dpmpc.Limits) -> None:
        settings = meeting.settings(f"party {i}", limits)
        ShareParty(given, i, addresses, key=key_path(tmp_path / "keys", i), **settings).run()  # type: ignore[arg-type]

    for i in (0, 1):
        meeting.comes(f"party {i}", lambda i=i: party(i, ANY))  # type: ignore[misc]
    meeting.wait_for([0, 1])
    with refuses("limits", 1, "1e-05"):
        party(2, NONE)
    all_heard(meeting, "party 2")


def test_where_owners_may_be_missing_an_owner_that_refuses_ends_nothing(tmp_path: Path) -> None:
    meeting = Meeting(tmp_path, 3, min_owners=2, release_wait=HANG)
    for i in range(3):
        meeting.comes(f"party {i}", lambda i=i: meeting.party(i))  # type: ignore[misc]
    meeting.wait_for([0, 1, 2])
    with refuses("limits", 1):
        meeting.owner(1, NONE)
    logs = [tmp_path / f"party {i}" / f"party_{i}.log" for i in range(3)]
    assert all("owner 1 refuses to take part" in log.read_text() for log in logs)
    for j in range(3):  # it has other limits now
        meeting.comes(f"owner {j}", lambda j=j: meeting.owner(j))  # type: ignore[misc]
    meeting.end()
    assert set(meeting.ended.values()) == {None}


def test_who_is_there_cannot_be_said_to_refuse(tmp_path: Path) -> None:
    """A second process of the same name, started by mistake with other limits, ends nobody's run; nor does a stranger
    that does not know the plan."""
    meeting = Meeting(tmp_path)
    meeting.comes("party 0", lambda: meeting.party(0))
    meeting.comes("party 1", lambda: meeting.party(1))
    meeting.comes("owner 0", lambda: meeting.owner(0))
    meeting.wait_for([0, 1])
    logs = [tmp_path / f"party {i}" / f"party_{i}.log" for i in (0, 1)]
    stranger = dpmpc.Plan.create(owners=3, dimension=2, clip=1.0, delta=1e-5, epsilon=2.0)
    with pytest.raises(UsageError), refusal.refusal_told(
        lambda: stranger, lambda: owner_endpoints(parse_endpoints(meeting.addresses)), None
    ):  # fmt: skip
        raise UsageError("this one has another plan")
    assert all("all processes must have the same plan" in log.read_text() for log in logs)
    meeting.comes("party 2", lambda: meeting.party(2))
    meeting.wait_for([2])
    while not all("connected with the other parties" in log.read_text() for log in logs):
        pass
    with refuses("limits", 1, "1e-05"):
        meeting.party(1, NONE)
    for j in (1, 2):
        meeting.comes(f"owner {j}", lambda j=j: meeting.owner(j))  # type: ignore[misc]
    meeting.end()
    assert set(meeting.ended.values()) == {None}


def test_who_refuses_is_one_of_the_plan() -> None:
    plan = dpmpc.Plan.create(owners=3, dimension=2, clip=1.0, delta=1e-5, epsilon=1.0)
    assert refusal.refuser(plan, refusal.PARTY, 2) == ("party 2", "party2")
    assert refusal.refuser(plan, refusal.OWNERS + 1, 2) == ("owner 1", "owner1")
    assert refusal.refuser(plan, refusal.OWNERS, 3)[1] == "owners"
    for first, end in ((refusal.PARTY, 3), (refusal.OWNERS + 1, 1), (refusal.OWNERS + 2, 4)):
        with refuses("peer", setting="index", kind=Refused):
            refusal.refuser(plan, first, end)
    assert not any(map(refusal.is_refusal, (0, 7, HAVE, HAVE + 7, ASKING)))
    assert HELLO.size == len(HELLO.pack(refusal.PARTY, 2, greeting(plan, plan.attempt)))
