"""Taking part from a kit: checks that all is there, and starts the site's one process."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpmpc.aggregation.asked import plan_path
from dpmpc.aggregation.limits import Limits
from dpmpc.errors import DpmpcError, UsageError, error_of
from dpmpc.mpc.credentials import check_certificate, check_key
from dpmpc.runs.beside import options_of
from dpmpc.runs.kit import LIMITS, Kit, read_kit
from dpmpc.runs.request import Request
from dpmpc.runs.start import Progress, start
from dpmpc.runs.where import Where


@dataclass(frozen=True)
class Joining:
    """What a site says itself. `out`: by default `run` in the kit; `accept`: by default the kit's limits.toml."""

    out: Path | None = None
    csv: str | None = None
    records: str | None = None
    database: str | None = None
    sql: str | None = None
    memory: str | None = None
    precision: Any = "double"
    accept: Path | None = None
    ledgers: Path | None = None
    listen: str | None = None
    threads: int | None = None
    wait: float | None = None
    stall: float | None = None
    overwrite: bool = False


def join(folder: Path, own: Joining, progress: Progress) -> Path:
    """Runs the site of the kit in `folder` to its end; returns the folder that has its model. Errors: what is missing
    or wrong in the kit; records that do not fit; as the run ends."""
    kit = read_kit(folder)
    where = where_of(kit, own)
    request = request_of(kit, own)
    if kit.site.tls:
        check_keys(kit)
    try:
        start(request, where, progress)
    except DpmpcError as error:
        if (text := in_a_kit(str(error))) == str(error):
            raise
        raise error_of(text, error.exit_code) from None
    return where.out


_ADDRESS = "`address` under [[parties]] in consortium.toml"
_WAYS = {
    "choose another base port with -B, or addresses with -P": "end what has it, give `join --listen`, or have "
    f"{_ADDRESS} changed and all kits made anew",
    "mend -P / -B": f"mend {_ADDRESS}",
    "mend the order of -P": "mend the order of [[parties]] in consortium.toml",
    "mend -I or -P": "start the kit of each party once",
    "mend -P": f"mend {_ADDRESS}",
    "mend -I": "start the kit of each site once",
    "copy plan.json again": "make all kits anew from one consortium.toml",
}


def in_a_kit(text: str) -> str:
    """The same message, with a site's way out where it names that of `dpmpc train -I`."""
    for words, way in _WAYS.items():
        text = text.replace(words, way)
    return text


def where_of(kit: Kit, own: Joining) -> Where:
    """Where the processes are, for this one."""
    site, party = kit.site, kit.kind != "owner"
    limits = own.accept or kit.folder / LIMITS
    return Where(
        out=own.out or kit.folder / "run",
        wait=site.wait if own.wait is None else own.wait,
        stall=site.stall if own.stall is None else own.stall,
        listen=own.listen or site.listen,
        addresses=site.addresses,
        index=str(kit.number) if party else site.role,
        plan_file=plan_path(kit.folder),
        overwrite=own.overwrite,
        tls=kit.keys if site.tls else None,
        role="both" if kit.kind == "site" else "apart",
        ledgers=own.ledgers,
        limits=Limits.read(limits),
        threads=own.threads or site.threads,
    )


def request_of(kit: Kit, own: Joining) -> Request | None:
    """What an owner asks for: the plan, on its own records. None for a party. Errors: records at a party; none at an
    owner."""
    named = {
        name: value
        for name, value in (("csv", own.csv), ("records", own.records), ("database", own.database))
        if value is not None
    }
    if kit.kind == "party":
        if named or own.sql:
            raise UsageError(
                f"{kit.site.role} is a party, which has no records; --{next(iter(named), 'sql')} was given; leave it "
                "out"
            )
        return None
    if not named:
        raise UsageError(
            f"{kit.site.role} holds records; none were named; add --csv FILE, --records "
            "SOURCE or --database URL with --sql QUERY"
        )
    fields: dict[str, Any] = {**options_of(kit.plan), **named}
    return Request(**fields, sql=own.sql, memory=own.memory, precision=own.precision, evaluate=False)


def check_keys(kit: Kit) -> None:
    """Returns if the site has its key and a certificate of the kit's authority for it. Errors: what is missing, and
    who makes it."""
    role, keys = kit.site.role, kit.keys
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
            "put what comes back there"
        )
    check_certificate(keys / f"{role}.crt", keys / "ca.crt", role)
    check_key(keys / f"{role}.key", keys / f"{role}.crt")
