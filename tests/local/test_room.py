"""Records that the run's disk has no room for are foreseen before a survey spends anything."""

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import dpmpc
from dpmpc.errors import owner_text
from dpmpc.local import surveying
from dpmpc.records import Schema
from dpmpc.records.blocks import check_room
from tests.refusals import refuses

N = 6000
ROOM = 8 * N * 40  # bytes of 40 numbers a record


def trained(folder: Path, **more: Any) -> None:
    dpmpc.train(
        folder / "run", csv=str(folder / "records.csv"), target="y", owners_column="site", evaluate=False,
        epsilon=10.0, delta=1e-5, engine="clear", overwrite=True, **more,
    )  # fmt: skip


def test_records_without_room_are_refused_before_a_survey(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A column is a number a record, whatever the survey finds in it."""
    rng = np.random.default_rng(4)
    rows = (f"id {k},{x:.4f},{'ab'[k % 2]},{int(x > 0)},s{k % 3}" for k, x in enumerate(rng.normal(size=N)))
    (tmp_path / "records.csv").write_text("id,x,word,y,site\n" + "\n".join(rows) + "\n", encoding="utf-8")
    monkeypatch.setattr(surveying, "usual_memory", lambda: 1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=8 * N * 2))
    with refuses("records", N, 3, "drop") as error:
        trained(tmp_path)
    assert "\n" not in owner_text(error.value) and not (tmp_path / "run" / "survey").exists()
    trained(tmp_path, drop=("id",))
    found = Schema.read(tmp_path / "run" / "survey" / "schema.json")
    assert {column.name for column in found.columns} == {"x", "word"}


def test_room_is_that_of_the_precision_and_only_of_what_is_no_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=ROOM))
    check_room(N, 40, "double", 0, tmp_path)
    check_room(N, 80, "single", 0, tmp_path)
    check_room(N, 41, "double", 2 * 8 * N * 41, tmp_path)
    for d, precision in ((41, "double"), (81, "single")):
        with refuses("records", N, d):
            check_room(N, d, precision, 0, tmp_path)  # type: ignore[arg-type]
