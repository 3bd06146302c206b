"""Runs whose owners are checked: parties in processes of their own, owners that cheat in what they share and how."""

import csv
import json
import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from owners import beyond, on_the_bound, squares_of

import dpmpc
from dpmpc.aggregation.owner.client import OwnerClient
from dpmpc.aggregation.owner.encoding import encode
from dpmpc.aggregation.plan.asked import FIRST_ATTEMPT
from dpmpc.aggregation.plan.check_figures import count_checks, owners_line
from dpmpc.aggregation.plan.grid import Ints
from dpmpc.aggregation.plan.guarantee import warnings_of
from dpmpc.aggregation.plan.limits import Limits
from dpmpc.aggregation.plan.owner_bounds import passing
from dpmpc.aggregation.plan.owner_bounds import squares_of as bounds_of
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.plan.shown import taking_part
from dpmpc.circuits.sampler import discrete_gaussian
from dpmpc.consortium.kit import limits_for
from dpmpc.consortium.toml import read_consortium
from dpmpc.consortium.toml_text import Founding, text_of
from dpmpc.errors import PeerError, UsageError, owner_text
from dpmpc.mpc.contract.backend import BACKENDS
from dpmpc.mpc.numbers.field import P
from dpmpc.planning.request import Request
from dpmpc.planning.training import Facts, plan_of
from dpmpc.privacy.ledger import Ledger
from dpmpc.verify.structure import check_structure
from tests.commands import parsed
from tests.refusals import named, refuses
from tests.runs import run, small
from tests.tables import write

OWNERS, D = 7, 10
ASKED: dict[str, Any] = {"owners": OWNERS, "dimension": D, "clip": 1.0, "delta": 1e-5, "scale": 0.0}
Change = Callable[[Ints, list[bytearray]], None]


class Cheats:
    """A dealer that deals other vectors, or deals them otherwise: `vectors` and `payloads` change them in place."""

    def __init__(self, dealer: Any, vectors: Any = None, payloads: Any = None) -> None:
        self._dealer, self._vectors, self._payloads = dealer, vectors, payloads

    def deal(self, vectors: Ints) -> list[Any]:
        if self._vectors is not None:
            self._vectors(vectors)
        payloads = [bytearray(payload) for payload in self._dealer.deal(vectors)]
        if self._payloads is not None:
            self._payloads(payloads)
        return payloads


def huge_word(party: int, owner: int) -> Any:
    """A number that is no share's."""

    def change(payloads: list[bytearray]) -> None:
        np.frombuffer(payloads[party], dtype=np.uint64)[owner * D + 3] = 2**64 - 1

    return change


def wrong_word(party: int, owner: int) -> Any:
    """Changes one word of the share of one owner for one party, which gets words."""

    def change(payloads: list[bytearray]) -> None:
        words = np.frombuffer(payloads[party], dtype=np.uint64)
        words[owner * D + 3] = (int(words[owner * D + 3]) + 1) % P

    return change


def vector(owner: int, values: list[int]) -> Any:
    def change(vectors: Ints) -> None:
        vectors[owner] = values

    return change


def honest() -> Any:
    rng = np.random.default_rng(5)
    return rng.normal(size=(OWNERS, D))


def clear_sum(plan: Plan, without: tuple[int, ...] = ()) -> Ints:
    rows = encode(plan, honest())
    rows[list(without)] = 0
    total: Ints = rows.sum(axis=0)
    return total


MODES = {
    "sharing": {"parties": 3},
    "sharing of five": {"parties": 5, "backend": "sharing"},
    "shamir": {"parties": 5, "backend": "shamir"},
    "active": {"security": "active"},
}


