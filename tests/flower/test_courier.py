"""Sealed shares through real parties: what opens is added up, what does not is left out alike everywhere. Needs no
Flower."""

import math
import threading
from pathlib import Path

import numpy as np
import pytest

import dpmpc
from dpmpc.aggregation.encoding import encode
from dpmpc.aggregation.party import ledger_path
from dpmpc.aggregation.sites import endpoints
from dpmpc.errors import PeerError, UsageError
from dpmpc.flower import Prepared, ShareParty, prepare
from dpmpc.flower.courier import Courier
from dpmpc.flower.gate import _runs, frames_of, pack_tags, unpack_tags
from dpmpc.flower.party import opener_of
from dpmpc.flower.prepared import key_path
from dpmpc.flower.sealing import Purpose, seal
from dpmpc.mpc.addresses import owner_endpoints
from dpmpc.mpc.backend import BACKENDS
from dpmpc.mpc.mpyc_runtime import import_mpyc
from dpmpc.privacy.ledgers import read_ledger
from dpmpc.verify.verification import verify_structure
from tests.runs import HANG, own_addresses

OWNERS, D = 6, 5


def prepared(folder: Path, **settings: object) -> Prepared:
    given = {"owners": OWNERS, "dimension": D, "clip": 1.0, "epsilon": 1.0, "delta": 1e-5, "min_owners": 2}
    return prepare(folder, **{**given, **settings})  # type: ignore[arg-type]


def client(given: Prepared, vector: np.ndarray, owner: int, release: int) -> list[bytes]:
    plan = given.plan
    payloads = BACKENDS[plan.backend].dealer(plan.parties, plan.threshold).deal(encode(plan, vector[None], owner))
    return seal(payloads, given.keys, Purpose(given.digest, release, owner))


@pytest.mark.parametrize("backend", ["sharing", "ot"])
def test_the_mean_is_that_of_an_aggregator_over_those_that_opened(tmp_path: Path, backend: str) -> None:
    parties = 2 if backend == "ot" else 3
    given = prepared(tmp_path / "keys", releases=2, scale=0.0, backend=backend, parties=parties)
    vectors = np.random.default_rng(1).normal(size=(OWNERS, D)) / 4
    with Courier.between(given, tmp_path / "keys", out=tmp_path / "out") as courier:
        sealed = {j: client(given, vectors[j], j, 0) for j in (0, 1, 2, 3, 5)}
        sealed[1][1] = sealed[1][1][:-1] + bytes([sealed[1][1][-1] ^ 1])  # changed on its way to one party
        sealed[3][0] = client(given, vectors[3], 3, 0)[0]  # of another sharing than what the other parties get
        mean, release = courier.deliver(sealed)
        assert release.present == (0, 2, 5)
        again = {j: client(given, vectors[j], j, 1) for j in (1, 4)}
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
    with Courier.between(given, tmp_path / "keys", out=tmp_path / "out") as courier:
        for release, there in enumerate(((0, 1, 2, 3, 4, 5), (1, 2, 4))):
            courier.deliver({j: client(given, vectors[j], j, release) for j in there})
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
        pytest.raises(PeerError, match="a release needs 2 of 6 owners; of release 0 the shares of 1 have reached all"),
        Courier.between(given, tmp_path / "keys", out=tmp_path / "out") as courier,
    ):
        courier.deliver({0: client(given, zeros, 0, 0), 1: client(given, zeros, 1, 1), 2: client(given, zeros, 2, 1)})
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
    ("settings", "rule"),
    [
        ({"min_owners": 6}, "min_owners must lie below the number of owners, 6"),
        ({"engine": "clear"}, "under Flower parties add up"),
        ({"delta": None, "law": "gaussian"}, "needs a delta"),
    ],
)
def test_plans_that_no_flower_run_can_have_leave_no_key(tmp_path: Path, settings: dict[str, object], rule: str) -> None:
    with pytest.raises(UsageError, match=rule):
        prepared(tmp_path / "keys", **settings)
    assert not (tmp_path / "keys").exists()


def test_files_of_two_runs_do_not_mix(tmp_path: Path) -> None:
    one, two = prepared(tmp_path / "one"), prepared(tmp_path / "two")
    with pytest.raises(UsageError, match=r"party 1 needs the key that flower\.json names for it"):
        opener_of(one, 1, key_path(tmp_path / "two", 1))
    with pytest.raises(UsageError, match="a new key needs a new file"):
        prepared(tmp_path / "one")
    assert one.digest != two.digest and Prepared.read(tmp_path / "one") == one
    same_plan_other_keys = Prepared(one.plan, two.keys)
    assert same_plan_other_keys.digest != one.digest
    for text in ("{}", "no", one.to_text().replace('"version": 1', '"version": 9', 1)):
        with pytest.raises(UsageError, match=r"flower\.json must"):
            Prepared.from_text(text)


def test_a_party_with_another_key_says_so_at_once(tmp_path: Path) -> None:
    given = prepared(tmp_path / "one", scale=0.0)
    prepared(tmp_path / "two")
    with pytest.raises(UsageError, match=r"needs the key that flower\.json names for it"):
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
    called = owner_endpoints(endpoints(given.plan, addresses, None))
    with Courier.between(given, None, addresses=called, wait=HANG) as courier:
        mean, release = courier.deliver({j: client(given, vectors[j], j, 0) for j in range(OWNERS)})
    for thread in threads:
        thread.join(HANG)
    np.testing.assert_allclose(mean, vectors.mean(axis=0), atol=given.plan.grid.step)
    assert release.present == tuple(range(OWNERS)) and (tmp_path / "party2" / "ledger_2.jsonl").exists()
    with pytest.raises(UsageError, match="needs the key that"):
        ShareParty(given, 0, addresses, key=key_path(tmp_path / "keys", 1), out=tmp_path, **common)  # type: ignore[arg-type]
