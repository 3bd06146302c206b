"""A few draws of `tests.endurance.system_faults`, and that each of its rules finds what breaks it."""

import errno
import random
from collections.abc import Iterator
from dataclasses import replace

import pytest

from dpmpc.cli.commands import COMMANDS as OF_THE_PROGRAM
from tests.endurance.system_faults import COMMANDS, MACHINES, POSSIBLE, WORDS, Call, Draw, Machine, problems, rounds

pytestmark = pytest.mark.skipif(not POSSIBLE, reason="a compiler for Linux makes what has calls fail")
SAMPLE = ("stats", "stats that are printed alone", "describe", "check", "meet")


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    with Machine(tmp_path_factory.mktemp("machine"), SAMPLE) as machine:
        yield machine


def test_draws_break_no_rule(machine: Machine) -> None:
    rng = random.Random(57)
    for command in rounds(SAMPLE, 20, rng):
        draw = machine.draw(command, rng)
        found = machine.play(draw)
        assert not problems(draw, found, machine.well(command)), (str(draw), found)


EVERYWHERE = (
    *(Draw("", None, machine) for machine in MACHINES if machine != "a plain machine"),
    Draw("", Call("flock", errno.ENOLCK)), Draw("", Call("flock", errno.EOPNOTSUPP, 3)),
    Draw("", Call("fsync", errno.EIO)), Draw("", Call("fsync", errno.EIO, 4)), Draw("", Call("write", errno.ENOSPC)),
    Draw("", Call("scandir", errno.EACCES)),
    Draw("", Call("rename", errno.EIO)), Draw("", Call("mkdir", errno.EROFS)), Draw("", Call("fork", errno.ENOMEM)),
)  # fmt: skip


@pytest.fixture(scope="module")
def every(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    with Machine(tmp_path_factory.mktemp("every")) as machine:
        yield machine


@pytest.mark.slow
@pytest.mark.parametrize("command", WORDS)
def test_every_command_keeps_every_rule_on_every_odd_machine(command: str, every: Machine) -> None:
    """And where a file system has no locks, syncs or names nothing, a disk is full, nothing can be forked. Where a
    command cannot do without, it says so; what needs no disk goes well."""
    assert (every.well(command).code == 0) != (command == "join")
    for one in EVERYWHERE:
        draw = replace(one, command=command)
        found = every.play(draw)
        assert not problems(draw, found, every.well(command)), (str(draw), found)


@pytest.mark.slow
def test_a_fork_that_fails_is_one_line_wherever_processes_start(every: Machine) -> None:
    """Of each fork of a run by parties: that of the starter, and those inside it. Nothing is spent then."""
    command = "stats by parties"
    well = every.well(command)
    assert well.spent == 3 and well.calls["fork"] > 3
    for number in range(1, well.calls["fork"] + 1):
        draw = Draw(command, Call("fork", errno.EAGAIN, number))
        found = every.play(draw)
        assert found.code == 1 and not found.spent and not problems(draw, found, well), (str(draw), found)
        assert "this machine must do what is asked of it; Resource temporarily unavailable" in found.said


@pytest.mark.slow
def test_a_thread_that_does_not_start_is_one_line(every: Machine) -> None:
    """From the first on, and from each in the middle; where a library can do without, the answer is whole."""
    for command in ("train by parties", "stats by parties", "status", "check"):
        well = every.well(command)
        for number in sorted({1, 2, 3, well.calls["thread"] // 2, well.calls["thread"]} - {0}):
            draw = Draw(command, Call("thread", errno.EAGAIN, number))
            found = every.play(draw)
            assert not problems(draw, found, well), (str(draw), found)


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_no_memory_from_any_point_on_is_one_line(command: str, every: Machine) -> None:
    """Every allocation of a large piece fails from some point on, of all that the processes of a command make; then
    from there on of any size. Libraries in C may die of that, which is a loss as by a
    signal. Of a rehearsal, six processes, fewer points."""
    well = every.well(command)
    most, steps = well.calls["memory"], 3 if command in ("rehearse", "train by parties", "stats by parties") else 8
    points = {round(most ** (k / steps)) for k in range(steps + 1)} | {most * k // steps for k in range(1, steps)}
    for number in sorted(point for point in points if 0 < point <= most):
        for kind in ("memory", "all memory"):
            draw = Draw(command, Call(kind, errno.ENOMEM, number))
            found = every.play(draw)
            assert not problems(draw, found, well), (str(draw), found)


def test_calls_are_counted_and_the_drawn_one_fails(machine: Machine) -> None:
    """Those on files of the folder alone: the same command makes the same ones again."""
    well, again = machine.well("check"), machine.play(Draw("check"))
    assert well.calls["open"] and well.calls["open"] == again.calls["open"] and not well.failed
    found = machine.play(Draw("check", Call("open", errno.EACCES, once=True)))
    assert found.failed == 1 and found.code and "Permission denied" in found.said, found
    late = machine.play(Draw("check", Call("open", errno.EACCES, number=well.calls["open"] + 1)))
    assert not late.failed and (late.code, late.out) == (well.code, well.out)


def test_each_rule_finds_what_breaks_it(machine: Machine) -> None:
    draw, well = Draw("stats"), machine.well("stats")
    bad = replace(well, code=1, said="error: one line; it; a way\n", spent=0)
    assert well.spent == 1 and not problems(draw, well, well) and not problems(draw, bad, well)
    broken = {
        "a traceback": replace(bad, said=f"Traceback (most recent call last)\n{bad.said}"),
        "died of signal 11": replace(bad, code=-11),
        "2 lines of an error": replace(bad, said=2 * bad.said),
        "0 lines of an error": replace(bad, said=""),
        "a record's value in what was said": replace(bad, said="error: 61.86234871 is no day; correct it\n"),
        "a record's value in made/r/owners.log": replace(bad, hurt=["made/r/owners.log"]),
        "an error under exit code 0": replace(well, said=bad.said),
        "an output that is not whole, under exit code 0": replace(well, out=well.out[: len(well.out) // 2]),
        "2 releases spent, of 1": replace(well, spent=2),
        "spent, and no way to the answer": replace(bad, spent=1),
    }
    for rule, found in broken.items():
        assert rule in problems(draw, found, well), rule
    full = Draw("stats", machine="a full output")
    assert problems(full, replace(well, out=""), well)
    assert not problems(full, replace(bad, spent=1, kept=well.out), well)


def test_every_command_is_drawn() -> None:
    assert sorted(rounds(tuple(COMMANDS), len(COMMANDS), random.Random(1))) == sorted(COMMANDS)
    assert WORDS.keys() == OF_THE_PROGRAM.keys() and {words[0] for words in COMMANDS.values()} == WORDS.keys()
