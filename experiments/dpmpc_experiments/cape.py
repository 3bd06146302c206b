"""Imtiaz, Mohammadi and Sarwate 2019: correlated noise against noise made inside MPC, and the functional
mechanism."""

import csv
import math
from collections.abc import Sequence
from pathlib import Path

from dpmpc.privacy.cape import collusion_factor, epsilon_table, most_colluding, theorem_delta, variance_ratio
from dpmpc.privacy.gaussian import delta_of_mu, epsilon_of_mu, gaussian_scale, mu_of_budget
from dpmpc.records import load_dataset
from dpmpc_experiments import network
from dpmpc_experiments.figures import Dot, DotPanel, Line, Panel, draw, draw_dots
from dpmpc_experiments.plan import Check, Experiment, Plan, Section
from dpmpc_experiments.report import table
from dpmpc_experiments.summary import Curve, curve, interval, select, spread, values, write_summary
from dpmpc_experiments.task import Row, Source, Task

EPSILON, DELTA, LAM = 0.5, 1e-3, 1e-3
ITERATIONS, STEP = 200, 5.0
SMALL, FEW = ("breast-cancer", "diabetes"), 40  # sets of some hundred records, on which longer descents drown
SITES = (10, 100, 1000)
SETS = {"kddcup99": (70_000, 2 / 7), "adult": (None, 0.2)}
DESCENTS = ("WD-DP", "Sites under masks", "CAPE", "Conventional")
BUDGETS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
COEFFICIENTS = ("Functional", "Functional (CAPE)", "Functional (conventional)", "Functional (Laplace)", "WD-DP")
FUNCTIONAL_SETS = {"kddcup99": 70_000, "adult": None, "bank": None, "breast-cancer": None}
FUNCTIONAL_SITES = "even:20"  # not one of SITES: its runs are not to be mixed with theirs
WAYS = {"WD-DP": "mpc", "Sites under masks": "masks", "CAPE": "cape", "Conventional": "none"}
LABELS = {
    "WD-DP": "inside MPC",
    "Sites under masks": "at the sites, secure aggregation",
    "CAPE": "CAPE",
    "Conventional": "at the sites, independent",
    "Functional": "functional, inside MPC",
    "Functional (CAPE)": "functional, CAPE",
    "Functional (conventional)": "functional, independent at the sites",
    "Functional (Laplace)": "functional of Zhang et al. (Laplace)",
}
NETWORK_RECORDS, NETWORK_EPSILON, NETWORK_DELTA, NETWORK_SITES = 4000, 0.5, 1e-4, 10


def tasks(plan: Plan) -> list[Task]:
    """Descents by where the noise is made, over sites; the functional mechanism over budgets; ridge on diabetes."""
    seeds = plan.seeds(20, 5)
    work = []
    for dataset, (rows, fraction) in SETS.items():
        if not plan.has(dataset) or (plan.quick and dataset != "adult"):
            continue
        source = Source(dataset, plan.seed, LAM, rows, fraction)
        for sites in SITES:
            work += [_task(plan, source, f"even:{sites}", method, (EPSILON,), seeds) for method in DESCENTS]
    for dataset, count in FUNCTIONAL_SETS.items():
        if dataset == "breast-cancer" or (plan.has(dataset) and not plan.quick):
            source = Source(dataset, plan.seed, LAM, count, 0.2, intercept=dataset in ("bank", "breast-cancer"))
            work += [_task(plan, source, FUNCTIONAL_SITES, method, BUDGETS, seeds) for method in COEFFICIENTS]
            work.append(_task(plan, source, "even:1", "Centralised non-private", (1.0,), seeds[:1]))
    ridge = Source("diabetes", plan.seed, LAM, None, 0.2, loss="ridge", intercept=True)
    work += [_task(plan, ridge, FUNCTIONAL_SITES, method, BUDGETS, seeds) for method in COEFFICIENTS]
    work.append(_task(plan, ridge, "even:1", "Centralised non-private", (1.0,), seeds[:1]))
    return work


def _task(
    plan: Plan, source: Source, owners: str, method: str, epsilons: tuple[float, ...], seeds: tuple[int, ...]
) -> Task:
    iterations = 1 if method.startswith("Functional") else FEW if source.dataset in SMALL else ITERATIONS
    step = 1.0 if source.loss == "ridge" else STEP
    return Task("cape", source, owners, plan.seed, method, "tight", epsilons, DELTA, iterations, step, seeds,
                (iterations,))  # fmt: skip


