"""A target of numbers alone is a quantity without a task, however it is spelled; classes are asked for or found."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpmpc
from dpmpc.intake.spelling import Spelling
from tests.refusals import refuses

N = 600
ASKED: dict[str, Any] = {
    "target": "y", "owners": 2, "epsilon": 9, "delta": 1e-5, "engine": "clear", "iterations": 2, "evaluate": False
}  # fmt: skip


def file_of(folder: Path, target: list[str]) -> Path:
    x = np.random.default_rng(1).integers(0, 90, N)
    path = folder / "records.csv"
    path.write_text("x;y\n" + "".join(f"{a};{b}\n" for a, b in zip(x, target, strict=True)), encoding="utf-8")
    return path


@pytest.mark.parametrize(("form", "spelling"), [("{}.5", {}), ("{},50 €", {"decimal": ",", "units": ("€",)})])
def test_numbers_are_a_quantity(form: str, spelling: Any, tmp_path: Path) -> None:
    path = file_of(tmp_path, [form.format(k % 300) for k in range(N)])
    result = dpmpc.train(csv=path, spelling=Spelling(**spelling), out=tmp_path / "run", **ASKED)
    assert result.report["learning"]["task"] == "ridge"


def test_few_numbers_and_words_among_numbers_are_not(tmp_path: Path) -> None:
    few = file_of(tmp_path, [str(k % 5) for k in range(N)])
    with refuses("records", "y", 5, "task=ridge"):
        dpmpc.train(csv=few, out=tmp_path / "few", **ASKED)
    mixed = file_of(tmp_path, [str(k % 300) if k else "unknown" for k in range(N)])
    with refuses("records", "y", 21, "task=ridge"):
        dpmpc.train(csv=mixed, out=tmp_path / "mixed", **ASKED)
