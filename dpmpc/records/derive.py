"""A schema for a table: from public bounds where there are some, else from the records themselves ("data").

A schema read off the records is not covered by the privacy guarantee, and says so in `bounds`.
"""

from collections.abc import Mapping as Given
from collections.abc import Sequence

from dpmpc.errors import RecordError, UsageError, number_of, sayable, some
from dpmpc.intake.column_profile import HOLLOW, ColumnProfile, dropping
from dpmpc.intake.missing import as_listed
from dpmpc.intake.objects import FRAMES
from dpmpc.intake.profile import TableProfile, look
from dpmpc.intake.spelling import composed, listed, stating
from dpmpc.intake.table import Table
from dpmpc.lazy import dataclass
from dpmpc.records.draft import MOST_CLASSES, check_features, label_of, schema_of
from dpmpc.records.schema import Classes, Goal, Kind, Missing, Range, Schema, Target, column_of_bounds
from dpmpc.records.targets import repeated

PublicBounds = Given[str, list[float] | list[str]]


@dataclass(frozen=True)
class TableSettings:
    """What a user says of a table's columns."""

    target: str
    owners_column: str | None = None
    drop: Sequence[str] = ()
    goal: Goal | None = None
    positive: str | None = None
    intercept: bool = True
    missing: Missing = "fill"
    classes: Sequence[str] = ()  # of the target, where they are known without the records

    @property
    def kind(self) -> Kind | None:
        """The kind of target that is asked for, if any."""
        return None if self.goal is None else self.goal.kind

    @property
    def task(self) -> str:
        """The name of the task that is asked for; "" for the usual one."""
        return "" if self.goal is None else self.goal.name

    @property
    def stated(self) -> Target | None:
        """The target whose classes are stated; None where they are not. Errors: they do not suit the task."""
        if not self.classes:
            return None
        if repeated(self.classes) or len(self.classes) < 2:
            raise UsageError(
                f"a target has two classes or more, each stated once; got {sayable(some(self.classes, 8))}; mend "
                "<<classes>>",
                code="unique",
            )
        return _given_target(self, list(self.classes))

    def taken(self, target: Target) -> Target:
        """The target as the task that is asked for takes it."""
        return target if self.goal is None else self.goal.taken(target)


def features_of(table: Table, asked: TableSettings) -> list[str]:
    """The columns that are features: all but the target, the owners' and those dropped. Errors: there are none."""
    for name in (asked.target, *([asked.owners_column] if asked.owners_column is not None else []), *asked.drop):
        table[name]
    _check_asked(asked)
    others = {_own(table, name) for name in (asked.target, asked.owners_column, *asked.drop) if name is not None}
    features = [name for name in table.names if name not in others]
    if not features:
        raise UsageError(
            f"training needs features; {sayable(table.source)} has no column besides target and owners; add columns"
        )
    odd = [name for name in features if table[name].kind == "other"]
    if len(odd) > 1:
        types = sorted({table[name].type.lower().partition("(")[0] for name in odd})
        raise UsageError(
            f"columns hold numbers or texts; {sayable(number_of(len(odd), 'column'))} of {sayable(table.source)} are "
            "of types "
            f"{sayable(some(types, 6))}; give numbers or texts, or leave them out: {sayable(dropping(odd))}",
            code="column",
        )
    if odd or table[asked.target].kind in ("other", "date"):
        raise UsageError(table.refusal(table[(*odd, asked.target)[0]]))
    return features


def _own(table: Table, name: str) -> str:
    """A column's name as the table itself has it, of which others may have another encoding."""
    return table[name].name if name in table else name


def _check_asked(asked: TableSettings) -> None:
    if asked.target in asked.drop:
        raise UsageError(
            f"the target is what is predicted; <<drop>> leaves '{sayable(asked.target)}' out; drop other columns"
        )
    if asked.owners_column == asked.target:
        raise UsageError(
            f"the target and the owners' column are two columns; both are '{sayable(asked.target)}'; change one",
            code="unique",
        )


