"""Where the processes of a measurement run and how they reach each other: loopback, network namespaces with netem, or
a relay.
"""

import contextlib
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dpmpc.aggregation.owner.imports import PRELOAD
from dpmpc.benchmarks.counts import NETWORKS, NetworkLink
from dpmpc.errors import UsageError
from dpmpc.mpc.transport.addresses import BASE_PORT, bound_socket, endpoint_of
from dpmpc.processes.supervisor import Job, run_jobs

Addresses = Sequence[Sequence[Any]]  # (host, port), JSON-able
_SUBNET = "10.213.77"
OWNERS = -1  # in the place of a party's index: the owners' process


@dataclass(frozen=True)
class ProcessPlaces:
    """Where the processes of one measurement are, and how they reach each other."""

    addresses: Addresses  # where parties listen for parties
    owner_addresses: Addresses  # where parties listen for owners
    sockets: Sequence[tuple[socket.socket, socket.socket]] = ()  # bound there, by party; none in namespaces
    seen_by_party: Sequence[Addresses] = ()  # how party i reaches the others, where a relay stands between
    seen_by_owners: Addresses = ()
    prefixes: Sequence[tuple[str, ...]] = ()  # of party i; the last is the owners'
    background: tuple[Job, ...] = ()

    def run(self, module: str, arguments: Mapping[str, Any]) -> tuple[Any, list[Any]]:
        """What the roles `owners` and `party` of a module returned, the latter by party. Each gets the arguments, and
        where the parties listen, as it reaches them; a party also its index and its sockets.
        """
        jobs = [self._owners(f"{module}:owners", arguments)]
        jobs += [self._party(i, f"{module}:party", arguments) for i in range(len(self.addresses))]
        owners, *parties = run_jobs(jobs, background=self.background, preload=PRELOAD)
        return owners, parties

    def _owners(self, role: str, arguments: Mapping[str, Any]) -> Job:
        where = {"owner_addresses": self.seen_by_owners or self.owner_addresses}
        return Job("the owners", role, {**arguments, **where}, prefix=self.prefixes[-1] if self.prefixes else ())

    def _party(self, index: int, role: str, arguments: Mapping[str, Any]) -> Job:
        sockets = self.sockets[index] if self.sockets else ()
        where = {
            "index": index,
            "addresses": self.seen_by_party[index] if self.seen_by_party else self.addresses,
            "owner_addresses": self.owner_addresses,
            "sockets": [s.fileno() for s in sockets] or None,
        }
        prefix = self.prefixes[index] if self.prefixes else ()
        return Job(f"party {index}", role, {**arguments, **where}, sockets, prefix)


@dataclass(frozen=True)
class Network:
    """Loopback (no link), or a link and how it is made: `netem` or `relay`."""

    name: str
    link: NetworkLink | None = None
    how: str = "loopback"

    @contextlib.contextmanager
    def places(self, parties: int) -> Iterator[ProcessPlaces]:
        """Places for n parties and the owners; taken down on leaving."""
        if self.how == "netem":
            with namespaces(parties, self.link) as places:
                yield places
            return
        with contextlib.ExitStack() as stack:
            sockets = [(_bound(stack), _bound(stack)) for _ in range(parties)]
            places = ProcessPlaces(_addresses([s for s, _ in sockets]), _addresses([s for _, s in sockets]), sockets)
            yield places if self.link is None else _relayed(places, self.link, stack)


def named(name: str) -> Network:
    """`loopback`, `lan` or `wan`; the latter two by netem where the machine allows it, else by a relay.

    Errors: UsageError for another name.
    """
    if name == "loopback":
        return Network(name)
    if name not in NETWORKS:
        raise UsageError(
            f"a network is loopback, {', '.join(NETWORKS)}; got {name!r}; choose one, or use --rtt and --bandwidth",
            code="choice",
        )
    return Network(name, NETWORKS[name], "netem" if netem_allowed() else "relay")


def _bound(stack: contextlib.ExitStack) -> socket.socket:
    """A socket on a free port of this machine, closed with the stack."""
    return stack.enter_context(contextlib.closing(bound_socket()))


def _addresses(sockets: Sequence[socket.socket]) -> Addresses:
    return [[at.host, at.port] for at in map(endpoint_of, sockets)]


def _relayed(places: ProcessPlaces, link: NetworkLink, stack: contextlib.ExitStack) -> ProcessPlaces:
    """The places, with a socket of the relay for every connection: a party calls those of higher index, the owners call
    every party.
    """
    parties = len(places.addresses)
    pairs = [(i, j) for i in range(parties) for j in range(i + 1, parties)]
    calls = [(i, j, places.addresses[j]) for i, j in pairs]
    calls += [(OWNERS, j, places.owner_addresses[j]) for j in range(parties)]
    sockets = [_bound(stack) for _ in calls]
    seen = {(i, j): here for (i, j, _), here in zip(calls, _addresses(sockets), strict=True)}
    routes = [[s.fileno(), *there, i, j] for s, (i, j, there) in zip(sockets, calls, strict=True)]
    arguments = {"routes": routes, "delay": link.rtt / 2, "bandwidth": link.bandwidth}
    return replace(
        places,
        seen_by_party=[[seen.get((i, j), places.addresses[j]) for j in range(parties)] for i in range(parties)],
        seen_by_owners=[seen[OWNERS, j] for j in range(parties)],
        background=(Job("the relay", "dpmpc.benchmarks.relay:relay", arguments, sockets),),
    )


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
def namespaces(parties: int, link: NetworkLink | None) -> Iterator[ProcessPlaces]:
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
        addresses = [[f"{_SUBNET}.{k + 1}", BASE_PORT] for k in range(parties)]  # nobody else is in there
        for_owners = [[host, BASE_PORT + 1] for host, _ in addresses]
        yield ProcessPlaces(addresses, for_owners, prefixes=[("ip", "netns", "exec", name) for name in names])
    finally:
        for name in made:
            _run("ip", "netns", "del", name)
