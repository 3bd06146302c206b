"""The ledger on disk, and what its lines cost together."""

import hashlib
import json
import math
import multiprocessing
import os
import signal
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from dpmpc.errors import UsageError
from dpmpc.privacy.book import LedgerError, Reader
from dpmpc.privacy.composition import parse_budget, releases_left, require_budget, spending_of, spent, total
from dpmpc.privacy.discrete import discrete_gaussian_guarantee, discrete_gaussian_scale
from dpmpc.privacy.entry import GENESIS, Entry, parsed
from dpmpc.privacy.gaussian import gaussian_epsilon, gaussian_scale
from dpmpc.privacy.ledger import Ledger
from dpmpc.privacy.ledgers import merge
from dpmpc.privacy.mechanism import Mechanism
from dpmpc.privacy.sensitivity import Sensitivity
from dpmpc.privacy.spending import Spending
from tests.alone import alone
from tests.refusals import in_one_line, refuses

GAUSS = Mechanism("gaussian", False, scale=2.0, sensitivity=Sensitivity.flat(0.5), dimension=3)
LAPLACE = Mechanism("laplace", False, scale=2.0, sensitivity=Sensitivity.flat(0.5), dimension=3)


def entry(release: int, run: str = "a", mechanism: Mechanism = GAUSS, data: tuple[str, ...] = ("d",)) -> Entry:
    return Entry(run, release, data, mechanism, planned=10, epsilon=1.0, delta=1e-5)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with Ledger(tmp_path / "sub" / "ledger_0.jsonl") as ledger:
        for k in range(4):
            ledger.append(entry(k))
    return tmp_path / "sub" / "ledger_0.jsonl"


def test_round_trip_chain_and_resume(path: Path) -> None:
    with Ledger(path) as ledger:
        head = ledger.append(entry(4))
    book = Ledger.read(path, head=head)
    assert book.entries == tuple(entry(k) for k in range(5))
    assert (book.torn, book.unknown, book.lines, book.head) == (0, 0, 5, head)
    assert json.loads(path.read_text().splitlines()[0])["prev"] == GENESIS
    assert os.stat(path).st_mode & 0o077 == 0


