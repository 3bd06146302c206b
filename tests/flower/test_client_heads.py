"""Rollback of a client's account, against unmodified parties elsewhere: backups that are put back, second machines,
forks, and a server that tells clients what parties do not say. Every client has an account of its own. Needs no
Flower."""

import math
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import dpmpc
from dpmpc.aggregation.plan.here import Here
from dpmpc.errors import PeerError, UsageError, owner_text
from dpmpc.flower import Prepared, prepare
from dpmpc.flower.client import Sealer, SealRequest
from dpmpc.flower.courier import Courier
from dpmpc.flower.heads import ClientHeads, names_of
from dpmpc.flower.sealing import Purpose
from dpmpc.mpc.mpyc.runtime import import_mpyc
from dpmpc.privacy.account import Account
from dpmpc.privacy.data_names import data_digest
from dpmpc.privacy.heads import Head, Memory, goes_on, name_of
from dpmpc.privacy.ledger import Ledger
from tests.refusals import refuses
from tests.runs import HANG
from tests.shareparties import Parties

DATA = "wards"
DIGEST = data_digest(DATA)
ANY = dpmpc.Limits(epsilon=math.inf)


def spent(folder: Path, ledgers: str) -> int:
    return sum(len(Ledger.read(path).entries) for path in folder.rglob(ledgers))


def planned(folder: Path, **changes: object) -> Prepared:
    given = {"owners": 2, "min_owners": 1, "dimension": 3, "clip": 1.0, "delta": 1e-5, "data_id": DATA}
    return prepare(folder, **{**given, **changes})  # type: ignore[arg-type]


class World:
    """Two clients and three parties that make one run after another."""

    def __init__(self, folder: Path) -> None:
        import_mpyc()  # its warnings at import cannot be silenced in a thread alone
        self.folder, self.runs = folder, 0
        self.refusals: list[str] = []
        self.lies = False  # whether the server tells clients that parties remember nothing
        self.numbered = True

    def head(self, who: str) -> Head:
        return Head().after(Account(self.folder / who).digests(DIGEST))

    def remembered(self, owner: int) -> Head:
        return Memory(self.folder / "parties" / "peers", DIGEST).of(f"owner{owner}")  # the parties share an account

    def run(self, accounts: Sequence[str], rounds: int = 1) -> list[object]:
        """Who was in each release of a new run, of clients with these accounts; what else came of it."""
        self.runs += 1
        keys, out = self.folder / f"keys{self.runs}", self.folder / f"run{self.runs}"
        given = planned(keys, releases=rounds)
        parties = Parties(given, keys, out, self.folder / "parties")
        found: list[object] = []
        try:
            with Courier.between(given, None, Here(wait=HANG), addresses=parties.called) as courier:
                for _ in range(rounds):
                    found.append(courier.deliver(self.sealed(given, courier, accounts))[1].present)
        except PeerError as error:
            found.append(error)
        ends = parties.ends()
        assert ends == [None] * 3 or isinstance(found[-1], PeerError)
        return found

    def sealed(self, given: Prepared, courier: Courier, accounts: Sequence[str]) -> dict[int, list[bytes]]:
        """What the server gets of its clients."""
        found, tables = {}, courier.told()
        for owner, who in enumerate(accounts):
            purpose = Purpose(given.digest, bytes.fromhex(courier.token), courier.next, owner)
            told = names_of(tables, given, owner)
            if self.lies:
                told = [name_of(Head(), purpose.at(i)) for i in range(3)]
            sealer = Sealer(given, ANY, self.folder / who)
            asked = SealRequest(purpose, None, told, self.numbered)
            try:
                sealer.check(asked)
                found[owner] = sealer.sealed(np.zeros(3), asked)
            except UsageError as error:
                self.refusals.append(owner_text(error))
        return found


def test_a_client_whose_account_was_put_back_seals_nothing(tmp_path: Path) -> None:
    world = World(tmp_path)
    assert world.run(["c0", "c1"], rounds=2) == [(0, 1), (0, 1)]
    assert [world.remembered(j) for j in range(2)] == [world.head(f"c{j}") for j in range(2)]
    assert world.head("c0").lines == 4  # reserved, ended, for each round
    shutil.copytree(tmp_path / "c0", tmp_path / "backup")
    shutil.copytree(tmp_path / "c0", tmp_path / "fork")
    assert world.run(["c0", "c1"]) == [(0, 1)]
    for k in range(8):  # it goes on elsewhere, with peers that know nothing
        Account(tmp_path / "fork").assignment(DIGEST, f"parts {k}", {"a": 1, "b": 1})
    assert world.refusals == []
    for who in ("backup", "fork", "another machine"):
        before = world.head(who), spent(tmp_path / who, "ledger_clients.jsonl")
        assert world.run([who, "c1"]) == [(1,)]
        said = world.refusals.pop()
        assert "so it was put back, or this is a second machine; restore the newest copy of account" in said
        assert "\n" not in said and world.refusals == []
        assert before == (world.head(who), spent(tmp_path / who, "ledger_clients.jsonl"))
    assert world.run(["c0", "c1"]) == [(0, 1)] and world.refusals == []
    shutil.rmtree(tmp_path / "parties" / "peers")  # the control: parties that remember nothing let it in
    assert world.run(["backup", "c1"]) == [(0, 1)] and world.refusals == []


