"""Local parties: one coroutine at n real processes that talk TCP over loopback. For `sample`, `bench` and tests; the
parties of a run are started by `aggregation.owner.local_parties`."""

import asyncio
import functools
import importlib
import secrets
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from dpmpc.mpc.contract.backend import BACKENDS, DEFAULT
from dpmpc.mpc.transport.addresses import Endpoint, endpoint_of, inherited, waiting_socket
from dpmpc.mpc.transport.dial import TcpLink
from dpmpc.processes.cores import threads_for
from dpmpc.processes.supervisor import Job, run_here, run_jobs
from dpmpc.processes.worker import Emit, Log

T = TypeVar("T")
_CONNECT = 120.0  # seconds: a busy machine may start processes slowly


def run_parties(
    body: Callable[..., Awaitable[T]],
    parties: int,
    threshold: int | None = None,
    args: Sequence[Any] = (),
    *,
    backend: str = DEFAULT,
    seconds: float = 600.0,
    threads: int | None = None,
) -> list[T]:
    """What `body(holder, *args)` returns at each party, in order; results are JSON values and arrays. `threads`: of
    each party; by default an equal part of the cores.

    `body` must be importable by name (a module-level function). Errors: the first party's error; PeerError when a
    process dies or `seconds` pass. No process is left behind.
    """
    t = BACKENDS[backend].threshold(parties) if threshold is None else threshold
    bound = [waiting_socket() for _ in range(parties)]
    addresses = [endpoint_of(s) for s in bound]
    common = {
        "body": f"{body.__module__}:{body.__qualname__}",
        "args": list(args),
        "parties": parties,
        "threshold": t,
        "backend": backend,
        "run_id": secrets.token_bytes(16),
        "threads": threads or threads_for(parties),
        "addresses": [[e.host, e.port] for e in addresses],
    }
    jobs = [
        Job(f"party {i}", "dpmpc.mpc.parties.loopback:party", {**common, "index": i, "socket": s.fileno()}, [s])
        for i, s in enumerate(bound)
    ]
    preload = [body.__module__, BACKENDS[backend].__module__]
    return run_jobs(jobs, seconds, preload=preload)


def party(
    *,
    body: str,
    args: Sequence[Any],
    index: int,
    parties: int,
    threshold: int,
    backend: str,
    run_id: bytes,
    threads: int,
    addresses: Sequence[tuple[str, int]],
    socket: int,
    emit: Emit,
    log: Log,
) -> Any:
    """The role of one of `run_parties`' processes."""
    module, _, name = body.partition(":")
    function = functools.reduce(getattr, name.split("."), importlib.import_module(module))

    async def main() -> Any:
        holder = BACKENDS[backend].holder(index, parties, threshold, run_id)
        holder.use_threads(threads)
        link = TcpLink(index, [Endpoint(*address) for address in addresses], bound=inherited(socket))
        try:
            await holder.connect(link, bytes(32), seconds=_CONNECT)
            result = await function(holder, *args)  # type: ignore[operator]
            await holder.close()
            return result
        finally:
            holder.abandon()
            await asyncio.sleep(0)

    return run_here(main)
