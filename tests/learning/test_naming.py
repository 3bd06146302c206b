"""Words that many records have: the lemma and the promise by routes of their own, what is opened and what never is."""

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmpc.aggregation.plan.decided import SHARE, turned
from dpmpc.aggregation.plan.grid import Grid
from dpmpc.aggregation.plan.guarantee import promise_of
from dpmpc.aggregation.plan.of_source import plan_of
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.errors import UsageError
from dpmpc.intake.hashing import bucket
from dpmpc.intake.spelling import PLAIN, Spelling
from dpmpc.learning.naming import LONGEST, MOST, VOTES, NamingSource, votes_of, word_of
from dpmpc.mpc.contract.decisions import Decision, decided
from dpmpc.mpc.numbers.field import P
from dpmpc.mpc.numbers.prg import Prg
from dpmpc.noise.sampling import clear_noise
from dpmpc.privacy.guarantee import failure_factor
from dpmpc.records.loading import opened
from dpmpc.records.mapping import owners_in
from tests.neighbours.tables import KINDS, UGLY
from tests.neighbours.tables import SOURCES as TABLES
from tests.neighbours.tables import neighbours as tables_with
from tests.refusals import Rule, breaks, refuses


def planned(columns: tuple[str, ...] = ("ward",), cells: int = 4, **settings: Any) -> Plan:
    asked = {"epsilon": 1.0, "delta": 1e-5, **settings}
    return plan_of(NamingSource(columns, cells), (60, 40), data_id="made up", **asked)


