"""Families of regression models on tables: what a record of a cell adds to the score, at any parameter.

A record lies in a cell j of its covariates' combination c. Its score is Z_c' S_j, where S_j is a short vector that
depends on linear predictors eta_c = Z_c theta alone, one of them or a few, and sums over records are linear in the
counts: Z_c' sum_j k_cj S_j. So noise that is added to counts leaves the score unbiased at every parameter.

Any weights w(eta) leave it unbiased as well. Where the likelihood's scores grow without a bound with a parameter, as
hazards' do, so does what noise adds to them, and a far value of a baseline that the noise hides would hide all
coefficients with it: such weights are bounded. `exact` is the family by the likelihood, for tables without noise.

A family gives S (..., C, J, B) and its derivatives, either by the same predictor (..., C, J, B) where S_jb depends on
eta_b alone, or in full (..., C, J, B, B), S_jb by eta_a in [b, a].
"""

import math
from typing import Protocol

import numpy as np

from dpmpc.lazy import dataclass
from dpmpc.statistics.intervals import Floats

_FAR = 30.0
MOST_HAZARD = 1.5  # of a bin, up to which records weigh as in the likelihood


class Family(Protocol):
    """How many predictors a cell has, and its scores. Hashable, public."""

    @property
    def predictors(self) -> int: ...
    @property
    def cells(self) -> int: ...
    @property
    def exact(self) -> "Family": ...
    def scores(self, eta: Floats) -> tuple[Floats, Floats]: ...
    def start(self, totals: Floats) -> Floats: ...
    def chances(self, eta: Floats) -> Floats: ...


def expit(x: Floats) -> Floats:
    """1 / (1 + e^-x)."""
    return np.asarray(0.5 * (1 + np.tanh(np.asarray(x) / 2)))


@dataclass(frozen=True)
class Logit:
    """Cells: no, yes. P(yes) = 1 / (1 + e^-eta)."""

    predictors, cells = 1, 2

    @property
    def exact(self) -> "Logit":
        return self

    def scores(self, eta: Floats) -> tuple[Floats, Floats]:
        p = expit(eta)[..., None, :]
        slope = -p * (1 - p)
        return np.concatenate([-p, 1 - p], axis=-2), np.concatenate([slope, slope], axis=-2)

    def chances(self, eta: Floats) -> Floats:
        """(..., C, J) of the cells."""
        p = expit(eta)
        return np.concatenate([1 - p, p], axis=-1)

    def start(self, totals: Floats) -> Floats:
        """(B,) the predictors of all records together."""
        no, yes = np.maximum(totals, 0.5)
        return np.array([np.log(yes / no)])


@dataclass(frozen=True)
class Poisson:
    """Cells: `values` that were counted. Their mean is exp(eta) times `exposure` of the cell's covariates, all 1 here:
    exposures are an offset of eta."""

    values: tuple[float, ...]

    predictors = 1

    @property
    def cells(self) -> int:
        return len(self.values)

    @property
    def exact(self) -> "Poisson":
        return self

    def scores(self, eta: Floats) -> tuple[Floats, Floats]:
        mean = np.exp(np.clip(eta, -_FAR, _FAR))[..., None, :]
        y = np.array(self.values)[:, None]
        return y - mean, np.broadcast_to(-mean, np.broadcast_shapes(mean.shape, y.shape))

    def chances(self, eta: Floats) -> Floats:
        """(..., C, J) of the cells; the rest beyond the last one is left out."""
        from math import lgamma

        y = np.array(self.values)
        logs = y * eta - np.exp(np.clip(eta, -_FAR, _FAR)) - np.array([lgamma(v + 1) for v in self.values])
        return np.asarray(np.exp(logs))

    def start(self, totals: Floats) -> Floats:
        """(B,) the predictor of all records together."""
        n = max(float(np.sum(totals)), 1.0)
        return np.array([np.log(max(float(totals @ np.array(self.values)), 0.5) / n)])


