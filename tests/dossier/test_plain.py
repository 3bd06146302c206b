"""The first pages of a report: the attacker's hit rate against an exact curve, and what a reader is told."""

import json
import math
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from scipy.optimize import brentq
from scipy.stats import norm

import dpmpc
from dpmpc.aggregation.plan.names import Names
from dpmpc.consortium.site_file import SiteFile
from dpmpc.dossier import plain
from dpmpc.dossier.facts import facts_of
from dpmpc.dossier.page import page
from dpmpc.dossier.words import not_promised, who_sees
from dpmpc.errors import UsageError
from dpmpc.verify.shipped import Sent
from tests.runs import run, small


def epsilon_of(mu: float) -> Any:
    """epsilon(delta) of the ideal Gaussian mechanism, by Balle and Wang's formula."""

    def delta_of(epsilon: float) -> float:
        return float(norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu))

    def epsilon(delta: float) -> float:
        return 0.0 if delta_of(0.0) <= delta else float(brentq(lambda e: delta_of(e) - delta, 0, 200))

    return epsilon


@pytest.mark.parametrize("mu", [0.05, 0.3, 1.0, 3.0])
@pytest.mark.parametrize("wrongly", plain.FALSE_ALARMS)
def test_the_hit_rate_is_that_of_the_best_test(mu: float, wrongly: float) -> None:
    """Never below the exact trade-off curve of the Gaussian mechanism, and at most 1 % above; one pair (epsilon,
    delta) alone says up to many times as much."""
    exact = 100 * float(norm.cdf(norm.ppf(wrongly / 100) + mu))
    bound = plain.least(epsilon_of(mu), wrongly)
    assert exact <= bound * (1 + 1e-9) and bound <= exact * 1.01 + 1e-9
    if mu == 1.0:
        assert plain.caught(epsilon_of(mu)(1e-6), 1e-6, wrongly) > 2 * bound


@pytest.mark.parametrize("count", [2, 3, 5])
def test_several_changes_together_are_bounded_by_as_many_steps(count: int) -> None:
    """Never below the exact curve of so many changes, which the Gaussian mechanism has at count mu; near it where it
    says much."""
    for mu in (0.1, 0.27, 0.5):
        exact = 100 * float(norm.cdf(norm.ppf(0.01) + count * mu))
        bound = plain.least(epsilon_of(mu), 1.0, count=count)
        assert exact <= bound * (1 + 1e-9)
        assert bound <= 1.1 * exact or count * mu > 1
    assert plain.least(lambda delta: math.inf, 1.0, pure=0.3, count=3) == pytest.approx(math.exp(0.9))


def test_a_pure_promise_is_read_at_delta_zero() -> None:
    assert plain.least(lambda delta: math.inf, 1.0, pure=0.5) == pytest.approx(math.exp(0.5))
    assert plain.least(lambda delta: math.inf, 1.0) == 100.0


def test_clients_of_flower_are_elsewhere_and_its_server_is_named(tmp_path: Path) -> None:
    """What the server wrote of its run is on the page: a warning, the strategy, and where the parties were."""
    with dpmpc.Aggregator(owners=3, dimension=2, clip=1.0, epsilon=1.0, delta=1e-5, out=tmp_path / "run") as made:
        made.mean([[0.1, 0.2]] * 3)
    assert plain.trust(facts_of(tmp_path / "run"))[2][1] == "everything: it saw all records"
    said = {"flower": {"strategy": "FedAvg", "parties_here": True}, "warnings": ["all ran on the server"]}
    (tmp_path / "run" / "report.json").write_text(json.dumps(said))
    facts = facts_of(tmp_path / "run")
    happened = " ".join(plain.what_happened(facts))
    assert "one model, from the clients' updates by Flower's FedAvg" in happened and "3 clients of Flower" in happened
    assert "the Flower server's machine, which can read every update" in happened and "TLS was off" not in happened
    assert plain.trust(facts)[2][:2] == ("the Flower server's machine", "everything: it can read every update")
    assert who_sees(facts)[0][0] == "the Flower server's machine" and "all ran on the server" in page(facts)
    (tmp_path / "run" / "report.json").write_text(json.dumps({"flower": {**said["flower"], "parties_here": False}}))
    assert not facts_of(tmp_path / "run").one_machine


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("plain") / "run"
    run(small(data_id="patients", epsilon=0.5), out)
    return out


