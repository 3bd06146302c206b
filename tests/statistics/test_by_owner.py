"""Questions by owner: each owner fills its own cells alone, where its own limits say so; and what differs between
owners."""

import csv
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2, t

import dpmpc
from dpmpc.aggregation.plan.limits import Limits
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.consortium.joining import Joining, join
from dpmpc.consortium.kit import LIMITS, write_kits
from dpmpc.consortium.toml import read_consortium
from dpmpc.errors import UsageError
from dpmpc.outcome import Answer, Number
from dpmpc.records.loading import opened
from dpmpc.statistics.columns import Columns
from dpmpc.statistics.families import Logit
from dpmpc.statistics.heterogeneity import Apart, inconsistency, student_quantile, student_tail, varying
from dpmpc.statistics.intervals import Floats
from dpmpc.statistics.kinds.regression import BETWEEN_OWNERS, COMMON, VARYING
from dpmpc.statistics.tables import Tables
from dpmpc.tables.stats import plan_of_tables, reopened
from tests.machines import together
from tests.refusals import refuses
from tests.runs import own_addresses

SITES = ("north", "south", "west", "east")
BOUNDS: dict[str, Any] = {"smoker": ["no", "yes"], "sex": ["f", "m"], "died": ["no", "yes"], "age": [20, 90]}
ASKED = ["count by owner", "logit(died, smoker) by owner", "or(died, smoker, strata=owner)", "mean(age) by owner"]
PROMISE = {"epsilon": 1.0, "delta": 1e-5}
TWO = np.array([[[1.0, 0.0]], [[1.0, 1.0]]])


def people(n: int, effects: tuple[float, ...] = (0.8,) * 4, seed: int = 1) -> dict[str, list[Any]]:
    """Made-up records, of some owners fewer than of others."""
    rng = np.random.default_rng(seed)
    site = rng.choice(4, n, p=[0.4, 0.3, 0.2, 0.1])
    smokes, sex = rng.random(n) < 0.4, rng.integers(0, 2, n)
    eta = -1 + 0.3 * site + 0.2 * sex + np.array(effects)[site] * smokes
    died = rng.random(n) < 1 / (1 + np.exp(-eta))
    word = np.array(["no", "yes"])
    return {
        "site": [SITES[k] for k in site], "smoker": word[smokes.astype(int)].tolist(),
        "sex": np.array(["f", "m"])[sex].tolist(), "died": word[died.astype(int)].tolist(),
        "age": rng.integers(20, 91, n).tolist(),
    }  # fmt: skip


def tables(asked: list[str] | None = None, names: tuple[str, ...] = SITES) -> Tables:
    return Tables.of(Columns.of_bounds(BOUNDS), asked or ASKED).among(names)


def lines(answer: Answer, group: str) -> dict[str, Number]:
    return {line.statistic: line.number for line in answer.lines if group in line.labels}


def test_an_owner_fills_its_own_cells_alone_wherever_it_counts_them() -> None:
    """One process that reads all owners' records, and four of their own, send the same; and what each sends adds up to
    what all records give without owners."""
    records, asked = people(400), tables()
    number = np.array([SITES.index(name) for name in records["site"]])
    with opened(records) as (table, _):
        both = asked.encode(table, number, 4)
        joint = asked.layout.blocks.index(asked.blocks_of(asked.queries[1])[0])
        begin, end = asked.layout.offsets[joint], asked.layout.offsets[joint + 1]
        for j in range(4):
            mine = {name: np.array(values)[number == j].tolist() for name, values in records.items()}
            with opened(mine) as (own, _):
                alone = asked.sited(j).encode(own)
            assert np.array_equal(alone[0], both[j])
            cells = both[j, begin:end].reshape(4, -1)
            assert cells[j].sum() and not np.delete(cells, j, axis=0).any()
        several = np.concatenate(list(asked.sited(2).means(table, np.where(number < 2, -1, number - 2), (
            int((number == 2).sum()), int((number == 3).sum())))))  # fmt: skip
        assert np.allclose(several[0], asked.mean_of(both[2:3], [int((number == 2).sum())])[0])
        plain = Tables.of(Columns.of_bounds(BOUNDS), ["logit(died, smoker)"])
        assert not plain.tells_owners and plain.sited(3) is plain
        whole, scale = plain.encode(table)[0] / plain.layout.scales[0], asked.layout.scales[joint]
        assert np.array_equal(both[:, begin:end].sum(axis=0).reshape(4, -1).sum(axis=0) / scale, whole)


