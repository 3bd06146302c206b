"""Another package's law, backend, method, task and source: one entry each, and every command has them. The package is
the template under examples/."""

import csv
import importlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dpmpc.extend import SOURCES, plan_of
from tests.forked_commands import Command, commands
from tests.machines import apart
from tests.runs import COMMAND, HANG, own_addresses

TEMPLATE = Path(__file__).parents[1] / "examples" / "extension"
INSTALLED = Path(tempfile.mkdtemp())
_commands: list[Command] = []  # the one that forks, while this module's tests run
SMALL = ["--data", "synthetic", "--max-rows", "120", "--dimension", "4", "--owners", "3", "--epsilon", "2"]


@pytest.fixture(scope="module", autouse=True)
def installed() -> Iterator[None]:
    """What pip writes for the template: its entry points, read from its pyproject.toml. A worker that steals a test
    back sets it up a second time."""
    info = INSTALLED / "my_dpmpc-0.1.dist-info"
    info.mkdir(parents=True)
    project = tomllib.loads((TEMPLATE / "pyproject.toml").read_text())["project"]
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    lines = [
        line
        for group, entries in project["entry-points"].items()
        for line in (f"[{group}]", *(f"{name} = {place}" for name, place in entries.items()))
    ]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
    with commands(with_toys_environment) as command:
        _commands.append(command)
        yield
        _commands.clear()
    shutil.rmtree(INSTALLED)


PROGRAM = """
from dpmpc.extend import check_backend, check_law, check_method, check_question, check_source, check_task
from my_dpmpc.source import Halves
if __name__ == "__main__":
    # two digits, four at 1,000; of 200 samples a digit that is lost, or a third or three times the scale, always fails
    ran = check_law("double-laplace", scale=20.0, backends=("shamir", "mpyc", "ot"), drawn=200)
    assert ran == {"tables": ("shamir", "mpyc", "ot"), "two-heaps": ("ot",)}, ran
    assert check_backend("boxed", (3,)) == 1
    assert 0.5 < check_method("centroid") <= 1
    check_source(Halves(("a", "b", "c"), (0.5, 0.5, 2.0)), (10, 20))
    assert 0.99 < check_task("poisson", trials=50) <= 1  # as ours
    lines = ["diversity(ward)", "diversity(age, bins=4) by ward", "diversity(ward) where age in 20..40"]
    assert 0.99 < check_question(lines, {"ward": ["a", "b", "c"], "age": [0, 90]}) <= 1 + 1e-9
    print("all pass")
"""


def test_the_commands_of_the_template_run_as_they_stand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All lines of its page, one after the other, in a folder with the file that they name; what pip does is done."""
    monkeypatch.chdir(tmp_path)
    rows = [f"{20 + k % 60},{'ulm' if k < 120 else 'bern'}" for k in range(200)]
    (tmp_path / "all.csv").write_text("\n".join(["age,site", *rows, ""]))
    text = (TEMPLATE / "README.md").read_text().partition("```\n")[2].partition("```")[0]
    install, *lines = text.strip().splitlines()
    assert install == "pip install -e ." and len(lines) >= 5
    for line in lines:
        name, *words = shlex.split(line)
        assert name in ("dpmpc", "python")
        made = with_toys(*words) if name == "dpmpc" else python(*words)
        assert made.returncode == 0, (line, made.stdout, made.stderr)
    assert {path.name for path in (tmp_path / "runs").iterdir()} == {"centroid", "halves"}
    assert "age" in (tmp_path / "runs" / "halves" / "answers.txt").read_text()


def python(*words: str) -> "subprocess.CompletedProcess[str]":
    """An interpreter to which the other package is installed."""
    command = [sys.executable, *words]
    environment = with_toys_environment()
    return subprocess.run(command, capture_output=True, text=True, timeout=HANG, check=False, env=environment)


def test_they_pass_the_conformance_tests(tmp_path: Path) -> None:
    assert program(tmp_path, PROGRAM) == "all pass"


def program(folder: Path, text: str, *arguments: str) -> str:
    """What a program prints, where the other package is installed."""
    (folder / "program.py").write_text(text)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TEMPLATE), str(INSTALLED), str(TEMPLATE.parents[1])])}
    command = [sys.executable, str(folder / "program.py"), *arguments]
    result = subprocess.run(command, capture_output=True, text=True, timeout=HANG, check=False, env=env)
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


COUNTS = """
import sys
import numpy as np
from scipy.optimize import minimize
from dpmpc.records.blocks import in_memory
from dpmpc.estimators import PrivateRegressor
from dpmpc.learning.erm_blocks import solve
from my_dpmpc.poisson import PoissonLoss

r = np.random.default_rng(4)
X = r.uniform(size=(4000, 3))
y = r.poisson(np.exp(X @ [1.5, -1.0, 0.7]))

