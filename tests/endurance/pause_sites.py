"""Stops one process of a run over several machines at one point, lets it go on, and shows what all of them say. Or
kills it there, and starts it again, at once or when all others have ended.

    python -m tests.endurance.pause_sites                       # all points, below the stall and beyond it
    python -m tests.endurance.pause_sites --victim owner1 --point "sent to one party"

Three parties and three owners, or three sites that are both, as processes with TLS on loopback. The one that is stopped
(SIGSTOP) stops itself, in the middle of what it does: while processes meet, between a survey and the first release, in
the middle of an upload, before and after an opening, at the end. Below the stall everybody ends well.
Beyond it the others name the one that was stopped, and it says that it was away. The same commands carry the run on,
with no release spent twice; a survey that was spent and not opened stays so. What does not hold is shown with `!`.
"""

import argparse
import asyncio
import itertools
import os
import re
import signal
import tempfile
import threading
import time
from collections.abc import Sequence
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any
from unittest.mock import patch

from dpmpc.aggregation.owner.client import OwnerClient
from dpmpc.aggregation.party.owner_gate import OwnerGate
from dpmpc.aggregation.party.release import ReleaseSteps
from dpmpc.consortium.placement import Placement
from dpmpc.consortium.plan_alone import plan_only
from dpmpc.mpc.parties.mesh import Mesh
from dpmpc.mpc.transport.channels import block_label
from dpmpc.mpc.transport.credentials import make_credentials
from dpmpc.planning.request import Request
from dpmpc.privacy.ledgers import merge, read_ledgers
from dpmpc.run import stages
from tests.endurance import forked
from tests.made_up_sites import EACH, OWNERS, draft, files

STALL = 4.0
SHORT, LONG = 2.0, 9.0  # seconds: below the stall, and beyond
HANG = 240.0
PARTY_POINTS = ("meeting", "after inputs", "after ledger", "share sent", "published", "all published", "ending")
OWNER_POINTS = ("meeting", "survey settled", "sent to one party", "sent to all", "opened", "ending")


class Stop:
    """Stops this process, once, where it comes to a point for the `times`-th time."""

    def __init__(self, point: str, times: int, folder: Path, number: int) -> None:
        self.point, self.left, self.folder, self.number = point, times, folder, number

    def reached(self, point: str) -> None:
        if point == self.point:
            self.left -= 1
            if self.left == 0:
                (self.folder / "stopped").write_text(str(os.getpid()))
                os.kill(os.getpid(), self.number)

    def begin(self) -> None:
        """From now on."""
        stop = self

        def after(kind: Any, name: str, point: str, before: bool = False) -> None:
            original = getattr(kind, name)

            async def waiting(*arguments: Any, **more: Any) -> Any:
                if before:
                    stop.reached(point)
                result = await original(*arguments, **more)
                if not before:
                    stop.reached(point)
                return result

            def at_once(*arguments: Any, **more: Any) -> Any:
                result = original(*arguments, **more)
                stop.reached(point)
                return result

            patch.object(kind, name, waiting if asyncio.iscoroutinefunction(original) else at_once).start()

        after(Mesh, "connect", "meeting")
        after(OwnerClient, "connect", "meeting")
        after(stages, "after_first", "survey settled")
        after(ReleaseSteps, "inputs", "after inputs")
        after(ReleaseSteps, "spend", "after ledger")
        after(ReleaseSteps, "publish", "published")
        after(ReleaseSteps, "end", "all published")
        after(OwnerGate, "linger", "ending", before=True)
        after(OwnerClient, "opened", "opened")
        after(OwnerClient, "finish", "ending", before=True)
        self._in_the_middle()

    def _in_the_middle(self) -> None:
        stop, send, opening = self, OwnerClient.send, ReleaseSteps.open

        async def sending(self: OwnerClient, release: int, block: int, payloads: Sequence[Any]) -> None:
            if stop.point == "sent to one party" and stop.left == 1:
                first = min(self.peers)
                self.peers[first].send(block_label(release, block), payloads[first])
                rest, self.peers = self.peers, {i: peer for i, peer in self.peers.items() if i != first}
                stop.reached("sent to one party")
                await send(self, release, block, payloads)
                self.peers = rest
                return
            stop.reached("sent to one party")
            await send(self, release, block, payloads)
            stop.reached("sent to all")

        async def opens(self: ReleaseSteps, number: int, share: Any) -> Any:
            task = asyncio.ensure_future(opening(self, number, share))
            await asyncio.sleep(0)
            stop.reached("share sent")
            return await task

        patch.object(OwnerClient, "send", sending).start()
        patch.object(ReleaseSteps, "open", opens).start()


