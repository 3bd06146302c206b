"""Figures 1-2 and Appendix B of Jayaraman et al. 2018: optimality gap and relative accuracy loss against
iteration."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from dpmpc.privacy.gaussian import Calibration, gaussian_epsilon, gaussian_scale
from dpmpc.privacy.laplace import laplace_epsilon
from dpmpc_experiments.figures import Dot, DotPanel, Line, Panel, draw, draw_dots
from dpmpc_experiments.methods import METHODS
from dpmpc_experiments.plan import Check, Experiment, Plan, Section
from dpmpc_experiments.printed import POSTER_AT, POSTER_GAP, POSTER_LOSS
from dpmpc_experiments.report import table
from dpmpc_experiments.summary import Curve, curve, select, values, write_summary
from dpmpc_experiments.task import Row, Source, Task

EPSILON, DELTA, LAM, ITERATIONS, ETA = 0.5, 1e-3, 1e-3, 1500, 1.0
AT, BLOCK = (100, 500, 1000, ITERATIONS), 100
OWNERS = ("even:100", "even:1000", "even:all")
POSTER_OWNERS = "even:1000"
SIZES = {"kddcup99": (70_000, 2 / 7), "adult": (None, 0.2)}  # 50,000 + 20,000 records as printed; all of Adult
REGRESSION = {"kddcup98": (70_000, 2 / 7)}
# method, calibration, colour, most repeats
LINES: tuple[tuple[str, Calibration, str, int], ...] = (
    ("MPC Grad P", "tight", "MPC Grad P", 99),
    ("MPC Grad P", "zcdp", "MPC Grad P", 99),
    ("MPC Out P", "zcdp", "MPC Out P", 99),
    ("Rajkumar and Agarwal", "zcdp", "Rajkumar and Agarwal", 99),
    ("Rajkumar and Agarwal (printed sigma*)", "zcdp", "Rajkumar and Agarwal", 99),
    ("Rajkumar and Agarwal (as drawn)", "zcdp", "Rajkumar and Agarwal", 99),
    ("Local Out P", "zcdp", "Local Out P", 99),
    ("Local Obj P", "zcdp", "Local Obj P", 5),
    ("Local Obj P (printed)", "zcdp", "Local Obj P", 5),
    ("Local Obj P (as drawn)", "zcdp", "Local Obj P", 10),  # one vector for all owners: seeds differ much
    ("Local Grad P", "zcdp", "Local Grad P", 99),
    ("Pathak", "zcdp", "Pathak", 99),
    ("Local private", "tight", "Local private", 99),
    ("Centralised non-private", "zcdp", "Centralised non-private", 1),
)
# what a line of the poster is held against: the method of its paper, or the reading that looks like the poster's line
READINGS = {method: method for method in POSTER_GAP} | {
    "Rajkumar and Agarwal": "Rajkumar and Agarwal (as drawn)",
    "Local Obj P": "Local Obj P (as drawn)",
}
CLOSE, NEAR, WORST, WORSE = 1.5, 2.0, 2.5, 3.5
COARSE = 1e-2  # accuracy losses above are a few runs' luck in every block: their mean alone is judged
TEST_RECORDS = 20_000
FEW_RECORDS = 10 / TEST_RECORDS  # accuracy losses below are chance
# of the variance of zCDP's noise, what the tight calibration needs
THEORY = (gaussian_scale(EPSILON, DELTA, 1.0, 1, "tight") / gaussian_scale(EPSILON, DELTA, 1.0, 1, "zcdp")) ** 2
WHY = {
    "Rajkumar and Agarwal": "sigma* grows with d and every owner draws its own rho",
    "Local Obj P": "owners' vectors are independent and average out",
}


def tasks(plan: Plan) -> list[Task]:
    """One for each data set, number of owners, method and calibration; and the poster's methods on the other
    label."""
    seeds = plan.seeds(10)
    work = []
    for dataset, (rows, fraction) in (SIZES | REGRESSION).items():
        if not plan.has(dataset) or (plan.quick and dataset != "kddcup99"):
            continue
        source = Source(dataset, plan.seed, LAM, rows, fraction)
        for owners in (POSTER_OWNERS,) if plan.quick else OWNERS:
            poster = dataset == "kddcup99" and owners == POSTER_OWNERS
            for method, calibration, _, most in LINES:
                few = seeds[: most if poster else min(most, 5) if method.startswith("Local Obj P") else most]
                work.append(_task(plan, source, owners, method, calibration, few, poster))
        if dataset == "kddcup99":
            attack = replace(source, label="attack")
            for method in ("MPC Grad P", "MPC Out P") if plan.quick else READINGS.values():
                work.append(_task(plan, attack, POSTER_OWNERS, method, "zcdp", seeds[:5], True))
    return work


def _task(
    plan: Plan, source: Source, owners: str, method: str, calibration: Calibration, seeds: tuple[int, ...], poster: bool
) -> Task:
    return Task(
        "convergence", source, owners, plan.seed, method, calibration, (EPSILON,), DELTA, ITERATIONS, ETA, seeds, AT,
        block=BLOCK if poster else 0,
    )  # fmt: skip


def report(rows: Sequence[Row], folder: Path, plan: Plan) -> Section:
    """Writes a dot plot for each data set, the poster's curves one by one, and summary.csv."""
    keys = ("dataset", "label", "owners", "n", "d", "method", "calibration", "law", "scale", "true_epsilon",
            "block", "iteration")  # fmt: skip
    write_summary(rows, keys, ("gap", "score_loss", "score_off"), folder / "summary.csv")
    points, blocks = select(rows, block=0, label=""), [row for row in rows if row["block"]]
    figures = []
    for dataset in values(points, "dataset"):
        file = f"convergence-{dataset}.png"
        draw_dots(folder / file, _dots(select(points, dataset=dataset), blocks, str(dataset)), floor=1e-5)
        diamonds = " Diamonds: the authors' poster." if dataset == "kddcup99" else ""
        figures.append((file, f"{dataset}: gap J - J* after {ITERATIONS} iterations, mean and 95 % interval, epsilon "
                              f"= {EPSILON}, delta = {DELTA}.{diamonds} Below 1e-5 is drawn at 1e-5."))  # fmt: skip
    checks: list[Check] = []
    if blocks:
        for metric, name, printed in (("gap", "gap", POSTER_GAP), ("score_off", "accuracy", POSTER_LOSS)):
            file = f"poster-{name}.png"
            draw(folder / file, _poster(blocks, metric, printed))
            what = "optimality gap" if name == "gap" else "relative accuracy loss, its absolute value"
            caption = f"The poster's lines one by one (crosses) and ours, KDDCup99, m = 1,000: {what}, block means."
            figures.append((file, caption))
        checks = _gaps(blocks, select(points, dataset="kddcup99", owners=POSTER_OWNERS)) + _losses(blocks)
        checks += _order(blocks)
    return Section("Convergence", _text(), checks, figures, _guarantees(points) + _notes(points))


