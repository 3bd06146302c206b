"""Sensitivities against the change that worst-case records really make."""

import math

import numpy as np
import pytest

from dpmpc.privacy.checks import delta_warning
from dpmpc.privacy.law import LAWS, Need
from dpmpc.privacy.sensitivity import (
    Sensitivity,
    Weights,
    gradient_sensitivity,
    joined,
    output_sensitivity,
    owner_weights,
    record_sensitivity,
    rounding_bound,
)
from tests.refusals import in_one_line, refuses

SIZES = (40, 7, 7, 100)


def worst_change(weights: Weights, *, lam: float | None, G: float, tolerance: float = 0.0) -> float:
    """The largest change of the aggregate when one record of the linear loss G y x.theta flips sign, over the owners.

    Its gradient is G y x. Its local optimum is -mean(G y x)/lam, and a returned model may lie tolerance/lam beyond it.
    """
    total = sum(SIZES)
    changes = []
    for size in SIZES:
        weight = 1 / len(SIZES) if weights == "equal" else size / total
        records = np.ones(size)
        flipped = records.copy()
        flipped[0] = -1
        gradients = G * records.mean(), G * flipped.mean()
        if lam is None:
            changes.append(weight * (gradients[0] - gradients[1]))
        else:
            models = -gradients[0] / lam - tolerance / lam, -gradients[1] / lam + tolerance / lam
            changes.append(weight * (models[1] - models[0]))
    return max(changes)


@pytest.mark.parametrize("weights", ["equal", "size"])
@pytest.mark.parametrize("G", [1.0, 2.5])
def test_bounds_are_attained(weights: Weights, G: float) -> None:
    gradient = gradient_sensitivity(G=G, sizes=SIZES, weights=weights)
    assert gradient.l2 == pytest.approx(worst_change(weights, lam=None, G=G), rel=1e-12)
    for tolerance in (0.0, 1e-3, 10.0):  # with the last, the owner of the largest weight is the worst one
        output = output_sensitivity(G=G, lam=0.02, sizes=SIZES, weights=weights, solver_gradient_norm=tolerance)
        assert output.l2 == pytest.approx(worst_change(weights, lam=0.02, G=G, tolerance=tolerance), rel=1e-12)
        assert math.fsum(output.parts.values()) == output.l2


def test_formulas_of_the_papers() -> None:
    assert gradient_sensitivity(G=1, sizes=[500] * 100).l2 == pytest.approx(4e-5)
    assert gradient_sensitivity(G=1, sizes=SIZES, weights="size").l2 == pytest.approx(2 / 154)
    assert output_sensitivity(G=1, lam=0.01, sizes=[500] * 100).l2 == pytest.approx(2 / (100 * 500 * 0.01))
    assert output_sensitivity(G=1, lam=0.01, sizes=SIZES, weights="size").l2 == pytest.approx(2 / (154 * 0.01))
    assert output_sensitivity(G=1, lam=0.01, sizes=SIZES).within(9).l1 == pytest.approx(3 * 2 / (4 * 7 * 0.01))


def test_rounding_on_the_grid_moves_the_sum_by_at_most_the_bound_which_is_attained() -> None:
    rng = np.random.default_rng(1)
    step, d, m = 0.25, 16, 3
    u = rng.normal(size=(1000, d))
    v = u + rng.normal(size=(1000, d)) * 0.3
    change = (np.rint(u / step) - np.rint(v / step)) * step
    excess = np.linalg.norm(change, axis=1) - np.linalg.norm(u - v, axis=1)
    bound = rounding_bound(d, step, m)
    assert excess.max() / m <= bound.l2 == pytest.approx(math.sqrt(16) * 0.25 / 3)
    assert bound == Sensitivity(16 * 0.25 / 3, bound.l2, 0.25 / 3)
    tiny = 1e-9
    attained = np.rint(np.full(d, 0.5 + tiny)) - np.rint(np.full(d, 0.5 - tiny))
    assert np.linalg.norm(attained) * step / m == pytest.approx(bound.l2, rel=1e-12)
    with_rounding = gradient_sensitivity(G=1, sizes=SIZES) + bound
    assert with_rounding.l2 == pytest.approx(2 / 28 + bound.l2) and with_rounding.parts["rounding"] == bound.l2
    assert with_rounding.steps(bound.l2).l2 == pytest.approx(with_rounding.l2 / bound.l2)


def test_weights() -> None:
    assert owner_weights(SIZES, "equal").tolist() == [0.25] * 4
    assert owner_weights(SIZES, "size").tolist() == pytest.approx([n / 154 for n in SIZES])


