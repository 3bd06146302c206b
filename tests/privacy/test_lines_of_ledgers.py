"""A line of a ledger of which a value is of another kind is no line, so that it counts as one that was torn."""

import json
import random
import re
from dataclasses import replace
from typing import Any

import pytest

import dpmpc.privacy.entry as ledger_lines
from dpmpc.errors import UsageError
from dpmpc.privacy.entry import ATTEMPT, ELSEWHERE, GENESIS, RELEASE, Entry, LedgerLine, packed, parsed
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
    whole = LedgerLine(RELEASE, entry(2), GENESIS, False, "ab")
    line = json.loads(packed(whole))
    assert parsed(json.dumps(line).encode()) == whole
    for value in WRONG[name]:
        assert parsed(json.dumps({**line, name: value}).encode()) is None, value


@pytest.mark.parametrize("size", [1e61, 1e308, 1e-61, 5e-324])
def test_sizes_whose_squares_are_no_numbers_are_none(size: float) -> None:
    line = json.loads(packed(LedgerLine(RELEASE, entry(2), GENESIS, False, "ab")))
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


@pytest.mark.parametrize("kind", [RELEASE, ATTEMPT, ELSEWHERE])
@pytest.mark.parametrize("part", ["", 'part "1"'])
def test_a_line_of_another_release_says_all_that_one_made_field_by_field_says(kind: str, part: str) -> None:
    """What lines of a run share is written out once; what is a release's own is not among it."""
    price = replace(entry(0, run='a "run"'), token="ab", part=part, prices=(("owner", Sensitivity.flat(2.0)),))
    own: list[tuple[int, tuple[int, ...] | None, tuple[int, ...]]] = [(0, None, ()), (7, (0, 2), (1,)), (8, (), ())]
    for release, present, lost in own:
        due = replace(price, release=release, present=present, lost=lost)
        made = price.of(release, present, lost)
        again = made.of(release, present, lost)
        assert (made, made.to_json(), hash(made)) == (due, due.to_json(), hash(due)) and made.lost == due.lost
        assert price.release == 0 and replace(made, token="cd").token == "cd"
        for each in (due, made, again, Entry.from_json(json.loads(json.dumps(made.to_json())))):
            line = LedgerLine(kind, each, GENESIS, True, 'b"y', (2,) if kind == ELSEWHERE else ())
            found = parsed(packed(line))
            assert found == replace(line, entry=due) and found.entry.lost == lost
    assert b'"token":"cd"' in packed(LedgerLine(kind, replace(price.of(1, None, ()), token="cd"), GENESIS, False, None))


def test_what_lines_share_is_read_once_and_no_line_is_read_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every line is held against what is made of it as a whole: lines of all kinds, each with parts cut out, put in or
    doubled, numbers and signs changed, and members of other names put where all lines of a run are alike."""
    draw = random.Random(5)
    lines = [
        packed(LedgerLine(kind, replace(entry(k), present=present, lost=lost, token=token), GENESIS, torn, first))
        for k, kind in enumerate((RELEASE, RELEASE, RELEASE, RELEASE, RELEASE, ATTEMPT, ELSEWHERE))
        for present, lost, torn, first, token in (
            (None, (), False, None, ""), (None, (), False, None, "t"), ((0, 2), (), False, None, ""),
            (None, (1,), False, None, ""), (None, (), True, None, ""), (None, (), False, "ab", ""),
        )
    ]  # fmt: skip
    members = [b'"release":7', b'"prev":"x"', b'"v":6', b'"salt":""', b'"torn":true', b'"by":"c"', b'"present":[1]']
    members += [b'"lost":[0]', b'"parties":[1]', b'"run":"other"', b'"more":1', b'"a":1},{"b":2', b'"a":"\\u00e9"']
    for line in list(lines):
        for member in members:
            lines.append(line.replace(b',"salt"', b"," + member + b',"salt"'))
            lines.append(line.replace(b'"run"', member + b',"run"'))
    for _ in range(3000):
        line = draw.choice(lines[:200])
        at, other = draw.randrange(len(line)), draw.randrange(len(line))
        low, high = min(at, other), max(at, other)
        change = draw.randrange(4)
        if change == 0:
            lines.append(line[:at] + bytes([draw.choice(b'0123456789"{}[],:.-eabf \xc3')]) + line[at + 1 :])
        elif change == 1:
            lines.append(line[:low] + line[high:])
        elif change == 2:
            lines.append(line[:high] + line[low:])
        else:
            lines.append(line[:at] + b" " + line[at:])
    found = [parsed(line) for line in lines]
    read_once = sum(ledger_lines._PLAIN.fullmatch(line) is not None for line in lines)
    monkeypatch.setattr(ledger_lines, "_PLAIN", re.compile(rb"(?!)"))
    assert [parsed(line) for line in lines] == found
    assert read_once > 500 and sum(line is not None for line in found) > 500