def _label(method: str, calibration: str) -> str:
    return f"{method} ({calibration})" if method == "MPC Grad P" else method


def _dots(rows: Sequence[Row], blocks: Sequence[Row], dataset: str) -> list[DotPanel]:
    panels = []
    for owners in values(rows, "owners"):
        dots = []
        for method, calibration, color, _ in LINES:
            chosen = select(rows, owners=owners, method=method, calibration=calibration, iteration=ITERATIONS)
            if not chosen:
                continue
            line = curve(chosen, "gap")
            printed = None
            if dataset == "kddcup99" and owners == POSTER_OWNERS and calibration == "zcdp" and method in POSTER_GAP:
                printed = POSTER_GAP[method][-1]
            dots.append(Dot(_label(method, calibration), line.mean[0], line.low[0], line.high[0], color, printed))
        m = "one record each" if owners == "even:all" else f"m = {int(str(owners).partition(':')[2]):,}"
        panels.append(DotPanel(f"{dataset}, {m}", f"J - J* at {ITERATIONS:,}", dots))
    return panels


def _poster(rows: Sequence[Row], metric: str, printed: Mapping[str, tuple[float, ...]]) -> list[list[Panel]]:
    """A panel a line of the poster: its crosses, ours by both labels, as its paper has it and as drawn."""
    panels = []
    x = tuple(float(t) for t in POSTER_AT)
    for method, ys in printed.items():
        panel = Panel(method, "iteration", "J - J*" if metric == "gap" else "|accuracy loss|", log_y=True, floor=1e-5)
        own = select(rows, method=method, label="", calibration="zcdp")
        read = READINGS[method]
        lines = [(own, "as its paper has it, denial of service", "Centralised private")]
        if read != method:
            lines.append((select(rows, method=read, label=""), "as drawn, denial of service", "Local Out P"))
        lines.append((select(rows, method=read, label="attack"), "as drawn, attack or normal", "MPC Grad P"))
        for chosen, label, color in lines:
            if chosen:
                panel.lines.append(Line(label, _shifted(curve(chosen, metric)), color))
        panel.lines.append(Line("poster", Curve(x, ys, ys, ys, 1), "Pathak", points=True))
        panels.append(panel)
    return [panels[:4], panels[4:]]


