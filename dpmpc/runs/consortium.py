"""`consortium.toml`: one file that says all about a run over several machines, and the plan that follows from it.

Public facts only: no record, no key. Whoever coordinates writes it, all sites can read it; `runs.kit` makes of it a
folder a site. Keys are called as the options of `dpmpc train` are.
"""

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec

from dpmpc.aggregation.asked import Role
from dpmpc.aggregation.limits import AcceptFile
from dpmpc.aggregation.plan import Plan
from dpmpc.data.schema import (
    Categorical,
    Classes,
    Column,
    Labels,
    Missing,
    Numeric,
    Range,
    Scalar,
    Schema,
    Target,
    Task,
    checked_bounds,
)
from dpmpc.data.written import checked, json_schema, read_written
from dpmpc.errors import UsageError
from dpmpc.learning.method import Average, Spread
from dpmpc.mpc.addresses import BASE_PORT, Endpoint, check_loopback, owner_endpoints, parse_endpoints
from dpmpc.mpc.pulse import STALL
from dpmpc.privacy.sensitivity import Weights
from dpmpc.runs.planning import facts_of_schema, plan_of
from dpmpc.runs.request import Request

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")
_WHAT = "a consortium"


class PartyEntry(msgspec.Struct, forbid_unknown_fields=True):
    """One of [[parties]], in order. `listen`: as `--listen`; `threads`: of this party."""

    address: str
    name: str | None = None
    listen: str | None = None
    threads: int | None = None


class OwnerEntry(msgspec.Struct, forbid_unknown_fields=True):
    """One of [[owners]], in order. `records`: how many it holds, which is public."""

    records: int
    name: str | None = None


class RunPart(msgspec.Struct, forbid_unknown_fields=True):
    """[run]: names, and how processes find and lose each other."""

    data_id: str
    run_id: str | None = None
    role: Role = "apart"
    tls: bool = True
    wait: float = 600.0
    stall: float = STALL
    min_owners: int | None = None
    release_wait: float = 10.0


class RecordsPart(msgspec.Struct, forbid_unknown_fields=True):
    """[records]: a schema file, or bounds and target here. `classes` and `range` are the target's."""

    schema: str | None = None
    bounds: dict[str, list[Scalar]] | None = None
    target: str | None = None
    positive: list[Scalar] | None = None
    negative: list[Scalar] | None = None
    classes: list[Scalar] | None = None
    range: tuple[float, float] | None = None
    task: Task | None = None
    intercept: bool | None = None
    missing: Missing | None = None


class LearningPart(msgspec.Struct, forbid_unknown_fields=True):
    """[learning]: as the options of the same names."""

    method: str | None = None
    iterations: int | None = None
    lam: float | None = None
    weights: Weights | None = None
    step: float | None = None
    radius: float | None = None
    average: Average | None = None
    residual_clip: float = 1.0
    solver_tolerance: float = 1e-8


class PrivacyPart(msgspec.Struct, forbid_unknown_fields=True):
    """[privacy]: as the options of the same names."""

    epsilon: float
    delta: float | None = None
    neighbours: Literal["record", "owner"] = "record"
    calibration: str = "tight"
    law: str | None = None
    sensitivity: Spread = "theta"
    sampler: str | None = None
    grid_bits: int | None = None
    security_bits: float = 40.0


class MpcPart(msgspec.Struct, forbid_unknown_fields=True):
    """[mpc]: as the options of the same names."""

    security: str = "semi-honest"
    check_owners: Literal["zero", "stop"] | None = None
    backend: str | None = None
    link: str | float | None = None
    threshold: int | None = None
    pool: bool | None = None


class ConsortiumFile(msgspec.Struct, forbid_unknown_fields=True):
    """The file `consortium.toml`: what a run over several machines is, for all its sites."""

    run: RunPart
    parties: list[PartyEntry]
    owners: list[OwnerEntry]
    records: RecordsPart
    privacy: PrivacyPart
    learning: LearningPart = msgspec.field(default_factory=LearningPart)
    mpc: MpcPart = msgspec.field(default_factory=MpcPart)
    limits: AcceptFile = msgspec.field(default_factory=AcceptFile)