def schema_of_bounds(table: Table, asked: TableSettings, public: PublicBounds) -> Schema:
    """The schema of public bounds for the columns of this table, of which nothing else decides.

    Errors: a feature or the target has no bounds; a target's bounds do not suit the task.
    """
    features, target_name = features_of(table, asked), table[asked.target].name
    public = {_own(table, name): entry for name, entry in public.items()}
    if absent := [name for name in (*features, target_name) if name not in public]:
        raise UsageError(
            "public bounds must cover every feature and the target; what was given lacks "
            f"{sayable(some(absent, 8))}; add them,"
            " or leave such columns out with <<drop>>",
            code="column",
        )
    # in the order of the bounds, which owners share; the order of a file's columns is each owner's own
    columns = tuple(column_of_bounds(name, public[name]) for name in public if name in set(features))
    target = asked.taken(_given_target(asked, public[target_name]))
    return Schema(columns, target, asked.intercept, asked.missing, "public", task=asked.task)


def schema_of_records(intake: TableProfile, asked: TableSettings, *, hashed: bool = True) -> Schema:
    """A schema whose kinds, ranges, buckets and classes are those of the records that were looked at.

    A target with two values is a label (+1 is `positive`, by default the one that is no "no", see `label_of`); one with
    some more texts has classes; one with more numbers is for ridge regression. Nothing in it is one record's value:
    ranges are rounded, texts have numbered buckets (or are listed, if not `hashed`, where records share them).
    Errors: no column can be a feature, or the target suits no task.
    """
    return schema_of(
        intake, asked.target, goal=asked.goal, positive=asked.positive, intercept=asked.intercept,
        missing=asked.missing, hashed=hashed, stated=asked.stated,
    )  # fmt: skip


def looked(table: Table, asked: TableSettings) -> tuple[TableProfile, Table]:
    """A look at the columns that were asked for, and the table as it is read from then on. Errors: as `features_of`;
    one record; fields that are spelled otherwise than was stated, all of them in one line for their owner; classes that
    differ in case only; columns of which none can be a feature."""
    for name in (asked.target, *([asked.owners_column] if asked.owners_column is not None else []), *asked.drop):
        table[name]
    _check_asked(asked)
    table = as_listed(table, {asked.target: asked.classes})
    intake, plain = look(table, target=asked.target, owners=asked.owners_column, drop=tuple(asked.drop))
    if intake.rows < 2:
        raise UsageError(f"a model is of several records; {sayable(table.source)} has one; add records", code="enough")
    check_spelled(intake, "" if asked.kind is not None or asked.classes else asked.target)
    if not asked.classes and asked.kind != "number":
        _check_classes(intake[asked.target])
    check_useful(intake)
    return intake, plain


def check_useful(intake: TableProfile) -> None:
    """Errors: no column holds what a survey can learn from, so that it would be spent for nothing."""
    check_features(intake, [c for c in intake.columns if c.role == "feature" and c.kind not in HOLLOW])


def _check_classes(target: ColumnProfile) -> None:
    """Errors: values of a target that would be classes differ in case or spaces only."""
    if not target.listed or len(target.values) > MOST_CLASSES:
        return
    alike: dict[str, list[str]] = {}
    for value, _ in target.values:
        alike.setdefault(" ".join(value.casefold().split()), []).append(value)
    if double := [names for names in alike.values() if len(names) > 1]:
        raise RecordError(
            f"classes are told apart by more than case and spaces; '{target.name}' has "
            f"{some([repr(name) for name in double[0]], 4)}; spell each class in one way",
            "classes of an owner's target differ in case or spaces only",
        )