# the optimum is that of the printed Poisson likelihood, by another solver, where nothing is clipped
rows, u, lam = X / 2, y / y.max(), 1e-3
ours = solve(PoissonLoss(2.0), in_memory(rows, 2 * u - 1), lam).theta
def printed(theta):
    s = rows @ theta
    return 2 * np.mean(np.exp(s) - u * s) + lam / 2 * theta @ theta
theirs = minimize(printed, np.zeros(3), tol=1e-12, options={"gtol": 1e-9}).x
assert (rows @ theirs).max() < 0 and np.abs(ours - theirs).max() < 1e-5, (ours, theirs)

# no survey, whose noise would decide which of the two is better: so the gap is .181 and moves by .001
known = dict(bounds=(0, 1), target_bounds=(0, 20), epsilon=5.0, engine="clear", preprocessing="records")
far = np.array([[0.0, 5.0, -9.0], [9.0, -5.0, 5.0]])
poisson = PrivateRegressor(task="poisson", **known).fit(X, y)
ridge = PrivateRegressor(task="ridge", **known).fit(X, y)
assert poisson.schema_.task == "poisson" and poisson.schema_.target.low == 0
assert 0 <= poisson.predict(np.vstack([X, far])).min() and poisson.predict(far).max() <= 20
assert poisson.score(X, y) > ridge.score(X, y) + 0.02, (poisson.score(X, y), ridge.score(X, y))
surveyed = PrivateRegressor(task="poisson", epsilon=5.0, engine="clear", data_id="others").fit(X, y)
assert surveyed.schema_.bounds == "survey" and surveyed.schema_.target.low == 0
assert surveyed.predict(X).min() >= 0
try:
    PrivateRegressor(task="logistic").fit(X, y)
except ValueError as error:
    assert "the task logistic is for classes" in str(error)
np.savetxt(sys.argv[1], np.column_stack([X, y])[:600], delimiter=",", header="a,b,c,visits", comments="", fmt="%g")
print("all hold")
"""
CONSORTIUM = """
[run]
data_id = "visits"
tls = false
{sites}
[records]
{target}
[records.bounds]
a = [0, 1]
b = [0, 1]
[learning]
{learning}
[privacy]
epsilon = 1
delta = 1e-4
law = "{law}"
[limits]
budget = "1.01,1e-4"
"""


def rehearsed(folder: Path, **asked: str) -> Path:
    """The kits of a consortium of three parties and two owners, all of whose processes have made a whole run here."""
    addresses = own_addresses(3)[1::2]
    parties = "".join(f'[[parties]]\nname = "p{i}"\naddress = "{a}"\n' for i, a in enumerate(addresses))
    owners = "".join(f'[[owners]]\nname = "o{j}"\nrecords = {40 + j}\n' for j in range(2))
    (folder / "consortium.toml").write_text(CONSORTIUM.format(sites=parties + owners, **asked))
    for words in (("kit", folder / "consortium.toml", "--out", folder / "kits"), ("rehearse", folder / "kits")):
        result = with_toys(*words)
        assert result.returncode == 0, result.stdout + result.stderr
    return folder / "kits"


def test_a_consortium_trains_by_a_method_of_another_package(tmp_path: Path) -> None:
    target = 'target = "ill"\npositive = ["yes"]\nnegative = ["no"]'
    kits = rehearsed(tmp_path, target=target, learning='method = "centroid"', law="gaussian")
    plan = json.loads((kits / "o0" / "plan.json").read_text())
    assert plan["source"]["learning"]["method"] == "centroid" and plan["releases"] == 1


def test_counts_are_regressed_on_every_surface(tmp_path: Path) -> None:
    """Poisson regression of another package: the estimator, the command line, a consortium, there with its law too."""
    records = tmp_path / "visits.csv"
    assert program(tmp_path, COUNTS, str(records)) == "all hold"
    out = tmp_path / "run"
    asked = ["--csv", records, "--target", "visits", "--owners", 3, "--epsilon", 5, "--delta", "1e-4"]
    result = with_toys("train", *asked, "--task", "poisson", "-M", 3, "--iterations", 20, "--out", out)
    assert result.returncode == 0 and "R2" in result.stdout, result.stderr
    report = json.loads((out / "report.json").read_text())
    assert report["learning"]["task"] == report["loss"]["name"] == "poisson" and report["loss"]["L"] == 2
    said = with_toys("predict", out, "--csv", records)
    numbers = [float(line.partition(",")[2]) for line in said.stdout.splitlines()[1:]]
    assert said.returncode == 0 and len(numbers) == 600 and min(numbers) >= 0, said.stderr
    assert with_toys("report", out).returncode == 0
    assert "that gives an expected count" in (out / "report.html").read_text()
    verified = with_toys("verify", out, "--structure")
    assert verified.returncode == 0 and "10 of 10" in verified.stdout, verified.stdout + verified.stderr
    target = 'target = "visits"\nrange = [0, 20]\ntask = "poisson"'
    rehearsed(tmp_path, target=target, learning="iterations = 2", law="double-laplace")


SURFACES = """
import importlib.util
import sys
from pathlib import Path
import numpy as np
import dpmpc
from dpmpc.estimators import PrivateLogisticRegression
from dpmpc.extend import Here, outcome_of, plan_of
from my_dpmpc.source import Halves

