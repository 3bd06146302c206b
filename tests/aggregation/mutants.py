"""Plans as anybody could write them: plans of every source, and texts in which any field is put to anything else."""

import copy
import json
import math
import random
from collections.abc import Iterator
from typing import Any

import dpmpc
from dpmpc.aggregation.plan.of_source import plan_of as of_source
from dpmpc.aggregation.plan.of_vectors import OfVectors, chosen
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.learning.naming import NamingSource
from dpmpc.learning.survey import Survey
from dpmpc.learning.survey_columns import ANY
from dpmpc.planning.request import Request
from dpmpc.planning.training import facts_of_schema, plan_of, plan_with_survey
from dpmpc.privacy.data_names import data_digest
from dpmpc.records.origins import PUBLIC
from dpmpc.records.schema import Categorical, Labels, Numeric, Range, Schema
from dpmpc.settings import said
from dpmpc.statistics.columns import Columns, Quantity, category
from dpmpc.statistics.tables import Tables
from dpmpc.synthesis.cuts import stated
from dpmpc.synthesis.to_find import ToFind
from dpmpc.tables import found_first
from dpmpc.tables.stats import plan_of_tables
from dpmpc.tables.synth_plan import plan_of_synthesis

RECORDS = 100  # of owner 0, who is asked to take part
SIZES = (RECORDS, RECORDS + 1, RECORDS)
EPSILON, DELTA = 1.0, 1e-5
NUMBERS = (Numeric("x", -1.0, 1.0), Numeric("y", 0.0, 50.0))
FEATURES = (*NUMBERS, Categorical("c", ("a", "b", "d")))
LABEL = Schema(FEATURES, Labels("ill", ("1",), ("0",)))
AMOUNT = Schema(FEATURES, Range("cost", 0.0, 10.0))
COLUMNS = Columns((Quantity("x", -1.0, 1.0), category("c", ("a", "b", "d"))))
ALL = Columns((*COLUMNS.columns, Quantity("y", 0.0, 50.0, (0.0, 10.0, 30.0, 50.0)), category("s", ("f", "m"))))


def vectors(**settings: Any) -> Plan:
    given = {"owners": 3, "dimension": 4, "clip": 1.0, "epsilon": EPSILON, "delta": DELTA, **settings}
    return dpmpc.Plan.create(**said(given), run_id="r", data_id="ward")


def learning(schema: Schema = LABEL, **settings: Any) -> Plan:
    given = {"epsilon": EPSILON, "delta": DELTA, "iterations": 5, "data_id": "ward", **settings}
    return plan_of(Request(run_id="r", data="synthetic", owners=3, **given), facts_of_schema("ward", schema, SIZES))


def survey(**settings: Any) -> Plan:
    questions = Survey(("x", "y"), ("c",), 8)
    asked = OfVectors(**{"epsilon": EPSILON, "delta": DELTA, "law": "gaussian", **settings})
    return Plan(
        run_id="r",
        data="ward",
        data_id=data_digest("ward"),
        sizes=SIZES,
        dimension=questions.coordinates,
        releases=1,
        source=questions,
        weights="size",
        **(chosen(asked) | {"pool": False}),
    )


def tables(**settings: Any) -> Plan:
    asked = ["count", "mean(x)", "table(c)", "hist(x, bins=5)", "median(x)"]
    given = {"epsilon": EPSILON, "delta": DELTA, **settings}
    return plan_of_tables(Tables.of(COLUMNS, asked), SIZES, "ward", None, given, by_person=True)


def synthesis(cut: bool = True, target: str | None = "c", never: str = "", **settings: Any) -> Plan:
    """Two releases; three where the cells of x are not public."""
    given = {"epsilon": EPSILON, "delta": DELTA, "parties": 3, **settings}
    columns = stated(ALL, {"x": [-1.0, 0.0, 1.0]} if cut else {}, None)
    capacity = bool(given.pop("capacity", False))
    lines = [never] if never else []
    return plan_of_synthesis(
        columns, target, lines, SIZES, "ward", None, given, PUBLIC, hopeless=True, capacity=capacity, by_person=True
    )


TO_FIND = ToFind(("x", "c", "y"), ("c",), digits=(("x", 2),))  # of which nothing is public


def found_and_drawn(spell: tuple[str, ...] = (), **settings: Any) -> Plan:
    """A synthetic table of columns that a survey is to find."""
    given = {"epsilon": EPSILON, "delta": DELTA, "parties": 3, **settings}
    return plan_of_synthesis(
        None, "c", [], SIZES, "ward", None, given, PUBLIC, hopeless=True, by_person=True, to_find=TO_FIND,
        spell=spell,
    )  # fmt: skip


def found_and_asked(spell: tuple[str, ...] = (), **settings: Any) -> Plan:
    """Questions after a survey."""
    given = {"epsilon": EPSILON, "delta": DELTA, "parties": 3, **settings}
    asked = ("count", "mean(x)", "table(c)", "median(y) by c")
    return found_first.planned(asked, TO_FIND, (), SIZES, "ward", None, given, False, spell=spell)


def spelled_and_drawn() -> Plan:
    """A synthetic table whose columns' words are opened before they are found."""
    return found_and_drawn(("c",))


def spelled_and_asked() -> Plan:
    """Questions about columns whose words are opened before they are found."""
    return found_and_asked(("c",))


