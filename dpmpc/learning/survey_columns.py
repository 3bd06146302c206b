"""From a draft of a schema to a survey's questions, and from its findings to the schema; words of categories, opened by
a stage before it, are the names of what it finds.

A draft is a schema as far as it is public: columns with a known range, whose shape a survey tells; lists and dates,
which stay as they are; columns of which nothing is known. A number becomes (v - mean)/(2 deviations), clipped to
[-1, 1], so that a missing value, which is 0, is the mean.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec

from dpmpc.errors import UsageError
from dpmpc.lazy import dataclass
from dpmpc.learning.class_weights import balancing, scaled
from dpmpc.learning.label_counts import counted, label_counts
from dpmpc.learning.naming import NamedColumns
from dpmpc.learning.source import Stage, Sum
from dpmpc.learning.survey import MANY, FoundColumn, Survey, SurveyFindings
from dpmpc.learning.survey_numbers import WIDEST
from dpmpc.learning.task import TASKS
from dpmpc.privacy.checks import check_epsilon
from dpmpc.records.schema import Basis, Classes, Column, Date, Labels, Numeric, Range, Schema, Surveyed, with_names
from dpmpc.records.spline_basis import KNOTS

if TYPE_CHECKING:
    pass  # which brings a database; parties have no records

ANY = (-WIDEST, WIDEST)  # the range of a number of which none is known
RULE = 7  # by which findings become a schema
SURVEY = "survey"  # the name of a survey before training


@dataclass(frozen=True)
class Draft(NamedColumns):
    """A survey before training: what is public of the columns, what the survey alone comes to at the plan's delta, and
    the version of the rule by which its findings become a schema."""

    schema: Schema
    epsilon: float
    rule: int = RULE
    balanced: bool = False  # whether it counts labels too, of which weights of classes are made

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.schema, dict):  # out of a file
            object.__setattr__(self, "schema", Schema.from_json(self.schema))
        if type(self.rule) is not int or self.rule != RULE:
            raise UsageError(
                f"a survey's findings become a schema by rule {RULE}; the plan has rule {self.rule!r}; use the same "
                "dpmpc everywhere"
            )
        check_epsilon(self.epsilon)
        if type(self.balanced) is not bool:
            raise UsageError(f"a survey counts labels or does not; the plan says {self.balanced!r}; plan again")
        if self.balanced:
            counted(self.schema.target)
        self.check_named(self.schema.unknown)

    @property
    def questions(self) -> Survey:
        """What is asked of every record. Errors: the draft leaves nothing open."""
        asked = replace(survey_of(self.schema), words=self.named)
        return replace(asked, texts=(*asked.texts, counted(self.schema.target))) if self.balanced else asked

    @property
    def stage(self) -> Stage:
        """The survey. Errors: the draft leaves nothing open."""
        return Stage(SURVEY, self.questions, self.epsilon)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """Those that are still to come."""
        return self.up_to(self.stage)

    def longest(self, records: int, noise: float) -> int:
        """The most features that the schema after the survey has."""
        knots = KNOTS if self.schema.basis == "additive" else 0
        stated = sum(len(column.features) for column in self.schema.columns if not is_open(column))
        return survey_of(self.schema).most_features(records, noise, knots) + stated + self.schema.intercept

    @property
    def places(self) -> int:
        """How many numbers a record is kept as at most (`records.design`), whatever the survey finds."""
        schema = self.schema
        return len(schema.unknown) + sum(len(c.parts) if isinstance(c, Date) else 1 for c in schema.columns)

    def after(self, opened: Sum) -> Schema:
        """The schema of what a survey has opened. Errors: nothing stood out of its noise."""
        asked = self.questions
        found = asked.findings(opened.total, opened.count, opened.noise, narrow=(self.schema.target.name,))
        return with_names(surveyed_schema(found, self.schema), self.names_of(asked, opened.total, opened.noise))

    def weights(self, opened: Sum) -> tuple[float, ...]:
        """The weights of classes that make them count alike, by the noisy counts of labels; () where none are asked
        for. The same on every processor: sums and quotients of single numbers."""
        target = self.schema.target
        if not self.balanced or not isinstance(target, Labels | Classes):
            return ()
        return scaled(balancing(label_counts(self.questions, opened.total, target, opened.count), opened.noise))

    def to_json(self) -> dict[str, Any]:
        """Its fields as JSON values."""
        asked = {**({"balanced": True} if self.balanced else {}), **self.names_to_json()}
        return {"rule": self.rule, "epsilon": self.epsilon, "schema": self.schema.to_json(), **asked}


def columns_line(schema: Schema) -> str:
    """What is predicted from what, in a line."""
    names = [*(column.name for column in schema.columns), *schema.unknown]
    return f"{schema.target.name} from {', '.join(names[:6])}" + (f" and {len(names) - 6} more" * (len(names) > 6))


def survey_of(draft: Schema) -> Survey:
    """The questions that a draft leaves open. Errors: it leaves none."""
    asked = [column for column in draft.columns if isinstance(column, Numeric) and is_open(column)]
    quantities: list[Numeric | Range] = [*asked]
    if isinstance(draft.target, Range):
        quantities.append(draft.target)
    if not leaves_open(draft):
        raise UsageError(
            "a survey finds ranges of numbers and what columns hold; this schema leaves nothing open; leave "
            "<<preprocessing=survey>> out"
        )
    ranges = tuple((each.name, each.low, each.high) for each in quantities if (each.low, each.high) != ANY)
    asks = Survey(tuple(each.name for each in quantities), draft.unknown, ranges=ranges)
    many = isinstance(draft.target, Range) and len(asks.names) >= MANY
    return replace(asks, twice=(draft.target.name,)) if many else asks


def leaves_open(draft: Schema) -> bool:
    """Whether a survey would find anything out: there are numbers without a stated scale, or columns that may be
    anything."""
    return bool(draft.unknown) or any(is_open(column) for column in draft.columns)


def is_open(column: Column) -> bool:
    """Whether a survey tells how this column is scaled; a scale that was stated stays."""
    return isinstance(column, Numeric) and column.scale == "centred"


def surveyed_columns(
    findings: SurveyFindings, names: tuple[str, ...] | None = None, basis: Basis = "linear"
) -> tuple[Surveyed, ...]:
    """The columns, in the survey's order, of all or of some of its names. One of which nothing stands out is left
    out. Errors: all are."""
    made = [
        _surveyed(name, found, basis)
        for name, found in findings.columns.items()
        if (names is None or name in names) and _stands_out(found)
    ]
    if not made:
        raise UsageError(
            "no column stood out of the survey's noise; the budget is too small; give <<bounds>>", code="column"
        )
    return tuple(made)


def _stands_out(found: FoundColumn) -> bool:
    return found.numbers is not None or bool(found.kept) or found.missing


def _surveyed(name: str, found: FoundColumn, basis: Basis) -> Surveyed:
    low, high = (0.0, 0.0) if found.numbers is None else found.numbers.bounds
    knots = found.numbers.knots if found.numbers is not None and basis == "additive" else ()
    return Surveyed(name, found.numbers is not None, low, high, found.buckets, found.kept, found.missing, knots)


def surveyed_schema(findings: SurveyFindings, draft: Schema) -> Schema:
    """The schema of a survey of what the draft left open. Errors: no column is left, or a quantity that is to be
    predicted does not stand out."""
    columns: list[Column] = []
    for column in draft.columns:
        if not is_open(column):
            columns.append(column)
        elif _stands_out(findings.columns[column.name]):
            columns.append(_surveyed(column.name, findings.columns[column.name], draft.basis))
    unknown = {name: findings.columns[name] for name in draft.unknown}
    columns += [_surveyed(name, found, draft.basis) for name, found in unknown.items() if _stands_out(found)]
    if not columns:
        raise UsageError(
            "no column stood out of the survey's noise; the budget is too small; give <<bounds>>", code="column"
        )
    target = draft.target
    if isinstance(target, Range):
        target = TASKS[draft.task].taken(_range(findings, draft, target))
    rests_on = draft.origin.read  # what was found lies within what the draft said
    return msgspec.structs.replace(
        draft, columns=tuple(columns), target=target, bounds="survey", rests_on=rests_on, unknown=()
    )


def _range(findings: SurveyFindings, draft: Schema, target: Range) -> Range:
    """Three deviations about the mean, within what stood out; of ridge regression with smooth functions all of them.

    Residuals are clipped at a part of this range. Curves follow what is clipped: where a narrow range cuts off the
    longer tail they turn from the mean to the median. They are learnt where records are many, so that the noise of a
    wider range costs less than that; where records are few it costs more."""
    numbers = findings.columns[target.name].numbers
    if numbers is None or not numbers.low < numbers.high:
        if (target.low, target.high) != ANY:
            return target
        raise UsageError(
            f"{draft.task} needs a target of numbers; those of '{target.name}' do not stand out of the survey's noise; "
            "give <<bounds>>"
        )
    low, high = numbers.mean - 3 * numbers.deviation, numbers.mean + 3 * numbers.deviation
    if draft.task == "ridge" and draft.basis == "additive":
        return Range(target.name, max(target.low, low), min(target.high, high))  # what is public still holds
    return Range(target.name, max(numbers.low, low), min(numbers.high, high))
