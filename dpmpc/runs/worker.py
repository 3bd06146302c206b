"""One process of a run, as a child of the launcher or on its own: reads its job, does it, reports events, fails with
one line.

Child and launcher talk JSON lines: the job on the child's standard input, events on its standard output. The child's
input stays open until the launcher ends or dies; its end makes the child exit, so that no process outlives its
launcher.
"""

import asyncio
import json
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

from dpmpc.errors import DpmpcError
from dpmpc.mpc.session import Endpoint
from dpmpc.processes.memory import keep_freed_blocks

Emit = Callable[..., None]
Log = Callable[[str], None]


def main() -> None:
    """Entry point of `python -m dpmpc.runs.worker ROLE`: the job is the first line of standard input."""
    role = sys.argv[1]
    keep_freed_blocks()
    events = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever prints goes to the log

    def emit(event: str, **fields: Any) -> None:
        try:
            events.write(json.dumps({"event": event, **fields}, separators=(",", ":")) + "\n")
            events.flush()
        except OSError:
            os._exit(3)  # the launcher has gone

    _preload(role)
    line = sys.stdin.buffer.readline()
    if not line:
        os._exit(3)
    threading.Thread(target=_exit_with_launcher, daemon=True).start()
    code = run_job(role, json.loads(line), emit, log_to(sys.stderr))
    sys.stderr.flush()
    os._exit(code)  # no wait for the thread that watches the launcher


def run_job(role: str, job: dict[str, Any], emit: Emit, log: Log) -> int:
    """Does a job in this process; the exit code. A failure is one `error` event; a bug propagates, and its traceback
    goes to the log."""
    try:
        if role == "party":
            _party(job, emit, log)
        else:
            _owners(job, emit, log)
    except DpmpcError as error:
        log(f"error: {error}")
        emit("error", message=str(error), code=error.exit_code)
        return error.exit_code
    except (OSError, MemoryError) as error:  # a full disk, no memory: not bugs, but worth a traceback in the log
        traceback.print_exc()
        emit("error", message=f"{role}: {type(error).__name__}: {error}", code=1)
        return 1
    return 0


def log_to(file: TextIO) -> Log:
    """A function that writes one line with the time to `file`."""

    def log(text: str) -> None:
        now = time.time()
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now))
        print(f"{stamp}.{int(now * 1000) % 1000:03d}Z {text}", file=file, flush=True)

    return log


def endpoints(pairs: list[list[Any]]) -> list[Endpoint]:
    return [Endpoint(str(host), int(port)) for host, port in pairs]


def _preload(role: str) -> None:
    """Import what the role needs while the launcher still waits for the plan."""
    if role == "party":
        from dpmpc.mpc.session import import_mpyc

        import_mpyc()
    else:
        pass


def _exit_with_launcher() -> None:
    while os.read(0, 1 << 12):
        pass
    os._exit(3)


def _party(job: dict[str, Any], emit: Emit, log: Log) -> None:
    from dpmpc.aggregation.party import PartyJob, run_party
    from dpmpc.aggregation.plan import Plan

    asyncio.run(
        run_party(
            PartyJob(
                plan=Plan.read(Path(job["plan"])),
                index=job["index"],
                addresses=endpoints(job["addresses"]),
                owner_addresses=endpoints(job["owner_addresses"]),
                out=Path(job["out"]),
                wait=job["wait"],
                tls=Path(job["tls"]) if job["tls"] else None,
            ),
            log,
            emit,
        )
    )


def _owners(job: dict[str, Any], emit: Emit, log: Log) -> None:
    from dpmpc.runs.owners import OwnersJob, run_owners
    from dpmpc.runs.request import Options

    run_owners(
        OwnersJob(
            options=Options.from_json(job["options"]),
            owner_addresses=endpoints(job["owner_addresses"]),
            out=Path(job["out"]),
            wait=job["wait"],
            tls=Path(job["tls"]) if job["tls"] else None,
            plan=Path(job["plan"]) if job.get("plan") else None,
            owner=job.get("owner"),
            started=job["started"],
            resume=job["resume"],
        ),
        log,
        emit,
    )


if __name__ == "__main__":
    main()