def test_keeping_owners_apart_costs_no_noise_and_its_distance_holds() -> None:
    """Every pair of records of one owner: the root of 2 in one table, as without owners."""
    apart = tables(["logit(died, smoker) by owner"])
    plain = Tables.of(Columns.of_bounds(BOUNDS), ["logit(died, smoker)"])
    far = apart.layout.distance((1,)).l2 / apart.layout.scales[0]
    assert far == pytest.approx(plain.layout.distance((1,)).l2 / plain.layout.scales[0]) == pytest.approx(2**0.5)
    each = [(a, b) for a in ("no", "yes", "") for b in ("no", "yes", "other")]
    with opened({"died": [a for a, _ in each], "smoker": [b for _, b in each]}) as (table, _):
        for j in range(4):
            alone = np.where(np.eye(len(each), dtype=bool), 0, -1)
            found = [apart.sited(j).encode(table, one)[0] for one in alone]
            most = max(float(np.linalg.norm(a - b)) for a in found for b in found) / apart.layout.scales[0]
            assert far - 1e-9 <= most <= far * (1 + 1e-9)


def test_each_organisation_must_allow_it_and_a_plan_says_so() -> None:
    asked = tables()
    plan = plan_of_tables(asked, (400, 300, 200, 100), "records", None, PROMISE)
    again = Plan.from_text(plan.to_text())
    assert again.source == asked and again.source.tells_owners
    assert any("every owner by itself" in line for line in plan.source.about)
    with pytest.raises(UsageError) as refused:
        Limits().check(plan)
    assert refused.value.code == "limits"
    Limits(by_owner=True).check(plan)
    Limits().check(plan_of_tables(tables(["count by sex"]), (400, 300), "records", None, PROMISE))
    nameless = Tables.of(Columns.of_bounds(BOUNDS), ["count by owner"])
    few = plan_of_tables(nameless, (4, 3, 2), "records", None, PROMISE)
    assert few.source.columns.owners.levels == ("owner 0", "owner 1", "owner 2")  # type: ignore[attr-defined]
    with refuses("plan", "the number of one"):
        plan_of_tables(asked.sited(1), (4, 3, 2, 1), "records", None, PROMISE)
    with refuses("plan", 4, 5):
        asked.by_record((4,) * 5, "size", asked.coordinates)


def test_a_column_of_that_name_is_itself() -> None:
    own = Tables.of(Columns.of_bounds({"owner": ["me", "you"], "sex": ["f", "m"]}), ["count by owner"])
    assert not own.tells_owners and "owner" in own.reads
    every = tables(["table1", "missing", "count by owner"])
    assert "owner" not in every.reads and not any("owner" in str(query) for query in every.queries[:2])


def test_answers_by_owner_hold_what_owners_have_and_cost_nothing_again(tmp_path: Path) -> None:
    """Counts are 60 deviations of the noise and more. One effect of .8 at all owners: a set of 95 % about the data."""
    records = people(12_000)
    found = dpmpc.stats(records, ASKED, owners="site", bounds=BOUNDS, out=tmp_path / "run", engine="clear", **PROMISE)
    counts = {line.labels[0]: line.number for line in found.answers[0].lines}
    assert set(counts) == set(SITES)
    for name, number in counts.items():
        assert number.estimate is not None and number.noise
        assert abs(number.estimate - records["site"].count(name)) < 8 * number.noise
    for answer in found.answers[1:3]:
        for group in (BETWEEN_OWNERS, VARYING):
            assert lines(answer, group), (answer.question, group)
    common = lines(found.answers[1], COMMON)["odds ratio"]
    assert common.low is not None and common.high is not None and 1.5 < common.low < common.high < 3.3
    forest = found.answers[1].shapes[0]
    assert [line.labels for line in forest.lines] == [(name,) for name in (*sorted(SITES), COMMON, VARYING)]
    assert "between owners" in found.html() and "between owners" in found.csv()
    again = reopened(tmp_path / "run").asked(["or(died, smoker, strata=owner)", "logit(died, smoker, strata=owner)"])
    assert lines(again.answers[0], BETWEEN_OWNERS)["Q"] == lines(found.answers[2], BETWEEN_OWNERS)["Q"]
    assert "p" not in lines(again.answers[1], "smoker") or again.answers[1].question in ASKED
    other = tmp_path / "other"
    dpmpc.stats(records, ["count by sex"], owners="site", bounds=BOUNDS, out=other, engine="clear", **PROMISE)
    with refuses("unknown", "count by owner"):
        _ = reopened(other).asked(["count by owner"]).answers


