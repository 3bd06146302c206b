"""Synthetic tables by several methods at equal promises, in one run: `dpmpc experiment synth`.

Every method gets the same columns, cells and records, which lie with five unequal owners where that matters; neighbours
replace one record. Rows are judged by tables of two and three columns against the training records, and by models that
are trained on them and tested on records that nobody has seen. Levels and cells are taken for public, for all methods
alike: levels are those of the set, cells its quantiles.
"""

import csv
import os
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from dpmpc.errors import UsageError
from dpmpc.folders import OUT, make_folder
from dpmpc.lazy import dataclass
from dpmpc.privacy.gaussian import mu_of_budget
from dpmpc.records.sets import DATA_DIR_VARIABLE
from dpmpc.statistics.cells import Ints, RecordFields
from dpmpc.statistics.columns import Column, Columns, Quantity, category
from dpmpc.statistics.compile import axis_of
from dpmpc.statistics.intervals import Floats
from dpmpc.statistics.opened import Opened
from dpmpc.statistics.pooled import pooled
from dpmpc.statistics.tables import Tables
from dpmpc.synthesis import asking
from dpmpc.synthesis.noisy import Noisy
from dpmpc.synthesis.table import draw, model_of, structure
from dpmpc_experiments import synth_rivals
from dpmpc_experiments.corpus import SETS, Raw, available, load
from dpmpc_experiments.report import commit, table
from dpmpc_experiments.synth_attack import attack

# nobody tuned on lending and chains, nor on the last three, which were picked after those had been looked at
DATASETS = ("adult", "bank", "insurance", "customers", "lending", "chains", "calls", "crashes", "tips")
TARGET = "target"
DELTA = 1e-5
EPSILONS = (0.2, 1.0)
OWNERS = 5
CELLS = 12
TRIPLES = 60
ATTACKED, TRIALS = (0.5, 1.0, 2.0, 4.0, 8.0), 1000
LEFT_OUT = {"adult": ("fnlwgt",)}  # a survey weight, not of a person
COLUMNS = (
    "dataset",
    "epsilon",
    "method",
    "seed",
    "tv2",
    "tv3",
    "accuracy",
    "auc",
    "boosting",
    "boosting_auc",
    "seconds",
)
Cells = Mapping[str, Ints]
Row = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Set:
    """A set for synthesis: columns with public cells, and training and test records as cells."""

    name: str
    columns: Columns
    train: RecordFields
    cells: Cells
    test: Cells

    @property
    def sizes(self) -> dict[str, int]:
        """The cells of every column."""
        return {name: len(axis_of(name, self.columns).labels) for name in self.columns.names}


def set_of(raw: Raw, seed: int = 1, most: int | None = None) -> Set:
    """The set with a fifth of its records for tests. Columns of texts with more than 100 levels are left out."""
    made: list[Column] = []
    values: dict[str, Any] = {}
    for name, column in raw.columns.items():
        if name in LEFT_OUT.get(raw.name, ()):
            continue
        if column.dtype.kind == "f":
            known = column[np.isfinite(column)]
            edges = _edges(known)
            if len(edges) < 2:
                continue
            made.append(Quantity(name, float(edges[0]), float(edges[-1]), tuple(float(e) for e in edges)))
            values[name] = column
        else:
            levels = sorted({str(value) for value in column if value is not None})
            if not 2 <= len(levels) <= 100:
                continue
            place = {level: k for k, level in enumerate(levels)}
            made.append(category(name, levels))
            values[name] = np.array([-1 if value is None else place[str(value)] for value in column], dtype=np.int64)
    made.append(category(TARGET, ("no", "yes")))
    values[TARGET] = (raw.y > 0).astype(np.int64)
    columns = Columns(tuple(made))
    order = np.random.default_rng(seed).permutation(raw.n)[:most]
    cut = len(order) // 5
    parts = []
    for rows in (order[cut:], order[:cut]):
        records = RecordFields(len(rows), {column: values[column.name][rows] for column in columns.columns})
        parts.append((records, {name: axis_of(name, columns).place(records) for name in columns.names}))
    return Set(raw.name, columns, parts[0][0], parts[0][1], parts[1][1])


