"""Models of an outcome on coded covariates: `logit`, `trend`, `poisson`, `ordinal`. Ratios with sets that know noise.

    logit(outcome, age, sex, age:sex, strata=site, age=[40, 60], sex=m)

One table of joint cells is opened, whatever the number of covariates (`dpmpc.statistics.joint`); which ratios it does
not reject is the work of `dpmpc.statistics.sets`. A number is coded in bands (`age=[40, 60]`: below, between, above), a
category by its levels, against the first or the one that is named (`sex=m`). Interactions bring their columns along.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpmpc.lazy import dataclass
from dpmpc.outcome import Answer, Forest, Line, Number, Shape
from dpmpc.outcome import Level as Intervals
from dpmpc.statistics.asking import Asking
from dpmpc.statistics.blocks import Part
from dpmpc.statistics.cells import Bins
from dpmpc.statistics.columns import Columns, Owners, Quantity
from dpmpc.statistics.compile import by_of
from dpmpc.statistics.families import Family, Logit, Ordinal, Poisson
from dpmpc.statistics.foresight import Expected, Foreseeing
from dpmpc.statistics.heterogeneity import Apart, inconsistency
from dpmpc.statistics.intervals import Floats, linear
from dpmpc.statistics.joint import Coded, counts, joint
from dpmpc.statistics.kind import QuestionKind, told
from dpmpc.statistics.options import Amount, Increasing, OfColumn, OfNumber, Option
from dpmpc.statistics.question import AskedQuestion
from dpmpc.statistics.reading import Reading
from dpmpc.statistics.scores import ScoreModel
from dpmpc.statistics.set_widths import foreseen
from dpmpc.statistics.sets import CellModel, CoefficientSet
from dpmpc.statistics.syntax import Token
from dpmpc.statistics.syntax import WrittenOption as Given

MOST_TERMS = 12
_SIGNS = 5  # coefficients whose signs are all tried
USEFUL, HOPELESS = 0.25, 1.0  # predicted standard errors of a log ratio
CONFOUNDED = 0.7  # a level's indicator may be explained by the others: then nothing is told of it
STRENGTH = Amount(low=1.0, high=1000.0)  # the largest ratio that is believed in, declared
ABOVE = 0.01  # of the records: so many counts beyond the bounds bend rate ratios
COMMON, VARYING, BETWEEN_OWNERS = "all owners, one effect", "all owners, effects vary", "between owners"
BETWEEN = (
    f"{COMMON}: adjusted for owner (a fixed effect); {VARYING}: the mean of owners' effects (random effects, "
    "DerSimonian-Laird, Hartung-Knapp), about other owners like these, from those whose own ratio the noise does not "
    "hide",
    "Q, I2 and p: whether the effect is one at all owners, with the noise in it; tau2: the variance of log ratios "
    "between owners",
)
NEAR = "approximate"  # of a point that is the least rejected value of the grid


@dataclass(frozen=True)
class LevelTerm(Option):
    """A level of a category."""

    column: str = ""

    def check(self, reading: Reading, given: Given) -> str:
        column = reading.columns[self.column]
        assert not isinstance(column, Quantity)
        return column.levels[reading.level(column, given.place)]


@dataclass(frozen=True, eq=False)
class Design:
    """The coding of covariates. `terms`: of each coefficient after the intercepts, (term, level); `matrix` (cells, B,
    B + coefficients), the cells of covariates with the last running fastest; `offset` (cells, B). Public."""

    columns: tuple[Coded, ...]
    terms: tuple[tuple[str, str], ...]
    matrix: Floats
    reference: tuple[tuple[str, str], ...]
    offset: Floats

    def of_term(self, name: str, first: int) -> list[int]:
        """The places of a term's coefficients, after `first` intercepts."""
        return [first + k for k, (term, _) in enumerate(self.terms) if term == name]


