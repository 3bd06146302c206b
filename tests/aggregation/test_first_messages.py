"""Every first message at every listener, from every stranger: without a certificate, with one of another authority,
with one of another role or of another run of the same authority, with another plan. Each is refused, and hears
nothing."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmpc.aggregation.party.archive import Archive
from dpmpc.aggregation.party.behind import Behind
from dpmpc.aggregation.party.owner_gate import OwnerGate
from dpmpc.aggregation.party.party import NO_COST
from dpmpc.aggregation.party.resume import standing
from dpmpc.aggregation.party.resuming_gate import ResumingGate
from dpmpc.aggregation.plan.asked import AGREED, FIRST_ATTEMPT
from dpmpc.aggregation.plan.identities import greeting
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.wire import refusal
from dpmpc.aggregation.wire.frames import ASKING, HAVE, NOBODY, TELL
from dpmpc.aggregation.wire.frames import HELLO as OWNERS_HELLO
from dpmpc.aggregation.wire.paths import opened_path, transcript_path
from dpmpc.aggregation.wire.transcript import OpenedVectors, Transcript
from dpmpc.consortium.dry_run import Trial
from dpmpc.mpc.contract.backend import BACKENDS
from dpmpc.mpc.transport.addresses import Endpoint, bound_socket, endpoint_of, parse_endpoints
from dpmpc.mpc.transport.channels import BEGIN, HELLO, REASON, block_label
from dpmpc.mpc.transport.credentials import make_credentials
from dpmpc.mpc.transport.dial import GREETING, TcpLink
from dpmpc.mpc.transport.tls import Tls
from dpmpc.mpc.transport.wire import HEADER, MAGIC, VERSION, run_tag
from tests.runs import HANG, own_addresses

PLAN = Plan.create(owners=3, dimension=4, clip=1.0, epsilon=1.0, delta=1e-5, run_id="met", parties=3)
OTHER = replace(PLAN, run_id="another run")
STAGE = replace(PLAN, run_id="met+survey")
LATE = Plan.create(owners=3, dimension=4, clip=1.0, epsilon=1.0, delta=1e-5, run_id="met", parties=3, min_owners=2)
OWNERS, PARTIES = [f"owner{j}" for j in range(3)], [f"party{i}" for i in range(3)]
OF_ANOTHER = ["owner9", "party9", "site9"]  # whom the authority has signed for, in another run
EVERYBODY = ["owners", *OWNERS, *PARTIES, *OF_ANOTHER]
FIRST = b"?" * 32  # in place of the digest, which each plan has


@dataclass(frozen=True)
class Said:
    """A first message: its payload, with `FIRST` in the digest's place; who may say it; what such a one hears."""

    payload: bytes
    by: tuple[str, ...]
    hears: tuple[int, ...] = (HELLO,)


@dataclass
class Door:
    """A listener: where, what calls it, and what it would show of those that it believed."""

    at: Endpoint
    run: bytes  # by which frames are known
    digest: bytes  # of the plan
    others: bytes  # of another one
    said: list[Said]
    touched: Callable[[], object]
    log: list[str] = field(default_factory=list)


def to_gate(*, agreed: bool, over: bool) -> list[Said]:
    """What is said to a gate; `over`: it has opened everything."""
    owner, every = OWNERS_HELLO.pack(1, 2, FIRST), OWNERS_HELLO.pack(0, 3, FIRST)
    said = [Said(owner, ("owner1",)), Said(every, ("owners",))]
    refuses = [Said(OWNERS_HELLO.pack(refusal.OWNERS + 1, 2, FIRST), ("owner1",)),
               Said(OWNERS_HELLO.pack(refusal.PARTY, 2, FIRST), ("party2",))]  # fmt: skip
    told = (HELLO, BEGIN, block_label(0, -1)) if over else (HELLO,)
    asks = [
        Said(OWNERS_HELLO.pack(1 | HAVE, 2, FIRST), ("owner1",)),
        Said(OWNERS_HELLO.pack(ASKING, NOBODY, FIRST), ("owners", *OWNERS)),
        Said(OWNERS_HELLO.pack(ASKING, 1, FIRST), ("party1",)),
        Said(OWNERS_HELLO.pack(ASKING, 1 | TELL, FIRST), ("party1",), told),
        Said(OWNERS_HELLO.pack(ASKING, 7, FIRST), ()),
        Said(OWNERS_HELLO.pack(ASKING, 9 | TELL, FIRST), ()),
    ]
    return [*said, *refuses, *(asks if agreed else ())]


