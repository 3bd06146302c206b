"""Everything that a run directory says about itself, and the ledgers around it about the budget."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dpmpc.aggregation.owner.accounts import Books
from dpmpc.aggregation.plan.asked import FIRST_ATTEMPT, plan_path
from dpmpc.aggregation.plan.check_figures import security_section
from dpmpc.aggregation.plan.guarantee import privacy_section, warnings_of
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.wire.paths import read_versions, transcript_path
from dpmpc.codec import loads
from dpmpc.consortium.site_file import SITE, SiteFile
from dpmpc.errors import UsageError, as_written
from dpmpc.folders import matching
from dpmpc.intake.written import read_written
from dpmpc.lazy import dataclass
from dpmpc.learning.model import read_model
from dpmpc.learning.naming import STAGE as WORDS
from dpmpc.local.history import read_history
from dpmpc.local.report import read_report
from dpmpc.mpc.transport.site_keys import list_in
from dpmpc.outcome import Iteration
from dpmpc.planning.request import Request
from dpmpc.privacy.account import Account
from dpmpc.privacy.book import Book
from dpmpc.privacy.composition import PARTS, Spent, run_of, spent
from dpmpc.privacy.ledgers import attempts, read_ledger
from dpmpc.privacy.seen import seen
from dpmpc.processes.provenance import software
from dpmpc.records.schema import Schema
from dpmpc.run.folder import request_path
from dpmpc.synthesis.source import FIRST, SURVEY
from dpmpc.verify.run_files import read_records
from dpmpc.verify.shipped import SENT, Sent, sent_to
from dpmpc.verify.structure import structure_of

_SIGNED = ("report.json", "plan.json", "model.npz", "verify.json", SENT, "ledger_*.jsonl", "party_*.transcript.jsonl",
           "survey/plan.json", "survey/schema.json", "survey/ledger_*.jsonl",
           "survey/party_*.transcript.jsonl", "words/plan.json", "words/ledger_*.jsonl",
           "words/party_*.transcript.jsonl", "questions/plan.json", "questions/answers.*", "questions/ledger_*.jsonl",
           "questions/party_*.transcript.jsonl", "evaluation/plan.json", "evaluation/opened.npy", "figures.json",
           "evaluation/ledger_*.jsonl", "evaluation/party_*.transcript.jsonl", "answers.*")  # fmt: skip
_OF_A_STAGE = ("plan.json", "opened.npy", "ledger_*.jsonl", "party_*.transcript.jsonl")
ROWS = "synthetic.json"
KINDS = ("structure", "statistics", "audit")
_STAGES = (WORDS, SURVEY, FIRST)  # folders of what was released before a run's own releases


@dataclass(frozen=True)
class DataSpending:
    """What was spent on the run's data: by earlier runs, with this one, by later ones too; all at one delta and for one
    kind of neighbours (`UNITS`). `where`: this was seen, in words; `unseen`: what could not be."""

    where: str
    unseen: Sequence[str]
    delta: float
    neighbours: str
    before: Spent
    this: Spent
    after: Spent
    every: Spent


@dataclass(frozen=True)
class FinishedRun:
    """A finished run. `evidence`: what verification found, by kind; `written`: whether `dpmpc verify` wrote it down
    (else only the structure was checked, for this page). `seen`: parties whose transcripts are here. `sent`: verdicts
    of others, who looked at files of their own. `site`: how a site of several machines was started. `digests`: (file,
    SHA-256). `met`: (process, version) of those that met, where a party's files are here."""

    run: Path
    report: dict[str, Any]
    plan: Plan
    history: Sequence[Iteration]
    evidence: dict[str, dict[str, Any]]
    written: bool
    seen: Sequence[int]
    sent: Sequence[Sent]
    budget: DataSpending | None
    schema: Schema | None
    digests: Sequence[tuple[str, str]]
    versions: Sequence[tuple[str, str]]
    met: Sequence[tuple[str, str]]
    finished: datetime
    one_machine: bool
    site: SiteFile | None
    listed: str | None  # the number of the list of keys
    tries: int = 1  # attempts at the run that left lines in its ledgers here

    @property
    def trains(self) -> bool:
        """Whether the run made a model."""
        return self.plan.source.TRAINS

    @property
    def synthetic(self) -> bool:
        """Whether rows were drawn of what it opened."""
        return (self.run / ROWS).is_file()

    @property
    def of_records(self) -> bool:
        """Whether owners brought records, and not vectors that a caller made."""
        return self.plan.source.OF_RECORDS

    @property
    def flower(self) -> bool:
        """Whether owners were clients of Flower: these are elsewhere, whatever ran on the server's machine."""
        return bool(self.report.get("flower"))

    @property
    def plan_digest(self) -> str:
        """What the processes of the run's first attempt compared."""
        return self.plan.digest(FIRST_ATTEMPT).hex()


