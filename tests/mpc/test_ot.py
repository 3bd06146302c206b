"""Oblivious transfers: base transfers against OpenSSL's group, trees, extension; no part of a stream is used twice."""

import asyncio
import itertools
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from pairs import Two, together

from dpmpc.circuits.sampler import discrete_gaussian
from dpmpc.errors import PeerError
from dpmpc.mpc.contract.lanes import from_planes
from dpmpc.mpc.native import choice
from dpmpc.mpc.native import ot as native
from dpmpc.mpc.transport.channels import KEYS, TREES
from dpmpc.mpc.two_servers import base, extension, trees
from dpmpc.mpc.two_servers.backend import GarbledHolder, OtHolder
from dpmpc.mpc.two_servers.extension import LEVELS, Offerer, correction_words
from tests.refusals import refuses

RNG = np.random.default_rng(5)


def words(*shape: int) -> np.ndarray:
    return RNG.integers(0, 2**64, shape, dtype=np.uint64)


# -- base transfers ----------------------------------------------------------------------------------------------------
def point(scalar: int) -> base.Point:
    numbers = ec.derive_private_key(scalar, base.CURVE).public_key().public_numbers()
    return numbers.x, numbers.y


def test_differences_of_points_are_openssls() -> None:
    for a, b in ((5, 3), (3, 5), (10**40, 7), (2**255, 12345)):
        n = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
        assert base.subtract(point(a), point(b)) == point((a - b) % n)
    with refuses("message", kind=PeerError):
        base.subtract(point(5), point(5))


def test_hashes_are_points_and_differ() -> None:
    found = {base.hash_to_curve(b"a", i, 0, b"") for i in range(20)}
    assert len(found) == 20
    for x, y in found:
        ec.EllipticCurvePublicNumbers(x, y, base.CURVE).public_key()  # refuses what is off the curve
    assert {y % 2 for _, y in found} == {0, 1}


def test_base_transfers_give_the_chosen_key_and_not_the_other() -> None:
    choices = [0, 1, 1, 0, 1]
    receiver, sender = base.BaseReceiver(choices, b"hash"), base.BaseSender()
    pairs = sender.keys(receiver.message, b"hash", b"session", 0)
    keys = receiver.keys(sender.message, b"session", 0)
    assert all(pair[c] == key != pair[1 - c] for pair, c, key in zip(pairs, choices, keys, strict=True))
    assert len({key for pair in pairs for key in pair}) == 10
    assert sender.keys(receiver.message, b"hash", b"other", 0)[0][0] != pairs[0][0]
    assert sender.keys(receiver.message, b"hash", b"session", 1)[0][0] != pairs[0][0]
    assert sender.keys(receiver.message, b"another", b"session", 0)[0][0] != keys[0]
    with refuses("message", -256, kind=PeerError):
        sender.keys(bytes(128), b"hash", b"session", 0)
    with refuses("message", -256, kind=PeerError):
        receiver.keys(b"\x01" * 64, b"session", 0)


# -- trees -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("k", [1, 2, 4])
def test_a_punctured_tree_lacks_one_leaf(k: int) -> None:
    paths = np.arange(1 << k, dtype=np.uint64)
    leaves, sums = trees.whole(words(1 << k, 2), k, b"context")
    sides = 1 - (paths[:, None] >> np.arange(k - 1, -1, -1, dtype=np.uint64) & np.uint64(1))
    chosen = np.take_along_axis(sums, sides[:, :, None, None].astype(int), axis=2)[:, :, 0]
    known = trees.punctured(paths, chosen, k, b"context")
    same = (known == leaves).all(axis=2)
    assert (same == (np.arange(1 << k) != paths[:, None])).all()
    first = trees.relabelled(leaves, paths, k)
    for tree, path in enumerate(paths.tolist()):
        assert (first[tree] == leaves[tree, np.arange(1 << k) ^ path]).all()


