"""The releases of a synthetic table, one after another, each with its part of one promise."""

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmpc.aggregation.owner.encoding import decode
from dpmpc.aggregation.plan.asked import plan_path
from dpmpc.aggregation.plan.grid import Ints
from dpmpc.aggregation.plan.guarantee import promise_of
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.errors import UsageError
from dpmpc.intake.table import Table
from dpmpc.learning.naming import STAGE, NamingSource
from dpmpc.learning.survey import Survey
from dpmpc.outcome import Level
from dpmpc.privacy.gaussian import epsilon_of_mu, mu_of_budget
from dpmpc.processes.closing import Closing
from dpmpc.records.mapping import owners_of
from dpmpc.records.origins import Origin
from dpmpc.run.once import once
from dpmpc.run.reserve import Reserve
from dpmpc.run.resume import spent_anywhere
from dpmpc.run.seat import Seat
from dpmpc.show import notebook
from dpmpc.statistics.tables import STEP, Tables
from dpmpc.synthesis import source as stages
from dpmpc.synthesis.noisy import Noisy
from dpmpc.tables.answer_files import RELEASES
from dpmpc.tables.stats import Statistics, noise_of, owned, plan_of_survey, plan_of_tables
from dpmpc.tables.synth_columns import Public

SURVEY = 0.05  # the part of mu^2 that a survey takes, where cells are not public
HOPELESS = 0.25  # the total variation of a single column's table by noise alone, above which nothing is to be had


class Releases(Closing):
    """The releases of one run, one after another, each with its part of one promise."""

    def __init__(
        self, table: Table, owner: str, sizes: tuple[int, ...], data_id: str | None, seat: Seat,
        settings: Mapping[str, Any], capacity: bool = False, stages: Sequence[str] = RELEASES,
    ) -> None:  # fmt: skip
        self.stages = tuple(stages)  # folders of the releases after a survey; "": the run's own
        self.capacity = capacity  # sizes are of places
        self.table, self.owner, self.sizes, self.data_id = table, owner, sizes, data_id
        self._seat, self.settings = seat, dict(settings)
        self.epsilon, self.delta = float(settings.get("epsilon") or 1.0), float(settings.get("delta") or 0.0)
        self.before: tuple[Any, ...] = ()
        self.spent = 0.0  # of mu^2
        self.bytes = 0  # that the parties sent
        self._run = self._begun() or secrets.token_hex(8)  # the name under which all of its releases count as one run
        self._reserve = Reserve(seat.books, seat.out)
        self.origin = Origin()

    @staticmethod
    def of(
        table: Table, public: Public, owners: str | None, data_id: str | None, seat: Seat, settings: Mapping[str, Any],
        capacity: Sequence[int] | None = None, stages: Sequence[str] = RELEASES,
    ) -> "Releases":  # fmt: skip
        """A run over these records; `capacity`: of each owner, places for its records or persons; `stages`: the folders
        of its releases. Errors: the owners are not known, or have more."""
        own, number, sizes = owned(table, public.names, owners, settings, capacity)
        run = Releases(own, number, sizes, data_id, seat, settings, capacity is not None, stages)
        run.origin = public.origin | Origin("survey" if public.survey is not None else "public")
        return run

    def words(self, columns: Sequence[str], questions: Survey) -> dict[str, dict[int, str]]:
        """By column and bucket, the words that are opened before the survey of `questions`: of those that enough
        records of all owners have. They take as much of mu^2 as the survey. Errors: as of releases."""
        source = NamingSource(tuple(columns), within=self.epsilon)


        def of(what: Survey | NamingSource, settings: Mapping[str, Any]) -> Plan:
            return self._named(plan_of_survey(
                what, self.sizes, self.table.source, self.data_id, settings, capacity=self.capacity,
                origin=Origin(read=self.origin.read),
            ), STAGE if what is source else "")  # fmt: skip

        plan = of(source, self.settings_of(SURVEY))
        self._keep(of(questions, self.settings), plan, of(questions, self._left()))
        means = lambda: source.means(self.table, owners_of(self.table, self.owner), self.sizes)  # noqa: E731
        total = self._open(plan, means, STAGE)
        return source.words(decode(plan, total))

    def survey(self, questions: Survey, refuse: bool) -> tuple[NDArray[np.float64], float]:
        """(the opened sum, the noise's deviation a coordinate, in records) of a survey. refuse: one that finds
        nothing."""
        sizes, n = self.sizes, sum(self.sizes)

        planned = partial(
            plan_of_survey, questions, sizes, self.table.source, self.data_id, capacity=self.capacity,
            origin=Origin(read=self.origin.read),
        )  # fmt: skip
        plan = self._named(planned(self.settings_of(SURVEY)), stages.SURVEY)
        if refuse:
            refuse_faint(questions, plan)
        self._keep(self._named(planned(self.settings)), plan, self._named(planned(self._left())))
        means = lambda: questions.means(self.table, owners_of(self.table, self.owner), sizes)  # noqa: E731
        total = self._open(plan, means, stages.SURVEY)
        return decode(plan, total) * n, plan.derived.mechanism.scale * plan.grid.step

    def release(self, tables: Tables, name: str, share: float, refuse: bool) -> Statistics:
        """One release of tables. share: of what is left of mu^2; 1: all that is left, by the promise of the whole."""
        whole, plan = self._plan(tables, self.settings), self.plan(tables, share)
        if refuse:
            refuse_hopeless(tables, plan)
        self._keep(whole, plan, None if share == 1.0 else self._plan(tables, self._left()))
        total = self._open(plan, lambda: tables.means(self.table, self.owner, self.sizes), name)
        return Statistics(plan, decode(plan, total) * sum(self.sizes), Level(), str(promise_of(plan)))

    def plan(self, tables: Tables, share: float) -> Plan:
        """The plan of a release of tables, which is counted as spent."""
        last = share == 1.0
        made = self._plan(tables, self.settings_of(share), self.before if last else ())
        return made if last else self._named(made, stages.FIRST)

    def _plan(self, tables: Tables, settings: Mapping[str, Any], before: tuple[Any, ...] = ()) -> Plan:
        return self._named(plan_of_tables(
            tables, self.sizes, self.table.source, self.data_id, settings, self.origin, before,
            capacity=self.capacity, by_person=True,
        ))  # fmt: skip

    def _named(self, plan: Plan, stage: str = "") -> Plan:
        """The plan as a part of this run, which `privacy.composition.run_of` knows by the name of its stage."""
        return replace(plan, run_id=f"{self._run}+{stage}" if stage else self._run)

    def settings_of(self, share: float) -> dict[str, Any]:
        """The settings of the next release, whose part of what is left of mu^2 is `share`. The last one's promise is
        that of the whole run, with `before`."""
        if share == 1.0 or not self.delta:
            return self.settings
        mu2 = mu_of_budget(self.epsilon, self.delta) ** 2
        part = share * (mu2 - self.spent)
        self.spent += part
        return self.settings | {"epsilon": epsilon_of_mu(part**0.5, self.delta)}

    def _left(self) -> dict[str, Any]:
        """The settings of one release that costs all that is left."""
        left = mu_of_budget(self.epsilon, self.delta) ** 2 - self.spent
        return self.settings | {"epsilon": epsilon_of_mu(left**0.5, self.delta)}

    def _keep(self, whole: Plan, plan: Plan, rest: Plan | None) -> None:
        """Reserves what is still to come: before the first release one of the promise of the `whole` run, then the next
        release and one of all that is left after it. Errors: as of `Reserve.keep`; nothing is spent then."""
        spent = self._spent(plan)
        if not self.before and not spent:
            self._reserve.keep(whole)
        self._reserve.keep(plan, after=() if rest is None else (rest,), spent=lambda each: spent if each is plan else 0)

    def _stage(self, plan: Plan) -> str:
        """The name of the folder of a release."""
        return plan.run_id.partition("+")[2] or self.stages[-1]

    def _spent(self, plan: Plan) -> int:
        out = self._seat.out
        return 0 if out is None else spent_anywhere(out / self._stage(plan), plan)

    def _begun(self) -> str:
        """The name of the run that was cut short in this folder; "" where there is none."""
        names = (STAGE, stages.SURVEY, *self.stages)
        folders = [] if self._seat.out is None else [self._seat.out / name for name in names]
        found = [Plan.read(plan_path(folder)) for folder in folders if plan_path(folder).is_file()]
        return found[0].run_id.partition("+")[0] if found else ""

    def close(self) -> None:
        self._reserve.close()

    def _open(self, plan: Plan, vectors: Callable[[], Any], name: str) -> Ints:
        asks = "synth" if self.stages == RELEASES else "stats"
        with notebook.releases(f"{asks}, {name}" if name else asks, plan.releases) as emit:
            ended = once(plan, vectors, self._seat.inside(name), emit=emit)
        self.bytes += max((cost.bytes_to_parties + cost.bytes_to_owners for cost in ended.costs), default=0)
        self.before = (*self.before, plan.derived.mechanism)
        return ended.last.total