if __name__ == "__main__":
    law, rng = {"law": "double-laplace", "epsilon": 50.0}, np.random.default_rng(1)
    vectors = rng.normal(size=(5, 3)) / 4
    for engine in ("mpc", "clear"):
        with dpmpc.Aggregator(owners=5, dimension=3, clip=1.0, engine=engine, **law) as aggregator:
            assert np.abs(aggregator.mean(vectors) - vectors.mean(axis=0)).max() < 1
            assert aggregator.report()["privacy"]["law"] == "double-laplace"
    assert np.abs(dpmpc.private_mean(vectors, clip=1.0, engine="clear", **law) - vectors.mean(axis=0)).max() < 1
    X = rng.normal(size=(300, 3))
    fit = PrivateLogisticRegression(method="centroid", bounds=(-3, 3), classes=[0, 1], engine="clear", **law)
    fit.fit(X, (X[:, 0] > 0).astype(int))
    assert fit.report_["privacy"]["law"] == "double-laplace" and np.isfinite(fit.coef_).all()
    plan = plan_of(Halves(("a", "b"), (0.5, 0.5)), (40, 50), data_id="halves", **law)
    folder = Path(sys.argv[1]) / "halves"
    with dpmpc.Aggregator.of_plan(plan, Here(out=folder)) as aggregator:
        release = aggregator.open(np.array([[0.25, 0.5], [0.75, 0.5]]))
        aggregator.finish()
    found = outcome_of(plan, release, folder)
    numbers = [line.number for line in found.answers[0].lines]
    truth = [(40 * 0.25 + 50 * 0.75) / 90, 0.5]
    assert np.abs(np.array([n.estimate for n in numbers]) - truth).max() < 0.1, numbers
    assert all(n.low < n.estimate < n.high for n in numbers)
    assert "upper halves" in (folder / "answers.html").read_text() and (folder / "opened.json").exists()
    if importlib.util.find_spec("flwr") is not None:
        from tests.flower import test_flower as flower
        folder = flower.plan(Path(sys.argv[1]) / "plan", law="double-laplace")
        _, private, _ = flower.run(folder, Path(sys.argv[1]) / "run")
        assert private.report()["privacy"]["law"] == "double-laplace"
    print("all ran")
"""


def test_law_method_and_source_run_from_python(tmp_path: Path) -> None:
    """Through parties and in the clear, in an estimator, in a Flower app. At this epsilon noise moves a mean by its
    bound with probability below 1e-9: it is 25 scales away, of the widest noise here."""
    assert program(tmp_path, SURFACES, str(tmp_path)) == "all ran"
    made = with_toys("report", tmp_path / "halves")
    assert made.returncode == 0 and "Shares of the upper halves" in (tmp_path / "halves" / "report.html").read_text()


def test_a_source_is_sent_and_opened_over_several_machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its plan alone, as `dpmpc train --plan` and `dpmpc join` do it: every owner reads its records, the parties add
    up, and every owner writes what the source says of the sum. An error of 0.05 is 100 scales of the noise."""
    monkeypatch.syspath_prepend(TEMPLATE)
    kind: Any = importlib.import_module("my_dpmpc.source").Halves
    monkeypatch.setattr(SOURCES, "_targets", {**SOURCES._targets, "halves": ""})
    monkeypatch.setattr(SOURCES, "_loaded", {**SOURCES._loaded, "halves": kind})
    plan = plan_of(kind(("a", "b"), (0.5, 3.0)), (40, 60), data_id="halves", epsilon=50.0, law="laplace")
    plan.write(tmp_path / "plan.json")
    records = [tmp_path / "first.csv", tmp_path / "second.csv"]
    for path, size, upper in zip(records, plan.sizes, (10, 45), strict=True):
        path.write_text("\n".join(["b,a", *(f"{k % 4},{0.9 if k < upper else 0.1}" for k in range(size)), ""]))
    assert apart(tmp_path / "plan.json", tmp_path, records) == [None] * 5
    said = [json.loads((tmp_path / f"owner{j}" / "opened.json").read_text()) for j in range(2)]
    assert said[0] == said[1] and said[0]["source"] == "halves" and said[0]["owners"] == [0, 1]
    assert said[0]["upper halves"] == pytest.approx({"a": 0.55, "b": 0.25}, abs=0.05)
    report = json.loads((tmp_path / "owner0" / "report.json").read_text())
    assert report["privacy"]["epsilon"] == 50 and report["source"] == "halves"
    assert {row["labels"]["column"] for row in report["outcome"]["numbers"]} == {"a", "b"}
    assert apart(tmp_path / "plan.json", tmp_path, records) == [None] * 5, "it is over, and is not made again"
    short = replace(plan, run_id="short", sizes=(41, 60))
    short.write(tmp_path / "short.json")
    ends = apart(tmp_path / "short.json", tmp_path / "short", records, wait=2.0)
    assert any("as many training records as the plan says" in str(end) for end in ends), ends
    two = replace(plan, run_id="two", releases=2)
    two.write(tmp_path / "two.json")
    ends = apart(tmp_path / "two.json", tmp_path / "two", records, wait=2.0)
    assert any("makes one release" in str(end) for end in ends), ends


