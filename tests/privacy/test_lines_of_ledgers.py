"""A line of a ledger of which a value is of another kind is no line, so that it counts as one that was torn."""

import json
from typing import Any

import pytest

from dpmpc.privacy.entry import GENESIS, RELEASE, Line, packed, parsed
from tests.privacy.test_ledger import entry

WRONG: dict[str, tuple[Any, ...]] = {
    "run": (True, 1, ["a"], None),
    "release": ("a\nb", True, 1.5, 10**400, [0], None),
    "planned": ("3", True, 2.5, 1 << 63),
    "attempt": ("0", False, []),
    "epsilon": ("1", True, 10**400, [1]),
    "delta": ("0", False, {}),
    "data": ([1], [["d"]], [True], 3),
    "names": ([1], [[]]),
    "neighbours": (1, True, []),
    "token": (1, ["t"]),
    "part": (1, True),
    "present": ([10**400], ["a"]),
    "lost": ([[]],),
    "prices": ({"presence": {"l1": 10**400, "l2": 1.0, "linf": 1.0}}, {"presence": "x"}),
    "prev": (1, True, [GENESIS], None),
    "by": (1, ["x"], True),
    "torn": ("yes", 1, [], "false"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_line_with_a_value_of_another_kind_is_none(name: str) -> None:
    whole = Line(RELEASE, entry(2), GENESIS, False, "ab")
    line = json.loads(packed(whole))
    assert parsed(json.dumps(line).encode()) == whole
    for value in WRONG[name]:
        assert parsed(json.dumps({**line, name: value}).encode()) is None, value
