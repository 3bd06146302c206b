"""Words that are on no list, opened before the survey of a synthetic table and of questions, under the one promise of
the run: what of it is not training's (`tests/local/test_spelled_columns.py`)."""

import json
import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpmpc
from dpmpc.aggregation.plan.decided import SHARE
from dpmpc.aggregation.plan.guarantee import promise_of
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.errors import UsageError, owner_text
from dpmpc.intake.hashing import bucket
from dpmpc.learning.naming import WordsFirst
from dpmpc.privacy.guarantee import failure_factor
from dpmpc.records.columns import Surveyed, is_name
from dpmpc.statistics.columns import Bucketed
from dpmpc.synthesis.to_find import ToFind
from dpmpc.tables.synth_plan import SURVEY
from tests.aggregation.mutants import (
    DELTA,
    EPSILON,
    mutate,
    spelled_and_asked,
    spelled_and_drawn,
    text_of,
    trained_by_words,
    words_of,
)
from tests.local.test_spelled_columns import WARDS, delta_of
from tests.refusals import breaks, refuses
from tests.runs import dpmpc as command

PROMISE: dict[str, Any] = {"owners": "site", "epsilon": 4.0, "delta": 1e-5, "engine": "clear"}
Ask = Callable[..., Any]


def people(wards: Any, n: int = 9000) -> pd.DataFrame:
    draws = np.random.default_rng(8)
    ward = [wards(k) for k in range(n)] if callable(wards) else draws.choice(list(wards), n).tolist()
    return pd.DataFrame({"site": [f"s{k % 3}" for k in range(n)], "age": draws.integers(20, 90, n), "ward": ward})


def drawn(frame: pd.DataFrame, **settings: Any) -> Any:
    return dpmpc.synth(frame, seed=1, spell=["ward"], **{**PROMISE, **settings})


def answered(frame: pd.DataFrame, **settings: Any) -> Any:
    return dpmpc.stats(frame, ["mean(age) by ward"], spell=["ward"], **{**PROMISE, **settings})


@pytest.mark.parametrize("made", [spelled_and_drawn, spelled_and_asked])
def test_all_releases_keep_one_promise(made: Callable[[], Plan]) -> None:
    """By the closed form of training's test; a plan that left words out of its account would break the promise. Words
    take as much of mu^2 as the survey."""
    plan = made()
    words, survey = plan.ahead[:2]
    assert [each.run_id.partition("+")[2] for each in (words, survey)] == ["words", "survey"]
    every = [*((each.derived.mechanism, 1) for each in plan.ahead), (plan.derived.mechanism, plan.releases)]
    assert 0.9 * DELTA < delta_of(every, EPSILON) <= DELTA * (1 + 1e-6)
    assert words.derived.mechanism.mpc_failure >= DELTA / (SHARE * failure_factor(EPSILON))
    promise = promise_of(plan)
    assert (promise.epsilon, promise.delta) == (EPSILON, DELTA)
    source: Any = plan.source
    without = replace(plan, source=replace(source, to_find=replace(source.to_find, spelling=None)))
    wrong = [*every[:-1], (without.derived.mechanism, plan.releases)]
    assert delta_of(wrong, EPSILON) > DELTA * (1 + 1e-3)
    mu2 = [times * (each.sensitivity.l2 / each.scale) ** 2 for each, times in every]
    assert mu2[0] / sum(mu2) == pytest.approx(SURVEY, rel=0.05) == pytest.approx(mu2[1] / sum(mu2[1:]), rel=0.05)


def test_levels_of_rows_and_of_answers_are_the_words(tmp_path: Path) -> None:
    frame = people(WARDS)
    rows = drawn(frame, out=tmp_path / "rows").frame()
    assert {level.partition(" [#")[0] for level in rows.ward.dropna()} - {"(other)"} == set(WARDS)
    found = answered(frame, out=tmp_path / "answers")
    text = found.text()
    assert all(f"ward = {word} [#" in text for word in WARDS)
    assert found.guarantee.startswith("epsilon = 4, delta = 1e-05")
    for name, stages in (("rows", {"words", "survey", "first"}), ("answers", {"words", "survey"})):
        assert {path.name for path in (tmp_path / name).iterdir() if path.is_dir()} == stages
    again = command("synth", "--of", tmp_path / "rows", "--rows", "50", "--out", tmp_path / "more.csv")
    assert again.returncode == 0 and WARDS[0] in (tmp_path / "more.csv").read_text(encoding="utf-8"), again.stderr


