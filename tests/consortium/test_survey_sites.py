"""Release 0 over several machines: one survey of a plan, by parties, owners and sites that are started one by one."""

import json
import os
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmpc.aggregation.owner.accounts import account_of
from dpmpc.aggregation.party.owner_gate import OwnerGate
from dpmpc.aggregation.plan.guarantee import promise_of
from dpmpc.aggregation.plan.limits import Limits
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.plan.shown import taking_part
from dpmpc.aggregation.plan.stages import after_first, noise_of
from dpmpc.consortium.plan_of_machines import plan_of_machines
from dpmpc.consortium.toml import read_consortium
from dpmpc.consortium.toml_text import Founding, text_of
from dpmpc.errors import PeerError, UsageError
from dpmpc.intake.spelling import Spelling
from dpmpc.learning.model import read_model
from dpmpc.planning.request import Request
from dpmpc.privacy.composition import spent
from dpmpc.privacy.ledgers import merge, read_ledgers
from dpmpc.records import CsvFile
from dpmpc.records.loading import opened
from dpmpc.records.schema import Numeric, Schema, Surveyed
from dpmpc.run import stages
from tests.machines import apart, followed, process, sites
from tests.made_up_sites import BOTH, EACH, OWNERS, draft, files, planned
from tests.refusals import Rule, breaks, refuses
from tests.runs import HANG, own_addresses


@pytest.mark.parametrize(
    ("what", "settings"),
    [("two classes", {"check_owners": "zero"}), ("three classes", {**BOTH, "class_weight": "balanced"})],
)
def test_a_survey_among_machines_leads_all_of_them_to_one_plan(
    what: str, settings: dict[str, Any], tmp_path: Path
) -> None:
    plan = planned(tmp_path / "made", what, **settings)
    asked = Plan.read(plan)
    assert asked.schema is None and promise_of(asked).epsilon == 1.0
    both = "role" in settings
    ends = (sites if both else apart)(plan, tmp_path, files(tmp_path, what))
    assert ends == [None] * len(ends)
    names = [*"012", *(() if both else ("owner0", "owner1", "owner2"))]
    settled = {name: Plan.read(followed(tmp_path / name)) for name in names}
    assert len({each.to_text() for each in settled.values()}) == 1
    after = settled["0"]
    assert after.schema is not None and after.bounds == "survey" and after.dimension <= asked.dimension
    assert bool(asked.learning.weights) is False and len(after.learning.weights) == (3 if both else 0)
    columns = {column.name: column for column in Schema.from_json(after.schema).columns}
    assert columns.keys() == {"age", "dose", "ward"}
    age = columns["age"]  # where the noise of few records put its ends is another test's
    assert isinstance(age, Surveyed) and -150 < age.low < age.high < 300 and not age.kept
    assert columns["dose"].number and not columns["dose"].kept  # type: ignore[union-attr]
    assert columns["ward"].kept and not columns["ward"].number  # type: ignore[union-attr]
    models = [read_model(tmp_path / name).theta for name in names]
    assert all(np.array_equal(model, models[0]) for model in models)
    entries = merge(read_ledgers(tmp_path / "0"))
    assert len(entries) == 1 + after.releases
    total = spent(entries, asked.data_id, delta=asked.delta)
    assert 0.9 < total.epsilon <= 1.0 + 1e-9
    account = account_of(after)  # has the ledger of every process, of the survey as of the training after it
    assert account is not None
    known = {each.path for each in account.known(after.data_id) if each.state != "not kept"}  # of all stages together
    assert known == {path.resolve() for path in tmp_path.rglob("ledger_*.jsonl")} and len(known) == 2 * len(names)
    assert all("survey opened; plan" in log.read_text() for log in tmp_path.glob("*/*[0-9s].log"))
    first = json.loads((tmp_path / "0" / "survey" / "plan_0.json").read_text())
    assert first["computing"]["check_owners"] == settings.get("check_owners", "no")


