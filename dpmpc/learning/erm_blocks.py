"""Losses, gradients and optima over records of any size, as sums over tiles (`learning.tiled`): the same to the last
bit, however many are held at once, wherever they lie, and however many cores there are."""

from collections.abc import Callable
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dpmpc.errors import UsageError
from dpmpc.lazy import dataclass
from dpmpc.learning.away import Tile
from dpmpc.learning.class_weights import Weighted
from dpmpc.learning.erm import Solution, solve_owners
from dpmpc.learning.functional import pack
from dpmpc.learning.losses import Loss
from dpmpc.learning.matrix import Matrix, matrix_of, written
from dpmpc.learning.newton import Point, newton
from dpmpc.learning.softmax import optima as softmax_optima
from dpmpc.learning.softmax import predicted
from dpmpc.learning.tiled import in_threads, over_tiles, tile_rows, tiles
from dpmpc.processes.cores import one_thread
from dpmpc.records.blocks import Records

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_STREAMED = 1 << 20  # an owner with more numbers than this has its optimum found tile by tile
_TOGETHER = 1 << 22  # the numbers of owners whose optima are found at once
_FEWEST, _PER_FEATURE = 8, 64  # tiles, and rows a feature, that the curvature of very many records is read off
_WELL = 8.0  # by how much a step along such a curvature divides the gradient, or the next has that of all records


@dataclass(frozen=True, eq=False)
class _Pulls:
    """The sum of gradients of the records' losses, for each owner."""

    loss: Loss
    theta: Floats

    def shapes(self, owners: int, d: int) -> tuple[tuple[int, ...], ...]:
        return ((owners, len(self.theta)),)

    def __call__(self, tile: Tile, X: Matrix, y: Floats, weights: Floats | None) -> tuple[Floats, ...]:
        pulls = self.loss.derivative(X.scores(self.theta), y)
        if weights is not None:
            pulls = np.asarray(pulls * (weights if pulls.ndim == 1 else weights[:, None]))
        return (X.sums(pulls, tile.cuts),)


def owner_gradients(
    loss: Loss, theta: Floats, records: Records, offsets: Ints, *, cores: int | None = None, ahead: int = 4
) -> Floats:
    """Each owner's mean gradient without regulariser, shaped (m, d) for theta (d,), every row of norm <= G (but for
    rounding); with K scores a record, theta has d K numbers, and a gradient too.

    Owner j holds rows offsets[j]:offsets[j+1], which count by their weights; the divisor is their number all the same.
    The same to the last bit for every `ahead` and `cores`.
    """
    total = np.zeros((len(offsets) - 1, len(theta)))
    for tile, (sums,) in over_tiles(records, offsets, _Pulls(loss, theta), cores=cores, ahead=ahead):
        total[tile.first : tile.last] += sums
    return np.asarray(total / np.diff(offsets)[:, None], dtype=np.float64)


@dataclass(frozen=True)
class _Products:
    """The sums y x and x x^T, for each owner."""

    def shapes(self, owners: int, d: int) -> tuple[tuple[int, ...], ...]:
        return (owners, d), (owners, d, d)

    def __call__(self, tile: Tile, X: Matrix, y: Floats, weights: Floats | None) -> tuple[Floats, ...]:
        products = np.zeros((len(tile.cuts) - 1, X.shape[1], X.shape[1]))
        for j, (a, b) in enumerate(pairwise(tile.cuts.tolist())):
            for _, rows in written(X, a, b):
                products[j] += rows.T @ rows
        return X.sums(y, tile.cuts), products


def owner_coefficients(records: Records, offsets: Ints, *, cores: int | None = None, ahead: int = 4) -> Floats:
    """Each owner's mean coefficients (m, d (d + 3) / 2), as `functional.coefficients` has them, for records of any
    size. The same to the last bit for every `ahead` and `cores`."""
    m, d = len(offsets) - 1, records.d
    b, sizes = np.zeros((m, d)), np.diff(offsets)
    A = np.zeros((m, d, d))
    for tile, (pulls, products) in over_tiles(records, offsets, _Products(), cores=cores, ahead=ahead):
        b[tile.first : tile.last] += pulls
        A[tile.first : tile.last] += products
    return np.stack([pack(b[j] / sizes[j], A[j] / sizes[j]) for j in range(m)])