def _edges(known: Floats) -> Floats:
    """Quantiles of numbers; where more than half are the least one, that one and quantiles of the others."""
    heap = known == known.min()
    if heap.mean() <= 0.5:
        return np.unique(np.quantile(known, np.linspace(0, 1, CELLS + 1)))
    others = known[~heap] if (~heap).any() else known
    return np.unique([known.min(), *np.quantile(others, np.linspace(0, 1, CELLS))])


# -- methods -----------------------------------------------------------------------------------------------------------
Method = Callable[[Set, float, np.random.Generator], Cells]


def _opened(tables: Tables, data: Set, mu: float, rng: np.random.Generator, copies: int = 1) -> Opened:
    """What a release with this mu opens; `copies` of noise, each of the deviation that the promise needs alone."""
    total = tables.layout.encode(data.train)[0]
    sigma = tables.layout.distance((1,)).l2 / mu * copies**0.5 if mu < np.inf else 0.0
    return tables.opened(total + rng.normal(0, 1, len(total)) * sigma, sigma, (data.train.n,))


def released(parts: Sequence[float], copies: int = 1, target: str | None = TARGET) -> Method:
    """The product's way with one or two releases, at these parts of mu^2."""

    def method(data: Set, epsilon: float, rng: np.random.Generator) -> Cells:
        mu = mu_of_budget(epsilon, DELTA) if epsilon < np.inf else np.inf
        columns = data.columns
        opened = [_opened(asking.first(columns), data, mu * parts[0] ** 0.5, rng, copies)]
        shape = structure(Noisy(columns, opened[0]), target)
        if len(parts) > 1:
            opened.append(_opened(asking.second(columns, shape.edges, target), data, mu * parts[1] ** 0.5, rng, copies))
        noisy = Noisy(columns, pooled(opened))
        return draw(model_of(noisy, shape), noisy, data.train.n, rng)

    return method


def without_noise(data: Set, epsilon: float, rng: np.random.Generator) -> Cells:
    """The model of the same tables as they are."""
    return released((0.5, 0.5))(data, np.inf, rng)


def real(data: Set, epsilon: float, rng: np.random.Generator) -> Cells:
    """The records themselves: what tests can say at best."""
    return data.cells


METHODS: dict[str, Method] = {
    "two releases": released((asking.FIRST, 1 - asking.FIRST)),
    "one release": released((1.0,)),
    "two releases, no target": released((asking.FIRST, 1 - asking.FIRST), target=None),
    "five copies of noise": released((asking.FIRST, 1 - asking.FIRST), copies=OWNERS),
    "MST, trusted curator": lambda data, epsilon, rng: synth_rivals.mst(data.cells, data.sizes, epsilon, DELTA, rng),
    "no noise": without_noise,
    "records": real,
}


def methods() -> dict[str, Method]:
    """The methods, and the rivals' own programs where they are installed."""
    found = dict(METHODS)
    for name in synth_rivals.installed():
        found[f"{name} of smartnoise-synth"] = _theirs(name)
    return found


def _theirs(name: str) -> Method:
    return lambda data, epsilon, rng: synth_rivals.theirs(name, data.cells, data.sizes, epsilon, DELTA)


# -- figures -----------------------------------------------------------------------------------------------------------
def variation(data: Set, drawn: Cells, sets: Sequence[tuple[str, ...]]) -> float:
    """The mean total variation between tables of some columns, drawn and of the training records."""
    sizes, found = data.sizes, []
    for names in sets:
        shape = [sizes[name] for name in names]
        each = []
        for cells in (drawn, data.cells):
            place = np.ravel_multi_index([cells[name] for name in names], shape)
            each.append(np.bincount(place, minlength=int(np.prod(shape))) / len(place))
        found.append(0.5 * float(np.abs(each[0] - each[1]).sum()))
    return float(np.mean(found))


