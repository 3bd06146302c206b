"""Whatever takes a path takes it as a text and as a Path: every public function, class and method."""

import functools
import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpmpc
from dpmpc import estimators, extend, flower, records
from dpmpc.aggregation.owner.opens_sums import Release
from dpmpc.aggregation.plan.here import Here
from dpmpc.aggregation.plan.settings import Accounting, Ledgers
from dpmpc.errors import DpmpcError
from dpmpc.planning.settings import RecordSettings
from dpmpc.settings import declared

PUBLIC = ("dpmpc", "dpmpc.estimators", "dpmpc.extend", "dpmpc.flower", "dpmpc.intake", "dpmpc.records")
SETTINGS = (Accounting, Ledgers, RecordSettings, Here)
# Parameters that may be a path, by the settings' declarations: whose annotations have more kinds, such as frames.
NAMES = {
    name for kind in SETTINGS for name, each in declared(kind).items()
    if each.kind is Path or each.setting.metavar in ("PATH", "DIR", "SOURCE")
} | {"source"}  # fmt: skip
X = np.random.default_rng(0).uniform(-1, 1, (200, 2))


def public() -> Iterator[tuple[str, str]]:
    """(function, class or method of a public package, one of its parameters that may be a path)."""
    seen = set[int]()
    for package in PUBLIC:
        module = importlib.import_module(package)
        for name in module.__all__:
            try:
                thing = getattr(module, name)
            except DpmpcError:  # needs a library that is not here
                continue
            if id(thing) in seen or not callable(thing):
                continue
            seen.add(id(thing))
            methods = [k for k in dir(thing) if inspect.isclass(thing) and not k.startswith("_")]
            for where, each in [("", thing), *((f".{k}", getattr(thing, k)) for k in methods)]:
                if inspect.isroutine(each) or inspect.isclass(each):
                    yield from ((f"{package}.{name}{where}", found) for found in paths_of(each))