def _shifted(line: Curve) -> Curve:
    """Blocks start at 1, 101, ...; the poster's points are drawn at 0, 100, ..."""
    return replace(line, x=tuple(t - 1 for t in line.x))


def _blocks(rows: Sequence[Row], method: str, metric: str, label: str = "") -> tuple[float, ...]:
    """The 15 block means of a method at the poster's setting."""
    return _line(rows, method, metric, label).mean


def _line(rows: Sequence[Row], method: str, metric: str, label: str = "") -> Curve:
    """The same with their intervals."""
    within = (0.0, 1.0) if metric == "score_off" else (0.0, math.inf)
    return curve(select(rows, method=method, calibration="zcdp", label=label), metric, within=within)


def _ratios(ours: Sequence[float], printed: Sequence[float], floor: float = 0.0) -> tuple[float, float, float]:
    """(smallest, geometric mean, largest) of ours / printed over the blocks, both raised to `floor`."""
    pairs = [(max(a, floor), max(b, floor)) for a, b in zip(ours, printed, strict=True)]
    logs = [math.log(a / b) if a > 0 else -math.inf for a, b in pairs]
    return math.exp(min(logs)), math.exp(math.fsum(logs) / len(logs)), math.exp(max(logs))


def _verdict(ratios: tuple[float, float, float], coarse: bool = False) -> str:
    """By the geometric mean over 15 blocks, which one block's luck does not turn, and unless `coarse` by the worst
    one."""
    low, mean, high = ratios
    far, worst = max(mean, 1 / mean), 1.0 if coarse else max(high, 1 / low)
    text = f"ratio {mean:.2f} ({low:.2g} to {high:.2g})"
    if far <= CLOSE and worst <= WORST:
        return f"reproduced: {text}"
    return f"within a factor of 2: {text}" if far <= NEAR and worst <= WORSE else f"not reproduced: {text}"


def _decided(line: Curve, printed: Sequence[float], floor: float = 0.0, coarse: bool = False) -> str:
    """The verdict, unless a few seeds cannot bear it: all that is printed lies within the 95 % interval of our mean."""
    text = _verdict(_ratios(line.mean, printed, floor), coarse)
    within = all(
        low <= max(value, floor) <= high for value, low, high in zip(printed, line.low, line.high, strict=True)
    )
    if text.startswith("not reproduced") and within:
        return f"not decided: the poster lies within our interval, {min(line.low):.2g} to {max(line.high):.2g}"
    return text


