"""Answers without noise against pandas; intervals with noise against what they claim."""

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import chdtrc, ndtri
from sklearn.isotonic import isotonic_regression

from dpmpc.outcome import Answer, Level
from dpmpc.records.loading import opened
from dpmpc.statistics import intervals
from dpmpc.statistics.chi_square import chi_square_tail
from dpmpc.statistics.columns import Columns
from dpmpc.statistics.intervals import Pair, linear, quadratic, ratio, share
from dpmpc.statistics.kinds import survival
from dpmpc.statistics.layout import Unit
from dpmpc.statistics.quantile import isotonic, leaves, quantile, rank_variances
from dpmpc.statistics.tables import Tables
from tests.refusals import refuses

BOUNDS: dict[str, Any] = {
    "sex": ["F", "M"], "ward": ["a", "b", "c"], "age": [18.0, 90.0], "dose": [-2.0, 4.0], "gain": [0.0, 99999.0],
}  # fmt: skip
COLUMNS = Columns.of_bounds(BOUNDS)


def frame(n: int = 4000, seed: int = 1) -> pd.DataFrame:
    """Messy records: unknown levels, missing values, numbers beyond the bounds."""
    rng = np.random.default_rng(seed)
    ward = rng.choice(["a", "b", "c", "d", None], n, p=[0.5, 0.3, 0.1, 0.05, 0.05])
    age = np.where(rng.random(n) < 0.05, np.nan, np.rint(rng.gamma(9, 5, n)))
    return pd.DataFrame({
        "sex": rng.choice(["F", "M", None], n, p=[0.6, 0.35, 0.05]),
        "ward": ward,
        "age": age,
        "dose": rng.normal(1, 1, n) + np.where(ward == "b", 0.4, 0.0),
        "gain": np.where(rng.random(n) < 0.9, 0.0, rng.lognormal(8, 1, n)),
        "hospital": rng.integers(0, 3, n),
    })  # fmt: skip


def total_of(tables: Tables, records: pd.DataFrame) -> np.ndarray:
    with opened(records) as (table, _):
        return tables.encode(table, 'CAST("hospital" AS INTEGER)', 3).sum(axis=0)


def exact(records: pd.DataFrame, *asked: str) -> tuple[Answer, ...]:
    """The answers without noise."""
    tables = Tables.of(COLUMNS, asked)
    return tables.answers(total_of(tables, records), 0.0, records["hospital"].value_counts().tolist())


def values(answer: Answer, statistic: str) -> dict[tuple[str, ...], float]:
    return {
        line.labels: line.number.estimate
        for line in answer.lines
        if line.statistic == statistic and line.number.estimate is not None
    }


def test_counts_and_tables_are_those_of_pandas() -> None:
    records = frame()
    count, table, women, hist = exact(
        records, "count by sex", "table(ward) by sex", "table(ward) where sex = F and dose in 0..2",
        "hist(age, cuts=[18, 40, 60, 90])",
    )  # fmt: skip
    sex = records["sex"].fillna("(missing)")
    ward = records["ward"].fillna("(missing)").replace("d", "(other)")
    by_sex = sex.value_counts()
    assert values(count, "count") == pytest.approx({("F",): by_sex["F"], ("M",): by_sex["M"], ("(other)",): 0,
                                                    ("(missing)",): by_sex["(missing)"]})  # fmt: skip
    crossed = pd.crosstab(sex, ward)
    for (s, w), number in values(table, "count").items():
        assert number == pytest.approx(crossed.get(w, {}).get(s, 0), abs=1e-6)
    for (s, w), percent in values(table, "percent").items():
        if s in by_sex and w in crossed:
            assert percent == pytest.approx(100 * crossed[w][s] / by_sex[s])
    chosen = ward[(records["sex"] == "F") & records["dose"].between(0, 2)].value_counts()
    assert values(women, "count") == pytest.approx({(w,): chosen.get(w, 0) for w in ("a", "b", "c", "(other)",
                                                                                     "(missing)")})  # fmt: skip
    cut = pd.cut(records["age"], [-np.inf, 18, 40, 60, 90.000001, np.inf], right=False).value_counts(sort=False)
    assert list(values(hist, "count").values()) == pytest.approx([*cut, records["age"].isna().sum()])


