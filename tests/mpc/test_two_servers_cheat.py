"""A server that deviates: the attack on Delta that the check of corrections is there for, and every message of it
changed."""

import asyncio
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from cheating_transfers import SIZE, WAYS, Cheat, Ends, Trial, change_of_trees, grow, guess, judge, play
from pairs import Two, read_before, together

from dpmpc.aggregation.party.party import _note_abort
from dpmpc.aggregation.party.resume import check_attempt
from dpmpc.aggregation.plan.asked import Attempt
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.wire.transcript import Transcript
from dpmpc.circuits.program import program_of
from dpmpc.circuits.sampler import discrete_gaussian, noise_heap
from dpmpc.errors import CheatError, PeerError
from dpmpc.mpc.native import ot as native
from dpmpc.mpc.numbers import field
from dpmpc.mpc.transport.channels import TREES as TREES_LABEL
from dpmpc.mpc.two_servers import extension, half_gates, trees
from dpmpc.mpc.two_servers import lifts as lifting
from dpmpc.mpc.two_servers.backend import GarbledHolder, OtHolder
from dpmpc.mpc.two_servers.consistency import Sums
from dpmpc.mpc.two_servers.executor import OtBatch
from dpmpc.mpc.two_servers.extension import LEVELS, OfferedBatch
from dpmpc.mpc.two_servers.garbled import LABELS, GarbledBatch
from tests.refusals import refuses
from tests.runs import HANG

K, LANES, CHANNEL = 4, 64, 5
TREES = 128 // K
SCALE = 2.0**12
RNG = np.random.default_rng(5)


