"""Private regressions with scikit-learn's interface: `PrivateRidge`, and `PrivateRegressor` for other tasks."""

from typing import Any, Literal

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score

from dpmpc.estimators.errors import EstimatorError, as_value_errors
from dpmpc.estimators.fitting import Given
from dpmpc.estimators.frames import Frame, given_schema, make_schema, range_target
from dpmpc.estimators.linear import PrivateLinear, kept, one_column
from dpmpc.estimators.targets import quantities
from dpmpc.intake.spelling import PLAIN, Spelling
from dpmpc.intake.table import Floats, Ints
from dpmpc.learning.task import TASKS, Task
from dpmpc.records.schema import USUAL, Range, Schema


class _Regression(RegressorMixin, PrivateLinear):
    """What regressions share."""

    _number = True

    @property
    def _modelled(self) -> Task:
        return TASKS[USUAL["number"]]

    def _given(self, columns: Frame, y: Any, groups: Ints) -> Given:
        values: Floats = y
        task = self._modelled
        if task.kind != "number":
            raise EstimatorError(
                f"a regression is of a quantity; the task {task.name} is for classes; use another", code="together"
            )
        schema, public = given_schema(self.schema), self.target_bounds is not None
        if schema is not None and not isinstance(schema.target, Range):
            raise EstimatorError(
                "the schema of a regression has a number as its target; this has a label; use another", code="column"
            )

        def read_off() -> Schema:
            target = range_target(values, self.target_bounds)
            spelling = self.spelling or PLAIN
            return schema or make_schema(columns, self.bounds, task.taken(target), public, self.fit_intercept, spelling)

        def scaled(made: Schema) -> Floats:
            assert isinstance(made.target, Range)
            return made.target.values(values)

        target = task.taken(range_target(values, self.target_bounds)) if public else None
        return Given(task.name, columns, values, groups, target, None, read_off, scaled)

    def _targets(self, y: Any, name: Any, columns: Frame) -> Floats:
        said = self.schema is not None or self.bounds is not None  # which may mean texts as words
        return quantities(y, name, {} if said else columns, self.spelling or PLAIN)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R2 on these records; targets of texts are read as those of `fit`. Errors: as there."""
        with as_value_errors():
            y = quantities(one_column(y), None, {}, self.spelling or PLAIN)
        there = np.isfinite(y)  # a record that counts as a zero vector has no target to be held against
        weight = None if sample_weight is None else np.asarray(sample_weight)[there]
        return float(r2_score(y[there], self.predict(X)[there], sample_weight=weight))

    def predict(self, X: Any) -> Floats:
        """(n,) predictions in the target's own units."""
        scores, target = self._scores(X), self.schema_.target
        assert isinstance(target, Range)
        return target.original(TASKS[self.schema_.task].link(scores))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags


class PrivateRidge(_Regression):
    """Ridge regression over the records of several owners, with differential privacy.

    Parameters: as of `PrivateLogisticRegression`, but for `target_bounds`, the public (low, high) of the target
    (without them it is surveyed too), and `residual_clip`, in units of half that range: beyond
    it the loss is linear, which bounds what one record can do.
    """

    @kept
    def __init__(
        self,
        *,
        bounds: Any = None,
        target_bounds: Any = None,
        schema: Any = None,
        fit_intercept: bool = True,
        weight_bound: float = 1.0,
        spelling: Spelling | None = None,
        preprocessing: Literal["survey", "records"] | None = None,
        basis: Literal["linear", "additive"] | None = None,
        method: str | None = None,
        iterations: int | None = None,
        lam: float | None = None,
        average: Literal["none", "tail", "all"] | None = None,
        weights: Literal["equal", "size"] | None = None,
        step: float | None = None,
        momentum: float | None = None,
        radius: float | None = None,
        residual_clip: float = 0.25,
        solver_tolerance: float = 1e-08,
        spread: Literal["theta", "fixed"] = "theta",
        epsilon: float = 1.0,
        delta: float | None = 1e-5,
        neighbours: str | None = None,
        person: str | None = None,
        person_rows: int = 1,
        person_owners: int | None = None,
        calibration: str = "tight",
        law: str | None = None,
        sampler: str | None = None,
        scale: float | None = None,
        grid_bits: int | None = None,
        engine: Literal["mpc", "clear"] = "mpc",
        security: str = "semi-honest",
        link: str | float | None = None,
        parties: int = 3,
        threshold: int | None = None,
        backend: str | None = None,
        check_owners: Literal["no", "zero", "stop"] = "no",
        pool: bool | None = None,
        security_bits: float = 40.0,
        data_id: str = "records",
        ledgers: str | None = None,
        budget: str | None = None,
        account: str | None = None,
    ) -> None: ...


class PrivateRegressor(_Regression):
    """Regression of any task for quantities, with differential privacy: those of this package, and those that others
    bring (`dpmpc.tasks`).

        model = PrivateRegressor(task="median", epsilon=1.0, delta=1e-5, target_bounds=(0, 40))

    Parameters: as of `PrivateRidge`, and `task`, by default ridge. Predictions are in the target's own units, through
    the task's link.
    """

    @kept
    def __init__(
        self,
        *,
        bounds: Any = None,
        target_bounds: Any = None,
        schema: Any = None,
        fit_intercept: bool = True,
        weight_bound: float = 1.0,
        spelling: Spelling | None = None,
        preprocessing: Literal["survey", "records"] | None = None,
        basis: Literal["linear", "additive"] | None = None,
        task: str | None = None,
        method: str | None = None,
        iterations: int | None = None,
        lam: float | None = None,
        average: Literal["none", "tail", "all"] | None = None,
        weights: Literal["equal", "size"] | None = None,
        step: float | None = None,
        momentum: float | None = None,
        radius: float | None = None,
        residual_clip: float = 0.25,
        solver_tolerance: float = 1e-08,
        spread: Literal["theta", "fixed"] = "theta",
        epsilon: float = 1.0,
        delta: float | None = 1e-5,
        neighbours: str | None = None,
        person: str | None = None,
        person_rows: int = 1,
        person_owners: int | None = None,
        calibration: str = "tight",
        law: str | None = None,
        sampler: str | None = None,
        scale: float | None = None,
        grid_bits: int | None = None,
        engine: Literal["mpc", "clear"] = "mpc",
        security: str = "semi-honest",
        link: str | float | None = None,
        parties: int = 3,
        threshold: int | None = None,
        backend: str | None = None,
        check_owners: Literal["no", "zero", "stop"] = "no",
        pool: bool | None = None,
        security_bits: float = 40.0,
        data_id: str = "records",
        ledgers: str | None = None,
        budget: str | None = None,
        account: str | None = None,
    ) -> None: ...

    @property
    def _modelled(self) -> Task:
        return TASKS[self.task or USUAL["number"]]