def _loss(line: Curve, printed: Sequence[float], coarse: bool) -> str:
    """The verdict on an accuracy loss with what is below FEW_RECORDS raised to it, and what that has hidden."""
    text = _decided(line, printed, FEW_RECORDS, coarse)
    below = sum(min(pair) < FEW_RECORDS for pair in zip(line.mean, printed, strict=True))
    if not below:
        return text
    ratios = _ratios(line.mean, printed)
    if text.startswith("reproduced") and not _verdict(ratios, coarse).startswith("reproduced"):
        text = text.replace("reproduced", "reproduced as far as the test records tell", 1)
    low, mean, high = ratios
    bare = f"as they are {mean:.2f} ({low:.2g} to {high:.2g})"
    return f"{text}; in {below} of {len(printed)} blocks one is below {FEW_RECORDS:g}, {bare}"


def _within(line: Curve, i: int, limit: float) -> str:
    """Whether an accuracy loss is below `limit`, where its interval decides it: of noise, and of a test set of
    TEST_RECORDS, on which a loss of p is that many records more, whose number deviates by sqrt(p TEST_RECORDS) at
    least."""
    noise = max(line.high[i] - line.mean[i], line.mean[i] - line.low[i])
    half = math.hypot(noise, 1.96 * math.sqrt(line.mean[i] / TEST_RECORDS))
    text = f"{line.mean[i]:.1e} +- {half:.1e}"
    if line.mean[i] + half < limit:
        return f"reproduced: {text}"
    return f"not reproduced: {text}" if line.mean[i] - half > limit else f"not decided: {text}"


def tight_over_zcdp(zcdp: Curve, tight: Curve, i: int = -1) -> tuple[str, str]:
    """(the ratio of two gaps with its interval, whether it is the theory's): the noise's variance is THEORY of
    zCDP's, and so is the gap but for what is left to learn."""
    halves = [max(line.high[i] - line.mean[i], line.mean[i] - line.low[i]) / line.mean[i] for line in (zcdp, tight)]
    ratio = tight.mean[i] / zcdp.mean[i]
    half = ratio * math.hypot(*halves)
    low, high = ratio - half, ratio + half
    if THEORY / CLOSE < low and high < THEORY * CLOSE:
        word = f"as in theory, within a factor of {CLOSE:g}"
    elif high < 1.0 and (low > THEORY * CLOSE or high < THEORY / CLOSE):
        word = "less, but not as in theory"
    else:
        word = "undecided"
    return f"{ratio:.2f} +- {half:.2f}", word


def _gaps(rows: Sequence[Row], points: Sequence[Row]) -> list[Check]:
    checks = []
    for method, printed in POSTER_GAP.items():
        ours = _blocks(rows, method, "gap")
        if not ours:
            continue
        text, verdict = f"{_three(ours)}", _verdict(_ratios(ours, printed))
        if method in WHY:
            drawn = _blocks(rows, READINGS[method], "gap")
            text += f"; as drawn {_three(drawn)}"
            verdict += f" ({WHY[method]}); as drawn {_verdict(_ratios(drawn, printed))}"
        what = f"KDDCup99, m = 1,000: gap of {method}, block means, 0 / 100 / 1,400"
        checks.append(Check(what, _three(printed), text, verdict))
    first = curve(select(points, method="MPC Grad P", calibration="zcdp"), "gap")
    checks.append(Check("the same at single iterations: MPC Grad P after 100 updates",
                        f"{POSTER_GAP['MPC Grad P'][1]:.3g}", f"{first.at(100):.3g}",
                        "what the points would be if they were not means; the poster does not say"))  # fmt: skip
    zcdp, tight = (curve(select(rows, method="MPC Grad P", calibration=c, label=""), "gap") for c in ("zcdp", "tight"))
    ratio, word = tight_over_zcdp(zcdp, tight)
    checks.append(Check("gap of MPC Grad P in the last block, tight over zCDP", f"{THEORY:.2f} of the variance",
                        f"{tight.mean[-1]:.3g} / {zcdp.mean[-1]:.3g} = {ratio}", word))  # fmt: skip
    return checks


