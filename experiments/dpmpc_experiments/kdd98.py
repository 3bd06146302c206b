"""KDDCup98 for the regression figures: cup98LRN.txt of the UCI archive, when the caller has it.

Source: Jayaraman et al. 2018 section 4: 70,000 of the records, the donation in dollars as target, "the same
pre-processing" and PCA to 95 features. Departures, where the text leaves it open: columns that are numbers in nine of
ten records are kept, gaps get the column's mean, rows are divided by the largest norm, and the donation by its public
maximum of 200 dollars. Bounds, means and components are read off the records, which no privacy guarantee of the
experiment covers; nor does the paper's.
"""

import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpmpc.errors import UsageError

Array = NDArray[np.float64]
FILES = ("kddcup98/cup98LRN.txt", "cup98LRN.txt")
TARGET, LEFT_OUT = "TARGET_D", ("TARGET_B", "TARGET_D", "CONTROLN")
FEATURES, LARGEST, PROBED = 95, 200.0, 2000


def find(data_dir: Path | None) -> Path | None:
    """Where the file is, None if it is not in the data folder."""
    paths = [data_dir / name for name in FILES] if data_dir is not None else []
    return next((path for path in paths if path.is_file()), None)


def load(path: Path, seed: int, rows: int | None, test_fraction: float) -> tuple[Array, Array, Array, Array]:
    """X (n, d), y (n,) in [0, 1], X_test, y_test: a random sample of `rows` records, rows in the unit ball.

    Errors: not the file it should be (no target column, no numeric columns).
    """
    with path.open(newline="", encoding="latin-1") as file:
        reader = csv.reader(file)
        names = [name.strip() for name in next(reader, [])]
        if TARGET not in names:
            raise UsageError(
                f"KDDCup98's file has a column {TARGET}; {path} has none; give cup98LRN.txt of UCI's archive",
                code="column",
            )
        lines = [line for line in reader if len(line) == len(names)]
    rng = np.random.default_rng([0x98, seed])
    chosen = rng.permutation(len(lines))[:rows]
    lines = [lines[i] for i in chosen]
    kept = [k for k, name in enumerate(names) if name not in LEFT_OUT and _numeric(lines[:PROBED], k)]
    if not kept:
        raise UsageError(
            f"KDDCup98's file has numeric columns; {path} has none; give cup98LRN.txt of UCI's archive", code="column"
        )
    X = np.array([[_number(line[k]) for k in kept] for line in lines])
    y = np.clip(np.array([_number(line[names.index(TARGET)]) for line in lines]) / LARGEST, 0.0, 1.0)
    test = round(len(lines) * test_fraction)
    return _project(X[test:], y[test:], X[:test], y[:test])


def _project(X: Array, y: Array, X_test: Array, y_test: Array) -> tuple[Array, Array, Array, Array]:
    """Scale to [0, 1], fill gaps, project on the training records' components, and shrink into the unit ball."""
    middle = np.nanmean(X, axis=0)
    low, high = np.nanmin(X, axis=0), np.nanmax(X, axis=0)
    span = np.where(high > low, high - low, 1.0)

    def scaled(part: Array) -> Array:
        return np.asarray(np.clip((np.where(np.isnan(part), middle, part) - low) / span, 0.0, 1.0))

    train, test = scaled(X), scaled(X_test)
    centre = train.mean(axis=0)
    _, components = np.linalg.eigh((train - centre).T @ (train - centre))
    axes = components[:, ::-1][:, : min(FEATURES - 1, train.shape[1])]
    projected = [np.column_stack([(part - centre) @ axes, np.ones(len(part))]) for part in (train, test)]
    largest = np.linalg.norm(projected[0], axis=1).max()
    shrunk = [part / np.maximum(largest, np.linalg.norm(part, axis=1))[:, None] for part in projected]
    return shrunk[0], y, shrunk[1], y_test


def _numeric(lines: Sequence[Sequence[str]], column: int) -> bool:
    return sum(not np.isnan(_number(line[column])) for line in lines) >= 0.9 * len(lines)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")
