"""One adviser for all surfaces: on the same records, schema and promise the command line and an estimator plan the same
run, to the last bit of step and lambda."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpmpc
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.estimators import PrivateLogisticRegression, PrivateRidge, fitting
from dpmpc.planning.training import plan_of
from dpmpc.records.schema import Classes, Labels, Numeric, Range, Schema, Target
from tests.runs import dpmpc as command

COLUMNS = (Numeric("a", -4, 4), Numeric("b", -3, 3), Numeric("c", 0, 9))
TARGETS: dict[str, Target] = {
    "logistic": Labels("y", ("yes",), ("no",)),
    "ridge": Range("y", -12.0, 12.0),
    "softmax": Classes("y", ("p", "q", "r")),
}
CASES = [
    (task, n, owners, epsilon)
    for task in TARGETS
    for n, owners, epsilon in ((400, 3, 1.0), (4000, 1, 1.0), (4000, 3, 4.0))
]


def records(task: str, n: int, owners: int) -> pd.DataFrame:
    rng = np.random.default_rng(n)
    frame = pd.DataFrame({"a": rng.normal(size=n), "b": rng.uniform(-3, 3, n), "c": rng.exponential(size=n)})
    score = 2 * frame.a - frame.b + rng.normal(size=n)
    if task == "logistic":
        score = np.where(score > 0, "yes", "no")
    elif task == "softmax":
        score = np.array(["p", "q", "r"])[np.digitize(score, [-1, 1])]
    return frame.assign(y=score, site=[f"site {k}" for k in np.sort(np.arange(n) ** 2 % owners)])


def planned(plan: Plan) -> dict[str, Any]:
    """What the adviser settles, and the noise that follows from it."""
    learning = plan.learning
    return {
        "length": plan.releases,
        "lambda": learning.lam,
        "step": learning.step,
        "momentum": learning.momentum,
        "method": (learning.method, learning.average),
        "features": plan.dimension,
        "sizes": (plan.sizes, plan.weights),
        "noise": (plan.grid, plan.derived.mechanism),
    }


def fitted(task: str, frame: pd.DataFrame, epsilon: float, name: Path, **more: Any) -> Plan:
    """The plan of a fit's training."""
    plans = list[Plan]()

    def noted(*asked: Any, **more: Any) -> Plan:
        plans.append(plan_of(*asked, **more))
        return plans[-1]

    kind = PrivateRidge if task == "ridge" else PrivateLogisticRegression
    model = kind(epsilon=epsilon, delta=1e-5, engine="clear", data_id=str(name), **more)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fitting, "plan_of", noted)
        model.fit(frame[["a", "b", "c"]], frame["y"].to_numpy(), owners=frame["site"].to_numpy())
    assert model.n_iter_ == plans[-1].releases
    return plans[-1]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("task", "n", "owners", "epsilon"), CASES)
def test_with_a_schema_both_plan_the_same_run(task: str, n: int, owners: int, epsilon: float, tmp_path: Path) -> None:
    frame, schema = records(task, n, owners), Schema(COLUMNS, TARGETS[task])
    frame.to_csv(tmp_path / "records.csv", index=False)
    schema.write(tmp_path / "schema.json")
    done = command(
        "train", "--csv", tmp_path / "records.csv", "--schema", tmp_path / "schema.json", "--owners-column", "site",
        "--epsilon", epsilon, "--delta", 1e-5, "--engine", "clear", "--test-fraction", 0, "--no-evaluate",
        "--out", tmp_path / "run",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert planned(Plan.read(tmp_path / "run" / "plan.json")) == planned(
        fitted(task, frame, epsilon, tmp_path, schema=schema)
    )


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("task", TARGETS)
def test_after_a_survey_too_where_both_know_the_same_of_the_columns(task: str, tmp_path: Path) -> None:
    """A Parquet file says as a frame does that its columns are numbers. Of a CSV file's nothing is known, and texts are
    asked about too: the survey is longer, so its sums are rounded by another last bit, and it costs as much more. That
    moves lambda and step in the eighth digit."""
    frame = records(task, 4000, 3)
    frame.to_csv(tmp_path / "records.csv", index=False)
    frame.to_parquet(tmp_path / "records.parquet")
    asked: dict[str, Any] = {"target": "y", "task": task, "owners_column": "site", "test_fraction": 0.0}
    asked |= {"epsilon": 8.0, "delta": 1e-5, "engine": "clear", "evaluate": False}
    if task == "logistic":
        asked["positive"] = "yes"
    plans = []
    for name in ("records.parquet", "records.csv"):
        dpmpc.train(tmp_path / name[8:], records=tmp_path / name, **asked)
        plans.append(planned(Plan.read(tmp_path / name[8:] / "plan.json")))
    mine = planned(fitted(task, frame, 8.0, tmp_path))
    assert plans[0] == mine
    for name in ("length", "features", "momentum", "method", "sizes"):
        assert plans[1][name] == mine[name]
    for name in ("lambda", "step"):
        assert plans[1][name] == pytest.approx(mine[name], rel=1e-6)
