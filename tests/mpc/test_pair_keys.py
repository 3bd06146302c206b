"""Keys by pairs: agreed, confirmed, bound, burnt; streams whose words are drawn once across batches, epochs and runs;
and the attack on an engine whose streams begin again, which the real one withstands."""

import asyncio
import itertools
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from fieldnoise import discrete
from inprocess import Network
from manyparties import Words

from dpmpc.errors import PeerError
from dpmpc.mpc.numbers import domains, field, prg
from dpmpc.mpc.numbers.prg import Prg
from dpmpc.mpc.numbers.residues import recombine
from dpmpc.mpc.parties.mesh import Mesh
from dpmpc.mpc.shamir import backend as shamir
from dpmpc.mpc.shamir import pair_keys
from dpmpc.mpc.shamir.backend import ShamirHolder
from dpmpc.mpc.shamir.burnt import Burnt
from dpmpc.mpc.shamir.engine import ManyEngine
from dpmpc.mpc.shamir.layout import ManyLayout
from dpmpc.mpc.shamir.pair_keys import PairKeys, agree
from dpmpc.mpc.transport.channels import CONFIRM, KEYS
from tests.refusals import Rule, breaks, refuses

DIGEST = bytes(range(32))
Body = Callable[[Any, PairKeys], Awaitable[Any]]


async def nothing(session: Any, keys: PairKeys) -> PairKeys:
    """The keys."""
    return keys


def together(
    parties: int,
    threshold: int,
    body: Body = nothing,
    *,
    burnt: list[Burnt] | None = None,
    digests: list[bytes] | None = None,
    run_id: bytes = b"one run",
    network: Network | None = None,
) -> list[Any]:
    """What each party gets from `body` after it agreed on keys."""
    records = burnt or [Burnt(None) for _ in range(parties)]

    async def party(session: Any) -> Any:
        session.run_id = run_id
        digest = digests[session.party] if digests else DIGEST
        return await body(session, await agree(session, threshold, records[session.party], digest))

    return (network or Network(parties, threshold)).run(party)


# -- agreement -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("n", [3, 5, 8])
def test_each_two_parties_have_one_key_that_nobody_else_has(n: int) -> None:
    keys = together(n, 1)
    for i, j in itertools.combinations(range(n), 2):
        assert keys[i]._keys[j] == keys[j]._keys[i] and len(keys[i]._keys[j]) == 32
    held = [key for k in keys for key in k._keys.values()]
    assert set(Counter(held).values()) == {2} and len(set(held)) == n * (n - 1) // 2
    assert {k.epoch for k in keys} == {1} and all(len(k._keys) == n - 1 for k in keys)


def test_no_key_comes_twice_even_for_the_same_run_and_epoch() -> None:
    first, second = together(3, 1), together(3, 1)
    assert first[0].epoch == second[0].epoch == 1
    assert not {*first[0]._keys.values()} & {*second[0]._keys.values()}


