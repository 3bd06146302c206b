"""The literature's noise formulas as printed, and what each of them truly guarantees.

Every method of Table 1 of Jayaraman, Wang, Evans and Gu 2018, the theorem behind its Gaussian row, Rajkumar and
Agarwal 2012, Kang, Liu and Wang 2019, and Imtiaz, Mohammadi and Sarwate 2019. "Truly" means: by the papers' own
mechanisms, with the accounting of this library, for what the method publishes (every owner's noisy vector, or only
the aggregate). docs/privacy.md explains each departure.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Literal

from dpmpc.lazy import dataclass
from dpmpc.privacy.cape import collusion_factor, most_colluding
from dpmpc.privacy.checks import check_count, check_delta, check_epsilon, check_positive
from dpmpc.privacy.gaussian import epsilon_of_mu, mu_of_budget
from dpmpc.privacy.laplace import laplace_epsilon
from dpmpc.privacy.tails import chi_square_above

Published = Literal["aggregate", "owners' vectors", "noisy sums"]

KANG_CONSTANT = 16.0
"""c of Kang et al., Theorem 1, which is left open there: the smallest that the inequalities of its proof allow.

4 l^2 G^2 T / (sigma^2 n^2) <= l epsilon / 2 and exp(-l epsilon / 2) <= delta give l = 2 L / epsilon and c = 16, for
epsilon <= 2 L, L = log(1/delta).
"""


@dataclass(frozen=True)
class PaperSetting:
    """The parameters of the papers: m owners, the smallest of n_(1) records, budget, T, lam, G, d and the smoothness
    L.

    The papers' formulas are for owners of equal size or their smallest; `records` = n is used by Rajkumar and by
    Kang.
    """

    owners: int
    smallest: int
    epsilon: float
    delta: float
    iterations: int
    dimension: int
    lam: float = 0.01
    G: float = 1.0
    smoothness: float = 0.25
    records: int = 0

    def __post_init__(self) -> None:
        for name in ("owners", "smallest", "iterations", "dimension"):
            check_count(name, getattr(self, name))
        check_epsilon(self.epsilon)
        check_delta(self.delta)
        for name in ("lam", "G", "smoothness"):
            check_positive(name, getattr(self, name))
        if self.records == 0:
            object.__setattr__(self, "records", self.owners * self.smallest)


@dataclass(frozen=True)
class PrintedFormula:
    """One row: the printed formula and its value, what it claims, and what holds.

    `scale` is the Laplace scale or Gaussian standard deviation of the noise on the *aggregate*, a coordinate, as in
    Table 1. `epsilon`, `delta`: what what is published is truly guaranteed to keep (epsilon inf: nothing is proved).
    """

    name: str
    law: Literal["Laplace", "Gaussian"]
    formula: str
    scale: float
    claim: str
    epsilon: float
    delta: float
    published: Published
    note: str


def literature(s: PaperSetting) -> list[PrintedFormula]:
    """The rows, in the order of Table 1, then the theorem behind it and the other papers."""
    return [row(s) for row in _ROWS]


def objective_slack(records: int, lam: float, smoothness: float) -> float:
    """2 log(1 + L/(n lam)): the epsilon that objective perturbation spends on the change of variables, in linear
    models.

    Source: Chaudhuri, Monteleoni and Sarwate 2011, Algorithm 2 (there epsilon' = epsilon minus this); Rajkumar and
    Agarwal 2012, Procedure 2.
    """
    return 2 * math.log1p(smoothness / (records * lam))


def rajkumar_budget(epsilon: float, records: int, lam: float, smoothness: float) -> tuple[float, float]:
    """(Delta, epsilon~) of Rajkumar and Agarwal 2012, Procedure 2 (computeSlack): extra regulariser and budget
    left."""
    left = epsilon - objective_slack(records, lam, smoothness)
    if left > 0:
        return 0.0, left
    return smoothness / (records * math.expm1(epsilon / 4)) - lam, epsilon / 2


def rajkumar_sigma(dimension: int, epsilon: float, delta: float, G: float = 1.0) -> float:
    """sigma* of Rajkumar and Agarwal 2012, Procedure 3, with the square that its printed condition lacks.

    The loss of the Gaussian objective perturbation is at most (4 G |eta| + 4 G^2) / (2 sigma^2) since one record
    moves eta by at most 2 G, so it is at most epsilon while |eta| <= (sigma^2 epsilon - 2 G^2) / (2 G), and
    |eta|^2/sigma^2 is chi^2 with d degrees: sigma^2 epsilon - 2 G^2 = 2 G sigma q with q^2 the (1-delta)-quantile.
    Printed (G = 1): Pr(U <= (sigma* epsilon - 2)^2 / (4 sigma*^2)) = 1 - delta, without the square of sigma*; see
    `rajkumar_printed_root`.
    """
    q = math.sqrt(chi_square_above(delta, dimension))
    return G * (q + math.sqrt(q * q + 2 * epsilon)) / epsilon


def rajkumar_printed_root(dimension: int, epsilon: float, delta: float) -> float:
    """The positive root of the condition as printed, |sigma epsilon - 2| = 2 sigma q: 2/(epsilon + 2q).

    It has sigma^2 epsilon < 2, so that no eta at all meets what the proof needs. (The other root, 2/(epsilon - 2q),
    is negative unless epsilon > 2q.)
    """
    return 2 / (epsilon + 2 * math.sqrt(chi_square_above(delta, dimension)))


def _laplace_row(
    name: str, formula: str, scale: float, s: PaperSetting, epsilon: float, published: Published, note: str = ""
) -> PrintedFormula:
    return PrintedFormula(
        name, "Laplace", formula, scale, f"({s.epsilon:g}, 0)", epsilon, 0.0, published, note or _L2_NOTE
    )


_L2_NOTE = "i.i.d. Laplace calibrated by L2 sensitivity: d coordinates cost sqrt(d) times more"


def _pathak(s: PaperSetting) -> PrintedFormula:
    scale = 2 * s.G / (s.smallest * s.lam * s.epsilon)
    l1 = math.sqrt(s.dimension) * 2 * s.G / (s.owners * s.smallest * s.lam)
    note = "noise for one owner's model on a mean of m: m times too much, then sqrt(d) too little"
    return _laplace_row("Pathak", "2G/(n1 lam eps)", scale, s, laplace_epsilon(scale, l1), "aggregate", note)


def _local_output(s: PaperSetting) -> PrintedFormula:
    own = 2 * s.G / (s.smallest * s.lam * s.epsilon)
    l1 = math.sqrt(s.dimension) * 2 * s.G / (s.smallest * s.lam)
    formula, scale = "2G/(sqrt(m) n1 lam eps)", own / math.sqrt(s.owners)
    return _laplace_row("Local Out P", formula, scale, s, laplace_epsilon(own, l1), "owners' vectors")


def _local_objective(s: PaperSetting) -> PrintedFormula:
    scale = 2 * s.G / (s.smallest * s.epsilon)
    slack = objective_slack(s.smallest, s.lam, s.smoothness)
    note = (
        f"printed without the slack 2 log(1 + L/(n1 lam)) = {slack:.3g} of Chaudhuri et al. 2011 and by L2; "
        "holds for exact minimisers of linear models"
    )
    epsilon = math.sqrt(s.dimension) * s.epsilon + slack
    return _laplace_row("Local Obj P", "2G/(n1 eps)", scale, s, epsilon, "owners' vectors", note)


def _mpc_output(s: PaperSetting) -> PrintedFormula:
    scale = 2 * s.G / (s.owners * s.smallest * s.lam * s.epsilon)
    l1 = math.sqrt(s.dimension) * 2 * s.G / (s.owners * s.smallest * s.lam)
    return _laplace_row("MPC Out P", "2G/(m n1 lam eps)", scale, s, laplace_epsilon(scale, l1), "aggregate")


def _gradient_row(
    s: PaperSetting, name: str, formula: str, mu: float, divisor: float, local: bool, note: str
) -> PrintedFormula:
    """mu is that of the whole sequence for what is published; divisor turns 2G sqrt(T)/mu into the aggregate's
    scale."""
    return PrintedFormula(
        name=name,
        law="Gaussian",
        formula=formula,
        scale=2 * s.G * math.sqrt(s.iterations) / (divisor * mu),
        claim=f"({s.epsilon:g}, {s.delta:g})",
        epsilon=epsilon_of_mu(mu, s.delta),
        delta=s.delta,
        published="owners' vectors" if local else "aggregate",
        note=note,
    )


def _table_note(s: PaperSetting) -> str:
    factor = 2 * math.sqrt(math.log(1 / s.delta))
    needed = math.sqrt(2) * s.epsilon / mu_of_budget(s.epsilon, s.delta)
    return (
        f"Table 1 leaves out 2 sqrt(log(1/delta)) = {factor:.3g} of Theorem 3.4; what (eps, delta) needs is "
        f"{needed:.3g} times this scale"
    )


def _theorem_note(s: PaperSetting) -> str:
    by_lemma = epsilon_of_mu(s.epsilon / math.sqrt(2 * math.log(1 / s.delta)), s.delta, "zcdp")
    return f"drops the term rho: by the paper's own Lemma 2.3 eps = {by_lemma:.4g}; 'truly' is by exact accounting"


def _local_gradient_table(s: PaperSetting) -> PrintedFormula:
    mu, divisor = math.sqrt(2) * s.epsilon, math.sqrt(s.owners) * s.smallest
    return _gradient_row(s, "Local Grad P", "sqrt(2T) G/(sqrt(m) n1 eps)", mu, divisor, True, _table_note(s))


def _mpc_gradient_table(s: PaperSetting) -> PrintedFormula:
    mu, divisor = math.sqrt(2) * s.epsilon, s.owners * s.smallest
    return _gradient_row(s, "MPC Grad P", "sqrt(2T) G/(m n1 eps)", mu, divisor, False, _table_note(s))


def _mpc_gradient_theorem(s: PaperSetting) -> PrintedFormula:
    mu = s.epsilon / math.sqrt(2 * math.log(1 / s.delta))
    formula, divisor = "sqrt(8 T log(1/delta)) G/(m n1 eps)", s.owners * s.smallest
    return _gradient_row(s, "MPC Grad P, Theorem 3.4", formula, mu, divisor, False, _theorem_note(s))


def _rajkumar(s: PaperSetting) -> PrintedFormula:
    extra, left = rajkumar_budget(s.epsilon, s.records, s.lam, s.smoothness)
    sigma = rajkumar_sigma(s.dimension, left, s.delta, s.G)
    transcript = laplace_epsilon(1.0, s.epsilon, s.iterations, s.delta)
    pure = s.iterations * s.epsilon
    note = (
        f"rho_t spends eps every iteration: T eps = {pure:.4g} pure, {transcript:.4g} at delta by optimal composition; "
        f"eta is drawn once; computeSlack leaves eps {left:.3g}, extra regulariser {extra:.3g}; the printed chi^2 "
        "condition lacks a square"
    )
    return PrintedFormula(
        name="Rajkumar and Agarwal",
        law="Gaussian",
        formula="sigma*/n, sigma* from chi^2_d(1-delta)",
        scale=sigma / s.records,
        claim=f"({s.epsilon:g}, {s.delta:g})",
        epsilon=transcript,
        delta=0.0 if transcript == pure else s.delta,
        published="noisy sums",
        note=note,
    )


def _rajkumar_printed(s: PaperSetting) -> PrintedFormula:
    _, left = rajkumar_budget(s.epsilon, s.records, s.lam, s.smoothness)
    root = s.G * rajkumar_printed_root(s.dimension, left, s.delta)
    corrected = rajkumar_sigma(s.dimension, left, s.delta, s.G)
    note = (
        f"the condition as printed gives sigma* = {root:.3g} where the proof needs {corrected:.3g}: no eta whatever "
        "meets it, and the limit model is promised nothing; rho_t is as above"
    )
    return replace(_rajkumar(s), name="Rajkumar and Agarwal, sigma* as printed", scale=root / s.records, note=note)


def _kang_local(s: PaperSetting) -> PrintedFormula:
    L = math.log(1 / s.delta)
    client = 2 * s.epsilon / math.sqrt(KANG_CONSTANT * L) * s.records / s.smallest
    note = (
        "Algorithm 1 as written: every client makes T noisy steps on its own records and the models are averaged once; "
        f"sigma of the aggregate protects n records, a client's has n1 = {s.smallest}; the mean of the models hides "
        "more, by how much nobody has proved"
    )
    sigma = s.G * math.sqrt(KANG_CONSTANT * s.iterations * L) / (s.records * s.epsilon)
    formula = "sqrt(16 T log(1/delta)) G/(n eps), a step"
    row = _gradient_row(s, "Kang et al., Algorithm 1", formula, client, s.smallest, True, note)
    return replace(row, scale=sigma)


def _cape(s: PaperSetting) -> PrintedFormula:
    """One release a site and iteration, tau_s by the classical formula (1), T of them by sqrt(T) as for the
    others."""
    mu = s.epsilon / math.sqrt(2 * math.log(1.25 / s.delta))
    bad = most_colluding(s.owners)
    factor = collusion_factor(s.owners, s.owners - bad)
    alone, plain = epsilon_of_mu(mu, s.delta), epsilon_of_mu(mu * collusion_factor(s.owners, 1, "none"), s.delta)
    note = (
        f"towards ceil(m/3) - 1 = {bad} colluding sites; the same noise made inside MPC is eps = {alone:.3g} whoever "
        f"colludes, independent noise at the sites {plain:.3g}"
    )
    formula = "2G sqrt(2 T log(1.25/delta))/(m n1 eps)"
    row = _gradient_row(s, "CAPE", formula, mu, s.owners * s.smallest, True, note)
    return replace(row, epsilon=epsilon_of_mu(mu * factor, s.delta))


def _kang(s: PaperSetting) -> PrintedFormula:
    L = math.log(1 / s.delta)
    central = 2 * s.epsilon / math.sqrt(KANG_CONSTANT * L)  # mu of one noise vector after aggregation
    shrink = math.sqrt(_sum_of_squared_weights(s))
    client = central * s.records / s.smallest
    note = (
        f"proved for one noise after aggregation (truly eps = {epsilon_of_mu(central, s.delta):.3g}) but written at "
        f"each client, where weights shrink it by {shrink:.3g}; towards who sees a client's vector eps = "
        f"{epsilon_of_mu(client, s.delta):.4g}; c is left open (16 by its proof, for eps <= 2 log(1/delta))"
    )
    formula = "sqrt(16 T log(1/delta)) G/(n eps), client"
    return _gradient_row(s, "Kang et al.", formula, central / shrink, s.records, False, note)


def _sum_of_squared_weights(s: PaperSetting) -> float:
    """sum_j (n_j/n)^2 for one owner of the smallest size and the others equal: only m, n_(1) and n are known."""
    if s.owners == 1:
        return 1.0
    rest = (s.records - s.smallest) / (s.owners - 1)
    return ((s.owners - 1) * rest**2 + s.smallest**2) / s.records**2


_ROWS: tuple[Callable[[PaperSetting], PrintedFormula], ...] = (
    _pathak,
    _local_output,
    _local_objective,
    _local_gradient_table,
    _mpc_output,
    _mpc_gradient_table,
    _mpc_gradient_theorem,
    _rajkumar,
    _rajkumar_printed,
    _kang,
    _kang_local,
    _cape,
)