def test_weights_of_classes_come_of_the_survey_of_several_machines(tmp_path: Path) -> None:
    """Its labels are one more column, which pays as any does; a plan with stated weights asks nothing more. Counts have
    noise of some deviations: 7 of them once in 10^11."""
    sizes, records = (EACH,) * OWNERS, files(tmp_path)
    request = Request(
        schema="schema.json", owner_sizes=sizes, epsilon=4.0, delta=1e-5, iterations=4, class_weight="balanced",
        data_id="weights", evaluate=False,
    )  # fmt: skip
    plan, _ = plan_of_machines(request, draft(), sizes, complete=True)
    plain, _ = plan_of_machines(replace(request, class_weight=None), draft(), sizes, complete=True)
    assert plan.first.source.names == (*plain.first.source.names, "outcome")  # type: ignore[attr-defined]
    assert plan.first.derived.sensitivity.l2 > plain.first.derived.sensitivity.l2
    assert promise_of(plan).epsilon == promise_of(plain).epsilon and Plan.from_text(plan.to_text()) == plan
    total, yes = np.zeros(plan.first.dimension), 0
    for path in records:
        yes += path.read_text().count(",yes")
        with opened(CsvFile(path)) as (table, _):
            (mean,) = plan.first.source.means(table, np.zeros(EACH, dtype=np.int64), (EACH,))
        total += mean[0] * EACH
    noise, grid = noise_of(plan.first), plan.first.grid.step
    after = after_first(plan, np.rint((total + np.random.default_rng(1).normal(0, noise, len(total))) / grid))
    low, one = after.learning.weights
    no = OWNERS * EACH - yes
    assert one == 1 and (yes - 7 * noise) / (no + 7 * noise) < low < (yes + 7 * noise) / (no - 7 * noise)
    assert after.schema is not None and "outcome" not in [c["name"] for c in after.schema["columns"]]
    stated, _ = plan_of_machines(replace(request, class_weight="no=0.5,yes=2"), draft(), sizes, complete=True)
    assert stated.learning.weights == (0.25, 1.0) and stated.first.source == plain.first.source
    for changes, what, broken in (
        ({}, "a quantity", breaks("together", "outcome", setting="class_weight")),
        (
            {"method": "functional", "iterations": None},
            "two classes",
            breaks("together", "functional", setting="class_weight"),
        ),
        ({"class_weight": "maybe=1"}, "two classes", breaks("range", "maybe=1", setting="class_weight")),
    ):
        with refuses(broken):
            plan_of_machines(replace(request, **changes), draft(what), sizes, complete=True)


def test_a_process_that_made_another_plan_ends_the_run_and_the_survey_is_carried_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a quantity. Party 1 reads the survey otherwise: all end at the meeting for release 1, nothing of training is
    spent, and with its plan mended the same processes go on without another survey."""
    plan, records = planned(tmp_path / "made", "a quantity", **BOTH), files(tmp_path, "a quantity")
    follow = stages.after_first

    def otherwise(plan: Plan, *found: Any) -> Plan:
        after = follow(plan, *found)
        if threading.current_thread().name == "site 1":
            assert after.schema is not None
            columns = [{**after.schema["columns"][0], "high": 100.0}, *after.schema["columns"][1:]]
            return replace(after, schema={**after.schema, "columns": columns})
        return after

    with monkeypatch.context() as patched:
        patched.setattr(stages, "after_first", otherwise)
        ends = sites(plan, tmp_path, records, wait=15.0)  # two wait for the third, which has refused them
    assert all(isinstance(end, PeerError) for end in ends), ends
    assert any("plan" in str(end) for end in ends)
    books = [merge(read_ledgers(tmp_path / str(i))) for i in range(3)]
    assert [len(book) for book in books] == [1, 1, 1] and books[0][0].run.endswith("+survey")
    assert sites(plan, tmp_path, records) == [None] * 3
    again = merge(read_ledgers(tmp_path / "0"))
    assert sum(entry.run.endswith("+survey") for entry in again) == 1 and len(again) == 5


def test_owners_that_are_quicker_after_a_survey_wait_for_a_slow_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One owner takes its time between the survey and the first release: the parties still end the survey for it. The
    others come for what follows; they are told to wait, and for whom. They were refused, for another plan."""
    plan, records = planned(tmp_path / "made", backend="shamir"), files(tmp_path)
    told, follow, this_stage = threading.Event(), stages.after_first, OwnerGate._at_this_stage
    said = list[str]()

    def slowly(plan: Plan, *found: Any) -> Plan:
        if threading.current_thread().name == "site 4":  # the second owner: three parties come before
            assert told.wait(HANG)
        return follow(plan, *found)

    def ends(self: OwnerGate) -> str:
        said.append(this_stage(self))
        told.set()
        return said[-1]

    monkeypatch.setattr(stages, "after_first", slowly)
    monkeypatch.setattr(OwnerGate, "_at_this_stage", ends)
    assert apart(plan, tmp_path, records) == [None] * 6
    assert said[0].startswith("it is at ") and "waits for " in said[0] and "owner 1" in said[0]
    assert not any("refused" in log.read_text() for log in tmp_path.glob("*/**/*.log"))


def test_what_does_not_fit_is_refused_before_anything_is_sent(tmp_path: Path) -> None:
    plan, records = planned(tmp_path / "made"), files(tmp_path)
    asked = Plan.read(plan)
    addresses = own_addresses(3)
    short = tmp_path / "short.csv"
    short.write_text("".join(records[0].read_text().splitlines(keepends=True)[:-1]))
    odd = tmp_path / "odd.csv"
    odd.write_text(records[0].read_text().replace("yes", "perhaps", 1))
    without = tmp_path / "without.csv"
    without.write_text(records[0].read_text().replace("ward", "room", 1))
    for file, broken in (
        (short, breaks("records", 399, 400)),
        (odd, breaks("records", "outcome", "perhaps")),
        (without, breaks("column", "ward")),
    ):
        with refuses(broken):
            process(plan, tmp_path / "refused", "owner0", addresses, file, spelling=Spelling(misfits="ask"))()
    for limits, broken in (
        (Limits(epsilon=0.5, delta=1e-5), breaks("limits", 0.5)),
        (Limits(schema="0" * 64), breaks("limits", "0" * 16, setting="schema")),
    ):
        with refuses(broken):
            process(plan, tmp_path / "refused", "0", addresses, None, limits=limits)()
    small = Limits(budget="0.9,1e-5", data_id="records")
    with refuses("budget", "epsilon 0.9", 1, setting="budget"):
        process(plan, tmp_path / "refused", "0", addresses, None, limits=small)()
    assert not list((tmp_path / "refused").rglob("ledger*.jsonl"))
    value = json.loads(plan.read_text())
    learning = value["source"]["learning"]
    surveys = [{**learning["survey"], **change} for change in ({"rule": 1}, {"epsilon": 0.01})]
    for change in (
        {"before": []}, {"dimension": asked.dimension + 1}, {"bounds": "public"},
        *({"source": {"learning": {**learning, "survey": survey}}} for survey in surveys),
    ):  # fmt: skip
        with pytest.raises(UsageError):
            Plan.from_text(json.dumps({**value, **change}))


