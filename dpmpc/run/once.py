"""A stage of one release on this machine: made once in its folder, whatever happens to the process that makes it.

Before anything is opened the folder has the plan; when the stage is over it has the sum (`stages.OPENED`). A process
that comes again finds in which of these states it is: what is over is read, what was opened and not kept is kept now,
what was only begun is made, and what is spent and was opened by nobody is lost, which an error says.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from dpmpc.aggregation.owner.opens_sums import Release
from dpmpc.aggregation.plan.asked import AGREED, FIRST_ATTEMPT, plan_path
from dpmpc.aggregation.plan.grid import Floats
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.errors import UsageError
from dpmpc.folders import OUT, is_half, make_folder, not_new, replaced, sweep_halves
from dpmpc.lazy import dataclass
from dpmpc.privacy.ledgers import WHOLE
from dpmpc.run.files import WHOLE as STAGE_OF
from dpmpc.run.owners import Ended, Made, Opens
from dpmpc.run.resume import Since, begun_as, left, note_attempt, opened_anywhere, presence_anywhere
from dpmpc.run.seat import Seat

OPENED = "opened.npy"  # the sum over the records of a stage that is over, in its folder


def keep_sum(folder: Path, total: Floats) -> None:
    """Writes what a stage opened, (d,), into its folder, whole or not at all: from now on it is over."""
    with replaced(folder / OPENED) as beside, beside.open("wb") as file:
        np.save(file, total, allow_pickle=False)


def is_over(plan: Plan, folder: Path) -> bool:
    """Whether this stage is over in this folder."""
    return (folder / OPENED).is_file() and plan_path(folder).is_file() and Plan.read(plan_path(folder)) == plan


def unfinished(folder: Path, last: str, *stages: str) -> None:
    """Returns where a run can begin or go on in a folder: it is new, empty, or has a run that was cut short before it
    wrote its `last` file. `stages`: the folders of its stages, of which one has the plan; () where the folder has it.
    Errors: UsageError for another folder."""
    parts = [folder / stage for stage in stages] or [folder]
    begun = any(path.is_file() for part in parts for path in (plan_path(part), part / STAGE_OF))
    begun = begun and not (folder / last).exists()
    held = [path for path in folder.iterdir() if not is_half(path, stages)] if folder.is_dir() else []
    strange = any(not path.name.startswith(WHOLE) for path in held)  # what was reserved alone is taken over
    if (folder.exists() and not folder.is_dir()) or (strange and not begun):
        raise not_new(folder)
    if folder.exists():
        sweep_halves(folder)


@dataclass(frozen=True)
class Once:
    """The owners of one release that are played here (`engine.Sends`). `vectors`: called when it begins; `keeps`: told
    what became of it."""

    vectors: Callable[[], Any]
    doing: str
    hears: Callable[..., None]
    keeps: Callable[[Ended], None]
    opens: Opens | None = None

    def takes(self, release: Release, made: Made | None) -> None:
        """Nothing follows from it but what is kept."""


def over(plan: Plan, out: Path | None) -> Ended | None:
    """What the one release of a plan opened that is over in a folder; None where none is."""
    if out is None or not is_over(plan, out):
        return None
    known, present = opened_anywhere(out, plan), presence_anywhere(out, plan) if plan.names_owners else {}
    return Ended(FIRST_ATTEMPT, Release(0, known[0], 0, present.get(0)), (), 1, (), ()) if 0 in known else None


def since_in(plan: Plan, seat: Seat) -> Since:
    """What earlier attempts left of this plan in the folder of `seat`. Errors: UsageError where it has another plan."""
    if seat.addresses is not None:  # the processes agree on it when they meet
        return Since(plan.attempt)
    if seat.out is None:
        return Since()
    if begun_as(plan, seat.out) != plan:
        raise UsageError(
            f"a run is begun once in its folder; {seat.out} has another; name another <<out>>", code="over"
        )
    return left(plan, seat.out)


def begins(plan: Plan, seat: Seat, since: Since) -> None:
    """The folder of `seat` has plan and attempt from now on."""
    if seat.out is None:
        return
    make_folder(seat.out, OUT, private=True)
    plan.write(plan_path(seat.out))
    untold = plan.releases == 1 and since.attempt == FIRST_ATTEMPT  # what it leaves says that it was made
    if since.attempt != AGREED and not untold:
        note_attempt(seat.out, since.attempt)
