"""`dpmpc report`: the page's structure, its words against the run's figures, and what a browser makes of it."""

import hashlib
import itertools
import json
import math
import re
import shutil
import subprocess
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from unittest import mock
from xml.etree import ElementTree

import numpy as np
import pytest

from dpmpc.aggregation.owner.aggregator import Aggregator
from dpmpc.dossier import facts
from dpmpc.dossier.effects import MOST, NOT_EFFECTS, question_of
from dpmpc.dossier.facts import facts_of
from dpmpc.dossier.page import page
from dpmpc.dossier.words import caught
from dpmpc.planning.request import Request
from dpmpc.privacy.book import LedgerError
from dpmpc.privacy.seen import ELSEWHERE
from dpmpc.show.svg import Trace, bars, chart, duration
from dpmpc.statistics.columns import Columns
from dpmpc.statistics.tables import Tables
from tests.refusals import refuses
from tests.runs import dpmpc, run, small

EMPTY = {"meta", "rect", "line", "polyline", "br"}


class Outline(HTMLParser):
    """A page's elements, checked for balance while they are read."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] != ["style"]:
            self.text += data + " " * (not re.fullmatch(r"[\d.]+e-\d+", data))  # which is kept on one line

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs on the same data, one after the other; the second has utility figures."""
    folder = tmp_path_factory.mktemp("runs")
    run(small(data_id="patients", epsilon=0.5), folder / "first")
    run(small(data_id="patients", epsilon=0.5, evaluate=True), folder / "second")
    return folder


def told(path: Path, **settings: Any) -> Outline:
    return Outline(page(facts_of(path, **settings)))


# -- structure ---------------------------------------------------------------------------------------------------------
def test_the_page_is_whole_and_needs_nothing_from_elsewhere(finished: Path) -> None:
    text = page(facts_of(finished / "second"))
    outline = Outline(text)
    assert text.startswith("<!DOCTYPE html>") and outline.named("html") == [{"lang": "en"}]
    assert len(outline.named("h1")) == 1 and len(outline.named("h2")) == 13 and len(outline.named("main")) == 1
    levels = [int(name[1]) for name, _ in outline.elements if re.fullmatch(r"h\d", name)]
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    assert not {"script", "link", "img", "iframe", "object", "form"} & {name for name, _ in outline.elements}
    assert "default-src 'none'" in text and not re.search(r"url\(|@import|https?://", text)
    for name, attributes in outline.elements:
        assert not attributes.keys() & ({"src", "onclick", "onload"} | (set() if name == "a" else {"href"}))
    ids = [f"#{attributes['id']}" for _, attributes in outline.elements if "id" in attributes]
    assert [attributes["href"] for attributes in outline.named("a")] == ids[1:]  # the contents: all parts, in order


def test_the_first_screen_is_the_answer(finished: Path) -> None:
    """What for, epsilon, for whom, what was checked, every warning, and that it was carried on, before any part."""
    facts = facts_of(finished / "second")
    facts = replace(facts, report={**facts.report, "warnings": []})
    warned = replace(facts, report={**facts.report, "warnings": ["a first warning.", "a second."]}, tries=3)
    for each, words in (
        (facts, ["No warnings."]),
        (warned, ["2 warnings: a first warning. a second.", "it took 3 attempts"]),
    ):
        text = page(each)
        first = text[text.index('id="answer"') : text.index("<nav")]
        for word in ("What was computed: ", "epsilon = 0.5", "every single record of every owner", "structure", *words):
            assert word in first, word
    assert "attempts" not in page(facts)[: page(facts).index('id="s1"')]


def test_the_page_can_be_read_without_eyes(finished: Path) -> None:
    outline = told(finished / "second")
    assert len(outline.named("caption")) == len(outline.named("table")) >= 8
    assert all(cell.get("scope") in ("row", "col") for cell in outline.named("th"))
    pictures = outline.named("svg")
    assert len(pictures) == 4 and all(p["role"] == "img" and len(p["aria-label"] or "") > 20 for p in pictures)
    ids = [a["id"] for _, a in outline.elements if "id" in a]
    assert len(set(ids)) == len(ids)
    assert {a["aria-labelledby"] for a in outline.named("section")} == set(ids)
    assert all(a.get("tabindex") == "0" and a.get("aria-label") for a in outline.named("div") if a.get("role"))