@pytest.mark.parametrize("mode", MODES)
def test_an_owner_that_fails_counts_as_zero_and_is_named(mode: str, tmp_path: Path) -> None:
    """Two releases: honest first, then one owner deals a wrong word; where norms are checked another one is too
    long. (Among active parties a wrong word ends the run.)"""
    norms, shares = mode != "shamir", mode != "active"
    with dpmpc.Aggregator(**ASKED, releases=3, check_owners="zero", out=tmp_path / "run", **MODES[mode]) as aggregator:
        plan, dealer = aggregator.plan, aggregator.session.dealer
        assert (aggregator.open(honest()).total == clear_sum(plan)).all()
        last = plan.parties - 1
        bound = bounds_of(plan, plan.grid)[4]
        too_long = vector(4, beyond(D, bound)["halves"]) if norms else None
        aggregator.session.dealer = Cheats(dealer, too_long, wrong_word(last, 2) if shares else None)
        release = aggregator.open(honest())
        failed = tuple(j for j, fails in ((2, shares), (4, norms)) if fails)
        assert release.present == tuple(j for j in range(OWNERS) if j not in failed)
        assert (release.total == clear_sum(plan, failed)).all()
        assert plan.divisor_of(release.present) == OWNERS, "a zero vector is one of all"
        aggregator.session.dealer = dealer
        assert aggregator.open(honest()).present == tuple(range(OWNERS)), "it may do better next time"
    for party in range(plan.parties):
        entries = Ledger.read(tmp_path / "run" / f"ledger_{party}.jsonl").entries
        assert [e.present for e in entries] == [tuple(range(OWNERS)), release.present, tuple(range(OWNERS))]
        log = (tmp_path / "run" / f"party_{party}.log").read_text()
        assert ("release 1: zero vectors in place of owner 2: shares of no one vector" in log) == shares
        assert ("owner 4: a vector beyond the norm bound" in log) == norms
    checks = check_structure(tmp_path / "run").checks
    evidence = {check.name: check for check in checks}
    failing = [check.name for check in checks if not check.holds]
    assert all("noise" in name for name in failing), f"this plan has none; {failing}"
    assert "3 releases, 1 with owners that failed" in evidence["owners were checked"].detail
    edited(tmp_path / "run" / "party_0.transcript.jsonl", '"too_long":[]', '"too_long":[1]')
    assert not {c.name: c for c in check_structure(tmp_path / "run").checks}["owners were checked"].holds


