"""Statistics and audit: they pass on the exact law, reject laws that are slightly wrong, and are as powerful as stated.

Everything random here is seeded, so a run does not flicker; with other seeds it would fail with probability 1e-7.
"""

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, norm

from dpmpc.aggregation.plan.plan import Plan
from dpmpc.planning.training import Facts, plan_of
from dpmpc.privacy.composition import spending_of
from dpmpc.privacy.gaussian import delta_of_mu, gaussian_scale
from dpmpc.privacy.law import LAWS, without_failures
from dpmpc.privacy.tails import at_least, at_most
from dpmpc.verify import verification
from dpmpc.verify.audit import Trials, check_audit, epsilon_bound, mu_bound
from dpmpc.verify.canaries import Canaries, canary_plan, processes_of
from dpmpc.verify.claim import claim_of, shift_of
from dpmpc.verify.fresh import FreshReleases, in_the_clear
from dpmpc.verify.repeats import most_shared
from dpmpc.verify.scores import Sample
from dpmpc.verify.statistics import check_statistics, scale_check, variance_ratio
from dpmpc.verify.verdict import ALPHA, Check, Evidence, untested
from dpmpc.verify.verification import cases_like, clear_trials, default_cases
from tests.runs import small

SIGMA = 40_000.0


def sample(
    seed: int, *, law: str = "gaussian", m: int = 10, factor: float = 1.0, shape: tuple[int, int] = (1000, 32)
) -> Sample:
    rng = np.random.default_rng(seed)
    draw = rng.normal if law == "gaussian" else rng.laplace
    noise = np.rint(draw(0, factor * SIGMA, shape)).astype(np.int64)
    sums = rng.integers(-(10**8), 10**8, shape)
    return Sample(m, law, SIGMA, True, noise, sums, rng.random((shape[0], shape[1] - 1)) < 0.5)  # type: ignore[arg-type]


def failing(*samples: Sample) -> set[str]:
    return {name.split(" (")[0] for name in check_statistics(samples).failed}


def claimed_epsilon(plan: Plan) -> float:
    """The epsilon of one release at the plan's delta, for noise of the exact law.

    The failures of sampler and MPC are left out: far below what any audit sees, and so large in what can be proved of
    the approximate samplers that their claim would be empty.
    """
    one = spending_of(without_failures(plan.derived.mechanism))
    return one.pure if LAWS[plan.law].pure and not one.rho else one.epsilon(plan.delta)


@pytest.mark.parametrize("law", ["gaussian", "laplace"])
def test_the_claimed_law_holds(law: str) -> None:
    evidence = check_statistics([sample(k, law=law, m=m) for k, m in enumerate((2, 10, 100))])
    assert evidence.holds, evidence.failed
    assert len(evidence.checks) == evidence.tested == 3 * 16 + 3
    assert evidence.false_alarm == pytest.approx(51 * ALPHA) and evidence.false_alarm < 1e-6


@pytest.mark.parametrize("law", ["gaussian", "laplace"])
@pytest.mark.parametrize("factor", [0.0, 0.9, 1.1, math.sqrt(2), math.sqrt(10)])
def test_another_scale_is_rejected(law: str, factor: float) -> None:
    assert "scale" in failing(sample(1, law=law, factor=factor))


def test_another_law_of_the_same_variance_is_rejected() -> None:
    rng = np.random.default_rng(5)
    uniform = np.rint(rng.uniform(-1, 1, (1000, 32)) * math.sqrt(3) * SIGMA).astype(np.int64)
    assert "law" in failing(replace(sample(1), noise=uniform))
    laplace = np.rint(rng.laplace(0, SIGMA / math.sqrt(2), (1000, 32))).astype(np.int64)
    assert "law" in failing(replace(sample(1), noise=laplace))


