"""The first pages of a report: the attacker's hit rate against an exact curve, and what a reader is told."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from dpmpc.dossier import plain
from dpmpc.dossier.facts import facts_of
from dpmpc.dossier.page import page
from dpmpc.errors import UsageError
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


def test_a_pure_promise_is_read_at_delta_zero() -> None:
    assert plain.least(lambda delta: math.inf, 1.0, pure=0.5) == pytest.approx(math.exp(0.5))
    assert plain.least(lambda delta: math.inf, 1.0) == 100.0


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("plain") / "run"
    run(small(data_id="patients", epsilon=0.5), out)
    return out


def test_a_reader_is_told_who_where_what_and_how_well(finished: Path) -> None:
    facts = facts_of(finished)
    said = " ".join([*plain.what_happened(facts), *plain.at_worst(facts), *plain.verdicts(facts)])
    sizes = ", ".join(f"{size:,}" for size in facts.report["owner_sizes"])
    assert f"which is public: {sizes}." in said and "one copy of noise" in said and "TLS was off" in said
    assert "structure: holds" in said and "cannot see" not in said
    rows = plain.readings(facts)
    assert [row[0] for row in rows] == ["1 of 100", "5 of 100"] == [row[2] for row in rows]
    for wrongly, row in zip(plain.FALSE_ALARMS, rows, strict=True):
        found = float(row[1].split()[0])
        assert wrongly < found <= math.exp(0.5) * wrongly + 0.02
    assert page(facts).index("In plain words") < page(facts).index("Promise</h2>")


def test_tls_is_said_of_this_run(finished: Path) -> None:
    facts = facts_of(finished)
    assert json.loads((finished / "report.json").read_text())["tls"] is False
    for tls, words in ((True, "TLS was on in this run"), (False, "TLS was OFF"), (None, "does not say whether TLS")):
        report = {**facts.report, "tls": tls}
        (line,) = plain.what_happened(replace(facts, report=report, one_machine=False))[-1:]
        assert line.startswith(words) or words in line


def test_owners_with_few_records_are_not_told_that_nothing_shows(finished: Path) -> None:
    facts = facts_of(finished)
    few = replace(facts, report={**facts.report, "owner_sizes": [5, 400, 7]})
    assert "2 owners have fewer than 30 records" in " ".join(plain.at_worst(few))
    many = replace(facts, report={**facts.report, "owner_sizes": [500, 400, 700]})
    assert "fewer than" not in " ".join(plain.at_worst(many))
    with pytest.raises(UsageError):
        facts_of(finished / "nothing")
