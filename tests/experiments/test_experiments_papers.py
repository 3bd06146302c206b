"""What the comparison rests on: CAPE, the functional mechanism, networks, surveys, blocks, and the verdicts."""

import gzip
import math
import os
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from dpmpc_experiments import attack, convergence, defaults, network, not_worth, parties, surveyed, utility
from dpmpc_experiments.figures import Dot, DotPanel, draw_dots
from dpmpc_experiments.method import Run
from dpmpc_experiments.methods import METHODS
from dpmpc_experiments.methods.cape import Sites
from dpmpc_experiments.plan import Plan
from dpmpc_experiments.records import Problem, Records
from dpmpc_experiments.summary import Curve, alike, change, curve, interval, spread
from dpmpc_experiments.task import Row, Source, Task, execute

from dpmpc.learning import erm, functional
from dpmpc.privacy.cape import collusion_factor
from dpmpc.privacy.gaussian import gaussian_epsilon, gaussian_scale
from dpmpc.privacy.literature import rajkumar_printed_root
from dpmpc.privacy.spread import logistic_spread
from dpmpc.records import load_dataset
from tests.refusals import refuses

DATA = Path(os.environ.get("DPMPC_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))
SIZES = [3, 17, 1, 30, 9]


def problem(sizes: list[int] = SIZES, d: int = 5, lam: float = 0.05, loss: erm.Loss = erm.LOGISTIC) -> Problem:
    rng = np.random.default_rng(7)
    n = sum(sizes)
    X = rng.standard_normal((n, d))
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None]
    y = np.where(rng.random(n) < 0.4, 1.0, -1.0)
    return Problem(Records("made", loss, lam, X, y, X[:10], y[:10]), rng.permutation(n), np.cumsum([0, *sizes]))


def clear(vectors: np.ndarray, law: str, scale: float) -> np.ndarray:
    assert scale == 0.0
    return np.asarray(vectors.mean(axis=0))


# --- CAPE


def test_cape_keeps_the_budget_towards_a_third_of_the_sites() -> None:
    p, run = problem([10] * 10), Run(1, 0.5, 1e-3, 7, 1.0, "tight")
    mpc = gaussian_scale(0.5, 1e-3, 2 / 100, 7)
    for name, way in (("CAPE", "cape"), ("Sites under masks", "masks"), ("Conventional", "none")):
        claim = METHODS[name].claim(p, run)
        assert claim.scale == pytest.approx(mpc * collusion_factor(10, 7, way)) and claim.true == (0.5, 1e-3)
    assert METHODS["WD-DP"].claim(p, run).scale == pytest.approx(mpc)


def test_sites_messages_are_whole_numbers_whose_zero_sum_part_cancels() -> None:
    """Deviation of the aggregate and of one site's message, 4,000 samples each at 6.5 standard errors: below 1e-9."""
    sites, vectors, scale = Sites(clear), np.zeros((5, 4000)), 0.125
    mean = sites(vectors, "gaussian", scale)
    assert sites.sent is not None and sites.sent.dtype == np.int64
    step = mean @ mean / (sites.sent.sum(axis=0) / 5.0 @ (sites.sent.sum(axis=0) / 5.0))
    message = sites.sent[2] * math.sqrt(step)
    limit = 6.5 * math.sqrt(2 / 4000)
    assert abs(mean.var() / scale**2 - 1) < limit
    assert abs(message.var() / (5 * scale) ** 2 - 1) < limit  # kappa^2 (1 - 1/S + 1/S), kappa = S scale
    assert not abs(1.3 * mean.var() / scale**2 - 1) < limit  # 30 % more would be seen
    with refuses("choice", "gaussian", "laplace"):
        sites(vectors, "laplace", 1.0)


def test_sites_add_their_vectors_up() -> None:
    rng = np.random.default_rng(1)
    vectors = rng.standard_normal((6, 3))
    got = np.mean([Sites(clear)(vectors, "gaussian", 1e-4) for _ in range(10)], axis=0)
    np.testing.assert_allclose(got, vectors.mean(axis=0), atol=6.5 * 1e-4 / math.sqrt(10))


# --- the functional mechanism


def test_functional_without_noise_is_the_quadratic_minimum_by_both_routes() -> None:
    p, run = problem(), Run(1, math.inf, 1e-3, 1, 1.0)
    want = functional.minimiser(functional.coefficients(p.records.X, p.records.y), 5, "logistic", 0.05)
    for aggregate in (None, clear):
        got = METHODS["Functional"].models(p, [run], (1, 9), aggregate)
        assert got.shape == (2, 1, 5)
        np.testing.assert_allclose(got[1, 0], want, rtol=1e-9)
    ridge = replace(p, records=replace(p.records, loss=erm.ridge(50.0)))
    got = METHODS["Functional"].models(ridge, [run], (1,))[0, 0]
    np.testing.assert_allclose(got, erm.solve(erm.ridge(50.0), p.records.X, p.records.y, 0.05).theta, atol=1e-9)


def test_functional_noise_is_that_of_one_release() -> None:
    p, run = problem(), Run(1, 0.5, 1e-3, 200, 1.0, "tight")
    claim = METHODS["Functional"].claim(p, run)
    assert claim.scale == pytest.approx(gaussian_scale(0.5, 1e-3, functional.SPREAD / 60, 1))
    pure = METHODS["Functional (Laplace)"].claim(p, run)
    assert pure.scale == pytest.approx(functional.l1_spread(5) / 60 / 0.5) and pure.true == (0.5, 0.0)
    asked: list[tuple[str, float]] = []

    def aggregate(vectors: np.ndarray, law: str, scale: float) -> np.ndarray:
        asked.append((law, scale))
        return np.asarray(vectors.mean(axis=0))

    METHODS["Functional"].models(p, [run], (1,), aggregate)
    assert asked == [("gaussian", claim.scale)]


# --- a neural network


def loss_of(net: network.Network, X: np.ndarray, y: np.ndarray) -> float:
    return float(np.mean(np.logaddexp(0.0, -y * (net.hidden(X) @ net.w))))


def test_network_gradients_are_those_of_finite_differences() -> None:
    rng = np.random.default_rng(2)
    X, y = rng.standard_normal((7, 3)) / 2, np.where(rng.random(7) < 0.5, 1.0, -1.0)
    net = network.Network.start(3, 1)
    net.w = rng.standard_normal(network.HIDDEN + 1)
    slope_W, slope_w = net.gradient(X, y, clip=1e9)
    for i, j in ((0, 0), (3, 3), (15, 1)):
        moved = [network.Network(net.W.copy(), net.w) for _ in range(2)]
        moved[0].W[i, j] += 1e-6
        moved[1].W[i, j] -= 1e-6
        assert slope_W[i, j] == pytest.approx((loss_of(moved[0], X, y) - loss_of(moved[1], X, y)) / 2e-6, abs=1e-7)
    for i in (0, 16):
        up, down = net.w.copy(), net.w.copy()
        up[i] += 1e-6
        down[i] -= 1e-6
        numeric = (loss_of(network.Network(net.W, up), X, y) - loss_of(network.Network(net.W, down), X, y)) / 2e-6
        assert slope_w[i] == pytest.approx(numeric, abs=1e-7)


def test_network_gradients_are_clipped_record_by_record() -> None:
    """Against a loop that forms every record's gradient; replacing a record moves the mean by at most 2C/n."""
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((9, 4)), np.where(rng.random(9) < 0.5, 1.0, -1.0)
    net = network.Network.start(4, 2)
    net.w = 2 * rng.standard_normal(network.HIDDEN + 1)

    def flat(rows: slice, clip: float) -> np.ndarray:
        W, w = net.gradient(X[rows], y[rows], clip)
        return np.append(W.ravel(), w)

    want = np.zeros(net.parameters)
    for i in range(9):
        own = flat(slice(i, i + 1), 1e9)
        want += own * min(1.0, 0.3 / np.linalg.norm(own)) / 9
    np.testing.assert_allclose(flat(slice(0, 9), 0.3), want, rtol=1e-10, atol=1e-14)
    before = flat(slice(0, 9), 0.3)
    X[4], y[4] = -X[4] * 3, -y[4]
    assert 0 < np.linalg.norm(flat(slice(0, 9), 0.3) - before) <= network.sensitivity(9) * 0.3


def test_a_network_learns_without_noise_and_not_with_much() -> None:
    rng = np.random.default_rng(4)
    X = rng.standard_normal((400, 3)) / 2
    y = np.where(X[:, 0] * X[:, 1] > 0, 1.0, -1.0)  # no linear model separates it
    assert network.train(X, y, 0.0, 1, 400).accuracy(X, y) > 0.8
    assert network.train(X, y, 5.0, 1, 400).accuracy(X, y) < 0.7


# --- Kang et al. as written, R&A as printed, tuned descents


def test_size_weights_are_a_trusted_centre_by_construction() -> None:
    p, run = problem(), Run(1, 0.5, 1e-3, 6, 0.5)
    centre = Problem(p.records, p.order, np.array([0, 60]))
    assert METHODS["WD-DP"].claim(p, run) == METHODS["Centralised private"].claim(centre, run)
    still = replace(run, epsilon=math.inf)
    np.testing.assert_allclose(METHODS["WD-DP"].models(p, [still], (6,)),
                               METHODS["Centralised private"].models(centre, [still], (6,)), rtol=1e-10)  # fmt: skip


def test_algorithm_1_as_written_averages_noisy_local_descents() -> None:
    p, run = problem(lam=0.3), Run(1, 0.5, 1e-3, 5, 0.5)
    method = METHODS["WD-DP (Algorithm 1)"]
    still = method.models(p, [replace(run, epsilon=math.inf)], (5,))[0, 0]
    want = np.zeros(5)
    for j in range(5):
        rows, theta = slice(p.offsets[j], p.offsets[j + 1]), np.zeros(5)
        for _ in range(5):
            theta = theta - 0.5 * erm.gradient(erm.LOGISTIC, theta, p.X[rows], p.y[rows], 0.3)
        want += SIZES[j] / 60 * theta
    np.testing.assert_allclose(still, want, rtol=1e-10)
    claim = method.claim(p, run)
    assert claim.scale == METHODS["WD-DP"].claim(p, run).scale
    assert claim.true[0] == pytest.approx(gaussian_epsilon(claim.scale, 1e-3, 2.0, 5)) and claim.true[0] > 20 * 0.5
    runs = [replace(run, seed=s, iterations=5) for s in range(400)]
    first = method.models(p, runs, (1,))[0] - method.models(p, [replace(run, epsilon=math.inf)], (1,))[0]
    weights = np.array(SIZES) / 60
    deviation = 0.5 * claim.scale * np.linalg.norm(weights)
    assert abs(first.std() / deviation - 1) < 6.5 * math.sqrt(0.5 / (400 * 5))  # false alarm below 1e-9


def test_sigma_as_printed_is_next_to_no_noise() -> None:
    p, run = problem([60]), Run(1, 2.0, 1e-3, 5, 0.5)
    printed, proved = (METHODS[name].claim(p, run).scale for name in
                       ("Rajkumar and Agarwal (printed sigma*)", "Rajkumar and Agarwal"))  # fmt: skip
    left = METHODS["Rajkumar and Agarwal"].slack(p, run)[1]  # type: ignore[attr-defined]
    assert printed == pytest.approx(rajkumar_printed_root(5, left, 1e-3) / 60) and proved > 10 * printed


@pytest.mark.parametrize(("name", "aware", "tail"), [("Descent, tail average", False, True),
                                                      ("Descent, tail average, theta", True, True),
                                                      ("Descent, last iterate, theta", True, False)])  # fmt: skip
def test_tuned_descents_are_a_plain_loop(name: str, aware: bool, tail: bool) -> None:
    p, run = problem(), Run(3, 0.5, 1e-3, 6, 0.5, "tight")
    got = METHODS[name].models(p, [run], (6,))[0, 0]
    from dpmpc_experiments.noise import generator

    rng, theta, kept = generator(3, name, 0.5, "tight"), np.zeros(5), []
    sigma = gaussian_scale(0.5, 1e-3, 2 / 60, 6)
    for _ in range(6):
        factor = logistic_spread(float(np.linalg.norm(theta))) / 2 if aware else 1.0
        slope = erm.gradient(erm.LOGISTIC, theta, p.records.X, p.records.y, 0.05)
        theta = theta - 0.5 * (slope + sigma * factor * rng.standard_normal(5))
        kept.append(theta)
    np.testing.assert_allclose(got, np.mean(kept[3:], axis=0) if tail else kept[-1], rtol=1e-9)


# --- blocks, labels, seeds


def test_blocks_are_means_over_iterations() -> None:
    source = Source("synthetic", 1, 0.1, 200, 0.5)
    task = Task("t", source, "even:5", 1, "MPC Grad P", "zcdp", (0.5,), 1e-3, 12, 1.0, (1, 2), (4, 12), block=4)
    rows = execute(task, None)
    assert len(rows) == task.rows == 2 * (2 + 3) and task.blocks == (1, 5, 9)
    single = execute(replace(task, at=tuple(range(1, 13)), block=0), None)
    for seed in (1, 2):
        mine = [r for r in rows if r["seed"] == seed and r["block"] == 4 and r["iteration"] == 5]
        each = [r for r in single if r["seed"] == seed and 5 <= float(r["iteration"]) <= 8]
        for name in ("gap", "score_loss", "score_off"):
            assert mine[0][name] == pytest.approx(np.mean([float(r[name]) for r in each]), rel=1e-12)
    assert all(float(r["score_off"]) >= abs(float(r["score_loss"])) - 1e-12 for r in rows)


def test_the_other_label_has_the_same_records(tmp_path: Path) -> None:
    """Of every twentieth record of the file, which is sorted by kind."""
    if not (DATA / "kddcup99_10pct").is_dir():
        pytest.skip(f"kddcup99_10pct is not in {DATA}")
    name = "kddcup.data_10_percent.gz"
    with gzip.open(DATA / "kddcup99_10pct" / name) as file, gzip.open(tmp_path / name, "wb", 1) as thinned:
        thinned.writelines(islice(file, None, None, 20))
    other = attack.load(tmp_path, 1, 3000, 0.2)
    usual = load_dataset("kddcup99", data_dir=tmp_path, seed=1, test_fraction=0.2, intercept=False, max_rows=3000)
    np.testing.assert_array_equal(other.X, usual.X)
    assert other.d == 122
    # all that is denial of service is an attack (-1 here); a few attacks are not denial of service
    assert ((usual.y > 0) <= (other.y < 0)).all() and 0 < np.mean((other.y < 0) & (usual.y < 0)) < 0.02


def test_every_fold_has_noise_seeds_of_its_own() -> None:
    tasks = [t for t in parties.tasks(Plan()) if t.method == "GOP" and t.source.dataset == "breast-cancer"]
    by_fold = {t.source.fold: set(t.seeds) for t in tasks}
    assert len(by_fold) == 5 and sum(map(len, by_fold.values())) == len(set().union(*by_fold.values())) == 200
    assert {t.source.intercept for t in tasks} == {False}  # d = 30


# --- verdicts


def line(*mean: float, half: float = 0.1) -> Curve:
    return Curve(tuple(float(i) for i in range(len(mean))), mean, tuple(m - half for m in mean),
                 tuple(m + half for m in mean), 9)  # fmt: skip


def test_differences_have_the_interval_of_both_sides() -> None:
    difference, half = spread(line(1.0), line(0.7, half=0.2), 0)
    assert difference == pytest.approx(0.3) and half == pytest.approx(math.hypot(0.1, 0.2))
    assert change(line(1.0, 5.0, 1.5)) == (pytest.approx(0.5), pytest.approx(math.hypot(0.1, 0.1)))
    mean, half = interval([1.0, 2.0, 3.0])
    assert mean == 2.0 and half == pytest.approx(4.302652729911275 / math.sqrt(3))
    rows: list[Row] = [{"iteration": 1, "score": v} for v in (0.99, 0.9, 1.0)]
    assert curve(rows, "score", within=(0.0, 1.0)).high[0] == 1.0 < curve(rows, "score").high[0]


def test_verdicts_of_the_poster_are_by_the_mean_ratio_over_blocks() -> None:
    assert convergence._verdict(convergence._ratios([2.0, 2.0], [1.9, 2.1])).startswith("reproduced: ratio 1.00")
    assert "factor of 2" in convergence._verdict(convergence._ratios([3.4, 3.4], [2.0, 2.0]))
    assert "factor of 2" in convergence._verdict(convergence._ratios([3.0, 0.4], [1.0, 1.0]))  # one block far off
    assert convergence._verdict(convergence._ratios([3.0, 0.4], [1.0, 1.0]), coarse=True).startswith("reproduced")
    assert convergence._ratios([1e-5, 1.0], [4e-4, 1.0], 5e-4) == (1.0, 1.0, 1.0)
    assert convergence._verdict(convergence._ratios([5.0], [1.0])).startswith("not reproduced")


def test_a_verdict_that_few_seeds_cannot_bear_is_not_given() -> None:
    printed, x = (0.05,) * 3, (0.0, 1.0, 2.0)
    wide = Curve(x, (0.3,) * 3, (0.0,) * 3, (0.7,) * 3, 5)
    sure = Curve(x, (0.3,) * 3, (0.06,) * 3, (0.7,) * 3, 5)
    assert convergence._decided(wide, printed) == "not decided: the poster lies within our interval, 0 to 0.7"
    assert convergence._decided(sure, printed).startswith("not reproduced: ratio 6.00")
    assert convergence._decided(wide, (0.3,) * 3).startswith("reproduced")


def test_an_accuracy_loss_is_decided_with_the_chance_of_the_test_records() -> None:
    x = (0.0, 1.0, 2.0)

    def loss(p: float, half: float = 0.0) -> Curve:
        return Curve(x, (p,) * 3, (p - half,) * 3, (p + half,) * 3, 5)

    assert convergence._within(loss(4e-4), 2, 1e-3) == "reproduced: 4.0e-04 +- 2.8e-04"
    assert convergence._within(loss(6.3e-4, 2e-4), 2, 1e-3).startswith("not decided: 6.3e-04 +- 4")
    assert convergence._within(loss(1.2e-3), 2, 1e-3).startswith("not decided")  # what another split gave
    assert convergence._within(loss(2.2e-3), 2, 1e-3).startswith("not reproduced")


def test_the_floor_of_accuracy_losses_is_said_with_what_it_hides() -> None:
    x = (0.0, 1.0, 2.0)

    def loss(*mean: float) -> Curve:
        return Curve(x, mean, tuple(m / 2 for m in mean), tuple(2 * m for m in mean), 5)

    assert "below" not in convergence._loss(loss(0.1, 0.01, 0.01), (0.1, 0.01, 0.01), False)
    said = convergence._loss(loss(1e-4, 1e-4, 0.01), (4e-4, 6e-4, 0.01), False)
    assert said.startswith("reproduced as far as the test records tell: ratio 0.94 (0.83 to 1); in 2 of 3 blocks")
    assert said.endswith("one is below 0.0005, as they are 0.35 (0.17 to 1)")
    near = convergence._loss(loss(4e-4, 4e-4, 0.01), (4e-4, 5e-4, 0.01), False)
    assert near.startswith("reproduced: ratio 1.00") and near.endswith("as they are 0.93 (0.8 to 1)")
    assert any("below 0.0005, 10 of 20,000 test records" in text for text in convergence._text())


def test_the_tight_calibrations_gain_is_held_against_the_theorys() -> None:
    assert convergence.THEORY == pytest.approx((1.8441 / 3.0264) ** 2, rel=1e-3)
    zcdp = Curve((0.0,), (1.0,), (0.9,), (1.1,), 10)

    def gap(mean: float) -> Curve:
        return Curve((0.0,), (mean,), (0.9 * mean,), (1.1 * mean,), 10)

    assert convergence.tight_over_zcdp(zcdp, gap(0.45)) == ("0.45 +- 0.06", "as in theory, within a factor of 1.5")
    assert convergence.tight_over_zcdp(zcdp, gap(0.7))[1] == "less, but not as in theory"
    assert convergence.tight_over_zcdp(zcdp, gap(0.95))[1] == "undecided"
    wide = Curve((0.0,), (0.32,), (-0.11,), (0.75,), 10)
    assert convergence.tight_over_zcdp(zcdp, wide)[1] == "undecided"


def test_verdicts_of_the_parties_need_more_than_their_interval() -> None:
    assert parties._better(line(0.3), line(0.5)) == "reproduced"
    assert parties._better(line(0.40), line(0.5)).startswith("undecided")
    assert parties._better(line(0.45), line(0.5)) == "not reproduced: at most 0.05 apart"
    sure = [Curve((1.0,), (y,), (y - 0.02,), (y + 0.02,), 9) for y in (0.45, 0.5)]
    assert "not reproduced: better by 0.05 +- 0.03, less than the 0.08 that" in parties._better(*sure)
    assert parties._similar(line(0.40), line(0.45)).startswith("undecided")
    close = [Curve((1.0,), (y,), (y - 0.01,), (y + 0.01,), 9) for y in (0.45, 0.46)]
    assert parties._similar(*close).startswith("reproduced")
    assert [alike(d, h, 0.03) for d, h in ((0.01, 0.01), (0.01, 0.03), (0.07, 0.03))] == ["alike", "undecided", "apart"]
    assert parties._similar(line(0.1), line(0.6)).startswith("not reproduced")
    assert parties._growth(line(0.2, 0.6), line(0.2, 0.2)) == "reproduced"
    assert "coin" in parties._growth(line(0.48, 0.5), line(0.47, 0.49))


# --- surveys and advice


def test_a_surveyed_run_scores_like_the_others_and_never_sees_the_test_records() -> None:
    columns = surveyed.load("breast-cancer", None)
    assert columns.public is not None and columns.public.shape == (569, 31) and len(columns.numbers) == 30
    for way in surveyed.WAYS:
        assert 0.6 < surveyed.score(columns, way, 4.0, 1e-4, 1, 5) <= 1.0
    # the survey is of training records alone: other test records leave the run as it is, up to their own labels
    order = np.random.default_rng([0x5CA1E, 1]).permutation(569)[:113]
    raw = {name: np.array(values) for name, values in columns.raw.items()}
    for values in raw.values():
        values[order] *= 1e6
    moved = surveyed.Columns(raw, columns.y, columns.numbers, (), None)
    rng = np.random.default_rng(0)
    train = np.random.default_rng([0x5CA1E, 1]).permutation(569)[113:]
    one, _ = surveyed._surveyed(columns, train, 4.0, 1e-4, 5, np.random.default_rng(0))
    two, _ = surveyed._surveyed(moved, train, 4.0, 1e-4, 5, rng)
    np.testing.assert_array_equal(one[train], two[train])
    with refuses("missing"):
        surveyed.score(moved, "public bounds", 4.0, 1e-4, 1, 5)


def test_the_settings_of_utility_are_those_of_the_data() -> None:
    for dataset in ("breast-cancer", "synthetic"):
        _, rows, _, _, _ = next(s for s in utility.SETTINGS if s[0] == dataset)
        data = load_dataset(dataset, data_dir=None, seed=1, max_rows=rows)
        choice = utility.advised(dataset)
        sigma = math.sqrt(choice.iterations) * gaussian_scale(2.0, 1e-5, 2 / data.n)
        assert choice.sigma == pytest.approx(sigma, rel=0.01)


def test_defaults_are_held_against_what_they_were(tmp_path: Path) -> None:
    """Runs of the program itself; verdicts by pairs, of which a shift of one deviation of 40 pairs is seen."""
    setting = defaults.Setting("breast-cancer", 4.0, file=True)
    assert all(0.75 < defaults.score(setting, way, 3) <= 1.0 for way in defaults.WAYS)
    path = defaults.write_set("diabetes", tmp_path / "d.csv")
    lines = path.read_text().splitlines()
    assert len(lines) == 443 and lines[0].startswith("age,sex,bmi") and lines[1].split(",")[0] == "59.0"
    noise = np.random.default_rng(0).normal(size=(2, 40))
    for shift, word in ((1.0, "gained"), (0.0, "equal within the interval"), (-1.0, "lost")):
        ways = {"before": list(noise[0]), "now": list(noise[1] + shift)}
        assert defaults.verdict("breast-cancer", ways)[2] == word
        if shift:
            assert defaults.verdict("diabetes", ways)[2] == {"gained": "lost", "lost": "gained"}[word]
    lost = {"a": {"before": [0.9, 0.91, 0.92], "now": [0.8, 0.81, 0.83]}}
    assert defaults.checks(lost)[0].verdict == "does not hold: lost on a"
    assert defaults.checks(lost)[0].ours == "lost on 1; the mean falls on 1, by 0.097 to 0.097"
    assert "| a | 3 | 0.910 +- 0.025 |" in "\n".join(defaults.notes(lost))


def test_scores_of_defaults_are_computed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def score(setting: defaults.Setting, way: str, seed: int) -> float:
        calls.append(seed)
        return 0.1 * seed

    monkeypatch.setattr(defaults, "score", score)
    first = defaults.compare(tmp_path, Plan(quick=True))
    assert defaults.compare(tmp_path, Plan(quick=True)) == first and calls == [1, 2, 3] * 2


def test_dot_plots_are_written(tmp_path: Path) -> None:
    dots = [Dot("a", 0.1, 0.05, 0.2, "MPC Grad P", 0.15), Dot("b", 1e-9, -1.0, 2e-9, "Pathak")]
    draw_dots(tmp_path / "d.png", [DotPanel("x", "y", dots), DotPanel("z", "y", dots, log=False)], floor=1e-5)
    assert (tmp_path / "d.png").read_bytes().startswith(b"\x89PNG")


# --- what is not worth it


def test_correlated_noise_pays_for_a_record_in_every_round() -> None:
    """|C 1|/sqrt(T) against the largest |C G|_F over all signs of the T gradients, by enumeration."""
    for beta in (-0.6, 0.3, 0.9):
        T = 8
        C = np.linalg.inv(np.eye(T) - beta * np.eye(T, k=-1))
        signs = 1 - 2 * ((np.arange(1 << T)[:, None] >> np.arange(T)) & 1)
        largest = np.linalg.norm(signs @ C.T, axis=1).max()
        assert not_worth.correlation_cost(beta, T) == pytest.approx(largest / math.sqrt(T), rel=1e-12)


def test_sampling_never_needs_less_noise_and_growing_budgets_keep_theirs() -> None:
    for q in (0.9, 0.3, 0.01):
        costs = [not_worth.sampling_cost(q, mu, 200) for mu in (0.05, 0.5, 5.0)]
        assert min(costs) >= 1.0 and costs == sorted(costs)
    noise = not_worth.growing(0.3, 16.0, 50)
    each = np.array([noise(t) for t in range(1, 51)])
    assert np.mean(1 / each**2) == pytest.approx(1 / 0.3**2) and each[0] / each[-1] == pytest.approx(4.0)


def test_every_way_that_is_not_worth_it_runs_and_the_plain_one_is_the_tuned_descent() -> None:
    p = problem([200])
    gaps = not_worth.compare(p.records, 2.0, 20, 1.0, (1, 2))
    assert len(gaps) == 1 + 4 + 3 + 2 + 2 and all(len(v) == 2 and np.isfinite(v).all() for v in gaps.values())
    still = not_worth.descend(p.records, not_worth.constant(0.0), 20, 1.0, (1,))
    run = Run(1, math.inf, 1e-3, 20, 1.0)
    model = METHODS["Descent, tail average"].models(p, [run], (20,))[0, 0]
    assert still[0] == pytest.approx(float(p.records.objective(model)) - p.records.smallest, rel=1e-9)
