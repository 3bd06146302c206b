"""How parties part: each says that it has everything, and who did not hear that from another says from whom."""

import asyncio
from collections.abc import Callable
from typing import Any, ClassVar

import pytest

from dpmpc.aggregation.party.party import _close
from dpmpc.errors import PeerError
from dpmpc.mpc.parties.loss_tolerance import LossTolerantMesh
from dpmpc.mpc.parties.mesh import Mesh
from dpmpc.mpc.transport.channels import END


class Other:
    """A party that says its last word, is silent, or has left."""

    expects_end = False
    name = "another"

    def __init__(self, does: str) -> None:
        self.does, self.sent = does, list[int]()

    def send(self, label: int, payload: bytes) -> None:
        if self.does == "has left":
            raise PeerError("it has left")
        self.sent.append(label)

    def receive(self, label: int) -> "asyncio.Future[bytearray]":
        end: asyncio.Future[bytearray] = asyncio.get_running_loop().create_future()
        if label == END and self.does == "says so":
            end.set_result(bytearray())
        if self.does == "has left":
            end.set_exception(PeerError("it has left"))
        return end

    def close(self) -> None:
        """Nothing."""


class Tolerant(LossTolerantMesh):
    threshold = 1


def meshes() -> list[Callable[..., Mesh]]:
    return [Mesh, Tolerant]


@pytest.mark.parametrize("kind", meshes())
def test_who_does_not_say_that_it_has_everything_is_named(kind: Callable[..., Mesh]) -> None:
    async def body() -> tuple[list[int], list[Other]]:
        mesh = kind(1, 4, b"run")
        others = {0: Other("says so"), 2: Other("is silent"), 3: Other("has left")}
        mesh.peers = others  # type: ignore[assignment]
        return await mesh.close(0.0), list(others.values())

    silent, others = asyncio.run(body())
    assert silent == [2, 3] and all(each.expects_end for each in others)
    assert [each.sent for each in others] == [[END], [END], []]


def test_a_party_waits_for_the_others_last_word_as_long_as_stall_says_and_says_who_was_silent() -> None:
    waited, said = list[float](), list[str]()

    class Holder:
        silent: ClassVar[list[int]] = [0, 2]

        async def close(self, seconds: float) -> list[int]:
            waited.append(seconds)
            return self.silent

    holder: Any = Holder()
    asyncio.run(_close(holder, 17.0, said.append))
    Holder.silent = []
    asyncio.run(_close(holder, 17.0, said.append))
    assert waited == [17.0, 17.0] and len(said) == 1
    assert said[0].startswith("parties 0, 2 did not say that all is there") and "17 s, stall" in said[0]