# -- the lemma, by every neighbour of small data sets ----------------------------------------------------------------
def margin(sums: Any) -> int:
    """The least distance of a cell's sums from where a sign turns, mod p."""
    around = [(int(v) + P // 2) % P - P // 2 for v in sums]
    return min(min(abs(v), 2**60 - abs(v)) for v in around)


def signs(sums: Any) -> tuple[bool, ...]:
    return tuple((int(v) + P // 2) % P > P // 2 for v in sums)


@pytest.mark.parametrize("others", [0, 1, 2**60 - 2, 2**60 - 1, 2**60, -(2**60) + 1, P - 1])
def test_every_neighbour_moves_margins_and_turns_signs_as_the_lemma_says(others: int) -> None:
    """Two cells, three votes, up to three records, every record replaced by every other, with whatever else is added to
    a vote: margins move by (2), (1, 1) or less, and a sign turns only in such a cell with both margins at most 2. Both
    bounds are attained."""
    codes = [np.array(c) for c in itertools.product((-1, 1), repeat=3)]
    kinds = [(cell, code) for cell in range(2) for code in codes[::2]] + [None]  # None: a record without a vote

    def sums(records: Any) -> Any:
        found = [[others, 0, 5], [0, others, 0]]
        for record in records:
            if record is not None:
                for j, vote in enumerate(record[1]):
                    found[record[0]][j] += int(vote)
        return found

    farthest = turning = 0
    for size in range(3):
        for rest in itertools.combinations_with_replacement(kinds, size):
            for one, other in itertools.combinations(kinds, 2):
                a, b = sums([*rest, one]), sums([*rest, other])
                moved = [abs(margin(x) - margin(y)) for x, y in zip(a, b, strict=True)]
                farthest = max(farthest, sum(m * m for m in moved))
                differ = [x != y for x, y in zip(a, b, strict=True)]
                assert sum(m * m for m in moved) <= 4 and sum(moved) <= 2 and sum(differ) <= 2
                for x, y in zip(a, b, strict=True):
                    if signs(x) != signs(y):
                        turning = max(turning, margin(x), margin(y))
    assert turning <= 2
    if others == 1:
        assert farthest == 4 and turning == 2


def test_a_bound_that_does_not_go_round_would_be_seen() -> None:
    """With |v| for a margin a sum half-way round has a large one, and its sign turns: why m goes round."""
    x, y = 2**60 - 1, 2**60
    assert signs([x]) != signs([y]) and abs(x) > 2 and margin([x]) == margin([y]) == 1


# -- the promise, by the law of what is opened -----------------------------------------------------------------------
def law_of(sums: Any, decision: Decision, scale: float) -> dict[tuple[int, ...], float]:
    """What a cell opens to, with probabilities: the noise's law summed up over every eta where that changes."""
    reach, least = int(14 * scale), decision.least
    margins = margin(sums), max(abs(int(v)) for v in sums)
    changes = {e + k for m in margins for k in (-1, 0, 1) for e in (least - m, least + m, least)}
    edges = sorted({-reach, reach, *(e for e in changes if -reach < e < reach)})
    found: dict[tuple[int, ...], float] = {}
    for low, high in itertools.pairwise(edges):
        one = Decision(1, len(sums), decision.least, decision.reach)
        what = tuple(decided(np.array(sums), np.array([low]), one).tolist())
        found[what] = found.get(what, 0.0) + _mass(low, high, scale)
    return found


def _mass(low: int, high: int, scale: float) -> float:
    """P(low <= eta < high) of a Gaussian rounded to whole numbers, to 1e-9 of it at these scales."""

    def upper(x: float) -> float:
        return 0.5 * math.erfc((x - 0.5) / scale / math.sqrt(2))

    return upper(low) - upper(high) if low > 0 else upper(1 - high) - upper(1 - low)


def hockey(a: list[Any], b: list[Any], decision: Decision, scale: float, epsilon: float) -> float:
    """The least delta at this epsilon for two data sets whose cells have these sums."""
    laws = [[law_of(cell, decision, scale) for cell in cells] for cells in (a, b)]
    total = 0.0
    for outs in itertools.product(*({*x, *y} for x, y in zip(*laws, strict=True))):
        p, q = (math.prod(law.get(out, 0.0) for law, out in zip(of, outs, strict=True)) for of in laws)
        total += max(0.0, p - math.exp(epsilon) * q)
    return total


def neighbours(step: int, least: int, scale: float) -> list[tuple[list[Any], list[Any]]]:
    """Cells of two neighbours, in grid steps: margins from where none to where all pass, small ones whose signs turn,
    and sums that another owner has brought half-way round."""
    found = []
    tails = [round((least - k * scale / 2) / step) for k in range(-12, 13)]
    for base in (0, 1, 2, least // step - 1, least // step + 1, 3 * least // step, *(b for b in tails if b > 2)):
        found.append(([[base * step] * 2], [[(base + 2) * step] * 2]))
        found.append(([[-step * 1, step * base], [0, 0]], [[0, step * (base + 1)], [step, step]]))
        found.append(([[base * step, 9 * least]], [[(base - 2) * step, 9 * least]]))
    half = 2**60
    found.append(([[half - step, 9 * least]], [[half + step, 9 * least]]))
    found.append(([[half - least, 9 * least]], [[half - least + 2 * step, 9 * least]]))
    return found + [(b, a) for a, b in found]


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 2.0])
def test_the_promise_holds_for_neighbours_by_the_law_of_what_is_opened(epsilon: float) -> None:
    plan = planned(epsilon=epsilon)
    decision, scale, step = plan.derived.decision, plan.derived.mechanism.scale, round(1 / plan.grid.step)
    assert decision is not None
    worst = [hockey(a, b, decision, scale, epsilon) for a, b in neighbours(step, decision.least, scale)]
    assert plan.delta / 4 < max(worst) <= plan.delta
    low = Decision(1, 2, decision.least - 3 * round(scale), decision.reach)  # two deviations left, and not five
    assert max(hockey(a, b, low, scale, epsilon) for a, b in neighbours(step, low.least, scale)) > plan.delta
    narrow = scale * 0.9
    assert (
        max(hockey(a, b, decision, narrow, epsilon) for a, b in neighbours(step, decision.least, narrow)) > plan.delta
    )


def test_turned_signs_are_a_tenth_of_delta_and_counted() -> None:
    for columns in (("ward",), ("ward", "sex", "drug")):
        plan = planned(columns, epsilon=0.5)
        failure = plan.derived.mechanism.mpc_failure
        assert failure >= turned(plan) == pytest.approx(plan.delta / SHARE / failure_factor(0.5), rel=1e-12)
        promise = promise_of(plan)
        assert promise.epsilon == 0.5 and promise.delta == plan.delta
        assert 0.99 * plan.delta / SHARE <= promise.parts["sampler_and_mpc"] <= 1.01 * plan.delta / SHARE
        decision, scale = plan.derived.decision, plan.derived.mechanism.scale
        assert decision is not None
        z = (decision.least - 2 / plan.grid.step - 2) / scale
        assert 2 * len(columns) * 0.5 * math.erfc(z / math.sqrt(2)) <= turned(plan)
        assert plan.derived.sensitivity.l2 >= 2 * math.sqrt(len(columns)) / 100
        assert plan.drawn == plan.derived.mechanism.dimension == 4 * len(columns)
    assert plan.derived.to_json()["decision"]["least"] == plan.derived.decision.least
    assert Plan.from_text(plan.to_text()).digest(plan.attempt) == plan.digest(plan.attempt)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"law": "laplace", "delta": 0}, breaks("together", "law", setting="delta")),
        ({"scale": 1.0}, breaks("together", "scale", setting="delta")),
        ({"min_owners": 1}, breaks("together", setting="min_owners")),
        ({"check_owners": "zero"}, breaks("together", "check_owners", setting="min_owners")),
        ({"parties": 2}, breaks("together", setting="backend")),
        ({"backend": "shamir"}, breaks("together", setting="backend")),
        ({"parties": 3, "threshold": 0}, breaks("range", 0, setting="parties")),
        ({"neighbours": "owner"}, breaks("choice", "owner", setting="neighbours")),
        ({"sampler": "box-muller"}, breaks("together", setting="sampler")),
    ],
)
def test_what_cannot_be_decided_is_refused_before_anything_is_sent(settings: dict[str, Any], words: Rule) -> None:
    with refuses(words):
        planned(**settings).derived  # noqa: B018


