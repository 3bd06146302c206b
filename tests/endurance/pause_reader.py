"""Stops a party for some seconds while a long message is on its way to it, and sees the run end with the right sum.

    python -m tests.endurance.pause_reader --seconds 25 --stall 60

Vectors of the caller's, of millions of coordinates, through the Python API: parties and owners in processes of their
own, over loopback. A stopped process keeps its connections and reads nothing, so what is sent to it stays in its
peer's send queue, which the kernel counts in bytes (`/proc/net/tcp`): it must hold some at the stop, at each second of
the pause and at its end. Kernels that are left alone give such a peer up after 12 s or so; here they bear with it for
as long as `stall` says. Every owner must get the clear arithmetic's sum plus noise within its bound. Needs Linux.

Prints a JSON summary; ends with 1 where something does not hold.
"""

import argparse
import asyncio
import contextlib
import json
import os
import re
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import numpy as np

from dpmpc.aggregation.owner.aggregator import Aggregator
from dpmpc.aggregation.owner.encoding import encode
from dpmpc.aggregation.party.job import PartyJob
from dpmpc.aggregation.party.party import run_party
from dpmpc.aggregation.plan.grid import Floats
from dpmpc.aggregation.plan.here import Here
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.mpc.transport.addresses import Endpoint, bound_socket, endpoint_of
from tests.endurance import forked

PARTIES = {"ot": 2, "sharing": 3}  # by backend
SENDERS = ("party", "owner")
OWNERS = 3
LONG = 1 << 16  # bytes on their way, of which a message is a long one
WAIT = HANG = 600.0  # seconds: a busy machine takes its time


def vector_of(owner: int, dimension: int) -> Floats:
    """(1, d): the same in the owner's process and where the sum is checked."""
    return np.random.default_rng(owner).normal(size=(1, dimension))


def party(
    plan: str, index: int, bound: Sequence[socket.socket], addresses: Sequence[Endpoint],
    owner_addresses: Sequence[Endpoint], out: Path, stall: float,
) -> None:  # fmt: skip
    """A party's process."""
    numbers = bound[0].detach(), bound[1].detach()
    own = Here(out=out, wait=WAIT, stall=stall)
    job = PartyJob(Plan.from_text(plan), index, addresses, owner_addresses, own, sockets=numbers)

    def log(text: str) -> None:
        print(f"party {index}: {text}", file=sys.stderr, flush=True)

    asyncio.run(run_party(job, log, lambda event, **fields: None))


def owner(plan: str, index: int, owner_addresses: Sequence[Endpoint], out: Path, stall: float) -> None:
    """An owner's process; the sum that it got is kept."""
    planned = Plan.from_text(plan)
    owners, own = (index, index + 1), Here(wait=WAIT, stall=stall)
    with Aggregator.of_plan(planned, own, addresses=owner_addresses, owners=owners) as aggregator:
        release = aggregator.open(vector_of(index, planned.dimension))
        np.save(out / f"owner{index}.npy", release.total)
        aggregator.finish()


