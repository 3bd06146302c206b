"""Starts the processes of one measurement, gives each its job, collects their results, and ends them all when one
fails.
"""

import asyncio
import contextlib
import json
import os
import signal
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from dpmpc.errors import PeerError, UsageError

ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}  # as the launcher of a training run sets it


@dataclass(frozen=True)
class Job:
    """What one process does: a role of `dpmpc.benchmarks.worker` and its arguments, which must be JSON-able."""

    role: str
    arguments: dict[str, Any]
    prefix: tuple[str, ...] = field(
        default=()
    )  # a command that starts the process somewhere else: `ip netns exec NAME`

    @property
    def name(self) -> str:
        index = self.arguments.get("index")
        return self.role if index is None else f"{self.role} {index}"


def run_jobs(jobs: Sequence[Job], seconds: float = 600.0, background: Sequence[Job] = ()) -> list[Any]:
    """What every job returned, in order. Jobs in the `background` run as long as the others. No process is left behind.

    Errors: the cause of the first failure; PeerError when the jobs take longer than `seconds`.
    """
    return asyncio.run(_run_jobs(jobs, seconds, background))


async def _run_jobs(jobs: Sequence[Job], seconds: float, background: Sequence[Job]) -> list[Any]:
    processes: list[asyncio.subprocess.Process] = []
    failures: dict[int, str] = {}
    with contextlib.ExitStack() as stack:
        logs = [stack.enter_context(tempfile.TemporaryFile()) for _ in (*jobs, *background)]
        try:
            for job, log in zip((*jobs, *background), logs, strict=True):
                processes.append(
                    await asyncio.create_subprocess_exec(
                        *job.prefix,
                        sys.executable,
                        "-m",
                        "dpmpc.benchmarks.worker",
                        job.role,
                        stdin=asyncio.subprocess.PIPE,
                        stdout=asyncio.subprocess.PIPE,
                        stderr=log,
                        env={**os.environ, **ONE_THREAD},
                        start_new_session=True,
                        limit=1 << 28,
                    )
                )
            for process, job in zip(processes[len(jobs) :], background, strict=True):
                assert process.stdin is not None
                process.stdin.write(json.dumps(job.arguments).encode())
                process.stdin.close()

            async def result(k: int) -> Any:
                out, _ = await processes[k].communicate(json.dumps(jobs[k].arguments).encode())
                answer = json.loads(out) if out else {}
                if "result" in answer:
                    return answer["result"]
                if "error" in answer:
                    raise (
                        UsageError(answer["error"])
                        if answer["code"] == UsageError.exit_code
                        else PeerError(answer["error"])
                    )
                logs[k].seek(0)
                failures[k] = logs[k].read().decode(errors="replace")[-4000:]
                raise RuntimeError(f"{jobs[k].name} ended with exit code {processes[k].returncode}\n{failures[k]}")

            tasks = [asyncio.create_task(result(k)) for k in range(len(jobs))]
            done, waiting = await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_EXCEPTION)
            errors = [e for task in done if (e := task.exception()) is not None]
            if waiting and errors:
                more, _ = await asyncio.wait(waiting, timeout=1.0)  # the others may know the cause
                errors += [e for task in more if (e := task.exception()) is not None]
            for task in waiting:
                task.cancel()
            if errors:
                raise min(errors, key=lambda e: isinstance(e, PeerError))  # a PeerError is an echo of another's failure
            if waiting:
                raise PeerError(
                    f"a measurement must end within {seconds:g} s; {len(waiting)} processes have not; ask for less"
                )
            return [task.result() for task in tasks]
        finally:
            for process in processes:
                if process.returncode is None:
                    with contextlib.suppress(ProcessLookupError):
                        process.send_signal(signal.SIGKILL)
            for process in processes:
                await process.wait()