def edited(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_a_number_that_is_no_share_is_a_wrong_share() -> None:
    """Without checks it ends the run."""
    with dpmpc.Aggregator(**ASKED, check_owners="zero") as aggregator:
        aggregator.session.dealer = Cheats(aggregator.session.dealer, None, huge_word(1, 6))
        assert aggregator.open(honest()).present == (0, 1, 2, 3, 4, 5)
    with dpmpc.Aggregator(**ASKED) as aggregator, refuses("message", "2^61 - 1", kind=PeerError):
        aggregator.session.dealer = Cheats(aggregator.session.dealer, None, huge_word(1, 6))
        aggregator.open(honest())


@pytest.mark.parametrize("kind", ["norm", "shares"])
def test_stop_ends_the_run_before_anything_is_spent(kind: str, tmp_path: Path) -> None:
    with dpmpc.Aggregator(**ASKED, releases=2, check_owners="stop", out=tmp_path / "run") as aggregator:
        bound = bounds_of(aggregator.plan, aggregator.plan.grid)[3]
        change = vector(3, on_the_bound(D, bound + 1)) if kind == "norm" else None
        wrong = wrong_word(1, 3) if kind == "shares" else None
        aggregator.session.dealer = Cheats(aggregator.session.dealer, change, wrong)
        # the parties told the cause, or each other
        with pytest.raises(PeerError) as caught:
            aggregator.open(honest())
        assert isinstance(caught.value, PeerError) and caught.value.setting == "check_owners"
        assert named("owner 3", owner_text(caught.value)) and "\n" not in owner_text(caught.value)
    found: list[list[int]] = []
    for party in range(3):
        assert Ledger.read(tmp_path / "run" / f"ledger_{party}.jsonl").entries == ()
        events = [
            json.loads(line) for line in (tmp_path / "run" / f"party_{party}.transcript.jsonl").read_text().splitlines()
        ]
        found += [event["too_long" if kind == "norm" else "inconsistent"] for event in events if "too_long" in event]
    assert found and found == [[3]] * len(found), "who hears that others end the run ends too, before or after it finds"


def test_vectors_on_the_bound_pass_through_parties() -> None:
    """The integers that clipping and rounding can give at most, and all that honest owners clip."""
    with dpmpc.Aggregator(**ASKED, releases=2, check_owners="zero") as aggregator:
        plan = aggregator.plan
        bound = bounds_of(plan, plan.grid)[0]
        assert aggregator.open(honest() * 1e9).present == tuple(range(OWNERS))
        rows = on_the_bound(D, bound)

        def all_rows(vectors: Ints) -> None:
            vectors[:] = rows

        aggregator.session.dealer = Cheats(aggregator.session.dealer, all_rows)
        release = aggregator.open(honest())
        assert release.present == tuple(range(OWNERS))
        assert (release.total == OWNERS * np.array(rows)).all()


@pytest.mark.parametrize("weights", [None, [3, 50_000, 7, 1]])
@pytest.mark.parametrize("d", [1, 3, 1000])
def test_the_bound_is_the_least_that_all_honest_vectors_are_within(d: int, weights: Any) -> None:
    """Encoded vectors of norm C and above are within it; it exceeds (F C 2^f + sqrt(d) / 2)^2 by little: doubles."""
    plan = Plan.create(owners=4, dimension=d, clip=0.7, delta=1e-5, weights=weights or "equal", check_owners="zero",
                       grid_bits=12 if weights is None else 7, scale=500.0 if weights is None else 1.0)  # fmt: skip
    bounds = bounds_of(plan, plan.grid)
    rng = np.random.default_rng(d)
    for vectors in (rng.normal(size=(4, d)), np.ones((4, d)), rng.normal(size=(4, d)) ** 9):
        steps = encode(plan, vectors * 1e3)
        assert all(squares_of(row) <= bound for row, bound in zip(steps, bounds, strict=True))
    for bound, factor in zip(bounds, plan.factors, strict=True):
        exact = (Fraction(plan.clip) * factor * 2**plan.grid.bits) ** 2 + Fraction(d, 4)
        exact += Fraction((d * float(plan.clip) ** 2) ** 0.5 * factor * 2.0**plan.grid.bits)
        assert 0 <= bound - exact < 3 + exact * Fraction(d + 16, 1 << 50)


def test_what_an_owner_gets_away_with_is_bounded_over_the_run() -> None:
    """By the plan's security bits, over all releases and 1,024 attempts of each, projections and weights together."""
    for releases, bits, sums in (
        (1, 40.0, 1),
        (100, 40.0, 1),
        (1000, 40.0, 2),
        (2000, 40.0, 2),
        (20, 50.0, 2),
        (1, 106.0, 2),
        (1, 110.0, 3),
        (1, 128.0, 3),
    ):
        plan = Plan.create(**ASKED, releases=releases, security_bits=bits, check_owners="zero")
        test = plan.derived.owner_test
        assert test is not None and test.norms is not None and test.sums == sums
        assert 2.0 ** -(bits + 3) < passing(plan, test) == test.error * releases * 1024 * plan.owners <= 2.0**-bits
        assert f"2^-{-math.log2(passing(plan, test)):.1f} at most" in owners_line(plan)
    shares = Plan.create(**ASKED, check_owners="zero", backend="shamir", parties=5).derived.owner_test
    assert shares is not None and shares.norms is None and shares.error == 1 / P


def test_what_a_cheating_party_gets_away_with_counts_the_checks_of_owners() -> None:
    asked = {**ASKED, "scale": None, "security": "active", "releases": 20}
    without, with_ = (Plan.create(**asked, check_owners=word).derived.undetected for word in (None, "zero"))
    assert without is not None and with_ is not None and without < with_ < 2.0**-40


def test_active_parties_end_the_run_and_name_pairs(tmp_path: Path) -> None:
    """Of three shares on no line nobody can say whether owner or party changed one."""
    with dpmpc.Aggregator(**ASKED, security="active", check_owners="zero", out=tmp_path / "run") as aggregator:
        aggregator.session.dealer = Cheats(aggregator.session.dealer, None, wrong_word(2, 5))
        with refuses("cheat", 5):
            aggregator.open(honest())
    for party in range(3):
        assert Ledger.read(tmp_path / "run" / f"ledger_{party}.jsonl").entries == ()


# -- plans -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"parties": 2}, "the backends sharing, shamir and checked; got 2 parties that compute by ot, which"),
        ({"parties": 2, "backend": "garbled"}, "got 2 parties that compute by garbled"),
        ({"backend": "mpyc"}, "got 3 parties that compute by mpyc"),
        ({"parties": 2, "threshold": 0, "backend": "sharing"}, "the threshold 0"),
        ({"parties": 1}, "the threshold 0"),
        ({"min_owners": 5}, "min_owners=5 of 7"),
        ({"engine": "clear"}, "engine=clear has none"),
        ({"grid_bits": 40, "clip": 1e3}, "fewer grid_bits"),
    ],
)  # fmt: skip
def test_what_cannot_be_checked_is_refused_in_a_line(changes: dict[str, Any], named: str) -> None:
    with pytest.raises(UsageError) as caught:
        _ = Plan.create(**{**ASKED, **changes}, check_owners="zero").derived
    text = owner_text(caught.value)
    assert named in text and "\n" not in text and text.count(";") >= 2, text
    _ = Plan.create(**{**ASKED, **changes}) if "grid_bits" not in changes else None


