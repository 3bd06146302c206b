"""The aggregation of an experiment through real parties: processes that talk TCP and see one share each.

Every method takes an `aggregate(vectors, law, scale)`. `RealParties` is one: it rounds the vectors on a grid, sends
each party its Shamir share of every vector, and the parties add up, make one noise vector inside MPC, add it and open
the sum. For experiments: no ledger, no transcript, all on this machine; `dpmpc train` is the product.
"""

import asyncio
import math
import multiprocessing
import secrets
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmpc.errors import DpmpcError, PeerError, UsageError
from dpmpc.mpc import field
from dpmpc.mpc.loopback import free_base_port
from dpmpc.mpc.prg import Prg
from dpmpc.mpc.session import Session, endpoints_here
from dpmpc.noise.pool import FIRST_CHANNEL, batches, draw
from dpmpc.noise.samplers import make_sampler

FINEST = 40  # bits of the grid without noise: rounding is below 2^-41
_NOISE_STEPS = 1 << 24


class RealParties:
    """n party processes on loopback, as a context; calling it aggregates.

    Errors: PeerError when a party dies; UsageError for a law without a sampler, or vectors too large for the field.
    """

    def __init__(self, parties: int = 3, threshold: int | None = None) -> None:
        self.parties = parties
        self.threshold = (parties - 1) // 2 if threshold is None else threshold
        self._prg = Prg.from_os()
        self._pipes: list[Any] = []
        self._processes: list[Any] = []

    def __enter__(self) -> "RealParties":
        context = multiprocessing.get_context("spawn")
        port, run_id = free_base_port(self.parties), secrets.token_bytes(16)
        for i in range(self.parties):
            here, there = context.Pipe()
            process = context.Process(
                target=_party, args=(there, i, self.parties, self.threshold, run_id, port), daemon=True
            )
            process.start()
            there.close()
            self._pipes.append(here)
            self._processes.append(process)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for pipe, process in zip(self._pipes, self._processes, strict=True):
            pipe.close()  # the party reads its end and stops
            process.join(timeout=5.0)
            if process.is_alive():
                process.terminate()
                process.join()

    def __call__(self, vectors: NDArray[np.float64], law: str, scale: float) -> NDArray[np.float64]:
        """The mean of the vectors (m, d) plus one noise vector of `law` and `scale`, on a grid: (d,)."""
        if scale > 0 and law not in ("gaussian", "laplace"):
            raise UsageError(
                f"the parties make gaussian or laplace noise; got {law}; leave aggregate out for this method"
            )
        m = len(vectors)
        bits = FINEST if scale == 0 else min(FINEST, math.floor(math.log2(_NOISE_STEPS / (scale * m))))
        scaled = np.rint(np.ldexp(vectors, bits))
        steps = math.ldexp(scale * m, bits)
        if float(np.abs(scaled).sum(axis=0).max()) + 64 * steps >= field.P / 2:
            raise UsageError(
                f"a sum must stay below 2^60 grid steps; {m} vectors on a grid of 2^-{bits} exceed that; clip them"
            )
        shares = field.share(field.from_int64(scaled.astype(np.int64)), self.parties, self.threshold, self._prg)
        try:
            for pipe, share in zip(self._pipes, shares, strict=True):
                pipe.send((share, law, steps))
            answers = [pipe.recv() for pipe in self._pipes]
        except (EOFError, OSError):
            raise PeerError("every party must stay to the end; one of them died; run the experiment again") from None
        for answer in answers:
            if isinstance(answer, DpmpcError):
                raise answer
        mean: NDArray[np.float64] = np.ldexp(answers[0].astype(np.float64), -bits) / m
        return mean


def _party(pipe: Connection, party: int, parties: int, threshold: int, run_id: bytes, port: int) -> None:
    try:
        asyncio.run(_serve(pipe, party, parties, threshold, run_id, port))
    except DpmpcError as error:
        pipe.send(error)


async def _serve(pipe: Connection, party: int, parties: int, threshold: int, run_id: bytes, port: int) -> None:
    session = Session(party, parties, threshold, run_id)
    try:
        await session.connect(endpoints_here(parties, port), seconds=30.0)
        number, noise_channel = 0, FIRST_CHANNEL
        while True:
            try:
                shares, law, steps = await asyncio.to_thread(pipe.recv)
            except EOFError:
                return
            total = field.total(shares)
            if steps:
                sampler = make_sampler("discrete", law, steps)
                total = field.add(total, await draw(session, sampler, len(total), first_channel=noise_channel))
                noise_channel += batches(len(total))
            opened = await session.open(total, session.channel(number))
            number += 1
            pipe.send(field.to_int64(opened))
    finally:
        session.abandon()
        await asyncio.sleep(0)
