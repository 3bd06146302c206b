"""A child process of a run that kills itself at one point of one release. Used by kill_test.py in place of
dpmpc.runs.worker.

KILL = "party:point:release" in the environment says who dies where. Before dying at or after an opening, the process
notes in its witness file what it had sent and learned by then: what was really released, told by nobody's ledger.
"""

import asyncio
import hashlib
import os
import signal
import sys
from pathlib import Path
from typing import Any

import dpmpc.aggregation.release
import dpmpc.privacy.ledger
import dpmpc.runs.worker
from dpmpc.aggregation.release import OPENING_CHANNEL, Tools
from dpmpc.mpc.field import Words
from dpmpc.mpc.session import Channel, Session
from dpmpc.noise.pool import Pool

POINTS = (
    "noise ahead",  # while noise is made
    "before inputs",
    "after inputs",
    "after noise",
    "after add",
    "ledger line torn",  # half of it is written
    "ledger line not synced",
    "after ledger",
    "share sent",  # the others can open, this party never does
    "opened, not kept",
    "kept, not published",
    "published",
)


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Witness:
    """What this party sent and learned, outside all that the product writes."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def note(self, kind: str, release: int, values: Words | None = None) -> None:
        digest = "-" if values is None else hashlib.sha256(values.astype("<u8").tobytes()).hexdigest()
        os.write(self._fd, f"{kind} {release} {digest}\n".encode())


def mortal(victim: int, point: str, release: int, witness_directory: Path) -> None:
    """Makes this process note what it releases, and die at `point` of `release` if it is the victim."""
    witness: dict[int, Witness] = {}

    def reached(party: int, number: int, here: str) -> None:
        if (party, number, here) == (victim, release, point):
            die()

    def witness_of(party: int) -> Witness:
        if party not in witness:
            witness[party] = Witness(witness_directory / f"witness_{party}.txt")
        return witness[party]

    # around every step of a release, by its tool
    def around(name: str, before: str | None, after: str | None) -> None:
        original = getattr(Tools, name)

        async def waiting(self: Tools, number: int, *rest: Any) -> Any:
            if before:
                reached(self.session.party, number, before)
            result = await original(self, number, *rest)
            if after:
                reached(self.session.party, number, after)
            return result

        def at_once(self: Tools, number: int, *rest: Any) -> Any:
            result = original(self, number, *rest)
            if after:
                reached(self.session.party, number, after)
            return result

        setattr(Tools, name, waiting if asyncio.iscoroutinefunction(original) else at_once)

    around("inputs", "before inputs", "after inputs")
    around("noise", None, "after noise")
    around("add", None, "after add")
    around("open", None, "kept, not published")
    around("publish", None, "published")

    spend = Tools.spend

    def mortal_spend(self: Tools, release: int) -> None:
        if (self.session.party, number) == (victim, release):
            if point == "ledger line torn":
                write = os.write

                def half(fd: int, data: Any) -> int:
                    write(fd, data[: len(data) // 2])
                    die()
                    raise AssertionError

                dpmpc.privacy.ledger.os.write = half  # type: ignore[attr-defined]
            if point == "ledger line not synced":
                dpmpc.privacy.ledger.os.fsync = lambda fd: die()  # type: ignore[attr-defined]
        spend(self, number)
        reached(self.session.party, number, "after ledger")

    Tools.spend = mortal_spend  # type: ignore[method-assign, assignment]

    opening = Session.open

    async def mortal_open(self: Session, shares: Words, channel: Channel) -> Words:
        number = channel.ident - OPENING_CHANNEL
        witness_of(self.party).note("sent", number)
        task = asyncio.ensure_future(opening(self, shares, channel))
        await asyncio.sleep(0)  # the task runs until it waits for the others: its own share has left
        reached(self.party, number, "share sent")
        opened = await task
        witness_of(self.party).note("learned", number, opened)
        reached(self.party, number, "opened, not kept")
        return opened

    Session.open = mortal_open  # type: ignore[method-assign, assignment]

    fill = Pool.fill

    async def mortal_fill(self: Pool) -> None:
        if point == "noise ahead" and self.session.party == victim:
            asyncio.get_running_loop().call_later(0.005, die)
            await asyncio.sleep(0.01)
        await fill(self)

    Pool.fill = mortal_fill  # type: ignore[method-assign, assignment]


if __name__ == "__main__":
    party, where, number = os.environ["KILL"].split(":")
    if sys.argv[1] == "party":
        mortal(int(party), where, int(number), Path(os.environ["WITNESS"]))
    dpmpc.runs.worker.main()
