"""Answers as one HTML page that needs nothing else: the promise, tables, pictures, what the intervals mean."""

from collections.abc import Sequence
from html import escape

from dpmpc.outcome import Answer, Level
from dpmpc.statistics.output import grid, said_of
from dpmpc.statistics.pictures import pictures

_STYLE = """
body { font: 15px/1.45 sans-serif; margin: 2em auto; max-width: 62em; padding: 0 1em; color: #222 }
table { border-collapse: collapse; margin: .6em 0 } th, td { padding: .15em .8em; text-align: right }
th { border-bottom: 1px solid #888 } td.name, th.name { text-align: left } tr:nth-child(even) { background: #f6f6f6 }
code { background: #f2f2f2; padding: 0 .2em } h2 { margin-top: 2em; font-size: 1.1em } .note { color: #555 }
svg { max-width: 100%; height: auto; display: block; margin: .8em 0 }
@media print { h2 { break-after: avoid } svg, table { break-inside: avoid } }
"""


def as_html(
    answers: Sequence[Answer], level: Level, title: str = "Statistics", said: Sequence[str] = (),
    costs: Sequence[tuple[str, float]] = (),
) -> str:  # fmt: skip
    """The page. said: lines about the promise; costs: each question's part of it."""
    head = "".join([f"<h1>{escape(title)}</h1>", *(f"<p>{escape(line)}</p>" for line in said)])
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{_STYLE}</style></head><body>{head}{as_part(answers, level, costs)}</body></html>\n"
    )


def as_part(
    answers: Sequence[Answer], level: Level, costs: Sequence[tuple[str, float]] = (), heading: str = "h2"
) -> str:
    """The answers as a part of a page."""
    parts = [f"<p>{escape(said_of(level, answers))}</p>"]
    if costs:
        each = (f"<li><code>{escape(name)}</code>: {100 * part:.1f} % of the promise</li>" for name, part in costs)
        parts.append(f"<ul>{''.join(each)}</ul>")
    for answer in answers:
        parts.append(f"<{heading}><code>{escape(answer.question)}</code></{heading}>")
        parts += [f'<p class="note">{escape(note)}.</p>' for note in answer.notes]
        parts += pictures(answer)
        parts.append(_table(answer))
    return "".join(parts)


def _table(answer: Answer) -> str:
    head, body = grid(answer)
    names = len(answer.headers) + 1 - answer.grouped

    def row(cells: Sequence[str], tag: str) -> str:
        made = (f"<{tag}{' class=name' if k < names else ''}>{escape(cell)}</{tag}>" for k, cell in enumerate(cells))
        return f"<tr>{''.join(made)}</tr>"

    return f"<table>{row(head, 'th')}{''.join(row(cells, 'td') for cells in body)}</table>"