def test_students_law_and_moments_are_the_books() -> None:
    for degrees in range(1, 40):
        for x in (0.1, 1.0, 2.5, 8.0):
            assert student_tail(x, degrees) == pytest.approx(2 * t.sf(x, degrees), rel=1e-9, abs=1e-15)
        assert student_quantile(0.05, degrees) == pytest.approx(t.isf(0.025, degrees), rel=1e-7)
    values, variances = np.array([0.1, 0.5, 0.9, 0.4]), np.array([0.04, 0.02, 0.05, 0.1])
    found = varying(values, variances, 0.05)
    assert found is not None
    w = 1 / variances
    Q = float(np.sum(w * (values - np.average(values, weights=w)) ** 2))
    tau2 = max(0.0, (Q - 3) / (w.sum() - (w**2).sum() / w.sum()))
    assert found.tau2 == pytest.approx(tau2) and tau2 > 0
    assert found.mean == pytest.approx(np.average(values, weights=1 / (variances + tau2)))
    assert found.high - found.mean == pytest.approx(found.mean - found.low)
    assert found.high - found.mean >= t.isf(0.025, 3) / np.sqrt(np.sum(1 / (variances + tau2))) * (1 - 1e-9)
    assert varying(values[:2], variances[:2], 0.05) is None
    assert inconsistency(2.0, 4) == 0.0 and inconsistency(6.0, 4) == 50.0


def apart(effects: tuple[float, ...], n: int, sigma: float, rng: np.random.Generator) -> Apart:
    """Cells of four owners of as many records, with noise."""
    S, cells = len(effects), np.zeros((len(effects), 2, 2))
    for j, effect in enumerate(effects):
        for x in (0, 1):
            many, chance = n // S // 2, 1 / (1 + np.exp(0.8 - 0.2 * j - effect * x))
            died = rng.binomial(many, chance)
            cells[j, x] = many - died, died
    return Apart(Logit(), TWO, cells + rng.normal(0, sigma, cells.shape) if sigma else cells, sigma**2)


def test_without_noise_q_is_that_of_inverse_variances() -> None:
    """Cochran's Q of Woolf's variances, of cells of some thousands: the same but for higher terms."""
    found = apart((0.5, 0.7, 0.9, 0.6), 400_000, 0.0, np.random.default_rng(2))
    k: Floats = found.counts
    value = np.log(k[:, 1, 1] * k[:, 0, 0] / (k[:, 1, 0] * k[:, 0, 1]))
    w = 1 / (1 / k).sum(axis=(1, 2))
    Q = float(np.sum(w * (value - np.average(value, weights=w)) ** 2))
    mine, p = found.differs(1)
    assert mine == pytest.approx(Q, rel=0.02) and p == pytest.approx(chi2.sf(mine, 3), rel=1e-6)
    own, variances = found.own(1)
    assert own == pytest.approx(value, abs=1e-6) and variances == pytest.approx(1 / w, rel=1e-6)


@pytest.mark.parametrize("asked_so", ["logit", "cox", "or"])
@pytest.mark.parametrize("whose", ["all at one owner", "none anywhere", "all records of one owner"])
def test_hostile_owners_have_wide_sets_or_open_ones(asked_so: str, whose: str) -> None:
    """All events at one owner (and there on one arm), none at all, an owner all of whose records have the event: by
    owner and pooled every number is none or within its set, no set is narrow where no event tells, and no error."""
    records, n = people(4000), 4000
    at = np.array(records["site"])
    died = {
        "all at one owner": (at == "south") & (np.array(records["smoker"]) == "yes"),
        "none anywhere": np.zeros(n, dtype=bool),
        "all records of one owner": (at == "south") | (np.arange(n) % 5 == 0),
    }[whose]
    records["died"] = np.where(died, "yes", "no").tolist()
    asked = {
        "logit": ["logit(died, smoker) by owner"],
        "cox": ["hr(age, died, smoker, bins=2)"],
        "or": ["or(died, smoker, strata=owner)", "chisq(died, smoker) by owner"],
    }[asked_so]
    answers = dpmpc.stats(records, asked, owners="site", bounds=BOUNDS, engine="clear", **PROMISE).answers
    told = 0
    for answer in answers:
        for line in answer.lines:
            number = line.number
            for value in (number.estimate, number.low, number.high):
                assert value is None or not math.isnan(value), (answer.question, line)
            if number.low is None or number.high is None:
                continue
            assert number.low <= number.high, (answer.question, line)
            if line.statistic.endswith("ratio") and number.low > 0 and math.isfinite(number.high):
                eventless = whose == "none anywhere" or (whose == "all at one owner" and "north" in line.labels)
                assert not eventless or number.high / number.low > 3, (answer.question, line)
            told += 1
    assert told >= len(answers)


