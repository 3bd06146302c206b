"""Faults that leave the noise as a whole as it should be, and honest noise: what the statistics catch, and what not.

Everything random here is seeded, so a run does not flicker; with other seeds it would fail with probability 1e-6.
"""

import math
import re
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom, norm

from dpmpc.noise import goodness
from dpmpc.verify import by_part, dependence, repeats
from dpmpc.verify.parts import PartGrid, Parts
from dpmpc.verify.scores import Sample
from dpmpc.verify.statistics import check_statistics
from dpmpc.verify.verdict import ALPHA
from tests.endurance import faults
from tests.endurance.faults import Fault, every, good, honest, is_caught, shares, spoilt, table, trial, trials

LAWS = ("gaussian", "laplace")


# -- parts ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("n", [1, 2, 3, 7, 24, 64, 100])
def test_parts_are_what_their_names_say(n: int) -> None:
    """Oracle: each part's members by its name; the weights of all parts add up to 1 at most."""
    parts = Parts("release", n)
    groups = parts.groups
    total = sum(group.count for group in groups)
    assert sum(group.count * group.weight for group in groups) <= 1 + 1e-12
    members = parts.sums(np.eye(n))
    assert members.shape == (total, n)
    sizes = np.repeat([group.size for group in groups], [group.count for group in groups])
    assert (np.rint(members.sum(axis=1)) == sizes).all()
    for part in range(total):
        name, mine = parts.name(part), np.flatnonzero(members[part] > 0.5).tolist()
        numbers = [int(x) for x in re.findall(r"\d+", name)]
        if name.startswith("all"):
            assert mine == list(range(n))
        elif name.startswith("every"):
            assert mine == list(range(numbers[1], n, numbers[0]))
        elif " to " in name:
            assert mine == list(range(numbers[0], numbers[1] + 1))
        else:
            assert mine == [numbers[0]]


def test_a_grid_has_the_extremes_of_all_pairs_of_parts() -> None:
    rng = np.random.default_rng(1)
    values = rng.normal(size=(13, 7))
    grid = PartGrid.of(values.shape)
    r, c = grid.releases.sums(np.eye(13)), grid.coordinates.sums(np.eye(7))
    sums = grid.sums(values)
    assert sums == pytest.approx(r @ values @ c.T)
    largest = grid.extremes(sums, largest=True)
    for i, a in enumerate(grid.releases.groups):
        for j, b in enumerate(grid.coordinates.groups):
            rows = slice(grid.releases.begins[i], grid.releases.begins[i] + a.count)
            block = sums[rows, grid.coordinates.begins[j] : grid.coordinates.begins[j] + b.count]
            assert largest[i, j] == block.max() and grid.sizes[i, j] == a.size * b.size


# -- bounds -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("n", "lag"), [(12, 1), (12, 4), (12, 6), (60, 7), (60, 20), (999, 333)])
def test_the_bound_on_autocorrelations_holds_and_is_not_far_off(n: int, lag: int) -> None:
    """100,000 sums: as many beyond each level as the bound allows, or fewer, but not a hundred times fewer."""
    rng = np.random.default_rng(n + lag)
    x = rng.standard_normal((100_000 if n < 100 else 4_000, n))
    sums = (x * np.roll(x, lag, axis=1)).sum(axis=1)
    for p in (0.1, 0.01, 0.001):
        level = float(np.quantile(sums, 1 - p))
        bound = math.exp(float(goodness.autocorrelation_tail(np.array([level]), n, np.array([lag]))[0]))
        assert p * (1 - 6 / math.sqrt(p * len(x))) < bound < 100 * p


def test_the_bound_on_divergences_holds() -> None:
    rng = np.random.default_rng(2)
    for n, k in ((40, 16), (1000, 16)):
        counts = rng.multinomial(n, np.full(k, 1 / k), size=100_000)
        terms = np.where(counts > 0, counts * np.log(np.maximum(counts, 1) * k / n), 0.0).sum(axis=1)
        for p in (0.01, 0.001):
            bound = math.exp(float(by_part.divergence_tail(np.array(np.quantile(terms, 1 - p)), k)))
            assert bound > p * (1 - 6 / math.sqrt(p * len(terms)))


