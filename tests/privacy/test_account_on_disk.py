"""What of an account is on disk, and by when, if the machine fails; and that parties wait for the disk together."""

import errno
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from dpmpc.privacy.account import Account
from dpmpc.privacy.budget import reserved
from dpmpc.privacy.ledger import Ledger
from dpmpc.privacy.ledgers import ledgers_below
from dpmpc.privacy.whole import WholeRun
from tests.privacy.test_account import DATA, asked, line, spend
from tests.refusals import refuses

Event = tuple[str, str, bytes]  # what is done, to which file, with what


def called(descriptor: int, folder: Path) -> str:
    """The name of an open file below a folder; "" of another."""
    open_file = os.fstat(descriptor).st_ino
    return next((path.name for path in folder.rglob("*") if path.stat().st_ino == open_file), "")


@pytest.fixture
def events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Event]]:
    """Writes and syncs of this process, in order."""
    done: list[Event] = []
    write, sync = os.write, os.fsync

    def written(descriptor: int, data: bytes) -> int:
        done.append(("write", called(descriptor, tmp_path), bytes(data)))
        return write(descriptor, data)

    def synced(descriptor: int) -> None:
        done.append(("sync", called(descriptor, tmp_path), b""))
        sync(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", written)
        patch.setattr(os, "fsync", synced)
        yield done


def waiting(events: list[Event], name: str) -> bool:
    """Whether something was written to this file that is not on disk yet."""
    mine = [what for what, file, _ in events if file == name]
    return bool(mine) and mine[-1] == "write"


def test_what_is_reserved_is_on_disk_before_the_attempt_begins_and_the_end_when_it_is_over(
    tmp_path: Path, events: list[Event]
) -> None:
    account, file = Account(tmp_path / "account"), f"{DATA}.jsonl"
    with Ledger(tmp_path / "ledger_0.jsonl") as book, reserved(book, asked(), None, account) as held:
        assert any(b'"reserved"' in data for _, name, data in events if name == file)
        assert not waiting(events, file)
        held.begin(line(0, token="t"))
        book.append(line(0))
        assert not waiting(events, file) and not waiting(events, "ledger_0.jsonl")
    assert any(b'"ended"' in data for _, name, data in events if name == file)
    assert not waiting(events, file)


def test_all_that_a_run_reserves_for_its_stages_waits_for_the_disk_once(tmp_path: Path, events: list[Event]) -> None:
    account, file = Account(tmp_path / "account"), f"{DATA}.jsonl"
    with WholeRun(tmp_path / "ledger_whole.jsonl", "whole") as whole:
        whole.keep([asked("a"), asked("b"), asked("c")], None, account)
        mine = [what for what, name, _ in events if name == file]
        assert mine == ["write"] * 3 + ["sync"]
        whole.keep([asked("c")], None, account)  # what it had is given back
        assert [what for what, name, _ in events if name == file][4:] == ["write"] * 4 + ["sync"]


def test_parts_of_the_data_are_on_disk_before_anything_is_done_with_their_key(
    tmp_path: Path, events: list[Event]
) -> None:
    account = Account(tmp_path / "account")
    with account.writing(DATA) as file:
        file.assignment("ids", {"training": 4, "test": 1})
        assert not waiting(events, f"{DATA}.jsonl")


def test_others_may_write_while_one_waits_for_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    account, free = Account(tmp_path / "account"), list[bool]()
    spend(account, tmp_path / "ledger_0.jsonl")

    def sync(descriptor: int) -> None:
        if called(descriptor, tmp_path) == f"{DATA}.jsonl":
            other = os.open(account.path(DATA), os.O_RDWR)
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.close(other)
            free.append(True)

    monkeypatch.setattr(os, "fsync", sync)
    spend(account, tmp_path / "ledger_1.jsonl", "b")
    assert len(free) == 2  # what was reserved, and its end


def test_a_disk_that_fails_ends_it_before_anything_is_spent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    account, path = Account(tmp_path / "account"), tmp_path / "ledger_0.jsonl"
    sync = os.fsync

    def failing(descriptor: int) -> None:
        if called(descriptor, tmp_path) == f"{DATA}.jsonl":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", failing)
    with refuses("path", setting="account"):
        spend(account, path)
    assert not Ledger.read(path).entries


@pytest.mark.parametrize("call", ["scandir", "listdir"])
def test_a_folder_that_cannot_be_listed_is_not_one_without_spending(
    call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the root user's own rights never have it; a folder that is not there has none."""

    def refused(path: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    account = Account(tmp_path / "none")
    assert account.data() == [] and ledgers_below(tmp_path) == []
    account.folder.mkdir()
    monkeypatch.setattr(os, call, refused)
    with refuses("path", "Permission denied", setting="account" if call == "listdir" else None):
        account.data() if call == "listdir" else ledgers_below(tmp_path)