def paths_of(function: Callable[..., Any]) -> list[str]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    texts = {p.name: str(p.annotation) for p in parameters}
    unsaid = ("str | None", "typing.Any")  # what a setting that names a path is annotated as, at the least
    found = [name for name, said in texts.items() if "Path" in said or (name in NAMES and said in unsaid)]
    return [name for name in found if (function, name) != (dpmpc.Limits, "schema")]  # that one is a digest


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one of everything that a path may name."""
    where = tmp_path_factory.mktemp("made")
    rows = [f"s{k % 2},{k % 70},{('no', 'yes')[k % 3 == 0]}" for k in range(200)]
    texts = {
        "a.csv": "\n".join(["site,age,ill", *rows, ""]), "b.toml": 'age = [0, 90]\nill = ["no", "yes"]\n',
        "words.txt": "no\nyes\n", "limits.toml": "epsilon = 1\n", "cuts.toml": "age = [30, 60]\n", "none.txt": "",
    }  # fmt: skip
    for name, text in texts.items():
        (where / name).write_text(text)
    for name in ("account", "folder"):
        (where / name).mkdir()
    plan().write(where / "plan.json")
    data = records.load(where / "a.csv", target="ill", bounds=where / "b.toml", owners_column="site")
    data.schema.write(where / "schema.json")
    dpmpc.train(where / "run", csv=where / "a.csv", bounds=where / "b.toml", **TRAINED)
    flower.prepare(where / "prepared", owners=3, dimension=2, clip=1.0, epsilon=1.0, delta=1e-3)
    return where


QUICK: dict[str, Any] = {"epsilon": 2.0, "delta": 1e-5, "engine": "clear"}
TRAINED: dict[str, Any] = {"target": "ill", "owners_column": "site", "iterations": 2, **QUICK}
SUM: dict[str, Any] = {"clip": 1.0, "epsilon": 1.0, "delta": 1e-3, "engine": "clear"}
ALONE: dict[str, Any] = {"index": 0, "addresses": [f"127.0.0.1:{k}" for k in (1, 2, 3)], "wait": 0.01}


def plan() -> dpmpc.Plan:
    return dpmpc.Plan.create(owners=3, dimension=2, clip=1.0, epsilon=1.0, delta=1e-3)


@functools.cache
def additive() -> Any:
    settings: dict[str, Any] = {"bounds": (-1, 1), "basis": "additive", "iterations": 2, "data_id": "curves"}
    model = estimators.PrivateLogisticRegression(**settings, classes=[0, 1], engine="clear", epsilon=4.0)
    return model.fit(X, (X[:, 0] > 0).astype(int))


def fit(kind: Any, **more: Any) -> Callable[..., Any]:
    def done(**given: Any) -> None:
        settings = {"bounds": (-1, 1), "engine": "clear", "iterations": 2, "epsilon": 4.0, "data_id": "p", **more}
        kind(**{**settings, **given}).fit(X, (X[:, 0] > 0).astype(int))

    return done


def calls(made: Path, new: Path) -> dict[str, tuple[Callable[..., Any], dict[str, Any], dict[str, Any]]]:
    """How each is called: what it is given in any case, and a value for each of its paths. `new`: for what is
    written."""
    csv, bounds, schema, run, prepared = (made / name for name in ("a.csv", "b.toml", "schema.json", "run", "prepared"))
    book, out = {"account": made / "account"}, {"out": new / "out"}
    rules: dict[str, Any] = {"schema": schema, "bounds": bounds}
    asked: dict[str, Any] = {"records": csv, "owners": "site", "bounds": bounds, **QUICK}
    joining = {"plan": made / "plan.json", **out, **book, "tls": made / "folder", "ledgers": made / "folder"}
    shares = {"prepared": prepared / "prepared.json", "key": prepared / "party_0.key"}
    model = {**book, "ledgers": made / "folder", "schema": schema, "bounds": bounds}
    shown = {"path": new / "page.html"}
    promise = dpmpc.Promise(1.0, 0.0, 1.0, "", {}, ())
    return {
        "dpmpc.Aggregator": (dpmpc.Aggregator, {"owners": 3, "dimension": 2, **SUM}, {**out, **book}),
        "dpmpc.Limits.read": (dpmpc.Limits.read, {}, {"path": made / "limits.toml"}),
        "dpmpc.Owner": (dpmpc.Owner, {"plan": plan(), **ALONE}, joining),
        "dpmpc.Party": (lambda **g: dpmpc.Party(**g).run(), {"plan": plan(), **ALONE, **out}, joining),
        "dpmpc.Site": (dpmpc.Site, {"plan": plan(), **ALONE, **out}, joining),
        "dpmpc.Plan.read": (dpmpc.Plan.read, {}, {"path": made / "plan.json"}),
        "dpmpc.Plan.write": (plan().write, {}, {"path": new / "plan.json"}),
        "dpmpc.Plan.plot": (plan().plot, {}, shown),
        "dpmpc.Promise.plot": (promise.plot, {}, shown),
        "dpmpc.meet": (dpmpc.meet, {"records": csv, "owners": "site", **QUICK}, {"records": csv, **book, **out}),
        "dpmpc.predict": (dpmpc.predict, {"run": run, "source": csv}, {"run": run, "source": csv}),
        "dpmpc.private_mean": (dpmpc.private_mean, {"vectors": np.zeros((3, 2)), **SUM}, book),
        "dpmpc.stats": (
            dpmpc.stats, {"queries": ["mean(age)"], **asked},
            {"records": csv, **rules, "models": {"m": run}, **book, **out},
        ),
        "dpmpc.synth": (
            dpmpc.synth, {"rows": 20, **asked},
            {"records": csv, **rules, "cuts": made / "cuts.toml", "constraints": made / "none.txt", **book, **out},
        ),
        "dpmpc.train": (
            dpmpc.train, {"csv": csv, "bounds": bounds, **out, **TRAINED},
            {**out, "csv": csv, "records": csv, **rules, "word_list": made / "words.txt", **book,
             "ledgers": made / "folder", "data_dir": made / "folder", "tls": made / "folder"},
        ),
        "dpmpc.estimators.PrivateLogisticRegression": (
            fit(estimators.PrivateLogisticRegression, classes=[0, 1]), {}, model
        ),
        "dpmpc.estimators.PrivateRidge": (fit(estimators.PrivateRidge, target_bounds=(-2, 2)), {}, model),
        "dpmpc.estimators.PrivateRegressor": (
            fit(estimators.PrivateRegressor, target_bounds=(-2, 2), task="median"), {}, model
        ),
        **{f"dpmpc.estimators.{kind}.plot": (additive().plot, {}, shown) for kind in estimators.__all__},
        "dpmpc.extend.Here": (Here, {"index": "0"}, {**out, **book, "tls": made, "ledgers": made}),
        "dpmpc.extend.outcome_of": (
            extend.outcome_of, {"plan": plan(), "release": Release(0, np.zeros(2, dtype=np.int64), 0)},
            {"out": made / "folder"},
        ),
        "dpmpc.extend.Schema.read": (records.Schema.read, {}, {"path": schema}),
        "dpmpc.extend.Schema.write": (records.Schema.read(schema).write, {}, {"path": new / "s.json"}),
        "dpmpc.flower.Prepared.read": (flower.Prepared.read, {}, {"path": prepared / "prepared.json"}),
        "dpmpc.flower.prepare": (
            flower.prepare, {"owners": 3, "dimension": 2, "clip": 1.0, "delta": 1e-3}, {"folder": new / "f"}
        ),
        "dpmpc.flower.prepare_questions": (
            flower.prepare_questions,
            {"queries": ["mean(age)"], "sizes": [100] * 3, "data_id": "d", "delta": 1e-5, "bounds": bounds,
             "folder": new / "f"},
            {"folder": new / "f", **rules, "models": {"m": run}},
        ),
        "dpmpc.flower.check_records": (
            flower.check_records, {"prepared": shares["prepared"], "owner": 0, "records": csv},
            {"prepared": shares["prepared"], "records": csv},
        ),
        "dpmpc.flower.ShareParty": (flower.ShareParty, {**shares, **ALONE}, {**joining, **shares}),
        "dpmpc.records.CsvFile": (lambda path: dpmpc.predict(run, records.CsvFile(path)), {}, {"path": csv}),
        "dpmpc.records.load": (
            records.load, {"source": csv, "target": "ill", "bounds": bounds},
            {"source": csv, **rules, "folder": made / "folder"},
        ),
        "dpmpc.records.load_dataset": (
            records.load_dataset, {"name": "adult", "seed": 1, "data_dir": None}, {"data_dir": made / "folder"}
        ),
    }  # fmt: skip


RIVALS = {"records": "csv", "schema": "bounds"}  # one or the other


def said_of(call: Callable[..., Any], given: dict[str, Any]) -> str:
    """What a call comes to: the type of its result, or the line that refuses it. Any other error is one of ours."""
    try:
        found = call(**given)
    except DpmpcError as error:
        return f"{type(error).__name__}: {error}"
    if hasattr(found, "close"):
        found.close()
    return type(found).__name__


@pytest.mark.filterwarnings("ignore::UserWarning")  # of what is spent and expected
def test_every_public_path_may_be_a_text_or_a_path(made: Path, tmp_path: Path) -> None:
    """What takes one is read off signatures and declarations, so that none is left out; each is called with each of its
    paths once so and once so, which comes to the same."""
    ways, known = sorted(set(public())), calls(made, tmp_path)
    assert len(ways) > 60 and {("dpmpc.predict", "run"), ("dpmpc.Plan.write", "path")} <= set(ways)
    assert not [way for way in ways if way[0] not in known or way[1] not in known[way[0]][2]]
    results = []
    for k, (where, name) in enumerate(ways):
        said = []
        for kind in (str, Path):
            new = tmp_path / f"{k}{kind.__name__}"
            new.mkdir()
            call, given, paths = calls(made, new)[where]
            rival = RIVALS.get(name)
            value = paths[name]
            mine = {key: kind(each) for key, each in value.items()} if isinstance(value, dict) else kind(value)
            found = said_of(call, {**{key: each for key, each in given.items() if key != rival}, name: mine})
            found = re.sub(r"[0-9a-f]{16,}", "#", found.replace(str(new), "NEW").replace(type(new).__name__, "str"))
            said.append(found if "PeerError" not in found else "PeerError")  # who was heard of by then, is chance
        assert said[0] == said[1], (where, name, said)
        results.append(said[0])
    assert sum("Error: " not in each for each in results) > 40  # most succeed: a refusal may come before a path is used
