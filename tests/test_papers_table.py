"""docs/papers.md: every row has a place or a reason, and the places exist."""

import importlib
import re
from pathlib import Path

import pytest
from dpmpc_experiments.command import NAMES

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in TEXT.splitlines()
    if line.startswith("| ") and not line.startswith(("| item", "| ---"))
]
REASONS = ("not at hand", "lost", "is the tighter one", "not counted")


def test_every_row_has_a_place_or_a_reason() -> None:
    assert len(ROWS) > 60
    for row in ROWS:
        assert len(row) == 4, row
        placed = row[1] != "-"
        assert placed or any(reason in cell for cell in row[2:] for reason in REASONS), row
        assert all(row), row


def test_nothing_is_left_to_fill_in() -> None:
    assert not re.search(r"\b[A-Z]+_[A-Z]+\b(?!\()", re.sub(r"`[^`]*`", "", TEXT)), "a placeholder is left"


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`experiment (\w+)`", TEXT))))
def test_experiments_exist(name: str) -> None:
    assert name in NAMES


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`((?:experiments/)?(?:methods|experiments)/[\w/]+)`", TEXT))))
def test_methods_exist(path: str) -> None:
    parts = path.removeprefix("experiments/")
    assert (ROOT / "experiments" / "dpmpc_experiments" / f"{parts}.py").is_file() or (
        ROOT / "experiments" / "dpmpc_experiments" / parts
    ).is_dir(), path


@pytest.mark.parametrize(
    "name", sorted(set(re.findall(r"`((?:privacy|learning|noise|aggregation|cape|risk|literature)\.[\w.]+)`", TEXT)))
)
def test_modules_and_functions_exist(name: str) -> None:
    short = {"cape": "privacy.cape", "risk": "privacy.risk", "literature": "privacy.literature"}
    head, _, tail = name.partition(".")
    words = f"{short.get(head, head)}.{tail}".split(".")
    module, rest = importlib.import_module(f"dpmpc.{words[0]}"), words[1:]
    for word in rest:
        module = getattr(module, word, None) or importlib.import_module(f"{module.__name__}.{word}")
