"""What `dpmpc train` does with its options: a whole run on this machine, one process of a run on several, or the plan
alone."""

import hashlib
import json
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dpmpc.aggregation.plan import Facts, Plan, check_promise, make_plan, plan_path
from dpmpc.errors import DpmpcError, UsageError
from dpmpc.mpc.session import endpoints_here, parse_endpoints
from dpmpc.mpc.tls import check_loopback
from dpmpc.runs.folder import opened_nothing, prepare
from dpmpc.runs.launcher import RunError, options_path, owner_endpoints, train
from dpmpc.runs.request import Options
from dpmpc.runs.worker import log_to, run_job

Progress = Callable[[dict[str, Any]], None]
BASE_PORT = 11365  # MPyC's own


@dataclass(frozen=True)
class Where:
    """Where the processes of a run are. `index`: the one to start here, a party's number or "owners"; None for all of
    them."""

    out: Path
    base_port: int | None = None
    wait: float = 10.0
    addresses: Sequence[str] = ()
    index: str | None = None
    plan_file: Path | None = None
    overwrite: bool = False
    tls: Path | None = None
    budget: str | None = None  # for a party that is started alone: the parties keep the ledgers
    ledgers: Path | None = None

    def __post_init__(self) -> None:
        if self.index is not None and not re.fullmatch(r"\d{1,6}|owners|owner\d{1,6}", self.index):
            raise UsageError(f"-I takes a party's number from 0, or owners, or owner0 and so on; got {self.index!r}")
        if self.owner is not None and self.plan_file is None:
            raise UsageError(
                f"-I {self.index} plays one owner of a plan; there is none; add --plan FILE, as --plan-only makes it"
            )
        if self.addresses and self.index is None:
            raise UsageError(
                "-P says where the processes of several machines are; add -I to say which of them to start here"
            )
        if self.plan_file is not None and self.index is None:
            raise UsageError("--plan is for processes started one by one; add -I, or leave --plan out")
        if self.base_port is not None and not 1024 <= self.base_port <= 65_000:
            raise UsageError(f"-B must lie in 1024..65000; got {self.base_port}")
        if self.tls is not None and self.index is None:
            raise UsageError(
                "--tls is for processes on several machines; here all stay on loopback; add -I, or leave --tls out"
            )
        if self.budget is not None and self.index is not None and self.party is None:
            raise UsageError(
                f"--budget is held against the ledgers, which the parties keep; got it for {self.index}; give it to "
                "the parties instead"
            )
        if not 0 < self.wait < 1e6:
            raise UsageError(f"--wait must be a positive number of seconds; got {self.wait:g}")

    @property
    def party(self) -> int | None:
        """The number of the party to start here, if it is one."""
        return int(self.index) if self.index is not None and self.index.isdigit() else None

    @property
    def owner(self) -> int | None:
        """The number of the only owner to play here, if it is one."""
        return int(self.index[5:]) if self.index is not None and self.index[5:].isdigit() else None


def start(options: Options | None, where: Where, progress: Progress) -> None:
    """Does a run, or this machine's part of it. `options` may be None only for a party with a plan file.

    Errors: as the processes report them.
    """
    if where.index is None:
        assert options is not None
        train(
            options, where.out, base_port=where.base_port, overwrite=where.overwrite, wait=where.wait, progress=progress
        )
    elif where.party is None:
        assert options is not None
        _owners(options, where, progress)
    else:
        _party(options, where, where.party, progress)


def carry_on(where: Where, progress: Progress) -> None:
    """Resumes the run in `where.out` with the options it was started with."""
    prepare(where.out, overwrite=False, resume=True)
    options = Options.from_json(json.loads(options_path(where.out).read_text(encoding="utf-8")))
    train(options, where.out, base_port=where.base_port, resume=True, wait=where.wait, progress=progress)


def plan_only(options: Options, where: Where) -> str:
    """Writes plan.json and returns a line on the noise it asks for."""
    prepare(where.out, overwrite=where.overwrite, resume=False)
    plan = _plan(options)
    plan.write(plan_path(where.out))
    step = plan.grid.step / plan.divisor
    return (
        f"{where.out / 'plan.json'}: {plan.owners} owners, dimension {plan.dimension}, {plan.releases} releases; "
        f"sensitivity {plan.sensitivity:.4g}, {plan.law} noise of scale {plan.noise_steps * step:.4g} "
        f"({plan.noise_steps:.0f} grid steps)"
    )


def planned(plan_file: Path) -> dict[str, Any]:
    """The options that a plan has settled, for processes that are given one."""
    plan = Plan.read(plan_file)
    return {
        "method": plan.method,
        "iterations": plan.releases,
        "epsilon": plan.epsilon,
        "delta": plan.delta or None,
        "noise": plan.law,
        "sampler": plan.sampler,
        "parties": plan.parties,
        "threshold": plan.threshold,
    }