SHARES = """
[run]
data_id = "ward"
tls = false
wait = 240
{sites}
[source.halves]
names = ["age", "dose"]
middles = [50, 10]
[privacy]
epsilon = 20
law = "laplace"
"""
AGED, DOSED = 0.5, 0.25  # the shares that both owners' records below have in the upper halves


def ward(folder: Path, records: int) -> Path:
    path = folder / f"ward{records}.csv"
    rows = [f"{51 if k % 2 else 40},{30 if k % 4 == 0 else 1},{k}" for k in range(records)]
    path.write_text("\n".join(["age,dose,id", *rows, ""]))
    return path


def test_a_source_of_another_package_has_every_surface(tmp_path: Path) -> None:
    """Its plan from a consortium's file, kits, a rehearsal with made-up records, `check`, `join` at parties and owners,
    numbers with intervals in every form, report.json, the page of `report`: all by what the source says of itself, and
    by processes of their own. Noise of scale 1/80 in a share misses .2 with probability e^-16 for each of two shares.
    """
    addresses = own_addresses(3)[1::2]
    sites = "".join(f'[[parties]]\nname = "p{i}"\naddress = "{a}"\n' for i, a in enumerate(addresses))
    sites += "".join(f'[[owners]]\nname = "o{j}"\nrecords = {n}\n' for j, n in enumerate((80, 120)))
    (tmp_path / "consortium.toml").write_text(SHARES.format(sites=sites))
    kits = tmp_path / "kits"
    for words in (("plan", tmp_path / "consortium.toml"), ("kit", tmp_path / "consortium.toml", "--out", kits)):
        result = with_toys(*words)
        assert result.returncode == 0, result.stdout + result.stderr
    assert "the shares come to `run/opened.json`" in (kits / "o0" / "README.md").read_text()
    rehearsal = with_toys("rehearse", kits)
    assert rehearsal.returncode == 0 and "5 sites" in rehearsal.stdout, rehearsal.stdout + rehearsal.stderr

    records = [ward(tmp_path, 80), ward(tmp_path, 120)]
    for j, path in enumerate(records):
        checked = with_toys("check", "--plan", kits / f"o{j}" / "plan.json", "--csv", path)
        assert checked.returncode == 0 and "what run" in checked.stdout, checked.stdout + checked.stderr
    for bad, says in ((records[1], "as many"), (named(tmp_path, "age,weight\n1,2\n"), "dose: not in")):
        checked = with_toys("check", "--plan", kits / "o0" / "plan.json", "--csv", bad)
        assert checked.returncode == 1 and says in checked.stdout, checked.stdout + checked.stderr

    own = [[], [], [], ["--csv", records[0]], ["--csv", records[1]]]
    names = ["p0", "p1", "p2", "o0", "o1"]
    started = [joining(kits / name, tmp_path / "account", *more) for name, more in zip(names, own, strict=True)]
    said = [process.communicate(timeout=HANG)[0] for process in started]
    assert [process.returncode for process in started] == [0] * 5, said
    folders = [kits / name / "run" for name in names]
    for form in ("opened.json", "answers.txt", "answers.md", "answers.csv", "answers.json", "answers.html"):
        assert len({(folder / form).read_bytes() for folder in folders}) == 1, form
    numbers = json.loads((folders[0] / "answers.json").read_text())["numbers"]
    truth = {"age": AGED, "dose": DOSED}
    for row in numbers:
        assert row["low"] < row["estimate"] < row["high"] and row["statistic"] == "share"
        assert abs(row["estimate"] - truth[row["labels"]["column"]]) < 0.2
        assert row["high"] - row["estimate"] == pytest.approx(3 * row["noise"], rel=0.02), "ln 20 scales, not 1.96"
    assert re.search(r"age +share +0\.\d+ \[0\.\d+, 0\.\d+\]", said[0]), said[0]
    report = json.loads((folders[3] / "report.json").read_text())
    assert report["outcome"]["numbers"] == numbers and report["schema"] == "dpmpc.opened/1"
    made = with_toys("report", folders[3])
    assert made.returncode == 0, made.stderr
    page = (folders[3] / "report.html").read_text()
    assert "the shares of records in the upper halves of age, dose" in page and "upper halves" in page
    assert "answers to" not in page and '<th scope="row" class="label">age</th>' in page
    assert with_toys("report", folders[0]).returncode == 0, "a party's folder has the numbers too"
    verified = with_toys("verify", folders[0], "--structure")
    assert verified.returncode == 0 and (folders[0] / "verify.json").exists(), verified.stdout + verified.stderr
    assert "answers.html" in with_toys("status", folders[0]).stdout
    for folder in folders:
        assert not [path for path in folder.rglob("*") if path.is_file() and path.stat().st_mode & 0o077]


