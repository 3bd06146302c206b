"""Sensitivities against the change that worst-case records really make."""

import math

import numpy as np
import pytest

from dpmpc.errors import UsageError
from dpmpc.privacy.checks import delta_warning
from dpmpc.privacy.sensitivity import Weights, gradient_sensitivity, output_sensitivity, owner_weights, rounding_bound

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
    assert output_sensitivity(G=1, lam=0.01, sizes=SIZES).l1(9) == pytest.approx(3 * 2 / (4 * 7 * 0.01))


def test_rounding_on_the_grid_moves_the_sum_by_at_most_the_bound_which_is_attained() -> None:
    rng = np.random.default_rng(1)
    step, d, m = 0.25, 16, 3
    u = rng.normal(size=(1000, d))
    v = u + rng.normal(size=(1000, d)) * 0.3
    change = (np.rint(u / step) - np.rint(v / step)) * step
    excess = np.linalg.norm(change, axis=1) - np.linalg.norm(u - v, axis=1)
    bound = rounding_bound(d, step, m)
    assert excess.max() / m <= bound == pytest.approx(math.sqrt(16) * 0.25 / 3)
    tiny = 1e-9
    attained = np.rint(np.full(d, 0.5 + tiny)) - np.rint(np.full(d, 0.5 - tiny))
    assert np.linalg.norm(attained) * step / m == pytest.approx(bound, rel=1e-12)
    with_rounding = gradient_sensitivity(G=1, sizes=SIZES, rounding=bound)
    assert with_rounding.l2 == pytest.approx(2 / 28 + bound) and with_rounding.parts["rounding"] == bound
    assert with_rounding.steps(bound) == pytest.approx(with_rounding.l2 / bound)


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
        {"sizes": [1], "rounding": -1.0},
        {"sizes": [1], "lam": 0.0},
        {"sizes": [1], "solver_gradient_norm": math.nan},
    ],
)
def test_bad_values_are_named_in_one_line(bad: dict[str, object]) -> None:
    with pytest.raises(UsageError, match=r"^[^\n;]+; [^\n;]+; [^\n]+$"):
        output_sensitivity(**{"G": 1.0, "lam": 0.1, **bad})  # type: ignore[arg-type]


def test_a_delta_of_one_over_n_is_warned_of() -> None:
    assert delta_warning(0.999e-3, 1000) is None
    text = delta_warning(1e-3, 1000)
    assert text is not None and "1/n" in text and "\n" not in text