def test_a_ledger_is_parsed_once_for_all_who_ask_and_anew_whatever_byte_changes(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fed: list[int] = []
    feed = Reader.feed

    def counted(self: Reader, content: bytes) -> None:
        fed.append(len(content))
        feed(self, content)

    monkeypatch.setattr(Reader, "feed", counted)
    assert Ledger.read(path) == Ledger.read(path) and len(fed) == 1
    head = Ledger.read(path).head
    with Ledger(path) as ledger:
        ledger.append(entry(4))
    fed.clear()
    assert Ledger.read(path).lines == 5 and len(fed) == 1
    changed = path.read_bytes().replace(b'"release":2', b'"release":7')
    stamp = os.stat(path)
    path.write_bytes(changed)
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    with pytest.raises(LedgerError):
        Ledger.read(path)
    path.write_bytes(b"".join(changed.splitlines(keepends=True)[:2]))
    with pytest.raises(LedgerError):
        Ledger.read(path, head=head)
    path.unlink()
    with pytest.raises(UsageError):
        Ledger.read(path)


def format_1(path: Path) -> str:
    """Writes a ledger as format 1 had it, the law and whether it is discrete in one word; the digest of its end."""
    head = GENESIS
    with path.open("wb") as file:
        for k, (law, scale) in enumerate(
            [("discrete-gaussian", 5000.5), ("gaussian", 2.0), ("discrete-laplace", 300.0), ("laplace", 2.0)]
        ):
            discrete = law.startswith("discrete")
            mechanism = {"law": law, "scale": scale, "sensitivity": 16.0 if discrete else 0.5, "dimension": 3}
            mechanism |= {"tv": 2.0**-60 if discrete else 0.0, "log_ratio": 0.0, "mpc_failure": 0.0 if k else 2.0**-42}
            record: dict[str, object] = {"v": 1, "prev": head, "run": "old", "release": k, "data": ["d"]}
            record |= {"mechanism": mechanism, "planned": 4, "epsilon": 1.0, "delta": 1e-5}
            line = json.dumps(record, separators=(",", ":")).encode()
            file.write(line + b"\n")
            head = hashlib.sha256(line).hexdigest()
    return head


def test_lines_of_format_1_are_read_priced_and_followed(tmp_path: Path) -> None:
    """The digest and the Gaussian epsilons are those that the program which wrote format 1 gave; a pure release of
    epsilon e costs e + log(1 - delta (1 + 1/e^e)) at delta."""
    path = tmp_path / "ledger_0.jsonl"
    assert format_1(path) == "a935439554e09c9dfb840208c126cb68c1f05191b85b21ad41b07f72743f59b2"
    old = Ledger.read(path).entries
    assert [(e.mechanism.law, e.mechanism.discrete) for e in old] == [
        ("gaussian", True), ("gaussian", False), ("laplace", True), ("laplace", False)
    ]  # fmt: skip
    epsilons = [total([e]).epsilon(1e-5) for e in old]
    pure = [e + math.log1p(-1e-5 * (1 + math.exp(-e))) for e in (16 / 300, 0.25)]
    assert epsilons == pytest.approx([0.007534997864903662, 0.9263415039991558, *pure], rel=1e-8)
    with Ledger(path) as ledger:
        ledger.append(entry(4))
    book = Ledger.read(path)
    assert book.entries == (*old, entry(4)) and book.torn == 0
    assert [json.loads(line)["v"] for line in path.read_text().splitlines()] == [1, 1, 1, 1, 6]
    with Ledger(tmp_path / "ledger_1.jsonl") as ledger:  # another party noted one of them in format 2
        ledger.append(old[2])
    assert sorted(e.release for e in merge([book, Ledger.read(tmp_path / "ledger_1.jsonl")])) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("change", [(b'"v":1', b'"v":3'), (b'"discrete-laplace"', b'"laplace"')])
def test_a_changed_line_of_format_1_is_found(tmp_path: Path, change: tuple[bytes, bytes]) -> None:
    path = tmp_path / "ledger_0.jsonl"
    format_1(path)
    path.write_bytes(path.read_bytes().replace(*change, 1))
    with refuses("ledger", "ledger_0.jsonl", kind=LedgerError):
        Ledger.read(path)


def test_every_changed_byte_but_the_last_line_is_found(path: Path) -> None:
    content = path.read_bytes()
    last = content.rstrip(b"\n").rfind(b"\n") + 1
    for position in range(0, last):
        changed = bytearray(content)
        changed[position] ^= 1
        path.write_bytes(changed)
        with pytest.raises(LedgerError):
            Ledger.read(path)
    path.write_bytes(content)
    Ledger.read(path)


def test_removed_inserted_swapped_lines_are_found(path: Path) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    for bad in (lines[1:], lines[:1] + lines[2:], [lines[1], lines[0], *lines[2:]], [*lines[:2], *lines[1:]]):
        path.write_bytes(b"".join(bad))
        with refuses("ledger", "ledger_0.jsonl", kind=LedgerError):
            Ledger.read(path)
        with pytest.raises(LedgerError):
            Ledger(path)


def test_a_lost_end_shows_against_the_head(path: Path) -> None:
    head = Ledger.read(path).head
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]))
    assert len(Ledger.read(path).entries) == 3
    with refuses("ledger", "lost its end", kind=LedgerError):
        Ledger.read(path, head=head)


def test_a_torn_end_is_counted_kept_and_followed(path: Path) -> None:
    whole = path.read_bytes()
    start = whole.rstrip(b"\n").rfind(b"\n") + 1
    for cut in range(start + 1, len(whole) - 1):
        path.write_bytes(whole[:cut])
        book = Ledger.read(path)
        assert (len(book.entries), book.torn, book.entries[-1]) == (4, 1, entry(3))
        with Ledger(path) as ledger:
            ledger.append(entry(3))
            ledger.append(entry(4))
        assert path.read_bytes().startswith(whole[:cut] + b"\n")
        book = Ledger.read(path)
        assert book.entries == (entry(0), entry(1), entry(2), entry(3), entry(3), entry(4))
        assert book.torn == 1
    path.write_bytes(whole[:-1])  # only the newline is missing: the line is whole
    assert Ledger.read(path).torn == 0
    with Ledger(path) as ledger:
        ledger.append(entry(4))
    assert Ledger.read(path).entries == tuple(entry(k) for k in range(5))


def test_a_torn_first_line_is_priced_by_its_successor(tmp_path: Path) -> None:
    path = tmp_path / "ledger_0.jsonl"
    path.write_bytes(b'{"v":1,"pr')
    assert (Ledger.read(path).unknown, Ledger.read(path).entries) == (1, ())
    with Ledger(path) as ledger:
        ledger.append(entry(0))
    assert Ledger.read(path).entries == (entry(0), entry(0))
    assert Ledger.read(path).unknown == 0


def test_a_false_torn_mark_does_not_hide_an_edit(path: Path) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    lines[1] = b"{broken}\n"
    path.write_bytes(b"".join(lines))
    with refuses("ledger", 2, kind=LedgerError):
        Ledger.read(path)


def test_one_writer(path: Path) -> None:
    with Ledger(path), refuses("over"):
        Ledger(path)


def test_unreadable_ledger(tmp_path: Path) -> None:
    with refuses("path"):
        Ledger.read(tmp_path / "none")


