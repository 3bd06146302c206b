"""The keys of `consortium.toml`, section by section."""

import re
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import msgspec

from dpmpc.aggregation.plan.limits import AcceptFile
from dpmpc.aggregation.plan.settings import Attendance, Choosing, Computing, Noise, PromiseSettings
from dpmpc.intake.written import json_schema
from dpmpc.mpc.transport.heartbeat import STALL
from dpmpc.planning.settings import LearningSettings, Naming
from dpmpc.records.schema import Basis, Missing, Scalar
from dpmpc.settings import part


class PartyEntry(msgspec.Struct, forbid_unknown_fields=True):
    """One of [[parties]], in order. `listen`: as `--listen`; `threads`: of this party."""

    address: str
    name: str | None = None
    listen: str | None = None
    threads: int | None = None


class OwnerEntry(msgspec.Struct, forbid_unknown_fields=True):
    """One of [[owners]], in order. `records`: how many it holds, which is public; of persons, where the promise is of
    these, `persons`. `capacity`, in place of either: places for so many at least, and how many it holds is private."""

    records: int | None = None
    name: str | None = None
    persons: int | None = None
    capacity: int | None = None


class _Meeting(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """How processes find and lose each other."""

    tls: bool = True
    wait: float = 600.0
    stall: float = STALL


class RecordsPart(msgspec.Struct, forbid_unknown_fields=True):
    """[records]: a schema file, or bounds and target here. `classes` and `range` are the target's. `unknown`: columns
    of which nothing is known but their names; release 0, a survey, finds what these hold and how numbers are
    spread within bounds; `preprocessing` "survey" asks for it by name, and beside a schema file; "records" leaves
    numbers as their bounds scale them. `named`: those of `unknown` whose words are named, where public lists have
    them, and the file `word_list`, one a line; `spell`: those whose words are opened before the survey, of those that
    enough records of all owners together have. `test_fraction`: the share of its records that each owner holds out for
    figures of the model inside the promise; 0 for none, by default 0.2 where these would tell much."""

    schema: str | None = None
    bounds: dict[str, list[Scalar]] | None = None
    target: str | None = None
    positive: list[Scalar] | None = None
    negative: list[Scalar] | None = None
    classes: list[Scalar] | None = None
    range: tuple[float, float] | None = None
    unknown: list[str] | None = None
    preprocessing: Literal["survey", "records"] | None = None
    named: list[str] = msgspec.field(default_factory=list)
    spell: list[str] = msgspec.field(default_factory=list)
    word_list: str | None = None
    basis: Basis | None = None
    task: str | None = None
    intercept: bool | None = None
    missing: Missing | None = None
    test_fraction: Annotated[float, msgspec.Meta(ge=0, lt=1)] | None = None


class StatsPart(msgspec.Struct, forbid_unknown_fields=True):
    """[stats]: questions; with [learning] in the file the same run trains after them. `bounds`: columns that are asked
    about and are no features; `share`: the part of the promise, of mu^2, that questions take where the run trains too.
    `models`: the NAME of `evaluate(NAME)` and a run's folder, beside this file; `hopeless`: "allow" to ask even what
    the noise will drown."""

    queries: Annotated[list[str | dict[str, Any]], msgspec.Meta(min_length=1)]
    bounds: dict[str, list[Scalar]] | None = None
    share: Annotated[float, msgspec.Meta(gt=0, lt=1)] | None = None
    models: dict[str, str] = msgspec.field(default_factory=dict)
    hopeless: Literal["refuse", "allow"] = "refuse"


class SynthPart(msgspec.Struct, forbid_unknown_fields=True):
    """[synth]: a synthetic table instead of training. `constraints`: what cannot be, such as "sex = M and role = wife";
    `cuts`: edges of numbers' cells, or how many; `cells`: how many for all other numbers; a survey finds those of a
    number with neither; `digits`: decimals of a column of numbers."""

    target: str | None = None
    constraints: list[str] = msgspec.field(default_factory=list)
    cuts: dict[str, Any] = msgspec.field(default_factory=dict)
    cells: Annotated[int, msgspec.Meta(ge=1)] | None = None
    digits: dict[str, int] = msgspec.field(default_factory=dict)
    hopeless: Literal["refuse", "allow"] = "refuse"


class MeetPart(msgspec.Struct, forbid_unknown_fields=True):
    """[meet]: a first meeting instead of training: `columns` are compared, by owner. `target` and its `classes`, the
    positive one last: for a first schema; `twice`: columns with half the noise of the others; `named`: those whose
    words are named, where public lists have them."""

    columns: Annotated[list[str], msgspec.Meta(min_length=1)]
    target: str = ""
    classes: list[str] = msgspec.field(default_factory=list)
    twice: list[str] = msgspec.field(default_factory=list)
    named: list[str] = msgspec.field(default_factory=list)


if TYPE_CHECKING:
    RunPart: TypeAlias = Any
    LearningPart: TypeAlias = Any
    PrivacyPart: TypeAlias = Any
    MpcPart: TypeAlias = Any
else:
    RunPart = part("RunPart", Naming, Attendance, without=("ledgers",), required=("data_id",), beside=_Meeting)
    LearningPart = part("LearningPart", LearningSettings)
    PrivacyPart = part("PrivacyPart", PromiseSettings, Noise, required=("epsilon",))
    MpcPart = part("MpcPart", Choosing, Computing, without=("engine", "parties"))


class ConsortiumFile(msgspec.Struct, forbid_unknown_fields=True):
    """The file `consortium.toml`: what a run over several machines is, for all its sites. `source`: one release of a
    source by the name of its kind, [source.KIND], with its fields; of another package's, say."""

    run: RunPart
    parties: list[PartyEntry]
    owners: list[OwnerEntry]
    privacy: PrivacyPart
    records: RecordsPart = msgspec.field(default_factory=RecordsPart)
    source: dict[str, dict[str, Any]] | None = None
    stats: StatsPart | None = None
    synth: SynthPart | None = None
    meet: MeetPart | None = None
    learning: LearningPart | None = None
    mpc: MpcPart = msgspec.field(default_factory=MpcPart)
    limits: AcceptFile = msgspec.field(default_factory=AcceptFile)


def editor_schema() -> dict[str, Any]:
    """The JSON schema of `consortium.toml`, for editors."""
    return json_schema(ConsortiumFile)


_SECTIONS = {"run": RunPart, "records": RecordsPart, "learning": LearningPart, "privacy": PrivacyPart, "mpc": MpcPart}
_PLACES = {  # of what is no key under its own name
    "addresses": "`address` under [[parties]]",
    "base_port": "`address` under [[parties]]",
    "parties": "[[parties]]",
    "owners": "[[owners]]",
    "owner_sizes": "`records` under [[owners]]",
    "schema": "[records]",
    "bounds": "[records.bounds]",
}


def file_spelling(name: str, value: str | None) -> str | None:
    """A setting as this file writes it: `min_owners = 2 in [run]`. None for what it does not hold."""
    if name == "addresses" and value is not None:
        return f'address = "{value}" under [[parties]]'
    if name == "tls" and value is not None:  # where its files are is each kit's
        return "tls = true in [run]"
    if name in _PLACES:
        return _PLACES[name]
    section = next((key for key, kind in _SECTIONS.items() if name in kind.__struct_fields__), None)
    if section is None:
        return None
    return f"{name} in [{section}]" if value is None else f"{name} = {_toml(value)} in [{section}]"


def _toml(value: str) -> str:
    """A value of an error as TOML has it."""
    if value in ("True", "False"):
        return value.lower()
    return value if re.fullmatch(r"[-+.0-9e]+|\[.*\]", value) else f'"{value}"'
