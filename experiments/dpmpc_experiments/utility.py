"""Ours: more accuracy for the same (epsilon, delta), by choices that read public numbers alone."""

import csv
import math
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from dpmpc.planning.adviser import Circumstances, WayToRun, advise
from dpmpc.privacy.gaussian import mu_of_budget
from dpmpc_experiments import defaults, not_worth, surveyed
from dpmpc_experiments.figures import Dot, DotPanel, draw_dots
from dpmpc_experiments.plan import Check, Experiment, Plan, Section
from dpmpc_experiments.report import table
from dpmpc_experiments.summary import Curve, curve, interval, select, spread, values, write_summary
from dpmpc_experiments.task import Row, Source, Task, load_records

LAM, OWNERS = 1e-3, "even:1000"
# data set, rows (a fifth is for testing), owners, epsilon, delta
SETTINGS = (
    ("kddcup99", 125_000, "even:1000", 0.5, 1e-3),
    ("adult", None, "even:100", 0.5, 1e-5),
    ("bank", None, "even:100", 0.5, 1e-5),
    ("breast-cancer", None, "even:5", 2.0, 1e-5),
    ("synthetic", 2000, "even:5", 2.0, 1e-5),
)
LONG = 1500  # the papers' number of iterations
DEFAULT = 50  # the number of iterations without advice
OUTPUTS = ("MPC Out P (L1 Laplace)", "MPC Out P (Gaussian)")
OUTPUT_LAM = 0.01
SURVEYS = (
    (surveyed.HOSPITALS, 2.0, 1e-5, 4, 40),
    ("breast-cancer", 2.0, 1e-5, 5, 40),
    ("adult", 0.5, 1e-6, 10, 5),
    ("bank", 0.5, 1e-6, 10, 5),
)  # data set, epsilon, delta, owners, seeds


def tasks(plan: Plan) -> list[Task]:
    """Descents of today's lengths and of the advised one, with and without knowledge of theta; output
    perturbation."""
    work = []
    for dataset, rows, owners, epsilon, delta in SETTINGS:
        embedded = dataset in ("breast-cancer", "synthetic")
        seeds = plan.seeds(200, 20) if embedded else plan.seeds(20, 4)
        if not embedded and (not plan.has(dataset) or (plan.quick and dataset != "adult")):
            continue
        source = Source(dataset, plan.seed, LAM, rows, 0.5 if dataset == "synthetic" else 0.2,
                        intercept=dataset != "synthetic")  # fmt: skip
        choice = advised(dataset)
        assert choice.step is not None
        step = 1 / (0.25 + LAM)
        lengths = [(DEFAULT, step), (choice.iterations, choice.step)]
        lengths += [(LONG, step)] if dataset == "kddcup99" else []
        for iterations, eta in lengths:
            for method in ("Descent, tail average", _aware(choice)):
                work.append(
                    Task("utility", source, owners, plan.seed, method, "tight", (epsilon,), delta, iterations, eta,
                         seeds, (iterations,))
                )  # fmt: skip
        for method in OUTPUTS:
            output = Source(dataset, plan.seed, OUTPUT_LAM, rows, source.test_fraction, intercept=source.intercept)
            work.append(Task("utility", output, owners, plan.seed, method, "tight", (epsilon,), delta, 200, 4.0, seeds,
                             (200,)))  # fmt: skip
    return work


@lru_cache
def advised(dataset: str) -> WayToRun:
    """The adviser's descent for a setting of SETTINGS: what it knows is n, m, d, epsilon and delta."""
    records = {"kddcup99": 100_000, "adult": 36_178, "bank": 32_950, "breast-cancer": 455, "synthetic": 1000}[dataset]
    dimension = {"kddcup99": 123, "adult": 105, "bank": 66, "breast-cancer": 31, "synthetic": 10}[dataset]
    _, _, owners, epsilon, delta = next(s for s in SETTINGS if s[0] == dataset)
    m = int(owners.partition(":")[2])
    known = Circumstances(
        m, records // m, records, dimension, epsilon, delta, lam=LAM, objective=LAM, method="gradient", momentum=0.0
    )
    return advise(known).choice


