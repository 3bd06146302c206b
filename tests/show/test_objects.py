"""What objects show of themselves: a screen, a part of a notebook, tables in every form, axes."""

import io
import json
import math
import zipfile
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpmpc
from dpmpc.errors import UsageError
from dpmpc.outcome import Answer, Level, Line, Number, Outcome
from dpmpc.show import papers
from dpmpc.show.objects import Report, Sheet, Shown
from dpmpc.show.tables import SCREEN, ShownTable
from dpmpc.tables.asked import Dry, dry
from dpmpc.tables.stats import Statistics
from dpmpc.tables.synth import Synthetic
from tests.refusals import refuses

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
    with refuses("missing"):
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
    lines = [unescape(line.replace("\\|", "|")) for line in table.markdown().splitlines()]
    assert lines[2:6] == ["|  | A & B |", "| --- | --- |", "| age_in, mean (SD) | 3 < 4 |", "| \u2003f | 50 % |"]
    assert table.csv().splitlines() == [",A & B", '"age_in, mean (SD)",3 < 4', "f,50 %"]
    assert "<title>Table</title>" in ShownTable(("a",), (("1",),)).write(tmp_path / "n.html").read_text()
    for ending in (".txt", ".md", ".html", ".tex", ".csv"):
        assert "age" in table.write(tmp_path / f"t{ending}").read_text()
    with refuses("choice", ".docx"):
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
    assert table.head == ("", "Overall", "arm = A", "arm = B", "SMD") and table.inner == {2, 3}
    found = cells(table)
    assert found["N"] == ("1,990", "1,006", "984", "")  # the sums of all cells, those that are not shown too
    assert found["f"] == ("1,000 (50.2)", "600 (59.6)", "400 (40.7)", "")
    assert found["sex, n (%)"] == ("", "", "", "0.41")  # 0.2 / sqrt(0.24), of those who are shown
    assert set(found) == {"N", "sex, n (%)", "f", "m"}
    assert any("sex (other), sex (missing)" in note for note in table.notes)
    assert any("standard deviation 5 of counts" in note for note in table.notes)
    (every,) = papers.tables(told, everything=True)
    assert cells(every)["(other)"] == ("0 (0.0)", "9 (0.9)", "0 (0.0)", "")  # nobody is fewer than none


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


GROUPS = {"arm": ["A", "B"], "sex": ["f", "m"], "ward": ["a", "b", "c"], "age": [0, 100]}


def opened_of(
    asked: list[str], mine: dict[str, Any], epsilon: float | None = None, seed: int = 1
) -> tuple[Answer, ...]:
    """The answers about records without noise, or with it, in one release; levels by number."""
    from dpmpc.privacy.gaussian import gaussian_scale
    from dpmpc.statistics.cells import RecordFields
    from dpmpc.statistics.columns import Columns, Quantity
    from dpmpc.statistics.tables import Tables

    tables, n = Tables.of(Columns.of_bounds(GROUPS), asked), len(mine["age"])
    values = {f: np.asarray(mine[f.name], float if isinstance(f, Quantity) else np.int64) for f in tables.layout.fields}
    total = tables.layout.encode(RecordFields(n, values))[0].astype(float)
    sigma = 0.0 if epsilon is None else gaussian_scale(epsilon, 1e-5, tables.layout.distance((n,)).l2)
    total += np.random.default_rng(seed).normal(0, sigma, len(total)) if sigma else 0.0
    return tables.answers(total, sigma, (n,), Level(about="population"))


