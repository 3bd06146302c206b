"""Sums of votes are decided inside the MPC: what is opened is what the rule says, messages are as counted, and no
change of any message changes it."""

import itertools
from typing import Any

import numpy as np
import pytest
from cheating import Cheat, play
from owners import shares_of

from dpmpc.errors import DpmpcError
from dpmpc.mpc.checked.backend import CHECKED, CheckedHolder
from dpmpc.mpc.contract import decisions
from dpmpc.mpc.contract.backend import BACKENDS
from dpmpc.mpc.contract.decisions import CHANNELS, CountsDecisions, Decides, Decision, decided
from dpmpc.mpc.numbers.field import P
from dpmpc.mpc.replicated.backend import SHARING, SharingHolder
from tests.refusals import refuses

IDENT, OPEN = 7 << 27, 1000
LEAST, REACH = 40, 1 << 40


def by_the_rule(sums: list[list[int]], noise: list[int], least: int) -> list[int]:
    """What a cell opens to, in whole numbers of any size and one vote after the other."""
    found = []
    for cell, eta in zip(sums, noise, strict=True):
        around = [(v + P // 2) % P - P // 2 for v in cell]  # what a sum is to those who share it
        margins = [min(abs(v), 2**60 - abs(v)) for v in around]
        beyond = eta - least
        passes = (
            all(m + eta >= least for m in margins)
            if beyond < 0
            else all(beyond < abs(v) <= 2**60 - 2 - beyond for v in around)
        )
        found += [(1 if v > 0 else -1) if passes else 0 for v in around]
    return found


def edges(votes: int = 3) -> tuple[list[list[int]], list[int]]:
    """Cells at every edge: margins one below, at and one above what passes, near 0 and half-way round, with noise of
    both signs, none, and so much that least is reached; far sums of both signs; a vote of 0."""
    cells, noise = [], []
    for eta, off, sign in itertools.product((-5, 0, 5, LEAST - 1, LEAST, LEAST + 3), (-1, 0, 1), (-1, 1)):
        margin = max(0, abs(LEAST - eta) + off)
        for near in (margin, 2**60 - margin):
            cells.append([sign * near, -sign * (margin + 7), *[REACH - LEAST] * (votes - 2)])
            noise.append(eta)
    return [*cells, [0] * votes, [0] * votes], [*noise, LEAST - 1, LEAST]


def opened(
    sums: Any, noise: Any, decision: Decision, n: int = 3, t: int = 1, make: Any = CheckedHolder, tamper: Any = None
) -> tuple[list[Any], Any]:
    """What each party opens, or its error; and the messages."""
    total, eta = (shares_of(np.array(each, dtype=np.int64).reshape(1, -1), n, t) for each in (sums, noise))

    async def body(holder: Any) -> Any:
        share = await holder.decide(total[holder.party, 0], eta[holder.party, 0], decision, IDENT)
        return (await holder.open(share, OPEN)).tolist()

    more = {} if tamper is None else {"tamper": tamper}
    return play(body, seed=3, make=make, sizes=(n, t), **more)


@pytest.mark.parametrize(("make", "backend"), [(SharingHolder, SHARING), (CheckedHolder, CHECKED)])
@pytest.mark.parametrize(("n", "t"), [(3, 1), (4, 1), (5, 2)])
def test_what_is_opened_is_the_rule_and_messages_are_as_counted(
    make: Any, backend: Any, n: int, t: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decisions, "AT_ONCE", 120)  # two batches
    sums, noise = edges()
    decision = Decision(len(sums), 3, LEAST, REACH)
    assert len(decision.batches) == 2
    results, wires = opened(sums, noise, decision, n, t, make)
    right = by_the_rule(sums, noise, LEAST)
    assert results == [right] * n and set(right) == {-1, 0, 1}
    assert decided(np.array(sums), np.array(noise), decision).tolist() == right
    counts = backend.count_decision(decision, n, t)
    assert len(counts) == 2 * CHANNELS
    for k, each in enumerate(counts):
        for i in range(n):
            sent = [p for sender, _, label, p in wires.sent if sender == i and label >> 32 == IDENT + k]
            assert (len(sent), sum(map(len, sent))) == (each.messages_sent[i], each.bytes_sent[i])
        assert len({label for _, _, label, _ in wires.sent if label >> 32 == IDENT + k}) == each.rounds


def test_a_wrong_rule_would_be_seen() -> None:
    """The edges tell a bound that is off by one, and noise of the other sign."""
    sums, noise = edges()
    right = by_the_rule(sums, noise, LEAST)
    assert by_the_rule(sums, noise, LEAST + 1) != right != by_the_rule(sums, noise, LEAST - 1)
    assert by_the_rule(sums, [-eta for eta in noise], LEAST) != right


@pytest.mark.parametrize(("n", "t"), [(3, 1), (5, 2)])
def test_no_change_of_any_message_changes_what_honest_parties_open(n: int, t: int) -> None:
    """One message of each exchange of each channel, of a role and in a way that change from one to the next."""
    sums, noise = [[50, -50], [50, 3], [-60, -41]], [0, 0, 0]
    decision = Decision(3, 2, LEAST, 1000)
    right = by_the_rule(sums, noise, LEAST)
    _, wires = opened(sums, noise, decision, n, t)
    by_label: dict[int, list[tuple[int, int]]] = {}
    for sender, receiver, label, _ in wires.sent:
        if label >> 32 >= IDENT:
            by_label.setdefault(label, []).append((sender, receiver))
    stopped = 0
    for k, (label, ends) in enumerate(sorted(by_label.items())):
        sender, receiver = ends[k % len(ends)]
        results, _ = opened(sums, noise, decision, n, t, tamper=Cheat(sender, receiver, label, k))
        found = [r for i, r in enumerate(results) if i != sender and not isinstance(r, DpmpcError)]
        assert all(r == right for r in found), label
        stopped += not found
    assert len(by_label) > 40 and stopped > 0.8 * len(by_label)


def test_semi_honest_parties_would_believe_a_changed_message() -> None:
    """So the test above can fail."""
    sums, noise = [[50, -50]] * 64, [0] * 64
    decision = Decision(64, 2, LEAST, 1000)
    _, wires = opened(sums, noise, decision, make=SharingHolder)
    ends = {label: (sender, receiver) for sender, receiver, label, _ in wires.sent if label >> 32 >= IDENT}
    right = by_the_rule(sums, noise, LEAST)
    wrong = 0
    for k, (label, (sender, receiver)) in enumerate(sorted(ends.items())):
        results, _ = opened(sums, noise, decision, make=SharingHolder, tamper=Cheat(sender, receiver, label, k))
        wrong += any(r != right for r in results if not isinstance(r, DpmpcError))
    assert wrong > len(ends) // 4


def test_who_decides_and_what_is_refused() -> None:
    assert isinstance(SHARING, CountsDecisions) and isinstance(CHECKED, CountsDecisions)
    assert {name for name in BACKENDS.names() if isinstance(BACKENDS[name], CountsDecisions)} == {"sharing", "checked"}
    assert issubclass(SharingHolder, Decides) and issubclass(CheckedHolder, Decides)
    with refuses("range", 0, setting="parties"):
        SHARING.check_decisions(3, 0)
    with refuses("range", setting="grid_bits"):
        Decision(1, 1, 5, 1 << 60)
    assert SHARING.undetected_decision(Decision(3, 2, LEAST, 1000), 3, 1) == 0
    assert 0 < CHECKED.undetected_decision(Decision(100, 544, LEAST, 1000), 3, 1) < 2.0**-40