def live(arguments: Sequence[str], output: Path, point: str | None, times: int, number: int) -> None:
    """The command `dpmpc`, which sends itself that signal at that point."""
    os.umask(0o077)
    if point is not None:
        Stop(point, times, output.parent, number).begin()
    forked.dpmpc(arguments, output)


def planned(folder: Path, **settings: Any) -> Path:
    """The plan's file, of a table with columns that are surveyed."""
    folder.mkdir(parents=True)
    placement = Placement(out=folder / "plan")
    draft().write(folder / "schema.json")
    plan_only(Request(schema=str(folder / "schema.json"), epsilon=1.0, delta=1e-5, iterations=3,
                      owner_sizes=(EACH,) * OWNERS, **settings), placement)  # fmt: skip
    return folder / "plan" / "plan.json"


class Run:
    """The processes of one run."""

    def __init__(self, folder: Path, host: str, both: bool, stall: float, **settings: Any) -> None:
        self.folder, self.host, self.both, self.stall = folder, host, both, stall
        role = {"role": "both", "parties": 3} if both else {}
        self.plan = planned(folder / "made", **role, **settings)
        self.records = files(folder)
        self.names = [*"012"] if both else [*"012", *(f"owner{j}" for j in range(OWNERS))]
        keys = [*(f"party{i}" for i in range(3)), *(f"owner{j}" for j in range(OWNERS))]
        make_credentials(folder / "keys", keys)
        self._context = forked.server("tests.endurance.pause_sites")

    def command(self, name: str) -> list[str]:
        """The same each time."""
        where = [part for i in range(3) for part in ("-P", f"{self.host}:{11_365 + i}")]
        records: list[str] = []
        if self.both or name.startswith("owner"):
            j = int(name.removeprefix("owner"))
            records = ["--csv", str(self.records[j]), "--no-evaluate"]
        return [
            *("train", "--plan", str(self.plan), "-I", name, "--tls", str(self.folder / "keys"), *where, *records),
            *(("--role", "both") if self.both else ()),
            *("--stall", str(self.stall), "--wait", str(12 * self.stall), "--threads", "1"),
            *("--out", str(self.folder / name)),
        ]

    def _started(self, name: str, point: str | None, times: int, number: int) -> BaseProcess:
        output = self.folder / f"{name}.txt"
        process = self._context.Process(target=live, args=(self.command(name), output, point, times, number))
        process.start()
        return process

    def play(
        self, victim: str = "", point: str | None = None, times: int = 1, seconds: float = 0.0,
        number: int = signal.SIGSTOP,
    ) -> dict[str, int]:  # fmt: skip
        """The exit codes; what each process said is in its folder's `.txt`. A victim that was killed is started again
        after so many seconds."""
        running = {name: self._started(name, point if name == victim else None, times, number) for name in self.names}
        end, stopped = time.monotonic() + HANG, 0.0
        mark = self.folder / "stopped"
        try:
            while any(each.exitcode is None for each in running.values()):
                now = time.monotonic()
                assert now < end, "it hangs"
                if not stopped and victim and mark.exists() and mark.read_text():
                    stopped = now
                if stopped and now - stopped >= seconds:
                    stopped = float("inf")
                    if number == signal.SIGSTOP:
                        os.kill(int(mark.read_text()), signal.SIGCONT)
                    else:
                        running[victim].join()
                        running[victim] = self._started(victim, None, 1, number)
                time.sleep(0.05)
        finally:
            for each in running.values():
                if each.exitcode is None:
                    each.kill()
                each.join()
        assert not victim or mark.exists(), (
            f"{victim} never came to {point}: {[self.last(each) for each in self.names]}"
        )
        mark.unlink(missing_ok=True)
        return {name: int(each.exitcode or 0) for name, each in running.items()}

    def last(self, name: str) -> str:
        """The last line that it said."""
        return ([*filter(None, (self.folder / f"{name}.txt").read_text().splitlines())] or [""])[-1]


