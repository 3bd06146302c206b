"""Parties that are checked: what they do together, and that no cheat of one of them gets a wrong vector released."""

import asyncio
import tracemalloc
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from cheating import BATCH, OPENED, TINY, Cheat, Tamper, honest, judge, kinds, messages, play, release

from dpmpc.aggregation.party.resume import check_attempt
from dpmpc.aggregation.plan.asked import Attempt
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.wire.transcript import ABORT, Transcript
from dpmpc.circuits.sampler import discrete_gaussian
from dpmpc.consortium import start
from dpmpc.errors import CheatError, DpmpcError, PeerError, UsageError
from dpmpc.mpc.checked import session as checked_session
from dpmpc.mpc.checked.backend import AT_ONCE, CHECKED, MOST_ATTEMPTS, MOST_WORDS, CheckedHolder, counted
from dpmpc.mpc.checked.counts import CountingChecked
from dpmpc.mpc.checked.fold import segments_of
from dpmpc.mpc.checked.session import CheckedSession
from dpmpc.mpc.contract.backend import BACKENDS
from dpmpc.mpc.numbers import domains, field
from dpmpc.mpc.replicated.backend import SHARING, SharingHolder
from dpmpc.mpc.replicated.executor import SharingBatch
from dpmpc.mpc.transport.channels import KEYS_SHOWN, NOISE
from dpmpc.noise.draw import batch_sizes, draw
from dpmpc.privacy.law import LAWS
from tests.refusals import refuses

KINDS = kinds()
ROLES = range(3)
NOISE_SAMPLER = discrete_gaussian(2.0**18)


@pytest.fixture(scope="module")
def reference() -> np.ndarray:
    """What the parties release when nobody cheats."""
    return play(release, seed=0)[0][0]


def number_of(kind: str, which: int = 0) -> int:
    """The label of the which-th message of a kind."""
    return [label for label, name in KINDS.items() if name == kind][which]


# -- honest -----------------------------------------------------------------------------------------------------------
def test_checked_parties_release_what_unchecked_ones_do(reference: np.ndarray) -> None:
    async def unchecked(holder: Any) -> Any:
        values = await SharingBatch(holder, BATCH, 64).to_field(TINY)
        return await holder.open(values, OPENED)

    for result in play(unchecked, seed=0)[0] + play(release, seed=0)[0]:
        assert (result == reference).all()
    assert len(set(reference.tolist())) > 3  # not all zeros


def test_the_counting_twin_knows_every_message() -> None:
    """Kind, number and size of every message, so that no kind is forgotten by the cheats below."""
    _, wires = play(release, seed=0)
    assert {label for *_, label, _ in wires.sent} == set(KINDS)
    assert Counter(KINDS.values()) == {
        "key promised": 1, "key shown": 1, "key compared": 1, "and": TINY.depth, "coin": 4, "sums": 3, "log": 1,
        "product": 1, "verdict": 1, "conversion": 1, "converted": 1, "share": 1, "digest of the vector": 1,
    }  # fmt: skip
    twin = CountingChecked(64)
    asyncio.run(twin.to_field(TINY))
    for i in ROLES:
        mine = [payload for sender, _, label, payload in wires.sent if sender == i and label >> 32 == BATCH]
        assert (len(mine), sum(map(len, mine))) == (twin.messages_sent[i], twin.bytes_sent[i])


