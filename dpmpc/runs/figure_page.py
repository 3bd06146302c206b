"""A model's figures as a part of the page: a table, who was taken for what, and the picture of its calibration."""

from collections.abc import Sequence
from html import escape
from typing import Any

from dpmpc.runs.figure_lines import count, digits_of, held_out, number

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
_SIZE, _LEFT, _TOP, _BOTTOM = 300, 52, 12, 40


_STYLE = (
    ".dpmpc svg { max-width: 24rem } .dpmpc .grid { stroke: #c9d0d8; stroke-width: .6 } "
    ".dpmpc .level { stroke: #4d5761; stroke-dasharray: 5 4 } .dpmpc .curve { stroke: #0b5cad; stroke-width: 2 } "
    ".dpmpc .bar { fill: #0b5cad } .dpmpc svg text { font: 12px system-ui, sans-serif; fill: currentColor }"
)


def notebook_part(report: dict[str, Any], lines: Sequence[tuple[str, str]]) -> str:
    """HTML for a notebook: the summary's lines, and the figures with their picture."""
    rows = "".join(f'<tr><th scope="row">{escape(what)}</th><td>{escape(value)}</td></tr>' for what, value in lines)
    return f'<div class="dpmpc"><style>{_STYLE}</style><table>{rows}</table>{figures_part(report)}</div>'


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
        parts.append(
            "<figure><figcaption>Calibration: the share that is positive among records with like probabilities"
            f"</figcaption>{calibration(figures)}</figure>"
        )
    return "".join(parts)


def _numbers(report: dict[str, Any]) -> str:
    figures = report["figures"]
    given = [("The same objective's optimum, without privacy", _plain(report))]
    if report.get("baseline"):
        given.append((report["baseline"]["what"].capitalize() + ", without privacy", report["baseline"]["figures"]))
    others = [(name, found) for name, found in given if found]
    digits = digits_of(figures)
    rows = [
        (name, _NAMES[name], number(value, digits), *(number(found["numbers"].get(name)) for _, found in others))
        for name, value in figures["numbers"].items()
    ]
    rule = f"<p>{escape(figures['rule'])}; fixed before the evaluation.</p>" if figures["rule"] else ""
    head = ("Figure", "What it says", "The model", *(name for name, _ in others))
    return grid(f"How good the model is at '{figures['target']}'", head, rows) + rule


def _plain(report: dict[str, Any]) -> dict[str, Any] | None:
    found: dict[str, Any] | None = ((report.get("utility") or {}).get("nonprivate") or {}).get("figures")
    return found


def _confusion(figures: dict[str, Any]) -> str:
    names = figures["classes"]
    rows = [(name, *map(count, row)) for name, row in zip(names, figures["confusion"], strict=True)]
    return grid("Who was taken for what: records", ("True class", *(f"said: {name}" for name in names)), rows)


def _by_class(figures: dict[str, Any]) -> str:
    digits = digits_of(figures)
    rows = [
        (name, *(number(found.get(what), digits) for what in ("AUC", "recall", "precision")))
        for name, found in figures["by_class"].items()
    ]
    return grid("Each class against the rest", ("Class", "AUC", "Recall", "Precision"), rows)


def calibration(figures: dict[str, Any]) -> str:
    """An SVG: predicted probability across, observed share up, intervals as lines, the diagonal for comparison."""
    groups = figures["calibration"]
    ends = [end for g in groups for end in (g["predicted"], g["observed"]["estimate"], g["observed"].get("high"))]
    top = next(t for t in (0.05, 0.1, 0.2, 0.5, 1.0) if t >= min(1.0, max(end for end in ends if end is not None)))
    inner = _SIZE - _TOP - _BOTTOM

    def x(value: float) -> float:
        return _LEFT + min(max(value / top, 0.0), 1.0) * inner

    def y(value: float) -> float:
        return _TOP + inner - min(max(value / top, 0.0), 1.0) * inner

    parts = []
    for k in range(5):
        tick = top * k / 4
        parts.append(f'<line class="grid" x1="{x(0):.1f}" x2="{x(top):.1f}" y1="{y(tick):.1f}" y2="{y(tick):.1f}"/>')
        parts.append(f'<text x="{x(0) - 6:.1f}" y="{y(tick) + 4:.1f}" text-anchor="end">{tick:.3g}</text>')
        parts.append(f'<text x="{x(tick):.1f}" y="{y(0) + 16:.1f}" text-anchor="middle">{tick:.3g}</text>')
    parts.append(f'<line class="level" x1="{x(0):.1f}" y1="{y(0):.1f}" x2="{x(top):.1f}" y2="{y(top):.1f}"/>')
    parts.append(f'<text x="{x(top / 2):.1f}" y="{_SIZE - 6}" text-anchor="middle">predicted probability</text>')
    for group in groups:
        at, seen = x(group["predicted"]), group["observed"]
        if seen.get("low") is not None:
            span = f'y1="{y(seen["low"]):.1f}" y2="{y(seen["high"]):.1f}"'
            parts.append(f'<line class="curve" x1="{at:.1f}" x2="{at:.1f}" {span}/>')
        parts.append(f'<circle class="bar" cx="{at:.1f}" cy="{y(seen["estimate"]):.1f}" r="3.5"/>')
    said = "; ".join(f"{g['predicted']:.3g} predicted, {g['observed']['estimate']:.3g} observed" for g in groups)
    wide = _LEFT + inner + 14
    return (
        f'<svg role="img" viewBox="0 0 {wide} {_SIZE}" style="max-width: 24rem" aria-label="calibration: {said}">'
        f"{''.join(parts)}</svg>"
    )


def grid(caption: str, names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table with a head and a caption, as HTML."""
    title = escape(caption)
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in names)
    body = "".join(
        f'<tr><th scope="row">{escape(row[0])}</th>' + "".join(f"<td>{escape(c)}</td>" for c in row[1:]) + "</tr>"
        for row in rows
    )
    return (  # what scrolls sideways on a narrow screen can be reached from the keyboard
        f'<div class="wide" tabindex="0" role="region" aria-label="{title}"><table><caption>{title}</caption><thead>'
        f"<tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )
