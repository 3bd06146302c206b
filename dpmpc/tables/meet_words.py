"""The second release of a meeting: words that many records of all owners together have, opened under a promise of its
own (`learning.naming`)."""

import math
from collections.abc import Mapping, Sequence
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmpc.aggregation.plan.decided import count_decisions
from dpmpc.aggregation.plan.guarantee import Promise, promise_of
from dpmpc.aggregation.plan.of_source import plan_of
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.plan.stages import noise_of
from dpmpc.errors import UsageError, number_of
from dpmpc.intake.table import Table
from dpmpc.lazy import cached_property, dataclass
from dpmpc.learning.naming import LONGEST, NamingSource, naming_in, said
from dpmpc.mpc.contract.backend import BACKENDS, Counts
from dpmpc.mpc.transport.wire import HEADER
from dpmpc.noise.draw import count_draw
from dpmpc.privacy.checks import check_epsilon
from dpmpc.run.run import run
from dpmpc.run.seat import Seat
from dpmpc.tables.of_table import OfTable

FOLDER = "words"  # of the release, in the meeting's
NAMED = 0.95


@dataclass(frozen=True)
class OpenedWords:
    """The words that a release has opened, public: its plan, and the words of each column."""

    plan: Plan
    found: Mapping[str, tuple[str, ...]]

    @cached_property
    def promise(self) -> Promise:
        """Its own."""
        return promise_of(self.plan)

    def lines(self, before: Promise) -> list[str]:
        """For people: its promise, what it comes to with that of the meeting `before`, and the words."""
        mine = self.promise
        both = f"epsilon = {before.epsilon + mine.epsilon:.6g}, delta = {before.delta + mine.delta:.3g}"
        return [
            f"words are of a release of their own: {mine.sentence}",
            f"with the meeting: {both}, by adding up",
            *(said(name, list(words)) for name, words in self.found.items()),
        ]

    @property
    def listed(self) -> str:
        """All of them, one a line: a list for `--word-list`."""
        return "".join(f"{word}\n" for word in dict.fromkeys(word for words in self.found.values() for word in words))


def plan_of_words(columns: Sequence[str], meeting: Plan, epsilon: float | None, settings: Mapping[str, Any]) -> Plan:
    """The plan of the release, of the same data and owners as the meeting's. `epsilon`: None for the meeting's;
    settings: of the meeting. Errors: a column that is not compared; as `plan_of`."""
    if odd := [name for name in columns if name not in meeting.source.reads]:
        raise UsageError(f"words are opened of columns that are compared; '{odd[0]}' is not; name it among them")
    asked = {**settings, **({} if epsilon is None else {"epsilon": check_epsilon(epsilon)})}
    source = NamingSource(tuple(dict.fromkeys(columns)))
    return plan_of(source, meeting.sizes, data_id=meeting.data, **asked)


def foreseen_words(plan: Plan) -> list[str]:
    """What the release would open, and what it takes, from public numbers alone."""
    decision, source, promise = plan.derived.decision, naming_in(plan.source), promise_of(plan)
    assert decision is not None
    found = [
        f"words of {', '.join(source.columns)}, in a release of their own: {promise.sentence}", words_needed(plan)
    ]  # fmt: skip
    if plan.parties:
        backend, among = BACKENDS[plan.backend], (plan.parties, plan.threshold)
        total = sum(count_decisions(plan, decision), start=Counts())
        total += count_draw(backend, plan.derived.sampler, plan.drawn, *among)
        sent = max(total.bytes_with_headers(HEADER.size), default=0)
        found.append(
            f"a party sends {sent / 1e6:,.1f} MB in {total.rounds} exchanges to decide that; an owner "
            f"{max(backend.payload_bytes(*among, 1, plan.dimension)) / 1e6:,.1f} MB to each party at most"
        )
    return found


def words_needed(plan: Plan) -> str:
    """How many records of all owners a word needs in a release of words; public."""
    decision, source = plan.derived.decision, naming_in(plan.source)
    assert decision is not None
    least = math.ceil(decision.least * plan.grid.step + NormalDist().inv_cdf(NAMED) * noise_of(plan))
    return (
        f"a word is opened in {NAMED:.0%} of such releases where at least {number_of(least, 'record')} have it, of all "
        f"{sum(plan.sizes):,}, beyond those with other words in its cell, one of {source.cells}; {LONGEST} bytes "
        "at most"
    )


def open_words(plan: Plan, table: Table, number: NDArray[np.int64], seat: Seat) -> OpenedWords:
    """Makes the release, in the folder of `seat`. Errors: as of releases."""
    source, own = naming_in(plan.source), run(plan, OfTable("meet", table, number), seat).own
    total = own.mean * plan.divisor
    return OpenedWords(own.plan, {name: tuple(each.values()) for name, each in source.words(total).items()})