def judged(data: Set, drawn: Cells, seed: int, boosting: bool = True) -> Row:
    """All figures of drawn rows."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score

    names = data.columns.names
    triples = list(combinations(names, 3))
    chosen = np.random.default_rng(0).permutation(len(triples))[:TRIPLES]
    found: Row = {
        "tv2": variation(data, drawn, list(combinations(names, 2))),
        "tv3": variation(data, drawn, [triples[k] for k in chosen]),
    }
    y, y_test = drawn[TARGET] == 1, data.test[TARGET] == 1
    others = [name for name in names if name != TARGET]
    if len(np.unique(y)) < 2:
        return found | {"accuracy": float(np.mean(~y_test)), "auc": 0.5, "boosting": 0.5, "boosting_auc": 0.5}

    def hot(cells: Cells) -> Floats:
        return np.concatenate([np.eye(data.sizes[name])[cells[name]] for name in others], axis=1)

    def plain(cells: Cells) -> Floats:
        return np.stack([cells[name] for name in others], axis=1).astype(np.float64)

    for label, model, features in (
        ("", LogisticRegression(max_iter=200), hot),
        ("boosting", HistGradientBoostingClassifier(random_state=seed, max_iter=60), plain),
    ):
        if label and not boosting:
            continue
        model.fit(features(drawn), y)
        p = model.predict_proba(features(data.test))[:, 1]
        found["boosting" if label else "accuracy"] = float(np.mean((p > 0.5) == y_test))
        found["boosting_auc" if label else "auc"] = float(roc_auc_score(y_test, p))
    return found


# -- the run -----------------------------------------------------------------------------------------------------------
def run(
    out: Path, data_dir: Path | None, repeats: int = 5, seed: int = 1, quick: bool = False,
    say: Callable[[str], None] = lambda text: None, names: Sequence[str] = DATASETS,
    draws: Mapping[str, int] | None = None,
) -> Path:  # fmt: skip
    """The path of the report: out/synth/report.md, with every run in runs.csv, the runs through parties in parties.csv
    and the attacks in attacks.csv, which are carried on from what they hold. `draws`: of methods that get others than
    `repeats`. Errors: none of the sets is there."""
    from dpmpc_experiments import synth_parties

    folder = out / "synth"
    make_folder(folder, OUT)
    data_dir = data_dir or (Path(os.environ[DATA_DIR_VARIABLE]) if DATA_DIR_VARIABLE in os.environ else None)
    there = [name for name in (names[:1] if quick else names) if available(SETS[name], data_dir)]
    if not there:
        raise UsageError(f"synth needs one of {', '.join(names)}; none was found; give <<data_dir>>", code="path")
    for name in there:
        data = set_of(load(SETS[name], data_dir), seed)
        for method, how in methods().items():
            fixed = method in ("no noise", "records")
            times = 1 if fixed or quick else (draws or {}).get(method, repeats)
            for epsilon in (1.0,) if fixed else EPSILONS:
                for k in range(times):
                    key = (name, "-" if fixed else f"{epsilon:g}", method, str(seed + k))
                    if key not in {_key(row) for row in rows_of(folder / "runs.csv")}:
                        began = time.perf_counter()
                        drawn = how(data, epsilon, np.random.default_rng([seed, k]))
                        spent = time.perf_counter() - began
                        found = dict(zip(COLUMNS, key, strict=False)) | {"seconds": spent, **judged(data, drawn, k)}
                        _add(folder / "runs.csv", found)
                say(f"{name}, {method}, epsilon {epsilon:g}: done")
        for epsilon, k in synth_parties.planned(name, quick):
            known = {(row["dataset"], row["epsilon"], row["seed"]) for row in rows_of(folder / "parties.csv")}
            if (name, f"{epsilon:g}", str(seed + k)) not in known:
                _add(folder / "parties.csv", synth_parties.through(data, epsilon, seed + k, parties=3))
                say(f"{name}, through three parties, epsilon {epsilon:g}: done")
    for epsilon in ATTACKED:
        if f"{epsilon:g}" not in {row["epsilon"] for row in rows_of(folder / "attacks.csv")}:
            for each in attack(epsilon, 100 if quick else TRIALS, seed):
                _add(folder / "attacks.csv", each.row)
            say(f"membership at epsilon {epsilon:g}: done")
    path = folder / "report.md"
    said = (
        report(rows_of(folder / "runs.csv"))
        + synth_parties.as_page(rows_of(folder / "parties.csv"))
        + of_attacks(rows_of(folder / "attacks.csv"))
    )
    path.write_text(said, encoding="utf-8")
    return path


def _key(row: Row) -> tuple[str, ...]:
    return tuple(str(row[name]) for name in COLUMNS[:4])


def rows_of(path: Path) -> list[Row]:
    """The lines of a file, as texts; none if it is not there."""
    if not path.is_file():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _add(path: Path, row: Row) -> None:
    fresh = not path.is_file()
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS if path.name == "runs.csv" else list(row), lineterminator="\n")
        if fresh:
            writer.writeheader()
        writer.writerow({name: f"{value:.6g}" if isinstance(value, float) else value for name, value in row.items()})


def of_attacks(found: Sequence[Row]) -> str:
    """What membership attacks came to, as the last part of the page."""
    lines = ["## Membership", "", "An outlier with values that nobody else has is among 300 records, or is not.",
             "Linked: some row of the table has all of its values.", "", *attacked(found), ""]  # fmt: skip
    return "\n" + "\n".join(lines)


def attacked(found: Sequence[Row]) -> list[str]:
    """The table of attacks."""
    body = [
        [row["epsilon"], row["attacker"], row["trials"],
         *(f"{float(row[name]):.3f}" for name in ("bound", "linked_with", "linked_without"))]
        for row in found
    ]  # fmt: skip
    head = ["epsilon promised", "attacker sees", "tables", "epsilon measured, at least",
            "linked if in", "linked if not in"]  # fmt: skip
    return table(head, body)


def report(rows: Sequence[Row]) -> str:
    """The means of all runs as a page."""
    lines = [
        "# synth: synthetic tables at equal promises", "",
        f"At commit {commit()}. delta {DELTA:g}, one record of one owner replaced; noise in the clear, of the",
        "deviation that the parties' has. Tables: mean total variation of tables of two and of three columns against",
        "the training records; accuracy and AUC: of models trained on the rows and tested on real records. Levels and",
        "cells are taken for public, for all methods alike. MST is our own implementation of it.", "",
    ]  # fmt: skip
    if not synth_rivals.installed():
        lines += ["AIM was left out: smartnoise-synth is not installed.", ""]
    return "\n".join([*lines, *compared(rows), ""])


def compared(rows: Sequence[Row]) -> list[str]:
    """The table of all methods' means, by set."""
    keys = list(dict.fromkeys((row["dataset"], row["epsilon"], row["method"]) for row in rows))
    known, body = list(METHODS), []

    def place(key: tuple[str, str, str]) -> tuple[int, float, int]:
        name, epsilon, method = key
        return (
            DATASETS.index(name) if name in DATASETS else len(DATASETS),
            0.0 if epsilon == "-" else -float(epsilon),
            known.index(method) if method in known else known.index("no noise"),
        )

    for key in sorted(keys, key=place):
        mine = [row for row in rows if (row["dataset"], row["epsilon"], row["method"]) == key]
        mean = {name: float(np.mean([float(row[name]) for row in mine])) for name in COLUMNS[4:]}
        body.append([
            *map(str, key), str(len(mine)), f"{mean['tv2']:.3f}", f"{mean['tv3']:.3f}",
            f"{mean['accuracy']:.3f}/{mean['auc']:.3f}", f"{mean['boosting']:.3f}/{mean['boosting_auc']:.3f}",
            "-" if key[2] == "records" else f"{mean['seconds']:.{int(mean['seconds'] < 10)}f}",
        ])  # fmt: skip
    head = ["set", "epsilon", "method", "draws", "tables of two", "of three", "logistic regression: accuracy/AUC",
            "boosting: accuracy/AUC", "seconds"]  # fmt: skip
    return table(head, body)