def test_moments_and_quantiles_are_those_of_pandas() -> None:
    records = frame()
    mean, sd, median, part, narrow = exact(
        records, "mean(age) by sex", "sd(age) by sex", "median(age, leaves=1024) by sex", "quantiles(dose, 0.1, 0.9)",
        "mean(dose) where dose in 0..1",
    )  # fmt: skip
    groups = records["age"].clip(18, 90).groupby(records["sex"].fillna("(missing)"))
    for found, known, close in ((mean, groups.mean(), 1e-3), (sd, groups.std(), 2e-3)):
        for (sex,), number in values(found, found.question.split("(")[0]).items():
            if sex in known:
                assert number == pytest.approx(known[sex], abs=close)
    for (sex,), number in values(median, "median").items():
        if sex in groups.groups:
            lowest = np.quantile(groups.get_group(sex).dropna(), 0.5, method="inverted_cdf")
            assert abs(number - lowest) <= 72 / 1024
    for (q,), number in zip([(0.1,), (0.9,)], [line.number.estimate for line in part.lines], strict=True):
        lowest = np.quantile(records["dose"].clip(-2, 4), q, method="inverted_cdf")
        assert number is not None and abs(number - lowest) <= 6 / 256
    inside = records["dose"][records["dose"].between(0, 1)]
    assert values(narrow, "mean")[()] == pytest.approx(inside.mean(), abs=1e-4)


def test_table1_has_every_column_and_level() -> None:
    (found,) = exact(frame(), "table1 by sex")
    assert found.headers == ("sex", "column", "level") and found.grouped
    names = {line.labels[1] for line in found.lines}
    assert names == {"ward", "age", "dose", "gain"}
    parts = values(found, "percent")
    for sex in ("F", "M", "(missing)"):
        assert sum(v for (s, c, _), v in parts.items() if s == sex and c == "ward") == pytest.approx(100)


# -- least squares -----------------------------------------------------------------------------------------------------
def test_shared_margins_agree_and_are_those_of_ordinary_least_squares() -> None:
    """Against the normal equations over all cells of three tables, written out."""
    asked = ("table(ward) by sex", "table(sex, age, bins=2) weight=3", "table(ward)")
    tables = Tables.of(COLUMNS, asked)
    rng = np.random.default_rng(4)
    total = rng.normal(0, 1e6, tables.layout.dimension)
    found = tables.answers(total, 5e5, (50, 60))
    by_sex, by_age, ward = (values(a, "count") for a in found)
    for s in ("F", "M", "(other)", "(missing)"):
        margin = [sum(v for k, v in t.items() if k[0] == s) for t in (by_sex, by_age)]
        assert margin[0] == pytest.approx(margin[1], abs=1e-6)
    assert sum(ward.values()) == pytest.approx(110, abs=1e-6)
    # the full table sex x ward x age is the unknown; every block sums it
    shape, rows, right, weight = (4, 5, 5), [], [], []
    cells = np.arange(100).reshape(shape)
    from dpmpc.statistics.opened import Opened

    opened_ = Opened(tables.layout, total, 5e5, (50, 60))
    sizes = {"sex": 0, "ward": 1, "age": 2}
    for block in tables.layout.blocks:
        kept = tuple(sizes[axis.name] for axis in block.axes)
        flat = np.moveaxis(cells, kept, range(len(kept))).reshape(*[shape[k] for k in kept], -1)
        for place, value in zip(np.ndindex(flat.shape[:-1]), opened_.raw(block)[:, 0], strict=True):
            row = np.zeros(100)
            row[flat[place]] = 1
            rows.append(row)
            right.append(value)
            weight.append(1 / opened_.deviation(block))
    rows.append(np.ones(100))
    right.append(110.0)
    weight.append(1e7)
    w = np.array(weight)
    solution = np.linalg.lstsq(np.array(rows) * w[:, None], np.array(right) * w, rcond=None)[0].reshape(shape)
    assert np.array(list(by_sex.values())).reshape(4, 5) == pytest.approx(solution.sum(axis=2), abs=1e-3)
    assert np.array(list(ward.values())) == pytest.approx(solution.sum(axis=(0, 2)), abs=1e-3)


def test_tree_least_squares_are_those_of_the_normal_equations() -> None:
    size, rng = 16, np.random.default_rng(2)
    rows = [np.repeat(np.eye(1 << level), size >> level, axis=1) for level in range(5)]
    A = np.concatenate(rows)
    y = rng.normal(size=(3, 31))
    assert leaves(y) == pytest.approx(y @ np.linalg.pinv(A).T)
    covariance = np.linalg.inv(A.T @ A)
    for q in (0.0, 0.3, 0.5):
        ranks = np.tril(np.ones((17, 16)), -1) - q
        assert rank_variances(size, q) == pytest.approx(np.diag(ranks @ covariance @ ranks.T))


