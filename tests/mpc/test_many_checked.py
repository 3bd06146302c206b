"""Parties of whom t may do anything, on shares of numbers: what they do together, what it costs, and attacks on it."""

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import aborts_many
import cheating_many
import numpy as np
import pytest
from cheating import Cheat, play
from cheating_many import BATCH, LANES, OPENED, WAYS, Change, Run, drawn, kinds, messages, random_change
from fieldnoise import discrete
from forged_roots import NoRoots, Pool, forging

from dpmpc.aggregation.plan.check_figures import security_line
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.circuits.trace import evaluate
from dpmpc.errors import DpmpcError
from dpmpc.mpc.checked.backend import AT_ONCE, MOST_ATTEMPTS
from dpmpc.mpc.contract.backend import BACKENDS
from dpmpc.mpc.contract.owner_checks import FailedOwners, OwnerTest
from dpmpc.mpc.contract.security import Checks
from dpmpc.mpc.numbers import field
from dpmpc.mpc.numbers.field import Words
from dpmpc.mpc.numbers.prg import Prg
from dpmpc.mpc.numbers.product_fold import ARITHMETIC, ProductStages
from dpmpc.mpc.parties.promised_coins import PART, PromisedCoins, digest_of, words_of
from dpmpc.mpc.shamir.backend import BATCH as MOST_SAMPLES
from dpmpc.mpc.shamir.backend import SHAMIR, field_sampler
from dpmpc.mpc.shamir.engine import ManyEngine
from dpmpc.mpc.shamir.layout import ManyLayout
from dpmpc.mpc.shamir_checked.backend import SHAMIR_CHECKED, ShamirCheckedHolder, batch_error, count_checked
from dpmpc.mpc.shamir_checked.counts import count_checked_circuit
from dpmpc.mpc.shamir_checked.engine import ManyCheckedEngine, weighted
from dpmpc.mpc.transport.channels import exchange_label
from tests.clear_arithmetic import ClearArithmetic
from tests.refusals import refuses

ROOT = Path(__file__).parents[2]
SUMMANDS, WORDS = exchange_label(BATCH, 3), exchange_label(BATCH, 4)  # of the first layer of products
SIZES = [(3, 1), (4, 1), (5, 2), (6, 2), (7, 3), (8, 2), (16, 7)]


def number_of(n: int, t: int, kind: str, which: int = 0) -> int:
    """The label of the which-th message of a kind."""
    return [label for label, name in kinds(n, t).items() if name == kind][which]


def told_by(run: Run, kind: str) -> set[int]:
    """Who sent messages of a kind."""
    named = kinds(run.parties, run.threshold)
    return {sender for sender, _, label, _ in run.wires.sent if named[label] == kind}


# -- honest -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("chunk", [50, 1 << 18])
@pytest.mark.parametrize(("n", "t"), SIZES)
def test_parties_get_what_the_circuit_makes_and_the_twin_knows_every_message(n: int, t: int, chunk: int) -> None:
    run = Run(n, t, chunk=chunk).play()
    assert run.outcome == "right for all"
    twin = count_checked_circuit(drawn, LANES, n, t, chunk=chunk)
    for i in range(n):
        mine = [payload for sender, _, label, payload in run.wires.sent if sender == i and label >> 32 == BATCH]
        assert (len(mine), sum(map(len, mine))) == (twin.messages_sent[i], twin.bytes_sent[i])
    labels = {label for *_, label, _ in run.wires.sent if label >> 32 == BATCH}
    assert labels == {exchange_label(BATCH, k) for k in range(twin.exchanges)}
    assert Counter(twin.kinds[-3:]) == {"log": 1, "product": 1, "verdict": 1}