def test_a_grid_that_nobody_fixed_is_coarse_enough_for_the_checks() -> None:
    """By three bits at most: rounding then adds 4 % to the sensitivity in place of 0.5 %. One that was asked for
    stays."""
    asked: dict[str, Any] = {"owners": 4, "dimension": 100, "clip": 1.0, "delta": 1e-5, "weights": "size"}
    asked["releases"] = 100  # noise is wide
    for records, coarser in ((1000, 0), (30_000, 1), (150_000, 3)):
        plain = Plan.create(**asked, records=[records] * 4)
        checked = Plan.create(**asked, records=[records] * 4, check_owners="zero")
        assert plain.grid.bits - checked.grid.bits == coarser
        assert checked.derived.sensitivity.parts["rounding"] <= 0.05 * checked.derived.sensitivity.l2
        assert checked.derived.owner_test is not None
    with refuses("range", "grid_bits", setting="check_owners"):
        _ = Plan.create(**asked, records=[1_000_000] * 4, check_owners="zero").derived
    with refuses("range", 1, "grid_bits", setting="check_owners"):
        _ = Plan.create(**asked, records=[30_000] * 4, check_owners="zero", grid_bits=plain.grid.bits).derived


def test_another_word_is_refused() -> None:
    with refuses("choice", "yes", setting="check_owners"):
        Plan.create(**ASKED, check_owners="yes")


def test_it_is_in_plan_and_digest_and_costs_nothing_where_it_is_left_out() -> None:
    plans = [Plan.create(**ASKED, run_id="r", check_owners=word) for word in (None, "zero", "stop")]
    assert len({plan.digest(FIRST_ATTEMPT) for plan in plans}) == 3
    assert [Plan.from_text(plan.to_text()) == plan for plan in plans] == [True] * 3
    assert count_checks(plans[0]) == () and plans[0].derived.owner_test is None
    coarser = replace(plans[1], grid_bits=plans[1].grid.bits - 1)
    assert coarser.derived.owner_test != plans[1].derived.owner_test


def test_limits_may_ask_for_it(tmp_path: Path) -> None:
    def plan(**changes: Any) -> Plan:
        facts = Facts("records", "logistic", 5, (40, 60, 50), "public")
        return plan_of(Request(run_id="r", data="synthetic", owners=3, delta=1e-5, iterations=5, **changes), facts)

    path = write(tmp_path, 'check_owners = "zero"\n', "limits.toml")
    asked = Limits.read(path)
    asked.check(plan(check_owners="stop"))
    with refuses("limits", setting="check_owners"):
        asked.check(plan())
    assert Limits().also(asked).check_owners == asked.also(Limits()).check_owners == "zero"
    assert [line for line in taking_part(plan(check_owners="zero")) if line.startswith("owners are checked: their")]
    assert not [line for line in taking_part(plan()) if "owners are" in line]


def test_a_consortium_says_it_in_its_part_of_mpc(tmp_path: Path) -> None:
    text = text_of(Founding(addresses=("127.0.0.2:1000", "127.0.0.3:1000", "127.0.0.4:1000"), iterations=3))
    assert text.count('# check_owners = "no"') == 1
    path = write(tmp_path, text.replace('# check_owners = "no"', 'check_owners = "stop"'), "consortium.toml")
    consortium = read_consortium(path)
    assert consortium.plan.check_owners == "stop"
    assert limits_for(consortium).check_owners == "stop", "a kit of it insists"
    path.write_text(text)
    assert limits_for(read_consortium(path)).check_owners == "no"


