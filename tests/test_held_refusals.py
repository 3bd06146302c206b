"""The tests' own `refuses`: it passes by what is held, and by nothing else."""

import ast
from pathlib import Path
from typing import Any

import pytest

from dpmpc.errors import DpmpcError, PeerError, RecordError, UsageError
from dpmpc.records.targets import SchemaError
from tests.refusals import breaks, in_one_line, named, refuses

TESTS = Path(__file__).parent
RANGE = UsageError("<<parties>> must be 2 or 3; got 1,000; use <<parties=3>>", code="range")


@pytest.mark.parametrize(
    ("error", "broken"),
    [
        (RANGE, breaks("range", "1,000", setting="parties")),
        (RANGE, breaks("range", 2, 3, setting="parties", kind=DpmpcError)),
        (PeerError("party 1 left"), breaks("peer", "party 1")),
        (RecordError("row 7 is 'x'", "a row is no number"), breaks("records", 7, "x")),  # to its owner
        (UsageError("no name", setting="out"), breaks("usage", setting="out")),
    ],
)
def test_what_is_held_passes(error: DpmpcError, broken: Any) -> None:
    with refuses(broken) as caught:
        raise error
    assert caught.value is error


@pytest.mark.parametrize(
    "broken",
    [
        breaks("choice", "1,000", setting="parties"),
        breaks("range", "1,000"),
        breaks("range", "1,000", setting="owners"),
        breaks("range", 1, setting="parties"),
        breaks("range", "000", setting="parties"),
        breaks("range", "partie", setting="parties"),
    ],
)
def test_another_rule_setting_or_value_fails(broken: Any) -> None:
    with pytest.raises(AssertionError), refuses(broken):
        raise RANGE


def test_another_class_goes_on_and_none_fails() -> None:
    for other in (PeerError("x", code="range"), ValueError("parties: 1,000")):
        with pytest.raises(type(other)), refuses("range", setting="parties"):
            raise other
    with pytest.raises(pytest.fail.Exception), refuses("range"):
        pass


def test_a_value_is_in_a_text_as_a_whole() -> None:
    assert named("1", "got 1; x") and named("1", "(1)") and named("-1", "got -1.") and named("a b", "the a b c")
    assert not any(named("1", text) for text in ("13", "0.1", "1.5", "1,000", "x1"))


def test_a_line_has_rule_value_and_way_out() -> None:
    with in_one_line():
        raise RANGE
    for text, below in (("a rule; a value", ""), ("a rule; a value; a way", "a line"), ("a rule; ; a way", "")):
        with pytest.raises(AssertionError), in_one_line():
            raise UsageError(text, below=below)


def test_an_error_of_ours_is_held_by_its_rule() -> None:
    """`match=` is for words that have no code: of Python, of other libraries, of the tests' own classes, of a failed
    conformance, and of warnings. No test gives it words of an error that has one; where such an error is caught by a
    class of Python that it is too, as an estimator's ValueError is, `hold_words` fails."""
    ours, new = {"DpmpcError"}, [DpmpcError]
    while new:
        new = [kind for each in new for kind in each.__subclasses__()]
        ours |= {kind.__name__ for kind in new}
    found, checked = [], 0
    for path in sorted(TESTS.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.raises":
                checked += 1
                names = {name.removeprefix("dpmpc.") for name in ast.unparse(node.args[0]).strip("()").split(", ")}
                if names & ours and any(each.arg == "match" for each in node.keywords):
                    found.append(f"{path.relative_to(TESTS)}:{node.lineno}")
    assert found == [] and checked > 150


def test_words_of_an_error_with_a_code_hold_nothing_whatever_it_is_caught_by() -> None:
    for kind in (Exception, UsageError, ValueError):
        with pytest.raises(AssertionError, match="by `refuses`"), pytest.raises(kind, match="a schema"):
            raise SchemaError("a schema")
    with pytest.raises(ValueError, match="a schema"):
        raise ValueError("a schema")
