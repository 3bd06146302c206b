"""A site that is paused, or too busy to read, is not a dead one: the kernel bears with it as long as `stall` says."""

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from runs import HANG

from dpmpc.errors import PeerError
from dpmpc.mpc.transport.addresses import bear_with, bound_socket, endpoint_of
from dpmpc.mpc.transport.dial import TcpLink
from dpmpc.mpc.transport.heartbeat import Heartbeat
from dpmpc.mpc.transport.link import Connection, Hello

linux = pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="the kernel has no such time-out")
LONG = 1 << 25  # bytes: more than the kernel's buffers hold
READER = """
import socket, sys
listening = socket.socket(fileno=int(sys.argv[1])); listening.listen()
callers = [listening.accept()[0] for _ in range(2)]
for caller in callers:
    caller.sendall(b"!")
sys.stdin.readline()
for caller in reversed(callers):
    seen = 0
    try:
        while chunk := caller.recv(1 << 20):
            seen += len(chunk)
    except OSError:
        pass
    print(seen, flush=True)
"""


@dataclass
class Link:
    """A connection as a heartbeat has it."""

    socket: socket.socket
    name: str = "party 1"
    lost: str | None = None
    heard = spoke = awaited = False
    silence = pending = 0.0

    def beat(self) -> None:
        """Says nothing."""

    def abort(self, why: str) -> None:
        self.lost = why


@contextlib.contextmanager
def paused_reader() -> Iterator[tuple[Any, list[socket.socket]]]:
    """A process that has two connections and reads from none until a line comes; it is stopped."""
    with bound_socket() as bound:
        words = [sys.executable, "-c", READER, str(bound.fileno())]
        process = subprocess.Popen(
            words, pass_fds=[bound.fileno()], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        bound.listen()
        there = endpoint_of(bound)
        ours = [socket.create_connection((there.host, there.port), HANG) for _ in range(2)]
    try:
        for each in ours:
            assert each.recv(1) == b"!"
        os.kill(process.pid, signal.SIGSTOP)
        yield process, ours
    finally:
        process.kill()
        process.communicate()
        for each in ours:
            each.close()


@linux
def test_a_stopped_process_that_goes_on_within_the_limit_is_not_lost() -> None:
    """Two connections with a process that is stopped in the middle of a long message: one whose limit is half a second
    ends, and while it does the other one, with the least `stall`, goes on; at last everything arrives."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        with paused_reader() as (process, (short, patient)):
            short.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 500)
            heartbeat = Heartbeat(3.0)
            heartbeat.watch(Link(patient))
            heartbeat.stop()
            for each in (short, patient):
                each.setblocking(False)
            sending = asyncio.ensure_future(loop.sock_sendall(patient, bytes(LONG)))
            with pytest.raises(TimeoutError):  # ETIMEDOUT, from the kernel
                async with asyncio.timeout(HANG):
                    await loop.sock_sendall(short, bytes(LONG))
            assert not sending.done()
            os.kill(process.pid, signal.SIGCONT)
            process.stdin.write("\n")
            process.stdin.flush()
            await sending
            patient.shutdown(socket.SHUT_WR)
            assert int(await asyncio.to_thread(process.stdout.readline)) == LONG

    asyncio.run(main())


@linux
@pytest.mark.parametrize("stall", [3.0, 60.0, 1e5])
def test_the_kernel_gives_up_after_heartbeats_do(stall: float) -> None:
    with socket.socket() as sock:
        bear_with(sock, stall)
        limit = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) / 1000
        names = ("TCP_KEEPIDLE", "TCP_KEEPINTVL", "TCP_KEEPCNT")
        idle, interval, count = (sock.getsockopt(socket.IPPROTO_TCP, getattr(socket, name)) for name in names)
    assert stall < limit <= stall + 10
    assert idle + interval * count >= min(stall, 5 * (1 << 14))


@linux
def test_every_connection_of_parties_bears_with_its_peer() -> None:
    """Both ends: who calls and who listens."""

    async def main() -> list[int]:
        with contextlib.ExitStack() as stack:
            bound = [stack.enter_context(bound_socket()) for _ in range(2)]
            links = [
                TcpLink(i, [endpoint_of(b) for b in bound], bound=bound[i], heartbeat=Heartbeat(45.0)) for i in range(2)
            ]

            def lost(peer: Connection, error: PeerError) -> None:
                raise error

            meet = [link.connect(Hello(i, 2, bytes(32)), b"run", HANG, lost, None) for i, link in enumerate(links)]
            found = await asyncio.gather(*meet)
            limits = [
                peer.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)
                for peers in found
                for peer in peers.values()
            ]
            for link in links:
                link.heartbeat.stop()
                link.abandon()
            await asyncio.sleep(0)
            return limits

    assert asyncio.run(main()) == [50_000, 50_000]
