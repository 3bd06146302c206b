"""What an owner does while its parties are watched: a failure ends it with the cause, and nothing else does."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from dpmpc.aggregation.owner.company import watched
from dpmpc.errors import DpmpcError, PeerError
from tests.refusals import refuses


class Watched:
    """Parties that fail when they are told to."""

    def __init__(self, cause: DpmpcError | None = None) -> None:
        self.fails, self._cause = asyncio.Event(), cause

    async def failure(self) -> DpmpcError:
        await self.fails.wait()
        return self._cause or PeerError("a party failed")

    async def cause(self) -> DpmpcError | None:
        self.fails.set()  # it is seen while its cause is looked for
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return self._cause


async def for_ever() -> None:
    await asyncio.get_running_loop().create_future()


def run(body: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(60):
            await body()

    asyncio.run(main())


def test_a_failure_ends_what_waits_with_its_cause() -> None:
    ended: list[str] = []

    async def main() -> None:
        parties = Watched(PeerError("party 1 was killed"))

        async def body() -> None:
            try:
                parties.fails.set()
                await for_ever()
            finally:
                ended.append("in order")

        with refuses("peer", 1):
            await watched(parties, body)
        await asyncio.sleep(0)  # nothing is left of the cancellation

    run(main)
    assert ended == ["in order"]


@pytest.mark.parametrize("cause", ["party 1 was killed", None])
def test_an_echo_gives_way_to_the_cause(cause: str | None) -> None:
    async def echo() -> None:
        raise PeerError("party 0 left")

    async def main() -> None:
        with refuses("peer", cause or "party 0 left"):
            await watched(Watched(PeerError(cause) if cause else None), echo)
        for _ in range(3):
            await asyncio.sleep(0)

    run(main)


def test_what_is_cancelled_from_outside_stays_cancelled() -> None:
    async def main() -> None:
        parties = Watched()
        task: asyncio.Task[Any] = asyncio.ensure_future(watched(parties, for_ever))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(main)


def test_a_failure_after_the_result_cancels_nobody() -> None:
    async def main() -> None:
        parties = Watched()

        async def body() -> int:
            parties.fails.set()
            return 7

        assert await watched(parties, body) == 7
        for _ in range(4):
            await asyncio.sleep(0)

    run(main)