def test_noise_of_checked_parties_costs_what_is_counted_and_has_one_verdict_a_channel() -> None:
    """Two batches on a channel: streams, coins and digests of each are their own."""
    sampler, count = discrete("laplace", 30.0), 700

    async def body(holder: Any) -> Any:
        share = await holder.noise(sampler, BATCH, count)
        return await holder.open(share, OPENED), holder.verdicts()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dpmpc.mpc.shamir.backend.BATCH", 400)
        results, wires = play(body, make=ShamirCheckedHolder, sizes=(5, 2))
        cost = SHAMIR_CHECKED.count_noise(sampler, count, 5, 2)
    assert len({r[0].tobytes() for r in results}) == 1 and len({str(r[1]) for r in results}) == 1
    assert np.abs(results[0][0]).max() <= sampler.largest and results[0][0].std() > 10
    (verdict,) = results[0][1]
    assert verdict.channel == BATCH and verdict.words == 2 * count_checked(field_sampler(sampler), 350, 5, 2).elements
    opening = SHAMIR_CHECKED.count_opening(count, 5, 2)
    for i in range(5):
        for channel, counts in ((BATCH, cost), (OPENED, opening)):
            sent = [p for sender, _, label, p in wires.sent if sender == i and label >> 32 == channel]
            assert (len(sent), sum(map(len, sent))) == (counts.messages_sent[i], counts.bytes_sent[i])


FIGURES = [(5, 2), (7, 3), (9, 4), (16, 7), (32, 15)]


@pytest.mark.parametrize(("n", "t"), FIGURES)
def test_the_check_costs_few_bytes_and_exchanges(n: int, t: int) -> None:
    """0.2 % of the bytes and 16 exchanges a whole batch, 4 % and 13 a draw of 122; semi-honest noise costs what it
    did."""
    sampler = discrete("gaussian", 2.0**20)
    for count, share, exchanges in ((MOST_SAMPLES, 0.002, 16), (122, 0.04, 13)):
        ours, theirs = (b.count_noise(sampler, count, n, t) for b in (SHAMIR_CHECKED, SHAMIR))
        assert theirs.rounds < ours.rounds == theirs.rounds + exchanges
        assert max(theirs.bytes_sent) < max(ours.bytes_sent) < (1 + share) * max(theirs.bytes_sent)
        assert ours.sample == theirs.sample


def test_weights_may_be_added_up_before_the_product() -> None:
    """For every way in which one factor can be the same along some axes of the results."""
    rng = np.random.default_rng(4)
    shapes = [((3, 1, 5), (3, 4, 5)), ((2, 4, 1, 5), (2, 1, 6, 5)), ((1, 5), (1, 5)), ((2, 4, 5), (2, 4, 5))]
    shapes += [((2, 5), (2, 7, 5)), ((2, 3, 1, 1, 5), (2, 1, 4, 6, 5)), ((1, 1, 1, 1), (1, 2, 1, 1))]
    for x_shape, y_shape in shapes:
        for left, right in ((x_shape, y_shape), (y_shape, x_shape)):
            x, y = (rng.integers(0, field.P, shape).astype(np.uint64) for shape in (left, right))
            z = ARITHMETIC.dot(x, y)
            weights = rng.integers(0, field.P, z.shape).astype(np.uint64)
            u, v = weighted(ARITHMETIC, x, y, weights)
            assert u.size == v.size <= z.size * len(x)
            assert ARITHMETIC.inner(u, v) == ARITHMETIC.inner(weights, z)
    assert weighted(ARITHMETIC, *(np.ones(s, dtype=np.uint64) for s in ((3, 1, 5), (3, 4, 5), (4, 5))))[0].size == 15


def test_stages_leave_a_row_for_the_mask_and_end_with_one_column() -> None:
    for elements in [*range(1, 300), *(2**k + d for k in range(8, 24) for d in (-1, 0, 1))]:
        stages, left = ProductStages.for_elements(elements), elements
        for k, v in enumerate(stages.variables):
            assert k + 1 < len(stages.variables) or left < 1 << v  # the last stage's own row
            left = -(-left >> v)
            assert left == stages.columns[k] and 1 <= v <= 6
        assert left == 1 and len(stages.variables) >= 2


