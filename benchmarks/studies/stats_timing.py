"""What one release of statistics takes: three real parties, seconds, processors, memory and bytes; and how far
percentages are off.

    python -m dpmpc.benchmarks.studies.stats timing --data-dir FOLDER
    python -m dpmpc.benchmarks.studies.stats timing --only records --rows 1000000

- `table1`: Table 1 of 20 columns of adult by income: 8 categories, 6 numbers in ten cells, and the 6 numbers.
- `cells`: all two-way tables of these 14 columns in cells.
- `records`: Table 1 of 30 columns, a half of them numbers, over made-up records.
- `long`: the same with 4 columns and ten times as many records.
- `effects`: a logistic model of four covariates, 1,000 joint cells, of 20,000 made-up records.

Five owners of unequal sizes, (1, 1e-5). Every case has a process of its own, which reads Parquet. Seconds are from the
call to the answers, and until the sum is open, by the clock; processor seconds are those of owners, parties and answers
together. Percentages are those of all cells within both levels of income, beside the same answers without noise.
"""

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dpmpc.aggregation.owner.aggregator import Aggregator
from dpmpc.aggregation.owner.encoding import decode
from dpmpc.benchmarks.studies.stats_coverage import adult
from dpmpc.folders import passing_folder
from dpmpc.outcome import Answer, Outcome
from dpmpc.processes.memory import peak_memory
from dpmpc.records.loading import opened
from dpmpc.show.forms import as_text
from dpmpc.statistics.tables import STEP
from dpmpc.tables.questions import asked_of
from dpmpc.tables.stats import noise_of, owned, plan_of_tables

OWNERS = (0.4, 0.25, 0.2, 0.1, 0.05)
EPSILON, DELTA = 1.0, 1e-5
MEMORY = 10**9  # bytes that the process may hold
LIMITS: dict[str, dict[str, float]] = {
    "table1": {"seconds": 2.0, "party_bytes": 2e6}, "cells": {"seconds": 3.0},
    "records": {"seconds": 10.0, "memory": 1e9}, "long": {}, "effects": {"until_open": 2.0},
}  # fmt: skip
EFFECTS = "logit(died, a, b, c, d)"
_NUMBERS = ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")
Bounds = dict[str, list[float] | list[str]]


def of_adult(folder: Path | None, to: Path) -> tuple[Bounds, list[str]]:
    """adult as Parquet, its numbers also in ten cells of round ends; what may be asked, and the columns in cells."""
    texts = adult(folder)
    columns: dict[str, Any] = {}
    bounds: Bounds = {}
    for name, cells in texts.items():
        if name in _NUMBERS:
            numbers = np.array([float(cell) for cell in cells])
            low, high = float(numbers.min()), float(numbers.max())
            columns[name], bounds[name] = numbers, [low, high]
            tenth = np.minimum((numbers - low) / (high - low) * 10, 9).astype(np.int64)
            columns[f"{name} in cells"] = [f"t{k}" for k in tenth]
            bounds[f"{name} in cells"] = [f"t{k}" for k in range(10)]
        else:
            columns[name] = [None if cell == "?" else cell for cell in cells]
            bounds[name] = sorted({cell for cell in cells if cell != "?"})
    _write(columns, len(texts["age"]), to)
    return bounds, [name for name in bounds if name not in (*_NUMBERS, "income")]


