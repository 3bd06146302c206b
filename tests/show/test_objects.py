"""What objects show of themselves: a screen, a part of a notebook, tables in every form, axes."""

import io
import json
import math
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpmpc
from dpmpc.errors import UsageError
from dpmpc.outcome import Answer, Line, Number, Outcome
from dpmpc.show import papers
from dpmpc.show.objects import Report, Sheet, Shown
from dpmpc.show.tables import SCREEN, ShownTable
from dpmpc.tables.asked import Dry, dry
from dpmpc.tables.stats import Statistics
from dpmpc.tables.synth import Synthetic

BOUNDS: dict[str, Any] = {"age": [18, 90], "sex": ["f", "m"], "arm": ["A", "B"], "ill": ["no", "yes"]}
ASKED = ["table1(age, sex) by arm", "quantiles(age) by arm", "ttest(age) by arm", "chisq(sex, arm)", "or(ill, arm)"]


def records(n: int = 3000) -> dict[str, Any]:
    rng = np.random.default_rng(3)
    return {
        "site": rng.choice(["a", "b", "c"], n), "age": rng.integers(18, 90, n), "sex": rng.choice(["f", "m"], n),
        "arm": rng.choice(["A", "B"], n), "ill": rng.choice(["no", "yes"], n),
    }  # fmt: skip


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """One object of each kind, by its kind's name."""
    out, mine = tmp_path_factory.mktemp("shown"), records()
    common: dict[str, Any] = {"epsilon": 4.0, "delta": 1e-5, "engine": "clear"}
    asked = dpmpc.stats(mine, ASKED, owners="site", bounds=BOUNDS, hopeless="allow", **common)
    rows = {name: values for name, values in mine.items() if name != "site"}
    spread = {**rows, "site": mine["site"]}
    made = dpmpc.synth(spread, owners="site", bounds=BOUNDS, rows=200, **common)
    (out / "bounds.toml").write_text('age = [18, 90]\nsex = ["f", "m"]\narm = ["A", "B"]\nill = ["no", "yes"]\n')
    run = dpmpc.train(
        str(out / "run"), records=mine, target="ill", owners_column="site", bounds=str(out / "bounds.toml"),
        basis="additive", **common,
    )  # fmt: skip
    return {
        "Statistics": asked, "Dry": dry(mine, ASKED[:1], owners="site", bounds=BOUNDS, **common), "Synthetic": made,
        "Trained": run, "Model": run.model, "Additive": run.model.additive, "Report": run.report,
        "Predictions": run.predict(rows), "Plan": asked.plan, "Promise": promise(), "ShownTable": asked.table(),
    }  # fmt: skip


def promise() -> dpmpc.Promise:
    return dpmpc.Promise(1.0, 1e-5, 1.0, "one record replaced", {"mechanism": 1e-5}, ("parties are honest",))


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    yield
    pyplot.close("all")


KINDS = ("Statistics", "Dry", "Synthetic", "Trained", "Model", "Additive", "Report", "Predictions", "Plan", "Promise")


@pytest.mark.parametrize("kind", [*KINDS, "ShownTable"])
def test_an_object_is_a_screen_and_a_part_of_a_page(kind: str, shown: dict[str, Any]) -> None:
    found = shown[kind]
    text = repr(found)
    assert len(text.splitlines()) <= SCREEN and max(map(len, text.splitlines())) <= 400
    page = found._repr_html_()
    assert page.startswith('<div class="dpmpc">') and page.count("<table") == page.count("</table>")
    assert "array(" not in text and "<script" not in page


@pytest.mark.parametrize("kind", KINDS)
def test_an_object_is_a_table_and_a_frame(kind: str, shown: dict[str, Any]) -> None:
    table, frame = shown[kind].table(), shown[kind].frame()
    assert isinstance(table, ShownTable) and len(frame) >= 1
    assert max(map(len, table.text(80).splitlines())) <= 80


@pytest.mark.parametrize("kind", ["Statistics", "Synthetic", "Trained", "Model", "Additive", "Predictions"])
def test_an_object_is_axes(kind: str, shown: dict[str, Any], tmp_path: Path) -> None:
    from matplotlib.axes import Axes

    found = shown[kind].plot()
    assert all(isinstance(each, Axes) for each in np.ravel(found))
    path = shown[kind].plot(str(tmp_path / "picture.pdf"))
    assert path.read_bytes().startswith(b"%PDF")
    page = shown[kind].plot(tmp_path / "page.html")
    assert "<svg" in page.read_text()


def test_axes_have_the_numbers_and_intervals_of_the_answer() -> None:
    """Against the answer: ends of error bars, and where bars end."""
    lines = tuple(Line((f"g{k}",), "mean", Number(k, 1.0, k - 1.5, k + 2.0)) for k in range(3))

    class One(Shown):
        def sheet(self) -> Sheet:
            from dpmpc.outcome import Forest

            return Sheet("one", shapes=lambda: [Forest("mean", lines)])

    ax = One().plot()
    ends = [segment[:, 0].tolist() for bars in ax.containers for segment in bars[2][0].get_segments()]
    assert ends == [[k - 1.5, k + 2.0] for k in range(3)]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["g0", "g1", "g2"]
    with pytest.raises(UsageError, match="picture"):
        promise().plot()


def test_an_object_that_cannot_be_shown_says_why() -> None:
    class Odd(Shown):
        def sheet(self) -> Sheet:
            raise UsageError("a rule; a value; a way")

    assert repr(Odd()) == "<Odd: a rule; a value; a way>" and Odd()._repr_html_() is None


def test_a_report_is_its_json(shown: dict[str, Any]) -> None:
    report = shown["Report"]
    assert isinstance(report, Report) and json.loads(json.dumps(report)) == dict(report)


