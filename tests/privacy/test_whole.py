"""All stages of a run are reserved before the first: of two runs beside each other one has room or neither is begun,
and wherever a process dies nothing that it opened is lost and nothing stays reserved."""

import os
import shutil
from pathlib import Path

import pytest

from dpmpc.errors import UsageError
from dpmpc.privacy.account import Account
from dpmpc.privacy.budget import Budget, reserved
from dpmpc.privacy.ledger import Ledger
from dpmpc.privacy.ledgers import Reservation, ledgers_below, merge, parts, read_ledgers
from dpmpc.privacy.whole import WholeRun, path_of
from tests.alone import alone
from tests.privacy.test_account import DATA, crashes, line
from tests.refusals import refuses

STAGES = (("+survey", 1), ("", 6))  # of ten releases that are (1, 1e-5)-private
Found = list[tuple[str, int]]


def stage(run: str, releases: int, first: int = 0) -> Reservation:
    return Reservation(line(first, run), first, releases)


def stages(run: str) -> list[Reservation]:
    return [stage(run + name, releases) for name, releases in STAGES]


def whole(folder: Path) -> WholeRun:
    return WholeRun(path_of(folder), "stages")


def counted(budget: Budget) -> Found:
    """The releases that count, sorted."""
    return sorted((entry.run, entry.release) for entry in merge(budget.books([DATA])))


def all_of(run: str) -> Found:
    return sorted((run + name, release) for name, releases in STAGES for release in range(releases))


def make(ledger: Path, reservation: Reservation, budget: Budget) -> None:
    """A stage: reserved, begun, and all its releases spent."""
    with Ledger(ledger) as book, reserved(book, reservation, budget, budget.account) as held:
        held.begin(line(reservation.first, reservation.entry.run, token=reservation.entry.run))
        for entry in reservation.releases():
            book.append(entry)


@pytest.mark.parametrize("by", ["account", "folder"])
def test_of_two_runs_beside_each_other_one_is_refused_before_anything_is_spent(tmp_path: Path, by: str) -> None:
    """Each stage alone has room beside the other run's first stage: ten releases fit, a run has seven."""
    runs = tmp_path / "runs"
    runs.mkdir()
    account = Account(tmp_path / "account") if by == "account" else None
    budget = Budget(1.0, 1e-5, runs if by == "folder" else None, account)
    with whole(runs / "x") as x, whole(runs / "y") as y:
        x.keep(stages("x"), budget, account)
        assert counted(budget) == all_of("x")
        with refuses("budget", 7, setting="budget"):
            y.keep(stages("y"), budget, account)
        assert not y.held and not (runs / "y").exists() and counted(budget) == all_of("x")
        make(runs / "x/survey/ledger_0.jsonl", stage("x+survey", 1), budget)
        with refuses("budget", 7, setting="budget"):
            y.keep(stages("y"), budget, account)
        make(runs / "x/ledger_0.jsonl", stage("x", 6), budget)  # asks for nothing twice
        assert counted(budget) == all_of("x")
    assert counted(budget) == all_of("x")  # the same when it has ended


def test_what_a_stage_led_to_takes_the_place_of_what_was_planned(tmp_path: Path) -> None:
    account = Account(tmp_path / "account")
    budget = Budget(1.0, 1e-5, None, account)
    with whole(tmp_path) as mine:
        mine.keep([], budget, account)
        assert not mine.held and not ledgers_below(tmp_path)
        mine.keep(stages("x"), budget, account)
        make(tmp_path / "survey/ledger_0.jsonl", stage("x+survey", 1), budget)
        mine.keep([stage("x", 9)], budget, account)
        assert len(counted(budget)) == 10
        with refuses("budget", 1, setting="budget"):
            mine.keep([stage("x", 10)], budget, account)
        assert len(counted(budget)) == 10
        mine.keep([stage("x", 2)], budget, account)
        assert counted(budget) == [("x", 0), ("x", 1), ("x+survey", 0)]
        (known,) = (each for each in account.known(DATA) if each.book.name == "stages")
        assert known.state == "at work" and len(known.book.planned) == 2 and not known.book.unreserved.planned
        assert not parts(read_ledgers(tmp_path))
    assert counted(budget) == [("x+survey", 0)]


def test_processes_of_one_run_reserve_once_and_a_plan_run_twice_twice(tmp_path: Path) -> None:
    budget = Budget(1.0, 1e-5, tmp_path)
    with WholeRun(tmp_path / "0/ledger.stages_0.jsonl", "0") as first:
        first.keep(stages("x"), budget, None)
        with WholeRun(tmp_path / "1/ledger.stages_1.jsonl", "1") as second:
            second.keep(stages("x"), budget, None)
            assert counted(budget) == all_of("x")
            with WholeRun(tmp_path / "again/ledger.stages_1.jsonl", "1") as twice:
                with refuses("budget", setting="budget"):
                    twice.keep(stages("x"), budget, None)
                twice.keep([stage("x", 3)], budget, None)  # without a survey: ten in all
                assert len(counted(budget)) == 10
        assert counted(budget) == all_of("x")


