"""Taking part from a kit: checks that all is there, and starts the site's one process."""

import os
from collections.abc import Callable, Mapping
from dataclasses import field, fields
from pathlib import Path
from typing import Any, Self

from dpmpc.aggregation.owner.accounts import Books
from dpmpc.aggregation.plan.asked import FIRST_ATTEMPT, plan_path
from dpmpc.aggregation.plan.fields import differing
from dpmpc.aggregation.plan.here import Here
from dpmpc.aggregation.plan.limits import NO_LIMITS, Limits
from dpmpc.aggregation.plan.names import named_errors
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.plan.spending import entry_of
from dpmpc.aggregation.wire.paths import ledger_path
from dpmpc.consortium.dry_run import Trial, before_meeting
from dpmpc.consortium.kit import LIMITS, Kit, read_kit
from dpmpc.consortium.placement import Placement
from dpmpc.consortium.site_file import SITE
from dpmpc.consortium.start import take_part
from dpmpc.consortium.toml_keys import file_spelling
from dpmpc.errors import DpmpcError, UsageError, reworded, spelt
from dpmpc.folders import passing_folder
from dpmpc.intake.spelling import Spelling
from dpmpc.lazy import dataclass
from dpmpc.local.holdout import check_named, check_parts
from dpmpc.local.named_records import looked_at, open_records
from dpmpc.local.owner_process import Progress
from dpmpc.mpc.transport.credentials import check_certificate, check_key, check_listed
from dpmpc.mpc.transport.reaching import waited_for
from dpmpc.mpc.transport.site_keys import LIST, NO_LIST, list_in
from dpmpc.planning.request import Request
from dpmpc.planning.settings import RecordSettings
from dpmpc.privacy.account import Account
from dpmpc.privacy.budget import Budget
from dpmpc.privacy.composition import parse_budget
from dpmpc.processes.background import Background
from dpmpc.processes.logs import speaking
from dpmpc.processes.supervisor import run_here
from dpmpc.run.reserve import check_budget
from dpmpc.run.stages import coming
from dpmpc.settings import Declared, declared

_OF_RECORDS = (
    "csv", "records", "database", "sql", "memory", "precision", "executor", "workers", "spelling", "account", "ids",
)  # fmt: skip
_SOURCES = _OF_RECORDS[:3]
NO_KEYS = "none are in use: every user of this machine could be every other site, and what it is tunnelled to"


@dataclass(frozen=True)
class Joining:
    """What a site says itself, by the names of settings: `records`, which and how they are read; `here`, of its process
    (`Here`), where the kit says another or nothing; `accept`: by default the kit's limits.toml."""

    records: Mapping[str, Any] = field(default_factory=dict)
    here: Mapping[str, Any] = field(default_factory=dict)
    accept: Path | None = None

    @classmethod
    def of(cls, *, accept: Path | None = None, **said: Any) -> Self:
        """Of settings that are said; those that are None are not. Errors: UsageError for one that no site says."""
        given, here = {name: value for name, value in said.items() if value is not None}, declared(Here)
        if odd := [name for name in given if name not in here and name not in _OF_RECORDS]:
            raise UsageError(f"a site says settings of its records and its process; got {odd[0]}; leave it out")
        return cls(
            {name: value for name, value in given.items() if name in _OF_RECORDS},
            {name: _path(here[name], value) for name, value in given.items() if name in here},
            accept,
        )


def _path(known: Declared, value: Any) -> Any:
    """The value, of a path as the setting has it."""
    return os.fspath(value) if known.kind is str and isinstance(value, os.PathLike) else value


def join(folder: Path, own: Joining, progress: Progress) -> Path:
    """Runs the site of the kit in `folder` to its end; returns the folder that has its model. Errors: what is missing
    or wrong in the kit; records that do not fit; as the run ends."""
    kit = read_kit(folder)
    where = where_of(kit, own)
    request = request_of(kit, own)

    def told(event: dict[str, Any]) -> None:
        progress({**event, "text": spelt(event["text"], kit_spelling)} if "text" in event else event)

    keys = _keys_in_time(kit, where.patience, lambda text: told({"event": "part", "text": text}))
    try:
        with speaking("dpmpc.consortium.joining:kit_spelling"):
            told({"event": "part", "text": keys})
            take_part(kit.plan, request, where, told)
    except DpmpcError as error:
        raise reworded(error, lambda text: spelt(text, kit_spelling)) from None
    return where.out