class Regression(QuestionKind):
    """The common part: how terms are written and coded, and how answers are made."""

    least, most = 1, 1 + MOST_TERMS
    options: ClassVar[Mapping[str, Option]] = {"strata": OfColumn(), "strength": STRENGTH}
    statistic: ClassVar[str] = "odds ratio"
    leading: ClassVar[int] = 1  # columns before the terms

    # -- how it is written ----------------------------------------------------------------------------------------
    def read(self, reading: Reading) -> tuple[tuple[str, ...], tuple[float, ...]]:
        parts = reading.written.parts
        first = self.read_outcome(reading, parts[: self.leading])
        found: list[str] = []
        for token in parts[self.leading :]:
            name = self._term(reading, token)
            if name in found or any(column in first for column in split(name, reading.columns)):
                reading.refuse(token, "each term is named once, and is not the outcome", "leave it out here")
            found.append(name)
        if not found:
            way = f"write {self.what_of(reading)}"
            reading.refuse(reading.written.what, f"{reading.what} needs an outcome and at least one covariate", way)
        if len(found) > MOST_TERMS:
            reading.refuse(parts[-1], f"a model has at most {MOST_TERMS} terms", "leave some out")
        return (*first, *found), ()

    def what_of(self, reading: Reading) -> str:
        return f"{reading.what}(outcome, covariate)"

    def read_outcome(self, reading: Reading, tokens: Sequence[Token]) -> tuple[str, ...]:
        """The outcome. Errors: it is no category of at least two levels."""
        found = reading.names(1, 1, False, tokens)
        column: Any = reading.columns[found[0]]
        if len(column.levels) < 2:
            reading.refuse(tokens[0], f"{reading.what} needs an outcome of two levels or more", "name another")
        return found

    def _term(self, reading: Reading, token: Token) -> str:
        if token.text in reading.columns:
            return reading.known(token)
        if ":" not in token.text:
            return reading.known(token)
        one, two = (part.strip() for part in token.text.split(":", 1))
        names = [reading.known(Token(part, token.kind, token.begin, token.end)) for part in (one, two)]
        if names[0] == names[1]:
            reading.refuse(token, "an interaction is of two columns", "name another")
        return ":".join(sorted(names))

    def option_of(self, reading: Reading, name: str) -> Option | None:
        """Besides the kind's own: bands of a number, the reference of a category, by the covariate's name."""
        if name in self.options:
            return self.options[name]
        if name not in reading.columns or name in [t.text for t in reading.written.parts[: self.leading]]:
            return None
        column = reading.columns[name]
        return Increasing() if isinstance(column, Quantity) else LevelTerm(column=column.name)

    def check(self, reading: Reading, query: AskedQuestion) -> None:
        named = {column for term in query.columns[self.leading :] for column in split(term, reading.columns)}
        self.check_offset(reading, query, named)
        strata = self.setting(query, "strata")
        for option in reading.written.options:
            name = option.name.text
            if name not in self.options and reading.columns[name].name not in {*named, *self.unshown(query)}:
                reading.refuse(option.name, "bands and references are of covariates", f"add {name} to the terms")
        if strata is not None and (strata in named or strata in query.columns or strata == query.by):
            place = next(o.place for o in reading.written.options if o.name.text == "strata")
            reading.refuse(place, "strata are another column than what is asked", "leave one of them out")
        if query.by in named:
            assert reading.written.by is not None
            reading.refuse(reading.written.by, "a group is another column than what is asked", "leave one of them out")
        self.parts(query, reading.columns, {})

    def check_offset(self, reading: Reading, query: AskedQuestion, named: set[str]) -> None:
        """Errors: an offset that cannot be one."""

    # -- what it needs --------------------------------------------------------------------------------------------
    def coded(self, query: AskedQuestion, columns: Columns) -> tuple[Coded, ...]:
        """The covariates, strata last."""
        names: list[str] = []
        for term in query.columns[self.leading :]:
            names += [name for name in split(term, columns) if name not in names]
        options = dict(query.options)
        found = []
        for name in (*names, *self.unshown(query)):
            cuts = options.get(name)
            found.append(Coded.of(name, columns, cuts if isinstance(cuts, tuple) else None))
        return tuple(found)

    def outcome(self, query: AskedQuestion, columns: Columns) -> tuple[Coded, ...]:
        """The columns of the outcome."""
        return (Coded.of(query.columns[0], columns),)

    def parts(self, query: AskedQuestion, columns: Columns, models: Mapping[str, ScoreModel]) -> tuple[Part, ...]:
        coded = (*self.outcome(query, columns), *self.coded(query, columns))
        return (joint(by_of(query, columns), coded, query.where),)

    def family(self, query: AskedQuestion, columns: Columns) -> Family:
        raise NotImplementedError

    def shaped(self, cells: Floats) -> Floats:
        """(covariates ..., J) the counts of the family's cells, of (outcome ..., covariates ...)."""
        return np.moveaxis(cells, 0, -1)

    def design(self, query: AskedQuestion, columns: Columns) -> Design:
        """The coding of the covariates."""
        coded, B = self.coded(query, columns), self.family(query, columns).predictors
        strata, options = self.setting(query, "strata"), dict(query.options)
        shape = [len(column.labels) for column in coded]
        places = np.array(list(np.ndindex(*shape)), dtype=np.int64).reshape(-1, len(shape))
        base: dict[str, int] = {}
        for column in coded:
            said = options.get(column.name)
            base[column.name] = column.labels.index(said) if isinstance(said, str) and said in column.labels else 0
        marks = {
            column.name: self.marks(query, column, places[:, k], base[column.name]) for k, column in enumerate(coded)
        }
        asked = query.columns[self.leading :]
        mains = [column.name for column in coded if column.name not in self.unshown(query)]
        crossed = [term for term in asked if term not in columns]
        terms: list[tuple[str, str]] = []
        x: list[Floats] = []
        for name in mains:
            for label, mark in marks[name]:
                terms.append((name, label))
                x.append(mark)
        for term in crossed:
            one, two = split(term, columns)
            for first, a in marks[one]:
                for second, b in marks[two]:
                    terms.append((term, f"{first} : {second}"))
                    x.append(a * b)
        if strata:
            for label, mark in marks[strata]:
                terms.append(("", label))
                x.append(mark)
        C = len(places)
        matrix = np.zeros((C, B, B + len(x)))
        matrix[:, :, :B] = np.eye(B)
        for k, each in enumerate(x):
            matrix[:, :, B + k] = each[:, None]
        reference = tuple((name, column.labels[base[name]]) for column in coded if (name := column.name) in mains)
        return Design(coded, tuple(terms), matrix, reference, self.offset(query, columns, coded, places, B))

    def unshown(self, query: AskedQuestion) -> tuple[str, ...]:
        """The coded columns that are no terms."""
        strata = self.setting(query, "strata")
        return (str(strata),) if strata else ()

    def marks(
        self, query: AskedQuestion, column: Coded, places: NDArray[np.int64], base: int
    ) -> list[tuple[str, Floats]]:
        """(level, (cells,) what a cell's place counts) of each coefficient of a column: here each level but one."""
        return [
            (label, (places == place).astype(np.float64)) for place, label in enumerate(column.labels) if place != base
        ]

    def offset(
        self, query: AskedQuestion, columns: Columns, coded: Sequence[Coded], places: NDArray[np.int64], predictors: int
    ) -> Floats:
        """(cells, B) what is added to predictors. Public."""
        return np.zeros((len(places), predictors))

    # -- what it says ---------------------------------------------------------------------------------------------
    def answer(self, asking: Asking) -> Answer:
        query, columns = asking.query, asking.columns
        design, family = self.design(query, columns), self.family(query, columns)
        outcome = self.outcome(query, columns)
        tables, missing, variance, alone = self.cells_of(asking, outcome, design.columns)
        lines: list[Line] = []
        for g, group in enumerate(asking.groups):
            flat = tables[g]
            many = [("records", flat.sum(), variance * flat.size * self.merged(outcome)),
                    ("incomplete records", missing[g], alone[g]), *self.events(flat, variance)]  # fmt: skip
            for name, value, v in many:
                if np.isfinite(value):
                    lines.append(Line((*group, name, ""), "count", linear(float(value), float(v), _of_data(asking))))
            for labels, statistic, number in (*self._crude(asking, family, design, flat, variance),
                                              *self._model(asking, family, design, flat, variance)):  # fmt: skip
                lines.append(Line((*group, *labels), statistic, number))
        notes = self.notes(asking, design, outcome)
        if asking.by_owner:
            apart = Apart(family, design.matrix, np.stack(tables), variance, design.offset)
            lines += self._between(asking, apart, design)
            notes = (*notes, *BETWEEN)
        return asking.made(("term", "level"), lines, *notes)

    def _crude(
        self, asking: Asking, family: Family, design: Design, flat: Floats, variance: float
    ) -> Iterator[tuple[tuple[str, str], str, Number]]:
        """The ratios of each term by itself, of the same records, where the model has more than it: its cells summed
        over the other covariates, and so with the noise of all of them."""
        query, shape = asking.query, [len(column.labels) for column in design.columns]
        mains = [column.name for column in design.columns if column.name not in self.unshown(query)]
        if len(mains) < 2 and self.setting(query, "strata") is None:
            return
        options = tuple((name, value) for name, value in query.options if name != "strata")
        for name in mains:
            alone = replace(query, columns=(*query.columns[: self.leading], name), options=options)
            small = self.design(alone, asking.columns)
            kept = [design.columns.index(column) for column in small.columns]
            rest = tuple(k for k in range(len(shape)) if k not in kept)
            cells = flat.reshape(*shape, -1).sum(axis=rest)
            order = sorted(kept)
            cells = cells.transpose(*(order.index(k) for k in kept), cells.ndim - 1).reshape(-1, flat.shape[-1])
            merged = variance * math.prod(shape[k] for k in rest)
            for labels, statistic, number in self._model(asking, family, small, cells, merged, tested=False):
                if statistic == self.statistic:
                    yield labels, f"crude {statistic}", number

    def _between(self, asking: Asking, apart: Apart, design: Design) -> Iterator[Line]:
        """What differs between owners, of every coefficient that is shown."""
        B, level = apart.family.predictors, asking.level
        shown = {B + k: each for k, each in enumerate(design.terms) if each[0]}
        table = apart.common(float(level.population))
        exact = not apart.variance and not level.population
        root = table.point() if apart.counts.sum() > 0 else None
        error = 1 - level.confidence ** (1 / level.answers)
        sets = [] if exact or apart.counts.sum() <= 0 else table.sets(list(shown), error)
        noise = None if root is None else replace(table, tau=0.0).deviations(root)
        for k, (place, labels) in enumerate(shown.items()):
            value = None if root is None else float(root[place])
            if sets:
                number = ratio_of(value, None if noise is None else float(noise[place]), sets[k])
            else:
                number = ratio_of(value, 0.0, None if value is None else CoefficientSet(value, value, value, 0))
            yield Line((COMMON, *labels), self.statistic, number)
            yield from between(asking, apart, place, labels, self.statistic)

    def cells_of(
        self, asking: Asking, outcome: Sequence[Coded], covariates: Sequence[Coded]
    ) -> tuple[list[Floats], Floats, float, Floats]:
        """(covariates' combinations, J) counts of each group; (groups,) incomplete records; the variance of each count,
        and that of incomplete ones (groups,)."""
        cells, missing, variance, alone = counts(asking, (*outcome, *covariates))
        shaped = [self.shaped(each) for each in cells]
        return [each.reshape(-1, each.shape[-1]) for each in shaped], missing, variance, alone

    def merged(self, outcome: Sequence[Coded]) -> float:
        """How many cells that were opened one of the family's has."""
        return 1.0

    def events(self, flat: Floats, variance: float) -> list[tuple[str, float, float]]:
        """(name, how many, variance) of what is counted besides records."""
        return [("events", float(flat[:, -1].sum()), variance * len(flat))]

    def _model(
        self, asking: Asking, family: Family, design: Design, flat: Floats, variance: float, tested: bool = True
    ) -> Iterator[tuple[tuple[str, str], str, Number]]:
        B, level = family.predictors, asking.level
        error = 1 - level.confidence ** (1 / level.answers)
        tables = [CellModel(family, design.matrix, flat, variance, design.offset, tau) for tau in (0.0, 1.0)]
        table, sampled = tables[int(level.population)], tables[1]
        shown = [B + k for k, (term, _) in enumerate(design.terms) if term]
        exact = not variance and not level.population
        if flat.sum() <= 0:  # no records, or sums that no records have: as a whole turned round they would seem to tell
            for place in shown:
                yield design.terms[place - B], self.statistic, Number(None, None, 0.0, math.inf, "not told")
            return
        root = table.point()
        sets = [] if exact else table.sets(shown, error)
        made = (
            None if root is None else CellModel(family, design.matrix, flat, variance, design.offset).deviations(root)
        )
        both = None if root is None or not level.population else table.deviations(root)
        tests = self._tests(asking, sampled, design, B) if tested else {}
        for k, place in enumerate(shown):
            term, label = design.terms[place - B]
            if exact:
                value = None if root is None else float(root[place])
                number = ratio_of(value, 0.0, None if value is None else CoefficientSet(value, value, value, 0))
            else:
                point = None if root is None else float(root[place])
                number = ratio_of(point, None if made is None else float(made[place]), sets[k])
            yield (term, label), self.statistic, number
            if both is not None and made is not None and both[place] > 0 and np.isfinite(both[place]):
                part = 100 * (1 - math.sqrt(max(1 - (float(made[place]) / float(both[place])) ** 2, 0.0)))
                yield (term, label), "noise, percent of the width", Number(part, None, None, None)
            if (term, label) in tests:
                yield (term, label), "p", Number(tests[term, label], None, None, None)
        for (term, label), p in tests.items():
            if label == "":
                yield (term, label), "p", Number(p, None, None, None)
        factors = {term: p for (term, label), p in tests.items() if label == ""}
        if len(factors) > 1:
            for term, p in holm(factors).items():
                yield (term, ""), "p (Holm)", Number(p, None, None, None)

    def _tests(self, asking: Asking, table: CellModel, design: Design, B: int) -> dict[tuple[str, str], float]:
        """p of each coefficient, and of each term as a whole, where the plan names the question and records are
        independent."""
        if not asking.named or asking.opened.rows > 1:
            return {}
        found: dict[tuple[str, str], float] = {}
        for term in dict.fromkeys(term for term, _ in design.terms if term):
            places = design.of_term(term, B)
            if len(places) > 1:
                for place in places:
                    found[design.terms[place - B]] = table.p_of([place])[0]
            found[term, ""] = table.p_of(places)[0]
        return found

    def notes(self, asking: Asking, design: Design, outcome: Sequence[Coded]) -> tuple[str, ...]:
        """What stands below the table."""
        reference = ", ".join(f"{name} {label}" for name, label in design.reference)
        strata = self.setting(asking.query, "strata")
        within = f"; within strata of {strata}" if strata else ""
        said = [self.about(asking, outcome), f"against {reference}{within}"]
        if asking.opened.rows > 1:
            said.append("no p-values: records of one person depend on each other, and cells do not know who is who")
        elif asking.named:
            said.append("p-values are about a population of independent records, whatever intervals are about; joint "
                        "ones are of a term as a whole")  # fmt: skip
            if not asking.level.population:
                said.append("intervals are about these records alone, and may leave out 1 where p is large; with "
                            "about = population both are about the same")  # fmt: skip
        else:
            said.append("exploratory: the plan did not name this model, so it has sets and no p-values")
        return tuple(said)

    def about(self, asking: Asking, outcome: Sequence[Coded]) -> str:
        """What the ratios are of."""
        return f"odds ratios of {outcome[0].name} = {outcome[0].labels[-1]}, of complete records"

    def draw(self, answer: Answer) -> tuple[Shape, ...]:
        """A forest plot; of groups, one a coefficient, with a row each group."""
        lines = told(answer, self.statistic)
        if not answer.grouped:
            return (Forest(self.statistic, lines, ratios=True),)
        terms = dict.fromkeys(line.labels[1:] for line in lines)
        return tuple(
            Forest(
                f"{self.statistic} of {' '.join(filter(None, term))}",
                tuple(replace(line, labels=line.labels[:1]) for line in lines if line.labels[1:] == term), ratios=True,
            )
            for term in terms
        )  # fmt: skip

    # -- before anything is spent ---------------------------------------------------------------------------------
    def expect(self, asked: Foreseeing) -> Expected:
        """The largest standard error of a log ratio, were records spread evenly over covariates and outcomes: at least
        this, or, where `strength=` declares the largest ratio that is believed in, about this, by the worst signs."""
        query, columns = asked.query, asked.columns
        design, family = self.design(query, columns), self.family(query, columns)
        deviation = asked.opened.deviation(asked.blocks[0])
        made = [self.predicted(family, design, asked, deviation * factor) for factor in (1.0, 0.0)]
        needed, aims = None, (HOPELESS / 2, 0.95 * HOPELESS)
        aim = next((each for each in aims if each > made[1]), None)
        if made[0] > HOPELESS and aim is not None:
            low, high = 0.0, 1.0
            for _ in range(12):
                middle = (low + high) / 2
                fits = self.predicted(family, design, asked, deviation * middle) <= aim
                low, high = (middle, high) if fits else (low, middle)
            needed = low
        ways = self._ways(family, design, asked, deviation) if made[0] > HOPELESS else ()
        least = "about" if self.setting(query, "strength") else "at least"
        ratio = f"{math.exp(1.96 * made[0]):.3g}" if made[0] < 3.5 else "1,000 or more"
        word = "" if made[0] <= USEFUL else (
            "; wide, may be open on one side" if made[0] <= 2 * USEFUL else "; likely no answer")  # fmt: skip
        also = f"log ratios by {least} {made[0]:.2g} (standard error), so a ratio by a factor of {ratio}{word}"
        cells = int(np.prod([len(column.labels) for column in design.columns]))
        return Expected(str(query), made[0], 1.0, also, asked.share, cells, line=also, needed=needed, ways=ways)

    def _ways(self, family: Family, design: Design, asked: Foreseeing, deviation: float) -> tuple[str, ...]:
        """What would do in place of another epsilon: so many records, or the question without a covariate."""
        found = []
        low, high = 0.0, math.log(1e6)
        if self.predicted(family, design, asked, deviation, math.exp(high)) <= HOPELESS / 2:
            for _ in range(16):
                middle = (low + high) / 2
                fits = self.predicted(family, design, asked, deviation, math.exp(middle)) <= HOPELESS / 2
                low, high = (low, middle) if fits else (middle, high)
            many, where = asked.n * math.exp(high), ""
            if asked.query.by is not None and isinstance(asked.columns[asked.query.by], Owners):
                many, where = many / len(asked.blocks[0].axes[0].labels), " at each owner"
            found.append(f"{math.ceil(many):,} records{where}")
        query, cells = asked.query, len(design.matrix)
        for term in query.columns[self.leading :]:
            rest = tuple(name for name in query.columns if name != term)
            if len(rest) <= self.leading or any(term in split(name, asked.columns) for name in rest):
                continue
            less = self.design(replace(query, columns=rest), asked.columns)
            if self.predicted(family, less, asked, deviation) < 0.95 * HOPELESS:
                found.append(f"the question without {term} ({len(less.matrix)} combinations in place of {cells})")
        if query.by is not None and (groups := len(asked.blocks[0].axes[0].labels)):
            # the same cells of all groups together: a group's records times the groups, and as much more noise
            whole = self.predicted(family, design, asked, deviation * math.sqrt(groups), groups)
            if whole < 0.95 * HOPELESS:
                found.append(f"the question without by, adjusted with strata={query.by}")
        return tuple([*found[:3], *self.coarser(asked, design, deviation)])

    def coarser(self, asked: Foreseeing, design: Design, deviation: float) -> tuple[str, ...]:
        """What of the outcome could be cut wider."""
        return ()

    def predicted(
        self, family: Family, design: Design, asked: Foreseeing, deviation: float, more: float = 1.0
    ) -> float:  # fmt: skip
        """The largest standard error of a coefficient that is shown, as its set will be wide, at the worst signs of
        effects of the declared strength; `more`: times as many records."""
        B, C, strength = family.predictors, len(design.matrix), self.setting(asked.query, "strength")
        effect = math.log(strength) if isinstance(strength, float) else 0.0
        groups = math.prod(len(axis.labels) for axis in asked.blocks[0].axes[:-1])
        shown = [B + k for k, (term, _) in enumerate(design.terms) if term]
        table = CellModel(family, design.matrix, np.zeros((C, family.cells)), deviation**2, design.offset, 1.0)
        most, worst, at = -1.0, table, np.zeros(0)
        for pattern in range(1 << min(len(shown), _SIGNS) if effect else 1):
            theta = np.zeros(design.matrix.shape[2])
            for k, place in enumerate(shown):  # of more than _SIGNS coefficients some share their sign
                theta[place] = effect if pattern >> (k % _SIGNS) & 1 else -effect
            theta[:B] = self.even(family) - table.eta(theta[None])[0].mean(axis=0)
            chances = family.chances(table.eta(theta[None]))[0]
            even = replace(table, counts=asked.n * more / groups / C * chances)
            error = float(np.max(even.deviations(theta)[shown]))
            if error > most:
                most, worst, at = error, even, theta
        return float(np.max(foreseen(worst, at, np.array(shown))))

    def even(self, family: Family) -> Floats:
        """Intercepts at which cells are about even."""
        return family.start(np.ones(family.cells))