def check_spelled(intake: TableProfile, unsaid: str = "") -> None:
    """Errors: many fields are spelled otherwise than was stated, so that they would count as missing: which columns,
    and what to state. For the owner's eyes. `unsaid`: a target of which no task was stated."""
    if merging := [c for c in intake.columns if c.merging and c.role != "dropped"]:
        words = tuple(c.name for c in merging)
        raise RecordError(
            f"a unit leaves values that differ different; <<units>> makes one of {merging[0].merging} of "
            f"'{merging[0].name}'; leave it out, or state {stating(words=words)} beside it",
            "units that an owner stated make one of values that differ",
        )
    if odd := spelled_otherwise(intake):
        shows = "" if intake.source in FRAMES else "; `dpmpc describe` shows all"
        raise RecordError(
            f"{odd}{task_of(intake, unsaid)}, leave such columns out, give a schema, or have them read as words: "
            f"{stating(words=tuple(spelled_columns(intake)))}{shows}",
            "an owner's records are spelled otherwise than it stated",
        )


def spelled_columns(intake: TableProfile) -> list[str]:
    """The columns that are spelled otherwise than was stated."""
    return [c.name for c in intake.columns if c.forms is not None and c.forms.otherwise and c.role != "dropped"]


def spelled_otherwise(intake: TableProfile) -> str:
    """Which columns are spelled otherwise than was stated, and what to state; empty where none is. For the owner's
    eyes."""
    proposed = intake.proposed.options()
    stated = intake.stated.options()
    more = {name: value for name, value in proposed.items() if value != stated.get(name) and name != "missing"}
    odd = spelled_columns(intake)
    if not odd or not (more or any(c.forms is not None and c.forms.unnamed for c in intake.columns)):
        return ""
    state = f"; state {stating(**more)}" if more else ""
    asks = "".join(f" ({ask})" for ask in intake.asks)
    return (
        f"numbers and dates are read as they were stated to be spelled; {number_of(len(odd), 'column')} of"
        f" {intake.source} {'is' if len(odd) == 1 else 'are'} not ({some(odd, 8)}){state}{asks}"
    )


def task_of(intake: TableProfile, target: str) -> str:
    """What else must be stated where a target seems to have few numbers, of which no task was stated; else nothing."""
    found = next((c for c in intake.columns if composed(c.name) == composed(target)), None)
    if found is None or not 2 < found.distinct <= MOST_CLASSES or found.dates:
        return ""
    numbers = found.forms is not None and 2 * (found.forms.odd + found.forms.read[0]) >= found.present > 0
    if not numbers and found.kind not in ("number", "identifier"):
        return ""
    return (
        f" (target: '{found.name}' has numbers; state <<task=ridge>> too, or <<task=softmax>> where they are classes)"
    )


def _given_target(asked: TableSettings, entry: list[float] | list[str]) -> Target:
    """Two texts are a label's classes, more are those of softmax regression. Two numbers are a range; but next to each
    other, as 0 and 1 are, or -1 and 1, a label's classes unless the task is for quantities."""
    name = asked.target
    if isinstance(entry[0], str) and (asked.kind == "several" or (asked.kind is None and len(entry) > 2)):
        return Classes(name, tuple(str(value) for value in entry))
    if not isinstance(entry[0], str):
        low, high = float(entry[0]), float(entry[1])
        if asked.kind == "number" or (asked.kind is None and (low, high) not in ((0, 1), (-1, 1), (1, 2))):
            return Range(name, low, high)
        if asked.kind == "several":
            raise UsageError(
                f"bounds of classes are a list of texts; '{sayable(name)}' has numbers; write them as texts"
            )
    elif len(entry) != 2 or asked.kind == "number":
        raise UsageError(
            f"bounds of a label are its two values, of a numeric target [low, high]; '{sayable(name)}' has"
            f" {sayable(str(entry)[:60])} for {sayable(asked.task or 'logistic')}; correct the bounds",
            code="type",
        )
    return label_of(name, [listed(str(value)) for value in entry], asked.positive)
