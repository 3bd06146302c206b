"""A line of a ledger of which a value is of another kind is no line, so that it counts as one that was torn."""

import json
from typing import Any

import pytest

from dpmpc.errors import UsageError
from dpmpc.privacy.entry import GENESIS, RELEASE, Line, packed, parsed
from dpmpc.privacy.law import LAWS
from dpmpc.privacy.mechanism import Mechanism
from dpmpc.privacy.sensitivity import Sensitivity
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
    "neighbours": (1, True, [], "records", "Record", "a\nb"),
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


@pytest.mark.parametrize("size", [1e61, 1e308, 1e-61, 5e-324])
def test_sizes_whose_squares_are_no_numbers_are_none(size: float) -> None:
    line = json.loads(packed(Line(RELEASE, entry(2), GENESIS, False, "ab")))
    mechanism = line["mechanism"]
    alike = {"l1": size, "l2": size, "linf": size}
    for changed in ({"scale": size}, {"sensitivity": alike}):
        assert parsed(json.dumps({**line, "mechanism": {**mechanism, **changed}}).encode()) is None, changed


@pytest.mark.parametrize("scale", [1e-60, 1e60])
@pytest.mark.parametrize("moved", [1e-60, 1e59])
@pytest.mark.parametrize("discrete", [False, True])
@pytest.mark.parametrize("law", LAWS.names())
def test_the_largest_and_smallest_sizes_are_accounted(law: str, discrete: bool, moved: float, scale: float) -> None:
    try:
        spent = LAWS[law].spending(Mechanism(law, discrete, scale, Sensitivity.flat(moved), 3)).epsilon(1e-5)
    except UsageError:
        return
    assert spent >= 0
