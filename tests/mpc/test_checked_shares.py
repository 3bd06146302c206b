"""Replicated shares of more than three parties, of whom t may do anything: what they do together, and that no cheat of
t of them gets a wrong vector released, or anything opened that depends on what it told one party and not another."""

import asyncio
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from cheating import BATCH, OPENED, CheckedBatch, kinds, play, release, tiny
from cheating_many import Change, random_change, some_coalition
from cheating_shares import honest_run, judge, places_of

from dpmpc.aggregation.plan.plan import Plan
from dpmpc.circuits.sampler import discrete_gaussian
from dpmpc.mpc.checked.backend import CHECKED, CheckedHolder, counted
from dpmpc.mpc.checked.counts import CountingChecked
from dpmpc.mpc.checked.rounds import CheckedRounds
from dpmpc.mpc.contract.backend import BACKENDS
from dpmpc.mpc.contract.security import Checks, checked_backend
from dpmpc.mpc.parties.promised_coins import PromisedCoins
from dpmpc.mpc.replicated.backend import SHARING
from dpmpc.mpc.replicated.executor import SharingBatch
from tests.refusals import refuses

SIZES = [(4, 1), (5, 1), (5, 2), (6, 2)]
FIVE = 5, 2


# -- honest -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("sizes", SIZES)
def test_checked_parties_release_what_unchecked_ones_do(sizes: tuple[int, int]) -> None:
    async def unchecked(holder: Any) -> Any:
        values = await SharingBatch(holder, BATCH, 64).to_field(tiny(*sizes))
        return await holder.open(values, OPENED)

    found = play(unchecked, seed=0, sizes=sizes)[0] + play(release, seed=0, sizes=sizes)[0]
    assert all((result == found[0]).all() for result in found)
    assert len(set(found[0].tolist())) > 3  # not all zeros


@pytest.mark.parametrize("sizes", SIZES)
def test_the_counting_twin_knows_every_message(sizes: tuple[int, int]) -> None:
    twin = CountingChecked(64, *sizes)
    asyncio.run(twin.to_field(tiny(*sizes)))
    sent = play(release, seed=0, sizes=sizes)[1].sent
    assert {label for *_, label, _ in sent} == set(kinds(*sizes))
    assert Counter(twin.kinds) == {
        "promise": 1, "and": tiny(*sizes).depth, "coin": 4, "sums": 3, "log": 1, "agreed": 1, "product": 1,
        "verdict": 1, "conversion": 1, "converted": 1,
    }  # fmt: skip
    for i in range(sizes[0]):
        mine = [payload for sender, _, label, payload in sent if sender == i and label >> 32 == BATCH]
        assert (len(mine), sum(map(len, mine))) == (twin.messages_sent[i], twin.bytes_sent[i])


def test_the_check_among_five_costs_a_hundredth_of_the_bytes() -> None:
    sampler = discrete_gaussian(2.0**18)
    ours, theirs = (backend.count_noise(sampler, 3 << 14, *FIVE) for backend in (CHECKED, SHARING))
    assert sum(ours.bytes_sent) < 1.01 * sum(theirs.bytes_sent)
    ours, theirs = (backend.count_noise(sampler, 122, *FIVE) for backend in (CHECKED, SHARING))
    assert ours.rounds - theirs.rounds == 13


def test_nobody_shows_a_part_of_a_coin_before_all_messages_to_it_have_come() -> None:
    """In the order of what is sent, for every party and coin."""
    _, sent = honest_run(FIVE)
    coins = [label for label, kind in kinds(*FIVE).items() if kind == "coin"]
    assert len(coins) == 4
    for label in coins:
        for i in range(5):
            shown = min(k for k, (s, _, each) in enumerate(sent) if s == i and each == label)
            weighed = [k for k, (_, r, each) in enumerate(sent) if r == i and BATCH << 32 <= each < label]
            assert max(weighed) < shown


# -- cheats -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("sizes", "count"), [((5, 2), 40), ((4, 1), 15), ((6, 2), 8)])
def test_no_change_of_any_messages_gets_a_wrong_vector_released(sizes: tuple[int, int], count: int) -> None:
    """By one party and by t, alone, by exchanges, in pairs and triples; some of the 10,000 of
    `python tests/cheating_shares.py 10000`."""
    random, outcomes = np.random.default_rng(5), []
    for _ in range(count):
        corrupt = some_coalition(*sizes, random)
        outcomes.append(judge(sizes, corrupt, random_change(places_of(sizes, corrupt), random)))
    assert "released" not in outcomes and outcomes.count("stopped") > 0.7 * count


