"""What a party imports: it is one process of many, and reads no records."""

import subprocess
import sys
from pathlib import Path

import pytest

import dpmpc.aggregation.plan.derive as plans
from dpmpc.aggregation.party.job import PartyJob
from dpmpc.aggregation.party.party import frames_due, work_out, worked_out
from dpmpc.aggregation.plan.asked import FIRST_ATTEMPT
from dpmpc.aggregation.plan.here import Here
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.circuits import gaussian, sampler


def said(code: str) -> str:
    """What a fresh process prints that runs the code."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_a_party_loads_no_reader_of_records_and_no_package_of_statistics() -> None:
    code = (
        "import sys, dpmpc.aggregation.party.party, dpmpc.mpc.replicated.backend;"
        "loaded = {m.partition('.')[0] for m in sys.modules};"
        "print(*sorted({'duckdb', 'scipy', 'sklearn', 'matplotlib', 'click'} & loaded))"
    )
    assert said(code) == ""
    assert said(code.replace("import sys,", "import sys, click,")) == "click"


def test_a_party_that_joins_has_the_whole_library_and_loads_no_engine_of_records() -> None:
    code = (
        "import sys, dpmpc.cli.join, dpmpc.consortium.start, dpmpc.records.sets;"
        "loaded = lambda: {'duckdb', '_duckdb', 'nanoarrow', 'mpmath', 'scipy', 'sklearn'} & set(sys.modules);"
        "print(*sorted(loaded())); from dpmpc.intake.engine import duckdb; duckdb.Error; print(*sorted(loaded()))"
    )
    assert said(code) in ("_duckdb", "duckdb")


def test_a_small_file_is_read_without_what_the_engine_adds_in_python(tmp_path: Path) -> None:
    """Of versions of it that can be had so: the import takes longer than to read such a file."""
    rows = "".join(f"{k},{'yes' if k % 3 else 'no'}\n" for k in range(40))
    (tmp_path / "a.csv").write_text(f"a,b\n{rows}", encoding="utf-8")
    code = (
        "import sys; from dpmpc.records import load;"
        f"n = load({str(tmp_path / 'a.csv')!r}, target='b', test_fraction=0.0).n;"
        "print(n, '_duckdb' in sys.modules and 'duckdb' in sys.modules); import duckdb; print('duckdb' in sys.modules)"
    )
    assert said(code).split() == ["40", "False", "True"]


def test_a_report_is_made_without_what_runs_and_reads_records() -> None:
    code = (
        "import sys, dpmpc.cli.report, dpmpc.dossier.facts, dpmpc.dossier.page, dpmpc.learning.model;"
        "unwanted = ['local.owner_process', 'consortium.toml', 'tables.stats', 'aggregation.party.party'];"
        "unwanted += ['records.loading'];"
        "print(*sorted({f'dpmpc.{name}' for name in unwanted} & set(sys.modules)))"
    )
    assert said(code) == ""


def test_a_site_answers_questions_without_a_package_of_statistics() -> None:
    code = (
        "import sys, numpy as np;"
        "from dpmpc.statistics.intervals import Level;"
        "from dpmpc.statistics.quantile import quantile;"
        "from dpmpc.statistics.kinds.survival import log_rank;"
        "told = [quantile(np.full(15, 9.0), 1.0, 0.5, Level())];"
        "told.append(log_rank(np.full((2, 3), 20.0), np.full((2, 4), 30.0), 1.0, 1));"
        "print(None in told, *sorted({'scipy', 'sklearn', 'pandas'} & set(sys.modules)))"
    )
    assert said(code) == "False"


def test_of_a_plan_that_was_worked_out_a_party_makes_neither_tables_nor_programs() -> None:
    text = Plan.create(owners=3, dimension=7, clip=1.0, delta=1e-5, releases=2, epsilon=0.987, run_id="once").to_text()
    work_out(text)
    before = gaussian._plan_gaussian.cache_info().misses, sampler.noise_program.cache_info().misses
    plan = Plan.from_text(text)
    assert frames_due(plan, plan.releases)[0] > 0
    assert (gaussian._plan_gaussian.cache_info().misses, sampler.noise_program.cache_info().misses) == before
    frames_due(Plan.from_text(text.replace("0.987", "0.988")), 2)  # another promise: another table, another program
    assert gaussian._plan_gaussian.cache_info().misses > before[0]
    assert sampler.noise_program.cache_info().misses > before[1]


def test_a_plan_that_was_worked_out_is_read_and_derived_once_for_all_parties(monkeypatch: pytest.MonkeyPatch) -> None:
    derived, derive = list[str](), plans.derive

    def counted(plan: Plan) -> plans.Derived:
        derived.append(plan.run_id)
        return derive(plan)

    monkeypatch.setattr(plans, "derive", counted)
    made = [Plan.create(owners=3, dimension=7, clip=1.0, delta=1e-5, run_id=name) for name in ("one", "other")]
    wanted = [plan.digest(FIRST_ATTEMPT) for plan in made]
    work_out(made[0].to_text())
    derived.clear()
    found = []
    for index in range(3):
        job = PartyJob(made[0], index, [], [], Here(out=Path())).to_json()
        found.append(PartyJob.from_json(job, worked_out).plan)
    assert {plan.digest(FIRST_ATTEMPT) for plan in found} == {wanted[0]} and not derived
    job = PartyJob(made[1], 0, [], [], Here(out=Path())).to_json()  # another plan is derived where it is read
    assert PartyJob.from_json(job, worked_out).plan.digest(FIRST_ATTEMPT) == wanted[1] and derived == ["other"]
    for k in range(20):
        work_out(Plan.create(owners=3, dimension=7, clip=1.0, delta=1e-5, run_id=f"run {k}").to_text())
    assert len(worked_out) < 20 and made[0].to_text() not in worked_out