def words(**settings: Any) -> Plan:
    """Words alone, of two columns in few cells."""
    given = {"epsilon": EPSILON, "delta": DELTA, **settings}
    return of_source(NamingSource(("c", "x"), 16), SIZES, data_id="ward", **given)


def trained_by_words() -> Plan:
    """A model of columns whose words are opened before they are found."""
    draft = Schema((Numeric("x", *ANY),), Labels("ill", ("1",), ("0",)), unknown=("c",))
    request = Request(data="synthetic", owners=3, epsilon=EPSILON, delta=DELTA, run_id="r", spell=("c",))
    return plan_with_survey(request, draft, SIZES, "ward")


def honest() -> dict[str, list[Plan]]:
    """Plans that an organisation would take part in, by source: with each method, unit and law that they have."""
    one_release = {"iterations": None}
    units: list[dict[str, Any]] = [
        {"neighbours": "presence"}, {"neighbours": "owner"}, {"person": "who", "person_rows": 5},
    ]  # fmt: skip
    laplace = {"law": "laplace", "delta": None}
    return {
        "vectors": [
            vectors(releases=3),
            vectors(delta=None),
            vectors(records=SIZES),
            vectors(records=SIZES, weights="size", releases=2),
            vectors(records=SIZES, neighbours="presence"),
            vectors(records=SIZES, neighbours="person", person_rows=5),
            vectors(sensitivity=0.5),
            vectors(weights=(3, 1, 2), law="laplace"),
            vectors(quantile=0.5, releases=4),
        ],
        "learning": [
            learning(),
            learning(weights="size", spread="fixed", delta=1e-6),
            learning(neighbours="presence"),
            learning(neighbours="owner"),
            learning(person="who", person_rows=5),
            learning(person="who", person_rows=5, weights="size", capacity=SIZES),
            learning(AMOUNT),
            learning(law="laplace"),
            learning(method="output", lam=0.1, **one_release),
            learning(method="output", lam=0.1, **one_release, **laplace),
            learning(AMOUNT, method="functional", **one_release),
            learning(method="functional", neighbours="owner", **one_release),
        ],
        "survey": [survey(), *(survey(**unit) for unit in units)],
        "tables": [tables(), *(tables(**unit) for unit in units)],
        "synthesis": [
            synthesis(never="c = a and s = f"),
            synthesis(cut=False),
            synthesis(target=None, capacity=True),
            *(synthesis(**unit) for unit in units),
            found_and_drawn(),
        ],
        "words": [words(), words(delta=1e-8)],
        "surveyed_words": [spelled_and_drawn(), spelled_and_asked(), trained_by_words()],
        "surveyed_tables": [found_and_asked(), *(found_and_asked(**unit) for unit in units)],
    }


# -- any field put to anything -----------------------------------------------------------------------------------------
Place = tuple[Any, Any]  # what holds a value, and its key or index there
STRANGE = (0, -1, 1, 2, 5.0, 1e-300, 1e300, math.nan, math.inf, -math.inf, 1 << 60, True, False, None, "", "x", [], {})
SCALES = (1e-6, 0.5, 0.99, 1.01, 2, 1e6, -1)


def places(value: Any) -> Iterator[Place]:
    """Every place in a nested value of JSON, however deep."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inside:
        yield value, key
        yield from places(each)


def words_of(values: list[Any]) -> list[str]:
    """All texts in these values: what an enum could be swapped with."""
    found = {container[key] for value in values for container, key in places(value)
             if isinstance(container[key], str)}  # fmt: skip
    return sorted(
        found
        | {"stated", "owner", "record", "presence", "person", "paper", "zcdp", "box-muller", "log-laplace", "laplace"}
    )


def mutate(value: Any, rng: random.Random, words: list[str], most: int = 3) -> Any:
    """A copy with one to `most` places changed, the settings' groups more often than each of a schema's values: numbers
    scaled, or anything strange; texts swapped; lists and objects with parts dropped, doubled, turned round or added."""
    value = copy.deepcopy(value)
    for _ in range(rng.choice([1, 1, 1, 2, most])):
        near = [(part, key) for part in value.values() if isinstance(part, dict) for key in part]
        container, key = rng.choice(near if near and rng.random() < 0.4 else list(places(value)))
        container[key] = _other(container[key], rng, words)
        if rng.random() < 0.03:
            if isinstance(container, dict):
                del container[key]
            else:
                container.pop(key)
    return value


def _other(old: Any, rng: random.Random, words: list[str]) -> Any:
    if rng.random() < 0.1:
        return copy.deepcopy(rng.choice(STRANGE))
    if isinstance(old, bool):
        return not old
    if isinstance(old, int):
        return rng.choice([old + 1, old - 1, int(old * rng.choice(SCALES)), old * 10**4])
    if isinstance(old, float):
        return rng.choice([old * rng.choice(SCALES), old / 3, old + 1])
    if isinstance(old, str):
        return rng.choice(words) if rng.random() < 0.8 else old + "x"
    if isinstance(old, list):
        return rng.choice([old[:-1], old + old[-1:], old[::-1], old * 2])
    if isinstance(old, dict):
        keys = list(old)
        rng.shuffle(keys)
        return {key: old[key] for key in keys[1:]} if rng.random() < 0.5 else {**old, "more": 1}
    return rng.choice([1e-9, 0.001, 1.0, 20, "x", -3])


def text_of(value: Any) -> str:
    """As plans are spelt, NaN and infinity too."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
