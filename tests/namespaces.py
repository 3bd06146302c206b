"""A network of its own for every site, joined by a bridge: run inside `unshare -Urn`, where nobody else's network is.

Site 0 is called at its own address, site 1 through a proxy that passes TCP on (its public address is the hub's), site 2
at an IPv6 address. `python namespaces.py KITS` starts the three and prints, as JSON, their exit codes, what they wrote,
and the bytes that went through the proxy.
"""

import json
import socket
import subprocess
import sys
import threading
from pathlib import Path

HUB, HUB6 = "10.77.0.1", "fd77::1"
CALLED = ("10.77.0.10:21365", f"{HUB}:21366", "[fd77::12]:21367")  # in the consortium
INNER = "10.77.0.11:31365"  # where site 1 listens; for owners on + 3
_WAITS = 'echo; read go; exec "$@"'


def site_address(i: int) -> tuple[str, str]:
    """(IPv4, IPv6) of a site's own machine."""
    return f"10.77.0.1{i}", f"fd77::1{i}"


def do(*words: str) -> None:
    subprocess.run(words, check=True)


class Proxy:
    """Passes TCP on, from a port of the hub to an address inside."""

    def __init__(self, port: int, inner: tuple[str, int]) -> None:
        self.passed, self._inner = 0, inner
        self._listening = socket.create_server((HUB, port))
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            caller, _ = self._listening.accept()
            try:
                called = socket.create_connection(self._inner)
            except OSError:  # not there yet: the caller calls again
                caller.close()
                continue
            for a, b in ((caller, called), (called, caller)):
                threading.Thread(target=self._pass, args=(a, b), daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket) -> None:
        try:
            while data := source.recv(1 << 16):
                self.passed += len(data)
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            target.close()


def start(i: int, words: list[str]) -> "subprocess.Popen[str]":
    """A command in a network of its own, which is joined to the hub before it begins."""
    process = subprocess.Popen(
        ["unshare", "-n", "sh", "-c", _WAITS, "sh", *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdin is not None and process.stdout is not None
    process.stdout.readline()
    inside = ("nsenter", "-t", str(process.pid), "-n", "ip")
    do("ip", "link", "add", f"site{i}", "type", "veth", "peer", "name", "eth0", "netns", str(process.pid))
    do("ip", "link", "set", f"site{i}", "master", "hub", "up")
    four, six = site_address(i)
    do(*inside, "link", "set", "lo", "up")
    do(*inside, "addr", "add", f"{four}/24", "dev", "eth0")
    do(*inside, "-6", "addr", "add", f"{six}/64", "dev", "eth0", "nodad")
    do(*inside, "link", "set", "eth0", "up")
    process.stdin.write("go\n")
    process.stdin.flush()
    return process


def main(kits: Path) -> None:
    do("ip", "link", "set", "lo", "up")
    do("ip", "link", "add", "hub", "type", "bridge")
    do("ip", "addr", "add", f"{HUB}/24", "dev", "hub")
    do("ip", "-6", "addr", "add", f"{HUB6}/64", "dev", "hub", "nodad")
    do("ip", "link", "set", "hub", "up")
    host, port = INNER.split(":")
    proxies = [Proxy(21366, (host, int(port))), Proxy(21369, (host, int(port) + 3))]
    processes = []
    for i in range(3):
        words = [sys.executable, "-m", "dpmpc.cli.main", "join", f"{kits}/site{i}", "--csv", f"{kits.parent}/{i}.csv"]
        words += ["--account", f"{kits.parent}/account{i}"]  # each site has its own
        processes.append(start(i, words))
    output = [process.communicate()[0] for process in processes]
    codes = [process.returncode for process in processes]
    print(json.dumps({"codes": codes, "output": output, "proxied": [proxy.passed for proxy in proxies]}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
