"""The owners' process of a run: records in, one release after another through the one `Aggregator`, model and report
out. With parties here it is the whole run; with parties elsewhere it plays all owners or one of them."""

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from dpmpc.aggregation.owner.local_parties import PartiesHere
from dpmpc.aggregation.owner.opens_sums import Release
from dpmpc.aggregation.owner.own_ledger import OwnLedger
from dpmpc.aggregation.party.beside_owner import PartyHere, named
from dpmpc.aggregation.plan.asked import Presence
from dpmpc.aggregation.plan.fields import differing
from dpmpc.aggregation.plan.names import named_errors, noted
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.errors import DpmpcError, SpentError, UsageError, public_message
from dpmpc.lazy import dataclass
from dpmpc.learning.method import Learner
from dpmpc.learning.model import with_figures, write_model
from dpmpc.local.evaluating import HeldOut, evaluation_of, held_sizes, inside, plainly, section
from dpmpc.local.history import History, figure_name, read_history
from dpmpc.local.job import Emit, OwnersJob, says
from dpmpc.local.learns import Learns
from dpmpc.local.own_records import records_and_plan, surveyed, tell
from dpmpc.local.plain import Evaluator, ordinary, unclipped
from dpmpc.local.report import Costs, add_figures, averaging_begins, build_report, write_report
from dpmpc.local.sites import SitesHere, SitesRun
from dpmpc.mpc.transport.site_keys import list_in
from dpmpc.outcome import Iteration
from dpmpc.planning.adviser import Advice
from dpmpc.planning.forecast import forecast, too_few, why_not
from dpmpc.planning.training import foretold
from dpmpc.privacy.mechanism import Mechanism
from dpmpc.processes.logs import log_to
from dpmpc.processes.status import Status, status_path
from dpmpc.processes.worker import Log
from dpmpc.records import Dataset
from dpmpc.records.loading import OpenTable
from dpmpc.run.forecast import check_possible
from dpmpc.run.once import Once
from dpmpc.run.owners import Ended, Made, Sends, nobody
from dpmpc.run.resume import Since
from dpmpc.run.run import FinishedPlan, OpenedRelease, release, run
from dpmpc.run.seat import Seat
from dpmpc.run.stages import StagePart, whole_plan
from dpmpc.show.chart import draw
from dpmpc.statistics.held_out import figures_in

Progress = Callable[[dict[str, Any]], None]


Does = Callable[[OwnersJob, Log, Emit], None]  # what owners do in a run


def run_owners(job: OwnersJob, path: Path, progress: Progress, does: Does | None = None) -> None:
    """Does the run, with its log at `path`; `does`: what, where it is no training. Errors: bad input
    (before any connection), and PeerError when a party leaves."""
    who = "owners" if job.owner is None else f"owner_{job.owner}"
    if job.owner is not None:
        job = replace(job, request=job.request.among_others)
    called: Callable[[str], str] = str
    if (plan := job.plan) is not None:
        whole = whole_plan(plan, job.stage)
        called = lambda text: plan.called(differing(text, whole))  # noqa: E731
    with path.open("a", encoding="utf-8") as file:
        write = log_to(file)
        try:
            with Status(status_path(job.out, who), called(who.replace("_", " "))) as status, named_errors(called):
                tell: Emit = lambda event, **fields: progress({"event": event, **fields})  # noqa: E731
                _any(job, does, *noted(status, write, tell, called))
        except DpmpcError as error:
            write(f"error: {public_message(error)}")
            raise


def _any(job: OwnersJob, does: Does | None, log: Log, emit: Emit) -> None:
    """A run of training, or what else is done."""
    if job.request.executor is not None and job.owner is None:
        raise UsageError(
            "an executor's workers read the records of one owner; this process plays all of them; start each owner "
            "alone with <<index=owner0>> and so on, or leave <<executor>> out"
        )
    with contextlib.ExitStack() as stack:
        sites, parties = None, None
        if job.request.role == "both" and job.party is None:
            sites = SitesHere(job.request.parties, job.here, job.books)
            stack.callback(sites.end)
        elif job.addresses is None and job.request.engine == "mpc":  # they import while records are loaded
            role = {} if job.role is None else {"role": job.role}
            parties = PartiesHere(job.request.parties, job.here, job.books, **role)
            stack.callback(parties.end)
        try:
            if does is not None:
                does(job, log, emit)
                return
            _run(job, parties, sites, log, emit, stack)
        except DpmpcError as error:
            if job.party is None:
                raise
            raise named(f"owner {job.owner}", error) from None


