"""What Python shows of objects, asks of them, and takes for a path."""

import inspect
import itertools
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import dpmpc
from dpmpc.estimators import PrivateLogisticRegression, PrivateRegressor, PrivateRidge
from dpmpc.estimators.errors import EstimatorError
from tests.refusals import refuses

NUMBERS = itertools.count()  # of data sets: each fit is on others
X = np.random.default_rng(0).uniform(-1, 1, (200, 2))
BY: dict[str, object] = {"bounds": (-1, 1), "engine": "clear", "iterations": 3, "epsilon": 4.0}


def fitted() -> list[object]:
    quantity: dict[str, object] = {**BY, "target_bounds": (-2, 2)}
    return [
        PrivateLogisticRegression(classes=[0, 1], data_id=f"{next(NUMBERS)}", **BY).fit(X, (X[:, 0] > 0).astype(int)),
        PrivateRidge(data_id=f"{next(NUMBERS)}", **quantity).fit(X, X.sum(axis=1)),
        PrivateRegressor(**{**quantity, "task": "median", "data_id": f"{next(NUMBERS)}"}).fit(X, X.sum(axis=1)),
    ]


def test_a_property_that_does_not_apply_is_not_there() -> None:
    """Notebooks, completion and scikit-learn ask for every attribute, fitted or not."""
    for model in [PrivateLogisticRegression(), PrivateRidge(), *fitted()]:
        for name in dir(model):
            try:
                getattr(model, name)
            except AttributeError:
                assert not hasattr(model, name)
        inspect.getmembers(model)
        assert type(model).__name__ in model._repr_html_() and repr(model)  # type: ignore[attr-defined]


def test_a_picture_of_a_model_without_curves_is_refused_in_words(tmp_path: Path) -> None:
    model = fitted()[0]
    assert not hasattr(model, "additive_")
    with refuses("together", setting="basis", kind=EstimatorError):
        model.plot(tmp_path / "page.html")  # type: ignore[attr-defined]


@pytest.mark.parametrize("package", ["dpmpc", "dpmpc.estimators", "dpmpc.flower", "dpmpc.records", "dpmpc.intake"])
def test_a_package_lists_its_public_names_and_no_others(package: str) -> None:
    """In a process of its own, in which nothing was used before."""
    program = f"import {package} as p; print(sorted(dir(p)) == sorted(p.__all__))"
    outcome = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert outcome.stdout == "True\n"


def test_paths_may_be_texts(tmp_path: Path) -> None:
    """Of a run, of records, of what is written."""
    rows = [f"s{k % 2},{k % 70},{('no', 'yes')[k % 3 == 0]}" for k in range(200)]
    records, new = tmp_path / "a.csv", tmp_path / "new.csv"
    records.write_text("\n".join(["site,age,ill", *rows, ""]))
    new.write_text("age\n30\n60\n")
    bounds = {"age": [0, 90], "ill": ["no", "yes"]}
    (tmp_path / "b.toml").write_text('age = [0, 90]\nill = ["no", "yes"]\n')
    found = dpmpc.train(
        str(tmp_path / "run"), csv=str(records), target="ill", owners_column="site", bounds=str(tmp_path / "b.toml"),
        epsilon=2.0, delta=1e-5, iterations=2, engine="clear",
    )  # fmt: skip
    texts = dpmpc.predict(str(tmp_path / "run"), str(new))
    paths = dpmpc.predict(tmp_path / "run", new)
    assert repr(texts) == repr(paths) and found.run == tmp_path / "run"
    told = dpmpc.stats(
        str(records), ["mean(age)"], owners="site", bounds=bounds, epsilon=2.0, delta=1e-5, engine="clear",
        out=str(tmp_path / "answers"),
    )  # fmt: skip
    assert told.plot(str(tmp_path / "page.html")) == tmp_path / "page.html"
