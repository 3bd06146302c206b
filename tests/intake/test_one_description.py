"""What a look says of a table is the same on every surface: the same findings, in the same words and order, each with
settings as the surface spells them."""

import html
import json
import warnings
from pathlib import Path

import numpy as np
import pytest

from dpmpc.cli.settings import spelling as as_options
from dpmpc.errors import spelt
from dpmpc.estimators import PrivateLogisticRegression
from dpmpc.estimators.errors import spelling as as_parameters
from dpmpc.intake.profile import look
from dpmpc.local.named_records import with_spelling
from dpmpc.records.check import Findings
from dpmpc.records.loading import opened
from tests.runs import dpmpc

N = 400


def _columns() -> dict[str, list[object]]:
    """A table of which much is to be said."""
    g = np.random.default_rng(8)
    age = g.integers(20, 90, N)
    ill = (age + g.normal(0, 15, N) > 55).astype(int)
    return {
        "case id": list(range(1000, 1000 + N)),
        "age": [int(a) for a in age],
        "days": [999 if k % 19 == 0 else int(d) for k, d in enumerate(g.integers(0, 30, N))],
        "country": [("NA", "NL", "DE", "FR", "IT", "ES", "PT")[k % 7] for k in range(N)],
        "ward": [f"w{k % 5}" for k in range(N)],
        "again": [f"w{k % 5}" for k in range(N)],
        "pressure": [f"1{k % 50:02d}/{60 + k % 30}" for k in range(N)],
        "discharged": [("home", "icu")[y] for y in ill],
        "ill": [("no", "yes")[y] for y in ill],
    }


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """The file, and what a look at it finds."""
    path, columns = tmp_path_factory.mktemp("one") / "a.csv", _columns()
    rows = [",".join(map(str, row)) for row in zip(*columns.values(), strict=True)]
    path.write_text("\n".join([",".join(columns), *rows, ""]))
    with opened(str(path)) as (opening, _):
        found = look(opening, target="ill")[0].findings
    assert len(found) >= 6 and len(set(found)) == len(found)
    for named in ("days", "country", "again", "pressure", "discharged", "case id"):
        assert any(f"'{named}'" in line for line in found), named
    return path, found


def _in_order(said: str, lines: list[str]) -> None:
    """Each line stands in what was said, once, after the one before it."""
    text, at = " ".join(said.split()), 0
    for line in lines:
        line = " ".join(line.split())
        assert text.count(line) == 1, line
        assert text.index(line) >= at, line
        at = text.index(line)


def test_describe_says_it_in_a_terminal_on_a_page_and_as_json(table: tuple[Path, list[str]], tmp_path: Path) -> None:
    path, found = table
    lines = [spelt(line, as_options) for line in found]
    shown = dpmpc("describe", path, "--target", "ill", "--html", tmp_path / "a.html")
    _in_order(shown.stdout, lines)
    _in_order(html.unescape((tmp_path / "a.html").read_text()), lines)
    as_json = json.loads(dpmpc("describe", path, "--target", "ill", "--json").stdout)
    assert as_json["findings"] == lines
    assert as_json["records"] == N and [each["name"] for each in as_json["columns"]] == list(_columns())


def test_check_says_it_too(table: tuple[Path, list[str]], tmp_path: Path) -> None:
    path, found = table
    made = dpmpc("describe", path, "--target", "ill", "--schema", tmp_path / "s.toml")
    assert made.returncode == 0
    done = dpmpc("check", "--schema", tmp_path / "s.toml", "--csv", path, "--json")
    texts = [each["text"] for each in json.loads(done.stdout)["said"] if each["column"] == "records"]
    with opened(str(path)) as (opening, _):
        theirs = with_spelling(Findings(N, (), ()), opening, target="ill").said
    assert texts == [spelt(each.text, as_options) for each in theirs]
    assert [each.text for each in theirs if "line of the plan" not in each.text] == [
        line for line in found if "<<drop" not in line and "<<person" not in line
    ]
    assert len(theirs) == len(found)


def test_train_and_estimators_say_it(table: tuple[Path, list[str]], tmp_path: Path) -> None:
    path, found = table
    run = ("--csv", path, "--target", "ill", "--owners", 3, "--epsilon", 2, "--delta", 1e-5, "--engine", "clear")
    done = dpmpc("train", *run, "--out", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    _in_order(done.stderr, [spelt(line, as_options) for line in found])
    report = (tmp_path / "run" / "report.json").read_text()
    assert not any(spelt(line, as_options)[:60] in report for line in found)  # for its owner's eyes alone
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(_columns())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = PrivateLogisticRegression(epsilon=2.0, delta=1e-5, engine="clear", classes=["no", "yes"])
        model.fit(frame.drop(columns="ill"), frame["ill"], owners=np.arange(N) % 3)
    said = " ".join(str(each.message) for each in caught)
    _in_order(said, [spelt(line, as_parameters) for line in found if "nly known" not in line and "alone" not in line])
    assert said.count("alone tells the target") == 1
