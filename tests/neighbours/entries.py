"""The public entries, each called with two tables that differ in odd records: what is public must not differ, the
vector that an owner sends by no more than the plan claims for so many records, and of what has a row a record no other
row.

An entry gives what anybody may know (plan, dimension, columns, names of files) and the integer vectors of the first
release that depends on records, as they go to the parties. Later releases follow from noise, which is fresh each time.
"""

import functools
import json
import tempfile
import warnings
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import dpmpc
from dpmpc.aggregation.owner import aggregator
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.consortium.plan_of_machines import plan_of_machines
from dpmpc.errors import DpmpcError, public_text
from dpmpc.estimators import PrivateLogisticRegression
from dpmpc.intake.describe import describe
from dpmpc.learning.model import model_file
from dpmpc.learning.predict import predict
from dpmpc.learning.task import TASKS
from dpmpc.local.named_records import load_owner
from dpmpc.planning.request import Request
from dpmpc.privacy.account import ENVIRONMENT
from dpmpc.records.draft import schema_of
from dpmpc.records.loading import Query, load, opened
from dpmpc.statistics.scores import ScoreModel

BOUNDS = {"x": [0.0, 7.0], "z": [0.0, 4.0]}
PLACED: dict[str, Any] = {"epsilon": 20.0, "delta": 1e-4, "engine": "clear", "hopeless": "allow"}
PLACED |= {"owners": "o", "data_id": "rows"}
ASKED: dict[str, Any] = {**PLACED, "tell": lambda text: None}
MADE: dict[str, Any] = {**PLACED, "rows": 20, "seed": 1}
TRAINED: dict[str, Any] = {k: v for k, v in PLACED.items() if k not in ("owners", "hopeless")}


WORDS = ("a", "b", "c", "yes", "no", "1", "2", "abc", "u", "v")  # public ones, some of which are values


class Told(BaseException):
    """The vector is known: what would come after it is noise."""


@dataclass(frozen=True)
class Seen:
    """What is public, the vector (d,) in grid steps and how far one neighbour may move it, in L2; what has a row a
    record; or why it refuses."""

    public: Any
    vector: Any = None
    claimed: float = 0.0
    refused: str = ""
    rows: Any = None


