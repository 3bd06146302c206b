"""Pages, pictures and numbers have one maker each, and what it makes needs nothing and runs nothing."""

import re
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from pathlib import Path

import pytest

from dpmpc.outcome import Answer, Bars, Calibration, Curves, Forest, Heat, Line, Number, Outcome, Shape
from dpmpc.show import html, style, svg
from dpmpc.show.answers_page import as_html
from dpmpc.show.figures import figures_part, notebook_part, number
from dpmpc.show.markdown import table
from dpmpc.show.numbers import shown

ROOT = Path(__file__).parents[2]
NASTY = """<script>alert("x")</script> & 'quoted' \"so\" </style>"""


@pytest.mark.parametrize(
    ("text", "makers"),
    [
        ("<!doctype", {"show/html.py"}),
        ("<svg", {"show/svg.py"}),
        ("<polyline", {"show/svg.py"}),
        ("<style", {"show/html.py", "show/svg.py"}),
        ("<table", {"show/html.py"}),
        ("prefers-color-scheme", {"show/style.py"}),
        ("font: 1", {"show/style.py"}),
        ("Content-Security-Policy", {"show/html.py"}),
        ('" --- "', {"show/markdown.py"}),
    ],
)
def test_each_is_made_in_one_place(text: str, makers: set[str]) -> None:
    """What a page, a picture, a style or a table begins with stands in the code once."""
    found = {
        f"{'' if top == 'dpmpc' else 'cli/'}{path.relative_to(ROOT / top)}"
        for top in ("dpmpc", "cli")
        for path in (ROOT / top).rglob("*.py")
        if text.lower() in path.read_text(encoding="utf-8").lower()
    }
    assert found == makers


def lines(count: int = 3, low: float = 10.0) -> tuple[Line, ...]:
    return tuple(
        Line((f"{NASTY}{k}", f"{10 * k}-{10 * k + 10}%"), "share", Number(low + k, 1.0, low + k - 2, low + k + 2))
        for k in range(count)
    )


STEPS = tuple(Line((arm, str(t)), "survival", Number(s, 0.01, s - 0.02, s + 0.02))
              for arm in ("a", NASTY) for t, s in ((1, 0.9), (2, 0.7)))  # fmt: skip
SHAPES: list[Shape] = [
    Bars("percent", lines()),
    Forest("count", lines()),
    Forest("ratio", (Line((NASTY,), "ratio", Number(1.5, 0.2, 0.0, 1.9)), *lines()), ratios=True),
    Curves("survival", STEPS, grouped=True),
    Calibration("calibration", lines()),
    Heat("counts", lines()),
]


class Strict(HTMLParser):
    """What a page would run, load or leave open."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.bad: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("script", "link", "img", "iframe", "object", "a", "form"):
            self.bad.append(tag)
        self.bad += [name for name, _ in attrs if name.startswith("on") or name in ("href", "src", "style")]
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.bad.append(f"</{tag}>")


def read(text: str) -> Strict:
    parser = Strict()
    parser.feed(text)
    parser.close()
    return parser


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: type(shape).__name__)
def test_a_picture_is_xml_of_known_classes_within_its_own_bounds_and_says_its_numbers(shape: Shape) -> None:
    picture = svg.picture(shape)
    root = ElementTree.fromstring(picture)
    _, _, wide, tall = map(float, root.attrib["viewBox"].split())
    known = set(re.findall(r"svg \.(\w+)", style.PICTURE)) | {"broad", "small", "square"}
    for each in root.iter():
        assert set(each.attrib.get("class", "").split()) <= known, each.attrib
        ends = {**dict.fromkeys(("x", "x1", "x2", "cx"), wide), **dict.fromkeys(("y", "y1", "y2", "cy"), tall)}
        for name, most in ends.items():
            if name in each.attrib:
                assert -1 <= float(each.attrib[name]) <= most + 1, (each.tag, each.attrib)
    said = root.attrib["aria-label"]
    assert "[" in said and "]" in said and (shape.title in said)


def test_a_page_of_answers_escapes_all_runs_nothing_and_is_closed() -> None:
    answers = tuple(Answer(f"{NASTY} {type(s).__name__}", ("a", "b"), s.lines, True, (NASTY,), (s,)) for s in SHAPES)
    outcome = Outcome(answers, about=(NASTY,), costs=((NASTY, 0.5),), lines=(NASTY,))
    page = as_html(outcome, NASTY)
    found = read(page)
    assert not found.bad and not found.open, (found.bad, found.open)
    assert "<script" not in page and page.count("<svg") == len(SHAPES)
    assert "default-src 'none'" in page and 'name="viewport"' in page and "prefers-color-scheme: dark" in page


def test_the_pages_styles_have_every_class_and_variable_that_is_used() -> None:
    used = set(re.findall(r"var\((--[\w-]+)\)", style.PAGE))
    for scheme in (style._LIGHT, style._DARK, style._PRINT):
        assert used <= set(re.findall(r"(--[\w-]+):", scheme)), scheme
    assert style.PAGE.count("{") == style.PAGE.count("}") and style.PICTURE.count("{") == style.PICTURE.count("}")


def test_tables_name_their_rows_and_numbers_stand_right() -> None:
    made = html.table("Of", ("name", "n", "note"), [("a", "1", NASTY)], labels=1)
    assert '<th scope="row" class="label">a</th><td>1</td>' in made and "<script" not in made
    assert 'tabindex="0"' in made and not read(made).bad
    said = html.table("Of", ("who", "sees"), [("a", "b")], words=True)
    assert '<td data-name="sees">b</td>' in said
    assert table(("a|b", "c"), [("1", "2")]) == "| a\\|b | c |\n| --- | --- |\n| 1 | 2 |\n"


def test_a_figure_of_a_model_is_written_as_an_answer_is() -> None:
    """One notation: whether a number comes from a question or from an evaluation."""
    value = {"estimate": 0.8123, "noise": 0.012, "low": 0.7891, "high": 0.8359}
    assert number(value) == shown(Number(0.8123, 0.012, 0.7891, 0.8359)) == "0.812 [0.789, 0.836]"
    assert number({**value, "note": "conservative"}).endswith("*") and number(None) == "no estimate"
    assert number({"estimate": 0.5}) == "0.5000" and number({**value, "low": 0.0, "high": 1.0}).startswith("not known")
    assert number({**value, "estimate": 0.9}) == "0.836 [0.789, 0.836]", "an estimate is moved to what is possible"


def test_a_notebook_has_the_same_parts_in_its_own_style() -> None:
    group = {"predicted": 0.1, "observed": {"estimate": 0.12, "noise": 0.01, "low": 0.1, "high": 0.14}, "records": 10.0}
    figures = {
        "kind": "two", "inside": True, "records": 10, "target": NASTY, "classes": ["a", NASTY], "rule": NASTY,
        "numbers": {"AUC": {"estimate": 0.8, "noise": 0.01, "low": 0.78, "high": 0.82}}, "by_class": {},
        "confusion": [[{"estimate": 1.0}] * 2] * 2, "calibration": [group],
    }  # fmt: skip
    report = {"figures": figures, "owner_sizes": [10], "utility": None}
    part = notebook_part(report, [("guarantee", NASTY)])
    assert figures_part(report) in part and not read(part).bad and not read(part).open
    assert "0.800 [0.780, 0.820]" in part and part.count("<svg") == 1
