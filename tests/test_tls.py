"""TLS sessions: they work, and a stranger's certificate, another party's name or a clear-text peer does not."""

import asyncio
import shutil
import stat
from pathlib import Path

import numpy as np
import pytest

from dpmpc.errors import DpmpcError, PeerError, UsageError
from dpmpc.local import free_base_port
from dpmpc.session import Session, endpoints_here
from dpmpc.tls import Tls, check_loopback, make_credentials

NAMES = ("party0", "party1", "owners")


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("keys") / "run"
    make_credentials(directory, NAMES)
    return directory


async def _pair(first: Tls | None, second: Tls | None) -> list[object]:
    base = free_base_port(2)
    sessions = [Session(i, 2, 0, b"run") for i in range(2)]
    results = await asyncio.gather(
        *(
            s.connect(endpoints_here(2, base), seconds=0.7, tls=tls)
            for s, tls in zip(sessions, (first, second), strict=True)
        ),
        return_exceptions=True,
    )
    if not any(results):
        opened = await asyncio.gather(*(s.open(np.array([7], dtype=np.uint64), s.channel(1)) for s in sessions))
        results = [int(x[0]) for x in opened]
    for s in sessions:
        s.abandon()
    await asyncio.sleep(0.05)
    return results


def test_parties_talk_over_tls(keys: Path) -> None:
    assert asyncio.run(_pair(Tls.load(keys, "party0"), Tls.load(keys, "party1"))) == [7, 7]


def test_a_certificate_of_another_name_is_refused_by_both_sides(keys: Path) -> None:
    for first, second in [("owners", "party1"), ("party0", "owners"), ("party1", "party0")]:
        results = asyncio.run(_pair(Tls.load(keys, first), Tls.load(keys, second)))
        assert any(isinstance(r, DpmpcError) for r in results), (first, second)


def test_a_stranger_and_a_clear_text_peer_are_refused(keys: Path, tmp_path: Path) -> None:
    make_credentials(tmp_path / "other", NAMES)
    stranger = Tls.load(tmp_path / "other", "party1")
    for second in (stranger, None):
        results = asyncio.run(_pair(Tls.load(keys, "party0"), second))
        assert any(isinstance(r, PeerError) for r in results)
    assert any(isinstance(r, PeerError) for r in asyncio.run(_pair(None, Tls.load(keys, "party1"))))


def test_keys_are_private_and_never_overwritten(keys: Path) -> None:
    assert stat.S_IMODE((keys / "party0.key").stat().st_mode) == 0o600
    with pytest.raises(UsageError, match="must be empty"):
        make_credentials(keys, NAMES)


def test_missing_and_mismatched_files_are_named(keys: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"party7\.crt is missing"):
        Tls.load(keys, "party7")
    mixed = tmp_path / "mixed"
    shutil.copytree(keys, mixed)
    shutil.copy(keys / "party1.key", mixed / "party0.key")
    with pytest.raises(UsageError, match="matching PEM"):
        Tls.load(mixed, "party0")


def test_only_loopback_may_do_without() -> None:
    check_loopback(["127.0.0.1", "::1", "localhost"])
    for host in ("hospital.example", "192.0.2.7"):
        with pytest.raises(UsageError, match="--tls"):
            check_loopback([host])
