"""Private linear models with scikit-learn's interface: `PrivateLogisticRegression` and `PrivateRidge`.

What they do is what `dpmpc train` does, on records that are in memory: the same plan, methods, parties and ledger.
"""

from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from dpmpc.data.schema import Range, Schema
from dpmpc.data.table import Floats
from dpmpc.estimators.errors import EstimatorError, as_value_errors
from dpmpc.estimators.fitting import Fitted, fit_records, share_account
from dpmpc.estimators.records import (
    Frame,
    frame_of,
    given_schema,
    is_frame,
    label_target,
    make_schema,
    owner_codes,
    range_target,
    rows,
)
from dpmpc.learning.erm_blocks import scored
from dpmpc.learning.method import DEFAULT_METHOD, Task
from dpmpc.learning.softmax import predicted, probabilities


class _PrivateLinear(BaseEstimator):
    """What both estimators share. Parameters: see `PrivateLogisticRegression`."""

    _task: ClassVar[Task]

    def fit(self, X: Any, y: Any, owners: Any = None) -> Any:
        """The estimator, fitted. `owners` (n,): whose each record is; None: one owner holds all.

        Errors: ValueError (`EstimatorError`) for parameters and records that no fit can use, before anything is spent;
        PeerError when a party leaves; what was spent until then is in the ledgers, and in this estimator's account.
        """
        with as_value_errors():
            data, values = self._validated(X, y)
            groups = owner_codes(owners, len(values))
            schema, targets = self._mapped(data, values)
            self.schema_ = schema
            fitted = fit_records(self, schema, rows(schema, data), targets, groups)
        self._keep(fitted)
        return self

    def _keep(self, fitted: Fitted) -> None:
        self.guarantee_, self.ledger_, self.report_ = fitted.guarantee, fitted.ledger, fitted.report
        self.n_iter_ = fitted.iterations
        self._theta = fitted.theta
        d = len(self.schema_.feature_names)
        table = fitted.theta if len(fitted.theta) == d else fitted.theta.reshape(d, -1)
        features = d - self.schema_.intercept
        self.coef_: Floats = table[:features].T
        self.intercept_: Any = table[-1] if self.schema_.intercept else 0.0

    def _validated(self, X: Any, y: Any) -> tuple[Floats | Frame, Any]:
        """X as numbers (n, d) or as a frame, and y (n,); what is known of X's columns is noted."""
        if is_frame(X):
            validate_data(self, X, y, skip_check_array=True)
            if len(X) != len(y):
                raise EstimatorError(f"there is one target for each record; got {len(y)} for {len(X)}; mend y")
            return frame_of(X), column_or_1d(y, warn=True)
        numbers, values = validate_data(
            self, X, y, dtype=np.float64, ensure_min_samples=2, y_numeric=self._task == "ridge"
        )
        return numbers, values

    def _mapped(self, X: Floats | Frame, y: Any) -> tuple[Schema, Floats]:
        """The schema of the records, and their targets on its scale."""
        raise NotImplementedError

    def _names(self, X: Floats | Frame) -> list[str]:
        if isinstance(X, dict):
            return list(X)
        names = getattr(self, "feature_names_in_", None)
        return [f"x{i}" for i in range(X.shape[1])] if names is None else [str(name) for name in names]

    def _scores(self, X: Any) -> Floats:
        """(n,) or (n, classes): the records' scores."""
        check_is_fitted(self)
        with as_value_errors():
            if is_frame(X):
                validate_data(self, X, reset=False, skip_check_array=True)
                data: Floats | Frame = frame_of(X)
            else:
                data = validate_data(self, X, dtype=np.float64, reset=False)
            return scored(rows(self.schema_, data), self._theta)

    def __sklearn_clone__(self) -> Any:
        """A clone that shares the account of what was spent."""
        twin = super().__sklearn_clone__()
        twin._account = share_account(self)
        return twin

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True  # noise is drawn anew by every fit, from no seed
        return tags


