"""A whole run on this machine: the owners here, the parties as processes of their own."""

import json
import secrets
import time
from dataclasses import replace
from pathlib import Path

from dpmpc.aggregation.party.resume import check_new
from dpmpc.aggregation.plan.asked import plan_path
from dpmpc.aggregation.plan.here import Here
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.errors import PeerError
from dpmpc.folders import matching, sweep_halves, write_file
from dpmpc.intake.scratch import sweep_below
from dpmpc.learning.survey_columns import SURVEY
from dpmpc.local.job import OwnersJob
from dpmpc.local.owner_process import Progress, run_owners
from dpmpc.planning.request import Request
from dpmpc.run.folder import alone, prepare, request_path


def train(
    request: Request,
    here: Here,
    *,
    resume: bool = False,
    progress: Progress = lambda event: None,
    role: str | None = None,
) -> None:
    """Does a whole run in the folder of `here` and returns when report.json is written. `role`: what a party's process
    does, for tests.

    Errors: the one that names the cause; UsageError for an unusable directory.
    """
    out, overwrite = here.folder, here.overwrite and not resume
    started = time.time()
    if not out.exists():
        prepare(out, overwrite=overwrite, resume=resume)
    with alone(out):
        if overwrite and request.run_id is not None:
            check_new(matching(out, "ledger_*.jsonl"), request.run_id)
        prepare(out, overwrite=overwrite, resume=resume)
        sweep_halves(out)
        sweep_below(out)
        name = request.run_id or _begun(out) or secrets.token_hex(8)  # stays that of the run, whatever happens to it
        request = replace(request, run_id=name)
        write_file(request_path(out), json.dumps(request.to_json()))
        job = OwnersJob(request, here, started, resume=resume, role=role)
        try:
            run_owners(job, out / "owners.log", progress)
        except PeerError as error:
            raise type(error)(f"{error.message}; what is finished is kept, carry on with <<resume>>") from None


def _begun(out: Path) -> str | None:
    """The name of the run that was begun in a folder, also where its request does not say it."""
    for path in (plan_path(out), plan_path(out / SURVEY)):
        if path.is_file():
            return Plan.read(path).run_id.partition("+")[0]
    return None
