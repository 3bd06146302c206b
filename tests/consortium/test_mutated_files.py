"""Some of the changes of `tests/endurance/mutated_files.py`, and each kind that once had no line of its own."""

import contextlib
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dpmpc.cli import main as cli
from dpmpc.errors import UsageError, as_written
from dpmpc.privacy.account import Account
from tests.endurance.mutated_files import (
    CHECK,
    DRY,
    PREDICT,
    READS,
    REPORT,
    STATUS,
    VERIFY,
    ended,
    made,
    tried,
    wrong_with,
)
from tests.refusals import refuses


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Records, a finished run, kits and an account, in the current folder."""
    where = tmp_path_factory.mktemp("files")
    with pytest.MonkeyPatch.context() as patch, contextlib.chdir(where):
        patch.setenv("DPMPC_ACCOUNT", str(where / "account"))
        made(where)
        yield where


@pytest.mark.parametrize("read", READS, ids=lambda read: read.path)
def test_a_changed_file_is_one_line_or_read(read: Any, folder: Path) -> None:
    wrong = list[str]()
    number, _ = tried(read, folder, random.Random(29), 3, wrong.append)
    assert number == 3 and wrong == []


def put(text: str, *at: str | int, value: Any) -> str:
    """A JSON text with this value at a place."""
    whole = part = json.loads(text)
    for step in at[:-1]:
        part = part[step]
    part[at[-1]] = value
    return json.dumps(whole)


def last_line(text: str) -> str:
    lines = text.splitlines()
    event = next(k for k, line in reversed(list(enumerate(lines))) if '"sent"' in line)
    value = json.loads(lines[event])
    party = next(iter(value["sent"]))
    lines[event] = put(lines[event], "sent", party, value=["x", 1])
    return "\n".join([*lines, ""])


@pytest.mark.parametrize(
    ("path", "change", "words", "says"),
    [
        ("kits/o0/plan.json", lambda t: put(t, "source", "learning", "radius", value=10**400), DRY,
         "radius must be a finite number"),
        ("kits/o0/site.toml", lambda t: t.replace('"owner0"', '"owner7"'), DRY, "says owner7; get the kit again"),
        ("kits/o0/site.toml", lambda t: t.replace('"owner0"', '"site0"'), DRY, "says site0; get the kit again"),
        ("run/plan.json", lambda t: put(t, "promise", value=""), VERIFY, "a plan must be what dpmpc wrote"),
        ("run/plan.json", lambda t: '{"a":' * 100_000, VERIFY, "nested too deep"),
        ("run/plan.json", lambda t: put(t, "noise", "law", value="\x1b[2J" + "x" * 10**5), VERIFY,
         "a law of noise is one of"),
        ("run/report.json", lambda t: "[]", REPORT, "must have schema"),
        ("run/report.json", lambda t: put(t, "utility", value=[]), REPORT, "must be as dpmpc wrote it"),
        ("run/report.json", lambda t: put(t, "learning", value=True), REPORT, "must be as dpmpc wrote it"),
        ("run/verify.json", lambda t: put(t, "structure", "checks", 0, value=3), REPORT, "must be as dpmpc wrote it"),
        ("run/history.csv", lambda t: t * 2, REPORT, "history.csv must be as dpmpc wrote it"),
        ("run/party_0.transcript.jsonl", last_line, VERIFY, "a transcript must be as dpmpc wrote it"),
    ],
)  # fmt: skip
def test_what_is_no_file_of_a_run_any_more_is_said(
    folder: Path, path: str, change: Callable[[str], str], words: tuple[str, ...], says: str
) -> None:
    file = folder / path
    good = file.read_text()
    file.write_text(change(good))
    try:
        assert file.read_text() != good
        code, said, fault = ended(words)
        assert not wrong_with(code, said, fault) and code == 2
        assert says in said.splitlines()[-1] and len(said.splitlines()[-1]) < 4000
    finally:
        file.write_text(good)


def test_the_base_is_as_it_should_be(folder: Path) -> None:
    """So that what is seen above comes of the change."""
    for words in (CHECK, PREDICT, VERIFY, REPORT, STATUS):
        code, said, fault = ended(words)
        assert (code, fault) == (0, ""), said
    code, said, _ = ended(DRY)
    assert code == 3 and "meeting the other sites" in said


@pytest.mark.parametrize(
    ("code", "said", "fault"),
    [
        (None, "", "KeyError: 'a' at x.py:1"),
        (None, "", ""),
        (2, "Traceback (most recent call last):\nerror: a; b; c\n", ""),
        (2, "", ""),
        (2, "error: no way out\n", ""),
        (130, "error: stopped; by the user\n", ""),
        (0, "a <<setting>>\n", ""),
        (2, "error: \x1b[2J; no\n", ""),
    ],
)
def test_an_end_that_is_not_as_it_should_be_would_be_seen(code: int | None, said: str, fault: str) -> None:
    assert wrong_with(code, said, fault)


def test_a_line_of_an_account_that_says_nothing_known_is_refused(tmp_path: Path) -> None:
    """Whoever put it there chained it as it must be; what was spent would be forgotten."""
    account = Account(tmp_path)
    for kind in ("negative", "ended"):
        line = {"v": 1, "kind": kind, "prev": "0" * 64, "key": "a", "head": "b", "spent": [], "token": ""}
        account.path("d").write_text(json.dumps(line) + "\n")
        with refuses("file", 1):
            account.known("d")


def test_a_file_that_is_another_keeps_its_cause_and_takes_no_error_of_ours() -> None:
    with refuses("file", "a page", "KeyError: 'a'") as error:
        with as_written("a page", "make it again"):
            raise KeyError("a")
    assert isinstance(error.value.__cause__, KeyError)
    with refuses("usage", "mine"), as_written("a page", "make it again"):
        raise UsageError("mine")


def test_a_last_line_is_harmless_and_has_its_way_out(capsys: pytest.CaptureFixture[str]) -> None:
    cli._last_line((), f"error: a rule; got {'x' * 10**6} \x1b[2J; choose one of them")
    said = capsys.readouterr().err
    assert len(said) < 4000 and "\x1b" not in said and said.endswith("; choose one of them\n")