def contrast(one: str, other: str) -> float:
    """The contrast ratio of two colours #rrggbb, as WCAG 2 defines it."""

    def luminance(colour: str) -> float:
        channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def test_every_colour_of_text_has_contrast_in_both_themes(finished: Path) -> None:
    text = page(facts_of(finished / "second"))
    themes = re.findall(r":root \{([^}]*)\}", text)
    light = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", themes[0]))
    dark = light | dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", themes[1]))
    assert light["paper"] != dark["paper"] and contrast("#000000", "#ffffff") == pytest.approx(21)
    for theme in (light, dark):
        for ink in ("ink", "dim", "accent", "good", "bad"):
            assert contrast(theme[ink], theme["paper"]) >= 4.5, ink
        assert contrast(theme["ink"], theme["soft"]) >= 4.5 and contrast(theme["ink"], theme["warn-paper"]) >= 4.5
    assert "@media print" in text


def test_what_users_wrote_is_text_and_not_markup(tmp_path: Path) -> None:
    rows = [f"{i % 7},{i % 2},{'AB'[i % 2]},note {i}" for i in range(40)]
    (tmp_path / "x.csv").write_text("\n".join(["<b>dose</b>,outcome,site,<i>notes</i>", *rows]) + "\n")
    settings = {"data": None, "max_rows": None, "dimension": None, "owners": None, "engine": "clear"}
    request = small(**settings, csv=str(tmp_path / "x.csv"), target="outcome", owners_column="site")
    run(request, tmp_path / "run")
    (tmp_path / "run" / "ledger_0.jsonl").unlink()
    text = page(facts_of(tmp_path / "run"))
    assert "<b>" not in text and "&lt;b&gt;dose" in text
    assert re.search(r"&lt;i&gt;notes&lt;/i&gt;</th><td>left out</td><td>[a-z]", text)  # no column is passed over
    assert "read off the records" in Outline(text).text
    assert "for study" in Outline(text).text and "No ledger of this run was found" in Outline(text).text


# -- words and figures -------------------------------------------------------------------------------------------------
def test_the_promise_is_the_runs_in_words_and_figures(finished: Path) -> None:
    said = told(finished / "second").text
    assert "epsilon = 0.5, delta = 0.0001" in said and f"e^0.5 = {math.exp(0.5):.4g}" in said
    assert "one record of one owner replaced" in said and "Up to 1 of the 3 may put together" in said
    assert "outside the promise" in said and "averaging begins" in said
    assert "all owners' records: owners and parties ran on one machine" in said


def test_weights_are_said_to_be_no_effects_and_which_question_has_them(finished: Path) -> None:
    """The question that is named can be asked: it parses against the run's own columns, and is foreseen."""
    text = unescape(page(facts_of(finished / "second")))
    assert NOT_EFFECTS in text
    schema = facts_of(finished / "second").schema
    assert schema is not None
    question = question_of(schema)
    assert question is not None and f"asked of the records: {question}." in text
    tables = Tables.of(Columns.of_schema(schema), [question])
    assert tables.layout.dimension <= 2 * MOST + 1 and "log ratios by at least" in text


def test_an_attack_is_bounded_as_the_definition_says() -> None:
    """Against the exact trade-off of the Gaussian mechanism, which must stay below, and by hand."""
    from scipy.stats import norm

    assert caught(0.0, 0.0) == pytest.approx(1) and caught(1.0, 0.0) == pytest.approx(math.e)
    assert caught(50.0, 0.0) == pytest.approx(100) and caught(3.0, 0.0, 50.0) == pytest.approx(
        100 * (1 - 0.5 / math.e**3)
    )
    for mu in (0.1, 0.5, 1.0, 3.0):
        for epsilon in (0.1, 1.0, 4.0):
            delta = norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
            assert 100 * norm.cdf(mu - norm.isf(0.01)) <= caught(epsilon, delta) * (1 + 1e-9)


def test_the_budget_before_and_after(finished: Path) -> None:
    first, second = facts_of(finished / "first").budget, facts_of(finished / "second").budget
    assert first is not None and second is not None
    assert first.before.releases == 0 and first.after.releases == 4 and first.every.releases == 8
    assert second.before.releases == 4 and second.this.releases == 4 and second.after.releases == 8
    assert second.after.epsilon == first.every.epsilon > second.this.epsilon == pytest.approx(0.5, rel=1e-3)
    assert "with later runs" in told(finished / "first").text
    alone = facts_of(finished / "second", finished / "second").budget
    assert alone is not None and alone.before.releases == 0


