"""Rollback of an owner's account, against unmodified parties: backups that are put back, second machines, forks. Real
sockets; every owner and party has an account of its own."""

import math
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import dpmpc
from dpmpc.aggregation.wire import account_heads
from dpmpc.aggregation.wire.account_heads import HeadsShown
from dpmpc.errors import PeerError, UsageError, owner_text
from dpmpc.privacy.account import Account
from dpmpc.privacy.data_names import data_digest
from dpmpc.privacy.heads import Head
from dpmpc.privacy.ledger import Ledger
from tests.refusals import refuses
from tests.runs import HANG, own_addresses

DATA = "wards"
ANY = dpmpc.Limits(epsilon=math.inf)


class World:
    """A consortium of two owners and three parties, each with a folder of its own, that makes one run after another."""

    def __init__(self, folder: Path, **changes: object) -> None:
        self.folder, self.runs = folder, 0
        base = {"owners": 2, "dimension": 2, "clip": 1.0, "delta": 1e-5, "releases": 1, "data_id": DATA}
        self.settings: dict[str, object] = base | changes

    def account(self, who: str) -> Account:
        return Account(self.folder / who)

    def begin(self) -> "Run":
        self.runs += 1
        return Run(self, dpmpc.Plan.create(**self.settings), self.folder / f"run{self.runs}")  # type: ignore[arg-type]

    def whole(self) -> None:
        """A run that all take part in."""
        run = self.begin()
        results: list[object] = []
        other = threading.Thread(target=lambda: results.append(run.owner(1)))
        other.start()
        run.owner(0)
        other.join(HANG)
        assert len(results) == 1
        run.end()


class Run:
    """One run's parties, at work; its owners come when they are called."""

    def __init__(self, world: World, plan: dpmpc.Plan, out: Path) -> None:
        self.world, self.plan, self.out = world, plan, out
        self.addresses = own_addresses(3)[1::2]
        self.failed: list[BaseException] = []
        self.threads = [threading.Thread(target=self.party, args=(i,)) for i in range(3)]
        for thread in self.threads:
            thread.start()

    def party(self, i: int) -> None:
        try:
            dpmpc.Party(
                self.plan, i, self.addresses, out=self.out / f"party{i}", wait=HANG, limits=ANY,
                account=self.world.folder / f"party{i}",
            ).run()  # fmt: skip
        except dpmpc.DpmpcError as error:
            self.failed.append(error)

    def owner(self, index: int, account: str | None = None) -> None:
        folder = self.world.folder / (account or f"owner{index}")
        with dpmpc.Owner(self.plan, index, self.addresses, wait=HANG, limits=ANY, account=folder) as me:
            me.mean(np.zeros(2))

    def both(self) -> None:
        """The owners come, after all."""
        other = threading.Thread(target=self.owner, args=(1,))
        other.start()
        self.owner(0)
        other.join(HANG)
        self.end()

    def end(self) -> None:
        for thread in self.threads:
            thread.join(HANG)

    def after_refusal(self, world: World) -> "Run":
        """What its owners come to next. An owner that refused has ended the run for all, with nothing spent; where
        owners may be missing, for nobody."""
        if self.plan.dropouts:
            assert self.spent() == 0 and not self.failed
            return self
        self.end()
        assert self.spent() == 0 and len(self.failed) == 3
        cause = "owner 0 stopped, for it was not used as it must be"  # or the end of a party that has heard it
        assert all(cause in owner_text(error) for error in self.failed), self.failed
        return world.begin()

    def spent(self) -> int:
        return sum(len(Ledger.read(path).entries) for path in self.out.glob("party*/ledger_*.jsonl"))


def put_back(world: World, who: str, backup: Path) -> None:
    shutil.rmtree(world.folder / who)
    shutil.copytree(backup, world.folder / who)