def refuse_faint(questions: Survey, plan: Plan) -> None:
    """Errors: UsageError where the records are fewer than what stands out of the survey's noise."""
    n = sum(plan.sizes)
    least = questions.high(plan.derived.mechanism.scale * plan.grid.step)
    if n <= least:
        raise UsageError(
            f"a survey finds cells of more than {least:,.0f} records beside its noise; there are {n:,}; give "
            "<<bounds>> and <<cuts>>, raise <<epsilon>>, or find more records"
        )


def refuse_hopeless(tables: Tables, plan: Plan) -> None:
    """Errors: UsageError where noise alone moves the table of some column by more than a quarter of all records."""
    n, off = sum(plan.sizes), moved(tables, plan)
    worst = max(off, key=lambda name: off[name])
    if off[worst] > HOPELESS:
        need = epsilon_of_mu(mu_of_budget(plan.epsilon, plan.delta) * off[worst] / HOPELESS, plan.delta)
        raise UsageError(
            f"a synthetic table must tell something; noise alone would move {100 * min(off[worst], 1):.0f} % of the "
            f"records of '{worst}' from their cells; {need / plan.epsilon:,.1f} times the <<epsilon>> would do, or "
            f"{int(n * off[worst] / HOPELESS) + 1} records in place of {n}, or fewer columns or cells"
        )


def moved(tables: Tables, plan: Plan) -> dict[str, float]:
    """By column the part of the records that noise alone is expected to move from their cells, from public numbers."""
    alone = tables.opened(np.zeros(tables.coordinates), noise_of(plan) / STEP, plan.sizes)
    noisy, n = Noisy(tables.columns, alone), sum(plan.sizes)
    return {
        name: 0.4 * len(noisy.axes[name].labels) * noisy.deviation([name]) / n  # half of E|noise| a cell
        for name in tables.columns.names
    }
