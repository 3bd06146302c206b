"""Kinds of questions: what may be asked. A kind is one entry of a registry, and all about it is in its class: how it is
written, which blocks of sums answer it, the answer, its pictures, how far it will be off.

Every surface reads the registry: the language, its TOML form, Python, a consortium's file, old releases that are asked
again, dry runs, pages. A kind of another package is an entry point of the group `dpmpc.questions`.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from dpmpc.outcome import Answer, Bars, Forest, Shape
from dpmpc.registry import Registry
from dpmpc.statistics.asking import Asking
from dpmpc.statistics.blocks import Part
from dpmpc.statistics.columns import Columns
from dpmpc.statistics.foresight import Expected, Foreseeing, widest
from dpmpc.statistics.options import Option
from dpmpc.statistics.question import AskedQuestion
from dpmpc.statistics.reading import Reading
from dpmpc.statistics.scores import ScoreModel


class QuestionKind:
    """A kind of questions. Subclasses say `parts` and `answer`; what else there is may stay.

    `least`, `most`: of columns; `numbers`: whether they hold numbers (None: either). `options`: by name.

    Guarantees: `parts` must be a function of the public question and columns alone. What a record adds is that of
    blocks (`dpmpc.statistics.blocks`), whose distances are derived from them and never stated by a kind, so a kind
    cannot weaken the promise. `answer` reads what was opened: post-processing.
    """

    least: ClassVar[int] = 0
    most: ClassVar[int] = 0
    numbers: ClassVar[bool | None] = None
    options: ClassVar[Mapping[str, Option]] = {}

    # -- how it is written ----------------------------------------------------------------------------------------
    def read(self, reading: Reading) -> tuple[tuple[str, ...], tuple[float, ...]]:
        """(columns, or other names, and numbers) that stand in brackets. Errors: refused, with a caret."""
        return reading.names(self.least, self.most, self.numbers), ()

    def check(self, reading: Reading, query: AskedQuestion) -> None:
        """Errors: what options and columns cannot be together."""

    def option_of(self, reading: Reading, name: str) -> Option | None:
        """The option of this name; None if there is none."""
        return self.options.get(name)

    def setting(self, query: AskedQuestion, name: str) -> Any:
        """The value of an option as written, or its default; None if it has neither."""
        return dict(query.options).get(name, self.options[name].default)

    # -- what it needs and says -----------------------------------------------------------------------------------
    def parts(self, query: AskedQuestion, columns: Columns, models: Mapping[str, ScoreModel]) -> tuple[Part, ...]:
        """The blocks that answer it. `models`: by the names that questions have for them. Public."""
        raise NotImplementedError

    def answer(self, asking: Asking) -> Answer:
        """The answer, from what was opened."""
        raise NotImplementedError

    def draw(self, answer: Answer) -> tuple[Shape, ...]:
        """The pictures that suit an answer: here percentages as bars, all else as rows with intervals."""
        kinds = list(dict.fromkeys(line.statistic for line in answer.lines))
        first = ["percent"] if "percent" in kinds else ["count"] if "count" in kinds else []
        rest = [name for name in kinds if name not in ("percent", "count")]
        return tuple(
            (Bars if name == "percent" else Forest)(name, told(answer, name)) for name in (*first, *rest)
        )  # fmt: skip

    def expect(self, asked: Foreseeing) -> Expected:
        """How far its answers will be off, from public numbers."""
        return widest(asked)


def told(answer: Answer, *statistics: str) -> tuple[Any, ...]:
    """The lines of these statistics that have an estimate."""
    return tuple(line for line in answer.lines if line.statistic in statistics and line.number.estimate is not None)


QUESTION_KINDS: Registry[QuestionKind] = Registry(
    "question",
    "dpmpc.questions",
    {
        "count": "dpmpc.statistics.kinds.counting:COUNT",
        "table": "dpmpc.statistics.kinds.counting:TABLE",
        "hist": "dpmpc.statistics.kinds.counting:HIST",
        "mean": "dpmpc.statistics.kinds.moments:MEAN",
        "sd": "dpmpc.statistics.kinds.moments:SD",
        "var": "dpmpc.statistics.kinds.moments:VAR",
        "ttest": "dpmpc.statistics.kinds.compare:TTEST",
        "anova": "dpmpc.statistics.kinds.compare:ANOVA",
        "iqr": "dpmpc.statistics.kinds.quantiles:IQR",
        "missing": "dpmpc.statistics.kinds.counting:MISSING_OF",
        "median": "dpmpc.statistics.kinds.quantiles:MEDIAN",
        "quantiles": "dpmpc.statistics.kinds.quantiles:QUANTILES",
        "table1": "dpmpc.statistics.kinds.table1:TABLE1",
        "evaluate": "dpmpc.statistics.kinds.evaluation:EVALUATE",
        "km": "dpmpc.statistics.kinds.survival:KM",
        "corr": "dpmpc.statistics.kinds.products:CORR",
        "lm": "dpmpc.statistics.kinds.products:LM",
        **{name: f"dpmpc.statistics.kinds.two_by_two:{name.upper()}" for name in ("or", "rr", "rd", "chisq")},
        "logit": "dpmpc.statistics.kinds.regression:LOGIT",
        "trend": "dpmpc.statistics.kinds.regression:TREND",
        "poisson": "dpmpc.statistics.kinds.regression:POISSON",
        "cox": "dpmpc.statistics.kinds.cox:COX",
        "hr": "dpmpc.statistics.kinds.cox:HR",
        "ordinal": "dpmpc.statistics.kinds.regression:ORDINAL",
    },
    lambda thing: isinstance(thing, QuestionKind),
)


def parts_of(query: AskedQuestion, columns: Columns, models: Mapping[str, ScoreModel]) -> tuple[Part, ...]:
    """The blocks that a question needs. models: by the names that questions have for them."""
    return QUESTION_KINDS[query.what].parts(query, columns, models)


def answer(asking: Asking) -> Answer:
    """The answer to a question, with its pictures."""
    kind = QUESTION_KINDS[asking.query.what]
    found = kind.answer(asking)
    return replace(found, shapes=tuple(shape for shape in kind.draw(found) if shape.lines))
