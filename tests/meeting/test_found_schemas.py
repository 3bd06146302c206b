"""What a run promises by a schema that a release found: both are added up where both are for the same neighbours, and
under what either holds."""

import itertools
import math
from pathlib import Path
from typing import Any

import msgspec
import pytest

import dpmpc
from dpmpc.aggregation.plan.guarantee import Promise, promise_of
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.consortium.plan_of_machines import plan_of_machines
from dpmpc.planning.request import Request
from dpmpc.records.draft import toml_of
from dpmpc.records.schema import FoundBy, Labels, Numeric, Schema
from dpmpc.statistics.columns import Columns
from dpmpc.statistics.tables import Tables
from dpmpc.tables.stats import plan_of_tables
from tests.refusals import refuses

UNITS = ("", "record", "presence", "person", "owner", "stated")
SIZES = (400, 500, 600)


def planned(found: FoundBy | None, neighbours: str, places: bool) -> Plan:
    """A plan of training by a schema that this release found."""
    by = () if found is None else (found,)
    schema = Schema((Numeric("x", 0, 7),), Labels("y", ("1",), ("0",)), bounds="survey", found=by)
    request = Request(
        schema="schema.json", owner_sizes=SIZES, evaluate=False, preprocessing="records", epsilon=4.0, delta=1e-5,
        iterations=1, data_id="rows", run_id="r", test_fraction=0.0, neighbours=neighbours,
        capacity=tuple(size + 100 for size in SIZES) if places else None,
    )  # fmt: skip
    return plan_of_machines(request, schema, SIZES, complete=False, owners=["a", "b", "c"])[0]


def covers(found: str, places: bool, neighbours: str, private: bool) -> bool:
    """Whether every pair of data sets that the run compares is one that the release compared: all pairs of small data
    sets of two owners are tried, each owner having up to two records, 0 for a record that is absent."""

    def owners(counts: tuple[int, int], absent: bool) -> Any:
        values = (0, 1, 2) if absent else (1, 2)
        each = [list(itertools.product(values, repeat=count)) for count in counts]
        return itertools.product(*each)

    def compared(a: Any, b: Any, kind: str, moves: bool) -> bool:
        """Whether two data sets are neighbours."""
        odd = [(x, y) for x, y in zip(a, b, strict=True) if x != y]
        if len(odd) != 1:
            return not odd
        x, y = odd[0]
        if kind == "owner":
            return len(x) == len(y) or moves
        if kind not in ("record", "presence"):
            return False
        if len(x) != len(y):
            longer, shorter = (x, y) if len(x) > len(y) else (y, x)
            one_more = any(longer[:k] + longer[k + 1 :] == shorter for k in range(len(longer)))
            return moves and kind == "record" and one_more
        changed = [(p, q) for p, q in zip(x, y, strict=True) if p != q]
        return len(changed) == 1 and (kind == "record" or 0 in changed[0])

    sets = [data for counts in itertools.product((1, 2), repeat=2) for data in owners(counts, True)]
    return all(
        compared(a, b, found, places)
        for a, b in itertools.product(sets, repeat=2)
        if compared(a, b, neighbours, private)
    )


def wrong(neighbours: str, private: bool) -> list[str]:
    """The releases whose promise is added up with that of a run for these neighbours, and promises less."""
    odd = list[str]()
    for unit, places in itertools.product(("", "record", "presence", "owner"), (False, True)):
        found = FoundBy("met", 0.5, 1e-6, unit, places)
        promise = promise_of(planned(found, neighbours, private))
        right = unit != "" and covers(unit, places, neighbours, private)
        if promise.joined is not None and not right:
            odd.append(f"{unit or 'not said'}{', private numbers' * places}")
        if promise.joined is not None:
            assert promise.joined == (promise.epsilon + 0.5, promise.delta + 1e-6)
            assert "with the release that found the schema: epsilon = 4.5, delta = 1.1e-05" in str(promise)
        else:
            assert "the release that found the schema is not in that: it promises epsilon = 0.5" in str(promise)
    return odd


@pytest.mark.parametrize(("neighbours", "private"), [("record", False), ("presence", False), ("record", True)])
def test_only_what_compares_as_much_is_added_up(neighbours: str, private: bool) -> None:
    assert wrong(neighbours, private) == []


