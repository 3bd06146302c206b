"""Heads of accounts: what goes on from a head is seen to, and nothing else; nobody learns more than a length."""

import hashlib
import json
import os
import secrets
import tempfile
from pathlib import Path

import numpy as np
import pytest

from dpmpc.privacy.account import Account
from dpmpc.privacy.heads import MOST_LINES, MOST_SHOWN, Head, HeadError, Memory, seen, shown
from tests.at_once import at_once
from tests.refusals import refuses

DATA = "d" * 64


def lines(count: int) -> list[bytes]:
    return [secrets.token_bytes(32) for _ in range(count)]


def test_a_head_is_what_its_definition_says() -> None:
    mine = lines(3)
    digest = bytes(32)
    for each in mine:
        digest = hashlib.sha256(b"dpmpc head\0" + digest + each).digest()
    assert Head().after(mine) == Head().after(mine[:1]).after(mine[1:]) == Head(3, digest)
    assert Head.unpack(Head(3, digest).pack()) == Head(3, digest) and len(Head().pack()) == 40


def test_exactly_what_goes_on_from_the_head_is_remembered() -> None:
    """Every pair (what a peer has seen, what the owner has now) of prefixes, forks and cuts of one file."""
    rng, trunk = np.random.default_rng(5), lines(12)
    accepted = refused = 0
    for _ in range(400):
        old, new = trunk[: rng.integers(13)], trunk[: rng.integers(13)]
        if rng.random() < 0.5 and new:
            new = [*new]
            new[rng.integers(len(new))] = secrets.token_bytes(32)
        if rng.random() < 0.2:
            new = [*new[::-1]]
        before = Head().after(old)
        if old == new[: len(old)]:
            payload = shown(new, before)
            assert seen(payload, before) == Head().after(new)
            assert len(payload) == 40 + 32 * (len(new) - len(old) if old else 0)  # a length and digests
            accepted += 1
        else:
            with pytest.raises(HeadError):
                shown(new, before)
            with pytest.raises(HeadError):  # nor does what the owner would say of its own accord
                seen(Head().after(new).pack(), before)
            refused += 1
    assert accepted > 50 and refused > 50


def test_what_is_no_head_is_refused() -> None:
    before = Head().after(lines(2))
    for payload in (b"", b"x", before.pack() + b"x", before.pack()[:-1], Head(1, before.digest).pack()):
        with pytest.raises(HeadError):
            seen(payload, before)
    assert seen(b"", Head()) == Head()


def test_as_many_lines_as_can_be_shown_fit() -> None:
    first = lines(1)
    many = [*first, *[bytes(32)] * MOST_LINES]
    assert len(shown(many, Head().after(first))) == MOST_SHOWN
    with pytest.raises(HeadError, match=f"{MOST_LINES} can be shown"):
        shown([*many, bytes(32)], Head().after(first))


def test_the_memory_is_a_file_an_owner_and_data_set(tmp_path: Path) -> None:
    memory, head = Memory(tmp_path / "peers", DATA), Head(2, b"x" * 32)
    assert memory.of("owner1") == Head()
    memory.keep("owner1", Head())
    assert not (tmp_path / "peers").exists()  # who shows none leaves nothing
    memory.keep("owner1", head)
    memory.keep("owner2", Head(5, b"y" * 32))
    assert memory.of("owner1") == head and Memory(tmp_path / "peers", "e" * 64).of("owner1") == Head()
    assert len(list((tmp_path / "peers").glob("*.json"))) == 2 and memory.path("owner1").stat().st_mode & 0o777 == 0o600
    memory.keep("owner1", Head(1, b"z" * 32))  # the older of two that were shown at once
    said = json.loads(memory.path("owner1").read_text())
    assert said == {"who": "owner1", "data": DATA, "lines": 2, "digest": (b"x" * 32).hex()}
    memory.path("owner1").write_text("{")
    with refuses("file"):
        memory.of("owner1")
    memory.path("owner1").unlink()  # the way out where an account is lost for good
    assert memory.of("owner1") == Head()


def test_of_two_heads_that_are_kept_at_once_the_longer_one_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two parties of a machine: the one with the shorter head is about to write, and the other comes."""
    memory, short, long = Memory(tmp_path / "peers", DATA), Head(5, b"x" * 32), Head(9, b"y" * 32)
    memory.keep("owner1", Head(1, b"w" * 32))
    at_once(
        monkeypatch, lambda: memory.keep("owner1", short), (tempfile, "mkstemp"), lambda: memory.keep("owner1", long)
    )
    assert memory.of("owner1") == long


def test_the_digests_of_an_account_are_those_of_its_whole_lines(tmp_path: Path) -> None:
    account = Account(tmp_path)
    assert account.digests(DATA) == []
    account.path(DATA).write_bytes(b'{"a": 1}\nhalf of a li')
    assert account.digests(DATA) == [hashlib.sha256(b'{"a": 1}').digest()]
    account.path(DATA).write_bytes(b'{"a": 1}\nhalf of a li\n{"b": 2}\n')
    assert len(account.digests(DATA)) == 3


def test_every_line_hides_what_it_says(tmp_path: Path) -> None:
    """The same run twice, in two accounts, at the same place: no digest is the same."""
    from tests.privacy.test_account import spend

    found = []
    for name in ("a", "b"):
        folder = tmp_path / name
        folder.mkdir()
        spend(Account(folder), tmp_path / "ledger_0.jsonl")
        account = Account(folder)
        account.assignment(DATA, "id", {"training": 4, "test": 1})
        found += account.digests(DATA)
        for line in account.path(DATA).read_text().splitlines():
            assert len(bytes.fromhex(json.loads(line)["key"])) == 16
        os.rename(tmp_path / "ledger_0.jsonl", tmp_path / f"{name}.jsonl")
    assert len(found) == len(set(found)) == 6
