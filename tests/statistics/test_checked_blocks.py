"""Owners of tables that may do anything: every block of what they send has a bound of its own, which no honest one
exceeds, and which holds what a cheat moves in any cell to its number of records."""

import math
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from inprocess import Network
from owners import shares_of

import dpmpc
from dpmpc.aggregation.owner.encoding import encode
from dpmpc.aggregation.plan.check_figures import count_checks, owners_line
from dpmpc.aggregation.plan.owner_bounds import reach_of, squares_of
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.dossier.facts import facts_of
from dpmpc.dossier.page import page
from dpmpc.mpc.contract.owner_checks import MOST_WIDTH, FailedOwners, NormTest, OwnerTest, width_of
from dpmpc.mpc.replicated.counts import CountingBatch
from dpmpc.mpc.replicated.owner_counts import count_programs
from dpmpc.mpc.replicated.owner_norms import NormCheck
from dpmpc.statistics.cells import RecordFields
from dpmpc.statistics.columns import Quantity
from dpmpc.statistics.tables import STEP, Tables
from dpmpc.tables.questions import asked_of
from dpmpc.tables.stats import plan_of_tables
from dpmpc.verify.structure import check_structure
from tests.refusals import refuses

BOUNDS: dict[str, Any] = {
    "sex": ["F", "M"], "race": ["w", "b", "o"], "age": [18.0, 90.0], "dose": [-1.0, 3.0], "died": ["no", "yes"],
}  # fmt: skip
ASKED = ["table1 by died", "median(age) by sex", "sd(dose)", "corr(age, dose)", "count where dose in 0..1", "hist(age)"]
SIZES = (400, 90, 7)
PROMISE: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-5, "check_owners": "stop"}


def planned(**settings: Any) -> Plan:
    return plan_of_tables(asked_of(ASKED, None, BOUNDS, None), SIZES, "records", None, {**PROMISE, **settings})


def totals(tables: Tables, record: dict[str, float]) -> Any:
    """(owners, dimension) what owners have all of whose records are this one."""
    layout = tables.layout
    values = {
        field: np.full(1, record[field.name], dtype=np.float64 if isinstance(field, Quantity) else np.int64)
        for field in layout.fields
    }
    return layout.encode(RecordFields(1, values)) * np.array(SIZES)[:, None]


def sent(plan: Plan, total: Any) -> Any:
    """The whole numbers that enter MPC, of vectors in steps."""
    return encode(plan, total * STEP / np.array(SIZES, dtype=np.float64)[:, None])


def found(vectors: Any, test: OwnerTest) -> FailedOwners:
    shares = shares_of(vectors, 3, 1)

    async def body(session: Any) -> FailedOwners:
        return await NormCheck(session, 1 << 28, test).run([shares[session.party]])

    everybody = Network(3, 1).run(body)
    assert everybody == [everybody[0]] * 3
    return everybody[0]


def test_of(plan: Plan, blocks: bool = True, whole: int = 9) -> OwnerTest:
    test = plan.derived.owner_test
    assert test is not None and test.norms is not None and len(test.norms.blocks) == whole
    return test if blocks else replace(test, norms=replace(test.norms, blocks=()))


test_of.__test__ = False  # type: ignore[attr-defined]


@pytest.mark.parametrize("settings", [{}, {"grid_bits": 12}, {"neighbours": "owner"}, {"security": "active"}])
def test_owners_whose_records_are_all_alike_are_at_their_bounds_and_pass(settings: dict[str, Any]) -> None:
    """The longest vectors there are, block by block: in each block some of them come to within 1 % of the bound."""
    plan = planned(**settings)
    tables, test = plan.source, test_of(plan)
    assert isinstance(tables, Tables) and test.norms is not None
    largest = np.zeros(len(test.norms.blocks))
    for record in (
        {"sex": 0, "race": 0, "age": 18.0, "dose": -1.0, "died": 0},
        {"sex": 1, "race": 2, "age": 90.0, "dose": 3.0, "died": 1},
        {"sex": -1, "race": -2, "age": np.nan, "dose": 0.5, "died": -1},
        {"sex": 0, "race": 1, "age": 54.3, "dose": 1e300, "died": 1},
    ):
        vectors = sent(plan, totals(tables, record))
        starts = [0, *(end for end, _ in test.norms.blocks)]
        for b, ((start, end), (_, bounds)) in enumerate(zip(pairwise(starts), test.norms.blocks, strict=True)):
            squares = [sum(int(v) ** 2 for v in row[start:end]) for row in vectors]
            assert all(square <= bound for square, bound in zip(squares, bounds, strict=True)), (b, record)
            largest[b] = max(largest[b], squares[0] / bounds[0])
    assert largest.min() > 0.98
    assert found(vectors, test) == FailedOwners()