def _write_for_ever(path: Path, announce: Connection) -> None:
    with Ledger(path) as ledger:
        for k in range(10**6):
            ledger.append(entry(k))
            announce.send_bytes(b".")


@pytest.mark.slow
def test_killed_writers_never_lose_a_line_that_append_returned_for(tmp_path: Path) -> None:
    """A writer is killed 4 times at any moment: every line announced after `append` returned is in the ledger."""
    alone(_killed, tmp_path)


def _killed(tmp_path: Path) -> None:
    path = tmp_path / "ledger_0.jsonl"
    announced = 0
    context = multiprocessing.get_context("fork")
    for round_ in range(4):
        reader, writer = context.Pipe(duplex=False)
        process = context.Process(target=_write_for_ever, args=(path, writer))
        process.start()
        writer.close()
        for _ in range(1 + 7 * round_):
            reader.recv_bytes()
            announced += 1
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        try:
            while reader.recv_bytes():
                announced += 1
        except EOFError:
            reader.close()
        assert announced <= len(Ledger.read(path).entries) <= announced + round_ + 1


def test_copies_of_other_parties_count_once_and_repeats_twice(tmp_path: Path) -> None:
    first = [entry(0), entry(1), entry(1)]
    second = [entry(0), entry(1), entry(2), entry(0, run="b")]
    read = []
    for i, group in enumerate((first, second)):
        with Ledger(tmp_path / f"ledger_{i}.jsonl") as ledger:
            for e in group:
                ledger.append(e)
        read.append(Ledger.read(tmp_path / f"ledger_{i}.jsonl"))
    merged = merge(read)
    assert sorted((e.run, e.release) for e in merged) == [("a", 0), ("a", 1), ("a", 1), ("a", 2), ("b", 0)]
    other = replace(entry(0), mechanism=LAPLACE)
    with Ledger(tmp_path / "ledger_2.jsonl") as ledger:
        ledger.append(other)
    assert len(merge([*read, Ledger.read(tmp_path / "ledger_2.jsonl")])) == 6


def test_a_plan_that_was_run_twice_is_spent_twice(tmp_path: Path) -> None:
    books = []
    for run in ("first", "second"):  # two run directories, two parties; the plan gives both the same run id
        for party in range(2):
            path = tmp_path / run / f"ledger_{party}.jsonl"
            with Ledger(path) as ledger:
                for release in range(3):
                    ledger.append(entry(release))
            books.append(Ledger.read(path))
    assert sorted(e.release for e in merge(books)) == [0, 0, 1, 1, 2, 2]


def test_gaussian_runs_compose_by_mu_squared() -> None:
    wide = replace(GAUSS, scale=5.0)
    entries = [entry(k) for k in range(3)] + [entry(k, "b", wide) for k in range(7)]
    mu = math.sqrt(3 * 0.25**2 + 7 * 0.1**2)
    result = spent(entries, "d", 1e-5)
    assert result.epsilon == pytest.approx(gaussian_epsilon(1.0, 1e-5, mu), rel=1e-9)
    assert (result.runs, result.releases, result.delta) == (2, 10, 1e-5)
    assert spent(entries, "d").delta == 1e-5
    assert spent(entries, "other").epsilon == 0


def test_laplace_adds_and_mixtures_take_the_better_bound() -> None:
    assert total([entry(k, mechanism=LAPLACE) for k in range(4)]).epsilon(0.0) == pytest.approx(1.0)
    many = [entry(k, mechanism=replace(LAPLACE, scale=500.0)) for k in range(10_000)]
    assert total(many).epsilon(1e-5) < 0.6 < 9.9 < total(many).epsilon(0.0)
    mixed = [entry(0), entry(1, mechanism=LAPLACE)]
    alone = gaussian_epsilon(2.0, 1e-5, 0.5)
    assert alone < total(mixed).epsilon(1e-5) < alone + 0.22  # basic composition would say 0.25
    assert total(mixed).epsilon(0.0) == math.inf


