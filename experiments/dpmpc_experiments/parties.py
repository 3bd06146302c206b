"""Figures 1-2 of Rajkumar and Agarwal 2012: test error against the number of parties K and three skew vectors."""

import math
from collections.abc import Sequence
from pathlib import Path

from dpmpc.privacy.gaussian import Calibration
from dpmpc_experiments.figures import Line, Panel, draw
from dpmpc_experiments.plan import Check, Experiment, Plan, Section
from dpmpc_experiments.summary import Curve, alike, change, curve, select, spread, values, write_summary
from dpmpc_experiments.task import Row, Source, Task

EPSILONS, DELTA, ITERATIONS = (0.1, 0.2), 0.05, 200
LAM = {"synthetic": 0.1, "breast-cancer": 0.01}
PARTIES = (5, 10, 15)
SKEWS = ("0.2,0.2,0.2,0.2,0.2", "0.1,0.2,0.2,0.25,0.25", "0.01,0.29,0.2,0.25,0.25")
METHODS = (
    "Rajkumar and Agarwal",
    "Rajkumar and Agarwal (printed sigma*)",
    "GOP",
    "LA",
    "MPC Out P (norm)",
    "WD-DP",
    "Centralised non-private",
)
DRAWN = ("LA", "MPC Out P (norm)", "GOP", "Rajkumar and Agarwal", "WD-DP", "Centralised non-private")
LABELS = {
    "MPC Out P (norm)": "LA with 1/K in its sensitivity",
    "WD-DP": "ours at the same (epsilon, delta): WD-DP, tight",
    "Rajkumar and Agarwal": "PSGD",
}
DRAWS = 5  # data sets, or folds
COIN = 0.45  # an error above is next to that of a coin: whether it grows from there is chance
SIMILAR = 0.03  # errors whose whole interval lies within that are called similar
APART = 0.08  # errors less than that apart are not called better or worse: other partitions move them by as much
TITLES = {"synthetic": "simulated", "breast-cancer": "WDBC"}


def tasks(plan: Plan) -> list[Task]:
    """One for each data set, draw or fold, partition and method; both epsilons and all noise seeds at once.

    Every draw or fold has noise seeds of its own: the same vectors over five folds would count once, not five times.
    """
    work = []
    for draw_number in range(2 if plan.quick else DRAWS):
        seeds = tuple(seed + 1000 * draw_number for seed in plan.seeds(40, 5))
        simulated = Source("synthetic", plan.seed + draw_number, LAM["synthetic"], 2000, 0.5)
        real = Source("breast-cancer", plan.seed, LAM["breast-cancer"], fold=draw_number)
        for source in (simulated, real):
            for owners in [f"simplex:{k}" for k in PARTIES] + [f"shares:{s}" for s in SKEWS]:
                for method in METHODS:
                    calibration: Calibration = "tight" if method == "WD-DP" else "zcdp"
                    noise = seeds[:1] if method == "Centralised non-private" else seeds
                    work.append(
                        Task(
                            "parties", source, owners, plan.seed + draw_number, method, calibration, EPSILONS, DELTA,
                            ITERATIONS, 1.0, noise, (ITERATIONS,),
                        )
                    )  # fmt: skip
    return work


def report(rows: Sequence[Row], folder: Path, plan: Plan) -> Section:
    """Writes a figure for each data set and summary.csv."""
    rows = [row | {"error": 1.0 - float(row["score"])} for row in rows]
    write_summary(rows, ("dataset", "owners", "method", "epsilon"), ("error", "n_min"), folder / "summary.csv")
    figures, checks = [], []
    for dataset in values(rows, "dataset"):
        mine, title = select(rows, dataset=dataset), TITLES[str(dataset)]
        file = f"parties-{title.lower()}.png"
        draw(folder / file, _panels(mine, title))
        figures.append((file, f"{title}: test error against K (above) and the skew vectors (below), delta = {DELTA}."))
        for budget in EPSILONS:
            checks += _statements(select(mine, epsilon=budget), f"{title}, epsilon = {budget}")
    return Section("Number of parties and skew", _text(), checks, figures, _notes(rows))


def _by_k(rows: Sequence[Row], method: str) -> Curve:
    chosen = [row for row in select(rows, method=method) if str(row["owners"]).startswith("simplex")]
    return curve(chosen, "error", lambda row: float(str(row["owners"]).rpartition(":")[2]), (0.0, 1.0))


def _by_skew(rows: Sequence[Row], method: str) -> Curve:
    chosen = [row for row in select(rows, method=method) if str(row["owners"]).startswith("shares")]
    return curve(chosen, "error", lambda row: 1.0 + SKEWS.index(str(row["owners"]).partition(":")[2]), (0.0, 1.0))


def _panels(rows: Sequence[Row], title: str) -> list[list[Panel]]:
    above, below = [], []
    for budget in EPSILONS:
        at = select(rows, epsilon=budget)
        k = Panel(f"{title}, epsilon = {budget}", "K", "test error")
        skew = Panel(f"{title}, epsilon = {budget}", "skew vector", "test error")
        for method in DRAWN:
            dash = 1 if method == "MPC Out P (norm)" else 0
            color = "LA" if dash else method
            label = LABELS.get(method, method)
            k.lines.append(Line(label, _by_k(at, method), color, dash))
            skew.lines.append(Line(label, _by_skew(at, method), color, dash))
        above.append(k)
        below.append(skew)
    return [above, below]