def test_the_run_the_epoch_the_indices_and_the_plan_are_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the same X25519 keys (which never happens) any of them still gives other keys."""

    def keys_of(run_id: bytes = b"one run", epoch: int = 0, digest: bytes = DIGEST, threshold: int = 1) -> list[bytes]:
        made = iter([X25519PrivateKey.from_private_bytes(bytes([k + 1]) * 32) for k in range(3)])

        class Known:
            generate = staticmethod(lambda: next(made))

        monkeypatch.setattr(pair_keys, "X25519PrivateKey", Known)
        records = [Burnt(None) for _ in range(3)]
        if epoch:
            records[1].begin(epoch)
        all_keys = together(3, threshold, run_id=run_id, burnt=records, digests=[digest] * 3)
        return [key for k in all_keys for key in k._keys.values()]

    base = keys_of()
    assert base == keys_of()
    for other in (keys_of(run_id=b"another"), keys_of(epoch=4), keys_of(digest=bytes(32)), keys_of(threshold=0)):
        assert not set(base) & set(other)


def test_parties_begin_the_first_epoch_that_none_has_begun(tmp_path: Path) -> None:
    records = [Burnt(tmp_path / f"burnt{i}") for i in range(3)]
    assert [k.epoch for k in together(3, 1, burnt=records)] == [1] * 3
    records = [Burnt(tmp_path / f"burnt{i}") for i in range(3)]
    records[1].begin(records[1].next_epoch)  # a party that failed before the others heard of it
    records[1].begin(records[1].next_epoch)
    assert [k.epoch for k in together(3, 1, burnt=records)] == [4] * 3
    assert [Burnt(tmp_path / f"burnt{i}").next_epoch for i in range(3)] == [5] * 3


class Meddling(Network):
    """Changes what one party sends to another; `change` gets (sender, label, receiver, payload)."""

    def __init__(self, change: Callable[[int, int, int, bytes], bytes]) -> None:
        super().__init__(3, 1)
        self.change = change

    def box(self, sender: int, receiver: int, label: int) -> Any:
        box = super().box(sender, receiver, label)
        if not hasattr(box, "meddled"):
            deliver = box.set_result
            changed = self.change

            class Box:
                meddled = True

                def __await__(self) -> Any:
                    return box.__await__()

                def set_result(self, raw: bytes) -> None:
                    deliver(changed(sender, label, receiver, raw))

            self._boxes[sender, receiver, label] = Box()  # type: ignore[assignment]
        return self._boxes[sender, receiver, label]


def meddle(change: Callable[[int, int, int, bytes], bytes], broken: Rule) -> None:
    with refuses(broken) as error:
        together(3, 1, network=Meddling(change))
    assert "\n" not in str(error.value)


def test_what_is_wrong_with_an_offer_is_said_in_one_line() -> None:
    seen: dict[int, bytes] = {}

    def copy(sender: int, label: int, receiver: int, raw: bytes) -> bytes:
        if label == KEYS:
            seen.setdefault(sender, raw)
            return seen[0] if sender == 2 and 0 in seen else raw
        return raw

    meddle(copy, breaks("keys", "parties 0 and 2", kind=PeerError))
    meddle(
        lambda s, k, r, raw: raw[:-1] if s == 1 and k == KEYS else raw,
        breaks("message", 72, "party 1", 71, kind=PeerError),
    )
    low = bytes(32)  # a point of order 1
    meddle(
        lambda s, k, r, raw: raw[:40] + low if s == 1 and k == KEYS else raw,
        breaks("keys", "party 1", "full order", kind=PeerError),
    )
    meddle(
        lambda s, k, r, raw: bytes(16) if s == 2 and k == CONFIRM else raw,
        breaks("keys", "party 2", "same key", kind=PeerError),
    )
    flip = lambda raw: raw[:-1] + bytes([raw[-1] ^ 1])  # noqa: E731
    meddle(
        lambda s, k, r, raw: flip(raw) if s == 0 and k == KEYS and r == 1 else raw,
        breaks("keys", "same key", kind=PeerError),
    )
    with refuses("plan", 0, 2, kind=PeerError):
        together(3, 1, digests=[DIGEST, DIGEST, bytes(32)])


def test_everything_that_the_streams_depend_on_is_in_the_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    """The plan's digest, the protocol's version and sizes, the way deep bits are shared, n and t."""
    digests: list[bytes] = []

    async def no_connection(*_: Any, **__: Any) -> None:
        pass

    async def keep(mesh: Any, threshold: int, burnt: Burnt, digest: bytes) -> None:
        digests.append(digest)

    monkeypatch.setattr(Mesh, "connect", no_connection)
    monkeypatch.setattr(shamir, "agree", keep)

    def connect(plan: bytes = DIGEST, n: int = 5, t: int = 2) -> None:
        async def body() -> None:
            await ShamirHolder(0, n, t, b"run").connect(None, plan)  # type: ignore[arg-type]

        asyncio.run(body())

    connect()
    connect()
    assert digests[0] == digests[1]
    connect(plan=bytes(32))
    connect(n=6)
    connect(t=1)
    for name, value in (("VERSION", 3), ("BATCH", 1 << 12), ("CHUNK", 1 << 17), ("FEW", 100), ("Deep", lambda: 0)):
        with monkeypatch.context() as patch:
            patch.setattr(shamir, name, value)
            connect()
    assert len(set(digests)) == len(digests) - 1


# -- once ------------------------------------------------------------------------------------------------------------
def test_a_batch_s_streams_are_given_out_once_and_while_it_lasts() -> None:
    async def body(session: Any, keys: PairKeys) -> None:
        other = (session.party + 1) % 3
        with keys.batch(4) as streams:
            streams.between(domains.ZERO, session.party, other)
            with pytest.raises(AssertionError, match="given out already"):
                streams.between(domains.ZERO, session.party, other)
            streams.between(domains.ZERO, other, session.party)
            with pytest.raises(AssertionError):
                streams.between(domains.ZERO, other, (session.party + 2) % 3)  # others' streams
        with pytest.raises(AssertionError, match="given out already"):
            streams.between(domains.SHARE, session.party, other)
        with pytest.raises(AssertionError, match="batch 4 of epoch 1 is used already"), keys.batch(4):
            pass

    together(3, 1, body)


def test_after_any_failure_keys_are_renewed_never_used_again() -> None:
    class Broken(Exception):
        pass

    async def fail(session: Any, keys: PairKeys) -> PairKeys:
        with pytest.raises(Broken), keys.batch(1) as streams:
            raise Broken
        assert not keys._keys
        with pytest.raises(AssertionError, match="given out already"):
            streams.between(domains.ZERO, session.party, (session.party + 1) % 3)
        with pytest.raises(AssertionError, match="agree on new ones"), keys.batch(2):
            pass
        return keys

    async def again(session: Any, keys: PairKeys) -> PairKeys:
        with keys.batch(1):
            return keys

    records = [Burnt(None) for _ in range(3)]
    assert [k.epoch for k in together(3, 1, fail, burnt=records)] == [1] * 3
    assert [k.epoch for k in together(3, 1, again, burnt=records)] == [2] * 3


def test_an_epoch_that_would_be_the_last_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A party that says it would end the others' run for good: an epoch is never begun twice."""
    good = pair_keys._OFFER.pack
    offers = iter([pair_keys.MOST_EPOCHS + 1, 1, 1])

    class Packed:
        size, unpack = pair_keys._OFFER.size, staticmethod(pair_keys._OFFER.unpack)

        @staticmethod
        def pack(epoch: int, *rest: bytes) -> bytes:
            return good(next(offers), *rest)

    monkeypatch.setattr(pair_keys, "_OFFER", Packed)
    with refuses("peer", "4,294,967,296", 0, "4,294,967,297"):
        together(3, 1)