def test_without_the_check_a_flipped_and_is_released(monkeypatch: pytest.MonkeyPatch) -> None:
    async def unchecked(self: Any, fold: Any, used: int) -> None:
        """Nothing."""

    label = next(label for label, name in kinds(*FIVE).items() if name == "and")

    def flip(s: int, r: int, l: int, payload: bytearray) -> bytearray:
        if (s, l) == (2, label):
            payload[0] ^= 1
        return payload

    flip.for_itself = True  # type: ignore[attr-defined]  # in what it keeps, too
    assert judge(FIVE, (2,), flip) == "stopped"
    monkeypatch.setattr(CheckedBatch, "_check", unchecked)
    assert judge(FIVE, (2,), flip) == "released"


def _change(kind: str, sender: int, receivers: tuple[int, ...], way: str, which: int = 1) -> Change:
    """Of the which-th message of a kind; one of the ways of `cheating_many`."""
    label = [label for label, name in kinds(*FIVE).items() if name == kind][which]
    places = [place for place in honest_run(FIVE)[1] if place in [(sender, r, label) for r in receivers]]
    assert len(places) == len(receivers)
    return Change(frozenset(places), way, 3)


@pytest.mark.parametrize("kind", ["and", "sums"])
def test_what_is_told_to_one_receiver_alone_is_seen_before_anything_is_opened(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parties that hold one component differently would open X, Y and Z under which Z - X Y depends on secrets. Where
    they do not compare what each was told, they do open them."""
    label = next(label for label, name in kinds(*FIVE).items() if name == "product")
    seen: list[int] = []

    def tamper(s: int, r: int, l: int, payload: bytearray) -> bytearray:
        if l == label and s != 2:
            seen.append(s)
        return change(s, r, l, payload)

    for which in (0, 2):
        change = _change(kind, 2, (3,), "bit", which)
        results, _ = play(release, tamper, seed=0, sizes=FIVE)
        assert not seen and any("the coins and what each was told" in str(results[i]) for i in (0, 1, 3, 4))
    monkeypatch.setattr(CheckedRounds, "_note", lambda self, shares: None)
    change = _change(kind, 2, (3,), "bit", 0)
    play(release, tamper, seed=0, sizes=FIVE)
    assert seen


def test_a_party_that_promises_two_chains_is_seen_before_anything_is_opened() -> None:
    """It shows each party what it promised it: two coins."""
    named, chains = kinds(*FIVE), {}
    holders: dict[int, Any] = {}

    def make(*given: Any) -> Any:
        holder = CheckedHolder(*given)
        holders[holder.party] = holder
        return holder

    def tamper(s: int, r: int, label: int, payload: bytearray) -> bytearray:
        if s == 0 and r in (1, 2) and named[label] == "promise":
            chains[r] = PromisedCoins(holders[0], holders[0].channel(99 + r), 0, [])
            chains[r]._place = holders[0]._test_place
            chains[r]._parts = chains[r]._chain(bytes(32))
            return bytearray(chains[r]._parts.pop())
        if s == 0 and r in (1, 2) and named[label] == "coin":
            return bytearray(chains[r]._parts.pop())
        return payload

    async def body(holder: Any) -> Any:
        batch = CheckedBatch(holder, BATCH, 64)
        holder._test_place = holder.run_id, BATCH, 0
        values = await batch.to_field(tiny(*FIVE))
        return await holder.open(values, OPENED)

    results, wires = play(body, tamper, seed=0, make=make, sizes=FIVE)
    assert all(isinstance(result, Exception) for result in results[1:])
    assert any("the coins and what each was told" in str(result) for result in results[1:])
    assert {s for s, _, label, _ in wires.sent if named[label] == "product"} <= {0}


# -- what is said of it -----------------------------------------------------------------------------------------------
def test_few_parts_are_checked_as_they_are_and_many_as_shares_of_numbers() -> None:
    for n, t, name in ((3, None, "checked"), (4, None, "checked"), (5, None, "checked"), (6, 2, "checked"),
                       (11, 1, "checked"), (7, None, "shamir-checked"), (12, 1, "shamir-checked")):  # fmt: skip
        assert checked_backend("active", None, n, t) == name
        assert checked_backend("active", "shamir", n, t) == "shamir-checked"
    assert checked_backend(None, None, 5) is None
    with refuses("range", 10, "parties=12", "threshold=1", setting="parties"):
        CHECKED.check(12, 1)


def test_a_plan_of_five_says_what_a_cheat_gets_away_with() -> None:
    plan = Plan.create(owners=3, dimension=4, clip=1.0, epsilon=1.0, delta=1e-5, security="active", parties=5)
    assert (plan.backend, plan.threshold) == ("checked", 2)
    backend = BACKENDS[plan.backend]
    assert isinstance(backend, Checks)
    five, three = counted(plan.derived.sampler, 4, 5, 2), counted(plan.derived.sampler, 4, 3, 1)
    assert five.error == five.checks[0].error + Fraction(2, 1 << 64) and three.error == three.checks[0].error
    assert 2.0**-48 < backend.undetected(plan.derived.sampler, [4], 5, 2) < 2.0**-45
