"""A process that is killed before anything was spent ends nobody: it is waited for again, and the run goes on."""

import contextlib
import signal
from pathlib import Path

import pytest

from dpmpc.consortium.again import until_begun
from dpmpc.errors import CheatError, PeerError, UsageError
from dpmpc.mpc.transport.abort_reason import Told, is_loss, public_reason, stays_away, without_a_word
from dpmpc.privacy.ledgers import read_ledgers
from tests.made_up_sites import files, planned
from tests.runs import errors_of, own_addresses, started, wait_until


@pytest.mark.slow
@pytest.mark.parametrize("victim", ["1", "owner0"])
def test_who_is_killed_while_others_wait_is_waited_for_again(tmp_path: Path, victim: str) -> None:
    """Of three parties and three owners one owner has not come yet. What was spent at the end is what was planned."""
    plan, records, addresses = planned(tmp_path / "made", iterations=2), files(tmp_path), own_addresses(3)

    def command(name: str) -> list[str | Path]:
        own = ["--csv", records[int(name[5:])]] if name.startswith("owner") else []
        return ["train", "--plan", plan, "-I", name, *addresses, *own, "--wait", "240", "--out", tmp_path / name]

    first = ["0", "1", "2", "owner0", "owner1"]
    with contextlib.ExitStack() as stack:
        running = {name: stack.enter_context(started(*command(name))) for name in first}
        log = tmp_path / "0" / "survey" / "party_0.log"
        wait_until(lambda: log.exists() and "connected with the other parties" in log.read_text())
        running[victim].send_signal(signal.SIGKILL)
        errors_of(running.pop(victim))
        again = [name for name in first if name != victim]
        wait_until(lambda: "all meet again" in log.read_text() or (tmp_path / victim).is_dir())
        for name in (victim, "owner2"):
            running[name] = stack.enter_context(started(*command(name)))
        said = {name: errors_of(process) for name, process in running.items()}
        assert {name: process.returncode for name, process in running.items()} == dict.fromkeys(running, 0), said
    assert set(again) < set(running)
    for book in read_ledgers(tmp_path / "0"):
        assert len({entry.release for entry in book.entries}) == len(book.entries)


def test_what_is_a_loss_and_what_is_a_decision() -> None:
    killed = PeerError(without_a_word("party 1", "connection closed"))
    stopped = Told(public_reason("party 1", KeyboardInterrupt()), "party 1")
    assert is_loss(killed) and is_loss(Told(killed.message, "party 2"))
    refused = Told(public_reason("party 1", UsageError("x")), "party 1")
    others = CheatError(killed.message), PeerError("parameters differ")
    for decided in (stopped, refused, stays_away("party 1"), *others):
        assert not is_loss(decided), decided


KILLED = PeerError(without_a_word("party 1", "connection closed"))


@pytest.mark.parametrize(
    ("error", "moved", "seconds", "tries"),
    [(KILLED, 0, 600.0, 3), (KILLED, 1, 600.0, 1), (KILLED, 0, 0.0, 1), (PeerError("no"), 0, 600.0, 1)],
)
def test_what_was_spent_or_decided_ends_the_part(error: PeerError, moved: int, seconds: float, tries: int) -> None:
    """And so does a loss after the time in which all were to come."""
    calls, spent, said = list[bool](), [0], list[str]()

    def part(again: bool) -> None:
        calls.append(again)
        spent[0] += moved
        if len(calls) < 3:
            raise error

    ends = pytest.raises(PeerError) if tries == 1 else contextlib.nullcontext()
    with ends:
        until_begun(part, lambda: spent[0], seconds, said.append, 0.0)
    assert calls == [False, True, True][:tries] and len(said) == tries - 1