def _aware(choice: WayToRun) -> str:
    return "Descent, tail average, theta" if choice.average == "tail" else "Descent, last iterate, theta"


def report(rows: Sequence[Row], folder: Path, plan: Plan) -> Section:
    """Writes a figure of the gaps, one of private preprocessing, and summary.csv."""
    keys = ("dataset", "n", "d", "lam", "owners", "method", "epsilon", "delta", "iterations", "eta")
    write_summary(rows, keys, ("gap", "score"), folder / "summary.csv")
    checks: list[Check] = []
    panels = []
    for dataset in values(rows, "dataset"):
        mine = select(rows, dataset=dataset)
        panels.append(_panel(mine, str(dataset)))
        checks += _gains(mine, str(dataset))
    draw_dots(folder / "utility-gap.png", panels, floor=1e-5)
    caption = (
        "Gap at one (epsilon, delta) a data set: what the adviser and sensitivity that knows theta give. Means and "
        "95 % intervals over noise seeds."
    )
    figures = [("utility-gap.png", caption)]
    for dataset in values(rows, "dataset"):
        checks += _laws(select(rows, dataset=dataset), str(dataset))
    found = _surveys(folder, plan)
    if found:
        draw_dots(folder / "utility-preprocessing.png", _survey_panels(found), floor=1e-3)
        caption = (
            "Test error by where scaling and categories come from; the second way promises nothing about what it reads "
            "off."
        )
        figures.append(("utility-preprocessing.png", caption))
        checks += _survey_checks(found)
    pairs = defaults.compare(folder, plan)
    checks += defaults.checks(pairs)
    notes = _notes(rows) + defaults.notes(pairs) + _not_worth(folder, plan)
    return Section("More accuracy for the same promise", _text(), checks, figures, notes)


def _line(rows: Sequence[Row], iterations: float, aware: bool) -> Curve | None:
    chosen = [r for r in rows if r["iterations"] == iterations and str(r["method"]).startswith("Descent")]
    chosen = [r for r in chosen if str(r["method"]).endswith("theta") is aware]
    return curve(chosen, "gap") if chosen else None


def _lines(rows: Sequence[Row], dataset: str) -> dict[str, Curve]:
    choice = advised(dataset)
    wanted = {
        f"{LONG:,} iterations": (LONG, False),
        f"{DEFAULT} iterations, the default": (DEFAULT, False),
        "advised": (choice.iterations, False),
        "advised, knows theta": (choice.iterations, True),
    }
    found = {name: _line(rows, *key) for name, key in wanted.items()}
    return {name: line for name, line in found.items() if line is not None}


def _panel(rows: Sequence[Row], dataset: str) -> DotPanel:
    colors = {"advised, knows theta": "MPC Out P", "advised": "MPC Grad P"}
    row = rows[0]
    title = f"{dataset}: n = {int(float(row['n'])):,}, epsilon = {row['epsilon']}"
    return DotPanel(title, "J - J*", [Dot(name, line.mean[0], line.low[0], line.high[0], colors.get(name, "Pathak"))
                                      for name, line in _lines(rows, dataset).items()])  # fmt: skip


