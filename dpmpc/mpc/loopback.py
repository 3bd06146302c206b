"""Local parties: run one coroutine as n real processes that talk TCP over loopback. For `sample`, `bench`, `verify`
and tests.

A deployed run starts its parties by `dpmpc train`; this module is for measurements, where the caller is all parties at
once.
"""

import asyncio
import multiprocessing
import multiprocessing.connection
import secrets
import socket
import time
import traceback
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from dpmpc.errors import DpmpcError, PeerError
from dpmpc.mpc.session import CONNECT_SECONDS, Session, endpoints_here
from dpmpc.processes.memory import keep_freed_blocks

T = TypeVar("T")


def free_base_port(parties: int) -> int:
    """A base port such that base .. base + n - 1 are free on loopback right now."""
    for _ in range(200):
        base = 20_000 + secrets.randbelow(12_000)
        try:
            for i in range(parties):
                with socket.socket() as s:
                    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    s.bind(("127.0.0.1", base + i))
            return base
        except OSError:
            continue
    raise PeerError(
        f"{parties} neighbouring ports must be free on 127.0.0.1; found none; end other runs or name a base port "
        "with -B"
    )


def _party(
    pipe: Any,
    body: Callable[..., Awaitable[T]],
    args: tuple[Any, ...],
    party: int,
    parties: int,
    threshold: int,
    run_id: bytes,
    base_port: int,
    prss: bool,
) -> None:
    keep_freed_blocks()

    async def main() -> T:
        session = Session(party, parties, threshold, run_id, prss=prss)
        try:
            # n processes start on one machine's cores: each more needs its share of them to import NumPy
            await session.connect(endpoints_here(parties, base_port), seconds=CONNECT_SECONDS + parties)
            result = await body(session, *args)
            await session.close()
            return result
        finally:
            session.abandon()

    try:
        pipe.send((True, asyncio.run(main())))
    except DpmpcError as error:
        pipe.send((False, error))
    except BaseException:  # a bug: the caller gets the whole traceback
        pipe.send((False, RuntimeError(f"party {party}:\n{traceback.format_exc()}")))
        raise


def run_parties(
    body: Callable[..., Awaitable[T]],
    parties: int,
    threshold: int | None = None,
    args: tuple[Any, ...] = (),
    *,
    seconds: float = 600.0,
    prss: bool = True,
) -> list[T]:
    """What `body(session, *args)` returns at each party, in order. `body` must be importable by name (a module-level
    function).

    Errors: the first party's error; PeerError when a process dies or `seconds` pass. No process is left behind.
    """
    context = multiprocessing.get_context("spawn")
    base_port, run_id = free_base_port(parties), secrets.token_bytes(16)
    t = (parties - 1) // 2 if threshold is None else threshold
    processes, pipes = [], []
    for i in range(parties):
        here, there = context.Pipe(duplex=False)
        process = context.Process(
            target=_party, args=(there, body, args, i, parties, t, run_id, base_port, prss), daemon=True
        )
        process.start()
        there.close()
        processes.append(process)
        pipes.append(here)
    results: dict[int, Any] = {}
    deadline = time.monotonic() + seconds
    errors: list[BaseException] = []
    try:
        waiting: dict[Any, int] = {pipe: i for i, pipe in enumerate(pipes)}
        while waiting and not errors:
            ready = multiprocessing.connection.wait(list(waiting), timeout=max(0.0, deadline - time.monotonic()))
            if not ready:
                errors.append(
                    PeerError(
                        f"a local run must end within {seconds:g} s; parties {sorted(waiting.values())} have not; "
                        "see their output"
                    )
                )
            pipe: Any
            for pipe in ready:
                i = waiting.pop(pipe)
                try:
                    ok, value = pipe.recv()
                except EOFError:
                    processes[i].join(1.0)
                    ok, value = (
                        False,
                        PeerError(f"party {i} died with exit code {processes[i].exitcode}; see its output"),
                    )
                if ok:
                    results[i] = value
                else:
                    errors.append(value)
        if errors:  # prefer the cause over its echo at the other parties
            for pipe in list(waiting):
                if pipe.poll(0.5):
                    try:
                        ok, value = pipe.recv()
                    except EOFError:
                        continue
                    if not ok:
                        errors.append(value)
            raise next((e for e in errors if not isinstance(e, PeerError)), errors[0])
    finally:
        for process in processes:
            process.join(timeout=0.0 if errors else 5.0)
            if process.is_alive():
                process.terminate()
                process.join()
    return [results[i] for i in range(parties)]