class LogisticEffects(Regression):
    """`logit(outcome, a, b, a:b, strata=site)`: odds ratios of the outcome's last level, against all its others."""

    def family(self, query: AskedQuestion, columns: Columns) -> Family:
        return Logit()

    def shaped(self, cells: Floats) -> Floats:
        found = np.moveaxis(cells, 0, -1)
        return np.stack([found[..., :-1].sum(axis=-1), found[..., -1]], axis=-1)

    def read_outcome(self, reading: Reading, tokens: Sequence[Token]) -> tuple[str, ...]:
        found = super().read_outcome(reading, tokens)
        column: Any = reading.columns[found[0]]
        if len(column.levels) != 2:
            way = f"ask ordinal, or add a column of two levels: {', '.join(column.levels[:4])} are {len(column.levels)}"
            reading.refuse(tokens[0], f"{reading.what} needs an outcome of two levels", way)
        return found


class OrdinalModel(Regression):
    """`ordinal(outcome, a, b)`: proportional odds of being above a level, in the order of the column's levels."""

    def family(self, query: AskedQuestion, columns: Columns) -> Family:
        return Ordinal(len(self.outcome(query, columns)[0].labels))

    def events(self, flat: Floats, variance: float) -> list[tuple[str, float, float]]:
        return []

    def about(self, asking: Asking, outcome: Sequence[Coded]) -> str:
        order = " < ".join(outcome[0].labels)
        return f"odds ratios of a later level of {outcome[0].name} ({order}), of complete records"


