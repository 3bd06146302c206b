"""Private preprocessing held against scaling by public bounds and by bounds that are read off the records.

Raw columns go through `learning.survey` with noise on the sum of all owners' vectors, and the features made of its
findings into a private descent with what is left of the budget. For study, in the clear.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpmpc.data.preprocess import Categorical, Labels, Numeric, Preprocessing, Raw, as_numbers, as_texts
from dpmpc.data.schemas import FILE_SETS, WDBC_COLUMNS
from dpmpc.data.sets import find_file
from dpmpc.data.table import Table, read_table
from dpmpc.errors import UsageError
from dpmpc.experiments.noise import generator
from dpmpc.learning import erm
from dpmpc.learning.survey import Survey
from dpmpc.learning.survey_columns import features, transform
from dpmpc.privacy.gaussian import mu_of_budget
from dpmpc.privacy.spread import logistic_spread
from dpmpc.runs.adviser import Circumstances, advise, survey_share

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
    """Raw columns by name, labels +-1, which are numbers and which categories, and X by public bounds if there are
    any."""

    raw: Mapping[str, Raw]
    y: Array
    numbers: tuple[str, ...]
    categories: tuple[str, ...]
    public: Array | None

    def rows(self, index: NDArray[np.int64]) -> dict[str, Raw]:
        return {name: self.raw[name][index] for name in (*self.numbers, *self.categories)}


def load(name: str, data_dir: Path | None) -> Columns:
    """The raw columns of a set. Errors: a missing file."""
    if name == HOSPITALS:
        return _hospitals(data_dir)
    if name == "breast-cancer":
        from sklearn import datasets  # slow to import

        bunch = datasets.load_breast_cancer()
        raw: dict[str, Raw] = {str(key): bunch.data[:, k] for k, key in enumerate(bunch.feature_names)}
        made = Preprocessing(WDBC_COLUMNS, Labels("d", ("1",), ("0",), "1", "0"), True, "fill", "public")
        y = np.where(bunch.target == 0, 1.0, -1.0)
        return Columns(raw, y, tuple(raw), (), made.transform(raw))
    schema = FILE_SETS[name]
    made = Preprocessing(schema.columns, schema.target, True, schema.missing, "public")
    tables = [
        read_table(find_file(f"{schema.folder}/{file}", data_dir), names=schema.names, separator=schema.separator,
                   comment=schema.comment)
        for file in schema.files
    ]  # fmt: skip
    table = tables[0] if len(tables) == 1 else Table.joined(tables)
    if schema.missing == "drop":
        table = table.rows(np.flatnonzero(made.complete(table)))
    numbers = tuple(column.name for column in schema.columns if isinstance(column, Numeric))
    categories = tuple(column.name for column in schema.columns if isinstance(column, Categorical))
    columns: dict[str, Raw] = {n: as_numbers(table[n], n) for n in numbers}
    columns.update({n: as_texts(table[n]) for n in categories})
    return Columns(columns, made.labels(table), numbers, categories, made.transform(table))


def _hospitals(data_dir: Path | None) -> Columns:
    lines = []
    for site in SITES:
        path = find_file(f"heart_disease/processed.{site}.data", data_dir)
        lines += [line.split(",") for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    values = np.array([[math.nan if cell in ("?", "NaN", "") else float(cell) for cell in line] for line in lines])
    raw: dict[str, Raw] = {name: values[:, k] for k, name in enumerate(MEASURES)}
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
            raise UsageError("this set has no public bounds; none are known; choose another way")
        X = columns.public
    else:
        X = _read_off(columns)
    choice = advise(Circumstances(1, n, n, X.shape[1], epsilon, delta, method="gradient")).choice
    assert choice.step is not None
    mu = mu_of_budget(epsilon, delta) * math.sqrt(1 - share)
    sigma = math.sqrt(choice.iterations) * 2 / (n * mu)
    theta = _descend(X[train], columns.y[train], sigma, choice.iterations, choice.step, rng)
    return erm.accuracy(theta, X[test], columns.y[test])


def _surveyed(
    columns: Columns, train: NDArray[np.int64], epsilon: float, delta: float, owners: int, rng: np.random.Generator
) -> tuple[Array, float]:
    survey = Survey(columns.numbers, columns.categories)
    n = len(train)
    share = survey_share(
        Circumstances(1, n, n, 1, epsilon, delta, numbers=len(columns.numbers), categories=len(columns.categories))
    )
    sigma = survey.spread / (mu_of_budget(epsilon, delta) * math.sqrt(share))
    total = sum(
        (survey.encode(columns.rows(part)) for part in np.array_split(train, owners)), np.zeros(survey.coordinates)
    )
    findings = survey.findings(total + sigma * rng.standard_normal(len(total)), n, sigma)
    return transform(features(findings), columns.raw), share


def _read_off(columns: Columns) -> Array:
    """[0, 1] by the least and largest value of all records, one-hot by all texts: outside of any promise."""
    parts = []
    for name in columns.numbers:
        v = np.asarray(columns.raw[name], dtype=np.float64)
        low, high = np.nanmin(v), np.nanmax(v)
        scaled = (v - low) / (high - low if high > low else 1.0)
        parts.append(np.where(np.isnan(scaled), 0.5, scaled)[:, None])
    for name in columns.categories:
        texts = np.asarray(columns.raw[name])
        parts.append((texts[:, None] == np.unique(texts)[None, :]).astype(np.float64))
    X = np.column_stack([*parts, np.ones(len(columns.y))])
    return np.asarray(X / np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None])


def _descend(X: Array, y: Array, sigma: float, iterations: int, step: float, rng: np.random.Generator) -> Array:
    theta, tail, counted = np.zeros(X.shape[1]), np.zeros(X.shape[1]), 0
    for t in range(1, iterations + 1):
        noise = sigma * logistic_spread(float(np.linalg.norm(theta))) / 2 * rng.standard_normal(len(theta))
        theta = theta - step * (erm.gradient(erm.LOGISTIC, theta, X, y, 1e-3) + noise)
        if 2 * t > iterations:
            counted += 1
            tail += (theta - tail) / counted
    return tail


def scores(columns: Columns, way: str, epsilon: float, delta: float, seeds: Sequence[int], owners: int) -> list[float]:
    """One accuracy a seed: split, noise and survey are all of that seed."""
    return [score(columns, way, epsilon, delta, seed, owners) for seed in seeds]
