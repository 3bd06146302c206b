"""Figures 2 and 12-16 of Kang et al. 2019: accuracy and gap against u = n_max/n_min, owners in two groups."""

from collections.abc import Sequence
from pathlib import Path

from dpmpc.experiments import epsilon as kang
from dpmpc.experiments.figures import Line, Panel, draw
from dpmpc.experiments.plan import Check, Experiment, Plan, Section
from dpmpc.experiments.summary import curve, select, values, write_summary
from dpmpc.experiments.task import Row, Task

SETTINGS = ((16, 0.05), (32, 0.1), (8, 0.01))
LEVELS = (1, 3, 5, 7, 9)
FEW_LEVELS = (1, 2, 3, 4, 5)  # the small set
METHODS = ("MPC Grad P", "WD-DP", "Centralised private")


def tasks(plan: Plan) -> list[Task]:
    """One for each data set, (m, epsilon), u, method and partition."""
    work = []
    for dataset in kang.DATASETS:
        if not plan.has(dataset) or (plan.quick and dataset in ("kddcup99", "bank")):
            continue
        seeds = kang.repeats(plan, dataset)
        for m, budget in SETTINGS[:1] if plan.quick else SETTINGS:
            for u in FEW_LEVELS if dataset == "breast-cancer-wisconsin" else LEVELS:
                for method in METHODS:
                    for seed in seeds:
                        work.append(
                            Task(
                                "skew", kang.source(plan, dataset), f"skew:{m}:{u}", seed, method, "zcdp", (budget,),
                                kang.DELTA, kang.ITERATIONS, 0.0, (seed,), (kang.ITERATIONS,), "WD-DP",
                            )
                        )  # fmt: skip
    return work


def report(rows: Sequence[Row], folder: Path, plan: Plan) -> Section:
    """Writes a figure for each (m, epsilon) and summary.csv."""
    keys = ("dataset", "owners", "n_min", "method", "epsilon")
    write_summary(rows, keys, ("scale", "eta", "gap", "score"), folder / "summary.csv")
    figures, checks = [], []
    for m, budget in SETTINGS:
        mine = [row for row in rows if str(row["owners"]).startswith(f"skew:{m}:") and row["epsilon"] == budget]
        if not mine:
            continue
        file = f"skew-m{m}.png"
        draw(folder / file, _panels(mine))
        figures.append(
            (file, f"Accuracy (above) and gap (below) against u = n_max/n_min, m = {m}, epsilon = {budget}.")
        )
        for dataset in values(mine, "dataset"):
            checks.append(_steady(select(mine, dataset=dataset), f"{dataset}, m = {m}, epsilon = {budget}"))
    return Section("Uneven owners", _text(), checks, figures)


def level(row: Row) -> float:
    """u of a row."""
    return float(str(row["owners"]).rpartition(":")[2])


def _panels(rows: Sequence[Row]) -> list[list[Panel]]:
    above, below = [], []
    for dataset in values(rows, "dataset"):
        accuracy = Panel(str(dataset), "u = n_max / n_min", "accuracy")
        gap = Panel(str(dataset), "u = n_max / n_min", "J - J*", log_y=True, floor=1e-4)
        for dash, method in enumerate(METHODS):
            chosen = select(rows, dataset=dataset, method=method)
            label = kang.NAMES.get(method, method)
            accuracy.lines.append(Line(label, curve(chosen, "score", level), method, dash // 2))
            gap.lines.append(Line(label, curve(chosen, "gap", level), method, dash // 2))
        above.append(accuracy)
        below.append(gap)
    return [above, below]


def _steady(rows: Sequence[Row], label: str) -> Check:
    """From u = 1 to the largest: by what the gap and the noise grow."""
    growth, noise = {}, {}
    for method in METHODS[:2]:
        mine = select(rows, method=method)
        gap, scale = curve(mine, "gap", level), curve(mine, "scale", level)
        growth[method], noise[method] = gap.mean[-1] / gap.mean[0], scale.mean[-1] / scale.mean[0]
    ours = (
        f"gap x {growth['MPC Grad P']:.2f} (noise x {noise['MPC Grad P']:.2f}) with equal weights, "
        f"x {growth['WD-DP']:.2f} (noise x {noise['WD-DP']:.2f}) with size weights"
    )
    good = growth["MPC Grad P"] > 1.25 and growth["MPC Grad P"] > growth["WD-DP"] and 0.7 < growth["WD-DP"] < 1.4
    return Check(f"{label}: u from 1 to the largest", "equal degrades, size is steady", ours,
                 "reproduced" if good else "not reproduced")  # fmt: skip


def _text() -> list[str]:
    return [
        "Kang et al. 2019, Figures 2 and 12-16: half of the owners hold u times as many records as the others; the "
        "rest as in the previous section. Equal weights pay for the smallest owner, sigma ~ 1/(m n_(1)), which is "
        "(1 + u)/2 times that of size weights, sigma ~ 1/n. All methods take the step of size weights, so that a "
        "shorter step does not hide the noise; noise seeds are the same for every u, hence flat lines.",
    ]


EXPERIMENT = Experiment("skew", "Kang et al. 2019, Figures 2, 12-16", tuple(kang.DATASETS), tasks, report)