class Trend(LogisticEffects):
    """`trend(outcome, exposure, strata=site)`: the odds ratio a level, in the order of the exposure's levels, or of its
    bands."""

    most = 2

    def read(self, reading: Reading) -> tuple[tuple[str, ...], tuple[float, ...]]:
        found = super().read(reading) if len(reading.written.parts) == 2 else ((), ())
        if len(found[0]) != 2 or found[0][1] not in reading.columns:
            way = "write trend(outcome, exposure), and what is to be held with strata="
            reading.refuse(reading.written.what, "trend is about an outcome and one exposure", way)
        return found

    def marks(
        self, query: AskedQuestion, column: Coded, places: NDArray[np.int64], base: int
    ) -> list[tuple[str, Floats]]:
        if column.name in self.unshown(query):
            return super().marks(query, column, places, base)
        return [("a level", (places - base).astype(np.float64))]

    def about(self, asking: Asking, outcome: Sequence[Coded]) -> str:
        labels = Coded.of(asking.query.columns[1], asking.columns, self._cuts(asking.query)).labels
        return f"{super().about(asking, outcome)}, from each level to the next: {' < '.join(labels)}"

    @staticmethod
    def _cuts(query: AskedQuestion) -> tuple[float, ...] | None:
        cuts = dict(query.options).get(query.columns[1])
        return cuts if isinstance(cuts, tuple) else None


