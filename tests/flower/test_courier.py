"""Sealed shares through real parties: what opens is added up, what does not is left out alike everywhere. Needs no
Flower."""

import math
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dpmpc
from dpmpc.aggregation.owner.encoding import encode
from dpmpc.aggregation.party.party import ledger_path
from dpmpc.aggregation.plan.here import Here
from dpmpc.errors import PeerError, UsageError, owner_text
from dpmpc.flower import Prepared, ShareParty, prepare
from dpmpc.flower.courier import Courier
from dpmpc.flower.gate import _runs, frames_of, pack_tags, unpack_tags
from dpmpc.flower.party import opener_of
from dpmpc.flower.prepared import key_path
from dpmpc.flower.sealing import Purpose, seal
from dpmpc.flower.seals import Seals
from dpmpc.mpc.contract.backend import BACKENDS
from dpmpc.mpc.mpyc.runtime import import_mpyc
from dpmpc.mpc.transport.addresses import owner_endpoints
from dpmpc.privacy.ledger import Ledger
from dpmpc.privacy.ledgers import read_ledger
from dpmpc.verify.verification import verify_structure
from tests.refusals import Rule, breaks, refuses
from tests.runs import HANG, own_addresses
from tests.shareparties import Parties

OWNERS, D = 6, 5


def prepared(folder: Path, **settings: object) -> Prepared:
    given = {"owners": OWNERS, "dimension": D, "clip": 1.0, "epsilon": 1.0, "delta": 1e-5, "min_owners": 2}
    return prepare(folder, **{**given, **settings})  # type: ignore[arg-type]


def client(given: Prepared, token: str, vector: np.ndarray, owner: int, release: int) -> list[bytes]:
    plan = given.plan
    payloads = BACKENDS[plan.backend].dealer(plan.parties, plan.threshold).deal(encode(plan, vector[None], owner))
    return seal(payloads, given.keys, Purpose(given.digest, bytes.fromhex(token), release, owner))


@pytest.mark.parametrize("backend", ["sharing", "ot"])
def test_the_mean_is_that_of_an_aggregator_over_those_that_opened(tmp_path: Path, backend: str) -> None:
    parties = 2 if backend == "ot" else 3
    given = prepared(tmp_path / "keys", releases=2, scale=0.0, backend=backend, parties=parties)
    vectors = np.random.default_rng(1).normal(size=(OWNERS, D)) / 4
    with Courier.between(given, tmp_path / "keys", Here(out=tmp_path / "out")) as courier:
        sealed = {j: client(given, courier.token, vectors[j], j, 0) for j in (0, 1, 2, 3, 5)}
        sealed[1][1] = sealed[1][1][:-1] + bytes([sealed[1][1][-1] ^ 1])  # changed on its way to one party
        sealed[3][0] = client(given, courier.token, vectors[3], 3, 0)[0]  # of another sharing
        mean, release = courier.deliver(sealed)
        assert release.present == (0, 2, 5)
        again = {j: client(given, courier.token, vectors[j], j, 1) for j in (1, 4)}
        second, _ = courier.deliver(again)
    for present, got in (((0, 2, 5), mean), ((1, 4), second)):
        with dpmpc.Aggregator(
            owners=len(present), dimension=D, clip=1.0, scale=0.0, delta=1e-5, engine="clear",
            grid_bits=given.plan.grid.bits,
        ) as clear:  # fmt: skip
            assert (clear.mean(vectors[list(present)]) == got).all()


def test_what_was_released_is_in_the_ledgers_and_verifies(tmp_path: Path) -> None:
    given = prepared(tmp_path / "keys", releases=2)
    vectors = np.zeros((OWNERS, D))
    with Courier.between(given, tmp_path / "keys", Here(out=tmp_path / "out")) as courier:
        for release, there in enumerate(((0, 1, 2, 3, 4, 5), (1, 2, 4))):
            courier.deliver({j: client(given, courier.token, vectors[j], j, release) for j in there})
    structure = verify_structure(tmp_path / "out").evidence[0]
    assert structure.holds, structure.to_json()
    books = [read_ledger(ledger_path(tmp_path / "out", i)) for i in range(3)]
    assert all([entry.release for entry in book.entries] == [0, 1] for book in books)
    assert [len(entry.present or ()) for entry in books[0].entries][1] == 3


