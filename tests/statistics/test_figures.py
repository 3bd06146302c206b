"""A model's figures: plain ones against scikit-learn, those of a release against the plain ones, and what they warn
of."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    brier_score_loss,
    confusion_matrix,
    precision_score,
    r2_score,
    recall_score,
    roc_auc_score,
)  # fmt: skip

from dpmpc.outcome import Number
from dpmpc.planning.request import Request
from dpmpc.records.loading import opened
from dpmpc.records.mapping import Mapping
from dpmpc.records.schema import Classes, Labels, Numeric, Range, Schema
from dpmpc.show.figures import figure_lines, without_noise
from dpmpc.statistics import figures
from dpmpc.statistics.columns import Columns
from dpmpc.statistics.evaluated import NAME, figures_of, question
from dpmpc.statistics.figures import Figures, corrected, plain, plain_one
from dpmpc.statistics.scores import ScoreModel
from dpmpc.statistics.tables import Tables

pytestmark = pytest.mark.usefixtures("small_tables")

LABELS = Labels("y", ("yes",), ("no",))
KINDS = Classes("y", ("a", "b", "c"))
X = (Numeric("x", -3, 3), Numeric("z", -3, 3))


def value(figures: Figures, name: str) -> float:
    found = figures.numbers[name].estimate
    assert found is not None
    return found


def people(n: int = 3000) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(5)
    x, z = rng.normal(size=n), rng.normal(size=n)
    return {"x": x, "z": z, "chance": rng.random(n), "other": rng.normal(size=n)}


def test_plain_figures_of_two_classes_are_scikit_learns() -> None:
    rng = np.random.default_rng(1)
    s, truth = np.round(rng.normal(size=400), 1), rng.random(400) < 0.2  # scores with ties, 0 among them
    found = plain(LABELS, s, np.where(truth, 1.0, -1.0))
    assert found is not None
    said, p = s > 0, 1 / (1 + np.exp(-s))
    expected = {
        "AUC": roc_auc_score(truth, s),
        "balanced accuracy": balanced_accuracy_score(truth, said),
        "sensitivity": recall_score(truth, said),
        "specificity": recall_score(~truth, ~said),
        "accuracy": accuracy_score(truth, said),
        "base rate": 1 - truth.mean(),
        "positive": truth.mean(),
        "Brier score": brier_score_loss(truth, p),
    }
    assert {name: value(found, name) for name in found.numbers} == pytest.approx(expected)
    table = [[cell.estimate for cell in row] for row in found.confusion]
    assert table == confusion_matrix(truth, said).tolist()
    assert sum(group.records for group in found.calibration) == 400
    assert sum(g.records * g.predicted for g in found.calibration) == pytest.approx(p.sum())
    assert found.rule == "'yes' is said where its probability is above 0.5" and not found.inside


def test_plain_figures_of_classes_and_of_numbers_are_scikit_learns() -> None:
    rng = np.random.default_rng(2)
    s, y = rng.normal(size=(300, 3)), rng.integers(0, 3, 300)
    found = plain(KINDS, s, y.astype(np.float64))
    assert found is not None
    said = s.argmax(axis=1)
    p = np.exp(s) / np.exp(s).sum(axis=1, keepdims=True)
    assert value(found, "balanced accuracy") == pytest.approx(balanced_accuracy_score(y, said))
    for k, name in enumerate(KINDS.names):
        each = {what: found.by_class[name][what].estimate for what in ("recall", "precision", "AUC")}
        expected = {
            "recall": recall_score(y == k, said == k),
            "precision": precision_score(y == k, said == k),
            "AUC": roc_auc_score(y == k, p[:, k]),
        }
        assert each == pytest.approx(expected)
    weights = np.array([1.0, 0.5, 0.1])
    weighted, even = plain(KINDS, s, y.astype(np.float64), tuple(weights)), p / weights
    assert weighted is not None and weighted.confusion == found.confusion
    area = roc_auc_score(y == 0, even[:, 0] / even.sum(axis=1))
    assert weighted.by_class["a"]["AUC"].estimate == pytest.approx(area)
    target = Range("cost", 100.0, 300.0)
    truth = rng.uniform(-1, 1, 200)
    scores = truth / 2 + 0.1
    number = plain(target, scores, truth)
    assert number is not None
    assert value(number, "R2") == pytest.approx(r2_score(truth, scores))
    assert value(number, "rmse") == pytest.approx(100 * np.sqrt(np.mean((truth - scores) ** 2)))  # in the own unit
    assert value(number, "mean error") == pytest.approx(100 * np.mean(truth - scores))


@pytest.mark.parametrize("target", [LABELS, KINDS, Range("t", 0.0, 10.0)], ids=["two", "several", "number"])
def test_one_figure_is_that_of_all_and_of_two_classes_no_other_is_worked_out(
    target: Labels | Classes | Range, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng, two = np.random.default_rng(5), isinstance(target, Labels)
    y = np.where(rng.random(90) < 0.4, 1.0, -1.0) if two else np.arange(90.0) % 3
    s = rng.normal(size=(90, 3) if isinstance(target, Classes) else 90)
    found = plain(target, s, y)
    assert found is not None
    whole = {name: number.estimate for name, number in found.numbers.items()}
    if two:
        monkeypatch.setattr(figures, "_calibrated", None)
        monkeypatch.setattr(figures, "_of_two", None)
        whole = {"AUC": whole["AUC"]}
        assert plain_one("AUC", target, s, np.ones(90)) is None
    assert whole and {name: plain_one(name, target, s, y) for name in whole} == whole
    assert plain_one("AUC", target, s[:0], y[:0]) is None


def test_one_class_alone_has_no_auc_and_no_balanced_accuracy() -> None:
    found = plain(LABELS, np.array([0.5, -1.0]), np.array([1.0, 1.0]))
    assert found is not None and plain(LABELS, np.zeros(0), np.zeros(0)) is None
    assert all(found.numbers[name].estimate is None for name in ("AUC", "balanced accuracy", "specificity"))
    assert found.to_json()["numbers"]["AUC"]["estimate"] is None


@pytest.mark.parametrize(
    ("scores", "warned"),
    [
        ([-1.0] * 10, "says 'no' of every held-out record"),
        ([-1.0] * 8 + [1.0, -1.0], ""),  # the rare class is found in part
        ([1.0] + [-1.0] * 9, "no better than always saying the commonest class"),
        ([1.0] * 10, "says 'yes' of every held-out record"),
    ],
)
def test_a_model_that_says_one_class_for_all_is_a_warning(scores: list[float], warned: str) -> None:
    found = plain(LABELS, np.array(scores), np.array([-1.0] * 8 + [1.0, 1.0]))
    assert found is not None
    assert (warned in found.warnings[0]) if warned else not found.warnings


def test_probabilities_are_corrected_for_weights_of_classes() -> None:
    """A model of weighted records has odds w+ / w- times the true ones; the rule's threshold is where its score is
    0."""
    s = np.array([-1.0, 0.0, 2.0])
    p = corrected(LABELS, s, (0.25, 1.0))
    assert p / (1 - p) == pytest.approx(np.exp(s) / 4) and p[1] == pytest.approx(0.2)
    found = plain(LABELS, s, np.ones(3), (0.25, 1.0))
    assert found is not None and found.rule.endswith("above 0.2")
    assert value(found, "Brier score") == pytest.approx(np.mean((p - 1) ** 2))
    assert [group.predicted for group in found.calibration] == pytest.approx(p)
    several = corrected(KINDS, np.log([[2.0, 1.0, 1.0]]), (1.0, 0.5, 0.25))
    assert several == pytest.approx(np.array([[2.0, 2.0, 4.0]]) / 8)
    none = corrected(KINDS, np.log([[2.0, 1.0, 1.0]]), None)
    assert none == pytest.approx(np.array([[2.0, 1.0, 1.0]]) / 4)


def of_release(
    schema: Schema,
    theta: list[float],
    frame: dict[str, Any],
    sigma: float = 0.0,
    weights: tuple[float, ...] | None = None,
) -> tuple[Figures, Any]:
    """(the figures of the release, plain figures) of the same records and model."""
    model = ScoreModel.of(schema, theta, weights)
    tables = Tables.of(Columns.of_schema(schema), [question()], models={NAME: model})
    n = len(frame["x"])
    with opened(frame) as (table, _):
        total = tables.encode(table)[0]
        features, y = Mapping(table, schema).arrays()
    total = total + np.random.default_rng(3).normal(size=len(total)) * sigma
    s = np.asarray(features @ np.array(theta).reshape(features.shape[1], -1)).squeeze()
    return figures_of(tables, total, sigma, (n,)), plain(schema.target, s, y, weights)


def test_a_release_without_noise_has_the_plain_figures() -> None:
    own = people()
    yes = np.where(own["chance"] < 1 / (1 + np.exp(2.5 - 2 * own["x"])), "yes", "no")
    found, exact = of_release(Schema(X, LABELS), [2.5, 0.3, -1.5], {**own, "y": yes})
    assert found.inside and found.records == 3000 and found.numbers.keys() == exact.numbers.keys()
    for name in exact.numbers:
        assert value(found, name) == pytest.approx(value(exact, name), abs=0.003), name
    assert [[c.estimate for c in row] for row in found.confusion] == [[c.estimate for c in r] for r in exact.confusion]
    for group in found.calibration:  # a sound model: what is predicted is seen, within six deviations of sampling
        seen = group.observed.estimate
        assert seen is not None and abs(seen - group.predicted) < 6 * (0.25 / group.records) ** 0.5 + 0.1
    assert sum(group.records for group in found.calibration) == 3000

    found, exact = of_release(Schema(X, LABELS), [2.5, 0.3, 1.5], {**own, "y": yes}, weights=(0.1, 1.0))
    assert value(found, "Brier score") == pytest.approx(value(exact, "Brier score"), abs=0.003)
    assert found.rule == exact.rule and found.rule.endswith("above 0.0909")

    kind = np.where(own["x"] > 0.5, "a", np.where(own["z"] > 0.3, "b", "c"))
    found, exact = of_release(Schema(X, KINDS), [2, 0, -1, 0, 2, -1, 0, 0, 1], {**own, "y": kind})
    assert found.numbers.keys() == exact.numbers.keys()
    for name in exact.numbers:
        assert value(found, name) == pytest.approx(value(exact, name), abs=1e-9), name
    assert [[c.estimate for c in row] for row in found.confusion] == [[c.estimate for c in r] for r in exact.confusion]

    number = 2 * own["x"] + own["other"]
    found, exact = of_release(Schema(X, Range("y", -8, 8)), [0.6, 0.1, 0.0], {**own, "y": number})
    for name in found.numbers:
        assert value(found, name) == pytest.approx(value(exact, name), abs=1e-4), name


def test_noise_alone_does_not_hide_that_one_class_is_said() -> None:
    """All records far on one side; the cells of the other side hold noise. A false alarm of the rule, 2.5 deviations,
    is not what is tested: the draw is fixed."""
    own = people()
    yes = np.where(own["chance"] < 0.06, "yes", "no")
    found, _ = of_release(Schema(X, LABELS), [0.1, 0.1, -2.0], {**own, "y": yes}, sigma=5.0 * 2**20)
    assert "says 'no' of every held-out record, or" in found.warnings[0]
    low, high = found.numbers["AUC"].low, found.numbers["AUC"].high
    assert low is None or (high is not None and low < 0.5 < high)


@pytest.mark.parametrize(("others", "warned"), [(10.0, True), (11.0, False)])
def test_a_class_is_said_of_records_where_noise_alone_seldom_counts_so_many(others: float, warned: bool) -> None:
    """Two cells of deviation 3 add up to one of 4.24, of which 2.5 are 10.6."""
    numbers = {name: Number(0.9, 0.01, 0.88, 0.92) for name in ("AUC", "accuracy", "balanced accuracy")}
    numbers["base rate"] = Number(0.5, 0.01, 0.4, 0.6)
    confusion = [[Number(count, 3.0, 0.0, None) for count in (90.0, part)] for part in (others - 2.0, 2.0)]
    found = Figures("two", True, 200, "y", ("no", "yes"), "", numbers, {}, tuple(map(tuple, confusion)))
    assert [("says 'no' of every held-out record, or" in text) for text in found.warnings] == [True] * warned


def test_a_balanced_accuracy_is_that_of_recalls_that_are_possible() -> None:
    """Some 47 positive records, all missed, and much noise: a recall below 0 does not pull the mean below a half of the
    other one, which stood beside a sensitivity of 0 as 0.316."""
    own, seen = people(), 0
    yes = np.where(own["chance"] < 0.016, "yes", "no")
    for sigma in np.geomspace(0.1, 6, 40) * 2**20:
        found, _ = of_release(Schema(X, LABELS), [0.1, 0.1, -2.0], {**own, "y": yes}, sigma=float(sigma))
        recalls = [found.numbers[name].estimate for name in ("sensitivity", "specificity")]
        both = found.numbers["balanced accuracy"].estimate
        if both is None or None in recalls:
            continue
        odd = not all(0 <= recall <= 1 for recall in recalls if recall is not None)
        seen += odd
        if odd:
            assert both == pytest.approx(np.clip(np.array(recalls, dtype=np.float64), 0, 1).mean())
    assert seen


def test_a_run_is_compared_with_an_ordinary_pipeline_and_shown_in_a_notebook(tmp_path: Path) -> None:
    """On request, outside the guarantee: the figures are those of a pipeline that is fitted here once more."""
    from sklearn.linear_model import RidgeCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    import dpmpc
    from dpmpc.local.named_records import load

    asked = {"owners": 3, "engine": "clear", "delta": 1e-4, "iterations": 5, "baseline": True}
    made = dpmpc.train(tmp_path / "two", data="breast-cancer", **asked)
    beside = made.report["baseline"]["figures"]["numbers"]
    assert beside["AUC"]["estimate"] > 0.97 and beside["balanced accuracy"]["estimate"] > 0.9
    shown = made._repr_html_()
    assert "scikit-learn with its own scaling" in str(made) and "outside the guarantee" in str(made)
    assert all(text in shown for text in ("Calibration", "said: malignant", "Scikit-learn with", "<svg", "guarantee"))
    assert "on all columns" not in str(made)  # of a data set by name there are no others
    number = dpmpc.train(tmp_path / "number", data="diabetes", **asked)
    dataset, _ = load(Request(data="diabetes", **asked))
    fitted = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 5, 17))).fit(dataset.X, dataset.y)
    expected = r2_score(dataset.y_test, np.clip(fitted.predict(dataset.X_test), -1, 1))
    assert number.report["baseline"]["figures"]["numbers"]["R2"]["estimate"] == pytest.approx(expected, abs=1e-6)


def test_the_ordinary_pipeline_has_columns_as_the_file_has_them(tmp_path: Path) -> None:
    """A model whose bounds clip a column to nothing, beside scikit-learn on the file as it is: fitted here once more
    from the rows that the run held out."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    import dpmpc
    from dpmpc.local.surveying import owners_of_records
    from dpmpc.records.loading import opened

    rng = np.random.default_rng(4)
    x = rng.normal(size=(1500, 2)).round(6)
    y = np.where(x[:, 0] + 2 * x[:, 1] + rng.normal(size=1500) > 0, "ill", "well")
    path, bounds = tmp_path / "a.csv", tmp_path / "bounds.json"
    lines = [f"{a},{b},r{k % 2},{c}" for k, ((a, b), c) in enumerate(zip(x, y, strict=True))]
    path.write_text("\n".join(["some,other,room,y", *lines, ""]))
    bounds.write_text('{"some": [-1, 1], "other": [9, 10], "y": ["well", "ill"]}')
    asked: dict[str, Any] = {"csv": str(path), "target": "y", "positive": "ill", "owners": 3, "engine": "clear"}
    asked |= {"delta": 1e-4, "iterations": 5, "drop": ("other", "room"), "bounds": str(bounds), "figures": "plain"}
    asked["baseline"] = True
    with_both = dpmpc.train(tmp_path / "run", **asked | {"drop": ("room",)})
    found = with_both.report["baseline"]
    assert "on all columns as the records have them" in found["what"] and found["all_columns"]
    called = {name: figures for name, _, figures in without_noise(with_both.report)}
    assert called["without privacy"] == found["figures"]  # the optimum of what the run read is called otherwise
    assert called["without noise"] == with_both.report["utility"]["nonprivate"]["figures"]
    request = Request(csv=str(path), target="y", owners=3, delta=1e-4, figures="plain")
    with opened(str(path)) as (table, _):
        train, test = owners_of_records(request, table)[0]
    pipeline = make_pipeline(StandardScaler(), LogisticRegression()).fit(x[train], y[train] == "ill")
    expected = roc_auc_score(y[test] == "ill", pipeline.decision_function(x[test]))
    assert found["figures"]["numbers"]["AUC"]["estimate"] == pytest.approx(expected, abs=0.005)
    alone = dpmpc.train(tmp_path / "alone", **asked).report["baseline"]["figures"]["numbers"]["AUC"]["estimate"]
    assert alone < expected - 0.1  # what was left out as asked is left out here


def test_what_noise_hides_is_said_to_be_unknown() -> None:
    """Some 20 positive records and more noise than that: no point estimate stands for a guess, and a warning says why.
    With little noise nothing of it is said."""
    own, said = people(), []
    yes = np.where(own["chance"] < 0.007, "yes", "no")
    for sigma in (0.01, 3.0):
        found, _ = of_release(Schema(X, LABELS), [2.5, 0.3, -1.5], {**own, "y": yes}, sigma=sigma * 2**20)
        report = {"figures": found.to_json(), "owner_sizes": [9000]}
        said.append((dict(figure_lines(report)), [text for text in found.warnings if "noise hides how well" in text]))
    (known, quiet), (hidden, warned) = said
    assert known["AUC"][0] == "0" and not quiet
    assert hidden["AUC"] in ("not known (noise hides it)", "no estimate") and len(warned) == 1
    assert "sensitivity 0" not in hidden["balanced accuracy"]