def test_the_check_costs_little_and_semi_honest_noise_costs_what_it_did() -> None:
    """1.1 bits a party and AND at most from 2^15 lanes on, as the issue of a whole batch; figures of docs/noise.md."""
    sampler = discrete_gaussian(2.0**18)
    for lanes in (1 << 15, 47620):
        batch = counted(sampler, lanes)
        bits = 8 * max(batch.bytes_sent) - 8 * 61 * (lanes // 64 * 8)  # less the opening of 61 planes
        assert 1 < bits / (batch.ands * lanes) < 1.02
    ours, theirs = CHECKED.count_noise(sampler, 122, 3, 1), SHARING.count_noise(sampler, 122, 3, 1)
    assert (theirs.rounds, max(theirs.bytes_sent)) == (26, 11216)
    assert (ours.rounds, max(ours.bytes_sent)) == (37, 25136)


def test_nobody_tells_a_coin_before_the_messages_that_it_weighs_have_come() -> None:
    """In the order of what is sent: a piece goes out after the message that it weighs, and never by the predecessor."""
    _, wires = play(release, seed=0)
    order = [(sender, receiver, label) for sender, receiver, label, _ in wires.sent]
    coins = [label for label, kind in KINDS.items() if kind == "coin"]
    for sender in ROLES:
        for coin in coins:
            told = order.index(((sender + 1) % 3, sender, coin))
            weighed = order.index((sender, (sender + 1) % 3, coin - 1))
            assert weighed < told
            assert ((sender + 2) % 3, sender, coin) not in order  # the predecessor never tells it


# -- every message, every role ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("role", ROLES)
def test_no_change_of_any_message_gets_a_wrong_vector_released(role: int, reference: np.ndarray) -> None:
    """Each of the role's messages, once, in one of five ways; all kinds. An honest party finishes only where the last
    word of the cheat, on a vector that all have, was a lie to the other one."""
    seen = set()
    for how, (receiver, label) in enumerate(messages(role, 0)):
        outcome = judge(Cheat(role, receiver, label, how), 0, reference)
        assert outcome == "stopped" or (outcome, KINDS[label]) == ("right for one", "digest of the vector")
        seen.add(KINDS[label])
    assert seen == set(KINDS.values())


@pytest.mark.slow
def test_random_cheats(reference: np.ndarray) -> None:
    """Some of the 10,000 that `python tests/cheating.py 10000` tries."""
    places = [(role, *place) for role in ROLES for place in messages(role, 0)]
    random = np.random.default_rng(18)
    for how in random.integers(1 << 30, size=60):
        role, receiver, label = places[int(how) % len(places)]
        assert judge(Cheat(role, receiver, label, int(how)), 0, reference) != "released"


# -- aimed ------------------------------------------------------------------------------------------------------------
def flipping(sender: int, bits: dict[int, list[tuple[int, int]]]) -> Tamper:
    """Flips (row, lane) of a party's messages, by layer, of one word a row; the cheat goes on with what it sent."""

    def tamper(s: int, r: int, l: int, payload: bytearray) -> bytearray:
        if s == sender and l >> 32 == BATCH:
            for row, lane in bits.get(l & 0xFFFF, []):
                payload[8 * row + lane // 8] ^= 1 << lane % 8
        return payload

    tamper.for_itself = True  # type: ignore[attr-defined]
    return tamper


def test_one_flipped_row_makes_y_into_y_xor_32_unseen_and_ends_a_checked_run() -> None:
    """The example of docs/active.md. Of semi-honest parties, one finds the AND behind bit 5 of |Y| (a row a lane, in
    the open), and flips it in every sample: all numbers move by 32 of the table's steps, and nobody sees it. Checked
    parties stop before an honest one has sent anything of the conversion."""
    sampler, lanes = discrete_gaussian(2.0**9), 64
    batch = counted(sampler, lanes)
    rows = [(layer, row) for layer, width in enumerate(batch.programs[0].widths) for row in range(width)]
    step = 32 << sampler.plan.shift  # type: ignore[attr-defined]

    async def noise(holder: Any) -> Any:
        return await holder.open(await holder.noise(sampler, BATCH, lanes), OPENED)

    truth = play(noise, seed=1, make=SharingHolder)[0][0]
    tamper, opened = None, []
    for at in range(0, len(rows), lanes):
        bits: dict[int, list[tuple[int, int]]] = {}
        for lane, (layer, row) in enumerate(rows[at : at + lanes]):
            bits.setdefault(layer, []).append((row, lane))
        moved = np.abs(play(noise, flipping(1, bits), seed=1, make=SharingHolder)[0][0] - truth)
        for layer, row in [rows[at + int(lane)] for lane in np.flatnonzero(moved == step)]:
            every = flipping(1, {layer: [(row, lane) for lane in range(lanes)]})
            found = play(noise, every, seed=1, make=SharingHolder)[0]
            if (np.abs(found[0] - truth) == step).all():
                tamper, opened = every, found
    assert tamper is not None
    assert all((each == opened[0]).all() for each in opened)
    results, wires = play(noise, tamper, seed=1)
    assert isinstance(results[0], CheatError) and "the product of all ANDs of batch 7" in str(results[0])
    assert isinstance(results[2], CheatError)
    last = max(label & 0xFFFF for s, _, label, _ in wires.sent if s != 1 and label >> 32 == BATCH)
    assert batch.kinds[last] == "product"


@pytest.mark.parametrize("role", ROLES)
def test_a_lie_about_a_coin_ends_the_run_before_anything_is_opened(role: int) -> None:
    """Its predecessor would open X, Y, Z under other coins: a third function of secrets under two masks."""
    for which in range(4):
        lie = Cheat(role, (role + 2) % 3, number_of("coin", which), 2)
        results, wires = play(release, lie, seed=0)
        assert all(isinstance(result, DpmpcError) for result in results)
        assert isinstance(results[(role + 2) % 3], CheatError) and "the coins" in str(results[(role + 2) % 3])
        opened = [sender for sender, _, label, _ in wires.sent if KINDS[label] == "product"]
        assert set(opened) <= {role}


def test_a_wrong_share_is_seen_before_any_vector_is_given_out() -> None:
    """To one party or to both; and a word that no share is."""
    share = number_of("share")
    for receivers in ((1,), (2,), (1, 2)):

        def tamper(s: int, r: int, l: int, payload: bytearray, receivers: tuple[int, ...] = receivers) -> bytearray:
            if s == 0 and l == share and r in receivers:
                payload[0] ^= 1
            return payload

        results, _ = play(release, tamper, seed=0)
        assert all(isinstance(result, DpmpcError) for result in results[1:])
        assert any("are of one vector" in str(results[i]) for i in receivers)

    def large(s: int, r: int, l: int, payload: bytearray) -> bytearray:
        return bytearray(b"\xff" * len(payload)) if (s, r, l) == (0, 1, share) else payload

    results, _ = play(release, large, seed=0)
    assert str(results[1]).startswith("a check failed: a share below p = 2^61 - 1, as party 1 sees it of party 0; ")


def test_parties_that_are_not_at_one_point_end_the_run_for_good_and_name_nobody() -> None:
    async def body(holder: Any) -> None:
        await holder.stand(None, b"token, release 0", 7)
        with refuses("cheat", "one attempt"):
            await holder.stand(None, b"token, release 1" if holder.party == 2 else b"token, release 2", 8)
        with pytest.raises(CheatError):
            await holder.stand(None, b"token, release 3", 9)

    results, _ = play(body, seed=0)
    assert results == [None] * 3


def test_shares_of_an_owner_that_are_of_no_one_vector_open_nothing() -> None:
    """Today's semi-honest parties open three vectors."""
    rows = [np.array([5 + k], dtype=np.uint64) for k in (1, 2, 4)]

    async def open_them(holder: Any) -> Any:
        return await holder.open(rows[holder.party], OPENED)

    assert len({int(each[0]) for each in play(open_them, make=SharingHolder)[0]}) == 3
    assert all(isinstance(each, DpmpcError) for each in play(open_them)[0])


def test_a_party_that_contributes_alike_to_two_keys_gets_two_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    async def keys(holder: Any) -> Any:
        words = [holder.stream(s, domains.RANDOM, 1).words((4,)).tolist() for s in holder.mine]
        equal = {s: bytes(16) for s in holder.mine}
        holder._keys = equal  # even so the subset is in the stream's domain
        return words, [holder.stream(s, domains.RANDOM, 1).words((4,)).tolist() for s in holder.mine], holder.mine

    for words, equal, mine in play(keys)[0]:
        assert len(mine) == 2 and words[0] != words[1] and equal[0] != equal[1]
    monkeypatch.setattr(checked_session, "_PART", 32)

    def other_part(s: int, r: int, l: int, payload: bytearray) -> bytearray:
        return bytearray(len(payload)) if (s, r, l) == (0, 1, KEYS_SHOWN) else payload

    results, _ = play(keys, other_part)
    assert "a promised part of a key, as party 1 sees it of party 0" in str(results[1])


def test_a_failed_check_is_the_end_of_the_session() -> None:
    async def twice(holder: Any) -> Any:
        with pytest.raises(PeerError):
            await release(holder)
        if holder.over is not None:
            for again in (holder.open(holder.zero(1), 99), holder.noise(discrete_gaussian(200.0), 98, 1)):
                with refuses("cheat"):
                    await again
        return holder.over is not None

    results, _ = play(twice, Cheat(2, 0, number_of("and", 1), 0), seed=0)
    assert any(results[:2])
    with pytest.raises(AssertionError):  # inputs could be dealt differently to their holders
        play(lambda holder: _with_inputs(holder))


async def _with_inputs(holder: Any) -> Any:
    from dpmpc.mpc.checked.executor import CheckedBatch

    return await CheckedBatch(holder, 5, 64).run(TINY, (), np.zeros((1, 2, 1), dtype=np.uint64))


# -- what is said of it -----------------------------------------------------------------------------------------------
def plan(**changed: Any) -> Plan:
    asked = {"owners": 3, "dimension": 4, "clip": 1.0, "epsilon": 1.0, "delta": 1e-5, "security": "active"}
    return Plan.create(**{**asked, **changed})


def test_a_plan_with_active_security_is_checked_and_bounded() -> None:
    sampler = plan().derived.sampler
    assert plan().backend == "checked"
    one = max(check.error for check in counted(sampler, 4).checks)
    bound = CHECKED.undetected(sampler, [4], 3, 1)
    assert MOST_ATTEMPTS * AT_ONCE * float(one) <= bound < 2.0**-45
    most = CHECKED.batch_samples(sampler, 10**6, 3, 1)
    largest = max(check.error for size in range(1, most + 1, 997) for check in counted(sampler, size).checks)
    assert CHECKED.undetected(sampler, batch_sizes(10**6, most), 3, 1) >= MOST_ATTEMPTS * AT_ONCE * float(largest)
    many = CHECKED.undetected(sampler, [49152] * (1 << 16), 3, 1)  # 2^31.6 samples
    assert bound < many < 2.0**-45
    with refuses("range", 60, setting="security_bits"):
        _ = plan(security_bits=60.0).derived


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"backend": "mpyc"}, "got backend=mpyc"),
        ({"backend": "ot", "parties": 2}, "got backend=ot"),
        ({"backend": "garbled", "parties": 2}, "got backend=garbled"),
        (
            {"parties": 7, "backend": "sharing"},
            "replicated shares are checked where they have comb(n - 1, t) <= 10 parts; with parties=7 threshold=3 they "
            "have 20; use backend shamir",
        ),
        ({"backend": "sharing", "threshold": 0}, "of which t may cheat, 1 <= t and 2t < n; got parties=3 threshold=0;"),
        ({"threshold": 0}, "of whom t may cheat, 1 <= t and 2t < n; got parties=3 threshold=0; mend them"),
        (
            {"parties": 7, "threshold": 0},
            "of whom t may cheat, 1 <= t and 2t < n; got parties=7 threshold=0; mend them",
        ),
        ({"parties": 33}, "security=active is for 3 to 32 parties of whom t may cheat"),
        ({"sampler": "box-muller"}, "security=active checks bits, and box-muller computes with fixed-point numbers"),
        ({"law": "laplace", "delta": None, "sampler": "log-laplace"}, "and log-laplace computes"),
        ({"min_owners": 2}, "security=active needs all owners in every release"),
        ({"engine": "clear"}, "security=active is of parties; engine=clear has none"),
        ({"security": "covert"}, "security must be one of semi-honest, active; got 'covert'"),
    ],
)
def test_what_cannot_be_checked_is_refused_in_a_line(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as refused:
        _ = plan(**changed).derived
    assert message in str(refused.value) and "\n" not in str(refused.value) and "; " in str(refused.value)


def test_a_run_has_few_attempts_and_none_after_a_failed_check(tmp_path: Path) -> None:
    transcript = tmp_path / "party_0.transcript.jsonl"
    check_attempt(plan(), Attempt(MOST_ATTEMPTS - 1, 0), transcript)
    with refuses("range", "1,024", "1,025", setting="security"):
        check_attempt(plan(), Attempt(MOST_ATTEMPTS, 0), transcript)
    book = Transcript(transcript)
    book.note("start", attempt=0)
    book.flush()
    check_attempt(plan(), Attempt(1, 0), transcript)
    book.note(ABORT, why="a check failed")
    book.close()
    for security in ("active", "semi-honest"):  # two servers check their transfers
        with refuses("over"):
            check_attempt(plan(security=security), Attempt(2, 0), transcript)
    assert BACKENDS["checked"] is CHECKED and field.P and honest(0, 1, 2, bytearray(b"x")) == b"x"


def test_a_shorter_batch_takes_the_memory_of_a_longer_one() -> None:
    async def both() -> tuple[np.ndarray, np.ndarray]:
        session = CheckedSession(0, 3, 1, bytes(16))
        longer = session.borrow(2, 100)
        session.give_back(longer)
        return longer, session.borrow(2, 60)

    longer, shorter = asyncio.run(both())
    assert shorter.shape == (2, 60) and np.shares_memory(longer, shorter)


def watched(batches: int, size: int = 2048, threads: int = 1) -> tuple[list[np.ndarray], int, list[int]]:
    """A draw of so many batches by three parties: the arrays that each borrowed, the most bytes of all arrays at a
    time, and the channels of one party's messages in order."""
    borrowed: list[list[np.ndarray]] = [[] for _ in ROLES]

    class Watched(CheckedHolder):
        def borrow(self, rows: int, words: int, most: int = 0) -> Any:
            found = super().borrow(rows, words, most)
            if not any(found.base is known for known in borrowed[self.party]):
                borrowed[self.party].append(found.base)
            return found

    async def drawn(holder: Any) -> int:
        holder.threads = threads
        return len(await draw(holder, NOISE_SAMPLER, batches * size, batch=size))

    tracemalloc.start()
    try:
        results, wires = play(drawn, make=Watched)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert results == [batches * size] * 3
    order = [label >> 32 for sender, _, label, _ in wires.sent if sender == 0 and label >> 32 >= NOISE]
    wires.sent.clear()
    assert [len(arrays) for arrays in borrowed] == [len(borrowed[0])] * 3
    return borrowed[0], peak, order


def test_what_checks_keep_is_there_once_however_long_the_draw_is() -> None:
    """Three arrays a party, and one of wires: a batch begins when the one before has used them up, and while that is
    still checked. A draw of more batches holds what it makes, 8 bytes a sample, and what a test keeps of messages."""
    few, short, _ = watched(3)
    many, long, order = watched(9)
    words = 2 * counted(NOISE_SAMPLER, 2048).ands * 2048 // 64  # of each kind, in two parts
    assert len(few) == len(many) == 4 and all(words < array.size < 2 * words for array in many[:3])
    told = 2 * max(counted(NOISE_SAMPLER, 2048).bytes_sent) * 3 * 6  # at both ends
    assert long - short < 1.1 * (told + 3 * 6 * 2048 * 8)
    first, last = ({each: sequence.index(each) for each in sequence} for sequence in (order, order[::-1]))
    ends = {each: len(order) - 1 - at for each, at in last.items()}
    assert len(ends) == 9
    for at in range(8):  # two under way, and never three
        assert first[NOISE + at + 1] < ends[NOISE + at] and (at == 7 or ends[NOISE + at] < first[NOISE + at + 2])


def test_a_party_of_two_threads_checks_a_batch_while_it_evaluates_the_next() -> None:
    """In twice the memory, and no more; still two batches at a time."""
    arrays, _, order = watched(6, threads=2)
    made = len(arrays)
    assert 6 < made <= 8
    sent = [order.index(NOISE + at) for at in range(6)]
    ends = [len(order) - 1 - order[::-1].index(NOISE + at) for at in range(6)]
    assert all(sent[at + 2] > min(ends[at], ends[at + 1]) for at in range(4))


def test_a_batch_is_as_long_as_what_it_keeps_allows() -> None:
    """For any law, scale and parties: no segment has more words than stated, there are few, and what a batch keeps at
    a time is said to whoever asks what it needs."""
    for law, scale in (("gaussian", 2.0**8), ("gaussian", 2.0**18), ("laplace", 2.0**8), ("laplace", 2.0**29)):
        sampler = LAWS[law].sampler("discrete", scale)
        for n, t in ((3, 1), (5, 2), (6, 2)):
            batch = counted(sampler, CHECKED.batch_samples(sampler, 10**8, n, t), n, t)
            (check,), (program,), words = batch.checks, batch.programs, batch.lanes // 64
            kept = [size * words for size in segments_of(program.widths, words)]
            assert max(kept) <= MOST_WORDS and sum(kept) == batch.ands * words > MOST_WORDS
            assert 2 <= len(kept) == len(check.segments) <= 5
            assert (max(program.widths) + 2) * (words + 1) > MOST_WORDS or sum(kept) > 2.4 * MOST_WORDS
    batch = counted(NOISE_SAMPLER, most := CHECKED.batch_samples(NOISE_SAMPLER, 10**6, 3, 1))
    needs, without = (backend.noise_needs(NOISE_SAMPLER, most, 3, 1) for backend in (CHECKED, SHARING))
    assert needs is not None and without is not None
    assert needs[1] - without[1] == 48 * max(stages.lengths[0] for stages in batch.checks[0].segments)


def test_the_command_of_a_party_that_saw_a_check_fail_is_refused_though_nothing_was_opened(tmp_path: Path) -> None:
    """Also with --overwrite: the run is over for good."""
    chosen = plan()
    chosen.write(tmp_path / "plan_0.json")
    book = Transcript(tmp_path / "party_0.transcript.jsonl")
    book.note("start", attempt=0)
    book.note(ABORT, why="a check failed")
    book.close()
    for overwrite in (False, True):
        where = SimpleNamespace(out=tmp_path, overwrite=overwrite)
        with refuses("over"):
            start._make_ready(chosen, where, 0)  # type: ignore[arg-type]
    assert (tmp_path / "party_0.transcript.jsonl").exists()