def test_dependence_is_rejected() -> None:
    good = sample(2)
    x = good.noise.copy()
    x[:, 7] = np.rint(0.5 * x[:, 3] + math.sqrt(0.75) * x[:, 7])
    assert failing(replace(good, noise=x)) == {"coordinates independent"}
    x = good.noise.copy()
    x[1::2] = x[::2]
    assert {"releases independent", "noise never repeats"} <= failing(replace(good, noise=x))
    x = good.noise.copy()
    x[-1] = -x[0]
    assert failing(replace(good, noise=x)) == {"noise never repeats", "releases alike"}
    x = good.noise + np.rint(0.1 * SIGMA * np.sign(good.sums)).astype(np.int64)
    assert "independent of the data" in failing(replace(good, noise=x))
    x = np.where(np.abs(good.sums) > 5 * 10**7, 1.15, 0.85) * good.noise
    assert "independent of the data" in failing(replace(good, noise=np.rint(x).astype(np.int64)))
    x = good.noise.copy()
    x[:, 1:] += np.where(good.bits, 1, -1) * int(0.1 * SIGMA)
    assert "independent of the data" in failing(replace(good, noise=x))
    x = good.noise + int(0.05 * SIGMA)
    assert "mean of every part" in failing(replace(good, noise=x))


def one_off(x: Any) -> None:
    x[-1] = x[0]
    x[-1, 5] += 1


def rolled(x: Any) -> None:
    x[-1] = np.roll(x[0], 1)


def half_reused(x: Any) -> None:
    x[-1, ::2] = -x[0, 1::2]


def permuted_and_negated(x: Any) -> None:
    x[-1] = -x[0, ::-1]


@pytest.mark.parametrize("law", ["gaussian", "laplace"])
@pytest.mark.parametrize("fault", [one_off, rolled, half_reused, permuted_and_negated])
def test_one_vector_that_is_nearly_another_is_found(law: str, fault: Callable[[Any], None]) -> None:
    good = sample(9, law=law)
    x = good.noise.copy()
    fault(x)
    assert "noise never repeats" in failing(replace(good, noise=x))


def test_shared_values_are_counted_against_every_pair() -> None:
    """Oracle: the multiset intersection of every pair of rows."""
    noise = np.random.default_rng(1).integers(-6, 7, (30, 9))
    oracle = {
        (i, j): sum((Counter(np.abs(noise[i]).tolist()) & Counter(np.abs(noise[j]).tolist())).values())
        for i in range(30)
        for j in range(i + 1, 30)
    }
    most, pair = most_shared(noise)
    assert most == max(oracle.values()) == oracle[min(pair), max(pair)]
    assert most_shared(np.arange(20).reshape(4, 5)) == (0, (0, 0))
    assert most_shared(np.zeros((1000, 32), dtype=np.int64))[0] == 32


def test_every_line_says_what_it_would_miss() -> None:
    evidence = check_statistics([sample(4), sample(5, m=2)])
    assert all(check.misses for check in evidence.checks) and "somebody knows" in evidence.misses


@pytest.mark.parametrize("law", LAWS.names())
def test_the_audit_in_the_clear_runs_at_the_size_it_has_by_default(law: str) -> None:
    """As many trials as `verify --fresh` makes: more than a run of parties has releases."""
    case = default_cases(3, 1, (law,))[0]
    audit = LAWS[law].audit
    trials = clear_trials(case, audit.dimension, audit.trials, 1)
    assert len(trials.scores) >= audit.trials - audit.dimension and check_audit([trials]).holds


def test_every_line_says_what_would_make_it_fail() -> None:
    """And the scale's and the law's lines do fail there: at the stated factor, and not at the next one."""
    for law in ("gaussian", "laplace"):
        good = sample(4, law=law)
        evidence = check_statistics([good, sample(5, law=law, m=2)])
        assert all("would" in check.detail for check in evidence.checks), [c.detail for c in evidence.checks]
        for check in evidence.checks[:2]:
            x = check.figures["fails_below"]
            name = check.name.split(" (")[0]
            narrow = replace(good, noise=np.rint(x * good.noise).astype(np.int64))
            assert 0.85 <= x < 1 and name in failing(narrow)


def test_noise_that_grows_with_the_owners_is_rejected() -> None:
    found = failing(sample(1, m=2), sample(2, m=10, factor=1.15))
    assert "independent of the number of owners" in found


def test_one_coordinate_is_tested_for_what_it_can() -> None:
    evidence = check_statistics([sample(3, shape=(4000, 1))])
    left = [check for check in evidence.checks if not check.tested]
    assert evidence.holds and left and all("not tested" in check.detail for check in left)
    assert evidence.tested == evidence.held == len(evidence.checks) - len(left)
    assert evidence.to_json()["not_tested"] == len(left)


