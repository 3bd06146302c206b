"""Where a run stands, from its folder alone: beside a running run, or after its end. Changes nothing."""

import math
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from dpmpc.aggregation.asked import plan_path
from dpmpc.aggregation.guarantee import promise_of
from dpmpc.aggregation.plan import Plan
from dpmpc.errors import UsageError
from dpmpc.privacy.composition import spent
from dpmpc.privacy.ledgers import ledgers_below, merge, parts, read_ledgers
from dpmpc.processes.status import State, read_state
from dpmpc.runs.folder import run_folder


@dataclass(frozen=True)
class Spent:
    """What the ledgers at hand say: releases that are spent, and what they come to at the plan's delta. `lines`: those
    with a line here; others made the rest, or may, and it counts: where known, `parties` have it."""

    releases: int
    epsilon: float | None  # None: no promise
    delta: float
    of_epsilon: float | None  # what the whole plan may come to
    lines: int
    parties: tuple[int, ...] = ()


@dataclass(frozen=True)
class RunStatus:
    """A run's folder: its plan, its processes here, what is spent. `model`: whether it is there."""

    folder: Path
    plan: Plan
    processes: tuple[State, ...]
    spent: Spent | None
    model: bool

    def to_json(self) -> dict[str, Any]:
        """The same as JSON values."""
        return {
            "folder": str(self.folder),
            "run": self.plan.run_id,
            "data": self.plan.data,
            "releases": self.plan.releases,
            "processes": [{**asdict(state), "rate": state.rate} for state in self.processes],
            "spent": None if self.spent is None else asdict(self.spent),
            "model": self.model,
        }


def read_status(folder: Path) -> RunStatus:
    """The status of the run in `folder`, or in `run` of the kit there. Errors: no run is there."""
    folder = run_folder(folder)
    states = [state for path in sorted(folder.glob("status_*.json")) if (state := read_state(path)) is not None]
    plans = [plan_path(folder), *sorted(folder.glob("plan_*.json"))]
    plan = next((Plan.read(path) for path in plans if path.is_file()), None)
    if plan is None:
        raise UsageError(f"a run's folder has a plan; {folder} has none yet; name a run, or wait until it has begun")
    return RunStatus(folder, plan, tuple(states), _spent(folder, plan), (folder / "model.npz").exists())


def _spent(folder: Path, plan: Plan) -> Spent | None:
    paths = ledgers_below(folder)
    if not paths:
        return None
    books = [replace(book, reserved=()) for book in read_ledgers(folder, files=paths)]  # reserved is not spent yet
    entries = [entry for entry in merge(books) if entry.run == plan.run_id]
    sums = spent(entries, plan.data_id, plan.delta, entries[0].neighbours if entries else "")
    epsilon, most = (x if math.isfinite(x) else None for x in (sums.epsilon, promise_of(plan).epsilon))
    mine = next((part for part in parts(books) if part.run == plan.run_id), None)
    if mine is None:
        return Spent(len(entries), epsilon, plan.delta, most, len(entries))
    return Spent(len(entries), epsilon, plan.delta, most, mine.lines, mine.parties)