def _plan(options: Options) -> Plan:
    from dpmpc.runs.train import facts_of, load

    if options.has_records:
        dataset, split = load(options)
        facts = facts_of(dataset, split)
    else:
        assert options.task is not None and options.dimension is not None and options.owner_sizes is not None
        facts = Facts(options.data_id or "records", options.task, options.dimension, options.owner_sizes, "public")
    return make_plan(_named(options), facts)


def _named(options: Options) -> Options:
    """The options with a run id that all processes started with the same options agree on."""
    if options.run_id is not None:
        return options
    public = {**options.to_json(), "data_dir": None, "csv": options.csv and Path(options.csv).name, "evaluate": None}
    return replace(options, run_id=hashlib.sha256(json.dumps(public, sort_keys=True).encode()).hexdigest()[:16])


def _party(options: Options | None, where: Where, index: int, progress: Progress) -> None:
    where.out.mkdir(parents=True, exist_ok=True)
    if where.plan_file is not None:
        plan = Plan.read(where.plan_file)
        check_promise(plan)
    else:
        assert options is not None
        plan = _plan(options)
    if index >= plan.parties:
        raise UsageError(f"-I must be below the number of parties; got {index} for {plan.parties}; mend -I or -M")
    if where.budget is not None:
        from dpmpc.privacy.composition import parse_budget
        from dpmpc.runs.owners import check_budget

        check_budget(plan, where.ledgers or where.out.resolve().parent, parse_budget(where.budget))
    plan_file = where.out / f"plan_{index}.json"
    transcript, opened = where.out / f"party_{index}.transcript.jsonl", where.out / f"party_{index}.opened.bin"
    if transcript.exists():
        if not where.overwrite and not opened_nothing(opened, where.out / f"ledger_{index}.jsonl"):
            raise UsageError(
                f"--out already holds a run of party {index} ({transcript}); name another directory, or add --overwrite"
            )
        for name in (transcript, opened):
            name.unlink(missing_ok=True)
    plan.write(plan_file)
    job = {**_common(where, plan.parties), "plan": str(plan_file), "index": index}
    _here("party", job, where.out / f"party_{index}.log", progress)


def _owners(options: Options, where: Where, progress: Progress) -> None:
    prepare_owners(where)
    options = _named(options)
    parties = options.parties if where.plan_file is None else Plan.read(where.plan_file).parties
    plan = None if where.plan_file is None else str(where.plan_file)
    job = {**_common(where, parties), "options": options.to_json(), "started": time.time(), "resume": False}
    _here("owners", {**job, "plan": plan, "owner": where.owner}, where.out / "owners.log", progress)


def prepare_owners(where: Where) -> None:
    """Makes the run directory of an owners' process that runs alone. Errors: it holds a run that opened something."""
    where.out.mkdir(parents=True, exist_ok=True)
    opened, finished = where.out / "owners.opened.bin", [where.out / name for name in ("report.json", "model.npz")]
    if not where.overwrite:
        for path in (opened, *finished):
            if not opened_nothing(path):
                raise UsageError(f"--out already holds a run ({path}); name another directory, or add --overwrite")
    for path in (opened, where.out / "history.csv", *finished):
        path.unlink(missing_ok=True)


def _common(where: Where, parties: int) -> dict[str, Any]:
    base = BASE_PORT if where.base_port is None else where.base_port
    if where.addresses and len(where.addresses) != parties:
        raise UsageError(f"-P must be given once for each party; got {len(where.addresses)} for {parties} parties")
    addresses = parse_endpoints(where.addresses, base) if where.addresses else endpoints_here(parties, base)
    if where.tls is None:
        check_loopback([e.host for e in addresses])
    pairs = [[e.host, e.port] for e in addresses]
    owner_pairs = [[e.host, e.port] for e in owner_endpoints(addresses)]
    return {
        "out": str(where.out),
        "wait": where.wait,
        "tls": None if where.tls is None else str(where.tls),
        "addresses": pairs,
        "owner_addresses": owner_pairs,
    }


def _here(role: str, job: dict[str, Any], log: Path, progress: Progress) -> None:
    """Does one process's job in this process."""
    errors: list[DpmpcError] = []

    def emit(event: str, **fields: Any) -> None:
        if event == "error":
            errors.append(RunError(fields["message"], fields["code"]))
        else:
            progress({"event": event, **fields})

    with log.open("a", encoding="utf-8") as file:
        run_job(role, job, emit, log_to(file))
    if errors:
        raise errors[0]