@pytest.mark.parametrize("changes", [{}, {"min_owners": 1}], ids=["all owners", "owners may be missing"])
def test_an_account_that_was_put_back_sends_nothing_until_the_newest_is_there(
    tmp_path: Path, changes: dict[str, object]
) -> None:
    world = World(tmp_path, **changes)
    world.whole()
    digest = data_digest(DATA)
    after_one = len(world.account("owner0").digests(digest))
    assert after_one == 2  # reserved, ended: and the parties hold both
    for i in range(3):
        held = [account_heads.Memory(tmp_path / f"party{i}" / "peers", digest).of(f"owner{j}") for j in range(2)]
        assert held == [Head().after(world.account(f"owner{j}").digests(digest)) for j in range(2)]
    shutil.copytree(tmp_path / "owner0", tmp_path / "backup")
    world.whole()
    shutil.copytree(tmp_path / "owner0", tmp_path / "newest")
    run = world.begin()
    put_back(world, "owner0", tmp_path / "backup")
    with refuses("ledger", 3, 4, setting="account") as said:
        run.owner(0)
    assert "\n" not in owner_text(said.value)
    run = run.after_refusal(world)
    with refuses("ledger", 1, 4, setting="account"):
        run.owner(0, "another machine")
    run = run.after_refusal(world)
    put_back(world, "owner0", tmp_path / "newest")
    run.both()
    assert run.failed == [] and run.spent() == 3


def test_a_fork_is_refused_however_long_it_is(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.whole()
    shutil.copytree(tmp_path / "owner0", tmp_path / "clone")
    world.whole()
    for k in range(8):  # the clone goes on elsewhere, with peers that know nothing
        Account(tmp_path / "clone").assignment(data_digest(DATA), f"parts {k}", {"a": 1, "b": 1})
    run = world.begin()
    with refuses("ledger", 4, setting="account"):
        run.owner(0, "clone")
    run = run.after_refusal(world)
    run.both()
    assert run.failed == []


def test_parties_refuse_an_owner_that_does_not_look_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An owner's process of another make, that tells every party the head that it has."""
    world = World(tmp_path)
    world.whole()
    run = world.begin()

    def blunt(self: HeadsShown, party: int, remembered: bytes | bytearray) -> bytes:
        assert self._digests is not None
        return Head().after(self._digests()).pack()

    errors: list[BaseException] = []

    def come(call: Callable[[], None]) -> None:
        try:
            call()
        except (PeerError, UsageError) as error:
            errors.append(error)

    with monkeypatch.context() as patch:
        patch.setattr(HeadsShown, "first", blunt)
        threads = [threading.Thread(target=come, args=(call,)) for call in (
            lambda: run.owner(0, "another machine"), lambda: run.owner(1, "another machine too"),
        )]  # fmt: skip
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(HANG)
        run.end()
    assert len(errors) == 2 and len(run.failed) == 3 and run.spent() == 0
    assert any("an owner's account goes on from where it was last seen" in owner_text(error) for error in run.failed)
    # The control: parties that remember nothing let the same owners in.
    for i in range(3):
        shutil.rmtree(tmp_path / f"party{i}" / "peers")
    run = world.begin()
    other = threading.Thread(target=run.owner, args=(1, "another machine too"))
    other.start()
    run.owner(0, "another machine")
    other.join(HANG)
    run.end()
    assert run.failed == [] and run.spent() == 3


def test_a_site_shows_its_account_to_the_other_sites(tmp_path: Path) -> None:
    world = World(tmp_path, owners=3, role="both")

    def all_come(name: str, accounts: list[str], wait: float = HANG) -> list[BaseException]:
        plan = dpmpc.Plan.create(**world.settings)  # type: ignore[arg-type]
        addresses, failed = own_addresses(3)[1::2], list[BaseException]()

        def site(index: int) -> None:
            settings = {"out": tmp_path / f"{name}{index}", "wait": wait, "limits": ANY, "stall": 5.0}
            try:
                with dpmpc.Site(plan, index, addresses, account=tmp_path / accounts[index], **settings) as me:  # type: ignore[arg-type]
                    me.mean(np.zeros(2))
            except dpmpc.DpmpcError as error:
                failed.append(error)

        threads = [threading.Thread(target=site, args=(index,)) for index in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(HANG)
        return failed

    assert all_come("a", ["site0", "site1", "site2"]) == []
    shutil.copytree(tmp_path / "site0", tmp_path / "backup")
    assert all_come("b", ["site0", "site1", "site2"]) == []
    put_back(world, "site0", tmp_path / "backup")
    # the site that is refused leaves, and one that it has not called by then waits for it in vain
    failed = all_come("c", ["site0", "site1", "site2"], wait=30.0)
    assert len(failed) == 3 and any("its first 4 lines" in str(e) or "and had 4" in str(e) for e in failed)
    assert all(not Ledger.read(tmp_path / f"c{i}" / f"ledger_{i}.jsonl").entries for i in range(3))