@as_written("what a run's folder holds", "restore report.json and verify.json, or make them again")
def facts_of(run: Path, ledgers: Path | None = None) -> FinishedRun:
    """The facts of the run in `run`. `ledgers`: where to look for ledgers of the same data; by default its parent.

    Errors: UsageError for a directory without a finished run; LedgerError for a ledger that was changed.
    """
    if of_a_party(run):
        raise UsageError(
            f"a report is made from what an owner writes; {run} is a party's folder; name an owner's, or see dpmpc "
            "verify and dpmpc status for this one",
            code="path",
        )
    if not plan_path(run).is_file():
        read_report(run)  # says what is missing where there is no run at all
        raise UsageError(f"a report needs the run's plan.json; {run} has none; name the directory that train wrote")
    plan = Plan.read(plan_path(run))
    made = _made(run, plan)
    plans = [Plan.read(plan_path(each)) for each in made]
    trained = plan.source.TRAINS
    report = read_report(run) if trained else _of_vectors(run, plan)
    evidence, written = _evidence(run, plan, made)
    kept = matching(run, "ledger_*.jsonl")
    last = run / "report.json" if trained else max(kept, key=lambda path: path.stat().st_mtime)
    site = run.resolve().parent / SITE
    one, flower = request_path(run).is_file() or len(kept) == plan.parties > 1, report.get("flower")
    return FinishedRun(
        run=run,
        report=report,
        plan=plan,
        history=read_history(run / "history.csv"),
        evidence=evidence,
        written=written,
        seen=[i for i in range(plan.parties) if transcript_path(run, i).exists()],
        sent=sent_to(run, plan, KINDS),
        budget=_budget(run, plan, ledgers or run.resolve().parent, [each.run_id for each in plans]),
        schema=_schema(run),
        digests=[
            (path.relative_to(run).as_posix(), hashlib.sha256(path.read_bytes()).hexdigest())
            for pattern in (*_SIGNED, *(f"{stage}/{name}" for stage in _STAGES for name in _OF_A_STAGE))
            for path in matching(run, pattern)
        ],
        versions=list(software().items()),
        met=[(plan.called(name), version) for name, version in read_versions(run).items()],
        finished=datetime.fromtimestamp(last.stat().st_mtime, UTC),
        one_machine=flower["parties_here"] if flower else one,
        site=read_written(site, SiteFile, "a site") if site.is_file() else None,
        listed=_listed(report, site.parent),
        tries=max(1, attempts(map(read_ledger, kept))[plan.run_id]),
    )


def _listed(report: dict[str, Any], kit: Path) -> str | None:
    """The number of the list of keys that the run's processes compared, or, where the report does not say, that the kit
    has now; None for none."""
    if "keys" in report:
        return None if report["keys"] is None else str(report["keys"])
    found = list_in(kit / "keys") if (kit / SITE).is_file() else None
    return None if found is None else found.number


def of_a_party(run: Path) -> bool:
    """Whether `run` is the folder of a party alone, which no report is made from."""
    return bool(matching(run, "plan_*.json")) and not (run / "report.json").is_file()


def _made(run: Path, plan: Plan) -> list[Path]:
    """The folders of what was released, the last one with the run's own plan. What a training run released before has a
    part of its own in the page."""
    stages = [run / stage for stage in _STAGES if plan_path(run / stage).is_file()]
    return [run] if plan.source.TRAINS else [*stages, run]


