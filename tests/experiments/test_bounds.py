"""Bounds beside a survey: what would be public of a set is, the three ways differ as they should, and runs are kept."""

from pathlib import Path

import numpy as np
from dpmpc_experiments import bounds, central
from dpmpc_experiments.bounds import LISTED, WAYS, beside, public, scores
from dpmpc_experiments.central import cells_of, read, split_of
from dpmpc_experiments.corpus import Raw

from dpmpc.records.schema import Categorical, Numeric, Range


def heaped(n: int = 4000) -> Raw:
    """Numbers that heap at one end of their range, words, and a column of more words than anybody lists."""
    rng = np.random.default_rng(4)
    x = np.minimum(np.exp(1.5 * rng.normal(size=n)), 400)
    word = np.array([("a", "b", None)[k] for k in rng.integers(0, 3, n)], dtype=object)
    many = np.array([f"w{k}" for k in rng.integers(0, LISTED + 40, n)], dtype=object)
    y = np.where(np.log(x) + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0)
    return Raw("heaped", "logistic", {"x": x, "word": word, "many": many}, y)


def test_what_is_public_of_a_set_are_ends_and_lists() -> None:
    raw = heaped()
    draft = public(raw, "linear")
    x = raw.columns["x"]
    assert draft.columns == (Numeric("x", float(x.min()), float(x.max())), Categorical("word", ("a", "b")))
    assert draft.unknown == ("many",)
    numbers = public(Raw("r", "ridge", {"k": np.ones(5)}, np.arange(5.0)), "linear")
    assert numbers.columns == (Numeric("k", 1.0, 2.0),) and numbers.target == Range("(target)", 0.0, 4.0)


def test_a_restricted_survey_is_as_good_as_one_alone_where_bounds_alone_are_not() -> None:
    """Of numbers that heap far from the middle of their range, bounds alone leave some hundredths of it."""
    raw = heaped()
    split = split_of(raw, cells_of(raw), 1.0, 1)
    found = {way: central.scored(split, scores(split, way)).score for way in WAYS}
    assert found["restricted"] > 0.9 and abs(found["restricted"] - found["survey"]) < 0.05
    assert found["bounds"] < found["restricted"] + 0.01


def test_runs_are_kept_and_make_the_table(tmp_path: Path) -> None:
    path = bounds.run(tmp_path, None, quick=True)
    kept = (tmp_path / "bounds" / "runs.csv").read_bytes()
    known = read(tmp_path / "bounds" / "runs.csv")
    assert [key[3] for key in known] == list(WAYS) and all(key[:3] == ("wdbc", 1.0, 1) for key in known)
    assert bounds.run(tmp_path, None, quick=True) == path and (tmp_path / "bounds" / "runs.csv").read_bytes() == kept
    (line,) = [line for line in path.read_text().splitlines() if line.startswith("| wdbc |")]
    more = {(*key[:2], 2, key[3]): value for key, value in known.items()}
    head, _, row = beside({**known, **more})
    shown = [f"{known['wdbc', 1.0, 1, way].score:.3f}".removeprefix("0") for way in WAYS]
    assert row.split(" | ")[1:5] == ["2", *shown] and head.count("|") == row.count("|") == line.count("|")


def test_the_page_has_the_table_of_the_runs_that_are_kept() -> None:
    docs = Path(__file__).parents[2] / "docs"
    lines = beside(read(docs / "experiments" / "bounds" / "runs.csv"))
    assert "\n".join(lines) in (docs / "accuracy.md").read_text("utf-8") and len(lines) > 10