def _three(line: Sequence[float]) -> str:
    return f"{line[0]:.3g} / {line[1]:.3g} / {line[-1]:.3g}"


def _losses(rows: Sequence[Row]) -> list[Check]:
    """Relative accuracy loss by both labels, and the two sentences of the paper's text."""
    checks = []
    for method, printed in POSTER_LOSS.items():
        read = READINGS[method]
        lines = [_line(rows, read, "score_off", label) for label in ("", "attack")]
        dos, attack = (line.mean for line in lines)
        if not dos or not attack:
            continue
        where, coarse = " as drawn" if read != method else "", printed[-1] > COARSE
        checks.append(
            Check(
                f"KDDCup99, m = 1,000: accuracy loss of {method}{where}, block means, 0 / 200 / 1,400",
                _early(printed),
                f"{_early(dos)}; attack or normal {_early(attack)}",
                f"denial of service {_loss(lines[0], printed, coarse)}; "
                f"attack or normal {_loss(lines[1], printed, coarse)}",
            )
        )
    for method in ("MPC Grad P", "MPC Out P"):
        of_dos, of_attack = (_line(rows, method, "score_off", label) for label in ("", "attack"))
        if not of_dos.mean or not of_attack.mean:
            continue
        checks.append(
            Check(
                f"{method}: accuracy loss of the order of 1e-4 within 200 iterations (their text)",
                "1e-4 to 1e-3",
                f"{of_dos.mean[2]:.2g}; attack or normal {of_attack.mean[2]:.2g}",
                f"denial of service {_within(of_dos, 2, 1e-3)}; attack or normal {_within(of_attack, 2, 1e-3)}",
            )
        )
    gap = _blocks(rows, "MPC Grad P", "gap")
    if gap:
        checks.append(Check("MPC Grad P: gap of the order of 1e-3 in 500 iterations (their text)", "1e-3 to 1e-2",
                            f"{gap[5]:.2g}", "reproduced" if 1e-3 <= gap[5] < 1e-2 else "not reproduced"))  # fmt: skip
    return checks


def _early(line: Sequence[float]) -> str:
    return f"{line[0]:.2g} / {line[2]:.2g} / {line[-1]:.2g}"


def _order(rows: Sequence[Row]) -> list[Check]:
    best, worst = ("Rajkumar and Agarwal", "MPC Out P", "MPC Grad P"), ("Local Out P", "Local Obj P", "Local Grad P")
    gap = {method: _blocks(rows, method, "gap")[-1] for method in POSTER_GAP if _blocks(rows, method, "gap")}
    if len(gap) < len(POSTER_GAP):
        return []
    grouped = max(gap[b] for b in best) < min(gap[w] for w in worst) and max(gap[w] for w in worst) < gap["Pathak"]
    chain = " < ".join(f"{method} {value:.2g}" for method, value in sorted(gap.items(), key=lambda pair: pair[1]))
    return [
        Check("order of the last block: {R&A, MPC Out P, MPC Grad P} < {Local Out, Obj, Grad P} < Pathak", "holds",
              chain, "reproduced" if grouped else "not reproduced"),
    ]  # fmt: skip


