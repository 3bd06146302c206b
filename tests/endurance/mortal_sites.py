"""A process of a run over several machines that tells a witness what it releases, and kills itself where it is told to.

Used by kill_sites.py. The witness file is outside of all that the product writes: every share that left, with the
attempt and the owners in it, and every vector that was learned.
"""

import asyncio
import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn
from unittest.mock import patch

import dpmpc.processes.durable
from dpmpc.aggregation.owner.client import OwnerClient
from dpmpc.aggregation.party.release import ReleaseSteps
from dpmpc.aggregation.plan.grid import Ints
from dpmpc.aggregation.wire.transcript import OpenedVectors, digest
from dpmpc.mpc.transport.channels import block_label
from dpmpc.privacy.ledger import Ledger
from tests.endurance import forked
from tests.endurance.mortal import _Os

PARTY_POINTS = (
    "before inputs",
    "after inputs",
    "after noise",
    "ledger line torn",
    "ledger line not synced",
    "after ledger",
    "share sent",  # the others can open, this party never does
    "opened, not kept",
    "published",
    "over",
)
OWNER_POINTS = ("ledger written", "sent to one party", "sent to all", "history kept", "over")


def live(
    name: str, arguments: Sequence[str], witness: Path, output: Path, point: str | None, times: int, certain: str
) -> None:
    """The command `dpmpc` with these arguments, as process `name`, which dies when it comes to `point` for the
    `times`-th time. `certain`: the file that says that it did."""
    os.umask(0o077)
    _Mortal(name, witness, point, times, Path(certain)).begin()
    forked.dpmpc(arguments, output)


class _Mortal:
    def __init__(self, name: str, witness: Path, point: str | None, times: int, certain: Path) -> None:
        self.name, self.witness, self.point, self.left, self.certain = name, witness, point, times, certain

    def note(self, *words: object) -> None:
        with self.witness.open("ab", buffering=0) as file:
            file.write((" ".join(map(str, words)) + "\n").encode())

    def reached(self, point: str) -> None:
        if point == self.point:
            self.left -= 1
            if self.left <= 0:
                self.die()

    def die(self) -> NoReturn:
        self.certain.touch()
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("unreachable")

    def begin(self) -> None:
        """From now on."""
        if self.name.startswith("party"):
            self._party()
        else:
            self._owner()

    def _party(self) -> None:
        mortal = self

        def around(name: str, before: str, after: str) -> None:
            original = getattr(ReleaseSteps, name)

            async def waiting(self: ReleaseSteps, *rest: Any) -> Any:
                mortal.reached(before)
                result = await original(self, *rest)
                mortal.reached(after)
                return result

            def at_once(self: ReleaseSteps, *rest: Any) -> Any:
                result = original(self, *rest)
                mortal.reached(after)
                return result

            patch.object(ReleaseSteps, name, waiting if asyncio.iscoroutinefunction(original) else at_once).start()

        around("inputs", "before inputs", "after inputs")
        around("noise", "", "after noise")
        around("publish", "", "published")
        around("end", "", "over")
        spend, opening, append = ReleaseSteps.spend, ReleaseSteps.open, Ledger.append

        def mortal_append(self: Ledger, entry: Any) -> str:
            if mortal.point in ("ledger line torn", "ledger line not synced"):
                mortal.left -= 1
                if mortal.left <= 0 and mortal.point == "ledger line torn":
                    patch.object(dpmpc.processes.durable, "os", _Os(write=half)).start()
                elif mortal.left <= 0:
                    patch.object(dpmpc.processes.durable, "os", _Os(fsync=lambda fd: mortal.die())).start()
            return append(self, entry)

        def half(fd: int, data: bytes) -> NoReturn:
            os.write(fd, data[: len(data) // 2])
            mortal.die()

        def mortal_spend(self: ReleaseSteps, number: int) -> None:
            spend(self, number)
            mortal.reached("after ledger")

        async def mortal_open(self: ReleaseSteps, number: int, share: Any) -> Ints:
            owners = self._present.get(number)
            who = "all" if owners is None else ",".join(map(str, owners))
            mortal.note("sent", self.attempt.number, number, who)
            task = asyncio.ensure_future(opening(self, number, share))
            await asyncio.sleep(0)  # the task runs until it waits for the others: its own share has left
            mortal.reached("share sent")
            opened = await task
            mortal.note("learned", self.attempt.number, number, digest(opened))
            return opened

        keep = OpenedVectors.append

        def mortal_keep(self: OpenedVectors, release: int, values: Ints) -> None:
            mortal.reached("opened, not kept")
            keep(self, release, values)

        patch.object(Ledger, "append", mortal_append).start()
        patch.object(ReleaseSteps, "spend", mortal_spend).start()
        patch.object(ReleaseSteps, "open", mortal_open).start()
        patch.object(OpenedVectors, "append", mortal_keep).start()

    def _owner(self) -> None:
        mortal, send, append = self, OwnerClient.send, Ledger.append
        finish = OwnerClient.finish

        async def mortal_send(self: OwnerClient, release: int, block: int, payloads: Sequence[Any]) -> None:
            if mortal.point == "sent to one party" and mortal.left <= 1:
                next(iter(self.peers.values())).send(block_label(release, block), payloads[min(self.peers)])
                await asyncio.sleep(0.01)
            mortal.reached("sent to one party")
            await send(self, release, block, payloads)
            mortal.reached("sent to all")

        def mortal_append(self: Ledger, entry: Any) -> str:
            line = append(self, entry)
            mortal.reached("ledger written")
            return line

        async def mortal_finish(self: OwnerClient) -> None:
            mortal.reached("over")
            await finish(self)

        opened = OwnerClient.opened

        async def mortal_opened(self: OwnerClient, release: int) -> Any:
            result = await opened(self, release)
            mortal.reached("history kept")
            return result

        patch.object(OwnerClient, "send", mortal_send).start()
        patch.object(OwnerClient, "opened", mortal_opened).start()
        patch.object(OwnerClient, "finish", mortal_finish).start()
        patch.object(Ledger, "append", mortal_append).start()