def try_out(folder: Path, own: Joining, progress: Progress) -> None:
    """Everything that `join` needs, tried without a run: kit, limits, keys, records, disk, ports, addresses both ways,
    certificates, clocks. Nothing is spent, and nothing that a run would find is written. Errors: as `join`; PeerError
    for who was not reached, or did not call."""
    kit = read_kit(folder)
    where, plan = where_of(kit, own), kit.plan

    def say(text: str) -> None:
        progress({"event": "part", "text": spelt(plan.called(text), kit_spelling)})

    try:
        request = request_of(kit, own)
        check_named(request, plan)
        keys = check_keys(kit)
        if kit.site.tls:
            say("certificates: key and certificate go together, and are valid now")
        say(keys)
        addresses = where.endpoints(plan.parties)
        for line in before_meeting(plan, addresses, where.out):
            say(line)
        (where.limits or NO_LIMITS).check(plan)
        say("limits: this site takes part in such a plan")
        if (account := Books.kept(where.account, callers=request is not None).account(plan)) is not None:
            account.check()
            say(f"account: what is spent is counted in {account.folder}")
        if (budget := check_room(plan, where, account)) is not None:
            within = f"epsilon {budget.epsilon:g} at delta {budget.delta:g}"
            say(f"budget: this run fits into {within}, for neighbours that differ by {_differ_by(plan.neighbours)}")
        party = None if kit.kind == "owner" else kit.number
        owner = None if kit.kind == "party" else kit.number
        if request is not None and request.executor is not None:
            from dpmpc.local.records_away import tried

            say(tried(request, plan))
        elif request is not None:
            assert owner is not None
            request = request.among_others
            with passing_folder() as temporary, open_records(request, temporary, plan=plan) as records:
                found = looked_at(plan, request, records.table, (plan.all_sizes[owner],) if plan.counted else ())
                check_parts(request, plan, owner, records.table)
            for line in found:
                say(line)
            if any(": refused: " in line for line in found):
                raise UsageError(
                    "a run would refuse these records, as was said; mend them, or the file's [[owners]]", code="records"
                )
            if any(": unfit: " in line for line in found):
                raise UsageError(
                    "records must fit what is public of them; of a column or the target hardly any does, as was said, "
                    "and a run would spend and learn nothing of it; mend its spelling, unit or codes, or plan again",
                    code="records",
                )
        listening = None
        if party is not None:
            parties, owners = where.listening(party, addresses)
            listening = parties[party], owners[party]
        trial = Trial(plan, party, owner, addresses, listening, where.tls, say)
        say("meeting the other sites, which try the same")
        with named_errors(lambda text: plan.called(differing(text, plan))):
            run_here(lambda: trial.meet(where.patience))
    except DpmpcError as error:
        raise reworded(error, lambda text: spelt(text, kit_spelling)) from None
    for line in trial.lines():
        say(line)


_PLACES = {  # where a site changes what is neither in the file nor an option of `join`
    "budget": "budget in limits.toml",
    "limits": "limits.toml",
    "by_owner": "by_owner = true in limits.toml",
    "drop": "what the schema of consortium.toml does not list",
    "index": "which kit is started here",
    "plan_file": "plan.json of the kit",
    "tls": "the files in keys/",
}
_SPELLED = {each.name for each in fields(Spelling)}
_OWN = {*_OF_RECORDS, *declared(Here)}


def _differ_by(neighbours: str) -> str:
    """What tells neighbours apart, as the budget counts it."""
    return {"record": "one record", "presence": "one record's presence"}.get(neighbours, f"one {neighbours}")


def check_room(plan: Plan, where: Placement, account: Account | None) -> Budget | None:
    """The budget that this run was held against, if there is one: with all that is spent or reserved now it fits. A run
    that has begun here is held against it when it goes on. Errors: it does not fit."""
    limits = (where.limits or NO_LIMITS).budget
    if limits is None or (where.out.is_dir() and any(where.out.iterdir())):
        return None
    budget = Budget.below(parse_budget(limits), where.ledgers, where.out, account)
    entries = tuple(entry_of(each, FIRST_ATTEMPT, 0) for each in coming(plan))
    check_budget(plan, FIRST_ATTEMPT, budget, ledger_path(where.out, 0), entries)
    return budget