@dataclass(frozen=True)
class Site:
    """One organisation's part: `roles` are the names of its processes in certificates (party0, owner3; site2 for
    both)."""

    name: str
    party: int | None
    owner: int | None

    @property
    def role(self) -> str:
        """The process, as `dpmpc keys` and certificates call it."""
        if self.party is not None:
            return f"party{self.party}" if self.owner is None else f"site{self.party}"
        return f"owner{self.owner}"


@dataclass(frozen=True)
class Consortium:
    """A consortium whose parts go together, and the plan of its run."""

    file: ConsortiumFile
    schema: Schema
    addresses: Sequence[Endpoint]
    sites: Sequence[Site]
    plan: Plan


def editor_schema() -> dict[str, Any]:
    """The JSON schema of `consortium.toml`, for editors."""
    return json_schema(ConsortiumFile)


def read_consortium(path: Path) -> Consortium:
    """The consortium in a TOML file. Errors: UsageError with the line and the nearest known key; for parts that do not
    go together; for what no run can do."""
    file = read_written(path, ConsortiumFile, _WHAT)
    try:
        return _consortium(file, path)
    except UsageError as error:
        raise UsageError(f"{path.name}: {error}") from None


def _consortium(file: ConsortiumFile, path: Path) -> Consortium:
    addresses = _addresses(file)
    sites = _sites(file)
    schema = _schema(file.records, path)
    return Consortium(file, schema, addresses, sites, _plan(file, schema))


def _addresses(file: ConsortiumFile) -> list[Endpoint]:
    """Where the parties are called. Errors: two processes at one address; a public one without TLS."""
    addresses = parse_endpoints([party.address for party in file.parties], BASE_PORT)
    taken: dict[Endpoint, str] = {}
    for what, endpoints in (("parties", addresses), ("owners", owner_endpoints(addresses))):
        for i, endpoint in enumerate(endpoints):
            mine = f"party {i} for {what}"
            if endpoint in taken:
                raise UsageError(
                    f"every party listens at an address of its own, for owners on port + {len(addresses)}; {endpoint} "
                    f"is that of {taken[endpoint]} and of {mine}; change one"
                )
            taken[endpoint] = mine
    if not file.run.tls:
        check_loopback(endpoint.host for endpoint in addresses)
    return addresses


def _sites(file: ConsortiumFile) -> list[Site]:
    """The sites in order: parties then owners; with role both, the parties. Errors: names that are none, or twice."""
    both = file.run.role == "both"
    if not both:
        parties = _names([p.name for p in file.parties], "party")
        owners = _names([o.name for o in file.owners], "owner")
        if twice := sorted(set(parties) & set(owners)):
            raise UsageError(
                f"with role apart a site is a party or an owner; '{twice[0]}' is both; give its two processes two "
                "names, or make every owner a party with role = 'both'"
            )
        return [
            *(Site(name, i, None) for i, name in enumerate(parties)),
            *(Site(name, None, j) for j, name in enumerate(owners)),
        ]
    parties, owners = (_names([e.name for e in entries], "site") for entries in (file.parties, file.owners))
    for one, others, is_, is_not in ((owners, parties, "owner", "party"), (parties, owners, "party", "owner")):
        if alone := [name for name in one if name not in others]:
            raise UsageError(
                f"with role both every owner is a party, one process a site; '{alone[0]}' is {is_} but no {is_not}; "
                "give as many of both, with the same names, or leave role out"
            )
    return [Site(name, i, i) for i, name in enumerate(parties)]


