"""Plain figures are of the held-out records that have a target, each missed by as much as it is."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpmpc
from dpmpc.intake.spelling import Spelling
from dpmpc.learning.predict import predict
from dpmpc.local.surveying import owners_of_records
from dpmpc.planning.request import Request
from dpmpc.records.loading import opened
from tests.intake.exports import Rng

N = 800
ASKED: dict[str, Any] = {
    "target": "y", "owners": 2, "epsilon": 9, "delta": 1e-5, "engine": "clear", "iterations": 3, "figures": "plain",
    "baseline": True, "spelling": Spelling(misfits="zero"),
}  # fmt: skip


def quantity(rng: Rng, x: float) -> str:
    """Most within 0 to 100, some far beyond, some words, some missing."""
    return str(rng.choice([f"{x + rng.normal():.2f}", f"{40 * x:.2f}", "open", ""], p=[0.8, 0.02, 0.1, 0.08]))


def word(rng: Rng, x: float) -> str:
    return str(rng.choice([("low", "middle", "high")[min(int(x / 33), 2)], "open", ""], p=[0.8, 0.1, 0.1]))


@pytest.mark.parametrize("numeric", [True, False])
def test_no_figure_is_of_a_record_without_a_target(numeric: bool, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    x = rng.integers(10, 90, N)
    y = [(quantity if numeric else word)(rng, float(a)) for a in x]
    path, bounds = tmp_path / "a.csv", tmp_path / "bounds.json"
    path.write_text("x,y\n" + "".join(f"{a},{b}\n" for a, b in zip(x, y, strict=True)))
    bounds.write_text(json.dumps({"x": [0, 100], "y": [0, 100] if numeric else ["low", "middle", "high"]}))
    made = dpmpc.train(tmp_path / "run", csv=str(path), bounds=str(bounds), **ASKED)
    run = made.report
    with opened(str(path)) as (table, _):
        test = owners_of_records(Request(csv=str(path), target="y", owners=2, delta=1e-5, figures="plain"), table)[0][1]
    held = [y[k] for k in test if y[k] not in ("open", "")]
    assert run["utility"]["test_records"] == len(test) > len(held)
    assert f"{len(held)} of {N} records" in str(made)
    for found in (run["figures"], run["utility"]["nonprivate"]["figures"], run["baseline"]["figures"]):
        assert found["records"] == len(held)
        if numeric:
            truth = np.array(held, dtype=float)
            assert truth.max() > 1000
            assert found["numbers"]["rmse of the mean"]["estimate"] == pytest.approx(truth.std(), rel=1e-9)
        else:
            most = max(held.count(name) for name in ("low", "middle", "high"))
            assert found["numbers"]["base rate"]["estimate"] == most / len(held)
    said = predict(tmp_path / "run", path, spelling=Spelling(misfits="zero"))
    known = sum(each not in ("open", "") for each in y)
    assert said.n == N and f" on {known} of {N} records: " in str(said.line)
