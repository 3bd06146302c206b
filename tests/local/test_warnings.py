"""What a report warns of."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.runs import dpmpc


@pytest.mark.parametrize(("more", "warned"), [(["--weights", "equal"], True), (["--weights", "size"], False)])
def test_uneven_owners_are_told_what_weights_by_size_would_save(tmp_path: Path, more: list[str], warned: bool) -> None:
    command = ["train", "--data", "synthetic", "--max-rows", "100", "--owner-sizes", "40,8", "--delta", "1e-3"]
    outcome = dpmpc(*command, "--engine", "clear", "--iterations", "2", "--out", tmp_path / "run", *more)
    assert outcome.returncode == 0, outcome.stderr
    found = [text for text in json.loads((tmp_path / "run/report.json").read_text())["warnings"] if "weights" in text]
    assert bool(found) == warned
    assert all("3 times as large" in text for text in found)  # (2/8) / (2 * 2/48)


@pytest.mark.parametrize(
    ("records", "columns", "epsilon", "before"), [(40, 3, 0.5, "training"), (1000, 20, 0.5, "loading")]
)
def test_too_few_records_are_told_before_anything_is_spent(
    records: int, columns: int, epsilon: float, before: str, tmp_path: Path
) -> None:
    """Without a survey, for which there are too few, and with one, whose release is spent before records are loaded."""
    rng = np.random.default_rng(1)
    names = [f"c{k}" for k in range(columns)]
    rows = [
        ",".join([*(f"{x:.3f}" for x in rng.normal(size=columns)), "ny"[k % 2], "ab"[k % 4 // 2]])
        for k in range(records)
    ]
    (tmp_path / "t.csv").write_text("\n".join([",".join([*names, "y", "site"]), *rows, ""]))
    outcome = dpmpc(
        "train", "--csv", tmp_path / "t.csv", "--target", "y", "--owners-column", "site", "--epsilon", f"{epsilon}",
        "--delta", "1e-6", "--engine", "clear", "--out", tmp_path / "run",
    )  # fmt: skip
    assert outcome.returncode == 0, outcome.stderr
    lines = outcome.stderr.splitlines()
    (told,) = [k for k, line in enumerate(lines) if line.startswith("warning: noise will swamp the signal")]
    assert told < next(k for k, line in enumerate(lines) if line.startswith(before))


def test_owners_that_nobody_named_are_asked_for_before_records_are_read(tmp_path: Path) -> None:
    """In the first line, though numbers are spelled otherwise than stated: that is found by reading."""
    rows = [f"{k},5;{'ny'[k % 2]}" for k in range(40)]
    (tmp_path / "t.csv").write_text("\n".join(["amount;y", *rows, ""]))
    asked = ["train", "--csv", tmp_path / "t.csv", "--target", "y", "--delta", "1e-5", "--out", tmp_path / "run"]
    outcome = dpmpc(*asked)
    assert outcome.returncode and outcome.stdout == ""
    assert outcome.stderr.startswith("error: the owners must be known") and outcome.stderr.count("\n") == 1
    outcome = dpmpc(*asked, "--owners", "2")
    assert "--decimal ," in outcome.stderr
