"""What noise will take is said before it is made, and what no machine like this one can do is refused there."""

import os
import signal
import subprocess
import sys
from typing import Any

import pytest
from click.testing import CliRunner
from fieldnoise import discrete

from dpmpc.aggregation.plan.plan import Plan
from dpmpc.cli.sample import command
from dpmpc.errors import UsageError
from dpmpc.mpc.contract.backend import BACKENDS
from dpmpc.mpc.replicated import backend as sharing
from dpmpc.mpc.replicated.pace import bytes_of, hopeless, replicated_pace, seconds_of
from dpmpc.noise import forecast, sampling
from dpmpc.processes.room import free_memory
from dpmpc.processes.together import child_has_ended, signal_child
from dpmpc.run import forecast as owners
from tests.refusals import refuses

GB = 10**9


@pytest.fixture(autouse=True)
def nothing_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """24 GB are free, and whoever starts a party fails."""
    monkeypatch.setattr(forecast, "free_memory", lambda: 24 * GB)

    def started(*_: Any, **__: Any) -> None:
        raise AssertionError("parties were started")

    monkeypatch.setattr(sampling, "run_parties", started)


def refused(*arguments: object) -> str:
    with pytest.raises(UsageError) as caught:
        words = ["--law", "gaussian", "--scale", "1000", *map(str, arguments)]
        CliRunner().invoke(command, words, standalone_mode=False, catch_exceptions=False)
    text = str(caught.value)
    assert "\n" not in text and text.count(";") >= 2
    return text


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("-M", 9, "--backend", "sharing", "--count", 10**8), ("of memory a party", "24 GB are free", "shamir")),
        (("-M", 11, "--backend", "sharing", "--count", 10**5), ("11 parties, 100,000 samples: about", "shamir")),
        (("-M", 3, "--count", 10**10), ("240 GB of memory a party", "smaller count")),
        (("-M", 200), ("a sample would take", "e+", "s of a core", "bytes at each party", "mend parties")),
        (("-M", 200, "--backend", "sharing"), ("a sample would take", "bytes at each party", "smaller threshold")),
    ],
)  # fmt: skip
def test_what_cannot_work_is_refused_with_what_it_would_take(
    arguments: tuple[object, ...], says: tuple[str, ...]
) -> None:
    text = refused(*arguments)
    assert all(part in text for part in says), text


def test_what_takes_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forecast, "free_memory", lambda: 10**15)
    text = refused("-M", 9, "--backend", "sharing", "--count", 10**9)
    assert text.startswith("noise must be made within 3.6e+03 s; 9 parties, 1,000,000,000 samples: about ")
    assert " hours and " in text and "use backend=shamir" in text


def test_what_is_slow_is_said_before_it_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []

    def started(*_: Any, **settings: Any) -> None:
        assert said and settings["seconds"] > 600
        raise InterruptedError

    monkeypatch.setattr(sampling, "run_parties", started)
    with pytest.raises(InterruptedError):
        sampling.sample("gaussian", 1000.0, 1000, parties=7, threshold=3, backend="sharing", say=said.append)
    assert len(said) == 1 and said[0].startswith("making noise: 7 parties, 1,000 samples: about ")
    assert said[0].endswith(" exchanges")


def test_a_run_that_does_not_fit_is_refused_before_it_starts() -> None:
    def plan(**asked: Any) -> Plan:
        return Plan.create(owners=2, dimension=100, clip=1.0, delta=1e-5, releases=1000, **asked)

    owners.check_possible(plan(parties=3), 1000)
    owners.check_possible(plan(parties=9, backend="shamir"), 1000)
    owners.check_possible(plan(parties=9, backend="sharing"), 0)  # all is released already
    with refuses("memory", 9, "100,000", "backend=shamir", setting="backend"):
        owners.check_possible(plan(parties=9, backend="sharing"), 1000)


@pytest.mark.slow
def test_gates_of_many_parties_are_nearly_those_that_are_counted() -> None:
    """9 parties: their ANDs are guessed from 3 and 7; counting them is another route."""
    sampler = discrete("gaussian", 700.0)
    counted = BACKENDS["sharing"].count_noise(sampler, 1, 9, 4).sample["ands"]
    guessed = sharing._gates(sampler, 9, 4)
    assert guessed.ands == pytest.approx(counted, rel=0.02)
    program = sharing.programs_of(sampler, 1, 9, 4)[0]
    assert guessed.slots == pytest.approx(program.slots, rel=0.2)
    wires = 8 * 768 * program.slots * 70  # 70 parts of 768 words
    assert wires < bytes_of(guessed, 768, 9, 4) * 1.2 < 1.5 * wires


def test_time_grows_with_gates_words_and_parts() -> None:
    sampler = discrete("gaussian", 700.0)
    gates = sharing._gates(sampler, 5, 2)
    assert seconds_of(gates, 20, 5, 2) == pytest.approx(2 * seconds_of(gates, 10, 5, 2))
    pace = replicated_pace()
    assert all(0 < value < 1e-3 for value in (pace.product, pace.linear, pace.mask))
    words = 19_208  # products of parts of an AND at n = 11
    least = sharing._gates(sampler, 11, 5).ands * 10 * words * pace.product
    assert least < seconds_of(sharing._gates(sampler, 11, 5), 10, 11, 5) < 20 * least
    assert hopeless(3000, 1499).count("e+") == 2  # beyond what a double holds


def test_no_more_is_free_than_there_is() -> None:
    assert 0 < free_memory() <= os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def test_the_exit_of_a_child_that_has_ended_is_left_for_who_waits_for_it() -> None:
    """Else asyncio complains of an unknown child."""
    child = subprocess.Popen([sys.executable, "-c", "raise SystemExit(3)"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert child_has_ended(child.pid)
    signal_child(child.pid, signal.SIGKILL)
    assert os.waitstatus_to_exitcode(os.waitpid(child.pid, 0)[1]) == 3
    signal_child(child.pid, signal.SIGKILL)  # and where somebody has taken it
    child.returncode = 3
    living = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    with living:
        assert not child_has_ended(living.pid)
        signal_child(living.pid, signal.SIGKILL)
        assert living.wait() == -signal.SIGKILL