def test_a_server_that_tells_clients_of_no_memory_gets_shares_that_do_not_open(tmp_path: Path) -> None:
    """It cannot name an old head, which it does not know; it can name the one of no lines."""
    world = World(tmp_path)
    world.lies = True
    assert world.run(["c0", "c1"]) == [(0, 1)]  # the control: nothing is remembered yet
    shutil.copytree(tmp_path / "c0", tmp_path / "backup")
    world.lies = False
    assert world.run(["c0", "c1"]) == [(0, 1)]
    world.lies = True
    (error,) = world.run(["backup", "another machine"])
    assert "of release 0 the shares of 0 have reached all parties and open" in owner_text(error)
    assert world.refusals == []  # they saw nothing wrong
    assert [spent(tmp_path / f"run{k}", "ledger_?.jsonl") for k in (1, 2, 3)] == [3, 3, 0]


def test_a_client_without_a_number_of_its_own_shows_nothing(tmp_path: Path) -> None:
    """The server numbers it as it likes: what is remembered of a number may be another's."""
    world = World(tmp_path)
    world.run(["c0", "c1"])
    before = [world.remembered(j) for j in range(2)]
    world.numbered = False
    assert world.run(["c1", "c0"]) == [(0, 1)]
    assert [world.remembered(j) for j in range(2)] == before


def test_a_party_takes_no_head_that_is_older_than_what_it_was_shown(tmp_path: Path) -> None:
    """What a client of another make would show."""
    given = planned(tmp_path / "p")
    memory = Memory(tmp_path / "peers", DIGEST)
    old, new = Head().after([b"1"]), Head().after([b"1", b"2"])
    memory.keep("owner1", new)

    def purpose(release: int, owner: int) -> Purpose:
        return Purpose(given.digest, bytes(16), release, owner)

    heads = ClientHeads(given.plan, 0, memory)
    names = heads.begin(0, purpose)
    assert heads.told(0, 1) == name_of(new, purpose(0, 1).at(0)) == names[16:]
    for shown in (old, Head(2, b"x" * 32)):
        with refuses("peer", 0, 1):
            heads.see(1, shown.pack())
    longer = new.after([b"3"])
    for owner, shown in ((1, new), (1, longer), (0, old), (1, Head())):
        heads.see(owner, shown.pack())
    assert memory.of("owner1") == new
    heads.keep(first=True)
    assert memory.of("owner1") == longer and memory.of("owner0") == old
    heads.see(1, longer.after([b"4"]).pack())
    heads.keep(first=True)
    assert memory.of("owner1") == longer  # one of this attempt is there
    heads.keep(first=False)
    assert memory.of("owner1").lines == 4
    memory.path("owner0").write_text("{")
    with refuses("peer", 0, setting="account"):
        ClientHeads(given.plan, 0, memory).begin(0, purpose)


def test_names_say_which_head_and_are_for_one_purpose() -> None:
    digests = [bytes(np.random.default_rng(k).bytes(32)) for k in range(5)]
    for k in range(6):
        name = name_of(Head().after(digests[:k]), b"one")
        assert goes_on(digests, name, b"one") and not goes_on(digests, name, b"two")
        assert goes_on(digests[:k], name, b"one") and (k == 0 or not goes_on(digests[: k - 1], name, b"one"))


@pytest.mark.parametrize("tables", [None, [], [b"1" * 16] * 2, [b"1" * 16] * 4, [b"1" * 17] * 3, ["1" * 16] * 3, b"1"])
def test_a_server_that_carries_no_names_is_refused(tmp_path: Path, tables: object) -> None:
    given = planned(tmp_path / "p", owners=4)
    with refuses("message"):
        names_of(tables, given, 1)
    assert names_of([b"a" * 16 + b"b" * 16 + b"c" * 32] * 3, given, 1) == [b"b" * 16] * 3
    assert names_of([b"x" * 16] * 3, given, 1) == [b"x" * 16] * 3
