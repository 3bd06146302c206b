"""The defaults beside central learners: verdicts decide nothing by a wide interval, runs are computed once, and what is
simulated is what the library does."""

import math
from pathlib import Path

import numpy as np
import pytest
from dpmpc_experiments import central
from dpmpc_experiments.bands import made_up
from dpmpc_experiments.central import (
    Known,
    Scores,
    best_rival,
    cells_of,
    default_of,
    ours,
    paired,
    read,
    report,
    split_of,
    verdict,
)
from dpmpc_experiments.central_rivals import RIVALS
from dpmpc_experiments.central_table import bent, beside, counted, lists
from dpmpc_experiments.corpus import FINAL, FRESH, LAST, LATER, LATEST

from dpmpc.estimators import PrivateLogisticRegression
from tests.refusals import refuses

DOCS = Path(__file__).parents[2] / "docs"
TEXT = (DOCS / "accuracy.md").read_text("utf-8")


def test_a_wide_interval_decides_nothing() -> None:
    assert verdict(0.001, 0.002, 0.005) == "no worse" and verdict(-0.004, 0.0005, 0.005) == "no worse"
    assert verdict(-0.02, 0.01, 0.005) == "behind"
    assert verdict(0.03, 0.05, 0.005) == verdict(-0.03, 0.05, 0.005) == verdict(0.0, math.inf, 0.005) == "undecided"


def test_differences_are_paired_by_split_and_against_the_best_private_rival() -> None:
    known: Known = {}
    for k in range(1, 6):
        known["wdbc", 1.0, k, "linear"] = known["wdbc", 1.0, k, "additive"] = Scores(0.90 + k / 100, 0.8, 0.4, 455)
        known["wdbc", 1.0, k, "descent"] = Scores(0.89 + k / 100, 0.8, 0.4, 455)
        known["wdbc", 0.0, k, "boosting"] = Scores(0.99, 0.9, 0.1, 455)
    known["wdbc", 1.0, 9, "linear"] = Scores(0.0, 0.0, 9.0, 455)  # of a split that the other has not
    mean, half, count = paired(known, "wdbc", 1.0, "linear", "descent")
    assert (mean, count) == (pytest.approx(0.01), 5) and half < 1e-12
    assert best_rival(known, "wdbc", 1.0) == "descent" and best_rival(known, "wdbc", 2.0) is None
    text = "\n".join(report(known))
    assert "| wdbc | chosen | 1 | 5 |" in text and "no worse" in text and "0.990 / 0.900" in text


def test_the_page_says_what_the_runs_that_are_kept_say() -> None:
    """Its tables, its lists and its counts, of all and by when sets were picked."""
    known, lines = read(DOCS / "experiments" / "central" / "runs.csv"), TEXT.splitlines()
    assert "\n".join(beside(known)) in TEXT and "\n".join(lists(known)) in TEXT
    head = lines.index("| set | epsilon | reach | additive less linear |")
    rows = [line.strip("| ").split(" | ") for line in lines[head + 2 : lines.index("", head)]]
    assert bent(known, [(row[0], float(row[1])) for row in rows]) == lines[head : head + 2 + len(rows)]
    found = counted(known)
    whole = ", ".join(f"{number} {word}" for word, number in found.items() if number)
    assert sum(found.values()) == len(beside(known)) - 2
    assert f"Of {sum(found.values())} comparisons: {whole}" in TEXT
    for when, sets in (("the rule of length", LATER), ("rule 3 of the survey", LATEST), ("rule 5", LAST),
                       ("the rule of curves", FINAL), ("rule 6", FRESH)):  # fmt: skip
        of = counted(known, [each.name for each in sets])
        said = ", ".join(f"{number} {word}" for word, number in of.items() if number)
        assert f"- {len(sets)} that were picked after {when}: {said}" in TEXT, when


def test_the_page_says_how_the_defaults_stand_beside_opacus() -> None:
    known = read(DOCS / "experiments" / "central" / "runs.csv")
    cases = sorted({key[:2] for key in known if key[3] == "Opacus"})
    less = {name: paired(known, name, e, default_of(known, name, e), "Opacus")[:2] for name, e in cases}
    ahead = sum(mean > 0 for mean, _ in less.values())
    assert f"Opacus was run on {len(less)} sets. The default's mean is ahead on {ahead} of them" in TEXT
    assert all(mean + half > 0 for mean, half in less.values()) and "none of them by more than chance" in TEXT


def test_what_is_simulated_is_what_an_estimator_fits() -> None:
    """With hardly any noise both end at the same model: the same survey, schema, length, step and lambda. Of 8,000
    records noise moves the ratio by 0.005 in deviation."""
    raw = made_up("independent")
    split = split_of(raw, cells_of(raw), 18.0, 1)
    mine = ours(split, "additive")
    X = np.column_stack([raw.columns[name] for name in raw.numbers])
    model = PrivateLogisticRegression(epsilon=18.0, delta=central.DELTA, engine="clear", data_id="simulated")
    theirs = model.fit(X[split.train], raw.y[split.train]).decision_function(X[split.test])
    assert np.corrcoef(mine, theirs)[0, 1] > 0.97 and 0.85 < np.std(mine) / np.std(theirs) < 1.15


def test_a_look_writes_every_run_a_page_and_a_picture_and_computes_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(central.DATA_DIR_VARIABLE, raising=False)
    here = {name: rival for name, rival in RIVALS.items() if rival.package is None}  # whatever is installed
    monkeypatch.setattr(central, "RIVALS", here)
    said: list[str] = []
    path = central.run(tmp_path, None, quick=True, say=said.append)
    known = read(tmp_path / "central" / "runs.csv")
    assert {key[0] for key in known} == {"wdbc", "diabetes"} and said == ["wdbc: done", "diabetes: done"]
    assert {key[3] for key in known} == {"linear", "additive", "descent", "boosting"}
    assert known["wdbc", 1.0, 1, "linear"][0] > 0.9 and "undecided" in path.read_text()
    assert "| wdbc | 456 | 1 | 1 |" in (tmp_path / "central" / "table.md").read_text()
    assert (tmp_path / "central" / "central.png").stat().st_size > 5000
    monkeypatch.setattr(central, "scored", lambda *given: pytest.fail("computed twice"))
    central.run(tmp_path, None, quick=True)
    with refuses("path", setting="data_dir"):
        central.run(tmp_path, None, names=("adult",))


def test_a_rival_that_is_not_here_is_one_line() -> None:
    there = RIVALS["DP-EBM"]
    absent = type(there)(there.run, package="no_such_package", install="pip install no-such-package")
    assert absent.missing is not None and absent.missing.startswith("pip install no-such-package (No module")
    assert "\n" not in absent.missing and RIVALS["descent"].missing is None
