"""A process that forks: nothing random comes twice, in it and in its child. In processes of their own, for a fork
copies threads' locks."""

import ast
import subprocess
import sys

import pytest

# draws in the parent, then in a child and in the parent: prints three lines
SCRIPT = """
import asyncio, os, sys
import numpy as np
{setup}
print(repr(draw()), flush=True)
for _ in range(2):
    if os.fork() == 0:
        try:
            print(repr(draw()), flush=True)
        except AssertionError as error:
            print(repr(str(error)), flush=True)
        os._exit(0)
    os.wait()
print(repr(draw()), flush=True)
"""

FRESH = {
    "a stream of the operating system": """
from dpmpc.mpc.numbers.prg import Prg
prg = Prg.from_os()
draw = lambda: prg.words((4,)).tobytes()
""",
    "one that was reserved": """
from dpmpc.mpc.numbers.prg import Prg
prg = Prg.from_os()
draw = lambda: repr(prg.reserve((4,)))
""",
    "noise in the clear": """
import dpmpc
aggregator = dpmpc.Aggregator(owners=2, dimension=3, clip=1.0, epsilon=1.0, delta=1e-5, releases=4,
                              engine="clear")
draw = lambda: np.asarray(aggregator.mean(np.zeros((2, 3)))).tobytes()
""",
}
for _backend, _parties in (("sharing", 3), ("shamir", 7), ("ot", 2)):
    FRESH[f"shares of {_backend}"] = f"""
from dpmpc.mpc.contract.backend import BACKENDS
entry = BACKENDS["{_backend}"]
dealer = entry.dealer({_parties}, entry.threshold({_parties}))
draw = lambda: [bytes(part) for part in dealer.deal(np.zeros((1, 4), dtype=np.int64))]
"""

REFUSED = {
    "a stream that others know": """
from dpmpc.mpc.numbers.prg import Prg
prg = Prg(b"key", "domain")
draw = lambda: prg.words((4,)).tobytes()
""",
    "a party": """
from dpmpc.mpc.contract.backend import BACKENDS
loop, numbers = asyncio.new_event_loop(), iter(range(100))
async def make():
    return BACKENDS["ot"].holder(0, 2, 1, b"run")
holder = loop.run_until_complete(make())
draw = lambda: str(holder.channel(next(numbers)).ident + os.getpid())
""",
}


def drawn(setup: str) -> list[str]:
    """What is printed: by the parent, two children of it, the parent."""
    run = subprocess.run([sys.executable, "-c", SCRIPT.format(setup=setup)], capture_output=True, text=True, check=True)
    return [str(ast.literal_eval(line)) for line in run.stdout.splitlines()]


@pytest.mark.parametrize("what", FRESH)
def test_nothing_comes_twice(what: str) -> None:
    lines = drawn(FRESH[what])
    assert len(lines) == 4 and len(set(lines)) == 4, lines


@pytest.mark.parametrize("what", REFUSED)
def test_what_others_rely_on_is_not_used_in_a_child(what: str) -> None:
    parent, first, second, again = drawn(REFUSED[what])
    assert first == second and "the process that began it" in first and parent != again


def test_the_test_sees_what_comes_twice() -> None:
    lines = drawn("rng = np.random.default_rng()\ndraw = lambda: rng.bytes(16)\n")
    assert len(set(lines)) == 2