@pytest.mark.parametrize("ask", [drawn, answered])
def test_the_account_counts_the_run_once_and_reserves_all_of_it(ask: Ask, tmp_path: Path) -> None:
    frame, given = people(WARDS), {"account": tmp_path / "account", "data_id": "words first"}
    with refuses("budget", setting="budget"):
        ask(frame, budget="3,1e-5", out=tmp_path / "no", **given)
    assert not list(tmp_path.rglob("opened.npy"))
    ask(frame, budget="4,1e-5", out=tmp_path / "run", **given)
    with refuses("budget", setting="budget"):
        ask(frame, budget="4,1e-5", out=tmp_path / "second", **given)
    assert not list((tmp_path / "second").rglob("opened.npy"))


@pytest.mark.parametrize("ask", [drawn, answered])
@pytest.mark.parametrize("wards", [lambda k: f"x{k}", ("10\u00a0mg", "=cmd|1"), ("+x", "a\u3000b")])
def test_a_run_in_which_no_word_is_found_ends_as_one_without(ask: Ask, wards: Any) -> None:
    """No text stands out; or those that do may not be shown: buckets stay numbers, and nothing is lost."""
    found = ask(people(wards))
    text = found.text() if ask is answered else " ".join(map(str, found.frame().ward))
    assert "bucket " in text and "[#" not in text
    assert not any(word in text for word in ("mg", "cmd", "+x"))


HOSTILE = (
    "=1+2", "+x", "-x", "@x", "a\nb", "\x1b[31m", "\u202eabc", "a\u200bb", " x", "7", "x" * 65, "missing", "\ud800",
)  # fmt: skip


@pytest.mark.parametrize("made", [spelled_and_drawn, spelled_and_asked, trained_by_words])
def test_a_plan_says_no_word_that_no_release_could_have_opened(made: Callable[[], Plan]) -> None:
    """Whoever writes a plan could say that words were opened: what drives a page, a terminal or a spreadsheet, or a
    word in another's cell. It would end after the survey was paid for, or stand in what comes of it."""

    def said(cell: int, word: str) -> str:
        value = json.loads(made().to_text())
        (source,) = value["source"].values()
        found = source.get("to_find", source.get("survey"))
        found.pop("spelling")
        found["spelled"] = {"c": {str(cell): word}}
        return text_of(value)

    own = bucket("c", "Station 4b", 256)
    Plan.from_text(said(own, "Station 4b"))
    theirs = [(bucket("c", word, 256), word) for word in HOSTILE]
    for cell, word in [(own + 1, "Station 4b"), (own, "station 4B"), *theirs]:
        with refuses("plan"):
            Plan.from_text(said(cell, word))


@pytest.mark.parametrize("word", [word for word in HOSTILE if word != "7"])
def test_no_schema_and_no_plan_of_tables_takes_a_name_that_may_not_be_shown(word: str) -> None:
    """Whoever says it; else a run would end where what it has paid for becomes the names of columns."""
    assert not is_name(word)
    Bucketed("c", 256, (7, 8), names=((7, "Station 4b"),))
    Surveyed("c", buckets=256, kept=(7, 8), names=((7, "Station 4b"),))
    for kind in (partial(Bucketed, "c", 256, (7, 8)), partial(Surveyed, "c", buckets=256, kept=(7, 8))):
        with pytest.raises(UsageError):
            kind(names=((7, word),))


