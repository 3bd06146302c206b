"""Pages and their parts as HTML: one file without scripts, fonts, images or links, for narrow and wide screens, light
and dark, and for print. Every text of a caller is escaped here."""

import re
from collections.abc import Iterable, Sequence
from html import escape

from dpmpc.lazy import regex
from dpmpc.show.style import PAGE, PART

# What is no text of a page, or a number that a line could break at its minus: 1e-05.
_NUMBERS = regex(r"<(svg|style)\b.*?</\1>|<[^>]*>|(\b\d+(?:\.\d+)?e-\d+\b)", re.DOTALL)
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
# What a server says with a page, of which the page itself can say a part.
HEADERS = {
    "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": f"{_POLICY}; frame-ancestors 'none'",
}  # fmt: skip


def page(title: str, body: str, below: str = "", foot: str = "") -> str:
    """The whole page. `body`, `foot`: HTML; `below`: a text under the title."""
    under = f'<p class="dim">{escape(below)}</p>' if below else ""
    header = f"<header><h1>{escape(title)}</h1>{under}</header>"
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{PAGE}</style></head>\n<body>{_whole(header)}\n<main>{_whole(body)}</main>\n"
        f"{_whole(foot)}</body></html>\n"
    )


def part(body: str) -> str:
    """HTML for a notebook, in the style of pages."""
    return f'<div class="dpmpc"><style>{PART}</style>{_whole(body)}</div>'


def _whole(body: str) -> str:
    """The same, with each number on one line."""
    return _NUMBERS.sub(lambda found: f'<span class="one">{found[2]}</span>' if found[2] else found[0], body)


def table(
    caption: str,
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    labels: int | None = None,
    raw: Sequence[int] = (),
    words: bool = False,
) -> str:
    """A table with a head, whose first column says what each row is about; it scrolls sideways on a narrow screen, and
    the keyboard reaches it. `labels`: of a table of numbers, how many columns are none. `raw`: columns that are HTML.
    `words`: of sentences, which stand one below the other on a narrow screen, under the names in the head."""
    title = escape(caption)

    def kind(k: int) -> str:
        return ' class="label"' if labels is not None and k < labels else ""

    def cell(k: int, text: str) -> str:
        content = text if k in raw else escape(text)
        if k == 0:
            return f'<th scope="row"{kind(k)}>{content}</th>'
        name = f' data-name="{escape(head[k])}"' if words else ""
        return f"<td{kind(k)}{name}>{content}</td>"

    top = "".join(f'<th scope="col"{kind(k)}>{escape(name)}</th>' for k, name in enumerate(head))
    body = "".join(f"<tr>{''.join(cell(k, text) for k, text in enumerate(row))}</tr>" for row in rows)
    inside = f"<caption>{title}</caption>" if caption else ""
    of = "words" if words else "wide numbers" if labels is not None else "wide"
    named = f' aria-label="{title}"' if caption else ""
    return (
        f'<div class="{of}" tabindex="0" role="region"{named}><table>{inside}<thead><tr>{top}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def contents(names: Sequence[str]) -> str:
    """The names of a page's numbered parts, each of which leads there."""
    lines = "".join(f'<li><a href="#s{k}">{escape(name)}</a></li>' for k, name in enumerate(names, 1))
    return f'<nav aria-label="Contents"><h2>Contents</h2><ol>{lines}</ol></nav>'


def scrolling(svg: str) -> str:
    """A picture that scrolls sideways where it would be too small to read."""
    return f'<div class="wide" tabindex="0" role="region" aria-label="picture">{svg}</div>'


def facts(caption: str, rows: Iterable[tuple[str, object]]) -> str:
    """A table of (what, value) rows without a head."""
    cells = "".join(f'<tr><th scope="row">{escape(k)}</th><td>{escape(str(v))}</td></tr>' for k, v in rows)
    inside = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f"<table>{inside}<tbody>{cells}</tbody></table>"


def items(texts: Iterable[str]) -> str:
    """A list."""
    return "<ul>" + "".join(f"<li>{escape(text)}</li>" for text in texts) + "</ul>"


def lines(texts: Iterable[str], kind: str = "") -> str:
    """A paragraph a text, of this class."""
    of = f' class="{kind}"' if kind else ""
    return "".join(f"<p{of}>{escape(text)}</p>" for text in texts)


def figure(name: str, svg: str) -> str:
    """A picture with what it shows."""
    return f"<figure><figcaption>{escape(name)}</figcaption>{svg}</figure>"
