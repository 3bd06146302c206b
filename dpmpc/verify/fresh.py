"""Fresh releases with known inputs, through the same party and owner code as a training run, in real processes.

What a party's process does and what owners send are arguments: what a deployed run uses, or a test double.
"""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dpmpc.aggregation.aggregator import Aggregator
from dpmpc.aggregation.grid import Ints
from dpmpc.aggregation.local import PartiesHere
from dpmpc.aggregation.plan import FIRST_ATTEMPT, Plan, plan_path
from dpmpc.errors import UsageError
from dpmpc.mpc.clear_noise import clear_noise
from dpmpc.mpc.prg import Prg
from dpmpc.runs.folder import prepare
from dpmpc.verify.audit import Trials
from dpmpc.verify.canaries import CANARIES, Canaries, Known, processes_of
from dpmpc.verify.claim import claimed_epsilon, shift_of
from dpmpc.verify.statistics import Sample

Send = Callable[[Plan, Ints], Ints]  # what an owner makes of its vectors before it shares them
_WAIT = 120.0  # seconds: a busy machine may start processes slowly


def as_they_are(plan: Plan, vectors: Ints) -> Ints:
    """`vectors`."""
    return vectors


@dataclass(frozen=True)
class Outcome:
    """K releases: what was opened (K, d), and the known inputs of each."""

    plan: Plan
    opened: Ints
    known: list[Known]

    def sample(self) -> Sample:
        """What was opened less the exact sums."""
        plan, sums = self.plan, np.stack([k.total for k in self.known])
        bits, mechanism = np.stack([k.bits for k in self.known]), plan.derived.mechanism
        return Sample(plan.owners, plan.law, mechanism.scale, mechanism.discrete, self.opened - sums, sums, bits)

    def trials(self, name: str) -> Trials:
        """Every canary of every release: its coordinate sees its bit and no other's."""
        plan, scale = self.plan, self.plan.derived.mechanism.scale
        base = np.stack([k.base for k in self.known])
        scores = (self.opened - base)[:, 1:].astype(np.float64) / scale
        bits = np.stack([k.bits for k in self.known])
        moved = np.stack([k.total for k in self.known]) - base
        influence = np.abs(moved[:, 1:][bits]) / scale
        return Trials(
            name,
            scores.reshape(-1),
            bits.reshape(-1),
            shift_of(plan),
            (float(influence.min()), float(influence.max())),
            claimed_epsilon(plan),
            plan.delta,
        )


def in_the_clear(plan: Plan, canaries: Canaries) -> Outcome:
    """K releases of the same owners and the same sampler's arithmetic, without MPC: many more in the same time."""
    known = [canaries.draw() for _ in range(plan.releases)]
    noise = clear_noise(plan.derived.sampler, plan.releases * plan.dimension, Prg.from_os())
    return Outcome(plan, np.stack([k.total for k in known]) + noise.reshape(plan.releases, plan.dimension), known)


def by_parties(plan: Plan, canaries: Canaries, out: Path, *, send: Send = as_they_are, **settings: Any) -> Outcome:
    """K releases by parties in processes of their own, for owners in two processes' stead; their transcripts, ledgers
    and logs are left in `out`. `settings`: of `LocalParties`, for doubles of a party.

    Errors: the first party's error, one line; PeerError when a party dies.
    """
    _clear(out)
    prepare(out, overwrite=True, resume=False)
    plan.write(plan_path(out))
    opened, known = [], []
    with ExitStack() as stack:
        parties = PartiesHere(plan.parties, out, **settings)
        stack.callback(parties.end)
        parties.begin(plan, FIRST_ATTEMPT, _WAIT)
        aggregators = [
            stack.enter_context(Aggregator.joining(plan, parties, owners, _WAIT))
            for owners in processes_of(plan.owners)
        ]
        for _ in range(plan.releases):
            inputs = canaries.draw()
            shares = [[send(plan, block) for block in blocks] for blocks in inputs.halves]
            releases = [a.begin_steps(blocks) for a, blocks in zip(aggregators, shares, strict=True)]
            totals = [release.result().total for release in releases]
            opened.append(totals[0])
            known.append(inputs)
        for aggregator in aggregators:
            aggregator.finish()
        parties.wait()
    return Outcome(plan, np.stack(opened), known)


def _clear(out: Path) -> None:
    """Takes away the ledgers of an earlier verification in `out`: nobody's records. Errors: another run is there."""
    if plan_path(out).exists():
        if f'"data":"{CANARIES}"' not in plan_path(out).read_text(encoding="utf-8"):  # of any version
            raise UsageError(f"--work holds nothing but fresh releases; {out} has another run; name another directory")
        for path in out.glob("ledger_*.jsonl"):
            path.unlink()