def report(rows: Sequence[Row], folder: Path, plan: Plan) -> Section:
    """Writes figures of what colluders learn, of the gaps, of the functional mechanism and of the network;
    summary.csv."""
    keys = ("dataset", "loss", "owners", "n", "d", "method", "epsilon", "law", "scale")
    write_summary(rows, keys, ("gap", "score"), folder / "summary.csv")
    draw(folder / "cape-collusion.png", [_collusion()])
    figures = [("cape-collusion.png", "epsilon towards colluding sites, of noise whose total is that of MPC at epsilon "
                                      f"= {EPSILON}, delta = {DELTA}.")]  # fmt: skip
    notes = _formulas()
    descents = [row for row in rows if row["method"] in DESCENTS and float(row["iterations"]) == ITERATIONS]
    descents = [row for row in descents if row["owners"] in [f"even:{s}" for s in SITES] and row["epsilon"] == EPSILON]
    descents = [row for row in descents if row["dataset"] in SETS]
    checks = []
    if descents:
        draw_dots(folder / "cape-gap.png", _gap_dots(descents), floor=1e-5)
        caption = (
            f"Gap at the same (epsilon, delta) = ({EPSILON}, {DELTA}) towards a third of the sites colluding, by where "
            "the noise is made; means and 95 % intervals."
        )
        figures.append(("cape-gap.png", caption))
        checks += _gap_checks(descents)
    draw(folder / "cape-functional.png", _functional_panels(rows))
    caption = (
        "The functional mechanism, 20 sites: test score against epsilon (accuracy; minus the mean squared error for "
        "diabetes). Dotted: without privacy."
    )
    figures.append(("cape-functional.png", caption))
    checks += _functional_checks(rows)
    if plan.has("adult") and "adult" in {str(row["dataset"]) for row in rows}:
        checks += _network(folder, plan)
    return Section("Correlated noise (CAPE) and the functional mechanism", _text(), checks, figures, notes)


def _collusion() -> list[Panel]:
    """epsilon against the fraction of colluding sites, for S = 10 and S = 1,000."""
    panels = []
    mu = mu_of_budget(EPSILON, DELTA)
    for count in (10, 1000):
        panel = Panel(f"{count:,} sites", "colluding sites, of all", f"epsilon at delta = {DELTA}", log_y=True)
        honest = sorted({max(1, round(count * (1 - part / 20))) for part in range(20)}, reverse=True)
        x = tuple(1 - h / count for h in honest)
        for way, label, color in (("mpc", "inside MPC", "MPC Grad P"), ("masks", LABELS["Sites under masks"], "WD-DP"),
                                  ("cape", "CAPE", "Rajkumar and Agarwal"),
                                  ("none", LABELS["Conventional"], "Pathak")):  # fmt: skip
            ys = tuple(
                EPSILON if way == "mpc" else epsilon_of_mu(mu * collusion_factor(count, h, way), DELTA) for h in honest
            )
            panel.lines.append(Line(label, Curve(x, ys, ys, ys, 1), color))
        panels.append(panel)
    return panels


def _formulas() -> list[str]:
    """A table of what colluders learn, and the other statements that need no data."""
    mu = mu_of_budget(EPSILON, DELTA)
    lines = []
    for sites in SITES:
        bad = most_colluding(sites)
        row = epsilon_table(mu, DELTA, sites, sites - bad)
        lines.append([f"{sites:,}", str(bad), *(f"{row[k]:.3g}" for k in ("mpc", "masks", "cape", "pairs", "none"))])
    head = ["sites", "colluding", "inside MPC", "under masks", "CAPE", "CAPE, zero-sum from pairs", "independent"]
    cape = mu * collusion_factor(10, 7)
    eps = epsilon_of_mu(cape, DELTA)
    return [
        f"epsilon at delta = {DELTA} of noise whose total is what MPC needs for {EPSILON}; ceil(S/3) - 1 sites "
        "collude:",
        "", *table(head, lines), "",
        f"Theorem 1's relation, as inferred, gives delta = {theorem_delta(eps, cape):.2g} at epsilon = {eps:.2g}, "
        f"10 sites, where {delta_of_mu(cape, eps):.2g} is exact. Remark 3's ratio H(n) for sites of 50, 200, 250, "
        f"500 records is {variance_ratio([50, 200, 250, 500]):.2f} with plain means. Weights n_s/n make it 1.",
    ]  # fmt: skip


