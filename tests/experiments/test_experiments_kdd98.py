"""The regression path of the experiments, on a made file in KDDCup98's format."""

import csv
from pathlib import Path

import numpy as np
from dpmpc_experiments import kdd98
from dpmpc_experiments.method import Run
from dpmpc_experiments.methods import METHODS
from dpmpc_experiments.task import Source, load_records, make_problem

from tests.refusals import refuses


def make(folder: Path, rows: int = 400) -> Path:
    """A file with four numeric columns (one with gaps), a categorical one, and a donation that two of them decide."""
    rng = np.random.default_rng(5)
    (folder / "kddcup98").mkdir()
    path = folder / "kddcup98" / "cup98LRN.txt"
    with path.open("w", newline="", encoding="latin-1") as file:
        writer = csv.writer(file)
        writer.writerow(["AGE", "STATE", "GIFTS", "INCOME", "FLAT", "TARGET_B", "TARGET_D", "CONTROLN"])
        for k in range(rows):
            age, gifts = rng.integers(20, 90), rng.integers(0, 30)
            income = "" if k % 20 == 0 else rng.integers(1, 8)
            donation = max(0.0, 2.0 * gifts + 0.5 * age)
            writer.writerow([age, "VA ", gifts, income, 7, int(donation > 50), f"{donation:.2f}", k])
    return path


def test_records_lie_in_the_unit_ball_and_hold_the_numeric_columns_alone(tmp_path: Path) -> None:
    path = make(tmp_path)
    X, y, X_test, y_test = kdd98.load(path, 1, 350, 0.2)
    assert X.shape == (280, 5) and X_test.shape == (70, 5)  # AGE, GIFTS, INCOME, FLAT projected, and a constant
    for part in (X, X_test):
        assert np.linalg.norm(part, axis=1).max() <= 1 + 1e-12 and np.isfinite(part).all()
    assert 0 <= y.min() and y.max() <= 0.6 and len(y_test) == 70
    again = kdd98.load(path, 1, 350, 0.2)
    np.testing.assert_array_equal(X, again[0])
    assert not np.array_equal(y, kdd98.load(path, 2, 350, 0.2)[1])


def test_regression_reaches_the_least_squares_fit(tmp_path: Path) -> None:
    """The donation is linear in two columns, so ridge regression must explain nearly all of its variance."""
    make(tmp_path)
    records = load_records(Source("kddcup98", 1, 1e-4, None, 0.2), tmp_path)
    assert -records.best_score < 0.05 * np.var(records.y_test)
    problem = make_problem(records, "even:4", 1)
    noisy = METHODS["MPC Grad P"].models(problem, [Run(1, 0.5, 1e-3, 50, 1.0)], (50,))
    assert float(records.objective(noisy)[0, 0]) > records.smallest
    assert records.loss.name == "ridge" and records.loss.G == 1.0


def test_other_files_are_refused(tmp_path: Path) -> None:
    path = make(tmp_path)
    assert kdd98.find(tmp_path) == path and kdd98.find(None) is None and kdd98.find(tmp_path / "no") is None
    other = tmp_path / "other.txt"
    other.write_text("a,b\n1,2\n", encoding="latin-1")
    with refuses("column", "TARGET_D", "other.txt"):
        kdd98.load(other, 1, None, 0.2)
    other.write_text("STATE,TARGET_D\nVA,2\n", encoding="latin-1")
    with refuses("column", "other.txt"):
        kdd98.load(other, 1, None, 0.2)
    with refuses("path", "kddcup98/cup98LRN.txt", setting="data_dir"):
        load_records(Source("kddcup98", 1, 1e-4, None, 0.2), tmp_path / "no")
