"""Questions and synthetic tables over several machines about columns of which a consortium's file says names alone:
words are opened first, then a survey finds what the columns hold, then answers or rows follow, under one promise."""

import json
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import norm

from dpmpc.aggregation.plan.plan import Plan
from dpmpc.consortium.joining import Joining, try_out
from dpmpc.consortium.kit import write_kits
from dpmpc.consortium.toml import read_consortium
from dpmpc.intake.hashing import BUCKETS, bucket
from dpmpc.local.named_records import held_against
from dpmpc.privacy.guarantee import failure_factor
from dpmpc.records import CsvFile
from dpmpc.records.loading import opened
from tests.local.test_spelled_columns import WARDS, _files, delta_of
from tests.machines import apart
from tests.refusals import Rule, breaks, refuses

RECORDS = '[records]\nunknown = ["ward", "age"]\nspell = ["ward"]\n'
STATS = '[stats]\nqueries = ["mean(age) by ward", "count by ward"]\nhopeless = "allow"\n'
SYNTH = '[synth]\ntarget = "ward"\nhopeless = "allow"\n'


def read(folder: Path, text: str, records: int = 4000, epsilon: float = 2.0) -> Plan:
    folder.mkdir(parents=True, exist_ok=True)
    parties = "".join(f'[[parties]]\naddress = "127.0.0.{k + 2}:11365"\n' for k in range(3))
    owners = f"[[owners]]\nrecords = {records}\n" * 3
    head = f'[run]\ndata_id = "x"\nrun_id = "r"\ntls = false\n{parties}{owners}'
    head += f"[privacy]\nepsilon = {epsilon}\ndelta = 1e-5\n"
    (folder / "consortium.toml").write_text(head + text, encoding="utf-8")
    return read_consortium(folder / "consortium.toml").plan


@pytest.mark.parametrize("asked", [STATS, SYNTH])
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_words_survey_and_what_follows_keep_one_promise(tmp_path: Path, asked: str, epsilon: float) -> None:
    """By a route of its own: mu of all stages add up in squares, and delta at the epsilon is a closed form. Without
    words the survey and what follows may have less noise: their part comes out of the same promise."""
    plan = read(tmp_path, RECORDS + asked, epsilon=epsilon)
    kinds = [stage.source.KIND for stage in plan.source.schedule.before]
    assert kinds[:2] == ["naming", "survey"] and plan == Plan.from_text(plan.to_text())
    every = [*((each.derived.mechanism, 1) for each in plan.ahead), (plan.derived.mechanism, 1)]
    assert 0.9e-5 < delta_of(every, epsilon) <= 1e-5
    plain = read(tmp_path, RECORDS.replace('spell = ["ward"]\n', "") + asked, epsilon=epsilon)
    assert plain.derived.mechanism.scale < plan.derived.mechanism.scale
    assert "naming" not in [stage.source.KIND for stage in plain.source.schedule.before]


@pytest.mark.parametrize(("asked", "result"), [(STATS, "opened.json"), (SYNTH, "synthetic.json")])
def test_words_are_a_stage_of_questions_and_rows_over_machines(tmp_path: Path, asked: str, result: str) -> None:
    """Six processes of their own; every one ends with the same plan, and answers and rows name the wards."""
    plan = read(tmp_path / "made", RECORDS + asked, 400, 12.0)
    plan.write(tmp_path / "plan.json")
    ends = apart(tmp_path / "plan.json", tmp_path, _files(tmp_path))
    assert ends == [None] * 6, ends
    found = {
        json.dumps(_own(tmp_path / name), sort_keys=True, ensure_ascii=False)
        for name in ("0", "1", "2", "owner0", "owner1")
    }
    assert len(found) == 1 and all(word in next(iter(found)) for word in WARDS)
    assert not any(word in path.read_text() for word in WARDS for path in tmp_path.glob("*/made/*"))


def _own(folder: Path) -> Any:
    """The plan of a process's own releases, in which columns are as they were found."""
    path = next(path for name in ("plan.json", "plan_*.json") for path in sorted(folder.glob(name)))
    return json.loads(path.read_text(encoding="utf-8"))


STATED = "[records.bounds]\nage = [0, 100]\n"