@pytest.mark.parametrize(
    "bad",
    [
        {"sizes": []},
        {"sizes": [3, 0]},
        {"sizes": [[1], [2]]},
        {"sizes": [1], "weights": "none"},
        {"sizes": [1], "G": 0.0},
        {"sizes": [1], "lam": 0.0},
        {"sizes": [1], "solver_gradient_norm": math.nan},
    ],
)
def test_bad_values_are_named_in_one_line(bad: dict[str, object]) -> None:
    with in_one_line():
        output_sensitivity(**{"G": 1.0, "lam": 0.1, **bad})  # type: ignore[arg-type]


def test_a_delta_of_one_over_n_is_warned_of() -> None:
    assert delta_warning(0.999e-3, 1000) is None
    text = delta_warning(1e-3, 1000)
    assert text is not None and "1/n" in text and "\n" not in text


def norms(v: np.ndarray) -> tuple[float, float, float]:
    return float(np.abs(v).sum()), float(np.linalg.norm(v)), float(np.abs(v).max())


def test_what_is_not_said_of_a_norm_follows_and_holds_for_every_vector() -> None:
    """Random bounds, random vectors within them: none lies outside of what was concluded, and each conclusion is
    attained by some vector but for a factor that the dimension's being whole explains."""
    rng = np.random.default_rng(5)
    for _ in range(300):
        d = int(rng.integers(1, 12))
        known = {name: float(np.exp(rng.normal())) for name in ("l1", "l2", "linf") if rng.random() < 0.6}
        if not known:
            continue
        bound = Sensitivity(**known).within(d)
        assert bound.linf <= bound.l2 * (1 + 1e-12) and bound.l2 <= bound.l1 * (1 + 1e-12)
        assert bound.l1 <= math.sqrt(d) * bound.l2 * (1 + 1e-12) and bound == bound.within(d)
        best = np.zeros(3)
        spikes = np.array([[1.0 if i < k else 0.0 for i in range(d)] for k in range(1, d + 1)])
        for v in np.concatenate([spikes, rng.normal(size=(40, d)) ** 3]):
            size = dict(zip(("l1", "l2", "linf"), norms(v), strict=True))
            fits = v * min(known[name] / size[name] for name in known)
            best = np.maximum(best, norms(fits))
        assert np.all(best <= np.array([bound.l1, bound.l2, bound.linf]) * (1 + 1e-9))
        assert best[1] >= 0.7 * bound.l2 and best[2] >= 0.7 * bound.linf and best[0] >= 0.6 * bound.l1
    with refuses("missing"):
        Sensitivity()
    with refuses("range", 0):
        Sensitivity(l2=math.nan)
    with refuses("missing"):
        Sensitivity(l2=1.0).in_norm(1)


def test_blocks_side_by_side_and_means_of_records() -> None:
    """Against the vectors themselves: two histograms and a ball, every pair of corners, through one owner's mean."""
    blocks = [Sensitivity(2.0, math.sqrt(2), 1.0), Sensitivity(2.0, math.sqrt(2), 1.0), Sensitivity(l2=2.0).within(2)]
    whole = joined(blocks)
    corners = []
    for a in range(3):
        for b in range(4):
            for angle in np.linspace(0, 2 * math.pi, 16, endpoint=False):
                corners.append(np.concatenate([np.eye(3)[a], np.eye(4)[b], [math.cos(angle), math.sin(angle)]]))
    worst = np.max([norms(u - v) for u in corners for v in corners], axis=0)
    assert worst == pytest.approx([whole.l1, whole.l2, whole.linf], rel=1e-9)
    mean = record_sensitivity(whole, SIZES)
    assert mean.l1 == pytest.approx(whole.l1 / 28) and mean.linf == pytest.approx(whole.linf / 28)
    assert record_sensitivity(whole, SIZES, "size").l2 == pytest.approx(whole.l2 / 154)


def test_a_histogram_pays_for_what_it_moves_whatever_its_cells() -> None:
    """Laplace noise of scale 2 / epsilon on counts of 100 cells, by the law alone and on the grid; by its L2 norm it
    would be 14.1. Gaussian noise takes L2 as ever."""
    counts, step = Sensitivity(2.0, math.sqrt(2), 1.0), 2.0**-20
    steps = (counts + rounding_bound(100, step, 1)).steps(step)
    scale = LAWS["laplace"].scale(Need(0.5, 0.0, steps, 100, 1)) * step
    assert scale == pytest.approx(2 / 0.5, rel=1e-4)
    blind = LAWS["laplace"].scale(Need(0.5, 0.0, Sensitivity(l2=steps.l2).within(100), 100, 1)) * step
    assert blind == pytest.approx(math.sqrt(200) / 0.5, rel=1e-3)
    for known in (steps, Sensitivity(l2=steps.l2).within(100)):
        assert LAWS["gaussian"].scale(Need(0.5, 1e-6, known, 100, 1)) == pytest.approx(
            LAWS["gaussian"].scale(Need(0.5, 1e-6, steps, 100, 1))
        )
