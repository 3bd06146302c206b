"""Answers as text, Markdown, CSV, JSON, data frames and pages; and what a dry run says, against what comes."""

import csv
import io
import json
import re
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

from dpmpc.outcome import Answer, Level, Number, Outcome
from dpmpc.privacy.gaussian import gaussian_scale
from dpmpc.show.answers_page import as_html
from dpmpc.show.forms import as_csv, as_json, as_markdown, as_text, frame, rows
from dpmpc.show.numbers import shown
from dpmpc.show.svg import ticks
from dpmpc.statistics.columns import Columns
from dpmpc.statistics.expected import expected, lines, refuse_hopeless
from dpmpc.statistics.tables import Tables
from tests.refusals import refuses

BOUNDS: dict[str, Any] = {
    "s|x": ["<script>alert(1)</script>", "b;c"], "age": [0.0, 100.0], "died": ["no", "yes"], "t": [0.0, 10.0],
}  # fmt: skip
ASKED = ['table(died) by "s|x"', "mean(age) by died", "hist(age, bins=5)", "median(age)",
         'km(t, died, bins=4) by "s|x"', 'table1 by "s|x"', "corr(age, t)"]  # fmt: skip
SIZES = (4000, 6000)


def release(asked: list[str], epsilon: float = 1.0, sizes: tuple[int, ...] = SIZES) -> tuple[Tables, float]:
    tables = Tables.of(Columns.of_bounds(BOUNDS), asked)
    return tables, gaussian_scale(epsilon, 1e-5, tables.layout.distance(sizes).l2)


@pytest.fixture(scope="module")
def answers() -> tuple[Answer, ...]:
    tables, sigma = release(ASKED)
    rng = np.random.default_rng(1)
    from dpmpc.statistics.cells import RecordFields
    from dpmpc.statistics.columns import Quantity

    values: Any = {
        field: rng.uniform(-1, 101, 10_000) if isinstance(field, Quantity) else rng.integers(-1, 2, 10_000)
        for field in tables.layout.fields
    }
    total = tables.layout.encode(RecordFields(10_000, values))[0] + rng.normal(0, sigma, tables.layout.dimension)
    return tables.answers(total, sigma, SIZES)


def test_every_number_is_in_every_form(answers: tuple[Answer, ...]) -> None:
    count = sum(len(answer.lines) for answer in answers)
    value = json.loads(as_json(Outcome(answers)))
    assert len(value["numbers"]) == len(rows(answers)) == count and value["intervals"]["about"] == "data"
    read = list(csv.DictReader(io.StringIO(as_csv(Outcome(answers)))))
    assert len(read) == count and {row["question"] for row in read} == {answer.question for answer in answers}
    table = frame(Outcome(answers))
    assert len(table) == count and table["estimate"].notna().sum() > count / 2
    text, marked = as_text(Outcome(answers)), as_markdown(Outcome(answers, level=Level(answers=7, about="population")))
    for answer in answers:
        for line in answer.lines:
            assert shown(line.number) in text and shown(line.number) in marked
    assert "all 7 at once" in marked and "s\\|x" in marked
    assert "only the noise is in them" in text