def _gains(rows: Sequence[Row], dataset: str) -> list[Check]:
    lines = _lines(rows, dataset)
    known = _line(rows, LONG, True)
    if known is not None:
        lines["1,500, knows theta"] = known
    choice = advised(dataset)
    checks = []
    for before, after, what in ((f"{LONG:,} iterations", "advised", "advice against 1,500 iterations"),
                                (f"{DEFAULT} iterations, the default", "advised", "advice against the default"),
                                ("advised", "advised, knows theta", "knowing theta"),
                                (f"{LONG:,} iterations", "1,500, knows theta", "knowing theta, 1,500 iterations"),
                                ):  # fmt: skip
        if before in lines and after in lines:
            gained, half = spread(lines[before], lines[after], 0)
            part, width = gained / lines[before].mean[0], half / lines[before].mean[0]
            verdict = "gained" if gained > half else "lost" if gained < -half else "equal within the interval"
            checks.append(Check(f"{dataset}: gap less by {what}", "smaller",
                                f"{lines[before].mean[0]:.3g} to {lines[after].mean[0]:.3g}, {100 * part:.0f} % +- "
                                f"{100 * width:.0f} less", verdict))  # fmt: skip
    if "advised, knows theta" in lines:
        got = lines["advised, knows theta"].mean[0]
        checks.append(Check(f"{dataset}: what the adviser expected (T = {choice.iterations}, step {choice.step:.3g})",
                            f"{choice.expected:.2g}", f"{got:.2g}",
                            "within a factor of 2" if 0.5 < got / choice.expected < 2 else
                            "within a factor of 4" if 0.25 < got / choice.expected < 4 else "far off"))  # fmt: skip
    return checks


def _laws(rows: Sequence[Row], dataset: str) -> list[Check]:
    pair = [curve(select(rows, method=method), "gap") for method in OUTPUTS if select(rows, method=method)]
    if len(pair) < 2:
        return []
    row = select(rows, method=OUTPUTS[0])[0]
    d, epsilon, delta = float(row["d"]), float(row["epsilon"]), float(row["delta"])
    ratio = math.sqrt(2 * d) / epsilon * mu_of_budget(epsilon, delta)
    gained, half = spread(pair[0], pair[1], 0)
    verdict = "gained" if gained > half else "equal within the interval"
    return [
        Check(f"{dataset}: output perturbation, Gaussian for Laplace at a given delta (d = {d:.0f})",
              f"{ratio:.1f} times less deviation", f"gap {pair[0].mean[0]:.3g} to {pair[1].mean[0]:.3g}", verdict),
    ]  # fmt: skip


Survey = dict[tuple[str, str], list[float]]


def _surveys(folder: Path, plan: Plan) -> Survey:
    """Test accuracies by (data set, way); preprocessing.csv keeps every run."""
    found: Survey = {}
    path = folder / "preprocessing.csv"
    known = _read(path)
    for dataset, epsilon, delta, owners, count in SURVEYS:
        if dataset != "breast-cancer" and (not plan.has(dataset) or (plan.quick and dataset != surveyed.HOSPITALS)):
            continue
        seeds = plan.seeds(count, min(count, 5))
        columns = None
        for way in surveyed.WAYS:
            if dataset == surveyed.HOSPITALS and way == "public bounds":
                continue
            key = f"{dataset}|{way}|{epsilon}|{delta}|{seeds[0]}|{len(seeds)}"
            if key not in known:
                columns = columns or surveyed.load(dataset, plan.data_dir)
                known[key] = surveyed.scores(columns, way, epsilon, delta, seeds, owners)
            found[dataset, way] = known[key]
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([[key, *line] for key, line in known.items()])
    return found


def _read(path: Path) -> dict[str, list[float]]:
    if not path.is_file():
        return {}
    with path.open(newline="", encoding="utf-8") as file:
        return {line[0]: [float(x) for x in line[1:]] for line in csv.reader(file)}


def _survey_panels(found: Survey) -> list[DotPanel]:
    colors = {"public bounds": "MPC Grad P", "private survey": "MPC Out P"}
    panels = []
    for dataset in dict.fromkeys(dataset for dataset, _ in found):
        epsilon = next(s[1] for s in SURVEYS if s[0] == dataset)
        dots = []
        for way in surveyed.WAYS:
            if (dataset, way) in found:
                mean, half = interval([1 - x for x in found[dataset, way]])
                dots.append(Dot(way, mean, max(0.0, mean - half), mean + half, colors.get(way, "Pathak")))
        panels.append(DotPanel(f"{dataset}, epsilon = {epsilon}", "test error", dots, log=False))
    return panels


