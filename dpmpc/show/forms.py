"""The numbers of an outcome as text: tables for a terminal, Markdown, CSV, JSON, and a data frame."""

import csv
import io
import json
import math
from collections.abc import Sequence
from typing import Any

from dpmpc.errors import UsageError
from dpmpc.outcome import Answer, Number, Outcome
from dpmpc.show.markdown import table
from dpmpc.show.numbers import shown

FIELDS = ("question", "labels", "statistic", "estimate", "noise", "low", "high", "note")


def rows(answers: Sequence[Answer]) -> list[dict[str, Any]]:
    """One dictionary a number, as JSON values; `labels` by header."""
    found = []
    for answer in answers:
        for line in answer.lines:
            number = line.number
            labels = dict(zip(answer.headers, line.labels, strict=True))
            low, high = (None if v is None or math.isinf(v) else v for v in (number.low, number.high))
            values = (answer.question, labels, line.statistic, number.estimate, number.noise, low, high, _noted(number))
            found.append(dict(zip(FIELDS, values, strict=True)))
    return found


def _noted(number: Number) -> str:
    """The note, and that the interval has no end above, which has no JSON number."""
    return number.note + (", " if number.note else "") + "open above" if number.high == math.inf else number.note


def values(outcome: Outcome) -> dict[str, Any]:
    """All numbers with all digits, what their intervals hold, and the promise that they came under, as JSON values."""
    notes, level = {answer.question: list(answer.notes) for answer in outcome.answers}, outcome.held
    about = {"confidence": level.confidence, "about": level.about, "answers_at_once": level.answers}
    return {"about": list(outcome.about), "intervals": about, "notes": notes, "numbers": rows(outcome.answers)}


def as_json(outcome: Outcome) -> str:
    """The same as text."""
    return json.dumps(values(outcome), indent=1, allow_nan=False) + "\n"


def as_csv(outcome: Outcome) -> str:
    """One line a number; labels as name=value, joined by semicolons."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(FIELDS)
    for row in rows(outcome.answers):
        labels = "; ".join(f"{name}={value}" for name, value in row["labels"].items())
        writer.writerow([labels if name == "labels" else "" if row[name] is None else row[name] for name in FIELDS])
    return text.getvalue()


def as_markdown(outcome: Outcome, whole: bool = False) -> str:
    """A heading and a table for each question; `whole`: also what nothing beside it says, the promise."""
    parts = []
    for answer in outcome.answers:
        head, body = grid(answer)
        notes = "\n".join(f"{note}.  " for note in answer.notes)
        parts.append(f"### `{answer.question}`\n\n{table(head, body)}\n{notes}".rstrip())
    return "\n\n".join([*parts, *_after(outcome, whole)]) + "\n"


def as_text(outcome: Outcome, whole: bool = False) -> str:
    """Aligned columns for each question; `whole` as above."""
    parts = []
    for answer in outcome.answers:
        head, body = grid(answer)
        table = [head, *body]
        wide = [max(len(row[k]) for row in table) for k in range(len(head))]
        numbers = len(answer.headers) + 1 - answer.grouped
        lines = [
            "  ".join(
                cell.ljust(wide[k]) if k < numbers else cell.rjust(wide[k]) for k, cell in enumerate(row)
            ).rstrip()
            for row in table
        ]
        ruled = [lines[0], "-" * max(map(len, lines)), *lines[1:]]
        parts.append("\n".join([answer.question, *(f"  {line}" for line in ruled), *(f"  {n}" for n in answer.notes)]))
    return "\n\n".join([*parts, *_after(outcome, whole)]) + "\n"


def frame(outcome: Outcome) -> Any:
    """A pandas data frame with one row a number, and a column for each label. Errors: pandas is not installed."""
    try:
        import pandas
    except ImportError:
        raise UsageError("a data frame needs pandas; it is not installed; install it, or use the JSON") from None
    flat = [{**{k: v for k, v in row.items() if k != "labels"}, **row["labels"]} for row in rows(outcome.answers)]
    return pandas.DataFrame(flat)


def grid(answer: Answer) -> tuple[list[str], list[list[str]]]:
    """(headers, rows) of a table in which groups are columns, and each number stands with its interval."""
    skip = int(answer.grouped)
    groups = list(dict.fromkeys(line.labels[:skip] for line in answer.lines))
    cells: dict[tuple[tuple[str, ...], str], dict[tuple[str, ...], Number]] = {}
    for line in answer.lines:
        cells.setdefault((line.labels[skip:], line.statistic), {})[line.labels[:skip]] = line.number
    names = [f"{answer.headers[0]} = {group[0]}" if group else "estimate [interval]" for group in groups]
    head = [*answer.headers[skip:], "", *names]
    body = [
        [
            *labels,
            statistic,
            *(shown(found[group], whole=statistic == "count") if group in found else "" for group in groups),
        ]
        for (labels, statistic), found in cells.items()
    ]
    return head, body


def _after(outcome: Outcome, whole: bool) -> list[str]:
    """What stands after the tables: `whole`, all of what they are about, the promise first; else, where others say
    that, a promise that rests on something, which goes wherever its answers go."""
    about = [line for line in outcome.about if whole or line.startswith("if ")]
    return [*([said_of(outcome)] if outcome.answers else []), *outcome.lines, *about]


def said_of(outcome: Outcome) -> str:
    """What the intervals are, in a line, and why an estimate lies outside its own."""
    level = outcome.held
    share = f"{100 * level.confidence:g} %"
    about = (
        "hold what would be found if these records were one sample of many, each drawn by itself; counts are of these"
        if level.population
        else "hold what the records themselves say; only the noise is in them"
    )
    each = f"all {level.answers} at once" if level.answers > 1 else "each by itself"
    text = f"Intervals of {share}, {each}, {about}. * covers more than that."
    numbers = [line.number for answer in outcome.answers for line in answer.lines]
    if any(n.estimate is not None and n.low is not None and n.estimate < min(n.low, 0.0) for n in numbers):
        text += " Estimates below 0 are noise about few or none; they are left as they are, so that sums stay true."
    return text