class PoissonModel(Regression):
    """`poisson(outcome, a, b, offset=years)`: rate ratios of a count, a column of numbers with whole bounds from 0. An
    offset is a column of positive numbers in bands, of which each counts as its middle."""

    statistic = "rate ratio"
    options: ClassVar[Mapping[str, Option]] = {"strata": OfColumn(), "strength": STRENGTH, "offset": OfNumber()}

    def unshown(self, query: AskedQuestion) -> tuple[str, ...]:
        offset = self.setting(query, "offset")
        return (*super().unshown(query), *([str(offset)] if offset else []))

    def check_offset(self, reading: Reading, query: AskedQuestion, named: set[str]) -> None:
        offset = self.setting(query, "offset")
        if offset is None:
            return
        place = next(o.place for o in reading.written.options if o.name.text == "offset")
        if offset in named or offset in query.columns:
            reading.refuse(place, "an offset is another column than what is asked", "leave one of them out")
        coded = next(c for c in self.coded(query, reading.columns) if c.name == offset)
        if middles(coded).min() <= 0:
            way = f"change its bounds, or write {offset}=[...], bands above 0"
            reading.refuse(place, f"an offset is a time or a size, above 0, and a band of '{offset}' is not", way)

    def offset(
        self, query: AskedQuestion, columns: Columns, coded: Sequence[Coded], places: NDArray[np.int64], predictors: int
    ) -> Floats:
        name = self.setting(query, "offset")
        found = np.zeros((len(places), predictors))
        for k, column in enumerate(coded):
            if name is not None and column.name == name:
                found += np.log(middles(column))[places[:, k], None]
        return found

    def read_outcome(self, reading: Reading, tokens: Sequence[Token]) -> tuple[str, ...]:
        found = reading.names(1, 1, True, tokens)
        column = reading.columns[found[0]]
        assert isinstance(column, Quantity)
        if column.low != 0 or column.high != int(column.high) or not 1 <= column.high <= 60:
            bounds = f"{column.low:g} to {column.high:g}"
            rule = f"poisson needs a count, from 0 to at most 60, and '{found[0]}' has {bounds}"
            reading.refuse(tokens[0], rule, "name another, or change its bounds")
        return found

    def outcome(self, query: AskedQuestion, columns: Columns) -> tuple[Coded, ...]:
        column = columns[query.columns[0]]
        assert isinstance(column, Quantity)
        top = int(column.high)
        bins = Bins(column, tuple(k - 0.5 for k in range(top + 2)))
        return (Coded(bins, (-1, *range(top + 1), top + 1, -1), (*map(str, range(top + 1)), f"above {top}")),)

    def family(self, query: AskedQuestion, columns: Columns) -> Family:
        return Poisson(tuple(float(k) for k in range(len(self.outcome(query, columns)[0].labels) - 1)))

    def shaped(self, cells: Floats) -> Floats:
        return np.moveaxis(cells, 0, -1)[..., :-1]

    def notes(self, asking: Asking, design: Design, outcome: Sequence[Coded]) -> tuple[str, ...]:
        """Beside the others': that more than ABOVE of the records count higher than the column's bounds say."""
        cells, _, variance, _ = counts(asking, (*outcome, *design.columns))
        by_count = cells.sum(axis=0).reshape(len(outcome[0].labels), -1)
        above, size = float(by_count[-1].sum()), float(by_count.sum())
        least = above - asking.level.z * math.sqrt(variance * by_count.shape[1] * len(cells))
        if size <= 0 or least <= ABOVE * size:
            return super().notes(asking, design, outcome)
        said = f"{outcome[0].labels[-1]} are {100 * above / size:.2g} % of the records and left out, so ratios are "
        return (
            *super().notes(asking, design, outcome),
            f"{said}biased towards 1: widen the bounds of {outcome[0].name}",
        )

    def events(self, flat: Floats, variance: float) -> list[tuple[str, float, float]]:
        y = np.arange(flat.shape[1])
        return [("events", float((flat @ y).sum()), variance * len(flat) * float(y @ y))]

    def about(self, asking: Asking, outcome: Sequence[Coded]) -> str:
        offset = self.setting(asking.query, "offset")
        time = "" if offset is None else f"; {offset} is the offset, a band counts as its middle"
        return f"rate ratios of {outcome[0].name}, of complete records with at most {outcome[0].labels[-2]}{time}"


