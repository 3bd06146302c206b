"""The language of questions, as text: what was written, in parts that know their places.

    question  = what [ "(" part { "," part } ")" ] [ "by" name ] [ "where" condition { "and" condition } ]
                [ "weight" "=" number ]
    part      = name | number | option "=" ( number | word | "[" number { "," number } "]" )
    condition = name "=" value | name "in" "{" value { "," value } "}" | name "in" number ".." number

Names and values are words without space, brackets, commas, `=`, quotes and `..`, or anything in double quotes, in which
a backslash takes the next character as it is. There is no OR, and nothing else: outside a condition is the zero vector.
"""

import re
from collections.abc import Mapping
from typing import Any, NoReturn
from unicodedata import combining, east_asian_width

from dpmpc.errors import UsageError
from dpmpc.intake.spelling import composed, is_number
from dpmpc.lazy import dataclass
from dpmpc.statistics.where import KEYWORDS, word

_TOKEN = re.compile(r'\s*(?:(\.\.|[()\[\]{},=])|"((?:[^"\\]|\\[\s\S])*)"|((?:(?!\.\.)[^\s()\[\]{},="\\])+))')


@dataclass(frozen=True)
class Token:
    """A word, a quoted text or a mark, and where it is. `kind`: "mark", "quoted", "word" or "end"."""

    text: str
    kind: str
    begin: int
    end: int

    @property
    def number(self) -> float | None:
        """What it says as a number, if it is one."""
        return float(self.text) if self.kind == "word" and is_number(self.text) else None


@dataclass(frozen=True)
class WrittenOption:
    """`name=value`: a number, a word, or numbers."""

    name: Token
    value: float | str | tuple[float, ...]
    place: Token


@dataclass(frozen=True)
class WrittenQuestion:
    """A question as it was written. `conditions`: name, "=" or "in" or "..", values."""

    text: str
    what: Token
    parts: tuple[Token, ...]
    options: tuple[WrittenOption, ...]
    by: Token | None
    conditions: tuple[tuple[Token, str, tuple[Token, ...]], ...]
    weight: float

    def refuse(self, token: Token, rule: str, way: str, code: str = "") -> NoReturn:
        """Errors: always, with a caret below the token; of this `code`."""
        raise pointed(self.text, token.begin, token.end, rule, way, code)


_SHOWN = 100  # characters of a long question on either side of the place


def pointed(text: str, begin: int, end: int, rule: str, way: str, code: str = "") -> UsageError:
    """An error: the rule; what was written; the way out; and the question with a caret below the place."""
    text = one_line(text)
    shown = text[begin:end] or "its end"
    if len(shown) > 60:
        shown, end = f"{shown[:60]}...", begin + 60
    if (cut := begin - _SHOWN) > 0:
        text, begin, end = f"... {text[cut:]}", begin - cut + 4, end - cut + 4
    if len(text) > end + _SHOWN:
        text = f"{text[: end + _SHOWN]} ..."
    before, below = _columns(text[:begin]), _columns(text[begin:end])
    place = f"  {text}\n  {' ' * before}{'^' * max(1, below)}"
    return UsageError(f"{rule}; got {shown}; {way}", code=code, below=place)


def one_line(text: str) -> str:
    """The text with a space for what is no visible character."""
    return "".join(c if c.isprintable() else " " for c in text)


def _columns(text: str) -> int:
    """How many columns of a terminal a text takes."""
    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)


def read(text: str) -> WrittenQuestion:
    """What a line says. Errors: it is no question, with a caret where that shows."""
    return _Reader(composed(text)).question()


def text_of(table: Mapping[str, Any]) -> str:
    """The line that a TOML table stands for: `what`, `of`, `by`, `where`, `weight`, and options by name.

    where: column = value, [values], or [low, high] of a column of numbers.
    Errors: no `what`; a value of another kind.
    """
    rest = dict(table)
    what, of, by, where = rest.pop("what", None), rest.pop("of", []), rest.pop("by", None), rest.pop("where", {})
    weight = rest.pop("weight", None)
    if not isinstance(what, str) or not isinstance(where, Mapping) or not isinstance(by, str | None):
        raise UsageError(
            f"a question in queries has what, and may have of, by, where, weight; got {str(dict(table))[:60]}; mend"
        )
    parts = [_spelt(part) for part in (of if isinstance(of, list) else [of])]
    parts += [f"{name}={_spelt(value)}" for name, value in rest.items()]
    line = f"{what}({', '.join(parts)})" if parts else what
    line += f" by {word(by)}" if by is not None else ""
    conditions = [f"{word(name)} {_condition(value)}" for name, value in where.items()]
    line += f" where {' and '.join(conditions)}" if "where" in table else ""
    return line + (f" weight={_spelt(weight)}" if weight is not None else "")


def _spelt(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float | list):
        raise UsageError(f"a question holds texts, numbers and lists of numbers; got {value!r}; mend it", code="type")
    if isinstance(value, list):
        return f"[{', '.join(_spelt(part) for part in value)}]"
    return word(value) if isinstance(value, str) else f"{value!r}"


def _condition(value: Any) -> str:
    if not isinstance(value, list):
        return f"= {_spelt(value)}"
    if len(value) == 2 and all(isinstance(part, int | float) for part in value):
        return f"in {_spelt(value[0])}..{_spelt(value[1])}"
    return f"in {{{', '.join(_spelt(part) for part in value)}}}"


