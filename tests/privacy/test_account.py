"""The account: deleting runs gives nothing back, whatever a process had written when it died; disjoint parts cost the
larger."""

import contextlib
import hashlib
import json
import os
import shutil
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dpmpc.errors import UsageError
from dpmpc.privacy import account as accounts
from dpmpc.privacy import account_lines
from dpmpc.privacy.account import Account, account_folder
from dpmpc.privacy.assignment import Assignment, apart
from dpmpc.privacy.book import Book, LedgerError
from dpmpc.privacy.budget import Budget, check_fits, reserved
from dpmpc.privacy.composition import OWNER, require_budget, total
from dpmpc.privacy.entry import Entry
from dpmpc.privacy.gaussian import gaussian_scale
from dpmpc.privacy.ledger import Ledger
from dpmpc.privacy.ledgers import Reservation, merge, read_ledger
from dpmpc.privacy.mechanism import Mechanism
from dpmpc.privacy.sensitivity import Sensitivity
from dpmpc.privacy.unnamed import process_folder
from dpmpc.processes import locks
from tests.alone import alone
from tests.refusals import refuses

TEN = Mechanism("gaussian", False, gaussian_scale(1.0, 1e-5, 0.5, 10), Sensitivity.flat(0.5), 3)
DATA = "d" * 64  # ten releases of that on it are (1, 1e-5)-private
RELEASES = 4


def line(release: int, run: str = "a", **changes: object) -> Entry:
    prices = (("owner", Sensitivity.flat(1.0)),)
    entry = Entry(run, release, (DATA,), TEN, RELEASES, 1.0, 1e-5, ("hospital",), 0, "record", prices)
    return replace(entry, **changes)  # type: ignore[arg-type]


def asked(run: str = "a", releases: int = RELEASES, first: int = 0) -> Reservation:
    return Reservation(line(first, run), first, releases)


def spend(account: Account, ledger: Path, run: str = "a", lines: int = RELEASES, first: int = 0) -> None:
    """An attempt that has reserved the whole run and makes some of its releases."""
    with Ledger(ledger) as book, reserved(book, asked(run, first=first), None, account) as held:
        held.begin(line(first, run, token=f"{run}{first}"))
        for release in range(first, first + lines):
            book.append(line(release, run))


def counted(account: Account) -> list[int]:
    """The releases that count, sorted."""
    return sorted(entry.release for entry in merge(Budget(1.0, 1e-5, None, account).books([DATA])))


def refused(account: Account, releases: int) -> bool:
    budget = Budget(1.0, 1e-5, None, account)
    try:
        check_fits(budget, asked("next", releases), budget.books([DATA]), Path("/nowhere/ledger_0.jsonl"))
    except UsageError:
        return True
    return False


# -- where -------------------------------------------------------------------------------------------------------------
def test_the_account_is_where_the_platform_keeps_data() -> None:
    home = Path.home()
    assert account_folder({}, "linux") == home / ".local/share/dpmpc/account"
    assert account_folder({"XDG_DATA_HOME": "/data"}, "linux") == Path("/data/dpmpc/account")
    assert account_folder({"XDG_DATA_HOME": "data"}, "linux") == home / ".local/share/dpmpc/account"  # not absolute
    assert account_folder({}, "darwin") == home / "Library/Application Support/dpmpc/account"
    assert account_folder({"DPMPC_ACCOUNT": "/mine", "XDG_DATA_HOME": "/data"}, "linux") == Path("/mine")


def test_what_has_no_name_counts_for_this_process_and_those_it_starts() -> None:
    folder = process_folder()
    assert process_folder() == folder and folder.stat().st_mode & 0o777 == 0o700
    assert os.environ["DPMPC_PROCESS_ACCOUNT"] == str(folder)


