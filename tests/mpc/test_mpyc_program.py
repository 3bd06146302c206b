"""Noise inside an MPyC program of three processes: its law, its shares under MPyC's own operators, wrong fields."""

import asyncio
import contextlib
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dpmpc.aggregation.plan.guarantee import promise_of
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.mpc.mpyc.program import ProgramConnection, ProgramSession
from dpmpc.mpyc import epsilon
from dpmpc.noise.goodness import chi_square
from dpmpc.privacy.law import LAWS
from tests.refusals import refuses
from tests.runs import HANG

PROGRAM = Path(__file__).parent / "mpyc_program.py"
TAKEN = "address already in use"
FALSE_ALARM = 1e-10  # of each chi-square


def free_ports(count: int) -> int:
    """The first of so many ports in a row that nobody had on any host a moment ago: MPyC listens on all of them."""
    while True:
        with contextlib.ExitStack() as held:
            first = held.enter_context(socket.socket())
            first.bind(("", 0))
            base = first.getsockname()[1]
            with contextlib.suppress(OSError, OverflowError):
                for k in range(1, count):
                    held.enter_context(socket.socket()).bind(("", base + k))
                return int(base)


def run_program(out: Path, program: Path = PROGRAM) -> "subprocess.CompletedProcess[str]":
    """Once more where somebody took a port meanwhile: MPyC takes numbers of ports, and no bound socket."""
    while True:
        result = subprocess.run(
            [sys.executable, program, str(out), "-M3", "-B", str(free_ports(3)), "--no-log"],
            capture_output=True,
            text=True,
            timeout=HANG,
            check=False,
        )
        if result.returncode == 0 or TAKEN not in result.stderr.lower():
            return result


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What the program opened, and what it said."""
    out = tmp_path_factory.mktemp("program") / "opened.npz"
    result = run_program(out)
    assert result.returncode == 0, result.stderr
    with np.load(out) as values:
        return SimpleNamespace(**values, said=result.stdout)


def _before_free_ones(taken: contextlib.ExitStack) -> int:
    """A port that is listened on from now on, and before two that nobody has: a stranger's listener there would answer
    a party and never speak."""
    while True:
        with contextlib.ExitStack() as attempt, contextlib.suppress(OSError, OverflowError):
            other = socket.socket()
            attempt.enter_context(other)
            other.bind(("", 0))
            other.listen()
            port = int(other.getsockname()[1])
            for k in (1, 2):
                with socket.socket() as free:
                    free.bind(("", port + k))
            taken.push(attempt.pop_all())
            return port


def test_a_port_that_is_taken_meanwhile_is_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first try is at a port that somebody listens on; without another try it fails with the words looked for."""
    program = tmp_path / "meets.py"
    program.write_text("from mpyc.runtime import mpc\nmpc.run(mpc.start())\nmpc.run(mpc.shutdown())\n")
    with contextlib.ExitStack() as taken:
        given = iter([_before_free_ones(taken)])
        free = free_ports
        monkeypatch.setitem(globals(), "free_ports", lambda count: next(given, None) or free(count))
        result = run_program(tmp_path / "opened.npz", program)
    assert result.returncode == 0 and next(given, None) is None, result.stderr


@pytest.mark.parametrize(("name", "law", "scale"), [("field", "gaussian", 5000.0), ("whole", "laplace", 4200.0),
                                                    ("fixed", "gaussian", 75.0 * 2**6)])  # fmt: skip
def test_opened_shares_have_the_exact_law_of_the_clear_engine(opened: Any, name: str, law: str, scale: float) -> None:
    values = getattr(opened, name)
    assert values.shape == (3000,) and len(np.unique(values)) > 2000
    assert chi_square(values, LAWS[law].exact(scale, True)).p_value > FALSE_ALARM
    assert chi_square(values, LAWS[law].exact(1.3 * scale, True)).p_value < FALSE_ALARM  # it would see another scale


def test_the_shares_are_the_programs_own(opened: Any) -> None:
    """Multiplied by MPyC, which reshares, and opened once more; a second vector of noise is another one."""
    assert np.array_equal(opened.doubled, 3 * opened.again)
    assert opened.shape.tolist() == [1000, 3]
    assert not np.array_equal(opened.again, opened.field[:50])


def test_another_field_is_refused(opened: Any) -> None:
    lines = opened.said.strip().splitlines()
    assert len(lines) == 2 and "this type's is of 101" in lines[0]
    assert all(line.startswith("noise lives in the field of p = 2^61 - 1") for line in lines)


def test_a_scale_comes_to_what_a_plan_of_that_noise_promises() -> None:
    """By another route: the plan of an aggregator with this scale and this sensitivity on the same grid."""
    sectype = SimpleNamespace(field=SimpleNamespace(modulus=2**61 - 1), frac_length=16)
    plan = Plan.create(owners=2, dimension=10, clip=1.0, scale=1.5, delta=1e-5, releases=4, grid_bits=16)
    derived = plan.derived
    scale, sensitivity = derived.mechanism.scale * 2.0**-16, derived.sensitivity_steps * 2.0**-16
    settings: dict[str, Any] = {"sensitivity": sensitivity, "delta": 1e-5, "parties": 3, "threshold": 1, "releases": 4}
    found = epsilon(sectype, 10, "gaussian", scale, **settings)
    assert found == pytest.approx(promise_of(plan).accounted, rel=1e-9)


def test_a_program_without_prss_is_refused() -> None:
    async def make() -> None:
        options = SimpleNamespace(no_prss=True)
        ProgramSession(SimpleNamespace(pid=0, parties=[0, 1, 2], threshold=1, options=options), bytes(8))

    with refuses("together"):
        asyncio.run(make())


def test_labels_are_of_the_counter_and_keep_apart() -> None:
    """No label of one call is one of another's; early and late messages both arrive."""

    class Protocol:
        def __init__(self) -> None:
            self.buffers: dict[int, Any] = {}

        def send(self, label: int, payload: bytes) -> None:
            self.buffers[label] = payload

        def receive(self, label: int) -> Any:
            if label not in self.buffers:
                self.buffers[label] = asyncio.get_running_loop().create_future()
            return self.buffers[label]

    async def talk() -> None:
        protocol = Protocol()
        one, two = (ProgramConnection(protocol, 1, bytes([k]) * 8) for k in (1, 2))
        for k in range(20):
            one.send(k, b"one")
            two.send(k << 32, b"two")
        assert len(protocol.buffers) == 40 and max(map(abs, protocol.buffers)) < 1 << 63
        assert await one.receive(3) == b"one" and await two.receive(3 << 32) == b"two"
        late = one.receive(99)
        (waiting,) = [value for value in protocol.buffers.values() if isinstance(value, asyncio.Future)]
        waiting.set_result(b"late")
        assert await late == b"late" and one.bytes_received == 2 * 12 + 3 + 4 and two.frames_sent == 20

    asyncio.run(talk())
