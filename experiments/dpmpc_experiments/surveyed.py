"""Private preprocessing held against scaling by public bounds and by bounds that are read off the records.

Raw columns go through `learning.survey` with noise on the sum of all owners' vectors, and the features made of its
findings into a private descent with what is left of the budget. For study, in the clear.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpmpc.errors import UsageError
from dpmpc.intake.files import open_file
from dpmpc.intake.hashing import BUCKETS, bucket_sql
from dpmpc.intake.scratch import scratch_folder
from dpmpc.intake.table import Table, connect, value_sql
from dpmpc.lazy import dataclass
from dpmpc.learning import erm
from dpmpc.learning.method import DEFAULT_METHOD
from dpmpc.learning.survey import Survey
from dpmpc.learning.survey_columns import surveyed_columns
from dpmpc.planning.adviser import Circumstances, advise, survey_share
from dpmpc.privacy.gaussian import mu_of_budget
from dpmpc.records.mapping import Mapping as Mapped
from dpmpc.records.mapping import complete
from dpmpc.records.memory import usual_memory
from dpmpc.records.schema import Categorical, Numeric, Schema, Surveyed
from dpmpc.records.schemas import FILE_SETS, WDBC_COLUMNS
from dpmpc.records.sets import find_file
from dpmpc_experiments.central import descended
from dpmpc_experiments.noise import generator

Array = NDArray[np.float64]

HOSPITALS = "hospitals"
"""UCI's heart disease set from four hospitals, when the data folder has heart_disease/processed.NAME.data."""
SITES = ("cleveland", "hungarian", "switzerland", "va")
MEASURES = (
    "age",
    "sex",
    "cp",
    "trestbps",
    "chol",
    "fbs",
    "restecg",
    "thalach",
    "exang",
    "oldpeak",
    "slope",
    "ca",
    "thal",
)
WAYS = ("public bounds", "bounds read off the records", "private survey")


@dataclass(frozen=True)
class Columns:
    """Raw columns (n, 2) by name as `Surveyed` reads them, labels +-1, which are numbers and which texts, X by public
    bounds if there are any."""

    raw: Mapping[str, Array]
    y: Array
    numbers: tuple[str, ...]
    texts: tuple[str, ...]
    public: Array | None

    def rows(self, index: NDArray[np.int64]) -> dict[str, Array]:
        return {name: self.raw[name][index] for name in (*self.numbers, *self.texts)}


def load(name: str, data_dir: Path | None) -> Columns:
    """The raw columns of a set. Errors: a missing file."""
    if name == HOSPITALS:
        return _hospitals(data_dir)
    if name == "breast-cancer":
        from sklearn import datasets  # slow to import

        bunch = datasets.load_breast_cancer()
        values = {str(key): np.asarray(bunch.data[:, k]) for k, key in enumerate(bunch.feature_names)}
        X = np.empty((len(bunch.target), len(WDBC_COLUMNS)))
        for k, column in enumerate(WDBC_COLUMNS):
            column.write(values[column.name], X[:, k : k + 1])
        y = np.where(bunch.target == 0, 1.0, -1.0)
        return Columns({key: _numbers(v) for key, v in values.items()}, y, tuple(values), (), _in_the_ball(X))
    files = FILE_SETS[name]
    rules = Schema(files.columns, files.target, True, files.missing, "public")
    numbers = tuple(column.name for column in files.columns if isinstance(column, Numeric))
    texts = tuple(column.name for column in files.columns if isinstance(column, Categorical))
    parts = []
    for file in files.files:
        with scratch_folder() as private:
            connection = connect(private, usual_memory())
            path = find_file(f"{files.folder}/{file}", data_dir)
            table = open_file(path, connection, private, kind=".csv", names=files.names, separator=files.separator,
                              comment=files.comment)  # fmt: skip
            if files.missing == "drop":
                table = complete(table, rules)
            parts.append((_raw(table, (*numbers, *texts)), *Mapped(table, rules).arrays()))
            connection.close()
    raw = {key: np.concatenate([part[0][key] for part in parts]) for key in (*numbers, *texts)}
    public, y = (np.concatenate([part[k] for part in parts]) for k in (1, 2))
    return Columns(raw, y, numbers, texts, public)


