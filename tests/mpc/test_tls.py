"""TLS sessions: they work, and a stranger's certificate, another party's name or a clear-text peer does not."""

import asyncio
import datetime
import shutil
import ssl
import stat
from pathlib import Path

import numpy as np
import pytest

from dpmpc.aggregation.plan.identities import certificate_name
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.errors import PeerError
from dpmpc.mpc.parties.session import Session
from dpmpc.mpc.transport import credentials as credentials_module
from dpmpc.mpc.transport import tls as tls_module
from dpmpc.mpc.transport.addresses import bound_socket, check_loopback, endpoint_of
from dpmpc.mpc.transport.credentials import make_credentials
from dpmpc.mpc.transport.dial import TcpLink
from dpmpc.mpc.transport.tls import Tls
from tests.refusals import refuses
from tests.runs import HANG

NAMES = ("party0", "party1", "owners")


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("keys") / "run"
    make_credentials(directory, NAMES)
    return directory


async def _pair(first: Tls | None, second: Tls | None, seconds: float = HANG) -> list[object]:
    """What each side gets: the opened value; or its error; or None where it still waits when the other has failed."""
    bound = [bound_socket() for _ in range(2)]
    where = [endpoint_of(s) for s in bound]
    sessions = [Session(i, 2, 0, b"run") for i in range(2)]
    calls = [
        asyncio.ensure_future(s.connect(TcpLink(i, where, tls=tls, bound=bound[i]), seconds=seconds))
        for i, (s, tls) in enumerate(zip(sessions, (first, second), strict=True))
    ]
    done, waiting = await asyncio.wait(calls, return_when=asyncio.FIRST_EXCEPTION)
    results: list[object] = [call.exception() if call in done else None for call in calls]
    if not waiting and not any(results):
        opened = await asyncio.gather(*(s.open_words(np.array([7], dtype=np.uint64), s.channel(1)) for s in sessions))
        results = [int(x[0]) for x in opened]
    for call in waiting:
        call.cancel()
    for s in sessions:
        s.abandon()
    await asyncio.gather(*calls, return_exceptions=True)
    return results


def test_parties_talk_over_tls(keys: Path) -> None:
    assert asyncio.run(_pair(Tls.load(keys, "party0"), Tls.load(keys, "party1"))) == [7, 7]


def test_long_messages_go_both_ways_at_once_and_are_waited_for(keys: Path) -> None:
    """The transport of TLS says in its own way when it has enough, and when it can take more."""

    async def main() -> None:
        bound = [bound_socket() for _ in range(2)]
        where = [endpoint_of(s) for s in bound]
        sessions = [Session(i, 2, 0, b"run") for i in range(2)]
        links = [TcpLink(i, where, tls=Tls.load(keys, f"party{i}"), bound=bound[i]) for i in range(2)]
        await asyncio.gather(*(s.connect(link, seconds=HANG) for s, link in zip(sessions, links, strict=True)))
        long = np.random.default_rng(6).integers(0, 2**64, (2, 3, 1 << 20), dtype=np.uint64)

        async def talk(me: int) -> None:
            channel, other = sessions[me].channel(1), 1 - me
            for mine, theirs in zip(long[me], long[other], strict=True):
                coming = channel.words({other: mine}, [other], theirs.size)
                await channel.flushed(other)
                assert ((await coming)[0] == theirs).all()
                assert await channel.exchange({other: b"short"}, [other]) == [b"short"]
                await channel.flushed(other)

        async with asyncio.timeout(HANG):
            await asyncio.gather(talk(0), talk(1))
        for session in sessions:
            session.abandon()
        await asyncio.sleep(0)

    asyncio.run(main())


@pytest.mark.parametrize(
    ("first", "second", "side", "words"),
    [
        ("owners", "party1", 0, "refuses this process: a peer's certificate must be for the name it claims; it claims"),
        ("party0", "owners", 0, "must show a certificate of this run's authority"),
        ("party1", "party0", 0, "must show a certificate of this run's authority"),
    ],
)
def test_a_certificate_of_another_name_is_refused(keys: Path, first: str, second: str, side: int, words: str) -> None:
    """By the side that can know: who is called checks the caller's name, and says so; who calls checks the host's."""
    results = asyncio.run(_pair(Tls.load(keys, first), Tls.load(keys, second)))
    assert isinstance(results[side], PeerError) and words in str(results[side]), results


def test_strangers_are_refused(keys: Path, tmp_path: Path) -> None:
    make_credentials(tmp_path / "other", NAMES)
    stranger = Tls.load(tmp_path / "other", "party1")
    results = asyncio.run(_pair(Tls.load(keys, "party0"), stranger))
    assert isinstance(results[0], PeerError) and "certificate of this run's authority" in str(results[0]), results


