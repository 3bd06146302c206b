"""What a promise rests on is joined along all that follows, derived by each process, and refused by limits."""

import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pandas as pd
import pytest

import dpmpc
from dpmpc.aggregation.plan.guarantee import promise_of
from dpmpc.aggregation.plan.limits import Limits
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.consortium.toml import read_consortium
from dpmpc.consortium.toml_text import Founding, text_of
from dpmpc.estimators import PrivateLogisticRegression
from dpmpc.flower import prepare_questions
from dpmpc.flower.prepared import read_prepared
from dpmpc.records.origins import ELEMENTS, SCHEMA, Origin, assumption, origin_of
from dpmpc.records.schema import Labels, Numeric, Schema
from dpmpc.show.files import FORMS
from dpmpc.statistics.scores import ScoreModel
from dpmpc.tables.stats import reopened
from tests.refusals import refuses

pytestmark = pytest.mark.usefixtures("small_tables")
N = 400
COLUMNS = (Numeric("a", 0.0, 10.0), Numeric("b", 0.0, 1.0))
# bounds, what else was read off records -> what a promise must say
ORIGINS: dict[str, tuple[Any, tuple[Any, ...], tuple[str, ...]]] = {
    "public": ("public", (), ()),
    "a survey": ("survey", (), ()),
    "a survey, classes read": ("survey", ("classes",), ("classes",)),
    "a survey of ranges that were read": ("survey", SCHEMA, SCHEMA),
    "read": ("data", (), SCHEMA),
    "public, digits read": ("public", ("digits",), ("digits",)),
}


def schema_of(name: str) -> Schema:
    bounds, rests_on, _ = ORIGINS[name]
    return Schema(COLUMNS, Labels("y", ("yes",), ("no",)), bounds=bounds, rests_on=rests_on)


def frame() -> pd.DataFrame:
    k = np.arange(N)
    y, site = np.where(k % 3, "yes", "no"), np.where(k % 2, "u", "v")
    return pd.DataFrame({"a": k % 11, "b": k % 7 / 7, "y": y, "site": site})


def test_origins_are_a_join() -> None:
    every = [Origin(b, r) for b, (r) in itertools.product(("public", "survey", "data"), ((), ("classes",), SCHEMA))]
    for one, other, third in itertools.product(every, repeat=3):
        assert one | other == other | one and (one | other) | third == one | (other | third) and one | one == one
        assert set((one | other).read) == {*one.read, *other.read}
    assert origin_of("data").read == SCHEMA
    with pytest.raises(ValueError, match="got 'taste'"):
        origin_of("public", ("taste",))


def test_every_element_has_words_of_its_own() -> None:
    said = [assumption((each,)) for each in ELEMENTS]
    assert all(said) and len(set(said)) == len(said) and assumption(()) == ""