class Reader(HTMLParser):
    """Tags that are open, and references to elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.outside: list[str] = []
        self.cells: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("meta", "circle", "line", "rect", "path") and not self.get_starttag_text().endswith("/>"):  # type: ignore[union-attr]
            self.tags.append(tag)
        self.outside += [str(value) for name, value in attrs if name in ("src", "href", "xlink:href")]
        for name, value in attrs:
            if name in ("x", "x1", "x2", "cx") and tag != "svg":
                assert -1 <= float(str(value)) <= 721
            assert name not in ("width", "height") or float(str(value)) >= 0

    def handle_endtag(self, tag: str) -> None:
        if tag in self.tags:
            assert self.tags.pop() == tag

    def handle_data(self, data: str) -> None:
        self.cells.append(data)


def test_the_page_is_whole_needs_nothing_and_runs_nothing(answers: tuple[Answer, ...]) -> None:
    page = as_html(Outcome(answers, about=("epsilon 1",), costs=(("count", 0.5),)), "Table 1 & more")
    reader = Reader()
    reader.feed(page)
    assert not reader.tags and not reader.outside and "<script" not in page and "Table 1 &amp; more" in page
    assert "nan" not in page.lower().replace("male", "") and page.count("<svg") >= 6
    numbers = [shown(line.number) for answer in answers for line in answer.lines]
    assert all(number in reader.cells for number in numbers)


def test_numbers_are_shown_to_the_digits_that_noise_leaves() -> None:
    assert shown(Number(1234.567, 21.0, 1193.4, 1275.7)) == "1235 [1193, 1276]"
    assert shown(Number(0.123456, 0.0021, 0.1193, 0.1276)) == "0.1235 [0.1193, 0.1276]"
    assert shown(Number(5.0, 0.0, 5.0, 5.0)) == "5"
    assert shown(Number(2.0, None, 1.0, 3.0, "conservative")) == "2.00 [1.00, 3.00]*"
    assert shown(Number(None, None, None, None)) == "no estimate"
    for low, high in ((0, 1), (0.3, 0.31), (-5000, 12), (0, 60), (1e-9, 2e-9)):
        assert 3 <= len(ticks(low, high)) <= 11


# -- before anything is spent ------------------------------------------------------------------------------------------
def test_a_dry_run_says_the_widths_that_come() -> None:
    asked = ["table(died)", "table1 by died", "mean(age)", "median(age)", "corr(age, t)"]
    tables, sigma = release(asked)
    found = expected(tables, SIZES, sigma)
    assert [item.question for item in found] == asked and sum(item.share for item in found) > 1 - 1e-9
    told = tables.answers(np.zeros(tables.layout.dimension), sigma, SIZES)
    count = next(line.number for line in told[0].lines if line.statistic == "count")
    assert count.noise is not None and found[0].half == pytest.approx(1.959964 * count.noise)
    assert len(lines(found)) == 5 and "rank of a median" in lines(found)[3] and "a mean by" in lines(found)[2]
    refuse_hopeless(found, 1.0, 1e-5)


def test_what_epsilon_1_buys() -> None:
    """A lone count +-7 records, a table +-10 a cell."""
    tables, sigma = release(["count where died = yes"])
    assert expected(tables, SIZES, sigma)[0].half == pytest.approx(7.3, abs=0.3)
    tables, sigma = release(["hist(age, bins=50)"])
    assert expected(tables, SIZES, sigma)[0].half == pytest.approx(10.3, abs=0.3)


def test_the_hopeless_is_refused_by_name_and_the_ways_out_work() -> None:
    few = (60, 40)
    tables, sigma = release(["hist(age, bins=50)", "count where died = yes"], sizes=few)
    with refuses("enough", "bins=50", "1.89") as caught:
        refuse_hopeless(expected(tables, few, sigma), 1.0, 1e-5)
    epsilon, cells = re.search(r"epsilon ([\d.e+]+) would do, or (\d+) cell", str(caught.value)).groups()  # type: ignore[union-attr]
    again, louder = release(["hist(age, bins=50)", "count where died = yes"], float(epsilon), few)
    refuse_hopeless(expected(again, few, louder), float(epsilon), 1e-5)
    fewer, sigma = release([f"hist(age, bins={max(1, int(cells) - 3)})", "count where died = yes"], sizes=few)
    refuse_hopeless(expected(fewer, few, sigma), 1.0, 1e-5)


def test_costs_are_printed_with_distances() -> None:
    tables, _ = release(["mean(age) by died", "count where died = yes weight=3"])
    (_, moments, first), (name, count, second) = tables.costs(SIZES)
    assert moments.l2 == pytest.approx(2) and count.l2 == pytest.approx(1) and name.endswith("weight=3")
    assert first + second == pytest.approx(1)