def test_too_few_that_open_spend_nothing(tmp_path: Path) -> None:
    """Shares of another release: the parties drop all but one, and say so before the ledger line."""
    given = prepared(tmp_path / "keys", releases=2)
    zeros = np.zeros(D)
    with (
        refuses("peer", 2, 6, 0, 1),
        Courier.between(given, tmp_path / "keys", Here(out=tmp_path / "out")) as courier,
    ):
        courier.deliver({j: client(given, courier.token, zeros, j, release) for j, release in ((0, 0), (1, 1), (2, 1))})
    assert all(not read_ledger(ledger_path(tmp_path / "out", i)).entries for i in range(3))
    log = (tmp_path / "out" / "party_0.log").read_text()
    assert "the share of owner 1 is dropped" in log and "owner 1, release 0, is not" in log


def test_frames_hold_every_sealed_share_in_order(tmp_path: Path) -> None:
    given = prepared(tmp_path)
    sealed = {j: [bytes([j, i]) * 8 for i in range(3)] for j in (5, 0, 2)}
    who, *blocks = frames_of(given, sealed)
    assert who == [bytes([0, 0, 0, 0, 2, 0, 0, 0, 5, 0, 0, 0])] * 3
    assert blocks == [[b"".join(bytes([j, i]) * 8 for j in (0, 2, 5)) for i in range(3)]]


def test_tags_and_runs(tmp_path: Path) -> None:
    plan = prepared(tmp_path).plan
    tags = {0: b"a" * 8, 5: b"b" * 8}
    assert unpack_tags(plan, pack_tags(plan, tags)) == tags
    assert list(_runs((0, 1, 2, 4, 6, 7))) == [(0, 3), (4, 5), (6, 8)] and list(_runs(())) == []


@pytest.mark.parametrize(
    ("settings", "broken"),
    [
        ({"min_owners": 6}, breaks("range", 6)),
        ({"engine": "clear"}, breaks("plan", "parties=3")),
        ({"delta": None, "law": "gaussian"}, breaks("missing", setting="delta")),
    ],
)
def test_plans_that_no_flower_run_can_have_leave_no_key(
    tmp_path: Path, settings: dict[str, object], broken: Rule
) -> None:
    with refuses(broken):
        prepared(tmp_path / "keys", **settings)
    assert not (tmp_path / "keys").exists()


def test_files_of_two_runs_do_not_mix(tmp_path: Path) -> None:
    one, two = prepared(tmp_path / "one"), prepared(tmp_path / "two")
    with refuses("keys", 1, "flower.json", "party1.share.key"):
        opener_of(one, 1, key_path(tmp_path / "two", 1))
    with refuses("path", "party0.share.key"):
        prepared(tmp_path / "one")
    assert one.digest != two.digest and Prepared.read(tmp_path / "one") == one
    same_plan_other_keys = Prepared(one.plan, two.keys)
    assert same_plan_other_keys.digest != one.digest
    for text in ("{}", "no", one.to_text().replace('"version": 1', '"version": 9', 1)):
        with refuses("file", "flower.json"):
            Prepared.from_text(text)


def test_a_party_with_another_key_says_so_at_once(tmp_path: Path) -> None:
    given = prepared(tmp_path / "one", scale=0.0)
    prepared(tmp_path / "two")
    with refuses("keys", 0, "flower.json", "party0.share.key"):
        Courier.between(given, tmp_path / "two")


def test_parties_elsewhere_are_called_by_their_addresses(tmp_path: Path) -> None:
    """Each by its own object with its own key, in a thread; the server has no key at all."""
    import_mpyc()  # its warnings at import cannot be silenced in a thread alone
    given = prepared(tmp_path / "keys", scale=0.0)
    addresses = own_addresses(3)[1::2]
    common = {"wait": HANG, "limits": dpmpc.Limits(epsilon=math.inf)}
    parties = [
        ShareParty(given, i, addresses, key=key_path(tmp_path / "keys", i), out=tmp_path / f"party{i}", **common)  # type: ignore[arg-type]
        for i in range(3)
    ]
    threads = [threading.Thread(target=party.run) for party in parties]
    for thread in threads:
        thread.start()
    vectors = np.random.default_rng(1).normal(size=(OWNERS, D)) / 8
    called = owner_endpoints(Here(addresses=tuple(addresses), index="owners").endpoints(given.plan.parties))
    with Courier.between(given, None, Here(wait=HANG), addresses=called) as courier:
        mean, release = courier.deliver({j: client(given, courier.token, vectors[j], j, 0) for j in range(OWNERS)})
    for thread in threads:
        thread.join(HANG)
    np.testing.assert_allclose(mean, vectors.mean(axis=0), atol=given.plan.grid.step)
    assert release.present == tuple(range(OWNERS)) and (tmp_path / "party2" / "ledger_2.jsonl").exists()
    with refuses("keys", 0, "flower.json", "party1.share.key"):
        ShareParty(given, 0, addresses, key=key_path(tmp_path / "keys", 1), out=tmp_path, **common)  # type: ignore[arg-type]