def test_the_page_reads_the_account_and_says_how(tmp_path: Path) -> None:
    """Two runs on one name, in folders that do not know of each other: the account does."""
    lines = "".join(f"{k % 7},{'ab'[k % 2]},{'no' if k % 3 else 'yes'}\n" for k in range(90))
    (tmp_path / "r.csv").write_text(f"x,site,y\n{lines}")
    for name, data_id in (("A", "trial"), ("B", "Trial ")):
        asked = Request(
            csv=str(tmp_path / "r.csv"),
            target="y",
            owners_column="site",
            delta=1e-5,
            iterations=2,
            preprocessing="records",
            evaluate=False,
            engine="clear",
            data_id=data_id,
            account=str(tmp_path / "account"),
        )
        run(asked, tmp_path / name / "run")
    first, second = facts_of(tmp_path / "A" / "run").budget, facts_of(tmp_path / "B" / "run").budget
    assert first is not None and second is not None
    assert (first.before.runs, second.before.runs, second.after.runs, first.every.runs) == (0, 1, 2, 2)
    assert second.after.epsilon > second.this.epsilon == pytest.approx(1.0, rel=1e-2)
    text = " ".join(told(tmp_path / "B" / "run").text.split())
    assert "for one record, each epsilon at delta 1e-05; as seen in the account in “account” and the ledgers" in text
    assert "'Trial ', 'trial' count as one name" in text and ELSEWHERE in text
    assert str(tmp_path) not in text
    with mock.patch.object(facts, "_account", lambda run, plan: None):  # what was: the ledgers of one folder
        alone = facts_of(tmp_path / "B" / "run").budget
    assert alone is not None and alone.before.runs == 0