# -- what is opened --------------------------------------------------------------------------------------------------
WORDS = ["Bachelors", "HS-grad", "Žižkov", "日本語の病棟", "x" * LONGEST, "\U0001f600 ok", "true"]
HOSTILE = ["=cmd()", "a\u202eb", "a\nb", "\x1b[2J", "z\u200bw", "\ue000", "(other)", "bucket 3", "@x", "-1+1"]


def test_a_word_is_spelled_by_its_votes_and_nothing_else_is() -> None:
    for word in WORDS:
        votes = votes_of("ward", word)
        assert votes is not None and votes.shape == (VOTES,) and set(votes) == {-1.0, 1.0}
        at = bucket("ward", word, 16)
        assert word_of("ward", at, 16, votes) == word
        assert word_of("ward", (at + 1) % 16, 16, votes) is None and word_of("sex", at, 16, votes) is None
        for j in range(0, VOTES, 5):
            votes[j] *= -1
            assert word_of("ward", at, 16, votes) is None
            votes[j] *= -1
    for word in HOSTILE:
        assert word_of("ward", bucket("ward", word, 16), 16, votes_of("ward", word)) is None, word
    assert [votes_of("ward", text) for text in ("", "7", "1e3", "x" * (LONGEST + 1), "日" * 22)] == [None] * 5
    assert (votes_of("ward", "TRUE") == votes_of("ward", "true")).all()


def test_words_that_share_a_cell_garble_and_are_caught() -> None:
    """Three, five and nine words in one cell, as many records each: their majority is a further text."""
    for many in (3, 5, 9):
        votes = sum(votes_of("ward", f"word {k}") for k in range(many))
        assert word_of("ward", bucket("ward", "word 0", 1), 1, votes) is None