def groups_of(n: int, seed: int, shift: float = 1.0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    arm = rng.integers(0, 2, n)
    ward = np.where(rng.random(n) < 0.1, -1, (rng.random(n) * 3 * (1 - 0.1 * shift * arm)).astype(int))
    sex = (rng.random(n) < 0.5 + 0.1 * shift * arm).astype(int)
    return {"arm": arm, "sex": sex, "ward": ward, "age": np.clip(rng.normal(50 + 3 * shift * arm, 12, n), 0, 100)}


@pytest.mark.parametrize("seed", range(4))
def test_smd_is_that_of_the_records(seed: int) -> None:
    """Against scipy's Mahalanobis distance of the records' own dummies, whose covariances numpy takes, and, of numbers,
    against the difference of numpy's means. Nobody who is missing counts."""
    from scipy.spatial.distance import mahalanobis

    mine = groups_of(5000, seed)
    (table,) = papers.tables(Outcome(opened_of(["table1(age, sex, ward) by arm"], mine)))
    assert table.head[-1] == "SMD" and any("SMD: standardised mean difference" in note for note in table.notes)
    rows = cells(table)
    two = [mine["arm"] == k for k in (0, 1)]
    ages = [mine["age"][side] for side in two]
    said = abs(ages[0].mean() - ages[1].mean()) / np.sqrt((ages[0].var(ddof=1) + ages[1].var(ddof=1)) / 2)
    assert float(rows["age, mean (SD)"][-1]) == pytest.approx(said, abs=0.006)
    for name, levels in (("sex", 2), ("ward", 3)):
        sides = [mine[name][side & (mine[name] >= 0)] for side in two]
        dummies = [(side[:, None] == np.arange(1, levels)).astype(float) for side in sides]
        spread = sum(np.cov(each, rowvar=False, bias=True).reshape(levels - 1, -1) for each in dummies) / 2
        far = mahalanobis(*(each.mean(axis=0) for each in dummies), np.linalg.inv(spread))
        assert float(rows[f"{name}, n (%)"][-1]) == pytest.approx(far, abs=0.006), name


def test_the_noise_of_smd_is_what_groups_that_are_alike_have() -> None:
    """The root of the mean square over 200 drawings of noise, of groups alike in the records, against what the table
    says; chi-square with 400 degrees: off by a fifth at 1e-8 or less."""
    half = groups_of(4000, 7, shift=0.0)
    mine = {name: np.concatenate([values, values]) for name, values in half.items()}
    mine["arm"] = np.repeat([0, 1], 4000)
    found = []
    for seed in range(200):
        (answer,) = opened_of(["table1(ward) by arm"], mine, 0.5, seed)
        table = papers._Table1(answer, (), False)
        groups = [("A",), ("B",)]
        far = table._apart(table._numbers(), groups, table._sizes(table._groups()), "ward")
        assert far is not None
        found.append(far)
    drawn, told = np.sqrt(np.mean([d**2 for d, _ in found])), np.mean([w for _, w in found])
    assert drawn == pytest.approx(told, rel=0.2) and drawn != pytest.approx(0.7 * told, rel=0.2)


def test_p_values_in_the_table_are_those_of_scipy() -> None:
    """Without noise: Welch's test by the normal law, and Pearson's."""
    from scipy.stats import chi2_contingency, norm

    mine = groups_of(3000, 2)
    asked = ["table1(age, ward, sex) by arm", "ttest(age) by arm", "chisq(ward, arm)", "chisq(sex, arm)"]
    (table,) = papers.tables(Outcome(opened_of(asked, mine)))
    assert table.head[-1] == "p"
    rows = cells(table)
    ages = [mine["age"][mine["arm"] == k] for k in (0, 1)]
    z = (ages[0].mean() - ages[1].mean()) / np.sqrt(sum(a.var(ddof=1) / len(a) for a in ages))
    expected = {"age, mean (SD)": 2 * norm.sf(abs(z))}
    for name, levels in (("ward", 3), ("sex", 2)):
        counts = [[np.sum((mine[name] == k) & (mine["arm"] == a)) for a in (0, 1)] for k in range(levels)]
        expected[f"{name}, n (%)"] = chi2_contingency(counts, correction=False).pvalue
    for row, p in expected.items():
        told = rows[row][-1]
        assert told == "<0.001" if p < 0.0009 else float(told) == pytest.approx(p, abs=0.006), (row, p, told)


def test_more_groups_have_the_mean_over_their_pairs_and_a_test_has_the_column() -> None:
    mine = groups_of(3000, 5)
    whole = {"age": mine["age"], "ward": np.where(mine["ward"] < 0, 0, mine["ward"]), "sex": mine["sex"]}
    (alone,) = papers.tables(Outcome(opened_of(["table1(age) by ward"], whole)))
    ages = [mine["age"][whole["ward"] == k] for k in range(3)]
    pairs = [
        abs(ages[a].mean() - ages[b].mean()) / np.sqrt((ages[a].var(ddof=1) + ages[b].var(ddof=1)) / 2)
        for a, b in ((0, 1), (0, 2), (1, 2))
    ]
    assert float(cells(alone)["age, mean (SD)"][-1]) == pytest.approx(np.mean(pairs), abs=0.006)
    tested = papers.tables(Outcome(opened_of(["table1(age) by ward", "anova(age) by ward"], whole)))[0]
    assert tested.head[-1] == "p"


def test_columns_and_rows_without_an_estimate_are_named_and_not_shown() -> None:
    none = Number(None, None, None, None, "no estimate: too few")
    told = Number(277.1, 4.9, 267.4, 286.8)
    lines = [
        Line((group, row), "count", told if group == "A" and row != "c" else none)
        for group in ("A", "(other)") for row in ("a", "b", "c")
    ]  # fmt: skip
    outcome = Outcome((Answer("table(row) by arm", ("arm", "row"), tuple(lines), True),))
    (table,) = papers.tables(outcome)
    assert table.head == ("row", "", "arm = A") and [row[0] for row in table.rows] == ["a", "b"]
    assert any("no estimate: arm = (other), c count." in note for note in table.notes)
    assert table.rows[0][-1] == "277 [267, 287]"  # people are whole
    (every,) = papers.tables(outcome, everything=True)
    assert len(every.rows) == 3 and every.head[-1] == "arm = (other)"


def test_a_number_of_a_page_is_on_one_line() -> None:
    """What is no text stays as it is: attributes, pictures, styles; so does a word that only looks like a number."""
    from dpmpc.show import html

    body = '<p title="1e-05">delta = 1e-05; 2.5e-7, case-05, x1e-5</p><svg><text>1e-05</text></svg>'
    for made in (html.page("at 1e-05", body, "1e-04", "<footer>3e-09</footer>"), html.part(body)):
        whole = made[made.rindex("</style>") :]
        assert '<p title="1e-05">delta = <span class="one">1e-05</span>; <span class="one">2.5e-7</span>, case' in whole
        assert "x1e-5</p><svg><text>1e-05</text></svg>" in whole
    page = html.page("at 1e-05", body, "1e-04", "<footer>3e-09</footer>")
    assert "<title>at 1e-05</title>" in page and page.count('<span class="one">') == 5
