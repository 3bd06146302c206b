"""The data sets that go by a name: embedded in scikit-learn, drawn at random, or UCI files in a data folder."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from dpmpc.errors import UsageError, sayable
from dpmpc.folders import said_path
from dpmpc.intake.files import open_file
from dpmpc.intake.scratch import scratch_folder
from dpmpc.intake.table import connect
from dpmpc.records.blocks import allocate
from dpmpc.records.dataset import Dataset, split
from dpmpc.records.loading import build, opened
from dpmpc.records.mapping import Mapping as Mapped
from dpmpc.records.mapping import complete
from dpmpc.records.memory import usual_memory
from dpmpc.records.schema import Basis, Classes, Column, Labels, Numeric, Range, Scale, Schema
from dpmpc.records.schemas import CLASS_SETS, DIABETES_COLUMNS, FILE_SETS, WDBC_COLUMNS, FileSet
from dpmpc.records.scikit import scikit_learn
from dpmpc.records.seeds import Stream, generator

EMBEDDED = ("breast-cancer", "diabetes", "iris", "wine", "digits", "synthetic")
NAMES = (*EMBEDDED, *FILE_SETS)
DATA_DIR_VARIABLE = "DPMPC_DATA"

_SYNTHETIC_ROWS = 2000


def load_dataset(
    name: str,
    *,
    data_dir: Path | str | None,
    seed: int,
    test_fraction: float | None = None,
    intercept: bool | None = None,
    max_rows: int | None = None,
    dimension: int = 10,
    official_test: bool = False,
    scale: Scale = "unit",
    basis: Basis | None = None,
) -> Dataset:
    """The data set of this name, split by the seed; the same for the same arguments.

    data_dir: the folder with the sets' folders, or a set's own folder; by default $DPMPC_DATA. Embedded sets need none.
    test_fraction: of the rows, default 0.2 (synthetic: 0.5). max_rows: how many rows are drawn, test rows included
    (synthetic: made; default 2,000). intercept: whether a constant feature is added; by default for all but synthetic.
    dimension: of synthetic. official_test: test on the set's own test file (adult, kddcup99) and train on the rest.
    scale: of numbers; "unit" as in the papers' experiments, "centred" as runs take it (synthetic: always that).
    basis: of numbers; None is "linear".
    Errors: an unknown name, a missing file, sizes that leave no training rows.
    """
    if name not in NAMES:
        raise UsageError(
            f"a data set has one of the names {sayable(', '.join(NAMES))}; got '{sayable(name)}'; for a file of "
            "yours use <<csv>>",
            code="choice",
        )
    fraction = (0.5 if name == "synthetic" else 0.2) if test_fraction is None else test_fraction
    if official_test and not (name in FILE_SETS and FILE_SETS[name].official_test):
        raise UsageError(
            f"an official test set exists for adult and kddcup99; '{sayable(name)}' has none; use a test fraction",
            code="choice",
        )
    if name in FILE_SETS:
        data_dir = None if data_dir is None else said_path(data_dir, "data_dir")
        constant = intercept is None or intercept
        return from_files(
            name, FILE_SETS[name], data_dir, seed, fraction, constant, max_rows, official_test, scale, basis
        )
    if name == "synthetic":
        rows = _SYNTHETIC_ROWS if max_rows is None else max_rows
        columns, schema = _synthetic(rows, dimension, seed, bool(intercept))
        max_rows = None
    else:
        columns, schema = _embedded(name, intercept is None or intercept, scale)
    with opened(columns) as (table, private):
        return build(
            table,
            schema.on(basis),
            private,
            seed=seed,
            test_fraction=fraction,
            max_rows=max_rows,
            memory=usual_memory(),
            name=name,
        )


def find_file(name: str, data_dir: Path | None) -> Path:
    """Where a file of a set is: data_dir/FOLDER/FILE or data_dir/FILE.

    `name` is FOLDER/FILE; FILE may list other names that it goes by, a|b.
    Errors: no data folder is known, or the file is not in it.
    """
    if data_dir is None:
        given = os.environ.get(DATA_DIR_VARIABLE)
        if not given:
            raise UsageError(
                f"this data set is read from files; no data folder is known; give <<data_dir>> or set "
                f"{DATA_DIR_VARIABLE}",
                code="path",
            )
        data_dir = Path(given)
    folder, _, files = name.partition("/")
    for file in files.split("|"):
        for path in (data_dir / folder / file, data_dir / file):
            if path.is_file():
                return path
    raise UsageError(
        f"this data set needs {sayable(folder)}/{sayable(files.split('|')[0])}; it is not in {sayable(data_dir)}; "
        "give its folder with "
        f"<<data_dir>>",
        code="path",
    )


def from_files(
    name: str,
    schema: FileSet,
    data_dir: Path | None,
    seed: int,
    test_fraction: float,
    intercept: bool,
    max_rows: int | None,
    official_test: bool = False,
    scale: Scale = "unit",
    basis: Basis | None = None,
) -> Dataset:
    """The data set of a set's files; arguments as of `load_dataset`. Errors: a missing file."""
    rules = Schema(_scaled(schema.columns, scale), schema.target, intercept, schema.missing, "public").on(basis)
    files = [file for file in schema.files if not (official_test and file in schema.official_test)]
    X, y = _read(schema, files, data_dir, rules)
    if official_test:
        train, _ = split(len(y), test_fraction=0.0, max_rows=max_rows, seed=seed)
        X_test, y_test = _read(schema, list(schema.official_test), data_dir, rules)
        X, y, order = np.concatenate([X, X_test]), np.concatenate([y, y_test]), np.arange(len(y), len(y) + len(y_test))
        order = np.concatenate([train, order])
    else:
        train, test = split(len(y), test_fraction=test_fraction, max_rows=max_rows, seed=seed)
        order = np.concatenate([train, test])
    records = allocate(len(order), X.shape[1], "double", None)
    np.take(X, order, axis=0, out=records.held)
    records.y[:] = y[order]
    if rules.basis == "additive":  # held-out rows as predictions have them
        held = list(schema.official_test) if official_test else files
        even, _ = _read(schema, held, data_dir, rules, ball=False)
        records.held[len(train) :] = even[order[len(train) :] - (len(y) - len(even))]
    return Dataset(name, rules, records, len(train), len(order) - len(train))


