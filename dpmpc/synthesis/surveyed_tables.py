"""Questions about columns of which nothing is public, as a source of a plan: a survey finds them, under one promise.

    SurveyedTables(("mean(age) by ward",), ToFind(("age", "ward"), ("ward",)), epsilon=0.2)

The questions that can be asked of what the survey found are asked then (`statistics.mentioned.askable`), of all others
everybody knows why not. What a release costs is fixed beforehand, and how many coordinates it has at most.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from dpmpc.errors import UsageError
from dpmpc.lazy import cached_property, dataclass
from dpmpc.learning.source import Following, Schedule, Source, Stage, Sum
from dpmpc.learning.survey import Survey
from dpmpc.privacy.sensitivity import Sensitivity, Weights
from dpmpc.settings import only_known
from dpmpc.statistics.cells import MOST_CELLS
from dpmpc.statistics.mentioned import as_numbers, askable, check_may_be_asked
from dpmpc.statistics.tables import Tables
from dpmpc.synthesis.source import SURVEY
from dpmpc.synthesis.to_find import ToFind

Asked = str | Mapping[str, Any]


def surveyed_tables_of(source: Source) -> "SurveyedTables":
    """A source of questions after a survey, as one. Errors: UsageError for any other."""
    if not isinstance(source, SurveyedTables):
        raise UsageError(f"questions follow from a survey of their columns; this plan is of {source.KIND}; plan again")
    return source


@dataclass(frozen=True)
class SurveyedTables(Source):
    """Questions, what a survey is to find, and what it comes to alone; all public. `owners`: their names, where
    questions are about single owners."""

    KIND: ClassVar[str] = "surveyed_tables"
    RESULT: ClassVar[str] = Tables.RESULT
    MAKES: ClassVar[str] = Tables.MAKES
    DOES: ClassVar[str] = Tables.DOES
    BEFORE: ClassVar[str] = "one that found what columns hold"
    REPORT: ClassVar[str] = Tables.REPORT
    STRICT: ClassVar[bool] = Tables.STRICT
    UNITS: ClassVar[tuple[str, ...]] = Tables.UNITS

    queries: tuple[Asked, ...]
    to_find: ToFind
    epsilon: float
    owners: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_may_be_asked(self.queries, self.questions.numbers, self.questions.texts)

    @cached_property
    def questions(self) -> Survey:
        """What the survey asks."""
        return self.to_find.survey

    @property
    def schedule(self) -> Schedule:
        return Schedule(self.to_find.up_to(Stage(SURVEY, self.questions, self.epsilon)))

    def follows(self, opened: Sum) -> Following:
        if self.to_find.spelling is not None:
            return Following(replace(self, to_find=self.to_find.told(opened)))
        columns = self.to_find.found(opened.total, opened.noise, least=1)
        kept, left = askable(self.queries, columns)
        if not kept:
            raise UsageError(f"a question is about what a survey found; none can be asked: {left[0]}; ask others")
        tables = Tables.of(columns, kept, None, {})
        if tables.tells_owners:
            if not self.owners:
                raise UsageError("questions about single owners name them; the plan has no names; plan again")
            tables = tables.among(self.owners)
        return Following(tables, tables.coordinates)

    def left_out(self, tables: Tables) -> list[str]:
        """Why the questions that `tables`, which follow, do not ask were left out, a line each."""
        return askable(self.queries, tables.columns)[1]

    @property
    def tells_owners(self) -> bool:
        return bool(self.owners)

    @property
    def clip(self) -> float:
        return self.questions.clip

    def longest(self, count: int, noise: float) -> int:
        """As many cells as any release of tables has; how many follow is known after the survey."""
        return MOST_CELLS

    @property
    def reads(self) -> tuple[str, ...]:
        return self.to_find.names

    @property
    def about(self) -> list[str]:
        asked = [each if isinstance(each, str) else json.dumps(each) for each in self.queries]
        surveys = [*self.to_find.about_words, f"surveys {', '.join(self.reads)}"]
        return [*surveys, *(f"then asks, where that can be asked: {each}" for each in asked)]

    def invented(self, schema: Any) -> Iterator[tuple[str, Any]]:
        yield from self.to_find.invented(as_numbers(self.queries, self.questions.numbers, self.questions.texts))

    # Its own releases are those of tables that are not known yet. Whatever they are, their noise is solved for so that
    # all together cost what was promised; until then the survey's distances stand for theirs, and no release is made.
    def by_record(self, sizes: Sequence[int], weights: Weights, dimension: int) -> Sensitivity:
        return self.questions.by_record(sizes, weights, self.questions.coordinates)

    def by_owner(self, sizes: Sequence[int], weights: Weights, dimension: int) -> Sensitivity:
        return self.questions.by_owner(sizes, weights, self.questions.coordinates)

    def by_presence(self, sizes: Sequence[int], weights: Weights, dimension: int) -> Sensitivity:
        return self.questions.by_presence(sizes, weights, self.questions.coordinates)

    def to_json(self) -> dict[str, Any]:
        return {
            "queries": json.loads(json.dumps(list(self.queries))),
            "to_find": self.to_find.to_json(),
            "epsilon": self.epsilon,
            "owners": list(self.owners),
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "SurveyedTables":
        only_known(value, ("queries", "to_find", "epsilon", "owners"), "a plan's questions after a survey")
        found = ToFind.from_json(value["to_find"])
        return cls(tuple(value["queries"]), found, float(value["epsilon"]), tuple(map(str, value["owners"])))