def test_a_source_of_another_package_runs_whole_on_one_machine(tmp_path: Path) -> None:
    """One command by its plan file: promise first, parties here, account, answers, report.json, page, status, verify;
    given again it is over, and counts once. A limit beside the plan is kept, or the run refused. Noise of scale 1/2000
    in a share misses .02 with probability e^-40."""
    program(tmp_path, WHOLE, str(tmp_path / "plan.json"))
    rows = [f"{51 if k % 2 else 40},{30 if k % 4 == 0 else 1},{'ulm' if k < 120 else 'bern'}" for k in range(200)]
    records, out = named(tmp_path, "\n".join(["age,dose,site", *rows, ""])), tmp_path / "run"
    given: list[str | Path] = ["train", "--plan", tmp_path / "plan.json", "--csv", records, "--owners-column", "site"]
    given += ["--account", tmp_path / "account", "--out", out]
    small = ["--budget", "10,1e-5", "--data-id", "ward"], ["--epsilon", "1", "--delta", "1e-5"]
    others = ["--data-id", "other"], ["--budget", "90,1e-5"], ["--overwrite"], ["--plan-only"], ["--max-rows", "20"]
    for more in (*small, *others):
        refused = with_toys(*given, *more)
        assert refused.returncode == 2 and not out.exists(), (more, refused.stderr)
    made = with_toys(*given, "--epsilon", 20, "--delta", "1e-9", "--budget", "30,1e-5", "--data-id", "ward")
    assert made.returncode == 0 and re.search(r"age +share +0\.\d+ \[", made.stdout), made.stdout + made.stderr
    assert made.stderr.index("guarantee: epsilon = 20") < made.stderr.index("counting upper halves")
    numbers = json.loads((out / "answers.json").read_text())["numbers"]
    assert [row["estimate"] for row in numbers] == pytest.approx([AGED, DOSED], abs=0.02)
    assert json.loads((out / "report.json").read_text())["outcome"]["numbers"] == numbers
    again = with_toys(*given)
    assert again.returncode == 0 and again.stdout == made.stdout, again.stderr
    counted = with_toys("budget", out, "--account", tmp_path / "account", "--json")
    assert [row["releases"] for row in json.loads(counted.stdout)["data"]] == [1], counted.stdout + counted.stderr
    assert with_toys("report", out).returncode == 0
    assert "the shares of records in the upper halves of age, dose" in (out / "report.html").read_text()
    assert "answers.html" in with_toys("status", out).stdout
    verified = with_toys("verify", out, "--structure")
    assert verified.returncode == 0, verified.stdout + verified.stderr
    assert not [path for path in out.rglob("*") if path.stat().st_mode & 0o077]


WHOLE = """
import sys
from dpmpc.extend import plan_of
from my_dpmpc.source import Halves

halves = Halves(("age", "dose"), (50, 10))
plan_of(halves, sizes=(80, 120), data_id="ward", epsilon=20.0, law="laplace").write(sys.argv[1])
"""


def named(folder: Path, text: str) -> Path:
    path = folder / "named.csv"
    path.write_text(text)
    return path


def joining(kit: Path, account: Path, *more: str | Path) -> "subprocess.Popen[str]":
    """`dpmpc join` as a process of its own."""
    env = {**with_toys_environment(), "DPMPC_ACCOUNT": str(account / kit.name)}
    words = [*COMMAND, "join", str(kit), *map(str, more)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env)


ASKED = """
[run]
data_id = "wards"
tls = false
{sites}
[records.bounds]
ward = ["a", "b"]
age = [0, 90]
[stats]
queries = ["diversity(ward)", {{ what = "diversity", of = ["age"], by = "ward", bins = 3 }}]
[privacy]
epsilon = 20
delta = 1e-5
"""
ASKING = """
import sys
import dpmpc
if __name__ == "__main__":
    bounds = {"ward": ["a", "b"], "age": [0, 90]}
    found = dpmpc.stats(sys.argv[1], [{"what": "diversity", "of": ["ward"]}], owners="site", bounds=bounds,
                        epsilon=20, delta=1e-5)
    number = found.answers[0].lines[0].number
    assert found.answers[0].shapes and "<svg" in found.html()
    print(number.estimate)
"""


