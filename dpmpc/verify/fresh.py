"""Fresh releases with known inputs, through the same party and owner code as a training run, in real processes.

What a party's process does and what owners send are arguments: what a deployed run uses, or a test double.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import field
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dpmpc.aggregation.owner.local_parties import PartiesHere
from dpmpc.aggregation.owner.opens_sums import Release
from dpmpc.aggregation.plan.asked import plan_path
from dpmpc.aggregation.plan.grid import Ints
from dpmpc.aggregation.plan.here import Here
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.errors import UsageError
from dpmpc.folders import matching
from dpmpc.lazy import dataclass
from dpmpc.mpc.clear.noise import clear_noise
from dpmpc.mpc.numbers.prg import Prg
from dpmpc.run.folder import prepare
from dpmpc.run.resume import Since
from dpmpc.run.run import RecordsHere, run
from dpmpc.run.seat import Seat
from dpmpc.verify.audit import Trials
from dpmpc.verify.canaries import CANARIES, Canaries, KnownInputs, processes_of
from dpmpc.verify.claim import claim_of, shift_of
from dpmpc.verify.scores import Sample

Send = Callable[[Plan, Ints], Ints]  # what an owner makes of its vectors before it shares them
EACH, FEWEST = 10, 20  # releases of one series by parties that have the same input; different inputs of a series
_WAIT = 120.0  # seconds: a busy machine may start processes slowly


def as_they_are(plan: Plan, vectors: Ints) -> Ints:
    """`vectors`."""
    return vectors


@dataclass(frozen=True)
class FreshReleases:
    """K releases: what was opened (K, d), the known inputs, and which of them each had.

    `diagonal`: there is one canary, which moves all coordinates. `copies`: records that are replaced together."""

    plan: Plan
    opened: Ints
    known: list[KnownInputs]
    used: NDArray[np.int64]
    diagonal: bool = False
    copies: int = 1

    def sample(self) -> Sample:
        """What was opened less the exact sums."""
        plan, sums = self.plan, np.stack([k.total for k in self.known])[self.used]
        bits, mechanism = np.stack([k.bits for k in self.known])[self.used], plan.derived.mechanism
        return Sample(plan.owners, plan.law, mechanism.scale, mechanism.discrete, self.opened - sums, sums, bits)

    def trials(self, name: str) -> Trials:
        """Every canary of every release: its coordinate sees its bit and no other's; or, of a canary that moves all
        coordinates, the likelihood ratio."""
        plan, scale = self.plan, self.plan.derived.mechanism.scale
        claim, k = claim_of(plan).of(self.copies), self.copies
        noise = (self.opened - np.stack([k.total for k in self.known])[self.used]) / scale
        bits = np.stack([k.bits for k in self.known])[self.used]
        step = np.stack([k.step for k in self.known]) / scale
        if self.diagonal:
            step = step[self.used]

            def ratios(factor: float) -> NDArray[np.float64]:
                seen = factor * noise + np.where(bits, step, 0.0)
                return np.asarray((np.abs(seen) - np.abs(seen - step)).sum(axis=1), dtype=np.float64)

            size = np.abs(step).sum(axis=1)  # in the norm of the law
            return Trials(
                name,
                ratios(1.0),
                bits[:, 0],
                claim.epsilon,
                (float(size.min()), float(size.max())),
                claim.epsilon,
                claim.delta,
                records=k,
                ratio=True,
                narrowed=ratios,
            )
        moved = np.where(bits, step[self.used][:, 1:], 0.0)
        least, largest = float(step[:, 1:].min()), float(step[:, 1:].max())

        def scores(factor: float) -> NDArray[np.float64]:
            return np.asarray((factor * noise[:, 1:] + moved).reshape(-1), dtype=np.float64)

        return Trials(
            name,
            scores(1.0),
            bits.reshape(-1),
            k * shift_of(plan),
            (least, largest),
            claim.epsilon,
            claim.delta,
            claim.mu,
            k,
            narrowed=scores,
        )


def known_inputs(releases: int, canaries: Canaries, data_sets: int) -> tuple[list[KnownInputs], NDArray[np.int64]]:
    """At most so many different inputs, and which of them each release has: they come again and again, noise never
    does."""
    known = [canaries.draw() for _ in range(min(releases, data_sets))]
    return known, np.arange(releases) % len(known)


def in_the_clear(
    plan: Plan,
    canaries: Canaries,
    releases: int,
    *,
    copies: int = 1,
    data_sets: int = 1_000,
    factor: float = 1.0,
) -> FreshReleases:
    """So many releases of the same owners and the same sampler's arithmetic, without MPC: many more in the same time,
    and more than a run of parties makes, whose plan says what each of them claims. Each data set is released several
    times where there are fewer of them; every noise vector is its own. `factor`: what the noise is multiplied by, for
    tests."""
    known, used = known_inputs(releases, canaries, data_sets)
    noise = clear_noise(plan.derived.sampler, releases * plan.dimension, Prg.from_os())
    noise = np.rint(factor * noise.reshape(releases, plan.dimension)).astype(np.int64)
    return FreshReleases(plan, np.stack([k.total for k in known])[used] + noise, known, used, canaries.diagonal, copies)


def by_parties(
    plan: Plan,
    canaries: Canaries,
    out: Path,
    *,
    send: Send = as_they_are,
    progress: Callable[[int, int], None] = lambda done, total: None,
    **settings: Any,
) -> FreshReleases:
    """K releases by parties in processes of their own, for owners in two processes' stead; their transcripts, ledgers
    and logs are left in `out`. `progress`: told how many of how many releases are made. `settings`: of `PartiesHere`,
    for doubles of a party.

    Errors: the first party's error, one line; PeerError when a party dies.
    """
    _clear(out)
    prepare(out, overwrite=True, resume=False)
    known, used = known_inputs(plan.releases, canaries, max(FEWEST, plan.releases // EACH))
    owners, here = _KnownOwners(plan, known, used, send, progress), Here(out=out, wait=_WAIT)
    with ExitStack() as stack:
        parties = PartiesHere(plan.parties, here, **settings)
        stack.callback(parties.end)
        run(plan, owners, Seat(here, parties=parties, processes=processes_of(plan.owners)))
    return FreshReleases(plan, np.stack(owners.opened), known, used)


@dataclass
class _KnownOwners(RecordsHere):
    """The owners of known inputs, whose vectors are drawn before (`run.engine.Sends`)."""

    plan: Plan
    known: list[KnownInputs]
    used: NDArray[np.int64]
    send: Send
    progress: Callable[[int, int], None]
    opened: list[Ints] = field(default_factory=list)
    doing: str = "releasing"
    opens: None = None

    def plays(self, plan: Plan, seat: Seat, since: Since) -> AbstractContextManager[Self]:
        return nullcontext(self)

    def vectors(self) -> list[list[Ints]]:
        """By process."""
        halves = self.known[self.used[len(self.opened)]].halves
        return [[self.send(self.plan, block) for block in blocks] for blocks in halves]

    def takes(self, release: Release, made: object) -> None:
        self.opened.append(release.total)
        self.progress(len(self.opened), self.plan.releases)

    def keeps(self, ended: object) -> None:
        """What was opened is all."""

    def hears(self, event: str, **fields: Any) -> None:
        """`progress` says enough."""


def _clear(out: Path) -> None:
    """Takes away the ledgers of an earlier verification in `out`: nobody's records. Errors: another run is there."""
    if plan_path(out).exists():
        if f'"data":"{CANARIES}"' not in plan_path(out).read_text(encoding="utf-8"):  # of any version
            raise UsageError(
                f"<<work>> holds nothing but fresh releases; {out} has another run; name another directory"
            )
        for path in matching(out, "ledger_*.jsonl"):
            path.unlink()