class Probe:
    """Server 0 in the attack: it flips bits of the correction of one transfer a lane, the one into F_p, so that the
    string that it holds there depends on four bits of the other's Delta, a tree a lane; then it keeps the one of 16
    strings that gives a small sum. Its own library runs as ever beside."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.planes = np.zeros((128, 1), dtype=np.uint64)
        self.tweaks = np.zeros((65, 2), dtype=np.uint64)
        self.schedule = b""
        self.product: tuple[np.ndarray, ...] = ()
        hashes, product = native.hashes, lifting.chosen_product

        def recorded(
            planes: np.ndarray, schedule: bytes, tweaks: np.ndarray, offsets: np.ndarray, out: np.ndarray
        ) -> None:
            if out.shape[:2] == (1, 2):  # the chooser's, with high words
                self.planes, self.schedule = planes[:, -1:].copy(), schedule
                self.tweaks = np.concatenate([tweaks[:64], tweaks[-1:]])
            hashes(planes, schedule, tweaks, offsets, out)

        def kept(*arguments: np.ndarray) -> np.ndarray:
            self.product = arguments
            return product(*arguments)

        monkeypatch.setattr(native, "hashes", recorded)
        monkeypatch.setattr(lifting, "chosen_product", kept)

    def spoil(self, label: int, raw: bytes) -> bytes:
        """The correction, 31 words a slot; and lane 0's choice, which its tree turns around."""
        words = np.frombuffer(raw, dtype=np.uint64).copy()
        if label == CHANNEL << 32:
            last = words[: 1 - TREES].reshape(TREES - 1, -1)[:, -1]  # without the extra slot's
            last ^= np.uint64(1)  # lane 0: all trees but the first
            last ^= np.uint64(1) << np.arange(1, TREES, dtype=np.uint64)  # lane i: tree i
        elif len(words) == 1:
            words ^= np.uint64(1)
        return words.tobytes()

    def candidates(self, share: np.ndarray, bits: int) -> np.ndarray:
        """(16, 32): what this server's share of lane i would be, were the bits of tree i such."""
        found = np.empty((16, TREES), dtype=np.uint64)
        q, choice, told, offered = (a[:TREES].copy() for a in self.product)
        old = lifting.chosen_product(q, choice, told, offered)
        choice[0] ^= np.uint64(1)
        told[0] ^= np.uint64(1)
        for value in range(16):
            for tree in range(TREES):
                offset = np.zeros(2, dtype=np.uint64)
                offset[K * tree // 64] = value << K * tree % 64
                out = np.empty((1, 2, 64, 1), dtype=np.uint64)
                native.hashes(self.planes, self.schedule, self.tweaks, np.stack([offset]), out)
                one = lifting.reduce_wide(out[0, 0, tree], out[0, 1, tree])
                made = lifting.chosen_product(one, choice[[tree]], told[[tree]], offered[[tree]])
                moved = field.mul(field.sub(made, old[[tree]]), 1 << bits)
                found[value, tree] = field.add(share[[tree]], moved)[0]
        return found


def attack(monkeypatch: pytest.MonkeyPatch) -> tuple[bool, np.ndarray]:
    """(whether server 0 has all of the other's Delta, the sum that the honest server opens), by one release."""
    probe = Probe(monkeypatch)
    sampler = discrete_gaussian(SCALE)
    data = np.arange(LANES) * 1000

    async def body(two: Two) -> tuple[bool, np.ndarray]:
        cheat, honest = two.holders
        noises = await asyncio.gather(*(h.noise(sampler, CHANNEL, LANES) for h in two.holders))
        opening = asyncio.ensure_future(honest.open(field.add(noises[1], field.from_int64(data)), 9))
        theirs, show = await read_before(cheat, noises[0], 9)
        bits = lifting.lifts_of(noise_heap(sampler.plan)).bits
        every = probe.candidates(noises[0], bits)
        sums = np.abs(field.to_int64(field.add(every, np.broadcast_to(theirs[:TREES], every.shape).copy())))
        guesses = sums.argmin(axis=0)
        show(noises[0])  # the right one was not promised
        found = np.zeros(2, dtype=np.uint64)
        for tree, value in enumerate(guesses.tolist()):
            found[K * tree // 64] |= np.uint64(value << K * tree % 64)
        assert honest.offerer is not None
        return bool((found == honest.offerer._offsets[1]).all()), await opening - data

    return together(body, K, spoil=probe.spoil, spoils=0)


def test_without_the_check_one_release_gives_all_of_delta_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong candidate of 16 has a sum that small once in 2^44. What was promised opens to something else."""
    monkeypatch.setattr(OfferedBatch, "holds", lambda self, answer: True)
    known, noise = attack(monkeypatch)
    assert known and np.abs(noise[:TREES]).max() > 7 * SCALE > np.abs(noise[TREES:]).max()


def test_the_check_ends_that_attack_before_anything_that_depends_on_a_string_is_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Some bits of Delta are guessed once in 2^128."""
    sent = []
    monkeypatch.setattr(OtBatch, "send_rows", lambda self, *_: sent.append(self.party))
    with refuses("cheat", 1, 0) as error:
        attack(monkeypatch)
    assert 1 not in sent and error.value.exit_code == 4 and "\n" not in str(error.value)


@pytest.mark.parametrize(("known", "outcome"), [(True, Trial(held=True, right=False)), (False, Trial(False, False))])
def test_a_challenge_that_is_known_before_the_corrections_is_forged(
    known: bool, outcome: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    """20 of 20: what a wrong word adds to R is taken out again by the extra slot. So it is drawn afterwards."""
    challenge = bytes(range(16))
    if known:
        monkeypatch.setattr(extension, "secrets", SimpleNamespace(token_bytes=lambda size: challenge))
    for k in (1, 4) * 10:
        ends = Ends(k)
        while not ends.delta[-1]:  # where Delta's bits are 0, nothing is wrong
            ends = Ends(k)

        def forged(kind: str, raw: bytes, ends: Ends = ends) -> bytes:
            if kind != "correction":
                return raw
            words, trees = np.frombuffer(raw, dtype=np.uint64).copy(), 128 // ends.k - 1
            wrong = np.zeros((1, SIZE), dtype=np.uint64)
            wrong[0, 1] = 0xABCDEF
            sums = Sums(challenge, ends.place, 1)
            sums.add(wrong)
            words[: trees * SIZE].reshape(trees, SIZE)[-1] ^= wrong[0]
            words[-1] ^= sums.total[0]
            return words.tobytes()

        assert play(ends, forged) == outcome


def test_a_failed_check_is_noted_and_the_run_is_over(tmp_path: Path) -> None:
    """Also where the other server has gone before the line of the check is raised."""
    path = tmp_path / "party_1.transcript.jsonl"

    async def body(two: Two) -> None:
        cheat, honest = two.holders
        error = honest.cheat("corrections of oblivious transfers", 0)
        book = Transcript(path)
        _note_abort(book, honest, PeerError, PeerError("party 0 left the run"), None)
        book.close()
        assert str(error) in path.read_text(encoding="utf-8") and cheat.over is None

    together(body)
    plan = Plan.create(owners=2, dimension=3, clip=1.0, epsilon=1.0, delta=1e-5, parties=2)
    assert plan.backend == "ot"
    with refuses("over"):
        check_attempt(plan, Attempt(1, 0), path)


# -- every message of the check ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", Cheat.KINDS)
@pytest.mark.parametrize("k", LEVELS)
def test_no_change_of_a_message_of_the_check_is_undetected(kind: str, k: int) -> None:
    """Of no effect are changes of trees where Delta's bits are 0, by chance; an answer or a challenge has few such."""
    rng = np.random.default_rng()
    found = Counter(judge(k, kind, way, rng) for way in range(WAYS) for _ in range(6))
    assert not found["undetected"] and found["ended"] >= (12 if kind == "correction" else 30), found


def test_the_judge_sees_what_is_undetected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OfferedBatch, "holds", lambda self, answer: True)
    rng = np.random.default_rng()
    assert judge(4, "correction", 2, rng) == "undetected"


@pytest.mark.parametrize(("k", "trials"), [(1, 400), (4, 1500)])
def test_who_guesses_bits_of_delta_learns_them_as_often_as_chance_has_it(k: int, trials: int) -> None:
    """Of the right value always, of a wrong one never, so of a value drawn at random once in 2^k: false alarm below
    1e-9, seven standard deviations."""
    rng, held = np.random.default_rng(), 0
    for trial in range(trials):
        if trial % 100 == 0:
            ends = Ends(k)
        tree, value = int(rng.integers(1, 128 // k)), int(rng.integers(1 << k))
        right = guess(ends, tree, value, rng)
        assert right == (int(ends.delta[tree]) == value)
        held += right
    p = 0.5**k
    assert abs(held - trials * p) < 7 * (trials * p * (1 - p)) ** 0.5


@pytest.mark.parametrize("k", LEVELS)
def test_no_change_of_trees_is_undetected(k: int) -> None:
    rng = np.random.default_rng()
    trials = 4 if k == 8 else 20
    found = Counter(asyncio.run(grow(k, change_of_trees(way, rng))) for way in range(3) for _ in range(trials))
    assert not found["undetected"] and found["ended"] >= trials // 2, found
    assert asyncio.run(grow(k, None)) == "of no effect"


def test_without_tags_a_changed_tree_is_undetected(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sum is wrong for one side of a path, so half of the changes have an effect: none of 40 once in 2^40."""
    monkeypatch.setattr(trees, "proved", lambda *_: True)
    rng = np.random.default_rng()
    change = change_of_trees(0, rng)

    def first(raw: bytes) -> bytes:
        return change(raw[: 128 * 32]) + raw[128 * 32 :]  # the sums

    assert "undetected" in {asyncio.run(grow(4, first)) for _ in range(40)}


class _Searching:
    """Server 1 searches among roots, tree by tree, until the first two lanes of a slot agree in all its planes of a
    batch of labels; and of the first tree in their choice."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, slot: int) -> None:
        self._slot, self._grown, self.trials = slot, trees.grown, 0
        monkeypatch.setattr(trees, "grown", self.grown)

    def grown(self, count: int, k: int, context: bytes) -> trees.Grown:
        self.trials += 1
        if self.trials % 2:  # server 0 connects first
            return self._grown(count, k, context)
        roots = np.zeros((count, 2), dtype=np.uint64)
        left = np.ones(count, dtype=bool)
        while left.any():
            fresh = np.where(left[:, None], RNG.integers(0, 2**64, (count, 2), dtype=np.uint64), roots)
            leaves, sums = trees.whole(fresh, k, context)
            planes = np.empty((128, self._slot + 1), dtype=np.uint64)
            choices = np.empty((count, self._slot + 1), dtype=np.uint64)
            schedules = native.schedule_of(trees.keys_of(trees.stream_keys(leaves, b"", 1)))
            native.columns(schedules, k, CHANNEL << 33 | LABELS << 32, planes, choices)
            last = np.concatenate([planes[:, -1].reshape(count, k), choices[:, -1:]], axis=1)
            differ = (last ^ last >> np.uint64(1)) & np.uint64(1)
            differ[1:, -1] = 0
            roots, left = fresh, differ.any(axis=1)
        return trees.Grown(leaves, sums, trees.proof_of(trees.tags_of(leaves, context)))


@pytest.mark.parametrize("salted", [False, True])
def test_an_evaluator_that_searches_its_trees_would_have_one_label_in_two_lanes_but_for_the_salt(
    salted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where streams follow from leaves alone, and transfers have no tweak, two lanes of one wire get one label; the
    transfers' check holds. That would show Delta but for the tweaks of lanes (`test_garbled`). With a salt not once in
    4 runs: 2^-120."""

    async def x_and_both(engine: Any) -> Any:
        x = engine.random_bits(3)
        return await engine.and_(x[0], x[1:])

    program = program_of(x_and_both)
    (layer,) = (layer for layer in program.layers if len(layer.ands))
    slot = layer.random.tolist().index(layer.ands[0, 1])
    made, found = extension._Begun.tweaks, trees.stream_keys

    def without(key: bytes, words: int) -> np.ndarray:
        return made(key, words) * np.uint64(0)

    def unsalted(leaves: np.ndarray, session: bytes, direction: int) -> np.ndarray:
        return found(leaves, session, direction) if salted and session else leaves

    monkeypatch.setattr(trees, "stream_keys", unsalted)
    monkeypatch.setattr(extension._Begun, "tweaks", staticmethod(without))
    seen: list[np.ndarray] = []
    garble = half_gates.garble

    def recorded(*arguments: Any) -> Any:
        seen.append(np.stack([each[slot, :2] for each in arguments[1].random.strings]))
        return garble(*arguments)

    monkeypatch.setattr(half_gates, "garble", recorded)
    searching = _Searching(monkeypatch, slot)

    async def body(two: Two) -> None:
        await asyncio.gather(*(GarbledBatch(h, CHANNEL, 64).run(program) for h in two.holders))

    alike = []
    for _ in range(4 if salted else 2):
        together(body, K, made_by=GarbledHolder)
        alike.append(bool((seen[-1][:, 0] == seen[-1][:, 1]).all(axis=-1).any()))
    assert searching.trials >= 2 and alike == [not salted] * len(alike)


def test_a_chooser_s_own_salt_is_not_in_its_direction() -> None:
    """One that sees the other's salt first could try its own until it likes its rows."""

    def spoil(label: int, raw: bytes) -> bytes:
        return raw[:-1] + bytes([raw[-1] ^ 1]) if label == TREES_LABEL else raw

    async def body(two: Two) -> None:
        honest, cheat = two.holders
        assert honest.chooser and honest.offerer and cheat.chooser and cheat.offerer
        assert honest.offerer._streams._session == cheat.chooser._streams._session
        assert honest.chooser._streams._session != cheat.offerer._streams._session

    together(body, spoil=spoil, spoils=1)


@pytest.mark.parametrize("made_by", [OtHolder, GarbledHolder])
@pytest.mark.parametrize("spoils", [0, 1])
def test_a_failed_check_is_the_end_for_that_server(made_by: type[OtHolder], spoils: int) -> None:
    """Whatever it is asked for later; and after the failed check it has sent nothing."""
    label = (CHANNEL << 32) | 2
    if made_by is GarbledHolder and spoils == 0:
        label = (CHANNEL << 32) | 6  # the evaluator alone chooses labels; lifts come after the tables

    async def body(two: Two) -> None:
        cheat, honest = two.holders[spoils], two.holders[1 - spoils]
        tasks = [asyncio.ensure_future(h.noise(discrete_gaussian(300.0), CHANNEL, LANES)) for h in two.holders]
        await asyncio.wait([tasks[honest.party]], timeout=HANG)
        sent = len(two.sent[honest.party])
        error = tasks[honest.party].exception()
        assert isinstance(error, CheatError) and honest.over is error and "\n" not in str(error)
        tasks[cheat.party].cancel()
        for late in (honest.noise(discrete_gaussian(300.0), CHANNEL + 1, LANES), honest.open(honest.zero(3), 9)):
            with pytest.raises(CheatError) as again:
                await late
            assert again.value is error
        assert len(two.sent[honest.party]) == sent
        delta = honest.offerer._offsets[1] if honest.offerer is not None else None
        assert delta is not None and all(str(int(word)) not in str(error) for word in delta)

    together(
        body,
        made_by=made_by,
        spoils=spoils,
        spoil=lambda found, raw: bytes([raw[0] ^ 1]) + raw[1:] if found == label else raw,
    )
