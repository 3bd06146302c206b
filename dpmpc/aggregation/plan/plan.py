"""The plan of a run: what was asked, and public facts; fixed before the first message.

Everything else (sensitivity, grid, noise scale, certificate) follows from it: every process derives that by itself and
`digest` covers both, so two processes that agree on a digest agree on the noise, and a plan cannot promise more than it
keeps. No value of a record enters.
"""

import hashlib
import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self, Unpack

from dpmpc.aggregation.plan.asked import AGREED, FIRST_ATTEMPT, Attempt
from dpmpc.aggregation.plan.checks import check_plan
from dpmpc.aggregation.plan.derive import Planned
from dpmpc.aggregation.plan.keywords import PlanKeywords
from dpmpc.aggregation.plan.of_vectors import OfVectors, plan_of_vectors
from dpmpc.aggregation.plan.settings import GROUPS
from dpmpc.aggregation.plan.stages import check_stages, stage_plan
from dpmpc.codec import MisfitError, loads, of_json, to_json
from dpmpc.errors import UsageError
from dpmpc.folders import write_file
from dpmpc.intake.written import text_of
from dpmpc.lazy import cached_property, dataclass
from dpmpc.learning.source import SOURCES
from dpmpc.mpc.contract.backend import BACKENDS, Resumes
from dpmpc.privacy.data_names import canonical
from dpmpc.privacy.mechanism import Mechanism
from dpmpc.records.schema import Schema
from dpmpc.settings import declared, keywords
from dpmpc.show.objects import Sheet, Shown

VERSION = 9
# fields that a plan is written without where they say nothing
_UNSAID: dict[str, Any] = {"names": None, "stage_of": "", "rests_on": [], "passed": 0.0, "found": []}


@dataclass(frozen=True, kw_only=True)
class Plan(Planned, Shown):
    """One run: what was asked (`Asked`), checked, and what follows from it (`Planned.derived`)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "data_id", canonical(self.data_id, self.data))  # a plan of before names were folded
        object.__setattr__(self, "source", self.source.promised(self.neighbours))
        check_plan(self)
        check_stages(self)

    @classmethod
    @keywords(OfVectors)
    def create(
        cls,
        *,
        owners: int,
        dimension: int,
        clip: float,
        run_id: str | None = None,
        **given: Unpack[PlanKeywords],
    ) -> "Plan":
        """The plan of `releases` releases of the mean (or sum) of the owners' vectors (dimension,), each clipped to L2
        norm `clip`. What is None is chosen by rule; the settings are described in docs/settings.md.

        `neighbours`: "owner", the default: one owner's whole vector is replaced, so the sum moves by 2 clip; "stated",
        which goes with `sensitivity`: one unit whose change moves its owner's vector by at most that much in L2 norm,
        as the caller states; "record" or "presence", which go with `records`.
        `quantile`: the norm begins at `clip` and then
        follows this quantile of the vectors' norms, by what is opened. `weights`: "equal", or whole numbers, one an
        owner (its number of records, say): the mean is then weighted by them. `records`: how many each owner has, where
        its vector is the mean of its records' vectors, each clipped to `clip` by the owner (see `dpmpc.clipped_mean`):
        then the unit is one record, and `weights` are "size" unless "equal" is said. Errors: UsageError for anything
        that no run can do.
        """
        return plan_of_vectors(cls, owners=owners, dimension=dimension, clip=clip, run_id=run_id, **given)

    @cached_property
    def ahead(self) -> tuple["Plan", ...]:
        """The plans of the stages that are still to come before this run's own releases, in order."""
        return tuple(stage_plan(self, stage) for stage in self.source.schedule.before)

    @property
    def first(self) -> "Plan":
        """The plan of the stage that comes next. Errors: none does."""
        return self.ahead[0]

    @cached_property
    def before(self) -> tuple[Mechanism, ...]:
        """What stages release or have released before the run's own releases: what they cost is in the promise."""
        return (*self.released, *(each.derived.mechanism for each in self.ahead))

    @cached_property
    def undetected(self) -> float | None:
        """How likely a cheat passes anywhere in the run, at most: in each of its stages, with all attempts that each
        has. None where the parties are not checked. Each stage has an attempt's errors of its own, so they add up."""
        own = self.derived.undetected
        if own is None:
            return None
        after = (stage_plan(self, stage) for stage in self.source.schedule.after)
        return self.passed + own + math.fsum(each.derived.undetected or 0.0 for each in (*self.ahead, *after))

    def sheet(self) -> Sheet:
        """What the run is of, who takes part, how much noise there is and what it promises."""
        from dpmpc.aggregation.plan.guarantee import promise_of, warnings_of

        spread = f"{min(self.sizes):,} to {max(self.sizes):,}" if len(set(self.sizes)) > 1 else f"{self.sizes[0]:,}"
        who = f"{self.parties} parties, threshold {self.threshold}, {self.backend}" if self.parties else "one process"
        step = self.grid.step / self.divisor
        facts = [
            ("run", self.run_id),
            ("data", self.data),
            ("owners", f"{self.owners} of {spread} {'places' if self.capacity else 'records'} each"),
            ("releases", f"{self.releases} of {self.dimension:,} coordinates: {self.source.KIND}"),
            ("computed by", who),
            ("noise", f"{self.law}, scale {self.derived.mechanism.scale * step:.4g} a coordinate of the mean"),
            ("promise", str(promise_of(self))),
            *(("warning", text) for text in warnings_of(self)),
        ]
        return Sheet("Plan", tuple(facts), way="print(.to_text()) has all")

    @property
    def attempt(self) -> Attempt:
        """What processes that are started one by one begin with: the parties agree on it, where the backend can."""
        backend = BACKENDS[self.backend]
        return AGREED if isinstance(backend, Resumes) and backend.resumes else FIRST_ATTEMPT

    def digest(self, attempt: Attempt) -> bytes:
        """SHA-256 of the plan, of what this process derived from it, and of the attempt: what processes compare."""
        if attempt not in self._digests:
            value = {"plan": loads(self.to_text()), "derived": self.derived.to_json(), "attempt": asdict(attempt)}
            self._digests[attempt] = hashlib.sha256(_canonical(value).encode()).digest()
        return self._digests[attempt]

    def to_text(self) -> str:
        """Canonical JSON, settings by group: sorted keys, no spaces, floats as Python's repr."""
        return self._text

    @cached_property
    def _digests(self) -> dict[Attempt, bytes]:
        return {}

    @cached_property
    def _text(self) -> str:
        whole = to_json(self)
        for name in [name for name, unsaid in _UNSAID.items() if whole[name] == unsaid]:
            del whole[name]
        source = whole.pop("source")
        if self.mapped_by is not None:  # which says them
            for of, names in ((whole, ("bounds",)), (source, self.source.BY_SCHEMA)):
                for name in names:
                    del of[name]
        value: dict[str, Any] = {"version": VERSION, "source": {self.source.KIND: source}}
        for key, group in GROUPS.items():
            value[key] = {name: whole.pop(name) for name in declared(group)}
        return _canonical({**value, **whole})

    @classmethod
    def from_text(cls, text: str) -> Self:
        """The plan that `to_text` wrote. Errors: UsageError where it is not one."""
        try:
            value: dict[str, Any] = loads(text)
            version = value.pop("version", None)
            if version != VERSION:
                raise UsageError(
                    f"a plan must have version {VERSION}; this one has {version}; use the same dpmpc everywhere",
                    code="file",
                )
            source = value.pop("source", None)
            if not isinstance(source, dict) or len(source) != 1:
                raise MisfitError("a plan has one source, by its kind")
            ((kind, content),) = source.items()
            content, value = _with_schema(kind, content, value)
            said: dict[str, Any] = {}
            for key, group in GROUPS.items():
                said |= vars(of_json(group, value.pop(key, None), f"a plan's {key}", whole=True))
            said["source"] = SOURCES[kind].from_json(content)
            plan = of_json(cls, {**_UNSAID, **value}, "a plan", whole=True, **said)
            if plan.to_text() != _canonical(loads(text)):
                raise ValueError("a value is not spelt as dpmpc spells it")
            return plan
        except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError) as error:
            way = f"{error.way}, or copy it again" if isinstance(error, MisfitError) and error.way else "copy it again"
            raise UsageError(f"a plan must be what dpmpc wrote as plan.json; {error}; {way}", code="file") from None

    @classmethod
    def read(cls, path: Path | str) -> Self:
        """The plan in a file. Errors: as `from_text`, and an unreadable file."""
        try:
            return cls.from_text(text_of(Path(path), "a plan", "utf-8"))
        except OSError as error:
            raise UsageError(f"a run has a plan.json; {path}: {error.strerror}; check the path", code="file") from None
        except UnicodeDecodeError as error:
            raise UsageError(f"a plan is UTF-8 text; {path}: {error.reason}; copy it again", code="file") from None

    def write(self, path: Path | str) -> None:
        """Writes the plan whole or not at all."""
        write_file(Path(path), self.to_text(), public=True)


def _with_schema(kind: str, source: Any, value: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The JSON values of a source of this kind, and of a plan, with what the schema of records says of both, or the
    draft of it while a survey is to come. Errors: there is neither, and they do not say it; as `Schema.from_json`."""
    names = SOURCES[kind].BY_SCHEMA
    if not names or not isinstance(source, dict):
        return source, value
    draft = source.get("survey")
    found = value.get("schema") if draft is None else draft.get("schema")
    if found is None:
        if not set(names) <= source.keys():
            said = " and ".join(names)
            raise MisfitError(f"a plan of {kind} has a schema, or says {said} itself; this one has neither")
        return source, value
    if not isinstance(found, dict):
        raise MisfitError(f"a plan's schema is an object; got {str(found)[:40]}")
    schema = Schema.from_json(found)
    bounds = schema.bounds if draft is None else "survey"
    return {**source, **{name: getattr(schema, name) for name in names}}, {**value, "bounds": bounds}


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
