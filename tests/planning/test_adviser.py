"""The adviser: what it chooses, expects and warns of; held against descents on records it has not seen."""

import json
import math
from dataclasses import replace
from typing import Literal

import numpy as np
import pytest
from click.testing import CliRunner

from dpmpc.cli.main import named
from dpmpc.learning import erm
from dpmpc.learning.lengths import CURVED, ENOUGH, GROWS, LAMS, LONGEST, STEP_SHARE
from dpmpc.learning.losses import RESIDUAL_CLIP
from dpmpc.learning.rehearsal import WIDEST, RehearsalRecords
from dpmpc.planning.adviser import (
    BETTER,
    SWAMPED,
    Advice,
    Circumstances,
    WayToRun,
    advise,
    basis,
    survey_share,
)
from dpmpc.privacy.gaussian import gaussian_scale, mu_of_budget
from dpmpc.privacy.laplace import laplace_scale
from dpmpc.privacy.spread import logistic_spread
from dpmpc.records import Dataset, load_dataset
from tests.refusals import refuses

command = named("advise")

KDD = Circumstances(1000, 100, 100_000, 123, 0.5, 1e-3)


def length(c: WayToRun) -> float:
    """How far the descent goes along a slope that stays."""
    assert c.step is not None
    return c.step * c.iterations / (1 - c.momentum)


@pytest.fixture(scope="module")
def kdd() -> Advice:
    return advise(KDD)


def test_the_advice_for_the_papers_setting(kdd: Advice) -> None:
    """n = 100,000 in 1,000 owners: as long as where there are records enough for curves."""
    choice = kdd.choice
    assert choice.method == "gradient" and choice.average == "tail" and kdd.weights == "equal"
    reach = 100_000 * mu_of_budget(0.5, 1e-3)
    assert length(choice) == pytest.approx(CURVED["logistic"] * reach / math.sqrt(123) / 0.25, rel=1e-6)
    assert choice.iterations < 260 and choice.momentum > 0.9
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


@pytest.mark.parametrize("task", ["logistic", "ridge"])
def test_the_same_records_at_any_number_of_owners_are_trained_alike(task: str) -> None:
    """By size, the sum over owners is the mean of all records and its noise is that of all records: the plan of one
    owner, but for the resolution of numbers."""
    one, *others = (
        advise(Circumstances(m, smallest, 2_000, 12, 1.0, 1e-6, task=task, columns=9))  # type: ignore[arg-type]
        for m, smallest in ((1, 2_000), (5, 400), (5, 90), (50, 40), (50, 3))
    )
    for many in others:
        assert (many.choice.method, many.choice.iterations) == (one.choice.method, one.choice.iterations)
        assert (many.survey_share, many.choice.momentum) == (one.survey_share, one.choice.momentum)
        for name in ("sigma", "step", "lam", "expected"):
            assert getattr(many.choice, name) == pytest.approx(getattr(one.choice, name), rel=1e-5), name


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
        (Circumstances(100, 360, 36_000, 104, 0.1, lam=1e-3, method="output"), "swamp the signal"),
        (Circumstances(100, 360, 36_000, 104, 0.5, method="output"), "Laplace noise pays sqrt"),
        (Circumstances(4, 60, 300, 31, 0.5, 1e-5, columns=30), "give bounds"),
        (Circumstances(4, 60, 300, 31, 5.0, 0.01), "publishing one random record"),
    ],
    ids=str,
)
def test_warnings(circumstances: Circumstances, text: str) -> None:
    assert any(text in warning for warning in advise(circumstances).warnings)


