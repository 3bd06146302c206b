"""Which lines of which ledgers are one release: attempts are told apart, whoever wrote of them, whatever is at hand."""

import json
import random
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest
from click.testing import CliRunner

from dpmpc.cli.main import named
from dpmpc.privacy.budget import Budget, reserved
from dpmpc.privacy.entry import Entry
from dpmpc.privacy.gaussian import gaussian_scale
from dpmpc.privacy.ledger import Ledger
from dpmpc.privacy.ledgers import Reservation, attempts, merge, read_ledgers
from dpmpc.privacy.mechanism import Mechanism
from dpmpc.privacy.sensitivity import Sensitivity
from tests.refusals import refuses

budget_command = named("budget")

HALF, OWNER = Sensitivity.flat(0.5), (("owner", Sensitivity.flat(20.0)),)
FIFTY = Mechanism("gaussian", False, gaussian_scale(1.0, 1e-5, 0.5, 50), HALF, 3)  # 50 of them: (1, 1e-5)-private
T1, T2 = "1" * 32, "2" * 32


def line(release: int, token: str = "", planned: int = 50, **changes: object) -> Entry:
    entry = Entry(
        "a",
        release,
        ("d",),
        FIFTY,
        planned,
        1.0,
        1e-5,
        ("hospital",),
        0,
        "record",
        (("owner", Sensitivity.flat(20.0)),),
        token=token,
    )
    return replace(entry, **changes)  # type: ignore[arg-type]


def write(path: Path, token: str, first: int, end: int, name: str | None = None, **changes: object) -> Path:
    """An attempt's lines of one process."""
    with Ledger(path, name) as ledger:
        if token:
            ledger.begin(line(first, token))
        for release in range(first, end):
            ledger.append(line(release, **changes))
    return path


def numbers(root: Path, *files: Path) -> list[int]:
    return sorted(entry.release for entry in merge(read_ledgers(root, files=files or None)))


def test_two_runs_of_a_plan_are_two_whichever_parties_ledgers_are_there(tmp_path: Path) -> None:
    one = write(tmp_path / "first" / "ledger_0.jsonl", T1, 0, 5)
    two = write(tmp_path / "second" / "ledger_1.jsonl", T2, 0, 3)
    assert numbers(tmp_path) == [0, 0, 1, 1, 2, 2, 3, 4]
    same = write(tmp_path / "third" / "ledger_1.jsonl", T1, 0, 6)
    assert numbers(tmp_path, one, same) == [0, 1, 2, 3, 4, 5]
    assert attempts(read_ledgers(tmp_path)) == {"a": 2}
    assert numbers(tmp_path, two, same) == [0, 0, 1, 1, 2, 2, 3, 4, 5]


def test_ledgers_of_before_tokens_count_as_they_did_and_apart_from_new_ones(tmp_path: Path) -> None:
    old = [write(tmp_path / f"ledger_{i}.jsonl", "", 0, 3) for i in range(2)]
    assert numbers(tmp_path, *old) == [0, 1, 2]
    write(old[1], T1, 3, 5)  # the run is carried on by this version
    assert numbers(tmp_path, *old) == [0, 1, 2, 3, 4]
    new = write(tmp_path / "new" / "ledger_0.jsonl", T2, 0, 2)
    assert numbers(tmp_path, *old, new) == [0, 0, 1, 1, 2, 3, 4]


def test_owners_and_parties_of_one_attempt_spend_once(tmp_path: Path) -> None:
    """Also where parties say which owners were there, which an owner does not know before it sends."""
    for i in range(3):
        write(tmp_path / f"party{i}" / f"ledger_{i}.jsonl", T1, 0, 5, present=(0, 2), lost=(2,) if i < 2 else ())
    for j in range(4):
        write(tmp_path / f"owner{j}" / "ledger_owners.jsonl", T1, 0, 6, f"owner {j}")
    assert numbers(tmp_path) == [0, 1, 2, 3, 4, 5]
    # shares over two sets would be two releases: that none leave is the parties' business, to count them is this one's
    write(tmp_path / "party3" / "ledger_3.jsonl", T1, 4, 5, present=(0, 1))
    assert numbers(tmp_path) == [0, 1, 2, 3, 4, 4, 5]


@pytest.mark.parametrize("cut", [1, 5, 12, 40, 200])
def test_half_of_the_first_line_spends_nothing_and_a_budget_that_fits_still_does(tmp_path: Path, cut: int) -> None:
    path = write(tmp_path / "a" / "ledger_0.jsonl", T1, 0, 0)
    path.write_bytes(path.read_bytes()[:cut])
    (book,) = read_ledgers(tmp_path)
    assert (book.entries, book.torn, book.unknown, book.torn_end) == ((), 0, 0, True)
    limit = Budget(1.0, 1e-5, tmp_path)
    with Ledger(path) as ledger, reserved(ledger, Reservation(line(0), 0, 50), limit) as held:
        held.begin(line(0, T2))
        for release in range(50):
            ledger.append(line(release))
    assert numbers(tmp_path) == list(range(50))


