"""`consortium.toml`: one file that says all about a run over several machines, and the plan that follows from it.

Public facts only: no record, no key. Whoever coordinates writes it, all sites can read it; `consortium.kit`
makes of it a folder a site. Keys are called as the options of `dpmpc train` are.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from dpmpc.aggregation.plan.limits import Limits
from dpmpc.aggregation.plan.names import Names
from dpmpc.aggregation.plan.of_source import plan_of
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.plan.settings import Attendance
from dpmpc.consortium.plan_of_machines import Beforehand, plan_of_machines
from dpmpc.consortium.toml_keys import (
    ConsortiumFile,
    LearningPart,
    MeetPart,
    RecordsPart,
    StatsPart,
    SynthPart,
    file_spelling,
)
from dpmpc.errors import UsageError, python_spelling, reworded, some, spelt
from dpmpc.intake.written import checked, read_written
from dpmpc.lazy import dataclass
from dpmpc.learning.naming import check_nothing_named
from dpmpc.learning.source import SOURCES, Source
from dpmpc.learning.survey_words import read_words
from dpmpc.learning.task import modelled
from dpmpc.mpc.transport.addresses import Endpoint, check_loopback, owner_endpoints, parse_endpoints
from dpmpc.outcome import Level
from dpmpc.planning.request import Request
from dpmpc.records.origins import Origin
from dpmpc.records.schema import (
    Classes,
    Column,
    Labels,
    Range,
    Schema,
    Target,
    checked_bounds,
    column_of_bounds,
)
from dpmpc.settings import declared
from dpmpc.statistics.columns import OWNER, Columns
from dpmpc.statistics.expected import refuse_hopeless
from dpmpc.statistics.mentioned import mentioned
from dpmpc.statistics.scores import ScoreModel
from dpmpc.statistics.tables import Tables
from dpmpc.synthesis.cuts import stated
from dpmpc.synthesis.source import SURVEY
from dpmpc.synthesis.surveyed_tables import surveyed_tables_of
from dpmpc.synthesis.to_find import ToFind
from dpmpc.tables import found_first
from dpmpc.tables.meet import meeting_of
from dpmpc.tables.questions import flattered, model_of
from dpmpc.tables.stats import foreseen, origin_of_questions, plan_of_tables
from dpmpc.tables.synth_columns import columns_of_bounds
from dpmpc.tables.synth_plan import plan_of_synthesis, refuse_faint, stage_of

_WHAT = "a consortium"


@dataclass(frozen=True)
class SiteEntry:
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

    @property
    def called(self) -> str:
        """Its name and what it is, for whoever coordinates: charite (party 1 and owner 1)."""
        parts = (("party", self.party), ("owner", self.owner))
        return f"{self.name} ({' and '.join(f'{what} {number}' for what, number in parts if number is not None)})"


@dataclass(frozen=True)
class Consortium:
    """A consortium whose parts go together, and the plan of its run."""

    file: ConsortiumFile
    schema: Schema | None  # that of training
    addresses: Sequence[Endpoint]
    sites: Sequence[SiteEntry]
    plan: Plan
    notes: tuple[str, ...] = ()  # public, on what the plan leaves out


def read_consortium(path: Path) -> Consortium:
    """The consortium in a TOML file. Errors: UsageError with the line and the nearest known key; for parts that do not
    go together; for what no run can do."""
    file = read_written(path, ConsortiumFile, _WHAT)
    try:
        return _consortium(file, path)
    except UsageError as error:
        raise reworded(error, lambda text: f"{path.name}: {spelt(text, _spelling)}") from None


def _spelling(name: str, value: str | None) -> str:
    """A setting as the file writes it, or in plain words."""
    return file_spelling(name, value) or python_spelling(name, value)


def _consortium(file: ConsortiumFile, path: Path) -> Consortium:
    addresses = _addresses(file)
    sites = _sites(file)
    Limits.of(file.limits)  # what every site will read
    if file.source is not None:
        return Consortium(file, None, addresses, sites, _plan_of_source(file, file.source))
    if file.meet is not None:
        return Consortium(file, None, addresses, sites, _plan_of_meeting(file, file.meet))
    if file.stats is not None and file.synth is not None:
        raise UsageError("[stats] asks and [synth] makes rows; a run does one of them; take the other out")
    if file.stats is not None and file.learning is None:
        plan = _plan_of_tables(file, file.stats, path)
        return Consortium(file, None, addresses, sites, plan, _flattered(file.stats, plan, path))
    if file.synth is not None:
        if file.learning is not None:
            raise UsageError("[synth] makes rows and [learning] trains; a run does one of them; take the other out")
        return Consortium(file, None, addresses, sites, _plan_of_synthesis(file, file.synth, path))
    schema = _schema(file.records, path)
    plan, note = _plan(file, schema, path)
    told = () if file.stats is None else _flattered(file.stats, plan, path)
    return Consortium(file, schema, addresses, sites, plan, (*([note] if note else []), *told))


def _flattered(stats: StatsPart, plan: Plan, path: Path) -> tuple[str, ...]:
    """What is said of models that are asked about."""
    runs: dict[str, Path | str | ScoreModel] = {name: path.parent / run for name, run in stats.models.items()}
    return tuple(f"warning: {text}" for text in flattered(runs, plan.data_id))


def _addresses(file: ConsortiumFile) -> list[Endpoint]:
    """Where the parties are called. Errors: two processes at one address; a public one without TLS."""
    addresses = parse_endpoints(party.address for party in file.parties)
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
        check_loopback([endpoint.host for endpoint in addresses])
    return addresses


def _sites(file: ConsortiumFile) -> list[SiteEntry]:
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
            *(SiteEntry(name, i, None) for i, name in enumerate(parties)),
            *(SiteEntry(name, None, j) for j, name in enumerate(owners)),
        ]
    parties, owners = (_names([e.name for e in entries], "site") for entries in (file.parties, file.owners))
    for one, others, is_, is_not in ((owners, parties, "owner", "party"), (parties, owners, "party", "owner")):
        if alone := [name for name in one if name not in others]:
            raise UsageError(
                f"with role both every owner is a party, one process a site; '{alone[0]}' is {is_} but no {is_not}; "
                "give as many of both, with the same names, or leave role out"
            )
    return [SiteEntry(name, i, i) for i, name in enumerate(parties)]


def _names(given: Sequence[str | None], default: str) -> list[str]:
    names = [name if name is not None else f"{default}{i}" for i, name in enumerate(given)]
    Names(tuple(names), ())  # which checks them
    return names


def _schema(records: RecordsPart, path: Path) -> Schema:
    """The schema in the file that is named, or the one that is here. Errors: both, none, or half of one."""
    if records.schema is not None:
        here = [name for name in _HERE if getattr(records, name) is not None]
        if here:
            was, it = ("was", "it") if len(here) == 1 else ("were", "them")
            raise UsageError(
                f"the schema file says all about the columns; {', '.join(here)} {was} given too; leave {it} out"
            )
        schema = Schema.read(path.parent / records.schema)
    else:
        schema = _schema_here(records, path)
    return modelled(schema.on(records.basis), records.task)


_HERE = ("bounds", "unknown", "target", "positive", "negative", "classes", "range", "intercept", "missing")


def _schema_here(records: RecordsPart, path: Path) -> Schema:
    if (records.bounds is None and not records.unknown) or records.target is None:
        raise UsageError(
            "records are mapped by a public schema; none is given; add schema = 'FILE' to [records], or target and "
            "[records.bounds]"
        )
    bounds = checked_bounds(records.bounds or {}, path.name)
    columns: list[Column] = [column_of_bounds(name, values) for name, values in bounds.items()]
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
    elif records.classes is not None and len(records.classes) == 2 and records.task is None:
        low, high = records.classes
        target = Labels(records.target, (high,), (low,))
    elif records.classes is not None:
        target = Classes(records.target, tuple(records.classes))
    else:
        assert records.range is not None
        target = Range(records.target, *records.range)
    unknown = tuple(records.unknown or ())
    made = Schema(tuple(columns), target, records.intercept is not False, records.missing or "fill", unknown=unknown)
    return checked(made.to_json(), Schema, "a schema", path.name)


def _sizes(file: ConsortiumFile) -> tuple[int, ...]:
    """The owners' numbers of records, or of places; with role both, in the parties' order. Errors: an owner says none
    of them, or another kind than the others or the promise."""
    owners = file.owners
    if file.run.role == "both":
        names = _names([party.name for party in file.parties], "site")
        by_name = dict(zip(_names([o.name for o in owners], "site"), owners, strict=True))
        owners = [by_name[name] for name in names]
    said, rows = "records" if file.privacy.person is None else "persons", file.privacy.person_rows or 1
    kinds = {kind for owner in owners for kind in _KINDS if getattr(owner, kind) is not None}
    if len(kinds) != 1 or kinds - {said, "capacity"} or any(getattr(owner, *kinds) is None for owner in owners):
        raise UsageError(
            f"each of [[owners]] says its number of {said}, or each its capacity for {said}; got "
            f"{' and '.join(sorted(kinds)) or 'none'}; write {said} = N in each",
            code="missing",
        )
    return tuple(getattr(owner, *kinds) * (rows if said == "persons" else 1) for owner in owners)


_KINDS = ("records", "persons", "capacity")


def _private(file: ConsortiumFile) -> bool:
    """Whether owners have capacities."""
    return any(owner.capacity is not None for owner in file.owners)


def _plan_of_tables(file: ConsortiumFile, stats: StatsPart, path: Path) -> Plan:
    """The plan of a release of tables. Errors: as `stats.plan_of_tables`; what belongs to training; questions that the
    noise would drown."""
    if stats.share is not None:
        raise UsageError("share is for questions and training in one run; this file has no [learning]; take it out")
    if (unknown := _unknown(file, path)) is not None:
        return _plan_of_found(file, stats, unknown)
    tables, origin = _asked(stats, *_public(file, path), path)
    tables = tables.among(_called(file).owners)
    data = file.run.data_id
    made = plan_of_tables(
        tables, _sizes(file), data, data, _settings(file), origin, capacity=_private(file), by_person=True,
    )  # fmt: skip
    plan = replace(made, run_id=file.run.run_id or _run_id(file, tables), names=_called(file))
    if stats.hopeless == "refuse":
        refuse_hopeless(foreseen(plan, Level()), plan.epsilon, plan.delta)
    return plan


def _plan_of_found(file: ConsortiumFile, stats: StatsPart, unknown: ToFind) -> Plan:
    """The plan of questions about columns that a survey finds first. Errors: as `found_first.planned`; a survey of
    which nothing would stand out."""
    if stats.models:
        raise UsageError(
            "a model is evaluated by public columns; a survey is to find these; state them, or take it out"
        )
    names = _called(file)
    owners = names.owners if mentioned(stats.queries, (OWNER,)) else ()
    data = file.run.data_id
    made = found_first.planned(
        stats.queries, unknown, owners, _sizes(file), data, data, _settings(file), _private(file),
        spell=file.records.spell,
    )  # fmt: skip
    plan = replace(made, run_id=file.run.run_id or _run_id(file, made.source), names=names)
    if stats.hopeless == "refuse":
        refuse_faint(surveyed_tables_of(plan.source).questions, stage_of(plan, SURVEY))
    return plan


def _unknown(file: ConsortiumFile, path: Path) -> ToFind | None:
    """What a survey is to find before questions or rows, of columns that [records] names as unknown; None where it
    states what columns hold. Errors: both, or names of columns that are stated."""
    records = file.records
    stated = [name for name in ("schema", "bounds") if getattr(records, name) is not None]
    if file.stats is not None and file.stats.bounds is not None:
        stated.append("[stats.bounds]")
    if records.unknown is None:
        check_nothing_named(records.named, records.spell, () if records.word_list is None else (records.word_list,))
        return None
    if stated:
        raise UsageError(
            "questions and synthetic rows are of columns that are stated, or of columns that a survey finds; got "
            f"unknown and {' and '.join(stated)} in one file; take one of them out",
            code="together",
        )
    words = () if records.word_list is None else read_words(path.parent / records.word_list)
    return ToFind(tuple(records.unknown), tuple(records.unknown), named=tuple(records.named), words=words)


def _plan_of_source(file: ConsortiumFile, said: dict[str, dict[str, Any]]) -> Plan:
    """The plan of one release of a source that is named by its kind. Errors: several, or what another section is for;
    what the source refuses; as `plan_of`."""
    others = [name for name in ("learning", "stats", "synth", "meet") if getattr(file, name) is not None]
    if len(said) != 1 or others:
        got = " and ".join([*(f"[source.{kind}]" for kind in said), *(f"[{name}]" for name in others)]) or "none"
        raise UsageError(f"a run is of one [source.KIND], or of another section; got {got}; take the others out")
    ((kind, fields),) = said.items()
    try:
        source = SOURCES[kind].from_json(fields)
    except (TypeError, ValueError, LookupError) as error:
        raise UsageError(f"[source.{kind}] has the fields of that source; {error}; mend it") from None
    if source.TRAINS or not source.OF_RECORDS:
        raise UsageError(
            f"[source.KIND] is for one release of records; {kind} is something else; train with [learning], or plan "
            "vectors of your own with Plan.create"
        )
    return _plan_of_sent(file, source)


def _plan_of_sent(file: ConsortiumFile, source: Source) -> Plan:
    """The plan of one release of a source. Errors: as `plan_of`."""
    data, settings = file.run.data_id, {k: v for k, v in _settings(file).items() if v is not None}
    made = plan_of(source, _sizes(file), data_id=data, **settings)
    return replace(made, run_id=file.run.run_id or _run_id(file, source), names=_called(file), capacity=_private(file))


def _plan_of_meeting(file: ConsortiumFile, said: MeetPart) -> Plan:
    """The plan of a meeting of sites. Errors: other sections; owners' numbers of records that are private, with which
    shares cannot be compared; as `plan_of`."""
    if others := [name for name in ("learning", "stats", "synth") if getattr(file, name) is not None]:
        raise UsageError(f"[meet] comes before other runs; this file has [{others[0]}] too; take one of them out")
    if _private(file) or file.run.min_owners is not None:
        raise UsageError(
            "a meeting compares shares of public numbers of records, of all owners; this file has "
            f"{'capacities' if _private(file) else 'min_owners'}; write records = N in each of [[owners]], and no "
            "min_owners"
        )
    made = meeting_of(said.columns, len(file.owners), said.target, said.twice, said.classes, said.named)
    return _plan_of_sent(file, made)


def _plan_of_synthesis(file: ConsortiumFile, synth: SynthPart, path: Path) -> Plan:
    """The plan of a synthetic table. Errors: as `synth_plan.plan_of_synthesis`; what belongs to training."""
    unknown, columns, origin = _unknown(file, path), None, Origin("survey")
    if unknown is None:
        schema, bounds = _public(file, path)
        public = Columns.of_schema(schema) if schema is not None else columns_of_bounds(bounds or {})
        columns, origin = stated(public, synth.cuts, synth.cells), Origin() if schema is None else schema.origin
    elif synth.cuts or synth.cells is not None or synth.digits:
        raise UsageError(
            "a survey finds cells of unknown columns by itself; take cuts, cells and digits out", code="together"
        )
    elif synth.target is not None and synth.target not in unknown.names:
        raise UsageError(
            f"target of [synth] is a column; there is no {synth.target!r}; the columns are {some(unknown.names)}",
            code="column",
        )
    data = file.run.data_id
    made = plan_of_synthesis(
        columns, synth.target, synth.constraints, _sizes(file), data, data, _settings(file), origin,
        hopeless=synth.hopeless == "allow" or unknown is not None, capacity=_private(file), by_person=True,
        digits=synth.digits, to_find=unknown, spell=file.records.spell,
    )  # fmt: skip
    if unknown is not None and synth.hopeless == "refuse":
        refuse_faint(unknown.survey, stage_of(made, SURVEY))
    return replace(made, run_id=file.run.run_id or _run_id(file, made.source), names=_called(file))


def _asked(stats: StatsPart, schema: Schema | None, bounds: dict[str, Any] | None, path: Path) -> tuple[Tables, Origin]:
    """The questions, and where what they may ask comes from: the schema's columns or bounds, and those that [stats] has
    itself. Errors: as `asked_of`."""
    own = {} if stats.bounds is None else checked_bounds(stats.bounds, path.name)
    found = (
        Columns.of_schema(schema).columns if schema is not None else Columns.of_bounds(bounds).columns if bounds else ()
    )
    here = Columns.of_bounds(own).columns if own else ()
    columns = Columns((*(each for each in found if each.name not in own), *here))
    models = {name: model_of(path.parent / run) for name, run in stats.models.items()}
    tables = Tables.of(columns, stats.queries, None, models)
    return tables, origin_of_questions(schema, tables)


def _public(file: ConsortiumFile, path: Path) -> tuple[Schema | None, dict[str, Any] | None]:
    """The schema, or else the bounds, of a run that does not train. Errors: there are none."""
    records, here = file.records, [name for name in _HERE[1:] if getattr(file.records, name) is not None]
    if records.schema is not None or here:
        return _schema(records, path), None
    if records.bounds is not None:
        return None, checked_bounds(records.bounds, path.name)
    if file.stats is not None and file.stats.bounds is not None:
        return None, {}
    raise UsageError(
        "what may be asked is public; [records] has neither; add [records.bounds], or schema = 'FILE'", code="missing"
    )


def _settings(file: ConsortiumFile) -> dict[str, Any]:
    """What [privacy], [mpc] and [run] say of releases."""
    return {
        **msgspec.to_builtins(file.privacy),
        **msgspec.to_builtins(file.mpc),
        **{name: getattr(file.run, name) for name in declared(Attendance)},
        "parties": len(file.parties),
    }


def _plan(file: ConsortiumFile, schema: Schema, path: Path) -> tuple[Plan, str]:
    """The plan, and what is to be said of an evaluation that it does not have. Errors: as `Request` and `Plan`; as
    `_plan_of_tables` where it asks too."""
    sizes = _sizes(file)
    said = LearningPart() if file.learning is None else file.learning
    learning, privacy, mpc = (msgspec.to_builtins(part) for part in (said, file.privacy, file.mpc))
    request = Request(
        **learning,
        **privacy,
        **mpc,
        **{name: getattr(file.run, name) for name in declared(Attendance)},
        schema=file.records.schema or "consortium.toml",
        owner_sizes=sizes,
        capacity=sizes if _private(file) else None,  # the plan says that they are
        parties=len(file.parties),
        data_id=file.run.data_id,
        run_id=file.run.run_id or _run_id(file, schema),
        evaluate=False,
        basis=file.records.basis,
        preprocessing=file.records.preprocessing,
        named=tuple(file.records.named),
        spell=tuple(file.records.spell),
        word_list=None if file.records.word_list is None else str(path.parent / file.records.word_list),
        missing=schema.missing,
        test_fraction=file.records.test_fraction,
    )
    asked, complete = None, file.records.schema is not None
    if (stats := file.stats) is not None:
        tables, origin = _asked(stats, schema, None, path)
        tables, share = tables.among(_called(file).owners), _SHARE if stats.share is None else stats.share
        asked = Beforehand(tables, origin, share, _settings(file))
    plan, note = plan_of_machines(request, schema, sizes, complete, asked, _called(file).owners)
    if stats is not None and stats.hopeless == "refuse":
        refuse_hopeless(foreseen(plan.first, Level()), plan.first.epsilon, plan.delta)
    return replace(plan, names=_called(file)), note


_SHARE = 0.5  # of mu^2, that questions take where the run trains too


def _called(file: ConsortiumFile) -> Names:
    """The sites' names, by number of party and of owner."""
    both = file.run.role == "both"
    parties = _names([party.name for party in file.parties], "site" if both else "party")
    owners = parties if both else _names([owner.name for owner in file.owners], "owner")
    return Names(tuple(parties), tuple(owners))


def _run_id(file: ConsortiumFile, mapped: Schema | Source) -> str:
    """The same for the same file and schema or questions, wherever they lie."""
    value = [msgspec.to_builtins(file), mapped.to_json()]
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]
