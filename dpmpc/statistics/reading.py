"""What was written, against the columns and models there are: names, models, numbers, conditions, each with its place
for what is refused."""

import difflib
from collections.abc import Sequence
from typing import Any, NoReturn

from dpmpc.intake.spelling import named
from dpmpc.lazy import dataclass
from dpmpc.statistics.columns import Columns, Quantity
from dpmpc.statistics.syntax import Token, WrittenQuestion
from dpmpc.statistics.where import Among, Between, Condition, Where, word


@dataclass(frozen=True)
class Reading:
    """A question that is being read. What cannot be is refused with a caret below its place."""

    written: WrittenQuestion
    columns: Columns
    models: Sequence[str] = ()

    @property
    def what(self) -> str:
        """The name of the question's kind."""
        return self.written.what.text

    def refuse(self, token: Token, rule: str, way: str, code: str = "") -> NoReturn:
        """Errors: always, with a caret below the token."""
        self.written.refuse(token, rule, way, code)

    def known(self, token: Token) -> str:
        """The column that a token names. Errors: there is none; the nearest name."""
        if token.text not in self.columns:
            self.refuse(token, "a column must be in the schema", self.columns.nearest(token.text), "column")
        return self.columns[token.text].name

    def names(
        self, least: int, most: int, numbers: bool | None = None, tokens: Sequence[Token] | None = None
    ) -> tuple[str, ...]:
        """The columns that are asked about, each once; `numbers`: whether they hold numbers (None: either); `tokens`:
        other parts than all that were written. Errors: too few, too many, others."""
        parts = list(self.written.parts if tokens is None else tokens)
        found = [self.known(token) for token in parts]
        for k, token in enumerate(parts):
            if found[k] in found[:k]:
                self.refuse(token, "each column is named once", "leave it out here")
            if numbers is not None and isinstance(self.columns[found[k]], Quantity) != numbers:
                if numbers:
                    self.refuse(token, f"{self.what} needs a column of numbers", f"ask table({word(found[k])})")
                self.refuse(token, f"{self.what} needs a column of categories", "name another, or cut it with cuts=")
        if not least <= len(found) <= most:
            many = f"{least}" if least == most else f"{least} to {most}"
            token = parts[most] if len(parts) > most else self.written.what
            way = "name them in brackets" if len(found) < least else "ask several questions"
            self.refuse(token, f"{self.what} is about {many} column{'s' if most != 1 else ''}", way, "range")
        return tuple(found)

    def model(self) -> str:
        """The one model that is asked about. Errors: it is not given; the nearest name."""
        names = self.written.parts
        if len(names) != 1:
            self.refuse(self.written.what, f"{self.what} is about one model", f"write {self.what}(NAME)")
        if names[0].text not in self.models:
            near = difflib.get_close_matches(names[0].text, self.models, 1, 0.4)
            way = f"did you mean '{near[0]}'?" if near else "name one of the models that are given"
            self.refuse(names[0], "a model must be given to be evaluated", way, "unknown")
        return names[0].text

    def by(self, found: Sequence[str]) -> str | None:
        """The column to group by. Errors: it holds numbers, or is asked about."""
        token = self.written.by
        if token is None:
            return None
        by = self.known(token)
        if isinstance(self.columns[by], Quantity):
            self.refuse(token, "a group is a column of categories", "cut the number with table(..., bins=...)")
        if by in found:
            self.refuse(token, "a group is another column than what is asked", "leave one of them out")
        return by

    def where(self) -> Where:
        """The conditions, in the order of the columns. Errors: what no column can be."""
        found: dict[str, Condition] = {}
        for name, how, values in self.written.conditions:
            column = self.columns[self.known(name)]
            if column.name in found:
                self.refuse(name, "a column has one condition", "join them: there is AND alone")
            if isinstance(column, Quantity):
                found[column.name] = self._between(column, how, values)
            else:
                if how == "..":
                    self.refuse(values[0], "a category has no order", f"write {word(name.text)} in {{...}}")
                places = [self.level(column, value) for value in values]
                found[column.name] = Among(column, tuple(sorted(set(places))))
        return Where(tuple(found[name] for name in self.columns.names if name in found))

    def _between(self, column: Quantity, how: str, values: tuple[Token, ...]) -> Between:
        if how == "in":
            self.refuse(values[0], "a number is compared by = or in low..high", "write low..high, or use bins")
        numbers = [value.number for value in values]
        low, high = numbers[0], numbers[-1]
        if low is None or high is None:
            self.refuse(values[0], f"'{column.name}' holds numbers", "write one")
        if low > high:
            self.refuse(values[0], "a range runs from low to high", "turn it round", "range")
        return Between(column, low + 0.0, high + 0.0)

    def level(self, column: Any, token: Token) -> int:
        """The place of a value among a category's levels. Errors: it is none; the nearest."""
        known = {level: k for k, level in enumerate(column.levels)}
        if (level := named(token.text, known)) is not None:
            return known[level]
        near = difflib.get_close_matches(token.text, known, 1, 0.5)
        shown = ", ".join(list(known)[:8]) + (", ..." if len(known) > 8 else "")
        way = f"did you mean '{near[0]}'?" if near else f"its levels are {shown}"
        self.refuse(token, f"a value of '{column.name}' is one of its levels", way, "choice")
