"""The named sets: their published shapes, their splits, and where they are looked for."""

import os
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from dpmpc.errors import owner_text
from dpmpc.records import NAMES, Dataset, load_dataset
from dpmpc.records.dataset import split
from dpmpc.records.schema import Categorical, Schema
from dpmpc.records.schemas import FILE_SETS
from dpmpc.records.sets import find_file
from tests.refusals import Rule, breaks, refuses

BESIDE = Path(__file__).resolve().parents[3] / "shared" / "data"


def real(folder: str) -> Path:
    data = Path(os.environ.get("DPMPC_DATA", BESIDE))
    if not (data / folder).is_dir():
        pytest.skip(f"{folder} is not in {data}; set DPMPC_DATA to the folder with the UCI files")
    return data


def check(data: Dataset) -> None:
    """What holds for every data set."""
    for X, y in ((data.X, data.y), (data.X_test, data.y_test)):
        assert X.shape == (len(y), len(data.feature_names)) and X.dtype == y.dtype == np.float64
        assert np.isfinite(X).all() and np.einsum("nd,nd->n", X, X).max(initial=0) <= 1
        assert np.isin(y, (-1, 1)).all() if data.task == "logistic" else np.abs(y).max(initial=0) <= 1
    assert data.bounds == "public" and Schema.from_json(data.preprocessing).feature_names == data.feature_names


def test_breast_cancer_is_wdbc() -> None:
    data = load_dataset("breast-cancer", data_dir=None, seed=1)
    check(data)
    assert (data.n, len(data.y_test), data.d) == (455, 114, 31)
    assert (data.y > 0).sum() + (data.y_test > 0).sum() == 212  # malignant


def test_public_ranges_hold_what_the_embedded_sets_contain() -> None:
    """Nothing is clipped, and nothing sits in a corner of its range: each column uses at least a fifth of it."""
    from sklearn.datasets import load_breast_cancer, load_diabetes

    for name, bunch in (("breast-cancer", load_breast_cancer()), ("diabetes", load_diabetes(scaled=False))):
        rules = Schema.from_json(load_dataset(name, data_dir=None, seed=1).preprocessing)
        assert [column.name for column in rules.columns] == list(bunch.feature_names)
        for column, values in zip(rules.columns, bunch.data.T, strict=True):
            assert not isinstance(column, Categorical)
            assert column.low <= values.min() and values.max() <= column.high
            assert np.ptp(values) > 0.2 * (column.high - column.low)


def test_diabetes_is_a_ridge_set() -> None:
    data = load_dataset("diabetes", data_dir=None, seed=1, intercept=False)
    check(data)
    assert data.task == "ridge" and data.n + len(data.y_test) == 442 and data.d == 10


def test_synthetic_is_uniform_in_the_ball_with_a_linear_rule() -> None:
    """P(|x| <= r) = r^d. The empirical law of 20,000 norms is off by more than 0.022 with probability below 8e-9
    (Dvoretzky-Kiefer-Wolfowitz), a mean coordinate by more than 0.05 with probability below 1e-10 (Hoeffding)."""
    data = load_dataset("synthetic", data_dir=None, seed=5, max_rows=20_000, test_fraction=0.0, dimension=4)
    check(data)
    norms = np.sort(np.linalg.norm(data.X, axis=1))
    assert np.abs(norms**4 - np.arange(1, 20_001) / 20_000).max() < 0.022
    assert np.abs(data.X.mean(axis=0)).max() < 0.05
    w, *_ = np.linalg.lstsq(data.X, data.y, rcond=None)  # by symmetry least squares finds the rule's direction
    assert np.mean(np.sign(data.X @ w) == data.y) > 0.98


def test_synthetic_by_default_is_the_papers() -> None:
    data = load_dataset("synthetic", data_dir=None, seed=1)
    assert data.X.shape == data.X_test.shape == (1000, 10)
    assert load_dataset("synthetic", data_dir=None, seed=1, intercept=True).d == 11


def test_the_seed_alone_decides_the_split() -> None:
    one, same, other = (load_dataset("breast-cancer", data_dir=None, seed=s) for s in (1, 1, 2))
    assert np.array_equal(one.X, same.X) and np.array_equal(one.y_test, same.y_test)
    assert not np.array_equal(one.X, other.X)


def test_split_takes_every_row_once_and_keeps_every_group() -> None:
    train, test = split(103, test_fraction=0.25, max_rows=None, seed=1)
    assert len(test) == 26 and sorted([*train, *test]) == list(range(103))
    train, test = split(103, test_fraction=0.25, max_rows=40, seed=1)
    assert (len(train), len(test)) == (30, 10) and len({*train, *test}) == 40
    groups = np.repeat(np.arange(4), [1, 3, 10, 86])
    train, test = split(100, test_fraction=0.5, max_rows=None, seed=1, groups=groups)
    assert np.bincount(groups[test], minlength=4).tolist() == [0, 1, 5, 43]
    assert sorted([*train, *test]) == list(range(100))
    with refuses("enough", 0, 2):
        split(100, test_fraction=0.5, max_rows=2, seed=1, groups=groups)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"name": "penguins"}, breaks("choice", "penguins", setting="csv")),
        ({"name": "breast-cancer", "test_fraction": 1.0}, breaks("range", 0, 1)),
        ({"name": "breast-cancer", "test_fraction": -0.1}, breaks("range", 0, 1)),
        ({"name": "breast-cancer", "max_rows": 0}, breaks("range", 1)),
        ({"name": "breast-cancer", "max_rows": 1, "test_fraction": 0.9}, breaks("enough")),
        ({"name": "breast-cancer", "official_test": True}, breaks("choice")),
        ({"name": "synthetic", "dimension": 0}, breaks("enough", 1)),
        ({"name": "synthetic", "seed": -1}, breaks("range", 0)),
        ({"name": "adult", "data_dir": Path("nowhere")}, breaks("path", "adult/adult", setting="data_dir")),
    ],
)
def test_what_cannot_be_loaded(arguments: dict[str, object], words: Rule) -> None:
    with refuses(words) as error:
        load_dataset(**{"data_dir": None, "seed": 1, **arguments})  # type: ignore[arg-type]
    assert "\n" not in owner_text(error.value)