def test_a_cheat_that_the_norm_of_the_whole_lets_pass_is_named() -> None:
    """It keeps to the bound of the whole vector, and puts all of it into one cell: as many records as it has times the
    root of the number of blocks, about. Half a record more than it has is too much there."""
    plan = planned()
    tables = plan.source
    assert isinstance(tables, Tables)
    layout, honest = tables.layout, totals(plan.source, {"sex": 0, "race": 0, "age": 30.0, "dose": 0.0, "died": 0})
    cell, scale = int(layout.offsets[0]), layout.scales[0]
    n = SIZES[1]
    most = math.floor(layout.largest((n,)) / scale)
    assert most > 2.5 * n
    worst, just, fair = honest.copy(), honest.copy(), honest.copy()
    for vectors, records in ((worst, most), (just, n + 0.5), (fair, n)):
        vectors[1] = 0
        vectors[1, cell] = records * scale
    assert found(sent(plan, worst), test_of(plan, blocks=False)) == FailedOwners()
    assert found(sent(plan, worst), test_of(plan)) == FailedOwners((), (1,))
    assert found(sent(plan, just), test_of(plan)) == FailedOwners((), (1,))
    assert found(sent(plan, fair), test_of(plan)) == FailedOwners()


def test_no_sum_of_some_coordinates_of_an_honest_vector_is_beyond_the_projections() -> None:
    """Magnitudes add up to a bound of their own, which a vector attains; it makes room for Table 1 of 50,000 records,
    which the norm of the whole leaves none for."""
    plan = planned()
    test = test_of(plan).norms
    assert test is not None
    record = {"sex": 0, "race": 0, "age": 90.0, "dose": 3.0, "died": 0}
    magnitudes = int(np.abs(sent(plan, totals(plan.source, record))[0]).sum())  # type: ignore[arg-type]
    reach = reach_of(plan, plan.grid)
    assert reach is not None and 0.85 * reach < magnitudes <= reach < 1 << test.width - 1
    many = {"g": ["no", "yes"], **{f"c{k}": [f"l{i}" for i in range(9)] for k in range(26)}}
    asked = [f"table(c{k}) by g" for k in range(26)]
    sizes = (19536, 9768, 9768, 7326, 2442)
    wide = plan_of_tables(asked_of(asked, None, many, None), sizes, "records", None, PROMISE)
    assert test_of(wide, whole=26).norms is not None
    assert width_of(max(squares_of(wide, wide.grid)), wide.dimension) > MOST_WIDTH


def test_a_block_costs_one_comparison() -> None:
    """Some 350 ANDs an owner and block, where a check of norms by itself takes some 19,000."""
    plan = planned()
    with_blocks, without = test_of(plan), test_of(plan, blocks=False)
    assert with_blocks.norms is not None and without.norms is not None

    def ands(norms: NormTest) -> int:
        compared, joined = count_programs(CountingBatch, norms, len(SIZES), 3, 1)
        return len(SIZES) * (norms.kinds * compared.ands + joined.ands)

    more = (ands(with_blocks.norms) - ands(without.norms)) / len(SIZES) / (len(with_blocks.norms.blocks) - 1)
    assert 300 < more < 400 and ands(without.norms) / len(SIZES) > 15_000
    assert "norms of" in owners_line(plan) and count_checks(plan)


def test_honest_owners_pass_through_parties_and_a_cheat_ends_the_run(tmp_path: Path, monkeypatch: Any) -> None:
    rng = np.random.default_rng(1)
    n = sum(SIZES)
    people = pd.DataFrame({
        "sex": rng.choice(["F", "M"], n), "race": rng.choice(["w", "b", "o"], n), "age": rng.integers(18, 91, n),
        "dose": rng.uniform(-1, 3, n), "died": rng.choice(["no", "yes"], n), "site": np.repeat(["a", "b", "c"], SIZES),
    })  # fmt: skip
    asked = ["table(sex) by died", "table(race)", "mean(dose)"]
    settings: dict[str, Any] = {"owners": "site", "bounds": BOUNDS, "hopeless": "allow", **PROMISE}
    dpmpc.stats(people, asked, out=tmp_path / "run", **settings)
    wrong = [check for check in check_structure(tmp_path / "run").checks if not check.holds]
    assert not wrong, wrong
    html = page(facts_of(tmp_path / "run", None))
    assert "answers to 3 questions (" in html and "<h3" in html and "table(sex) by died" in html
    assert "vectors of their own" not in html and "answers of 3 owners from one release" in html
    means = Tables.means

    def cheating(self: Tables, *given: Any) -> Any:
        for vectors in means(self, *given):
            vectors[1] = 0
            vectors[1, 0] = self.clip  # a mean of the largest norm there is, in one cell
            yield vectors

    monkeypatch.setattr(Tables, "means", cheating)
    with refuses("owner", 0, 1, setting="check_owners"):
        dpmpc.stats(people, asked, out=tmp_path / "cheat", **settings)
    assert not (tmp_path / "cheat" / "opened.npy").exists()
