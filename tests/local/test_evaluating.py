"""Figures inside the promise: who is held out, what that costs, and what comes of it."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import r2_score, root_mean_squared_error

from dpmpc.aggregation.plan.here import Here
from dpmpc.consortium.placement import Placement
from dpmpc.consortium.start import carry_on
from dpmpc.intake.table import Block, Table
from dpmpc.learning.model import read_model
from dpmpc.learning.predict import predict
from dpmpc.local.evaluating import parting, splitting
from dpmpc.local.named_records import load
from dpmpc.local.surveying import asked_of, owners_of_records
from dpmpc.planning.forecast import LOUDEST, cells_of, off_by
from dpmpc.planning.request import Request
from dpmpc.privacy.composition import spent
from dpmpc.privacy.data_names import data_digest
from dpmpc.privacy.ledgers import ledgers_below, read_ledger
from dpmpc.records.derive import looked
from dpmpc.records.loading import opened
from dpmpc.show.summary import summary
from dpmpc.statistics.evaluated import CELLS, figures_of, tables_of, totals
from dpmpc.statistics.figures import plain
from tests.refusals import refuses
from tests.runs import run, small

pytestmark = pytest.mark.usefixtures("small_tables")
ENOUGH = 9000  # a fifth of them says enough at epsilon 1


@pytest.fixture(autouse=True)
def account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("DPMPC_ACCOUNT", str(tmp_path / "account"))
    yield


def people(n: int, first: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(first + 1)
    x = rng.normal(size=n)
    y = np.where(rng.random(n) < 1 / (1 + np.exp(1 - 2 * x)), "yes", "no")
    site = np.where(rng.random(n) < 0.3, "a", "b")
    return pd.DataFrame({"id": [f"p{first + k}" for k in range(n)], "site": site, "x": x.round(4), "y": y})


def request(path: Path, **changes: Any) -> Request:
    base: dict[str, Any] = {
        "csv": str(path), "target": "y", "owners_column": "site", "epsilon": 1.0, "delta": 1e-5, "engine": "clear",
        "iterations": 3, "bounds": str(path.with_suffix(".json")),
    }  # fmt: skip
    path.with_suffix(".json").write_text(json.dumps({"x": [-3, 3], "y": ["no", "yes"]}))
    return Request(**{**base, "drop": () if "ids" in changes else ("id",), **changes})


def held(asked: Request, frame: pd.DataFrame) -> set[str]:
    """The ids of those who are held out."""
    groups, every = np.unique(frame["site"], return_inverse=True)[1].astype(np.int64), np.arange(len(frame))
    with opened(Path(asked.csv or "")) as (table, _):
        _, test = splitting(asked)(table, groups, (every, every[:0]))
    return set(frame["id"].iloc[test])


def test_who_is_held_out_is_decided_once_and_moves_with_no_other_row(tmp_path: Path) -> None:
    path, frame = tmp_path / "people.csv", people(ENOUGH)
    frame.to_csv(path, index=False)
    by_id = request(path, ids="id")
    first = held(by_id, frame)
    assert 0.17 < len(first) / ENOUGH < 0.23  # seven deviations of a binomial: a false alarm below 1e-11
    sorted_, more = frame.sort_values("x"), pd.concat([people(500, ENOUGH), frame])
    sorted_.to_csv(path, index=False)
    assert held(by_id, sorted_) == first
    more.to_csv(path, index=False)
    assert held(by_id, more) & set(frame["id"]) == first and len(held(by_id, more)) > len(first)
    twice = pd.concat([frame, frame])  # persons with two rows each lie in one part
    twice.to_csv(path, index=False)
    with opened(path) as (table, _):
        rows = splitting(by_id)(table, None, (np.arange(len(twice)), np.arange(0)))
    assert not set(twice["id"].iloc[rows[0]]) & set(twice["id"].iloc[rows[1]])


def test_a_changed_file_without_ids_is_refused_and_nothing_is_spent(tmp_path: Path) -> None:
    path, frame = tmp_path / "people.csv", people(ENOUGH)
    frame.to_csv(path, index=False)
    assert held(request(path), frame) == held(request(path), frame)
    frame.iloc[::-1].to_csv(path, index=False)
    with refuses("missing", "people.csv", setting="ids"):
        run(request(path), tmp_path / "run")
    assert not ledgers_below(tmp_path / "run")
    gone = frame.copy()
    gone.loc[3, "id"] = ""
    gone.to_csv(path, index=False)
    with refuses("records", "id", "people.csv"):
        run(request(path, ids="id"), tmp_path / "again")
    assert parting(request(path, figures="plain"), ENOUGH, "people.csv") is None


def test_ids_hold_records_out_where_constants_are_read_off_them(tmp_path: Path) -> None:
    """A column of ids tells a model nothing, and is none of its columns: those who are held out are known by it all the
    same."""
    path, frame = tmp_path / "people.csv", people(ENOUGH)
    frame.to_csv(path, index=False)
    asked = request(path, ids="id", bounds=None, preprocessing="records", figures="inside")
    report = run(asked, tmp_path / "run")
    assert sum(report["evaluation"]["held_out"]) == len(held(asked, frame)) and report["figures"]["inside"]


def test_the_survey_reads_the_training_part_alone(tmp_path: Path) -> None:
    path, frame = tmp_path / "people.csv", people(ENOUGH)
    frame.to_csv(path, index=False)
    asked = request(path, ids="id", bounds=None)
    with opened(path) as (table, _):
        rows, owner, sizes = owners_of_records(asked, table)
    out = set(frame["id"].iloc[rows[1]])
    assert out == held(asked, frame) and set(np.flatnonzero(owner < 0)) == set(rows[1])
    assert sum(sizes) == ENOUGH - len(out)


@pytest.mark.parametrize("sites", [["a", " b"], ["01", "1"], ["7", "8.0"]], ids=str)
@pytest.mark.parametrize("ids", [None, "id"])
def test_who_owns_a_record_is_read_off_the_texts_that_lie_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sites: list[str], ids: str | None
) -> None:
    """The file is parsed no second time for names that are texts: the same rows, owners and sizes. Names that are
    numbers are read off the file, where they stand as they are spelled."""
    path, frame = tmp_path / "people.csv", people(ENOUGH)
    frame["site"] = np.where(frame["site"] == "a", *sites)
    frame.to_csv(path, index=False)
    asked = request(path, bounds=None, **({} if ids is None else {"ids": ids}))
    parsed, blocks = list[str](), Table.blocks

    def noted(table: Table, expressions: Sequence[str], tail: str = "") -> Iterator[Block]:
        parsed.append(table.relation)
        return blocks(table, expressions, tail)

    with opened(path) as (table, _):
        _, plain = looked(table, asked_of(asked))
        expected = owners_of_records(asked, table)
        table.found.clear()  # what was read is not read again
        monkeypatch.setattr(Table, "blocks", noted)
        found = owners_of_records(asked, table, plain)
        assert (table.relation in parsed) == (sites[0] == "7")  # digits with a zero before them are held as texts
    assert all(np.array_equal(*each) for each in zip(found[0], expected[0], strict=True))
    assert np.array_equal(found[1], expected[1]) and found[2] == expected[2]


def test_a_run_ends_with_figures_from_inside_its_promise(tmp_path: Path) -> None:
    """Through three real parties. The noisy figures are the plain ones within six of their deviations: false alarms
    below 1e-8 together. Ledgers have two parts, of which the larger counts."""
    path, frame = tmp_path / "people.csv", people(ENOUGH)
    frame.to_csv(path, index=False)
    asked = request(path, ids="id", engine="mpc", data_id="people", preprocessing="records")
    out = tmp_path / "runs" / "one"
    report = run(asked, out)
    assert report["utility"] is None and report["figures"]["inside"] and not (out / "survey").exists()
    dataset, _ = load(asked, out)
    model = read_model(out)
    exact = plain(dataset.schema.target, np.asarray(dataset.test.X) @ model.theta, dataset.test.y)
    assert exact is not None and sum(report["evaluation"]["held_out"]) == dataset.test.n == report["figures"]["records"]
    for name, number in exact.numbers.items():
        found = report["figures"]["numbers"][name]
        assert number.estimate is not None
        assert abs(found["estimate"] - number.estimate) < 6 * found["noise"] + 0.005, name
    entries = [entry for ledger in ledgers_below(out) for entry in read_ledger(ledger).entries if "_0" in ledger.name]
    parts = [entry.part.split("/")[1] for entry in entries]
    assert sorted(set(parts)) == ["held_out", "training"] and parts.count("held_out") == 1 and len(parts) == 4
    together = spent(entries, data_digest("people"))
    one = spent([entry for entry in entries if entry.part.endswith("training")], data_digest("people"))
    assert together.epsilon <= 1 + 1e-9 and together.epsilon == pytest.approx(max(one.epsilon, 1), rel=1e-3)
    assert all(spent([replace(e, part="") for e in entries], data_digest("people")).epsilon > 1.3 for _ in (0,))
    lines = dict(summary(report, out))
    assert "inside the guarantee" in lines["held out"] and "no record pays for both" in lines["held out"]
    assert model.figures == report["figures"]
    # what was evaluated is not evaluated again
    before, figures = (out / "evaluation" / "opened.npy").read_bytes(), report["figures"]
    again = carried_on(out)
    assert again["figures"] == figures and again["evaluation"] == report["evaluation"]
    assert (out / "evaluation" / "opened.npy").read_bytes() == before
    # nor where the process died before it had kept the sum, as long as one has it
    (out / "evaluation" / "opened.npy").unlink()
    assert carried_on(out)["figures"] == figures and (out / "evaluation" / "opened.npy").read_bytes() == before
    (out / "evaluation" / "opened.npy").unlink()
    for file in (out / "evaluation").glob("*.opened.bin"):
        file.unlink()
    lost = carried_on(out)
    assert lost["figures"] is None and lost["iterations"] == report["iterations"]
    assert any(text.startswith("no figures of the model") and "spent" in text for text in lost["warnings"])


def carried_on(out: Path) -> dict[str, Any]:
    """The report of a run that died before that was there, when it is carried on: all else is in its folder."""
    (out / "report.json").unlink()
    carry_on(Placement(out=out), lambda event: None)
    found: dict[str, Any] = json.loads((out / "report.json").read_text())
    return found


def test_too_few_records_are_said_before_anything_is_spent(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    people(400).to_csv(path, index=False)
    said: list[str] = []
    from dpmpc.local.launcher import train

    train(request(path), Here(out=tmp_path / "plain"), progress=lambda event: said.append(str(event.get("text"))))
    report = json.loads((tmp_path / "plain" / "report.json").read_text())
    assert not report["figures"]["inside"] and report["utility"] is not None
    assert any("80 held-out records are too few" in text and "would do" in text for text in said)
    with refuses("enough", 80, setting="test_fraction"):
        run(request(path, figures="inside", engine="mpc"), tmp_path / "asked")
    assert not ledgers_below(tmp_path / "asked")
    with refuses("enough", setting="test_fraction"):
        run(request(path, figures="inside", neighbours="owner"), tmp_path / "owners")
    assert run(request(path, evaluate=False), tmp_path / "none")["figures"] is None


@pytest.mark.parametrize(("task", "figure"), [("ridge", "R2"), ("softmax", "AUC")])
def test_figures_that_a_task_has_too_few_records_for_are_refused_before_its_survey(
    task: str, figure: str, tmp_path: Path
) -> None:
    """Of two classes 800 held-out records tell enough, of a quantity or of three classes they do not."""
    path, frame = tmp_path / "people.csv", people(4000)
    frame["y"] = frame["x"] if task == "ridge" else np.digitize(frame["x"], [-0.5, 0.5])
    frame.to_csv(path, index=False)
    asked = request(path, figures="inside", task=task, epsilon=1.5, bounds=None, test_fraction=0.2)
    with refuses("enough", figure, setting="test_fraction"):
        run(asked, tmp_path / "asked")
    assert not ledgers_below(tmp_path / "asked")
    assert not run(replace(asked, figures=None), tmp_path / "not")["figures"]["inside"]
    assert ledgers_below(tmp_path / "not")  # of its survey too


@pytest.mark.parametrize("basis", ["linear", "additive"])
def test_figures_of_a_quantity_are_scikit_learns_on_what_predict_says_beyond_its_range_too(
    basis: Any, tmp_path: Path
) -> None:
    """A third of the targets lie beyond the public range. Clipped to it they would be missed by less than they are."""
    path, frame = tmp_path / "people.csv", people(1500)
    frame["y"] = 2 * frame["x"] + np.random.default_rng(7).normal(size=len(frame))
    frame.to_csv(path, index=False)
    asked = request(path, figures="plain", task="ridge", epsilon=20.0, iterations=20, basis=basis)
    path.with_suffix(".json").write_text(json.dumps({"x": [-3, 3], "y": [-2, 2]}))
    numbers = run(replace(asked, preprocessing="records"), tmp_path / "run")["figures"]["numbers"]
    with opened(path) as (table, _):
        test = owners_of_records(asked, table)[0][1]
    found, truth = predict(tmp_path / "run", path), frame["y"].to_numpy()
    assert np.mean(np.abs(truth) > 2) > 0.3
    said = found.columns["y"]
    assert found.score == ("rmse", pytest.approx(root_mean_squared_error(truth, said)))
    expected = r2_score(truth[test], said[test]), root_mean_squared_error(truth[test], said[test])
    assert (numbers["R2"]["estimate"], numbers["rmse"]["estimate"]) == pytest.approx(expected)
    assert numbers["mean error"]["estimate"] == pytest.approx(np.mean(truth[test] - said[test]))


def test_data_sets_that_are_public_have_both_kinds_of_figures(tmp_path: Path) -> None:
    report = run(small(max_rows=6000, evaluate=True, engine="clear", epsilon=2.0), tmp_path / "run")
    assert report["figures"]["inside"] and report["utility"] is not None
    lines = dict(summary(report, tmp_path / "run"))
    assert "without noise" in lines and "without privacy" not in lines and "AUC" in lines
    alone = run(small(max_rows=6000, evaluate=True, engine="clear", epsilon=2.0, figures="plain"), tmp_path / "plain")
    assert not alone["figures"]["inside"] and "evaluation" not in alone


@pytest.mark.parametrize(("epsilon", "held"), [(1.0, 1200), (1.0, 18000), (2.0, 800)])
@pytest.mark.parametrize("share", [0.5, 0.2, 0.057])
def test_what_noise_does_to_the_auc_of_a_rarer_class_is_foreseen(share: float, epsilon: float, held: int) -> None:
    """The deviation over 200 draws of noise is between half and twice the forecast, of whose logarithm it is off by
    about 0.05: by chance less than once in 1e9. Cells are so wide only where noise hides it."""
    from dpmpc.privacy.gaussian import mu_of_budget
    from dpmpc.records.schema import Labels, Numeric, Schema
    from dpmpc.statistics.figures import auc

    rng = np.random.default_rng(5)
    truth = np.arange(held) < share * held
    x = np.clip(rng.normal(size=held) + truth, -3, 3)
    schema = Schema((Numeric("x", -3, 3),), Labels("y", ("yes",), ("no",)))
    theta = np.array([3.0, np.log(share)])
    X = np.stack([x / 3, np.ones(held)], axis=1)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    cells = cells_of(epsilon, 1e-5, held)
    tables = tables_of(schema, theta, cells=cells)
    owner = np.zeros(held, dtype=np.int64)
    (total,) = totals(schema, theta, None, X, np.where(truth, 1.0, -1.0), owner, 1, cells=cells)
    sigma = tables.spread.l2 / mu_of_budget(epsilon, 1e-5) * 2**20

    def found(deviation: float) -> Any:
        noisy = total + rng.normal(size=len(total)) * deviation
        return figures_of(tables, noisy, max(deviation, 1e-9), (held,)).numbers["AUC"]

    foreseen = off_by(epsilon, 1e-5, held, share=share)
    many = [found(sigma) for _ in range(200)]
    told = [each.estimate for each in many if each.estimate is not None]
    exact = auc(X @ theta, truth)
    assert len(told) > 180 and 0.5 < float(np.std(told)) / foreseen < 2
    assert abs(found(0.0).estimate - exact) < min(foreseen, 0.01)
    assert sum(each.low <= exact <= each.high for each in many if each.estimate is not None) > 0.85 * len(told)


def test_few_records_have_few_cells_and_many_have_many() -> None:
    numbers = [cells_of(1.0, 1e-5, held) for held in (100, 1_800, 4_000, 18_000, 10**6)]
    assert numbers == sorted(numbers) and {numbers[0], numbers[-1]} == {min(CELLS), max(CELLS)}
    assert cells_of(1.0, 1e-5, 0) == min(CELLS)  # of none
    assert off_by(2.0, 1e-5, 800, share=0.057) > 5 * off_by(2.0, 1e-5, 800)


def test_a_rare_class_is_said_to_be_unsure_before_anything_is_spent(tmp_path: Path) -> None:
    path, frame = tmp_path / "people.csv", people(4000)
    frame.to_csv(path, index=False)
    said: list[str] = []
    from dpmpc.local.launcher import train

    asked = request(path, epsilon=2.0, delta=1e-5, test_fraction=0.2)
    train(asked, Here(out=tmp_path / "run"), progress=lambda event: said.append(str(event.get("text"))))
    (line,) = [text for text in said if "of a class that 5% of records have" in text]
    assert line.startswith("figures come from ") and "inside the guarantee: AUC would be off by 0.0" in line
    assert said.index(line) < next(k for k, text in enumerate(said) if "evaluating the model" in text)


def test_what_noise_will_do_is_foreseen_within_half_of_it() -> None:
    """The deviation of AUC over 200 draws of noise against the forecast, of a usual model."""
    frame = people(4000)
    from dpmpc.privacy.gaussian import mu_of_budget
    from dpmpc.records.schema import Labels, Numeric, Schema

    schema = Schema((Numeric("x", -3, 3),), Labels("y", ("yes",), ("no",)))
    theta = np.array([3.0, -1.0])
    X = np.stack([np.clip(frame["x"], -3, 3) / 3, np.ones(len(frame))], axis=1)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = np.where(frame["y"] == "yes", 1.0, -1.0)
    cells = cells_of(1.0, 1e-5, 4000)
    tables = tables_of(schema, theta, cells=cells)
    (exact,) = totals(schema, theta, None, X, y, np.zeros(len(y), dtype=np.int64), 1, cells=cells)
    with opened(frame) as (table, _):
        assert np.array_equal(tables.encode(table)[0], exact)  # rows of features give the owners' own vectors
    sigma = tables.spread.l2 / mu_of_budget(1.0, 1e-5) * 2**20
    rng = np.random.default_rng(0)
    values = [
        figures_of(tables, exact + rng.normal(size=len(exact)) * sigma, sigma, (4000,)).numbers["AUC"].estimate
        for _ in range(200)
    ]
    measured = float(np.std([value for value in values if value is not None]))
    assert 0.5 < measured / off_by(1.0, 1e-5, 4000) < 2
    assert off_by(1.0, 1e-5, 455) > LOUDEST > off_by(1.0, 1e-5, 1800)
    assert off_by(1.0, 1e-5, 18000) < 0.002
