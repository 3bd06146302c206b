"""A synthetic table as a source of a plan: a stage of all tables of one and two columns, then the tables of the tree
that it leads to; where cells of numbers are not public, a survey that finds them before both; where nothing of the
columns is, words of theirs may be opened before it.

    Synthesis(columns, target="died", epsilon=0.47)

What a release asks follows from what the one before opened, at every process by itself; its price does not. The plan's
length is that of the tree with most cells, with as many cells as a survey can lead to.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from dpmpc.errors import UsageError
from dpmpc.lazy import cached_property, dataclass
from dpmpc.learning.source import Following, Invented, Schedule, Source, Stage, Sum
from dpmpc.learning.survey import Survey
from dpmpc.privacy.sensitivity import Sensitivity, Weights
from dpmpc.settings import only_known
from dpmpc.statistics.columns import Columns
from dpmpc.statistics.opened import Opened
from dpmpc.statistics.tables import STEP, Tables, columns_from_json, columns_to_json, of_columns
from dpmpc.synthesis import asking
from dpmpc.synthesis.constraints import Constraints
from dpmpc.synthesis.cuts import at_most, surveyed, without_cuts
from dpmpc.synthesis.noisy import Noisy
from dpmpc.synthesis.table import structure
from dpmpc.synthesis.to_find import ToFind
from dpmpc.synthesis.values import check_digits, numbers_of

if TYPE_CHECKING:
    from dpmpc.intake.table import Table
    from dpmpc.records.check import Findings
    from dpmpc.records.schema import Schema

SURVEY, FIRST = "survey", "first"  # the stages' names, and their folders'


def synthesis_of(source: Source) -> "Synthesis":
    """A source of which rows are drawn, as one. Errors: UsageError for any other."""
    if not isinstance(source, Synthesis):
        raise UsageError(f"rows are drawn of a run of a synthetic table; this one is of {source.KIND}; name another")
    return source


@dataclass(frozen=True)
class Synthesis(Source):
    """Columns, the column that rows are to tell about, impossible combinations, and what the first release comes to
    alone; all public. `survey`: what the survey comes to alone, where it is still to find the cells of numbers that
    have none; else None. `places`: whether owners' sizes are of places, so that the number of records is private.
    `digits`: decimals of columns of numbers, as everybody knows them; (name, count) each. `to_find`: what the survey is
    to find of columns of which nothing else is public; `columns` are none then."""

    KIND: ClassVar[str] = "synthesis"
    RESULT: ClassVar[str] = "synthetic.json"
    MAKES: ClassVar[str] = "a synthetic table"
    PURPOSE: ClassVar[str] = MAKES
    DOES: ClassVar[str] = "asking all questions at once"
    BEFORE: ClassVar[str] = "those that found cells, and which columns go together"
    STRICT: ClassVar[bool] = True
    DRAWS: ClassVar[bool] = True

    columns: Columns | None
    target: str | None = None
    constraints: tuple[str, ...] = ()
    epsilon: float = 0.5
    survey: float | None = None
    places: bool = False
    digits: tuple[tuple[str, int], ...] = ()
    to_find: ToFind | None = None

    def __post_init__(self) -> None:
        if (self.columns is None) != (self.to_find is not None):
            raise UsageError("columns of a synthetic table are public, or a survey is to find them; plan again")
        asking.check_columns(self.cells, self.target)
        check_digits(dict(self.digits), () if self.columns is None else numbers_of(self.columns))
        Constraints.of(self.constraints, self.columns)
        if (self.columns is None or bool(without_cuts(self.columns))) != (self.survey is not None):
            raise UsageError(
                "a survey finds the cells of numbers that have none; this plan has such numbers or a survey, not both; "
                "plan again",
                code="plan",
            )

    @property
    def known(self) -> Columns:
        """The public columns. Errors: UsageError where a survey is to find them."""
        if self.columns is None:
            raise UsageError("the columns of a synthetic table are known after its survey; this plan is of before it")
        return self.columns

    @cached_property
    def cells(self) -> Columns:
        """The columns with their cells; with as many as a survey can lead to, where it comes first."""
        return self.to_find.at_most if self.to_find is not None else at_most(self.known)

    @property
    def questions(self) -> Survey:
        """What the survey asks."""
        return self.to_find.survey if self.to_find is not None else Survey(without_cuts(self.known))

    @property
    def schedule(self) -> Schedule:
        first = Stage(FIRST, asking.first(self.cells), self.epsilon)
        if self.survey is None:
            return Schedule((first,))
        survey = Stage(SURVEY, self.questions, self.survey)
        return Schedule((*((survey,) if self.to_find is None else self.to_find.up_to(survey)), first))

    def follows(self, opened: Sum) -> Following:
        """The same with words that were opened; with cells, after a survey; then the tables of the tree of greatest
        dependence. Sums of doubles may differ in the last bits between processors, so two could choose differently
        where two trees are equally good to 1e-12; their plans' digests then differ, and the run ends before the second
        release."""
        if self.to_find is not None and self.to_find.spelling is not None:
            return Following(replace(self, to_find=self.to_find.told(opened)))
        if self.survey is not None:
            found = self._surveyed(opened)
            return Following(found, found.coordinates)
        tables = asking.first(self.known)
        first = tables.opened(opened.total / STEP, opened.noise / STEP, (opened.count,), not self.places)
        shape = structure(self.noisy(first), self.target)
        second = asking.second(self.known, shape.edges, self.target)
        return Following(second, second.coordinates)

    def _surveyed(self, opened: Sum) -> "Synthesis":
        """The same with what a survey has found, which opened this."""
        if self.to_find is None:
            columns = surveyed(self.known, self.questions, opened.total, opened.noise, dict(self.digits))
            return replace(self, columns=columns, survey=None)
        columns = self.to_find.found(opened.total, opened.noise)
        digits = tuple(each for each in self.to_find.digits if each[0] in numbers_of(columns))
        return replace(self, columns=columns, survey=None, digits=digits, to_find=None)

    def noisy(self, opened: Opened) -> Noisy:
        """What was opened, with what is impossible."""
        return Noisy(self.known, opened, Constraints.of(self.constraints, self.known))

    @cached_property
    def widest(self) -> Tables:
        """The second release's tables, if the tree is the one with most cells."""
        return asking.second(self.cells, asking.widest(self.cells, self.target), self.target)

    @property
    def coordinates(self) -> int:
        return self.widest.coordinates

    @property
    def clip(self) -> float:
        return self.widest.clip

    @property
    def comes_to(self) -> str:
        return "the rows come to `run/synthetic.parquet`, what they are good for to `run/synthetic.md`"

    @property
    def listed(self) -> Mapping[str, Sequence[str]]:
        return {} if self.columns is None else self.columns.listed

    def held_against(self, table: "Table", schema: "Schema | None", sizes: Sequence[int] = ()) -> "Findings":
        if self.columns is None:
            return super().held_against(table, schema, sizes)
        return of_columns(self.columns, self.columns.names, table, sizes)

    def invented(self, schema: "Schema | None") -> Iterator[tuple[str, Invented]]:
        yield from self.known.invented if self.to_find is None else self.to_find.invented()

    @property
    def about(self) -> list[str]:
        whose = f", with the target {self.target}" if self.target else ""
        survey = f"surveys {', '.join(self.questions.names)}: where their numbers lie" if self.survey else None
        return [
            *([] if self.to_find is None else self.to_find.about_words),
            *([survey] if survey else []),
            f"asks for a synthetic table: all tables of one and two of the columns {', '.join(self.reads)}",
            f"then the tables of a tree of them{whose}, which the first ones lead to",
        ]

    @property
    def reads(self) -> tuple[str, ...]:
        return self.known.names if self.to_find is None else self.to_find.names

    def by_record(self, sizes: Sequence[int], weights: Weights, dimension: int) -> Sensitivity:
        return self.widest.by_record(sizes, weights, dimension)

    def by_owner(self, sizes: Sequence[int], weights: Weights, dimension: int) -> Sensitivity:
        return self.widest.by_owner(sizes, weights, dimension)

    def by_presence(self, sizes: Sequence[int], weights: Weights, dimension: int) -> Sensitivity:
        return self.widest.by_presence(sizes, weights, dimension)

    def to_json(self) -> dict[str, Any]:
        return {
            "columns": None if self.columns is None else columns_to_json(self.columns),
            "target": self.target,
            "constraints": list(self.constraints),
            "epsilon": self.epsilon,
            "survey": self.survey,
            "places": self.places,
            "digits": dict(self.digits),
            **({} if self.to_find is None else {"to_find": self.to_find.to_json()}),
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "Synthesis":
        known = ("columns", "target", "constraints", "epsilon", "survey", "places", "digits", "to_find")
        only_known(value, known, "a plan's synthesis")
        survey, open_ones = value["survey"], value.get("to_find")
        columns = None if value["columns"] is None else columns_from_json(value["columns"])
        return cls(
            columns, value["target"], tuple(value["constraints"]), float(value["epsilon"]),
            None if survey is None else float(survey), bool(value["places"]),
            tuple(value["digits"].items()), None if open_ones is None else ToFind.from_json(open_ones),
        )  # fmt: skip