def test_with_the_rule_taken_out_a_records_promise_is_added_to_that_of_places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FoundBy, "covers", lambda self, neighbours, places: True)
    assert "record" in wrong("record", True) and "" not in wrong("record", True)


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("neighbours", ["person", "owner"])
def test_a_records_promise_is_never_one_of_persons_or_owners(unit: str, neighbours: str) -> None:
    assert FoundBy("met", 0.5, 1e-6, unit).covers(neighbours, False) == (unit == neighbours)


def test_the_same_is_added_up_and_nothing_is_said_where_nothing_was_found() -> None:
    promise = promise_of(planned(FoundBy("met", 0.5, 1e-6, "record"), "record", False))
    assert promise.joined == (4.5, pytest.approx(1.1e-5)) and "is not in that" not in str(promise)
    assert promise_of(planned(None, "record", False)).joined is None


def test_what_the_release_holds_under_is_said_with_it(tmp_path: Path) -> None:
    """It goes through the file of the schema as it stands."""
    found = FoundBy("met", 0.5, 1e-6, "record", holds_if=("the sampler draws from the exact law",))
    schema = planned(found, "record", False).mapped_by
    assert schema is not None and schema.found == (found,)
    (tmp_path / "schema.toml").write_text(toml_of(schema))
    assert Schema.read(tmp_path / "schema.toml") == schema
    said = str(promise_of(planned(found, "record", False)))
    assert said.endswith("epsilon = 4.5, delta = 1.1e-05, if the sampler draws from the exact law")
    assert isinstance(promise_of(planned(found, "record", False)), Promise) and math.isfinite(found.epsilon)


def test_a_release_says_of_itself_no_second_line() -> None:
    with refuses("file"):
        FoundBy("met", 0.5, 1e-6, "record\nguarantee: all is well")
    assert msgspec.to_builtins(FoundBy("met", 0.5, 1e-6)) == {"run": "met", "epsilon": 0.5, "delta": 1e-6}


ASKED: dict[str, Any] = {"owners": "site", "epsilon": 4.0, "delta": 1e-5, "engine": "clear"}


def test_questions_rows_and_figures_by_a_found_schema_join_its_promise(tmp_path: Path) -> None:
    """Whatever is made of the schema, also where the plan has none: before anything is spent, in the plan's file, and
    in what comes of it. Of two releases both are added up; one for other neighbours is said beside."""
    found = FoundBy("met", 0.5, 1e-6, "record")
    schema = Schema((Numeric("x", 0, 7),), Labels("y", ("1",), ("0",)), bounds="survey", found=(found,))
    schema.write(tmp_path / "schema.json")
    n = range(900)
    rows = {"x": [k % 8 for k in n], "y": [k % 2 for k in n], "site": ["abc"[k % 3] for k in n]}
    joined = "with the release that found the schema: epsilon = 4.5, delta = 1.1e-05"
    answers = dpmpc.stats(rows, ["count", "mean(x)"], schema=tmp_path / "schema.json", **ASKED)
    assert joined in answers.guarantee
    drawn = dpmpc.synth(rows, schema=tmp_path / "schema.json", seed=1, out=tmp_path / "rows", **ASKED)
    assert joined in drawn.guarantee
    assert joined in (tmp_path / "rows" / "synthetic.csv").read_text(encoding="utf-8")
    tables = Tables.of(Columns.of_schema(schema), ["count"])
    given = {"epsilon": 4.0, "delta": 1e-5}
    one = plan_of_tables(tables, SIZES, "rows", None, given, schema.origin)
    assert Plan.from_text(one.to_text()) == one and one.found == (found,)
    assert promise_of(one).joined == (4.5, pytest.approx(1.1e-5))
    more = schema.found_by(FoundBy("met again", 0.25, 1e-7, "record")).origin
    both = promise_of(plan_of_tables(tables, SIZES, "rows", None, given, schema.origin | more))
    assert both.joined == (4.75, pytest.approx(1.11e-5)) and "with the 2 releases that found" in str(both)
    other = schema.found_by(FoundBy("met again", 0.25, 1e-7, "")).origin
    beside = promise_of(plan_of_tables(tables, SIZES, "rows", None, given, schema.origin | other))
    assert beside.joined == (4.5, pytest.approx(1.1e-5)) and "is not in that: it promises epsilon = 0.25" in str(beside)
    assert promise_of(plan_of_tables(tables, SIZES, "rows", None, given)).joined is None