def _names(given: Sequence[str | None], default: str) -> list[str]:
    names = [name if name is not None else f"{default}{i}" for i, name in enumerate(given)]
    for name in names:
        if not _NAME.fullmatch(name):
            raise UsageError(
                f"a site's name has up to 40 letters, digits, - and _; got {name!r}; it is a folder's name, choose such"
            )
    if twice := [name for name in names if names.count(name) > 1]:
        raise UsageError(f"every site has a name of its own; '{twice[0]}' is there twice; rename one")
    return names


def _schema(records: RecordsPart, path: Path) -> Schema:
    """The schema in the file that is named, or the one that is here. Errors: both, none, or half of one."""
    if records.schema is not None:
        here = [name for name in _HERE if getattr(records, name) is not None]
        if here:
            raise UsageError(f"the schema file says all about the columns; {here[0]} was given too; leave it out")
        schema = Schema.read(path.parent / records.schema)
    else:
        schema = _schema_here(records, path)
    if records.task is not None and records.task != schema.task:
        raise UsageError(f"the target asks for task {schema.task}; got {records.task}; leave task out")
    return schema


_HERE = ("bounds", "target", "positive", "negative", "classes", "range", "intercept", "missing")


def _schema_here(records: RecordsPart, path: Path) -> Schema:
    if records.bounds is None or records.target is None:
        raise UsageError(
            "records are mapped by a public schema; none is given; add schema = 'FILE' to [records], or target and "
            "[records.bounds]"
        )
    bounds = checked_bounds(records.bounds, path.name)
    columns: list[Column] = []
    for name, values in bounds.items():
        if isinstance(values[0], str):
            columns.append(Categorical(name, tuple(values)))
        else:
            columns.append(Numeric(name, float(values[0]), float(values[1])))
    kinds = {"positive": records.positive, "classes": records.classes, "range": records.range}
    given = [kind for kind, value in kinds.items() if value is not None]
    if len(given) != 1:
        raise UsageError(
            f"a target has positive (and negative) values, or classes, or a range; got {' and '.join(given) or 'none'};"
            " give one"
        )
    if records.negative is not None and records.positive is None:
        raise UsageError("negative values go with positive ones; only negative was given; add positive")
    target: Target
    if records.positive is not None:
        negative = None if records.negative is None else tuple(records.negative)
        target = Labels(records.target, tuple(records.positive), negative)
    elif records.classes is not None:
        target = Classes(records.target, tuple(records.classes))
    else:
        assert records.range is not None
        target = Range(records.target, *records.range)
    made = Schema(tuple(columns), target, records.intercept is not False, records.missing or "fill")
    return checked(made.to_json(), Schema, "a schema", path.name)


def _plan(file: ConsortiumFile, schema: Schema) -> Plan:
    """The plan. Errors: as `Request` and `Plan`."""
    owners = file.owners
    if file.run.role == "both":  # in the parties' order
        names = _names([party.name for party in file.parties], "site")
        by_name = dict(zip(_names([o.name for o in owners], "site"), owners, strict=True))
        owners = [by_name[name] for name in names]
    learning, privacy, mpc = (msgspec.to_builtins(part) for part in (file.learning, file.privacy, file.mpc))
    privacy["spread"] = privacy.pop("sensitivity")
    mpc["link"] = None if mpc["link"] is None else str(mpc["link"])
    request = Request(
        **learning,
        **privacy,
        **mpc,
        schema_file=file.records.schema or "consortium.toml",
        owner_sizes=tuple(owner.records for owner in owners),
        parties=len(file.parties),
        role=file.run.role,
        data_id=file.run.data_id,
        min_owners=file.run.min_owners,
        release_wait=file.run.release_wait,
        run_id=file.run.run_id or _run_id(file, schema),
        evaluate=False,
    )
    return plan_of(request, facts_of_schema(file.run.data_id, schema, request.owner_sizes or ()))


def _run_id(file: ConsortiumFile, schema: Schema) -> str:
    """The same for the same file and schema, wherever they lie."""
    value = [msgspec.to_builtins(file), schema.to_json()]
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]