def test_owners_sum_up_votes_of_their_own_records_alone() -> None:
    table = {
        "site": ["a", "b", "a", "a", "b"],
        "ward": ["x y", "x y", "", "é", "E\u0301".lower()],
        "age": [1, 2, 3, 4, 5],
    }
    source = NamingSource(("ward", "age"), 8)
    with opened(table) as (found, _):
        number, _ = owners_in(found, "site")
        ((a, b),) = source.sums(found, number, 2)
        (means,) = source.means(found, number, (3, 2))
    assert np.allclose(means * np.array([[3], [2]]), [a, b])
    mine = np.zeros((2, 8, VOTES))
    for text in ("x y", "é"):
        mine[0, bucket("ward", text, 8)] += votes_of("ward", text)
    assert (a.reshape(mine.shape) == mine).all() and (b == a).all(), "blank fields and numbers have no votes"
    assert Grid(14).encode(means[0] * 3).tolist() == (a * 2**14).astype(int).tolist(), "sums are exact on the grid"


@pytest.mark.parametrize("part", range(2))
def test_one_field_changes_the_votes_of_its_own_record_alone(part: int, tmp_path: Path) -> None:
    """Every kind of column with every odd field in place of one: sums of votes move in one cell by at most 2 each, or
    in two by at most 1. A text among dates makes the column one of texts, and no date has a vote."""
    wrong = []
    every = [case for case in itertools.product(KINDS, UGLY) if case[1] not in ("very long", "nul")]
    moves = 0
    for kind, name in [*every[part::37], *(case for case in every if "date" in case[0] and "text" in case[1])]:
        spelling = Spelling(yyyymmdd=("x",)) if kind == "dates as numbers" else PLAIN
        sums = []
        for rows in tables_with(kind, 24, 11, UGLY[name]):
            try:
                with opened(TABLES["CSV"](rows, tmp_path), spelling=spelling) as (table, _):
                    (total,) = NamingSource(("x",), 8).sums(table, np.zeros(table.n, dtype=np.int64), 1)
            except UsageError:
                break
            sums.append(total.reshape(8, VOTES))
        if len(sums) == 2:
            moved = np.abs(sums[0] - sums[1]).max(axis=1)
            moves += bool(moved.any())
            if moved.sum() > 2:
                wrong.append(f"{name} among {kind}: {moved.tolist()}")
    assert not wrong and moves > 3


def test_as_many_are_opened_as_is_said_and_small_ones_never() -> None:
    """400 cells with as many records as `--dry` says for 95 %: fewer than 356 opened happen with probability 1e-6 * at
    .95 (binomial: 5.5 deviations); of 400 cells with a margin of 2, which two neighbours may turn, none but with
    probability 4e-5 by z = 4.9 or more."""
    plan = planned(cells=400, epsilon=0.5, **{"engine": "clear"})
    decision, scale = plan.derived.decision, plan.derived.mechanism.scale
    assert decision is not None
    least = math.ceil(decision.least * plan.grid.step + 1.645 * scale * plan.grid.step)
    word = votes_of("ward", "oncology")
    assert word is not None
    for many, low, high in ((least, 356, 400), (2, 0, 0), (least - round(4 * scale * plan.grid.step), 0, 15)):
        total = np.tile(many * word / plan.grid.step, 400).astype(np.int64)
        noise = clear_noise(plan.derived.sampler, 400, Prg.from_os())
        found = decided(total, noise, decision).reshape(400, VOTES)
        passed = found.any(axis=1)
        assert low <= int(passed.sum()) <= high, many
        assert (found[passed] == word).all() and not found[~passed].any()


def test_how_many_votes_a_release_has() -> None:
    with refuses("range", 1):
        NamingSource(("a",), MOST // VOTES + 1)
    with refuses("unique"):
        NamingSource(("a", "a"))
