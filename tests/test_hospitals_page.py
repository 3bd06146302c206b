"""docs/hospitals.md runs as it stands: seven folders of messy CSV, three parties, one file, TLS; and what it tells is
held against the pooled records."""

import csv
import json
import re
import shlex
import subprocess
from pathlib import Path

import numpy as np
import pytest
from commands import parsed
from runs import HANG, own_addresses
from test_consortium_page import ROOT, shell

from dpmpc.aggregation.plan.plan import Plan
from dpmpc.consortium.status import read_status
from dpmpc.learning.model import read_model
from dpmpc.local.holdout import rows_of
from dpmpc.planning.request import Request
from dpmpc.records import CsvFile
from dpmpc.records.loading import opened
from dpmpc.records.schema import Schema
from dpmpc.statistics.held_out import HELD_OUT

PAGE = (ROOT / "docs" / "hospitals.md").read_text(encoding="utf-8")
WIDE = 7.0  # deviations: false alarms below 3e-12 a number
Rows = list[dict[str, str]]


def pooled(folder: Path, hospitals: int = 7, first: int = 0) -> Rows:
    """All records of so many hospitals, as a person would read them."""
    found: Rows = []
    for k in range(first, first + hospitals):
        text = (folder / f"hospital{k}.csv").read_text(encoding="utf-8")
        for row in csv.DictReader(text.splitlines(), delimiter=";" if ";" in text[:30] else ","):
            found.append({name: value.strip().replace(",", ".") for name, value in row.items()})
    return found


def age_of(row: dict[str, str]) -> float | None:
    try:
        return float(row["age"])
    except ValueError:
        return None


def wrong(answers: Rows, rows: Rows) -> list[str]:
    """Which of the answers are further from the records' own than `WIDE` deviations of the noise."""
    told = {(a["question"].split("(")[0], a["labels"], a["statistic"]): a for a in answers if a["estimate"]}
    bad: list[str] = []

    def hold(key: tuple[str, str, str], exact: float, slack: float = 0.0) -> None:
        found = told[key]
        if abs(float(found["estimate"]) - exact) > WIDE * float(found["noise"]) + slack:
            bad.append(f"{key}: {found['estimate']}, exactly {exact}")

    for outcome in ("well", "ill"):
        group = [row for row in rows if row["outcome"] == outcome]
        ages = [age for row in group if (age := age_of(row)) is not None]
        hold(("table1", f"outcome={outcome}; column=age; level=", "mean"), float(np.mean(ages)))
        for column, level in (("sex", "f"), ("sex", "m"), ("arm", "new"), ("arm", "usual")):
            count = sum(row[column] == level for row in group)
            hold(("table1", f"outcome={outcome}; column={column}; level={level}", "count"), count)
    for sex in "fm":
        ages = [age for row in rows if row["sex"] == sex and (age := age_of(row)) is not None]
        hold(("median", f"sex={sex}", "median"), float(np.median(ages)), slack=0.7)  # leaves of a third of a year
    for arm in ("new", "usual"):
        group = [row for row in rows if row["arm"] == arm]
        for end in (12, 24, 36):  # no record is censored before the end
            alive = sum(float(row["months"]) > end or row["died"] == "0" for row in group) / len(group)
            hold(("km", f"arm={arm}; months={end}", "survival"), alive, slack=0.01)
    return bad