def test_clear_text_peers_are_refused(keys: Path) -> None:
    """Whoever is called hangs up and waits on for the right one; then both say who is missing, and who came instead."""
    for first, second, why in ((True, False, "it speaks another protocol"), (False, True, "no TLS handshake")):
        pair = [Tls.load(keys, f"party{i}") if tls else None for i, tls in enumerate((first, second))]
        results = asyncio.run(_pair(*pair, seconds=0.5))
        assert all(isinstance(r, PeerError) for r in results if r is not None), results
        assert "missing: party 1" in str(results[0]) or f"refused meanwhile: a caller from 127.0.0.1: {why}" in str(
            results[1]
        ), results


def test_only_the_authority_of_the_run_is_trusted(keys: Path) -> None:
    tls = Tls.load(keys, "party0")
    for context in (tls.server, tls.client):  # not those of the system
        (authority,) = context.get_ca_certs()
        assert authority["subject"] == ((("commonName", "dpmpc run"),),)
        assert context.verify_mode is ssl.CERT_REQUIRED and context.minimum_version is ssl.TLSVersion.TLSv1_3


async def _with_strangers(keys: Path) -> list[object]:
    """Before party 0 calls, party 1 is called by one who is silent, one who talks nonsense and one who hangs up."""
    bound = [bound_socket() for _ in range(2)]
    where = [endpoint_of(s) for s in bound]
    second, first = Session(1, 2, 0, b"run"), Session(0, 2, 0, b"run")
    links = [TcpLink(i, where, tls=Tls.load(keys, f"party{i}"), bound=bound[i]) for i in range(2)]
    listening = asyncio.ensure_future(second.connect(links[1], seconds=HANG))
    strangers = []
    while len(strangers) < 3:  # the first calls may come before party 1 listens
        try:
            strangers.append(await asyncio.open_connection(where[1].host, where[1].port))
        except OSError:
            await asyncio.sleep(0)
    strangers[1][1].write(bytes(range(256)))
    strangers[2][1].close()
    await strangers[1][0].read()  # until party 1 hangs up on nonsense
    await asyncio.gather(listening, first.connect(links[0], seconds=HANG))
    opened = await asyncio.gather(
        *(s.open_words(np.array([7], dtype=np.uint64), s.channel(1)) for s in (first, second))
    )
    lost = [s.lost.done() for s in (first, second)]
    for s in (first, second):
        s.abandon()
    for _, writer in strangers:
        writer.transport.abort()
    await asyncio.sleep(0)
    return [*(int(x[0]) for x in opened), *lost]


def test_callers_without_a_certificate_do_not_stop_a_run(keys: Path) -> None:
    assert asyncio.run(_with_strangers(keys)) == [7, 7, False, False]


def test_the_certificate_of_an_owner_is_for_that_owner_alone() -> None:
    plan = Plan.create(owners=4, dimension=3, clip=1.0, epsilon=1.0, delta=1e-5)
    assert [certificate_name(plan, j, j + 1) for j in range(4)] == ["owner0", "owner1", "owner2", "owner3"]
    assert certificate_name(plan, 0, 4) == "owners"
    groups = {certificate_name(plan, j, k) for j in range(4) for k in range(j + 2, 5) if (j, k) != (0, 4)}
    assert not groups & {"owners", *(f"owner{j}" for j in range(4))}  # no certificate has such a name


def test_keys_are_private_and_never_overwritten(keys: Path) -> None:
    assert stat.S_IMODE((keys / "party0.key").stat().st_mode) == 0o600
    with refuses("keys"):
        make_credentials(keys, NAMES)


def test_missing_and_mismatched_files_are_named(keys: Path, tmp_path: Path) -> None:
    with refuses("keys", "party7.crt", setting="tls"):
        Tls.load(keys, "party7")
    mixed = tmp_path / "mixed"
    shutil.copytree(keys, mixed)
    shutil.copy(keys / "party1.key", mixed / "party0.key")
    with refuses("keys", "PEM", setting="tls"):
        Tls.load(mixed, "party0")


def test_only_loopback_may_do_without() -> None:
    check_loopback(["127.0.0.1", "::1", "localhost"])
    for host in ("hospital.example", "192.0.2.7"):
        with refuses("addresses", setting="tls"):
            check_loopback([host])


def test_expired_certificates_are_called_expired(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the start, of one's own; by the peer, of one that expired since."""
    with monkeypatch.context() as patched:
        patched.setattr(credentials_module, "_DAYS", -1)
        patched.setattr(credentials_module, "_EARLY", datetime.timedelta(days=3))
        make_credentials(tmp_path / "keys", NAMES)
    with refuses("usage", "party0.crt", "UTC"):
        Tls.load(tmp_path / "keys", "party0")
    monkeypatch.setattr(tls_module, "check_dates", lambda path: None)
    results = asyncio.run(_pair(Tls.load(tmp_path / "keys", "party0"), Tls.load(tmp_path / "keys", "party1")))
    assert "certificate has expired" in str(results[0]), results
