"""Columns of new records that a model does not read are named, in one line; those to keep stand beside predictions."""

import datetime
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from dpmpc.cli.main import group
from dpmpc.intake.spelling import Spelling
from dpmpc.learning.model import write_model
from dpmpc.learning.predict import predict
from dpmpc.records import CsvFile, load
from dpmpc.records.loading import opened
from dpmpc.records.schema import Labels, Numeric, Schema
from tests.refusals import refuses

SCHEMA = Schema((Numeric("x", -1.0, 1.0), Numeric("caf\u00e9", 0.0, 1.0)), Labels("y", ("yes",), ("no",)))


def model(folder: Path) -> Path:
    """A run's folder with a model that was trained beside a column of ids."""
    path = folder / "train.csv"
    path.write_text("id,x,caf\u00e9,y\n1,0.5,1,yes\n2,-0.5,0,no\n", encoding="utf-8")
    data = load(CsvFile(path), schema=SCHEMA, drop=("id",), test_fraction=0.0)
    assert data.columns == {"used": {"x": 1, "caf\u00e9": 1}, "left_out": {"id": "as asked"}}
    write_model(folder / "model.npz", np.array([1.0, 0.0, 0.0]), data, "r")
    return folder


def test_unused_columns_are_named_in_one_line(tmp_path: Path) -> None:
    run, new = model(tmp_path), tmp_path / "new.csv"
    new.write_text("id,x,cafe\u0301,colour,\u202esh\x1b[31m\n1,0.5,1,red,1\n2,-1,0,blue,2\n", encoding="utf-8")
    found = CliRunner().invoke(group, ["predict", str(run), "--csv", str(new)])
    assert found.exit_code == 0 and found.stdout.count("\n") == 3
    [line] = [line for line in found.stderr.splitlines() if "not used" in line]
    assert line.startswith("not used: id (left out in training); colour, ") and "trained without" in line
    assert "\x1b" not in line and "\u202e" not in line


def test_records_with_the_models_columns_alone_have_no_such_line(tmp_path: Path) -> None:
    run, new = model(tmp_path), tmp_path / "new.csv"
    new.write_text("caf\u00e9,x,y\n1,0.5,yes\n0,-1,no\n", encoding="utf-8")
    found = predict(run, CsvFile(new))
    assert found.unused == () and found.beyond is None and found.score == ("accuracy", 1.0)


def test_records_without_target_are_predicted_and_not_scored(tmp_path: Path) -> None:
    run, new = model(tmp_path), tmp_path / "new.csv"
    new.write_text("caf\u00e9,x,y\n1,0.5,yes\n0,-1,no\n0,1,Summe\n", encoding="utf-8")
    found = predict(run, CsvFile(new))
    assert found.n == 3 and found.score == ("accuracy", 1.0) and found.base == 0.5
    assert found.line == "accuracy on 2 of 3 records: 1.0000; always saying the commonest class has 0.5000"
    for gone in ("?", "later"):
        new.write_text(f"caf\u00e9,x,y\n1,0.5,{gone}\n", encoding="utf-8")
        found = predict(run, CsvFile(new))
        assert found.score is None and found.line == "no figure: not one of 1 record has a 'y' that the model knows"
        with refuses("records", 1):
            predict(run, CsvFile(new), spelling=Spelling(misfits="ask"))
    frame = {"caf\u00e9": [1, 0], "x": [0.5, -1], "y": [datetime.date(2024, 1, 1)] * 2}
    assert predict(run, frame).line == "no figure: not one of 2 records has a 'y' that the model knows"


IDS = ("007", "08-\u00e4", "", "x,y", " 12 ")


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".jsonl", ".tsv.gz"])
def test_predictions_are_joined_back_by_what_is_kept(ending: str, tmp_path: Path) -> None:
    """Ids stand as they are in the file, leading zeros and all; joined back, each prediction is that of its record."""
    run, new, out = model(tmp_path), tmp_path / "new.csv", tmp_path / f"out{ending}"
    xs = (0.5, -1.0, 0.75, -0.25, 1.0)
    lines = [f'"{name}",{k},{x},1' for k, (name, x) in enumerate(zip(IDS, xs, strict=True))]
    new.write_text("\n".join(["patient,visit,x,caf\u00e9", *lines, ""]), encoding="utf-8")
    asked = ["predict", str(run), "--csv", str(new), "--keep", "patient", "--keep", "visit", "--out", str(out)]
    done = CliRunner().invoke(group, asked)
    assert done.exit_code == 0, done.output
    assert "not used" not in done.stderr
    with opened(str(out)) as (table, _):
        assert sorted(table.names) == ["patient", "probability_yes", "visit", "y"]
        rows = table.rows(", ".join(f"CAST({table[name].sql} AS VARCHAR)" for name in ("patient", "visit", "y")))
    truth = [(name or None, str(k), "yes" if x > 0 else "no") for k, (name, x) in enumerate(zip(IDS, xs, strict=True))]
    assert [(name or None, visit, said) for name, visit, said in rows] == truth


def test_predictions_without_an_id_have_the_number_of_their_record(tmp_path: Path) -> None:
    run, new = model(tmp_path), tmp_path / "new.csv"
    new.write_text("x,caf\u00e9\n0.5,1\n-1,0\n", encoding="utf-8")
    said = CliRunner().invoke(group, ["predict", str(run), "--csv", str(new)]).stdout.splitlines()
    assert said[0] == "row,y,probability_yes"
    assert [line.rpartition(",")[0] for line in said[1:]] == ["1,yes", "2,no"]


def test_what_is_kept_of_a_frame_has_its_type_and_cannot_hide_a_prediction(tmp_path: Path) -> None:
    run = model(tmp_path)
    frame = {"x": [0.5, -1.0], "caf\u00e9": [1, 0], "id": np.array([12345678, 9]), "y": ["no", "no"]}
    found = predict(run, frame, keep="id")
    assert found.ids["id"].tolist() == [12345678, 9] and found.ids["id"].dtype.kind == "i"
    assert list(found.joined()) == ["id", "y", "probability_yes"] == list(found.frame().columns)
    with refuses("unique", setting="keep"):
        predict(run, frame, keep=["y"])
    with refuses("column", "patient"):
        predict(run, frame, keep=["patient"])
