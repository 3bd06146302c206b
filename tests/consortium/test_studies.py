"""Questions, training and figures of the model in one plan over several machines, under one promise."""

import csv
import json
from collections import Counter
from pathlib import Path

import pytest

from dpmpc.aggregation.plan.guarantee import promise_of
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.plan.shown import taking_part
from dpmpc.consortium.rehearsing import write_records
from dpmpc.consortium.status import read_status
from dpmpc.consortium.toml import read_consortium
from dpmpc.dossier.facts import facts_of
from dpmpc.dossier.page import page
from dpmpc.errors import UsageError, owner_text
from dpmpc.local.named_records import looked_at
from dpmpc.planning import forecast
from dpmpc.planning.request import Request
from dpmpc.privacy.composition import spent
from dpmpc.privacy.ledgers import merge, read_ledgers
from dpmpc.records import CsvFile
from dpmpc.records.loading import opened
from dpmpc.statistics.study import Study
from dpmpc.tables.stats import reopened
from tests.machines import apart, sites
from tests.made_up_sites import EACH, OWNERS, files

HELD = 80  # of each owner
ASKED = 'queries = ["table1(age, ward) by outcome", "median(age) by ward"]'


def study(
    folder: Path, *, run: str = "", records: str = "", stats: str = ASKED, privacy: str = "epsilon = 12", rest: str = ""
) -> Path:
    """A consortium.toml that asks and trains, for the records of `made_up_sites`."""
    both = "both" in run
    parties = "".join(f'[[parties]]\nname = "p{i}"\naddress = "127.0.0.{i + 2}:11365"\n' for i in range(3))
    owners = "".join(f'[[owners]]\nname = "{"p" if both else "o"}{j}"\nrecords = {EACH}\n' for j in range(OWNERS))
    text = f"""
[run]
data_id = "{folder.name}"
{run}
{parties}{owners}
[records]
target = "outcome"
positive = ["yes"]
negative = ["no"]
{records}
[records.bounds]
age = [0, 150]
[stats]
{stats}
[stats.bounds]
ward = ["north", "south"]
[privacy]
{privacy}
delta = 1e-5
{rest or "[learning]"}
"""
    (folder / "consortium.toml").write_text(text, encoding="utf-8")
    return folder / "consortium.toml"


def counted(records: list[Path]) -> Counter[tuple[str, ...]]:
    """How many have which outcome in which ward."""
    rows = (row for path in records for row in csv.DictReader(path.read_text(encoding="utf-8").splitlines()))
    return Counter((row["outcome"], row["ward"]) for row in rows)


