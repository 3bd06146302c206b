"""Stops one of two servers for some seconds in mid-message, again and again, and sees the run go on each time.

    python -m tests.endurance.pause_server --seconds 25 --stall 60

The whole product runs: two servers over TCP, noise inside MPC in messages of megabytes, both owners. A stopped process
keeps its connections and reads nothing, so what its peer sends piles up; kernels give up by default after 12 s or so,
and sockets whose time-outs follow `stall` do not. The run must end well, with every release opened once.
"""

import argparse
import os
import signal
import tempfile
import time
from pathlib import Path

from tests.runs import children_of, errors_of, opened, rows, started, wait_until

RELEASES, DIMENSION = 4, 4000  # noise of one release: some ten megabytes each way


def paused(seconds: float, stall: float, out: Path) -> int:
    """How many releases a run opened whose servers were stopped in turn, each for so long. Errors: AssertionError for
    one that did not end well."""
    arguments: list[str | Path | float] = [
        "--data",
        "synthetic",
        "--max-rows",
        60,
        "--dimension",
        DIMENSION,
        "--owners",
        2,
        "--epsilon",
        2,
    ]
    arguments += ["--delta", 1e-4, "-M", 2, "--no-pool", "--iterations", RELEASES, "--no-evaluate", "--stall", stall]
    with started("train", *arguments, "--out", out) as process:
        for victim in (0, 1):
            wait_until(lambda victim=victim: rows(out) > victim)  # type: ignore[misc]
            pid = children_of(process.pid)[victim]
            os.kill(pid, signal.SIGSTOP)
            time.sleep(seconds)
            os.kill(pid, signal.SIGCONT)
        said = errors_of(process)
        assert process.returncode == 0, said
    return len(opened(out))


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=25.0)
    parser.add_argument("--stall", type=float, default=60.0)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = paused(asked.seconds, asked.stall, Path(folder) / "run")
    assert found == RELEASES, f"{found} of {RELEASES} releases were opened"
    print(f"both servers were stopped for {asked.seconds:g} s, one after the other; all {found} releases were opened")


if __name__ == "__main__":
    main()
