"""Sums are opened, and accounts chosen, in one place outside of `aggregation`: read off the source of the package."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import dpmpc

PACKAGE = Path(str(dpmpc.__file__)).parent
OPENING = {"of_plan", "joining", "Session", "InTheClear", "Connected", "session_of", "Carrier"}  # what opens sums
CHOOSING = {"account_of"}
OPENED_BY = {"run/opening.py"}  # runs; `Aggregator`, `Owner` and `Site` of the public API are aggregation's own


def calls(text: str, names: set[str]) -> set[str]:
    """Which of these a source calls, whatever it imported them as."""
    tree = ast.parse(text)
    known = {name: name for name in names}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            known |= {each.asname: each.name for each in node.names if each.asname and each.name in names}
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call | ast.Attribute):
            what = node.func if isinstance(node, ast.Call) else node
            name = what.attr if isinstance(what, ast.Attribute) else what.id if isinstance(what, ast.Name) else ""
            found |= {known[name]} if name in known else set()
    return found


def users(names: set[str]) -> Iterator[str]:
    """The modules outside of `aggregation` that call one of these."""
    for path in sorted(PACKAGE.rglob("*.py")):
        where = path.relative_to(PACKAGE).as_posix()
        if not where.startswith(("aggregation/", "benchmarks/")) and calls(path.read_text(encoding="utf-8"), names):
            yield where


def test_sums_are_opened_by_the_engine_alone() -> None:
    assert set(users(OPENING)) == OPENED_BY


def test_an_account_is_chosen_by_the_books_alone() -> None:
    assert not set(users(CHOOSING))


@pytest.mark.parametrize(
    "text",
    [
        "Aggregator.of_plan(plan, out=out)",
        "with Aggregator.joining(plan, parties, owners) as a:\n    pass",
        "from dpmpc.aggregation.owner.session import session_of as begin\nbegin(plan)",
        "make = partial(Aggregator.of_plan, plan)",
    ],
)
def test_another_place_would_be_seen(text: str) -> None:
    assert calls(text, OPENING)