def release_of(call: Callable[[Path], object], folder: Path) -> Seen:
    """What a call sends first, and what its folder has by then."""
    found = list[tuple[Plan, Any]]()
    encode = aggregator.encode

    def told(plan: Plan, vectors: Any, first: int = 0) -> Any:
        found.append((plan, encode(plan, vectors, first)))
        raise Told

    out = folder / "out"
    try:
        with (
            tempfile.TemporaryDirectory() as account,  # of one run alone: what others spent has no part in it
            mock.patch.dict("os.environ", {ENVIRONMENT: account}),
            mock.patch.object(aggregator, "encode", told),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", RuntimeWarning)  # NumPy's, of one record's value: another line on a screen
            call(out)
    except Told:
        pass
    except (DpmpcError, ValueError) as error:
        if not isinstance(error, DpmpcError):
            return Seen(None, refused=f"{type(error).__name__}")
        return Seen(None, refused=public_text(error))
    plan, vector = found[0]
    public = json.loads(plan.to_text())
    for drawn in ("run_id", "stage_of"):  # anew for each run: a name, and a digest with it
        public.pop(drawn, None)
    names = sorted(str(path.relative_to(out)) for path in out.rglob("*")) if out.exists() else []
    return Seen((public, plan.dimension, vector.shape, names), vector, plan.derived.sensitivity_steps)


def stats(source: Any, folder: Path) -> Seen:
    return release_of(lambda out: dpmpc.stats(source, ["mean(x)", "hist(z)"], bounds=BOUNDS, out=out, **ASKED), folder)


def by_owner(source: Any, folder: Path) -> Seen:
    """Each owner's own figures: what it counts stands in cells of its own."""
    asked = ["mean(x) by owner", "table(z) by owner"]
    return release_of(lambda out: dpmpc.stats(source, asked, bounds=BOUNDS, out=out, **ASKED), folder)


def stats_named(source: Any, folder: Path) -> Seen:
    """A survey comes first, which finds the categories among public words."""
    return release_of(
        lambda out: dpmpc.stats(source, ["mean(x)", "table(z)"], named=("x", "z"), words=WORDS, out=out, **ASKED),
        folder,
    )


def synth_named(source: Any, folder: Path) -> Seen:
    return release_of(lambda out: dpmpc.synth(source, named=("x", "z"), words=WORDS, out=out, **MADE), folder)


def synth(source: Any, folder: Path) -> Seen:
    return release_of(lambda out: dpmpc.synth(source, bounds=BOUNDS, out=out, **MADE), folder)


def synth_survey(source: Any, folder: Path) -> Seen:
    return release_of(lambda out: dpmpc.synth(source, out=out, **MADE), folder)


def persons(source: Any, folder: Path) -> Seen:
    """A promise of persons, of whom z says who they are: each has one place."""
    return release_of(
        lambda out: dpmpc.stats(source, ["mean(x)"], bounds=BOUNDS, out=out, person="z", person_rows=1, **ASKED), folder
    )


def estimator(source: Any, folder: Path) -> Seen:
    """A surveyed fit, of a frame."""
    import pandas as pd

    frame = pd.DataFrame({name: source[name] for name in ("x", "z")})
    y = np.arange(len(frame)) // 2 % 2
    return release_of(
        lambda out: PrivateLogisticRegression(epsilon=20.0, delta=1e-4, engine="clear", iterations=1).fit(frame, y),
        folder,
    )  # fmt: skip


def _where(source: Any) -> dict[str, Any]:
    """A source as settings name it."""
    if isinstance(source, Query):
        return {"database": source.url, "sql": source.sql}
    return {"records": str(path) if isinstance(path := getattr(source, "path", source), Path) else source}


def _trained(source: Any, **asked: Any) -> Callable[[Path], object]:
    return lambda out: dpmpc.train(
        out, **_where(source), target="z", task="ridge", owners_column="o", evaluate=False, iterations=1, **TRAINED,
        **asked,
    )  # fmt: skip


def train(source: Any, folder: Path) -> Seen:
    """End to end, within public bounds."""
    path = folder / "bounds.json"
    path.write_text(json.dumps(BOUNDS))
    return release_of(_trained(source, bounds=str(path), preprocessing="records"), folder)


def train_survey(source: Any, folder: Path) -> Seen:
    """End to end, whose first release is a survey."""
    return release_of(_trained(source, preprocessing="survey"), folder)


@functools.cache
def _model() -> tuple[ScoreModel, bytes]:
    """A model of public numbers, and its file."""
    known = {"x": [float(k % 8) for k in range(40)], "z": [float(k % 5) for k in range(40)]}
    found = load(known, target="z", task="ridge", bounds=BOUNDS, test_fraction=0.0)
    theta = np.linspace(0.5, -0.5, found.d)
    return ScoreModel.of(found.schema, theta), model_file(theta, found, "run")


def evaluate(source: Any, folder: Path) -> Seen:
    """A model's figures over all owners' records."""
    model = _model()[0]
    return release_of(
        lambda out: dpmpc.stats(
            source, ["evaluate(m)"], schema=model.schema, models={"m": model}, out=out, **ASKED,
        ), folder,
    )  # fmt: skip


def mapped(source: Any, folder: Path) -> Seen:
    """Records through public bounds, as `train` maps them: (n, d), of which one row may differ, by 2 at most."""
    try:
        found = load(source, target="z", task="ridge", bounds=BOUNDS, drop=("o",), test_fraction=0.0)
    except DpmpcError as error:
        return Seen(None, refused=public_text(error))
    X = np.array(found.X)
    return Seen((found.schema.to_json(), X.shape), X, 2.0 + 1e-9, rows=np.column_stack([X, found.y]))


@functools.cache
def _joined(n: int) -> Plan:
    """A plan that was made without any record, which owners join."""
    request = Request(
        schema="schema.json", owner_sizes=(n, n, n), evaluate=False, preprocessing="records", task="ridge", epsilon=4.0,
        delta=1e-5, iterations=1, data_id="rows", run_id="r", test_fraction=0.0,
    )  # fmt: skip
    schema = _model()[0].schema
    return plan_of_machines(request, schema, (n, n, n), complete=False, owners=["a", "b", "c"])[0]


def join(source: Any, folder: Path) -> Seen:
    """An owner among others on other machines: its records as it brings them to the plan that it has joined."""
    try:
        with opened(source) as (table, _):
            plan = _joined(table.n)
        found = load_owner(Request(**_where(source), planned=True, evaluate=False, delta=1e-5).among_others, plan, 0)
    except DpmpcError as error:
        return Seen(None, refused=public_text(error))
    X = np.array(found.X)
    return Seen((found.n, found.d), X, 2.0 + 1e-9, rows=np.column_stack([X, found.y]))


def predicted(source: Any, folder: Path) -> Seen:
    """A model's predictions, a row a record, for their owner alone."""
    run = folder / "model"
    run.mkdir(exist_ok=True)
    (run / "model.npz").write_bytes(_model()[1])
    try:
        found = predict(run, source)
    except DpmpcError as error:
        return Seen(None, refused=public_text(error))
    return Seen(sorted(found.columns), rows=np.column_stack([found.columns[name] for name in sorted(found.columns)]))


def looked_at(source: Any, folder: Path) -> Seen:
    """The columns with their kinds, which a survey's plan names."""
    try:
        with opened(source) as (table, _):
            return Seen([(column.name, column.type, column.kind) for column in table.columns], np.zeros(0))
    except DpmpcError as error:
        return Seen(None, refused=public_text(error))


def drafted(source: Any, folder: Path) -> Seen:
    """`describe --schema`: what it says comes of the records, and so what rests on it says "if", whatever they are."""
    try:
        with opened(source) as (table, _):
            return Seen(schema_of(describe(table, target="z").intake, "z", goal=TASKS["ridge"]).origin.read)
    except DpmpcError as error:
        return Seen(None, refused=public_text(error))


ENTRIES: dict[str, Callable[[Any, Path], Seen]] = {
    "stats": stats, "synth within bounds": synth, "synth by a survey": synth_survey, "stats of persons": persons,
    "stats by owner": by_owner, "stats, named by words": stats_named, "synth, named by words": synth_named,
    "estimator": estimator, "train": train, "train by a survey": train_survey, "evaluate": evaluate, "mapped": mapped,
    "join": join, "predict": predicted, "columns": looked_at, "describe": drafted,
}  # fmt: skip
OF_FRAMES = ("arrays", "series", "pandas objects", "pandas category")  # which an estimator takes
OF_SITES = ("CSV", "JSON lines", "JSON", "SQLite", "Feather", "Parquet", "a folder of CSV")  # which a site joins with
OF_TARGETS = ("train", "train by a survey", "evaluate", "mapped", "join", "predict", "synth by a survey", "describe")


def differ(one: Seen, other: Seen, places: Collection[int] = (0,)) -> str:
    """What of two tables differs that must not, where the records at these places do; "" for nothing, and where one is
    refused."""
    if one.refused:
        return f"refused without it: {one.refused}"
    if other.refused:
        return ""
    if one.public != other.public:
        return f"public: {short(one.public, other.public)}"
    if one.rows is not None:
        same = (one.rows == other.rows) | ((one.rows != one.rows) & (other.rows != other.rows))
        if odd := sorted({*np.flatnonzero(~same.all(axis=1)).tolist()} - set(places)):
            return f"rows of {len(odd)} other records differ, the first {odd[0]}"
    if one.vector is None:
        return ""
    moved = float(np.linalg.norm((np.asarray(one.vector, dtype=np.float64) - other.vector).ravel()))
    claimed = one.claimed * len(places)
    return f"moved {moved:.6g} where {claimed:.6g} is claimed" if moved > claimed else ""


def short(one: Any, other: Any) -> str:
    """The first places in which two values differ."""
    texts = [json.dumps(each, default=str, sort_keys=True) for each in (one, other)]
    at = next((k for k, (a, b) in enumerate(zip(*texts, strict=False)) if a != b), min(map(len, texts)))
    return " | ".join(text[max(0, at - 30) : at + 50] for text in texts)
