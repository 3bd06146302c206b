"""Private preprocessing: cells against a loop, the sensitivity attained, moments exact, noise that does no harm."""

import math

import numpy as np
import pytest

from dpmpc.errors import UsageError
from dpmpc.learning import survey as sv
from dpmpc.learning.survey import CELLS, HIGHEST, LOWEST, MOMENT, NUMBER, OCTAVES, Survey, bucket, cell_of
from dpmpc.learning.survey_columns import Hashed, MissingNumber, features, transform

EDGES = [0.0, -0.0, 1.0, -1.0, 2.0, 1.9999999, -3.5, 5e-324, -1e-300, 2.0**LOWEST, 2.0**LOWEST * 0.999, 1e300, -1e300,
         2.0**HIGHEST, 2.0**HIGHEST - 1, 255.0, 256.0, float("nan"), 6.02e11]  # fmt: skip


def slow_cell(v: float) -> tuple[int, float]:
    """The cell and the place in it, by comparing with powers of two one after another."""
    if math.isnan(v):
        return 0, 0.0
    if abs(v) < 2.0**LOWEST:
        return 1, 0.0
    k = LOWEST
    while k + 1 < HIGHEST and abs(v) >= 2.0 ** (k + 1):
        k += 1
    size = min(abs(v), math.nextafter(2.0**HIGHEST, 0.0))
    return 2 + (k - LOWEST) + (OCTAVES if v > 0 else 0), 2 * (size / 2.0**k - 1) - 1


def test_cells_are_those_of_a_loop_over_powers_of_two() -> None:
    values = np.array([*EDGES, *np.random.default_rng(0).standard_normal(200) * 1e3])
    cell, t = cell_of(values)
    for v, c, place in zip(values, cell, t, strict=True):
        assert (int(c), float(place)) == (slow_cell(v)[0], pytest.approx(slow_cell(v)[1], abs=1e-12)), v
    assert cell.min() == 0 and cell.max() < CELLS and np.abs(t).max() <= 1


def one(survey: Survey, **values: object) -> np.ndarray:
    columns = {k: np.array([v]) if isinstance(v, float) else np.array([v], dtype=np.bytes_) for k, v in values.items()}
    return survey.encode(columns)  # type: ignore[arg-type]


def test_owners_vectors_add_up_to_that_of_all_records() -> None:
    rng = np.random.default_rng(1)
    survey = Survey(("a", "b"), ("c",), buckets=16)
    columns = {"a": rng.standard_normal(50), "b": np.where(rng.random(50) < 0.2, np.nan, 7.0),
               "c": rng.choice(np.array([b"x", b"y", b""], dtype=np.bytes_), 50)}  # fmt: skip
    parts = [survey.encode({k: v[s] for k, v in columns.items()}) for s in (slice(0, 20), slice(20, 50))]
    np.testing.assert_allclose(sum(parts), survey.encode(columns), atol=1e-12)
    assert len(parts[0]) == survey.coordinates == 2 * NUMBER + 17
    single = [one(survey, a=float(columns["a"][i]), b=float(columns["b"][i]), c=columns["c"][i]) for i in range(50)]
    np.testing.assert_allclose(np.sum(single, axis=0), survey.encode(columns), atol=1e-12)


def test_the_sensitivity_is_attained_in_the_limit_and_never_exceeded() -> None:
    survey = Survey(("a", "b"), ("c", "d"), buckets=64)
    top = math.nextafter(2.0, 0.0)
    first = one(survey, a=top, b=-top, c=b"red", d=b"")
    second = one(survey, a=-top * 2, b=top * 8, c=b"blue", d=b"round")
    assert bucket("c", np.array([b"red"]), 64) != bucket("c", np.array([b"blue"]), 64)
    assert np.linalg.norm(first - second) == pytest.approx(survey.spread, rel=1e-12)
    assert survey.spread == pytest.approx(math.sqrt(9 / 4 * 2 + 2 * 2))
    rng = np.random.default_rng(2)
    values = np.concatenate([EDGES, rng.standard_normal(40) * 10.0 ** rng.integers(-3, 6, 40)])
    rows = [one(Survey(("a",)), a=float(v)) for v in values]
    apart = max(float(np.linalg.norm(p - q)) for p in rows for q in rows)
    assert apart <= Survey(("a",)).spread and max(np.linalg.norm(r) for r in rows) <= Survey(("a",)).norm


def test_without_noise_mean_and_deviation_are_exact() -> None:
    rng = np.random.default_rng(3)
    made = {"age": rng.integers(18, 90, 500).astype(float), "year": rng.integers(1995, 2024, 500).astype(float),
            "flag": (rng.random(500) < 0.3) * 1.0, "loss": rng.standard_normal(500) * 40}  # fmt: skip
    made["gap"] = np.where(rng.random(500) < 0.4, np.nan, made["age"] / 7)
    survey = Survey(tuple(made))
    found = survey.findings(survey.encode(made), 500, 0.0).numbers
    for name, values in made.items():
        assert found[name].mean == pytest.approx(np.nanmean(values), rel=1e-9), name
        assert found[name].deviation == pytest.approx(np.nanstd(values), rel=1e-6), name
        assert found[name].low <= np.nanmin(values) and np.nanmax(values) <= found[name].high
    assert [name for name in made if found[name].missing] == ["gap"]


