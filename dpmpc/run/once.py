"""A stage of one release on this machine: made once in its folder, whatever happens to the process that makes it.

Before anything is opened the folder has the plan; when the stage is over it has the sum (`stages.OPENED`). A process
that comes again finds in which of these states it is: what is over is read, what was opened and not kept is kept now,
what was only begun is made, and what is spent and was opened by nobody is lost, which an error says.
"""

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from dpmpc.aggregation.owner.opens_sums import Release
from dpmpc.aggregation.plan.asked import FIRST_ATTEMPT, plan_path
from dpmpc.aggregation.plan.grid import Floats
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.plan.stages import sum_of
from dpmpc.errors import UsageError
from dpmpc.folders import OUT, is_half, make_folder, not_new, replaced, sweep_halves
from dpmpc.privacy.ledgers import WHOLE
from dpmpc.run.engine import Ended, Made, nobody, releases
from dpmpc.run.files import WHOLE as STAGE_OF
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


class Once:
    """The owners here in a run of one release (`engine.Sends`)."""

    def __init__(
        self, vectors: Callable[[], Any], doing: str, keeps: Callable[[Ended], None] = lambda outcome: None
    ) -> None:
        self.vectors, self.doing, self.keeps = vectors, doing, keeps

    def takes(self, release: Release, made: Made | None) -> None:
        """Nothing follows from it but what is kept."""


def once(
    plan: Plan, vectors: Callable[[], Any], seat: Seat, doing: str = "making the release", *,
    emit: Callable[..., None] = nobody, ends: contextlib.ExitStack | None = None,
    keeps: Callable[[Ended], None] | None = None,
) -> Ended:  # fmt: skip
    """What the one release of a plan opened: as the folder of `seat` has it, or made now of `vectors`, which is called
    only then. `ends`: as of `engine.releases`. `keeps`: keeps what was
    opened, by default the sum in the folder.

    Errors: UsageError where the folder has another plan; SpentError where the release is spent and was not opened; as
    of releases."""
    if seat.out is None:
        return releases(plan, Once(vectors, doing), seat, emit=emit, ends=ends)
    out = seat.out
    if is_over(plan, out):
        known, present = opened_anywhere(out, plan), presence_anywhere(out, plan) if plan.names_owners else {}
        if 0 in known:
            return Ended(FIRST_ATTEMPT, Release(0, known[0], 0, present.get(0)), (), 1, (), ())
    make_folder(out, OUT, private=True)
    since = begun(plan, out)
    kept = lambda ended: keep_sum(out, sum_of(plan, ended.last.total, ended.last.present).total)  # noqa: E731
    return releases(plan, Once(vectors, doing, keeps or kept), seat, since, emit=emit, ends=ends)


def begun(plan: Plan, out: Path) -> Since:
    """What earlier attempts left of this plan in a folder, which has plan and attempt from now on. Errors: UsageError
    where it has another plan."""
    if begun_as(plan, out) != plan:
        raise UsageError(f"a stage is begun once in its folder; {out} has that of another run; name another <<out>>")
    since = left(plan, out)
    plan.write(plan_path(out))
    if since.attempt != FIRST_ATTEMPT:
        note_attempt(out, since.attempt)
    return since
