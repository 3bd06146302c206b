"""Strangers against a run that waits for its processes: frames and connections of all kinds, on every port, before and
after admission, with TLS and without.

    python -m tests.endurance.fuzz --frames 1000000 --connections 10000

Two of four parties wait, each a process of its own. The fuzzer calls all their ports: with bytes that are no frames,
frames that are cut, sizes up to 2^64, greetings of other runs, silence; and, as an owner or a party that greets
rightly, with frames that nobody asked for. Then the missing processes come, while the fuzzer goes on, and the run must
finish. Prints what was sent, by port, and how much memory the parties took for it. AssertionError where a party died,
or took too much.

One thing that an admitted process may do is left out: to say that it fails, which ends the run by design.
"""

import argparse
import asyncio
import contextlib
import json
import os
import random
import ssl
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dpmpc.aggregation.plan.asked import AGREED
from dpmpc.aggregation.plan.identities import greeting
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.wire import frames
from dpmpc.mpc.transport.addresses import Endpoint, owner_endpoints
from dpmpc.mpc.transport.channels import ALIVE, HELLO, REASON, block_label
from dpmpc.mpc.transport.credentials import make_credentials
from dpmpc.mpc.transport.dial import GREETING
from dpmpc.mpc.transport.tls import Tls
from dpmpc.mpc.transport.wire import HEADER, MAGIC, VERSION, run_tag

PARTIES, OWNERS, RELEASES, RECORDS = 4, 3, 20, 40
_WAIT = 86_400  # seconds
MOST_MEMORY = 50 << 20  # bytes a party may take for all of it
_PATIENCE = 0.5  # seconds until a connection that is not dropped is given up
_TOGETHER = 16  # connections at a time
_FRUITLESS = 12  # times that a port may take none of those that call it
_ROUND = 64  # connections, after which it is looked how many were taken
_SIZES = (0, 1, 23, 24, 36, 40, 44, 255, 4096, 4097, 1 << 20, 1 << 32, 1 << 63, (1 << 64) - 1)
_LONGEST = 5000  # bytes of a payload that is really sent


@dataclass
class Target:
    """One port, and how to be admitted there: the greeting of a process that has not come, None where nobody calls."""

    what: str
    endpoint: Endpoint
    name: str  # in the certificate that the port shows
    hello: bytes
    as_whom: str  # whose certificate the fuzzer shows when it greets rightly
    connections: int = 0
    frames: int = 0
    admitted: int = 0
    refused: Counter[str] = field(default_factory=Counter)  # calls that did not come through, and how


