"""Real tables as populations, for `stats_effects`: their records are drawn again, with replacement.

Three: who earns more, by sex, age and schooling (UCI Adult); who takes a deposit, by telephone, marital state and
earlier campaigns (UCI Bank Marketing); survival after a heart transplant, by age (Stanford, which statsmodels ships).
Models need not fit them. The truth is what the model's score has its root at in the whole table, so sets are held to
what a fit without noise of ever more such records comes to. Files are beside the project (`--data-dir`, `$DPMPC_DATA`).
"""

import csv
import importlib
from collections.abc import Iterator, Sequence
from dataclasses import field
from pathlib import Path

import numpy as np

from dpmpc.benchmarks.studies.stats_effects import EffectDesign
from dpmpc.errors import UsageError
from dpmpc.lazy import cached_property, dataclass
from dpmpc.records.sets import find_file
from dpmpc.statistics.intervals import Floats
from dpmpc.statistics.sets import CellModel

_BINS, _END = 6, 1440.0  # days of follow-up after a transplant
_SCHOOL = {
    "Some-college": 1, "Assoc-acdm": 1, "Assoc-voc": 1, "Bachelors": 2, "Masters": 2, "Prof-school": 2, "Doctorate": 2,
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class TableDesign(EffectDesign):
    """A table as a population. `kinds` (K, C, J): what a record of each kind counts; `shares` (K,) of the records."""

    kinds: Floats = field(default_factory=lambda: np.zeros((0, 0, 0)))
    shares: Floats = field(default_factory=lambda: np.zeros(0))

    @property
    def part(self) -> Floats:
        return np.asarray(self._whole.sum(axis=1))

    @cached_property
    def _whole(self) -> Floats:
        """(C, J) the mean of a record."""
        return np.asarray(np.einsum("k,kcj->cj", self.shares, self.kinds))

    @cached_property
    def truth(self) -> Floats:
        root = CellModel(self.model, self.design, self._whole * 1e6, 0.0).point()
        assert root is not None, f"{self.name} has no fit"
        return root

    def drawn(self, n: int, many: int, rng: np.random.Generator) -> Floats:
        counts = rng.multinomial(n, self.shares, many)
        return np.asarray(np.tensordot(counts, self.kinds, axes=1))

    def expected(self, n: int) -> Floats:
        return n * self._whole


def real_tables(data_dir: Path | None) -> Iterator[TableDesign]:
    """Those whose files or packages are here; a line for each that is not."""
    for name, made in (("real: adult", _adult), ("real: bank", _bank), ("real: heart transplants", _heart)):
        try:
            yield made(name, data_dir)
        except (ImportError, UsageError) as error:
            print(f"{name} is left out: {error}", flush=True)


def counted(name: str, shape: tuple[int, ...], rows: Sequence[tuple[int, ...]]) -> TableDesign:
    """A table of which each record has (levels of covariates ..., outcome)."""
    table = np.zeros((*shape, 2))
    np.add.at(table, tuple(np.array(rows).T), 1.0)
    C, flat = int(np.prod(shape)), table.ravel()
    kinds = np.eye(2 * C).reshape(2 * C, C, 2)
    return _design(name, shape, "logit", kinds, flat / flat.sum())


def _design(name: str, shape: tuple[int, ...], family: str, kinds: Floats, shares: Floats) -> TableDesign:
    levels = tuple(tuple([1 / many] * many) for many in shape)  # their number; shares are the table's own
    nothing = tuple([0.0] * (sum(shape) - len(shape)))
    return TableDesign(name, levels, 0.5, nothing, (), family, kinds=kinds, shares=shares)


def _adult(name: str, data_dir: Path | None) -> TableDesign:
    with find_file("adult/adult.data", data_dir).open(encoding="utf-8") as file:
        read = [[part.strip() for part in row] for row in csv.reader(file) if len(row) == 15]
    rows = [
        (int(row[9] == "Male"), int(np.searchsorted((35, 50), int(row[0]), "right")), _SCHOOL.get(row[3], 0),
         int(row[14] == ">50K"))
        for row in read
    ]  # fmt: skip
    return counted(name, (2, 3, 3), rows)


def _bank(name: str, data_dir: Path | None) -> TableDesign:
    states = ("married", "single", "divorced")
    with find_file("bank_additional/bank-additional-full.csv", data_dir).open(encoding="utf-8") as file:
        read = [row for row in csv.DictReader(file, delimiter=";") if row["marital"] in states]
    rows = [
        (int(row["contact"] == "telephone"), states.index(row["marital"]), int(row["poutcome"] == "success"),
         int(row["y"] == "yes"))
        for row in read
    ]  # fmt: skip
    return counted(name, (2, 3, 2), rows)


def _heart(name: str, data_dir: Path | None) -> TableDesign:
    """Exits at two boundaries, by shares, as questions count them; who lives beyond the end has left there."""
    data = importlib.import_module("statsmodels.datasets.heart").load_pandas().data
    time, died, old = (data[column].to_numpy(dtype=float) for column in ("survival", "censors", "age"))
    group, died = (old >= 48).astype(int), (died == 1) & (time <= _END)
    kinds = np.zeros((len(time), 2, 2 * _BINS + 1))
    at = np.minimum(time, _END) / (_END / _BINS)
    for k, (g, d, u) in enumerate(zip(group, died, at, strict=True)):
        b = max(int(np.ceil(u)) - 1, 0)
        if d:
            kinds[k, g, b] = 1.0
        else:
            kinds[k, g, _BINS + b + 1], kinds[k, g, _BINS + b] = u - b, 1 - (u - b)
    return _design(name, (2,), "cox", kinds, np.full(len(time), 1 / len(time)))