def _gap_dots(rows: Sequence[Row]) -> list[DotPanel]:
    panels = []
    for dataset in values(rows, "dataset"):
        dots = []
        for sites in SITES:
            for method in DESCENTS:
                line = curve(select(rows, dataset=dataset, owners=f"even:{sites}", method=method), "gap", "epsilon")
                dots.append(Dot(f"{sites:,} sites, {LABELS[method]}", line.mean[0], line.low[0], line.high[0],
                                {"WD-DP": "MPC Grad P", "Sites under masks": "WD-DP", "CAPE": "Rajkumar and Agarwal",
                                 "Conventional": "Pathak"}[method]))  # fmt: skip
        panels.append(DotPanel(str(dataset), f"J - J* after {ITERATIONS} iterations", dots))
    return panels


def _gap_checks(rows: Sequence[Row]) -> list[Check]:
    checks = []
    for dataset in values(rows, "dataset"):
        mine = select(rows, dataset=dataset)
        line = {
            (s, m): curve(select(mine, owners=f"even:{s}", method=m), "gap", "epsilon") for s in SITES for m in DESCENTS
        }
        for sites in SITES:
            texts = ", ".join(f"{LABELS[m]} {line[sites, m].mean[0]:.3g}" for m in DESCENTS)
            better, half = spread(line[sites, "Conventional"], line[sites, "CAPE"], 0)
            lost, wide = spread(line[sites, "CAPE"], line[sites, "WD-DP"], 0)
            verdict = "CAPE beats independent noise: " + ("reproduced" if better > half else "within the interval")
            verdict += "; MPC beats CAPE: " + ("yes" if lost > wide else "within the interval")
            checks.append(Check(f"{dataset}, {sites:,} sites: gap at the same (epsilon, delta), a third colluding",
                                "CAPE like a pooled centre, far below independent noise", texts, verdict))  # fmt: skip
    return checks


def _functional_panels(rows: Sequence[Row]) -> list[list[Panel]]:
    panels = []
    for dataset in ("breast-cancer", "kddcup99", "adult", "bank", "diabetes"):
        mine = [row for row in select(rows, dataset=dataset) if row["owners"] in (FUNCTIONAL_SITES, "even:1")]
        mine = [row for row in mine if row["epsilon"] in BUDGETS]
        if not select(mine, method="Functional"):
            continue
        ridge = dataset == "diabetes"
        panel = Panel(dataset, "epsilon", "- mean squared error" if ridge else "accuracy", log_x=True,
                      limits=(-0.4, -0.05) if ridge else None)  # fmt: skip
        for method, color, dash in (("Functional", "MPC Grad P", 0), ("Functional (CAPE)", "Rajkumar and Agarwal", 0),
                                    ("Functional (conventional)", "Pathak", 0),
                                    ("Functional (Laplace)", "Local Obj P", 1), ("WD-DP", "MPC Out P", 1)):  # fmt: skip
            chosen = select(mine, method=method)
            label = "gradient descent inside MPC" if method == "WD-DP" else LABELS[method]
            within = (-math.inf, 0.0) if ridge else (0.0, 1.0)
            panel.lines.append(Line(label, curve(chosen, "score", "epsilon", within), color, dash))
        best = float(select(mine, method="Centralised non-private")[0]["score"])
        best += float(select(mine, method="Centralised non-private")[0]["score_loss"])
        flat = (best,) * len(BUDGETS)
        panel.lines.append(Line("without privacy", Curve(BUDGETS, flat, flat, flat, 1), "Centralised non-private", 2))
        panels.append(panel)
    return [panels[:3], panels[3:]] if len(panels) > 3 else [panels]


def _functional_checks(rows: Sequence[Row]) -> list[Check]:
    checks = []
    for dataset in ("kddcup99", "adult", "bank", "breast-cancer", "diabetes"):
        mine = select(rows, dataset=dataset, owners=FUNCTIONAL_SITES, epsilon=EPSILON)
        line = {m: curve(select(mine, method=m), "score", "epsilon") for m in COEFFICIENTS if select(mine, method=m)}
        if "Functional" not in line:
            continue
        gained, half = spread(line["Functional"], line["Functional (Laplace)"], 0)
        lost, wide = spread(line["Functional (CAPE)"], line["Functional (conventional)"], 0)
        texts = ", ".join(f"{LABELS.get(m, m)} {value.mean[0]:.3f}" for m, value in line.items() if m != "WD-DP")
        texts += f"; gradient descent {line['WD-DP'].mean[0]:.3f}"
        verdict = "L2 and Gaussian beat L1 and Laplace: " + ("reproduced" if gained > half else "within the interval")
        verdict += "; CAPE beats independent noise: " + ("reproduced" if lost > wide else "within the interval")
        checks.append(Check(f"{dataset}, 20 sites, epsilon = {EPSILON}: score of the functional mechanism",
                            "improved and distributed mechanisms do better", texts, verdict))  # fmt: skip
    return checks