def test_epochs_and_batches_are_on_disk_before_they_are_used(tmp_path: Path) -> None:
    path = tmp_path / "burnt"
    record = Burnt(path)
    record.begin(1)
    assert path.read_text() == "epoch 1\n" and path.stat().st_mode & 0o777 == 0o600
    record.burn(1, 7)
    record.burn(1, 9)
    assert path.read_text() == "epoch 1\nbatch 1 7\nbatch 1 9\n"
    for wrong in (
        lambda: record.burn(1, 7),
        lambda: record.burn(2, 1),
        lambda: record.begin(1),
        lambda: record.begin(0),
    ):
        with pytest.raises(AssertionError):
            wrong()
    path.write_text(path.read_text() + "epoch 1")  # torn while it was written: nobody had used it
    again = Burnt(path)
    assert again.next_epoch == 2 and path.read_text().endswith("batch 1 9\n")
    with pytest.raises(AssertionError):
        again.burn(1, 11)  # an epoch of another process
    again.begin(5)
    assert Burnt(path).next_epoch == 6
    for text in ("epoch one\n", "batch 1\n", "epoch 1 2\n", "sample 1\n", "epoch -1\n"):
        path.write_text(text)
        with refuses("file", "epoch E"):
            Burnt(path)


class LocalHolder(ShamirHolder):
    """A holder on an in-process session."""

    def __init__(self, session: Any, keys: PairKeys) -> None:
        super().__init__(session.party, session.parties, session.threshold, session.run_id)
        self.peers, self._keys = session.peers, keys


class Recorder:
    """Notes, for every word of every stream, which AES key and counter it came from."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.drawn: Counter[tuple[bytes, int]] = Counter()  # (AES key, word): how often it was drawn
        recorder = self
        stream = prg.KeyStream

        class Recorded(Prg):
            def __init__(self, key: bytes, *domain: bytes | int | str) -> None:
                recorder.last = b""
                super().__init__(key, *domain)
                self.key, self.at = recorder.last, 0

            def words(self, shape: tuple[int, ...]) -> Words:
                count = int(np.prod(shape))
                recorder.drawn.update((self.key, self.at + k) for k in range(count))
                self.at += count
                return super().words(shape)

        def of_key(key: bytes) -> Any:
            recorder.last = key
            return stream(key)

        self.last = b""
        monkeypatch.setattr(prg, "KeyStream", of_key)
        for module in (domains, pair_keys):
            monkeypatch.setattr(module, "Prg", Recorded)
        self.Recorded = Recorded


def test_no_word_of_any_stream_is_drawn_twice(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Over two batches in an epoch, after a resume of the same run with the same batch numbers, and in another run:
    each word of a pair's stream by its two parties, of an own stream by one."""
    recorder = Recorder(monkeypatch)
    sampler = discrete("laplace", 3.0)

    def run(run_id: bytes, folder: Path) -> None:
        records = [Burnt(folder / f"burnt{i}") for i in range(3)]

        async def noise(session: Any, keys: PairKeys) -> None:
            holder = LocalHolder(session, keys)
            for batch in (100, 101):
                await holder.noise(sampler, batch, 9)

        together(3, 1, noise, burnt=records, run_id=run_id)

    (tmp_path / "b").mkdir()
    run(b"run a", tmp_path)
    once = dict(recorder.drawn)
    assert set(once.values()) == {1, 2} and len(once) > 10_000
    run(b"run a", tmp_path)  # resumed
    run(b"run b", tmp_path / "b")
    assert set(recorder.drawn.values()) == {1, 2}
    assert len(recorder.drawn) == 3 * len(once)


