"""What a report warns of."""

import json
from pathlib import Path

import pytest

from tests.runs import dpmpc


@pytest.mark.parametrize(("more", "warned"), [(["--weights", "equal"], True), (["--weights", "size"], False)])
def test_uneven_owners_are_told_what_weights_by_size_would_save(tmp_path: Path, more: list[str], warned: bool) -> None:
    command = ["train", "--data", "synthetic", "--max-rows", "100", "--owner-sizes", "40,8", "--delta", "1e-3"]
    outcome = dpmpc(*command, "--engine", "clear", "--iterations", "2", "--out", tmp_path / "run", *more)
    assert outcome.returncode == 0, outcome.stderr
    found = [text for text in json.loads((tmp_path / "run/report.json").read_text())["warnings"] if "weights" in text]
    assert bool(found) == warned
    assert all("3 times less" in text for text in found)  # (2/8) / (2 * 2/48)
