"""The settings of a plan as keywords of functions, for type checkers, editors and readers: `**given: Unpack[...]`.

Each name is declared in `plan.settings`, with its check, default and help; a test holds names and types to the
declarations. What is None is chosen by the rule that the declaration states.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict

from dpmpc.aggregation.plan.settings import CheckOwners, Engine, Role
from dpmpc.privacy.sensitivity import Weights


class EpsilonKeywords(TypedDict, total=False):
    """Of all releases together."""

    epsilon: float


class NoiseKeywords(TypedDict, total=False):
    """Of every release, but for its epsilon."""

    delta: float | None
    neighbours: str | None
    person_rows: int
    person_owners: int | None
    calibration: str
    law: str | None
    sampler: str | None
    scale: float | None
    grid_bits: int | None


class ComputingKeywords(TypedDict, total=False):
    """Who computes, and how; who has to be there."""

    engine: Engine
    security: str
    link: str | float | None
    parties: int
    threshold: int | None
    backend: str | None
    check_owners: CheckOwners
    pool: bool | None
    security_bits: float
    min_owners: int | None
    release_wait: float


class AccountingKeywords(TypedDict, total=False):
    """What all releases on the same records may spend together, and where that is kept."""

    budget: str | None
    account: Path | str | None


class OwnKeywords(TypedDict, total=False):
    """What a process of a program says, that starts all others."""

    out: Path | str | None
    wait: float | None
    stall: float


class ReleaseKeywords(NoiseKeywords, ComputingKeywords, total=False):
    """Of one release of vectors, but for its epsilon."""

    sensitivity: float | None
    weights: Weights | Sequence[int] | None
    records: Sequence[int] | None
    data_id: str


class ReleasesKeywords(EpsilonKeywords, ReleaseKeywords, total=False):
    """Of releases of vectors."""

    releases: int
    quantile: float | None


class PlanKeywords(ReleasesKeywords, total=False):
    """Of a plan for releases of vectors."""

    role: Role


class AggregatorKeywords(ReleasesKeywords, AccountingKeywords, OwnKeywords, total=False):
    """Of releases of vectors with parties here."""


class MeanKeywords(ReleaseKeywords, AccountingKeywords, total=False):
    """Of one noisy mean, but for its epsilon."""


class SourceKeywords(EpsilonKeywords, NoiseKeywords, ComputingKeywords, total=False):
    """Of releases of a source, but for whose records they are."""

    person: str | None
    role: Role
