"""Figures 2 and 12-16 of Kang et al. 2019: accuracy and gap against u = n_max/n_min, owners in two groups."""

from collections.abc import Sequence
from pathlib import Path

from dpmpc_experiments import epsilon as kang
from dpmpc_experiments.figures import Line, Panel, draw
from dpmpc_experiments.plan import Check, Experiment, Plan, Section
from dpmpc_experiments.summary import change, curve, select, values, write_summary
from dpmpc_experiments.task import Row, Task

SETTINGS = ((16, 0.05), (32, 0.1), (8, 0.01))
LEVELS = (1, 3, 5, 7, 9)
FEW_LEVELS = (1, 2, 3, 4, 5)  # the small set
METHODS = ("MPC Grad P", "WD-DP")


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
                        # noise of its own at every u: a line that is flat is flat by measurement
                        noise = seed + 1000 * u
                        work.append(
                            Task(
                                "skew", kang.source(plan, dataset), f"skew:{m}:{u}", seed, method, "zcdp", (budget,),
                                kang.DELTA, kang.ITERATIONS, 0.0, (noise,), (kang.ITERATIONS,), "WD-DP",
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
            checks += _steady(select(mine, dataset=dataset), f"{dataset}, m = {m}, epsilon = {budget}")
    return Section("Uneven owners", _text(), checks, figures)


def level(row: Row) -> float:
    """u of a row."""
    return float(str(row["owners"]).rpartition(":")[2])


def _panels(rows: Sequence[Row]) -> list[list[Panel]]:
    above, below = [], []
    for dataset in values(rows, "dataset"):
        accuracy = Panel(str(dataset), "u = n_max / n_min", "accuracy")
        gap = Panel(str(dataset), "u = n_max / n_min", "J - J*", log_y=True, floor=1e-4)
        for method in METHODS:
            chosen = select(rows, dataset=dataset, method=method)
            label = kang.NAMES.get(method, method)
            accuracy.lines.append(Line(label, curve(chosen, "score", level, (0.0, 1.0)), method, 0))
            gap.lines.append(Line(label, curve(chosen, "gap", level), method, 0))
        above.append(accuracy)
        below.append(gap)
    return [above, below]


def _steady(rows: Sequence[Row], label: str) -> list[Check]:
    """From u = 1 to the largest: gap and accuracy with equal weights; size weights move within their interval."""
    equal, size = (select(rows, method=method) for method in METHODS)
    checks = []
    for metric, word in (("gap", "gap"), ("score", "accuracy")):
        lines = [curve(chosen, metric, level) for chosen in (equal, size)]
        moved, half = zip(*(change(line) for line in lines), strict=True)
        worse = moved[0] > half[0] if metric == "gap" else moved[0] < -half[0]
        steady = abs(moved[1]) <= 1.5 * half[1]
        texts = [f"{line.mean[0]:.3g} to {line.mean[-1]:.3g}" for line in lines]
        verdict = "equal weights degrade: reproduced" if worse else "equal weights: within the interval"
        verdict += "; size weights steady, by construction" if steady else "; size weights moved, which is chance"
        checks.append(
            Check(f"{label}: {word}, u from 1 to the largest", "equal degrades, size is steady",
                  f"equal {texts[0]}; size {texts[1]}", verdict)
        )  # fmt: skip
    return checks


def _text() -> list[str]:
    return [
        "Kang et al. 2019, Figures 2 and 12-16: half of the owners hold u times as many records as the others. The "
        "rest is as in the previous section. Equal weights pay for the smallest owner, sigma ~ 1/(m n_(1)), which is "
        "(1 + u)/2 times that of size weights, sigma ~ 1/n. All methods take the step of size weights, so that a "
        "shorter step does not hide the noise. That size weights are steady is **true by construction** (their "
        "noise and objective do not depend on u). Noise seeds are fresh at every u, so the line shows chance "
        "alone. It is not counted as reproduced.",
    ]


EXPERIMENT = Experiment("skew", "Kang et al. 2019, Figures 2, 12-16", tuple(kang.DATASETS), tasks, report)