def host_of(number: int) -> str:
    """A loopback address of this process's own."""
    return f"127.{141 + number % 50}.{1 + os.getpid() // 250 % 250}.{1 + os.getpid() % 250}"


HOWS = {"below": (SHORT, signal.SIGSTOP), "beyond": (LONG, signal.SIGSTOP), "killed": (0.0, signal.SIGKILL),
        "killed, late": (HANG, signal.SIGKILL)}  # fmt: skip


def scenario(victim: str, point: str, how: str, stall: float, number: int, times: int = 1) -> list[str]:
    """What one process's pause or death led to: lines of names, exit codes and last words; "!" marks what must not
    be."""
    both = not victim.startswith(("owner", "party"))
    with tempfile.TemporaryDirectory() as folder:
        run = Run(Path(folder) / "run", host_of(number), both, stall)
        name = victim.removeprefix("party")
        seconds, sent = HOWS[how]
        codes = run.play(name, point, times, seconds / STALL * stall, sent)
        lines = [f"== {victim}, {point} ({times}), {how}: {codes}"]
        for each in run.names:
            text = (run.folder / f"{each}.txt").read_text()
            waits = re.findall(r".*waiting for.*", text)
            lines += [f"   {each}: {codes[each]} {run.last(each)}", *(f"        {line.strip()}" for line in waits)]
        if any(codes.values()):
            again = run.play()
            lines += [f"   again: {again}"]
            lines += [f"!  {each}: {run.last(each)}" for each in run.names if again[each]]
        books = [merge(read_ledgers(run.folder / each)) for each in run.names]
        spent = {each: len({(e.run, e.release) for e in book}) for each, book in zip(run.names, books, strict=True)}
        twice = [each for each, book in zip(run.names, books, strict=True) if len(book) != spent[each]]
        lines += [f"   spent {spent}" + (f"! twice {twice}" if twice else "")]
    return lines


def all_scenarios() -> list[tuple[str, str, int]]:
    """(victim, point, times)."""
    found = [(victim, point, 1) for victim, points in
             (("owner1", OWNER_POINTS), ("party1", PARTY_POINTS)) for point in points]  # fmt: skip
    found += [("owner1", "sent to one party", 3), ("party1", "share sent", 4)]
    found += [("1", point, 1) for point in ("meeting", "sent to one party", "share sent", "ending")]
    return found


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--victim")
    parser.add_argument("--point")
    parser.add_argument("--stall", type=float, default=STALL)
    parser.add_argument("--how", choices=HOWS, nargs="*", default=["below", "beyond"])
    parser.add_argument("--jobs", type=int, default=1)
    asked = parser.parse_args()
    chosen = [
        (*each, how)
        for each, how in itertools.product(all_scenarios(), asked.how)
        if asked.victim in (None, each[0]) and asked.point in (None, each[1])
    ]  # fmt: skip
    turn, lock = iter(enumerate(chosen)), threading.Lock()

    def work() -> None:
        while True:
            with lock:
                number, each = next(turn, (0, None))
            if each is None:
                return
            victim, point, times, how = each
            try:
                lines = scenario(victim, point, how, asked.stall, number, times)
            except AssertionError as error:
                lines = [f"!! {each}: {error}"]
            with lock:
                print("\n".join(lines), flush=True)

    threads = [threading.Thread(target=work) for _ in range(asked.jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