def test_every_form_of_a_table_has_every_cell(tmp_path: Path) -> None:
    table = ShownTable(("", "A & B"), (("age_in, mean (SD)", "3 < 4"), ("f", "50 %")), "Cap|tion", notes=("n ≥ 1",),
                  inner=frozenset({1}))  # fmt: skip
    assert "age_in, mean (SD)" in table.text(80) and "\n   f " in table.text(80)
    assert "3 &lt; 4" in table.html() and "<script" not in table.html()
    latex = table.latex()
    assert r"age\_in" in latex and r"A \& B" in latex and r"\quad f & 50 \%" in latex and r"$\geq$" in latex
    assert table.csv().splitlines() == [",A & B", '"age_in, mean (SD)",3 < 4', "f,50 %"]
    for ending in (".txt", ".md", ".html", ".tex", ".csv"):
        assert "age" in table.write(tmp_path / f"t{ending}").read_text()
    with pytest.raises(UsageError, match=r"\.docx"):
        table.write(tmp_path / "t.xls")


def test_word_has_every_cell(tmp_path: Path) -> None:
    pytest.importorskip("docx")
    table = ShownTable(("", "A"), (("age", "3"), ("\x00f", "50")), "Table 1", notes=("noise",))
    path = table.write(str(tmp_path / "t.docx"))
    text = zipfile.ZipFile(io.BytesIO(path.read_bytes())).read("word/document.xml").decode()
    assert all(f">{word}<" in text for word in ("age", "3", "50", "Table 1", "noise"))


def answer(**counts: tuple[float, float]) -> Answer:
    """A Table 1 of one column with these counts (of groups A and B) of levels, whose noise is 5."""
    lines = []
    for level, pair in counts.items():
        for group, count in zip("AB", pair, strict=True):
            number = Number(count, 5.0, max(0.0, count - 10), count + 10)
            name = f"({level})" if level in ("other", "missing") else level
            lines.append(Line((group, "sex", name), "count", number))
    return Answer("table1 by arm", ("arm", "column", "level"), tuple(lines), True, what="table1")


def cells(table: ShownTable) -> dict[str, tuple[str, ...]]:
    return {row[0]: row[1:] for row in table.rows}


def test_table_1_is_as_a_paper_prints_it() -> None:
    told = Outcome((answer(f=(599.7, 400.2), m=(400.4, 600.1), other=(9.0, -20.0), missing=(-3.0, 4.0)),))
    (table,) = papers.tables(told)
    assert table.head == ("", "Overall", "arm = A", "arm = B") and table.inner == {2, 3}
    found = cells(table)
    assert found["N"] == ("1,990", "1,006", "984")  # the sums of all cells, those that are not shown too
    assert found["f"] == ("1,000 (50.2)", "600 (59.6)", "400 (40.7)")
    assert set(found) == {"N", "sex, n (%)", "f", "m"}
    assert any("sex (other), sex (missing)" in note for note in table.notes)
    assert any("standard deviation 5 of counts" in note for note in table.notes)
    (every,) = papers.tables(told, everything=True)
    assert cells(every)["(other)"] == ("0 (0.0)", "9 (0.9)", "0 (0.0)")  # nobody is fewer than none


def test_a_level_that_is_somebody_is_shown_whatever_it_is_called() -> None:
    (table,) = papers.tables(Outcome((answer(f=(600, 400), other=(40, 30), missing=(0, 0)),)))
    assert "(other)" in cells(table) and "(missing)" not in cells(table)


def test_ranks_and_tests_stand_in_the_table_of_their_groups(shown: dict[str, Any]) -> None:
    """Nothing is spent: they are answers that were opened with it."""
    found: Statistics = shown["Statistics"]
    tables = found.printed()
    assert len(tables) == 2  # Table 1, and the odds ratio
    rows = cells(tables[0])
    assert tables[0].head[-1] == "p" and rows["age, mean (SD)"][-1] and rows["sex, n (%)"][-1]
    assert rows["age, median [Q1, Q3]"][1].count("[") == 1
    alone = {line.labels: line.number for line in found.answers[0].lines if line.statistic == "mean"}
    for k, group in enumerate("AB"):
        said = float(rows["age, mean (SD)"][1 + k].split()[0])
        assert math.isclose(said, alone[group, "age", ""].estimate or 0.0, abs_tol=0.051)
    assert "odds ratio" in tables[1].head[2] and tables[1].head[-1] == "p"
    assert isinstance(shown["Dry"], Dry) and isinstance(shown["Synthetic"], Synthetic)


def test_the_overall_column_is_that_of_all_records_together() -> None:
    """Against the records: without noise, mean and deviation over two groups are those over all."""
    rng = np.random.default_rng(1)
    values = {"A": rng.normal(5, 2, 300), "B": rng.normal(8, 1, 700)}
    lines = []
    for group, mine in values.items():
        lines.append(Line((group, "sex", "f"), "count", Number(len(mine), 0.0, len(mine), len(mine))))
        for name, value in (("mean", mine.mean()), ("sd", mine.std(ddof=1))):
            lines.append(Line((group, "age", ""), name, Number(float(value), 0.0, float(value), float(value))))
    told = Answer("table1 by arm", ("arm", "column", "level"), tuple(lines), True, what="table1")
    (table,) = papers.tables(Outcome((told,)))
    every = np.concatenate(list(values.values()))
    mean, sd = cells(table)["age, mean (SD)"][0].rstrip(")").split(" (")
    assert math.isclose(float(mean), every.mean(), rel_tol=2e-3)
    assert math.isclose(float(sd), every.std(ddof=1), rel_tol=2e-3)