def test_the_way_out_of_laplace_noise_is_one_that_is_left() -> None:
    c = Circumstances(100, 360, 36_000, 104, 0.5, method="output", noise="laplace")
    for delta, way in ((None, "add delta"), (1e-5, "leave out law=laplace")):
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
    c = Circumstances(10, 1000, 10_000, 118, 0.5, 1e-3, lam=0.01, method="output")
    gauss, laplace = advise(c).choice, advise(replace(c, noise="laplace")).choice
    pure = advise(replace(c, delta=None)).choice
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
    stage = RehearsalRecords(10_000, "logistic", 1e-3)
    assert stage.width == WIDEST and stage.spread == pytest.approx(math.sqrt(10_000 / WIDEST))
    with refuses("range", 200, setting="method"):
        advise(Circumstances(5, 100, 500, 1000, 1.0, 1e-4, method="functional"))
    assert {c.method for c in advise(Circumstances(5, 1000, 5000, 300, 1.0, 1e-4)).alternatives} == {"output"}


def test_rehearsed_records_are_in_the_unit_ball_and_learnable() -> None:
    for task in ("logistic", "ridge"):
        stage = RehearsalRecords(30, task, 1e-3)  # type: ignore[arg-type]
        X, y = stage.data
        assert np.linalg.norm(X, axis=1).max() <= 1 + 1e-12 and np.abs(y).max() <= 1.0
        assert stage.start > 0.05 and stage.gap(stage.optimum[None])[0] == pytest.approx(0.0, abs=1e-9)
    assert RehearsalRecords(1, "logistic", 1e-3).data[0].shape == (1000, 1)


def test_a_rehearsal_is_worked_out_no_longer_than_it_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without lam a logistic optimum is the truth that it begins from; slopes in closed form are those of the loss."""
    solved, solve = list[float](), np.linalg.solve

    def counted(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        solved.append(float(np.abs(b).max()))
        return solve(a, b)

    monkeypatch.setattr(np.linalg, "solve", counted)
    stage = RehearsalRecords(9, "logistic")
    assert (stage.optimum == stage.truth).all() and len(solved) == 1
    penalised = RehearsalRecords(9, "logistic", 1e-2)
    assert not (penalised.optimum == penalised.truth).all() and len(solved) - 1 < 10
    assert solved[-1] < 1e-13  # of the slope there
    scores = penalised.data[0] @ np.random.default_rng(2).normal(size=(9, 3)) * 20
    for one in (stage, RehearsalRecords(9, "ridge")):
        assert one._slopes(scores) == pytest.approx(one._mean(one.loss.derivative, scores), abs=1e-14)


def test_length_grows_with_what_stands_against_the_noise_and_lam_falls_with_length() -> None:
    """L times a logistic length is n mu over the root of the number of features, that of ridge twice as long and more
    where records become enough for curves, whatever the residual's bound; a given lam shortens it to what is left to
    learn."""
    known = {"owners": 5, "smallest": 400, "records": 2000, "dimension": 20, "epsilon": 1.0, "delta": 1e-5}
    mu = mu_of_budget(1.0, 1e-5)
    for task, share in (("logistic", 4.0), ("ridge", 2.0)):
        for clip in (0.25, 1.0):
            c = advise(Circumstances(**known, task=task, residual_clip=clip, method="gradient")).choice  # type: ignore[arg-type]
            assert length(c) == pytest.approx(share * 2000 * mu / math.sqrt(20), rel=1e-6)
            assert c.lam == pytest.approx(max(LAMS[0], min(LAMS[1], ENOUGH / length(c))))
    many = advise(Circumstances(1, 20_000, 20_000, 20, 1.0, 1e-5, "ridge", method="gradient")).choice
    reach = 20_000 * mu
    assert 1 < reach / GROWS["ridge"] < CURVED["ridge"]
    assert length(many) == pytest.approx(2.0 * reach / GROWS["ridge"] * reach / math.sqrt(20), rel=1e-6)
    for n, L_length in ((200, 200 * mu / math.sqrt(5)), (10**6, LONGEST)):
        c = advise(Circumstances(1, n, n, 5, 1.0, 1e-5, method="gradient")).choice
        assert c.lam == pytest.approx(min(LAMS[1], ENOUGH * 0.25 / L_length))
    given = advise(Circumstances(**known, lam=0.1, method="gradient")).choice  # type: ignore[arg-type]
    assert given.lam == 0.1 and length(given) < 27


@pytest.mark.parametrize(
    ("task", "columns", "reach"), [("logistic", 10, 7000), ("ridge", 10, 1000), ("ridge", 49, 2450)]
)
def test_numbers_bend_where_records_are_enough_for_the_budget_and_the_columns(
    task: Literal["logistic", "ridge"], columns: int, reach: int
) -> None:
    n = math.ceil(reach / mu_of_budget(1.0, 1e-6))
    for records, found in ((n, "additive"), (n - 1, "linear")):
        assert basis(Circumstances(1, records, records, 1, 1.0, 1e-6, task, columns=columns)) == found


def test_momentum_makes_the_same_descent_of_fewer_releases() -> None:
    """The length stays, releases fall from n to 4 sqrt(n), and the step stays stable; what it is expected to
    miss of .46, some .002, is no other than its rehearsal's noise."""
    known = Circumstances(5, 4000, 20_000, 20, 1.0, 1e-5, method="gradient")
    fast, plain = (advise(replace(known, momentum=given)).choice for given in (None, 0.0))
    assert plain.momentum == 0 and length(fast) == pytest.approx(length(plain), rel=1e-9)
    assert fast.iterations == math.ceil(4 * math.sqrt(plain.iterations)) < plain.iterations / 5
    for c in (fast, plain):
        assert c.step is not None and c.step * (0.25 + c.lam) <= STEP_SHARE * (1 + 1e-9)
    assert fast.expected < plain.expected + 0.001 and fast.sigma < plain.sigma / 2
    given = advise(replace(known, momentum=0.5)).choice
    assert given.momentum == 0.5 and given.iterations == math.ceil(plain.iterations / 2)
    tiny = advise(replace(known, smallest=20, records=100)).choice
    assert tiny.momentum == 0 and tiny.iterations == 10