def test_failures_and_ratios_enter_the_total() -> None:
    sigma = discrete_gaussian_scale(1.0, 1e-5, 1000.0, 50, 30, tv_per_coordinate=1e-12, mpc_failure=2.0**-40)
    mechanism = Mechanism(
        "gaussian", True, sigma, Sensitivity.flat(1000.0), 30, tv=1e-12, log_ratio=0.0, mpc_failure=2.0**-40 / 50
    )
    entries = [entry(k, mechanism=mechanism) for k in range(50)]
    assert total(entries).epsilon(1e-5) == pytest.approx(1.0, rel=1e-8)
    guarantee = discrete_gaussian_guarantee(
        sigma, 1000.0, 50, 30, epsilon=1.0, tv_per_coordinate=1e-12, mpc_failure=2.0**-40
    )
    assert guarantee.delta == pytest.approx(1e-5, rel=1e-8)
    leaky = replace(mechanism, tv=1e-6)
    assert total([entry(0, mechanism=leaky)]).epsilon(1e-5) == math.inf
    narrow = replace(mechanism, scale=1.2, sensitivity=Sensitivity.flat(1.0), tv=0.0, mpc_failure=0.0)
    assert math.isfinite(total([entry(0, mechanism=narrow)]).epsilon(1e-5))
    assert (Spending() + spending_of(narrow, 0)).epsilon(1e-5) == 0
    assert spending_of(narrow, 3) == spending_of(narrow) + spending_of(narrow) + spending_of(narrow)


def test_a_run_planned_for_exactly_the_budget_passes_and_one_more_release_does_not() -> None:
    sigma = gaussian_scale(1.0, 1e-5, 0.5, 50)
    price = replace(GAUSS, scale=sigma)
    planned = entry(0, mechanism=price)
    require_budget([], planned, 50, (1.0, 1e-5))
    with refuses("budget", 50, setting="budget"):
        require_budget([], planned, 51, (1.0, 1e-5))
    half = [entry(k, mechanism=price) for k in range(20)]
    require_budget(half, planned, 30, (1.0, 1e-5))
    require_budget(half, replace(planned, data=("new",)), 50, (1.0, 1e-5))
    with refuses("budget", 20, 31, setting="budget"):
        require_budget(half, replace(planned, data=("new", "d")), 31, (1.0, 1e-5))
    with pytest.raises(UsageError):
        require_budget(half, planned, 30, (1.0, 1e-5), unknown=1)
    with pytest.raises(UsageError):
        require_budget([], planned, 1, (1.0, 0.0))
    assert releases_left(total(half), planned, (1.0, 1e-5)) == 30


@pytest.mark.parametrize(
    "change",
    [
        {"scale": -1.0},
        {"scale": math.nan},
        {"sensitivity": -1.0},
        {"dimension": 0},
        {"tv": -1e-9},
        {"law": None},
        {"discrete": "yes"},
        {"discrete": 1},
    ],
)
def test_impossible_mechanisms_are_refused(change: dict[str, object]) -> None:
    with in_one_line():
        replace(GAUSS, **change)  # type: ignore[arg-type]
    with pytest.raises(UsageError):
        entry(0, data=())


def test_a_law_that_is_not_installed_here_has_no_price() -> None:
    unknown = entry(0, mechanism=replace(GAUSS, law="cauchy"))
    for question in (lambda: total([unknown]).epsilon(1e-5), lambda: spent([entry(1), unknown], "d")):
        with refuses("choice", "cauchy"):
            question()


def test_a_release_without_noise_hides_nothing() -> None:
    bare = entry(0, mechanism=replace(GAUSS, scale=0.0))
    assert total([bare]).epsilon(1e-5) == total([entry(1), bare]).epsilon(0.5) == math.inf
    with refuses("budget", 1, setting="budget"):
        require_budget([bare], entry(1), 1, (1e6, 0.5))


def test_laplace_failures_become_a_delta() -> None:
    entries = [entry(k, mechanism=replace(LAPLACE, tv=1e-15)) for k in range(4)]
    pure = [replace(e, delta=0.0) for e in entries]
    result = spent(pure, "d")
    assert result.epsilon == pytest.approx(1.0)
    assert result.delta == pytest.approx((1 + math.e) * 4 * 3 * 1e-15, rel=1e-6)
    assert total(pure).epsilon(0.0) == math.inf


def test_a_line_that_says_almost_what_one_before_it_said_is_read_by_itself(path: Path) -> None:
    """1 and 1.0 are no truth values, though Python holds them equal to one: what was read before does not stand in."""
    line = path.read_bytes().splitlines()[1]
    assert parsed(line) == parsed(line)
    for wrong in (b'"discrete":0', b'"discrete":0.0', b'"discrete":null'):
        assert b'"discrete":false' in line and parsed(line.replace(b'"discrete":false', wrong)) is None
    other = parsed(line.replace(b'"scale":2.0', b'"scale":3.0'))
    assert other is not None and other.entry.mechanism == replace(GAUSS, scale=3.0)


@pytest.mark.parametrize("given", [(1.0, 1e-5), 1.0, None, b"1,1e-5", "1", "1,2,3", "one,two"])
def test_a_budget_of_another_form_is_one_line(given: object) -> None:
    assert parse_budget("1,1e-5") == (1.0, 1e-5)
    with refuses("type", "EPS", "DELTA", setting="budget"):
        parse_budget(given)  # type: ignore[arg-type]