@pytest.mark.parametrize(
    ("change", "broken"),
    [
        ({"delta": 0.0, "law": "laplace"}, breaks("missing", setting="delta")),
        ({"neighbours": "owner"}, breaks("together", setting="bounds")),
    ],
)
def test_pure_promises_and_whole_owners_have_no_survey(change: dict[str, Any], broken: Rule, tmp_path: Path) -> None:
    with refuses(broken):
        planned(tmp_path / "made", preprocessing="survey", **change)


DIGESTS = """
import hashlib
import sys
from pathlib import Path
import numpy as np
from dpmpc.aggregation.plan.asked import AGREED
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.plan.stages import after_first
plan = Plan.read(Path(sys.argv[1]))
for seed in range(40):
    total = np.random.default_rng(seed).integers(-(1 << 30), 1 << 36, plan.first.dimension)
    after = after_first(plan, total)
    print(hashlib.sha256(after.to_text().encode()).hexdigest())
print(after.digest(AGREED).hex())
"""


def test_what_follows_from_a_survey_is_the_same_on_every_processor(tmp_path: Path) -> None:
    """Without the vector instructions of this one, and with another processor's matrix products, the plans after 40
    surveys stay."""
    plan = planned(tmp_path / "made", "a quantity", basis="additive")
    kinds: list[dict[str, str]] = [
        {},
        {"OPENBLAS_CORETYPE": "Prescott", "NPY_DISABLE_CPU_FEATURES": "AVX2 FMA3 AVX512F AVX512CD AVX512_SKX"},
    ]
    found = []
    for kind in kinds:
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", DIGESTS, str(plan)],
            capture_output=True, text=True, check=True, timeout=HANG, env={**os.environ, **kind},
        )  # fmt: skip
        found.append(done.stdout.split())
    assert found[0] == found[1] and len(set(found[0])) == 41


def test_a_consortiums_bounds_restrict_its_survey_where_there_can_be_one(tmp_path: Path) -> None:
    text = text_of(Founding(addresses=("127.0.0.2:1000", "127.0.0.3:1000", "127.0.0.4:1000")))
    path = tmp_path / "consortium.toml"
    path.write_text(text.replace("# unknown =", "unknown ="))
    plan = read_consortium(path).plan
    assert plan.learning.survey is not None and plan.learning.survey.schema.unknown == ("ward",)
    assert plan.schema is None
    assert plan.first.source.numbers == ("age",) and plan.first.source.texts == ("ward",)  # type: ignore[attr-defined]
    assert plan.first.source.ranges == (("age", 0.0, 120.0),)  # type: ignore[attr-defined]
    path.write_text(text)
    known = read_consortium(path).plan
    assert known.learning.survey is not None and not known.learning.survey.schema.unknown
    assert any("first a survey of" in line for line in taking_part(known))
    assert known.learning.survey.schema.columns[0] == Numeric("age", 0, 120)
    for old, new in (
        ("# preprocessing =", "preprocessing ="),
        ("age = [0, 120]\n", ""),  # a list alone leaves nothing open
        ("delta = 1e-05 ", "law = 'laplace' #"),
        ('# neighbours = "record"   ', 'neighbours = "owner" '),
        ('# missing = "fill" ', 'missing = "drop" '),
        ("epsilon = 1.0 ", "epsilon = 0.01 "),  # too little for one
    ):
        assert text.count(old) >= 1, old
        path.write_text(text.replace(old, new, 1))
        assert read_consortium(path).plan.learning.survey is None, new
    asked = text.replace('# preprocessing = "records"', 'preprocessing = "survey"')
    path.write_text(asked.replace("epsilon = 1.0 ", "epsilon = 0.01 ", 1))
    with refuses("enough", 1550, 1, setting="bounds"):
        read_consortium(path)
    balanced = text.replace("# class_weight =", "class_weight = 'balanced' #")
    assert balanced != text
    path.write_text(balanced)
    survey = read_consortium(path).plan.learning.survey
    assert survey is not None and survey.balanced
    path.write_text(text.replace("# unknown =", "unknown =").replace("epsilon = 1.0 ", "epsilon = 0.01 "))
    with refuses("enough", 1550, 2, setting="bounds"):
        read_consortium(path)
