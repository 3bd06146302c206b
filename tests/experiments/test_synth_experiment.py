"""Synthetic tables compared: every method makes rows, more noise costs more, attacks stay below the promise."""

from pathlib import Path

import numpy as np
import pytest
from dpmpc_experiments import synth, synth_parties, synth_rivals
from dpmpc_experiments.corpus import Raw
from dpmpc_experiments.synth_attack import Found, attack

from tests.refusals import refuses


@pytest.fixture(scope="module")
def small() -> synth.Set:
    rng = np.random.default_rng(1)
    n = 5000
    kind = rng.integers(0, 3, n)
    number = np.where(rng.random(n) < 0.6, 0.0, rng.gamma(2, 3, n) + 5 * kind)
    text = np.array(["a", "b", "c"], dtype=object)[np.where(rng.random(n) < 0.8, kind, 0)]
    y = np.where(rng.random(n) < 0.2 + 0.3 * kind, 1.0, -1.0)
    columns = {
        "number": number,
        "text": text,
        "other": np.where(rng.random(n) < 0.1, np.nan, kind + rng.normal(0, 1, n)),
    }
    return synth.set_of(Raw("small", "logistic", columns, y))


def test_every_method_makes_rows_of_the_same_cells(small: synth.Set) -> None:
    found = {}
    for name, method in synth.METHODS.items():
        drawn = method(small, 1.0, np.random.default_rng(2))
        assert {len(cells) for cells in drawn.values()} == {small.train.n} and set(drawn) == set(small.columns.names)
        assert all(cells.min() >= 0 and cells.max() < small.sizes[column] for column, cells in drawn.items())
        found[name] = synth.judged(small, drawn, 1, boosting=name == "two releases")
    assert found["records"]["tv2"] == 0 < found["no noise"]["tv2"] < found["two releases"]["tv2"] < 0.2
    assert found["two releases"]["auc"] > 0.6 and set(found["two releases"]) == set(synth.COLUMNS[4:-1])
    rows = [{"dataset": "small", "epsilon": 1.0, "method": m, "seed": 1, "seconds": 0.1,
             "boosting": 0.5, "boosting_auc": 0.5, **r} for m, r in found.items()]  # fmt: skip
    page = synth.report(rows)
    assert page.count("| small |") == len(synth.METHODS) and ("AIM was left out" in page) != bool(
        synth_rivals.installed()
    )


def test_five_copies_of_noise_cost_accuracy(small: synth.Set) -> None:
    """Means over 10 draws of each: five copies are a third worse at least, many deviations of the means away."""
    pairs = [("text", "other"), ("number", "text")]
    means = {
        name: np.mean([
            synth.variation(small, synth.METHODS[name](small, 0.5, np.random.default_rng(k)), pairs) for k in range(10)
        ])
        for name in ("two releases", "five copies of noise")
    }  # fmt: skip
    assert means["five copies of noise"] > 1.3 * means["two releases"]


def test_mst_spends_what_is_published(small: synth.Set) -> None:
    """A third of rho for each of three parts, at more budget fewer errors."""
    off = [
        synth.variation(small, synth_rivals.mst(small.cells, small.sizes, epsilon, 1e-5, np.random.default_rng(3)),
                        [("text", "other")])
        for epsilon in (0.1, 50.0)
    ]  # fmt: skip
    assert off[1] < 0.05 < off[0]


def test_an_attack_stays_below_the_promise_and_finds_too_little_noise() -> None:
    """Bounds are wrong with a chance below 1e-9; with a fiftieth of the noise the same attack breaks the promise."""
    for found in attack(0.5, 20, alpha=1e-9):
        assert 0 <= found.bound <= 0.5 and found.trials == 20
    everything, rows = attack(0.5, 130, narrowed=0.02, alpha=1e-9)
    assert everything.bound > 0.5
    assert "| 0.5 | the rows alone | 130 |" in synth.of_attacks([everything.row, rows.row])


def test_runs_are_carried_on_and_set_beside_what_parties_take(
    small: synth.Set, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[float] = []

    def records(data: synth.Set, epsilon: float, rng: np.random.Generator) -> synth.Cells:
        drawn.append(epsilon)
        return data.cells

    in_the_clear = synth_parties.through(small, engine="clear")
    assert in_the_clear["records"] == 4000 and in_the_clear["columns"] == 4 and in_the_clear["cells"] > 100
    alike = synth.judged(small, small.cells, 1, boosting=False)
    assert in_the_clear["tv2"] < 0.1 and abs(in_the_clear["auc"] - alike["auc"]) < 0.1 < in_the_clear["processor"] * 10
    monkeypatch.setattr(synth, "methods", lambda: {"one release": records, "records": records})
    monkeypatch.setattr(synth, "available", lambda *given: True)
    monkeypatch.setattr(synth, "load", lambda *given: None)
    monkeypatch.setattr(synth, "set_of", lambda *given: small)
    attacks: list[float] = []

    def attack_of(epsilon: float, trials: int, seed: int) -> list[Found]:
        attacks.append(epsilon)
        return [Found(epsilon, "the rows alone", 0.5, 3, (0.25, 0.125))]

    monkeypatch.setattr(synth, "attack", attack_of)
    asked: list[tuple[float, int]] = []

    def through(data: synth.Set, epsilon: float, seed: int, **settings: object) -> synth.Row:
        asked.append((epsilon, seed))
        return {**in_the_clear, "dataset": "adult", "epsilon": f"{epsilon:g}", "seed": seed}

    monkeypatch.setattr(synth_parties, "through", through)
    synth.run(tmp_path, None, repeats=1, names=("adult",))
    assert drawn == [0.2, 1.0, 1.0]
    page = synth.run(tmp_path, None, repeats=3, names=("adult",)).read_text()
    assert drawn == [0.2, 1.0, 1.0, 0.2, 0.2, 1.0, 1.0]
    assert "| adult | 0.2 | one release | 3 |" in page and "| adult | - | records | 1 |" in page
    assert asked == [(epsilon, k) for epsilon in synth.EPSILONS for k in range(1, 11)]  # once each
    assert len(attacks) == len(synth.ATTACKED) and "| 8 | the rows alone | 3 | 0.500 |" in page  # once each
    assert "## Two releases through three parties" in page and "| adult | 1 | 10 | 4000 | 4 |" in page


def test_the_page_has_the_tables_of_the_files_beside_it() -> None:
    docs = Path(__file__).parents[2] / "docs"
    runs, parties, attacks = (
        synth.rows_of(docs / "experiments" / "synth" / f"{name}.csv") for name in ("runs", "parties", "attacks")
    )
    text = (docs / "synth.md").read_text(encoding="utf-8")
    for lines, least in ((synth.compared(runs), 60), (synth_parties.taken(parties), 6), (synth.attacked(attacks), 10)):
        assert "\n".join(lines) in text and len(lines) >= least
    assert all(float(row["bound"]) <= float(row["epsilon"]) for row in attacks)


def test_without_any_set_there_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:

    monkeypatch.delenv("DPMPC_DATA", raising=False)
    with refuses("path", "adult", setting="data_dir"):
        synth.run(tmp_path, None, names=("adult",))