def test_output_perturbation_regularises_less_with_more_records() -> None:
    lams = [advise(Circumstances(1, n, n, 20, 1.0, 1e-5, method="output")).choice.lam for n in (50, 500, 5000, 10**6)]
    assert lams == sorted(lams, reverse=True) and lams[0] == 0.1 and lams[-1] == 1e-3
    noise = 2 / (500 * lams[1] * mu_of_budget(1.0, 1e-5))
    assert noise == pytest.approx(2 / 5)  # a coordinate of the model


def descend(data: Dataset, c: WayToRun, unit: float, aware: bool, seed: int) -> np.ndarray:
    """The tail average of a descent whose single release would have noise of `unit` a coordinate."""
    loss, sigma = loss_of(data), math.sqrt(c.iterations) * unit
    rng, theta, tail, counted = np.random.default_rng(seed), np.zeros(data.d), np.zeros(data.d), 0
    moved = np.zeros(data.d)
    assert c.step is not None
    for t in range(1, c.iterations + 1):
        factor = logistic_spread(float(np.linalg.norm(theta))) / 2 if aware else 1.0
        noise = sigma * factor * rng.standard_normal(data.d)
        moved = c.momentum * moved - c.step * (erm.gradient(loss, theta, data.X, data.y, c.lam) + noise)
        theta = theta + moved
        if 2 * t > c.iterations:
            counted += 1
            tail += (theta - tail) / counted
    return tail


def loss_of(data: Dataset) -> erm.Loss:
    return erm.LOGISTIC if data.task == "logistic" else erm.ridge(RESIDUAL_CLIP)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["breast-cancer", "diabetes", "synthetic"])