class PrivateLogisticRegression(ClassifierMixin, _PrivateLinear):
    """Logistic regression over the records of several owners, with differential privacy; softmax regression where
    there are more than two classes.

        model = PrivateLogisticRegression(epsilon=1.0, delta=1e-5, bounds=(0, 1), classes=[0, 1])
        model.fit(X, y, owners=site).predict(X_new)

    Parameters: `epsilon`, `delta` (None or 0: pure, Laplace noise): the promise of one fit. `bounds`: the public range
    of the columns, (low, high) with numbers or one a column, or {column: [low, high] or categories}; `classes`: the
    public labels; without them both are read off the records, outside the guarantee, with a warning. `schema`: instead
    of bounds, a `dpmpc.data.Schema` or its file. `fit_intercept`: whether a constant feature is added. `method`,
    `iterations`, `lam`, `step`, `radius`, `average`, `weights`, `law`, `sampler`, `scale`: as of `dpmpc train`.
    `parties`, `threshold`, `backend`: who computes; processes of this machine. `engine`: "clear" for study, in this
    process. `data_id`: the name under which ledgers add up. `ledgers`: a folder that keeps every fit's ledgers,
    transcripts and logs; with `budget` "EPS,DELTA", a fit that would exceed it is refused.

    After `fit`: `coef_`, `intercept_` (of the schema's features), `classes_`, `schema_`, `guarantee_` (a
    `dpmpc.Promise`), `ledger_` (one entry a release), `report_`, `n_iter_`.

    Guarantees: of one fit, `guarantee_`; of several on the same records, what the warnings add up. Preprocessing before
    it in a pipeline reads plain records and is outside.
    """

    _task = "logistic"

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float | None = 1e-5,
        bounds: Any = None,
        classes: Any = None,
        schema: Any = None,
        fit_intercept: bool = True,
        method: str = DEFAULT_METHOD,
        iterations: int = 50,
        lam: float | None = None,
        step: float | None = None,
        radius: float | None = None,
        average: str = "tail",
        weights: str = "equal",
        law: str | None = None,
        sampler: str | None = None,
        scale: float | None = None,
        parties: int = 3,
        threshold: int | None = None,
        backend: str | None = None,
        engine: str = "mpc",
        data_id: str = "records",
        ledgers: Any = None,
        budget: str | None = None,
    ) -> None:
        self.epsilon, self.delta, self.bounds, self.classes, self.schema = epsilon, delta, bounds, classes, schema
        self.fit_intercept, self.method, self.iterations, self.lam = fit_intercept, method, iterations, lam
        self.step, self.radius, self.average, self.weights = step, radius, average, weights
        self.law, self.sampler, self.scale = law, sampler, scale
        self.parties, self.threshold, self.backend, self.engine = parties, threshold, backend, engine
        self.data_id, self.ledgers, self.budget = data_id, ledgers, budget

    def _mapped(self, X: Floats | Frame, y: Any) -> tuple[Schema, Floats]:
        check_classification_targets(y)
        seen = np.unique(y)
        self.classes_ = seen if self.classes is None else np.asarray(self.classes)
        if len(self.classes_) < 2:
            raise EstimatorError(
                f"a classifier needs at least 2 classes; got {len(self.classes_)} "
                f"class{'es' * (len(self.classes_) != 1)}; state them with classes="
            )
        if unknown := sorted(set(seen.tolist()) - set(self.classes_.tolist()), key=str):
            raise EstimatorError(f"labels are those of classes=; a record has {unknown[0]!r}; mend y or classes")
        if absent := sorted(set(self.classes_.tolist()) - set(seen.tolist()), key=str):
            raise EstimatorError(
                f"every class needs records; no owner has one of {absent[0]!r}; leave it out of classes"
            )
        schema = given_schema(self.schema)
        if schema is None:
            target, public = label_target(self.classes_.tolist()), self.classes is not None
            schema = make_schema(X, self._names(X), self.bounds, target, public, self.fit_intercept)
        if isinstance(schema.target, Range):
            raise EstimatorError("the schema of a classifier has a label as its target; this has a number; use another")
        if len(self.classes_) != schema.classes:
            raise EstimatorError(
                f"classes and schema must agree; there are {len(self.classes_)} and {schema.classes}; mend one of them"
            )
        if len(self.classes_) == 2:
            return schema, np.where(y == self.classes_[1], 1.0, -1.0)
        order = np.argsort(self.classes_, kind="stable")
        return schema, order[np.searchsorted(self.classes_, y, sorter=order)].astype(np.float64)

    def decision_function(self, X: Any) -> Floats:
        """(n,) the scores; above 0 the second class is predicted. With more classes (n, classes): the largest wins."""
        return self._scores(X)

    def predict(self, X: Any) -> Any:
        """(n,) the classes."""
        scores = self._scores(X)
        if scores.ndim == 2:
            return self.classes_[predicted(scores)]
        return self.classes_[(scores > 0).astype(np.int64)]

    def predict_proba(self, X: Any) -> Floats:
        """(n, classes) the probabilities of the classes, as the model has them."""
        from scipy.special import expit

        scores = self._scores(X)
        if scores.ndim == 2:
            return probabilities(scores)
        second = expit(scores)
        return np.stack([1 - second, second], axis=1)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # tens of records do not hold out against the noise of their promise
        return tags