@dataclass
class Fuzzer:
    """Sends nonsense; everything is drawn from `seed`."""

    plan: Plan
    targets: list[Target]
    keys: Path | None
    seed: int
    rng: random.Random = field(init=False)
    may_be_admitted: bool = True
    contexts: dict[str, ssl.SSLContext] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        self.tag = run_tag(self.plan.session_id(AGREED))

    def context(self, name: str) -> ssl.SSLContext | None:
        """TLS as this process; None without."""
        if self.keys is None:
            return None
        if name not in self.contexts:
            self.contexts[name] = Tls.load(self.keys, name).client
        return self.contexts[name]

    def frame(self, admitted: bool) -> bytes:
        """One frame, wrong in some way, or only unasked for."""
        rng = self.rng
        kind = rng.randrange(8)
        if kind == 0 and not admitted:
            return rng.randbytes(rng.randrange(1, 200))
        size = rng.choice(_SIZES) if kind < 3 else rng.randrange(64)
        label = rng.choice((HELLO, ALIVE, -2, -3, 0, 1, block_label(0, 0), block_label(1, -1), rng.getrandbits(62)))
        if not admitted and kind == 3:
            label = REASON
        magic, version, tag = MAGIC, VERSION, self.tag
        if kind == 4:
            magic, version, tag = rng.choice(((0, VERSION, tag), (MAGIC, 9, tag), (MAGIC, VERSION, tag ^ 1)))
        payload = rng.randbytes(min(size, _LONGEST))
        if kind == 5:
            payload = payload[: len(payload) // 2]
        return HEADER.pack(magic, version, tag, label, size) + payload

    def burst(self, count: int, admitted: bool) -> list[bytes]:
        """What one connection sends: mostly frames that are right but unasked for, where it was admitted."""
        if admitted and self.rng.random() < 0.5:
            labels = [self.rng.getrandbits(62) for _ in range(count)]
            return [HEADER.pack(MAGIC, VERSION, self.tag, label, 0) for label in labels]
        return [self.frame(admitted) for _ in range(count)]

    async def connection(self, target: Target, count: int) -> None:
        """One connection and so many frames, or as many as are taken."""
        rng = self.rng
        rightly = self.may_be_admitted and rng.random() < 0.3
        who = target.as_whom if rightly else rng.choice(("owner0", "party1", target.as_whom))
        plain = self.keys is None or rng.random() < 0.2
        try:
            async with asyncio.timeout(20):
                reader, writer = await asyncio.open_connection(
                    target.endpoint.host,
                    target.endpoint.port,
                    ssl=None if plain else self.context(who),
                    server_hostname=None if plain else target.name,
                )
        except (OSError, TimeoutError) as error:
            target.refused[type(error).__name__] += 1
            return
        target.connections += 1
        try:
            if rightly:
                writer.write(HEADER.pack(MAGIC, VERSION, self.tag, HELLO, len(target.hello)) + target.hello)
                async with asyncio.timeout(20):
                    header = await reader.readexactly(HEADER.size)
                rightly = HEADER.unpack(header)[3] == HELLO
                target.admitted += rightly
            elif rng.random() < 0.1:  # hangs up, or stays silent for a while
                await asyncio.sleep(rng.random())
                return
            burst = self.burst(count, rightly)
            writer.write(b"".join(burst))
            target.frames += len(burst)
            async with asyncio.timeout(_PATIENCE):
                await writer.drain()
                while await reader.read(1 << 16):
                    pass
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.transport.abort()

    async def run(self, frames_each: int, connections_each: int) -> None:
        """So many frames in so many connections against each port."""
        each = -(-frames_each // connections_each)

        async def worker(target: Target, share: int) -> None:
            for _ in range(share):
                await self.connection(target, each)

        async def at(target: Target) -> None:
            fruitless, together = 0, _TOGETHER
            while target.frames < frames_each or target.connections < connections_each:
                left = max(connections_each - target.connections, (frames_each - target.frames) // each, 1)
                before = target.connections
                share = -(-min(left, _ROUND) // together)
                await asyncio.gather(*(worker(target, share) for _ in range(min(together, left))))
                # On a busy machine many handshakes at a time end too late, each; fewer do not.
                fruitless = 0 if target.connections > before else fruitless + 1
                together = max(1, together // 2) if fruitless else min(2 * together, _TOGETHER)
                assert fruitless < _FRUITLESS, f"{target.what} takes no more connections: {target.refused}"

        await asyncio.gather(*(at(target) for target in self.targets))


def memory(pid: int) -> tuple[int, int]:
    """(bytes in memory now, most so far) of a process."""
    status = Path(f"/proc/{pid}/status").read_text().splitlines()
    values = {line.split(":")[0]: line.split()[1] for line in status if line.startswith("Vm")}
    return int(values["VmRSS"]) << 10, int(values["VmHWM"]) << 10


def command(name: str, out: Path, plan: Path, keys: Path | None, addresses: Sequence[Endpoint]) -> list[str]:
    """The command of one process of the run."""
    where = [part for endpoint in addresses for part in ("-P", str(endpoint))]
    records = ["--data", "synthetic", "--max-rows", str(RECORDS * OWNERS), "--dimension", "4", "--no-evaluate"]
    return [
        *(sys.executable, "-m", "dpmpc.cli.main", "train", "--plan", str(plan), "-I", name, *where),
        *("--wait", str(_WAIT)),  # for as long as strangers call: with TLS and on a busy machine that takes its time
        *(["--tls", str(keys)] if keys else []),
        *([] if name.isdigit() else [*records, "--owners", str(OWNERS), "--test-fraction", "0", "--no-intercept"]),
        *("--out", str(out / name)),
    ]


@contextlib.contextmanager
def started(commands: dict[str, list[str]], out: Path) -> "Iterator[dict[str, subprocess.Popen[bytes]]]":
    """These processes, with what they print in files; killed on leaving."""
    processes: dict[str, subprocess.Popen[bytes]] = {}
    with contextlib.ExitStack() as stack:
        for name, arguments in commands.items():
            file = stack.enter_context((out / f"{name}.txt").open("wb"))
            processes[name] = stack.enter_context(subprocess.Popen(arguments, stdout=file, stderr=file))
            stack.callback(processes[name].kill)
        yield processes


def fuzz(
    folder: Path, *, tls: bool, frames_each: int, connections_each: int, seed: int, host: str
) -> dict[str, object]:
    """The figures of one run with strangers at its listeners. AssertionError where a party dies or takes too much."""
    from dpmpc.consortium.placement import Placement
    from dpmpc.consortium.plan_alone import plan_only
    from dpmpc.planning.request import Request

    request = Request(
        data="synthetic",
        max_rows=RECORDS * OWNERS,
        dimension=4,
        owners=OWNERS,
        iterations=RELEASES,
        delta=1e-4,
        evaluate=False,
        parties=PARTIES,
        test_fraction=0.0,
    )
    plan_only(request, Placement(out=folder / "plan"))
    plan_file = folder / "plan" / "plan.json"
    plan = Plan.read(plan_file)
    keys = folder / "keys" if tls else None
    if keys is not None:
        make_credentials(
            keys, [*(f"party{i}" for i in range(PARTIES)), "owners", *(f"owner{j}" for j in range(OWNERS))]
        )
    addresses = [Endpoint(host, 11_365 + i) for i in range(PARTIES)]
    digest = greeting(plan, AGREED)
    targets = [
        Target(f"party {i}, for parties", addresses[i], f"party{i}", GREETING.pack(0, PARTIES, digest), "party0")
        for i in (1, 2)
    ]
    targets += [
        Target(f"party {i}, for owners", endpoint, f"party{i}", frames.HELLO.pack(0, OWNERS, digest), "owners")
        for i, endpoint in enumerate(owner_endpoints(addresses))
        if i in (1, 2)
    ]
    waiting = {str(i): command(str(i), folder, plan_file, keys, addresses) for i in (1, 2)}
    late = {name: command(name, folder, plan_file, keys, addresses) for name in ("0", "3", "owners")}
    begin = time.perf_counter()
    with started(waiting, folder) as first:
        for target in targets:
            _listening(target.endpoint)
        before = {name: memory(process.pid)[0] for name, process in first.items()}
        fuzzer = Fuzzer(plan, targets, keys, seed)
        asyncio.run(fuzzer.run(frames_each, connections_each))
        after = {name: memory(process.pid) for name, process in first.items()}
        dead = [name for name, process in first.items() if process.poll() is not None]
        assert not dead, f"party {dead} died: {(folder / f'{dead[0]}.txt').read_text()[-2000:]}"
        counted = [(t.what, t.connections, t.frames, t.admitted) for t in targets]
        fuzzer.may_be_admitted = False  # it would take the place of the process that comes now
        with started(late, folder) as second:  # the fuzzer goes on while the run begins
            while any(process.poll() is None for process in second.values()):
                asyncio.run(_beside(fuzzer))
        codes = {name: process.wait() for name, process in (*first.items(), *second.items())}
    assert not any(codes.values()), f"exit codes {codes}: {(folder / 'owners.txt').read_text()[-2000:]}"
    grown = {name: most - before[name] for name, (_, most) in after.items()}
    assert max(grown.values()) <= MOST_MEMORY, f"memory grew by {grown}"
    return {
        "tls": tls,
        "ports": {w: {"connections": c, "frames": f, "admitted": a} for w, c, f, a in counted},
        "memory_before": before,
        "memory_after": {name: now for name, (now, _) in after.items()},
        "memory_grown_at_most": max(grown.values()),
        "crashes": 0,
        "run": "finished",
        "seconds": round(time.perf_counter() - begin, 1),
    }


async def _beside(fuzzer: Fuzzer) -> None:
    await asyncio.gather(*(fuzzer.connection(target, 10) for target in fuzzer.targets))
    await asyncio.sleep(0.01)


def _listening(endpoint: Endpoint) -> None:
    """Returns when somebody listens there; waits for a quarter of an hour, on a machine with much other work."""
    import socket

    for _ in range(45_000):
        with socket.socket() as caller:
            if caller.connect_ex((endpoint.host, endpoint.port)) == 0:
                return
        time.sleep(0.02)
    raise AssertionError(f"nobody listens on {endpoint}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--frames", type=int, default=1_000_000, help="against each port")
    parser.add_argument("--connections", type=int, default=10_000, help="against each port")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tls", choices=["with", "without", "both"], default="both")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    figures = []
    for k, tls in enumerate((False, True)):
        if arguments.tls == ("without" if tls else "with"):
            continue
        host = f"127.{20 + k}.{1 + os.getpid() // 250 % 250}.{1 + os.getpid() % 250}"
        with tempfile.TemporaryDirectory() as folder:
            found = fuzz(
                Path(folder),
                tls=tls,
                frames_each=arguments.frames,
                connections_each=arguments.connections,
                seed=arguments.seed,
                host=host,
            )
        print(json.dumps(found, indent=2), flush=True)
        figures.append(found)
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