def _text() -> list[str]:
    return [
        "Jayaraman et al. 2018, Figures 1-2 and Appendix B: lambda = 1e-3, G = 1, step 1, epsilon = 0.5, delta = "
        "1e-3, T = 1,500. KDDCup99 (10 % file) has 122 features, Adult 104, and there is no intercept. Models "
        "aggregated after t local updates carry noise of their own at every t, as in the figures. The gap is against "
        "the exact optimum (gradient norm below 1e-10). MPC Grad P is calibrated by exact zCDP (as the paper means it) "
        "and tightly (the same true promise, less noise). With owners of equal size a trusted centre's private "
        "descent has MPC Grad P's law, and is not drawn.",
        "",
        "**Two readings are inferred.** The poster's 15 points at 0, 100, ..., 1,400 are read as means over blocks "
        "of 100 iterations. Then the first points fit, which single iterations miss by a factor of 3.5. Its "
        "relative accuracy loss is read as the absolute difference of test accuracies, as the authors' public code "
        "has it, in blocks "
        'too. It fits only when connections are attacks of any kind or normal, not "a denial-of-service attack or '
        'not" as the text says. Probes, which are no denial of service, are learnt late and cost 2e-3 at iteration '
        "200. Both labels are run and shown.",
        "",
        "**How verdicts are reached.** A line of the poster is reproduced if ours over it has a geometric mean over "
        f"the 15 blocks within a factor of {CLOSE:g}, and no block is off by more than {WORST:g}. The latter "
        f"is not asked of accuracy losses above {COARSE:g}, which a few runs make. Accuracy losses below "
        f"{FEW_RECORDS:g}, {FEW_RECORDS * TEST_RECORDS:.0f} of {TEST_RECORDS:,} test records, are less than this test "
        f"set resolves. They are taken for {FEW_RECORDS:g} on both sides. The ratio of the losses as they are "
        "stands beside it. A loss is held against 1e-3 with an interval that has the chance of the test records in "
        "it, not the noise's alone.",
        "",
        "Some lines follow a paper's text and some its picture. *Local Obj P* is Algorithm 2 of Chaudhuri et al. "
        "with a vector of its own for every owner. *(printed)* is Table 1's formula, Laplace(2G/(n_(1) epsilon)) "
        "and no extra regulariser. *(as drawn)* lets all owners share one Laplace vector. *Rajkumar and Agarwal* "
        "is their Algorithm 1 with sigma* from the proof's chi-squared condition. *(printed sigma*)* has the "
        "condition as printed, which is next to no noise, so rho alone is left. *(as drawn)* takes sigma* = 2 "
        "sqrt(2 log(1.25/delta))/epsilon, which does not grow with d, one copy of each noise and a constant step.",
    ]


def _guarantees(rows: Sequence[Row]) -> list[str]:
    """A table of what each method adds at KDDCup99, m = 1,000, and what that guarantees."""
    lines = []
    for method, calibration, *_ in LINES:
        mine = select(rows, dataset="kddcup99", owners=POSTER_OWNERS, method=method, calibration=calibration)
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
    local = select(rows, dataset="kddcup99", owners=POSTER_OWNERS, method="Local private")
    if local:
        lines.append(
            "An owner alone with its 50 records of KDDCup99 (m = 1,000, Gaussian output noise, tight): gap "
            f"{curve(local, 'gap').at(ITERATIONS):.0f}, accuracy loss {curve(local, 'score_loss').at(ITERATIONS):.2f}."
        )
    central = [row for row in select(rows, method="Centralised non-private") if row["iteration"] == ITERATIONS]
    for row in {str(row["dataset"]): row for row in central}.values():
        lines.append(
            f"{row['dataset']}: {ITERATIONS:,} noiseless updates end {float(row['gap']):.2g} above the optimum. "
            "An 'optimum' of as many updates, as in the authors' code, shifts every gap by that much."
        )
    spent = select(rows, method="Rajkumar and Agarwal")
    if spent:
        lines.append(
            "Rajkumar and Agarwal's rho spends epsilon = 0.5 at each of 1,500 updates. That is 750 in total by "
            f"basic composition, {laplace_epsilon(1.0, EPSILON, ITERATIONS, DELTA):.0f} at delta = 1e-3 by optimal "
            f"composition, {gaussian_epsilon(1 / EPSILON, DELTA, 1.0, ITERATIONS, 'zcdp'):.0f} by zCDP. Their theorem "
            "counts the once-drawn eta alone."
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