def _statements(rows: Sequence[Row], label: str) -> list[Check]:
    la, fair = _by_k(rows, "LA"), _by_k(rows, "MPC Out P (norm)")
    psgd, gop = _by_k(rows, "Rajkumar and Agarwal"), _by_k(rows, "GOP")
    bare = _by_k(rows, "Rajkumar and Agarwal (printed sigma*)")
    la_skew, fair_skew = _by_skew(rows, "LA"), _by_skew(rows, "MPC Out P (norm)")
    return [
        Check(f"{label}: LA's error grows with K", "holds", f"{_ends(la)}; with 1/K {_ends(fair)}", _growth(la, fair)),
        Check(f"{label}: PSGD better than LA", "holds", f"PSGD {_ends(psgd)}, LA {_ends(la)}", _better(psgd, la)),
        Check(f"{label}: PSGD similar to GOP", "similar", f"PSGD {_ends(psgd)}, GOP {_ends(gop)}",
              _similar(psgd, gop)),
        Check(f"{label}: PSGD with sigma* as printed", "their Procedure 3", f"{_ends(bare)}",
              "rho's noise alone; the limit model is promised nothing"),
        Check(
            f"{label}: LA's error grows as the smallest party shrinks",
            "holds",
            f"{_ends(la_skew)}; with 1/K {_ends(fair_skew)}",
            _growth(la_skew, fair_skew),
        ),
    ]  # fmt: skip


def _better(a: Curve, b: Curve) -> str:
    """Whether a's error is below b's by APART and by more than the 95 % interval at every K."""
    each = [spread(a, b, i) for i in range(len(a.x))]
    if all(abs(difference) < APART for difference, _ in each):
        least, most = (pick(abs(difference) for difference, _ in each) for pick in (min, max))
        if all(difference < -half for difference, half in each):
            wide, by = (
                max(half for _, half in each),
                f"{least:.2f}" + (f" to {most:.2f}" if most - least > 0.005 else ""),
            )
            return (
                f"not reproduced: better by {by} +- {wide:.2f}, less than the {APART:g} that other partitions may turn"
            )
        return f"not reproduced: at most {most:.2f} apart"
    if all(difference < -half for difference, half in each):
        return "reproduced"
    if all(abs(difference) <= half for difference, half in each):
        return "undecided: within the interval"
    return "reproduced at some K" if any(difference < -half for difference, half in each) else "not reproduced"


def _similar(a: Curve, b: Curve) -> str:
    """Whether the errors, over all K, are equivalent to within SIMILAR: an interval that is wider decides nothing."""
    each = [spread(a, b, i) for i in range(len(a.x))]
    largest = max(abs(difference) for difference, _ in each)
    found = {alike(difference, half, SIMILAR) for difference, half in each}
    word = "not reproduced" if "apart" in found else "undecided" if "undecided" in found else "reproduced"
    return f"{word}: at most {largest:.3f} apart, interval {max(half for _, half in each):.3f}"


def _growth(la: Curve, fair: Curve) -> str:
    """Whether the error grows by more than its 95 % interval from the first to the last point."""
    if min(la.mean[0], fair.mean[0]) > COIN:
        return "not reproduced: next to a coin throughout"
    grows = [moved > half for moved, half in (change(la), change(fair))]
    if grows[0]:
        return "reproduced"
    if grows[1]:
        return "reproduced with 1/K in the sensitivity"
    return "not reproduced: within the interval"


def _ends(line: Curve) -> str:
    return f"{line.mean[0]:.3f} to {line.mean[-1]:.3f}"


def _notes(rows: Sequence[Row]) -> list[str]:
    """How large GOP's noise is beside a gradient."""
    lines = []
    for dataset in values(rows, "dataset"):
        for budget in EPSILONS:
            row = select(rows, dataset=dataset, method="GOP", epsilon=budget)[0]
            size = float(row["scale"]) * math.sqrt(float(row["d"]))
            lines.append(f"{TITLES[str(dataset)]}, epsilon = {budget}: {size:.2f}")
    return [
        "The noise of GOP and PSGD on the mean gradient, whose own norm is at most 1, has a norm of about sigma* "
        f"sqrt(d)/n. By setting: {'; '.join(lines)}. Where it is above 1 no method with this noise learns. Whatever "
        "the paper's Figure 2 shows on WDBC, it cannot be that. With the condition on sigma* as printed there would "
        "be next to no noise.",
    ]


def _text() -> list[str]:
    return [
        "Rajkumar and Agarwal 2012, Figures 1-2. The paper prints no numbers. It gives neither lambda (here 0.1 for "
        "the simulated sets, 0.01 for WDBC), nor the steps z_t, nor their number (here 200). Simulated: five sets of "
        "1,000 + 1,000 records in the ball of R^10. WDBC: five folds of 569 x 30, features scaled to [0, 1] by "
        "public ranges, no intercept. Each point is over five sets or folds with a random partition each, and 40 "
        "noise seeds of its own for each of them. Bands are of the noise, given the sets and partitions. LA has "
        "their density exp(-|v|_2/scale) at Pathak et al.'s scale 2/(n_(1) lambda epsilon), which makes a coin of "
        "every classifier here. With the factor 1/K that the mean over K parties earns (MPC Out P) it does what "
        "their figures say. WD-DP with tight calibration keeps the same (epsilon, delta) and is ours to compare "
        "with.",
    ]


EXPERIMENT = Experiment("parties", "Rajkumar and Agarwal 2012, Figures 1-2", (), tasks, report)