class _Training(Learns):
    """The owners of a training run that are played here, and of the evaluation after it. `within`: which figures it
    will have."""

    def __init__(
        self, job: OwnersJob, plan: Plan, dataset: Dataset, advice: Advice | None, within: "_Within", log: Log,
        emit: Emit, sites: SitesHere | None,
    ) -> None:  # fmt: skip
        first, end = job.seat(log).owners or (0, plan.owners)
        noise = plan.derived.mechanism.scale * plan.grid.step / plan.divisor
        learner = Learner(plan.learning, plan.releases, dataset.train, plan.sizes[first:end], noise)
        super().__init__(plan, learner, emit, opens=None if sites is None else partial(self._at, sites))
        self.job, self.dataset, self.advice, self.within = job, dataset, advice, within
        self._log = log
        self.report: dict[str, Any] | None = None  # from when its own releases are over
        self.evaluator: Evaluator | None = None
        self.presence: dict[int, Presence] = {}  # by release, where owners may be missing
        self._noted = frozenset[int]()  # the releases of earlier attempts that have their row
        self._history: History

    def coming(self, plan: Plan) -> Sequence[Plan]:
        return evaluation_of(plan) if self.within.inside else ()

    def after(self, plan: Plan) -> Sequence[Plan]:
        if not self.within.inside:
            return ()
        self._held = HeldOut(self.job.request, plan, self.dataset)
        return [self._held.plan(self.learner.model)]

    @contextlib.contextmanager
    def plays(self, plan: Plan, seat: Seat, since: Since) -> Iterator[Sends]:
        if plan.run_id != self.plan.run_id:
            doing = "evaluating the model on held-out records, inside the guarantee"
            self.hears("stage", text=doing, phase="evaluating")
            yield Once(partial(self._held.means, plan, self.learner.model), doing, nobody, lambda ended: None)
            return
        job, within, first = self.job, self.within, since.attempt.first_release
        if job.resume:
            self._log(f"carried on from release {first}; {len(since.known)} opened before")
        if job.addresses is None:
            check_possible(plan, plan.releases - first)
        if within.reason:
            self.hears("stage", text=within.reason)
        if within.plainly:
            self.hears("stage", text="finding the non-private optimum, for comparison")
            self.evaluator = Evaluator(plan.learning, self.dataset, unclipped(job.request, self.dataset, job.out))
        self.hears("plan", releases=plan.releases, first=first)
        self.hears("begin", run=plan.run_id, releases=plan.releases, first=first)
        self._noted = frozenset(row.release for row in read_history(job.out / "history.csv"))
        with contextlib.closing(History(job.out / "history.csv", plan.learning)) as self._history:
            yield self

    def takes(self, release: Release, made: Made | None) -> None:
        super().takes(release, made)
        if release.present is not None:
            self.presence[release.number] = release.present
        if made is None and release.number in self._noted:
            return
        row = self._note(release, made)
        if made is None:
            return
        name = None if row.figure is None else figure_name(self.plan.learning)
        shown = {"loss": row.loss, "score": row.score, "figure": row.figure, "seconds": row.seconds}
        self.hears("iteration", done=row.iteration, total=self.plan.releases, figure_name=name, **shown)

    def keeps(self, ended: Ended) -> None:
        _keep(self, ended)

    def _at(self, sites: SitesHere, since: Since, ledger: OwnLedger | None) -> SitesRun:
        """The releases of a run in which every owner is a party, and all sites are here."""
        records, say = self.dataset.train, says(self._log, self.hears)
        return sites.of(self.plan, since.attempt, self.job.out, records, since.known, say=say)

    def _note(self, release: Release, made: Made | None) -> Iteration:
        """Write the row of the iteration that a release gave."""
        loss = gap = score = figure = None
        if self.evaluator is not None:
            model = self.learner.model
            loss, score = self.evaluator.objective(model), self.evaluator.score(model)
            gap, figure = loss - self.evaluator.best, self.evaluator.figure(model)
        present = release.present
        checked = present if self.plan.checks_owners else None
        failed = "" if checked is None else " ".join(map(str, self.plan.missing(checked)))
        owners = None if present is None else len(present)
        seconds, sent = (None, None) if made is None else (made.seconds, made.sent)
        row = Iteration(self.learner.iteration, release.number, loss, gap, score, seconds, sent, owners, failed, figure)
        self._history.append(row)
        return row