def test_the_advice_suits_the_embedded_sets_and_its_expectation_is_near(name: str) -> None:
    """Never far from 50 iterations at step 1/(L + lam), which happen to suit these small sets, in the mean loss of test
    records; and the gap of an objective with a lam of its own against what is expected of it. 12 fixed seeds, three
    budgets."""
    data = load_dataset(name, data_dir=None, seed=1, test_fraction=0.3, scale="centred")
    loss, lams = loss_of(data), [10.0**-k for k in range(1, 7)]

    def tested(theta: np.ndarray) -> float:
        return erm.objective(loss, theta, data.X_test, data.y_test, 0.0)

    def trained(theta: np.ndarray) -> float:
        return erm.objective(loss, theta, data.X, data.y, 1e-3)

    least = min(tested(erm.solve(loss, data.X, data.y, lam).theta) for lam in lams)
    best = trained(erm.solve(loss, data.X, data.y, 1e-3).theta)
    for epsilon, delta in ((0.5, 1e-4), (2.0, 1e-5), (5.0, 1e-5)):
        known = Circumstances(1, data.n, data.n, data.d, epsilon, delta, data.task, method="gradient")
        advised, penalised = (advise(c).choice for c in (known, replace(known, lam=1e-3, objective=1e-3)))
        before = replace(advised, iterations=50, step=1 / (loss.L + 1e-3), momentum=0.0, lam=1e-3)
        unit, aware = 2 * loss.G / (data.n * mu_of_budget(epsilon, delta)), data.task == "logistic"
        runs = {
            key: [descend(data, choice, unit, way, seed) for seed in range(12)]
            for key, choice, way in (("now", advised, aware), ("before", before, False), ("own", penalised, aware))
        }
        gaps = {key: np.mean([tested(model) for model in models]) - least for key, models in runs.items()}
        assert gaps["now"] <= 2 * gaps["before"], epsilon
        assert 1 / 4 < (np.mean([trained(m) for m in runs["own"]]) - best) / penalised.expected < 4, epsilon


def test_command_prints_advice_and_json() -> None:
    base = ["--owners", "5", "--total", "455", "--dimension", "31", "--epsilon", "1", "--delta", "1e-4"]
    shown = CliRunner().invoke(command, base, catch_exceptions=False).output
    assert "--method gradient" in shown and "of what there is to learn" in shown and "functional" in shown
    value = json.loads(CliRunner().invoke(command, [*base, "--json"], catch_exceptions=False).output)
    assert value["advice"]["method"] == "gradient" and len(value["alternatives"]) == 2
    assert set(value) == {"advice", "alternatives", "weights", "lam", "grid_bits", "survey_share", "warnings"}
    few = ["--owners", "5", "--total", "500", "--dimension", "10", "--epsilon", "0.3", "--delta", "1e-5"]
    turned = CliRunner().invoke(command, few, catch_exceptions=False).output
    assert "gradient is advised unless another method is expected to be clearly better: a gap below 0.6" in turned
    assert "clearly better" not in shown
    survey = CliRunner().invoke(command, [*base, "--columns", "30"], catch_exceptions=False).output
    assert "survey" in survey


def test_errors() -> None:
    with refuses("missing", setting="delta"):
        Circumstances(5, 10, 50, 3, 1.0, method="gradient")
    with refuses("enough", 50, 49):
        Circumstances(5, 10, 49, 3, 1.0)
    with refuses("enough", 5, 10, setting="total"):
        CliRunner().invoke(command, "--owners 10 --total 5 --dimension 3 --epsilon 1".split(), catch_exceptions=False)
    with refuses("missing", setting="delta"):
        advise(Circumstances(5, 10, 50, 3, 1.0, columns=2))


def test_the_advice_for_whole_owners_is_for_their_noise() -> None:
    """One owner's records together move the mean 20 times as far as one of its 20 records."""
    known = {"owners": 5, "smallest": 20, "records": 100, "dimension": 10, "epsilon": 2.0, "delta": 1e-5}
    one, all_ = (advise(Circumstances(**known, method="gradient", neighbours=each)) for each in ("record", "owner"))  # type: ignore[arg-type]
    ratio = all_.choice.sigma / math.sqrt(all_.choice.iterations) * math.sqrt(one.choice.iterations) / one.choice.sigma
    assert ratio == pytest.approx(20) and all_.choice.left > one.choice.left
