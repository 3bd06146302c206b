"""Which values of a coefficient a noisy table does not reject: sets, and not an estimate with its deviation.

Of cells' noisy counts k with independent noise of variance v = sigma^2 (and, for a population of independent records,
tau max(k, 0) more) the score g(theta) = sum k_j s_j(theta) is unbiased at every fixed theta and has the covariance
V(theta) = sum v_j s_j s_j'. At the true theta g' V^-1 g is chi-square with as many degrees as there are coefficients.

    Q(b) = min over the other coefficients o of g' V^-1 g at theta_j = b          V moves with theta
    m(b) = how many directions of o the noise hides at that minimum:
           A = H_o' V^-1 H_o          what is known of o
           G = mean of x_o x_o'       of the design, public: with it m does not depend on the coding
           B = sigma^2 sum D_o' V^-1 D_o   what noise alone makes of A
           m = max(#eigenvalues of A by G below LITTLE, #eigenvalues of A by B below ALONE)
    b is in the set iff Q(b) is at most the quantile of chi-square with 1 degree and, for each of the m, another one
    with chance 1/2

With the others known m is 0 and the statistic has one degree. Minimising over a hidden direction takes a whole degree
away only where it reaches 0. Of a level that noise hides the score is, at the ends of the level's range, K1 and -K0,
the sums of its noisy counts with the outcome and without. Between them it is 0 somewhere if both have one sign; if not,
what is left is at most the lesser square. With s deviations of noise for its root that has the chance P(K1 > s)
P(K0 < -s) + P(K1 < -s) P(K0 > s), which for counts that are not negative is at most P(z < -s): that of half a
chi-square of one degree (the other half is 0). Of directions that are no level this is measured, and not proved
(`dpmpc.benchmarks.studies.stats_effects`). The set shown is the hull of all b that are not rejected; one that
reaches the end of the grid is open there. Where every value is rejected, as where noise leaves a table that no
coefficients fit, the set is the whole line: a narrow one about the least Q would say what nobody knows. Nothing else is
done by looking at what came: a set may only grow by it.

Minimising is by Levenberg and Marquardt's steps on Q itself, of many problems at once. Each is started from a fit with
theta_j held at b, from the free fit, from no effects, and from the minimum of a neighbouring b; the lowest counts. A
start from no effects alone may stop on a plateau, where a set looks bounded that is not.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpmpc.lazy import cached_property, dataclass
from dpmpc.statistics.chi_square import mixed_quantile, mixed_tail
from dpmpc.statistics.families import Family
from dpmpc.statistics.intervals import Floats

LITTLE, ALONE = 2.0, 9.0
REACH, STEP, EXACT = 8.0, 0.25, 1e-4  # of the grid, in logarithms of ratios: 1 / 3,000 to 3,000
BOX, LIMIT, STEPS = 25.0, 2.0, 80
CORNERS, LOOSE = (-12.0, 12.0, -24.0, 24.0), 0.2  # starts far out, of coefficients whose deviation is above this
_AT_ONCE = 1 << 22  # numbers that are held at a time
_FAR = 1e6  # an eigenvalue that is above all limits
_RIDGE, _ADDED = 0.05, 0.1  # of the fits that minimising starts from
Mask = NDArray[np.bool_]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class CoefficientSet:
    """The set of a coefficient: `low` or `high` infinite where it is open. `hidden`: the largest m at which a value was
    kept; `best`: the value whose Q is least."""

    best: float
    low: float
    high: float
    hidden: int


@dataclass(frozen=True, eq=False)
class CellModel:
    """Noisy cells and a model of them. design (C, B, P); counts (C, J), noisy; variance: of the noise in each cell;
    offset (C, B): what is added to predictors. Public.

    Counts of many tables of one model (T, C, J) are worked on at once: `of` (M,) says whose each problem is; None: the
    first one's, of all."""

    family: Family
    design: Floats
    counts: Floats
    variance: float
    offset: Floats | float = 0.0
    tau: float = 0.0

    @cached_property
    def _counts(self) -> Floats:
        """(T, C, J)."""
        return self.counts.reshape(-1, *self.counts.shape[-2:])

    @cached_property
    def _v(self) -> Floats:
        """(T, C, J) the variance of each count."""
        found = self.variance + self.tau * np.maximum(self._counts, 0.0)
        return np.asarray(np.maximum(found, 1e-12))

    @cached_property
    def _family(self) -> Family:
        """Whose scores these are: without noise those of the likelihood."""
        return self.family if self.variance else self.family.exact

    @property
    def tables(self) -> int:
        """T."""
        return len(self._counts)

    def _whose(self, of: Ints | None, many: int) -> Ints:
        return np.zeros(many, dtype=np.int64) if of is None else np.asarray(of, dtype=np.int64)

    def _at(self, each: Floats, of: Ints | None) -> Floats:
        """(M, C, J) of (T, C, J), or (1, C, J) where there is one table."""
        return each[:1] if of is None or len(each) == 1 else each[of]

    @cached_property
    def _rows(self) -> Floats:
        """(C B, P) the design, a predictor a row."""
        return np.asarray(np.ascontiguousarray(self.design.reshape(-1, self.coefficients)))

    def _gathered(self, each: Floats) -> Floats:
        """(M, P) sum over c of Z_c' r_c, r (M, C, B)."""
        return np.asarray(each.reshape(len(each), -1) @ self._rows)

    def _along(self, theta: Floats) -> Floats:
        """(M, C, B) Z_c theta."""
        return np.asarray((theta @ self._rows.T).reshape(len(theta), *self.design.shape[:2]))

    @cached_property
    def _squares(self) -> Floats:
        """(C B B, P (P + 1) / 2) products of rows of the design, of p at most q."""
        C, B, P = self.design.shape
        p, q = np.triu_indices(P)
        return np.asarray((self.design[:, :, None, p] * self.design[:, None, :, q]).reshape(C * B * B, len(p)))

    @cached_property
    def _places(self) -> Ints:
        """(P P) where each p and q is among these."""
        found = np.zeros((self.coefficients, self.coefficients), dtype=np.int64)
        p, q = np.triu_indices(self.coefficients)
        found[p, q] = found[q, p] = np.arange(len(p))
        return found.ravel()

    @cached_property
    def _many(self) -> int:
        """How many problems at once."""
        C, B, P = self.design.shape
        return int(max(1, _AT_ONCE // max(C * self.counts.shape[-1] * B * 4, C * B * B, P * P)))

    @property
    def coefficients(self) -> int:
        return int(self.design.shape[2])

    def eta(self, theta: Floats) -> Floats:
        """(M, C, B) predictors."""
        return np.asarray(self._along(theta) + self.offset)

    def _forms(self, W: Floats) -> Floats:
        """(M, P, P) sum over c of Z_c' W_c Z_c, W (M, C, B, B) symmetric."""
        P = self.coefficients
        return np.asarray((W.reshape(len(W), -1) @ self._squares)[:, self._places].reshape(-1, P, P))

    @staticmethod
    def _spread(D: Floats, k: Floats) -> Floats:
        """(M, C, B, B) sum over cells of k times D."""
        if D.ndim == 5:
            return np.asarray(np.einsum("mcjba,mcj->mcba", D, k))
        return np.asarray(_over(D, k)[..., None] * np.eye(D.shape[-1]))

    def score(self, theta: Floats, of: Ints | None = None) -> tuple[Floats, Floats]:
        """g (M, P) and H (M, P, P) = -dg/dtheta."""
        S, D = self._family.scores(self.eta(theta))
        k = self._at(self._counts, of)
        return self._gathered(_over(S, k)), -self._forms(self._spread(D, k))

    def spread(self, theta: Floats, of: Ints | None = None) -> Floats:
        """V (M, P, P)."""
        S, _ = self._family.scores(self.eta(theta))
        return self._forms(_products(S * self._at(self._v, of)[..., None], S))

    def _all(self, theta: Floats, of: Ints | None = None) -> tuple[Floats, Floats, Floats, Floats]:
        """Q (M,), half its gradient (M, P), A = H' V^-1 H (M, P, P), V^-1."""
        S, D = self._family.scores(self.eta(theta))
        k = self._at(self._counts, of)
        g = self._gathered(_over(S, k))
        H = -self._forms(self._spread(D, k))
        weighted = S * self._at(self._v, of)[..., None]
        V = self._forms(_products(weighted, S))
        inverse = _inverted(V)
        with np.errstate(over="ignore", invalid="ignore"):  # as in `_inverted`
            u = (inverse @ g[..., None])[..., 0]
            y = self._along(u)
            a = (weighted * y[:, :, None, :]).sum(axis=-1)
            e = np.einsum("mcjba,mcb->mcja", D, y) if D.ndim == 5 else D * y[:, :, None, :]
            slope = -(u[:, None, :] @ H)[:, 0] - self._gathered(_over(e, a))
            return np.einsum("mp,mp->m", g, u), slope, H.transpose(0, 2, 1) @ inverse @ H, inverse

    # -- fits that minimising starts from -------------------------------------------------------------------------
    @cached_property
    def _smooth(self) -> "CellModel":
        return CellModel(self.family, self.design, np.maximum(self._counts, 0.0) + _ADDED, 0.0, self.offset)

    def _fits(self, held: Mask, at: Floats, of: Ints | None = None) -> Floats:
        """(M, P) ridge fits of cells max(k, 0) + .1 with some coefficients held: concave, so always there."""
        whose = self._whose(of, len(held))
        found = np.empty((len(held), self.coefficients))
        for first in range(0, len(held), self._many):
            rows = slice(first, first + self._many)
            found[rows] = self._fitted(held[rows], at[rows], whose[rows])
        return found

    def _fitted(self, held: Mask, at: Floats, of: Ints) -> Floats:
        found = np.where(held, at, self._nothing[of])
        active = np.arange(len(held))
        for _ in range(60):
            theta, fixed = found[active], held[active]
            g, H = self._smooth.score(theta, of[active])
            g = np.where(fixed, 0.0, g - _RIDGE * theta)
            H = _cut(H + _RIDGE * np.eye(self.coefficients), fixed)
            step = np.linalg.solve(H, g[..., None])[..., 0]
            longest = np.max(np.abs(step), axis=1, keepdims=True)
            step *= np.minimum(1.0, LIMIT / np.maximum(longest, 1e-300))
            found[active] = np.where(fixed, theta, np.clip(theta + step, -BOX, BOX))
            active = active[longest[:, 0] >= 1e-6]
            if not len(active):
                break
        return found

    @cached_property
    def _nothing(self) -> Floats:
        """(T, P) no effects: predictors nearest those of all records together."""
        C, B, P = self.design.shape
        first = self.design[:, :, :B].reshape(C * B, B)  # intercepts come first
        found = np.zeros((self.tables, P))
        for t, totals in enumerate(self._counts.sum(axis=1)):
            wanted = np.broadcast_to(self.family.start(totals), (C, B)) - self.offset
            found[t, :B] = np.clip(np.linalg.lstsq(first, wanted.ravel(), rcond=None)[0], -BOX, BOX)
        return found

    def least(
        self, held: Mask, start: Floats, of: Ints | None = None, enough: float = -np.inf
    ) -> tuple[Floats, Floats]:
        """(Q (M,), theta (M, P)): a minimum over what is not held, from each start (M, P); or the first Q that is at
        most `enough`."""
        Q, theta, whose = np.empty(len(start)), start.copy(), self._whose(of, len(start))
        for first in range(0, len(start), self._many):
            rows = slice(first, first + self._many)
            Q[rows], theta[rows] = self._minimised(held[rows], theta[rows], whose[rows], enough)
        return Q, theta

    def _minimised(self, held: Mask, theta: Floats, of: Ints, enough: float) -> tuple[Floats, Floats]:
        theta = np.clip(theta, -BOX, BOX)
        Q, slope, A, _ = self._all(theta, of)
        damping = np.full(len(theta), 1e-3)
        active = np.flatnonzero(np.isfinite(Q) & (Q > enough))
        for _ in range(STEPS):
            if not len(active):
                break
            k, fixed = active, held[active]
            inner = np.where(fixed, 0.0, slope[k])
            diagonal = np.einsum("mpp->mp", A[k]) + 1e-9
            M = _cut(A[k] + damping[k, None, None] * (diagonal[:, :, None] * np.eye(A.shape[1])), fixed)
            step = -_solved(M, inner)
            # each by itself: in a flat direction steps are long, and must not shorten the others'
            tried = np.clip(theta[k] + np.clip(step, -LIMIT, LIMIT), -BOX, BOX)
            longest = np.max(np.abs(tried - theta[k]), axis=1)
            q, s, a, _ = self._all(tried, of[k])
            better = q < Q[k]
            gained = np.where(better, Q[k] - q, np.inf)
            won = k[better]
            theta[won], Q[won], slope[won], A[won] = tried[better], q[better], s[better], a[better]
            damping[k] = np.where(better, damping[k] / 5, damping[k] * 4)
            over = (gained < 1e-6 * (1 + Q[k])) | (damping[k] > 1e4) | (longest < 1e-7) | (Q[k] <= enough)
            active = k[~over]
        return Q, theta

    def hidden(self, theta: Floats, held: Mask, of: Ints | None = None) -> NDArray[np.int64]:
        """(M,) m at these parameters, of the coefficients that are not held; the same number in every row of `held`."""
        whose, step = self._whose(of, len(theta)), self._many
        found = [self._hidden(theta[i : i + step], held[i : i + step], whose[i : i + step])
                 for i in range(0, len(theta), step)]  # fmt: skip
        return np.concatenate(found)

    def _hidden(self, theta: Floats, held: Mask, of: Ints) -> NDArray[np.int64]:
        _, _, A, inverse = self._all(theta, of)
        G = np.einsum("cbp,cbq->pq", self.design, self.design) / len(self.design)
        _, D = self._family.scores(self.eta(theta))
        with np.errstate(over="ignore", invalid="ignore"):  # as in `_inverted`
            near = (self.design @ inverse[:, None]) @ self.design.transpose(0, 2, 1)
        inside = (
            np.einsum("mcjba,mcbe,mcjef->mcaf", D, near, D)
            if D.ndim == 5
            else np.einsum("mcjb,mcba,mcja->mcba", D, near, D)
        )
        alone = self.variance * self._forms(inside)
        m = np.zeros(len(theta), dtype=np.int64)
        if not self.variance:
            return m
        patterns, whose = np.unique(held, axis=0, return_inverse=True)
        for i, pattern in enumerate(patterns):
            o, rows = np.flatnonzero(~pattern), np.flatnonzero(whose.ravel() == i)
            if len(o):
                ours = A[np.ix_(rows, o, o)]
                little = np.sum(_relative(ours, G[np.ix_(o, o)][None]) < LITTLE, axis=1)
                m[rows] = np.maximum(little, np.sum(_relative(ours, alone[np.ix_(rows, o, o)]) < ALONE, axis=1))
        return m

    # -- sets -----------------------------------------------------------------------------------------------------
    def profile(
        self, which: Ints, at: Floats, starts: Sequence[Floats] = (), quick: bool = False, of: Ints | None = None,
        enough: float = -np.inf,
    ) -> tuple[Floats, Floats]:  # fmt: skip
        """Q (N,) and theta (N, P) with coefficient which[i] held at at[i]: the lowest from all starts, or the first
        that is at most `enough`; `quick`: from the held fit and those that are given."""
        held = self._holding(which)
        return self._lowest(held, np.where(held, at[:, None], 0.0), self._whose(of, len(which)), starts, quick, enough)

    def _lowest(
        self, held: Mask, at: Floats, of: Ints, starts: Sequence[Floats] = (), quick: bool = False,
        enough: float = -np.inf,
    ) -> tuple[Floats, Floats]:  # fmt: skip
        """Q (N,) and theta (N, P) with what is held at `at`, as `profile`."""
        tries = [self._fits(held, at, of), *starts]
        if not quick:
            tries += [each[of] for each in (self._free, self._nothing)]
        Q, theta = np.full(len(at), np.inf), tries[0].copy()
        for start in tries:
            rows = np.flatnonzero(Q > enough)
            self._lower(Q, theta, rows, held, np.where(held, at, start)[rows], of, enough)
        if not quick and self.variance:
            self._corners(Q, theta, held, at, of, enough)
        return Q, theta

    def _lower(self, Q: Floats, theta: Floats, rows: Ints, held: Mask, start: Floats, of: Ints, enough: float) -> None:
        """Takes what is lower from these starts, of some rows."""
        if not len(rows):
            return
        q, found = self.least(held[rows], start, of[rows], enough)
        better = q < Q[rows]
        Q[rows[better]], theta[rows[better]] = q[better], found[better]

    def _corners(self, Q: Floats, theta: Floats, held: Mask, at: Floats, of: Ints, enough: float) -> None:
        """Where directions are hidden, Q may have several minima, some far out: starts with one coefficient of which
        little is known at each of CORNERS, the others as they are and as they fit then."""
        rows = np.flatnonzero(~(Q <= enough))
        rows = rows[self.hidden(theta[rows], held[rows], of[rows]) > 0] if len(rows) else rows
        if not len(rows):
            return
        A = np.concatenate([self._all(theta[part], of[part])[2] for part in _parts(rows, self._many)])
        cut = _cut(A + 1e-9 * np.eye(self.coefficients), held[rows])
        little = np.einsum("mpp->mp", _inverted(cut)) > LOOSE**2
        place, o = np.nonzero(little & ~held[rows])
        some, o = np.repeat(rows[place], len(CORNERS)), np.repeat(o, len(CORNERS))
        if not len(some):
            return
        each, end = np.arange(len(some)), np.tile(CORNERS, len(place))
        both, where, moved = held[some].copy(), at[some].copy(), theta[some].copy()
        both[each, o], where[each, o], moved[each, o] = True, end, end
        twice = np.concatenate([some, some])
        starts = np.concatenate([self._fits(both, where, of[some]), moved])
        q, found = self.least(held[twice], starts, of[twice], enough)
        order = np.argsort(q, kind="stable")
        won, first = np.unique(twice[order], return_index=True)  # the lowest of each problem's
        best = order[first]
        lower = q[best] < Q[won]
        Q[won[lower]], theta[won[lower]] = q[best[lower]], found[best[lower]]

    def _holding(self, which: Ints) -> Mask:
        held = np.zeros((len(which), self.coefficients), dtype=bool)
        held[np.arange(len(which)), which] = True
        return held

    @cached_property
    def _free(self) -> Floats:
        """(T, P) fits with nothing held."""
        none = np.zeros((self.tables, self.coefficients), dtype=bool)
        return self._fits(none, np.zeros((self.tables, self.coefficients)), np.arange(self.tables))

    def follow(self, which: Ints, at: Floats, start: Floats) -> tuple[Floats, Floats]:
        """Q (N,) and theta (N, P) with coefficient which[i] held at at[i], from one start each, of the first table."""
        held = self._holding(which)
        return self.least(held, np.where(held, at[:, None], start))

    def hidden_beside(self, which: Ints, theta: Floats, of: Ints) -> Ints:
        """(N,) m at these parameters with one coefficient held."""
        return self.hidden(theta, self._holding(which), of)

    def parabolas(self, theta: Floats, of: Ints) -> Floats:
        """(M, P) how far each coefficient may go for 1 more of Q, by A alone: the root of the diagonal of A^-1."""
        A = np.concatenate([self._all(theta[part], of[part])[2] for part in _parts(np.arange(len(of)), self._many)])
        inverse = _inverted(A + 1e-9 * np.eye(self.coefficients))
        return np.asarray(np.sqrt(np.maximum(np.einsum("mpp->mp", inverse), 0.0)))

    def _kept(self, Q: Floats, theta: Floats, which: Ints, error: float, of: Ints) -> tuple[Mask, Ints]:
        """(not rejected, m) at these minima; where none was found nothing is rejected."""
        m = self.hidden(theta, self._holding(which), of)
        limits = np.array([mixed_quantile(error, 1, int(each)) for each in m])
        return ~(Q > limits) | ~np.isfinite(Q), m

    def keeps(self, which: Sequence[int], at: Sequence[float], error: float, of: Ints | None = None) -> Mask:
        """(N,) whether each of these coefficients may have this value: what the sets are the hulls of. A Q that no m
        would reject is not made less."""
        chosen, whose = np.array(which, dtype=np.int64), self._whose(of, len(which))
        enough = mixed_quantile(error, 1, 0)
        Q, theta = self.profile(chosen, np.array(at, dtype=np.float64), of=whose, enough=enough)
        found, rows = Q <= enough, np.flatnonzero(~(Q <= enough))
        if len(rows):
            found[rows] = self._kept(Q[rows], theta[rows], chosen[rows], error, whose[rows])[0]
        return found

    def sets(self, which: Sequence[int], error: float, of: Ints | None = None) -> list[CoefficientSet]:
        """The sets of these coefficients, each of which holds its own but for `error`."""
        grid = np.arange(-REACH, REACH + STEP / 2, STEP)
        J, N = len(which), len(grid)
        if not J:
            return []
        each, at, whose = np.repeat(np.array(which), N), np.tile(grid, J), self._whose(of, J)
        of_each = np.repeat(whose, N)
        Q, theta = self.profile(each, at, of=of_each)
        self._from_neighbours(Q, theta, each, at, N, of_each)
        kept, m = (part.reshape(J, N) for part in self._kept(Q, theta, each, error, of_each))
        Q, theta = Q.reshape(J, N), theta.reshape(J, N, -1)
        best = np.argmin(np.where(np.isfinite(Q), Q, np.inf), axis=1)
        middle, begin = grid[best], theta[np.arange(J), best]
        narrow = np.flatnonzero(~kept.any(axis=1))  # sets between two values of the grid, about the least
        empty = narrow[:0]
        if len(narrow):
            middle[narrow], begin[narrow] = self._refined(
                np.array(which)[narrow], middle[narrow], begin[narrow], whose[narrow]
            )
            least, found = self.profile(np.array(which)[narrow], middle[narrow], [begin[narrow]], of=whose[narrow])
            empty = narrow[~self._kept(least, found, np.array(which)[narrow], error, whose[narrow])[0]]
        ends = np.empty((2, J))
        ends[0], ends[1] = -np.inf, np.inf  # of those that reject every value: nothing is told
        jobs: list[tuple[int, int, float, float, Floats]] = []
        for k in np.setdiff1d(np.arange(J), empty).tolist():
            inside = np.flatnonzero(kept[k])
            for side, beyond in enumerate((-1, 1)):
                last = int(inside[0 if side == 0 else -1]) if len(inside) else -1
                if not len(inside):
                    jobs.append((side, k, middle[k], middle[k] + beyond * STEP, begin[k]))
                elif last in (0, N - 1) and (last == 0) == (beyond < 0):
                    ends[side, k] = beyond * np.inf
                else:
                    jobs.append((side, k, grid[last], grid[last + beyond], theta[k, last]))
        if jobs:
            rows = np.array([k for _, k, *_ in jobs])
            found = self._edges(np.array(which)[rows], error, jobs, whose[rows])
            for (side, k, *_), end in zip(jobs, found, strict=True):
                ends[side, k] = end
        most = np.where(kept, m, 0).max(axis=1)
        return [CoefficientSet(float(middle[k]), float(ends[0, k]), float(ends[1, k]), int(most[k])) for k in range(J)]

    def _from_neighbours(self, Q: Floats, theta: Floats, which: Ints, at: Floats, N: int, of: Ints) -> None:
        """Lowers Q by starts from the minima of neighbouring values, until none is lowered."""
        changed = np.ones(len(Q), dtype=bool)
        for _ in range(N):
            lowered = np.zeros(len(Q), dtype=bool)
            for step in (1, -1):
                rows = np.arange(len(Q))
                before = rows - step
                same = (before >= 0) & (before < len(Q)) & (rows // N == before // N)
                rows = rows[same & changed[np.clip(before, 0, len(Q) - 1)]]
                if not len(rows):
                    continue
                begin = theta[rows - step].copy()
                begin[np.arange(len(rows)), which[rows]] = at[rows]
                q, found = self.least(self._holding(which[rows]), begin, of[rows])
                better = q < Q[rows] - 1e-6 * (1 + Q[rows])
                won = rows[better]
                Q[won], theta[won], lowered[won] = q[better], found[better], True
            changed = lowered
            if not changed.any():
                return

    def _edges(
        self, which: Ints, error: float, jobs: Sequence[tuple[int, int, float, float, Floats]], of: Ints
    ) -> Floats:
        """Where sets end between two values, by bisection."""
        inner, outer = (np.array([job[i] for job in jobs]) for i in (2, 3))
        theta = np.array([job[4] for job in jobs])
        while np.max(np.abs(outer - inner)) > EXACT:
            middle = (inner + outer) / 2
            Q, found = self.profile(which, middle, [theta], quick=True, of=of)
            kept, _ = self._kept(Q, found, which, error, of)
            inner, outer = np.where(kept, middle, inner), np.where(kept, outer, middle)
            theta = np.where(kept[:, None], found, theta)
        return np.asarray(outer)

    def _refined(self, which: Ints, about: Floats, theta: Floats, of: Ints) -> tuple[Floats, Floats]:
        """The values near `about` whose Q is least, and the parameters there."""
        low, high = about - STEP, about + STEP
        for _ in range(24):
            a, b = low + (high - low) / 3, high - (high - low) / 3
            lower, first = self.profile(which, a, [theta], quick=True, of=of)
            upper, _ = self.profile(which, b, [theta], quick=True, of=of)
            left = lower <= upper
            low, high = np.where(left, low, a), np.where(left, b, high)
            theta = first
        return (low + high) / 2, theta

    def p_of(self, tested: Sequence[int]) -> tuple[float, int]:
        """(p, m) of these coefficients all being 0."""
        Q, m = self.at_zero(tested)
        return mixed_tail(float(Q[0]), len(tested), int(m[0])), int(m[0])

    def at_zero(self, tested: Sequence[int]) -> tuple[Floats, Ints]:
        """(Q (T,), m (T,)) of every table with all of these coefficients at 0."""
        held, of = np.zeros((self.tables, self.coefficients), dtype=bool), np.arange(self.tables)
        held[:, list(tested)] = True
        Q, theta = self._lowest(held, np.zeros((self.tables, self.coefficients)), of)
        return Q, self.hidden(theta, held, of)

    def point(self) -> Floats | None:
        """(P,) a root of the score at which H is positive, if there is one near the fits."""
        found = self.roots()[0]
        return None if np.isnan(found).any() else found

    def roots(self) -> Floats:
        """(T, P) as `point`, of every table; NaN where there is none."""
        theta = self._free.copy()
        found, active = np.full(theta.shape, np.nan), np.arange(self.tables)
        for _ in range(100):
            if not len(active):
                break
            g, H = self.score(theta[active], active)
            finite = np.isfinite(H).all(axis=(1, 2))
            active, g, H = active[finite], g[finite], H[finite]
            convex = np.linalg.eigvalsh(H)[:, 0] > 0
            active, g, H = active[convex], g[convex], H[convex]
            step = np.linalg.solve(H, g[..., None])[..., 0]
            step *= np.minimum(1.0, LIMIT / np.maximum(np.max(np.abs(step), axis=1, keepdims=True), 1e-300))
            theta[active] += step
            inside = np.max(np.abs(theta[active]), axis=1) <= BOX
            there = inside & (np.max(np.abs(step), axis=1) < 1e-11)
            found[active[there]] = theta[active[there]]
            active = active[inside & ~there]
        return found

    def deviations(self, theta: Floats, of: Ints | None = None) -> Floats:
        """(P,), or (M, P) of theta (M, P): of the root, to first order, of H^-1 V H^-1. Infinite where H has no
        inverse."""
        at = theta.reshape(-1, theta.shape[-1])
        _, H = self.score(at, of)
        found = np.full(at.shape, np.inf)
        for i, (slope, V) in enumerate(zip(H, self.spread(at, of), strict=True)):
            try:
                back = np.linalg.inv(slope)
            except np.linalg.LinAlgError:
                continue
            found[i] = np.sqrt(np.maximum(np.diag(back @ V @ back.T), 0.0))
        return found.reshape(theta.shape)


def _parts(rows: Ints, many: int) -> list[Ints]:
    return [rows[first : first + many] for first in range(0, len(rows), many)]


def _over(S: Floats, k: Floats) -> Floats:
    """(M, C, B) sum over cells j of k (M, C, J) times S (M, C, J, B)."""
    found = S[:, :, 0] * k[:, :, 0, None]
    for j in range(1, S.shape[2]):
        found += S[:, :, j] * k[:, :, j, None]
    return np.asarray(found)


def _products(weighted: Floats, S: Floats) -> Floats:
    """(M, C, B, B) sum over cells j of weighted S_j S_j', both (M, C, J, B)."""
    if S.shape[-1] == 1:
        return _over(weighted, S[..., 0])[..., None]
    return np.asarray(weighted.transpose(0, 1, 3, 2) @ S)


def _cut(M: Floats, held: Mask) -> Floats:
    """M with the rows and columns of what is held those of 1."""
    keep = ~held
    found = M * keep[:, :, None] * keep[:, None, :]
    diagonal = np.einsum("mpp->mp", found)
    return np.asarray(found + np.where(held, 1.0, 0.0)[:, :, None] * np.eye(M.shape[1])) if diagonal.size else found


def _inverted(V: Floats) -> Floats:
    """The inverse of each matrix, of which V may be near to have none."""
    size = np.einsum("mpp->mp", V)
    scale = 1 / np.sqrt(np.maximum(size, 1e-300))
    with np.errstate(over="ignore", invalid="ignore"):  # far out; what comes is no number, and is kept in sets
        unit = V * scale[:, :, None] * scale[:, None, :] + 1e-12 * np.eye(V.shape[1])
        return np.asarray(np.linalg.inv(unit) * scale[:, :, None] * scale[:, None, :])


def _solved(M: Floats, b: Floats) -> Floats:
    size = np.maximum(np.einsum("mpp->mp", M), 1e-300)
    scale = 1 / np.sqrt(size)
    with np.errstate(over="ignore", invalid="ignore"):
        unit = M * scale[:, :, None] * scale[:, None, :] + 1e-12 * np.eye(M.shape[1])
        return np.asarray(np.linalg.solve(unit, (b * scale)[..., None])[..., 0] * scale)


def _relative(A: Floats, G: Floats) -> Floats:
    """(M, o) the eigenvalues of each A by its G (or by the one there is); in a direction in which G is nearly 0 one is
    _FAR."""
    size, vectors = np.linalg.eigh((G + G.transpose(0, 2, 1)) / 2)
    kept = size > 1e-12 * np.maximum(size[:, -1:], 1e-300)
    root = vectors * np.where(kept, 1 / np.sqrt(np.where(kept, size, 1.0)), 0.0)[:, None, :]
    inside = root.transpose(0, 2, 1) @ ((A + A.transpose(0, 2, 1)) / 2) @ root
    lost = np.where(kept, 0.0, _FAR)[:, :, None] * np.eye(A.shape[1])
    return np.asarray(np.linalg.eigvalsh(inside + lost))