@pytest.mark.parametrize("ask", [drawn, answered])
def test_what_has_no_words_is_refused_before_anything_is_spent(ask: Ask, tmp_path: Path) -> None:
    frame = people(WARDS, 900)
    stated = {"bounds": {"age": [0, 100], "ward": list(WARDS)}}
    for more, broken in (
        (stated, breaks("column", "ward", setting="named")),
        ({"spell": ["age"]}, breaks("column", "age", setting="named")),
        ({"spell": ["height"]}, breaks("column", "height", setting="named")),
        ({"neighbours": "presence"}, breaks("choice", "presence", setting="neighbours")),
        ({"backend": "ot", "parties": 2, "engine": "mpc"}, breaks("together", "backend=ot", setting="backend")),
        ({"capacity": [400, 400, 400]}, breaks("together", "places", setting="min_owners")),
        ({"epsilon": 0.01}, breaks("enough", 900, setting="bounds")),
    ):
        given = {**PROMISE, "spell": ["ward"], "out": tmp_path / "run", **more}
        with refuses(broken):
            if ask is drawn:
                dpmpc.synth(frame, **given)
            else:
                dpmpc.stats(frame, ["mean(age) by ward"], **given)
        assert not list(tmp_path.rglob("ledger_*.jsonl"))
    path = tmp_path / "x.csv"
    frame.to_csv(path, index=False)
    given_to = ("--csv", path, "--owners-column", "site", "--bounds", tmp_path / "b.toml", "--epsilon", "4")
    (tmp_path / "b.toml").write_text('age = [0, 100]\nward = ["Station 4b", "Süd/Akut"]\n', encoding="utf-8")
    rest = ("--delta", "1e-5", "--spell", "ward", "--out", tmp_path / "run")
    told = [
        command(*which, *given_to, *rest).stderr.strip().splitlines()[-1]
        for which in (
            ("synth",),
            ("stats", "count by ward"),
            ("train", "--target", "ward", "--preprocessing", "records"),
        )
    ]
    assert len(set(told)) == 1 and "--spell" in told[0], told  # the same words on every way


def test_what_is_to_be_found_comes_back_with_its_words() -> None:
    first = ToFind(("age", "ward"), ("ward",), spelling=WordsFirst(("ward",), 0.2, 1.0))
    found = (("ward", ((117, "Station 4b"),)),)
    there = ToFind(("age", "ward"), ("ward",), named=("ward",), words=("x",), spelled=found)
    for each in (first, there):
        assert ToFind.from_json(json.loads(json.dumps(each.to_json()))) == each
    for changes in ({"spelling": WordsFirst(("age",), 0.2, 1.0)}, {"spelled": (("age", ()),)}, {"spelling": 7}):
        with pytest.raises(UsageError):
            ToFind(("age", "ward"), ("ward",), **changes)  # type: ignore[arg-type]


def test_no_mutant_of_a_plan_with_words_ends_otherwise_than_by_a_refusal() -> None:
    """Any field put to anything: a plan that is read still counts its words, or it is refused in a line."""
    draw, whole, read = random.Random(5), [made() for made in (spelled_and_drawn, spelled_and_asked)], 0
    words = words_of([json.loads(plan.to_text()) for plan in whole])
    for k in range(300):
        mutant = json.loads(whole[k % 2].to_text())
        (source,) = mutant["source"].values()
        source["to_find"] = mutate(source["to_find"], draw, words)
        mutant = mutate(mutant, draw, words) if k % 3 == 0 else mutant
        try:
            plan = Plan.from_text(text_of(mutant))
            assert len(plan.before) == len(plan.source.schedule.before) + len(plan.released)
            read += 1
        except UsageError as error:
            assert "\n" not in owner_text(error) or "^" in owner_text(error), error
    assert 20 < read < 250


def test_a_dry_run_says_what_words_take(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    people(WARDS, 900).to_csv(path, index=False)
    done = command("synth", "--csv", path, "--owners-column", "site", "--spell", "ward", "--epsilon", "4", "--delta",
                   "1e-5", "--dry")  # fmt: skip
    assert done.returncode == 0, done.stderr
    words, survey = (line for line in done.stdout.splitlines() if "with epsilon" in line)
    assert words.startswith("Words of ward are opened first") and survey.startswith("A private survey")
