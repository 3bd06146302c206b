"""Every command on machines that refuse something: one line each, no traceback, and nothing spent that cannot be told.

Every command meets every one of some faults; what is drawn at random is `tests.endurance.system_faults`, which plays
both.
"""

import errno
from collections.abc import Iterator

import pytest

from dpmpc.cli.main import COMMANDS
from tests.endurance.system_faults import MACHINES, POSSIBLE, WORDS, Call, Draw, Machine, problems

pytestmark = pytest.mark.skipif(not POSSIBLE, reason="a compiler for Linux makes what has calls fail")
FAULTS = {
    "a file system without flock": Call("flock", errno.ENOLCK),
    "a file system whose locks end": Call("flock", errno.EOPNOTSUPP, 3),
    "a disk that fails": Call("fsync", errno.EIO),
    "a disk that fails later": Call("fsync", errno.EIO, 4),
    "a full disk": Call("write", errno.ENOSPC),
    "no rename": Call("rename", errno.EIO),
    "a folder that is read-only": Call("mkdir", errno.EROFS),
}


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    with Machine(tmp_path_factory.mktemp("machine"), list(WORDS)) as machine:
        yield machine


def test_every_command_is_played() -> None:
    assert WORDS.keys() == COMMANDS.keys()


@pytest.mark.slow
@pytest.mark.parametrize("command", WORDS)
def test_what_a_machine_refuses_is_one_line_and_nothing_is_spent_for_nothing(command: str, machine: Machine) -> None:
    well = machine.well(command)
    assert (well.code == 0) != (command == "join"), well
    draws = [Draw(command, machine=name) for name in MACHINES] + [Draw(command, call) for call in FAULTS.values()]
    for draw in draws:
        found = machine.play(draw)
        assert not problems(draw, found, well), (str(draw), found)