# -- what counts -------------------------------------------------------------------------------------------------------
def test_deleting_a_run_gives_nothing_back(tmp_path: Path) -> None:
    account = Account(tmp_path / "account")
    spend(account, tmp_path / "runs/x/ledger_0.jsonl")
    assert counted(account) == [0, 1, 2, 3] and not refused(account, 6) and refused(account, 7)
    shutil.rmtree(tmp_path / "runs")
    assert counted(account) == [0, 1, 2, 3] and refused(account, 7)
    assert [each.state for each in account.known(DATA)] == ["missing"]
    spend(account, tmp_path / "runs/x/ledger_0.jsonl")  # the same run again, in a new file of the same name
    assert counted(account) == [0, 0, 1, 1, 2, 2, 3, 3]
    assert [each.state for each in account.known(DATA)] == ["missing", "there"]


def test_a_part_of_a_run_counts_by_its_lines_and_whole_when_they_are_gone(tmp_path: Path) -> None:
    account, ledger = Account(tmp_path / "account"), tmp_path / "runs/x/ledger_0.jsonl"
    spend(account, ledger, lines=1)
    assert counted(account) == [0]
    older = ledger.read_bytes()
    spend(account, ledger, first=1, lines=2)  # carried on
    assert counted(account) == [0, 1, 2]
    ledger.write_bytes(older)
    assert counted(account) == [0, 1, 2, 3]
    assert [each.state for each in account.known(DATA)] == ["older"]
    with refuses("ledger", "older", "account", kind=LedgerError):
        spend(account, ledger, first=1)
    ledger.unlink()
    assert counted(account) == [0, 1, 2, 3]  # both attempts had reserved them: each counts once


def test_a_run_reads_no_ledger_of_a_finished_one_unless_a_budget_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    account = Account(tmp_path / "account")
    for k in range(5):
        spend(account, tmp_path / f"runs/{k}/ledger_0.jsonl", run=f"r{k}")
    with Ledger(tmp_path / "runs/dead/ledger_0.jsonl") as book:  # its writer dies: nothing notes its end
        book.identify(line(0, "dead"))
        with account.writing(DATA) as file:
            file.reserve(book, asked("dead"))
    read: list[str] = []
    ledger_of = read_ledger

    def counting(path: Path) -> Book:
        read.append(path.parent.name)
        return ledger_of(path)

    monkeypatch.setattr(accounts, "read_ledger", counting)
    spend(account, tmp_path / "runs/new/ledger_0.jsonl", run="new")
    assert set(read) == {"dead"}
    read.clear()
    assert refused(account, 1) and set(read) == {"0", "1", "2", "3", "4", "dead", "new"}