def _of_vectors(run: Path, plan: Plan) -> dict[str, Any]:
    """What a run of a caller's vectors would report, by its plan and its ledgers. Errors: it has no ledger."""
    ledgers = matching(run, "ledger_*.jsonl")
    if not ledgers:
        raise UsageError(
            f"a report needs the ledgers of the run; {run} has none; name the `out` of an Aggregator, a Party or a "
            "Flower app"
        )
    made = {entry.release for path in ledgers for entry in read_ledger(path).entries if entry.run == plan.run_id}
    said = _said(run)
    return {
        "run": plan.run_id,
        "data": plan.data,
        "method": plan.source.KIND,
        "clip": plan.clip,
        "sampler": plan.sampler,
        "engine": "mpc" if plan.parties else "clear",
        "backend": plan.backend,
        "security": security_section(plan),
        "weights": plan.weights,
        "owners": plan.owners,
        "owner_sizes": list(plan.sizes),
        "parties": plan.parties,
        "threshold": plan.threshold,
        "iterations": len(made),
        "privacy": privacy_section(plan),
        "utility": None,
        "cost": None,
        "warnings": said.get("warnings", warnings_of(plan)),
        "flower": said.get("flower"),
    }


def _said(run: Path) -> dict[str, Any]:
    """What the program of the run's caller wrote about it, such as a Flower server's; {} if it wrote nothing."""
    try:
        value = loads((run / "report.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def _evidence(run: Path, plan: Plan, made: Sequence[Path]) -> tuple[dict[str, dict[str, Any]], bool]:
    path = run / "verify.json"
    if path.is_file():
        try:
            value = loads(path.read_text(encoding="utf-8"))
            return {kind: value[kind] for kind in KINDS if kind in value}, True
        except (ValueError, TypeError) as error:
            raise UsageError(
                f"verify.json must be what verify wrote; {path}: {error}; run dpmpc verify again"
            ) from None
    if not plan.parties or not matching(run, "party_*.transcript.jsonl"):
        return {}, False
    each = [structure_of(read_records(folder)).to_json() for folder in made]
    checks = [check for one in each for check in one["checks"]]
    return {"structure": {**each[-1], "holds": all(one["holds"] for one in each), "checks": checks}}, False


def _schema(run: Path) -> Schema | None:
    return read_model(run).schema if (run / "model.npz").is_file() else None


def _account(run: Path, plan: Plan) -> Account | None:
    """Where the run counted: the account that it was told, or the one that its plan's data have."""
    told, callers = None, not plan.source.TRAINS
    if request_path(run).is_file():
        request = Request.from_json(loads(request_path(run).read_text(encoding="utf-8")))
        told, callers = request.account, request.source is not None
    return Books.kept(told, callers=callers).account(plan)


def _budget(run: Path, plan: Plan, folder: Path, runs: Sequence[str]) -> DataSpending | None:
    """What the run's account and the ledgers below `folder` say; None if none of them knows this run. Its survey and
    its evaluation are parts of it, and so are all releases of a synthetic table, in `runs`."""
    found = seen(_account(run, plan), folder, [plan.data_id])
    own = tuple(run + part for run in runs for part in ("", *PARTS))
    times = {book.source: _written(book) for book in found.books}
    mine = [times[book.source] for book in found.books if any(entry.run in own for entry in book.entries)]
    if not mine:
        return None
    earlier = {
        entry.run
        for book in found.books
        for entry in book.entries
        if entry.run not in own and _precedes(book, entry.run, own, times[book.source] < min(mine))
    }
    before = [entry for entry in found.made if entry.run in earlier]
    this = [entry for entry in found.made if entry.run in own]
    data, neighbours = plan.data_id, plan.neighbours
    delta = found.spent(data).delta
    more = len({run_of(run) for run in runs}) - 1  # of one table that an earlier version made, under names of their own
    return DataSpending(
        found.where(whole=False),
        found.unseen(whole=False),
        delta,
        neighbours,
        spent(before, data, delta, neighbours),
        _fewer(spent(this, data, delta, neighbours), more),
        _fewer(spent([*before, *this], data, delta, neighbours), more),
        _fewer(found.spent(data, delta, neighbours), more),
    )


def _written(book: Book) -> float:
    """When a ledger was last written; one that is not there any more was written before."""
    return book.path.stat().st_mtime if book.path is not None and book.path.is_file() else 0.0


def _fewer(found: Spent, runs: int) -> Spent:
    return replace(found, runs=found.runs - runs)


def _precedes(book: Book, run: str, own: Sequence[str], older: bool) -> bool:
    """Whether `run` came before the run of the names `own`: by the order of lines where one ledger has both, else by
    the files' times."""
    order = [entry.run for entry in book.entries]
    mine = [order.index(name) for name in own if name in order]
    return order.index(run) < min(mine) if mine else older