def test_files_are_found_in_the_folder_the_sets_folder_or_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DPMPC_DATA", raising=False)
    (tmp_path / "adult").mkdir()
    file = tmp_path / "adult" / "adult.data"
    file.write_text("x")
    assert find_file("adult/adult.data", tmp_path) == find_file("adult/adult.data", tmp_path / "adult") == file
    assert find_file("adult/none|adult.data", tmp_path) == file
    with refuses("path", "DPMPC_DATA", setting="data_dir"):
        find_file("adult/adult.data", None)
    monkeypatch.setenv("DPMPC_DATA", str(tmp_path))
    assert find_file("adult/adult.data", None) == file


ADULT = """39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, Male, 2174, 0, 40, United-States, {}
54, ?, 180211, Some-college, 10, Married-civ-spouse, ?, Husband, Asian-Pac-Islander, Male, 0, 0, 60, South, >50K
"""  # noqa: E501


def test_adult_format_without_the_real_files(tmp_path: Path) -> None:
    (tmp_path / "adult.data").write_text(ADULT.format("<=50K"))
    (tmp_path / "adult.test").write_text("|1x3 Cross validator\n" + ADULT.format(">50K."))
    data = load_dataset("adult", data_dir=tmp_path, seed=1, test_fraction=0.0, intercept=False)
    assert data.X.shape == (2, 104) and sorted(data.y) == [-1, 1]  # incomplete records are left out
    hot = {name for name, value in zip(data.feature_names, data.X[0], strict=True) if value > 0}
    assert "workclass=State-gov" in hot and "capital-loss" not in hot and len(hot) == 5 + 8


@pytest.mark.parametrize("name", FILE_SETS)
def test_lists_have_no_doubles(name: str) -> None:
    rules = FILE_SETS[name]
    names = [feature for column in rules.columns for feature in column.features]
    assert len(set(names)) == len(names)
    assert rules.names is None or {*(c.name for c in rules.columns), rules.target.name} <= set(rules.names)
    assert name in NAMES


# Published figures: shared/data/README.md of the UCI files and their .names files.
@pytest.mark.slow
def test_adult() -> None:
    folder = real("adult")
    data = load_dataset("adult", data_dir=folder, seed=1)
    check(data)
    assert data.n + len(data.y_test) == 45_222 and data.d == 105
    assert (data.y > 0).sum() + (data.y_test > 0).sum() == 11_208
    official = load_dataset("adult", data_dir=folder / "adult", seed=1, official_test=True, max_rows=1000)
    check(official)
    assert (official.n, len(official.y_test)) == (1000, 15_060) and (official.y_test > 0).sum() == 3700
    used = np.vstack([data.X, data.X_test]).max(axis=0) > 0
    assert used.all()  # every public category occurs


def test_bank() -> None:
    data = load_dataset("bank", data_dir=real("bank_additional"), seed=1, test_fraction=0.0)
    check(data)
    assert data.n == 41_188 and Counter(data.y.tolist()) == {-1.0: 36_548, 1.0: 4_640}
    unused = [name for name, top in zip(data.feature_names, data.X.max(axis=0), strict=True) if top == 0]
    assert unused == ["month=jan", "month=feb"]


def test_breast_cancer_wisconsin() -> None:
    data = load_dataset("breast-cancer-wisconsin", data_dir=real("breast_cancer_wisconsin"), seed=1, test_fraction=0.0)
    check(data)
    assert data.d == 10 and Counter(data.y.tolist()) == {-1.0: 458, 1.0: 241}
    middle = np.isclose(data.X[:, 5] / data.X[:, 9], 0.5, rtol=1e-9)
    assert middle.sum() == 16  # the 16 missing ones; values 1 ... 10 never fall on 5.5


@pytest.mark.slow
def test_kddcup99() -> None:
    folder = real("kddcup99_10pct")
    data = load_dataset("kddcup99", data_dir=folder, seed=1, test_fraction=0.0, intercept=False)
    check(data)
    assert data.X.shape == (494_021, 122)
    assert (data.y > 0).sum() == 391_458  # back 2203, land 21, neptune 107201, pod 264, smurf 280790, teardrop 979
    assert np.linalg.norm(data.X, axis=1).min() > 1 - 1e-12  # no unknown category
    services = sum(data.X[:, k].any() for k, name in enumerate(data.feature_names) if name.startswith("service="))
    assert services == 66


@pytest.mark.slow
def test_the_papers_sample_of_kddcup99() -> None:
    data = load_dataset("kddcup99", data_dir=real("kddcup99_10pct"), seed=1, max_rows=70_000, test_fraction=2 / 7)
    check(data)
    assert (data.n, len(data.y_test), data.d) == (50_000, 20_000, 123)
    # the sample's share of attacks: hypergeometric, s.d. 0.0014 at most; 7 s.d. are passed with probability below 1e-10
    assert abs(np.mean(data.y > 0) - 391_458 / 494_021) < 7 * 0.0019
