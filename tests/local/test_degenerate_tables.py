"""Some of the tables and commands of `tests/endurance/degenerate_tables.py`, and what each of some comes to."""

import contextlib
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.endurance.degenerate_tables import COMMANDS, FITS, TABLES, made, tried

ENDS = {  # the code of a command on a table
    ("train", "one record"): 2,
    ("train", "one class"): 2,
    ("train", "ids and texts alone"): 2,
    ("train", "long names"): 2,
    ("train", "a header alone"): 2,
    ("train by a schema", "one record"): 2,
    ("train by a schema", "one class"): 0,  # stated classes: a warning, for who has the records
    ("train at one owner", "one record"): 2,
    ("train on records", "some infinite"): 0,
    ("check", "a target of other words"): 1,
    ("check", "one class"): 0,
    ("predict", "one record"): 0,
    ("stats", "one record"): 2,
    ("synth", "all missing"): 0,
    ("describe", "a mark alone"): 2,
    ("describe", "some infinite"): 0,
    ("fit of a frame", "ids and texts alone"): 2,
    ("fit of numbers", "all constant but the target"): 2,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A model, kits, a schema and bounds, in the current folder."""
    where = tmp_path_factory.mktemp("tables")
    with pytest.MonkeyPatch.context() as patch, contextlib.chdir(where):
        patch.setenv("DPMPC_ACCOUNT", str(where / "account"))
        made(where)
        yield where


@pytest.mark.parametrize(("command", "table"), ENDS)
def test_a_table_of_little_use_ends_so(command: str, table: str, folder: Path) -> None:
    assert tried(table, command, folder) == (ENDS[command, table], "")


@pytest.mark.parametrize("command", [*COMMANDS, *FITS])
def test_every_end_is_one_line_or_none_and_spends_nothing(command: str, folder: Path) -> None:
    for table in random.Random(command).sample(sorted(TABLES), 2):
        assert tried(table, command, folder)[1] == "", table
