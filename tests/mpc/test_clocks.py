"""A machine whose clock is behind, as one's is that has just begun: what is not valid yet by it is waited for, on both
sides of a connection; what never becomes valid is refused."""

import asyncio
import datetime
import socket
import ssl
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from dpmpc.errors import PeerError
from dpmpc.mpc.transport import credentials as credentials_module
from dpmpc.mpc.transport import tls as tls_module
from dpmpc.mpc.transport.credentials import (
    check_certificate,
    make_authority,
    make_credentials,
    make_request,
    sign_request,
)
from dpmpc.mpc.transport.reaching import waited_for
from dpmpc.mpc.transport.tls import Tls
from tests.mpc.test_reaching import called, serving
from tests.mpc.test_tls import _pair
from tests.refusals import refuses

DAY = datetime.timedelta(days=1)
NAMES = ("party0", "party1")


def keys(folder: Path, monkeypatch: pytest.MonkeyPatch, odd: Mapping[str, Mapping[str, Any]] = {}) -> Path:
    """Keys of two parties under one authority, which is valid now; some of their certificates are `odd`: made with
    other values of `credentials`."""
    make_authority(folder / "authority")
    for name in NAMES:
        request = make_request(folder / "keys", name)
        with monkeypatch.context() as patched:
            for each, value in odd.get(name, {}).items():
                patched.setattr(credentials_module, each, value)
            sign_request(folder / "authority", request, name, folder / "keys")
    return folder / "keys"


LATER = {"_EARLY": -DAY}
OVER = {"_DAYS": -0.001}


class Behind(datetime.datetime):
    """A clock that is a month behind when it is first looked at, and in step after some looks."""

    looks = 0
    slow = 1 << 60

    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> "Behind":
        cls.looks += 1
        return super().now(tz) - (30 * DAY if cls.looks <= cls.slow else 0 * DAY)


def _loaded(folder: Path, lack: Callable[[str], None], patience: float) -> object:
    return asyncio.run(Tls.valid(folder, "party0", patience, lack))


def _checked(folder: Path, lack: Callable[[str], None], patience: float) -> object:
    async def attempt() -> bool:
        check_certificate(folder / "party0.crt", folder / "ca.crt", "party0")
        return True

    return asyncio.run(waited_for(attempt, patience, lack))


@pytest.mark.parametrize("module, begin", [(tls_module, _loaded), (credentials_module, _checked)])
def test_ones_own_clock_is_waited_for(
    module: Any, begin: Callable[..., object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is said what is lacking; once it is in step, all goes on; and where it never is, the exit code is one after
    which a service starts again."""
    make_credentials(tmp_path / "keys", NAMES)
    monkeypatch.setattr(module.datetime, "datetime", Behind)
    said: list[str] = []
    for slow, looks in ((2, 3), (0, 1)):
        monkeypatch.setattr(Behind, "looks", 0)
        monkeypatch.setattr(Behind, "slow", slow)
        assert begin(tmp_path / "keys", said.append, 600.0)
        assert Behind.looks >= looks
    assert len(said) == 2 + 2 and said[-1] == ""
    assert said[0] == said[1] and said[0].startswith("its own clock (party0.crt is valid from 2")
    monkeypatch.setattr(Behind, "slow", 1 << 60)
    with refuses("not-yet", "party0.crt", "UTC") as raised:
        begin(tmp_path / "keys", said.append, 0.0)
    assert raised.value.exit_code == 6 and said[-1] == ""


@pytest.mark.parametrize(
    "late, words",
    [
        ("party0", "it does not take this process's certificate; its clock may not be in step yet"),
        ("party1", "its certificate is not valid yet by this machine's clock"),
    ],
)
def test_a_peers_certificate_that_is_not_valid_yet_is_waited_for(
    late: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the clock of who is called it is the caller's; by the caller's, that of who is called."""
    folder = keys(tmp_path, monkeypatch, {late: LATER})
    monkeypatch.setattr(tls_module, "check_dates", lambda path: None)
    with serving(_answering(Tls.load(folder, "party1").server)) as where:
        assert called(where, Tls.load(folder, "party0")).problem == words


@pytest.mark.parametrize("how", ["another authority", "expired"])
def test_what_never_becomes_valid_is_refused_to_the_caller(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = mine = keys(tmp_path / "theirs", monkeypatch, {"party0": OVER} if how == "expired" else {})
    if how == "another authority":
        mine = keys(tmp_path / "mine", monkeypatch)
        (mine / "ca.crt").write_bytes((theirs / "ca.crt").read_bytes())
    monkeypatch.setattr(tls_module, "check_dates", lambda path: None)
    with serving(_answering(Tls.load(theirs, "party1").server)) as where:
        with pytest.raises(PeerError) as raised:
            called(where, Tls.load(mine, "party0"))
    assert "must accept this process's certificate" in raised.value.message


@pytest.mark.parametrize("name", NAMES)
def test_two_parties_meet_once_both_certificates_are_valid(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the machine's real clock, which no test sets: the certificate begins to be valid while they call."""
    folder = keys(tmp_path, monkeypatch, {name: {"_EARLY": datetime.timedelta(seconds=-2)}})
    monkeypatch.setattr(tls_module, "check_dates", lambda path: None)
    assert asyncio.run(_pair(Tls.load(folder, "party0"), Tls.load(folder, "party1"))) == [7, 7]


def _answering(context: ssl.SSLContext) -> Callable[[socket.socket], None]:
    """Who ends a handshake with an alert, and reads what comes until its caller has gone: a port that is closed over
    unread bytes may take the alert with it."""

    def answer(caller: socket.socket) -> None:
        with context.wrap_socket(caller, server_side=True, do_handshake_on_connect=False) as inside:
            try:
                inside.do_handshake()
                inside.recv(1)
            except ssl.SSLError:
                while socket.socket.recv(inside, 1 << 12):
                    pass

    return answer