def _run(
    job: OwnersJob, parties: PartiesHere | None, sites: SitesHere | None, log: Log, emit: Emit,
    until: contextlib.ExitStack,
) -> None:  # fmt: skip
    if job.plan is not None:  # before a record is read
        for line in job.check(job.plan):
            log(line)
    seat = job.seat(says(log, emit), parties)
    with contextlib.ExitStack() as while_read:

        def trains(job: OwnersJob, before: tuple[Mechanism, ...], records: OpenTable | None) -> _Training:
            emit("stage", text="loading records", phase="loading records")
            dataset, plan, advice = records_and_plan(job, emit, before, records, until)
            while_read.close()
            for line in () if job.plan is not None else job.check(plan):
                log(line)
            tell(dataset, plan, job, log, emit)
            for text in () if before else foretold(plan, advice):  # those of a survey were told before it
                emit("stage", text=f"warning: {text}")
            within = _evaluated_inside(job, plan, dataset)
            return _Training(job, plan, dataset, advice, within, log, emit, sites)

        found = surveyed(job, emit, while_read, trains)
        if found is not None:
            training = _concluded(lambda: run(found.whole, found, seat, while_read), lambda: found.trains)
        else:
            training = trains(job, (), None)
            if job.addresses is None:
                _concluded(lambda: run(training.plan, training, seat), lambda: training)
            else:
                _apart(job, training, seat, log, emit)
    log(f"{training.learner.iteration} iterations; report and model written")


def _concluded(does: Callable[[], FinishedPlan], who: Callable[[], Learns | None]) -> _Training:
    """Does a run of training, and puts the figures of the evaluation after it into the report and the model. One that
    was spent and not opened by an attempt that was cut short leaves a model without figures, which the report says."""
    try:
        after = does().after
    except SpentError as error:
        training = who()
        if not isinstance(training, _Training) or training.report is None:
            raise
        training.report["warnings"].append(f"no figures of the model: {error.message}")
        _write(training)
        return training
    training = who()
    assert isinstance(training, _Training)
    for evaluation in after:
        _evaluated(training, evaluation)
        _write(training)
    return training


def _apart(job: OwnersJob, training: _Training, seat: Seat, log: Log, emit: Emit) -> None:
    """Has the releases of a training over several machines made, whose stages are others' affair (`consortium.start`).
    """
    with contextlib.ExitStack() as stack:
        if job.party is not None:
            party = PartyHere(job.party, log, emit)
            stack.callback(party.end)
            seat = replace(seat, parties=party)
        release(StagePart(training.plan, training.plan), training, seat)


def _keep(training: _Training, ended: Ended) -> None:
    """Writes the model, and makes the report; with figures to come, that is written with them."""
    job, dataset, plan = training.job, training.dataset, training.plan
    write_model(job.out / "model.npz", training.learner.model, dataset, plan.run_id, plan.learning.weights)
    costs = Costs(
        time.time() - job.started, ended.seconds, training.learner.compute_s, ended.costs, ended.replayed, ended.lost
    )
    report = build_report(
        plan, ended.attempt, training.learner, training.evaluator, costs, training.advice, training.presence,
        _names(training), dataset.columns,
    )  # fmt: skip
    report["tls"] = job.here.tls is not None  # between its processes; of one machine's none needs it
    listed = None if job.here.tls is None else list_in(job.here.tls)
    report["keys"] = None if listed is None else listed.number
    if job.request.baseline and job.owner is None:
        report["baseline"] = ordinary(job.request, dataset, job.out)
    training.report = report
    if not training.within.inside:
        _write(training)


def _write(training: _Training) -> None:
    """Writes the report, last of all: from now on the run is over."""
    report, out = training.report, training.job.out
    assert report is not None
    draw(out / "report.svg", read_history(out / "history.csv"), report, averaging_begins(report))
    write_report(out / "report.json", report)


@dataclass(frozen=True)
class _Within:
    """Whether figures come from inside the promise, whether plain ones are looked at, and what is said about it."""

    inside: bool
    plainly: bool
    reason: str = ""


def _evaluated_inside(job: OwnersJob, plan: Plan, dataset: Dataset) -> _Within:
    """Which figures the run will have. Errors: those asked for cannot be had."""
    request, here = job.request, job.owner is None and job.addresses is None and job.plan is None
    if not here:
        return _Within(False, request.evaluate and job.owner is None)
    learning, held = plan.learning, sum(held_sizes(request, dataset, plan.owners)[1])
    found = inside(request, held, learning.task, learning.classes) and bool(plan.part)
    reason = ""
    if request.evaluate and request.figures is None and request.source is not None and not found and held:
        why = why_not(request) or too_few(request, held, learning.task, learning.classes)
        reason = f"figures will be of plain records, outside the guarantee; inside, {why}"
    elif found and request.source is not None:
        reason = forecast(request, held, learning.task, learning.classes)
    return _Within(found, plainly(request, found), reason)


def _evaluated(training: _Training, made: OpenedRelease) -> None:
    """Puts the figures that an evaluation opened into the model and the report."""
    figures, report = figures_in(made.plan.source, made.opening), training.report
    assert report is not None
    with_figures(training.job.out / "model.npz", figures.to_json())
    add_figures(report, figures.to_json(), figures.warnings)
    report["evaluation"] = section(made.plan)


def _names(training: _Training) -> tuple[str, ...]:
    """What the owners are called: by the consortium, or in the records."""
    return training.dataset.group_names if training.plan.names is None else training.plan.names.owners