def test_the_bound_on_products_holds_and_is_not_far_off() -> None:
    """Along paths of 8 edges, 30 at a time: 100,000 sums, as above."""
    x = np.random.default_rng(3).standard_normal((100_000, 30, 9)).astype(np.float32)
    sums = (x[:, :, 1:] * x[:, :, :-1]).sum(axis=(1, 2))
    for p in (0.1, 0.01, 0.001):
        level = np.array(float(np.quantile(sums, 1 - p)))
        bound = math.exp(float(goodness.product_tail(level, np.array(240.0))))
        assert p * (1 - 6 / math.sqrt(p * len(x))) < bound < 100 * p


def test_neighbours_are_paired_off_as_often_as_can_be() -> None:
    near = np.array([[1, 1, 1, 0, 1], [0, 0, 0, 0, 0], [1, 1, 1, 1, 1]], dtype=bool)
    assert repeats.paired_off(near).tolist() == [3, 0, 3]


# -- faults -----------------------------------------------------------------------------------------------------------
NAMED = [
    Fault("half repeated under fresh signs", 0.0, "all", "all"),
    Fault("missing", 0.0, "one", "all"),
    Fault("scaled by", 0.5, "all", "one"),
    Fault("scaled by", 0.3, "every 50th", "all"),
]
SIBLINGS = [
    Fault("half repeated under fresh signs", 0.0, "one", "all"),
    Fault("half repeated in another order", 0.0, "every 10th", "all"),
    Fault("half repeated times", 0.8, "all", "one"),
    Fault("the release before under fresh signs", 0.0, "one", "all"),
    Fault("the release before times", 0.8, "all", "all"),
    Fault("the release before and moved by", 1.0, "half", "all"),
    Fault("missing", 0.0, "every 50th", "one"),
    Fault("missing", 0.0, "a random tenth", "every 2nd"),
    Fault("scaled by", 0.5, "a random tenth", "all"),
    Fault("scaled by", 0.5, "every 2nd", "one"),
    Fault("shifted by", 0.5, "all", "one"),
    Fault("follows the data by", 0.5, "all", "one"),
    Fault("correlated with the other half by", 0.6, "all", "one"),
    Fault("two values", 0.0, "one", "all"),
    Fault("uniform", 0.0, "half", "all"),
    Fault("magnitudes alone", 0.0, "one", "all"),
    Fault("low bits missing:", 1.0, "half", "all"),
    Fault("a scale that wanders by", 0.3, "all", "all"),
    Fault("a copy an owner", 0.0, "one", "all"),
    Fault("a second vector", 0.0, "all", "one"),
    Fault("half repeated times", 0.8, "one", "all"),
    Fault("half repeated and moved by", 1.0, "every 50th", "all"),
    Fault("the release before times", 0.8, "every 50th", "half"),
    Fault("correlated with the other half by", 0.9, "every 50th", "all"),
    Fault("correlated with the release before by", 0.6, "every 10th", "half"),
    Fault("low bits missing:", 1.0, "all", "one"),
]


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("fault", [*NAMED, *SIBLINGS], ids=str)
def test_a_fault_in_a_part_is_caught(fault: Fault, law: str) -> None:
    """At the size of `dpmpc verify --fresh`: 64 coordinates, 1,000 releases."""
    assert is_caught(fault, law, 64, 1000, 7)


@pytest.mark.parametrize("law", LAWS)
def test_what_is_caught_early_is_what_all_checks_together_catch(law: str) -> None:
    weak = Fault("scaled by", 0.9, "one", "one")
    for fault in (weak, NAMED[2], SIBLINGS[7]):
        assert is_caught(fault, law, 16, 200, 7) == bool(trial(fault, law, 16, 200, 7).caught)
    assert not is_caught(weak, law, 16, 200, 7) and is_caught(NAMED[0], law, 16, 200, 7)


