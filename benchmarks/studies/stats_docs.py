"""The lines of docs/statistics.md on coverage, from the result files of `coverage`, `survival` and `effects`.

python -m dpmpc.benchmarks.studies.stats lines docs/experiments/stats
"""

import csv
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

from dpmpc.benchmarks.studies.stats_coverage import HIGH
from dpmpc.benchmarks.studies.stats_effects import FILE, FILE_AGAIN, LEAST, SETTINGS, short

ANSWERS: dict[str, tuple[tuple[str, str], ...]] = {
    "counts of tables": (("tables", "table: count"), ("tables", "count: count"), ("all", "table1: count")),
    "percentages": (("tables", "table: percent"), ("all", "table1: percent")),
    "means": (("numbers", "mean: mean"), ("heavy tail", "mean: mean"), ("all", "table1: mean")),
    "standard deviations": (("numbers", "sd: sd"), ("all", "table1: sd")),
    "medians, quantiles": (
        ("quantiles", "median: median"),
        ("quantiles", "quantiles: quantile 0.1"),
        ("quantiles", "quantiles: quantile 0.9"),
    ),
    "correlations": (("models", "corr: correlation"),),
    "linear models": (("models", "lm: coefficient"),),
    "linear models and correlations with a category": (
        ("categories", "lm: coefficient"), ("categories", "corr: correlation"),
    ),
    "odds ratios, by strata too": (("two by two", "or: odds ratio"),),
    "risk ratios, risk differences": (("two by two", "rr: risk ratio"), ("two by two", "rd: risk difference")),
    "differences of means": (("comparisons", "ttest: difference"),),
    "variances": (("spread", "var: variance"),),
    "interquartile ranges": (("spread", "iqr: iqr"),),
    "survival": (("survival", "km: survival"),),
    "two classes: AUC, accuracy, balanced accuracy, sensitivity, specificity, Brier score": tuple(
        ("of two", f"evaluate: {name}")
        for name in ("AUC", "accuracy", "balanced accuracy", "sensitivity", "specificity", "Brier score")
    ),
    "two classes: calibration": (("of two", "evaluate: percent positive"),),
    "several classes: accuracy, recall, precision, counts": tuple(
        ("of several", f"evaluate: {name}") for name in ("accuracy", "recall", "precision", "count")
    ),
    "several classes: AUC of one against the rest": (("of several", "evaluate: AUC"),),
    "a number: root mean squared error, mean error": (
        ("of number", "evaluate: rmse"),
        ("of number", "evaluate: mean error"),
    ),
}
HOPELESS = 1.0  # a predicted error above which a model is refused
KNOWN = 0.25  # a predicted error up to which sets are to be closed and as wide as predicted
EVEN = tuple(  # designs of up to 40 cells whose outcome and levels are common
    each.name for each in SETTINGS
    if each.family != "poisson" and len(each.part) * each.model.cells <= 40 and min(map(min, each.levels)) >= 0.15
    and each.common >= 0.15
)  # fmt: skip
CELLS = 6  # sizes and epsilons
SOME = 0.05  # of trials: a share of fewer answers says nothing


def lines(folder: Path) -> Iterator[str]:
    """A line of Markdown for each answer and each null that the files of a folder have all of."""
    rows = _read(folder / "coverage.csv")
    for answer, kinds in ANSWERS.items():
        mine = [row for row in rows if (row["group"], row["kind"]) in kinds]
        if len({(row["group"], row["kind"], row["n"], row["epsilon"]) for row in mine}) == CELLS * len(kinds):
            yield _answer(answer, mine)
    nulls = _read(folder / "survival.csv")
    for null in dict.fromkeys(row["null"] for row in nulls):
        yield _null(null, [row for row in nulls if row["null"] == null])
    rows = _read(folder / FILE)
    for setting in dict.fromkeys(_design(row) for row in rows if not row["rejected"]):
        yield _effects(setting, [row for row in rows if _design(row) == setting])
    for key in dict.fromkeys((row["setting"], row["n"], row["epsilon"]) for row in rows if row["rejected"]):
        yield _effects_null(*key, [row for row in rows if (row["setting"], row["n"], row["epsilon"]) == key])
    yield from _judged(rows, _read(folder / FILE_AGAIN))


def _design(row: dict[str, str]) -> str:
    """The name of its line: of designs that were drawn there is one."""
    return row["setting"].split(":")[0] if row["setting"].startswith("drawn") else row["setting"]


def _effects(setting: str, rows: Sequence[dict[str, str]]) -> str:
    """A line of a design, over all sizes and epsilons."""
    known = [row for row in rows if float(row["predicted"]) <= KNOWN]
    rest = [row for row in rows if row not in known]
    runs = {(row["setting"], int(row["n"]), float(row["epsilon"]), int(row["cells"])) for row in rows}
    sizes, epsilons, cells = (sorted({run[k] for run in runs}) for k in (1, 2, 3))
    fewest = min(int(row["releases"]) for row in rows)
    said = [
        setting, _ends([str(many) for many in cells]), _ends([f"{n:,}" for n in sizes]),
        _ends([f"{e:g}" for e in epsilons]), str(len(runs)), f"{fewest:,}", _span(rows, "predicted"),
        _span(rows, "data", 3) + _label(rows, "data"), _span(rows, "population", 3) + _label(rows, "population"),
        *(_mean(part, "open_population") for part in (known, rest)),
        _span(told, "over_predicted") if (told := [row for row in known if row["over_predicted"]]) else "-",
    ]  # fmt: skip
    return f"| {' | '.join(said)} |"


def _ends(values: Sequence[str]) -> str:
    return values[0] if len(values) == 1 else f"{values[0]} to {values[-1]}"