# -- every message, every kind ----------------------------------------------------------------------------------------
@pytest.mark.parametrize(("n", "t", "corrupt"), [(5, 2, (1,)), (5, 2, (0, 4)), (4, 1, (2,)), (6, 2, (2, 3))])
def test_no_change_of_any_message_gets_a_wrong_vector_released(n: int, t: int, corrupt: tuple[int, ...]) -> None:
    """One message of each sender and exchange to one honest party, in one of twelve ways; all kinds."""
    named, seen, first = kinds(n, t), set(), set()
    earlier = messages(n, t, corrupt)
    for how, place in enumerate(earlier):
        if (place[0], place[2]) in first:
            continue
        first.add((place[0], place[2]))
        run = Run(n, t, corrupt).play(Change(frozenset([place]), WAYS[how % len(WAYS)], how, earlier))
        assert run.outcome != "released", (place, WAYS[how % len(WAYS)], how)
        seen.add(named[place[2]])
    assert seen == set(named.values())


@pytest.mark.slow
def test_random_cheats_of_one_and_of_t() -> None:
    """Some of the 10,000 that `python tests/cheating_many.py 10000` tries."""
    random = np.random.default_rng(32)
    for k in range(60):
        n, t = cheating_many.SIZES[k % len(cheating_many.SIZES)]
        corrupt = cheating_many.some_coalition(n, t, random)
        change = random_change(messages(n, t, corrupt), random)
        assert Run(n, t, corrupt).play(change).outcome != "released", change


def test_commands_of_the_page_that_try_cheats_start(tmp_path: Path) -> None:
    """As programs of their own, from any folder."""
    names = sorted(set(re.findall(r"tests/(\w+)\.py \d", (ROOT / "docs/active.md").read_text())))
    assert names == ["aborts_many", "cheating", "cheating_many", "cheating_shares"]
    folder = str(ROOT / "tests")
    code = f"import sys; sys.path.insert(0, {folder!r}); import {', '.join(names)}"
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)


def test_tests_that_the_page_names_are_there() -> None:
    """By their names or how these begin."""
    files = (ROOT / "tests").rglob("test_*.py")
    there = [name for file in files for name in (file.stem, *re.findall(r"def (test_\w+)", file.read_text()))]
    named = set(re.findall(r"test_\w+", (ROOT / "docs/active.md").read_text()))
    assert len(named) > 20 and all(any(name.startswith(start) for name in there) for start in named)


def test_a_wrong_product_is_released_where_nobody_checks() -> None:
    """The control of the tests above: the same judge, the same changes, parties that do not check."""

    class Unchecked(ManyCheckedEngine):
        async def check(self) -> tuple[int, str]:
            return 0, ""

    corrupt = (0, 4)
    place = next(p for p in messages(5, 2, corrupt) if p[2] == SUMMANDS)
    assert Run(5, 2, corrupt).play(Change(frozenset([place]), "add", 5), Unchecked).outcome == "released"
    assert Run(5, 2, corrupt).play(Change(frozenset([place]), "add", 5)).outcome == "stopped"


# -- aimed ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("n", "corrupt"), [(5, (0, 1)), (7, (1, 2, 5))])
def test_kings_that_tell_different_roots_choose_bits_of_unchecked_parties(n: int, corrupt: tuple[int, ...]) -> None:
    """All bits of their slices are 0."""
    t = len(corrupt)
    pool = Pool(ManyLayout.of(n, t), corrupt, one=False)
    made, count = forging(ManyEngine, pool), 100

    async def body(holder: Any) -> Words:
        with holder._keys.batch(1) as streams:
            engine = made(holder.party, holder.channel(BATCH), holder.layout, streams, n)
            bits: Words = (await engine.random_bits(count)).reshape(-1)
            return bits

    results, _ = play(body, make=ShamirCheckedHolder, sizes=(n, t))
    points = pool.honest[: t + 1]
    weights = field.lagrange(tuple(i + 1 for i in points), 0)
    bits = sum(w * results[i].astype(object) for w, i in zip(weights, points, strict=True)) % field.P
    for king in range(n):
        mine = bits[slice(*pool.layout.bounds(len(bits), king))]
        assert set(mine) == ({0} if king in corrupt else {0, 1})