def queued(senders: Mapping[str, int], reader: int) -> dict[str, int]:
    """The bytes that each of these processes has sent to the process `reader` and that its machine has not taken, where
    there are any."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    theirs = _sockets(reader)
    ends = {row[1] for row in rows if row[9] in theirs}
    found = {}
    for name, pid in senders.items():
        own = _sockets(pid)
        found[name] = sum(int(row[4].partition(":")[0], 16) for row in rows if row[9] in own and row[2] in ends)
    return {name: size for name, size in found.items() if size}


def _sockets(pid: int) -> set[str]:
    """The inodes of the sockets of a process."""
    found = set()
    with contextlib.suppress(OSError):  # it has ended
        for each in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                found.update(re.findall(r"socket:\[(\d+)\]", os.readlink(each)))
    return found


def _long_ones(sizes: Mapping[str, int]) -> dict[str, int]:
    return {name: size for name, size in sizes.items() if size >= LONG}


def _stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def paused(running: Mapping[str, BaseProcess], sender: str, seconds: float) -> dict[str, Any]:
    """Stops a party to which a process of that kind has bytes on their way, for so long; who, and the bytes. Errors:
    AssertionError where there is no such moment."""
    pids = {name: int(each.pid or 0) for name, each in running.items()}
    parties = [name for name in pids if name.startswith("party")]
    while all(each.exitcode is None for each in running.values()):
        for reader in parties:
            senders = {name: pid for name, pid in pids.items() if name.startswith(sender) and name != reader}
            if not _long_ones(queued(senders, pids[reader])):
                continue
            os.kill(pids[reader], signal.SIGSTOP)
            try:
                while not _stopped(pids[reader]):
                    time.sleep(0.001)
                at_stop = _long_ones(queued(senders, pids[reader]))
                if at_stop:
                    return {"reader": reader, **_held(senders, pids[reader], at_stop, seconds)}
            finally:
                os.kill(pids[reader], signal.SIGCONT)
    raise AssertionError(f"no party had bytes of another {sender} on their way when it was stopped")


def _held(senders: Mapping[str, int], reader: int, at_stop: Mapping[str, int], seconds: float) -> dict[str, Any]:
    begin, least = time.monotonic(), dict(at_stop)
    while (left := seconds - (time.monotonic() - begin)) > 0:
        time.sleep(min(1.0, left))
        at_end = queued(senders, reader)
        least = {name: min(size, at_end.get(name, 0)) for name, size in least.items()}
    return {"paused_s": round(time.monotonic() - begin, 1), "queued_at_stop": dict(at_stop), "least_queued": least,
            "queued_at_end": at_end}  # fmt: skip


def played(backend: str, sender: str, dimension: int, seconds: float, stall: float, out: Path) -> dict[str, Any]:
    """One run, and what came of it."""
    n = PARTIES[backend]
    plan = Plan.create(
        owners=OWNERS, dimension=dimension, clip=1.0, epsilon=1.0, delta=1e-5, backend=backend, parties=n, pool=False
    )  # fmt: skip
    context, text = forked.server(), plan.to_text()
    bound = [bound_socket() for _ in range(2 * n)]
    here = [endpoint_of(each) for each in bound]
    running: dict[str, BaseProcess] = {}
    for i in range(n):
        (out / str(i)).mkdir()
        arguments = (text, i, (bound[i], bound[n + i]), here[:n], here[n:], out / str(i), stall)
        running[f"party {i}"] = context.Process(target=party, args=arguments)
    for j in range(OWNERS):
        running[f"owner {j}"] = context.Process(target=owner, args=(text, j, here[n:], out, stall))
    try:
        for each in running.values():
            each.start()
        for one in bound:
            one.close()  # the parties have their own
        found = {"backend": backend, "sender": sender, **paused(running, sender, seconds)}
        end = time.monotonic() + HANG
        for each in running.values():
            each.join(max(0.0, end - time.monotonic()))
    finally:
        for each in running.values():
            if each.exitcode is None:
                each.kill()
            each.join()
    codes = {name: each.exitcode for name, each in running.items()}
    found |= {"exit_codes": codes, "well": not any(codes.values()) and all(found["least_queued"].values())}
    return found | (_sums(plan, out) if found["well"] else {})


def _sums(plan: Plan, out: Path) -> dict[str, Any]:
    """What the owners got, against the clear arithmetic."""
    clear = sum(encode(plan, vector_of(j, plan.dimension), j)[0] for j in range(OWNERS))
    totals = [np.load(out / f"owner{j}.npy") for j in range(OWNERS)]
    noise, sampler = totals[0] - clear, plan.derived.sampler
    farthest = int(np.abs(noise).max())
    scale = float(plan.derived.scale_steps)
    spread = float(np.sqrt(np.mean(noise.astype(float) ** 2))) / scale
    same = all(np.array_equal(total, totals[0]) for total in totals)
    return {"owners_agree": same, "farthest_noise_steps": farthest, "largest_noise_steps": sampler.largest,
            "noise_over_scale": round(spread, 4),
            "well": same and 0 < farthest <= sampler.largest and 0.9 < spread < 1.1}  # fmt: skip


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=25.0)
    parser.add_argument("--stall", type=float, default=60.0)
    parser.add_argument("--dimension", type=int, default=2_000_000)
    parser.add_argument("--backend", choices=PARTIES, nargs="*", default=list(PARTIES))
    parser.add_argument("--sender", choices=SENDERS, nargs="*", default=list(SENDERS))
    asked = parser.parse_args()
    cases: list[dict[str, Any]] = []
    for backend in asked.backend:
        for sender in asked.sender:
            with tempfile.TemporaryDirectory() as folder:
                try:
                    case = played(backend, sender, asked.dimension, asked.seconds, asked.stall, Path(folder))
                except AssertionError as error:
                    case = {"backend": backend, "sender": sender, "well": False, "why": str(error)}
            cases.append(case)
            print(f"{backend}, {sender}: {'well' if case['well'] else 'not well'}", file=sys.stderr, flush=True)
    well = all(case["well"] for case in cases)
    print(json.dumps({"dimension": asked.dimension, "owners": OWNERS, "stall": asked.stall, "cases": cases,
                      "well": well}, indent=1))  # fmt: skip
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
