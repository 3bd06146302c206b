"""Bytecode that workers find: of the library and of tests with rewritten assertions, written once."""

import os
from pathlib import Path

import pytest
from _pytest.assertion import rewrite

from tests import bytecode


def test_what_has_none_or_an_older_one_is_compiled_once(pytestconfig: pytest.Config, tmp_path: Path) -> None:
    library, test, helper = tmp_path / "dpmpc" / "a.py", tmp_path / "tests" / "test_a.py", tmp_path / "tests" / "b.py"
    for path in (library, test, helper):
        path.parent.mkdir(exist_ok=True)
        path.write_text("def f(x):\n    assert x == 1\n")
    assert bytecode.write(pytestconfig, tmp_path) == 3
    assert bytecode.write(pytestconfig, tmp_path) == 0
    cached = test.parent / "__pycache__" / f"test_a{rewrite.PYC_TAIL}"
    assert rewrite._read_pyc(test, cached) is not None, "pytest would write it again"
    assert Path(bytecode._cached(library)).exists() and Path(bytecode._cached(helper)).exists()
    os.utime(library, (later := os.stat(library).st_mtime + 10, later))
    assert bytecode.write(pytestconfig, tmp_path) == 1


def test_a_file_that_cannot_be_compiled_keeps_none_of_the_others_waiting(
    pytestconfig: pytest.Config, tmp_path: Path
) -> None:
    (tmp_path / "tests").mkdir()
    for name, text in (("test_a.py", "x ="), ("b.py", "x ="), ("test_c.py", "x = 1"), ("d.py", "x = 1")):
        (tmp_path / "tests" / name).write_text(text)
    assert bytecode.write(pytestconfig, tmp_path) == 4
    assert bytecode.write(pytestconfig, tmp_path) == 2  # those two still have none
