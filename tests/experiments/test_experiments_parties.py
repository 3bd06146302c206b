"""Methods of the experiments with their aggregation in real parties, against the clear engine."""

import math

import numpy as np
import pytest
from dpmpc_experiments.method import Run
from dpmpc_experiments.methods import METHODS
from dpmpc_experiments.methods.cape import Sites
from dpmpc_experiments.records import Problem, Records
from dpmpc_experiments.through_parties import RealParties

from dpmpc.learning import erm
from tests.refusals import refuses


def _problem() -> Problem:
    rng = np.random.default_rng(5)
    X = rng.standard_normal((60, 5))
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None]
    y = np.where(rng.random(60) < 0.4, 1.0, -1.0)
    sizes = [3, 17, 1, 30, 9]
    records = Records("made", erm.LOGISTIC, 0.05, X, y, X[:10], y[:10])
    return Problem(records, rng.permutation(60), np.concatenate([[0], np.cumsum(sizes)]))


def test_without_noise_real_parties_give_the_clear_engines_models() -> None:
    problem, at, run = _problem(), (0, 1, 4), Run(1, math.inf, 1e-3, 4, 0.7)
    everything = ("MPC Grad P", "WD-DP", "MPC Out P", "Functional", "CAPE")
    for n, names in ((3, everything), (5, everything[:2])):
        with RealParties(n) as parties:
            for name in names:
                clear = METHODS[name].models(problem, [run], at)
                through = METHODS[name].models(problem, [run], at, parties)
                assert np.abs(through - clear).max() < 1e-10, name
                assert np.abs(through[-1]).max() > 0.01


@pytest.mark.parametrize("law", ["gaussian", "laplace"])
def test_the_noise_of_real_parties_has_the_scale_asked_for(law: str) -> None:
    vectors, scale = np.full((7, 2000), 0.25), 0.125
    with RealParties(3) as parties:
        noise = np.concatenate([parties(vectors, law, scale) for _ in range(2)]) - 0.25
    variance = scale**2 * (1 if law == "gaussian" else 2)
    kurtosis = 3 if law == "gaussian" else 6
    # 4,000 samples; a bound of 6.5 standard errors: false alarm below 1e-9.
    assert abs(noise.mean()) < 6.5 * (variance / 4000) ** 0.5
    assert abs(noise.var() / variance - 1) < 6.5 * ((kurtosis - 1) / 4000) ** 0.5
    assert not np.array_equal(noise[:2000], noise[2000:])


def test_what_parties_cannot_do_is_refused() -> None:
    with RealParties(3) as parties:
        with refuses("choice", "norm", "gaussian or laplace"):
            parties(np.zeros((2, 3)), "norm", 1.0)
        with refuses("range", setting="grid_bits"):
            parties(np.full((2, 3), 1e9), "gaussian", 0.0)
        assert parties(np.ones((2, 3)), "gaussian", 0.0).tolist() == [1.0] * 3


def test_cape_with_its_secure_sums_in_real_parties() -> None:
    """Noise at the sites, sums in the parties: the aggregate has the noise claimed, each message far more."""
    vectors, scale = np.full((5, 2000), 0.25), 0.125
    with RealParties(3) as parties:
        sites = Sites(parties)
        noise = np.concatenate([sites(vectors, "gaussian", scale) for _ in range(2)]) - 0.25
    # 4,000 samples; a bound of 6.5 standard errors: false alarm below 1e-9
    assert abs(noise.mean()) < 6.5 * scale / 4000**0.5
    assert abs(noise.var() / scale**2 - 1) < 6.5 * (2 / 4000) ** 0.5
    problem, run = _problem(), Run(1, 5.0, 1e-3, 3, 0.7)
    with RealParties(3) as parties:
        models = METHODS["CAPE"].models(problem, [run], (3,), parties)
    clear = METHODS["CAPE"].models(problem, [Run(1, math.inf, 1e-3, 3, 0.7)], (3,))
    assert 0 < np.abs(models - clear).max() < 10 * METHODS["CAPE"].claim(problem, run).scale