@dataclass(frozen=True, eq=False)
class _Losses:
    """The sum of losses."""

    loss: Loss
    theta: Floats

    def shapes(self, owners: int, d: int) -> tuple[tuple[int, ...], ...]:
        return ((),)

    def __call__(self, tile: Tile, X: Matrix, y: Floats, weights: Floats | None) -> tuple[Floats, ...]:
        return (np.asarray(np.sum(self.loss.value(X.scores(self.theta), y))),)


def objective(loss: Loss, theta: Floats, records: Records, lam: float) -> float:
    """J(theta): the mean loss over all records plus lam/2 |theta|^2."""
    total = 0.0
    for _, (part,) in over_tiles(records, _whole(records), _Losses(loss, theta)):
        total += float(part)
    return total / records.n + 0.5 * lam * float(theta @ theta)


def scores(theta: Floats, records: Records) -> Floats:
    """(n,) the score x . theta of every record, or (n, K) its scores."""
    K = len(theta) // records.d
    result = np.empty(records.n if K == 1 else (records.n, K))

    def one(tile: Tile) -> None:
        result[tile.begin : tile.end] = matrix_of(records, tile.begin, tile.end).scores(theta)
        records.forget(tile.begin, tile.end)

    for _ in in_threads(list(tiles(_whole(records), records.width)), one, None, 4):
        pass
    return result


def accuracy(theta: Floats, records: Records) -> float:
    """The fraction of rows whose class is said (`right`)."""
    _need_rows(records)
    return right(scores(theta, records), records.y)


def right(said: Floats, y: Floats) -> float:
    """The fraction whose label +-1 is the sign of the score (n,); a score of exactly 0 predicts -1. With K scores
    (n, K): of those whose class has the largest."""
    return float(np.mean((predicted(said) if said.ndim > 1 else np.where(said > 0, 1.0, -1.0)) == y))


def mse(theta: Floats, records: Records, link: Callable[[Floats], Floats] = lambda s: s) -> float:
    """The mean squared residual, in the scaled units of y (the target's range is [-1, 1]). `link`: what scores say."""
    _need_rows(records)
    return off(link(scores(theta, records)), records.y)


def off(said: Floats, y: Floats) -> float:
    """The mean of the squared differences."""
    return float(np.mean((said - y) ** 2))


def solve(loss: Loss, records: Records, lam: float, tolerance: float = 1e-10, classes: int = 2) -> Solution:
    """The minimiser of J over all records, with the norm of the gradient evaluated afresh there. Errors: `optima`."""
    theta, norms = optima(loss, records, _whole(records), lam, tolerance, classes)
    return Solution(theta[0], float(norms[0]))


