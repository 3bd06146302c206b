"""Answers as a paper prints them: Table 1, and tables of effects with interval and p-value side by side.

A layout and no more: every number is one that was opened or an answer's, rounded to what the noise leaves of it, so it
costs nothing. Counts are whole numbers, as they are of people; what noise did is said below in its own deviations, not
in each cell. A row or a column of `(other)` or `(missing)` whose records the noise could have made is left out, and
named below; `everything` keeps it.

Where no test was asked for, the last column says how far the groups lie apart: the standardised mean difference, of the
numbers that the table has already.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from dpmpc.lazy import dataclass
from dpmpc.outcome import Answer, Number, Outcome
from dpmpc.show.forms import grid, said_of
from dpmpc.show.numbers import NOTHING_TOLD as _NONE
from dpmpc.show.numbers import shown
from dpmpc.show.tables import ShownTable

REST = ("(other)", "(missing)")  # levels that a public list of levels leaves
NOTHING = 3.0  # deviations of its noise: a count of no more may be of nobody
DASH = "–"
_RANKS = ("quantile 0.25", "median", "quantile 0.75")
_TESTS = ("ttest", "anova", "chisq")

Labels = tuple[str, ...]


def tables(outcome: Outcome, *, everything: bool = False) -> tuple[ShownTable, ...]:
    """A table of every answer; medians and p-values of a column stand in the Table 1 of the same groups, where there
    is one."""
    answers = outcome.answers
    taken = {id(one) for first in answers if is_table1(first) for one in _beside(first, answers)}
    said = tuple(outcome.about)
    made = []
    for answer in answers:
        if id(answer) in taken:
            continue
        if is_table1(answer):
            made.append(_Table1(answer, _beside(answer, answers), everything).table(said))
        else:
            alone = replace(outcome, answers=(answer,), level=outcome.held)
            made.append(effects(answer, (said_of(alone), *map(_promised, said)), everything=everything))
    return tuple(made)


def is_table1(answer: Answer) -> bool:
    """Whether an answer has a row of words for each column and level."""
    return answer.headers[int(answer.grouped) :] == ("column", "level") and answer.what in ("", "table1")


def _beside(first: Answer, answers: Sequence[Answer]) -> list[Answer]:
    """The answers whose numbers stand in that table: quantiles and tests of one of its columns in the same groups."""
    group = first.headers[0] if first.grouped else None
    columns = {line.labels[-2] for line in first.lines}
    found = []
    for each in answers:
        if " where " in each.question or each is first:
            continue
        by = each.headers[0] if each.grouped else None
        same = by == group and len(each.columns) == 1 and each.columns[0] in columns
        if (same and each.what in ("median", "quantiles", *_TESTS)) or (
            group is not None and each.what == "chisq" and len(each.columns) == 2 and group in each.columns
            and set(each.columns) - {group} <= columns
        ):  # fmt: skip
            found.append(each)
    return found


@dataclass(frozen=True)
class _Table1:
    """One Table 1: its answer, those beside it, and whether what may be nobody is shown too."""

    answer: Answer
    beside: Sequence[Answer]
    everything: bool

    def table(self, said: Sequence[str]) -> ShownTable:
        of, groups, tests = self._numbers(), self._groups(), self._p()
        columns = list(dict.fromkeys(line.labels[-2] for line in self.answer.lines))
        sizes = self._sizes(groups)
        shown = [g for g in groups if self.everything or g[:1] not in {(r,) for r in REST} or _somebody(sizes.get(g))]
        hidden = [f"{self.answer.headers[0]} {g[0]}" for g in groups if g not in shown]
        whole = len(groups) > 1
        compared = [g for g in shown if g[:1] not in {(r,) for r in REST}]
        apart = {} if tests or len(compared) < 2 else {c: self._apart(of, compared, sizes, c) for c in columns}
        p = tests or {c: DASH if d is None else f"{d[0]:.2f}" for c, d in apart.items()}
        rows: list[tuple[str, ...]] = []
        inner, left_out = set[int](), list[str]()
        if sizes:
            counts = [_whole(sizes[g]) for g in shown]
            rows.append(("N", *([_whole(_sum(list(sizes.values())))] if whole else []), *counts, *([""] if p else [])))
        kinds = set[str]()
        for column in columns:
            levels = list(dict.fromkeys(line.labels[-1] for line in self.answer.lines if line.labels[-2] == column))
            tested = [p.get(column, "")] if p else []
            if levels == [""]:
                for kind, name in (("mean", "mean (SD)"), ("median", "median [Q1, Q3]")):
                    if not any((g, column, "", kind) in of for g in groups):
                        continue
                    kinds.add(kind)
                    every = [self._overall(of, groups, sizes, column)] if whole and kind == "mean" else []
                    every += [""] if whole and kind == "median" else []  # ranks of groups do not give those of all
                    cells = [_number_cell(of, g, column, kind) for g in shown]
                    rows.append((f"{column}, {name}", *every, *cells, *tested))
                    tested = [""] if p else []
                continue
            kinds.add("count")
            rows.append((f"{column}, n (%)", *([""] * (len(shown) + whole)), *tested))
            for level in levels:
                every_count = _sum([of[g, column, level, "count"] for g in groups])
                if level in REST and not self.everything and not _somebody(every_count):
                    left_out.append(f"{column} {level}")
                    continue
                inner.add(len(rows))
                cells = [_count_cell(of[g, column, level, "count"], sizes.get(g)) for g in shown]
                every = [_count_cell(every_count, _sum(list(sizes.values())))] if whole else []
                rows.append((level, *every, *cells, *([""] if p else [])))
        names = [self._title(g) for g in shown]
        head = ("", *(["Overall"] if whole else []), *names, *([("p" if tests else "SMD")] if p else []))
        thin = any(DASH in cell for row in rows for cell in row[1:])
        alike = [d[1] for d in apart.values() if d is not None]
        notes = tuple(self._notes(kinds, [*hidden, *left_out], whole, thin, bool(tests), alike, said))
        return ShownTable(head, tuple(rows), "Table 1", 1, notes, frozenset(inner))

    def _numbers(self) -> Mapping[tuple[Labels, str, str, str], Number]:
        """By group, column, level and statistic."""
        found = {
            (line.labels[:-2], line.labels[-2], line.labels[-1], line.statistic): line.number
            for line in self.answer.lines
        }
        for each in self.beside:
            if each.what in ("median", "quantiles"):
                for line in each.lines:
                    found[line.labels, each.columns[0], "", line.statistic] = line.number
        return found

    def _groups(self) -> list[Labels]:
        return list(dict.fromkeys(line.labels[:-2] for line in self.answer.lines))

    def _title(self, group: Labels) -> str:
        return f"{self.answer.headers[0]} = {group[0]}" if group else "All"

    def _sizes(self, groups: Sequence[Labels]) -> dict[Labels, Number]:
        """How many records each group has: the sum over the levels of the first column that has levels; none where
        none has."""
        counted = [line for line in self.answer.lines if line.statistic == "count"]
        if not counted:
            return {}
        first = counted[0].labels[-2]
        return {
            g: _sum([line.number for line in counted if line.labels[:-2] == g and line.labels[-2] == first])
            for g in groups
        }

    def _p(self) -> dict[str, str]:
        """The p-value of each column that was tested."""
        found = {}
        for each in self.beside:
            values = [line.number for line in each.lines if line.statistic == "p"]
            if each.what in _TESTS and len(values) == 1:
                group = self.answer.headers[0]
                (column,) = (name for name in each.columns if name != group)
                found[column] = p_value(values[0])
        return found

    def _apart(
        self, of: Mapping[tuple[Labels, str, str, str], Number], groups: Sequence[Labels],
        sizes: Mapping[Labels, Number], column: str,
    ) -> tuple[float, float] | None:  # fmt: skip
        """(the standardised mean difference of a column between groups, of more than two the mean over their pairs;
        what the noise alone would make it of groups that are alike); None where a group has no estimate.

        Of numbers it is |m1 - m2| / sqrt((s1^2 + s2^2) / 2). Of categories it is the distance of the shares p, without
        the last, under the mean of their covariances diag(p) - p p' (Yang and Dalton, SAS Global Forum 335, 2012); who
        is missing counts in no share, nor who may be nobody. Noise: to first order."""
        levels = [
            level for level in dict.fromkeys(line.labels[-1] for line in self.answer.lines if line.labels[-2] == column)
            if level not in REST
            or (level == "(other)" and _somebody(_sum([of[g, column, level, "count"] for g in groups])))
        ]  # fmt: skip
        found = list[tuple[float, float]]()
        for first, second in itertools.combinations(groups, 2):
            if (first, column, "", "mean") in of:
                found.append(_numbers_apart(*(_moments(of, g, column) for g in (first, second))))
                continue
            if not all(_somebody(sizes.get(g)) for g in (first, second)):
                return None
            shares = [[of[g, column, level, "count"] for level in levels] for g in (first, second)]
            found.append(_shares_apart(*shares))
        if any(math.isnan(d) for d, _ in found):
            return None
        return math.fsum(d for d, _ in found) / len(found), max(w for _, w in found)

    def _overall(
        self, of: Mapping[tuple[Labels, str, str, str], Number], groups: Sequence[Labels],
        sizes: Mapping[Labels, Number], column: str,
    ) -> str:  # fmt: skip
        """Mean and deviation over all groups, as their sizes weigh them; a dash where a size or a mean is not known."""
        parts, noises = [], []
        for g in groups:
            n, mean, sd = (
                sizes[g].estimate if g in sizes else None,
                of[g, column, "", "mean"].estimate,
                of[g, column, "", "sd"].estimate,
            )
            if g[:1] in {(r,) for r in REST} and not _somebody(sizes.get(g)):
                continue  # of nobody, as far as the noise tells
            if n is None or mean is None or sd is None:
                return DASH
            parts.append((n, mean, sd))
            noises.append((n, of[g, column, "", "mean"].noise or 0.0))
        n = sum(each[0] for each in parts)
        if not parts or n <= 1:
            return DASH
        mean = sum(k * m for k, m, _ in parts) / n
        spread = sum((k - 1) * s**2 + k * (m - mean) ** 2 for k, m, s in parts) / (n - 1)
        return _mean(mean, math.sqrt(max(spread, 0.0)), math.hypot(*(k / n * w for k, w in noises)))

    def _notes(
        self, kinds: set[str], hidden: Sequence[str], whole: bool, thin: bool, tested: bool,
        alike: Sequence[float], said: Sequence[str],
    ) -> list[str]:  # fmt: skip
        found = []
        if noise := self._noise():
            found.append(f"Noise of the privacy promise is in every number, with standard deviation {noise}.")
        if whole and "mean" in kinds:
            found.append("Overall means weigh groups by N.")
        if hidden:
            counted = ", but counted in Overall" if whole else ""
            found.append(f"Not shown, as they may be nobody{counted}: {', '.join(hidden)}.")
        if thin:
            found.append(f"{DASH}: too few records for an estimate under the noise.")
        if tested:
            found.append("p: of independent records, with the noise in it.")
        if alike:
            found.append(
                f"SMD: standardised mean difference; of groups that are alike the noise makes {_range(alike)} of it."
            )
        return [*found, *map(_promised, said)]

    def _noise(self) -> str:
        """The deviations of the noise, by kind of number."""
        groups = {g for g in self._groups() if g[:1] not in {(r,) for r in REST}}
        mine = [line for line in self.answer.lines if line.labels[:-2] in groups and line.labels[-1] not in REST]
        parts = []
        for statistic, name in (("count", "of counts"), ("percent", "of percentages")):
            known = [line.number.noise for line in mine if line.statistic == statistic and line.number.noise]
            if known:
                parts.append(f"{_range(known)} {name}")
        for column in dict.fromkeys(line.labels[-2] for line in mine if line.statistic == "mean"):
            known = [
                line.number.noise
                for line in mine
                if line.statistic == "mean" and line.labels[-2] == column and line.number.noise
            ]
            if known:
                parts.append(f"{_range(known)} of the means of {column}")
        return ", ".join(parts)


def _moments(
    of: Mapping[tuple[Labels, str, str, str], Number], group: Labels, column: str
) -> tuple[float, float, float]:
    """(mean, deviation, noise of the mean); NaN where there is no estimate."""
    mean, sd = of[group, column, "", "mean"], of[group, column, "", "sd"]
    if mean.estimate is None or sd.estimate is None:
        return math.nan, math.nan, math.nan
    return mean.estimate, sd.estimate, mean.noise or 0.0


def _numbers_apart(first: tuple[float, float, float], second: tuple[float, float, float]) -> tuple[float, float]:
    (m, s, a), (n, t, b) = first, second
    spread = math.hypot(s, t) / math.sqrt(2)
    if not spread > 0:  # NaN too
        return math.nan, math.nan
    return abs(m - n) / spread, math.hypot(a, b) / spread


def _shares_apart(first: Sequence[Number], second: Sequence[Number]) -> tuple[float, float]:
    import numpy as np  # which who only prints other tables does not wait for

    there = [k for k, pair in enumerate(zip(first, second, strict=True)) if any((n.estimate or 0.0) > 0 for n in pair)]
    spread = np.zeros((len(there), len(there)))
    noise, shares = spread.copy(), []
    for side in (first, second):
        counts = np.array([max(side[k].estimate or 0.0, 0.0) for k in there])
        if not counts.sum() > 0:
            return math.nan, math.nan
        p = counts / counts.sum()
        shares.append(p)
        spread += (np.diag(p) - np.outer(p, p)) / 2
        moved = (np.eye(len(p)) - np.outer(p, np.ones(len(p)))) / counts.sum()  # a share, by each count
        noise += moved * [(side[k].noise or 0.0) ** 2 for k in there] @ moved.T
    inverse, d = np.linalg.pinv(spread[:-1, :-1]), (shares[0] - shares[1])[:-1]
    return math.sqrt(max(float(d @ inverse @ d), 0.0)), math.sqrt(max(float(np.trace(inverse @ noise[:-1, :-1])), 0.0))


def _promised(text: str) -> str:
    """A line of what stands before the answers: the promise first, which begins with its epsilon or with an if."""
    return f"Privacy: {text}." if text.startswith(("epsilon", "if ")) else text


def _told(
    names: list[str], body: list[list[str]], labels: int
) -> tuple[list[str], tuple[tuple[str, ...], ...], list[str]]:
    """(head, rows, what was left out) of a table without the columns of `(other)` and `(missing)` and the rows that
    hold no estimate at all; a table that would have no row stays as it is."""
    kept = [
        k for k, name in enumerate(names)
        if k < labels or not name.endswith(REST) or any(row[k] not in ("", _NONE) for row in body)
    ]  # fmt: skip
    rows = [tuple(row[k] for k in kept) for row in body]
    full = [row for row in rows if any(cell not in ("", _NONE) for cell in row[labels:])]
    gone = [" ".join(filter(None, row[:labels])) for row in rows if row not in full] if full else []
    brief = gone if len(gone) < 4 else [f"{gone[0]} and {len(gone) - 1} more rows"]
    hidden = [name for k, name in enumerate(names) if k not in kept]
    return [names[k] for k in kept], tuple(full or rows), [*hidden, *brief]


def effects(answer: Answer, said: Sequence[str] = (), *, everything: bool = False) -> ShownTable:
    """A table of effects: a row each term, its estimate with the interval, and its p-values in columns of their own;
    how many records a group has beside its first row, or below where all are one group, and below too what is told of
    no row in particular. Of an answer that has neither terms nor p-values, its groups side by side."""
    of_terms = answer.headers[-2:] == ("term", "level")
    if not of_terms and all(line.statistic != "p" for line in answer.lines):
        names, body = grid(answer)
        labels = len(answer.headers) + 1 - answer.grouped
        names, cells, hidden = (names, tuple(map(tuple, body)), []) if everything else _told(names, body, labels)
        if hidden:
            said = (f"Not shown, as noise leaves no estimate: {', '.join(hidden)}.", *said)
        return _without_empty(ShownTable(tuple(names), cells, answer.question, labels, (*answer.notes, *said)))
    terms: dict[Labels, dict[str, Number]] = {}
    for line in answer.lines:
        terms.setdefault(line.labels, {})[line.statistic] = line.number
    sizes: dict[Labels, dict[str, Number]] = {}
    if of_terms:
        for whole in [each for each in terms if not each[-1]]:
            others = [each for each in terms if each[:-1] == whole[:-1] and each != whole]
            if len(others) == 1:  # the test of a term of one coefficient stands beside its ratio
                terms[others[0]] = terms.pop(whole) | terms[others[0]]
            elif terms[whole].keys() == {"count"}:  # of all records of a group
                sizes.setdefault(whole[:-2], {})[whole[-2]] = terms.pop(whole)["count"]
    kinds = [name for name in dict.fromkeys(name for found in terms.values() for name in found) if not _is_p(name)]
    ranged = {line.statistic for line in answer.lines if line.number.low is not None}
    apart = [labels for labels, found in terms.items() if ranged.isdisjoint(found) and not all(map(_is_p, found))]
    apart = apart if len(apart) < len(terms) else []
    below = [_in_words(labels, terms.pop(labels)) for labels in apart]  # what is told of no row in particular
    kinds = [name for name in kinds if any(name in found for found in terms.values())]
    tests = sorted({name for found in terms.values() for name in found if _is_p(name)})
    by_group = len(answer.headers) - 2 if sizes and () not in sizes else 0
    counted = list(dict.fromkeys(name for found in sizes.values() for name in found)) if by_group else []
    if sizes and not by_group:
        below.insert(0, _in_words((), sizes[()]))
    one = {labels[by_group:] for labels in terms}  # a term that is every row's need not stand in each
    labelled = by_group if by_group and len(one) == 1 else len(answer.headers)
    named = [f"adjusted {name}" if f"crude {name}" in kinds else name for name in kinds]
    head = (
        *answer.headers[:labelled], *counted,
        *(
            f"{name} [interval]" if kind in ranged else name
            for name, kind in zip(named, kinds, strict=True)
        ),
        *tests,
    )  # fmt: skip
    noise = [number.noise for found in sizes.values() for number in found.values() if number.noise]
    rows = list[tuple[str, ...]]()
    for each, found in terms.items():
        mine = sizes.pop(each[:by_group], {}) if counted else {}
        rows.append((
            *each[:labelled], *(_whole(mine[name]) if name in mine else "" for name in counted),
            *(_effect(found.get(name)) for name in kinds), *(p_value(found.get(name)) for name in tests),
        ))  # fmt: skip
    if counted and noise:
        below.insert(0, f"The noise of {', '.join(counted)} has standard deviation {_range(noise)}.")
    if by_group and labelled == by_group:
        below.insert(0, f"In every row: {' '.join(filter(None, one.pop()))}.")
    notes = (*below, *answer.notes, *said)
    made = ShownTable(head, tuple(rows), answer.question, labelled, notes)
    return _without_empty(made)


def _is_p(statistic: str) -> bool:
    """p, and p of some correction: p (Holm)."""
    return statistic == "p" or statistic.startswith("p (")


def _in_words(labels: Labels, found: Mapping[str, Number]) -> str:
    said = ", ".join(f"{name} {p_value(number) if _is_p(name) else shown(number)}" for name, number in found.items())
    return f"{', '.join(filter(None, labels))}: {said}" if labels else said


def _without_empty(table: ShownTable) -> ShownTable:
    """The table without columns of words that say nothing."""
    kept = [
        k for k in range(len(table.head))
        if k >= table.labels or k == 0 or any(row[k] for row in table.rows)
    ]  # fmt: skip
    labels = sum(k < table.labels for k in kept)
    rows = tuple(tuple(row[k] for k in kept) for row in table.rows)
    return ShownTable(tuple(table.head[k] for k in kept), rows, table.caption, labels, table.notes, table.inner)


def _effect(number: Number | None) -> str:
    if number is None:
        return ""
    return DASH if number.estimate is None and number.low is None else shown(number)


def p_value(number: Number | None) -> str:
    """A p-value as journals print it."""
    if number is None:
        return ""
    if number.estimate is None:
        return DASH
    return "<0.001" if number.estimate < 0.001 else f"{number.estimate:.3f}" if number.estimate < 0.1995 else (
        f"{number.estimate:.2f}"
    )  # fmt: skip


def _somebody(count: Number | None) -> bool:
    """Whether a count is of more than the noise makes of nobody."""
    if count is None or count.estimate is None:
        return False
    return count.estimate > max(NOTHING * (count.noise or 0.0), 0.5)


def _sum(numbers: Sequence[Number]) -> Number:
    """The sum of counts, whose noises are independent."""
    known = [n for n in numbers if n.estimate is not None]
    value = math.fsum(n.estimate or 0.0 for n in known)
    return Number(value, math.sqrt(math.fsum((n.noise or 0.0) ** 2 for n in known)), None, None)


def _whole(count: Number) -> str:
    """A count of people: a whole number, none below nobody."""
    return DASH if count.estimate is None else f"{max(0, round(count.estimate)):,}"


def _count_cell(count: Number, size: Number | None) -> str:
    if count.estimate is None:
        return DASH
    n = None if size is None else size.estimate
    if n is None or n < 1 or not _somebody(size):
        return _whole(count)
    share = min(max(100 * max(count.estimate, 0.0) / n, 0.0), 100.0)
    places = 0 if (count.noise or 0.0) > n / 100 else 1
    return f"{_whole(count)} ({share:.{places}f})"


def _number_cell(of: Mapping[tuple[Labels, str, str, str], Number], group: Labels, column: str, kind: str) -> str:
    if kind == "mean":
        mean, sd = of[group, column, "", "mean"], of[group, column, "", "sd"]
        if mean.estimate is None:
            return DASH
        return _mean(mean.estimate, sd.estimate, mean.noise or 0.0)
    low, middle, high = (of.get((group, column, "", name)) for name in _RANKS)
    if middle is None or middle.estimate is None:
        return DASH
    text = f"{middle.estimate:.4g}"
    if low is None or high is None or low.estimate is None or high.estimate is None:
        return text
    return f"{text} [{low.estimate:.4g}, {high.estimate:.4g}]"


def _mean(mean: float, sd: float | None, noise: float) -> str:
    """To the first digit of the noise, or of a thousandth of the deviation."""
    finest = max(noise, (sd or 0.0) / 1000) or abs(mean) / 1000 or 1.0
    places = min(max(-math.floor(math.log10(finest)), 0), 6)
    spread = DASH if sd is None else f"{sd:.{places}f}"
    return f"{mean:.{places}f} ({spread})"


def _range(values: Sequence[float]) -> str:
    low, high = f"{min(values):.2g}", f"{max(values):.2g}"
    return low if low == high else f"{low} to {high}"