def _raw(table: Table, names: Sequence[str]) -> dict[str, Array]:
    expressions = [sql for name in names for sql in (value_sql(table, name), bucket_sql(table, name, BUCKETS))]
    blocks = [np.stack(block, axis=1) for block in table.blocks(expressions)]
    every = np.concatenate(blocks)
    return {name: every[:, 2 * k : 2 * k + 2] for k, name in enumerate(names)}


def _numbers(values: Array) -> Array:
    return np.column_stack([values, np.full(len(values), -1.0)])


def _in_the_ball(X: Array) -> Array:
    X = np.column_stack([X, np.ones(len(X))])
    return np.asarray(X / np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None])


def _hospitals(data_dir: Path | None) -> Columns:
    lines = []
    for site in SITES:
        path = find_file(f"heart_disease/processed.{site}.data", data_dir)
        lines += [line.split(",") for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    values = np.array([[math.nan if cell in ("?", "NaN", "") else float(cell) for cell in line] for line in lines])
    raw = {name: _numbers(values[:, k]) for k, name in enumerate(MEASURES)}
    return Columns(raw, np.where(values[:, 13] > 0, 1.0, -1.0), MEASURES, (), None)


def score(columns: Columns, way: str, epsilon: float, delta: float, seed: int, owners: int) -> float:
    """Test accuracy of one private run on a random fifth held out. Errors: no public bounds for that way."""
    order = np.random.default_rng([0x5CA1E, seed]).permutation(len(columns.y))
    held = len(order) // 5
    test, train = order[:held], order[held:]
    rng = generator(seed, "surveyed", way, epsilon)
    n, share = len(train), 0.0
    if way == "private survey":
        X, share = _surveyed(columns, train, epsilon, delta, owners, rng)
    elif way == "public bounds":
        if columns.public is None:
            raise UsageError("this set has no public bounds; none are known; choose another way", code="missing")
        X = columns.public
    else:
        X = _read_off(columns)
    known = Circumstances(1, n, n, X.shape[1], epsilon, delta, method=DEFAULT_METHOD, momentum=0.0)
    choice = advise(known).choice
    assert choice.step is not None
    mu = mu_of_budget(epsilon, delta) * math.sqrt(1 - share)
    sigma = math.sqrt(choice.iterations) * 2 / (n * mu)
    theta = descended(replace(choice, sigma=sigma), X[train], columns.y[train], None, rng)
    return erm.accuracy(theta, X[test], columns.y[test])


def _surveyed(
    columns: Columns, train: NDArray[np.int64], epsilon: float, delta: float, owners: int, rng: np.random.Generator
) -> tuple[Array, float]:
    survey = Survey(columns.numbers, columns.texts)
    n = len(train)
    share = survey_share(Circumstances(1, n, n, 1, epsilon, delta, columns=len(survey.names)))
    sigma = survey.spread / (mu_of_budget(epsilon, delta) * math.sqrt(share))
    total = sum(
        (survey.encode(columns.rows(part)) for part in np.array_split(train, owners)), np.zeros(survey.coordinates)
    )
    findings = survey.findings(total + sigma * rng.standard_normal(len(total)), n, sigma)
    return _transform(surveyed_columns(findings), columns.raw), share


def _transform(made: Sequence[Surveyed], raw: Mapping[str, Array]) -> Array:
    X = np.empty((len(raw[made[0].name]), sum(len(column.features) for column in made)))
    at = 0
    for column in made:
        column.write(raw[column.name], X[:, at : at + len(column.features)])
        at += len(column.features)
    return _in_the_ball(X)


def _read_off(columns: Columns) -> Array:
    """[0, 1] by the least and largest value of all records, one-hot by all texts: outside of any promise."""
    parts = []
    for name in columns.numbers:
        v = columns.raw[name][:, 0]
        low, high = np.nanmin(v), np.nanmax(v)
        scaled = (v - low) / (high - low if high > low else 1.0)
        parts.append(np.where(np.isnan(scaled), 0.5, scaled)[:, None])
    for name in columns.texts:
        place = columns.raw[name][:, 1]
        parts.append((place[:, None] == np.unique(place[place >= 0])[None, :]).astype(np.float64))
    return _in_the_ball(np.column_stack(parts))


def scores(columns: Columns, way: str, epsilon: float, delta: float, seeds: Sequence[int], owners: int) -> list[float]:
    """One accuracy a seed: split, noise and survey are all of that seed."""
    return [score(columns, way, epsilon, delta, seed, owners) for seed in seeds]
