"""Budgets: reserved before the first release by one process at a time, held at every line, given back in every way."""

import json
import math
import multiprocessing
import os
import shutil
import signal
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest

from dpmpc.errors import UsageError
from dpmpc.privacy.account import Account
from dpmpc.privacy.budget import Budget, check_fits, reserved
from dpmpc.privacy.composition import spent, total
from dpmpc.privacy.entry import Entry
from dpmpc.privacy.gaussian import gaussian_epsilon, gaussian_scale
from dpmpc.privacy.ledger import Ledger
from dpmpc.privacy.ledgers import (
    Reservation,
    attempts,
    copies,
    merge,
    read_ledgers,
    reservation_path,
)
from dpmpc.privacy.mechanism import Mechanism
from dpmpc.privacy.sensitivity import Sensitivity
from dpmpc.processes.locks import is_held
from tests.alone import alone
from tests.forked_commands import HANG
from tests.refusals import refuses

HALF, OWNER = Sensitivity.flat(0.5), (("owner", Sensitivity.flat(20.0)),)
FIFTY = Mechanism("gaussian", False, gaussian_scale(1.0, 1e-5, 0.5, 50), HALF, 3)  # 50 of them: (1, 1e-5)-private
FORK = multiprocessing.get_context("fork")


def line(release: int, run: str = "a", **changes: object) -> Entry:
    entry = Entry(run, release, ("d",), FIFTY, 50, 1.0, 1e-5, ("hospital",), 0, "record", OWNER)
    return replace(entry, **changes)  # type: ignore[arg-type]


def asked(releases: int, run: str = "a", first: int = 0) -> Reservation:
    return Reservation(line(first, run), first, first + releases)


def budget(root: Path) -> Budget:
    return Budget(1.0, 1e-5, root)


def spend(path: Path, reservation: Reservation, root: Path, lines: int) -> None:
    with Ledger(path) as ledger, reserved(ledger, reservation, budget(root)):
        for release in range(reservation.first, reservation.first + lines):
            ledger.append(replace(reservation.entry, release=release))


def free(root: Path, most: int = 60) -> int:
    """Releases that another run could have."""
    books = read_ledgers(root)
    for releases in range(most):
        try:
            check_fits(budget(root), asked(releases + 1, "another"), books, root / "ledger_9.jsonl")
        except UsageError:
            return releases
    return most


# -- two at once ------------------------------------------------------------------------------------------------------
def _race(root: Path, run: str, barrier: Barrier, answer: Connection) -> None:
    """Wants 40 of the 50 releases; both look before either writes a line."""
    try:
        with Ledger(root / run / "ledger_0.jsonl") as ledger:
            barrier.wait()
            with reserved(ledger, asked(40, run), budget(root)):
                answer.send("reserved")
                barrier.wait()  # the other was refused, or has reserved too
                for release in range(40):
                    ledger.append(line(release, run))
    except UsageError as error:
        answer.send(str(error))
        barrier.wait()


@pytest.mark.slow
def test_of_two_processes_that_start_at_once_one_gets_the_budget(tmp_path: Path) -> None:
    alone(_races, tmp_path)


def _races(tmp_path: Path) -> None:
    for attempt in range(2):
        root = tmp_path / str(attempt)
        barrier, ends, processes = FORK.Barrier(2), [], []
        for run in ("a", "b"):
            mine, theirs = FORK.Pipe(duplex=False)
            processes.append(FORK.Process(target=_race, args=(root, run, barrier, theirs)))
            processes[-1].start()
            ends.append(mine)
        answers = sorted(end.recv() for end in ends)
        for process in processes:
            process.join()
        assert answers[0] == "reserved" or answers[1] == "reserved"
        assert sum("budget for data hospital" in answer for answer in answers) == 1, answers
        assert sum(entry.run in "ab" for entry in merge(read_ledgers(root))) == 40
        assert free(root) == 10


def _hold(path: Path, root: Path, lines: int, answer: Connection) -> None:
    with Ledger(path) as ledger, reserved(ledger, asked(30, "held"), budget(root)):
        for release in range(lines):
            ledger.append(line(release, "held"))
        answer.send("held")
        signal.pause()


@pytest.mark.parametrize("lines", [0, 7])
def test_a_killed_process_leaves_its_lines_and_no_reservation(tmp_path: Path, lines: int) -> None:
    alone(_killed, tmp_path, lines)


def _killed(tmp_path: Path, lines: int) -> None:
    mine, theirs = FORK.Pipe(duplex=False)
    path = tmp_path / "held" / "ledger_0.jsonl"
    process = FORK.Process(target=_hold, args=(path, tmp_path, lines, theirs))
    process.start()
    assert mine.recv() == "held"
    assert is_held(path) and free(tmp_path) == 20  # its 30 are kept for it, written or not
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    assert not is_held(path) and reservation_path(path).exists()
    assert free(tmp_path) == 50 - lines  # what it wrote, and no more
    spend(path, asked(50 - lines, "held", lines), tmp_path, 50 - lines)  # a resume takes the rest, all of it
    assert free(tmp_path) == 0 and not reservation_path(path).exists()


