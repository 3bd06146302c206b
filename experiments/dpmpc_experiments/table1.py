"""Table 1 of Jayaraman et al. 2018: the printed formulas, and standard deviations measured over 1,000 samples."""

import csv
import math
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpmpc.privacy.gaussian import gaussian_scale
from dpmpc_experiments.noise import Generator, gaussian_sum, generator, laplace_sum
from dpmpc_experiments.plan import Check, Experiment, Plan, Section
from dpmpc_experiments.printed import TABLE1, TABLE1_SETTING
from dpmpc_experiments.task import Row, Task

SAMPLES = 1000
LAPLACE_KURTOSIS, NORMAL_KURTOSIS = 6.0, 3.0
Array = NDArray[np.float64]


def formulas() -> dict[str, float]:
    """The six analytical entries at the table's setting: Laplace scales and Gaussian standard deviations."""
    s = TABLE1_SETTING
    m, n, lam, epsilon, G, T = s["m"], s["n_min"], s["lam"], s["epsilon"], s["G"], s["iterations"]
    return {
        "Pathak": 2 * G / (n * lam * epsilon),
        "Local Out P": 2 * G / (math.sqrt(m) * n * lam * epsilon),
        "Local Obj P": 2 * G / (n * epsilon),
        "Local Grad P": math.sqrt(2 * T) * G / (math.sqrt(m) * n * epsilon),
        "MPC Out P": 2 * G / (m * n * lam * epsilon),
        "MPC Grad P": math.sqrt(2 * T) * G / (m * n * epsilon),
    }


def samplers() -> dict[str, tuple[Callable[[Generator, int], Array], float, float]]:
    """For each column: how d samples of its noise *in the aggregate* are drawn, their exact deviation and kurtosis.

    Noise made at the owners is drawn at each and averaged. Local Obj P's is the noise of one owner's objective, as
    its formula.
    """
    scale, m = formulas(), int(TABLE1_SETTING["m"])
    root2, root_m = math.sqrt(2.0), math.sqrt(m)

    def once(name: str, draw: Callable[[Generator, Array, int], Array]) -> Callable[[Generator, int], Array]:
        return lambda rng, d: draw(rng, np.array([scale[name]]), d)

    def mean(name: str, draw: Callable[[Generator, Array, int], Array]) -> Callable[[Generator, int], Array]:
        return lambda rng, d: draw(rng, np.full(m, scale[name] * root_m), d) / m

    blended = NORMAL_KURTOSIS + (LAPLACE_KURTOSIS - NORMAL_KURTOSIS) / m
    return {
        "Pathak": (once("Pathak", laplace_sum), root2 * scale["Pathak"], LAPLACE_KURTOSIS),
        "Local Out P": (mean("Local Out P", laplace_sum), root2 * scale["Local Out P"], blended),
        "Local Obj P": (once("Local Obj P", laplace_sum), root2 * scale["Local Obj P"], LAPLACE_KURTOSIS),
        "Local Grad P": (mean("Local Grad P", gaussian_sum), scale["Local Grad P"], NORMAL_KURTOSIS),
        "MPC Out P": (once("MPC Out P", laplace_sum), root2 * scale["MPC Out P"], LAPLACE_KURTOSIS),
        "MPC Grad P": (once("MPC Grad P", gaussian_sum), scale["MPC Grad P"], NORMAL_KURTOSIS),
    }


def measure(seed: int) -> dict[str, tuple[float, float, float]]:
    """For each column (measured deviation of SAMPLES samples, exact deviation, standard error of a measured one)."""
    result = {}
    for name, (draw, exact, kurtosis) in samplers().items():
        sample = draw(generator(seed, "table1", name), SAMPLES)
        error = exact * math.sqrt((kurtosis - 1) / (4 * SAMPLES))
        result[name] = (float(sample.std(ddof=1)), exact, error)
    return result


def promised() -> tuple[float, float]:
    """MPC Grad P's sigma at the table's setting and delta = 1e-3, by exact zCDP and tight: to set beside its own."""
    s = TABLE1_SETTING
    sensitivity = 2 * s["G"] / (s["m"] * s["n_min"])
    T = int(s["iterations"])
    return (
        gaussian_scale(s["epsilon"], 1e-3, sensitivity, T, "zcdp"),
        gaussian_scale(s["epsilon"], 1e-3, sensitivity, T, "tight"),
    )


def report(rows: Sequence[Row], folder: Path, plan: Plan) -> Section:
    """Writes table1.csv; `rows` is empty, there is nothing to train."""
    analytic, measured = formulas(), measure(plan.seed)
    checks, lines = [], []
    for name, (formula, deviation) in TABLE1.items():
        got, exact, error = measured[name]
        agrees = abs(analytic[name] - formula) <= 0.5 * 10 ** (math.floor(math.log10(formula)) - 1)
        z_ours, z_theirs = (got - exact) / error, (deviation - exact) / error
        verdict = "reproduced" if agrees and abs(z_ours) <= 3 and abs(z_theirs) <= 3 else "not reproduced"
        checks.append(
            Check(
                name,
                f"formula {formula:.3g}, measured {deviation:.3g}",
                f"formula {analytic[name]:.4g}, exact {exact:.4g}, measured {got:.4g}",
                f"{verdict}: printed is {z_theirs:+.1f}, ours {z_ours:+.1f} standard errors from exact",
            )
        )
        lines.append([name, formula, analytic[name], deviation, exact, got, error, z_theirs, z_ours, plan.seed])
    with (folder / "table1.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        head = "method,printed_formula,formula,printed_sd,exact_sd,measured_sd,standard_error,z_printed,z_measured,seed"
        writer.writerow(head.split(","))
        writer.writerows([[f"{x:.6g}" if isinstance(x, float) else x for x in line] for line in lines])
    zcdp, tight = promised()
    return Section(
        "Table 1: noise of each method",
        [
            "Jayaraman et al. 2018, m = 100, n_(1) = 500, lambda = 0.01, epsilon = 0.5, G = 1, T = 100. A Laplace "
            "column prints the scale b. Its deviation is sqrt(2) b. Deviations are over 1,000 samples.",
        ],
        checks,
        notes=[
            "Discrepancy: the two Gaussian formulas leave out log(1/delta). At delta = 1e-3 MPC Grad P needs sigma "
            f"= {zcdp:.4g} (exact zCDP) or {tight:.4g} (tight) for epsilon = 0.5, not {analytic['MPC Grad P']:.3g}. "
            "Local Obj P's entry is the noise of one owner's objective, not of the aggregate.",
        ],
    )


def tasks(plan: Plan) -> list[Task]:
    """None: the table is arithmetic and 6,000 random numbers."""
    return []


EXPERIMENT = Experiment("table1", "Jayaraman et al. 2018, Table 1", (), tasks, report)
