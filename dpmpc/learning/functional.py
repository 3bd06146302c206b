"""The functional mechanism: one noisy release of the coefficients of the objective, which is then minimised in
public.

A quadratic objective needs two sums over records, b = mean y x and A = mean x x':

    ridge      1/2 (x . theta - y)^2      = const - y x . theta + 1/2 theta' x x' theta          exact
    logistic   log(1 + exp(-y x . theta)) ~ log 2 - 1/2 y x . theta + 1/8 theta' x x' theta      second order at 0

so that d + d(d+1)/2 numbers replace all iterations. The vector of one record is (y x, svec(x x')): the upper triangle
of x x' with its off-diagonal entries times sqrt(2), whose norm is |x|^2.

**Sensitivity.** For records in the unit ball, |y| <= 1 and z = y x: |z - z'|^2 = |z|^2 + |z'|^2 - 2 z . z' and |x x'
- u u'|_F^2 = |x|^4 + |u|^4 - 2 (x . u)^2. With k = |x . u| both grow in |x| and |u|, and in sum at most 2 + 2 k + 2 -
2 k^2, largest at k = 1/2: 9/2. So two records' vectors differ by at most SPREAD = 3/sqrt(2), attained by unit vectors
at 60 degrees with opposite labels (or at 120 degrees with the same). Zhang et al. bound the L1 norm instead:
`l1_spread`.

**The minimum.** Noise on A is symmetric with entries of one scale, so its eigenvalues reach about sigma sqrt(2 d):
many of A's own are lost in it, and some sums are not even convex. Eigenvalues are raised to half of that edge (public
numbers): without, gaps are tens of times larger on small data, and an indefinite sum has no minimum at all.

Source: Zhang et al. 2012 (Laplace); Imtiaz, Mohammadi and Sarwate 2019, sections 4.1-4.2 (Gaussian, L2), whose text
stops before the sensitivities and the distributed form: both are derived here. Departures: one joint release instead
of one for each degree; the constant term is not needed; eigenvalues are raised, not rows dropped.
"""

import math
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dpmpc.errors import UsageError
from dpmpc.privacy.checks import check_nonnegative, check_positive
from dpmpc.privacy.sensitivity import Sensitivity

Floats = NDArray[np.float64]
Task = Literal["logistic", "ridge"]

SPREAD = 3.0 / math.sqrt(2.0)
"""How far two records' vectors can lie apart, L2: what 2G is for gradients."""
NORM = math.sqrt(2.0)
"""The largest norm of one record's vector, and so of an owner's mean: the clipping bound."""
EDGE_SHARE = 0.5


def coordinates(dimension: int) -> int:
    """d (d + 3) / 2: the length of the vector."""
    return dimension * (dimension + 3) // 2


def l1_spread(dimension: int) -> float:
    """2 (sqrt(d) + sqrt(d) + (d - 1)/sqrt(2)): how far two records' vectors can lie apart, L1, for Laplace noise.

    |y x|_1 <= sqrt(d); |svec(x x')|_1 = sum x_i^2 + sqrt(2) sum_(i<j) |x_i x_j| <= 1 + (d - 1)/sqrt(2); an upper
    bound.
    """
    return 2.0 * (math.sqrt(dimension) + 1.0 + (dimension - 1) / math.sqrt(2.0))


def features(coordinates: int) -> int:
    """d, of a vector of d (d + 3) / 2 coordinates."""
    return (math.isqrt(9 + 8 * coordinates) - 3) // 2