@dataclass(frozen=True)
class Ordinal:
    """Cells: `levels` in their order. P(level > k) = 1 / (1 + e^-eta_k), k = 0 ... levels - 2: proportional odds."""

    levels: int

    @property
    def predictors(self) -> int:
        return self.levels - 1

    @property
    def cells(self) -> int:
        return self.levels

    @property
    def exact(self) -> "Ordinal":
        return self

    def scores(self, eta: Floats) -> tuple[Floats, Floats]:
        """log P(level k) = log(F(eta_{k-1}) - F(eta_k)), F decreasing along k; no level has less than 1e-9."""
        K, B = self.levels, self.levels - 1
        F = expit(eta)
        f = F * (1 - F)
        f1 = f * (1 - 2 * F)
        p = np.maximum(self.chances(eta), 1e-9)
        S = np.zeros((*eta.shape[:-1], K, B))
        D = np.zeros((*eta.shape[:-1], K, B, B))
        for k in range(K):
            if k:  # eta_{k-1}: the lower end
                S[..., k, k - 1] = f[..., k - 1] / p[..., k]
                D[..., k, k - 1, k - 1] = f1[..., k - 1] / p[..., k] - S[..., k, k - 1] ** 2
            if k < B:
                S[..., k, k] = -f[..., k] / p[..., k]
                D[..., k, k, k] = -f1[..., k] / p[..., k] - S[..., k, k] ** 2
            if 0 < k < B:
                mixed = -S[..., k, k - 1] * S[..., k, k]
                D[..., k, k - 1, k] = D[..., k, k, k - 1] = mixed
        return S, D

    def chances(self, eta: Floats) -> Floats:
        """(..., C, J) of the cells."""
        F = expit(eta)
        ones, zeros = np.ones((*F.shape[:-1], 1)), np.zeros((*F.shape[:-1], 1))
        return np.asarray(np.concatenate([ones, F], axis=-1) - np.concatenate([F, zeros], axis=-1))

    def start(self, totals: Floats) -> Floats:
        """(B,) the predictors of all records together."""
        above = np.cumsum(np.maximum(totals, 0.5)[::-1])[::-1]
        return np.asarray(np.log(above[1:] / (above[0] - above[1:])))


@dataclass(frozen=True)
class Hazard:
    """Grouped proportional hazards over `bins` bins. Cells: an event in bin 0 ... bins - 1, then the end of observation
    at the boundary 0 ... bins (the last: followed to the end). Whoever leaves at a boundary has lived the bins before
    it. A bin's hazard is h = 1 - exp(-exp(eta_b)): the complementary log-log link of proportional hazards.

    What a record adds in a bin that it enters is w (1[event] - h). The likelihood has w = E / h, E = exp(eta), which
    grows with E, as the noise of those that live through the bin then does. Here it is that up to E = `most`, and
    stays there: nothing is lost where e^-1.5 (.22) of each cell or more live through each bin."""

    bins: int
    most: float = MOST_HAZARD

    @property
    def predictors(self) -> int:
        return self.bins

    @property
    def cells(self) -> int:
        return 2 * self.bins + 1

    @property
    def exact(self) -> "Hazard":
        return Hazard(self.bins, math.inf)

    def scores(self, eta: Floats) -> tuple[Floats, Floats]:
        """In a bin that is lived through -w h; in that of the event w (1 - h)."""
        B = self.bins
        E = np.exp(np.clip(eta, -_FAR, 4.0))  # exp(-exp(4)) is 0 for all purposes
        h = -np.expm1(-E)
        low = self.most >= E
        w = np.where(low, E / h, self.most / -np.expm1(-self.most))
        slope = np.where(low, w * (1 - w * (1 - h)), 0.0)  # of w by eta
        died, lived = w * (1 - h), w * h
        sinks, falls = (slope - w * E) * (1 - h), slope * h + w * E * (1 - h)
        before = np.tril(np.ones((B + 1, B)), -1)  # by boundary, the bins before it
        event = np.eye(B)
        S = np.concatenate(
            [event * died[..., None, :] - before[:B] * lived[..., None, :], -before * lived[..., None, :]], axis=-2
        )  # fmt: skip
        D = np.concatenate(
            [event * sinks[..., None, :] - before[:B] * falls[..., None, :], -before * falls[..., None, :]], axis=-2
        )  # fmt: skip
        return S, D

    def chances(self, eta: Floats) -> Floats:
        """(..., C, J) of the cells, where nobody leaves before the end."""
        E = np.exp(np.clip(eta, -_FAR, 4.0))
        alive = np.exp(-np.cumsum(E, axis=-1))
        before = np.concatenate([np.ones((*alive.shape[:-1], 1)), alive[..., :-1]], axis=-1)
        gone = np.zeros((*alive.shape[:-1], self.bins + 1))
        gone[..., -1] = alive[..., -1]
        return np.concatenate([before * -np.expm1(-E), gone], axis=-1)

    def start(self, totals: Floats) -> Floats:
        """(B,) the predictors of all records together."""
        B = self.bins
        died, gone = np.maximum(totals[:B], 0.25), np.maximum(totals[B:], 0.0)
        left = died + gone[:B]
        risk = np.cumsum(left[::-1])[::-1] + gone[B] - gone[:B]
        h = np.clip(died / np.maximum(risk, 1.0), 1e-4, 0.9)
        return np.asarray(np.log(-np.log1p(-h)))