def test_a_question_of_another_package_is_asked_on_every_surface(tmp_path: Path) -> None:
    """Of 900 records in ward a and 300 in b the share of pairs that differ is 2 * .75 * .25 = .375; noise of a cell at
    this epsilon has a deviation below 1, and .01 of the share is more than 10 of its."""
    records = tmp_path / "wards.csv"
    rows = [f"{'ab'[k % 4 == 3]},{k % 90},{k % 3}" for k in range(1200)]
    records.write_text("\n".join(["ward,age,site", *rows, ""]))
    (tmp_path / "bounds.toml").write_text('ward = ["a", "b"]\nage = [0, 90]\n')
    (tmp_path / "asked.toml").write_text('queries = [{what = "diversity", of = ["ward"]}]\n')
    given = ["--csv", records, "--owners-column", "site", "--bounds", tmp_path / "bounds.toml"]
    given += ["--epsilon", 20, "--delta", "1e-5"]
    out = tmp_path / "out"
    made = with_toys("stats", "diversity(ward)", *given, "--out", out)
    assert made.returncode == 0 and "diversity" in made.stdout, made.stderr
    (number,) = json.loads((out / "answers.json").read_text())["numbers"]
    low, high = number["low"], number["high"]  # 95 %, so that 1.6 widths are 6.3 deviations: false alarm below 1e-9
    assert low < number["estimate"] < high and number["estimate"] == pytest.approx(
        0.375, abs=min(0.01, 1.6 * (high - low))
    )
    assert "<svg" in (out / "answers.html").read_text()
    dry = with_toys("stats", "--queries", tmp_path / "asked.toml", *given, "--dry")
    assert dry.returncode == 0 and dry.stdout.startswith("diversity(ward): 100 % of the promise"), dry.stderr
    table = with_toys("stats", "table(ward, age)", *given, "--out", tmp_path / "table")
    again = with_toys("stats", "diversity(ward)", "--of", tmp_path / "table", "--json")
    assert table.returncode == again.returncode == 0, table.stderr + again.stderr
    assert json.loads(again.stdout)["numbers"][0]["estimate"] == pytest.approx(0.375, abs=0.01)
    wrong = with_toys("stats", "diversity(wart)", *given, "--dry")
    assert wrong.returncode == 2 and "did you mean 'ward'?" in wrong.stderr and "^^^^" in wrong.stderr, wrong.stderr
    assert float(program(tmp_path, ASKING, str(records))) == pytest.approx(0.375, abs=0.01)


def test_a_consortium_asks_a_question_of_another_package(tmp_path: Path) -> None:
    """Every process of it, from its kit: rehearsal, `check`, `join`, every form of the answers, report.json, the page
    of `report`, the same release asked again. Noise at this epsilon moves the share by .02 with a chance below 1e-9:
    more than 10 of its deviations."""
    addresses = own_addresses(3)[1::2]
    parties = "".join(f'[[parties]]\nname = "p{i}"\naddress = "{a}"\n' for i, a in enumerate(addresses))
    owners = "".join(f'[[owners]]\nname = "o{j}"\nrecords = {400 + j}\n' for j in range(2))
    (tmp_path / "consortium.toml").write_text(ASKED.format(sites=parties + owners))
    for words in (("kit", tmp_path / "consortium.toml", "--out", tmp_path / "kits"), ("rehearse", tmp_path / "kits")):
        result = with_toys(*words)
        assert result.returncode == 0, result.stdout + result.stderr
    plan = json.loads((tmp_path / "kits" / "o0" / "plan.json").read_text())
    assert plan["source"]["tables"]["queries"] == ["diversity(ward)", "diversity(age, bins=3) by ward"]

    kits, records, names = tmp_path / "kits", list[Path](), ("p0", "p1", "p2", "o0", "o1")
    for j in range(2):
        records.append(tmp_path / f"mine{j}.csv")
        records[j].write_text("\n".join(["ward,age", *(f"{'ab'[k % 4 == 3]},{k % 90}" for k in range(400 + j)), ""]))
        checked = with_toys("check", "--plan", kits / f"o{j}" / "plan.json", "--csv", records[j])
        assert checked.returncode == 0, checked.stdout + checked.stderr
    bad = with_toys("check", "--plan", kits / "o0" / "plan.json", "--csv", named(tmp_path, "age,town\n1,a\n"))
    assert bad.returncode == 1 and "ward: not in" in bad.stdout, bad.stdout + bad.stderr
    own: list[list[str | Path]] = [[], [], [], *(["--csv", path] for path in records)]
    started = [joining(kits / name, tmp_path / "account", *more) for name, more in zip(names, own, strict=True)]
    said = [process.communicate(timeout=HANG)[0] for process in started]
    assert [process.returncode for process in started] == [0] * 5 and "diversity" in said[3], said
    folders = [kits / name / "run" for name in names]
    for form in ("answers.txt", "answers.md", "answers.csv", "answers.json", "answers.html"):
        assert len({(folder / form).read_bytes() for folder in folders}) == 1, form
    whole, *_ = json.loads((folders[3] / "answers.json").read_text())["numbers"]
    assert whole["low"] < whole["estimate"] < whole["high"] and whole["estimate"] == pytest.approx(0.375, abs=0.02)
    assert json.loads((folders[3] / "report.json").read_text())["outcome"]["numbers"][0] == whole
    assert with_toys("report", folders[3]).returncode == 0
    assert "diversity(ward)" in (folders[3] / "report.html").read_text()
    again = with_toys("stats", "diversity(ward)", "--of", folders[4], "--json")
    assert again.returncode == 0 and json.loads(again.stdout)["numbers"][0]["estimate"] == whole["estimate"]
    assert with_toys("verify", folders[0], "--structure").returncode == 0


