"""A column that nearly gives the target by itself is said before anything is spent, wherever models are trained; one
that only goes with it is not."""

import itertools
import json
import math
import warnings
from pathlib import Path

import numpy as np
import pytest

from dpmpc.estimators import PrivateLogisticRegression
from dpmpc.intake.giving import giving_of
from dpmpc.local.named_records import with_spelling
from dpmpc.records.check import check
from dpmpc.records.loading import load, opened
from dpmpc.records.schema import Schema
from tests.runs import dpmpc as command

N = 600


def _drawn(seed: int = 5) -> dict[str, np.ndarray]:
    g = np.random.default_rng(seed)
    age = g.integers(20, 90, N)
    ill = (age + g.normal(0, 12, N) > 55).astype(int)
    days = np.where(ill == 1, g.normal(50, 4, N), g.normal(10, 4, N)).round(1)
    ward = np.where(ill == 1, np.where(g.random(N) < 0.5, "icu", "or"), "home")
    return {"age": age, "days": days, "ward": ward, "room": g.integers(0, 9, N), "ill": ill}


def _written(path: Path, columns: dict[str, np.ndarray]) -> Path:
    rows = [",".join(map(str, row)) for row in zip(*columns.values(), strict=True)]
    path.write_text("\n".join([",".join(columns), *rows, ""]))
    return path


def test_what_gives_a_target_and_what_does_not() -> None:
    g = np.random.default_rng(9)
    for seed in range(40):
        drawn = _drawn(seed)
        truth = list(map(str, drawn["ill"]))
        values = {"age": drawn["age"] * 1.0, "days": drawn["days"], "ward": list(drawn["ward"])}
        values |= {"number": np.arange(N) * 1.0, "key": list(map(str, range(N)))}  # all different, and say nothing
        assert [name for name, _ in giving_of(values, truth, False)] == ["days", "ward"]
    # a straight line, or nearly so; with a hundredth of noise more it is none
    size = g.normal(size=N)
    near, far = 3 * size + 2 + g.normal(0, 0.05, N), size + g.normal(0, 0.2, N)
    assert [name for name, _ in giving_of({"near": near, "far": far}, size, True)] == ["near"]
    # a class that few records have: half of them is not enough, nearly all are
    rare = np.zeros(N, dtype=int)
    rare[:30] = 1
    half, most = rare.copy(), rare.copy()
    half[15:30], most[29:30] = 0, 0
    said = dict(giving_of({"half": list(map(str, half)), "most": list(map(str, most))}, list(map(str, rare)), False))
    assert list(said) == ["most"] and f"{N - 1} of {N}" in said["most"]


def test_no_value_is_a_warning_of_its_own() -> None:
    """Each odd number among those of a column, and of the target: NumPy finds nothing to say of any."""
    g = np.random.default_rng(3)
    odd = (1.7e308, -1e300, -0.0, 5e-324, math.inf, -math.inf, math.nan, 2.0**53 + 1)
    for which, value, place in itertools.product(range(2), odd, (0, N - 1)):
        size = g.normal(size=N)
        columns = [3 * size, size]
        columns[which][place] = value
        with np.errstate(all="raise", under="ignore"), warnings.catch_warnings():
            warnings.simplefilter("error")
            list(giving_of({"x": columns[0]}, columns[1], True))
            list(giving_of({"x": columns[0]}, list(map(str, size > 0)), False))
    alike = np.where(np.arange(N) % 2, 1e300, -1e300)  # what are nearly the same are so at any size
    assert [name for name, _ in giving_of({"x": alike}, alike / 3, True)] == ["x"]


def test_every_surface_that_trains_says_it(tmp_path: Path) -> None:
    path = _written(tmp_path / "a.csv", _drawn())
    bounds = tmp_path / "bounds.json"
    ranges = {"age": [0, 100], "days": [0, 70], "ward": ["home", "icu", "or"], "room": [0, 9], "ill": [0, 1]}
    bounds.write_text(json.dumps(ranges))
    dataset = load(str(path), target="ill", bounds=bounds)
    assert [line.split("'")[1] for line in dataset.given] == ["days", "ward"]
    run = ("--csv", path, "--target", "ill", "--owners", 3, "--epsilon", 2, "--delta", 1e-5, "--engine", "clear")
    for name, more in (("surveyed", ()), ("bounds", ("--bounds", bounds))):
        found = command("train", *run, *more, "--out", tmp_path / name)
        said = " ".join((found.stdout + found.stderr).split())
        assert found.returncode == 0 and said.count("alone tells the target") == 2, said
        assert "alone tells" not in (tmp_path / name / "report.json").read_text()  # for the owner's own eyes
    schema = Schema.from_json(dataset.preprocessing)
    with opened(str(path)) as (table, _):
        texts = [each.text for each in with_spelling(check(schema, table), table, target="ill").said]
    assert sum(" alone tells the target of " in text for text in texts) == 2
    drawn = _drawn()
    X = np.column_stack([drawn["age"], drawn["days"]]).astype(float)
    settings = {"epsilon": 2.0, "delta": 1e-5, "engine": "clear", "classes": [0, 1], "bounds": (0, 100)}
    with pytest.warns(UserWarning, match="alone tells the target"):
        PrivateLogisticRegression(**settings).fit(X, drawn["ill"], owners=np.arange(N) % 3)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        PrivateLogisticRegression(**settings).fit(X[:, :1], drawn["ill"], owners=np.arange(N) % 3)
    assert not any("alone tells" in str(each.message) for each in caught)
