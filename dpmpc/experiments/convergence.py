"""Figures 1-2 and Appendix B of Jayaraman et al. 2018: optimality gap and relative accuracy loss against iteration."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from dpmpc.experiments.figures import Line, Panel, draw
from dpmpc.experiments.methods import METHODS
from dpmpc.experiments.plan import Check, Experiment, Plan, Section
from dpmpc.experiments.printed import POSTER_AT, POSTER_GAP, POSTER_LOSS
from dpmpc.experiments.report import table
from dpmpc.experiments.summary import Curve, curve, select, values, write_summary
from dpmpc.experiments.task import Row, Source, Task
from dpmpc.privacy.gaussian import Calibration

EPSILON, DELTA, LAM, ITERATIONS, ETA = 0.5, 1e-3, 1e-3, 1500, 1.0
AT = (1, *range(25, ITERATIONS + 1, 25))
OWNERS = ("even:100", "even:1000", "even:all")
SIZES = {"kddcup99": (70_000, 2 / 7), "adult": (None, 0.2)}  # 50,000 + 20,000 records as printed; all of Adult
REGRESSION = {"kddcup98": (70_000, 2 / 7)}
DOUBLED = 2 * LAM  # the authors' code has lam |theta|^2 for lam/2 |theta|^2
# method, calibration, drawn and of which colour, dash, most repeats
LINES: tuple[tuple[str, Calibration, str, int, int], ...] = (
    ("Pathak", "zcdp", "Pathak", 0, 99),
    ("Local Grad P", "zcdp", "Local Grad P", 0, 99),
    ("Local Out P", "zcdp", "Local Out P", 0, 99),
    ("Local Obj P", "zcdp", "Local Obj P", 0, 5),
    ("Local Obj P (printed)", "zcdp", "Local Obj P", 1, 5),
    ("Local Obj P (as drawn)", "zcdp", "Local Obj P", 2, 5),
    ("Rajkumar and Agarwal", "zcdp", "Rajkumar and Agarwal", 0, 99),
    ("Rajkumar and Agarwal (as drawn)", "zcdp", "Rajkumar and Agarwal", 2, 99),
    ("MPC Out P", "zcdp", "MPC Out P", 0, 99),
    ("MPC Grad P", "zcdp", "MPC Grad P", 0, 99),
    ("MPC Grad P", "tight", "MPC Grad P", 1, 99),
    ("Centralised non-private", "zcdp", "Centralised non-private", 0, 1),
    ("Local private", "tight", "Local private", 0, 99),
)
WHY = {
    "Rajkumar and Agarwal": ": sigma* grows with d and every owner draws its own rho",
    "Local Obj P": ": owners' vectors are independent and average out",
}
FLAT = {"Local private"}  # off the scale of every figure; in the summary and the text


def tasks(plan: Plan) -> list[Task]:
    """One for each data set, number of owners, method and calibration."""
    seeds = plan.seeds(10)
    work = []
    for dataset, (rows, fraction) in (SIZES | REGRESSION).items():
        if not plan.has(dataset) or (plan.quick and dataset != "kddcup99"):
            continue
        source = Source(dataset, plan.seed, LAM, rows, fraction)
        for owners in ("even:1000",) if plan.quick else OWNERS:
            for method, calibration, _, _, most in LINES:
                work.append(_task(plan, source, owners, method, calibration, seeds[:most]))
        if dataset == "kddcup99":
            doubled = replace(source, lam=DOUBLED)
            work.append(_task(plan, doubled, "even:1000", "MPC Grad P", "zcdp", seeds))
    return work


def _task(
    plan: Plan, source: Source, owners: str, method: str, calibration: Calibration, seeds: tuple[int, ...]
) -> Task:
    return Task(
        "convergence", source, owners, plan.seed, method, calibration, (EPSILON,), DELTA, ITERATIONS, ETA, seeds, AT,
    )  # fmt: skip


def report(rows: Sequence[Row], folder: Path, plan: Plan) -> Section:
    """Writes a figure for each data set and summary.csv."""
    doubled, rows = select(rows, lam=DOUBLED), select(rows, lam=LAM)
    keys = ("dataset", "owners", "n", "d", "method", "calibration", "law", "scale", "true_epsilon", "iteration")
    write_summary([row for row in rows if row["iteration"] in (1, 100, 500, 1000, 1400, 1500)], keys,
                  ("gap", "score_loss"), folder / "summary.csv")  # fmt: skip
    figures = []
    for dataset in values(rows, "dataset"):
        mine = select(rows, dataset=dataset)
        file = f"convergence-{dataset}.png"
        draw(folder / file, _panels(mine, str(dataset)))
        crosses = " Crosses: the authors' poster." if dataset == "kddcup99" else ""
        caption = (
            f"{dataset}: optimality gap (above) and relative accuracy loss (below) against iteration, epsilon = "
            f"{EPSILON}, delta = {DELTA}, T = {ITERATIONS}.{crosses} Bands: 95 % of the mean over runs."
        )
        figures.append((file, caption))
    checks: list[Check] = []
    poster = select(rows, dataset="kddcup99", owners="even:1000")
    if poster:
        checks = _numbers(poster) + _order(poster) + _start(poster, doubled)
    return Section("Convergence", _text(), checks, figures, _guarantees(poster) + _notes(rows))


def _label(method: str, calibration: str) -> str:
    return f"{method} ({calibration})" if method == "MPC Grad P" else method


def _panels(rows: Sequence[Row], dataset: str) -> list[list[Panel]]:
    above, below = [], []
    for owners in values(rows, "owners"):
        at = select(rows, owners=owners)
        m = "one record each, m = n" if owners == "even:all" else f"m = {str(owners).partition(':')[2]}"
        gap = Panel(f"{dataset}, {m}", "iteration", "J - J*", log_y=True, floor=1e-5)
        loss = Panel(f"{dataset}, {m}", "iteration", "relative accuracy loss", log_y=True, floor=1e-5)
        for method, calibration, color, dash, _ in LINES:
            chosen = select(at, method=method, calibration=calibration)
            if chosen and method not in FLAT:
                label = _label(method, calibration)
                gap.lines.append(Line(label, curve(chosen, "gap"), color, dash))
                loss.lines.append(Line(label, curve(chosen, "score_loss"), color, dash))
        if dataset == "kddcup99" and owners == "even:1000":
            for panel, printed in ((gap, POSTER_GAP), (loss, POSTER_LOSS)):
                for method, ys in printed.items():
                    x = tuple(float(t) for t in POSTER_AT)
                    panel.lines.append(Line("poster", Curve(x, ys, ys, ys, 1), method, points=True))
        above.append(gap)
        below.append(loss)
    return [above, below]


def _gap(rows: Sequence[Row], method: str, calibration: str = "zcdp") -> float:
    return curve(select(rows, method=method, calibration=calibration), "gap").at(1400)


def _numbers(rows: Sequence[Row]) -> list[Check]:
    checks = []
    readings = {
        "Rajkumar and Agarwal": "Rajkumar and Agarwal (as drawn)",
        "Local Obj P": "Local Obj P (as drawn)",
    }
    for method, ys in POSTER_GAP.items():
        if not select(rows, method=method):
            continue
        ours, printed = _gap(rows, method), ys[POSTER_AT.index(1400)]
        text, verdict = f"{ours:.3g}", _verdict(ours, printed) + WHY.get(method, "")
        if method in readings:
            drawn = _gap(rows, readings[method])
            text += f"; as drawn {drawn:.3g}"
            verdict += f"; as drawn: {_verdict(drawn, printed)}"
        checks.append(Check(f"KDDCup99, m = 1,000: gap of {method} at 1,400", f"{printed:.3g}", text, verdict))
    zcdp, tight = _gap(rows, "MPC Grad P"), _gap(rows, "MPC Grad P", "tight")
    target = "at most 0.45 of zCDP's"
    met = "met" if tight <= 0.45 * zcdp else "not met"
    checks.append(Check("the same, tight calibration", target, f"{tight:.3g} = {tight / zcdp:.2f} of it", met))
    return checks


def _verdict(ours: float, printed: float) -> str:
    ratio = ours / printed
    if 0.75 <= ratio <= 1.25:
        return f"reproduced (ratio {ratio:.2f})"
    if 0.5 <= ratio <= 2.0:
        return f"reproduced within a factor of 2 (ratio {ratio:.2f})"
    return f"not reproduced (ratio {ratio:.2g})"


def _order(rows: Sequence[Row]) -> list[Check]:
    best, worst = ("Rajkumar and Agarwal", "MPC Out P", "MPC Grad P"), ("Local Out P", "Local Obj P", "Local Grad P")
    gap = {method: _gap(rows, method) for method in (*best, *worst, "Pathak")}
    grouped = max(gap[b] for b in best) < min(gap[w] for w in worst) and max(gap[w] for w in worst) < gap["Pathak"]
    drawn = gap | {
        "Rajkumar and Agarwal": _gap(rows, "Rajkumar and Agarwal (as drawn)"),
        "Local Obj P": _gap(rows, "Local Obj P (as drawn)"),
    }
    groups = Check(
        "order: {R&A, MPC Out P, MPC Grad P} < {Local Out, Obj, Grad P} < Pathak",
        "holds",
        _chain(gap),
        "reproduced" if grouped else "not reproduced",
    )
    printed = sorted(POSTER_GAP, key=lambda method: POSTER_GAP[method][POSTER_AT.index(1400)])
    ours = sorted(drawn, key=lambda method: drawn[method])
    near = [m for m in printed if m not in best] == [m for m in ours if m not in best] and set(ours[:3]) == set(best)
    exact = "reproduced" if ours == printed else "not reproduced"
    if near and ours != printed:
        exact = "reproduced but for the order of the three best, which lie within a factor of 2 in both"
    strict = Check("the same, one by one, as drawn", " < ".join(printed), _chain(drawn), exact)
    return [groups, strict]


def _start(rows: Sequence[Row], doubled: Sequence[Row]) -> list[Check]:
    """The first points, which the calibration does not touch."""
    plain, other = curve(select(rows, method="MPC Grad P", calibration="zcdp"), "gap"), curve(doubled, "gap")
    printed = POSTER_GAP["MPC Grad P"]
    return [
        Check(
            f"KDDCup99, m = 1,000: gap of MPC Grad P at {t or 'the first point'}",
            f"{printed[POSTER_AT.index(t)]:.3g}",
            f"{plain.at(t):.3g}; with lambda |theta|^2, as in the authors' code, {other.at(t):.3g}",
            _verdict(plain.at(t), printed[POSTER_AT.index(t)]),
        )
        for t in (0, 100, 200)
    ]


def _chain(gap: dict[str, float]) -> str:
    return " < ".join(f"{method} {value:.2g}" for method, value in sorted(gap.items(), key=lambda item: item[1]))


def _text() -> list[str]:
    return [
        "Jayaraman et al. 2018, Figures 1-2 and Appendix B: lambda = 1e-3, G = 1, step 1, epsilon = 0.5, delta = "
        "1e-3, T = 1,500. Models aggregated after t local updates carry noise of their own at every t, as in the "
        "figures. The gap is against the exact optimum (gradient norm below 1e-10). MPC Grad P is calibrated by "
        "exact zCDP (as the paper means it) and tightly (the same true promise, less noise). With owners of equal "
        "size a trusted centre's private descent has MPC Grad P's law, and is not drawn.",
        "",
        "Three lines follow a paper's text and three its picture. *Local Obj P* is Algorithm 2 of Chaudhuri et al. "
        "with a vector of its own for every owner; *(printed)* is Table 1's formula, Laplace(2G/(n_(1) epsilon)) "
        "and no extra regulariser; *(as drawn)* lets all owners share one Laplace vector. The poster's curve is "
        "constant from iteration 400 on, which needs lambda + Delta near 0.038, as in Algorithm 2, and its height "
        "needs the shared vector: averaged over 1,000 owners, independent vectors would shrink. *Rajkumar and "
        "Agarwal* is their Algorithm 1 with sigma* from the chi-squared condition; *(as drawn)* takes sigma* = 2 "
        "sqrt(2 log(1.25/delta))/epsilon, which does not grow with d, one copy of each noise and a constant step: "
        "then the curve falls and slowly rises as on the poster.",
    ]


def _guarantees(rows: Sequence[Row]) -> list[str]:
    """A table of what each method adds at KDDCup99, m = 1,000, and what that guarantees."""
    lines = []
    for method, calibration, *_ in LINES:
        mine = select(rows, method=method, calibration=calibration)
        if not mine:
            continue
        row = mine[0]
        sigma = "none" if row["law"] == "none" else f"{row['law']}, {float(row['scale']):.3g}"
        claimed = "nothing" if row["law"] == "none" else _budget(float(row["epsilon"]), float(row["claimed_delta"]))
        true = _budget(float(row["true_epsilon"]), float(row["true_delta"]))
        label = _label(method, calibration)
        lines.append([label, METHODS[method].sends, METHODS[method].noise, sigma, claimed, true])
    head = ["method", "an owner sends", "noise", "law and scale", "promised", "guaranteed"]
    return [*table(head, lines), ""] if lines else []


def _budget(epsilon: float, delta: float) -> str:
    if math.isinf(epsilon):
        return "nothing"
    return f"({epsilon:.3g}, {delta:.3g})" if delta else f"{epsilon:.3g}"


def _notes(rows: Sequence[Row]) -> list[str]:
    lines = []
    if not select(rows, dataset="kddcup98"):
        lines.append(
            "Not reproduced: Figure 2 (KDDCup98, regression), for want of its file. With kddcup98/cup98LRN.txt in the "
            "data folder it is drawn too."
        )
    local = select(rows, dataset="kddcup99", owners="even:1000", method="Local private")
    if local:
        lines.append(
            "An owner alone with its 50 records of KDDCup99 (m = 1,000, Gaussian output noise, tight): gap "
            f"{curve(local, 'gap').at(1500):.0f}, accuracy loss {curve(local, 'score_loss').at(1500):.2f}; off the "
            "figure."
        )
    central = [row for row in select(rows, method="Centralised non-private") if row["iteration"] == ITERATIONS]
    for row in {str(row["dataset"]): row for row in central}.values():
        lines.append(
            f"{row['dataset']}: 1,500 noiseless updates end {float(row['gap']):.2g} above the optimum, so that an "
            "'optimum' of 1,500 updates, as in the authors' code, shifts every gap by that much and can make it "
            "negative."
        )
    spent = select(rows, method="Rajkumar and Agarwal")
    if spent:
        lines.append(
            "Rajkumar and Agarwal's rho spends epsilon = 0.5 at each of 1,500 updates: 750 in total by basic "
            f"composition, {float(spent[0]['true_epsilon']):.0f} at delta = 1e-3 by zCDP. Their theorem counts the "
            "once-drawn eta alone."
        )
    outs = select(rows, dataset="kddcup99", method="MPC Out P")
    if outs:
        lines.append(
            "MPC Out P, Local Out P: the printed Laplace scale uses the L2 sensitivity; what holds is sqrt(d) "
            f"epsilon = {float(outs[0]['true_epsilon']):.2f}. See Calibration for the gap at a true epsilon of 0.5."
        )
    return ["\n\n".join(lines)]


EXPERIMENT = Experiment(
    "convergence", "Jayaraman et al. 2018, Figures 1-2, Appendix B", (*SIZES, *REGRESSION), tasks, report
)
