"""A model's figures on held-out records, from the JSON values of a report: lines for a terminal, and a part of a page
with tables and the picture of its calibration."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from html import escape
from typing import Any

from dpmpc.outcome import Calibration, hidden
from dpmpc.outcome import Line as NumberLine
from dpmpc.show.html import facts, figure, part, table
from dpmpc.show.numbers import number_of_json, shown
from dpmpc.show.svg import calibration
from dpmpc.show.tables import ShownTable

Line = tuple[str, str]  # what, value
OUTSIDE = "outside the guarantee: from plain records of this local run"
_NAMES = {
    "AUC": "a positive record's score is above a negative one's so often",
    "balanced accuracy": "the mean of the classes' recalls; 0.5 of two classes tells nothing",
    "sensitivity": "the part of positive records that the model finds",
    "specificity": "the part of negative records that the model leaves alone",
    "accuracy": "the part of records that it is right about",
    "base rate": "the accuracy of always saying the commonest class",
    "positive": "the part of records that are positive",
    "Brier score": "the mean squared error of its probabilities",
    "R2": "the part of the target's variance that it explains",
    "rmse": "root mean squared error, in the target's unit",
    "mean error": "target minus prediction, in the target's unit",
    "rmse of the mean": "the error of always saying the mean, in the target's unit",
}


def figure_lines(report: dict[str, Any]) -> list[Line]:
    """How good the model is on held-out records, what that was learned from, and what it cost."""
    figures = report.get("figures")
    if not figures:
        return []
    kinds = {"two": _two, "several": _several, "number": _number}
    return [*kinds[figures["kind"]](figures), *_beside(report), ("held out", held_out(report))]


def held_out(report: dict[str, Any]) -> str:
    """Which records the figures are of, and what they cost."""
    figures = report["figures"]
    n, held = figures["records"], (report.get("utility") or {}).get("test_records")
    of = sum(report["owner_sizes"]) + (n if held is None else held)  # of some held out the target may be missing
    counted = (report.get("evaluation") or {}).get("counted", True)
    which = f"{n:,} of {of:,} {'records' if counted else 'places for records'}"
    if not figures["inside"]:
        return f"{which}; {OUTSIDE}"
    cost = (report.get("evaluation") or {}).get("cost")
    return f"{which}, in no part of training; inside the guarantee, intervals of the noise alone (95 %){_said(cost)}"


def _said(cost: str | None) -> str:
    return f"; {cost}" if cost else ""


def number(value: dict[str, Any] | None, digits: int = 4) -> str:
    """A number with its interval, its estimate moved to what is possible; `digits`: of one that no noise moved."""
    found = number_of_json(value)
    if found.estimate is None or found.low is None or found.high is None:
        return shown(found) if found.estimate is None else _spelled(found.estimate, digits)
    if hidden(found.low, found.high):
        return "not known (noise hides it)"
    return shown(replace(found, estimate=min(max(found.estimate, found.low), found.high)))


def count(value: dict[str, Any]) -> str:
    """A number of records, with its interval where noise has moved it."""
    found = number_of_json(value)
    return number(value) if found.low is not None else f"{max(found.estimate or 0.0, 0.0):,.0f}"


def _spelled(value: float, digits: int) -> str:
    return f"{value:.{digits}f}" if abs(value) <= 1 else f"{value:.{digits}g}"


def digits_of(figures: dict[str, Any]) -> int:
    """What a plain number is known to is all its digits; what noise moved, three."""
    return 3 if figures["inside"] else 4


def _two(figures: dict[str, Any]) -> Iterator[Line]:
    of, digits = figures["numbers"], digits_of(figures)
    yield "AUC", number(of["AUC"], digits)
    said = ", ".join(f"{name} {number(of[name], digits)}" for name in ("sensitivity", "specificity"))
    yield "balanced accuracy", f"{number(of['balanced accuracy'], digits)}: {said}; {figures['rule']}"
    yield "accuracy", f"{number(of['accuracy'], digits)}; {_always(figures, digits)}"
    yield "confusion", "; ".join(_row(figures, k) for k in (1, 0))
    picture = "the report has the picture" if figures["calibration"] else "noise hides the picture"
    yield "calibration", f"Brier score {number(of['Brier score'], digits)}; {picture}"


def _always(figures: dict[str, Any], digits: int) -> str:
    return f"always saying the commonest class has {number(figures['numbers']['base rate'], digits)}"


def _row(figures: dict[str, Any], k: int) -> str:
    names, row = figures["classes"], figures["confusion"][k]
    said = ", ".join(f"{count(cell)} as '{name}'" for name, cell in zip(names, row, strict=True))
    return f"of '{names[k]}' {said}"


def _several(figures: dict[str, Any]) -> Iterator[Line]:
    of, digits = figures["numbers"], digits_of(figures)
    yield "balanced accuracy", f"{number(of['balanced accuracy'], digits)}; {figures['rule']}"
    yield "accuracy", f"{number(of['accuracy'], digits)}; {_always(figures, digits)}"
    for name, found in list(figures["by_class"].items())[:12]:
        parts = (f"{what} {number(found[what], digits)}" for what in ("AUC", "recall", "precision"))
        yield f"'{name}'", ", ".join(parts)


def _number(figures: dict[str, Any]) -> Iterator[Line]:
    of, digits = figures["numbers"], digits_of(figures)
    yield "R2", f"{number(of['R2'], digits)} of '{figures['target']}'"
    mean = f"; always the mean would be off by {number(of['rmse of the mean'])}" if "rmse of the mean" in of else ""
    yield "error", f"{number(of['rmse'])} (root mean square), {number(of['mean error'])} in the mean{mean}"


def _beside(report: dict[str, Any]) -> Iterator[Line]:
    """The same figures of models made without noise."""
    for name, what, figures in without_noise(report):
        yield name, f"{brief(figures)}: {what}; {OUTSIDE.split(':')[0]}"


def without_noise(report: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """(what it is called, what it is, its figures) of each model made without noise. "without privacy" is what an
    ordinary pipeline reaches on all columns; the optimum of the run's own objective is of the features that it had,
    which a survey's noise may have chosen."""
    plain = ((report.get("utility") or {}).get("nonprivate") or {}).get("figures")
    if plain:
        yield "without noise", "the same objective's optimum", plain
    if baseline := report.get("baseline"):
        name = "without privacy" if baseline.get("all_columns", True) else "without noise"
        yield name, baseline["what"], baseline["figures"]