def test_what_was_not_tested_does_not_hold() -> None:
    alone = Evidence("statistics", (untested("a", "too little"),))
    assert not alone.holds and not alone.failed and (alone.tested, alone.held) == (0, 0)
    assert Evidence("statistics", (*alone.checks, Check("b", True, ""))).holds


@pytest.mark.parametrize("law", ["gaussian", "laplace"])
def test_the_interval_covers_and_the_stated_power_is_real(law: str) -> None:
    """At alpha = 0.05 the interval misses 1 in 5 % of 2,000 runs (+-6 standard deviations), and a scale that is off by
    the stated amount is found in 99.9 % of them (at most 14 of 2,000 missed: probability 1e-8 and less)."""
    rng = np.random.default_rng(11)
    base = sample(0, law=law, shape=(50, 20))
    detects = variance_ratio(base, 0.05)[3]
    draw = rng.normal if law == "gaussian" else rng.laplace
    missed, wide, narrow = 0, 0, 0
    for _ in range(2000):
        noise = draw(0, SIGMA, (50, 20))
        for factor in (1.0, math.sqrt(1 + detects), math.sqrt(1 - detects)):
            _, low, high, _ = variance_ratio(replace(base, noise=np.rint(factor * noise).astype(np.int64)), 0.05)
            inside = low <= 1 <= high
            missed += factor == 1.0 and not inside
            wide += factor > 1 and inside
            narrow += factor < 1 and inside
    assert abs(missed - 100) < 6 * math.sqrt(95)
    assert wide <= 14 and narrow <= 14


def test_too_few_samples_do_not_pass() -> None:
    """With 40 samples the interval holds 2 as well as 1: nothing was shown, so the check does not hold."""
    assert not scale_check(sample(1, shape=(10, 4))).holds


# -- the audit ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("hits", "trials"), [(0, 50), (3, 50), (25, 50), (50, 50)])
def test_clopper_pearson_against_the_binomial_law(hits: int, trials: int) -> None:
    """At each end of the interval the observation, or one further out, has probability alpha."""
    alpha = 0.01
    low, high = at_least(hits, trials, alpha), at_most(hits, trials, alpha)
    assert low == 0 if hits == 0 else binom.sf(hits - 1, trials, low) == pytest.approx(alpha, rel=1e-6)
    assert high == 1 if hits == trials else binom.cdf(hits, trials, high) == pytest.approx(alpha, rel=1e-6)


def trials(rng: np.random.Generator, n: int, epsilon: float, delta: float, factor: float = 1.0) -> Trials:
    shift = 1 / gaussian_scale(epsilon, delta, 1.0)
    bits = rng.random(n) < 0.5
    return Trials("test", factor * rng.standard_normal(n) + shift * bits, bits, shift, (shift, shift), epsilon, delta)


def test_the_bound_never_exceeds_the_truth_and_comes_near_it() -> None:
    """Oracle: with alpha = 0.05 at most 5 % of 400 bounds may exceed the true epsilon (47 or more: 1e-7)."""
    rng = np.random.default_rng(3)
    over = sum(epsilon_bound(trials(rng, 2000, 1.0, 1e-3), 0.05).epsilon > 1.0 for _ in range(400))
    assert over <= 46
    big = epsilon_bound(trials(rng, 2_000_000, 2.0, 1e-3)).epsilon
    best = max(
        math.log((norm.sf(z) - 1e-3) / norm.sf(z + 1 / gaussian_scale(2.0, 1e-3, 1.0))) for z in np.linspace(-2, 3, 400)
    )
    assert best == pytest.approx(2.0, abs=2e-3), "the best threshold attains the accountant's epsilon"
    assert 1.6 < big <= 2.0


@pytest.mark.parametrize("factor", [0.0, 0.3, 0.5])
def test_noise_that_is_too_narrow_breaks_the_claim(factor: float) -> None:
    rng = np.random.default_rng(4)
    evidence = check_audit([trials(rng, 63_000, 2.0, 1e-3, factor)])
    assert evidence.failed == ["audit (test)"]
    assert check_audit([trials(rng, 63_000, 2.0, 1e-3)]).holds


def test_canaries_without_influence_or_with_too_much_do_not_pass() -> None:
    rng = np.random.default_rng(6)
    good = trials(rng, 1000, 2.0, 1e-3)
    for least, largest in ((0.5, 1.0), (1.0, 1.01)):
        bad = replace(good, influence=(least * good.shift, largest * good.shift))
        assert check_audit([bad]).failed == ["influence of a record (test)"]