def test_a_reader_is_told_who_where_what_and_how_well(finished: Path) -> None:
    facts = facts_of(finished)
    said = " ".join([*plain.what_happened(facts), *plain.at_worst(facts), *plain.verdicts(facts)])
    sizes = ", ".join(f"{size:,}" for size in facts.report["owner_sizes"])
    held = replace(facts, report={**facts.report, "figures": {"inside": True}})
    assert f"How many the model learnt from is public: {sizes}. Others were held out" in plain.what_happened(held)[1]
    assert f"How many is public: {sizes}." in said and "one copy of noise" in said and "TLS was off" in said
    assert "Who computed: 3 parties, all on this one machine" in said and "one model" in said
    assert "what the parties did: holds" in said and "the files of all parties" in said and "cannot see" not in said
    assert "No verdict" not in said and "Keep the page where the records are" not in said
    rows = plain.readings(facts)
    assert [row[0] for row in rows] == ["1 of 100", "5 of 100"] == [row[2] for row in rows]
    for wrongly, row in zip(plain.FALSE_ALARMS, rows, strict=True):
        found = float(row[1].split()[0])
        assert wrongly < found <= math.exp(0.5) * wrongly + 0.02
    assert page(facts).index("In plain words") < page(facts).index("Promise</h2>")


def test_tls_is_said_of_this_run(finished: Path) -> None:
    facts = facts_of(finished)
    assert json.loads((finished / "report.json").read_text())["tls"] is False
    for tls, words, seen in (
        (True, "TLS was on in this run", "sizes and times: TLS was on"),
        (False, "TLS was OFF", "all shares: TLS was OFF"),
        (None, "does not say whether TLS", "of which nothing is said"),
    ):
        other = replace(facts, report={**facts.report, "tls": tls}, one_machine=False)
        (line,) = plain.what_happened(other)[-1:]
        assert words in line
        assert any(who == "the network" and seen in could for who, could, _ in who_sees(other))
        assert any("signed the keys" in who for who, _, _ in plain.trust(other)) == (tls is True)
    assert ("the network", "nothing: all stayed on one machine", "everything") in who_sees(facts)


def test_a_site_s_page_names_parties_with_addresses_and_who_gave_no_verdict(finished: Path) -> None:
    """As a site of three has it: its own party's transcript, names from the plan, addresses and TLS from its kit."""
    facts = facts_of(finished)
    names = Names(("bern", "basel", "chur"), tuple(f"h{j}" for j in range(facts.plan.owners)))
    site = SiteFile("bern", "site0", "", ["10.0.0.1:1", "10.0.0.2:1", "10.0.0.3:1"], True, 1.0, 1.0)
    report = {key: value for key, value in facts.report.items() if key not in ("tls", "owner_names")}
    there = replace(
        facts, plan=replace(facts.plan, names=names), one_machine=False, site=site, seen=(0,), report=report
    )
    said = " ".join([*plain.what_happened(there), *plain.verdicts(there)])
    assert "bern at 10.0.0.1:1, basel at 10.0.0.2:1, chur at 10.0.0.3:1." in said and "TLS was on" in said
    assert f"h0 {facts.report['owner_sizes'][0]}" in said and "on the files of bern alone" in said
    assert "No verdict came from basel, chur." in said
    sent = Sent("verify_basel.json", (1,), "2026-11-24T09:08:07+00:00", True, ("structure holds: 8 of 8 checks",))
    told = " ".join(plain.verdicts(replace(there, sent=[sent])))
    assert "basel sent: structure holds" in told and "No verdict came from chur." in told
    assert "structure holds: 8 of 8 checks (2026-11-24 09:08 UTC)" in told


def test_the_claim_is_about_what_the_promise_hides(finished: Path) -> None:
    """Whole owners, whose records are hidden together; and places of which nobody knows how many are filled."""
    facts = facts_of(finished)
    few = {**facts.report, "owner_sizes": [5] * facts.plan.owners}
    for neighbours, claim in (("record", "this person's record was"), ("owner", "this owner took part with these")):
        other = replace(facts, plan=replace(facts.plan, neighbours=neighbours), report=few)
        said = " ".join(plain.at_worst(other))
        assert claim in said and ("one by one" in said) == (neighbours == "record")
        assert f"the best test for one {neighbours} can hit" in page(other)
    places = replace(facts, plan=replace(facts.plan, capacity=True), report=few)
    said = " ".join([*plain.what_happened(places), *plain.at_worst(places), *not_promised(places)])
    assert "How many is private." in said and "number of places" in said and "fewer than" not in said
    assert "number of records of each owner is public" not in said


def test_what_the_promise_does_not_cover_and_rests_on_is_said_on_the_first_page(finished: Path) -> None:
    facts = facts_of(finished)
    privacy = {**facts.report["privacy"], "assumptions": ["the list of classes is public"]}
    figures = {"inside": False}
    said = " ".join(plain.at_worst(replace(facts, report={**facts.report, "privacy": privacy})))
    assert "This holds if the list of classes is public." in said
    for inside in (False, True):
        other = replace(facts, report={**facts.report, "figures": {**figures, "inside": inside}})
        said = " ".join(plain.what_happened(other))
        assert ("Keep the page where the records are" in said) == (not inside)
        assert ("after them one that says how good the model is" in said) == inside
    assert facts.report["privacy"]["releases"] > 1
    assert "one copy of noise for each sum" in " ".join(plain.what_happened(facts))
    open_to_all = replace(facts, report={**facts.report, "threshold": 0})
    assert "each of the 3 parties" in [who for who, _, _ in plain.trust(open_to_all)]