@contextlib.asynccontextmanager
async def gate(folder: Path, tls: Path | None, kind: str) -> AsyncIterator[Door]:
    """A gate of party 0 that waits, that has opened everything, or that has a stage behind it."""
    late, agreed = kind == "late", kind != "fixed"
    plan = LATE if late else PLAN
    bound, attempt = bound_socket(), AGREED if agreed else FIRST_ATTEMPT
    log: list[str] = []
    holder = BACKENDS[plan.backend].holder(0, 3, plan.threshold, plan.session_id(attempt))
    one = (ResumingGate if late else OwnerGate)(plan, attempt, holder, log=log.append)
    folder.mkdir()
    with contextlib.closing(OpenedVectors(opened_path(folder, 0))) as kept:
        kept.append(0, np.arange(plan.dimension))
    with contextlib.closing(Transcript(transcript_path(folder, 0))) as transcript:
        transcript.note("start", attempt=0)
        transcript.note("end", releases=1)
    calls = plan
    delivered: set[int] = set()
    tasks = []
    if kind == "behind":
        one.behind, calls = {greeting(STAGE, AGREED): Behind(STAGE, folder, 0)}, STAGE
    if kind == "over":
        archive = Archive(plan, 0, lambda: standing(plan, folder, 0).past, NO_COST, delivered, lambda first, end: None)
        tasks.append(asyncio.ensure_future(one.linger(archive, NO_COST, HANG)))
        await asyncio.sleep(0)  # it begins
    await one.listen(endpoint_of(bound), None if tls is None else Tls.load(tls, "party0"), bound)

    def touched() -> object:
        return one._admission.guests, one._asked_at, one._askers, one._after, delivered, one._admission.stage

    said = to_gate(agreed=agreed, over=kind in ("over", "behind"))
    if kind == "behind":
        said = [each for each in said if each.by and not refusal.is_refusal(OWNERS_HELLO.unpack(each.payload)[0])]
    try:
        yield Door(endpoint_of(bound), calls.session_id(attempt), greeting(calls, attempt), greeting(OTHER, attempt),
                   said, touched, log)  # fmt: skip
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        one.abandon()
        await asyncio.sleep(0)


@contextlib.asynccontextmanager
async def mesh(folder: Path, tls: Path | None) -> AsyncIterator[Door]:
    """Where party 2 listens for the other parties."""
    bound, log = [bound_socket() for _ in range(3)], list[str]()
    where, keys = [endpoint_of(s) for s in bound], None if tls is None else Tls.load(tls, "party2")
    link = TcpLink(2, where, tls=keys, bound=bound[2], log=log.append)
    holder = BACKENDS[PLAN.backend].holder(2, 3, PLAN.threshold, b"met")
    task = asyncio.ensure_future(holder.connect(link, b"plan".ljust(32), seconds=HANG))
    said = [Said(GREETING.pack(i, 3, FIRST), (f"party{i}",)) for i in range(2)]
    said += [Said(GREETING.pack(2, 3, FIRST), ()), Said(GREETING.pack(9, 12, FIRST), ())]
    try:
        await asyncio.sleep(0)
        yield Door(where[2], b"met", b"plan".ljust(32), b"other".ljust(32), said, lambda: list(link._peers), log)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        holder.abandon()
        for each in bound:
            each.close()


@contextlib.asynccontextmanager
async def trial(folder: Path, tls: Path | None, owners: bool) -> AsyncIterator[Door]:
    """Where party 0 tries its ports before the day."""
    ports = [endpoint_of(s) for s in _closed(bound_socket(), bound_socket())]
    log: list[str] = []
    elsewhere = parse_endpoints(own_addresses(3)[1::2])
    one = Trial(PLAN, 0, None, elsewhere, (ports[0], ports[1]), tls, log.append)
    task = asyncio.ensure_future(one.meet(HANG))
    hello = Trial(PLAN, None, 1, elsewhere, None, None, log.append)
    by = [(True, 1), (True, 8), (False, 2), (False, 8)]
    allowed = {(True, 1): ("owner1",)} if owners else {(False, 2): ("party2",)}
    said = [Said(hello._hello(*each).replace(hello._digest, FIRST), allowed.get(each, ())) for each in by]
    other = Trial(OTHER, 0, None, elsewhere, None, None, log.append)._digest
    try:
        yield Door(ports[owners], hello._digest, hello._digest, other, said, lambda: (one.called, one.clocks), log)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def _closed(*sockets: Any) -> list[Any]:
    """The sockets, whose ports are free when they are asked for."""
    found = [endpoint_of(each) for each in sockets]
    for each in sockets:
        each.close()
    return [type("Bound", (), {"getsockname": lambda self, e=e: (e.host, e.port)})() for e in found]


