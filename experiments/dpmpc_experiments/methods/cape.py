"""CAPE: sites send noisy mean gradients whose noise mostly cancels; and the two other ways to make noise at the
sites.

Source: Imtiaz, Mohammadi and Sarwate 2019, Algorithms 1 and 2, for gradients as their section 3.4 names them; weights
n_s/n. The run's (epsilon, delta) is kept towards ceil(m/3) - 1 colluding sites (Theorem 1's number), so the noise is
that of MPC times `privacy.cape.collusion_factor`. made "cape": zero-sum noise; "masks": own noise kappa/sqrt(S) under
secure aggregation, whose masks are uniform; "none": independent noise, the conventional way.
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dpmpc.circuits.sampler import Sampler, discrete_gaussian
from dpmpc.errors import UsageError
from dpmpc.lazy import dataclass
from dpmpc.mpc.clear.noise import clear_noise
from dpmpc.mpc.numbers.prg import Prg
from dpmpc.noise.zero_sum import from_masks
from dpmpc.privacy.cape import collusion_factor, most_colluding
from dpmpc.privacy.gaussian_law import GAUSSIAN
from dpmpc_experiments import gradient
from dpmpc_experiments.descent import descend, descend_through
from dpmpc_experiments.method import Aggregate, Claim, Run, gaussian
from dpmpc_experiments.noise import generator
from dpmpc_experiments.outputs import no_mpc
from dpmpc_experiments.records import Problem

Array = NDArray[np.float64]
Made = Literal["cape", "masks", "none"]
STEPS = 1 << 20  # grid steps of the smallest noise


class Sites:
    """The sites and the aggregator of Algorithm 2 as an `Aggregate`; their secure sum goes through `aggregate`.

    Every site rounds its vector on a grid, adds its zero-sum part and its own noise, and sends the integer; the
    aggregator adds the messages up in the open. Exact: e cancels to 0, and rounding is the sites' own.
    """

    def __init__(self, aggregate: Aggregate) -> None:
        self.aggregate = aggregate
        self.sent: NDArray[np.int64] | None = None  # the last messages (m, d), for tests

    def __call__(self, vectors: Array, law: str, scale: float) -> Array:
        """The mean of vectors (m, d) plus noise of deviation `scale`, of which the sites make kappa/sqrt(m) each."""
        if law != GAUSSIAN.name:
            raise UsageError(f"sites make {GAUSSIAN.name} noise; got {law}; use another method", code="choice")
        if scale == 0.0:
            return self.aggregate(vectors, law, 0.0)
        m, d = vectors.shape
        bits = math.ceil(math.log2(STEPS / (scale * math.sqrt(m))))
        kappa = math.ldexp(scale * m, bits)
        own, zero = _sampler(kappa / math.sqrt(m)), _sampler(kappa)
        steps = np.rint(np.ldexp(vectors, bits)).astype(np.int64)
        prg = [Prg.from_os() for _ in range(m)]
        draws = np.stack([clear_noise(zero, d, site) for site in prg])
        noise = np.stack([clear_noise(own, d, site) for site in prg])

        def secure_sum(x: NDArray[np.int64]) -> NDArray[np.int64]:
            mean = self.aggregate(np.ldexp(x.astype(np.float64), -bits), law, 0.0)
            return np.asarray(np.rint(np.ldexp(mean * m, bits)), dtype=np.int64)

        self.sent = steps + from_masks(draws, secure_sum) + noise
        return np.asarray(np.ldexp(self.sent.sum(axis=0).astype(np.float64), -bits) / m)


@lru_cache(maxsize=8)
def _sampler(scale: float) -> Sampler:
    return discrete_gaussian(scale)


@dataclass(frozen=True)
class Cape:
    name: str = "CAPE"
    made: Made = "cape"
    sends: str = "its noisy mean gradient, each iteration"
    noise: str = "zero-sum noise from one secure sum and a small vector of its own, by every site"

    def scale(self, problem: Problem, run: Run) -> float:
        """Noise on the aggregate that keeps the run's budget towards the most colluding sites."""
        honest = problem.m - most_colluding(problem.m)
        return gaussian(run, gradient.sensitivity(problem, "size")) * collusion_factor(problem.m, honest, self.made)

    def claim(self, problem: Problem, run: Run) -> Claim:
        budget = (run.epsilon, run.delta)
        scale = self.scale(problem, run)
        if scale == 0.0:
            return Claim("none", 0.0, budget, (float("inf"), 0.0))
        return Claim("gaussian (sum over owners)", scale, budget, budget)

    def models(
        self, problem: Problem, runs: Sequence[Run], at: Sequence[int], aggregate: Aggregate | None = None
    ) -> Array:
        """With `aggregate` the sites' protocol runs, its secure sums through it; without, noise of the same law."""
        if self.made != "cape":
            no_mpc(self.name, aggregate)
        sigma = np.array([self.scale(problem, run) for run in runs])
        eta = np.array([run.eta for run in runs])
        if aggregate is not None:
            sites = Sites(aggregate)
            through = [
                descend_through(problem, sites, kind="size", law=GAUSSIAN.name, scale=float(s), eta=run.eta, at=at)
                for s, run in zip(sigma, runs, strict=True)
            ]
            return np.stack(through, axis=1)
        streams = [generator(run.seed, self.name, run.epsilon, run.calibration) for run in runs]
        return descend(
            problem,
            weights=problem.weights("size"),
            noise=lambda _: sigma[:, None] * np.stack([rng.standard_normal(problem.records.d) for rng in streams]),
            steps=lambda _: eta,
            ridge=np.full(len(runs), problem.records.lam),
            at=at,
        )
