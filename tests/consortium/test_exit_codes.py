"""What a site's command ends with, and says, where the others or its own machine are not as they should be."""

import contextlib
import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from dpmpc.consortium.kit import write_kits
from dpmpc.consortium.toml import read_consortium
from tests.runs import dpmpc, own_addresses

TOML = """
[run]
data_id = "codes"
tls = false
{sites}
[records]
target = "ill"
positive = ["yes"]
preprocessing = "records"
[records.bounds]
age = [0, 100]
[learning]
iterations = 3
step = 0.1
[privacy]
epsilon = 1
delta = 1e-4
"""
WAIT = ("--wait", "3")


def kits(folder: Path, first: str | None = None) -> tuple[Path, list[str]]:
    """The folder of kits, and the parties' addresses, the first as said."""
    addresses = own_addresses(3)[1::2]
    addresses[0] = first or addresses[0]
    sites = "".join(f'[[parties]]\nname = "party{k}"\naddress = "{each}"\n' for k, each in enumerate(addresses))
    sites += "".join(f'[[owners]]\nname = "owner{k}"\nrecords = 40\n' for k in range(3))
    (folder / "consortium.toml").write_text(TOML.format(sites=sites))
    write_kits(read_consortium(folder / "consortium.toml"), folder / "kits", folder / "authority")
    lines = ["age,ill", *(f"{20 + k},{'yes' if k % 3 else 'no'}" for k in range(40))]
    (folder / "mine.csv").write_text("\n".join(lines) + "\n")
    return folder / "kits", addresses


@contextlib.contextmanager
def taken(address: str, ports: tuple[int, ...] = (0, 3)) -> Iterator[None]:
    """Another program has a party's ports: they are bound, and nobody answers there. With a backlog of none that is
    full, further calls are dropped, as a firewall drops them."""
    host, port = address.rsplit(":", 1)
    with contextlib.ExitStack() as stack:
        for more in ports:
            one = stack.enter_context(socket.socket())
            one.bind((host, int(port) + more))
            one.listen(0)
            for _ in range(4):
                call = stack.enter_context(socket.socket())
                call.setblocking(False)
                call.connect_ex((host, int(port) + more))
        yield


def nothing_spent(folder: Path) -> bool:
    """Whether no ledger has a line of a release."""
    lines = [line for path in folder.rglob("ledger_*.jsonl") for line in path.read_text().splitlines()]
    return not any("release" in json.loads(line) for line in lines)


def test_a_port_in_use_is_waited_for_and_ends_as_what_passes(tmp_path: Path) -> None:
    made, addresses = kits(tmp_path)
    with taken(addresses[0]):
        done = dpmpc("join", made / "party0", *WAIT)
    last = done.stderr.rstrip().splitlines()[-1]
    assert done.returncode == 6 and last.startswith("error: ") and last.count("--listen") == 1, done.stderr
    assert "in use" in last and nothing_spent(tmp_path)


@pytest.mark.parametrize(
    ("address", "says"),
    [("party-a.invalid:21365", "name"), ("192.0.2.77:21365", "assign|address")],
    ids=["a name that does not resolve", "an address of another machine"],
)
def test_an_address_that_is_not_here_yet_ends_as_what_passes(address: str, says: str, tmp_path: Path) -> None:
    done = dpmpc("join", kits_of(tmp_path, address) / "party0", *WAIT)
    last = done.stderr.rstrip().splitlines()[-1]
    assert done.returncode == 6 and re.search(says, last) and "Traceback" not in done.stderr, done.stderr
    assert nothing_spent(tmp_path)


def kits_of(folder: Path, first: str) -> Path:
    """Kits whose first party is at an address; addresses that are not of loopback need TLS, and the keys for it."""
    from dpmpc.mpc.transport.credentials import make_request, sign_request

    text, addresses = TOML.replace("tls = false", "tls = true"), own_addresses(3)[1::2]
    addresses[0] = first
    sites = "".join(f'[[parties]]\nname = "party{k}"\naddress = "{each}"\n' for k, each in enumerate(addresses))
    sites += "".join(f'[[owners]]\nname = "owner{k}"\nrecords = 40\n' for k in range(3))
    (folder / "consortium.toml").write_text(text.format(sites=sites))
    write_kits(read_consortium(folder / "consortium.toml"), folder / "kits", folder / "authority")
    keys = folder / "kits" / "party0" / "keys"
    sign_request(folder / "authority", make_request(keys, "party0"), "party0", keys)
    return folder / "kits"


def test_who_does_not_answer_is_told_from_who_is_not_there(tmp_path: Path) -> None:
    """The owner calls: at two parties nobody listens, at the third a firewall drops what comes. Both are others' and
    may come: exit code 3, and one line that names each."""
    made, addresses = kits(tmp_path)
    with taken(addresses[2]):
        done = dpmpc("join", made / "owner0", "--csv", tmp_path / "mine.csv", *WAIT)
    assert done.returncode == 3 and "Traceback" not in done.stderr, done.stderr
    last = done.stderr.rstrip().splitlines()[-1]
    assert last.count("nobody listens there") == 2 and last.count("has not answered yet") == 1, last
    assert nothing_spent(tmp_path)
