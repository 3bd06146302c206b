"""The releases of synthetic tables as they are, through parties: what they take, and the figures of their rows."""

import resource
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dpmpc.statistics.cells import Ints, RecordFields
from dpmpc.statistics.columns import Category, Columns, Quantity
from dpmpc.statistics.compile import axis_of
from dpmpc_experiments.report import table
from dpmpc_experiments.synth import DATASETS, DELTA, EPSILONS, OWNERS, TARGET, Row, Set, judged

SEEDS = 10  # of the first set


def planned(name: str, quick: bool) -> list[tuple[float, int]]:
    """(epsilon, number) of a set's runs through parties: ten each of the first set, one of every other."""
    if quick or name != DATASETS[0]:
        return [(1.0, 0)]
    return [(epsilon, k) for epsilon in EPSILONS for k in range(SEEDS)]


def through(data: Set, epsilon: float = 1.0, seed: int = 1, **settings: Any) -> Row:
    """What the two releases of a set take as they are, by `dpmpc.synth` with these settings, and the figures of the
    rows: five unequal owners, public cells. seed: of drawing."""
    import pandas as pd

    from dpmpc.tables.synth import synth

    whose = np.random.default_rng(1).choice(OWNERS, data.train.n, p=np.arange(1, OWNERS + 1) / 15)
    frame: dict[str, Any] = {"owner": whose}
    bounds: dict[str, Any] = {}
    cuts: dict[str, Any] = {}
    for column, values in data.train.values.items():
        assert isinstance(column, Quantity | Category)
        if isinstance(column, Quantity):
            bounds[column.name], cuts[column.name] = [column.low, column.high], list(column.cuts)
            frame[column.name] = values
        else:
            bounds[column.name] = list(column.levels)
            frame[column.name] = np.array([*column.levels, None], dtype=object)[values]
    records = pd.DataFrame(frame)
    began, before = time.perf_counter(), _processor()
    made = synth(
        records, owners="owner", bounds=bounds, cuts=cuts, target=TARGET, epsilon=epsilon, delta=DELTA,
        hopeless="allow", seed=seed, **settings,
    )  # fmt: skip
    spent, used = time.perf_counter() - began, _processor() - before
    figures = judged(data, cells_of(made.values, data.columns), seed, boosting=False)
    return {"dataset": data.name, "epsilon": f"{epsilon:g}", "seed": str(seed), "records": data.train.n,
            "columns": len(data.columns.names), "cells": made.releases[0].tables.coordinates, "seconds": spent,
            "processor": used, "megabytes": made.bytes_of_parties / 1e6,
            **{name: figures[name] for name in ("tv2", "tv3", "accuracy", "auc")}}  # fmt: skip


def _processor() -> float:
    """Seconds that this process, which has the records, has computed, and those that it has started and seen end: no
    parties, which another process starts."""
    each = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(used.ru_utime + used.ru_stime for used in each)


def cells_of(values: Mapping[str, Any], columns: Columns) -> dict[str, Ints]:
    """The cells of rows as they are written."""
    read: dict[Any, Any] = {}
    for column in columns.columns:
        if isinstance(column, Category):
            place = {level: k for k, level in enumerate(column.levels)} | {None: -1}
            read[column] = np.array([place.get(value, -2) for value in values[column.name]], dtype=np.int64)
        else:
            read[column] = values[column.name]
    records = RecordFields(len(next(iter(values.values()))), read)
    return {name: axis_of(name, columns).place(records) for name in columns.names}


def as_page(rows: Sequence[Row]) -> str:
    """What runs through parties took, and the means of their rows' figures, as a part of the page."""
    return "\n".join(["\n## Two releases through three parties", "", *taken(rows), ""])


def taken(rows: Sequence[Row]) -> list[str]:
    """The table of runs through parties."""
    head = ["set", "epsilon", "runs", "records", "columns", "cells of the first release", "seconds in all",
            "of processor, with the records", "a party sends at most, MB", "tables of two",
            "of three", "accuracy", "AUC"]  # fmt: skip
    body = []
    for key in dict.fromkeys((row["dataset"], row["epsilon"]) for row in rows):
        mine = [row for row in rows if (row["dataset"], row["epsilon"]) == key]
        mean = {name: float(np.mean([float(row[name]) for row in mine])) for name in list(mine[0])[6:]}
        body.append([
            *key, str(len(mine)), mine[0]["records"], mine[0]["columns"], mine[0]["cells"], f"{mean['seconds']:.1f}",
            f"{mean['processor']:.1f}", f"{max(float(row['megabytes']) for row in mine):.1f}",
            *(f"{mean[name]:.3f}" for name in ("tv2", "tv3", "accuracy", "auc")),
        ])  # fmt: skip
    return table(head, body)