def test_half_of_a_release_is_that_attempt_s_next_one(tmp_path: Path) -> None:
    """Also the very first of an attempt; and what is torn twice in a row can be read."""
    whole = write(tmp_path / "b" / "ledger_1.jsonl", T1, 0, 4)
    for k in range(4):
        path = write(tmp_path / str(k) / "ledger_0.jsonl", T1, 0, k + 1)
        lines = path.read_bytes().split(b"\n")
        path.write_bytes(b"\n".join([*lines[: k + 1], lines[k + 1][:9]]))
        (book,) = read_ledgers(tmp_path, files=[path])
        assert (book.torn, book.unknown) == (1, 0) and book.entries[-1] == line(k, T1)
        assert numbers(tmp_path, path, whole) == [0, 1, 2, 3]
        write(path, T2, 4, 4)
        raw = path.read_bytes()
        path.write_bytes(raw[: raw.rstrip(b"\n").rfind(b"\n") + 20])  # killed while it begins again
        write(path, T2, 4, 6)
        assert numbers(tmp_path, path, whole) == [0, 1, 2, 3, 4, 5]


def test_a_damaged_release_does_not_pass_for_half_of_a_beginning(tmp_path: Path) -> None:
    path = write(tmp_path / "ledger_0.jsonl", T1, 0, 3)
    raw = path.read_bytes()
    at = raw.rstrip(b"\n").rfind(b"\n") + 1
    path.write_bytes(raw[:at] + b"[" + raw[at + 1 : -1])  # one bit of the last line
    assert numbers(tmp_path) == [0, 1, 2]


def test_releases_that_others_made_meanwhile_count(tmp_path: Path) -> None:
    """Party 0 was away for the releases 3 to 9; its own ledger knows, and with the others' ledgers nothing counts
    twice."""
    mine = write(tmp_path / "0" / "ledger_0.jsonl", T1, 0, 3)
    other = write(tmp_path / "1" / "ledger_1.jsonl", T1, 0, 10)
    for path, i in ((mine, 0), (other, 1)):
        write(path, T2, 10, 12 + i)
    assert numbers(tmp_path, mine) == list(range(12)) and numbers(tmp_path) == list(range(13))
    answer = json.loads(CliRunner().invoke(budget_command, [str(mine.parent), "--json"]).output)
    assert answer["parts"] == [{"run": "a", "lines": 5, "counted": 12, "planned": 50, "parties": []}]
    lost = write(tmp_path / "lost" / "ledger_0.jsonl", T2, 10, 12)  # without a ledger of before
    assert numbers(tmp_path, lost) == list(range(12)) and numbers(tmp_path, lost, other) == list(range(13))


def test_a_run_that_goes_on_elsewhere_counts_whole_until_more_is_known(tmp_path: Path) -> None:
    mine = write(tmp_path / "0" / "ledger_0.jsonl", T1, 0, 3)
    with Ledger(mine) as ledger:
        ledger.goes_on(line(3), (1, 2))
    assert numbers(tmp_path) == list(range(50))
    shown = CliRunner().invoke(budget_command, [str(tmp_path)]).output
    assert "3 releases have a line here, 50 of 50 planned are counted" in shown
    assert "the ledgers of parties 1, 2 have them" in shown
    limit = Budget(1.0, 1e-5, tmp_path)
    with refuses("budget", 50, 1, setting="budget"):  # another run
        with (
            Ledger(tmp_path / "n" / "ledger_0.jsonl") as ledger,
            reserved(ledger, Reservation(line(0, run="n"), 0, 1), limit),
        ):
            pass
    with Ledger(mine) as ledger, reserved(ledger, Reservation(line(3), 3, 50), limit) as held:  # the same run again
        assert numbers(tmp_path) == list(range(50))
        held.begin(line(9, T2))
        for release in range(9, 50):
            ledger.append(line(release))
    assert numbers(tmp_path) == list(range(50))  # 3 to 8 others made
    answer = json.loads(CliRunner().invoke(budget_command, [str(tmp_path), "--json"]).output)
    assert (answer["parts"][0]["lines"], answer["parts"][0]["counted"]) == (44, 50)


def test_what_others_made_counts_when_an_attempt_begins(tmp_path: Path) -> None:
    """Party 0 reserves what its ledger lacks of 45; others made 3 to 19 meanwhile, as it hears. From its ledger alone,
    another run can have 5 of 50 beside, no more, and its own lines are held against all of that."""
    write(tmp_path / "0" / "ledger_0.jsonl", T1, 0, 3)
    limit = Budget(1.0, 1e-5, tmp_path)
    with Ledger(tmp_path / "0" / "ledger_0.jsonl") as ledger:
        with reserved(ledger, Reservation(line(3), 3, 45), limit) as held:
            held.begin(line(20, T2))
            with Ledger(tmp_path / "n" / "ledger_0.jsonl") as other:
                with reserved(other, Reservation(line(0, run="n"), 0, 5), limit):
                    pass
                with refuses("budget", 45, setting="budget"):
                    reserved(other, Reservation(line(0, run="n"), 0, 6), limit).__enter__()
                for release in range(5):  # without a budget
                    other.append(line(release, run="n"))
            for release in range(20, 45):
                ledger.append(line(release))
            with refuses("budget", 45):
                ledger.append(line(45))
    assert len(merge(read_ledgers(tmp_path))) == 50


