"""Bands around curves: the deviations are those of what noise does, and none is drawn that covers too much or too
little."""

from pathlib import Path

import numpy as np
import pytest
from dpmpc_experiments import bands
from dpmpc_experiments.bands import Case, covered, descent_covariance, descents, drawn, functional_covariance

from dpmpc.learning.erm_blocks import solve
from dpmpc.learning.functional import coefficients, minimiser
from dpmpc.learning.losses import LOGISTIC
from dpmpc.planning.adviser import WayToRun
from dpmpc.records.blocks import in_memory

RUNS = 400  # a trace over four numbers has a deviation of 4 % then, and 0.3 is more than seven of them


def case() -> Case:
    random = np.random.default_rng(2)
    X = random.normal(size=(600, 4))
    X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1.0)
    y = np.where(random.uniform(size=600) < 1 / (1 + np.exp(-X @ [2.0, -1.0, 0.5, 0.0])), 1.0, -1.0)
    choice = WayToRun("gradient", "gaussian", 1e-3, 150, 4.0, 0.0, "tail", 0.004, 0.0, 0.0)
    return Case(X, y, choice, {"a": np.eye(4)[:1], "b": np.eye(4)[1:]}, 1e-4)


def test_a_descents_deviations_are_those_of_many() -> None:
    """Against drawing; and what is bent by nothing has far larger ones."""
    known = case()
    best = solve(LOGISTIC, in_memory(known.X, known.y), known.choice.lam).theta
    bent = LOGISTIC.second_derivative(known.X @ best, known.y)
    hessian = (known.X * bent[:, None]).T @ known.X / len(known.y)
    models = descents(known, RUNS)
    near = bands.logistic_spread(float(np.linalg.norm(best))) / 2
    said = float(np.trace(descent_covariance(known.choice, hessian, near)))
    assert models.var(axis=1).sum() == pytest.approx(said, rel=0.3)
    assert np.trace(descent_covariance(known.choice, 0 * hessian, near)) > 4 * said
    shares = [covered(known, model, best, descent_covariance(known.choice, hessian, near)) for model in models.T]
    assert 0.9 < np.mean([share["b"] for share in shares]) < 0.99, "a descent that has come to its end"
    assert not np.abs(descents(known, 1, noise=0.0)[:, 0] - best).max() > 0.01


def test_the_functional_mechanisms_deviations_are_those_of_many() -> None:
    known, random = case(), np.random.default_rng(3)
    vector = coefficients(known.X, known.y)
    found, said = [], 0.0
    for _ in range(RUNS):
        noisy = vector + known.noise * random.standard_normal(len(vector))
        found.append(minimiser(noisy, 4, "logistic", bands.LAM, known.noise))
        said += float(np.trace(functional_covariance(noisy, found[-1], known.noise))) / RUNS
    assert np.var(found, axis=0).sum() == pytest.approx(said, rel=0.3)


def test_a_look_measures_every_curve_and_draws_nothing(tmp_path: Path) -> None:
    path = bands.run(tmp_path, None, quick=True)
    lines = (tmp_path / "bands" / "runs.csv").read_text().splitlines()
    assert len(lines) == 1 + 4 * 5 and lines[0] == "set,band,curve,covered,runs"
    assert "| independent | descent, known |" in path.read_text()
    assert drawn([0.93, 0.95, 0.97]) and not drawn([0.95, 0.98]) and not drawn([0.92, 0.95])