def made_up(rows: int, count: int, to: Path) -> Bounds:
    """Records of so many columns, a half of them numbers, and an outcome."""
    rng = np.random.default_rng(1)
    numbers = [f"x{k}" for k in range(count // 2)]
    groups = [f"g{k}" for k in range(count - 1 - len(numbers))]
    levels = np.array([f"level {k}" for k in range(6)])
    columns: dict[str, Any] = {name: rng.normal(size=rows) for name in numbers}
    columns |= {name: levels[rng.integers(0, 6, rows)] for name in groups}
    columns["outcome"] = np.array(["no", "yes"])[rng.integers(0, 2, rows)]
    _write(columns, rows, to)
    bounds: Bounds = {name: [-4.0, 4.0] for name in numbers}
    return bounds | {name: list(levels) for name in groups} | {"outcome": ["no", "yes"]}


def cells_of(rows: int, to: Path) -> Bounds:
    """Records of an outcome and four covariates of 5, 5, 4 and 5 levels: 1,000 joint cells."""
    rng = np.random.default_rng(1)
    levels = {name: [f"{name}{k}" for k in range(many)] for name, many in zip("abcd", (5, 5, 4, 5), strict=True)}
    at = {name: rng.integers(0, len(each), rows) for name, each in levels.items()}
    died = rng.random(rows) < 1 / (1 + np.exp(0.8 - 0.3 * at["a"] + 0.2 * at["d"]))
    columns: dict[str, Any] = {name: np.array(levels[name])[at[name]] for name in levels}
    _write(columns | {"died": np.array(["no", "yes"])[died.astype(int)]}, rows, to)
    return {**levels, "died": ["no", "yes"]}


def _write(columns: dict[str, Any], rows: int, to: Path) -> None:
    import pandas

    site = np.searchsorted(np.cumsum(OWNERS)[:-1], np.random.default_rng(2).random(rows))
    pandas.DataFrame(columns | {"site": [f"site {k}" for k in site]}).to_parquet(to)


def release(parquet: Path, bounds: Bounds, asked: Sequence[str], **settings: Any) -> dict[str, Any]:
    """One release through three parties of this machine, its answers, and what it took. `settings`: of the plan."""
    begin, own = time.perf_counter(), time.process_time()
    tables = asked_of(asked, None, bounds, None)
    with opened(parquet, memory=MEMORY) as (table, _):
        kept, number, sizes = owned(table, tables.reads, "site")
        plan = plan_of_tables(tables, sizes, kept.source, None, {"epsilon": EPSILON, "delta": DELTA, **settings})
        with Aggregator.of_plan(plan) as aggregator:
            total = decode(plan, aggregator.open(tables.means(kept, number, sizes)).total)
            costs = aggregator.finish()
        until_open = time.perf_counter() - begin
        steps, sigma = total * sum(sizes) / STEP, noise_of(plan) / STEP
        answers = tables.answers(steps, sigma, sizes)
        text = as_text(Outcome(answers))
        seconds, used = time.perf_counter() - begin, time.process_time() - own
        whole = tables.encode(kept).sum(axis=0)
        exact = tables.answers(whole, 0.0, sizes) if "income" in bounds else ()
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "records": sum(sizes),
        "numbers": tables.layout.dimension,
        "blocks": len(tables.layout.blocks),
        "seconds": seconds,
        "until_open": until_open,
        "away": float(np.sqrt(np.mean((steps - whole) ** 2)) / sigma),
        "processors_s": used + children.ru_utime + children.ru_stime,
        "party_bytes": max(cost.bytes_to_parties + cost.bytes_to_owners for cost in costs),
        "memory": peak_memory(),
        "party_memory": max(cost.peak_memory for cost in costs),
        "rms": rms(answers, exact),
        "characters": len(text),
    }


def rms(answers: Sequence[Answer], exact: Sequence[Answer]) -> float | None:
    """By how many points percentages within the levels of income are off."""
    away = [
        line.number.estimate - right.number.estimate
        for found, truth in zip(answers, exact, strict=bool(exact))
        for line, right in zip(found.lines, truth.lines, strict=True)
        if line.statistic == "percent" and line.labels[0] in ("<=50K", ">50K")
        and line.number.estimate is not None and right.number.estimate is not None
    ]  # fmt: skip
    return float(np.sqrt(np.mean(np.square(away)))) if away else None


def case(name: str, rows: int, data: Path | None, folder: Path) -> tuple[Path, Bounds, list[str]]:
    """(records, what may be asked, what is asked)."""
    path = folder / f"{name}.parquet"
    if name in ("records", "long"):
        bounds = made_up(rows * (10 if name == "long" else 1), 4 if name == "long" else 30, path)
        return path, bounds, ["table1 by outcome"]
    if name == "effects":
        return path, cells_of(20_000, path), [EFFECTS]
    bounds, cells = of_adult(data, path)
    if name == "table1":
        return path, bounds, [f"table1({', '.join(map(_quoted, (*cells, *_NUMBERS)))}) by income"]
    pairs = [(a, b) for k, a in enumerate([*cells, "income"]) for b in [*cells, "income"][:k]]
    return path, bounds, [f"table({_quoted(a)}, {_quoted(b)})" for a, b in pairs]


def _quoted(name: str) -> str:
    return f'"{name}"'


def run(only: Sequence[str], rows: int, data: Path | None) -> int:
    """Prints a line a case; how many take more than is asked of them."""
    missed = 0
    for name in only or LIMITS:
        with passing_folder() as folder:
            asked = case(name, rows, data, folder)
            given = json.dumps([str(asked[0]), *asked[1:]])
            worker = [sys.executable, "-m", "dpmpc.benchmarks.studies.stats_timing"]
            done = subprocess.run(worker, input=given, text=True, check=True, stdout=subprocess.PIPE)
        found = json.loads(done.stdout)
        over = [key for key, limit in LIMITS[name].items() if found[key] > limit]
        missed += bool(over)
        off = "" if found["rms"] is None else f"; percentages off by {found['rms']:.3f} points"
        more = f"; MORE THAN ASKED: {', '.join(over)}" if over else ""
        print(
            f"{name:8} {found['records']} records, {found['blocks']} blocks, {found['numbers']} numbers: "
            f"{found['seconds']:.2f} s ({found['until_open']:.2f} until the sum is open), "
            f"{found['processors_s']:.2f} s of processors, "
            f"{found['party_bytes'] / 1e6:.2f} MB sent a party, {found['memory'] / 1e6:.0f} MB of memory, "
            f"{found['party_memory'] / 1e6:.0f} MB a party{off}; load {os.getloadavg()[0]:.0f}{more}",
            flush=True,
        )
    return missed


if __name__ == "__main__":
    path, bounds, asked = json.load(sys.stdin)
    print(json.dumps(release(Path(path), bounds, asked)))
