"""A neural network with one hidden layer under noisy gradients: the objective that CAPE's section 3.4 names.

f(x) = w2 . tanh(W1 x + b1) + b2, logistic loss. Every record's gradient is clipped to norm C, so that replacing a
record moves the mean by 2C/n: its norm is known without forming it, since the gradient of W1 is an outer product. The
paper's text stops before it says which networks and data sets it used; here it is Adult, 16 hidden units, full batches.
Source: Imtiaz, Mohammadi and Sarwate 2019, section 3.4 and equation (6); clipping as Abadi et al. 2016.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from dpmpc.lazy import dataclass

Array = NDArray[np.float64]

HIDDEN, CLIP, STEP, ITERATIONS = 16, 1.0, 5.0, 150


@dataclass
class Network:
    """The weights of one network: W (h, d + 1) with the bias last, w (h + 1,) likewise."""

    W: Array
    w: Array

    @staticmethod
    def start(dimension: int, seed: int) -> "Network":
        """Random hidden units, an output of 0: public."""
        rng = np.random.default_rng([0xCA9E, seed])
        W = rng.standard_normal((HIDDEN, dimension + 1)) * 2.0
        return Network(W, np.zeros(HIDDEN + 1))

    @property
    def parameters(self) -> int:
        return self.W.size + self.w.size

    def hidden(self, X: Array) -> Array:
        """(n, h + 1) the hidden layer, a constant last."""
        out = np.tanh(X @ self.W[:, :-1].T + self.W[:, -1])
        return np.column_stack([out, np.ones(len(X))])

    def gradient(self, X: Array, y: Array, clip: float = CLIP) -> tuple[Array, Array]:
        """The mean over records of the gradients of W and w, each record's clipped to norm `clip`."""
        H = self.hidden(X)
        outer = -y * expit(-y * (H @ self.w))
        inner = outer[:, None] * self.w[:-1] * (1.0 - H[:, :-1] ** 2)
        x2 = np.einsum("nd,nd->n", X, X) + 1.0
        norm = np.sqrt(outer**2 * np.einsum("nh,nh->n", H, H) + np.einsum("nh,nh->n", inner, inner) * x2)
        keep = np.minimum(1.0, clip / np.maximum(norm, 1e-300)) / len(y)
        weighted = inner * keep[:, None]
        return np.column_stack([weighted.T @ X, weighted.sum(axis=0)]), (outer * keep) @ H

    def accuracy(self, X: Array, y: Array) -> float:
        return float(np.mean((self.hidden(X) @ self.w > 0) == (y > 0)))


def train(X: Array, y: Array, sigma: float, seed: int, iterations: int = ITERATIONS) -> Network:
    """A network after noisy full-batch steps; sigma: noise a parameter on the mean gradient."""
    net = Network.start(X.shape[1], seed)
    rng = np.random.default_rng([0xCA9F, seed])
    for _ in range(iterations):
        slope_W, slope_w = net.gradient(X, y)
        net.W = net.W - STEP * (slope_W + sigma * rng.standard_normal(net.W.shape))
        net.w = net.w - STEP * (slope_w + sigma * rng.standard_normal(net.w.shape))
    return net


def accuracies(X: Array, y: Array, X_test: Array, y_test: Array, sigma: float, seeds: Sequence[int]) -> list[float]:
    """Test accuracies of one network a seed."""
    return [train(X, y, sigma, seed).accuracy(X_test, y_test) for seed in seeds]


def sensitivity(records: int) -> float:
    """2C/n: of the mean of clipped gradients, when a record is replaced."""
    return 2.0 * CLIP / records if records > 0 else math.inf