class _Reader:
    """Reads tokens from left to right."""

    def __init__(self, text: str) -> None:
        self.text, self.tokens, self.at = text, self._tokens(text), 0

    @staticmethod
    def _tokens(text: str) -> list[Token]:
        found, at = [], 0
        while match := _TOKEN.match(text, at):
            at = match.end()
            k = match.lastindex or 3
            plain = match[2] is not None
            said = re.sub(r"\\([\s\S])", r"\1", match[2]) if plain else match[k]
            kind = "quoted" if plain else "mark" if match[1] else "word"
            found.append(Token(said, kind, match.start(k) - plain, match.end(k) + plain))
        rest = text[at:]
        if rest.strip():
            begin = at + len(rest) - len(rest.lstrip())
            raise pointed(text, begin, len(text), "a quoted text ends with a quote", 'write "..."')
        return [*found, Token("", "end", len(text.rstrip()), len(text.rstrip()))]

    @property
    def token(self) -> Token:
        return self.tokens[self.at]

    def fail(self, rule: str, way: str) -> NoReturn:
        raise pointed(self.text, self.token.begin, self.token.end, rule, way)

    def take(self) -> Token:
        self.at += 1
        return self.tokens[self.at - 1]

    def mark(self, text: str) -> bool:
        """Whether the next token is this mark, which is then taken."""
        if self.token.kind == "mark" and self.token.text == text:
            self.at += 1
            return True
        return False

    def keyword(self, text: str) -> bool:
        """Whether the next token is this word without quotes, which is then taken."""
        if self.token.kind == "word" and self.token.text == text:
            self.at += 1
            return True
        return False

    def need(self, mark: str, after: str) -> None:
        if not self.mark(mark):
            self.fail(f"'{mark}' follows {after}", f"write '{mark}' here")

    def unfinished(self) -> NoReturn:
        """Errors: always, for what follows a part in brackets and is no comma."""
        if self.token.kind == "end":
            self.fail("brackets are closed", "write ')' here")
        self.fail("',' follows each part", "write ',' here, or the whole name in double quotes if it has spaces")

    def name(self, what: str) -> Token:
        if self.token.kind not in ("word", "quoted") or (self.token.kind == "word" and self.token.text in KEYWORDS):
            self.fail(f"{what} is due here", "write one; in double quotes if it has spaces or marks")
        return self.take()

    def figure(self) -> float:
        value = self.token.number
        if value is None:
            self.fail("a number is due here", "write one, such as 20 or -0.5")
        self.take()
        return value

    def question(self) -> WrittenQuestion:
        if self.token.kind == "end":
            self.fail("a question says what it asks", "ask for instance: count")
        what = self.name("what is asked")
        parts: list[Token] = []
        options: list[WrittenOption] = []
        if self.mark("("):
            while not self.mark(")"):
                if (parts or options) and not self.mark(","):
                    self.unfinished()
                name = self.name("a column, a number or an option")
                if self.mark("="):
                    options.append(self.option(name))
                else:
                    parts.append(name)
        by = self.name("the column to group by") if self.keyword("by") else None
        conditions: list[tuple[Token, str, tuple[Token, ...]]] = []
        if self.keyword("where"):
            conditions.append(self.condition())
            while self.keyword("and"):
                conditions.append(self.condition())
        weight = 1.0
        if self.keyword("weight"):
            self.need("=", "weight")
            place, weight = self.token, self.figure()
            if not 1e-6 <= weight <= 1e6:
                raise pointed(self.text, place.begin, place.end, "a weight lies between 1e-6 and 1e6", "write 2")
        if self.token.kind == "word" and self.token.text.casefold() == "or":
            self.fail("conditions are joined by and", "there is no OR: list values in {...}, or ask two questions")
        if self.token.kind == "word" and self.token.text.casefold() in KEYWORDS:
            self.fail(
                "conditions follow one 'by', in small letters", "the order is: what (...) by ... where ... and ..."
            )
        if self.token.kind != "end":
            self.fail("a question ends after its conditions", "the order is: what (...) by ... where ... weight=...")
        return WrittenQuestion(self.text, what, tuple(parts), tuple(options), by, tuple(conditions), weight)

    def option(self, name: Token) -> WrittenOption:
        place = self.token
        if self.mark("["):
            values = [self.figure()]
            while not self.mark("]"):
                self.need(",", "each number")
                values.append(self.figure())
            last = self.tokens[self.at - 1]
            return WrittenOption(
                name, tuple(values), Token(self.text[place.begin : last.end], "mark", place.begin, last.end)
            )
        said = self.name("a value")
        number = said.number
        return WrittenOption(name, said.text if number is None else number, said)

    def condition(self) -> tuple[Token, str, tuple[Token, ...]]:
        name = self.name("a condition: column = value, column in {values} or column in low..high")
        if self.mark("="):
            return name, "=", (self.name("a value"),)
        if not self.keyword("in"):
            self.fail("a condition is =, in {...} or in low..high", "there is no other comparison; ask 'in low..high'")
        if self.mark("{"):
            values = [self.name("a value")]
            while not self.mark("}"):
                self.need(",", "each value")
                values.append(self.name("a value"))
            return name, "in", tuple(values)
        low = self.token
        self.figure()
        self.need("..", "the lower end")
        high = self.token
        self.figure()
        return name, "..", (low, high)
