"""Four known ways to spend a budget better, measured on full-batch private descent, where none is worth its trouble.

All runs keep the same mu, the Gaussian parameter of the whole run, at the same step and number of iterations.

- *Noise correlated over iterations*: z_t - beta z_(t-1). Every record is in every round, so one record can move all T
  gradients the same way: the noise must grow by |C 1|/sqrt(T) with C = (I - beta S)^-1, about 1/(1 - beta), which is
  what cancelling had saved.
- *Budgets that grow*: variance of iteration t falling as rate^t, sum 1/variance fixed.
- *Noisy Newton*: a part of mu^2 for one noisy second-moment matrix (`learning.functional`), whose inverse scales the
  steps.
- *Secret Poisson sampling*: a record joins a round with probability q, secretly. With noise z times the sensitivity
  the central limit of the accountant gives mu = q sqrt(T) sqrt(e^(1/z^2) - 1) (Bu et al. 2020), so the noise of the
  mean, z 2/(q n), is never below that of full batches, and the sampling variance comes on top.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from dpmpc.learning import functional
from dpmpc_experiments.records import Records

Array = NDArray[np.float64]

PLAIN = "plain"
BETAS = (-0.5, 0.25, 0.5, 0.9)
RATES = (0.25, 4.0, 16.0)  # variance of the first iteration over that of the last
NEWTON_SHARES = (0.05, 0.2)
NEWTON_ITERATIONS = 0.1  # of the others: curvature known, fewer steps do
SAMPLES = (0.3, 0.1)
LONGEST = 10.0  # by what a step may be longer where curvature is small


def correlation_cost(beta: float, iterations: int) -> float:
    """By what the noise z must grow so that z_t - beta z_(t-1) keeps the budget: |C 1|/sqrt(T), C = (I - beta S)^-1
    >= 0.

    For beta < 0 the entries of C alternate in sign; one record's gradients may too, so absolute values count.
    """
    row = np.cumsum(np.abs(beta) ** np.arange(iterations))
    return float(np.linalg.norm(row) / math.sqrt(iterations))


def sampling_cost(q: float, mu: float, iterations: int) -> float:
    """The noise of the sampled mean over that of full batches at the same mu: z mu/(q sqrt(T)), never below 1."""
    if q == 1.0:
        return 1.0
    z = brentq(lambda x: q * math.sqrt(iterations) * math.sqrt(math.expm1(1 / x**2)) - mu, 0.05, 1e6)
    return float(z) * mu / (q * math.sqrt(iterations))


def descend(
    records: Records,
    sigma: Callable[[int], float],
    iterations: int,
    step: float,
    seeds: Sequence[int],
    *,
    beta: float = 0.0,
    q: float = 1.0,
    scale: Callable[[Array], Array] = lambda slope: slope,
) -> Array:
    """J - J* of the tail average of every seed. sigma(t): noise a coordinate; q: sampled part; scale: of every
    step."""
    U, v, _ = records.distinct
    rngs = [np.random.default_rng([0x0DD, seed]) for seed in seeds]
    theta, tail, counted = np.zeros((len(seeds), records.d)), np.zeros((len(seeds), records.d)), 0
    before = np.zeros_like(theta)
    full = (records.counts / records.n)[:, None] * np.ones(len(seeds))
    for t in range(1, iterations + 1):
        weight = full
        if q < 1.0:
            picked = [rng.binomial(records.counts.astype(np.int64), q) for rng in rngs]
            weight = np.stack(picked, axis=1) / (q * records.n)
        slope = np.asarray(U.T @ (records.loss.derivative(np.asarray(U @ theta.T), v[:, None]) * weight)).T
        fresh = np.stack([rng.standard_normal(records.d) for rng in rngs])
        theta = theta - step * scale(slope + records.lam * theta + sigma(t) * (fresh - beta * before))
        before = fresh
        if 2 * t > iterations:
            counted += 1
            tail += (theta - tail) / counted
    return records.objective(tail) - records.smallest


def compare(records: Records, mu: float, iterations: int, step: float, seeds: Sequence[int]) -> dict[str, Array]:
    """Gaps of every way, by name; "plain" is what they are held against."""
    unit = 2 * records.loss.G / (records.n * mu) * math.sqrt(iterations)
    found = {PLAIN: descend(records, constant(unit), iterations, step, seeds)}
    for beta in BETAS:
        noise = constant(unit * correlation_cost(beta, iterations))
        found[f"correlated, beta = {beta}"] = descend(records, noise, iterations, step, seeds, beta=beta)
    for rate in RATES:
        name = f"first iteration {rate:g} times the last one's variance"
        found[name] = descend(records, growing(unit, rate, iterations), iterations, step, seeds)
    for share in NEWTON_SHARES:
        few = max(10, round(NEWTON_ITERATIONS * iterations))
        found[f"Newton in {few} iterations, {share:.0%} of mu^2 for the matrix"] = _newton(
            records, mu, share, few, step, seeds
        )
    for q in SAMPLES:
        noise = constant(unit * sampling_cost(q, mu, iterations))
        found[f"secret sampling of {q:.0%}"] = descend(records, noise, iterations, step, seeds, q=q)
    return found


def constant(sigma: float) -> Callable[[int], float]:
    """The same noise at every iteration."""
    return lambda _: sigma


def growing(unit: float, rate: float, iterations: int) -> Callable[[int], float]:
    """Noise whose variance falls from `rate` times the last one's, with the sum of 1/variance of `unit`
    throughout."""
    variance = rate ** (-np.arange(iterations) / max(1, iterations - 1))
    deviation = unit * np.sqrt(variance * float(np.mean(1 / variance)))
    return lambda t: float(deviation[t - 1])


def _newton(records: Records, mu: float, share: float, iterations: int, step: float, seeds: Sequence[int]) -> Array:
    """One matrix a seed; steps are longer, up to LONGEST times, along directions that are less curved than the
    first."""
    rest = 2 * records.loss.G / (records.n * mu * math.sqrt(1 - share)) * math.sqrt(iterations)
    noise = functional.SPREAD / (records.n * mu * math.sqrt(share))
    exact = functional.coefficients(records.X, records.y)
    gaps = []
    for seed in seeds:
        rng = np.random.default_rng([0x0DE, seed])
        _, A = functional.decode(exact + noise * rng.standard_normal(len(exact)), records.d)
        values, vectors = np.linalg.eigh(A)
        # curvature below the noise's edge is not known
        floor = functional.noise_floor(records.d, noise) / functional.EDGE_SHARE
        curved = np.maximum(values, floor) / 4 + records.lam
        longer = np.minimum(curved.max() / curved, LONGEST)
        noises = constant(rest)
        gaps.append(descend(records, noises, iterations, step, [seed], scale=_stretch(vectors, longer))[0])
    return np.array(gaps)


def _stretch(vectors: Array, factors: Array) -> Callable[[Array], Array]:
    """Rows multiplied by V diag(factors) V'."""
    return lambda slope: np.asarray((slope @ vectors * factors) @ vectors.T)