def test_owners_with_few_records_are_not_told_that_nothing_shows(finished: Path) -> None:
    facts = facts_of(finished)
    few = replace(facts, report={**facts.report, "owner_sizes": [5, 400, 7]})
    assert "2 owners have fewer than 30 records" in " ".join(plain.at_worst(few))
    together = plain.hits_together(few.plan, 7, 1.0)
    assert together > 7 * plain.hits(few.plan, 1.0) or together > 90  # more than one by one
    assert "Of all 29 together nothing is promised" in plain._few(few, [29])
    assert "So what is said of one is said of all" in plain._few(few, [1])
    assert f"A test for all 2 together can hit in up to {plain.hits_together(few.plan, 2, 1.0):.3g}" in plain._few(
        few, [2, 1]
    )
    (_, _, unseen), *_ = [row for row in who_sees(few) if row[0] == f"{few.report['threshold'] + 1} parties together"]
    assert unseen == "what the vectors do not tell: of few records they may tell all"
    many = replace(facts, report={**facts.report, "owner_sizes": [500, 400, 700]})
    assert "fewer than" not in " ".join(plain.at_worst(many))
    with pytest.raises(UsageError):
        facts_of(finished / "nothing")


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Answers in `answers`, and a synthetic table in `rows`, of the same records."""
    folder = tmp_path_factory.mktemp("asked")
    rows = [f"{'ab'[i % 2]},{'yn'[i % 3 > 0]},s{i % 3}" for i in range(900)]
    (folder / "x.csv").write_text("\n".join(["ward,out,site", *rows]) + "\n")
    bounds = {"ward": ["a", "b"], "out": ["y", "n"]}
    settings: Any = {"owners": "site", "bounds": bounds, "epsilon": 1.0, "delta": 1e-5, "data_id": "wards"}
    dpmpc.stats(folder / "x.csv", ["table(ward) by out"], out=folder / "runs" / "answers", **settings)
    dpmpc.synth(folder / "x.csv", target="out", out=folder / "runs" / "rows", **settings)
    return folder / "runs"


def test_questions_have_the_same_first_pages_and_their_answers(asked: Path) -> None:
    facts = facts_of(asked / "answers")
    said = " ".join(plain.what_happened(facts))
    assert "answers to 1 question ('x.csv'): table(ward) by out." in said and "300, 300, 300." in said
    assert f"1 noisy sum of {facts.plan.dimension:,} numbers. Nothing else." in said and "for each sum" not in said
    text = page(facts)
    assert "Answers to the questions" in text and "the answers, this page" in text and "each intermediate" not in text
    assert 1.0 < float(plain.readings(facts)[0][1].split()[0]) < math.e


def test_a_synthetic_table_is_one_run_with_all_its_releases(asked: Path, tmp_path: Path) -> None:
    """Both releases are checked and signed, and count as one run; the promise is of both together."""
    facts = facts_of(asked / "rows")
    said = " ".join(plain.what_happened(facts))
    assert "a synthetic table ('x.csv')" in said and "before it those that found cells" in said
    checks = facts.evidence["structure"]["checks"]
    assert len(checks) == 2 * len(facts_of(asked / "answers").evidence["structure"]["checks"])
    assert {"first/ledger_0.jsonl", "ledger_0.jsonl", "plan.json"} <= {name for name, _ in facts.digests}
    budget = facts.budget
    assert budget is not None and (budget.before.runs, budget.this.runs, budget.after.runs) == (1, 1, 2)
    assert budget.this.releases == 2 and budget.this.epsilon == pytest.approx(1.0, rel=1e-2)
    assert "The synthetic table" in page(facts) and "None is a record of anybody" in page(facts)
    shutil.copytree(asked / "rows", tmp_path / "rows")
    changed = tmp_path / "rows" / "first" / "party_1.transcript.jsonl"
    lines = changed.read_text().splitlines(keepends=True)
    changed.write_text("".join([*lines[:5], *lines[6:]]))
    assert not facts_of(tmp_path / "rows").evidence["structure"]["holds"]


def test_the_annotated_report_has_every_heading(asked: Path) -> None:
    described = (Path(__file__).parents[2] / "docs" / "answer" / "report.md").read_text(encoding="utf-8")
    text = page(facts_of(asked / "answers")) + page(facts_of(asked / "rows"))
    found = set(re.findall(r"<h2 id=[^>]*>\d+\. ([^<]*)</h2>", text)) - {"In plain words"}
    found |= set(re.findall(r"<h3>([^<]*)</h3>", text[: text.index("technical annex")]))
    assert len(found) >= 14 and not {name for name in found if name not in described}
