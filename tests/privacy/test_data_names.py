"""Names of data: what differs in blanks, case, width or unseen marks alone is one, and nothing that was spent under a
name as it was written before is lost."""

import hashlib
import json
import random
import string
import unicodedata
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import dpmpc
from dpmpc.cli.main import named
from dpmpc.errors import UsageError
from dpmpc.privacy import account_lines, data_names
from dpmpc.privacy import entry as entries
from dpmpc.privacy import ledger as ledger_files
from dpmpc.privacy.account import Account
from dpmpc.privacy.budget import Budget, reserved
from dpmpc.privacy.data_names import canonical, data_digest, folded, same_names
from dpmpc.privacy.entry import Entry
from dpmpc.privacy.gaussian import gaussian_scale
from dpmpc.privacy.ledger import Ledger
from dpmpc.privacy.ledgers import Reservation
from dpmpc.privacy.mechanism import Mechanism
from dpmpc.privacy.seen import ELSEWHERE, seen
from dpmpc.privacy.sensitivity import Sensitivity
from tests.refusals import refuses

command = named("budget")

UNSEEN = [
    c for c in map(chr, range(0x30000)) if unicodedata.category(c) in ("Cf", "Cc", "Zs", "Zl", "Zp")
] + ["\u034f", "\u115f", "\u1160", "\u180b", "\u2800", "\u3164", "\ufe0f", "\uffa0", "\U000e0101"]  # fmt: skip
LETTERS = string.ascii_letters + string.digits + "-_.äéßñçøåÅΣλюЯ漢字한글"
HALF = Mechanism("gaussian", False, gaussian_scale(0.8, 1e-5, 0.5, 4), Sensitivity.flat(0.5), 3)  # (.8, 1e-5) in 4


def written(name: str) -> str:
    """The digest of the text itself, as every version before had it."""
    return hashlib.sha256(b"dpmpc data\0" + name.encode()).hexdigest()


def varied(name: str, rng: random.Random) -> str:
    """The same name as somebody else may write it."""
    wide = {ord(c): ord(c) + 0xFEE0 for c in string.printable if "!" <= c <= "~"}
    out = ""
    for c in name:
        c = rng.choice((c, c.upper(), c.lower(), c.swapcase())) if len(c.upper()) == 1 else c
        c = rng.choice((c, c.translate(wide), unicodedata.normalize("NFD", c), unicodedata.normalize("NFC", c)))
        out += c + "".join(rng.choice(UNSEEN) for _ in range(rng.choice((0, 0, 1, 2))))
    return rng.choice(("", " ", "\t", "\u200b")) + out


def test_however_a_name_is_written_it_is_one() -> None:
    rng = random.Random(5)
    for _ in range(2000):
        name = "".join(rng.choice(LETTERS) for _ in range(rng.randrange(1, 12)))
        other = varied(name, rng)
        assert data_digest(name) == data_digest(other), (name, other)
        assert canonical(written(other), other) == data_digest(name) == canonical(data_digest(name), other)
    assert all(folded(f"a{c}b") == "ab" for c in UNSEEN)


def test_folding_is_done_once_and_a_plain_name_keeps_its_digest() -> None:
    for code in range(0x30000):
        if not 0xD800 <= code < 0xE000:
            once = folded(chr(code))
            assert folded(once) == once
    for name in ("vectors", "records", "hospital", "stays-2025", "breast-cancer", "漢字"):
        assert data_digest(name) == written(name)
    rng = random.Random(6)
    plain = {"".join(rng.choice(string.ascii_lowercase + string.digits) for _ in range(6)) for _ in range(2000)}
    assert len({data_digest(name) for name in plain}) == len(plain)  # nothing more is joined


def test_a_digest_is_moved_by_its_own_name_alone() -> None:
    assert canonical("f" * 64, "Trial") == "f" * 64 and canonical(written("Trial"), None) == written("Trial")
    assert canonical(written("Trial"), "other") == written("Trial")
    assert same_names(["Trial", "trial ", "other", "trial "]) == [["Trial", "trial "]]


def line(release: int, name: str, run: str) -> Entry:
    return Entry(run, release, (written(name),), HALF, 4, 0.8, 1e-5, (name,), 0, "record", token=run)


def spend_as_before(monkeypatch: pytest.MonkeyPatch, account: Account, ledger: Path, name: str, run: str) -> None:
    """A run of a version that took names as they were written."""
    with monkeypatch.context() as patched:
        patched.setattr(entries, "canonical", lambda digest, name: digest)
        with Ledger(ledger) as book, reserved(book, Reservation(line(0, name, run), 0, 4), None, account) as held:
            held.begin(line(0, name, run))
            for release in range(4):
                book.append(line(release, name, run))
    for module in (entries, account_lines, ledger_files):  # what was read the old way
        for function in vars(module).values():
            getattr(function, "cache_clear", lambda: None)()
    assert account.path(written(name)).is_file()


