"""Drawn tables in drawn habits: what is meant is known, for the file is made of it."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.intake.corpus.cases import numbers, text_of, words
from tests.intake.corpus.judge import Case, Truth

Rng = np.random.Generator


def _columns(g: Rng, n: int, habits: set[str]) -> tuple[dict[str, list[Any]], dict[str, Truth]]:
    """Columns of a drawn table as they are written, and what they mean."""
    comma = "decimal comma" in habits

    def figure(value: float, digits: int) -> str:
        text = f"{value:.{digits}f}"
        return text.replace(".", ",") if comma else text

    written, truth = dict[str, list[Any]](), dict[str, Truth]()
    size = [round(float(v), 1) for v in g.normal(170, 9, n)]
    written["size"], truth["size"] = [figure(v, 1) for v in size], numbers(size)
    weight = [round(float(v), 2) for v in g.normal(75, 12, n)]
    unit = [" kg", "kg", " mg/dl"][int(g.integers(3))] if "unit" in habits else ""
    bare = g.random(n) < 0.3 if "some without unit" in habits else np.zeros(n, dtype=bool)
    written["weight"] = [figure(v, 2) + unit * (not b) for v, b in zip(weight, bare, strict=True)]
    truth["weight"] = numbers(weight)
    visits = [int(v) for v in g.integers(0, 12, n)]
    code = int(g.choice([99, -9, 999, 88])) if "code for none" in habits else None
    gone = g.random(n) < 0.08
    written["visits"] = [code if code is not None and b else v for v, b in zip(visits, gone, strict=True)]
    truth["visits"] = numbers([None if code is not None and b else v for v, b in zip(visits, gone, strict=True)])
    levels = [
        ["low", "mid", "high"],
        ["<30", ">30", "none"],
        ["1. Yes", "2. No", "9. Unknown"],
        ["1Fam", "2Fam", "Twn"],
    ]
    chosen = levels[0 if "levels" not in habits else int(g.integers(1, 4))]
    group = [chosen[k] for k in g.integers(0, 3, n)]
    written["group"], truth["group"] = group, words(group)
    if "dates" in habits:
        first = np.datetime64("2019-01-01") + g.integers(0, 1500, n)
        order = "%d.%m.%Y" if g.random() < 0.5 else "%Y-%m-%d"
        dates = [d.item().strftime(order) for d in first]
        if "date for none" in habits:
            never = np.datetime64("9999-12-31").item().strftime(order)
            dates = [never if b else d for d, b in zip(dates, gone, strict=True)]
        written["seen"] = dates
        truth["seen"] = Truth("date", missing=int(gone.sum()) if "date for none" in habits else 0)
    if "word for none" in habits:
        word = ["k.A.", "-", "n/d"][int(g.integers(3))]
        lost = g.random(n) < 0.06
        written["size"] = [word if b else v for v, b in zip(written["size"], lost, strict=True)]
        truth["size"] = numbers([None if b else v for v, b in zip(size, lost, strict=True)])
    _more(g, n, habits, written, truth, gone, figure)
    written["site"] = [("north", "south", "west")[k % 3] for k in range(n)]
    truth["site"] = words(written["site"])
    ill = [int(v) for v in g.integers(0, 2, n)]
    classes = [["no", "yes"], ["ckd", "notckd"], ["0", "1"], ["FALSE", "TRUE"]]
    pair = classes[int(g.integers(1, 4)) if "other classes" in habits else 0]
    written["ill"] = [pair[v] for v in ill]
    truth["ill"] = numbers(ill) if pair == ["0", "1"] else words([word.lower() for word in written["ill"]])
    return written, truth


def _more(
    g: Rng,
    n: int,
    habits: set[str],
    written: dict[str, list[Any]],
    truth: dict[str, Truth],
    gone: Any,
    figure: Callable[[float, int], str],
) -> None:
    """Adds the columns that some habits have of their own."""
    comma = "decimal comma" in habits
    if "rare flag" in habits:
        for k, share in enumerate((0.15, 0.06)):
            flag = [int(u < share) for u in g.random(n)]
            written[f"flag{k}"], truth[f"flag{k}"] = flag, numbers(flag)
    if "code among few" in habits:
        code = int(g.choice([-9, -99, 9]))
        few = [code if b else int(v) for v, b in zip(g.integers(1, 3, n), gone, strict=True)]
        written["smokes"], truth["smokes"] = few, numbers([None if v == code else v for v in few])
    if "one code in several" in habits:
        for k in range(3):
            gas = [round(float(v), 1) for v in g.gamma(4, 5, n) + 1]
            lost = g.random(n) < 0.07
            written[f"gas{k}"] = ["-200" if b else figure(v, 1) for v, b in zip(gas, lost, strict=True)]
            truth[f"gas{k}"] = numbers([None if b else v for v, b in zip(gas, lost, strict=True)])
    if "thousands" in habits:
        cost = [int(v) for v in g.integers(1200, 98_000, n)]
        between = str(g.choice([".", " ", "\u202f"] if comma else [",", " ", "'"]))
        written["cost"], truth["cost"] = [f"{v:,}".replace(",", between) for v in cost], numbers(cost)
    if "percent" in habits:
        share = [round(float(v), 1) for v in g.uniform(2, 98, n)]
        written["sat"], truth["sat"] = [f"{figure(v, 1)}%" for v in share], numbers(share)
    if "names of identifiers" in habits:
        for name in ("NO2", "number of visits"):
            level = [int(v) for v in g.integers(0, 60, n)]
            written[name], truth[name] = level, numbers(level)
    if "gaps" in habits:
        grade = [["", "low", "high"][k] for k in g.choice(3, n, p=[0.4, 0.3, 0.3])]
        written["grade"], truth["grade"] = grade, words(grade)
    if "zeros before" in habits:
        ward = [["007", "012", "103", "044"][k] for k in g.integers(0, 4, n)]
        written["ward"], truth["ward"] = ward, words(ward)
    if "codes of diseases" in habits:
        icd = [["250.01", "401.9", "V45.81", "E11.9"][k] for k in g.integers(0, 4, n)]
        written["diag"], truth["diag"] = icd, words(icd)
    if "negative in parentheses" in habits:
        profit = [round(float(v), 2) for v in g.normal(0, 300, n)]
        plain = [figure(abs(v), 2) for v in profit]
        written["profit"] = [f"({text})" if v < 0 else text for text, v in zip(plain, profit, strict=True)]
        truth["profit"] = numbers(profit)
    if "triangles" in habits:
        change = [round(float(v), 1) for v in g.normal(0, 30, n)]
        below = str(g.choice(["\u25b3", "\u25b2", "\u25b3 "]))
        written["change"] = [f"{below}{figure(-v, 1)}" if v < 0 else figure(v, 1) for v in change]
        truth["change"] = numbers(change)
    if "years as names" in habits:
        for year in ("2018", "2019", "2020"):
            rate = [round(float(v), 1) for v in g.uniform(2, 60, n)]
            written[year], truth[year] = [figure(v, 1) for v in rate], numbers(rate)
    if "factor beside a number" in habits:
        word = str(g.choice(["K", "k", "万", " Mio"]))
        written["fans"] = [f"{figure(v, 1)}{word}" if v > 4 else str(int(1000 * v) + 20) for v in g.gamma(3, 2, n)]
        truth["fans"] = Truth("", said=True)
    if "lines in a field" in habits:
        said = [["fine", "first line\nsecond", 'he said "no"'][k] for k in g.integers(0, 3, n)]
        written["note"], truth["note"] = said, words([text.replace("\n", " ") for text in said])


HABITS = (
    "decimal comma", "unit", "some without unit", "code for none", "levels", "dates", "date for none", "word for none",
    "titles", "second names", "units below", "footer", "cp1252", "utf-16", "no names", "one too many", "all end",
    "quoted", "tab", "bar", "rare flag", "code among few", "one code in several", "thousands", "percent",
    "names of identifiers", "gaps", "zeros before", "codes of diseases", "negative in parentheses", "lines in a field",
    "other classes", "sep line", "returns", "blank lines", "mark", "row of totals",
    "years as names", "factor beside a number", "other separator", "blanks between", "row names",
)  # fmt: skip


LATER = ("triangles", "settings above", "widths below")  # drawn by themselves: what others draw stays as it was
_NOT_WITH = {
    "triangles": {"negative in parentheses", "cp1252"},
    "settings above": {"titles", "no names", "other separator", "sep line"},
    "widths below": {"second names", "units below", "no names"},
}
ROUND_RECORDS = (
    "settings above", "widths below",
    "no names", "titles", "second names", "units below", "footer", "row of totals", "all end", "one too many",
    "blank lines", "sep line", "quoted", "lines in a field", "gaps",
)  # fmt: skip
_WESTERN = {
    "mid": "m\u00eame",
    "Twn": "for\u00eat \u2013 l\u2019autre",
    "none": "n\u00e9ant",
    "万": "k",
    "\u202f": "\u00a0",  # what Windows-1252 has
}


def _western(text: str) -> str:
    """With signs that Windows-1252 alone has, and without those that it lacks."""
    for plain, western in _WESTERN.items():
        text = text.replace(plain, western)
    return text


def mutation(seed: int) -> Case:
    """The file of a seed."""
    g = np.random.default_rng([41, seed])
    habits = {habit for habit in HABITS if g.random() < 0.12}
    later = np.random.default_rng([42, seed])
    habits |= {habit for habit in LATER if later.random() < 0.08 and not habits & _NOT_WITH[habit]}
    if lone := habits & {"blanks between", "row names"}:  # files of programs, with nothing around their records
        habits -= {*ROUND_RECORDS, *sorted(lone)[1:]}
    n = int(g.integers(120, 320))
    written, truth = _columns(g, n, habits)
    separator = "\t" if "tab" in habits else "|" if "bar" in habits else ";" if "decimal comma" in habits else ","
    if "other separator" in habits:
        separator = str(g.choice(["^", "~", "\x01", "\u00a6"]))
    if "blanks between" in habits:
        separator = " "
    names, target, owners = list(written), "ill", "site"
    rows = [list(row) for row in zip(*written.values(), strict=True)]
    refused = ""
    if "no names" in habits:
        truth = {f"column {names.index(name) + 1}": each for name, each in truth.items()}
        target, owners = (f"column {names.index(name) + 1}" for name in (target, owners))
        head = list[list[Any]]()
    else:
        head = [names]
        if "titles" in habits:
            head = [["Export of the ward"], ["Period", "2024"][: 1 + int(g.integers(2))], *head]
        if "second names" in habits:
            head.append([f"What is {name}" for name in names])
        elif "widths below" in habits:
            head.append([f"{4 + k % 17}{'nsd'[k % 3]}" for k in range(len(names))])
        elif "units below" in habits:
            head.append([{"size": "cm", "weight": "kg", "visits": "per year"}.get(name, "") for name in names])
        if "settings above" in habits:
            head = [["LOG5", "7", "12.1", *[f"set {k}" for k in range(len(names))]], *head]
    if "footer" in habits:
        rows.append([f"Total of {n}"])
    elif "row of totals" in habits:
        rows.append(["Total", *[""] * (len(names) - 2), n])
    if "all end" in habits:
        head = [[*row, ""] if row is not names or g.random() < 0.5 else row for row in head]
        rows = [[*row, ""] for row in rows]
    elif "one too many" in habits and not habits & {"footer", "row of totals"}:
        for k in range(3, n, 9):
            rows[k] = [*rows[k], ""]
        refused = "as many fields as there are columns"
    if "row names" in habits:
        rows = [[k, *row] for k, row in enumerate(rows, 1)]
    raw = text_of([*head, *rows], separator)
    if "quoted" in habits:
        raw = raw.replace(names[0], f'"{names[0]}"', 1)
    if "blank lines" in habits and "lines in a field" not in habits:
        raw = "".join(line + "\n" * (1 + (k % 40 == 20)) for k, line in enumerate(raw.split("\n")))
    if "sep line" in habits and "titles" not in habits:
        raw = f"sep={separator}\n{raw}"
    if "returns" in habits:
        raw = raw.replace("\n", "\r\n")
    if "mark" in habits and not habits & {"utf-16", "cp1252"}:
        raw = "\ufeff" + raw
    encoding = "utf-16" if "utf-16" in habits else "cp1252" if "cp1252" in habits else "utf-8"
    if encoding == "cp1252":
        raw = _western(raw)
        place = f"column {names.index('group') + 1}" if "no names" in habits else "group"
        truth[place] = Truth("category", values={_western(value): k for value, k in truth[place].values.items()})
    return Case(
        f"{seed} {', '.join(sorted(habits)) or 'plain'}",
        raw.encode(encoding),
        target,
        truth,
        n,
        3 if refused else 1,
        refused,
        tuple(name for name, each in truth.items() if each.said),
        owners,
    )