@pytest.mark.parametrize("kind", ["bounds", "survey", "sites of both"])
def test_every_process_has_answers_a_model_and_its_figures(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Noise moves one of four counts by more than 7 deviations once in 10^11. Whatever a record pays, held out or
    trained on, comes to the plan's epsilon by the ledgers' own composition."""
    monkeypatch.setattr(forecast, "LOUDEST", 0.5)  # with few records, for the test to be quick
    unknown = 'unknown = ["dose"]' if kind == "survey" else ""
    both = kind == "sites of both"
    file = study(tmp_path, run='role = "both"' * both, records=unknown, rest="[learning]\niterations = 4")
    plan, records = read_consortium(file).plan, files(tmp_path)
    plan.write(tmp_path / "plan.json")
    assert isinstance(plan.source, Study) and promise_of(plan).epsilon == 12.0
    assert plan.sizes == (EACH - HELD,) * OWNERS and plan.first.sizes == plan.all_sizes == (EACH,) * OWNERS
    assert (plan.first.part, plan.source.asked_first) == ("", 1)
    said = taking_part(plan)
    assert any(line.startswith("first questions of") and "50% of the budget, of all records" in line for line in said)
    assert "asks: median(age) by ward" in said and any(line.startswith("then ") for line in said)
    ends = (sites if both else apart)(tmp_path / "plan.json", tmp_path, records)
    assert ends == [None] * len(ends), ends
    names = [*"012", *(() if both else ("owner0", "owner1", "owner2"))]
    for one in ("questions/answers.json", "figures.json", "model.npz"):
        assert len({(tmp_path / name / one).read_bytes() for name in names}) == 1, one
    found = reopened(tmp_path / "1").asked(["table(outcome, ward)"]).answers[0]
    counts = {line.labels: line.number for line in found.lines if line.statistic == "count"}
    for labels, n in counted(records).items():
        number = counts[labels]
        assert number.estimate is not None and number.noise is not None and number.noise < 10
        assert abs(number.estimate - n) <= 7 * number.noise
    entries = merge(read_ledgers(tmp_path / "0"))
    runs = {name: [e for e in entries if e.run == f"{plan.run_id}{name}"] for name in {e.run[16:] for e in entries}}
    assert set(runs) == {"+questions", "+survey", "", "+evaluation"}
    whole = spent(entries, plan.data_id, delta=plan.delta).epsilon
    trained = [entry for name, of in runs.items() if name != "+evaluation" for entry in of]
    held_out = [*runs["+questions"], *runs["+evaluation"]]
    for part in (trained, held_out):
        assert 0.97 * 12 < spent(part, plan.data_id, delta=plan.delta).epsilon <= whole <= 12 + 1e-9
    status = read_status(tmp_path / names[-1])
    assert status.answers == "questions/answers.html" and status.model and status.figures is not None
    assert status.spent is not None and status.spent.releases == len(entries)
    assert "a part of what the run keeps in all" in (tmp_path / names[-1] / "questions/answers.html").read_text()
    html = page(facts_of(tmp_path / names[-1], None))
    assert "Answers to the questions" in html and "median(age) by ward" in html
    assert "Released before, by the questions" in html
    assert json.loads((tmp_path / names[-1] / "report.json").read_text())["evaluation"]["held_out"] == [HELD] * OWNERS


def test_a_file_with_learning_asks_and_trains_and_says_the_price(tmp_path: Path) -> None:
    plan = read_consortium(study(tmp_path)).plan
    assert isinstance(plan.source, Study) and plan.source.held == (HELD,) * OWNERS
    assert Plan.from_text(plan.to_text()) == plan and plan.source.tables is not None
    few = read_consortium(study(tmp_path, privacy="epsilon = 2")).plan
    assert isinstance(few.source, Study) and not few.source.held and few.sizes == few.all_sizes
    dear = read_consortium(study(tmp_path, stats=f"share = 0.1\n{ASKED}")).plan
    assert isinstance(dear.source, Study) and dear.source.price < plan.source.price < plan.epsilon
    assert promise_of(dear).epsilon == promise_of(plan).epsilon == 12.0
    assert dear.derived.mechanism.scale < plan.derived.mechanism.scale  # what is left is more
    both = read_consortium(study(tmp_path, records="test_fraction = 0"))
    assert "no records are held out" in both.notes[0]


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"stats": ASKED.replace("median(age)", "median(aeg)")}, "did you mean 'age'?"),
        ({"stats": ASKED.replace("median(age)", "median(ward)")}, "ward"),
        ({"stats": f"share = 1.5\n{ASKED}"}, "share"),
        ({"privacy": "epsilon = 0.02", "records": "test_fraction = 0"}, "off by"),
        ({"run": "min_owners = 2"}, "min_owners"),
        ({"privacy": 'law = "laplace"\nepsilon = 12'}, "Gaussian"),
        ({"rest": "[mpc]"}, ""),
        ({"rest": "[mpc]", "stats": f"share = 0.5\n{ASKED}"}, "[learning]"),
        ({"rest": '[learning]\n[synth]\ntarget = "age"', "stats": ASKED}, "a run does one of them"),
    ],
)
def test_what_cannot_be_asked_and_trained_is_refused(tmp_path: Path, said: dict[str, str], words: str) -> None:
    file = study(tmp_path, **said)
    if not words:  # without [learning] it asks alone
        assert not isinstance(read_consortium(file).plan.source, Study)
        return
    with pytest.raises(UsageError) as caught:
        read_consortium(file)
    assert words in owner_text(caught.value), caught.value


def test_an_owner_hears_of_what_is_asked_and_of_what_is_trained_on(tmp_path: Path) -> None:
    """Made-up records of a rehearsal have every column; those without one that is asked about alone are refused, on
    their owner's terminal."""
    plan = read_consortium(study(tmp_path)).plan
    write_records(plan, EACH, 1, tmp_path / "made.csv")
    lines = (tmp_path / "made.csv").read_text(encoding="utf-8").splitlines()
    names = lines[0].split(",")
    assert sorted(names) == ["age", "outcome", "ward"]
    kept = [k for k, name in enumerate(names) if name != "ward"]
    less = "\n".join(",".join(line.split(",")[k] for k in kept) for line in lines)
    (tmp_path / "less.csv").write_text(less + "\n", encoding="utf-8")
    said = {}
    for name in ("made", "less"):
        request = Request(csv=str(tmp_path / f"{name}.csv"), planned=True, evaluate=False)
        with opened(CsvFile(tmp_path / f"{name}.csv")) as (table, _):
            said[name] = [line for line in looked_at(plan, request, table, plan.all_sizes) if "refused" in line]
    assert said["made"] == [] and len(said["less"]) == 1 and "ward: not in" in said["less"][0]


@pytest.mark.parametrize("kind", ["persons", "capacity"])
def test_persons_and_places_are_asked_about_trained_on_and_held_out(kind: str, tmp_path: Path) -> None:
    """Where numbers of records are private, which takes a column of ids, if a share was stated."""
    person = '\nneighbours = "person"\nperson = "who"\nperson_rows = 2' if kind == "persons" else ""

    def written(records: str) -> Path:
        path = study(tmp_path, privacy=f"epsilon = 12{person}", records=records)
        path.write_text(path.read_text().replace(f"records = {EACH}", f"{kind} = {EACH}"), encoding="utf-8")
        return path

    made, places = read_consortium(written("")), 2 if person else 1
    assert isinstance(made.plan.source, Study) and made.plan.source.tables is not None
    assert bool(made.plan.source.held) == bool(person)
    assert bool(person) or any("held out by their ids" in note and "no figures" in note for note in made.notes)
    plan = read_consortium(written("test_fraction = 0.2")).plan
    assert isinstance(plan.source, Study) and plan.source.held == (places * HELD,) * OWNERS
    assert plan.all_sizes == (places * EACH,) * OWNERS and plan.first.sizes == plan.all_sizes
    assert promise_of(plan).epsilon == 12.0