@pytest.mark.parametrize("law", ["gaussian", "laplace"])
def test_canaries_attain_the_sensitivity_of_the_owners_own_code(law: str) -> None:
    plan = canary_plan(law, 4, 9, 40, epsilon=1.5, delta=1e-3, parties=3, threshold=1)  # type: ignore[arg-type]
    assert claimed_epsilon(plan) == pytest.approx(1.5, rel=1e-6)
    canaries = Canaries(plan, 1)
    for _ in range(5):
        known = canaries.draw()
        moved = known.total - known.base
        assert (np.abs(moved[1:][~known.bits]) <= 1).all()
        influence = moved[1:][known.bits] / plan.derived.mechanism.scale / shift_of(plan)
        assert ((influence > 0.99) & (influence <= 1)).all()
        assert [sum(len(block) for block in half) for half in known.halves] == [e - f for f, e in processes_of(4)]
    outcome = in_the_clear(plan, Canaries(plan, 2), plan.releases)
    assert (outcome.sample().noise == outcome.opened - np.stack([k.total for k in outcome.known])).all()
    assert check_audit([outcome.trials("clear")]).holds


# -- power ------------------------------------------------------------------------------------------------------------
def drawn(law: str, count: int, factor: float, records: int = 1, cost: float = 2.0, d: int = 4) -> Trials:
    """Guesses as the clear audit makes them, with noise of a fixed seed: mu or epsilon `cost` a record."""
    rng = np.random.default_rng(12)
    bits = rng.random(count) < 0.5
    if law == "gaussian":
        shift = records * cost
        scores = factor * rng.standard_normal(count) + shift * bits
        return Trials("test", scores, bits, shift, (shift, shift), 9.0, 0.0, shift, records)
    noise, step = factor * rng.laplace(size=(count, d)), records * cost / d
    seen = noise + step * bits[:, None]
    scores = (np.abs(seen) - np.abs(seen - step)).sum(axis=1)
    claim = records * cost
    return Trials("test", scores, bits, claim, (claim, claim), claim, 0.0, None, records, ratio=True)


@pytest.mark.parametrize(("law", "cost"), [("gaussian", 0.7), ("laplace", 2.0)])
def test_nine_tenths_of_the_scale_are_refuted_by_a_million_trials(law: str, cost: float) -> None:
    assert check_audit([drawn(law, 1_000_000, 1.0, cost=cost)]).holds
    assert check_audit([drawn(law, 1_000_000, 0.9, cost=cost)]).failed == ["audit (test)"]


def test_the_bound_on_mu_covers() -> None:
    """At alpha = 0.05 at most 5 % of 400 bounds may exceed the truth (47 or more: 1e-7); a large audit comes near."""
    rng = np.random.default_rng(31)

    def one(n: int, alpha: float) -> float:
        bits = rng.random(n) < 0.5
        return mu_bound(
            Trials("t", rng.standard_normal(n) + 0.7 * bits, bits, 0.7, (0.7, 0.7), 1, 0, 0.7), alpha
        ).epsilon

    assert sum(one(2000, 0.05) > 0.7 for _ in range(400)) <= 46
    assert 0.66 < one(1_000_000, 1e-9) <= 0.7


@pytest.mark.parametrize(("law", "dimension"), [("gaussian", 16), ("laplace", 4)])
def test_the_clear_audit_attains_the_claim_and_refutes_half_the_scale(law: str, dimension: int) -> None:
    """Through the owners' own code and the sampler. False alarms 1e-9 each; half the scale shows with certainty."""
    case = default_cases(3, 1, (law,))[0]
    good = clear_trials(case, dimension, 40_000, 5)
    evidence = check_audit([good])
    assert evidence.holds and good.influence[0] > 0.99 * good.shift
    figures = evidence.checks[1].figures
    assert figures["found"] > 0.6 * figures["claimed"] and figures["fails_below"] >= 0.6
    assert check_audit([clear_trials(case, dimension, 40_000, 5, factor=0.5)]).failed == [
        f"audit (clear engine, {law})"
    ]