def test_what_is_reserved_for_one_attempt_is_told_from_another_s(tmp_path: Path) -> None:
    """Party 1's ledger of an earlier run of the plan is here; party 0 runs the plan again, in a ledger of its own."""
    write(tmp_path / "first" / "ledger_1.jsonl", T1, 0, 50)
    limit = Budget(1.0, 1e-5, tmp_path)
    with Ledger(tmp_path / "second" / "ledger_0.jsonl") as ledger:
        with reserved(ledger, Reservation(line(0), 0, 50), limit) as held:  # it might be a part of that attempt
            with refuses("budget", 50, setting="budget"):
                held.begin(line(0, T2))
            with refuses("budget", 0):
                ledger.append(line(0, T2))
    assert numbers(tmp_path) == list(range(50))


def test_one_attempt_is_reserved_once_by_all_its_processes_wherever_it_stands(tmp_path: Path) -> None:
    limit = Budget(1.0, 1e-5, tmp_path)
    names = ["ledger_0.jsonl", "ledger_1.jsonl", "ledger_2.jsonl", "owners 0", "owners 1"]
    ledgers = [Ledger(tmp_path / name / ("ledger_owners.jsonl" if "owners" in name else name), name) for name in names]
    holds = [reserved(ledger, Reservation(line(0), 0, 50), limit) for ledger in ledgers]
    held = [hold.__enter__() for hold in holds]
    for k, each in enumerate(held):  # some have begun, others have not
        each.begin(line(0, T1))
        ledgers[k].append(line(0))
    for k in range(1, 9):
        for ledger in ledgers:
            ledger.append(line(k))
    assert numbers(tmp_path) == list(range(50))
    for hold, ledger in zip(holds, ledgers, strict=True):
        hold.__exit__(None, None, None)
        ledger.close()


@pytest.mark.slow
def test_no_mixture_of_ledgers_counts_fewer_releases_than_they_tell_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """80 random histories of two runs of one plan, three parties and two owners, interrupted at random, some ledgers
    copied, cut off, torn or of before tokens; any of them at hand. What is counted is at least the number of releases
    (attempt and number) that a line at hand has, and with everything at hand no more than were made and torn."""
    monkeypatch.setattr("dpmpc.privacy.ledger.os.fsync", lambda fd: None)
    rng = random.Random(20)
    for case in range(80):
        root, lines = tmp_path / str(case), dict[Path, list[tuple[str, int]]]()
        made = set[tuple[str, int]]()
        for run in range(2):
            first = 0
            for number in range(rng.randint(1, 3)):
                token, end = f"{run}{number}".rjust(32, "0"), first
                for who in range(5):
                    name = f"ledger_{who}.jsonl" if who < 3 else "ledger_owners.jsonl"
                    path = root / str(run) / str(who) / name
                    stop = first + rng.randint(0, 4)
                    write(path, token, first, stop, None if who < 3 else f"owner {who - 3}")
                    lines.setdefault(path, []).extend((token, k) for k in range(first, stop))
                    end = max(end, stop)
                made |= {(token, k) for k in range(first, end)}
                first = end
        assert len(merge(read_ledgers(root))) == len(made)
        some = rng.sample(sorted(lines), rng.randint(1, 5))
        for path in some[:2]:  # copies of any age, by any name
            raw = path.read_bytes().split(b"\n")
            keep = rng.randint(1, len(raw) - 1)
            (root / "copy").mkdir(exist_ok=True)
            copied = root / "copy" / f"ledger_{rng.randint(0, 9)}{path.parent.name}.jsonl"
            copied.write_bytes(b"\n".join(raw[:keep]) + b"\n" + raw[keep][: rng.randint(0, 9)])
            some.append(copied)
        told = {each for path in some for each in lines.get(path, [])}
        assert len(merge(read_ledgers(root, files=some))) >= len(told)


def test_two_of_three_processes_tell_what_all_tell(tmp_path: Path) -> None:
    """Whatever two ledgers of an attempt that ended well are at hand: the same figure."""
    paths = [write(tmp_path / str(i) / f"ledger_{i}.jsonl", T1, 0, 4) for i in range(3)]
    paths.append(write(tmp_path / "o" / "ledger_owners.jsonl", T1, 0, 4, "owner 0"))
    assert all(numbers(tmp_path, *pair) == [0, 1, 2, 3] for pair in combinations(paths, 2))
