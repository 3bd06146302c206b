"""What a release of a source on this machine means, as a run over several machines delivers it."""

from pathlib import Path

from dpmpc.aggregation.owner.opens_sums import Release
from dpmpc.aggregation.plan.opening import opening_of
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.local.delivering import deliver_outcome
from dpmpc.outcome import Outcome


def outcome_of(plan: Plan, release: Release, out: Path | str | None = None) -> Outcome:
    """What the one release of a plan, which an `Aggregator` has opened, means by its source. Public; nothing is spent.
    `out`: the run's folder, which then gets its numbers in every form and its files, as every process of a run over
    several machines does. Errors: UsageError for a file of another name than an outcome's may have."""
    opened = opening_of(plan, {0: release.total}, {} if release.present is None else {0: release.present})
    return plan.source.outcome(opened) if out is None else deliver_outcome(plan, opened, Path(out))