def optima(
    loss: Loss, records: Records, offsets: Ints, lam: float, tolerance: float = 1e-10, classes: int = 2
) -> tuple[Floats, Floats]:
    """Every owner's own optimum (m, d), and the norm of its own objective's gradient there (m,), evaluated afresh.

    As `erm.solve_owners`, for records of any size: owners with many numbers are solved by Newton's method over tiles,
    the others together, as many at a time as fit. Which are which follows from sizes and d alone. `classes`: of softmax
    regression, whose optima are (m, d classes).
    Errors: lam not positive, an owner without records.
    """
    offsets = np.asarray(offsets, dtype=np.int64)
    if not (np.isfinite(lam) and lam > 0):
        raise UsageError(
            f"the regulariser lam must be positive for the optimum to be unique; got {lam}; try 0.001", code="range"
        )
    sizes, d = np.diff(offsets), records.d
    if len(sizes) == 0 or sizes.min() < 1:
        raise UsageError("every owner needs at least one record; an owner has none; use fewer owners", code="enough")
    if loss.name == "softmax":
        each = np.asarray(loss.weights) if isinstance(loss, Weighted) else None
        return softmax_optima(records, offsets, classes, lam, tolerance, each)
    theta = np.empty((len(sizes), d))
    streamed = (sizes * d > _STREAMED) & (sizes >= d)
    j = 0
    while j < len(sizes):
        if streamed[j]:
            problem = _Streamed(loss, lam, records, np.asarray(offsets[j : j + 2], dtype=np.int64))
            with one_thread():  # of a system this small, threads that wait for each other take most
                theta[j] = newton(problem, tolerance)[0]
            j += 1
            continue
        end = j + 1
        while end < len(sizes) and not streamed[end] and (offsets[end + 1] - offsets[j]) * d <= _TOGETHER:
            end += 1
        rows = slice(int(offsets[j]), int(offsets[end]))
        X, y = records.rows(rows.start, rows.stop), records.y[rows]
        theta[j:end], _ = solve_owners(loss, X, y, offsets[j : end + 1] - offsets[j], lam, tolerance)
        records.forget(rows.start, rows.stop)
        j = end

    residual = np.zeros_like(theta)
    for tile, (sums,) in over_tiles(records, offsets, _OwnPulls(loss, theta)):
        residual[tile.first : tile.last] += sums
    residual = residual / sizes[:, None] + lam * theta
    return theta, np.asarray(np.linalg.norm(residual, axis=1), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class _OwnPulls:
    """The sum of gradients of the records' losses, for each owner at its own theta (m, d)."""

    loss: Loss
    theta: Floats

    def shapes(self, owners: int, d: int) -> tuple[tuple[int, ...], ...]:
        return ((owners, d),)

    def __call__(self, tile: Tile, X: Matrix, y: Floats, weights: Floats | None) -> tuple[Floats, ...]:
        own = self.theta[tile.first : tile.last]
        if len(own) > 1:
            score, whose = np.empty(len(y)), np.repeat(np.arange(len(own)), np.diff(tile.cuts))
            for part, rows in written(X):
                score[part] = np.einsum("id,id->i", rows, own[whose[part]])
        else:
            score = X.scores(own[0])
        return (X.sums(self.loss.derivative(score, y), tile.cuts),)


@dataclass(frozen=True, eq=False)
class _Valued:
    """The sums of losses and of their gradients at theta (d,), of one owner."""

    loss: Loss
    theta: Floats

    def shapes(self, owners: int, d: int) -> tuple[tuple[int, ...], ...]:
        return (), (d,)

    def __call__(self, tile: Tile, X: Matrix, y: Floats, weights: Floats | None) -> tuple[Floats, ...]:
        score = X.scores(self.theta)
        return np.asarray(np.sum(self.loss.value(score, y))), X.sums(self.loss.derivative(score, y), tile.cuts)[0]


@dataclass(frozen=True, eq=False)
class _Curved:
    """The sum of l'' x x^T of one owner over those of its tiles that it `asks` for."""

    loss: Loss
    theta: Floats
    begin: int
    rows: int
    step: int

    def shapes(self, owners: int, d: int) -> tuple[tuple[int, ...], ...]:
        return ((d, d),)

    def __call__(self, tile: Tile, X: Matrix, y: Floats, weights: Floats | None) -> tuple[Floats, ...]:
        total = np.zeros((X.shape[1], X.shape[1]))
        if self.asks(tile):
            bends = self.loss.second_derivative(X.scores(self.theta), y)[:, None]
            for part, rows in written(X):
                total += rows.T @ (bends[part] * rows)
        return (total,)

    def asks(self, tile: Tile) -> bool:
        """Whether a tile is among every `step`-th, of `rows` rows each, from the row `begin` on."""
        return (tile.begin - self.begin) // self.rows % self.step == 0


@dataclass(eq=False)
class _Streamed:
    """The problem of one owner whose records are not held: what `newton` asks of `Problems`, tile by tile.

    Of very many records a part of the tiles gives the curvature, as that costs several times a gradient's pass: with S
    of n rows its relative error is about sqrt(d / S), so a step divides the gradient by a number of that order instead
    of squaring it. A curvature serves as long as its steps divide the gradient by _WELL at least: then another pass
    costs less than another curvature. Where a step along one that was made for it divides it by less, as with features
    that nearly no record has, all tiles give it from then on. Value, gradient and certificate are of all records
    always.
    """

    loss: Loss
    lam: float
    records: Records
    offsets: Ints
    whole: bool = False
    norm: float = np.inf  # of the gradient when the curvature was asked for last
    curvature: Floats | None = None  # (1, d, d) as it was made last
    fresh: bool = False  # whether that was for the last step
    last: tuple[Floats, Floats] | None = None  # theta and the gradient (d,) when the curvature was asked for last

    @property
    def shape(self) -> tuple[int, int]:
        return 1, self.records.d

    def take(self, index: Ints) -> "_Streamed":
        return self

    def at(self, theta: Floats) -> Point:
        """J and its gradient at theta (1, d); scores are not kept."""
        value, pull = 0.0, np.zeros(theta.shape[1])
        for _, (part, vector) in over_tiles(self.records, self.offsets, _Valued(self.loss, theta[0])):
            value += float(part)
            pull += vector
        n = int(self.offsets[1] - self.offsets[0])
        value = value / n + 0.5 * self.lam * float(theta[0] @ theta[0])
        grad = pull / n + self.lam * theta[0]
        return Point(theta, np.array([value]), grad[None, :], np.empty((1, 0)))

    def hessian(self, point: Point) -> Floats:
        """(1, d, d) the mean of l'' x x^T, of all records or of a part of the tiles, plus lam I."""
        norm = float(np.linalg.norm(point.grad))
        well = norm * _WELL <= self.norm
        last, self.last = self.last, (point.theta[0].copy(), point.grad[0].copy())
        self.norm, known = norm, self.curvature
        if known is not None and last is not None and well:
            self.fresh = False
            self.curvature = _bent(known[0], self.last[0] - last[0], self.last[1] - last[1])[None]
            return self.curvature
        self.whole |= self.fresh and not well
        made = self._made(point.theta[0])
        self.curvature = made if bool(point.theta.any()) else None  # at 0 it is far from that at the optimum
        self.fresh = True
        return made

    def _made(self, theta: Floats) -> Floats:
        begin, rows = int(self.offsets[0]), tile_rows(self.records.width)
        n, d = int(self.offsets[1]) - begin, len(theta)
        step = 1 if self.whole else max(1, min(n // (_FEWEST * rows), n // (_PER_FEATURE * d)))
        total, seen = np.zeros((d, d)), 0
        work = _Curved(self.loss, theta, begin, rows, step)
        for tile, (part,) in over_tiles(self.records, self.offsets, work, asked=work.asks):
            if work.asks(tile):
                total += part
                seen += tile.end - tile.begin
        return np.asarray((total / seen + self.lam * np.eye(d))[None], dtype=np.float64)


def _bent(curvature: Floats, step: Floats, change: Floats) -> Floats:
    """The curvature (d, d), positive definite, with the change of the gradient (d,) along the step that was made
    (Broyden, Fletcher, Goldfarb, Shanno); as it is where rounding leaves nothing of that."""
    along, rise = curvature @ step, float(change @ step)
    if not rise > 0:
        return curvature
    return np.asarray(curvature - np.outer(along, along) / (step @ along) + np.outer(change, change) / rise)


def _whole(records: Records) -> Ints:
    return np.array([0, records.n], dtype=np.int64)


def _need_rows(records: Records) -> None:
    if records.n == 0:
        raise UsageError(
            "a score needs at least one row; there are no test rows; use a test fraction above 0", code="enough"
        )