def noisy(survey: Survey, columns: dict[str, np.ndarray], n: int, sigma: float, seed: int) -> sv.Findings:
    total = survey.encode(columns)  # type: ignore[arg-type]
    return survey.findings(total + sigma * np.random.default_rng(seed).standard_normal(len(total)), n, sigma)


def test_with_noise_of_a_fiftieth_of_the_records_columns_keep_their_scale() -> None:
    """20 seeds: means within half a deviation, deviations within a factor of 2; no cell beyond the next is taken up."""
    rng = np.random.default_rng(4)
    columns = {"age": rng.integers(18, 90, 2000).astype(float), "flag": (rng.random(2000) < 0.3) * 1.0,
               "income": rng.lognormal(10, 0.6, 2000), "change": rng.standard_normal(2000) * 40}  # fmt: skip
    for seed in range(20):
        found = noisy(Survey(tuple(columns)), columns, 2000, 40.0, seed).numbers
        for name, values in columns.items():
            deviation = float(np.std(values))
            assert abs(found[name].mean - np.mean(values)) < 0.5 * deviation, (seed, name)
            assert 0.5 * deviation < found[name].deviation < 2 * deviation, (seed, name)
            assert found[name].high <= 2 ** (1 + math.ceil(math.log2(values.max() + 1)))


def test_a_constant_column_is_not_blown_up_and_nothing_is_invented_from_noise() -> None:
    for seed in range(10):
        constant = noisy(Survey(("k",)), {"k": np.full(2000, 1500.0)}, 2000, 40.0, seed).numbers["k"]
        assert abs(constant.mean - 1500) < 250 and constant.deviation > 5
        absent = noisy(Survey(("k",)), {"k": np.full(2000, np.nan)}, 2000, 40.0, seed).numbers["k"]
        assert absent.missing and math.isfinite(absent.deviation) and absent.deviation > 0


def test_buckets_above_the_threshold_are_kept() -> None:
    rng = np.random.default_rng(5)
    texts = rng.choice(np.array([b"often", b"also", b"", b"rare"], dtype=np.bytes_), 3000, p=[0.6, 0.3, 0.09, 0.01])
    survey = Survey((), ("c",), buckets=128)
    exact = survey.findings(survey.encode({"c": texts}), 3000, 0.0).categories["c"]
    assert len(exact.kept) == 3 and exact.missing
    alarms = 0
    for seed in range(30):
        kept = noisy(survey, {"c": texts}, 3000, 30.0, seed).categories["c"]
        wanted = {int(b) for b in bucket("c", np.array([b"often", b"also"]), 128)}
        assert wanted <= set(kept.kept)
        alarms += len(set(kept.kept) - wanted - {int(bucket("c", np.array([b"rare"]), 128)[0])})
    # 30 x FALSE_ALARMS = 0.03 expected: three or more have probability 5e-6 for these fixed seeds
    assert alarms < 3


def test_features_and_rows() -> None:
    columns = {"a": np.array([1.0, np.nan, 3.0, 2.0] * 50), "c": np.array([b"x", b"y", b"", b"x"] * 50)}
    survey = Survey(("a",), ("c",), buckets=32)
    made = features(survey.findings(survey.encode(columns), 200, 0.0))
    assert [type(column).__name__ for column in made] == ["Numeric", "MissingNumber", "Hashed"]
    X = transform(made, columns)
    assert X.shape == (200, 1 + 1 + 3 + 1) and np.linalg.norm(X, axis=1).max() <= 1.0
    raw = np.empty((200, 1))
    made[0].write(columns["a"], raw)
    assert raw[1, 0] == pytest.approx(0.0, abs=1e-12)  # missing is the mean
    hashed, gone = made[2], made[1]
    assert isinstance(hashed, Hashed) and isinstance(gone, MissingNumber)
    assert hashed.missing(columns["c"]).sum() == 50 and gone.features == ("a missing",)
    out = np.empty((1, 3))
    hashed.write(np.array([b"never seen"]), out)
    assert out.sum() in (0.0, 1.0)


def test_errors() -> None:
    with pytest.raises(UsageError, match="'b' is not in the data"):
        Survey(("a", "b")).encode({"a": np.zeros(2)})
    with pytest.raises(UsageError, match="name at least one"):
        Survey(())
    with pytest.raises(UsageError, match="use the same survey"):
        Survey(("a",)).findings(np.zeros(3), 5, 1.0)
    with pytest.raises(UsageError, match="give --bounds"):
        features(Survey((), ("c",)).findings(np.zeros(257), 5, 1.0))
    assert sv.kinds(["a", "b"], ["b"]) == (("a",), ("b",))
    with pytest.raises(UsageError, match="'z' is none"):
        sv.kinds(["a"], ["z"])


def test_moments_fit_the_claimed_norm() -> None:
    t = np.linspace(-1, 1, 10_001)
    assert (MOMENT**2 * (t**2 + (1.5 * t**2 - 0.5) ** 2)).max() == pytest.approx(2 * MOMENT**2)
