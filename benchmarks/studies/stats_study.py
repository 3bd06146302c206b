"""How often intervals of a joint run hold the truth: questions, training and the model's figures in one plan.

    python -m dpmpc.benchmarks.studies.stats joint --data adult --repeat 200

The plan is the one that a consortium.toml with [stats] and [learning] makes, for five unequal owners who hold out three
tenths of their records. In each repetition records are drawn, the questions
are answered, a model is trained with the plan's noise in every release, and evaluated on held-out records with that of
the last stage. A figure's truth is that of the very model that was trained: of the same held-out records without noise
(data), of all records there are (population).
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmpc.aggregation.plan.plan import Plan
from dpmpc.aggregation.plan.stages import after_first, noise_of, stage_plan
from dpmpc.benchmarks.studies.stats_coverage import ABOUT, CoverageTally, lines_of, records_of, report
from dpmpc.consortium.toml import read_consortium
from dpmpc.folders import passing_folder
from dpmpc.learning.method import Learner
from dpmpc.outcome import Level, Number
from dpmpc.records.blocks import in_memory
from dpmpc.records.schema import Schema
from dpmpc.statistics.cells import Ints, RecordFields
from dpmpc.statistics.evaluated import figures_of, tables_of, totals
from dpmpc.statistics.figures import Figures
from dpmpc.statistics.held_out import GRAIN
from dpmpc.statistics.study import Study
from dpmpc.statistics.tables import STEP, Tables

Floats = NDArray[np.float64]
PARTS = np.array([0.4, 0.2, 0.2, 0.15, 0.05])  # of the records, by owner
FEATURES = {"age": (17, 90), "education-num": (1, 16), "hours-per-week": (1, 99)}
_FILE = """
[run]
data_id = "joint"
{parties}{owners}
[records]
target = "income"
positive = [">50K"]
negative = ["<=50K"]
test_fraction = 0.3
preprocessing = "records"
[records.bounds]
{bounds}
[stats]
hopeless = "allow"
queries = ["table1(age, sex) by income", "median(age) by sex", "km(hours-per-week, income, bins=6) by sex"]
[stats.bounds]
sex = ["Female", "Male"]
[learning]
iterations = 30
[privacy]
epsilon = {epsilon}
delta = 1e-5
"""


@dataclass(frozen=True)
class Joint:
    """A joint run: the plan of the questions, and the plan of training that follows."""

    asking: Plan
    training: Plan
    schema: Schema

    @property
    def tables(self) -> Tables:
        assert isinstance(self.asking.source, Tables)
        return self.asking.source

    @property
    def study(self) -> Study:
        assert isinstance(self.training.source, Study)
        return self.training.source


def joint(n: int, epsilon: float) -> Joint:
    """The plan of n records."""
    sizes = [*(int(part * n) for part in PARTS[1:])]
    sizes = [n - sum(sizes), *sizes]
    with passing_folder() as folder:
        path = folder / "consortium.toml"
        parties = "".join(f'[[parties]]\naddress = "127.0.0.{i + 2}:11365"\n' for i in range(3))
        owners = "".join(f"[[owners]]\nrecords = {size}\n" for size in sizes)
        bounds = "".join(f"{name} = [{low}, {high}]\n" for name, (low, high) in FEATURES.items())
        path.write_text(_FILE.format(parties=parties, owners=owners, bounds=bounds, epsilon=epsilon), encoding="utf-8")
        plan = read_consortium(path).plan
    assert isinstance(plan.source, Study) and plan.source.held and plan.schema is not None, "too few are held out"
    training = after_first(plan, np.zeros(plan.first.dimension, dtype=np.int64))
    return Joint(plan.first, training, Schema.from_json(plan.schema))


@dataclass(frozen=True)
class Everyone:
    """All records there are, as questions and as training read them."""

    records: RecordFields
    X: Floats
    y: Floats


def everyone(texts: Mapping[str, list[str]], run: Joint) -> Everyone:
    """The records of a data set."""
    number = {name: np.array([float(c) if c != "?" else np.nan for c in texts[name]]) for name in FEATURES}
    X = np.empty((len(texts["income"]), len(run.schema.feature_names)))
    run.schema.rows([number[column.name] for column in run.schema.columns], X)
    y = np.where(np.array(texts["income"]) == ">50K", 1.0, -1.0)
    return Everyone(records_of(dict(texts), run.tables.columns), X, y)


def model_of(run: Joint, X: Floats, y: Floats, rng: np.random.Generator) -> Floats:
    """What the plan's releases make of training records, sorted by owner, with its noise in each."""
    plan = run.training
    noise = plan.derived.mechanism.scale * plan.grid.step / plan.divisor
    learner = Learner(plan.learning, plan.releases, in_memory(X, y), plan.sizes, noise)
    factors = np.array(plan.factors, dtype=np.float64)[:, None]
    for _ in range(plan.releases):
        mean = sum((block * factors).sum(axis=0) for block in learner.vectors()) / plan.divisor
        learner.apply(mean + rng.normal(0, noise, len(mean)))
    return np.asarray(np.round(np.asarray(learner.model) / GRAIN) * GRAIN + 0.0)