def middles(column: Coded) -> Floats:
    """(levels,) the middle of each band of a number, of which the outermost reach to the column's bounds. Public."""
    assert isinstance(column.axis, Bins)
    edges, number = column.axis.edges, column.axis.column
    if len(column.labels) > len(edges):
        edges = (min(number.low, edges[0]), *edges, max(number.high, edges[-1]))
    ends = np.array(edges)
    return np.asarray((ends[:-1] + ends[1:]) / 2)


def ratio_of(point: float | None, noise: float | None, found: CoefficientSet | None) -> Number:
    """A ratio from a log point and a log set. An open side is 0 or infinite; the point is that of the least rejected
    value where the score has no root."""
    if found is None:
        return Number(None, None, None, None, "no estimate")
    note = "conservative" if found.hidden else ""
    value = found.best if point is None else point
    low, high = math.exp(found.low) if np.isfinite(found.low) else 0.0, math.exp(min(found.high, 700.0))
    high = math.inf if not np.isfinite(found.high) else high
    if low == 0.0 and high == math.inf:
        return Number(None, None, low, high, "not told")
    far = point is None or not low <= math.exp(value) <= high
    note = ", ".join([note] * bool(note) + ["open below"] * (low == 0.0) + [NEAR] * far)
    at = min(max(math.exp(value), low), high)
    reach = None if noise is None or not np.isfinite(noise) else at * noise
    return Number(at, reach, low, high, note)