def _read(
    schema: FileSet, files: list[str], data_dir: Path | None, rules: Schema, *, ball: bool = True
) -> tuple[Any, Any]:
    """The rows and labels of a set's files, one after the other, without incomplete records if those are dropped;
    `ball` as of `Schema.rows`."""
    parts = []
    for file in files:
        path = find_file(f"{schema.folder}/{file}", data_dir)
        with scratch_folder() as private:
            connection = connect(private, None)
            table = open_file(
                path,
                connection,
                private,
                kind=".csv",
                names=schema.names,
                separator=schema.separator,
                comment=schema.comment,
            )
            parts.append(Mapped(complete(table, rules) if rules.missing == "drop" else table, rules).arrays(ball=ball))
            connection.close()
    return np.concatenate([X for X, _ in parts]), np.concatenate([y for _, y in parts])


def _embedded(name: str, intercept: bool, scale: Scale) -> tuple[Mapping[str, Any], Schema]:
    target: Labels | Range | Classes
    schema: tuple[Column, ...]
    shipped = scikit_learn(f"<<data={name}>> is a set of")
    if name in CLASS_SETS:
        from sklearn import datasets  # slow to import, and only these sets need it

        bunch = getattr(datasets, f"load_{name}")()
        target = Classes("class", tuple(str(value) for value in bunch.target_names))
        values: Any = np.array(target.names, dtype=object)[bunch.target]
        X, names, ranges = bunch.data, [str(key) for key in bunch.feature_names], CLASS_SETS[name]
        each = ranges if len(ranges) > 1 else ranges * len(names)
        schema = tuple(Numeric(key, float(low), float(high)) for key, (low, high) in zip(names, each, strict=True))
    elif name == "breast-cancer":
        table, schema = _shipped(shipped, "breast_cancer.csv", delimiter=",", skiprows=1), WDBC_COLUMNS
        target = Labels("diagnosis", ("malignant",), ("benign",), "malignant", "benign")
        X, values = table[:, :-1], np.where(table[:, -1] == 0, "malignant", "benign")
    else:
        X, schema = _shipped(shipped, "diabetes_data_raw.csv.gz"), DIABETES_COLUMNS
        target, values = Range("progression", 25.0, 350.0), _shipped(shipped, "diabetes_target.csv.gz")
    columns: dict[str, Any] = {column.name: X[:, k] for k, column in enumerate(schema)}
    columns[target.name] = values
    return columns, Schema(_scaled(schema, scale), target, intercept, "fill", "public")


def _scaled(columns: tuple[Column, ...], scale: Scale) -> tuple[Column, ...]:
    """The columns with their numbers on this scale."""
    return tuple(msgspec.structs.replace(c, scale=scale) if isinstance(c, Numeric) else c for c in columns)


def _shipped(package: Path, file: str, **options: Any) -> Any:
    """A table that scikit-learn carries, without the second and more that importing scikit-learn takes."""
    return np.loadtxt(package / "datasets" / "data" / file, **options)


def _synthetic(rows: int, dimension: int, seed: int, intercept: bool) -> tuple[Mapping[str, Any], Schema]:
    """Records uniform in the unit ball of R^d, labels the sign of w . x for a random direction w.

    Source: Rajkumar and Agarwal 2012 section 6, who take d = 10, 1,000 training and 1,000 test records.
    """
    if rows < 1 or dimension < 1:
        raise UsageError(
            f"synthetic data have at least 1 row and 1 dimension; got {sayable(rows)} and {sayable(dimension)}; give "
            "more",
            code="enough",
        )
    rng = generator(Stream.SYNTHETIC, seed)
    X = rng.standard_normal((rows, dimension))
    X *= (rng.random(rows) ** (1.0 / dimension) / np.linalg.norm(X, axis=1))[:, None]
    positive = X @ rng.standard_normal(dimension) > 0
    names = [f"x{k}" for k in range(dimension)]
    columns: dict[str, Any] = {key: X[:, k] for k, key in enumerate(names)}
    columns["label"] = np.where(positive, "1", "-1")
    schema = tuple(Numeric(key, -1.0, 1.0) for key in names)
    target = Labels("label", ("1",), ("-1",))
    return columns, Schema(schema, target, intercept, "fill", "public")
