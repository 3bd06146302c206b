"""Commands of `dpmpc` as processes that start in a tenth of a second: a server forks them, which has imported what they
need. As many as a run has, and start again, would otherwise spend most of a small machine on imports."""

import multiprocessing
import os
import runpy
import sys
from collections.abc import Sequence
from multiprocessing.context import ForkServerContext
from pathlib import Path

PRELOAD = ["dpmpc.consortium.start", "dpmpc.aggregation.party.party", "dpmpc.cli.train", "dpmpc.mpc.replicated.backend",
           "dpmpc.mpc.shamir.backend", "dpmpc.privacy.gaussian_law"]  # fmt: skip


def server(*preload: str) -> ForkServerContext:
    """What starts processes; `preload`: modules that the server imports besides."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*preload, *PRELOAD])
    return context


def dpmpc(arguments: Sequence[str], output: Path) -> None:
    """The command `dpmpc` with these arguments, in this process; what it says is added to `output`."""
    descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    os.umask(0o077)
    sys.argv = ["dpmpc", *arguments]
    runpy.run_module("dpmpc.cli.main", run_name="__main__")