def test_a_ledger_that_is_gone_while_its_run_goes_on_counts_whole(tmp_path: Path) -> None:
    account = Account(tmp_path / "account")
    budget = Budget(1.0, 1e-5, None, account)
    with whole(tmp_path / "x") as mine:
        mine.keep(stages("x"), budget, account)
        shutil.rmtree(tmp_path / "x")
        assert [each.state for each in account.known(DATA)] == ["missing"]
        assert counted(budget) == all_of("x")
    assert counted(budget) == []


def test_one_of_two_processes_gets_all_its_stages_whichever_comes_first(tmp_path: Path) -> None:
    account = Account(tmp_path / "account")
    budget = Budget(1.0, 1e-5, None, account)
    (go, start), (heard, said), (over, end) = os.pipe(), os.pipe(), os.pipe()

    def attempt(run: str) -> None:
        try:
            with whole(tmp_path / run) as mine:
                os.read(go, 1)
                try:
                    mine.keep(stages(run), budget, account)
                    os.write(said, b"had;")
                except UsageError:
                    os.write(said, b"refused;")
                os.read(over, 1)  # both have said it
        finally:
            os._exit(0)

    children = []
    for run in ("x", "y"):
        if not (child := os.fork()):
            attempt(run)
        children.append(child)
    os.write(start, b"12")
    answers = b""
    while answers.count(b";") < 2:
        answers += os.read(heard, 100)
    os.write(end, b"12")
    for child in children:
        os.waitpid(child, 0)
    assert sorted(answers.split(b";")[:2]) == [b"had", b"refused"]
    assert counted(budget) == []


@pytest.mark.slow
@pytest.mark.parametrize("named", [True, False])
def test_wherever_a_process_dies_what_it_opened_counts_and_nothing_stays_reserved(tmp_path: Path, named: bool) -> None:
    """With an account, and with a folder of ledgers alone."""
    alone(_dies_anywhere, tmp_path, named)


def _dies_anywhere(tmp_path: Path, named: bool) -> None:
    account = Account(tmp_path / "account") if named else None
    budget = Budget(1.0, 1e-5, None if named else tmp_path / "runs", account)
    deaths = exact = 0
    (tmp_path / "runs").mkdir()
    for at, how in crashes(lambda: _run(tmp_path, budget)):
        deaths += 1
        text = (tmp_path / "opened").read_text() if (tmp_path / "opened").exists() else ""
        opened = {(run, int(release)) for run, release in (each.split() for each in text.splitlines())}
        mine = counted(budget)
        assert opened <= set(mine) and len(mine) <= len(opened) + 1 and len(mine) == len(set(mine)), (at, how)
        exact += len(mine) == len(opened)
        if account is not None:
            shutil.rmtree(tmp_path / "runs")
            gone = counted(budget)  # nothing, or what was reserved: each release once
            assert opened <= set(gone) <= {("x+survey", 0), ("x", 0), ("x", 1)} and len(gone) == len(set(gone))
            shutil.rmtree(tmp_path / "account", ignore_errors=True)
        else:
            shutil.rmtree(tmp_path / "runs")
        (tmp_path / "runs").mkdir()
        (tmp_path / "opened").unlink(missing_ok=True)
    assert deaths > (60 if named else 25) and exact > 10


def _run(folder: Path, budget: Budget) -> None:
    """A survey and what follows it; what it opens it writes down by other means than those that are watched."""
    runs = folder / "runs"
    with whole(runs / "x") as mine:
        mine.keep([stage("x+survey", 1), stage("x", 2)], budget, budget.account)
        for name, ledger, releases in (("x+survey", "x/survey", 1), ("x", "x", 2)):
            if name == "x":
                mine.keep([stage("x", 2)], budget, budget.account)
            with Ledger(runs / ledger / "ledger_0.jsonl") as book:
                with reserved(book, stage(name, releases), budget, budget.account) as held:
                    held.begin(line(0, name, token=name))
                    for release in range(releases):
                        book.append(line(release, name))
                        with (folder / "opened").open("a") as file:
                            file.write(f"{name} {release}\n")


@pytest.mark.parametrize("by", ["account", "folder"])
def test_what_a_run_reserved_that_died_when_all_was_spent_is_settled_when_it_comes_again(
    tmp_path: Path, by: str
) -> None:
    """Its ledger goes, and what counts is what its stages spent: not all of it twice, and no other run's room."""
    account = Account(tmp_path / "account") if by == "account" else None
    budget = Budget(1.0, 1e-5, tmp_path if by == "folder" else None, account)

    def dies() -> None:
        mine = whole(tmp_path / "x")
        mine.keep(stages("x"), budget, account)
        make(tmp_path / "x/survey/ledger_0.jsonl", stage("x+survey", 1), budget)
        make(tmp_path / "x/ledger_0.jsonl", stage("x", 6), budget)
        os._exit(0)

    (tmp_path / "x").mkdir()
    child = os.fork()
    if not child:
        dies()
    os.waitpid(child, 0)
    assert path_of(tmp_path / "x").is_file()
    with whole(tmp_path / "x") as again:
        again.keep([stage("x+survey", 1, 1), stage("x", 6, 6)], budget, account)
        assert again.held
    assert not path_of(tmp_path / "x").exists() and counted(budget) == all_of("x")
