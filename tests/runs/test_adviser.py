"""The adviser: what it chooses, expects and warns of; held against descents on records it has not seen."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

from dpmpc.cli.advise import command
from dpmpc.data import Dataset, load_dataset
from dpmpc.errors import UsageError
from dpmpc.learning import erm
from dpmpc.learning.rehearsal import WIDEST, Stage
from dpmpc.privacy.gaussian import gaussian_scale, mu_of_budget
from dpmpc.privacy.laplace import laplace_scale
from dpmpc.privacy.spread import logistic_spread
from dpmpc.runs.adviser import BETTER, SWAMPED, Advice, Circumstances, advise, survey_share

KDD = Circumstances(1000, 100, 100_000, 123, 0.5, 1e-3)


@pytest.fixture(scope="module")
def kdd() -> Advice:
    return advise(KDD)


def test_the_advice_for_the_papers_setting(kdd: Advice) -> None:
    """n = 100,000 in 1,000 owners: descents of 1,000 to 2,600 units ."""
    choice = kdd.choice
    assert choice.method == "gradient" and choice.average == "tail" and kdd.weights == "equal"
    assert choice.step is not None and 1000 <= choice.step * choice.iterations <= 2600
    assert choice.left < 0.01 and {c.method for c in kdd.alternatives} == {"functional", "output"}
    assert choice.sigma == pytest.approx(gaussian_scale(0.5, 1e-3, 2 / 100_000, choice.iterations), rel=1e-9)
    assert all(c.expected * BETTER > choice.expected * BETTER for c in kdd.alternatives)


def test_the_same_numbers_give_the_same_advice(kdd: Advice) -> None:
    assert advise(KDD) == kdd


def test_more_records_or_a_larger_budget_never_look_worse() -> None:
    base = Circumstances(5, 400, 2000, 20, 1.0, 1e-5, method="gradient")
    gaps = [advise(replace(base, epsilon=e)).choice.expected for e in (0.2, 0.5, 1.0, 4.0)]
    assert gaps == sorted(gaps, reverse=True)
    gaps = [advise(replace(base, smallest=n // 5, records=n)).choice.expected for n in (200, 2000, 20_000)]
    assert gaps == sorted(gaps, reverse=True)


@pytest.mark.parametrize("lam", [1e-4, 1e-2, 0.5])
@pytest.mark.parametrize("task", ["logistic", "ridge"])
def test_the_step_is_stable_on_any_records(lam: float, task: str) -> None:
    choice = advise(Circumstances(3, 300, 900, 12, 1.0, 1e-4, task, lam, method="gradient")).choice  # type: ignore[arg-type]
    L = 0.25 if task == "logistic" else 1.0
    assert choice.step is not None and 0 < choice.step * (L + lam) < 2


def test_uneven_owners_are_weighed_by_size() -> None:
    advice = advise(Circumstances(3, 100, 1000, 8, 1.0, 1e-4, method="gradient"))
    assert advice.weights == "size"
    even = advise(Circumstances(2, 500, 1000, 8, 1.0, 1e-4, method="gradient"))
    assert advice.choice.expected == pytest.approx(even.choice.expected, rel=1e-9)  # size weights: n alone counts


@pytest.mark.parametrize(
    ("circumstances", "text"),
    [
        (Circumstances(1, 1, 1, 10, 1.0, 1e-5), "swamp the signal"),
        (Circumstances(5, 140, 700, 31, 0.1, 1e-5), "swamp the signal"),
        (Circumstances(5, 140, 700, 10, 0.1, 1e-4), "swamp the signal"),
        (Circumstances(100, 360, 36_000, 104, 0.5, lam=1e-3, method="output"), "swamp the signal"),
        (Circumstances(100, 360, 36_000, 104, 0.5, method="output"), "Laplace noise pays sqrt"),
        (Circumstances(4, 60, 300, 31, 0.5, 1e-5, columns=30), "give --bounds"),
        (Circumstances(4, 60, 300, 31, 5.0, 0.01), "publishing one random record"),
    ],
    ids=str,
)
def test_warnings(circumstances: Circumstances, text: str) -> None:
    assert any(text in warning for warning in advise(circumstances).warnings)


def test_the_way_out_of_laplace_noise_is_one_that_is_left() -> None:
    c = Circumstances(100, 360, 36_000, 104, 0.5, method="output", noise="laplace")
    for delta, way in ((None, "add --delta"), (1e-5, "leave out --noise laplace")):
        (text,) = (w for w in advise(replace(c, delta=delta)).warnings if "Laplace" in w)
        assert text.endswith(way)


def test_no_more_than_everything_is_missed() -> None:
    advice = advise(Circumstances(1, 1, 1, 10, 1.0, 1e-5))
    assert advice.choice.expected > advice.choice.start and advice.choice.left == 1.0
    assert any("to miss 100%" in text for text in advice.warnings)
    assert all(choice.left <= 1.0 for choice in advice.alternatives)


def test_no_warning_where_there_is_nothing_to_warn_of() -> None:
    assert advise(Circumstances(100, 360, 36_000, 104, 1.0, 1e-6)).warnings == []
    assert advise(Circumstances(5, 91, 455, 31, 1.0, 1e-4)).choice.left < SWAMPED  # README's worked example


def test_gaussian_noise_for_output_whenever_there_is_a_delta() -> None:
    """6.7 times less deviation than Laplace at d = 118, epsilon = 0.5, delta = 1e-3."""
    gauss = advise(Circumstances(10, 1000, 10_000, 118, 0.5, 1e-3, method="output")).choice
    laplace = advise(Circumstances(10, 1000, 10_000, 118, 0.5, 1e-3, method="output", noise="laplace")).choice
    pure = advise(Circumstances(10, 1000, 10_000, 118, 0.5, method="output")).choice
    assert (gauss.noise, laplace.noise, pure.noise) == ("gaussian", "laplace", "laplace")
    assert math.sqrt(2) * laplace.sigma / gauss.sigma == pytest.approx(6.7, abs=0.05)
    delta_2 = 2 / (10_000 * 0.01)
    assert laplace.sigma == pytest.approx(laplace_scale(0.5, math.sqrt(118) * delta_2))
    assert gauss.expected < laplace.expected


def test_a_surveys_share_keeps_its_counts_above_the_noise() -> None:
    c = Circumstances(4, 98, 736, 14, 2.0, 1e-5, columns=13)
    share = survey_share(c)
    spread = math.sqrt(9 / 4 * 13)
    assert spread / (mu_of_budget(2.0, 1e-5) * math.sqrt(share)) == pytest.approx(0.04 * 736)
    assert survey_share(replace(c, columns=0)) == 0.0
    assert survey_share(replace(c, smallest=10**6, records=4 * 10**6)) == 0.02
    with_survey, without = (advise(replace(c, columns=k, method="gradient")).choice.sigma for k in (13, 0))
    assert with_survey > without  # the training pays for it


def test_wide_data_are_rehearsed_as_narrower_ones() -> None:
    stage = Stage(10_000, "logistic", 1e-3)
    assert stage.width == WIDEST and stage.spread == pytest.approx(math.sqrt(10_000 / WIDEST))
    with pytest.raises(UsageError, match="at most 200 features"):
        advise(Circumstances(5, 100, 500, 1000, 1.0, 1e-4, method="functional"))
    assert {c.method for c in advise(Circumstances(5, 1000, 5000, 300, 1.0, 1e-4)).alternatives} == {"output"}


def test_rehearsed_records_are_in_the_unit_ball_and_learnable() -> None:
    for task in ("logistic", "ridge"):
        stage = Stage(30, task, 1e-3)  # type: ignore[arg-type]
        X, y = stage.data
        assert np.linalg.norm(X, axis=1).max() <= 1 + 1e-12 and np.abs(y).max() <= 1.0
        assert stage.start > 0.1 and stage.gap(stage.optimum[None])[0] == pytest.approx(0.0, abs=1e-9)
    assert Stage(1, "logistic", 1e-3).data[0].shape == (1000, 1)


def descend(
    data: Dataset, sigma: float, iterations: int, step: float, average: str, aware: bool, seed: int
) -> np.ndarray:
    loss = erm.LOGISTIC if data.task == "logistic" else erm.ridge(1.0)
    rng, theta, tail, counted = np.random.default_rng(seed), np.zeros(data.d), np.zeros(data.d), 0
    for t in range(1, iterations + 1):
        factor = logistic_spread(float(np.linalg.norm(theta))) / 2 if aware else 1.0
        noise = sigma * factor * rng.standard_normal(data.d)
        theta = theta - step * (erm.gradient(loss, theta, data.X, data.y, 1e-3) + noise)
        if 2 * t > iterations:
            counted += 1
            tail += (theta - tail) / counted
    return tail if average == "tail" else theta


@pytest.mark.slow
@pytest.mark.parametrize("name", ["breast-cancer", "diabetes", "synthetic"])
def test_the_advice_never_loses_on_the_embedded_sets_and_its_expectation_is_near(name: str) -> None:
    """Against 50 iterations at step 1/(L + lam) without knowledge of theta: 12 fixed seeds, three budgets."""
    data = load_dataset(name, data_dir=None, seed=1)
    loss = erm.LOGISTIC if data.task == "logistic" else erm.ridge(1.0)
    optimum = erm.solve(loss, data.X, data.y, 1e-3).theta
    least = erm.objective(loss, optimum, data.X, data.y, 1e-3)
    for epsilon, delta in ((0.5, 1e-4), (2.0, 1e-5), (5.0, 1e-5)):
        c = advise(Circumstances(1, data.n, data.n, data.d, epsilon, delta, data.task, method="gradient")).choice
        assert c.step is not None
        unit = 2 * loss.G / (data.n * mu_of_budget(epsilon, delta))
        gaps = []
        for iterations, step, average, aware in (
            (c.iterations, c.step, c.average, data.task == "logistic"),
            (50, 1 / (loss.L + 1e-3), "tail", False),
        ):
            models = [
                descend(data, math.sqrt(iterations) * unit, iterations, step, average, aware, s) for s in range(12)
            ]
            gaps.append(np.mean([erm.objective(loss, m, data.X, data.y, 1e-3) for m in models]) - least)
        assert gaps[0] <= 1.05 * gaps[1], epsilon
        assert 1 / 3 < gaps[0] / c.expected < 4, epsilon


def test_command_prints_advice_and_json() -> None:
    base = ["--owners", "5", "--total", "455", "--dimension", "31", "--epsilon", "1", "--delta", "1e-4"]
    shown = CliRunner().invoke(command, base, catch_exceptions=False).output
    assert "--method gradient" in shown and "of what there is to learn" in shown and "functional" in shown
    value = json.loads(CliRunner().invoke(command, [*base, "--json"], catch_exceptions=False).output)
    assert value["advice"]["method"] == "gradient" and len(value["alternatives"]) == 2
    assert set(value) == {"advice", "alternatives", "weights", "lam", "grid_bits", "survey_share", "warnings"}
    few = ["--owners", "5", "--total", "700", "--dimension", "10", "--epsilon", "0.1", "--delta", "1e-5"]
    turned = CliRunner().invoke(command, few, catch_exceptions=False).output
    assert "gradient is advised unless another method is expected to be clearly better: a gap below 0.6" in turned
    assert "clearly better" not in shown
    survey = CliRunner().invoke(command, [*base, "--columns", "30"], catch_exceptions=False).output
    assert "survey" in survey


def test_errors() -> None:
    with pytest.raises(UsageError, match="Gaussian noise needs a delta"):
        Circumstances(5, 10, 50, 3, 1.0, method="gradient")
    with pytest.raises(UsageError, match="hold at least 50; got 49"):
        Circumstances(5, 10, 49, 3, 1.0)
    with pytest.raises(UsageError, match="holds at least one record; got 5 records of 10 owners; mend --total"):
        CliRunner().invoke(command, "--owners 10 --total 5 --dimension 3 --epsilon 1".split(), catch_exceptions=False)
    with pytest.raises(UsageError, match="survey of columns without bounds needs a delta"):
        advise(Circumstances(5, 10, 50, 3, 1.0, columns=2))