# -- intervals ---------------------------------------------------------------------------------------------------------
TRIALS = 4000
# 95 % of 4,000 trials: below 92.7 % or above 97.0 % with probability 1e-9 each (binomial tails)
LOW, HIGH = 0.927, 0.970


def covered(numbers: list[Any], truth: float) -> float:
    kept = [number for number in numbers if number.estimate is not None]
    assert len(kept) == len(numbers)
    return float(np.mean([number.low <= truth <= number.high for number in kept]))


def test_ratios_cover_however_noisy_the_denominator_is() -> None:
    rng = np.random.default_rng(1)
    a, b = 10 * rng.normal(size=TRIALS), 20 * rng.normal(size=TRIALS)
    found = [ratio(Pair(60 + x, 200 + y, 100.0, 0.0, 400.0), Level()) for x, y in zip(a, b, strict=True)]
    assert LOW < covered(found, 0.3) < HIGH
    wrong = [ratio(Pair(60 + x, 200 + y, 60.0, 0.0, 400.0), Level()) for x, y in zip(a, b, strict=True)]
    assert covered(wrong, 0.3) < LOW  # the noise of A stated 23 % too small
    near = [ratio(Pair(30 + x, 100 + y, 100.0, 0.0, 400.0), Level()) for x, y in zip(a, b, strict=True) if y > -60]
    assert LOW < covered(near, 0.3) < 0.99
    assert ratio(Pair(30, 30, 100, 0, 400), Level()).estimate is None


def test_ratios_hold_the_truth_among_those_that_are_shown_because_noise_raised_the_count() -> None:
    rng = np.random.default_rng(1)
    deviation, truth = 2.0, 0.9  # four cells, of which the part is one; B is one deviation of its noise
    part, rest = rng.normal(size=24000), np.sqrt(3) * rng.normal(size=24000)
    pairs = [Pair(truth * deviation + a, deviation + a + b, 1.0, 1.0, 4.0) for a, b in zip(part, rest, strict=True)]
    shown = [(pair, found) for pair in pairs if (found := share(pair, Level())).estimate is not None]
    assert 3400 < len(shown) < 4600  # of binomial(24000, .169), to 8 deviations
    kept = [found for _, found in shown]
    assert covered(kept, truth) > LOW
    assert sum(found.note == "conservative" for found in kept) > len(kept) / 2
    fieller = [intervals._fieller(pair, Level().z) for pair, _ in shown]
    assert np.mean([ends is not None and ends[0] <= truth <= ends[1] for ends in fieller]) < 0.9
    plain = Pair(50.0, 100.0, 1.0, 1.0, 4.0)
    far = share(plain, Level())
    assert far.note == "" and (far.low, far.high) == pytest.approx(intervals._fieller(plain, Level().z))