# -- extension ---------------------------------------------------------------------------------------------------------
class Taken:
    """Collects strings: (strings, slots, lanes)."""

    def __init__(self) -> None:
        self.low: list[np.ndarray] = []
        self.high: list[np.ndarray] = []

    def __call__(self, slots: slice, low: np.ndarray, high: np.ndarray | None) -> None:
        self.low.append(_lanes(low))
        if high is not None:
            self.high.append(_lanes(high)[:, -1])

    @property
    def strings(self) -> np.ndarray:
        return np.concatenate(self.low, axis=1)


def _lanes(strings: np.ndarray) -> np.ndarray:
    return strings.swapaxes(1, 2).reshape(len(strings), strings.shape[2], -1).copy()


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("k", LEVELS)
def test_of_two_strings_the_chooser_gets_the_one_that_it_chose(
    k: int, compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With this processor's kernels, and without any, as where there are no AES units. Planes of the first two batches
    are kept, those of the last one made again."""
    last = (20, 70) if compiled else (6, 20)
    if not compiled:
        monkeypatch.setattr(choice, "compiled", None)
    monkeypatch.setattr(extension, "KEPT", 128 * 100)

    async def body(two: Two) -> None:
        for (a, b), (slots, width) in itertools.product((two.holders, two.holders[::-1]), ((1, 1), (3, 5), last)):
            assert a.chooser is not None and b.offerer is not None
            mine, theirs = Taken(), Taken()
            number = 100 * slots + a.party
            chosen = a.chooser.begin(number, slots, width)
            size = chosen.correction.size
            assert size == correction_words(k, slots, width) == (128 // k - 1) * (slots * width + 1)
            offered = b.offerer.begin(number, slots, width, chosen.correction.tobytes())
            offered.make(theirs, wide=1)
            assert offered.holds(chosen.answer(offered.challenge, mine, wide=1))
            u = np.array([from_planes(row[None]) for row in chosen.choices]).astype(bool)
            q0, q1 = theirs.strings
            assert (np.where(u, q1, q0) == mine.strings[0]).all()
            assert not (np.where(u, q0, q1) == mine.strings[0]).any()
            high = theirs.high[-1]
            assert (np.where(u[-1], high[1], high[0]) == mine.high[-1][0]).all()
            assert (np.bitwise_xor.reduce(q0 ^ q1, axis=None) != 0) and abs(u.mean() - 0.5) < 6 / u.size**0.5

    together(body, k)


class Record:
    """Every key and every stretch of its stream that was used: to make choices from, or planes. A chooser makes the
    planes of a batch from the words that its choices were made from: at once, or later, and once."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.used: dict[tuple[bytes, bool], list[tuple[int, int]]] = {}
        self.hashes: list[bytes] = []
        columns, begin = native.columns, native.schedule_of

        def recorded(schedules: Any, k: int, position: int, planes: np.ndarray, *more: Any) -> None:
            use = bytes(schedules), bool(more and more[0].size)
            self.used.setdefault(use, []).append((position, position + planes.shape[1]))
            columns(schedules, k, position, planes, *more)

        def key(keys: np.ndarray) -> bytes:
            made = begin(keys)
            if len(keys) == 1:
                self.hashes.append(made)
            return made

        monkeypatch.setattr(native, "columns", recorded)
        monkeypatch.setattr(native, "schedule_of", key)

    def repeats(self) -> int:
        """Stretches that overlap another one of the same keys, and keys of the hash that came twice at one party."""
        count = len(self.hashes) // 2 - len(set(self.hashes))  # both parties make each
        for stretches in self.used.values():
            ordered = sorted(stretches)
            count += sum(end > start for (_, end), (start, _) in itertools.pairwise(ordered))
        return count


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("made_by", [OtHolder, GarbledHolder])
def test_no_part_of_a_stream_is_used_twice_in_batches_resumes_and_runs(
    made_by: type[OtHolder], kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every session here has the same run id, the same plan and the same channels: a resume that lost its count."""
    if not kept:
        monkeypatch.setattr(extension, "KEPT", 0)
    record = Record(monkeypatch)

    async def body(two: Two) -> list[np.ndarray]:
        sampler = discrete_gaussian(200.0)
        found = []
        for channel in (7, 8, 1 << 24):
            shares = await asyncio.gather(*(h.noise(sampler, channel, 70) for h in two.holders))
            found.append(shares[0])
        return found

    drawn = [share for _ in range(3) for share in together(body, made_by=made_by)]
    assert record.repeats() == 0 and len(record.used) == 3 * (4 if kept else 6)
    chosen = [keys for keys, choices in record.used if choices]
    again = [] if kept else chosen
    assert len(chosen) == 6 and all(record.used[keys, True] == record.used[keys, False] for keys in again)
    assert len({share.tobytes() for share in drawn}) == 9
    record.used[next(iter(record.used))].append(next(iter(record.used.values()))[0])
    assert record.repeats() == 1  # the record sees one that is there


def test_a_batch_begins_once_and_never_after_the_end() -> None:
    async def body(two: Two) -> None:
        chooser, offerer = two.holders[0].chooser, two.holders[1].offerer
        assert chooser is not None and offerer is not None
        chosen = chooser.begin(5, 1, 1)
        with pytest.raises(AssertionError, match=r"batch 5 .* begun already"):
            chooser.begin(5, 1, 1)
        offered = offerer.begin(5, 1, 1, chosen.correction.tobytes())
        with pytest.raises(AssertionError, match="begun already"):
            offerer.begin(5, 1, 1, chosen.correction.tobytes())
        with pytest.raises(AssertionError, match=r"2\^32"):
            chooser.begin(6, 1 << 20, 1 << 12)
        with refuses("message", 16, 15, kind=PeerError):
            chooser.begin(7, 1, 1).answer(bytes(15), Taken())
        chosen.answer(offered.challenge, Taken())
        with pytest.raises(AssertionError, match="answered once"):
            chosen.answer(offered.challenge, Taken())
        two.holders[0].abandon()
        with pytest.raises(AssertionError, match="erased"):
            chooser.begin(9, 1, 1)

    together(body)


def test_delta_is_of_one_direction_and_one_session() -> None:
    """128 bits each: two that agree would be a repeat, by chance once in 2^128."""
    found: set[bytes] = set()

    async def body(two: Two) -> None:
        for holder in two.holders:
            assert isinstance(holder.offerer, Offerer)
            found.add(holder.offerer._offsets[1].tobytes())
            raw = b"".join(payload for sent in two.sent for _, payload in sent)
            assert holder.offerer._offsets[1].tobytes() not in raw  # it never leaves

    for _ in range(2):
        together(body)
    assert len(found) == 4


@pytest.mark.parametrize(
    ("label", "spoil", "says"),
    [
        (KEYS, lambda raw: raw[:-1], 17535),
        (KEYS, lambda raw: raw[:32] + bytes(64) + raw[96:], "P-256"),
        (KEYS, lambda raw: raw[:96] + bytes(64) + raw[160:], "P-256"),
        (TREES, lambda raw: raw + b"x", 4129),
    ],
)
def test_what_cannot_be_a_base_transfer_is_refused(label: int, spoil: Any, says: object) -> None:
    async def body(two: Two) -> None:
        first, second = two.holders
        other = asyncio.ensure_future(second.transfers(second.peers[0], two.digest))
        with refuses("message", says, kind=PeerError):
            await first.transfers(first.peers[1], two.digest)
        other.cancel()

    together(body, connect=False, spoil=lambda found, raw: spoil(raw) if found == label else raw)


def test_a_correction_of_another_length_is_refused() -> None:
    async def body(two: Two) -> None:
        offerer = two.holders[1].offerer
        assert offerer is not None
        with refuses("message", 64, 496, 488, kind=PeerError):
            offerer.begin(5, 1, 1, bytes(488))
        with refuses("message", 40, 39, kind=PeerError):
            offerer.begin(5, 1, 1, bytes(496)).holds(bytes(39))

    together(body)
