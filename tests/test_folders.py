"""A folder that cannot be made is one line, wherever it is to be made: the rule, the folder, the way out."""

import errno
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dpmpc_experiments.runner import _rewrite

import dpmpc
from dpmpc.aggregation.owner.local_parties import PartiesHere
from dpmpc.aggregation.owner.sites import Party
from dpmpc.aggregation.plan.here import Here
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.errors import UsageError, owner_text, spelt
from dpmpc.flower import prepare
from dpmpc.flower.sealing import Purpose
from dpmpc.flower.seals import Seals
from dpmpc.folders import OUT, below, make_folder, matching, passing_folder, replaced, write_file
from dpmpc.intake.files import paths_of
from dpmpc.mpc.transport.credentials import make_authority
from dpmpc.privacy.account import Account
from dpmpc.privacy.heads import Head, Memory
from dpmpc.privacy.ledger import Ledger
from dpmpc.records.example import hospitals
from dpmpc.run.folder import make_private
from dpmpc.synthesis.files import write_csv, write_parquet
from tests.refusals import refuses

PLAN = Plan.create(owners=3, dimension=2, clip=1.0, epsilon=1.0, delta=1e-5)


def counted(folder: Path) -> None:
    with Account(folder).writing("0" * 64):
        pass


MAKERS: dict[str, Callable[[Path], object]] = {
    "a party": lambda out: Party(PLAN, 0, ["127.0.0.1:11401", "127.0.0.2:11401", "127.0.0.3:11401"], out=out).run(),
    "parties here": lambda out: PartiesHere(3, Here(out=out)),
    "an example": lambda out: hospitals(out, 120),
    "an experiment": lambda out: _rewrite(out / "runs.csv", [{"a": 1}]),
    "an authority": make_authority,
    "an account": counted,
    "heads": lambda out: Memory(out, "0" * 64).keep("owner0", Head(1, b"0" * 32)),
    "a ledger": lambda out: Ledger(out / "ledger.jsonl"),
    "seals": lambda out: Seals(out, bytes(32)).check(Purpose(b"0" * 32, b"0" * 16, 0, 0)),
    "keys of Flower": lambda out: prepare(out, owners=3, dimension=2, clip=1.0, epsilon=1.0, delta=1e-5),
    "a run": make_private,
}