def test_a_lost_release_is_skipped_by_all_parties(tmp_path: Path) -> None:
    given = prepared(tmp_path / "keys", releases=4)
    zeros = np.zeros(D)
    with Courier.between(given, tmp_path / "keys", Here(out=tmp_path / "out")) as courier:
        courier.skip()
        courier.deliver({j: client(given, courier.token, zeros, j, 1) for j in range(3)})
        courier.skip()
        assert courier.next == 3
        courier.deliver({j: client(given, courier.token, zeros, j, 3) for j in range(3)})
    structure = verify_structure(tmp_path / "out").evidence[0]
    assert structure.holds, structure.to_json()
    for i in range(3):
        assert [entry.release for entry in read_ledger(ledger_path(tmp_path / "out", i)).entries] == [1, 3]
    path = tmp_path / "out" / "party_1.transcript.jsonl"
    kept = [line for line in path.read_text().splitlines(keepends=True) if '"skipped"' not in line]
    path.write_text("".join(kept))
    assert not verify_structure(tmp_path / "out").evidence[0].holds


@pytest.mark.parametrize("settings", [{}, {"quantile": 0.5}], ids=["a fixed bound", "a bound that adapts"])
def test_an_interrupted_run_goes_on_after_its_last_line(tmp_path: Path, settings: dict[str, object]) -> None:
    """Without noise, against an aggregator that nobody interrupts; a lost release in the middle."""
    import_mpyc()
    given = prepared(tmp_path / "keys", releases=5, **({"epsilon": 25.0, **settings} if settings else {"scale": 0.0}))
    vectors = np.random.default_rng(2).normal(size=(5, OWNERS, D)) / 8
    bounds = []

    def sealed(courier: Courier) -> dict[int, list[bytes]]:
        plan, found = given.plan, {}
        for j in range(OWNERS):
            row = vectors[courier.next, j][None]
            steps = encode(plan, row if courier.bound is None else courier.bound.encode(row), j)
            payloads = BACKENDS[plan.backend].dealer(plan.parties, plan.threshold).deal(steps)
            purpose = Purpose(given.digest, bytes.fromhex(courier.token), courier.next, j)
            found[j] = seal(payloads, given.keys, purpose)
        return found

    made: dict[int, np.ndarray] = {}
    tokens = set[str]()
    for stop in (1, 3, 5):
        parties = Parties(given, tmp_path / "keys", tmp_path)
        courier = Courier.between(given, None, Here(wait=HANG), addresses=parties.called)
        past = courier.past
        assert past.keys() == made.keys() and courier.next == max(made, default=-1) + 1
        for number, (mean, release) in past.items():
            assert (mean == made[number]).all() and release.present == tuple(range(OWNERS))
        if bounds:
            assert courier.bound is None or courier.bound.value == bounds[-1]
        tokens.add(courier.token)
        while courier.next < stop:
            if courier.next == 1:
                courier.skip()
                continue
            number = courier.next
            made[number] = courier.deliver(sealed(courier))[0]
        bounds.append(None if courier.bound is None else courier.bound.value)
        if stop < 5:
            courier.abandon()
            assert all(isinstance(error, PeerError) for error in parties.ends())
        else:
            courier.close()
            assert parties.ends() == [None] * 3
    assert sorted(made) == [0, 2, 3, 4] and len(tokens) == 3
    for i in range(3):
        entries = Ledger.read(ledger_path(tmp_path / str(i), i)).entries
        assert [entry.release for entry in entries] == [0, 2, 3, 4] and [e.attempt for e in entries] == [0, 1, 2, 2]
    if not settings:
        for number, mean in made.items():
            np.testing.assert_allclose(mean, vectors[number].mean(axis=0), atol=given.plan.grid.step)