def auc_of(folder: Path) -> tuple[float, float, float]:
    """(the AUC of the consortium's model over the records that the hospitals held out, as a person would work it out,
    the figure that was opened, and the deviation of its noise)."""
    plan = Plan.read(folder / "kits" / "bern" / "plan.json")
    parted, run = plan.source.parted(plan.data_id), folder / "kits" / "bern" / "run"
    assert parted is not None
    read = read_model(run)
    schema = Schema.from_json(read.preprocessing)
    weights = dict(zip(schema.feature_names, np.ravel(read.theta), strict=True))
    rising = next(value for name, value in weights.items() if name.startswith("age"))
    sexes = {sex: next(value for name, value in weights.items() if name.endswith(f"={sex}")) for sex in "fm"}
    scores, ill = [], []
    for k in range(7):
        file, label = folder / f"hospital{k}.csv", parted.assignment.label(HELD_OUT)
        request = Request(csv=str(file), planned=True, evaluate=False)
        with opened(CsvFile(file)) as (table, _):
            held = rows_of(request, plan, parted, label, k, table)
        for row, out in zip(pooled(folder, 1, k), held, strict=True):
            if out and (years := age_of(row)) is not None:
                scores.append(rising * (2 * (years - 18) / (100 - 18) - 1) + sexes[row["sex"]])
                ill.append(row["outcome"] == "ill")
    ranks, positive = np.argsort(np.argsort(scores)) + 1, np.array(ill)
    exact = (ranks[positive].sum() - sum(ill) * (sum(ill) + 1) / 2) / (sum(ill) * (len(ill) - sum(ill)))
    told = json.loads((run / "figures.json").read_text())["figures"]["numbers"]["AUC"]
    return float(exact), told["estimate"], told["noise"]


@pytest.mark.slow
def test_seven_hospitals_get_their_table_by_the_page(tmp_path: Path) -> None:
    text = "".join(re.findall(r"^```sh\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL))
    for i, address in enumerate(own_addresses(3)[1::2]):
        assert text.count(f"127.0.0.{i + 2}:11365") == 1
        text = text.replace(f"127.0.0.{i + 2}:11365", address)
    done = subprocess.run(
        ["sh", "-u"], input=text, cwd=tmp_path, env=shell(tmp_path), capture_output=True, text=True, timeout=HANG
    )
    logs = "".join(path.read_text() for path in tmp_path.glob("*.log"))
    assert done.returncode == 0, (done.stderr, logs)
    folders = sorted(path for path in (tmp_path / "kits").iterdir() if path.is_dir())
    assert len(folders) == 10
    for name in ("questions/answers.json", "figures.json", "model.npz"):  # parties and owners alike
        assert len({(folder / "run" / name).read_bytes() for folder in folders}) == 1, name
    for folder in folders:
        found = read_status(folder)
        assert [state.phase for state in found.processes] == ["finished"] and found.answers and found.model
        assert found.spent is not None and found.spent.stages == ("evaluation", "questions", "survey")
        assert found.planned == found.spent.releases
        assert found.spent.epsilon == pytest.approx(1.0, rel=0.01) and found.spent.epsilon <= 1
    answers = list(csv.DictReader((folders[0] / "run" / "questions" / "answers.csv").read_text().splitlines()))
    assert wrong(answers, pooled(tmp_path)) == []
    assert len(wrong(answers, pooled(tmp_path, 6))) > 5  # a hospital less is seen
    exact, estimate, noise = auc_of(tmp_path)
    assert exact > 0.7 and abs(estimate - exact) <= WIDE * noise + 0.01 and noise < 0.05
    assert "asks: median(age) by sex" in done.stdout and "% of the promise; off by: counts by" in done.stdout
    said = done.stdout + done.stderr
    assert "your records: column 'age'" in said and "state --decimal ," in said
    assert "the answers: kits/bern/run/questions/answers.html" in said and "charite (party 0): finished" in said
    assert "# " in (tmp_path / "table1.md").read_text() and "<svg" in (tmp_path / "bern.html").read_text()
    report = json.loads((tmp_path / "kits" / "bern" / "run" / "report.json").read_text())
    assert report["owner_names"][1] == "bern" and report["owners_checked"]["mode"] == "stop"
    for process in ("bern", "charite"):  # what the records look like stands in no file
        for path in (tmp_path / "kits" / process / "run").rglob("*.*"):
            assert b"unknown' x" not in path.read_bytes(), path


def test_every_command_of_the_page_is_one() -> None:
    lines = PAGE.replace("\\\n", " ").splitlines()
    found = [line for line in lines if line.startswith("dpmpc ")]
    assert len(found) >= 10
    for words in found:
        parsed(shlex.split(re.sub(r" 2?>.*", "", words))[1:])