DOORS: dict[str, Any] = {
    **{f"gate, {kind}": partial(gate, kind=kind) for kind in ("fixed", "waiting", "late", "over", "behind")},
    "mesh": mesh,
    "trial, parties": partial(trial, owners=False),
    "trial, owners": partial(trial, owners=True),
}


def context(keys: Path | None, name: str = "") -> ssl.SSLContext:
    """A caller's, which asks nobody for a certificate; with one of its own, if it has a name."""
    found = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    found.check_hostname, found.verify_mode = False, ssl.CERT_NONE
    if keys is not None:
        found.load_cert_chain(keys / f"{name}.crt", keys / f"{name}.key")
    return found


async def hears(door: Door, payload: bytes, tls: ssl.SSLContext | None, most: int) -> list[int]:
    """The labels of the frames that a caller with this first message gets: so many at most, or until it is hung up
    on. That it is refused is no answer."""
    labels: list[int] = []
    frame = HEADER.pack(MAGIC, VERSION, run_tag(door.run), HELLO, len(payload)) + payload
    with contextlib.suppress(OSError, asyncio.IncompleteReadError):  # TLS's errors are OSErrors
        while True:
            try:
                reader, writer = await asyncio.open_connection(door.at.host, door.at.port, ssl=tls)
                break
            except ConnectionRefusedError:  # it does not listen yet
                await asyncio.sleep(0)
        try:
            writer.write(frame)
            while len(labels) < most:
                _, _, _, label, size = HEADER.unpack(await reader.readexactly(HEADER.size))
                await reader.readexactly(size)
                if label == REASON:
                    break
                labels.append(label)
        finally:
            writer.transport.abort()
    return labels


def strangers(door: Door, keys: Path, foreign: Path, tls: bool) -> list[tuple[str, bytes, ssl.SSLContext | None]]:
    """Who says what without the right to: (what it is, its first message, its end of TLS)."""
    found: list[tuple[str, bytes, ssl.SSLContext | None]] = []
    for said in door.said:
        mine, others = said.payload.replace(FIRST, door.digest), said.payload.replace(FIRST, door.others)
        assert mine != others
        if not tls:
            found += [("another plan", others, None)] + ([] if said.by else [("nobody's number", mine, None)])
            continue
        found += [("no TLS", mine, None), ("no certificate", mine, context(None))]
        found += [(f"another authority's {name}", mine, context(foreign, name)) for name in said.by or ("owners",)]
        found += [(name, mine, context(keys, name)) for name in EVERYBODY if name not in said.by]
        found += [(f"{name} with another plan", others, context(keys, name)) for name in said.by]
    return found


@pytest.fixture(scope="module")
def authorities(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The run's, and another one."""
    folder = tmp_path_factory.mktemp("authorities")
    for name in ("ours", "theirs"):
        make_credentials(folder / name, EVERYBODY)
    return folder / "ours", folder / "theirs"


@pytest.mark.parametrize("tls", [False, True], ids=["loopback", "tls"])
@pytest.mark.parametrize("door", DOORS)
def test_no_stranger_hears_anything(door: str, tls: bool, authorities: tuple[Path, Path], tmp_path: Path) -> None:
    keys, foreign = authorities

    async def refused() -> int:
        async with asyncio.timeout(HANG), DOORS[door](tmp_path / "folder", keys if tls else None) as opened:
            before, tried = repr(opened.touched()), strangers(opened, keys, foreign, tls)
            for who, payload, secured in tried:
                assert await hears(opened, payload, secured, 1) == [], f"{who}: {payload!r}"
                assert repr(opened.touched()) == before, f"{who} left something behind: {payload!r}"
            assert opened.log or not tls, "refusals are told here"
            return len(tried)

    async def answered(number: int, name: str) -> None:
        folder = tmp_path / f"{number} {name}"
        async with asyncio.timeout(HANG), DOORS[door](folder, keys if tls else None) as opened:
            said = opened.said[number]
            payload, secured = said.payload.replace(FIRST, opened.digest), context(keys, name) if tls else None
            assert tuple(await hears(opened, payload, secured, len(said.hears))) == said.hears, (number, name)

    async def of_the_run() -> list[Said]:
        async with DOORS[door](tmp_path / "said", keys if tls else None) as opened:
            return list(opened.said)

    assert asyncio.run(refused()) >= 2
    for number, said in enumerate(asyncio.run(of_the_run())):
        for name in said.by:
            asyncio.run(answered(number, name))