def between(asking: Asking, apart: Apart, place: int, labels: tuple[str, ...], statistic: str) -> Iterator[Line]:
    """Effects that vary, and how much owners differ, of one coefficient. Nothing of persons with several rows, whose
    records depend on each other."""
    if asking.opened.rows > 1 or apart.counts.sum() <= 0:
        return
    mean = apart.varying(place, 1 - asking.level.confidence ** (1 / asking.level.answers))
    if mean is None:
        yield Line((VARYING, *labels), statistic, Number(None, None, 0.0, math.inf, "not told"))
    else:
        ends = (math.exp(min(max(end, -700.0), 700.0)) for end in (mean.mean, mean.low, mean.high))
        value, low, high = ends
        note = "" if mean.owners == apart.owners else f"of {mean.owners} of {apart.owners} owners"
        yield Line((VARYING, *labels), statistic, Number(value, None, low, high, note))
    Q, p = apart.differs(place)
    yield Line((BETWEEN_OWNERS, *labels), "Q", Number(Q, None, None, None))
    yield Line((BETWEEN_OWNERS, *labels), "I2, percent", Number(inconsistency(Q, apart.owners), None, None, None))
    if mean is not None:
        yield Line((BETWEEN_OWNERS, *labels), "tau2", Number(mean.tau2, None, None, None))
    if asking.named:
        yield Line((BETWEEN_OWNERS, *labels), "p", Number(p, None, None, None))


def holm(found: Mapping[str, float]) -> dict[str, float]:
    """p-values that hold for all at once (Holm 1979)."""
    order = sorted(found, key=lambda name: found[name])
    most, made = 0.0, {}
    for k, name in enumerate(order):
        most = max(most, min(1.0, found[name] * (len(order) - k)))
        made[name] = most
    return {name: made[name] for name in found}


def split(term: str, columns: Columns) -> tuple[str, ...]:
    """The columns of a term."""
    if term in columns:
        return (term,)
    for k, character in enumerate(term):
        if character == ":" and term[:k] in columns and term[k + 1 :] in columns:
            return term[:k], term[k + 1 :]
    return (term,)


def _of_data(asking: Asking) -> Intervals:
    """Counts are of these records, whatever intervals are about."""
    return replace(asking.level, about="data")


LOGIT, POISSON, ORDINAL, TREND = LogisticEffects(), PoissonModel(), OrdinalModel(), Trend()