def _label(rows: Sequence[dict[str, str]], name: str) -> str:
    return ", conservative" if max(float(row[name]) for row in rows) > HIGH else ""


def _mean(rows: Sequence[dict[str, str]], name: str) -> str:
    told = [float(row[name]) for row in rows if row[name]]
    return _spelt(math.fsum(told) / len(told), 3) if told else "-"


def _effects_null(setting: str, n: str, epsilon: str, rows: Sequence[dict[str, str]]) -> str:
    """A line of a null."""
    alone = [row for row in rows if row["coefficient"] != "all"]
    together = [row for row in rows if row["coefficient"] == "all"]
    clear = [row for row in alone if row["rejected_m0"]]
    shown = [_span(part, name, 3) if part else "-" for part, name in (
        (alone, "rejected"), (clear, "rejected_m0"), (together, "rejected"))]  # fmt: skip
    if told := [int(row["clear"]) for row in clear if row.get("clear")]:
        shown[1] += f" of {_ends([f'{many:,}' for many in sorted({min(told), max(told)})])}"
    said = setting.removeprefix("null: "), rows[0]["cells"], f"{int(n):,}", f"{float(epsilon):g}", rows[0]["releases"]
    return f"| {' | '.join((*said, *shown))} |"


def _judged(rows: Sequence[dict[str, str]], again: Sequence[dict[str, str]]) -> Iterator[str]:
    """A line of what fell short and came again, and one each of what was asked of open sets, widths and forecasts."""
    for row in rows:
        if not short(row):
            continue
        name = "rejected" if row["rejected"] else min(("data", "population"), key=lambda each: float(row[each]))
        same = [each for each in again if all(each[k] == row[k] for k in ("setting", "n", "epsilon", "coefficient"))]
        came = f"{_spelt(float(same[0][name]), 3)} of {int(same[0]['releases']):,}" if same else "not run again"
        about = "a null, rejected" if name == "rejected" else f"for the {name}"
        yield (
            f"- {row['setting']}, n {int(row['n']):,}, epsilon {float(row['epsilon']):g}, coefficient "
            f"{row['coefficient']}, {about}: {_spelt(float(row[name]), 3)} of {int(row['releases']):,}; again: {came}."
        )
    sets = [row for row in rows if not row["rejected"]]
    known = [row for row in sets if float(row["predicted"]) <= KNOWN]
    hopeless = {(row["setting"], row["n"], row["epsilon"]) for row in sets if float(row["predicted"]) > HOPELESS}
    told = [row for row in sets if row["over_predicted"]]
    asked = [row for row in told if (row["setting"], row["n"], row["epsilon"]) not in hopeless]
    yield (
        f"- Of {len(sets):,} coefficients in {len({(r['setting'], r['n'], r['epsilon']) for r in sets})} runs, "
        f"{sum(not short(row) for row in sets):,} held {LEAST} and more at first. Where the predicted error is at most "
        f"{KNOWN}, {_few(known)}."
    )
    for n in (5000, 20_000):
        wide = [row for row in sets if row["setting"] in EVEN and row["n"] == str(n) and float(row["epsilon"]) == 1]
        yield (
            f"- Median widths over those without noise, epsilon 1, up to 40 cells, outcome and levels of .15 and more, "
            f"n {n:,}: {_span(wide, 'width')}."
        )
    yield (
        f"- Median widths over predicted ones, of models that a dry run does not refuse: "
        f"{_span([row for row in asked if row in known], 'over_predicted')} where the predicted error is at most "
        f"{KNOWN}, and at least {_spelt(min(float(row['over_predicted']) for row in asked), 2)} in all."
    )


def _few(rows: Sequence[dict[str, str]]) -> str:
    """How many sets were open, together and of the worst coefficient."""
    told = [float(row["open_population"]) for row in rows if row["open_population"]]
    most = max(told)
    if not most:
        return "0 of sets were open"
    worst = next(row for row in rows if row["open_population"] and float(row["open_population"]) == most)
    where = f"{worst['setting']}, n {int(worst['n']):,}, epsilon {float(worst['epsilon']):g}"
    return f"{math.fsum(told) / len(told):.1g} of sets were open, at most {most:g} of a coefficient's ({where})"


def _answer(answer: str, rows: Sequence[dict[str, str]]) -> str:
    found = []
    for about in ("data", "population"):
        told = [row for row in rows if row["about"] == about and float(row["given"])]
        if not told:
            found += ["-", "-"]
            continue
        most = max(float(row["share"]) for row in told)
        found.append(_span(told, "share") + (", conservative" if most > HIGH else ""))
        found.append(_span(told, "naive"))
    return f"| {answer} | {' | '.join(found)} |"


def _null(null: str, rows: Sequence[dict[str, str]]) -> str:
    told = [row for row in rows if float(row["answered"]) >= SOME * float(row["trials"])]
    late = [row for row in rows if not math.isnan(float(row["late"]))]
    refused = [f"{row['n']} at {float(row['epsilon']):g}" for row in rows if row not in told]
    tests = f"{_span(told, 'test', 3)} | {_span(told, 'naive_test')}"
    return f"| {null} | {tests} | {', '.join(refused) or '-'} | {_span(late, 'late')} | {_span(late, 'naive_late')} |"


def _span(rows: Sequence[dict[str, str]], name: str, digits: int = 2) -> str:
    ends = [float(row[name]) for row in rows]
    low, high = (_spelt(end, digits) for end in (min(ends), max(ends)))
    return low if low == high else f"{low} to {high}"


def _spelt(share: float, digits: int) -> str:
    if not math.isfinite(share):
        return "open"
    text = f"{share:.{digits}f}"
    return f"{float(text):g}" if float(text) in (0, 1) else text.removeprefix("0")


def _read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
