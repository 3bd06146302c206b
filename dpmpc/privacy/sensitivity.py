"""How far one record can move the aggregate, in three norms at once, and the parts that this is made of.

Neighbours differ in one record of one owner (replaced); the sizes n_j are public; records lie in the unit ball and the
loss is G-Lipschitz in theta there. The aggregate is sum_j w_j v_j with w_j = 1/m ("equal") or n_j/n ("size").
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dpmpc.errors import UsageError
from dpmpc.lazy import dataclass
from dpmpc.privacy.checks import check_count, check_nonnegative, check_number, check_positive

Weights = Literal["equal", "size"]


@dataclass(frozen=True)
class Sensitivity:
    """How far a vector moves between neighbours: by at most `l1`, `l2` and `linf` in these norms, all at once.

    Whoever knows the vectors says what it knows (inf is "not known"); the law takes what it needs. What is not said
    follows: linf <= l2 <= l1 and l2^2 <= l1 linf here, l1 <= sqrt(d) l2 and l2 <= sqrt(d) linf in `within(d)`. So a
    histogram's (2, sqrt(2), 1) stays as it is, and a ball's (inf, 2, inf) in 100 coordinates is (20, 2, 2). `parts`:
    what l2 is the sum of (`loss`, `solver`, `rounding`, ...), for reports; two that differ in them alone are equal.
    Guarantees: of real vectors; each bound is proved by who states it. Errors: UsageError where nothing is known.
    """

    l1: float = math.inf
    l2: float = math.inf
    linf: float = math.inf
    parts: Mapping[str, float] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        for norm in ("l1", "l2", "linf"):
            if not getattr(self, norm) >= 0:
                raise UsageError(
                    f"a sensitivity is at least 0 in every norm; {norm} is {getattr(self, norm)}; mend it", code="range"
                )
        linf = min(self.linf, self.l2, self.l1)
        if math.isinf(linf):
            raise UsageError(
                "a sensitivity is known in one norm at least; none is finite; state l1, l2 or linf", code="missing"
            )
        between = math.sqrt(self.l1 * linf) if linf and math.isfinite(self.l1) else self.l1 if not linf else math.inf
        object.__setattr__(self, "linf", linf)
        object.__setattr__(self, "l2", min(self.l2, between))

    @staticmethod
    def flat(value: float) -> "Sensitivity":
        """At most `value` in every norm: what a number alone says to a law that calibrates by L1, and more than it says
        to one that does by L2, which does not look at L1."""
        return Sensitivity(value, value, value)

    @staticmethod
    def from_json(value: Any) -> "Sensitivity":
        """What `to_json` gave, or the number alone of an older line. Errors: TypeError, ValueError, UsageError."""
        if not isinstance(value, dict):
            return Sensitivity.flat(check_number("a sensitivity", value))
        l1, l2, linf = (check_number(name, value[name]) for name in ("l1", "l2", "linf"))
        return Sensitivity(l1, l2, linf)

    def to_json(self) -> dict[str, float]:
        """The three norms as JSON values."""
        return {"l1": self.l1, "l2": self.l2, "linf": self.linf}

    def within(self, dimension: int) -> "Sensitivity":
        """The same in so many coordinates: every norm is known."""
        root = math.sqrt(check_count("dimension", dimension))
        l2 = min(self.l2, root * self.linf)
        return Sensitivity(min(self.l1, root * l2), l2, self.linf, self.parts)

    @property
    def bare(self) -> "Sensitivity":
        """The norms without the parts."""
        return Sensitivity(self.l1, self.l2, self.linf)

    def __add__(self, other: "Sensitivity") -> "Sensitivity":
        """Of the sum of two vectors that move at the same time (the triangle inequality, in each norm)."""
        names = {**self.parts, **other.parts}
        parts = {name: self.parts.get(name, 0.0) + other.parts.get(name, 0.0) for name in names}
        return Sensitivity(self.l1 + other.l1, self.l2 + other.l2, self.linf + other.linf, parts)

    def __mul__(self, factor: float) -> "Sensitivity":
        """Of the vector times `factor`, at least 0."""
        parts = {name: part * factor for name, part in self.parts.items()}
        return Sensitivity(_times(self.l1, factor), _times(self.l2, factor), _times(self.linf, factor), parts)

    def steps(self, step: float) -> "Sensitivity":
        """In units of `step` (for the opened integer sum: step = gamma / divisor)."""
        return self * (1 / check_positive("grid step", step))

    def __le__(self, other: "Sensitivity") -> bool:
        """Whether it is at most the other in every norm."""
        return self.l1 <= other.l1 and self.l2 <= other.l2 and self.linf <= other.linf

    def in_norm(self, norm: int) -> float:
        """l1 or l2. Errors: UsageError for another norm, or one that is not known yet (`within`)."""
        if norm not in (1, 2):
            raise UsageError(f"noise is calibrated by norm 1 or 2; got {norm!r}; mend the law's norm")
        value = self.l1 if norm == 1 else self.l2
        if math.isinf(value):
            raise UsageError(
                f"the sensitivity in norm {norm} follows from the dimension; none was given; give it", code="missing"
            )
        return value


def joined(blocks: Sequence[Sensitivity]) -> Sensitivity:
    """Of the vector that is made of these side by side, where one change moves all of them: l1 adds up, l2 by squares,
    linf is the largest. Say first what each is `within` its own coordinates."""
    if not blocks:
        raise UsageError("a vector is made of blocks; there are none; give one at least")
    return Sensitivity(
        math.fsum(block.l1 for block in blocks),
        math.hypot(*(block.l2 for block in blocks)),
        max(block.linf for block in blocks),
    )


def _times(value: float, factor: float) -> float:
    return value if math.isinf(value) else value * factor


def weights_for(said: Weights | None, sizes: Sequence[int] | NDArray[np.int64]) -> Weights:
    """How owners weigh: as was said; else by their sizes. Where all have the same, that is the mean of owners, which
    divides by their number, whatever the sizes are. The one rule of all that makes a plan."""
    return said or ("equal" if len({int(size) for size in sizes}) == 1 else "size")


def owner_weights(sizes: Sequence[int] | NDArray[np.int64], weights: Weights) -> NDArray[np.float64]:
    """(m,) weights w_j of the aggregate: 1/m each, or n_j/n."""
    counts = np.asarray(sizes, dtype=np.float64)
    if counts.ndim != 1 or counts.size == 0:
        raise UsageError(
            f"there must be at least one owner; got sizes of shape {counts.shape}; give one size per owner",
            code="enough",
        )
    if not np.all(counts >= 1):
        raise UsageError(
            f"every owner must hold at least one record; the smallest holds {counts.min():g}; leave empty owners out",
            code="enough",
        )
    if weights == "equal":
        return np.full(counts.size, 1.0 / counts.size)
    if weights == "size":
        w: NDArray[np.float64] = counts / counts.sum()
        return w
    raise UsageError(
        f"weights must be 'equal' or 'size'; got {weights!r}; use 'size' to weight owners by n_j/n", code="choice"
    )


def rounding_bound(dimension: int, step: float, divisor: float) -> Sensitivity:
    """The most that rounding on the grid can add to the sensitivity of the aggregate: step / divisor a coordinate.

    `divisor` is what the opened integer sum is divided by: m, or n when owners pre-weight by n_j. Rounding moves each
    coordinate by at most step/2, on both neighbours, and only one owner's vector differs between them.
    """
    check_count("dimension", dimension)
    one, root = check_positive("grid step", step) / check_positive("divisor", divisor), math.sqrt(dimension)
    l2 = root * step / divisor
    return Sensitivity(dimension * one, l2, one, {"rounding": l2})


def arithmetic_bound(scale: float, sizes: Sequence[int] | NDArray[np.int64], weights: Weights) -> Sensitivity:
    """The most that double precision can add to the L2 sensitivity of the aggregate; a part of `rounding`.

    An owner's vector is a mean of n_j terms of norm at most `scale`, summed in any order in doubles: it is within
    (n_j + 2) 2^-53 scale of the exact mean, on either of two neighbours, and only one owner's vector differs between
    them. So 2 max_j w_j (n_j + 2) 2^-53 scale: n_j^2 2^-53 of the rest of the sensitivity.
    Source: Higham, Accuracy and Stability of Numerical Algorithms, section 4.2 (any order of summation), normwise.
    """
    counts = np.asarray(sizes, dtype=np.float64)
    l2 = float(2 * scale * 2.0**-53 * (owner_weights(sizes, weights) * (counts + 2)).max())
    return Sensitivity(l2=l2, parts={"rounding": l2})


def owner_sensitivity(clip: float, factors: Sequence[int], divisor: int) -> Sensitivity:
    """The L2 sensitivity of the weighted mean of vectors of norm at most `clip`, one owner's replaced by any other: the
    opened sum moves by at most 2 clip times the largest factor."""
    return sum_of_parts({"vector": 2 * clip * max(factors) / divisor})


def record_sensitivity(
    spread: Sensitivity, sizes: Sequence[int] | NDArray[np.int64], weights: Weights = "equal"
) -> Sensitivity:
    """The sensitivity of the weighted mean of owners' means of records' vectors, two of which differ by `spread`; or,
    of a record's presence, one of which differs from the zero vector by that.

    Guarantees: replacing one of n_j records moves owner j's mean by spread/n_j and the aggregate by max_j w_j spread /
    n_j: spread/(m n_(1)) with equal weights, spread/n with weights n_j/n. Likewise for the zero vector in its place.
    """
    owner_weights(sizes, weights)
    counts = np.asarray(sizes, dtype=np.float64)
    return spread * _weight_per_record(counts, weights, int(np.argmin(counts)))


def output_sensitivity(
    *,
    G: float,
    lam: float,
    sizes: Sequence[int] | NDArray[np.int64],
    weights: Weights = "equal",
    solver_gradient_norm: float = 0.0,
    presence: bool = False,
    farthest: float = math.inf,
) -> Sensitivity:
    """The L2 sensitivity of the weighted mean of the owners' local optima; `presence`: a record is absent, and not
    replaced; `farthest`: the norm that no exact optimum exceeds (`losses.farthest`).

    `solver_gradient_norm` is the *public* bound g on |grad J_j| at the returned local model that every owner enforces
    on any data (the solver's tolerance, not a value measured on this data: a measured one would depend on the
    records).

    Guarantees: the local objective J_j = mean loss + lam/2 |theta|^2 is lam-strongly convex, so replacing one of n_j
    records moves its exact minimiser by at most 2G/(n_j lam), and |theta_hat - theta*| <= |grad J_j(theta_hat)|/lam on
    either neighbour. Hence max_j w_j (2G/(n_j lam) + 2g/lam). With weights 1/m the loss part is
    2G/(m n_(1) lam); with n_j/n it is 2G/(n lam) whatever the sizes. A record that is absent takes its one gradient of
    norm G out of the sum, where n_j stays: G for 2G. Two optima within `farthest` of 0 are no more than twice that
    apart, which is less where an owner has few records for lam.
    Source: Chaudhuri, Monteleoni, Sarwate 2011, Corollary 8; Jayaraman et al. 2018, Theorem 3.1 (equal weights, exact
    minimisers).
    """
    check_positive("Lipschitz constant G", G)
    check_positive("regularisation lam", lam)
    check_nonnegative("solver gradient norm", solver_gradient_norm)
    w = owner_weights(sizes, weights)
    counts = np.asarray(sizes, dtype=np.float64)
    moved = G if presence else 2 * G
    each = np.minimum(moved / (counts * lam), 2 * farthest)
    worst = int(np.argmax(w * (each + 2 * solver_gradient_norm / lam)))
    solver = float(w[worst]) * 2 * solver_gradient_norm / lam
    loss = min(moved / lam * _weight_per_record(counts, weights, worst), float(w[worst]) * 2 * farthest)
    return sum_of_parts({"loss": loss, "solver": solver})


def gradient_sensitivity(
    *,
    G: float,
    sizes: Sequence[int] | NDArray[np.int64],
    weights: Weights = "equal",
) -> Sensitivity:
    """The L2 sensitivity of one aggregate of the owners' mean gradients at a public theta.

    Guarantees: each record's gradient has norm at most G, so replacing one moves owner j's mean by at most 2G/n_j and
    the aggregate by max_j w_j 2G/n_j: 2G/(m n_(1)) with equal weights, 2G/n with weights n_j/n.
    Source: Jayaraman et al. 2018, proof of Theorem 3.4; Kang et al. 2019, proof of Theorem 1.
    """
    spread = 2 * check_positive("Lipschitz constant G", G)
    return record_sensitivity(Sensitivity(l2=spread, parts={"loss": spread}), sizes, weights)


def _weight_per_record(counts: NDArray[np.float64], weights: Weights, owner: int) -> float:
    """w_j / n_j of one owner, without the rounding error of forming n_j/n first."""
    if weights == "size":
        return 1.0 / float(counts.sum())
    return 1.0 / (counts.size * float(counts[owner]))


def sum_of_parts(parts: Mapping[str, float]) -> Sensitivity:
    """The L2 sensitivity whose parts these are."""
    return Sensitivity(l2=math.fsum(parts.values()), parts=parts)
