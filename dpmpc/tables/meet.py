"""A first meeting of sites as a function call: `dpmpc.meet`. One plan, one release, what differs between sites."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from dpmpc.aggregation.owner.accounts import Books
from dpmpc.aggregation.plan.guarantee import promise_of, warnings_of
from dpmpc.aggregation.plan.here import Here
from dpmpc.aggregation.plan.keywords import SourceKeywords
from dpmpc.aggregation.plan.of_source import plan_of
from dpmpc.aggregation.plan.opening import opening_of_sums
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.plan.stages import noise_of
from dpmpc.errors import UsageError
from dpmpc.folders import said_path
from dpmpc.intake.spelling import PLAIN, Spelling
from dpmpc.intake.table import Table
from dpmpc.lazy import cached_property, dataclass
from dpmpc.learning.naming import WORDS
from dpmpc.learning.source import Sum
from dpmpc.meeting.foresight import lines_of, needed
from dpmpc.meeting.source import MeetingSource, meeting_in
from dpmpc.meeting.told import told
from dpmpc.mpc.transport.heartbeat import WAIT
from dpmpc.outcome import Outcome
from dpmpc.privacy.law import DEFAULT_LAW
from dpmpc.records.loading import Source, opened
from dpmpc.records.mapping import owners_in
from dpmpc.run.once import unfinished
from dpmpc.run.run import run
from dpmpc.run.seat import Seat
from dpmpc.settings import keywords, said
from dpmpc.show import papers
from dpmpc.show.answers_page import as_html
from dpmpc.show.files import write_outcome
from dpmpc.show.forms import as_text, frame
from dpmpc.show.objects import Sheet, Shown
from dpmpc.tables.answer_files import ANSWERS
from dpmpc.tables.meet_words import FOLDER, OpenedWords, foreseen_words, open_words, plan_of_words
from dpmpc.tables.of_table import OfTable
from dpmpc.tables.stats import OfTables

EPSILON, DELTA = 0.1, 1e-5


@dataclass(frozen=True)
class Met(Shown):
    """A meeting whose release was opened, public: its plan, the noisy sum (dimension,) over all records, the sites'
    names, words that are tried as names of buckets, and those that a second release has opened."""

    plan: Plan
    total: NDArray[np.float64]
    sites: tuple[str, ...]
    words: tuple[str, ...] = ()
    opened: OpenedWords | None = None

    @cached_property
    def outcome(self) -> Outcome:
        """What differs, the cells of every column site by site, a first schema."""
        opening = opening_of_sums(self.plan, (Sum(self.total, self.plan.divisor, noise_of(self.plan)),))
        opening, meeting = replace(opening, names=self.sites), meeting_in(self.plan.source)
        if self.opened is None:
            return told(meeting, opening, self.words)
        mine, before = self.opened.promise, promise_of(self.plan)
        both = before.epsilon + mine.epsilon, before.delta + mine.delta  # what is drafted rests on both
        lines = self.opened.lines(before)
        under = tuple(dict.fromkeys((*before.assumptions, *mine.assumptions)))
        found = told(meeting, replace(opening, promised=both, holds_if=under), self.words, self.opened.found, lines)
        return replace(found, files={**found.files, WORDS: self.opened.listed})

    @property
    def differences(self) -> list[dict[str, Any]]:
        """Each site that differs in a column: how, how surely, and of how many of its records."""
        return list(self.outcome.section["differences"])

    @property
    def schema(self) -> str | None:
        """A first schema, as TOML; None where none was drafted."""
        found = self.outcome.files.get("schema.toml")
        return found if isinstance(found, str) else None

    def sheet(self) -> Sheet:
        """What differs, and the cells of every column site by site."""
        facts = tuple(("found", line) for line in self.outcome.lines)
        tables, shapes = papers.tables(self.outcome), lambda: [x for each in self.outcome.answers for x in each.shapes]
        return Sheet("Sites meet", facts, tables, shapes, way="print(.text()) has every number")

    def frame(self) -> Any:
        """A pandas data frame with one row a number."""
        return frame(self.outcome)

    def text(self) -> str:
        """For a terminal."""
        return as_text(self.outcome)

    def html(self) -> str:
        """One page that needs nothing else."""
        return as_html(self.outcome, "Sites meet")


def meeting_of(
    columns: Sequence[str], owners: int, target: str = "", twice: Sequence[str] = (), classes: Sequence[str] = (),
    named: Sequence[str] = (),
) -> MeetingSource:  # fmt: skip
    """The meeting of so many owners over these columns, the target among them. Errors: what no meeting can be."""
    compared = dict.fromkeys((*columns, *([target] if target else ())))
    return MeetingSource(tuple(compared), owners, target, tuple(twice), classes=tuple(classes), named=tuple(named))


@keywords(OfTables, epsilon=EPSILON, delta=DELTA)
def meet(
    records: Source,
    columns: Sequence[str] = (),
    *,
    owners: str,
    target: str = "",
    classes: Sequence[str] = (),
    twice: Sequence[str] = (),
    drop: Sequence[str] = (),
    named: Sequence[str] = (),
    words: Sequence[str] = (),
    spell: Sequence[str] = (),
    spell_epsilon: float | None = None,
    data_id: str | None = None,
    budget: str | None = None,
    account: Path | str | None = None,
    memory: int | None = None,
    spelling: Spelling = PLAIN,
    out: Path | str | None = None,
    wait: float = WAIT,
    tell: Callable[[str], None] = lambda text: None,
    **settings: Unpack[SourceKeywords],
) -> Met:
    """What differs between the records of several owners, column by column, from one release with one copy of noise.

        dpmpc.meet(frame, owners="hospital", target="died")

    columns: what is compared; by default all but that of owners and `drop`. target, classes: the column to predict,
    and its classes where they are known, for a first schema. twice: columns with half the noise of the others.
    named: columns whose words are looked for in public lists: those that everybody knows, and `words`.
    spell: columns whose words are opened, of those that enough records of all owners together have: in a second
    release, with the promise of `spell_epsilon` (that of the meeting) and the same delta, which the account counts too.
    settings: epsilon (0.1), delta (1e-5) and so on, as of `dpmpc.stats`; the account counts this release before it is
    opened. tell: is called with how large a difference will be seen, and warnings. out: a new folder for plan, ledgers,
    transcripts and the page.
    Errors: UsageError for what cannot be compared; as of releases.
    """
    folder = None if out is None else said_path(out, "out")
    if folder is not None:
        unfinished(folder, ANSWERS)
    with opened(records, memory=memory, spelling=spelling) as (table, _):
        meeting, plan, number, names = _planned(
            table, columns, owners, target, classes, twice, drop, (*named, *spell), data_id, settings
        )
        second = _second(plan, spell, spell_epsilon, settings)
        for line in () if second is None else foreseen_words(second):
            tell(line)
        for line in (*meeting.expects(plan.sizes, noise_of(plan)), *(f"warning: {w}" for w in warnings_of(plan))):
            tell(line)
        here = Here(out=folder, wait=wait, budget=budget, account=None if account is None else str(account))
        seat = Seat(here, Books.of(here))
        own = run(plan, OfTable("meet", table, number), seat).own
        found = Met(own.plan, own.mean * plan.divisor, names, tuple(words))
        if second is not None:
            if folder is not None:
                write_outcome(found.outcome, folder)  # it is there whatever becomes of the second release
            found = replace(found, opened=open_words(second, table, number, seat.inside(FOLDER)))
    if folder is not None:
        write_outcome(found.outcome, folder)
    return found


def _second(plan: Plan, spell: Sequence[str], epsilon: float | None, settings: Mapping[str, Any]) -> Plan | None:
    """The plan of the release of words; None where there is none. Errors: as `plan_of_words`."""
    if not spell:
        if epsilon is not None:
            raise UsageError(
                f"an epsilon for words is of columns whose words are opened; got {epsilon:g}; name them"
            )
        return None
    asked: dict[str, Any] = {"epsilon": EPSILON, "delta": DELTA}
    asked |= {name: value for name, value in said(dict(settings)).items() if value is not None}
    return plan_of_words(spell, plan, epsilon, asked)


@dataclass(frozen=True)
class Foreseen(Shown):
    """What a meeting would see, before anything is spent. `lines`: by weight of columns; `epsilon`: what it would take
    to see the wrong coding of all records of any site in a column of some values; inf for no noise that would.
    `words`: what the release of words would open, and what it takes; () where there is none."""

    plan: Plan
    lines: tuple[str, ...]
    epsilon: float
    words: tuple[str, ...] = ()

    def sheet(self) -> Sheet:
        """What it promises, what would be seen of each kind of column, and the epsilon that would do."""
        facts = [("promise", promise_of(self.plan).sentence), *(("seen", line) for line in self.lines)]
        facts += [("epsilon", self._enough()), *(("words", line) for line in self.words)]
        return Sheet("What a meeting would see; nothing is spent", tuple(facts))

    def text(self) -> str:
        """The same for people."""
        return "\n".join([promise_of(self.plan).sentence, *self.lines, self._enough(), *self.words]) + "\n"

    def _enough(self) -> str:
        asked = self.plan.epsilon
        if self.epsilon <= asked:
            return f"epsilon {asked:g} will do; {_up(self.epsilon)} would"
        if self.epsilon < 1e3:
            return f"epsilon {asked:g} is too little to see every site's wrong coding; {_up(self.epsilon)} would do"
        return "no epsilon will do for the smallest site: chance alone hides it; leave it out, or add records"


def _up(value: float) -> str:
    """A number in two digits, rounded up."""
    return f"{float(f'{value * 1.05:.1e}'):g}"


@keywords(OfTables, epsilon=EPSILON, delta=DELTA)
def dry(
    records: Source, columns: Sequence[str] = (), *, owners: str, target: str = "", classes: Sequence[str] = (),
    twice: Sequence[str] = (), drop: Sequence[str] = (), named: Sequence[str] = (),
    spell: Sequence[str] = (), spell_epsilon: float | None = None,
    memory: int | None = None, spelling: Spelling = PLAIN, **settings: Unpack[SourceKeywords],
) -> Foreseen:  # fmt: skip
    """What `meet` would see, from public numbers alone; nothing is spent. Of records only their owners are read."""
    with opened(records, memory=memory, spelling=spelling) as (table, _):
        meeting, plan, _, _ = _planned(
            table, columns, owners, target, classes, twice, drop, (*named, *spell), None, settings
        )
    second = _second(plan, spell, spell_epsilon, settings)
    found = foreseen(meeting, plan)
    return found if second is None else replace(found, words=tuple(foreseen_words(second)))


def foreseen(meeting: MeetingSource, plan: Plan) -> Foreseen:
    """The same of a plan."""
    noise, tests = noise_of(plan), meeting.owners * len(meeting.columns)
    return Foreseen(
        plan, tuple(lines_of(meeting, plan.sizes, noise)), needed(plan.sizes, noise, tests, plan.epsilon, plan.delta)
    )


def _planned(
    table: Table, columns: Sequence[str], owners: str, target: str, classes: Sequence[str], twice: Sequence[str],
    drop: Sequence[str], named: Sequence[str], data_id: str | None, settings: Mapping[str, Any],
) -> tuple[MeetingSource, Plan, NDArray[np.int64], tuple[str, ...]]:  # fmt: skip
    """The meeting, its plan, the number of each record's owner (n,), and the owners' names."""
    asked: dict[str, Any] = {"epsilon": EPSILON, "delta": DELTA}
    asked |= {name: value for name, value in said(dict(settings)).items() if value is not None}
    if not asked["delta"] or asked.get("law") not in (None, "", DEFAULT_LAW):
        raise UsageError(
            f"a meeting compares by Gaussian noise, which needs <<delta>>; got delta {asked['delta']:g} and law "
            f"{asked.get('law') or 'by rule'}; give a delta such as 1e-5, and no law"
        )
    if odd := [name for name in ("person", "min_owners") if asked.get(name) is not None]:
        raise UsageError(
            f"a meeting compares all owners' records, whose numbers are public; got <<{odd[0]}>>; leave it out",
            code="together",
        )
    left = {owners, *drop}
    compared = tuple(columns) or tuple(name for name in table.names if name not in left)
    for name in (*compared, *([target] if target else ())):
        table[name]
    if owners in compared:
        raise UsageError(f"owners are compared, not their names; '{owners}' says whose records are; leave it out")
    number, names = owners_in(table, owners)
    number = number.astype(np.int64)
    sizes = tuple(int(size) for size in np.bincount(number, minlength=len(names)))
    meeting = meeting_of(compared, len(names), target, twice, classes, tuple(dict.fromkeys(named)))
    plan = plan_of(meeting, sizes, data_id=data_id or table.source, **asked)
    return meeting, plan, number, names
