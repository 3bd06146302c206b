"""Weights of classes: what they do to losses and sensitivities, where balanced ones come from, and that probabilities
are those of records as they are."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from dpmpc.estimators import PrivateLogisticRegression
from dpmpc.learning.class_weights import Weighted, balancing, parsed
from dpmpc.learning.erm_blocks import owner_gradients, solve
from dpmpc.learning.label_counts import counted, label_counts
from dpmpc.learning.losses import LOGISTIC
from dpmpc.learning.method import METHODS, Learning
from dpmpc.learning.model import read_model
from dpmpc.learning.predict import predict
from dpmpc.learning.softmax import SOFTMAX
from dpmpc.learning.survey import Survey
from dpmpc.planning.request import Request
from dpmpc.records.blocks import Records
from dpmpc.records.schema import Classes, Labels, Range
from tests.refusals import refuses
from tests.runs import run

LABELS = Labels("y", ("yes",), ("no",))


def test_what_is_stated_is_scaled_to_at_most_1() -> None:
    assert parsed("no=1,yes=4", LABELS) == (0.25, 1.0) and parsed("yes=4", LABELS) == (0.25, 1.0)
    assert parsed("a=0.5, c=2", Classes("y", ("a", "b", "c"))) == (0.25, 0.5, 1.0)
    assert parsed("no=3,yes=3", LABELS) == ()  # all alike
    for bad in ("maybe=1", "no", "no=0", "no=-1", "no=nan", "no=x", "=1", ""):
        with refuses("range", "=1", setting="class_weight"):
            parsed(bad, LABELS)
    with refuses("together", "y", setting="class_weight"):
        parsed("no=1", Range("y", 0, 1))
    assert balancing([90.0, 10.0], 1.0) == pytest.approx((1 / 9, 1.0))
    assert min(balancing([1000.0, -5.0], 2.0)) == pytest.approx(0.006)  # of a count that noise drowned
    for weights in ((1.0,), (0.5, 0.5), (2.0, 1.0), (0.0, 1.0)):
        with refuses("plan"):
            Learning(method="gradient", task="logistic", lam=0.1, weights=weights)
    with refuses("together", "output", "logistic", setting="class_weight"):
        Learning(method="output", task="logistic", lam=0.1, weights=(0.5, 1.0))


def furthest(weights: tuple[float, float], norm: float) -> float:
    """How far two records' vectors lie apart in what owners send, over 2G: the largest of many pairs of records whose
    features lie along theta, where gradients are longest."""
    learning = Learning(method="gradient", task="logistic", lam=0.1)
    theta = np.array([norm, 0.0])
    loss = Weighted(LOGISTIC, weights)
    angle = np.linspace(0, 2 * np.pi, 97)
    X = np.concatenate([r * np.stack([np.cos(angle), np.sin(angle)], axis=1) for r in (0.0, 0.5, 1.0)])
    X, y = np.concatenate([X, X]), np.repeat([-1.0, 1.0], len(X))
    each = owner_gradients(loss, theta, Records(X, y), np.arange(len(X) + 1))
    each = each * METHODS["gradient"].factor(learning, theta)
    return float(np.linalg.norm(each[:, None] - each[None], axis=2).max()) / 2


@pytest.mark.parametrize("norm", [0.0, 0.5, 3.0, 20.0])
def test_no_two_weighted_gradients_lie_further_apart_than_the_noise_is_made_for(norm: float) -> None:
    for weights in ((1.0, 1.0), (0.1, 1.0), (1.0, 0.37), (1e-6, 1.0)):
        assert furthest(weights, norm) <= 1 + 1e-9, weights
    assert furthest((1.0, 1.0), norm) > 0.95  # the bound is not idle
    assert furthest((1.2, 1.2), norm) > 1.1  # and weights above 1 would break it


def test_weighted_optima_are_scikit_learns() -> None:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(300, 4))
    X /= np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True))
    lam, y = 0.05, np.where(rng.random(300) < 0.15 + 0.1 * (X[:, 0] > 0), 1.0, -1.0)
    found = solve(Weighted(LOGISTIC, (0.2, 1.0)), Records(X, y), lam).theta
    settings = {"C": 1 / (300 * lam), "fit_intercept": False, "tol": 1e-10, "max_iter": 10_000}
    theirs = LogisticRegression(class_weight={-1.0: 0.2, 1.0: 1.0}, **settings).fit(X, y)
    assert found == pytest.approx(theirs.coef_[0], abs=1e-5)
    kinds = rng.integers(0, 3, 300).astype(np.float64)
    found = solve(Weighted(SOFTMAX, (0.2, 1.0, 0.5)), Records(X, kinds), lam, classes=3).theta
    theirs = LogisticRegression(class_weight={0.0: 0.2, 1.0: 1.0, 2.0: 0.5}, **settings).fit(X, kinds)
    assert found.reshape(4, 3) == pytest.approx(theirs.coef_.T, abs=1e-4)


@pytest.mark.parametrize(
    ("target", "values"),
    [
        (LABELS, ["yes"] * 3 + ["no"] * 9),
        (Labels("y", ("1",), ("0",)), [1.0] * 3 + [0.0] * 9),
        (Labels("y", ("yes",), None), ["yes"] * 3 + ["no"] * 5 + ["never"] * 4),
        (Labels("y", ("X",), ("",)), ["X"] * 3 + [""] * 9),
    ],
)
def test_a_survey_counts_labels(target: Labels, values: list[object]) -> None:
    from dpmpc.intake.hashing import bucket

    number = isinstance(values[0], float)
    questions = Survey(("x", "y"), ()) if number else Survey(("x",), ("y",))
    texts = [(np.inf, bucket("y", str(v), questions.buckets)) if v != "" else (np.nan, -1.0) for v in values]
    y = [(v, -1.0) for v in values] if number else texts
    x = np.stack([np.arange(12.0), np.full(12, -1.0)], axis=1)
    total = questions.encode({"x": x, "y": np.array(y, dtype=np.float64)})
    assert counted(target) == "y" and list(label_counts(questions, total, target, 12)) == [9, 3]
    with refuses("unique", "y", setting="class_weight"):
        counted(Labels("y", ("2",), ("3",)))


def clinic(path: Path, n: int = 12_000) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    x = rng.normal(size=n)
    y = np.where(rng.random(n) < 1 / (1 + np.exp(3.6 - 1.5 * x)), "yes", "no")
    frame = pd.DataFrame({"x": x.round(4), "site": np.arange(n) % 3, "y": y})
    frame.to_csv(path, index=False)
    return frame


@pytest.mark.slow
def test_balanced_weights_find_the_rare_class_and_probabilities_are_corrected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DPMPC_ACCOUNT", str(tmp_path / "account"))
    frame = clinic(tmp_path / "clinic.csv")
    share = float((frame["y"] == "yes").mean())
    asked = Request(
        csv=str(tmp_path / "clinic.csv"), target="y", owners_column="site", epsilon=4.0, delta=1e-5, engine="clear",
        class_weight="balanced", data_id="clinic",
    )  # fmt: skip
    report = run(asked, tmp_path / "run")
    model = read_model(tmp_path / "run")
    assert model.weights[0] == pytest.approx(share / (1 - share), rel=0.2) and model.weights[1] == 1
    assert "y" not in [column["name"] for column in model.preprocessing["columns"]]  # counted, and no feature
    assert report["figures"]["numbers"]["sensitivity"]["estimate"] > 0.4
    assert not any("every held-out record" in text for text in report["warnings"])
    said = predict(tmp_path / "run", tmp_path / "clinic.csv").columns
    assert float(np.mean(said["probability_yes"])) == pytest.approx(share, rel=0.4)  # uncorrected: some 0.4
    threshold = model.weights[0] / (1 + model.weights[0])
    assert np.array_equal(said["y"] == "yes", said["probability_yes"] > threshold)
    with refuses("together", setting="class_weight"):
        run(Request(**vars(asked) | {"bounds": str(bounds(tmp_path)), "preprocessing": "records"}), tmp_path / "public")


def bounds(folder: Path) -> Path:
    path = folder / "bounds.json"
    path.write_text(json.dumps({"x": [-4, 4], "y": ["no", "yes"]}))
    return path


@pytest.mark.slow
def test_estimators_take_weights_as_scikit_learns_do() -> None:
    rng = np.random.default_rng(6)
    x = rng.normal(size=(6000, 1))
    y = np.where(rng.random(6000) < 1 / (1 + np.exp(3.6 - 1.5 * x[:, 0])), "yes", "no")
    settings = {"engine": "clear", "epsilon": 8.0, "delta": 1e-5}
    rare = float((y == "yes").mean())
    for weight, more in (
        ({"no": 0.06, "yes": 1.0}, {"bounds": (-4.0, 4.0), "classes": ["no", "yes"]}),
        ("no=0.06,yes=1", {"bounds": (-4.0, 4.0), "classes": ["no", "yes"]}),
        ("balanced", {"classes": ["no", "yes"]}),
    ):
        model = PrivateLogisticRegression(class_weight=weight, data_id=str(weight), **settings, **more).fit(x, y)
        assert 0.1 < np.mean(model.predict(x) == "yes") < 0.6, weight
        assert float(model.predict_proba(x)[:, 1].mean()) == pytest.approx(rare, rel=0.5)