def plans_of(way: str, schema: Schema, folder: Path) -> list[Plan]:
    """The plans that a command makes of a schema."""
    path = folder / "schema.json"
    schema.write(path)
    asked: dict[str, Any] = {"epsilon": 20.0, "delta": 1e-5, "engine": "clear", "data_id": f"{way} {folder.name}"}
    out = folder / "out"
    if way.startswith("train"):
        more = {"train": {"preprocessing": "records", "evaluate": False},
                "train, survey": {"preprocessing": "survey", "evaluate": False},
                "train, figures": {"preprocessing": "records", "figures": "inside", "test_fraction": 0.4},
                }[way]  # fmt: skip
        dpmpc.train(out, records=frame(), schema=str(path), owners_column="site", iterations=2, **asked, **more)
    elif way.startswith("consortium"):
        toml = text_of(Founding(addresses=HERE, iterations=3, schema="schema.json"))
        records = 'preprocessing = "records"' if way == "consortium" else 'preprocessing = "survey"'
        toml = toml.replace("[records]\n", f"[records]\n{records}\n", 1)
        assert records in toml
        (folder / "consortium.toml").write_text(toml)
        return [read_consortium(folder / "consortium.toml").plan]
    elif way == "stats, a model's figures":
        dpmpc.train(folder / "model", records=frame(), owners_column="site", iterations=2, target="y",
                    bounds=str(bounds_file(folder)), evaluate=False, **asked)  # fmt: skip
        return [dpmpc.stats(frame(), ["evaluate(m)"], owners="site", schema=path, models={"m": folder / "model"},
                            hopeless="allow", out=out, **asked).plan]  # fmt: skip
    elif way == "flower":  # clients answer; a prepared run is all that they go by
        prepare_questions(
            out, ["mean(a)"], sizes=(N // 2, N // 2), data_id="rows", schema=path, epsilon=20.0, delta=1e-5
        )
        return [read_prepared(out).plan]
    elif way == "flower, a model's figures":
        model = ScoreModel.of(schema, np.zeros(len(schema.feature_names)))
        prepare_questions(
            out, ["evaluate(m)"], sizes=(200, 200), data_id="rows", schema=path, models={"m": model}, epsilon=20.0,
            hopeless=True, delta=1e-5,
        )  # fmt: skip
        return [read_prepared(out).plan]
    elif way == "stats":
        return [dpmpc.stats(frame(), ["mean(a)"], owners="site", schema=path, out=out, **asked).plan]
    elif way.startswith("synth"):
        cells = {"cells": 4} if way == "synth, cells" else {}
        dpmpc.synth(frame(), owners="site", schema=path, out=out, hopeless="allow", **cells, **asked)
    else:
        X, y = frame()[["a", "b"]], frame()["y"]
        pre = {"estimator": "records", "estimator, survey": "survey"}[way]
        model = PrivateLogisticRegression(schema=str(path), iterations=2, preprocessing=pre, ledgers=str(out), **asked)
        model.fit(X, y, owners=frame()["site"])
        assert model.guarantee_.assumptions == (() if not (text := assumption(schema.origin.read)) else (text,))
    return [Plan.read(each) for each in sorted(out.rglob("plan.json"))]


def bounds_file(folder: Path) -> Path:
    path = folder / "bounds.json"
    path.write_text('{"a": [0, 10], "b": [0, 1], "y": ["no", "yes"]}')
    return path


HERE = ("127.0.0.2:1000", "127.0.0.3:1000", "127.0.0.4:1000")
WAYS = (
    "train", "train, survey", "train, figures", "stats", "stats, a model's figures", "synth", "synth, cells",
    "estimator", "estimator, survey", "consortium", "consortium, survey", "flower", "flower, a model's figures",
)  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("origin", ORIGINS)
@pytest.mark.parametrize("way", WAYS)
def test_all_that_follows_rests_on_what_its_schema_does(way: str, origin: str, tmp_path: Path) -> None:
    read = ORIGINS[origin][2]
    plans = plans_of(way, schema_of(origin), tmp_path)
    assert plans or way.startswith("estimator")  # which keep their plan to themselves
    for plan in plans:
        assert set(plan.origin.read) >= set(read), plan.source.KIND
        assert all(text in str(promise_of(plan)) for text in [assumption(read)] if set(plan.origin.read) == set(read))
        assert Plan.from_text(plan.to_text()).origin == plan.origin
        if read:
            assert str(promise_of(plan)).startswith("if ")
            with refuses("limits", setting="limits"):
                Limits(epsilon=1000.0, delta=1e-3)._check_promise(plan)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("origin", ["public", "read"])
def test_answers_say_it_in_every_form_and_when_they_are_asked_again(origin: str, tmp_path: Path) -> None:
    """Of questions and of a synthetic table that are there: a table of numbers alone has no words for it."""
    for way in ("stats", "synth, cells"):
        (tmp_path / way).mkdir()
        plans_of(way, schema_of(origin), tmp_path / way)
        out, rests = tmp_path / way / "out", assumption(ORIGINS[origin][2])
        found = reopened(out)
        assert (rests in found.guarantee) and found.guarantee.startswith("if ") == bool(rests)
        again = found.asked(["mean(a)"]) if way == "stats" else found
        said = {name: form(again.outcome) for name, form in FORMS.items() if name != "answers.csv"}
        assert all(
            found.guarantee in flat(text) for name, text in said.items() if name in ("answers.txt", "answers.md")
        )
        assert found.guarantee in json.loads(said["answers.json"])["about"]
        said |= {"shown": found.text(), "Markdown": found.markdown()}
        said |= {str(k): str(table) for k, table in enumerate(again.printed())}
        assert len(said) > 4 and all(("had been fixed without the records" in text) == bool(rests)
                                     for text in map(flat, said.values()))  # fmt: skip


def flat(text: str) -> str:
    return " ".join(text.split())


def test_a_plan_cannot_leave_out_what_its_schema_rests_on() -> None:
    """A process derives it from the schema in the plan: whoever writes the plan may add, not take away."""
    from dpmpc.planning.request import Request
    from dpmpc.planning.training import facts_of_schema, plan_of

    schema = schema_of("a survey, classes read")
    facts = facts_of_schema("d", schema, (200, 200))
    request = Request(records="d", target="y", task="logistic", owner_sizes=(200, 200), epsilon=1.0, delta=1e-5)
    plan = plan_of(request, facts)
    assert plan.origin.read == ("classes",) and replace(plan, rests_on=()).origin.read == ("classes",)
    assert replace(plan, rests_on=("digits",)).origin.read == ("classes", "digits")
    with refuses("plan", "taste"):
        replace(plan, rests_on=("taste",))
    assert msgspec.structs.replace(schema, rests_on=("lists", "ranges")).rests_on == ("ranges", "lists")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("mend", [True, False])
@pytest.mark.parametrize("way", ["train, survey", "consortium, survey", "estimator, survey"])
def test_with_the_join_taken_out_a_survey_takes_the_if_away(
    way: str, mend: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was: the schema of a survey said where its own constants come from, and no more."""
    if not mend:
        monkeypatch.setattr(Origin, "__or__", lambda self, other: Origin("survey"))
    if way.startswith("estimator") and not mend:
        with pytest.raises(AssertionError):  # what the fit says of itself
            plans_of(way, schema_of("read"), tmp_path)
        return
    plans = plans_of(way, schema_of("read"), tmp_path)
    assert all(set(plan.origin.read) >= set(SCHEMA) for plan in plans) == mend