def test_a_task_of_another_kind_of_target_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([["a", "ill"], *([k / 20, ("yes", "no")[k % 2]] for k in range(20))])
    asked = ["--csv", path, "--target", "ill", "--owners", 2, "--epsilon", 1, "--delta", "1e-4"]
    asked += ["--out", tmp_path / "run"]
    result = with_toys("train", *asked, "--task", "poisson", "--preprocessing", "records")
    assert result.returncode == 2 and "a quantity is a target of finite numbers" in result.stderr, result.stderr
    result = with_toys("train", *asked, "--task", "poison")
    assert result.returncode == 2 and "'poisson'" in result.stderr, result.stderr


def with_toys_environment() -> dict[str, str]:
    path = os.pathsep.join([str(TEMPLATE), str(INSTALLED), os.environ.get("PYTHONPATH", "")]).strip(os.pathsep)
    return {**os.environ, "PYTHONPATH": path}


def with_toys(*arguments: str | Path | float) -> "subprocess.CompletedProcess[str]":
    """The command, where the other package is installed; forked from one program for all tests here."""
    return _commands[0](*arguments)


def with_toys_afresh(*arguments: str | Path | float) -> "subprocess.CompletedProcess[str]":
    """The same as a program of its own."""
    return subprocess.run(
        [*COMMAND, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
        env=with_toys_environment(),
    )


def test_a_forked_command_is_what_a_fresh_one_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A success, a refusal, and a file that is named from the current folder: all that a command says, and its end."""
    monkeypatch.chdir(tmp_path)
    account: list[str | Path | float] = [
        "account",
        "--law",
        "double-laplace",
        "--owners",
        10,
        "--smallest",
        100,
        "--epsilon",
        1,
    ]
    cases: list[tuple[list[str | Path | float], int]] = [
        ([*account, "--iterations", 2], 0),
        ([*account, "--iterations", "none"], 2),
        (["train", "--csv", "none.csv", "--target", "ill", "--owners", 2, "--epsilon", 1, "--out", "run"], 2),
        (["verify"], 2),
    ]
    for arguments, code in cases:
        forked, fresh = with_toys(*arguments), with_toys_afresh(*arguments)
        assert forked.returncode == fresh.returncode == code, (forked, fresh)
        assert (forked.stdout, forked.stderr) == (fresh.stdout, fresh.stderr)
        assert forked.stdout or forked.stderr
    path = tmp_path / "few.csv"
    path.write_text("a,b\n1,2\n3,4\n")
    forked, fresh = with_toys("describe", path.name), with_toys_afresh("describe", path.name)
    assert forked.returncode == fresh.returncode == 0 and forked.stdout == fresh.stdout != "", (forked, fresh)


@pytest.mark.parametrize(
    ("more", "found"),
    [
        (["--law", "double-laplace", "--iterations", "3"], ("law", "double-laplace")),
        (["--delta", "1e-4", "--backend", "boxed", "--iterations", "3"], ("backend", "boxed")),
        (["--delta", "1e-4", "--method", "centroid"], ("method", "centroid")),
    ],
    ids=["law", "backend", "method"],
)
def test_train_and_verify_have_them(more: list[str], found: tuple[str, str], tmp_path: Path) -> None:
    out = tmp_path / "run"
    result = with_toys("train", *SMALL, *more, "-M", 3, "--out", out)
    assert result.returncode == 0, result.stderr
    report = json.loads((out / "report.json").read_text())
    name, value = found
    assert (report["privacy"] if name == "law" else report)[name] == value
    assert report["privacy"]["epsilon"] == 2
    verified = with_toys("verify", out, "--structure")
    assert verified.returncode == 0 and "10 of 10" in verified.stdout, verified.stdout + verified.stderr


def test_sample_draws_from_the_law_and_through_the_backend() -> None:
    """The chi-square of 4,000 samples fails with probability 1e-9 when they follow the law."""
    result = with_toys(
        "sample", "--law", "double-laplace", "--scale", 5000, "--count", 4000, "--backend", "boxed", "--open"
    )
    assert result.returncode == 0, result.stderr
    assert "sum of two discrete Laplace" in result.stdout and ", as predicted" in result.stdout
    assert float(result.stdout.split("p = ")[1].split()[0]) > 1e-9


def test_account_knows_law_and_method() -> None:
    result = with_toys(
        "account", "--method", "centroid", "--law", "double-laplace", "--owners", 10, "--smallest", 100,
        "--epsilon", 1, "--iterations", 2, "--dimension", 4, "--json",
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    answer = json.loads(result.stdout)
    l1 = 2 * 4**0.5 / 1000  # sqrt(d) 2 / (m n_(1))
    assert answer["solved_for"] == "scale" and answer["scale"] == pytest.approx(2 * l1, rel=1e-6)
    solved = with_toys(
        "account", "--law", "double-laplace", "--owners", 10, "--smallest", 100, "--scale", answer["scale"],
        "--epsilon", 1, "--dimension", 4, "--json",
    )  # fmt: skip
    assert json.loads(solved.stdout)["iterations"] == 2, solved.stderr
    shown = with_toys(
        "account", "--law", "double-laplace", "--owners", 10, "--smallest", 100, "--epsilon", 1, "--iterations", 2
    )
    assert "scale b" in shown.stdout and "std dev" in shown.stdout and "sigma" not in shown.stdout, shown


def test_advice_has_the_law_and_refuses_a_method_that_nothing_rehearses() -> None:
    """Laplace noise of L1 sensitivity sqrt(d) 2 / (n lam), twice: its deviation is that of the sum."""
    run = ["advise", "--owners", 10, "--total", 100_000, "--dimension", 4, "--epsilon", 1]
    result = with_toys(*run, "--lam", 0.01, "--noise", "double-laplace", "--json")
    assert result.returncode == 0, result.stderr
    advice = json.loads(result.stdout)["advice"]
    assert (advice["method"], advice["noise"]) == ("output", "double-laplace")
    assert advice["sigma"] == pytest.approx(4**0.5 * 2 / (100_000 * 0.01), rel=1e-6)
    result = with_toys(*run, "--delta", "1e-6", "--method", "centroid")
    assert result.returncode == 2 and "rehearses --method centroid; choose one of them" in result.stderr, result.stderr
    result = with_toys(*run, "--method", "none")
    assert result.returncode == 2 and "'functional', 'centroid'" in result.stderr, result.stderr


@pytest.mark.parametrize(
    "more",
    [["--law", "double-laplace"], ["--backend", "boxed"], ["--method", "centroid"]],
    ids=["law", "backend", "method"],
)
def test_the_cost_suite_measures_them(more: list[str], tmp_path: Path) -> None:
    """Measured bytes and rounds are held against the counting of the backend and of the law's circuit."""
    result = with_toys("bench", "iteration", "-d", 7, "-m", 3, "-M", 3, *more, "--out", tmp_path / "bench.json")
    assert result.returncode == 0, result.stderr
    if "--method" not in more:
        one = () if "--law" in more else ("--law", "gaussian", "--sampler", "discrete")
        noise = with_toys("bench", "noise", "--no-plain", *more, *one, "--out", tmp_path / "noise.json")
        assert noise.returncode == 0 and more[1] in noise.stdout, noise.stderr


def test_without_the_package_its_names_are_refused_with_the_others_listed() -> None:
    result = subprocess.run(
        [*COMMAND, "sample", "--law", "double-laplace", "--scale", "5000"],
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
    )
    assert result.returncode == 2 and "'gaussian', 'laplace'" in result.stderr, result.stderr


def with_broken(tmp_path: Path, entries: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """The command, where a package with these entry points is installed, whose module cannot be imported."""
    info = tmp_path / "other-1.dist-info"
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1\n")
    (info / "entry_points.txt").write_text(entries)
    (tmp_path / "other.py").write_text("raise RuntimeError('half of it is missing')\n")
    return subprocess.run(
        [*COMMAND, *arguments],
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )


def test_a_name_of_ours_stays_ours(tmp_path: Path) -> None:
    """A second package that takes a name is not used, and one warning says so."""
    result = with_broken(tmp_path, "[dpmpc.laws]\ngaussian = other:LAW\n", "verify", "--law", "all", "--help")
    assert result.returncode == 0, result.stderr
    assert result.stderr.count("a law of noise's name belongs to one package; 'gaussian' is ") == 1, result.stderr


def test_a_broken_package_is_one_warning_and_nothing_else_breaks(tmp_path: Path) -> None:
    kinds = ("laws", "methods", "backends", "sources", "tasks")
    entries = "".join(f"[dpmpc.{kind}]\nbroken = other:THING\n" for kind in kinds)
    for arguments in (["--help"], ["train", "--help"], ["sample", "--help"], ["account", "--help"]):
        result = with_broken(tmp_path, entries, *arguments)
        assert result.returncode == 0 and "Traceback" not in result.stderr, result.stderr
    result = with_broken(
        tmp_path, entries, "account", "--owners", "10", "--smallest", "100", "--epsilon", "1", "--delta", "1e-5",
        "--iterations", "2",
    )  # fmt: skip
    assert result.returncode == 0 and result.stderr.count("'broken'") <= 1, result.stderr
    result = with_broken(tmp_path, entries, "sample", "--law", "broken", "--scale", "5000")
    assert result.returncode == 2 and "Traceback" not in result.stderr
    assert result.stderr.strip().splitlines()[-1].startswith("error: a law of noise of another package must import")
    assert "half of it is missing" in result.stderr
