"""A rehearsal of a whole consortium on one machine: all sites' kits as they are, with made-up records by the public
schema, trial keys and loopback addresses, in a folder that is thrown away. Nothing counts.
"""

import itertools
import os
import random
import shutil
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from dpmpc.aggregation.owner.local_parties import work_out
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.consortium.joining import Joining, join
from dpmpc.consortium.kit import KEYS, LIMITS, Kit, read_kit, rewrite_site
from dpmpc.consortium.site_file import SITE
from dpmpc.errors import UsageError
from dpmpc.folders import make_folder, matching
from dpmpc.lazy import dataclass
from dpmpc.local.holdout import ids_wanted
from dpmpc.mpc.transport.credentials import make_credentials
from dpmpc.privacy.account import ENVIRONMENT
from dpmpc.processes.supervisor import Job, run_jobs
from dpmpc.processes.worker import Emit, Log
from dpmpc.run.stages import coming

_TRIES = 100
_WAIT = 120.0  # seconds for all to come, on a machine that is busy with all of them


@dataclass(frozen=True)
class RehearsalOutcome:
    """What a rehearsal did: the sites' names, and the plan whose releases were made."""

    sites: tuple[str, ...]
    plan: Plan


def kits_in(folder: Path) -> list[Kit]:
    """The kits of all sites below a folder. Errors: one is of another plan, or missing."""
    kits = [read_kit(path.parent) for path in matching(folder, f"*/{SITE}")]
    if not kits:
        raise UsageError(
            f"a rehearsal needs the folder with all kits, as `dpmpc kit` wrote it; {folder} has none", code="path"
        )
    plan = kits[0].plan
    if odd := [kit.site.name for kit in kits if kit.site.plan != kits[0].site.plan]:
        raise UsageError(f"all kits are of one plan; that of {odd[0]} is of another; make them again")
    both = plan.role == "both"
    needed = [f"{'site' if both else 'party'}{i}" for i in range(plan.parties)]
    needed += [] if both else [f"owner{j}" for j in range(plan.owners)]
    if missing := sorted(set(needed) - {kit.site.role for kit in kits}):
        raise UsageError(
            f"a rehearsal has all sites; {folder} has no kit of {', '.join(missing)}; add them", code="missing"
        )
    return kits


def rehearse(folder: Path, out: Path, say: Callable[[str], None]) -> RehearsalOutcome:
    """Runs all sites of the kits in `folder`, in the empty folder `out`. Errors: as `join` of any site."""
    kits = kits_in(folder)
    plan = kits[0].plan
    if kits[0].site.tls:
        make_credentials(out / "keys", [kit.site.role for kit in kits])
    for each in (*coming(plan), plan):  # what every site would work out by itself
        work_out(each)
    addresses = _free(plan.parties)
    jobs = []
    for kit in kits:
        mine = out / kit.site.name
        shutil.copytree(kit.folder, mine, ignore=shutil.ignore_patterns(KEYS, "run", "*.csv"))
        rewrite_site(mine, addresses, wait=_WAIT)
        if plan.source.tells_owners:  # whether a site allows it is for the day
            with (mine / LIMITS).open("a", encoding="utf-8") as file:
                file.write("\nby_owner = true\n")
        if kit.site.tls:
            _take_keys(out / "keys", mine / KEYS, kit.site.role)
        records = None
        if kit.kind != "party":
            records = mine / "made-up.csv"
            write_records(plan, plan.all_sizes[kit.number], kit.number, records)
        arguments = {"kit": str(mine), "records": None if records is None else str(records), "account": str(out / "a")}
        jobs.append(Job(f"{kit.site.name} ({kit.site.role})", f"{__name__}:site", arguments))
    say(f"{len(jobs)} sites on this machine, with made-up records: {sum(plan.all_sizes):,} of {plan.owners} owners")
    if wanted := ids_wanted(plan):
        whose = "every owner" if wanted == "all" else "an owner whose records lie in a database"
        say(f"records are held out: on the day {whose} names its column of ids, `join --id COLUMN`")
    run_jobs(jobs, seconds=None)
    return RehearsalOutcome(tuple(kit.site.name for kit in kits), plan)


def site(*, kit: str, records: str | None, account: str, emit: Emit, log: Log) -> None:
    """The role of one site's process."""
    os.environ[ENVIRONMENT] = account  # what is spent here counts nowhere
    folder = Path(kit)
    ids = None if records is None else id_column(read_kit(folder).plan)
    own = Joining.of(csv=records, ids=ids, ledgers=str(folder))
    join(folder, own, lambda event: log(str(event.get("text", event.get("event")))))


def _take_keys(source: Path, target: Path, name: str) -> None:
    make_folder(target, "a rehearsal needs a temporary folder", "set TMPDIR to another", new=True)
    for each in ("ca.crt", f"{name}.crt", f"{name}.key"):
        shutil.copy(source / each, target)


def _free(parties: int) -> list[str]:
    """Loopback addresses of parties whose ports are free, and those for owners too."""
    for _ in range(_TRIES):
        with socket.socket() as first:
            host = _bound_alone(first)
            base = first.getsockname()[1]
        if base + 2 * parties < 1 << 16 and all(_is_free(host, base + k) for k in range(2 * parties)):
            return [f"{host}:{base + i}" for i in range(parties)]
    raise UsageError(f"a rehearsal needs {2 * parties} free ports in a row on loopback; none were found; try again")


def _bound_alone(first: socket.socket) -> str:
    """The loopback host that a socket was bound on: any of Linux's 2^24. On the usual one any program may be given the
    ports before the sites listen there; it serves where it is the only one."""
    host = ".".join(["127", *(str(random.randrange(1, 255)) for _ in range(3))])
    try:
        first.bind((host, 0))
    except OSError:
        host = "127.0.0.1"
        first.bind((host, 0))
    return host


def _is_free(host: str, port: int) -> bool:
    with socket.socket() as one:
        try:
            one.bind((host, port))
        except OSError:
            return False
        return True


# -- made-up records -------------------------------------------------------------------------------------------------
def write_records(plan: Plan, records: int, seed: int, path: Path) -> None:
    """Writes a CSV file of made-up records that a plan's public schema or columns allow."""
    draw = random.Random(seed)
    columns = dict(_columns(plan))
    if plan.person is not None:  # every place is filled
        number = itertools.count()
        columns[plan.person] = lambda draw: f"p{next(number) // plan.person_rows}"
    if (name := id_column(plan)) is not None:
        order = itertools.count()
        columns[name] = lambda draw: next(order)
    with path.open("w", encoding="utf-8") as file:
        file.write(",".join(map(_quoted, columns)) + "\n")
        for _ in range(records):
            file.write(",".join(_quoted(str(make(draw))) for make in columns.values()) + "\n")


def id_column(plan: Plan) -> str | None:
    """The column of ids that made-up records need: where their number is private, and some are held out by ids."""
    if ids_wanted(plan) != "all" or plan.person is not None:
        return None
    taken, name = dict(_columns(plan)), "id"
    while name in taken:
        name += "_"
    return name


Make = Callable[[random.Random], Any]


def _columns(plan: Plan) -> Iterator[tuple[str, Make]]:
    """Name -> what makes a value."""
    for name, invented in plan.source.invented(plan.mapped_by):
        yield name, _between(*invented) if isinstance(invented, tuple) else _one_of(list(invented))


def _between(low: float, high: float) -> Make:
    return lambda draw: f"{draw.uniform(low, high):.6g}"


def _one_of(values: list[str]) -> Make:
    return lambda draw: draw.choice(values)


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if set(text) & set(',"\n\r') or text != text.strip() else text