def test_the_structure_is_checked_for_the_page_and_verifys_verdict_is_taken_over(
    finished: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "copy"  # ledgers are looked for beside it
    shutil.copytree(finished / "second", folder)
    said = told(folder).text
    assert (
        "The structure was checked for this page" in said
        and "Checks that nobody has made yet: statistics, the law of the noise; audit" in said
    )
    assert dpmpc("verify", folder, "--structure").returncode == 0
    assert "From verify.json of this run" in told(folder).text and "FAILS" not in said
    lines = (folder / "party_1.transcript.jsonl").read_text().splitlines()
    (folder / "party_1.transcript.jsonl").write_text("\n".join([*lines[:5], *lines[6:]]) + "\n")
    (folder / "verify.json").unlink()
    changed = told(folder).text
    assert "FAILS" in changed and "structure: " in changed


def test_verdicts_that_parties_sent_are_shown(finished: Path, tmp_path: Path) -> None:
    """A party verifies its own folder and sends the file; one of another run, or no verdict at all, is refused."""
    owner, party = tmp_path / "owner", tmp_path / "party"
    shutil.copytree(finished / "second", owner)
    party.mkdir()
    for name in ("party_1.transcript.jsonl", "party_1.opened.bin", "ledger_1.jsonl"):
        shutil.move(owner / name, party / name)
        shutil.copy(party / name, owner / name)
    shutil.copy(owner / "plan.json", party / "plan_1.json")
    sent = owner / "verify_party_1.json"
    assert dpmpc("verify", party, "--structure", "--out", sent).returncode == 0
    value = json.loads(sent.read_text())
    assert value["parties_seen"] == [1] and str(tmp_path) not in sent.read_text()
    digest = hashlib.sha256((party / "ledger_1.jsonl").read_bytes()).hexdigest()
    assert value["files"]["ledger_1.jsonl"] == digest and value["plan"] == facts_of(owner).plan_digest
    said = told(owner).text
    assert "Verdicts that others sent" in said and "structure holds" in said and "verify_party_1.json" in said
    sent.write_text(json.dumps({**value, "run": "another"}))
    with refuses("file", sent):
        facts_of(owner)
    sent.write_text("[]")
    with refuses("file", sent):
        facts_of(owner)


def test_digests_are_those_of_the_files(finished: Path) -> None:
    out = subprocess.run(
        ["sha256sum", *(p.name for p in (finished / "second").glob("ledger_*.jsonl"))],
        cwd=finished / "second",
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    said = told(finished / "second").text
    for line in out.splitlines():
        assert line.split()[0] in said
    assert facts_of(finished / "second").plan_digest in said


def test_the_command_writes_the_page_and_refuses_what_is_no_run(finished: Path, tmp_path: Path) -> None:
    result = dpmpc("report", finished / "first", "--out", tmp_path / "page.html")
    assert result.returncode == 0 and (tmp_path / "page.html").read_text().startswith("<!DOCTYPE html>")
    assert (tmp_path / "page.html").stat().st_mode & 0o777 == 0o600  # as its run
    with refuses("file", "report.json", tmp_path, setting="resume"):
        facts_of(tmp_path)
    with refuses("path", tmp_path / "gone"):
        facts_of(tmp_path / "gone")
    assert dpmpc("report", finished / "first", "--out", tmp_path / "no" / "page.html").returncode == 2
    shutil.copytree(finished / "first", tmp_path / "changed")
    ledger = tmp_path / "changed" / "ledger_0.jsonl"
    ledger.write_text(ledger.read_text().replace('"release":1', '"release":7'))
    with pytest.raises(LedgerError):
        facts_of(tmp_path / "changed")


# -- charts ------------------------------------------------------------------------------------------------------------
def test_charts_show_what_they_are_given() -> None:
    text = chart(Trace("gap", [(1, 0.5), (2, 0.25), (3, 0.0)], log=True, mark=2))
    points = [tuple(map(float, p.split(","))) for p in re.findall(r'points="([^"]*)"', text)[0].split()]
    assert len(points) == 3 and points[0][0] < points[1][0] and points[0][1] < points[1][1] < points[2][1]
    assert "averaging begins" in text and "averaging begins" not in chart(Trace("gap", [(1, 0.5), (2, 0.25)], mark=9))
    Outline(chart(Trace("flat", [(1, 3.0), (2, 3.0)], reference=("<level>", 4.0))))
    drawn = bars("seconds", [("little", 1e-6), ("much", 100.0)])
    widths = [float(w) for w in re.findall(r'class="bar"[^>]* width="([\d.]+)"', drawn)]
    assert widths[0] == 2.0 < widths[1] and "1 µs" in drawn and "100 s" in drawn  # seen, and its number said
    assert [duration(s) for s in (0, 1e-5, 0.0123, 1.5, 2345.6)] == ["0 µs", "10 µs", "12.3 ms", "1.5 s", "2,346 s"]


def test_the_picture_of_a_run_is_well_formed_and_has_its_curves_and_costs(finished: Path) -> None:
    for name in ("first", "second"):
        report = json.loads((finished / name / "report.json").read_text())
        picture = ElementTree.fromstring((finished / name / "report.svg").read_text(encoding="utf-8"))
        svg = "{http://www.w3.org/2000/svg}"
        panels, drawn = picture.findall(f"{svg}svg"), [line.get("class") for line in picture.iter(f"{svg}polyline")]
        assert drawn == ["curve"] * (len(panels) - 1) and len(panels) == (1 if report["utility"] is None else 3)
        across = [float(panel.get("x", "")) for panel in panels]
        assert across == [k * float(panels[0].get("width", "")) for k in range(len(panels))]
        said = ["".join(text.itertext()) for text in picture.iter(f"{svg}text")]
        assert f"{report['owners']} owners" in said[0] and f"ε = {report['privacy']['epsilon']:.4g}" in said[0]
        assert {"noise ahead", "owners compute", "shares, sum, open"} <= set(said)
        assert said[-1].startswith("Beside that, start, load, evaluate: ")


# -- vectors of a caller ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize("security", ["semi-honest", "active"])
def test_a_run_of_a_callers_vectors_has_its_page(tmp_path: Path, security: str) -> None:
    out = tmp_path / "runs" / "mine"
    settings: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-5, "releases": 3, "security": security, "out": out}
    with Aggregator(owners=4, dimension=6, clip=0.5, data_id="sums", **settings) as aggregator:
        for _ in range(2):
            aggregator.sum(np.ones((4, 6)))
    text = unescape(re.sub(r"<[^>]+>", " ", page(facts_of(out))))
    for said in ("2 of 3", "all that is computed from them", "one owner's whole vector replaced", "4 owners' vectors"):
        assert said in text
    assert "Clipped to L2 norm 0.5" in " ".join(text.split())
    assert ("may do whatever they like" in text) == (security == "active")
    assert ("assumed to follow the protocol" in text) == (security != "active")
    assert "Owners are trusted to clip" in text


def test_owners_that_are_checked_need_not_be_trusted(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-5, "check_owners": "zero", "out": tmp_path / "run"}
    with Aggregator(owners=4, dimension=6, clip=0.5, **settings) as aggregator:
        aggregator.sum(np.ones((4, 6)))
    text = unescape(page(facts_of(tmp_path / "run")))
    assert "one that fails counts as zero" not in text and "an owner that fails counts as zero for that release" in text
    assert "Owners are trusted to clip" not in text
