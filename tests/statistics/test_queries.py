"""The language: a canonical form that parses to itself, errors that point, and the same from TOML tables."""

import numpy as np
import pytest

from dpmpc.benchmarks.studies.stats import COLUMNS, MODELS, layout_of, random_line, ratios, search
from dpmpc.benchmarks.studies.stats_language import lines_hold
from dpmpc.errors import UsageError, owner_text
from dpmpc.statistics.blocks import CellCounts, Moments, Tree
from dpmpc.statistics.columns import Columns, Quantity, category
from dpmpc.statistics.kind import parts_of
from dpmpc.statistics.query import parse, parse_all
from dpmpc.statistics.syntax import text_of
from dpmpc.statistics.tables import Tables
from tests.refusals import refuses


@pytest.mark.parametrize("seed", range(3))
def test_the_canonical_form_asks_the_same(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(300):
        query = parse(line := random_line(rng), COLUMNS, tuple(MODELS))
        again = parse(str(query), COLUMNS, tuple(MODELS))
        assert again == query and str(again) == str(query), line
        assert parts_of(again, COLUMNS, MODELS) == parts_of(query, COLUMNS, MODELS)


def test_any_line_is_read_as_it_is_printed_or_refused_with_a_caret() -> None:
    found = lines_hold(1200, seed=4)
    assert sum(found.values()) == 1200 and min(found["read"], found["refused"]) > 300


def test_a_name_may_hold_line_breaks_and_the_caret_stays_below_its_place() -> None:
    columns = Columns((Quantity("age\n(years)", 0.0, 9.0), Quantity("年", 0.0, 1.0), Quantity('back\\"', 0.0, 1.0)))
    for name in columns.names:
        query = parse_all([{"what": "mean", "of": [name]}], columns)[0]
        assert query.columns == (name,) and parse(str(query), columns) == query
    with pytest.raises(UsageError) as refused:
        parse('\thist("age (years)")', columns)
    assert owner_text(refused.value).split("\n")[1:] == ['   hist("age (years)")', "        ^^^^^^^^^^^^^"]
    with pytest.raises(UsageError) as refused:
        parse("corr(年, 月)", columns)
    assert owner_text(refused.value).split("\n")[2] == "           ^^"  # two columns of a terminal each


@pytest.mark.parametrize(
    ("line", "canonical"),
    [
        ("  mean( age )", "mean(age)"),
        ('"mean"("age") weight=1', "mean(age)"),
        ("hist(age, cuts=[20, 30.50, 4e1])", "hist(age, cuts=[20, 30.5, 40])"),
        ("quantiles(age, .9, 0.10, 0.9)", "quantiles(age, 0.1, 0.9)"),
        ("quantiles(age)", "quantiles(age, 0.25, 0.5, 0.75)"),
        ("count where age in 30..50 and sex = F", "count where sex = F and age in 30..50"),
        ('table("marital status") where "marital status" in {"in", single}',
         'table("marital status") where "marital status" in {single, "in"}'),
        ("count where sex in {M}", "count where sex = M"),
        ("count where age = 40.0", "count where age = 40"),
        ("median(capital-gain,leaves=1024) by sex weight=2.50", "median(capital-gain, leaves=1024) by sex weight=2.5"),
    ],
)  # fmt: skip
def test_one_spelling(line: str, canonical: str) -> None:
    assert str(parse(line, COLUMNS)) == canonical


@pytest.mark.parametrize(
    ("line", "pointed", "said"),
    [
        ("", "", "ask for instance: count"),
        ("avg(age)", "avg", "a question is one of"),
        ("medain(age)", "medain", "did you mean 'median'"),
        ("hist(agee)", "agee", "did you mean 'age'"),
        ("hist(AGE)", "AGE", "did you mean 'age'"),
        ("median(sex)", "sex", "median needs a column of numbers"),
        ("mean(age) by score", "score", "a group is a column of categories"),
        ("table(sex) by sex", "sex", "another column"),
        ("count where", "", "a condition"),
        ("count where sex", "", "a condition is ="),
        ("count where sex = Q", "Q", "one of its levels"),
        ("count where treated = yess", "yess", "did you mean 'yes'"),
        ("count where sex in 1..2", "1", "a category has no order"),
        ("count where age in {1, 2}", "1", "compared by = or in low..high"),
        ("count where age in 50..30", "50", "low to high"),
        ("count where age = old", "old", "holds numbers"),
        ("count where sex = F or sex = M", "or", "there is no OR"),
        ("mean(age) BY sex", "BY", "small letters"),
        ("count where sex = F and sex = M", "sex", "one condition"),
        ("count where age > 3", ">", "a condition is ="),
        ("hist(age, cuts=[10, 30, 20])", "[10, 30, 20]", "increase"),
        ("hist(age, cuts=[10, 30], bins=3)", "bins", "leave the others out"),
        ("hist(age, bins=2.5)", "2.5", "whole number"),
        ("hist(score, cells=log)", "log", "'score' has -1; got log; write cells=octaves"),
        ("table(marital status)", "status", "in double quotes if it has spaces"),
        ("mean(age", "", "write ')' here"),
        ("hist(age, colour=red)", "colour", "it has bins, cuts, cells"),
        ("median(age, leaves=100)", "100", "power of two"),
        ("mean(age, range=[9, 3])", "[9, 3]", "low < high"),
        ("quantiles(age, 1.5)", "1.5", "between 0 and 1"),
        ("mean(age, score)", "score", "mean is about 1 column"),
        ("mean", "mean", "name them in brackets"),
        ("table(sex, sex)", "sex", "named once"),
        ("mean(age) weight=0", "0", "a weight lies"),
        ("mean(age by sex", "by", "',' follows"),
        ('mean("age)', '"age)', "ends with a quote"),
        ("km(sex, age)", "sex", "km needs a time"),
        ("evaluate(mine)", "mine", "a model must be given"),
        ("count; drop", "drop", "a question ends"),
    ],
)
def test_errors_point_and_say_the_way_out(line: str, pointed: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(line, COLUMNS)
    rule, shown, caret = owner_text(caught.value).split("\n")
    assert said in rule and rule.count(";") >= 2
    assert shown == f"  {line}" and set(caret.strip()) == {"^"}
    below = line[caret.index("^") - 2 : caret.rindex("^") - 1]
    assert pointed in below if pointed else not below.strip() or below == line[-1:]


def test_toml_tables_are_lines() -> None:
    table = {"what": "median", "of": ["age"], "by": "sex", "leaves": 64, "weight": 2,
             "where": {"marital status": ["single", "in"], "score": [-0.5, 1], "treated": "yes"}}  # fmt: skip
    line = 'median(age, leaves=64) by sex where "marital status" in {single, "in"} and treated = yes and score in ' \
           "-0.5..1 weight=2"  # fmt: skip
    assert str(parse(text_of(table), COLUMNS)) == line
    with refuses("usage", "its end"):
        parse(text_of({"what": "count", "where": {}}), COLUMNS)
    with refuses("type", "int"):
        parse_all(["count", 3], COLUMNS)  # type: ignore[list-item]
    with refuses("usage", "of", "age"):
        text_of({"of": ["age"]})
    with refuses("type", True):
        text_of({"what": "count", "where": {"sex": True}})


def test_one_question_may_stand_alone() -> None:
    assert parse_all("count by sex", COLUMNS) == parse_all(["count by sex"], COLUMNS)
    assert parse_all({"what": "median", "of": "age"}, COLUMNS) == parse_all(["median(age)"], COLUMNS)  # type: ignore[arg-type]


def test_duplicates_are_merged_and_blocks_shared() -> None:
    queries = parse_all(["mean(age)", "mean( age ) weight=2", {"what": "sd", "of": "age"}], COLUMNS)
    assert [str(query) for query in queries] == ["mean(age) weight=3", "sd(age)"]
    layout = layout_of(queries)
    assert len(layout.blocks) == 1 and layout.weights == (4.0,)
    assert isinstance(layout.blocks[0], Moments) and layout.blocks[0].second
    turned = layout_of(parse_all(["table(sex, treated)", "table(treated) by sex", "table(treated, sex)"], COLUMNS))
    assert len(turned.blocks) == 1 and isinstance(turned.blocks[0], CellCounts)
    assert len(layout_of(parse_all(["median(age)", "quantiles(age, 0.9)"], COLUMNS)).blocks) == 1
    own = parse("median(age) where age in 30..50", COLUMNS)
    block = parts_of(own, COLUMNS, {})[0].block
    assert isinstance(block, Tree) and block.value.column.low == 30  # type: ignore[attr-defined]
    assert len(parts_of(parse("table1 by sex", COLUMNS), COLUMNS, {})) == 5
    with refuses("missing"):
        parse_all([], COLUMNS)


def test_random_releases_keep_their_distances() -> None:
    """60 sets of questions here; the benchmark searches thousands."""
    assert 0.999 < search(60, say=False) <= 1


def test_the_search_sees_a_distance_that_is_a_thousandth_too_small() -> None:
    rng = np.random.default_rng(1)
    layout = layout_of([parse("mean(age) by sex", COLUMNS)])
    assert 0.9995 < ratios(layout, rng, 200)[1] <= 1


def test_the_page_has_the_grammar_and_its_questions_parse() -> None:
    import re
    import tomllib
    from pathlib import Path

    import dpmpc.statistics.syntax

    page = (Path(__file__).parents[2] / "docs" / "statistics.md").read_text(encoding="utf-8")
    grammar = next(block for block in page.split("```\n")[1:] if block.startswith("question ")).split("```")[0]
    inside = "\n".join(line.removeprefix("    ") for line in str(dpmpc.statistics.syntax.__doc__).splitlines())
    assert grammar in inside
    texts = {name: ["a", "b"] for name in ("sex", "income", "arm", "died")} | {"race": ["White", "Black"]}
    texts |= {name: ["a", "b", "c"] for name in ("a", "b", "drug", "grade", "site")}
    numbers = {name: [0.0, 100.0] for name in ("age", "months", "x", "y", "z", "hours")} | {"visits": [0.0, 10.0]}
    columns = Columns.of_bounds({**texts, **numbers})
    rows = re.findall(r"^\| (`.*?) \|", page.split("| question |")[1], re.MULTILINE)
    asked = [line for row in rows for line in re.findall(r"`([^`]+)`", row)]
    assert len(asked) == 28
    toml = tomllib.loads(page.split("```toml\n")[1].split("```")[0])["stats"]["queries"]
    assert len(parse_all([*asked, *toml], columns, ("NAME",))) == 29
    message = page.split("and points:\n\n```\n")[1].split("\n```")[0]
    with pytest.raises(UsageError) as caught:
        parse("hist(agee) by sex", columns)
    assert owner_text(caught.value) == message


def test_two_dates_are_a_range_of_days_and_no_two_levels() -> None:
    columns = Columns.of_bounds({"age": [0.0, 100.0], "admitted": ["2020-01-01", "2024-01-01"], "sex": ["f", "m"]})
    assert columns.names == ("age", "sex")
    with refuses("column", "admitted", "age, sex, owner"):
        Tables.of(columns, ["count by admitted"])


def test_of_a_long_line_what_is_near_the_place_is_shown() -> None:
    columns = Columns((category("sex", ("f", "m")),))
    line = "count where " + " and ".join(["sex = f"] * 1000) + " or sex = m"
    for text in (line, line.replace("sex = f", "xes = f", 1)):
        with pytest.raises(UsageError) as caught:
            parse(text, columns)
        _, shown, caret = owner_text(caught.value).split("\n")
        assert len(shown) < 260 and "..." in shown
        assert shown[len(caret) - caret.count("^") : len(caret)] in ("xes", "or", "sex", "and")