def kit_spelling(name: str, value: str | None) -> str:
    """A setting as a site of a consortium finds it: its place in consortium.toml, or an option of `dpmpc join`."""
    if name in _PLACES:
        return _PLACES[name]
    if name == "spelling" or name in _SPELLED:  # options of `join`, as the command line spells them
        return f"<<{name}>>" if value is None else f"<<{name}={value}>>"
    in_file, known = file_spelling(name, value), declared(Request).get(name)
    own = known is not None and known.group is RecordSettings and name in _OWN
    if in_file is None or own:  # how a site reads its records
        given = () if known is None else known.setting.flags
        flag = (given or ("--" + name.replace("_", "-"),))[0] + ("" if value is None else f" {value}")
        theirs = known is not None and name not in _OWN
        return f"`dpmpc train {flag}`, which a consortium does not have" if theirs else f"`join {flag}`"
    return f"{in_file} of consortium.toml"


def where_of(kit: Kit, own: Joining) -> Placement:
    """Where the processes are, for this one."""
    site, party = kit.site, kit.kind != "owner"
    of_kit: dict[str, Any] = {
        "out": kit.folder / "run",
        "wait": site.wait,
        "stall": site.stall,
        "listen": site.listen,
        "threads": site.threads,
        "addresses": tuple(site.addresses),
        "index": str(kit.number) if party else site.role,
        "tls": kit.keys if site.tls else None,
        "role": "both" if kit.kind == "site" else "apart",
        "limits": Limits.read(own.accept or kit.folder / LIMITS),
    }
    return Placement(**{**of_kit, **own.here}, plan_file=plan_path(kit.folder))


def request_of(kit: Kit, own: Joining) -> Request | None:
    """Which records an owner has, and how they are read. None for a party. Errors: records at a party; none at an
    owner."""
    said = dict(own.records)
    named = [name for name in _SOURCES if name in said]
    if kit.kind == "party":
        if named or "sql" in said:
            raise UsageError(
                f"{_called(kit)} is a party, which has no records; --{[*named, 'sql'][0]} was given; leave it out"
            )
        return None
    if not named:
        raise UsageError(
            f"{_called(kit)} holds records; none were named; add <<csv=FILE>>, <<records>> "
            "SOURCE or <<database=URL>> with <<sql=QUERY>>"
        )
    return Request(**said, planned=True, evaluate=False)


def _called(kit: Kit) -> str:
    """The site's own name, with its role beside it."""
    name, role = kit.site.name, kit.site.role
    return name if name == role else f"{name} ({role})"


def _keys_in_time(kit: Kit, patience: float, say: Callable[[str], None]) -> str:
    """As `check_keys`; a certificate that is not valid yet by this machine's clock is waited for."""
    said: set[str] = set()

    async def attempt() -> str:
        return check_keys(kit)

    def lacking(text: str) -> None:
        if text and text not in said:
            said.add(text)
            say(f"waiting for {text}")

    background = Background("dpmpc keys")  # a notebook has a loop of its own
    try:
        return background.run(waited_for(attempt, patience, lacking))
    finally:
        background.stop()


def check_keys(kit: Kit) -> str:
    """What the site's keys rest on, a line: the list of all sites' keys that it has accepted, the authority alone, or
    nothing, on one machine. Errors: its key, a certificate of the kit's authority for it, or what makes them, is
    missing; a list for another plan, or without the site's own key; a kit that does without keys, at a site that has
    accepted a list: whoever writes kits would take its list away."""
    role, keys = kit.site.role, kit.keys
    if not kit.site.tls:
        if (keys / LIST).exists():
            raise UsageError(
                f"a site that has accepted a list of keys meets nobody without keys; {kit.folder / SITE} says tls = "
                f"false; have the kit made with tls = true, or take {keys / LIST} away by your own hand"
            )
        return f"keys: {NO_KEYS}"
    if not (keys / "ca.crt").is_file():
        raise UsageError(f"a kit has its authority's certificate; {keys / 'ca.crt'} is missing; get the kit again")
    if not (keys / f"{role}.key").is_file():
        raise UsageError(
            f"a site has a key of its own; {keys} has no {role}.key; make it with `dpmpc keys request {kit.folder}`, "
            f"and have {role}.csr signed"
        )
    if not (keys / f"{role}.crt").is_file():
        raise UsageError(
            f"a key must be signed by the authority; {keys} has no {role}.crt; send {role}.csr to the authority, and "
            "put what comes back there",
            code="keys",
        )
    listed = list_in(keys)
    check_certificate(keys / f"{role}.crt", keys / "ca.crt", role, listed is not None)
    check_key(keys / f"{role}.key", keys / f"{role}.crt")
    if listed is None:
        return f"keys: {NO_LIST}; see `dpmpc keys accept`"
    check_listed(keys, role, listed, kit.site.plan)
    return f"keys: those of the list with the number {listed.number}"
