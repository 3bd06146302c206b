"""A server that dies after any frame, or sends any flow in another length: the other ends with a line."""

import asyncio
from functools import partial
from typing import Any

import pytest
from pairs import Two, together

from dpmpc.circuits.sampler import discrete_gaussian
from dpmpc.errors import CheatError, PeerError
from dpmpc.mpc.contract.backend import BACKENDS
from dpmpc.mpc.transport.addresses import bound_socket, endpoint_of
from dpmpc.mpc.transport.channels import KEYS, NOISE, OPENING, TREES
from dpmpc.mpc.transport.dial import TcpLink
from dpmpc.mpc.two_servers.backend import GarbledHolder, OtHolder
from tests.runs import HANG

SAMPLER = discrete_gaussian(300.0)
SAMPLES = 64


async def _server(holder: OtHolder, link: TcpLink) -> int:
    """All that a server does in a run of one release."""
    await holder.connect(link, bytes(32), seconds=HANG)
    share = await holder.noise(SAMPLER, NOISE, SAMPLES)
    opened = await holder.open(share, OPENING)
    await holder.close()
    return len(opened)


async def _both(backend: str, last: int) -> tuple[list[int], Any]:
    """(labels of the frames that server 1 sent, what became of server 0), where 1 is gone after `last` frames."""
    labels: list[int] = []
    loop = asyncio.get_running_loop()

    def watch(peer: Any, outgoing: bool, label: int, payload: Any) -> None:
        if outgoing:
            labels.append(label)
            if len(labels) == last:
                loop.call_soon(die)

    def die() -> None:
        tasks[1].cancel()
        holders[1].abandon()

    bound = [bound_socket() for _ in range(2)]
    links = [TcpLink(i, [endpoint_of(s) for s in bound], bound=bound[i]) for i in range(2)]
    holders = [BACKENDS[backend].holder(i, 2, 1, b"run", watch if i else None) for i in range(2)]
    tasks = [asyncio.ensure_future(_server(h, link)) for h, link in zip(holders, links, strict=True)]  # type: ignore[arg-type]
    try:
        async with asyncio.timeout(HANG):
            first, _ = await asyncio.gather(*tasks, return_exceptions=True)
    finally:
        for holder in holders:
            holder.abandon()
        await asyncio.sleep(0)
    return labels, first


@pytest.mark.parametrize("backend", ["ot", "garbled"])
def test_the_other_server_ends_with_a_line_whenever_one_dies(backend: str) -> None:
    labels, first = asyncio.run(_both(backend, -1))
    flows = {label >> 32 for label in labels if label > 0}
    assert first == SAMPLES and {KEYS, TREES} < set(labels) and {NOISE, OPENING} <= flows
    due = labels.index(OPENING << 32)
    moments = sorted({*range(1, 6), due // 2 + 2, due - 1, due})  # greeting, base transfers, trees, flows of the noise
    died = 0
    for last in moments:
        sent, first = asyncio.run(_both(backend, last))
        assert sent[:last] == labels[:last]
        if OPENING << 32 in sent:  # it had to wait for nothing before its share of the opening
            assert last == due and first == SAMPLES
            continue
        assert isinstance(first, PeerError) and "party 1 " in str(first) and "\n" not in str(first), (last, first)
        died += 1
    assert died >= len(moments) - 1 > 5


@pytest.mark.parametrize("made_by", [OtHolder, GarbledHolder])
@pytest.mark.parametrize("spoils", [0, 1])
def test_every_flow_of_another_length_is_refused(made_by: type[OtHolder], spoils: int) -> None:
    """Cut short, made longer, or empty; each on a channel of its own of one connection."""
    wrong: dict[int, Any] = {}  # label -> what becomes of its frame

    def spoil(label: int, raw: bytes) -> bytes:
        change = wrong.get(label)
        return raw if change is None else bytes(change(raw))

    async def draw(two: Two, channel: int) -> list[Any]:
        tasks = [asyncio.ensure_future(h.noise(SAMPLER, channel, SAMPLES)) for h in two.holders]
        await asyncio.wait([tasks[1 - spoils]], timeout=HANG)
        tasks[spoils].cancel()
        return await asyncio.gather(*tasks, return_exceptions=True)

    async def body(two: Two) -> int:
        before = len(two.sent[spoils])
        await asyncio.gather(*(h.noise(SAMPLER, NOISE, SAMPLES) for h in two.holders))
        flows = [label & 0xFFFFFFFF for label, _ in two.sent[spoils][before:]]
        channel = NOISE
        for flow in flows:
            for change in (lambda raw: raw[:-8], lambda raw: raw + bytes(8), lambda raw: b""):
                channel += 1
                wrong[channel << 32 | flow] = change
                error = (await draw(two, channel))[1 - spoils]
                assert isinstance(error, PeerError) and "are all parties of one version" in str(error), (flow, error)
        return len(flows)

    assert together(body, made_by=made_by, spoil=spoil, spoils=spoils) >= 2


def _replaced(frames: dict[int, bytes], label: int, raw: bytes) -> bytes:
    return frames.get(label, raw)


@pytest.mark.parametrize("made_by", [OtHolder, GarbledHolder])
def test_frames_of_an_earlier_connection_make_nothing_come_again(made_by: type[OtHolder]) -> None:
    """What server 1 sent once is sent to server 0 again, in a run of the same id, plan and channel. Base transfers or
    trees of another connection are found out; with the noise's flows alone nothing is what it was that server 0 says
    before the check ends it. Two words that agree by chance: below 1e-9."""
    recorded: dict[int, bytes] = {}

    def words(two: Two) -> set[int]:
        said = b"".join(raw[: len(raw) // 8 * 8] for _, raw in two.sent[0])
        return set(memoryview(said).cast("Q").tolist())

    async def body(two: Two) -> tuple[set[int], bytes]:
        await two.connect()
        shares = await asyncio.gather(*(h.noise(SAMPLER, NOISE, SAMPLES) for h in two.holders))
        for label, raw in two.sent[1]:
            recorded.setdefault(label, raw)
        return words(two), shares[0].tobytes()

    async def again(two: Two) -> tuple[list[object], set[int]]:
        async def one(holder: OtHolder) -> None:
            await holder.transfers(holder.peers[holder.other], two.digest)
            await holder.noise(SAMPLER, NOISE, SAMPLES)

        tasks = [asyncio.ensure_future(one(holder)) for holder in two.holders]
        await asyncio.wait(tasks[:1], timeout=HANG)
        tasks[1].cancel()
        return await asyncio.gather(*tasks, return_exceptions=True), words(two)

    first, _ = together(body, connect=False, made_by=made_by)
    for labels, says in (
        ({KEYS, TREES}, "trees of keys"),
        ({TREES}, "trees of keys"),
        (set(recorded) - {KEYS, TREES}, ""),
    ):
        replayed = {label: recorded[label] for label in labels}
        (error, _), said = together(again, connect=False, made_by=made_by, spoil=partial(_replaced, replayed), spoils=1)
        assert isinstance(error, PeerError) and says in str(error) and len(first) > 500 and not first & said
        if made_by is OtHolder or TREES in labels:
            assert isinstance(error, CheatError), error