def evaluated(run: Joint, theta: Floats, X: Floats, y: Floats) -> tuple[Tables, Ints]:
    """The question about a model, and its exact sum over these records."""
    owner = np.zeros(len(y), dtype=np.int64)
    return tables_of(run.schema, theta), totals(run.schema, theta, None, X, y, owner, 1)[0]


def coverage(run: Joint, people: Everyone, repeat: int, seed: int = 1) -> dict[tuple[str, str], CoverageTally]:
    """Tallies by what intervals are about and kind of answer, over `repeat` runs."""
    rng, sizes, held = np.random.default_rng(seed), run.asking.sizes, run.study.held
    sigma, n = noise_of(run.asking) / STEP, sum(sizes)
    owner, trained = np.repeat(np.arange(len(sizes)), sizes), np.array(sizes) - np.array(held)
    values = {f: people.records.values[f] for f in run.tables.layout.fields}
    of_all = run.tables.layout.encode(RecordFields(people.records.n, values))[0]
    whole = run.tables.answers(of_all, 0.0, (people.records.n,))
    found: dict[tuple[str, str], CoverageTally] = defaultdict(lambda: CoverageTally(repeat))
    for _ in range(repeat):
        rows = rng.integers(0, people.records.n, n)
        total = run.tables.layout.encode(RecordFields(n, {f: v[rows] for f, v in values.items()}))[0].astype(np.float64)
        noisy = total + np.rint(rng.normal(0, sigma, len(total)))
        for about in ABOUT:
            level = Level(about=about)
            truth = whole if about == "population" else run.tables.answers(total, 0.0, sizes, level)
            for kind, line, number, right in lines_of(run.tables.answers(noisy, sigma, sizes, level), truth):
                found[about, kind].count(line, number, right.estimate)
        first = np.concatenate([rng.permutation(size) < k for size, k in zip(sizes, trained, strict=True)])
        assert (np.bincount(owner[first]) == trained).all()
        theta = model_of(run, people.X[rows[first]], people.y[rows[first]], rng)
        tables, exact = evaluated(run, theta, people.X[rows[~first]], people.y[rows[~first]])
        _, of_everybody = evaluated(run, theta, people.X, people.y)
        plan = stage_plan(run.training, run.study.schedule.after[0], tables)
        loud = noise_of(plan) / STEP
        seen = exact + np.rint(rng.normal(0, loud, len(exact)))
        for about in ABOUT:
            level = Level(about=about)
            right = figures_of(tables, of_everybody, 0.0, (people.records.n,))
            if about == "data":
                right = figures_of(tables, exact, 0.0, held)
            got = _numbers(figures_of(tables, seen, loud, held, level))
            for name, value in _numbers(right).items():
                if name in got:
                    found[about, f"model: {name}"].count((name,), got[name], value.estimate)
    return dict(found)


def _numbers(figures: Figures) -> dict[str, Number]:
    return dict(figures.numbers)


def run(texts: Mapping[str, list[str]], repeat: int, sizes: tuple[int, ...], epsilons: tuple[float, ...]) -> int:
    """Prints a line a kind of answer; how many are too low."""
    low = 0
    for n in sizes:
        for epsilon in epsilons:
            planned = joint(n, epsilon)
            found = coverage(planned, everyone(texts, planned), repeat)
            low += report("joint", n, epsilon, found)
    return low
