"""An outcome as one HTML page that needs nothing else: the promise, tables, pictures, what the intervals mean."""

from html import escape

from dpmpc.outcome import Answer, Outcome
from dpmpc.show.forms import grid, said_of
from dpmpc.show.html import lines, page, scrolling, table
from dpmpc.show.svg import pictures


def as_html(outcome: Outcome, title: str = "") -> str:
    """The page, under its own title or what came of the run is called."""
    return page(title or outcome.title, f"{lines(outcome.about)}{as_part(outcome)}")


def as_part(outcome: Outcome, heading: str = "h2") -> str:
    """The answers as a part of a page, under headings of this kind."""
    parts = [lines((*([said_of(outcome)] if outcome.answers else []), *outcome.lines))]
    if outcome.costs:
        each = (
            f"<li><code>{escape(name)}</code>: {100 * part:.1f} % of the promise</li>" for name, part in outcome.costs
        )
        parts.append(f"<ul>{''.join(each)}</ul>")
    for answer in outcome.answers:
        parts.append(f"<{heading}><code>{escape(answer.question)}</code></{heading}>")
        parts.append(lines((f"{note}." for note in answer.notes), "dim"))
        parts += map(scrolling, pictures(answer))
        parts.append(_table(answer))
    return "".join(parts)


def _table(answer: Answer) -> str:
    head, rows = grid(answer)
    return table("", head, rows, labels=len(answer.headers) + 1 - answer.grouped)
