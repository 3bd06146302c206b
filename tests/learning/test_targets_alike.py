"""Where a run has all records, a target that is one class or one number throughout is said before anything is spent."""

import json
from pathlib import Path
from typing import Any

import pytest

import dpmpc
from tests.refusals import refuses

pytestmark = pytest.mark.usefixtures("small_tables")
NAMES = ["age", "sex", "ill"]
LABEL = {"kind": "label", "name": "ill", "positive": ["yes"], "negative": ["no"]}
CLASSES = {"kind": "classes", "name": "ill", "classes": ["no", "some", "yes"]}
NUMBER = {"kind": "number", "name": "ill", "low": 0, "high": 10}
SAID = "a model learns from targets that differ; 'ill' is {} in {} records, all that fit; look whether some are missing"


def written(folder: Path, targets: list[str], target: dict[str, Any]) -> dict[str, str]:
    """A file of records with these targets, and its schema, as settings."""
    rows = [f"{20 + k % 50},{'fm'[k % 2]},{value}" for k, value in enumerate(targets)]
    (folder / "r.csv").write_text("\n".join([",".join(NAMES), *rows, ""]))
    columns = [
        {"kind": "number", "name": "age", "low": 0, "high": 100},
        {"kind": "category", "name": "sex", "categories": ["f", "m"]},
    ]
    (folder / "s.json").write_text(json.dumps({"columns": columns, "target": target}))
    return {"csv": str(folder / "r.csv"), "schema": str(folder / "s.json")}


def told(folder: Path, **settings: Any) -> list[tuple[str, bool]]:
    """What a run tells its terminal, and whether anything was spent by then."""
    said: list[tuple[str, bool]] = []

    def progress(event: dict[str, Any]) -> None:
        if "text" in event:
            spent = any(path.stat().st_size for path in (folder / "run").rglob("ledger*.jsonl"))
            said.append((event["text"], spent))

    promise = {"epsilon": 5.0, "delta": 1e-4, "iterations": 2, "engine": "clear", "evaluate": False}
    dpmpc.train(folder / "run", **{**promise, "owners": 2, **settings}, progress=progress)
    return said


@pytest.mark.parametrize(
    ("target", "targets", "value"),
    [
        (LABEL, ["no"] * 40, "'no'"),
        (LABEL, ["yes"] * 40, "'yes'"),
        (CLASSES, ["some"] * 40, "'some'"),
        (NUMBER, ["7.5"] * 40, "7.5"),
        (LABEL, ["no"] * 39 + ["yes"], None),
        (CLASSES, ["some"] * 39 + ["no"], None),
        (NUMBER, ["7.5"] * 39 + ["7.25"], None),
    ],
)
def test_a_schema_s_target_of_one_value_is_said_and_nothing_spent_before(
    target: dict[str, Any], targets: list[str], value: str | None, tmp_path: Path
) -> None:
    said = told(tmp_path, **written(tmp_path, targets, target))
    assert [each for each in said if "targets that differ" in each[0]] == (
        [("warning: " + SAID.format(value, 40), False)] if value else []
    )
    for path in (path for path in (tmp_path / "run").rglob("*") if path.is_file()):  # its eyes alone
        assert b"targets that differ" not in path.read_bytes(), path


def test_it_is_said_once_and_before_the_survey(tmp_path: Path) -> None:
    files = written(tmp_path, ["no"] * 400, LABEL)
    settings: dict[str, Any] = {"csv": files["csv"], "target": "ill", "classes": ("no", "yes"), "epsilon": 20.0}
    said = told(tmp_path, **settings, preprocessing="survey")
    assert (tmp_path / "run" / "survey" / "schema.json").exists()
    assert [each for each in said if "targets that differ" in each[0]] == [
        ("warning: " + SAID.format("'no'", 400), False)
    ]


def test_a_target_that_does_not_fit_is_refused_before_the_survey(tmp_path: Path) -> None:
    files = written(tmp_path, ["no", "yes"] * 199 + ["maybe"], LABEL)
    with refuses("records", "maybe", 1, 399):
        told(tmp_path, csv=files["csv"], target="ill", classes=("no", "yes"), epsilon=20.0, preprocessing="survey")
    assert not [path for path in (tmp_path / "run").rglob("ledger*.jsonl") if path.stat().st_size]


@pytest.mark.parametrize("target", [LABEL, NUMBER])
def test_one_record_is_no_model_with_a_schema_either(target: dict[str, Any], tmp_path: Path) -> None:
    with refuses("enough", "r.csv"):
        told(tmp_path, **written(tmp_path, ["no" if target is LABEL else "3"], target), owners=1)
    assert not [path for path in (tmp_path / "run").rglob("ledger*.jsonl") if path.stat().st_size]