def test_q_has_its_law_under_noise_and_finds_what_differs() -> None:
    """400 tables of one effect at 3,000 records and deviation 5.3: p at most .05 in 20, and in 45 and more by chance in
    less than 1e-6; Q without the noise in its variance is far above that. And 30 of effects that differ: found."""
    rng = np.random.default_rng(3)
    low = naive = 0
    for _ in range(400):
        table = apart((0.7,) * 4, 3000, 5.3 * 2, rng)
        low += table.differs(1)[1] <= 0.05
        k = np.maximum(table.counts, 1.0)
        value, w = np.log(k[:, 1, 1] * k[:, 0, 0] / (k[:, 1, 0] * k[:, 0, 1])), 1 / (1 / k).sum(axis=(1, 2))
        naive += chi2.sf(float(np.sum(w * (value - np.average(value, weights=w)) ** 2)), 3) <= 0.05
    assert low <= 45 < naive, (low, naive)
    assert sum(apart((-0.3, 0.3, 0.9, 1.5), 3000, 5.3, rng).differs(1)[1] <= 0.05 for _ in range(30)) >= 28


TOML = """
[run]
data_id = "by owner"
tls = false
{sites}
[records.bounds]
smoker = ["no", "yes"]
died = ["no", "yes"]
[stats]
queries = ["logit(died, smoker) by owner", {{ what = "count", by = "owner" }}]
[privacy]
epsilon = 2.0
delta = 1e-5
"""


def kits_of(folder: Path, records: dict[str, list[Any]], more: str = "") -> list[Path]:
    """The folders of three parties and three owners, each with its own records; `more`: of consortium.toml."""
    sites = "".join(f'[[parties]]\nname = "p{i}"\naddress = "{a}"\n' for i, a in enumerate(own_addresses(3)[1::2]))
    for name in SITES[:3]:
        sites += f'[[owners]]\nname = "{name}"\nrecords = {records["site"].count(name)}\n'
    (folder / "consortium.toml").write_text(TOML.format(sites=sites) + more, encoding="utf-8")
    write_kits(read_consortium(folder / "consortium.toml"), folder / "kits", folder / "authority")
    kits = [folder / "kits" / name for name in ("p0", "p1", "p2", *SITES[:3])]
    for name, kit in zip(SITES, kits[3:], strict=False):
        with (kit / "records.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(("smoker", "died"))
            each = zip(records["site"], records["smoker"], records["died"], strict=True)
            writer.writerows(row[1:] for row in each if row[0] == name)
    return kits


def joins(kits: list[Path]) -> list[Callable[[], None]]:
    """What each process of these folders does."""
    return [
        lambda kit=kit: join(  # type: ignore[misc]
            kit, Joining.of(csv=str(kit / "records.csv") if kit.name in SITES else None, wait=60.0), lambda event: None
        )
        for kit in kits
    ]


def allowed(kits: list[Path]) -> list[Path]:
    """The same, each of which allows questions by owner."""
    for kit in kits:
        with (kit / LIMITS).open("a", encoding="utf-8") as file:
            file.write("by_owner = true\n")
    return kits


def test_sites_answer_by_owner_from_their_kits_where_each_allows_it(tmp_path: Path) -> None:
    kits = kits_of(tmp_path, people(4000))
    with refuses("limits", "limits.toml", setting="by_owner"):
        joins(kits)[4]()
    ends = together(joins(allowed(kits)))
    assert ends == [None] * 6, ends
    assert len({(kit / "run" / "answers.json").read_bytes() for kit in kits}) == 1
    found = json.loads((kits[0] / "run" / "answers.json").read_text(encoding="utf-8"))
    text = json.dumps(found)
    assert all(name in text for name in (*SITES[:3], COMMON, BETWEEN_OWNERS)) and "owner 0" not in text
    counted = (kits[3] / "run" / "answers.csv").read_text(encoding="utf-8")
    assert counted.count("north") >= 4
