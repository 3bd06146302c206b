"""Questions about columns: checked against the schema, in the one spelling that is printed back.

`parse` makes a question of a line; `str` of it is its canonical form, which parses to the same question.
"""

import difflib
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from dpmpc.errors import UsageError
from dpmpc.intake.spelling import canonical
from dpmpc.lazy import dataclass
from dpmpc.statistics.columns import Columns, Quantity
from dpmpc.statistics.syntax import Option, Token, Written, read, text_of
from dpmpc.statistics.where import ALL, Among, Between, Condition, Where, word

Setting = float | str | tuple[float, ...]
MOST_BINS, LEAST_LEAVES, MOST_LEAVES = 10_000, 16, 4096


@dataclass(frozen=True)
class Kind:
    """What a question of one kind is made of. `least`, `most`: of columns; `numbers`: whether they hold numbers (None:
    either); `figures`: whether numbers follow the column."""

    least: int
    most: int
    numbers: bool | None = None
    options: tuple[str, ...] = ()
    figures: bool = False
    model: bool = False


KINDS = {
    "count": Kind(0, 0),
    "table": Kind(1, 4, None, ("bins",)),
    "hist": Kind(1, 1, True, ("bins", "cuts", "cells")),
    "mean": Kind(1, 1, True, ("range",)),
    "sd": Kind(1, 1, True, ("range",)),
    "median": Kind(1, 1, True, ("range", "leaves")),
    "quantiles": Kind(1, 1, True, ("range", "leaves"), figures=True),
    "table1": Kind(0, 200),
    "evaluate": Kind(0, 0, None, ("cells",), model=True),
    "km": Kind(2, 2, None, ("bins", "cuts")),
    "corr": Kind(2, 12, True),
    "lm": Kind(2, 12, True),
}
DEFAULT_BINS = 10.0
DEFAULTS: dict[str, dict[str, Setting]] = {
    "table": {"bins": DEFAULT_BINS},
    "hist": {"bins": 20.0}, "median": {"leaves": 256.0}, "quantiles": {"leaves": 256.0},
    "km": {"bins": 30.0}, "evaluate": {"cells": 40.0},
}  # fmt: skip


@dataclass(frozen=True)
class Query:
    """A question. `columns`: names, or that of a model; `levels`: the quantiles that are asked for."""

    what: str
    columns: tuple[str, ...] = ()
    levels: tuple[float, ...] = ()
    options: tuple[tuple[str, Setting], ...] = ()
    by: str | None = None
    where: Where = ALL
    weight: float = 1.0

    def option(self, name: str) -> Any:
        """The value of an option as written, or its default; None if it has neither."""
        return dict(self.options).get(name, DEFAULTS.get(self.what, {}).get(name))

    @property
    def title(self) -> str:
        """The question without its weight."""
        parts = [*map(word, self.columns), *(_spelt(level) for level in self.levels)]
        parts += [f"{name}={_spelt(value)}" for name, value in self.options]
        text = f"{self.what}({', '.join(parts)})" if parts else self.what
        text += f" by {word(self.by)}" if self.by is not None else ""
        return text + (f" where {self.where}" if self.where else "")

    def __str__(self) -> str:
        return self.title + ("" if self.weight == 1 else f" weight={_spelt(self.weight)}")


def parse(text: str, columns: Columns, models: Sequence[str] = ()) -> Query:
    """The question that a line asks. Errors: UsageError with a caret below what cannot be, and the nearest name."""
    return _Binder(read(text), columns, models).query()


def parse_all(
    asked: Sequence[str | Mapping[str, Any]], columns: Columns, models: Sequence[str] = ()
) -> tuple[Query, ...]:
    """The questions of lines or TOML tables, each once; the weights of those that are asked twice add up. One question
    may stand alone."""
    found: dict[Query, float] = {}
    for item in [asked] if isinstance(asked, str | Mapping) else asked:
        if not isinstance(item, str | Mapping):
            raise UsageError(f"a question is a line or a table; got {type(item).__name__}; write for instance count")
        query = parse(item if isinstance(item, str) else text_of(item), columns, models)
        plain = _weighing(query, 1.0)
        found[plain] = found.get(plain, 0.0) + query.weight
    if not found:
        raise UsageError("statistics need a question; none was asked; ask for instance: count")
    return tuple(_weighing(query, weight) for query, weight in found.items())


