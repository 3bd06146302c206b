"""Every kind of page that a command writes, in Chromium: three widths, two palettes."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpmpc
from dpmpc.dossier.facts import facts_of
from dpmpc.dossier.page import page
from dpmpc.show import html
from tests.runs import dpmpc as command
from website.browser import Browser, found
from website.check import CONTRAST, unfit

CHROMIUM = found()
pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here")]
BOUNDS = 'age = [18, 90]\nsex = ["f", "m"]\narm = ["A", "B"]\nmonths = [0, 24]\nill = ["no", "yes"]\n'
ASKED = [
    "table1(age, sex) by arm", "quantiles(age) by arm", "hist(age)", "km(months, ill, bins=6) by arm",
    "corr(age, months)", "logit(ill, age, sex)",
]  # fmt: skip


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of pages: answers, a model's figures, reports of both and of a synthetic table, a look, sites."""
    out, rng, n = tmp_path_factory.mktemp("pages"), np.random.default_rng(3), 3000
    site = rng.choice(["a long name of a hospital", "b", "c"], n)
    rows = {
        "site": site, "age": rng.integers(18, 90, n), "months": rng.integers(0, 24, n),
        "sex": rng.choice(["f", "m"], n), "arm": rng.choice(["A", "B"], n), "ill": rng.choice(["no", "yes"], n),
    }  # fmt: skip
    (out / "mine.csv").write_text(
        "\n".join([",".join(rows), *(",".join(map(str, each)) for each in zip(*rows.values(), strict=True))]) + "\n"
    )
    (out / "bounds.toml").write_text(BOUNDS)
    common: dict[str, Any] = {"owners": "site", "bounds": out / "bounds.toml", "epsilon": 8.0, "delta": 1e-5}
    asked = dpmpc.stats(rows, ASKED, **common, hopeless="allow", out=out / "asked")
    asked.plot(out / "answers.html")
    made = dpmpc.synth(rows, **common, rows=100, out=out / "made")
    made.plot(out / "pairs.html")
    run = dpmpc.train(
        out / "run", records=rows, target="ill", owners_column="site", bounds=out / "bounds.toml", epsilon=8.0,
        delta=1e-5, basis="additive",
    )  # fmt: skip
    run.plot(out / "figures.html")
    run.model.additive.plot(out / "curves.html")
    for name, each in {"asked": asked, "made": made, "run": run, "model": run.model}.items():
        (out / f"notebook of {name}.html").write_text(html.page("A notebook", each._repr_html_() or ""))
    for name in ("asked", "made", "run"):
        (out / f"report of {name}.html").write_text(page(facts_of(out / name)))
    for words in (
        ["describe", out / "mine.csv", "--target", "ill", "--html", out / "look.html"],
        ["status", out / "run", "--html", out / "sites.html"],
    ):
        done = command(*words)
        assert done.returncode == 0, done.stderr
    return out


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    assert CHROMIUM is not None
    with Browser(CHROMIUM) as opened:
        yield opened


KINDS = ("answers", "figures", "curves", "pairs", "report of asked", "report of made", "report of run", "look", "sites",
         *(f"notebook of {name}" for name in ("asked", "made", "run", "model")))  # fmt: skip


@pytest.mark.parametrize("name", KINDS)
def test_a_page_fits_and_stands_out(name: str, pages: Path, browser: Browser) -> None:
    paper = set[str]()
    for scheme in ("light", "dark"):
        browser.scheme(scheme)
        browser.open((pages / f"{name}.html").as_uri())
        assert unfit(browser) == [] and browser.run(CONTRAST) == [] and browser.trouble == []
        paper.add(browser.run("getComputedStyle(document.body).backgroundColor"))
    assert len(paper) == 2


@pytest.mark.parametrize(("body", "said"), [
    ('<p style="width: 50rem">wide</p>', "the telephone: p 'wide'"),
    ('<div style="overflow: hidden; width: 3rem; white-space: nowrap">a long line</div>', "'a long line' cut off"),
    ('<svg viewBox="0 0 90 20"><text x="80" y="10">a long title</text></svg>', "'a long title' outside its picture"),
])  # fmt: skip
def test_what_does_not_fit_is_named(body: str, said: str, tmp_path: Path, browser: Browser) -> None:
    (tmp_path / "page.html").write_text(html.page("A page", body))
    browser.open((tmp_path / "page.html").as_uri())
    assert any(said in each for each in unfit(browser))


def test_text_that_does_not_stand_out_is_named(tmp_path: Path, browser: Browser) -> None:
    (tmp_path / "page.html").write_text(re.sub("<p>", '<p style="color: #999">', html.page("A page", "<p>pale</p>")))
    browser.scheme("light")
    browser.open((tmp_path / "page.html").as_uri())
    assert any("pale" in each for each in browser.run(CONTRAST))