@pytest.mark.parametrize(("n", "corrupt"), [(5, (0, 1)), (7, (1, 2, 5))])
def test_agreement_on_roots_catches_them_before_anything_is_opened_and_the_square_of_a_bit_does_not(
    n: int, corrupt: tuple[int, ...]
) -> None:
    """One forged bit. Where roots are not compared, a cheat that guesses the sign passes: 40 runs, of which more than 2
    and fewer than 38 do with a chance of failing below 1e-9; and then the bit is 0."""
    passed = 0
    for _ in range(40):
        pool = Pool(ManyLayout.of(n, len(corrupt)), corrupt, one=True)
        run = Run(n, len(corrupt), corrupt).play(engine=forging(NoRoots, pool))
        assert run.outcome in ("stopped", "right for all")
        if run.outcome == "right for all":
            passed += 1
            weights = field.lagrange(tuple(i + 1 for i in run.honest[: len(corrupt) + 1]), 0)
            held = [run.bits[i].reshape(-1) for i in run.honest[: len(corrupt) + 1]]
            for place in pool.guessed:
                assert sum(w * int(h[place]) for w, h in zip(weights, held, strict=True)) % field.P == 0
    assert 2 < passed < 38
    for _ in range(10):
        pool = Pool(ManyLayout.of(n, len(corrupt)), corrupt, one=True)
        run = Run(n, len(corrupt), corrupt).play(engine=forging(ManyCheckedEngine, pool))
        assert run.outcome == "stopped" and pool.guessed
        assert any("the coins and the roots of bits" in str(run.results[i]) for i in run.honest)
        assert told_by(run, "product") <= set(corrupt)


def test_kings_that_lie_alike_of_a_root_s_sign_change_nothing_and_of_its_size_are_seen() -> None:
    """-w for w makes 1 - b of b, which is as fair: nobody knew b. Any other word, 0 too, makes no bit."""
    corrupt, label = (0, 1), exchange_label(BATCH, 2)
    places = frozenset(p for p in messages(5, 2, corrupt) if p[2] == label)

    class Lying(ManyCheckedEngine):
        factor = -1

        def _roots(self, squares: Words) -> Words:
            roots = super()._roots(squares)
            return ARITHMETIC.scale(roots, self.factor) if self.party in corrupt else roots

    assert Run(5, 2, corrupt).play(engine=Lying).outcome == "right for all"
    for factor in (0, 2, pow(2, -1, field.P)):
        Lying.factor = factor
        run = Run(5, 2, corrupt).play(engine=Lying)
        assert run.outcome == "stopped"
        assert any("the products and the bits" in str(run.results[i]) for i in run.honest)
    assert Run(5, 2, corrupt).play(Change(places, "zeros", 0)).outcome == "stopped"


