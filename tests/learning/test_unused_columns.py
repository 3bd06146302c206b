"""Columns of new records that a model does not read are named, in one line."""

import datetime
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from dpmpc.cli.main import group
from dpmpc.errors import RecordError
from dpmpc.intake.spelling import Spelling
from dpmpc.learning.model import write_model
from dpmpc.learning.predict import predict
from dpmpc.records import CsvFile, load
from dpmpc.records.schema import Labels, Numeric, Schema

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
        with pytest.raises(RecordError, match="is yes or no; a record has"):
            predict(run, CsvFile(new), spelling=Spelling(misfits="ask"))
    frame = {"caf\u00e9": [1, 0], "x": [0.5, -1], "y": [datetime.date(2024, 1, 1)] * 2}
    assert predict(run, frame).line == "no figure: not one of 2 records has a 'y' that the model knows"
