"""TLS sessions: they work, and a stranger's certificate, another party's name or a clear-text peer does not."""

import asyncio
import shutil
import ssl
import stat
from pathlib import Path

import numpy as np
import pytest

from dpmpc.aggregation.owner import certificate_name
from dpmpc.aggregation.plan import Facts, make_plan
from dpmpc.errors import DpmpcError, PeerError, UsageError
from dpmpc.mpc.loopback import free_base_port
from dpmpc.mpc.session import Session, endpoints_here
from dpmpc.mpc.tls import Tls, check_loopback, make_credentials
from dpmpc.runs.request import Options

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


def test_only_the_authority_of_the_run_is_trusted(keys: Path) -> None:
    tls = Tls.load(keys, "party0")
    for context in (tls.server, tls.client):  # not those of the system
        (authority,) = context.get_ca_certs()
        assert authority["subject"] == ((("commonName", "dpmpc run"),),)
        assert context.verify_mode is ssl.CERT_REQUIRED and context.minimum_version is ssl.TLSVersion.TLSv1_3


async def _with_strangers(keys: Path) -> list[object]:
    """Before party 0 calls, party 1 is called by one who is silent, one who talks nonsense and one who hangs up."""
    base = free_base_port(2)
    second, first = Session(1, 2, 0, b"run"), Session(0, 2, 0, b"run")
    listening = asyncio.ensure_future(second.connect(endpoints_here(2, base), seconds=5, tls=Tls.load(keys, "party1")))
    await asyncio.sleep(0.1)
    strangers = [await asyncio.open_connection("127.0.0.1", base + 1) for _ in range(3)]
    strangers[1][1].write(bytes(range(256)))
    strangers[2][1].close()
    await asyncio.sleep(0.1)
    await asyncio.gather(listening, first.connect(endpoints_here(2, base), seconds=5, tls=Tls.load(keys, "party0")))
    opened = await asyncio.gather(*(s.open(np.array([7], dtype=np.uint64), s.channel(1)) for s in (first, second)))
    lost = [s.lost.done() for s in (first, second)]
    for s in (first, second):
        s.abandon()
    for _, writer in strangers:
        writer.transport.abort()
    await asyncio.sleep(0.05)
    return [*(int(x[0]) for x in opened), *lost]


def test_callers_without_a_certificate_do_not_stop_a_run(keys: Path) -> None:
    assert asyncio.run(_with_strangers(keys)) == [7, 7, False, False]


def test_the_certificate_of_an_owner_is_for_that_owner_alone(keys: Path) -> None:
    options = Options(dimension=3, owner_sizes=(5, 5, 5, 5), task="logistic", epsilon=1.0, delta=1e-5)
    plan = make_plan(options, Facts("records", "logistic", 3, (5, 5, 5, 5), "public"))
    assert [certificate_name(plan, j, j + 1) for j in range(4)] == ["owner0", "owner1", "owner2", "owner3"]
    assert certificate_name(plan, 0, 4) == "owners"
    groups = {certificate_name(plan, j, k) for j in range(4) for k in range(j + 2, 5) if (j, k) != (0, 4)}
    assert not groups & {"owners", *(f"owner{j}" for j in range(4))}  # no certificate has such a name


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