class PrivateRidge(RegressorMixin, _PrivateLinear):
    """Ridge regression over the records of several owners, with differential privacy.

    Parameters: as of `PrivateLogisticRegression`, but for `target_bounds`, the public (low, high) of the target
    (without them it is read off the records, with a warning), and `residual_clip`, in units of half that range: beyond
    it the loss is linear, which bounds what one record can do.
    """

    _task = "ridge"

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float | None = 1e-5,
        bounds: Any = None,
        target_bounds: Any = None,
        schema: Any = None,
        fit_intercept: bool = True,
        residual_clip: float = 1.0,
        method: str = DEFAULT_METHOD,
        iterations: int = 50,
        lam: float | None = None,
        step: float | None = None,
        radius: float | None = None,
        average: str = "tail",
        weights: str = "equal",
        law: str | None = None,
        sampler: str | None = None,
        scale: float | None = None,
        parties: int = 3,
        threshold: int | None = None,
        backend: str | None = None,
        engine: str = "mpc",
        data_id: str = "records",
        ledgers: Any = None,
        budget: str | None = None,
    ) -> None:
        self.epsilon, self.delta, self.bounds, self.target_bounds = epsilon, delta, bounds, target_bounds
        self.schema, self.fit_intercept, self.residual_clip = schema, fit_intercept, residual_clip
        self.method, self.iterations, self.lam = method, iterations, lam
        self.step, self.radius, self.average, self.weights = step, radius, average, weights
        self.law, self.sampler, self.scale = law, sampler, scale
        self.parties, self.threshold, self.backend, self.engine = parties, threshold, backend, engine
        self.data_id, self.ledgers, self.budget = data_id, ledgers, budget

    def _mapped(self, X: Floats | Frame, y: Any) -> tuple[Schema, Floats]:
        values = np.asarray(y, dtype=np.float64)
        if not np.isfinite(values).all():
            raise EstimatorError("targets are finite numbers; one is NaN or infinity; remove such records")
        schema = given_schema(self.schema)
        if schema is None:
            target = range_target(values, self.target_bounds)
            public = self.target_bounds is not None
            schema = make_schema(X, self._names(X), self.bounds, target, public, self.fit_intercept)
        if not isinstance(schema.target, Range):
            raise EstimatorError("the schema of a regression has a number as its target; this has a label; use another")
        return schema, schema.target.values(values)

    def predict(self, X: Any) -> Floats:
        """(n,) predictions in the target's own units."""
        scores = self._scores(X)
        target = self.schema_.target
        assert isinstance(target, Range)
        return target.original(scores)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags
