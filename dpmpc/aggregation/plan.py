"""The plan of a run: what was asked, and public facts; fixed before the first message.

Everything else (sensitivity, grid, noise scale, certificate) follows from it: every process derives that by itself and
`digest` covers both, so two processes that agree on a digest agree on the noise, and a plan cannot promise more than it
keeps. No value of a record enters.
"""

import hashlib
import json
import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self, cast

from dpmpc.aggregation.asked import Asked, Attempt, CheckOwners, Neighbours, Role, Vectors, data_digest
from dpmpc.aggregation.derive import Derived, derive
from dpmpc.aggregation.grid import Grid
from dpmpc.aggregation.plan_checks import check_plan
from dpmpc.errors import UsageError
from dpmpc.learning.adaptive_clipping import NORM, ClippingBound
from dpmpc.learning.method import Learning
from dpmpc.mpc.backend import BACKENDS, DEFAULT
from dpmpc.mpc.security import backend_for
from dpmpc.privacy.checks import (
    check_count,
    check_epsilon,
    check_nonnegative,
    check_number,
    check_positive,
    check_whole,
)
from dpmpc.privacy.law import LAWS, law_for
from dpmpc.privacy.mechanism import Mechanism
from dpmpc.privacy.sensitivity import Weights

VERSION = 3


