"""What the caller asks of an experiment, and what an experiment is."""

from collections.abc import Callable, Sequence
from dataclasses import field
from pathlib import Path

from dpmpc.lazy import dataclass
from dpmpc_experiments.task import Row, Task


@dataclass(frozen=True)
class Plan:
    """seed: of partitions and splits, and the first noise seed. repeats: noise seeds a setting (None: the default)."""

    seed: int = 1
    repeats: int | None = None
    quick: bool = False
    datasets: tuple[str, ...] = ()  # those whose files were found; () is all
    data_dir: Path | None = None

    def has(self, dataset: str) -> bool:
        return not self.datasets or dataset in self.datasets

    def seeds(self, full: int, quick: int = 2) -> tuple[int, ...]:
        """The noise seeds: seed, seed + 1, ...; `full` or `quick` of them unless the caller says how many."""
        count = self.repeats or (quick if self.quick else full)
        return tuple(range(self.seed, self.seed + count))


@dataclass(frozen=True)
class Check:
    """A statement of a paper beside ours. verdict: reproduced, or not and why."""

    what: str
    printed: str
    ours: str
    verdict: str


@dataclass(frozen=True)
class Section:
    """An experiment's part of the report: text, checks, figures (file name, caption), and notes after them."""

    title: str
    text: list[str]
    checks: list[Check]
    figures: list[tuple[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Experiment:
    """tasks(plan) lists the work; report(rows, folder, plan) writes figures and a summary, and returns the section."""

    name: str
    reproduces: str
    datasets: tuple[str, ...]
    tasks: Callable[[Plan], list[Task]]
    report: Callable[[Sequence[Row], Path, Plan], Section]
    embedded: bool = False  # whether it has something to run without any file
