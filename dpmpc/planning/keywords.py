"""The settings of a training run as keywords, for type checkers, editors and readers: `**given: Unpack[...]`.

Each name is declared in `planning.settings`, `learning.settings` or `plan.settings`, with its check, default and
help; a test holds names and types to the declarations. What is None is chosen by the rule that the declaration states.
"""

from typing import Any, Literal, TypedDict

from dpmpc.aggregation.plan.keywords import AccountingKeywords, SourceKeywords
from dpmpc.learning.settings import Average, Spread
from dpmpc.planning.settings import Figures, Preprocessing
from dpmpc.privacy.sensitivity import Weights
from dpmpc.records.schema import Basis


class RecordKeywords(TypedDict, total=False):
    """Which records, how they are read, and who owns them. `records`: a path, or a frame of any library."""

    data: str | None
    data_dir: str | None
    csv: str | None
    records: Any
    database: str | None
    sql: str | None
    schema: str | None
    memory: str | None
    precision: Literal["double", "single"]
    executor: str | None
    workers: int | None
    target: str | None
    owners_column: str | None
    bounds: str | None
    preprocessing: Preprocessing | None
    named: tuple[str, ...]
    spell: tuple[str, ...]
    word_list: str | None
    basis: Basis | None
    missing: Literal["fill", "drop"]
    drop: tuple[str, ...]
    positive: str | None
    classes: tuple[str, ...]
    task: str | None
    test_fraction: float | None
    official_test: bool
    max_rows: int | None
    dimension: int | None
    intercept: bool | None
    seed: int
    evaluate: bool
    figures: Figures | None
    baseline: bool
    ids: str | None
    owners: int | None
    owner_sizes: tuple[int, ...] | None
    capacity: tuple[int, ...] | None
    skew: float | None


class LearningKeywords(TypedDict, total=False):
    """Which model is learned, and how."""

    method: str | None
    iterations: int | None
    lam: float | None
    average: Average | None
    class_weight: str | None
    weights: Weights | None
    step: float | None
    momentum: float | None
    radius: float | None
    residual_clip: float
    solver_tolerance: float
    spread: Spread


class TrainKeywords(RecordKeywords, LearningKeywords, SourceKeywords, AccountingKeywords, total=False):
    """Of a training run."""

    data_id: str | None
    run_id: str | None
    ledgers: str | None