def _network(folder: Path, plan: Plan) -> list[Check]:
    """Test accuracy of a neural network by where the noise is made; network.csv keeps every run."""
    seeds = [seed for seed in plan.seeds(10, 3)]
    factors = {"without privacy": 0.0, "inside MPC": 1.0}
    honest = NETWORK_SITES - most_colluding(NETWORK_SITES)
    for method in ("Sites under masks", "CAPE", "Conventional"):
        factors[LABELS[method]] = collusion_factor(NETWORK_SITES, honest, WAYS[method])
    path = folder / "network.csv"
    key = f"{NETWORK_RECORDS}/{NETWORK_EPSILON}/{NETWORK_DELTA}/{network.ITERATIONS}/{network.STEP}/{seeds}"
    found = _read(path, key)
    if not found:
        data_dir = plan.data_dir
        data = load_dataset("adult", data_dir=data_dir, seed=plan.seed, intercept=False,
                            test_fraction=1 - NETWORK_RECORDS / 45_222)  # fmt: skip
        sigma = gaussian_scale(NETWORK_EPSILON, NETWORK_DELTA, network.sensitivity(data.n), network.ITERATIONS)
        for name, factor in factors.items():
            found[name] = network.accuracies(data.X, data.y, data.X_test, data.y_test, factor * sigma, seeds)
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows([[key], *([k, *v] for k, v in found.items())])
    means = {name: interval(sample) for name, sample in found.items()}
    texts = ", ".join(f"{name} {mean:.3f} +- {half:.3f}" for name, (mean, half) in means.items())
    gained = means["CAPE"][0] - means[LABELS["Conventional"]][0]
    half = math.hypot(means["CAPE"][1], means[LABELS["Conventional"]][1])
    return [
        Check(f"Adult, {NETWORK_RECORDS:,} records, {NETWORK_SITES} sites, epsilon = {NETWORK_EPSILON}: accuracy of a "
              f"neural network ({network.HIDDEN} hidden units)", "CAPE near the pooled centre", texts,
              "CAPE beats independent noise: " + ("reproduced" if gained > half else "within the interval")),
    ]  # fmt: skip


def _read(path: Path, key: str) -> dict[str, list[float]]:
    if not path.is_file():
        return {}
    with path.open(newline="", encoding="utf-8") as file:
        lines = list(csv.reader(file))
    return {line[0]: [float(x) for x in line[1:]] for line in lines[1:]} if lines and lines[0] == [key] else {}


def _text() -> list[str]:
    return [
        "Imtiaz, Mohammadi and Sarwate 2019. Sites add zero-sum noise, which cancels, and a little of their own, "
        "which sums up to what a trusted centre would add. The text that this section is made from stops inside their "
        "section 4.2. Most formulas are lost, and no data set is named. So formulas are derived anew "
        "(`dpmpc/privacy/cape.py`), and data sets are ours. The aggregate's noise is the pooled one by construction "
        "(Lemma 1). What is compared is what it costs in privacy, or what it leaves of the accuracy when the same "
        "(epsilon, delta) is kept towards ceil(S/3) - 1 colluding sites.",
        "",
        "**What MPC buys.** A colluding site knows its own part of the zero-sum noise and of the rest, so CAPE's "
        "noise is worth less the more sites collude. Noise made inside MPC is known to nobody. The size of the "
        "zero-sum noise is free, since it cancels. Made uniform (secure aggregation) it hides all but the sum, and "
        "only sqrt(S/S_H) is lost.",
        "",
        "The functional mechanism releases the coefficients of a quadratic objective once. Eigenvalues of the "
        "noisy matrix are raised to half the edge of the noise's spectrum. For ridge (diabetes) it is exact but "
        "for the noise.",
    ]


EXPERIMENT = Experiment(
    "cape", "Imtiaz et al. 2019, all that its text defines", (*SETS, "bank"), tasks, report, embedded=True
)
