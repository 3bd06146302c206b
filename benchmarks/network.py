"""Where the processes of a measurement run and how they reach each other: loopback, network namespaces with netem, or
a relay.
"""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from dpmpc.benchmarks.counts import NETWORKS, Link
from dpmpc.benchmarks.processes import Job, run_jobs
from dpmpc.errors import UsageError
from dpmpc.mpc.loopback import free_base_port

Pairs = list[list[Any]]  # (host, port), JSON-able
_SUBNET = "10.213.77"
_BASE_PORT = 11_365


@dataclass(frozen=True)
class Places:
    """The addresses of one measurement. `None` in the place of a party's index means the owners' process."""

    addresses: Pairs  # where parties listen for parties
    ports_for_owners: Pairs  # where parties listen for owners
    seen_by_party: Sequence[Pairs] = ()  # how party i reaches the others, where a relay stands between
    seen_by_owners: Pairs = field(default_factory=list)
    prefixes: Sequence[tuple[str, ...]] = ()  # of party i; the last is the owners'
    background: tuple[Job, ...] = ()

    def party_sees(self, index: int) -> Pairs:
        """The parties' addresses as party `index` uses them; its own entry is where it listens."""
        return self.seen_by_party[index] if self.seen_by_party else self.addresses

    def owners_see(self) -> Pairs:
        """The parties' addresses as the owners use them."""
        return self.seen_by_owners or self.ports_for_owners

    def owner_ports(self) -> Pairs:
        """Where the parties listen for owners."""
        return self.ports_for_owners

    def prefix(self, index: int | None) -> tuple[str, ...]:
        """A command that starts a process in its place."""
        return self.prefixes[-1 if index is None else index] if self.prefixes else ()

    def run(self, jobs: Sequence[Job]) -> list[Any]:
        """As `run_jobs`, with the relay beside them if there is one."""
        return run_jobs(jobs, background=self.background)


@dataclass(frozen=True)
class Network:
    """Loopback (no link), or a link and how it is made: `netem` or `relay`."""

    name: str
    link: Link | None = None
    how: str = "loopback"

    @contextlib.contextmanager
    def places(self, parties: int) -> Iterator[Places]:
        """Places for n parties and the owners; taken down on leaving."""
        if self.link is None:
            base = free_base_port(2 * parties)
            yield Places(_local(base, parties), _local(base + parties, parties))
        elif self.how == "relay":
            yield _relayed(parties, self.link)
        else:
            with namespaces(parties, self.link) as places:
                yield places


def named(name: str) -> Network:
    """`loopback`, `lan` or `wan`; the latter two by netem where the machine allows it, else by a relay.

    Errors: UsageError for another name.
    """
    if name == "loopback":
        return Network(name)
    if name not in NETWORKS:
        raise UsageError(
            f"a network is loopback, {', '.join(NETWORKS)}; got {name!r}; choose one, or use --rtt and --bandwidth"
        )
    return Network(name, NETWORKS[name], "netem" if netem_allowed() else "relay")


def _local(base: int, count: int) -> Pairs:
    return [["127.0.0.1", base + i] for i in range(count)]


def _relayed(parties: int, link: Link) -> Places:
    """Loopback, with a port of the relay for every connection: a party calls those of higher index, the owners call
    every party.
    """
    pairs = [(i, j) for i in range(parties) for j in range(i + 1, parties)]
    base = free_base_port(3 * parties + len(pairs))
    true, for_owners = _local(base, parties), _local(base + parties, parties)
    routes: list[list[Any]] = []
    seen = [[list(pair) for pair in true] for _ in range(parties)]
    for k, (i, j) in enumerate(pairs):
        port = base + 3 * parties + k
        routes.append([port, *true[j], i, j])
        seen[i][j] = ["127.0.0.1", port]
    owners = _local(base + 2 * parties, parties)
    routes += [[owners[j][1], *for_owners[j], -1, j] for j in range(parties)]
    arguments = {"routes": routes, "delay": link.rtt / 2, "bandwidth": link.bandwidth}
    return Places(true, for_owners, seen, owners, background=(Job("relay", arguments),))


# -- network namespaces ----------------------------------------------------------------------------------------------
def _run(*command: str) -> bool:
    return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode == 0


def netem_allowed() -> bool:
    """Whether this process may make network namespaces and this kernel has netem: tried in a namespace that is
    removed again.
    """
    if not (shutil.which("ip") and shutil.which("tc")):
        return False
    name = f"dpmpc-{os.getpid()}-try"
    if not _run("ip", "netns", "add", name):
        return False
    try:
        inside = ("ip", "netns", "exec", name)
        return _run(*inside, "ip", "link", "set", "lo", "up") and _run(
            *inside, "tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms", "rate", "1gbit"
        )
    finally:
        _run("ip", "netns", "del", name)


@contextlib.contextmanager
def namespaces(parties: int, link: Link | None) -> Iterator[Places]:
    """One namespace for each party and one for the owners, on a bridge in a namespace of its own; all removed on
    leaving.

    With a link, packets leave each namespace half a round trip late, and a party's connection carries the link's rate
    each way. Without one nothing is delayed: for tests on kernels that have no netem. Errors: UsageError when the
    machine refuses a step.
    """
    tag = f"dpmpc-{os.getpid()}"
    names = [f"{tag}-{i}" for i in range(parties)] + [f"{tag}-o"]
    bridge = f"{tag}-b"
    made: list[str] = []

    def do(*command: str) -> None:
        if not _run(*command):
            raise UsageError(
                f"network namespaces need the rights of root; `{' '.join(command)}` failed; measure without them"
            )

    try:
        for name in (bridge, *names):
            do("ip", "netns", "add", name)
            made.append(name)
            do("ip", "-n", name, "link", "set", "lo", "up")
        do("ip", "-n", bridge, "link", "add", "br0", "type", "bridge")
        do("ip", "-n", bridge, "link", "set", "br0", "up")
        for k, name in enumerate(names):
            do("ip", "-n", bridge, "link", "add", f"port{k}", "type", "veth", "peer", "name", "eth0", "netns", name)
            do("ip", "-n", bridge, "link", "set", f"port{k}", "master", "br0", "up")
            do("ip", "-n", name, "address", "add", f"{_SUBNET}.{k + 1}/24", "dev", "eth0")
            do("ip", "-n", name, "link", "set", "eth0", "up")
            if link is not None:
                rate = ("rate", f"{8 * link.bandwidth:.0f}bit") if k < parties else ()  # owners are many machines
                do(
                    "tc",
                    "-n",
                    name,
                    "qdisc",
                    "add",
                    "dev",
                    "eth0",
                    "root",
                    "netem",
                    "delay",
                    f"{5e5 * link.rtt:.0f}us",
                    *rate,
                    "limit",
                    "100000",
                )
                if rate:
                    do("tc", "-n", bridge, "qdisc", "add", "dev", f"port{k}", "root", "netem", *rate, "limit", "100000")
        addresses = [[f"{_SUBNET}.{k + 1}", _BASE_PORT] for k in range(parties)]
        for_owners = [[host, _BASE_PORT + 1] for host, _ in addresses]
        yield Places(addresses, for_owners, prefixes=[("ip", "netns", "exec", name) for name in names])
    finally:
        for name in made:
            _run("ip", "netns", "del", name)