@pytest.mark.parametrize("gone", [False, True])
def test_what_was_spent_under_a_name_as_it_was_written_still_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gone: bool
) -> None:
    account, digest = Account(tmp_path / "account"), data_digest("kept")
    for k, name in enumerate(("Kept", "kept ", "kept")):
        spend_as_before(monkeypatch, account, tmp_path / str(k) / "ledger_0.jsonl", name, f"r{k}")
    stored = Account(tmp_path / "account")
    if gone:
        (tmp_path / "0" / "ledger_0.jsonl").unlink()
    assert stored.data() == [digest] and len(stored.known(digest)) == 3
    found = seen(stored)
    assert found.spent(digest, 1e-5, "record").releases == 12
    assert any("'Kept', 'kept', 'kept '" in text for text in found.unseen()) and found.unseen()[-1] == ELSEWHERE
    assert any("is missing" in text for text in found.unseen()) == gone
    new = replace(line(0, "KEPT", "new"), data=(data_digest("KEPT"),))
    with Ledger(tmp_path / "new" / "ledger_0.jsonl") as book, refuses("budget", 12, setting="budget"):
        with reserved(book, Reservation(new, 0, 4), Budget(1.5, 1e-5, None, stored), stored):
            pass


def test_parts_of_data_that_were_drawn_under_an_older_name_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    account, parts = Account(tmp_path / "account"), {"training": 4, "test": 1}
    spend_as_before(monkeypatch, account, tmp_path / "ledger_0.jsonl", "Ward 7", "r")
    old = account.assignment(written("Ward 7"), "id", parts)
    assert account.assignment(data_digest("ward7"), "id", parts) == old
    assert Account(tmp_path / "account").assignments(data_digest("ward7")) == {"id": old}


def test_the_reader_counts_an_account_and_a_folder_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    account, digest = Account(tmp_path / "account"), data_digest("kept")
    spend_as_before(monkeypatch, account, tmp_path / "a" / "ledger_0.jsonl", "kept", "a")
    spend_as_before(monkeypatch, account, tmp_path / "b" / "ledger_0.jsonl", "kept", "b")
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "ledger_0.jsonl").write_bytes((tmp_path / "a" / "ledger_0.jsonl").read_bytes())  # a copy
    for below, ledgers in ((None, 2), (tmp_path / "a", 2), (tmp_path / "c", 3), (tmp_path, 3)):
        found = seen(account, below)
        assert found.spent(digest, 1e-5, "record").releases == 8 and len(found.known) == ledgers
    alone = seen(None, tmp_path / "a")
    assert alone.spent(digest, 1e-5, "record").releases == 4 and "no account was looked at" in alone.unseen()
    outside = replace(line(0, "kept", "x"), data=("../../outside",), names=())
    with Ledger(tmp_path / "d" / "ledger_0.jsonl") as book:
        book.append(outside)
    assert len(seen(account, tmp_path / "d").known) == 1  # no path is made of what a ledger says


def test_a_budget_is_compared_at_its_own_delta_and_everything_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    account = Account(tmp_path / "account")
    spend_as_before(monkeypatch, account, tmp_path / "a" / "ledger_0.jsonl", "Kept", "a")
    spend_as_before(monkeypatch, account, tmp_path / "b" / "ledger_0.jsonl", "kept", "b")
    for where in ([], [str(tmp_path / "a")]):
        asked = [*where, "--account", str(account.folder), "--budget", "2,1e-9"]
        text = " ".join(CliRunner().invoke(command, asked, catch_exceptions=False).output.split())
        assert "compared with epsilon 2 at delta 1e-09, the budget's own" in text and "one record" in text
        assert "count as one name" in text and str(account.folder) in text and " ".join(ELSEWHERE.split()) in text
        result = CliRunner().invoke(command, [*asked, "--json"])
        (row,) = json.loads(result.output)["data"]
        expected = seen(account).spent(row["data"], 1e-9, "record").epsilon
        assert (row["epsilon"], row["delta"], row["releases"]) == (expected, 1e-9, 8)
    other = CliRunner().invoke(command, ["--account", str(account.folder), "--budget", "2,1e-9", "--delta", "1e-5"])
    assert isinstance(other.exception, UsageError) and "at its own delta" in str(other.exception)


VECTORS = np.zeros((3, 2))


def mean(name: str, account: Path) -> None:
    dpmpc.private_mean(VECTORS, clip=1.0, epsilon=0.8, delta=1e-5, engine="clear", data_id=name, budget="1,1e-5",
                       account=str(account))  # fmt: skip


def test_another_spelling_of_a_name_has_no_budget_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mean("kept", tmp_path / "account")
    for name in ("kept", "kept ", " kept", "KEPT", "ｋｅｐｔ", "ke\u200bpt", "k e p t"):
        with refuses("budget", 1, setting="budget"):
            mean(name, tmp_path / "account")
    mean("kept2", tmp_path / "account")
    monkeypatch.setattr(data_names, "folded", lambda name: name)  # the fault: every spelling spends anew
    mean("KEPT", tmp_path / "account")