def _weighing(query: Query, weight: float) -> Query:
    return Query(query.what, query.columns, query.levels, query.options, query.by, query.where, weight)


class _Binder:
    """What was written, against the columns."""

    def __init__(self, written: Written, columns: Columns, models: Sequence[str]) -> None:
        self.written, self.columns, self.models = written, columns, models

    def query(self) -> Query:
        w = self.written
        kind = KINDS.get(w.what.text)
        if kind is None:
            near = difflib.get_close_matches(w.what.text, KINDS, 1, 0.5)
            w.refuse(w.what, f"a question is one of {', '.join(KINDS)}", f"did you mean '{near[0]}'?" if near else
                     "choose one")  # fmt: skip
        names = [part for part in w.parts if not (kind.figures and part.number is not None and part is not w.parts[0])]
        figures = [part for part in w.parts if part not in names]
        levels = self._levels(figures) if kind.figures else ()
        found = (self._model(names),) if kind.model else self._names(kind, names)
        by = None
        if w.by is not None:
            by = self._known(w.by)
            if isinstance(self.columns[by], Quantity):
                w.refuse(w.by, "a group is a column of categories", "cut the number with table(..., bins=...)")
            if by in found:
                w.refuse(w.by, "a group is another column than what is asked", "leave one of them out")
        options = dict(self._option(kind, option) for option in w.options)
        if len(options) < len(w.options):
            w.refuse(w.options[-1].name, "each option is given once", "leave one out")
        if len({"bins", "cuts"} & options.keys()) == 2 or len({"cells", "cuts"} & options.keys()) == 2:
            w.refuse(w.options[-1].name, "cells come from bins, cuts or a scale", "leave the others out")
        return Query(w.what.text, found, levels, tuple(sorted(options.items())), by, self._where(), w.weight)

    def _known(self, token: Token) -> str:
        if token.text not in self.columns:
            self.written.refuse(token, "a column must be in the schema", self.columns.nearest(token.text))
        return self.columns[token.text].name

    def _model(self, names: list[Token]) -> str:
        w = self.written
        if len(names) != 1:
            w.refuse(w.what, "evaluate is about one model", "write evaluate(NAME)")
        if names[0].text not in self.models:
            near = difflib.get_close_matches(names[0].text, self.models, 1, 0.4)
            way = f"did you mean '{near[0]}'?" if near else "name one of the models that are given"
            w.refuse(names[0], "a model must be given to be evaluated", way)
        return names[0].text

    def _names(self, kind: Kind, names: list[Token]) -> tuple[str, ...]:
        w, what = self.written, self.written.what.text
        found = [self._known(token) for token in names]
        for k, token in enumerate(names):
            if found[k] in found[:k]:
                w.refuse(token, "each column is named once", "leave it out here")
            number = isinstance(self.columns[found[k]], Quantity)
            if kind.numbers and not number:
                w.refuse(token, f"{what} needs a column of numbers", f"ask table({word(found[k])})")
            if what == "km" and number != (k == 0):
                w.refuse(token, "km needs a time, a number, and an event, a category", "write km(time, event)")
        if not kind.least <= len(found) <= kind.most:
            many = f"{kind.least}" if kind.least == kind.most else f"{kind.least} to {kind.most}"
            token = names[kind.most] if len(names) > kind.most else w.what
            way = "name them in brackets" if len(found) < kind.least else "ask several questions"
            w.refuse(token, f"{what} is about {many} column{'s' if kind.most != 1 else ''}", way)
        return tuple(found)

    def _levels(self, figures: list[Token]) -> tuple[float, ...]:
        w = self.written
        for token in figures:
            if token.number is None or not 0 < token.number < 1:
                w.refuse(token, "a quantile lies between 0 and 1", "write for instance 0.25")
        levels = tuple(sorted({float(token.text) for token in figures}))
        return levels or (0.25, 0.5, 0.75)

    def _option(self, kind: Kind, option: Option) -> tuple[str, Setting]:
        w, name, value = self.written, option.name.text, option.value
        if name not in kind.options:
            way = f"it has {', '.join(kind.options)}" if kind.options else "it has none"
            w.refuse(option.name, f"{w.what.text} must know its options", way)
        if name in ("bins", "leaves") or (name == "cells" and w.what.text == "evaluate"):
            least, most = {"leaves": (LEAST_LEAVES, MOST_LEAVES), "cells": (8, 512)}.get(name, (1, MOST_BINS))
            if not isinstance(value, float) or value != int(value) or not least <= value <= most:
                w.refuse(option.place, f"{name} is a whole number from {least} to {most}", f"write {name}={least * 8}")
            if name == "leaves" and int(value) & (int(value) - 1):
                w.refuse(option.place, "leaves are a power of two", f"write leaves={1 << int(value).bit_length()}")
        if name == "cells" and w.what.text == "hist" and value not in ("octaves", "log"):
            w.refuse(option.place, "cells are octaves or log", "write cells=octaves")
        if value == "log" and isinstance(column := self.columns[self._known(w.parts[0])], Quantity) and column.low <= 0:
            rule = f"logarithmic cells need a positive lower bound, and '{column.name}' has {column.low:g}"
            w.refuse(option.place, rule, "write cells=octaves")
        if name in ("cuts", "range"):
            grows = isinstance(value, tuple) and all(a < b for a, b in pairwise(value))
            if not grows or not isinstance(value, tuple) or len(value) < 2 or (name == "range" and len(value) != 2):
                what = "two numbers, low < high" if name == "range" else "at least two numbers that increase"
                w.refuse(option.place, f"{name} is {what}", f"write {name}=[0, 10]")
        return name, value

    def _where(self) -> Where:
        found: dict[str, Condition] = {}
        for name, how, values in self.written.conditions:
            column = self.columns[self._known(name)]
            if column.name in found:
                self.written.refuse(name, "a column has one condition", "join them: there is AND alone")
            if isinstance(column, Quantity):
                found[column.name] = self._between(column, how, values)
            else:
                if how == "..":
                    self.written.refuse(values[0], "a category has no order", f"write {word(name.text)} in {{...}}")
                places = [self._level(column, value) for value in values]
                found[column.name] = Among(column, tuple(sorted(set(places))))
        return Where(tuple(found[name] for name in self.columns.names if name in found))

    def _between(self, column: Quantity, how: str, values: tuple[Token, ...]) -> Between:
        if how == "in":
            self.written.refuse(values[0], "a number is compared by = or in low..high", "write low..high, or use bins")
        numbers = [value.number for value in values]
        low, high = numbers[0], numbers[-1]
        if low is None or high is None:
            self.written.refuse(values[0], f"'{column.name}' holds numbers", "write one")
        if low > high:
            self.written.refuse(values[0], "a range runs from low to high", "turn it round")
        return Between(column, low + 0.0, high + 0.0)

    def _level(self, column: Any, token: Token) -> int:
        spelt = canonical(token.text)
        known = {level: k for k, level in enumerate(column.levels)}
        if spelt in known:
            return known[spelt]
        near = difflib.get_close_matches(spelt, known, 1, 0.5)
        shown = ", ".join(list(known)[:8]) + (", ..." if len(known) > 8 else "")
        way = f"did you mean '{near[0]}'?" if near else f"its levels are {shown}"
        self.written.refuse(token, f"a value of '{column.name}' is one of its levels", way)


def _spelt(value: Setting) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(_spelt(part) for part in value)}]"
    return word(value) if isinstance(value, str) else f"{value!r}".removesuffix(".0")
