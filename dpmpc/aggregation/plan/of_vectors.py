"""The plan of releases of vectors that the caller brings: from what was said to settings that are chosen."""

import secrets
from collections.abc import Sequence
from typing import Any, TypeVar, Unpack, cast

from dpmpc.aggregation.plan.asked import Asked
from dpmpc.aggregation.plan.keywords import PlanKeywords
from dpmpc.aggregation.plan.settings import CHOSEN, Accounting, Attendance, Choosing, Computing, Noise, PromiseSettings
from dpmpc.errors import UsageError
from dpmpc.lazy import dataclass
from dpmpc.learning.adaptive_clipping import NORM, ClippingBound
from dpmpc.learning.vectors import Vectors
from dpmpc.mpc.contract.backend import BACKENDS, DEFAULT
from dpmpc.mpc.contract.security import backend_for
from dpmpc.privacy.checks import check_count, check_number, check_positive
from dpmpc.privacy.data_names import data_digest
from dpmpc.privacy.law import LAWS, law_for, law_of_sampler
from dpmpc.privacy.sensitivity import Weights, weights_for
from dpmpc.settings import Settings, at_least, at_most, said, setting, values_of

P = TypeVar("P", bound=Asked)


@dataclass(frozen=True, kw_only=True)
class VectorSettings(Settings):
    """What is said of vectors of the caller's own, beside their number, dimension and clipping norm."""

    releases: int = setting(
        1,
        "Releases that are planned; the noise and the promise depend on their number.",
        check=check_count,
        limit=at_most(),
    )
    sensitivity: float | None = setting(
        None,
        "By how much the change of one unit moves its owner's vector at most, in L2 norm, as the caller states.",
        check=check_positive,
        unit="L2 norm",
        limit=at_least(),
        example="1.0",
    )
    quantile: float | None = setting(
        None, "The clipping norm follows this quantile of the vectors' norms, by what is opened.", check=check_number
    )
    weights: Weights | Sequence[int] | None = setting(
        None, "Equal, or whole numbers, one an owner; by records, size too.", rule="with records, size; else equal"
    )
    records: Sequence[int] | None = setting(
        None, "How many records each owner has, where its vector is the mean of its records' clipped vectors."
    )
    data_id: str = setting(
        "vectors", "Name under which the ledger adds up what is spent on these records.", metavar="TEXT"
    )


@dataclass(frozen=True, kw_only=True)
class OfVectors(VectorSettings, PromiseSettings, Noise, Choosing, Computing, Attendance, Accounting):
    """Everything that may be said of such a run."""


def chosen(asked: Any, law: str = "") -> dict[str, Any]:
    """The settings of a plan, flat: what was said in `asked`, and what the rules choose for the rest. `law`: what a
    method would take, where nothing else is said.

    Errors: UsageError for settings that do not go together.
    """
    alone = law_of_sampler(asked.sampler) if asked.sampler else None
    law = asked.law or alone or law or law_for(asked.delta)
    sampler: str = asked.sampler or next(iter(LAWS[law].samplers))
    mpc = asked.engine == "mpc"
    if asked.security == "active" and not mpc:
        raise UsageError("<<security=active>> is of parties; <<engine=clear>> has none; leave one of them out")
    if asked.link and not mpc:
        raise UsageError(
            "<<link>> is the line between two servers; <<engine=clear>> has none; leave one of them out",
            code="together",
        )
    threshold = None if asked.threshold == CHOSEN else asked.threshold
    backend = asked.backend or DEFAULT
    if mpc:
        check_count("<<parties>>", asked.parties)
        given = None if asked.security == "semi-honest" else asked.security
        backend = backend_for(
            given, asked.backend or None, law, sampler, asked.parties, threshold, str(asked.link) or None
        )
        threshold = BACKENDS[backend].threshold(asked.parties) if threshold is None else threshold
    return values_of(asked, PromiseSettings, Noise, Computing, Attendance) | {
        "law": law,
        "sampler": sampler,
        "backend": backend,
        "parties": asked.parties if mpc else 0,
        "threshold": threshold if mpc else 0,
    }


def plan_of_vectors(
    kind: type[P], *, owners: int, dimension: int, clip: float, run_id: str | None = None, **given: Unpack[PlanKeywords]
) -> P:
    """As `Plan.create`, whose class is `kind`."""
    asked = OfVectors(**said(given))
    owners, records, weights = check_count("the number of owners", owners), asked.records, asked.weights
    if records is not None:
        sizes: tuple[int, ...] = _sizes(records, owners, weights, asked.sensitivity, asked.quantile)
        weights = weights_for(None if weights is None else cast(Weights, weights), sizes)
    elif weights is None:
        weights, sizes = "equal", (1,) * owners
    elif isinstance(weights, str):
        if weights != "equal":
            raise UsageError(
                f"weights of vectors are 'equal' or one whole number an owner; got {weights!r}; give the numbers",
                code="type",
            )
        sizes = (1,) * owners
    else:
        sizes = tuple(check_count("an owner's weight", w) for w in weights)
        if len(sizes) != owners:
            raise UsageError(
                f"there is one weight an owner; got {len(sizes)} for {owners} owners; mend weights", code="shape"
            )
    hidden = "record" if records is not None else "owner" if asked.sensitivity is None else "stated"
    if records is not None and given.get("neighbours") in ("presence", "person"):
        hidden = str(given["neighbours"])
    if given.get("neighbours") not in (None, hidden):
        raise UsageError(
            f"neighbours are 'owner', 'stated' with <<sensitivity>>, 'record', 'presence' or 'person' with "
            f"<<records>>; got {asked.neighbours!r}, and what is given means {hidden!r}; leave <<neighbours>> out",
            code="choice",
        )
    settings = chosen(asked) | {
        "neighbours": hidden,
        "pool": asked.releases > 1 if asked.pool is None else asked.pool,
    }
    return kind(
        run_id=run_id or secrets.token_hex(8),
        data=asked.data_id,
        data_id=data_digest(asked.data_id),
        sizes=sizes,
        dimension=check_count("the dimension", dimension) + (asked.quantile is not None),
        releases=asked.releases,
        source=_vectors(clip, asked.sensitivity, asked.quantile),
        weights="equal" if isinstance(weights, str) and weights == "equal" else "size",
        **settings,
    )


def _sizes(
    records: Sequence[int], owners: int, weights: object, sensitivity: float | None, quantile: float | None
) -> tuple[int, ...]:
    """The owners' sizes. Errors: what does not go with means of records' vectors."""
    sizes = tuple(check_count("an owner's number of records", n) for n in records)
    if len(sizes) != owners:
        raise UsageError(f"there is one size for each owner; got {len(sizes)} for {owners}; mend records", code="shape")
    if not (weights is None or (isinstance(weights, str) and weights in ("equal", "size"))):
        raise UsageError(f"with records, weights are 'equal' or 'size'; got {weights!r}; choose one", code="choice")
    if sensitivity is not None or quantile is not None:
        raise UsageError(
            "the sensitivity of records' means is derived, and their norm is fixed; a sensitivity or a quantile was "
            "given too; leave it out",
            code="together",
        )
    return sizes


def _vectors(clip: float, sensitivity: float | None, quantile: float | None) -> Vectors:
    clip = check_positive("the clipping norm", clip)
    if sensitivity is not None:
        sensitivity = check_positive("the stated sensitivity", sensitivity)
    if quantile is None:
        return Vectors(clip, sensitivity)
    return Vectors(NORM, sensitivity, ClippingBound(clip, check_number("the quantile", quantile)))