@pytest.mark.parametrize("maker", MAKERS)
def test_where_a_file_stands_in_the_way_one_line_says_so(maker: str, tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("mine")
    for folder in (tmp_path / "notes", tmp_path / "notes" / "deep"):
        with pytest.raises(UsageError) as raised:
            MAKERS[maker](folder)
        said = owner_text(raised.value)
        assert "\n" not in said and str(tmp_path / "notes") in said and said.count("; ") >= 2, said
        assert "it is a file" in said or "Not a directory" in said or "cannot be read" in said, said
    assert (tmp_path / "notes").read_text() == "mine"


def test_a_folder_is_made_with_those_above_it(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    make_folder(folder, OUT, private=True)
    make_folder(folder, OUT)
    assert folder.stat().st_mode & 0o777 == 0o700
    with refuses("path", setting="out"):
        make_folder(folder, OUT, new=True)


def test_a_folder_that_cannot_be_written_is_refused_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is computed for it: on a file system that is mounted to be read, `mkdir` of what is there says
    nothing."""
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(UsageError) as raised:
        make_folder(tmp_path, OUT)
    wanted = f"--out must be a directory that can be written; {tmp_path}: Permission denied; name another"
    assert spelt(raised.value.to_owner, lambda name, value: f"--{name}") == wanted


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    write_file(file, "old")
    with pytest.raises(KeyError), replaced(file) as beside:
        beside.write_text("half")
        assert file.read_text() == "old"
        raise KeyError
    assert file.read_text() == "old" and [path.name for path in tmp_path.iterdir()] == [file.name]
    write_file(file, b"new")
    assert file.read_bytes() == b"new" and [path.name for path in tmp_path.iterdir()] == [file.name]


def test_a_file_is_for_its_user_alone_whoever_writes_it(tmp_path: Path) -> None:
    """With the usual umask, over a file that all could read, by this process and by DuckDB, which makes another file;
    but for what is public."""
    before = os.umask(0o022)
    try:
        (tmp_path / "report.html").write_text("for all")
        assert (tmp_path / "report.html").stat().st_mode & 0o077
        write_file(tmp_path / "report.html", "mine")
        for name, write in (("rows.parquet", write_parquet), ("rows.csv", write_csv)):
            with replaced(tmp_path / name) as beside:
                assert beside.stat().st_mode & 0o777 == 0o600
                write(beside, {"a": np.array([1.0, 2.0])}, ["about"], {"a": 0})
        PLAN.write(tmp_path / "plan.json")
        assert (tmp_path / "plan.json").stat().st_mode & 0o777 == 0o644
        (tmp_path / "plan.json").unlink()
    finally:
        os.umask(before)
    assert {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == dict.fromkeys(
        ("report.html", "rows.parquet", "rows.csv"), 0o600
    )


@pytest.mark.parametrize("call", ["scandir", "rmdir", "open"])
def test_a_passing_folder_that_cannot_be_looked_into_is_left_and_ends_nothing(
    call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As root, too, whom rights stop nowhere: the calls themselves fail. What went wrong inside is what is told."""
    before = getattr(os, call)

    def refused(path: Any, *given: Any, **named: Any) -> Any:
        if isinstance(path, int) or str(tmp_path) in os.fspath(path):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return before(path, *given, **named)

    with pytest.raises(KeyError), passing_folder(where=tmp_path) as folder:
        (folder / "deep").mkdir()
        (folder / "deep" / "table.csv").write_text("a")
        assert folder.parent == tmp_path and folder.stat().st_mode & 0o777 == 0o700
        monkeypatch.setattr(os, call, refused)
        raise KeyError
    monkeypatch.undo()
    assert folder.is_dir()
    with passing_folder(where=tmp_path) as again:
        (again / "deep").mkdir()
        (again / "deep" / "table.csv").write_text("a")
    assert not again.exists()


def test_every_passing_folder_is_made_in_the_one_way() -> None:
    """In all that a command of the program runs; nobody names `tempfile`'s own class there."""
    root = Path(__file__).parents[1]
    parts = ("dpmpc", "cli", "circuits", "benchmarks", "experiments")
    sources = [path for part in parts for path in (root / part).rglob("*.py")]
    assert len(sources) > 400
    assert not [path.name for path in sources if "TemporaryDirectory" in path.read_text(encoding="utf-8")]


def test_a_folder_that_cannot_be_listed_is_never_an_empty_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where `Path.glob` finds nothing, a ledger may lie, or records."""
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "ledger_0.jsonl").touch()
    assert matching(tmp_path, "*/ledger_*.jsonl") == below(tmp_path, "ledger_*.jsonl") == [
        tmp_path / "inner" / "ledger_0.jsonl"
    ]  # fmt: skip
    for find in (matching, below):
        assert find(tmp_path / "none", "*") == find(tmp_path / "inner" / "ledger_0.jsonl", "*") == []

    def refused(path: Any, listing: Callable[[Any], Any]) -> Any:
        if Path(path).name == "inner":
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return listing(path)

    listdir, scandir = os.listdir, os.scandir
    monkeypatch.setattr(os, "listdir", lambda path: refused(path, listdir))
    monkeypatch.setattr(os, "scandir", lambda path: refused(path, scandir))
    assert not [*tmp_path.glob("*/ledger_*.jsonl")]
    for find in (matching, below):
        with pytest.raises(PermissionError):
            find(tmp_path / "inner", "ledger_*.jsonl")
    with pytest.raises(PermissionError):
        below(tmp_path, "*")
    with pytest.raises(PermissionError):
        paths_of(str(tmp_path))


def test_folders_are_listed_in_the_one_way() -> None:
    """`glob` takes a folder that cannot be listed for an empty one. It serves for the program's own sources, for what
    crashed processes left, and for patterns that a user gives."""
    root, found = Path(dpmpc.__file__).parent, set()
    for path in root.rglob("*.py"):
        if re.search(r"\.r?glob\(", path.read_text(encoding="utf-8")):
            found.add(str(path.relative_to(root)))
    assert found == {"aggregation/plan/derivation.py", "intake/scratch.py", "intake/files.py"}