def test_the_option_alone_means_zero() -> None:
    words = ["train", "--data", "synthetic", "--delta", "1e-5"]
    assert parsed(words)["check_owners"] is None
    assert parsed([*words, "--check-owners"])["check_owners"] == "zero"
    assert parsed([*words, "--check-owners", "--epsilon", "1"])["check_owners"] == "zero"
    assert parsed([*words, "--check-owners", "stop"])["check_owners"] == "stop"


@pytest.mark.slow
def test_sites_that_are_owner_and_party_check_each_other(tmp_path: Path) -> None:
    report = run(small(check_owners="stop", role="both", owners=3, iterations=2), tmp_path / "run")
    assert report["owners_checked"]["releases"] == 2 and report["owners_checked"]["failed"] == {}
    assert all(check.holds for check in check_structure(tmp_path / "run").checks)


def test_training_names_who_failed_in_report_and_history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The owners of a run on one machine are in its own process here: one of them cheats in the second release."""
    from dpmpc.aggregation.owner import aggregator as module

    opened = module.Aggregator.open

    def cheating(self: Any, vectors: Any) -> Any:
        session = self.session
        dealer = session.dealer
        if session.next == 1:
            session.dealer = Cheats(dealer, vector(2, [1 << 40] + [0] * (self.plan.dimension - 1)))
        try:
            return opened(self, vectors)
        finally:
            session.dealer = dealer

    monkeypatch.setattr(module.Aggregator, "open", cheating)
    report = run(small(check_owners="zero"), tmp_path / "run")
    section = report["owners_checked"]
    assert section["failed"] == {"1": [2]} and section["releases"] == 4 and section["mode"] == "zero"
    assert section["checks"] == ["shares", "norms"] and section["undetected_bits"] >= 40
    rows = (tmp_path / "run" / "history.csv").read_text().splitlines()
    found = [(row["owners"], row["failed"]) for row in csv.DictReader(rows)]
    assert found == [("6", ""), ("5", "2"), ("6", ""), ("6", "")]
    from dpmpc.show.summary import summary

    assert dict(summary(report, tmp_path))["owners checked"] == (
        "shares and norms in 4 releases; failed, and counted as zero: owner 2 in 1"
    )
    stopped = report | {"owners_checked": section | {"mode": "stop", "failed": {}}}
    assert dict(summary(stopped, tmp_path))["owners checked"] == (
        "shares and norms in 4 releases; one that fails ends the run: none failed"
    )
    (tmp_path / "run" / "report.json").unlink()
    again = run(small(check_owners="zero"), tmp_path / "run", resume=True)
    assert again["owners_checked"] == section, "a run that is carried on knows it from the ledgers"


def test_parties_that_cannot_check_norms_say_so() -> None:
    asked = {**ASKED, "check_owners": "zero", "parties": 5, "scale": None}
    (said,) = [text for text in warnings_of(Plan.create(**asked, backend="shamir")) if "norms" in text]
    assert said == (
        "parties check owners' shares, but not norms, with backend shamir, where to compare these would take about "
        f"{61 * 60 * ASKED['owners']:,} shared random bits a release, as noise of "
        f"{61 * 60 * ASKED['owners'] // 180:,} coordinates does; use backend sharing for both"
    )
    assert BACKENDS["shamir"].count_noise(discrete_gaussian(2.0**20), 1000, 3, 1).sample["random bits"] == 182
    assert not [text for text in warnings_of(Plan.create(**asked, backend="sharing")) if "norms" in text]


def test_all_parties_are_needed_where_owners_are_checked() -> None:
    """Owners count no party as spare: one that leaves ends the run."""
    asked = {**ASKED, "parties": 5, "backend": "sharing"}
    plans = [Plan.create(**asked, check_owners=word) for word in (None, "zero")]
    spare = [OwnerClient(plan, FIRST_ATTEMPT)._needed.spare for plan in plans]
    assert spare == [2, 0]