def test_a_server_that_drops_connections_and_replays_shares_gets_one_look_at_a_release(tmp_path: Path) -> None:
    """Nine looks at one release were nine ledger lines of five planned: parties begin again in old folders, in new
    ones, and the server has what every client sealed once."""
    import_mpyc()  # its warnings at import cannot be silenced in a thread alone
    given = prepared(tmp_path / "keys", releases=5)
    kept: dict[int, list[bytes]] = {}
    memory = Seals(tmp_path / "account", given.digest)

    def attempt(folders: str) -> tuple[object, int]:
        """The server's attempt: it asks for its first release, adds what it has, and drops the parties after the
        answer. (What came of it, the release.)"""
        parties = Parties(given, tmp_path / "keys", tmp_path / folders)
        courier = Courier.between(given, None, Here(wait=HANG), addresses=parties.called)
        try:
            for j in range(OWNERS):
                try:
                    memory.remember(Purpose(given.digest, bytes.fromhex(courier.token), 0, j))
                except UsageError as error:
                    assert "seals once for each release" in owner_text(error) and kept
                else:
                    kept[j] = client(given, courier.token, np.full(D, 0.1), j, 0)
            return courier.deliver(kept)[1], courier.next - 1
        except PeerError as error:
            return error, courier.next
        finally:
            courier.abandon()
            parties.ends()

    first, release = attempt("old")
    assert first.present == tuple(range(OWNERS)) and release == 0  # type: ignore[attr-defined]
    for folders, number in (("old", 1), ("new", 0)):  # in the old ones the parties go on with the next release
        replayed, release = attempt(folders)
        assert f"of release {number} the shares of 0 have reached all parties and open" in str(replayed)
        assert release == number
    lines = [entry for path in tmp_path.rglob("ledger_*.jsonl") for entry in Ledger.read(path).entries]
    assert len(lines) == 3 and {entry.release for entry in lines} == {0}


def test_a_client_remembers_on_disk_what_it_sealed_for(tmp_path: Path) -> None:
    one = Purpose(bytes(32), bytes(16), 3, 1)
    Seals(tmp_path, one.digest).remember(one)
    for again in (one, replace(one, token=bytes(15) + b"1")):
        for seals in (Seals(tmp_path, one.digest).check, Seals(tmp_path, one.digest).remember):
            with refuses("over", 1, 3):
                seals(again)
    for other in (replace(one, release=30), replace(one, release=2), replace(one, owner=11), replace(one, owner=2)):
        Seals(tmp_path, one.digest).remember(other)
    (path,) = (tmp_path / "seals").iterdir()
    path.write_bytes(path.read_bytes() + b"4 1")  # it died in the middle of a line
    torn = replace(one, owner=4, release=1)
    Seals(tmp_path, one.digest).remember(torn)
    with refuses("over", 4, 1):
        Seals(tmp_path, one.digest).remember(torn)
    Seals(tmp_path, b"1" + bytes(31)).remember(one)  # another plan
    (tmp_path / "file").write_text("")
    with refuses("path", "seals"):
        Seals(tmp_path / "file", one.digest).check(one)


@pytest.mark.parametrize(
    ("more", "broken"),
    [
        ({"nonsense": 1}, breaks("unknown", "prepare", "nonsense")),
        ({"security": "active"}, breaks("together", "active", setting="security")),
    ],
)
def test_what_prepare_refuses_is_said_of_prepare(more: dict[str, object], broken: Rule, tmp_path: Path) -> None:
    with refuses(broken) as error:
        prepare(tmp_path, owners=4, dimension=3, clip=1.0, delta=1e-5, **more)
    assert "Plan.create" not in owner_text(error.value) and "min_owners" not in owner_text(error.value)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    wrong = tmp_path / "file" / "x"
    with refuses("path", wrong):
        prepare(wrong, owners=4, dimension=3, clip=1.0, delta=1e-5)
    with refuses("path", wrong, setting="out"):
        dpmpc.Aggregator(owners=3, dimension=3, clip=1.0, delta=1e-5, out=wrong)