def test_points_of_a_curve_hold_the_truth_among_those_that_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 70 at risk, seven deviations of their noise, 63 die; a point is shown if noise makes them eight. It holds the
    truth in .979 of some 1,260 that are shown, and in .744 if it is no wider: each is 12 deviations from the limit."""

    def shown() -> list[Any]:
        rng, found = np.random.default_rng(2), []
        for deaths, left, beyond, more in 5 * rng.normal(size=(8000, 4)):
            gone = np.array([left, 7 + beyond + more])
            found += survival.survival(np.array([63 + deaths]), gone, 5.0, 1, Level())
        return [point for point in found if point.estimate is not None]

    assert len(shown()) > 1000 and covered(shown(), 0.1) > LOW
    monkeypatch.setattr(survival, "WIDER", 0.0)
    assert covered(shown(), 0.1) < 0.9


def test_score_intervals_of_small_shares_of_a_population_cover_and_wald_ones_do_not() -> None:
    rng = np.random.default_rng(3)
    n, p, noise = 2000, 0.006, 1.5
    a = rng.binomial(n, p, TRIALS) + noise * rng.normal(size=TRIALS)
    found = [share(Pair(x, n, noise**2, 0.0, 0.0), Level(about="population")) for x in a]
    assert LOW < covered(found, p) < 0.98
    naive = [linear(x / n, max(x, 0.0) / n**2, Level()) for x in a]
    assert covered(naive, p) < 0.9


def test_quadratic_forms_are_unbiased_and_their_variance_is_known() -> None:
    rng = np.random.default_rng(5)
    mean, covariance = np.array([100.0, 20.0, -30.0]), np.diag([9.0, 16.0, 4.0])
    A, B = np.array([[0.5, 0, 0.5], [0, -1, 0], [0.5, 0, 0.0]]), np.diag([1.0, 0, 0])
    A = (A + A.T) / 2
    pairs = [quadratic(mean + rng.normal(size=3) * [3, 4, 2], covariance, A, B) for _ in range(TRIALS)]
    a = np.array([p.a for p in pairs])
    true = 4 * mean @ A @ covariance @ A @ mean + 2 * np.trace(A @ covariance @ A @ covariance)
    assert abs(a.mean() - mean @ A @ mean) < 6.1 * np.sqrt(true / TRIALS)
    assert np.mean([p.first for p in pairs]) == pytest.approx(true, rel=0.02)
    assert np.var(a) == pytest.approx(true, rel=0.15)
    theta = mean @ A @ mean / (mean @ B @ mean)
    assert LOW < covered([ratio(p, Level()) for p in pairs], theta) < HIGH


def test_quantiles_cover_and_are_conservative_where_leaves_are_wide() -> None:
    rng = np.random.default_rng(6)
    values = np.sort(rng.beta(2, 3, 3000))
    leaf = np.minimum((values * 256).astype(int), 255)
    nodes = np.concatenate([np.bincount(leaf >> (8 - level), minlength=1 << level) for level in range(9)]).astype(float)
    truth = values[1499]
    found = [quantile(nodes + 40 * rng.normal(size=511), 40.0, 0.5, Level()) for _ in range(1500)]
    assert covered(found, truth) > 0.93 and all(n.note == "conservative" for n in found)
    wide = np.mean([n.high - n.low for n in found])
    assert 0.01 < wide < 0.15
    assert quantile(nodes * 0 + 3, 40.0, 0.5, Level()).estimate is None


def test_simultaneous_intervals_are_wider_and_what_cannot_be_is_refused() -> None:
    assert Level().z == pytest.approx(1.959964) and Level(answers=728).z == pytest.approx(3.98, abs=0.01)
    with refuses("range", 0.5, 0.2):
        Level(confidence=0.2)
    tables = Tables.of(COLUMNS, ["table(sex)"])
    total = np.zeros(tables.layout.dimension)
    alone, together = (tables.answers(total, 1e6, (9,), Level(answers=k))[0].lines[0].number for k in (1, 0))
    assert together.high - 2.25 > (alone.high - 2.25) * 1.3  # type: ignore[operator]
    with refuses("shape", 4, "(3,)"):
        tables.answers(total[1:], 1.0, (9,))


def test_a_promise_that_hides_the_number_of_records_opens_it_with_noise() -> None:
    records = frame(500)
    for kind, known in (("record", True), ("owner", True), ("presence", False), ("person", False)):
        tables = Tables.of(COLUMNS, ["count", "table(sex)"], Unit(kind))  # type: ignore[arg-type]
        total = total_of(tables, records) + np.random.default_rng(1).normal(0, 3e6, tables.layout.dimension)
        number = tables.answers(total, 3e6, (100, 200, 200))[0].lines[0].number
        assert (number.estimate == pytest.approx(500, abs=1e-9) and number.noise == 0) == known


def test_answers_are_json() -> None:
    tables = Tables.of(COLUMNS, ["mean(age) by sex"])
    found = tables.answers(np.zeros(tables.layout.dimension), 1e5, (10,))
    assert all(line.number.estimate is None for line in found[0].lines)
    json.dumps([line.labels for line in found[0].lines])


def test_pooling_neighbours_is_isotonic_regression() -> None:
    rng = np.random.default_rng(5)
    for size in (1, 2, 9, 257):
        for values in (
            rng.normal(size=size),
            np.cumsum(rng.normal(0.2, 1, size)),
            -np.arange(size) * 1.0,
            np.ones(size),
        ):
            assert np.allclose(isotonic(values), isotonic_regression(values), rtol=1e-12, atol=1e-12)


def test_the_tail_of_chi_square_is_scipys() -> None:
    for degrees in range(1, 12):
        for x in (0.0, 1e-9, 0.3, 2.0, 17.0, 300.0):
            assert chi_square_tail(x, degrees) == pytest.approx(chdtrc(degrees, x), rel=1e-10)


def test_the_reach_of_intervals_is_the_normal_laws_quantile() -> None:
    for confidence in (0.5, 0.95, 1 - 1e-9):
        for answers in (1, 37, 10_000):
            tail = (1 - confidence ** (1 / answers)) / 2
            assert Level(confidence, answers=answers).z == pytest.approx(-ndtri(tail), rel=1e-12)