@pytest.mark.parametrize("law", LAWS)
def test_stated_widths_are_found(law: str) -> None:
    """What the line on parts says it finds with probability 0.999 is found, ten times of ten; wider is not always."""
    rng = np.random.default_rng(5)
    sample = good(law, 64, 400, rng)
    said = by_part.variance_by_part(sample).detail
    for kind, place in (("one release", ("one", "all")), ("one coordinate", ("all", "one"))):
        factor = float(re.search(rf"([0-9.]+) in {kind}", said)[1])  # type: ignore[index]
        for strength, expected in ((factor, 10), ((1 + factor) / 2, 0)):
            fault = Fault("scaled by", strength, *place)
            found = sum(
                not by_part.variance_by_part(spoilt(good(law, 64, 400, rng), fault, rng)).holds for _ in range(10)
            )
            assert found == expected if expected else found < 10


def test_faults_are_drawn_from_all_ways_and_places_and_counted() -> None:
    """A small matrix: most faults of all releases are caught, and what is honest is not."""
    found = list(trials(16, 120, 60, 3))
    assert len({f.fault for f in found}) == 60 and len(list(every())) == len(set(every())) > 1000
    by_way = shares(found, lambda fault: fault.way)
    assert sum(drawn for _, drawn in by_way.values()) == 60
    assert table(found).count("\n") == len(faults.WAYS) + 1
    strong = [
        trial(Fault(way, strengths[-1], "all", "all"), LAWS[k % 2], 24, 300, 1)
        for k, (way, (_, strengths)) in enumerate(faults.WAYS.items())
    ]
    missed = {f.fault.way for f in strong if not f.caught}
    assert not missed, missed


def test_what_no_run_of_this_size_shows_is_not_claimed() -> None:
    """One value of one release with half its noise: nothing shows it, and nothing says it would."""
    for law in LAWS:
        assert not trial(Fault("scaled by", 0.5, "one", "one"), law, 24, 200, 1).caught


# -- honest noise -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("shape", [(12, 60), (1, 400), (48, 24)])
def test_p_values_of_honest_noise_are_uniform_or_larger(law: str, shape: tuple[int, int]) -> None:
    """60 honest samples of each: of each check at most as many p-values below 0.05 and 0.005 as chance has them (6
    standard deviations and one: probability below 1e-7 each), none below 1e-6, and no check fails."""
    p_values, failed = honest(law, *shape, 60, 11)
    assert not failed
    assert len(p_values) >= 6
    for name, values in p_values.items():
        assert min(values) > 1e-6, name
        for level in (0.05, 0.005):
            most = int(binom.ppf(norm.sf(-6), len(values), level)) + 1
            assert sum(p <= level for p in values) <= most, (name, level)


def test_an_exact_zero_here_and_there_is_no_fault() -> None:
    """A discrete law has zeros; the chi-square law of a single value has none."""
    sample = good("gaussian", 64, 300, np.random.default_rng(8))
    noise = sample.noise.copy()
    noise[3, 5] = noise[100, 7] = noise[200, 60] = 0
    one = Sample(sample.owners, sample.law, sample.scale, True, noise, sample.sums, sample.bits)
    assert check_statistics([one]).holds


def test_every_line_states_its_power() -> None:
    """Or that it was not tested, and what would do."""
    evidence = check_statistics([good(law, 64, 200, np.random.default_rng(1)) for law in LAWS])
    told = [check for check in evidence.checks if not check.detail.startswith("not tested: ")]
    assert all("would fail" in check.detail for check in told), [c.detail for c in told]
    assert all("would do" in check.detail for check in evidence.checks if check not in told) and len(told) > 10
    assert len({check.name for check in evidence.checks}) == len(evidence.checks)
    assert evidence.false_alarm == pytest.approx(ALPHA * len(evidence.checks))


def test_copies_of_releases_are_told_by_signs_alone() -> None:
    rng = np.random.default_rng(4)
    sample = good("gaussian", 64, 200, rng)
    noise = sample.noise.copy()
    noise[150] = np.abs(noise[150]) * np.where(noise[20] < 0, -1, 1)
    one = Sample(sample.owners, sample.law, sample.scale, True, noise, sample.sums, sample.bits)
    assert not dependence.releases_check(one).holds and "signs" in dependence.releases_check(one).detail


def test_the_docs_have_the_command_of_the_matrix() -> None:
    text = (Path(__file__).parents[2] / "docs" / "verify.md").read_text(encoding="utf-8")
    assert "python -m tests.endurance.faults" in text