@dataclass(frozen=True, kw_only=True)
class Plan(Asked):
    """One run: what was asked (`Asked`), checked, and what follows from it (`derived`)."""

    def __post_init__(self) -> None:
        check_plan(self)

    @classmethod
    def create(
        cls,
        *,
        owners: int,
        dimension: int,
        clip: float,
        epsilon: float = 1.0,
        delta: float | None = None,
        releases: int = 1,
        parties: int = 3,
        threshold: int | None = None,
        neighbours: str | None = None,
        sensitivity: float | None = None,
        quantile: float | None = None,
        weights: Weights | Sequence[int] = "equal",
        records: Sequence[int] | None = None,
        law: str | None = None,
        sampler: str | None = None,
        calibration: str = "tight",
        scale: float | None = None,
        grid_bits: int | None = None,
        security_bits: float = 40.0,
        backend: str | None = None,
        security: str | None = None,
        engine: Literal["mpc", "clear"] = "mpc",
        pool: bool | None = None,
        role: Role = "apart",
        min_owners: int | None = None,
        release_wait: float = 10.0,
        check_owners: str | None = None,
        data_id: str = "vectors",
        run_id: str | None = None,
    ) -> "Plan":
        """The plan of `releases` releases of the mean (or sum) of the owners' vectors (dimension,), each clipped to L2
        norm `clip`.

        `neighbours`: "owner", the default: one owner's whole vector is replaced, so the sum moves by 2 clip; "stated",
        which goes with `sensitivity`: one unit whose change moves its owner's vector by at most that much in L2 norm,
        as the caller states; "record", which goes with `records`. `quantile`: the norm
        begins at `clip` and then follows this quantile of the vectors' norms, by what is opened. `weights`: "equal", or
        whole numbers, one an owner (its number of records, say): the mean is then weighted by them. `records`: how many
        each owner has, where its vector is the mean of its records' vectors, each clipped to `clip` by the owner (see
        `dpmpc.clipped_mean`): then the unit is one record, and `weights` may be "size". `backend`: by
        default the one that computes less (`mpc.cheaper`). `security`: "active" where one of three parties may do
        anything (docs/active.md). `role`: "both" where owner i is party i. `check_owners`: "zero" or
        "stop" where parties check owners (docs/owners.md). Errors: UsageError for anything that no run can do.
        """
        owners, releases = check_count("the number of owners", owners), check_count("the number of releases", releases)
        if records is not None:
            sizes: tuple[int, ...] = _sizes(records, owners, weights, sensitivity, quantile)
        elif isinstance(weights, str):
            if weights != "equal":
                raise UsageError(
                    f"weights of vectors are 'equal' or one whole number an owner; got {weights!r}; give the numbers"
                )
            sizes = (1,) * owners
        else:
            sizes = tuple(check_count("an owner's weight", w) for w in weights)
            if len(sizes) != owners:
                raise UsageError(f"there is one weight an owner; got {len(sizes)} for {owners} owners; mend weights")
        hidden: Neighbours = "record" if records is not None else "owner" if sensitivity is None else "stated"
        if neighbours not in (None, hidden):
            raise UsageError(
                f"neighbours are 'owner', 'stated' with sensitivity=, or 'record' with records=; got {neighbours!r}, "
                f"and what is given means {hidden!r}; leave neighbours out"
            )
        law = law or law_for(delta)
        if engine not in ("mpc", "clear"):
            raise UsageError(f"the engine is mpc or clear; got {engine!r}; choose one")
        mpc = engine == "mpc"
        parties = check_count("the number of parties", parties) if mpc else 0
        threshold = None if threshold is None else check_whole("the threshold", threshold)
        sampler = sampler or next(iter(LAWS[law].samplers))
        if security == "active" and not mpc:
            raise UsageError("security='active' is of parties; engine='clear' has none; leave one of them out")
        backend = backend_for(security, backend, law, sampler, parties, threshold) if mpc else backend or DEFAULT
        if threshold is None:
            threshold = BACKENDS[backend].threshold(parties) if mpc else 0
        return cls(
            run_id=run_id or secrets.token_hex(8),
            data=data_id,
            data_id=data_digest(data_id),
            sizes=sizes,
            dimension=check_count("the dimension", dimension) + (quantile is not None),
            releases=releases,
            source=_vectors(clip, sensitivity, quantile, records is not None),
            neighbours=hidden,
            weights="equal" if isinstance(weights, str) and weights == "equal" else "size",
            epsilon=check_epsilon(epsilon),
            delta=check_nonnegative("delta", delta or 0.0),
            calibration=calibration,
            law=law,
            sampler=sampler,
            scale=None if scale is None else check_nonnegative("the noise scale", scale),
            grid_bits=None if grid_bits is None else check_whole("grid_bits", grid_bits),
            security_bits=check_number("security_bits", security_bits),
            backend=backend,
            parties=parties,
            threshold=threshold if mpc else 0,
            pool=releases > 1 if pool is None else pool,
            role=role,
            min_owners=0 if min_owners is None else check_count("min_owners", min_owners),
            release_wait=check_positive("release_wait", release_wait),
            check_owners=cast(CheckOwners, check_owners or "no"),
        )

    @cached_property
    def derived(self) -> Derived:
        """What follows from the plan. Errors: UsageError for a promise that cannot be kept, or a sum that could
        overflow."""
        return derive(self)

    @property
    def grid(self) -> Grid:
        """The grid that vectors are rounded on."""
        return self.derived.grid

    def digest(self, attempt: Attempt) -> bytes:
        """SHA-256 of the plan, of what this process derived from it, and of the attempt: what processes compare."""
        value = {"plan": json.loads(self.to_text()), "derived": self.derived.to_json(), "attempt": asdict(attempt)}
        return hashlib.sha256(_canonical(value).encode()).digest()

    def to_text(self) -> str:
        """Canonical JSON: sorted keys, no spaces, floats as Python's repr."""
        kind = "learning" if isinstance(self.source, Learning) else "vectors"
        fields = {name: value for name, value in asdict(self).items() if name != "source"}
        return _canonical({"version": VERSION, kind: asdict(self.source), **fields})

    @classmethod
    def from_text(cls, text: str) -> Self:
        """The plan that `to_text` wrote. Errors: UsageError where it is not one."""
        try:
            value: dict[str, Any] = json.loads(text)
            version = value.pop("version", None)
            if version != VERSION:
                raise UsageError(
                    f"a plan must have version {VERSION}; this one has {version}; use the same dpmpc everywhere"
                )
            kinds = {"learning": Learning, "vectors": Vectors}
            (kind,) = kinds.keys() & value.keys()
            source = kinds[kind](**value.pop(kind))
            before = tuple(Mechanism(**mechanism) for mechanism in value["before"])
            return cls(**{**value, "sizes": tuple(value["sizes"]), "source": source, "before": before})
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise UsageError(f"a plan must be what dpmpc wrote as plan.json; {error}; copy it again") from None

    @classmethod
    def read(cls, path: Path | str) -> Self:
        """The plan in a file. Errors: as `from_text`, and an unreadable file."""
        try:
            return cls.from_text(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise UsageError(f"a run has a plan.json; {path}: {error.strerror}; check the path") from None
        except UnicodeDecodeError as error:
            raise UsageError(f"a plan is UTF-8 text; {path}: {error.reason}; copy it again") from None

    def write(self, path: Path | str) -> None:
        """Writes the plan whole or not at all."""
        path = Path(path)
        partial = path.with_suffix(".tmp")
        partial.write_text(self.to_text(), encoding="utf-8")
        partial.replace(path)

    def with_releases(self, releases: int) -> "Plan":
        """The same run with another number of releases."""
        return replace(self, releases=releases)


def _sizes(
    records: Sequence[int], owners: int, weights: object, sensitivity: float | None, quantile: float | None
) -> tuple[int, ...]:
    """The owners' sizes. Errors: what does not go with means of records' vectors."""
    sizes = tuple(check_count("an owner's number of records", n) for n in records)
    if len(sizes) != owners:
        raise UsageError(f"there is one size for each owner; got {len(sizes)} for {owners}; mend records")
    if not isinstance(weights, str) or weights not in ("equal", "size"):
        raise UsageError(f"with records, weights are 'equal' or 'size'; got {weights!r}; choose one")
    if sensitivity is not None or quantile is not None:
        raise UsageError(
            "the sensitivity of records' means is derived, and their norm is fixed; a sensitivity or a quantile was "
            "given too; leave it out"
        )
    return sizes


def _vectors(clip: float, sensitivity: float | None, quantile: float | None, per_record: bool = False) -> Vectors:
    clip = check_positive("the clipping norm", clip)
    if sensitivity is not None:
        sensitivity = check_positive("the stated sensitivity", sensitivity)
    if per_record:
        return Vectors(clip, spread=2 * clip)  # a clipped vector of a record in place of another
    if quantile is None:
        return Vectors(clip, sensitivity)
    return Vectors(NORM, sensitivity, adaptive=ClippingBound(clip, check_number("the quantile", quantile)))


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
