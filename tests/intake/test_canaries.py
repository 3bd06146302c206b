"""Records with unmistakable strings and numbers: nothing that a run publishes holds one, and nor does what may be said
of an error."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmpc.errors import DpmpcError, RecordError, error_of, owner_text, public_text
from dpmpc.intake.spelling import Spelling
from dpmpc.learning.model import write_model
from dpmpc.records import CsvFile, Dataset, Schema, load
from dpmpc.records.schema import VERSION
from tests.endurance.canary_search import DAYS, NUMBERS, WORDS
from tests.tables import write

pytestmark = pytest.mark.usefixtures("small_tables")

CANARY = re.compile("|".join(map(re.escape, (*WORDS, *NUMBERS, *DAYS))), re.I)


def table(task: str, n: int = 120) -> dict[str, Any]:
    """Columns of every kind, each with canaries: the extremes, rare values, words among numbers, rare dates."""
    rng = np.random.default_rng(1)
    amount = [f"{v:.2f}" for v in rng.uniform(0, 1000, n)]
    amount[3], amount[4], amount[5] = NUMBERS[0], NUMBERS[1], WORDS[0]
    ward = list(rng.choice(["surgery", "general"], n))
    ward[7], ward[8] = WORDS[1], WORDS[2]
    born = [f"200{rng.integers(10)}-0{rng.integers(1, 9)}-1{rng.integers(10)}" for _ in range(n)]
    born[9], born[10] = DAYS
    stage = [str(v) for v in rng.integers(1, 5, n)]
    stage[11], stage[12] = "x", NUMBERS[3]
    target = {
        "logistic": ["yes" if v else "no" for v in rng.integers(0, 2, n)],
        "softmax": list(rng.choice(["a", "b", "c"], n)),
        "ridge": [NUMBERS[2], NUMBERS[1], *(f"{v:.3f}" for v in rng.normal(size=n - 2))],
    }[task]
    ids = [f"{WORDS[0]}{k}" for k in range(n)]
    columns = {"id": ids, "amount": amount, "ward": ward, "born": born, "stage": stage, "y": target}
    return {name: np.array(values, dtype=object) for name, values in columns.items()}


def published(data: Dataset, folder: Path) -> str:
    """All texts and numbers of what leaves an owner: schema, feature names, classes, account of columns, model file."""
    theta = np.zeros(data.d * (data.classes if data.task == "softmax" else 1))
    write_model(folder / "model.npz", theta, data, "run")
    saved = np.load(folder / "model.npz")
    parts = [json.dumps(data.schema.to_json()), json.dumps(data.columns), *data.feature_names, data.schema.digest]
    return "\n".join([*parts, *(str(saved[name].tolist()) for name in saved.files)])


@pytest.mark.parametrize("task", ["logistic", "softmax", "ridge"])
def test_a_schema_read_off_the_records_holds_none_of_their_values(task: str, tmp_path: Path) -> None:
    records = table(task)
    assert all(any(CANARY.search(str(v)) for v in values) for name, values in records.items() if name != "y")
    data = load(records, target="y", task=task, test_fraction=0.0)
    text = published(data, tmp_path)
    assert not CANARY.search(text), CANARY.findall(text)
    # nor a rounded one, but for ends that are multiples of a tenth of the span
    for number in NUMBERS:
        assert f"{float(number):g}" not in re.findall(r"-?[\d.]+(?:e[+-]?\d+)?", text)
    assert data.columns["left_out"].keys() == {"id"} and data.columns["used"].keys() == {
        "amount",
        "ward",
        "born",
        "stage",
    }
    assert data.bounds == "data"


def test_what_would_show_a_canary_is_seen_by_the_search(tmp_path: Path) -> None:
    """The same search on a model whose schema lists a value finds it."""
    records = table("logistic")
    schema = Schema.from_json(
        {"version": VERSION, "columns": [{"kind": "category", "name": "ward", "categories": ["surgery", WORDS[1]]}],
         "target": {"kind": "label", "name": "y", "positive": ["yes"], "negative": ["no"]}}
    )  # fmt: skip
    assert CANARY.search(published(load(records, schema=schema, test_fraction=0.0), tmp_path))


FAULTS = {
    "a class that one record has": {"y": (0, WORDS[0])},
    "a target that is missing": {"y": (0, "")},
    "a target that is no number": {"task": "ridge", "y": (3, WORDS[1])},
    "an owner of two spellings": {"owners": True},
    "an odd spelling": {"amounts": True},
    "no column left": {"only": "id"},
}


@pytest.mark.parametrize("name", FAULTS)
def test_what_may_be_said_of_an_error_holds_no_record(name: str, tmp_path: Path) -> None:
    fault: dict[str, Any] = FAULTS[name]
    records = table(fault.get("task", "logistic"))
    given: dict[str, Any] = {"target": "y", "test_fraction": 0.0, "task": fault.get("task")}
    if "y" in fault:
        records["y"][fault["y"][0]] = fault["y"][1]
    if "owners" in fault:
        records["who"] = np.array([WORDS[0], WORDS[0].upper(), "b"] * 40, dtype=object)
        given["owners_column"] = "who"
    if "amounts" in fault:
        records["amount"] = np.array([f"{k}{NUMBERS[0]} {WORDS[0][:5]}" for k in range(120)], dtype=object)
    if "only" in fault:
        records = {"id": records["id"], "y": records["y"]}
    with pytest.raises(DpmpcError) as error:
        load(records, **given)
    assert isinstance(error.value, RecordError) and "\n" not in owner_text(error.value)
    said = public_text(error.value)
    assert said and not CANARY.search(said) and not re.search(r"\d", said.replace(str(tmp_path), ""))
    assert public_text(error_of("plain", 2)) == "plain"


def test_rows_that_cannot_be_read_are_said_to_their_owner_alone(tmp_path: Path) -> None:
    for text in (f'a,y\n"{WORDS[0]},1\n2,0\n', f"a,y\n1,1\n{WORDS[0]},2,3\n"):
        with pytest.raises(RecordError) as error:
            load(CsvFile(write(tmp_path, text)), target="y")
        assert "line" in owner_text(error.value) and not CANARY.search(public_text(error.value))


@pytest.mark.slow
def test_one_bad_record_neither_stops_a_run_nor_moves_its_public_shape(tmp_path: Path) -> None:
    """With a public schema and `misfits` zero, whatever a record holds, all that is public of it stays as it was."""
    schema = Schema.from_json(
        {"version": VERSION, "columns": [{"kind": "number", "name": "amount", "low": 0, "high": 1000},
                                   {"kind": "category", "name": "ward", "categories": ["surgery", "general"]},
                                   {"kind": "date", "name": "born", "first": "2000-01-01", "last": "2010-01-01"}],
         "target": {"kind": "label", "name": "y", "positive": ["yes"], "negative": ["no"]}}
    )  # fmt: skip
    records = table("logistic")
    shapes = set()
    for odd in (
        "",
        "?",
        "nan",
        "inf",
        "1e999",
        *WORDS,
        *NUMBERS,
        *DAYS,
        "0x10",
        "'; DROP TABLE held",
        "\x00",
        "٣",
        "yes",
    ):
        changed = {key: values.copy() for key, values in records.items()}
        for row, name in enumerate(("amount", "ward", "born", "y"), 20):  # a record each
            changed[name][row] = odd
        data = load(changed, schema=schema, test_fraction=0.0, spelling=Spelling(misfits="zero"))
        shapes.add((data.n, data.d, data.schema.digest, json.dumps(data.columns)))
        assert np.einsum("nd,nd->n", data.X, data.X).max() <= 1 and np.isfinite(data.X).all()
        assert np.isfinite(data.y).all()
    assert len(shapes) == 1


def test_a_status_file_says_the_public_half_of_an_error(tmp_path: Path) -> None:
    from dpmpc.processes.status import Status

    error = RecordError(f"a record has '{WORDS[1]}'", "an owner's records do not fit")
    with pytest.raises(RecordError), Status(tmp_path / "status_owner_0.json", "owner 0"):
        raise error
    text = (tmp_path / "status_owner_0.json").read_text()
    assert "error: an owner's records do not fit" in text and not CANARY.search(text)


@pytest.mark.slow
@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow", "numpy"])
def test_frames_are_trained_on_as_files_are(library: str, tmp_path: Path) -> None:
    import dpmpc

    n = 200
    columns: dict[str, Any] = {"age": np.arange(n) % 70, "ward": [("a", "b")[k % 2] for k in range(n)]}
    columns["y"] = ["yes" if k % 3 else "no" for k in range(n)]
    made: Any = {name: np.array(values) for name, values in columns.items()}
    if library == "pandas":
        made = pytest.importorskip("pandas").DataFrame(columns)
    elif library == "polars":
        made = pytest.importorskip("polars").DataFrame(columns)
    elif library == "pyarrow":
        made = pytest.importorskip("pyarrow").table(columns)
    trained = dpmpc.train(
        tmp_path / "run", records=made, target="y", owners=2, epsilon=5.0, delta=1e-5, engine="clear", iterations=2,
        preprocessing="records",
    )  # fmt: skip
    assert trained.report["columns"]["used"] == {"age": 1, "ward": 2} and trained.report["data"] == "records.parquet"