@pytest.mark.parametrize(
    ("text", "broken"),
    [
        (RECORDS + STATED + STATS, breaks("together", "bounds")),
        (RECORDS + STATS + "[stats.bounds]\nage = [0, 100]\n", breaks("together", "[stats.bounds]")),
        (RECORDS + "[synth]\ncuts = { age = [20, 40] }\n", breaks("together")),
        (RECORDS + '[synth]\ntarget = "sex"\n', breaks("column", "'sex'")),
        (RECORDS + STATS.replace("mean(age)", "mean(height)"), breaks("column", "height")),
        (
            RECORDS.partition("\n")[0] + '\nspell = ["ward"]\n' + STATED + STATS,
            breaks("column", "'ward'", setting="named"),
        ),
        (RECORDS + STATS.replace("allow", "refuse"), breaks("enough", 120, setting="bounds")),
        (RECORDS + SYNTH.replace("allow", "refuse"), breaks("enough", 120, setting="bounds")),
    ],
)
def test_what_cannot_be_is_said_before_anything_is_spent(tmp_path: Path, text: str, broken: Rule) -> None:
    with refuses(broken):
        read(tmp_path, text, records=40, epsilon=0.5)


@pytest.mark.parametrize("asked", [STATS, SYNTH])
def test_a_site_reads_which_words_it_would_vote_for(tmp_path: Path, asked: str) -> None:
    """`check` and the run's own trial say them, by counts of the fields themselves, and how many records of all owners
    a word needs; a word that is no vote (a number, a field that is empty) is counted as none."""
    plan = read(tmp_path, RECORDS + asked, 300)
    wards = ["Station 4b"] * 90 + ["Süd/Akut"] * 120 + [""] * 50 + ["17"] * 39 + ["x" * 65]
    (tmp_path / "mine.csv").write_text("ward,age\n" + "".join(f"{w},{20 + k % 60}\n" for k, w in enumerate(wards)))
    with opened(CsvFile(tmp_path / "mine.csv")) as (table, _):
        said = held_against(plan, table, (300,)).lines()
    (told,) = [line for line in said if line.startswith("note: ward: would vote")]
    assert "'Süd/Akut' [bucket" in told and told.index("x 120") < told.index("'Station 4b' [bucket") < told.index(
        "x 90"
    )
    assert (
        f"[bucket {bucket('ward', 'Station 4b', BUCKETS)}] x 90" in told and "90 records of 300 vote for none" in told
    )
    assert "x" * 65 not in told and "'17'" not in told
    (needs,) = [line for line in said if line.startswith("note: words: ")]
    source = plan.first.source
    z, sigma = norm.isf(plan.delta / 10 / (2 * failure_factor(plan.epsilon))), plan.first.derived.mechanism.scale
    due = 2 + (z + norm.isf(0.05)) * sigma * plan.first.grid.step
    (least,) = [int(word) for word in needs.split() if word.isdecimal() and word not in ("900", "256", "64")]
    assert due <= least <= due + 3 and source.KIND == "naming"


def test_a_dry_run_says_them_and_sends_none(tmp_path: Path) -> None:
    """Of a site by itself, whose others are not there: nothing of the words is in any file, and none of its folder's
    files is other than before."""
    read(tmp_path, RECORDS + STATS, 300)
    write_kits(read_consortium(tmp_path / "consortium.toml"), tmp_path / "kits", tmp_path / "authority")
    kit, said = tmp_path / "kits" / "owner0", list[str]()
    (kit / "records.csv").write_text("ward,age\n" + "Geheim 7,40\n" * 300)
    before = {path: path.read_bytes() for path in kit.rglob("*") if path.is_file()}
    with refuses("peer", setting="addresses"):
        asked = Joining.of(csv=str(kit / "records.csv"), wait=0.1)
        try_out(kit, asked, lambda event: said.append(event["text"]))
    at = next(k for k, line in enumerate(said) if "'Geheim 7' [bucket" in line and line.endswith("x 300"))
    assert said[at].startswith("your records: ") and at < said.index("meeting the other sites, which try the same")
    assert {path: path.read_bytes() for path in kit.rglob("*") if path.is_file()} == before
    assert not any(
        b"Geheim" in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file() and path not in before
    )


def test_a_rehearsal_makes_up_words_for_what_is_unknown(tmp_path: Path) -> None:
    """And numbers where a question needs them: or no question could be asked."""
    plan = read(tmp_path, RECORDS + STATS, 300)
    assert dict(plan.source.invented(None)) == {"ward": ["a", "b", "c"], "age": (0.0, 1.0)}
    rows = read(tmp_path / "rows", RECORDS + SYNTH, 300)
    assert dict(rows.source.invented(None)) == {"ward": ["a", "b", "c"], "age": ["a", "b", "c"]}