def test_each_line_is_parsed_once_and_an_attempt_without_a_budget_opens_the_file_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To reserve and to end; whatever byte changes is read anew and found."""
    account, opened = Account(tmp_path / "account"), list[str]()
    writing = Account.writing

    def noted(self: Account, data: str) -> contextlib.AbstractContextManager[accounts.Writer]:
        opened.append(data)
        return writing(self, data)

    monkeypatch.setattr(Account, "writing", noted)
    for run in "abc":
        opened.clear()
        account_lines._parsed.cache_clear()
        spend(account, tmp_path / run / "ledger_0.jsonl", run)
        assert opened == [DATA, DATA]
        assert account_lines._parsed.cache_info().misses == 2 * "abc".index(run) + 1  # its own first line, when it ends
    path = account.path(DATA)
    whole = path.read_bytes()
    assert counted(account) == sorted(3 * [*range(RELEASES)])
    path.write_bytes(whole.replace(b'"end":4', b'"end":3', 1))
    with pytest.raises(LedgerError):
        account.known(DATA)


def test_a_moved_run_is_found_below_the_folder_of_ledgers(tmp_path: Path) -> None:
    account = Account(tmp_path / "account")
    spend(account, tmp_path / "runs/x/ledger_0.jsonl", lines=1)
    (tmp_path / "archive").mkdir()
    (tmp_path / "runs/x").rename(tmp_path / "archive/x")
    assert counted(account) == [0, 1, 2, 3]
    assert len(merge(Budget(1.0, 1e-5, tmp_path, account).books([DATA]))) == 1
    shutil.copytree(tmp_path / "archive/x", tmp_path / "runs/x")  # a copy: one ledger
    assert len(merge(Budget(1.0, 1e-5, tmp_path, account).books([DATA]))) == 1


def test_ledgers_that_were_not_to_stay_count_what_they_said_at_the_end(tmp_path: Path) -> None:
    account = Account(tmp_path / "account", keeps=False)
    for party in range(3):
        spend(account, tmp_path / f"temporary/ledger_{party}.jsonl", lines=2)
    shutil.rmtree(tmp_path / "temporary")
    assert counted(account) == [0, 1]  # three parties of one attempt


@pytest.mark.parametrize("when", ["before it is asked for", "before it is read", "after it is read"])
def test_a_ledger_that_goes_while_it_is_read_counts_what_it_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    account, path = Account(tmp_path / "account", keeps=False), tmp_path / "temporary/ledger_0.jsonl"
    writer = contextlib.ExitStack()
    book = writer.enter_context(Ledger(path))
    held = writer.enter_context(reserved(book, asked(), None, account))
    held.begin(line(0, token="a0"))
    for release in range(2):
        book.append(line(release))

    def end() -> None:
        writer.close()
        shutil.rmtree(path.parent, ignore_errors=True)

    def is_held(path: Path) -> bool:
        if when == "before it is asked for":
            end()
        return locks.is_held(path)

    def read(path: Path) -> Book:
        if when == "before it is read":
            end()
        there = read_ledger(path)
        end()
        return there

    monkeypatch.setattr(accounts, "is_held", is_held)
    monkeypatch.setattr(accounts, "read_ledger", read)
    (known,) = account.known(DATA)
    assert known.state == "not kept" and [entry.release for entry in known.book.entries] == [0, 1]
    assert not known.book.reserved


def test_parties_of_one_attempt_count_once_when_all_or_some_of_their_ledgers_are_gone(tmp_path: Path) -> None:
    account = Account(tmp_path / "account")
    for party in range(3):
        spend(account, tmp_path / f"ledger_{party}.jsonl")
    assert counted(account) == [0, 1, 2, 3]
    for party in range(3):
        (tmp_path / f"ledger_{party}.jsonl").unlink()
        assert counted(account) == [0, 1, 2, 3]


def test_an_account_that_cannot_be_written_refuses_before_anything_is_spent(tmp_path: Path) -> None:
    (tmp_path / "account").write_text("a file")
    with refuses("path", "a file", setting="account"):
        spend(Account(tmp_path / "account"), tmp_path / "ledger_0.jsonl")
    assert Ledger.read(tmp_path / "ledger_0.jsonl").lines == 0


def test_a_changed_account_is_found(tmp_path: Path) -> None:
    account = Account(tmp_path / "account")
    spend(account, tmp_path / "ledger_0.jsonl")
    path = account.path(DATA)
    lines = path.read_bytes().splitlines(keepends=True)
    for changed in (lines[1:], [lines[0].replace(b'"end":4', b'"end":1'), lines[1]]):
        path.write_bytes(b"".join(changed))
        with refuses("ledger", kind=LedgerError):
            account.known(DATA)


# -- a process that dies -----------------------------------------------------------------------------------------------
class Dies:
    """Ends this process, as a kill would, at the `at`-th write or sync: before it, or in its middle."""

    def __init__(self, at: int, how: str) -> None:
        self.left, self.how, self.write, self.sync = at, how, os.write, os.fsync

    def _comes(self) -> bool:
        self.left -= 1
        return self.left == 0

    def written(self, descriptor: int, data: bytes) -> int:
        if self._comes():
            if self.how == "middle":
                self.write(descriptor, data[: len(data) // 2])
            os._exit(9)
        return self.write(descriptor, data)

    def synced(self, descriptor: int) -> None:
        if self._comes():
            os._exit(9)
        self.sync(descriptor)


def crashes(attempt: Callable[[], None]) -> Iterator[tuple[int, str]]:
    """Runs the attempt in a process that dies at its first write, its second, and so on, in either way, until one of
    them comes to its end. Yields after every death."""
    for how in ("before", "middle"):
        for at in range(1, 200):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # of forks where there are threads: none are used
                child = os.fork()
            if child == 0:
                dying = Dies(at, how)
                os.write, os.fsync = dying.written, dying.synced  # type: ignore[assignment]
                try:
                    attempt()
                finally:
                    os._exit(0)
            _, status = os.waitpid(child, 0)
            code = os.waitstatus_to_exitcode(status)
            assert code in (0, 9)
            yield at, how
            if code == 0:
                break
        else:
            raise AssertionError("the attempt never came to its end")


@pytest.mark.slow
@pytest.mark.parametrize("keeps", [True, False])
def test_wherever_a_process_dies_what_it_opened_counts_and_never_more_than_it_reserved(
    tmp_path: Path, keeps: bool
) -> None:
    alone(_dies_anywhere, tmp_path, keeps)


def _dies_anywhere(tmp_path: Path, keeps: bool) -> None:
    deaths, exact = 0, 0
    for number, (at, how) in enumerate(crashes(lambda: _attempt(tmp_path, keeps))):
        deaths += 1
        account = Account(tmp_path / "account", keeps)
        opened = [int(text) for text in (tmp_path / "opened").read_text().split()] if number or at else []
        mine = counted(account)
        assert set(opened) <= set(mine) <= {0, 1} and len(mine) == len(set(mine)), (at, how)
        assert len(mine) <= len(opened) + 1  # a line that was written, and its release not opened yet
        exact += len(mine) == len(opened)
        shutil.rmtree(tmp_path / "runs", ignore_errors=True)
        gone = counted(account)
        assert set(opened) <= set(gone) and (gone in ([], [0, 1]) or not keeps)
        spend(account, tmp_path / "runs/y/ledger_0.jsonl", "y")  # the account can be written again
        assert len(counted(account)) == len(gone) + RELEASES
        shutil.rmtree(tmp_path / "account")
        shutil.rmtree(tmp_path / "runs")
        (tmp_path / "opened").unlink()
    assert deaths > 25 and exact > 10


def _attempt(folder: Path, keeps: bool) -> None:
    """An attempt; what it opens it writes down by other means than those that are watched."""
    path = folder / "opened"
    path.touch()
    account, ledger = Account(folder / "account", keeps), folder / "runs/x/ledger_0.jsonl"
    with Ledger(ledger) as book, reserved(book, asked(releases=2), None, account) as held:
        held.begin(line(0, token="t"))
        for release in range(2):
            book.append(line(release))
            with path.open("a") as file:
                file.write(f"{release} ")


def test_the_writers_of_one_account_wait_for_each_other(tmp_path: Path) -> None:
    """Two processes that want 6 of 10 releases each: one gets them, whichever comes first."""
    account = Account(tmp_path / "account")
    budget = Budget(1.0, 1e-5, None, account)

    def attempt(run: str, read: int, write: int) -> None:
        try:
            with Ledger(tmp_path / run / "ledger_0.jsonl") as book, reserved(book, asked(run, 6), budget, account):
                os.write(write, b"had;")
                os.read(read, 1)
        except UsageError:
            os.write(write, b"refused;")
        finally:
            os._exit(0)

    (go, start), (heard, said) = os.pipe(), os.pipe()
    children = []
    for run in ("a", "b"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            attempt(run, go, said)
        children.append(child)
    told = b""
    while told.count(b";") < 2:
        told += os.read(heard, 100)
    os.write(start, b"xx")
    for child in children:
        os.waitpid(child, 0)
    assert sorted(told.decode().split(";")) == ["", "had", "refused"]


# -- parts -------------------------------------------------------------------------------------------------------------
PARTS = {"training": 4, "test": 1}


def test_an_assignment_is_stored_and_moves_no_row(tmp_path: Path) -> None:
    account = Account(tmp_path)
    first = account.assignment(DATA, "patient", PARTS)
    again = Account(tmp_path).assignment(DATA, "patient", PARTS)
    assert first == again and account.assignments(DATA) == {"patient": first}
    ids = [f"p{k}" for k in range(1000)]
    where = dict(zip(ids, first.parts_of(ids), strict=True))
    with_one_more = ["new", *reversed(ids)]
    now = dict(zip(with_one_more, again.parts_of(with_one_more), strict=True))
    moved = [each for each in ids if now[each] != where[each]]
    assert moved == []
    for other in ({"training": 3, "test": 1}, {"test": 1, "training": 4, "more": 1}):
        with refuses("over", "patient", "training"):
            account.assignment(DATA, "patient", other)
    with refuses("over", "patient", "training"):
        account.assignment(DATA, "patient", PARTS, "person")


def test_the_part_of_a_row_is_its_hash_in_whole_numbers() -> None:
    """By the definition: the part that holds hash * weight >> 64, for places and for the same numbers as ids."""
    assignment = Assignment((("a", 3), ("b", 1), ("c", 7)), "record", "0f" * 16)
    whole = [
        int.from_bytes(hashlib.blake2b(str(k).encode(), key=b"\x0f" * 16, digest_size=8).digest()) * 11 >> 64
        for k in range(2000)
    ]
    expected = [0 if place < 3 else 1 if place < 4 else 2 for place in whole]
    for ids in (range(2000), [str(k) for k in range(2000)], np.arange(2000.0)):
        assert assignment.parts_of(ids).tolist() == expected
    assert assignment.parts_of(range(0)).tolist() == []


def test_parts_have_their_weights_and_every_key_draws_anew() -> None:
    """50,000 ids a key; false alarm: a share off by 7 standard deviations, 3e-12 a key."""
    ids = np.arange(50_000)
    shares = [np.mean(Assignment.drawn(PARTS).parts_of(ids)) for _ in range(3)]
    assert np.all(np.abs(np.array(shares) - 0.2) < 7 * np.sqrt(0.16 / len(ids))) and len(set(shares)) > 1
    assert not abs(np.mean(Assignment.drawn({"training": 39, "test": 11}).parts_of(ids)) - 0.2) < 0.013  # 0.22


@pytest.mark.parametrize("ids", [["a", ""], ["a", None], [1.5, 2.0], [float("nan")], [True], [("a",)]])
def test_rows_without_an_id_are_refused_and_none_is_quoted(ids: list[object]) -> None:
    with refuses("missing") as refusal:
        Assignment.drawn(PARTS).parts_of(ids)
    assert "1.5" not in str(refusal.value)


def test_ids_are_read_alike_and_two_rows_have_one_by_person_alone() -> None:
    by = Assignment.drawn(PARTS)
    alike = [by.parts_of(ids).tolist() for ids in (["7", "8"], [7, 8], np.array([7.0, 8.0]))]
    assert alike[0] == alike[1] == alike[2]
    with refuses("unique"):
        by.parts_of([7, 7])
    assert len(set(replace(by, by="person").parts_of([7, 7]).tolist())) == 1


def test_disjoint_parts_cost_the_larger_and_the_whole_adds_to_each() -> None:
    parts = Assignment.drawn(PARTS)
    training = [line(k, part=parts.label("training")) for k in range(6)]
    test = [line(k, "b", part=parts.label("test")) for k in range(3)]
    whole = [line(0, "c")]
    for neighbours in ("record", "presence", ""):
        assert total([*training, *test, *whole], neighbours).epsilon(1e-5) == total(
            [replace(each, part="") for each in (*training, *whole)], neighbours
        ).epsilon(1e-5)
    everything = total([*training, *test, *whole], OWNER)
    assert everything.epsilon(1e-5) == total([replace(e, part="") for e in (*training, *test, *whole)], OWNER).epsilon(
        1e-5
    )
    assert everything.filtered(1e-5) > total(training, OWNER).filtered(1e-5)
    other = Assignment.drawn(PARTS)  # another key: a row may be in both
    both = [*training, *(replace(each, part=other.label("test")) for each in test)]
    assert total(both).ways()[0].releases == 9
    budget = (1.0, 1e-5)
    require_budget(training, replace(test[0]), 10, budget)
    with refuses("budget", 4, setting="budget"):
        require_budget(training, training[0], 5, budget)
    with refuses("budget", 4, setting="budget"):
        require_budget([*training, *test], whole[0], 5, budget)


def test_persons_are_in_one_part_where_rows_are_assigned_by_person() -> None:
    parts = Assignment.drawn(PARTS, "person")
    label = parts.label("test")
    assert apart(label, "person") == apart(label, "record") is not None
    assert apart(replace(parts, by="record").label("test"), "person") is None
    assert apart(label, OWNER) is apart(label, "stated") is apart("", "record") is None


def test_the_part_is_in_the_line_and_in_no_older_one(tmp_path: Path) -> None:
    parts = Assignment.drawn(PARTS)
    with Ledger(tmp_path / "ledger_0.jsonl") as ledger:
        ledger.append(line(0))
        ledger.append(line(1, part=parts.label("test")))
    first, second = Ledger.read(tmp_path / "ledger_0.jsonl").entries
    assert first.part == "" and second.part == parts.label("test")
    written = [json.loads(each) for each in (tmp_path / "ledger_0.jsonl").read_bytes().splitlines()]
    assert "part" not in written[0] and written[1]["v"] == 6


def test_the_larger_part_holds_against_the_exact_law_of_both() -> None:
    """An independent route: two binary mechanisms on disjoint parts, the second chosen in view of the first's answer;
    the hockey stick of every neighbour, by enumeration, is that of the larger part."""
    flip = np.array([[0.7, 0.3], [0.3, 0.7]])  # P(answer | bit): randomised response

    def law(first: int, second: int) -> np.ndarray:
        then = [flip, flip[:, ::-1]]  # by the first answer
        return np.array([flip[first, a] * then[a][second, b] for a in (0, 1) for b in (0, 1)])

    def delta(p: np.ndarray, q: np.ndarray, epsilon: float) -> float:
        return float(np.maximum(p - np.exp(epsilon) * q, 0).sum())

    for epsilon in (0.0, 0.5, 1.0):
        larger = delta(flip[0], flip[1], epsilon)
        for bits in ((0, 0), (0, 1), (1, 0), (1, 1)):
            for neighbour in ((1 - bits[0], bits[1]), (bits[0], 1 - bits[1])):
                assert delta(law(*bits), law(*neighbour), epsilon) <= larger + 1e-12
        assert epsilon == 0.0 or delta(law(0, 0), law(1, 1), epsilon) > larger + 0.1  # whole owners: more


def test_a_line_of_another_price_pays_for_nothing(tmp_path: Path) -> None:
    """Two plans of one run's name in one ledger, which is then lost: what the dear one had reserved counts, whatever
    the cheap one has written under its name."""
    account, ledger = Account(tmp_path / "account"), tmp_path / "run" / "ledger_0.jsonl"
    cheap = replace(TEN, scale=50 * TEN.scale)
    for mechanism, lines in ((TEN, 0), (cheap, 2)):
        reservation = Reservation(line(0, mechanism=mechanism), 0, 2)
        with Ledger(ledger) as book, reserved(book, reservation, None, account) as held:
            held.begin(line(0, mechanism=mechanism, token=f"{lines}"))
            for release in range(lines):
                book.append(line(release, mechanism=mechanism))
    ledger.unlink()
    (known,) = account.known(DATA)
    assert known.state == "missing"
    assert sorted((entry.mechanism.scale, entry.release) for entry in known.book.reserved) == sorted(
        (mechanism.scale, release) for mechanism in (TEN, cheap) for release in range(2)
    )
