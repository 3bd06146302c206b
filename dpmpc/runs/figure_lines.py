"""A model's figures in words, from the report: for the terminal, and for the page."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dpmpc.codec import loads

Line = tuple[str, str]  # what, value
FIGURES = "figures.json"  # of a run over several machines
OUTSIDE = "outside the guarantee: from plain records of this local run"


def figure_lines(report: dict[str, Any]) -> list[Line]:
    """How good the model is on held-out records, what that was learned from, and what it cost."""
    figures = report.get("figures")
    if not figures:
        return []
    kinds = {"two": _two, "several": _several, "number": _number}
    return [*kinds[figures["kind"]](figures), *_beside(report), ("held out", held_out(report))]


def read_lines(run: Path) -> list[Line]:
    """The lines of the figures that a run over several machines opened, at any of its processes; [] where there are
    none."""
    path = run / FIGURES
    if not path.exists():
        return []
    found = loads(path.read_text(encoding="utf-8"))
    return figure_lines(found) + [("warning", text) for text in found["warnings"]]


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
    """A number and its interval."""
    if value is None or value.get("estimate") is None:
        return "no estimate"
    from dpmpc.outcome import hidden  # with NumPy, which who asks for a status does not wait for

    if value.get("low") is None:
        return _spelled(value["estimate"], digits)
    if hidden(value["low"], value["high"]):
        return "not known (noise hides it)"
    text = _spelled(min(max(value["estimate"], value["low"]), value["high"]), digits)  # what is possible
    return f"{text} ({_spelled(value['low'], digits)} to {_spelled(value['high'], digits)})"


def count(value: dict[str, Any]) -> str:
    """A number of records, and how far the noise may have moved it."""
    text = f"{max(value['estimate'] or 0.0, 0.0):,.0f}"
    return f"{text} (+-{1.96 * value['noise']:,.0f})" if value.get("noise") else text


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
    """The same figures of models made without privacy."""
    plain = ((report.get("utility") or {}).get("nonprivate") or {}).get("figures")
    if plain:
        yield "without privacy", f"{brief(plain)}: the same objective's optimum; {OUTSIDE.split(':')[0]}"
    baseline = report.get("baseline")
    if baseline:
        yield "without privacy", f"{brief(baseline['figures'])}: {baseline['what']}; {OUTSIDE.split(':')[0]}"


def brief(figures: dict[str, Any]) -> str:
    """The figures that models are compared by, in a line."""
    names = {"two": ("AUC", "balanced accuracy", "accuracy"), "several": ("balanced accuracy", "accuracy"),
             "number": ("R2", "rmse")}[figures["kind"]]  # fmt: skip
    return ", ".join(f"{name} {number(figures['numbers'][name])}" for name in names)