def brief(figures: dict[str, Any]) -> str:
    """The figures that models are compared by, in a line."""
    names = {"two": ("AUC", "balanced accuracy", "accuracy"), "several": ("balanced accuracy", "accuracy"),
             "number": ("R2", "rmse")}[figures["kind"]]  # fmt: skip
    return ", ".join(f"{name} {number(figures['numbers'][name])}" for name in names)


def notebook_part(report: dict[str, Any], lines: Sequence[tuple[str, str]]) -> str:
    """HTML for a notebook: the summary's lines, and the figures with their picture."""
    return part(f"{facts('', lines)}{figures_part(report)}")


def figures_part(report: dict[str, Any]) -> str:
    """HTML; nothing of a report without figures."""
    figures = report.get("figures")
    if not figures:
        return ""
    kind = "" if figures["inside"] else ' class="warning"'
    parts = [f"<p{kind}>Held out: {escape(held_out(report))}.</p>", _numbers(report)]
    if figures["classes"]:
        parts.append(_confusion(figures))
    if figures["by_class"]:
        parts.append(_by_class(figures))
    if figures["calibration"]:
        groups = [(g["predicted"], number_of_json(g["observed"]), 0) for g in figures["calibration"]]
        what = "Calibration: the share that is positive among records with like probabilities"
        parts.append(figure(what, calibration(groups)))
    return "".join(parts)


def calibrations(figures: dict[str, Any]) -> tuple[Calibration, ...]:
    """The picture of a model's calibration as a value; none where there is none."""
    lines = []
    for group in figures["calibration"] or ():
        at = f"{100 * group['predicted']:.6g}"
        lines.append(NumberLine((f"{at}-{at}%",), "observed percent", number_of_json(group["observed"]).mapped(100.0)))
    return (Calibration("calibration", tuple(lines)),) if lines else ()


def figures_table(report: dict[str, Any]) -> ShownTable:
    """The figures as a table: what each says, the model's, and those of models made without noise."""
    head, rows = _compared(report)
    figures = report["figures"]
    return ShownTable(
        head, rows, f"How good the model is at '{figures['target']}'", 2, (f"Held out: {held_out(report)}.",)
    )


def _compared(report: dict[str, Any]) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """(head, rows)."""
    figures = report["figures"]
    others = [(f"{what[:1].upper()}{what[1:]}, {name}", found) for name, what, found in without_noise(report)]
    digits = digits_of(figures)
    rows = tuple(
        (name, _NAMES[name], number(value, digits), *(number(found["numbers"].get(name)) for _, found in others))
        for name, value in figures["numbers"].items()
    )
    return ("Figure", "What it says", "The model", *(name for name, _ in others)), rows


def _numbers(report: dict[str, Any]) -> str:
    figures = report["figures"]
    rule = f"<p>{escape(figures['rule'])}; fixed before the evaluation.</p>" if figures["rule"] else ""
    return table(f"How good the model is at '{figures['target']}'", *_compared(report), words=True) + rule


def _confusion(figures: dict[str, Any]) -> str:
    names = figures["classes"]
    rows = [(name, *map(count, row)) for name, row in zip(names, figures["confusion"], strict=True)]
    return table("Who was taken for what: records", ("True class", *(f"said: {name}" for name in names)), rows)


def _by_class(figures: dict[str, Any]) -> str:
    digits = digits_of(figures)
    rows = [
        (name, *(number(found.get(what), digits) for what in ("AUC", "recall", "precision")))
        for name, found in figures["by_class"].items()
    ]
    return table("Each class against the rest", ("Class", "AUC", "Recall", "Precision"), rows)
