"""Some of the changes of `tests/endurance/mutated_sites.py`, which makes all: one site has another file or plan."""

import random
from collections import Counter
from pathlib import Path

import pytest

from dpmpc.data.written import written
from dpmpc.errors import UsageError
from dpmpc.runs.consortium_file import ConsortiumFile
from tests.endurance.mutated_sites import BASES, based, mutants, read, text_of, wrong_with
from tests.runs import own_addresses

SOME = 120  # of some 2,500 a kind


@pytest.mark.parametrize("kind", BASES)
def test_a_changed_file_is_refused_in_one_line_or_leads_to_a_plan(kind: str, tmp_path: Path) -> None:
    base = based(kind, own_addresses(3))
    why, honest = read(text_of(base), tmp_path)
    assert honest is not None, why
    count = Counter[str]()
    for mutant in random.Random(29).sample(list(mutants(base)), SOME):
        what, wrong, _ = wrong_with(mutant, honest, tmp_path)
        assert not wrong, (mutant.at, mutant.how, wrong, read(mutant.text, tmp_path)[0][:300])
        count[what] += 1
    assert count["refused"] > SOME / 2 and count["another"] >= 2, count


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (f"[limits]\nrecords = {10**30}", r"limits\.records has 101"),
        (f"[records]\ntarget = '{'x' * 5000}'", r"records\.target has 5000"),
        ("[records.bounds]\nage = 3", r"records\.bounds\.age: expected array"),
        ("[records.bounds]\nward = ['a']\nage = [[1], 2]", r"records\.bounds\.age\[0\]"),
        ("a = " + "[" * 100_000, "nested too deep|TOML"),
    ],
)
def test_a_file_says_which_value_is_wrong(text: str, says: str) -> None:
    rest = "\n[run]\ndata_id = 'd'\n[privacy]\nepsilon = 1\n[[parties]]\naddress = 'a:1'\n[[owners]]\nrecords = 1\n"
    with pytest.raises(UsageError, match=says):
        written(text + rest, ConsortiumFile, "a file", "f.toml", toml=True)