def test_a_word_told_wrongly_to_one_party_is_seen_before_x_y_and_z_where_degrees_can_be_wrong(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """n = 6, t = 2: four honest shares on no polynomial of degree 2. Unseen, the next product's error would depend on
    secrets, and X, Y, Z would tell of it: they are opened where degrees are not checked."""
    corrupt = (0, 1)
    place = next(p for p in messages(6, 2, corrupt) if p[2] == WORDS)
    for checked in (True, False):
        if not checked:
            monkeypatch.setattr(ManyLayout, "checks_degrees", False)
        run = Run(6, 2, corrupt).play(Change(frozenset([place]), "add", 3))
        assert run.outcome == "stopped"
        assert bool(told_by(run, "product") - set(corrupt)) != checked
        if checked:
            assert any("the degree of what parties hold" in str(run.results[i]) for i in run.honest)


def test_nobody_shows_a_part_of_a_coin_before_all_messages_to_it_have_come() -> None:
    """In the order of what is sent, for every party and coin."""
    named = kinds(5, 2)
    run = Run(5, 2).play()
    order = [(s, r, label) for s, r, label, _ in run.wires.sent]
    coins = [label for label, kind in named.items() if kind == "coin"]
    assert len(coins) == 3
    for label in coins:
        for i in range(5):
            shown = min(k for k, (s, _, each) in enumerate(order) if s == i and each == label)
            weighed = [k for k, (_, r, each) in enumerate(order) if r == i and each < label and each >> 32 == BATCH]
            assert max(weighed) < shown


def test_a_party_that_promises_two_chains_is_seen_before_anything_is_opened() -> None:
    """It shows each party what it promised it: two coins. The logs differ."""

    chains: dict[int, Any] = {}

    def tamper(s: int, r: int, label: int, payload: bytearray) -> bytearray:
        if s != 0 or r not in (1, 2) or label >> 32 != BATCH:
            return payload
        coins = [k for k, kind in kinds(5, 2).items() if kind == "coin"]
        if label == exchange_label(BATCH, 0):
            domain = PromisedCoins(holders[0], _Ident(BATCH), 0, [])  # type: ignore[arg-type]
            chains[r] = domain
            return payload[:-40] + bytearray(words_of(domain.promise, 61).tobytes())
        if label in coins:
            return bytearray(chains[r]._parts.pop()) + payload[PART:]
        return payload

    holders: dict[int, Any] = {}
    run = Run(5, 2, (0,))
    with pytest.MonkeyPatch.context() as patch:
        good = ShamirCheckedHolder.__init__

        def noting(self: Any, *given: Any) -> None:
            good(self, *given)
            holders[self.party] = self

        patch.setattr(ShamirCheckedHolder, "__init__", noting)
        run.play(tamper)
    assert run.outcome == "stopped" and told_by(run, "product") <= {0}
    assert any("the coins and the roots of bits" in str(run.results[i]) for i in run.honest)


class _Ident:
    """A channel's number."""

    def __init__(self, ident: int) -> None:
        self.ident = ident


def test_promises_travel_as_field_elements() -> None:
    for bits in (3, 5, 7, 61):
        for value in (bytes(32), b"\xff" * 32, bytes(range(32))):
            words = words_of(value, bits)
            assert words.max() < 1 << bits - 1 and digest_of(words, bits) == value


def test_a_wrong_share_of_an_opening_is_seen_before_any_vector_is_given_out() -> None:
    """Of one party and of t, to one and to all; by those that are not among the first t + 1 too."""
    label = exchange_label(OPENED, 0)
    for corrupt in ((0,), (4,), (0, 1), (3, 4)):
        places = [p for p in messages(5, 2, corrupt) if p[2] == label]
        for chosen in (places[:1], places):
            run = Run(5, 2, corrupt).play(Change(frozenset(chosen), "add", 1))
            assert run.outcome == "stopped"
            assert any("are of one vector" in str(run.results[i]) for i in run.honest)


def test_a_failed_check_is_the_end_of_the_session() -> None:
    sampler = discrete("laplace", 30.0)

    async def body(holder: Any) -> Any:
        with pytest.raises(DpmpcError):
            await holder.noise(sampler, BATCH, 5)
        if holder.over is not None:
            for again in (
                holder.open(holder.zero(1), 99),
                holder.noise(sampler, 98, 1),
                holder.inspect([], OwnerTest(1, 1, None), 97),
            ):
                with refuses("cheat"):
                    await again
        return holder.over is not None

    cheat = Cheat(2, 0, exchange_label(BATCH, 4), 0)
    results, _ = play(body, cheat, make=ShamirCheckedHolder, sizes=(5, 2))
    assert any(results[i] for i in (0, 1, 3, 4))


# -- owners -----------------------------------------------------------------------------------------------------------
def test_owners_shares_are_checked_and_what_that_says() -> None:
    """An owner whose shares are on no polynomial ends the run, by number, at the counted cost. With n = 2t + 1, t
    corrupt parties make the shares of any owner ones of some vector, by a change of their own."""
    values = np.arange(12, dtype=np.uint64).reshape(3, 4)
    shares = field.share(values, 5, 2, Prg(b"owners"))
    test = OwnerTest(3, 4, None)

    async def body(holder: Any) -> FailedOwners:
        found: FailedOwners = await holder.inspect([held[holder.party]], test, BATCH)
        return found

    held = shares.copy()
    results, wires = play(body, make=ShamirCheckedHolder, sizes=(5, 2))
    assert results == [FailedOwners()] * 5
    (counts,) = SHAMIR_CHECKED.count_owner_checks(test, 5, 2)
    for i in range(5):
        sent = [p for sender, _, label, p in wires.sent if sender == i and label >> 32 == BATCH]
        assert (len(sent), sum(map(len, sent))) == (counts.messages_sent[i], counts.bytes_sent[i])
    held[2, 1, 3] += np.uint64(1)
    results, _ = play(body, make=ShamirCheckedHolder, sizes=(5, 2))
    assert all(isinstance(r, DpmpcError) for r in results)
    assert any("the shares of owner 1 at party 1, 2, 3 or 4 are of no one vector; the owner" in str(r) for r in results)
    for i in (3, 4):  # follow the change at party 2 with their own: of one vector again, another one
        weights = field.lagrange((1, 2, 3), i + 1)
        held[i, 1, 3] = sum(w * int(held[j, 1, 3]) for w, j in zip(weights, (0, 1, 2), strict=True)) % field.P
    assert play(body, make=ShamirCheckedHolder, sizes=(5, 2))[0] == [FailedOwners()] * 5


def test_masks_are_dealt_before_the_coin_that_they_could_cancel() -> None:
    """Of the batch's claim and of owners' shares: a dealer that knew the coin could take a deviation away."""
    test = OwnerTest(2, 4, None)
    shares = field.share(np.arange(8, dtype=np.uint64).reshape(2, 4), 6, 2, Prg(b"owners"))

    async def body(holder: Any) -> FailedOwners:
        found: FailedOwners = await holder.inspect([shares[holder.party]], test, BATCH)
        return found

    _, wires = play(body, make=ShamirCheckedHolder, sizes=(6, 2))
    sizes = {label: len(payload) for _, _, label, payload in wires.sent if label >> 32 == BATCH}
    dealt, promised, shown = (sizes[exchange_label(BATCH, k)] for k in range(3))
    assert (dealt, promised, shown) == (8 * test.owners * test.sums, 32, 32)
    twin = count_checked_circuit(drawn, LANES, 6, 2)
    assert twin.kinds.index("coin") == 9  # after the last words of products, and nothing is dealt from then on
    assert [kind for kind in twin.kinds if kind == "coin"] == ["coin"] * (1 + len(twin.stages.variables))
    assert twin.exchanges == 9 + 1 + 3 * len(twin.stages.variables) + 3


@pytest.mark.parametrize("how", range(6))
def test_no_change_of_a_check_of_owners_makes_a_bad_owner_pass(how: int) -> None:
    shares = field.share(np.arange(8, dtype=np.uint64).reshape(2, 4), 5, 2, Prg(b"owners"))
    shares[2, 1, 3] += np.uint64(1)

    async def body(holder: Any) -> FailedOwners:
        found: FailedOwners = await holder.inspect([shares[holder.party]], OwnerTest(2, 4, None), BATCH)
        return found

    for number in range(6):
        cheat = Cheat(0, 3, exchange_label(BATCH, number), how)
        results, _ = play(body, cheat, make=ShamirCheckedHolder, sizes=(5, 2))
        assert all(isinstance(r, DpmpcError) for r in results[1:])


# -- what is said of it -----------------------------------------------------------------------------------------------
def test_the_error_of_a_run_is_added_up_and_2_to_the_44_for_ten_million_samples() -> None:
    sampler = discrete("gaussian", 2.0**18)
    cost = count_checked(field_sampler(sampler), MOST_SAMPLES, 3, 1)
    assert cost.stages.variables == (3, 6, 6, 6)
    assert float(batch_error(cost)) == pytest.approx(45 / field.P)
    sizes = [3 << 14] * 203 + [10**7 - 203 * (3 << 14)]
    found = SHAMIR_CHECKED.undetected(sampler, sizes, 7, 3)
    assert 2.0**-44.6 < found < 2.0**-44.4 and found > MOST_ATTEMPTS * AT_ONCE * float(batch_error(cost))
    assert isinstance(SHAMIR_CHECKED, Checks) and BACKENDS["shamir-checked"] is SHAMIR_CHECKED
    assert SHAMIR_CHECKED.spare(7, 2) == 0 and not SHAMIR_CHECKED.resumes


def test_what_cannot_be_checked_is_said_in_a_line() -> None:
    for n, t in ((2, 0), (2, 1), (4, 2), (7, 0), (33, 16)):
        with refuses("range", "security=active", 3, 32, setting="security"):
            SHAMIR_CHECKED.check(n, t)


# -- the judge --------------------------------------------------------------------------------------------------------
def test_values_of_the_clear_engine_fit_the_judge() -> None:
    """It evaluates the circuit as the clear engine does."""
    bits = np.random.default_rng(0).integers(0, 2, (8, 5)).astype(np.uint64)
    values = evaluate(cheating_many.circuit(ClearArithmetic(5, Prg(b"")), bits))
    assert values.shape == (16, 5) and (values[:4] == bits[:4] * bits[4:]).all()


# -- what an abort tells ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", aborts_many.CHEATS)
def test_whether_a_check_holds_tells_nothing_of_a_secret_bit(name: str) -> None:
    """p = 127: some wrong batches pass, whatever the bit is; all is given by the number of the run. (`python
    tests/aborts_many.py 5000` tries more, among five too.)"""
    passed, differ = aborts_many.compared(aborts_many.CHEATS[name], 3, 1, 160)
    assert passed and not differ


@pytest.mark.parametrize("n", [3, 5])
def test_where_roots_are_not_compared_it_tells(n: int) -> None:
    """The same judge sees a cheat that guesses a secret sign."""
    t = n // 2
    passed, differ = aborts_many.compared(aborts_many.guessing(n, t), n, t, 20)
    assert 1 < passed < 19 and differ > 15


def test_a_plan_of_many_checked_parties_says_who_may_cheat_and_keeps_its_security_bits() -> None:
    asked: dict[str, Any] = {"owners": 7, "dimension": 4, "clip": 1.0, "epsilon": 1.0, "delta": 1e-5}
    made = Plan.create(**asked, security="active", parties=7)
    assert (made.backend, made.threshold) == ("shamir-checked", 3)
    assert security_line(made).startswith("any 3 of 7 may cheat; a cheat passes with probability 2^-4")
    assert Plan.create(**asked, security="active", parties=3).backend == "checked"
    assert Plan.create(**asked, security="active", backend="shamir", parties=3).backend == "shamir-checked"
    with refuses("range", 60, setting="security_bits"):
        _ = Plan.create(**asked, security="active", parties=7, security_bits=60.0).derived
    with refuses("together", "security=active", setting="security"):
        _ = Plan.create(**asked, security="active", parties=7, min_owners=5).derived
