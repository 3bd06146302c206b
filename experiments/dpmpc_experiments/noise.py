"""Noise in the clear, and the exact law of the sum of many owners' noise in one draw.

A Laplace variable and a vector with density exp(-beta |v|_2) are Gaussians of random variance, and the variances of
independent copies add up within the gamma family. So the sum over 50,000 owners costs as much as one.
"""

import zlib

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Generator = np.random.Generator


def generator(seed: int, *labels: object) -> Generator:
    """A NumPy generator that depends on the recorded seed and on what the noise is for."""
    return np.random.default_rng([seed, zlib.crc32("/".join(map(str, labels)).encode())])


def laplace_sum(rng: Generator, scales: Array, d: int) -> Array:
    """The sum over owners j of d-vectors of independent Laplace(scales[j]) coordinates, (d,), exact in law.

    Laplace(b) = b sqrt(2 E) z with E ~ Gamma(1), so k of equal scale sum to b sqrt(2 Gamma(k)) z.
    """
    return _mixture_sum(rng, scales, d, shape=1.0, per_coordinate=True)


def norm_sum(rng: Generator, scales: Array, d: int) -> Array:
    """The sum over owners j of d-vectors of density exp(-|v|_2 / scales[j]), (d,), exact in law.

    The Fourier transform of exp(-|v|/b) is (1 + b^2 |t|^2)^(-(d+1)/2), so one vector is b sqrt(2 W) z with
    W ~ Gamma((d+1)/2), and k of equal scale have W ~ Gamma(k (d+1)/2). The norm of one is Gamma(d) times b.
    """
    return _mixture_sum(rng, scales, d, shape=(d + 1) / 2, per_coordinate=False)


def gaussian_sum(rng: Generator, scales: Array, d: int) -> Array:
    """The sum over owners j of d-vectors of independent N(0, scales[j]^2) coordinates, (d,)."""
    total: Array = np.sqrt(np.sum(np.square(scales))) * rng.standard_normal(d)
    return total


def norm_each(rng: Generator, scales: Array, d: int) -> Array:
    """One vector of density exp(-|v|_2 / scales[j]) for each owner, (m, d)."""
    z = rng.standard_normal((len(scales), d))
    radius = scales * rng.gamma(d, size=len(scales))
    vectors: Array = z * (radius / np.linalg.norm(z, axis=1))[:, None]
    return vectors


def _mixture_sum(rng: Generator, scales: Array, d: int, shape: float, per_coordinate: bool) -> Array:
    values, counts = np.unique(np.asarray(scales, dtype=np.float64), return_counts=True)
    mixing = rng.gamma((counts * shape)[:, None], size=(len(values), d if per_coordinate else 1))
    variance: Array = (2.0 * np.square(values)) @ mixing
    total: Array = np.sqrt(variance) * rng.standard_normal(d)
    return total