def spread(dimension: int) -> Sensitivity:
    """How far two records' vectors can lie apart for `dimension` features, in every norm.

    L1: with k = |x . u| as above, and by Cauchy and Schwarz on the d and the d (d + 1) / 2 coordinates each, at most
    the largest of sqrt(d (2 + 2 k)) + sqrt(d (d + 1)/2 (2 - 2 k^2)) over 0 <= k <= 1, which is concave: about d +
    sqrt(2 d), where `l1_spread` has 1.4 d. Linf: 2, of a coordinate of y x.
    """
    first, second = float(dimension), dimension * (dimension + 1) / 2

    def at(k: float) -> float:
        return math.sqrt(first * (2 + 2 * k)) + math.sqrt(second * (2 - 2 * k * k))

    low, high = 0.0, 1.0
    for _ in range(100):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        low, high = (left, high) if at(left) < at(right) else (low, right)
    return Sensitivity(at(low) * (1 + 1e-12), SPREAD, 2.0, {"loss": SPREAD})


def reach(dimension: int) -> Sensitivity:
    """How far a record's vector can lie from the zero vector of one that is absent: NORM in L2, half of `l1_spread` in
    L1, 1 in Linf; each attained."""
    return Sensitivity(l1_spread(dimension) / 2, NORM, 1.0, {"loss": NORM})


def coefficients(X: Floats, y: Floats) -> Floats:
    """(p,) the mean over records X (n, d), y (n,) of (y x, svec(x x')), p = d(d+3)/2; norm at most NORM. Secret.

    Guarantees: replacing one record moves it by at most SPREAD/n.
    Cost: n d^2 multiplications; no temporary larger than X.
    """
    if len(y) == 0:
        raise UsageError("an owner needs at least one record; it has none; leave it out", code="enough")
    return pack(y @ X / len(y), X.T @ X / len(y))


def owner_coefficients(X_sorted: Floats, y_sorted: Floats, offsets: NDArray[np.int64]) -> Floats:
    """(m, p) every owner's vector; owner j holds rows offsets[j]:offsets[j+1]."""
    rows = [coefficients(X_sorted[begin:end], y_sorted[begin:end]) for begin, end in pairwise(offsets)]
    return np.stack(rows)


def decode(vector: Floats, dimension: int) -> tuple[Floats, Floats]:
    """(b (d,), A (d, d)) of a vector (p,): A symmetric, its off-diagonal entries divided by sqrt(2)."""
    if len(vector) != coordinates(dimension):
        raise UsageError(
            f"the coefficients of {dimension} features are {coordinates(dimension)} numbers; got {len(vector)}; give "
            "the dimension of the release",
            code="shape",
        )
    A = np.zeros((dimension, dimension))
    A[np.triu_indices(dimension)] = vector[dimension:]
    off = np.triu(A, 1) / math.sqrt(2.0)
    return vector[:dimension], off + off.T + np.diag(np.diag(A))


def minimiser(vector: Floats, dimension: int, task: Task, lam: float, noise: float = 0.0) -> Floats:
    """(d,) the model from the opened mean `vector` (p,); noise: its standard deviation a coordinate. Post-processing.

    Minimises -s b . theta + t/2 theta' A+ theta + lam/2 |theta|^2 with (s, t) = (1, 1) for ridge, (1/2, 1/4) for
    logistic; A+ is A with eigenvalues raised to `noise_floor`.
    """
    check_positive("regularisation lam", lam)
    b, A = decode(vector, dimension)
    values, vectors = np.linalg.eigh(A)
    values = np.maximum(values, noise_floor(dimension, noise))
    s, t = (1.0, 1.0) if task == "ridge" else (0.5, 0.25)
    theta: Floats = vectors @ ((vectors.T @ (s * b)) / (t * values + lam))
    return theta


def noise_floor(dimension: int, noise: float) -> float:
    """Half the edge sigma sqrt(2 d) of the spectrum of the noise on A: diagonal N(0, sigma^2), the rest half as
    variable."""
    return EDGE_SHARE * check_nonnegative("noise", noise) * math.sqrt(2.0 * dimension)


def pack(b: Floats, A: Floats) -> Floats:
    """(p,) the vector of mean y x (d,) and mean x x' (d, d): the inverse of `decode`."""
    scaled = A * math.sqrt(2.0)
    np.fill_diagonal(scaled, np.diag(A))
    return np.concatenate([b, scaled[np.triu_indices(len(A))]])