@pytest.mark.parametrize(
    "asked",
    [
        {"epsilon": 0.1, "delta": 1e-2, "iterations": 200},
        {"epsilon": 1.0, "delta": 1e-5, "iterations": 10_000},
        {"epsilon": 0.1, "delta": 1e-9, "iterations": 1_500},
        {"epsilon": 20.0, "delta": 1e-4, "iterations": 1},
        {"epsilon": 1.0, "delta": 1e-5, "iterations": 50, "calibration": "zcdp"},
        {"epsilon": 0.5, "delta": 1e-3, "iterations": 50, "calibration": "paper"},
        {"epsilon": 1.0, "delta": 1e-5, "iterations": 30, "sampler": "box-muller"},
        {"epsilon": 0.5, "delta": None, "iterations": 200, "law": "laplace"},
        {"epsilon": 2.0, "delta": 1e-5, "iterations": None, "method": "output"},
    ],
    ids=str,
)
def test_any_run_that_train_accepts_has_releases_like_its_own(asked: dict[str, Any]) -> None:
    """The noise of the fresh plan is as wide, for its sensitivity, as the run's; the claim is one release's."""
    plan = plan_of(small(**asked), Facts("records", "logistic", 6, (40, 60, 50), "public"))
    claim = claim_of(plan)
    mine = plan.derived.mechanism
    if claim.mu is not None:
        assert claim.mu == pytest.approx(mine.sensitivity.l2 / mine.scale, rel=1e-6)
        assert claim.delta == pytest.approx(delta_of_mu(claim.mu, claim.epsilon)) and 0 < claim.delta < 0.16
    for case in cases_like(plan):
        fresh = case.plan().derived.mechanism
        # L1 sensitivities of whole grid steps differ a little from grid to grid
        assert fresh.sensitivity.l2 / fresh.scale == pytest.approx(mine.sensitivity.l2 / mine.scale, rel=1e-2)
    trials = clear_trials(cases_like(plan)[0], 4, 3_000, 2)
    assert check_audit([trials]).holds
    cost = (claim.epsilon if claim.mu is None else claim.mu) * trials.records
    assert cost == pytest.approx((trials.epsilon if trials.mu is None else trials.mu), rel=1e-2) and cost > 0.3


def test_fresh_releases_are_few_and_wide_where_their_dimension_tells_nothing() -> None:
    """Of Gaussian noise half as many as for `verify --fresh`, and twice as wide; a law by L1 norms keeps its d."""
    for law, dimension, found in (
        ("gaussian", 6, (500, 128)),
        ("gaussian", 300, (500, 128)),
        ("laplace", 6, (1500, 6)),
    ):
        asked = small(law=law, delta=1e-5 if law == "gaussian" else None)
        plan = plan_of(asked, Facts("records", "logistic", dimension, (40, 60, 50), "public"))
        assert [(case.releases, case.dimension) for case in cases_like(plan)] == [found] * 3
    assert {(case.releases, case.dimension) for case in default_cases(3, 1, ("gaussian",))} == {(1000, 64)}


def test_the_structure_of_fresh_releases_is_read_where_it_is_a_line_of_evidence_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[Path] = []

    def seen(out: Path) -> Evidence:
        read.append(out)
        return Evidence("structure", (), 0.0, "")

    def cleared(plan: Plan, canaries: Canaries, out: Path, **how: Any) -> FreshReleases:
        return in_the_clear(plan, canaries, plan.releases)

    monkeypatch.setattr(verification, "check_structure", seen)
    monkeypatch.setattr(verification, "by_parties", cleared)
    cases = [replace(case, releases=30) for case in default_cases(3, 1, ("gaussian",))]
    clear = {"gaussian": (4, 300)}
    alone = verification._fresh(cases, tmp_path, lambda event: None, clear, structures=False)
    assert not read and not alone[0] and len(alone[1]) == 3 and len(alone[2]) == 4
    verification._fresh(cases, tmp_path, lambda event: None, clear)
    assert len(read) == 3


def test_many_records_together_show_what_one_does_not() -> None:
    """mu = 0.0066 a release, as of T = 1,500: no million guesses about one record refute half the scale."""
    assert check_audit([drawn("gaussian", 1_000_000, 0.5, cost=0.0066)]).holds
    assert check_audit([drawn("gaussian", 1_000_000, 1.0, 150, cost=0.0066)]).holds
    assert not check_audit([drawn("gaussian", 1_000_000, 0.9, 150, cost=0.0066)]).holds