def test_the_recorder_sees_streams_that_begin_again(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder(monkeypatch)
    for _ in range(2):
        recorder.Recorded(b"key", b"run", 1, 100, "zero", 0, 1).words((10,))
    recorder.Recorded(b"key", b"run", 2, 100, "zero", 0, 1).words((10,))
    assert sorted(recorder.drawn.values()) == [1] * 10 + [2] * 10


# -- the attack ------------------------------------------------------------------------------------------------------
def two_runs(stale: bool) -> tuple[list[Network], list[list[Words]]]:
    """(networks, shares of bits by run and party) of two runs of three parties whose pairs' streams begin again, or
    not; what a party draws by itself is fresh in both."""
    networks, results = [], []
    for _ in range(2):
        network = Network(3, 1)

        async def body(session: Any, keys: PairKeys) -> Words:
            if stale:
                keys._keys = {j: bytes(sorted((j, session.party))) for j in keys._keys}
            with keys.batch(1) as streams:
                engine = ManyEngine(session.party, session.channel(1), ManyLayout.of(3, 1), streams, 90)
                return await engine.random_bits(1)

        results.append(together(3, 1, body, network=network))
        networks.append(network)
    return networks, results


def read_bits(networks: list[Network], results: list[list[Words]]) -> int:
    """How many bits of its slice, of both runs, party 0 reads from what it was sent in both.

    It knows its own share of r and, as king, r^2. The summands of party i differ by lambda_i (r_i^2 - r'_i^2) if its z
    is the same in both: of the four choices of signs of r and r', one fits all.
    """
    layout, me, count = ManyLayout.of(3, 1), 0, 90
    first, end = layout.bounds(count, me)
    inverse = {i: pow(w, -1, field.P) for i, w in enumerate(layout.at_zero)}
    summands = [{i: n.sent[i, me][3 if len(n.sent[i, me]) > 4 else 2] for i in (1, 2)} for n in networks]
    found = 0
    for k in range(end - first):
        known = []
        for network, result in zip(networks, results, strict=True):
            half = int(network.sent[me, 1][-1][k])  # 1 / (2 y), which party 0 told the others
            y = pow(2 * half, -1, field.P)
            bit_share = int(result[me][0, first + k])
            known.append((y, (2 * bit_share - 1) * y % field.P))  # y, and the own share of r
        differences = {i: int(summands[0][i][k]) - int(summands[1][i][k]) for i in (1, 2)}
        fits = []
        for signs in itertools.product((1, -1), repeat=2):
            squares = []
            for sign, (y, own) in zip(signs, known, strict=True):
                slope = own - sign * y  # party 0 sits at 1
                squares.append({i: (sign * y + slope * (i + 1)) ** 2 for i in (1, 2)})
            if all((squares[0][i] - squares[1][i] - inverse[i] * differences[i]) % field.P == 0 for i in (1, 2)):
                fits.append(signs)
        if len(fits) == 1:
            for sign, result in zip(fits[0], results, strict=True):
                secret = recombine([result[i][0, first + k : first + k + 1] for i in (0, 1)], (0, 1))[0]
                found += int(secret) == (1 + sign) // 2
    return found


def test_streams_that_begin_again_give_a_king_all_its_bits_and_these_do_not() -> None:
    """The engine of old let a resumed run begin its pairs' streams again. Here that takes a test that forges keys."""
    first, end = ManyLayout.of(3, 1).bounds(90, 0)
    assert read_bits(*two_runs(stale=True)) == 2 * (end - first) == 60
    assert read_bits(*two_runs(stale=False)) == 0
