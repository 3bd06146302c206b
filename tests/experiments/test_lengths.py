"""Lengths of descents: the rule's stands among parts and multiples of it, in a report that says what momentum saves."""

import csv
from pathlib import Path

from dpmpc_experiments import corpus, lengths
from dpmpc_experiments.central import cells_of, split_of

from tests.refusals import refuses


def test_a_length_is_stretched_at_one_budget(tmp_path: Path) -> None:
    raw = corpus.load(corpus.SETS["wdbc"])
    split = split_of(raw, cells_of(raw), 1.0, 1)
    found = lengths.of_split(split)
    assert [*found] == [lengths.PLAIN, *lengths.FACTORS]
    releases = [found[factor][0] for factor in lengths.FACTORS]
    assert releases == sorted(releases) and found[lengths.PLAIN][0] >= found[1.0][0]
    assert max(scores.score for _, scores in found.values()) > 0.9


def test_the_report_has_a_line_a_set(tmp_path: Path) -> None:
    path = lengths.run(tmp_path, None, quick=True)
    text = path.read_text()
    assert "| wdbc |" in text and len((tmp_path / "lengths" / "runs.csv").read_text().splitlines()) == 7
    with refuses("path", setting="data_dir"):
        lengths.run(tmp_path, None, names=("adult",))


def test_the_page_has_the_table_of_the_runs_that_are_kept() -> None:
    docs = Path(__file__).parents[2] / "docs"
    with (docs / "experiments" / "lengths" / "runs.csv").open(newline="", encoding="utf-8") as file:
        kept = list(csv.reader(file))[1:]
    rows = [(r[0], float(r[1]), int(r[2]), int(r[3]), float(r[4]), float(r[5])) for r in kept]
    text, lines = (docs / "notes" / "accuracy.md").read_text("utf-8"), lengths.report(rows)
    table = [line.replace("| 0.", "| .") for line in lines[lines.index("") + 3 :] if line.startswith("|")]
    assert "\n".join(table[2:]) in text and len(table) > 15