def test_what_is_reserved_waits_for_no_disk_and_each_line_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It counts while its writer lives. What a machine that failed leaves of it, which may be nothing, hinders none."""
    path, synced = tmp_path / "run" / "ledger_0.jsonl", list[int]()
    monkeypatch.setattr(os, "fsync", synced.append)
    with Ledger(path) as ledger:
        synced.clear()
        with reserved(ledger, asked(30), budget(tmp_path)):
            assert free(tmp_path) == 20 and not synced
            ledger.append(line(0))
            assert synced == [ledger._fd]
    reservation_path(path).write_bytes(b"")
    assert free(tmp_path) == 49
    spend(path, asked(49, first=1), tmp_path, 49)
    assert free(tmp_path) == 0


def test_who_waits_for_the_account_has_its_ledger_on_disk_already(tmp_path: Path) -> None:
    from tests.runs import wait_until  # whose imports the processes of other tests do not need

    account, path = Account(tmp_path / "account"), tmp_path / "ledger_0.jsonl"

    def reserve() -> None:
        with Ledger(path) as ledger, reserved(ledger, asked(30), None, account):
            pass

    with ThreadPoolExecutor(1) as another:
        with account.writing("d"):
            done = another.submit(reserve)
            wait_until(lambda: path.exists() and Ledger.read(path).lines == 1)
            assert not done.done() and not account.path("d").read_bytes()
        done.result(HANG)
    assert account.path("d").read_bytes().count(b"\n") == 2  # reserved, and ended


# -- given back -------------------------------------------------------------------------------------------------------
def test_what_is_not_used_is_given_back(tmp_path: Path) -> None:
    path = tmp_path / "a" / "ledger_0.jsonl"
    with Ledger(path) as ledger:
        with reserved(ledger, asked(50), budget(tmp_path)):
            assert free(tmp_path) == 0
            for release in range(3):
                ledger.append(line(release))
            assert free(tmp_path) == 0
        assert free(tmp_path) == 47
    with pytest.raises(RuntimeError), Ledger(path) as ledger, reserved(ledger, asked(47, first=3), budget(tmp_path)):
        raise RuntimeError("the run ends with an error")
    assert free(tmp_path) == 47
    assert [p.name for p in path.parent.iterdir()] == ["ledger_0.jsonl"]


def test_parties_of_one_run_reserve_once_and_a_plan_run_twice_twice(tmp_path: Path) -> None:
    ledgers = [Ledger(tmp_path / "run" / f"ledger_{i}.jsonl") for i in range(3)]
    again = Ledger(tmp_path / "again" / "ledger_0.jsonl")
    holds = [reserved(ledger, asked(50), budget(tmp_path)) for ledger in ledgers]
    for hold in holds:
        hold.__enter__()
    with refuses("budget", 50, setting="budget"):
        reserved(again, asked(50), budget(tmp_path)).__enter__()
    for release in range(50):
        for ledger in ledgers:
            ledger.append(line(release))
    for hold, ledger in zip(holds, ledgers, strict=True):
        hold.__exit__(None, None, None)
        ledger.close()
    again.close()
    assert free(tmp_path) == 0
    # the same plan into the same ledger: the old lines are not what is reserved now
    with Ledger(tmp_path / "run" / "ledger_0.jsonl") as ledger, refuses("budget", 0, "run", setting="run_id"):
        reserved(ledger, asked(50), budget(tmp_path)).__enter__()


def test_a_run_without_a_budget_is_seen_by_one_that_has_one(tmp_path: Path) -> None:
    with Ledger(tmp_path / "a" / "ledger_0.jsonl") as ledger, reserved(ledger, asked(30), None):
        assert free(tmp_path) == 20


def test_the_ledger_must_count_for_the_next_run(tmp_path: Path) -> None:
    with (
        Ledger(tmp_path / "elsewhere" / "ledger_0.jsonl") as ledger,
        refuses("budget", setting="out"),
    ):
        (tmp_path / "ledgers").mkdir()
        reserved(ledger, asked(1), budget(tmp_path / "ledgers")).__enter__()


# -- every line -------------------------------------------------------------------------------------------------------
def test_every_line_is_held_against_what_others_have_written_since(tmp_path: Path) -> None:
    """Somebody without a budget spends while a run with one is under way: it stops at the limit, not after it."""
    path = tmp_path / "a" / "ledger_0.jsonl"
    with Ledger(path) as ledger, reserved(ledger, asked(40), budget(tmp_path)):
        for release in range(10):
            ledger.append(line(release))
        with Ledger(tmp_path / "wild" / "ledger_0.jsonl") as wild:
            for release in range(25):
                wild.append(line(release, "wild"))
            for release in range(10, 25):
                ledger.append(line(release))
            with refuses("budget", 25):
                ledger.append(line(25))
    entries = merge(read_ledgers(tmp_path))
    assert len(entries) == 50 and total(entries).epsilon(1e-5) <= 1 + 1e-9


def test_lines_of_other_data_and_of_sister_parties_do_not_count_twice(tmp_path: Path) -> None:
    with (
        Ledger(tmp_path / "a" / "ledger_0.jsonl") as first,
        Ledger(tmp_path / "a" / "ledger_1.jsonl") as second,
        Ledger(tmp_path / "b" / "ledger_0.jsonl") as other,
        reserved(first, asked(50), budget(tmp_path)),
        reserved(second, asked(50), budget(tmp_path)),
    ):
        for release in range(50):
            other.append(line(release, "c", data=("e",)))
            for ledger in (first, second):
                ledger.append(line(release))
    assert free(tmp_path) == 0


def test_a_torn_line_is_the_release_that_another_party_wrote_whole(tmp_path: Path) -> None:
    """Party 1 dies in the middle of the line of release 4; the resumed run may still make all 50 releases, no more."""
    paths = [tmp_path / "a" / f"ledger_{i}.jsonl" for i in range(2)]
    for i, path in enumerate(paths):
        spend(path, asked(50), tmp_path, 5 - i)
    with paths[1].open("ab") as file:
        file.write(b'{"v":3,"prev":"')
    assert free(tmp_path) == 45
    with Ledger(paths[0]) as first, Ledger(paths[1]) as second:
        with (
            reserved(first, asked(45, first=5), budget(tmp_path)),
            reserved(second, asked(45, first=5), budget(tmp_path)),
        ):
            for release in range(5, 50):
                for ledger in (first, second):
                    ledger.append(line(release, attempt=1))
    assert free(tmp_path) == 0 and len(merge(read_ledgers(tmp_path))) == 50


# -- copies, names, attempts, neighbours ------------------------------------------------------------------------------
def test_copies_count_once_whatever_their_names_and_lengths(tmp_path: Path) -> None:
    path = tmp_path / "a" / "ledger_0.jsonl"
    spend(path, asked(50), tmp_path, 5)
    (tmp_path / "backup").mkdir()
    shutil.copy(path, tmp_path / "backup" / "ledger_0.jsonl")
    spend(path, asked(45, first=5), tmp_path, 3)
    shutil.copy(path, tmp_path / "backup" / "ledger_0 (copy).jsonl")
    with Ledger(tmp_path / "backup" / "ledger_0.jsonl") as ledger:  # and the older copy goes on by itself
        ledger.append(line(5))
    books = read_ledgers(tmp_path)
    assert [len(group) for group in copies(books)] == [3]
    assert sorted(entry.release for entry in merge(books)) == [0, 1, 2, 3, 4, 5, 5, 6, 7]
    assert free(tmp_path) == 41


def test_the_same_run_again_is_no_copy_even_under_another_name(tmp_path: Path) -> None:
    """Two ledgers with the same lines but another first digest: the plan was run twice. A renamed one too."""
    path = tmp_path / "ledger_0.jsonl"
    for name in ("ledger_0_old.jsonl", "ledger_0.jsonl"):
        spend(path, asked(5), tmp_path, 5)
        if name != path.name:
            path.rename(tmp_path / name)
    books = read_ledgers(tmp_path)
    assert copies(books) == [] and len(merge(books)) == 10
    assert attempts(books) == {"a": 2}


def test_an_edit_of_the_random_first_line_is_found(tmp_path: Path) -> None:
    path = tmp_path / "ledger_0.jsonl"
    spend(path, asked(3), tmp_path, 3)
    first = json.loads(path.read_text().splitlines()[0])
    assert len(first["salt"]) == 32 and first["by"] == "ledger_0.jsonl"
    path.write_text(path.read_text().replace(first["salt"], "0" * 32))
    with refuses("ledger", "line 2", kind=Exception):
        Ledger.read(path)


def test_every_line_has_a_price_for_owners_too(tmp_path: Path) -> None:
    """A record is a part of an owner's records, not the other way round."""
    records = [line(k, prices=(("owner", Sensitivity.flat(2.0)),)) for k in range(10)]
    owners = [line(k, "o", neighbours="owner", prices=(("owner", Sensitivity.flat(0.5)),)) for k in range(10)]
    mu = 0.5 / FIFTY.scale
    assert spent(records + owners, "d", 1e-5, "record").epsilon == pytest.approx(
        gaussian_epsilon(1.0, 1e-5, mu * math.sqrt(20)), rel=1e-9
    )
    assert spent(records + owners, "d", 1e-5, "owner").epsilon == pytest.approx(
        gaussian_epsilon(1.0, 1e-5, mu * math.sqrt(10 * 16 + 10)), rel=1e-9
    )
    unknown = [replace(records[0], prices=())]
    assert spent(unknown, "d", 1e-5, "owner").epsilon == math.inf
    owner_run = Reservation(line(0, "n", neighbours="owner", prices=(("owner", Sensitivity.flat(0.5)),)), 0, 1)
    with Ledger(tmp_path / "ledger_0.jsonl") as ledger:
        for entry in records:
            ledger.append(entry)
    with refuses("budget", 1, 10, setting="budget"):  # 10 records' releases cost owners as much as 160
        check_fits(budget(tmp_path), owner_run, read_ledgers(tmp_path), tmp_path / "ledger_1.jsonl")
    assert free(tmp_path) == 40
