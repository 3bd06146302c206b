"""What differs between owners: one effect common to all, effects that vary, and how much, of cells kept apart by owner.

Of S owners' cells of one model:

- **common** effect: the model of all cells with an intercept for each owner. Its set is that of any model
  (`dpmpc.statistics.sets`), with the noise in it. This is what meta-analyses call a fixed effect, from all records.
- **Q**: the joint statistic that no owner's effect differs from the first one's, g' V^-1 g minimised over all other
  coefficients, in a model in which each has its own. V has the noise, so Q is chi-square with S - 1 degrees where
  effects are one, and p counts what noise hides. **I2** is (Q - (S - 1)) / Q, at least 0.
- **tau2**, the variance of log ratios between owners, by moments (DerSimonian and Laird 1986) of the owners' own log
  ratios, whose variances are those of cells and noise together; **mean** of effects that vary: weights 1 / (v + tau2),
  interval by Student's law of the weighted spread, which is taken at least as large as v and tau2 say (Hartung and
  Knapp 2001; Rover, Knapp and Friede 2015). Owners of which the noise hides a direction have no own ratio and are not
  in these two; fewer than three tell nothing.
"""

import math

import numpy as np

from dpmpc.lazy import dataclass
from dpmpc.statistics.chi_square import mixed_tail
from dpmpc.statistics.families import Family
from dpmpc.statistics.intervals import Floats
from dpmpc.statistics.sets import CellModel

FEWEST = 3  # owners with a ratio of their own


@dataclass(frozen=True)
class Varying:
    """Effects that vary: the log of their mean with an interval, the variance between owners, and of how many."""

    mean: float
    low: float
    high: float
    tau2: float
    owners: int


@dataclass(frozen=True, eq=False)
class Apart:
    """Noisy cells of every owner (S, C, J), of one model: design (C, B, P), offset (C, B), the variance of the noise in
    each cell. Public."""

    family: Family
    design: Floats
    counts: Floats
    variance: float
    offset: Floats | float = 0.0

    @property
    def owners(self) -> int:
        return len(self.counts)

    def _table(self, more: Floats, tau: float) -> CellModel:
        """All cells with an intercept for each owner, and (S C, k) more columns."""
        S, (C, B, _) = self.owners, self.design.shape
        own = np.repeat(np.eye(S)[:, 1:], C, axis=0)
        each = [np.tile(self.design, (S, 1, 1)),
                *(np.repeat(part[:, None, :], B, axis=1) for part in (own, more))]  # fmt: skip
        offset = self.offset if isinstance(self.offset, float) else np.tile(self.offset, (S, 1))
        counts = self.counts.reshape(S * C, -1)
        return CellModel(self.family, np.concatenate(each, axis=2), counts, self.variance, offset, tau)

    def common(self, tau: float) -> CellModel:
        """The model of an effect that all owners have; coefficients are where `design` has them."""
        return self._table(np.zeros((self.owners * len(self.design), 0)), tau)

    def differs(self, place: int) -> tuple[float, float]:
        """(Q, p) of no owner's coefficient `place` differing from the first one's, about a population."""
        S, C, P = self.owners, len(self.design), self.design.shape[2]
        mark = np.tile(self.design[:, 0, place], S)
        own = np.repeat(np.eye(S)[:, 1:], C, axis=0) * mark[:, None]
        tested = range(P + S - 1, P + 2 * (S - 1))
        Q, m = self._table(own, 1.0).at_zero(list(tested))
        return float(Q[0]), mixed_tail(float(Q[0]), S - 1, int(m[0]))

    def own(self, place: int) -> tuple[Floats, Floats]:
        """(log ratios, their variances) of the owners that have one of their own, of cells and noise together."""
        values, variances = [], []
        for counts in self.counts:
            table = CellModel(self.family, self.design, counts, self.variance, self.offset, 1.0)
            root = table.point() if counts.sum() > 0 else None
            if root is None:
                continue
            held = np.zeros((1, len(root)), dtype=bool)
            spread = float(table.deviations(root)[place])
            if np.isfinite(spread) and spread > 0 and not table.hidden(root[None], held)[0]:
                values.append(float(root[place]))
                variances.append(spread**2)
        return np.array(values), np.array(variances)

    def varying(self, place: int, error: float) -> Varying | None:
        """The mean of effects that vary between owners, whose interval leaves out `error`; None of fewer than
        FEWEST."""
        return varying(*self.own(place), error)


def varying(values: Floats, variances: Floats, error: float) -> Varying | None:
    """As `Apart.varying`, of each owner's log ratio and its variance."""
    k = len(values)
    if k < FEWEST:
        return None
    w = 1 / variances
    first = float(w @ values / w.sum())
    Q = float(w @ (values - first) ** 2)
    tau2 = max(0.0, (Q - (k - 1)) / float(w.sum() - w @ w / w.sum()))
    w = 1 / (variances + tau2)
    mean = float(w @ values / w.sum())
    spread = max(1.0, float(w @ (values - mean) ** 2) / (k - 1))
    reach = student_quantile(error, k - 1) * math.sqrt(spread / float(w.sum()))
    return Varying(mean, mean - reach, mean + reach, tau2, k)


def inconsistency(Q: float, owners: int) -> float:
    """I2: the part of Q, in percent, that is more than chance makes of effects that are one (Higgins 2002)."""
    return 100 * max(0.0, (Q - (owners - 1)) / Q) if Q > 0 else 0.0


def student_tail(t: float, degrees: int) -> float:
    """P(|T| > t), a finite sum. Source: Abramowitz and Stegun 1964, 26.7.3 and 26.7.4."""
    angle = math.atan(t / math.sqrt(degrees))
    cosine = math.cos(angle) ** 2
    term = total = 1.0 if degrees > 1 else 0.0
    odd = degrees % 2
    for k in range(2 + odd, degrees, 2):
        term *= cosine * (k - 1) / k
        total += term
    if odd:
        part = math.sin(angle) * math.cos(angle) * total
        return 1 - 2 / math.pi * (angle + part)
    return 1 - math.sin(angle) * total


def student_quantile(error: float, degrees: int) -> float:
    """The t that |T| exceeds with this chance, by bisection to 1e-9 of it."""
    low, high = 0.0, 1.0
    while student_tail(high, degrees) > error:
        high *= 2
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if student_tail(middle, degrees) > error else (low, middle)
    return high

