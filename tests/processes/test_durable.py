"""A disk that is full takes a part of a line and calls that a success: what is written before something may happen is
then whole, or its writer hears of it, in every file that remembers."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from dpmpc.errors import UsageError
from dpmpc.flower.sealing import Purpose
from dpmpc.flower.seals import Seals
from dpmpc.mpc.shamir.burnt import Burnt
from dpmpc.privacy.account import Account
from dpmpc.privacy.entry import Entry
from dpmpc.privacy.ledger import Ledger
from dpmpc.privacy.mechanism import Mechanism
from dpmpc.privacy.sensitivity import Sensitivity
from dpmpc.processes.durable import write_whole

DATA = "d" * 64
PURPOSE = Purpose(bytes(32), bytes(16), 3, 1)


def ledger(folder: Path) -> None:
    mechanism = Mechanism("gaussian", False, scale=2.0, sensitivity=Sensitivity.flat(0.5), dimension=3)
    entry = Entry("r", 0, (DATA,), mechanism, planned=1, epsilon=1.0, delta=1e-5)
    with Ledger(folder / "ledger_0.jsonl") as file:
        file.append(entry)


def account(folder: Path) -> None:
    Account(folder).assignment(DATA, "id", {"a": 1, "b": 1})


def seals(folder: Path) -> None:
    Seals(folder, PURPOSE.digest).remember(PURPOSE)


def burnt(folder: Path) -> None:
    record = Burnt(folder / "burnt.txt")
    record.begin(record.next_epoch)


WRITERS: list[Callable[[Path], None]] = [ledger, account, seals, burnt]


def content(folder: Path) -> list[int]:
    """The lengths of all that is in a folder: keys and tokens differ from run to run."""
    return [path.stat().st_size for path in sorted(folder.rglob("*")) if path.is_file()]


@pytest.mark.parametrize("writes", WRITERS)
def test_a_part_of_a_line_is_not_taken_for_the_line(
    writes: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, write = tmp_path / "whole", os.write
    for name in ("whole", "slow", "full"):
        (tmp_path / name).mkdir()
    writes(whole)
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda fd, data: write(fd, bytes(data)[:3]))
        writes(tmp_path / "slow")
    assert content(tmp_path / "slow") == content(whole)
    taken: list[int] = []

    def full(descriptor: int, data: bytes) -> int:
        if taken:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        taken.append(write(descriptor, bytes(data)[:3]))
        return taken[0]

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises((OSError, UsageError)) as stopped:
            writes(tmp_path / "full")
        assert os.strerror(errno.ENOSPC) in str(stopped.value)
    writes(tmp_path / "full")  # there is room again


def test_nothing_is_written_of_nothing(tmp_path: Path) -> None:
    with (tmp_path / "file").open("wb") as file:
        write_whole(file.fileno(), b"")
    assert (tmp_path / "file").read_bytes() == b""
