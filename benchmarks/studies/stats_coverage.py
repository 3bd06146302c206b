"""How often intervals hold the truth: of every kind of answer, beside intervals that do not know the noise.

Records are drawn from a data set (or made up); about the data the truth is the answer without noise on the records that
were drawn, about the population that on all of them, of which records are drawn with replacement. Noise has the
deviation of the ideal Gaussian law, rounded to whole grid steps, of which it is hundreds of thousands wide.
"""

import csv
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np

from dpmpc.benchmarks.result_file import replace_rows
from dpmpc.benchmarks.studies.stats_models import Judged, judged
from dpmpc.outcome import Answer, Level, Number
from dpmpc.privacy.gaussian import gaussian_scale
from dpmpc.records.sets import find_file
from dpmpc.statistics.cells import Field, RecordFields, Values
from dpmpc.statistics.columns import Columns, Quantity
from dpmpc.statistics.scores import ScoreModel
from dpmpc.statistics.tables import Tables

LOW, HIGH = 0.93, 0.97
COUNTED = (": count", ": records")  # of these records, about no population
ABOUT: tuple[Literal["data", "population"], ...] = ("data", "population")
NAIVE = 5  # in every so many releases intervals that do not know the noise are made too
ADULT = (
    "age workclass fnlwgt education education-num marital-status occupation relationship race sex capital-gain "
    "capital-loss hours-per-week native-country income"
).split()
ADULT_BOUNDS: dict[str, list[float] | list[str]] = {
    "age": [17.0, 90.0], "education-num": [1.0, 16.0], "hours-per-week": [1.0, 99.0], "capital-gain": [0.0, 20000.0],
    "sex": ["Female", "Male"], "race": ["White", "Black", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other"],
    "income": ["<=50K", ">50K"],
}  # fmt: skip
MADE_BOUNDS: dict[str, list[float] | list[str]] = {
    "age": [17.0, 90.0], "education-num": [1.0, 16.0], "hours-per-week": [1.0, 99.0], "capital-gain": [0.0, 20000.0],
    "sex": ["Female", "Male"], "race": ["White", "Black", "rare"], "income": ["<=50K", ">50K"],
}  # fmt: skip
QUESTIONS = {
    "tables": ["table(race) by income", "table(sex, income)", "count by sex"],
    "numbers": ["mean(age) by income", "sd(age) by income", "mean(hours-per-week) where sex = Female"],
    "heavy tail": ["mean(capital-gain)", "hist(capital-gain, cells=octaves)"],
    "quantiles": ["median(age) by sex", "quantiles(hours-per-week, 0.1, 0.9)"],
    "models": ["corr(age, hours-per-week)", "lm(hours-per-week, age, education-num)"],
    "survival": ["km(hours-per-week, income, bins=20) by sex"],
    "all": ["table1 by income"],
    "two by two": ["or(income, sex)", "rr(income, sex)", "rd(income, sex)", "or(income, sex, strata=race)"],
    "comparisons": ["ttest(age) by sex", "ttest(hours-per-week) by race", "anova(age) by race"],
    "spread": ["var(age) by sex", "iqr(age) by sex", "iqr(hours-per-week, leaves=64)"],
    "categories": ["lm(hours-per-week, sex, age)", "corr(age, sex, hours-per-week)"],
}
TESTS = (
    "or(income, sex)", "or(income, sex, strata=race)", "rr(income, sex)", "rd(income, sex)", "chisq(race, sex)",
    "chisq(sex, income)", "trend(income, age, age=[30, 45, 60])", "ttest(age) by sex", "ttest(age) by race",
    "anova(age) by race",
)  # fmt: skip


def adult(folder: Path | None) -> dict[str, list[str]]:
    """Columns of adult.data and adult.test as texts. Errors: UsageError where they are not there."""
    rows: list[list[str]] = []
    for name in ("adult.data", "adult.test"):
        with find_file(f"adult/{name}", folder).open(encoding="utf-8") as file:
            rows += [[cell.strip().rstrip(".") for cell in row] for row in csv.reader(file) if len(row) == len(ADULT)]
    return {name: [row[k] for row in rows] for k, name in enumerate(ADULT)}


def made(n: int = 40000) -> dict[str, list[str]]:
    """Made-up records with the shape of such data."""
    rng = np.random.default_rng(1)
    rich = rng.random(n) < 0.24
    columns = {
        "age": np.rint(17 + rng.gamma(4, 5.5, n) + 5 * rich), "education-num": rng.integers(1, 17, n),
        "hours-per-week": np.where(rng.random(n) < 0.5, 40, rng.integers(1, 99, n)),
        "capital-gain": np.where(rng.random(n) < 0.92, 0, np.rint(rng.lognormal(8, 1, n))),
        "sex": np.where(rng.random(n) < 0.33, "Female", "Male"),
        "race": rng.choice(["White", "Black", "rare", "?"], n, p=[0.85, 0.12, 0.01, 0.02]),
        "income": np.where(rich, ">50K", "<=50K"),
    }  # fmt: skip
    return {name: [str(value) for value in column] for name, column in columns.items()}


def records_of(texts: dict[str, list[str]], columns: Columns) -> RecordFields:
    """The records as blocks read them."""
    values: dict[Field, Values] = {}
    for column in columns.columns:
        cells = texts[column.name]
        if isinstance(column, Quantity):
            values[column] = np.array([float(cell) if cell != "?" else np.nan for cell in cells])
        else:
            known = {level: k for k, level in enumerate(column.levels)}
            values[column] = np.array([-1 if cell == "?" else known.get(cell, -2) for cell in cells])
    return RecordFields(len(next(iter(texts.values()))), values)


@dataclass
class CoverageTally:
    """Of one kind of answer: numbers that were given, that held the truth, and that would have without the noise.
    `lines`: the same of every line alone, [given, held], as one line's may hide among others."""

    releases: int
    given: int = 0
    held: int = 0
    refused: int = 0
    conservative: bool = False
    naive: list[bool] = field(default_factory=list)
    lines: dict[tuple[str, ...], list[int]] = field(default_factory=lambda: defaultdict(lambda: [0, 0]))

    def count(self, line: tuple[str, ...], number: Number, truth: float | None) -> None:
        """Counts an interval."""
        held = _holds(number, truth)
        if held is None:
            self.refused += 1
            return
        self.lines[line][0] += 1
        self.lines[line][1] += held
        self.given += 1
        self.held += held
        self.conservative |= number.note == "conservative"

    def count_naive(self, number: Number, truth: float | None) -> None:
        """Counts an interval that does not know the noise."""
        held = _holds(number, truth)
        if held is not None:
            self.naive.append(held)

    @property
    def share(self) -> float:
        return self.held / self.given if self.given else float("nan")

    @property
    def worst(self) -> float:
        """The share of the line that holds it most rarely, of those with an estimate in most releases."""
        shares = [held / given for given, held in self.lines.values() if 2 * given > self.releases]
        return min(shares, default=float("nan"))

    @property
    def missed(self) -> float:
        """The part of releases in which a line's interval misses, of the line where that is oftenest; where there is no
        estimate nothing is missed."""
        return max(((given - held) / self.releases for given, held in self.lines.values()), default=0.0)

    @property
    def verdict(self) -> str:
        """Whether it keeps what is said of it: lines together to 2.5 deviations of the simulation, each to 4."""
        if not self.given:
            return "refused"
        one = (0.05 * 0.95 / self.releases) ** 0.5
        low = self.share < LOW - 2.5 * (0.05 * 0.95 / self.given) ** 0.5
        low |= self.worst < LOW - 4 * one or self.missed > 1 - LOW + 4 * one
        return "TOO LOW" if low else "conservative" if self.share > HIGH or self.conservative else "kept"


def coverage(
    whole: RecordFields,
    columns: Columns,
    asked: list[str],
    n: int,
    epsilon: float,
    repeat: int,
    seed: int = 1,
    models: dict[str, ScoreModel] | None = None,
) -> dict[tuple[str, str], CoverageTally]:
    """Tallies by what intervals are about and kind of answer, over `repeat` draws of n records and of the noise."""
    rng = np.random.default_rng(seed)
    tables = Tables.of(columns, asked, models=models)
    sigma = gaussian_scale(epsilon, 1e-5, tables.layout.distance((n,)).l2)
    values = {f: whole.values[f] for f in tables.layout.fields}
    everyone = tables.answers(tables.layout.encode(RecordFields(whole.n, values))[0], 0.0, (whole.n,))
    found: dict[tuple[str, str], CoverageTally] = defaultdict(lambda: CoverageTally(repeat))
    for k in range(repeat):
        rows = rng.integers(0, whole.n, n)
        total = tables.layout.encode(RecordFields(n, {f: v[rows] for f, v in values.items()}))[0].astype(np.float64)
        noisy = total + np.rint(rng.normal(0, sigma, len(total)))
        for about in ABOUT:
            level = Level(about=about)
            truth = everyone if about == "population" else tables.answers(total, 0.0, (n,), level)
            answers = tables.answers(noisy, sigma, (n,), level)
            for kind, line, number, right in lines_of(answers, truth):
                found[about, kind].count(line, number, right.estimate)
            if k % NAIVE:
                continue
            for kind, _, number, right in lines_of(tables.answers(noisy, 0.0, (n,), level), truth):
                found[about, kind].count_naive(number, right.estimate)
    return dict(found)


def nulls(
    whole: RecordFields, columns: Columns, n: int, epsilon: float, repeat: int, seed: int = 1
) -> list[dict[str, object]]:
    """How often p is at most .05 where no column depends on another: each is drawn from the records by itself. A row a
    test; `given`: releases in which it had a p."""
    rng, rows = np.random.default_rng([seed, n, round(1000 * epsilon)]), []
    for question in TESTS:
        tables = Tables.of(columns, [question])
        sigma = gaussian_scale(epsilon, 1e-5, tables.layout.distance((n,)).l2)
        found: dict[str, list[bool]] = defaultdict(list)
        for _ in range(repeat):
            values = {f: whole.values[f][rng.integers(0, whole.n, n)] for f in tables.layout.fields}
            total = tables.layout.encode(RecordFields(n, values))[0] + np.rint(rng.normal(0, sigma, tables.coordinates))
            for line in tables.answers(total, sigma, (n,), Level(about="population"))[0].lines:
                if line.statistic == "p" and line.number.estimate is not None:
                    found[" ".join(line.labels)].append(line.number.estimate <= 0.05)
        rows += [
            {"question": question, "line": line, "n": n, "epsilon": epsilon, "releases": repeat, "given": len(each),
             "rejected": round(float(np.mean(each)), 4)}
            for line, each in (found or {"": []}).items() if each
        ]  # fmt: skip
    return rows


def lines_of(*answers: tuple[Answer, ...]) -> Iterator[tuple]:  # type: ignore[type-arg]
    """(kind, the line's name, its number in each of some answers to the same questions) of lines that are in all."""
    for answer in zip(*answers, strict=True):
        what = answer[0].question.split("(")[0].split(" ")[0]
        each = [{(*line.labels, line.statistic): line.number for line in one.lines} for one in answer]
        for name in each[0]:
            if all(name in other for other in each[1:]):
                yield (f"{what}: {name[-1]}", (answer[0].question, *name), *(other[name] for other in each))


def _holds(number: Number, truth: float | None) -> bool | None:
    """Whether the interval holds the truth; None without an estimate, or a truth."""
    if number.estimate is None or number.low is None or number.high is None or truth is None:
        return None
    slack = 1e-9 * max(1.0, abs(truth))
    return number.low - slack <= truth <= number.high + slack


def run(
    data: str,
    folder: Path | None,
    repeat: int,
    sizes: tuple[int, ...],
    epsilons: tuple[float, ...],
    only: tuple[str, ...] = (),
    out: Path | None = None,
) -> int:
    """Prints a line a kind of answer; how many are too low. `only`: of these groups of questions; `out`: a CSV file
    whose rows of the same group, number of records and epsilon become these."""
    columns = Columns.of_bounds(ADULT_BOUNDS if data == "adult" else MADE_BOUNDS)
    texts = adult(folder) if data == "adult" else made()
    whole = records_of(texts, columns)
    low = 0
    print(
        f"{data}, {whole.n} records, {repeat} releases each; about; share that holds the truth, of the worst line; "
        "misses of the worst line; naive; no estimate"
    )
    of_columns = Judged(columns, {}, whole)
    everything = [(name, asked, of_columns) for name, asked in QUESTIONS.items()]
    everything += [(f"of {kind}", ["evaluate(m)"], judged(texts, kind)) for kind in ("two", "several", "number")]
    for name, asked, on in everything:
        if only and name not in only:
            continue
        for n in sizes:
            for epsilon in epsilons:
                found = coverage(on.records, on.columns, asked, n, epsilon, repeat, models=on.models)
                low += report(name, n, epsilon, found)
                if out is not None:
                    replace_rows(out, rows_of(data, name, n, epsilon, found), ("data", "group", "n", "epsilon"))
    return low


def rows_of(
    data: str, name: str, n: int, epsilon: float, found: dict[tuple[str, str], CoverageTally]
) -> list[dict[str, object]]:
    """A row a kind of answer."""
    return [
        {
            "data": data, "group": name, "n": n, "epsilon": epsilon, "releases": tally.releases, "about": about,
            "kind": kind, "given": tally.given, "refused": tally.refused, "share": round(tally.share, 4),
            "worst": round(tally.worst, 4), "missed": round(tally.missed, 4),
            "naive": round(float(np.mean(tally.naive)), 4) if tally.naive else float("nan"), "verdict": tally.verdict,
        }
        for (about, kind), tally in found.items()
        if about == "data" or not kind.endswith(COUNTED)
    ]  # fmt: skip


def report(name: str, n: int, epsilon: float, found: dict[tuple[str, str], CoverageTally]) -> int:
    """Prints a line a kind of answer; how many are too low."""
    low = 0
    for (about, kind), tally in found.items():
        if about == "population" and kind.endswith(COUNTED):
            continue
        low += tally.verdict == "TOO LOW"
        naive = float(np.mean(tally.naive)) if tally.naive else float("nan")
        print(
            f"{name:10} n={n:<6} eps={epsilon:<4} {about:10} {kind:26} {tally.share:6.3f} "
            f"{tally.worst:6.3f} {tally.missed:6.3f} {naive:6.3f} {tally.refused:7} {tally.verdict}",
            flush=True,
        )
    return low