def _survey_checks(found: Survey) -> list[Check]:
    checks = []
    for dataset in dict.fromkeys(dataset for dataset, _ in found):
        _, epsilon, delta, _, _ = next(s for s in SURVEYS if s[0] == dataset)
        means = {way: interval(found[dataset, way]) for way in surveyed.WAYS if (dataset, way) in found}
        own, half = means["private survey"]
        best = max(mean for way, (mean, _) in means.items() if way != "private survey")
        wide = next(h for mean, h in means.values() if mean == best)
        texts = ", ".join(f"{way} {mean:.3f} +- {h:.3f}" for way, (mean, h) in means.items())
        gained = own - best
        verdict = (
            "gained" if gained > math.hypot(half, wide) else "lost" if -gained > math.hypot(half, wide) else "equal"
        )
        checks.append(Check(f"{dataset}: accuracy by private preprocessing, epsilon = {epsilon}, delta = {delta}",
                            "inside the promise, and no worse", texts,
                            verdict if verdict != "equal" else "equal within the interval"))  # fmt: skip
    return checks


def _not_worth(folder: Path, plan: Plan) -> list[str]:
    """A table of what four known ways of spending a budget better gain, on Adult or, without its files, synthetic
    data."""
    dataset = "adult" if plan.has("adult") and plan.datasets != ("none",) else "synthetic"
    _, rows, _, epsilon, delta = next(s for s in SETTINGS if s[0] == dataset)
    choice, seeds = advised(dataset), plan.seeds(10, 3)
    path = folder / "not-worth.csv"
    key = f"{dataset}|{seeds[0]}|{len(seeds)}"
    known = _read(path)
    if key not in known:
        fraction = 0.2 if dataset == "adult" else 0.5
        records = load_records(
            Source(dataset, plan.seed, LAM, rows, fraction, intercept=dataset == "adult"), plan.data_dir
        )
        assert choice.step is not None
        gaps = not_worth.compare(records, mu_of_budget(epsilon, delta), choice.iterations, choice.step, seeds)
        known = {key: [], **{name: [float(x) for x in values] for name, values in gaps.items()}}
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows([[name, *line] for name, line in known.items()])
    base, _ = interval(known[not_worth.PLAIN])
    lines = []
    for name, sample in known.items():
        if sample:
            mean, half = interval(sample)
            lines.append([name, f"{mean:.3g} +- {half:.2g}", f"{100 * (mean / base - 1):+.0f} %"])
    return [
        f"Not worth it, measured on {dataset} at ({epsilon}, {delta}), T = {choice.iterations}, all at one budget:", "",
        *table(["what", "gap", "against plain"], lines), "",
    ]  # fmt: skip


def _notes(rows: Sequence[Row]) -> list[str]:
    lines = []
    for dataset in values(rows, "dataset"):
        choice = advised(str(dataset))
        row = select(rows, dataset=dataset)[0]
        budget = f"({row['epsilon']}, {row['delta']})"
        lines.append([str(dataset), f"{int(float(row['n'])):,}", f"{int(float(row['d']))}", budget,
                      str(choice.iterations), f"{choice.step:.3g}", choice.average, f"{choice.expected:.2g}",
                      f"{choice.left:.1%}"])  # fmt: skip
    head = ["data set", "n", "d", "budget", "iterations", "step", "average", "expected gap", "left to learn"]
    return ["The advice (`dpmpc advise`), from public numbers alone:", "", *table(head, lines), ""]


def _text() -> list[str]:
    return [
        "Ours. The noise of a private descent does not depend on the number of iterations T once the product of "
        "step and T is fixed. That product decides between noise and unfinished learning. `dpmpc advise` "
        "rehearses it on synthetic records of the same shape. At a public theta two records' logistic gradients "
        "differ by less than 2G. Owners scale their gradients accordingly, and the same noise counts for less. "
        "Output perturbation with a given delta takes Gaussian noise. Ranges, centres, scales and categories come "
        "from one noisy survey inside the promise.",
    ]


EXPERIMENT = Experiment(
    "utility",
    "ours: more accuracy for the same promise",
    ("kddcup99", "adult", "bank", surveyed.HOSPITALS),
    tasks,
    report,
    embedded=True,
)
