"""Where a run stands, from its folder alone: beside a running run, or after its end. Changes nothing."""

import math
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from dpmpc.aggregation.plan.asked import plan_path
from dpmpc.aggregation.plan.guarantee import promise_of
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.codec import loads
from dpmpc.errors import Spelling, UsageError, python_spelling, spelt
from dpmpc.folders import matching
from dpmpc.lazy import dataclass
from dpmpc.privacy.composition import spent
from dpmpc.privacy.ledgers import merge, parts
from dpmpc.privacy.seen import seen
from dpmpc.processes.status import State, read_state
from dpmpc.run.files import FIGURES, WHOLE
from dpmpc.run.folder import run_folder
from dpmpc.show.figures import Line, figure_lines
from dpmpc.tables.answer_files import ANSWERS, ASKED_FIRST


@dataclass(frozen=True)
class LedgerSpending:
    """What the ledgers at hand say: releases that are spent, those of stages (`stages`, by name) among them, and what
    they come to at the plan's delta. `lines`: those with a line here; others made the rest, or may, and it counts:
    where known, `parties` have it."""

    releases: int
    epsilon: float | None  # None: no promise
    delta: float
    of_epsilon: float | None  # what the whole plan may come to
    lines: int
    parties: tuple[int, ...] = ()
    stages: tuple[str, ...] = ()


@dataclass(frozen=True)
class RunStatus:
    """A run's folder: its plan, or that of the stage that comes first, its processes here, those of its stages named
    so, what is spent. `model`: whether it is there; `answers`: the file of those to questions."""

    folder: Path
    plan: Plan
    processes: tuple[State, ...]
    spent: LedgerSpending | None
    model: bool
    answers: str | None = None
    figures: dict[str, Any] | None = None  # of the model, if it was evaluated

    @property
    def planned(self) -> int:
        """Releases that the run makes in all: the plan's own, and those of the stages before and after them."""
        return self.plan.releases + len(self.plan.before) + len(self.plan.source.schedule.after)

    def to_json(self) -> dict[str, Any]:
        """The same as JSON values."""
        return {
            "folder": str(self.folder),
            "run": self.plan.run_id,
            "data": self.plan.data,
            "releases": self.plan.releases,
            "planned": self.planned,
            "processes": [{**asdict(state), "rate": state.rate} for state in self.processes],
            "spent": None if self.spent is None else asdict(self.spent),
            "model": self.model,
            "answers": self.answers,
            "figures": self.figures,
        }


def read_status(folder: Path, spelling: Spelling = python_spelling) -> RunStatus:
    """The status of the run in `folder`, or in `run` of the kit there; before its releases, of its stages. `spelling`:
    how the events of processes name settings. Errors: no run is there."""
    folder = run_folder(folder)
    stages = [path for path in sorted(folder.iterdir()) if path.is_dir()] if folder.is_dir() else []
    states = _states(folder)
    states += [
        replace(state, process=f"{state.process} ({stage.name})")
        for stage in stages
        for state in _states(stage)
        if state.alive or not states
    ]
    plans = [plan_path(folder), *matching(folder, "plan_*.json")]
    plans += [path for stage in stages for path in (stage / WHOLE, plan_path(stage))]  # before the run's own is made
    plan = next((Plan.read(path) for path in plans if path.is_file()), None)
    if plan is None:
        raise UsageError(
            f"a run's folder has a plan; {folder} has none yet; name a run, or wait until it has begun", code="path"
        )
    figures = folder / FIGURES
    return RunStatus(
        folder,
        plan,
        tuple(replace(state, event=spelt(state.event, spelling)) for state in states),
        _spent(folder, plan),
        (folder / "model.npz").exists(),
        next((name for name in (ANSWERS, ASKED_FIRST) if (folder / name).exists()), None),
        loads(figures.read_text(encoding="utf-8"))["figures"] if figures.exists() else None,
    )


def read_lines(run: Path) -> list[Line]:
    """The lines of the figures that a run over several machines opened, at any of its processes; [] where there are
    none."""
    path = run / FIGURES
    if not path.exists():
        return []
    found = loads(path.read_text(encoding="utf-8"))
    return figure_lines(found) + [("warning", text) for text in found["warnings"]]


def _states(folder: Path) -> list[State]:
    return [state for path in matching(folder, "status_*.json") if (state := read_state(path)) is not None]


def _spent(folder: Path, plan: Plan) -> LedgerSpending | None:
    found = seen(None, folder, ())  # the run's own ledgers; of others on its data `dpmpc budget` tells
    if not found.known:
        return None
    books = [book.unreserved for book in found.books]  # reserved is not spent yet
    run = plan.run_id.partition("+")[0]  # a stage's is the run's, a plus and its name
    entries = [entry for entry in merge(books) if entry.run.partition("+")[0] == run]
    stages = tuple(entry.run.partition("+")[2] for entry in entries if "+" in entry.run)
    sums = spent(entries, plan.data_id, plan.delta, entries[0].neighbours if entries else "")
    epsilon, most = (x if math.isfinite(x) else None for x in (sums.epsilon, promise_of(plan).epsilon))
    mine = next((part for part in parts(books) if part.run == plan.run_id), None)
    if mine is None:
        return LedgerSpending(len(entries), epsilon, plan.delta, most, len(entries), (), stages)
    return LedgerSpending(len(entries), epsilon, plan.delta, most, mine.lines + len(stages), mine.parties, stages)
