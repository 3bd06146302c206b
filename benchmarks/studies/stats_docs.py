"""The lines of docs/statistics.md on coverage, from the result files of `coverage`, `survival` and `effects`.

python -m dpmpc.benchmarks.studies.stats lines docs/experiments/stats
"""

import csv
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

from dpmpc.benchmarks.studies.stats_coverage import HIGH

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
    rows = _read(folder / "effects.csv")
    for key in dict.fromkeys((row["setting"], row["n"], row["epsilon"]) for row in rows):
        yield _effects(*key, [row for row in rows if (row["setting"], row["n"], row["epsilon"]) == key])


def _effects(setting: str, n: str, epsilon: str, rows: Sequence[dict[str, str]]) -> str:
    """A line of a design, or of a null."""
    said = setting.removeprefix("null: "), rows[0]["cells"], f"{int(n):,}", f"{float(epsilon):g}", rows[0]["releases"]
    first = f"| {' | '.join(said)} |"
    if setting.startswith("null"):
        alone = [row for row in rows if row["coefficient"] != "all"]
        together = [row for row in rows if row["coefficient"] == "all"]
        clear = [row for row in alone if row["rejected_m0"]]
        shown = [_span(part, name, 3) if part else "-" for part, name in (
            (alone, "rejected"), (clear, "rejected_m0"), (together, "rejected"))]  # fmt: skip
        return f"{first} {' | '.join(shown)} |"
    opened = f"{_span(rows, 'open_population')}"
    told = [row for row in rows if row["width"]]
    widths = [_span(told, name) if told else "-" for name in ("width", "over_predicted")]
    shown = [_span(rows, "data", 3), _span(rows, "population", 3), opened, *widths, _span(rows, "power")]
    return f"{first} {_span(rows, 'predicted')} | {' | '.join(shown)} |"


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
