"""A mesh of 32: all connections come up at once, and every party that is missing is named."""

import asyncio
import re

import pytest

from dpmpc.errors import PeerError
from dpmpc.mpc.parties.mesh import Mesh
from dpmpc.mpc.transport.addresses import bound_socket, endpoint_of
from dpmpc.mpc.transport.dial import TcpLink
from tests.runs import HANG

PARTIES = 32


@pytest.mark.parametrize("missing", [(), (3, 17, 31)])
def test_a_mesh_of_32_comes_up_or_says_who_is_missing(missing: tuple[int, ...]) -> None:
    async def body() -> list[BaseException | None]:
        bound = [bound_socket() for _ in range(PARTIES)]
        where = [endpoint_of(s) for s in bound]
        meshes = [Mesh(i, PARTIES, b"run") for i in range(PARTIES)]
        for i in missing:
            bound[i].close()
        calls = [
            mesh.connect(TcpLink(i, where, bound=bound[i]), seconds=1.0 if missing else HANG)
            for i, mesh in enumerate(meshes)
            if i not in missing
        ]
        try:
            found = await asyncio.gather(*calls, return_exceptions=True)
            if not missing:
                assert all(sorted(mesh.peers) == [j for j in range(PARTIES) if j != i] for i, mesh in enumerate(meshes))
            return found
        finally:
            for mesh in meshes:
                mesh.abandon()
            await asyncio.sleep(0)

    for error in asyncio.run(body()):
        if not missing:
            assert error is None
            continue
        assert isinstance(error, PeerError) and "\n" not in str(error)
        named = {int(number) for number in re.findall(r"(\d+) \(127\.", str(error))}
        assert set(missing) <= named, error  # on a busy machine others may be late as well
