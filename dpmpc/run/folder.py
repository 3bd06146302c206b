"""The run directory before a run: who may use it, and what is cleared away."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from dpmpc.aggregation.wire.transcript import holds_nothing
from dpmpc.errors import UsageError
from dpmpc.folders import OUT, is_half, make_folder, matching, not_new
from dpmpc.privacy.book import Book
from dpmpc.privacy.ledger import Ledger

# What --overwrite removes of an earlier run. Its ledgers stay: what was spent stays spent.
_FILES = ("*.json", "party_*.jsonl", "*.log", "*.bin", "history.csv", "model.npz", "report.svg", "report.html",
          "report.png", "*.tmp",
          "survey/*.json", "survey/party_*.jsonl", "survey/*.log", "survey/*.bin", "survey/*.npy", "survey/*.tmp",
          "words/*.json", "words/party_*.jsonl", "words/*.log", "words/*.bin", "words/*.npy", "words/*.tmp",
          "questions/*.json", "questions/party_*.jsonl", "questions/*.log", "questions/*.bin", "questions/*.npy",
          "questions/answers.*", "questions/*.tmp",
          "evaluation/*.json", "evaluation/party_*.jsonl", "evaluation/*.log", "evaluation/*.bin", "evaluation/*.npy",
          "evaluation/*.tmp")  # fmt: skip


def request_path(out: Path) -> Path:
    """Where a run keeps the request it was started with, for --resume."""
    return out / "request.json"


def prepare(out: Path, *, overwrite: bool, resume: bool) -> None:
    """Makes the run directory, and clears away what a run left that failed before its first release. Errors: it holds
    another run and neither --overwrite nor --resume is given, or it cannot be written."""
    held = out.exists() and (not out.is_dir() or not all(map(is_half, out.iterdir())))
    if resume:
        if not request_path(out).is_file():
            raise UsageError(
                f"<<resume>> needs the request.json of a run that was started on one machine; {out} has none; start a "
                "new run without <<resume>>; a process of several machines is started again with its own command",
                code="file",
            )
        if (out / "report.json").exists():
            raise UsageError(f"<<resume>> is for interrupted runs; {out} is finished; see its report.json")
        return
    if held and not overwrite and not _failed_early(out):
        unfinished = request_path(out).is_file() and not (out / "report.json").exists()
        on = f", or carry on with <<resume={out}>>" if unfinished else ""
        raise not_new(out, f", or add <<overwrite>>{on}")
    if held:
        known = (request_path(out), out / "plan.json", out / "owners.log")
        if not out.is_dir() or not any(path.exists() for path in known):
            raise UsageError(
                f"<<overwrite>> replaces an earlier run; {out} does not look like one; name another directory",
                code="over",
            )
        for pattern in _FILES:
            for path in matching(out, pattern):
                path.unlink()
    make_private(out)


def make_private(out: Path) -> None:
    """Makes a run directory that this user alone can enter: utility figures come from plain records, and a party's
    files tell who took part when. Errors: it cannot be written."""
    make_folder(out, OUT, private=True)
    try:
        out.chmod(0o700)
    except OSError as error:  # another user's
        raise UsageError(f"{OUT}; {out}: {error.strerror}; name another") from None


def opened_nothing(*files: Path) -> bool:
    """Whether each of these ledgers and files of opened vectors is empty or absent, or a ledger that tells of no
    release yet: nothing was spent or opened."""
    there = [file for file in files if not holds_nothing(file)]
    return all(file.suffix == ".jsonl" and _tells_nothing(Ledger.read(file)) for file in there)


def _tells_nothing(book: Book) -> bool:
    return not (book.entries or book.unknown or book.gaps or book.open)


@contextlib.contextmanager
def alone(out: Path) -> Iterator[None]:
    """Keeps other runs out of the directory `out`. Errors: one is in it."""
    descriptor = os.open(out, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(
                f"a run directory has one run at a time; {out} is in use by another process; wait, or name another"
            ) from None
        yield
    finally:
        os.close(descriptor)


def _failed_early(out: Path) -> bool:
    """Whether `out` holds only what a run leaves that failed before its first release."""
    if not out.is_dir() or not (out / "request.json").is_file() or not (out / "owners.log").is_file():
        return False
    ledgers = set(matching(out, "ledger_*.jsonl"))
    ours = ledgers.union(*(matching(out, pattern) for pattern in (*_FILES, "used_*.txt")))
    finished = any((out / name).exists() for name in ("report.json", "model.npz"))
    return not finished and set(out.iterdir()) <= ours and opened_nothing(*ledgers, *matching(out, "*.opened.bin"))


def run_folder(folder: Path) -> Path:
    """The folder that a run's files are in: `folder`, or `run` of the kit in it."""
    kept = ("plan.json", "report.json", "status_*.json", "party_*.transcript.jsonl")
    inner = folder / "run"
    is_kit = (folder / "site.toml").is_file() or not any(matching(folder, name) for name in kept)
    return inner if is_kit and inner.is_dir() else folder
