"""The table of attacks and mends: it fits the sources, and the runner tells a test that sees from one that does not."""

import ast
from pathlib import Path

import pytest

from tests import mends
from tests.mends import ATTACKS, ROOT, Attack, Mend, played


def test_every_mend_stands_in_its_file_once_and_is_taken_out() -> None:
    for attack in ATTACKS:
        for mend in attack.mends:
            text = (ROOT / mend.file).read_text(encoding="utf-8")
            without = mend.taken_out(text)
            assert without != text, attack.what
            if mend.file.endswith(".py"):
                ast.parse(without)
    with pytest.raises(AssertionError, match="has 0 times"):
        Mend("README.md", "no such piece", "").taken_out("")


def test_every_test_of_an_attack_is_there_and_attacks_are_told_apart() -> None:
    for attack in ATTACKS:
        file, _, name = attack.test.partition("::")
        defined = {node.name for node in ast.walk(ast.parse((ROOT / file).read_text(encoding="utf-8")))
                   if isinstance(node, ast.FunctionDef)}  # fmt: skip
        assert not name or name.partition("[")[0] in defined, attack.test
        assert name.startswith("test_") or attack.itself, attack.test
    assert len({attack.what for attack in ATTACKS}) == len(ATTACKS) > 35


SOURCE = "def least(values):\n    return min(values)\n"
SEES = "from source import least\n\ndef test_least():\n    assert least([2, 1]) == 1\n"
BLIND = "from source import least\n\ndef test_least():\n    assert least([1]) == 1\n"


@pytest.mark.parametrize(("test", "seen"), [(SEES, True), (BLIND, False), ("import nothing_of_that_name\n", False)])
def test_the_runner_tells_a_test_that_sees_from_one_that_does_not(test: str, seen: bool, tmp_path: Path) -> None:
    (tmp_path / "source.py").write_text(SOURCE)
    (tmp_path / "test_it.py").write_text(test)
    attack = Attack("the first is taken for the least", "test_it.py", (Mend("source.py", "min(values)", "values[0]"),))
    assert played(attack, tmp_path)[0] == seen
    assert (tmp_path / "source.py").read_text() == SOURCE  # put back
    assert played(Attack("shown by itself", "test_it.py"), tmp_path)[0] == ("import nothing" not in test)


def test_the_program_says_what_is_not_seen(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    some = ATTACKS[:2]
    came = [(some[0], True, ""), (some[1], False, "1 passed")]
    monkeypatch.setattr(mends, "rows", lambda attacks: [each for each in came if each[0] in attacks])
    monkeypatch.setattr(mends, "ATTACKS", some)
    assert mends.main([]) == 1
    said = capsys.readouterr().out
    assert "**NOT SEEN**: 1 passed" in said and "1 of 2 are seen" in said
    assert mends.main(["no such attack"]) == 1
