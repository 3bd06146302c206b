"""Private linear models with scikit-learn's interface: what they share, and `PrivateLogisticRegression`.

What they do is what `dpmpc train` does, on records that are in memory: the same plan, methods, parties and ledger.
"""

import functools
import inspect
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from dpmpc.errors import UsageError, public_text, sayable
from dpmpc.estimators.errors import EstimatorError, EstimatorRecordError, as_value_errors
from dpmpc.estimators.fitting import Fitted, Given, fit_records
from dpmpc.estimators.frames import (
    Frame,
    frame_of,
    frame_of_array,
    given_schema,
    is_frame,
    label_target,
    make_schema,
    owner_codes,
    rows,
    schema_classes,
    table_of,
    weights_of,
)
from dpmpc.estimators.persons import apart, first_of, ids_of
from dpmpc.estimators.targets import check_read_off, classes_in, codes_of, labels, numbered
from dpmpc.intake.missing import frame_without_codes
from dpmpc.intake.spelling import PLAIN, Spelling
from dpmpc.intake.table import Floats, Ints
from dpmpc.learning.additive import Additive
from dpmpc.learning.class_weights import corrected
from dpmpc.learning.matrix import scored
from dpmpc.learning.softmax import predicted
from dpmpc.privacy.unnamed import process_folder, share_process_folder
from dpmpc.records.schema import Range
from dpmpc.settings import keywords
from dpmpc.show.curve_charts import plot

F = TypeVar("F", bound=Callable[..., Any])
_COUNTS = "_counts_in"  # of a pickled estimator


def kept(init: F) -> F:
    """An estimator's `__init__` that keeps every parameter as it was given, as scikit-learn wants it, and names the
    nearest one where one is not known."""
    parameters = inspect.signature(init)

    @functools.wraps(init)
    def __init__(self: Any, *args: Any, **given: Any) -> None:
        bound = parameters.bind(self, *args, **given)
        bound.apply_defaults()
        del bound.arguments["self"]
        for name, value in bound.arguments.items():
            setattr(self, name, value)

    return keywords()(__init__)  # type: ignore[return-value]


class PrivateLinear(BaseEstimator):
    """What the estimators share. Parameters: see `PrivateLogisticRegression`."""

    _number: ClassVar[bool]  # whether targets are numbers
    weight_bound: float
    spelling: Spelling | None
    person: str | None
    person_rows: int

    def fit(self, X: Any, y: Any, owners: Any = None, sample_weight: Any = None, person: Any = None) -> Any:
        """The estimator, fitted. `owners` (n,): whose each record is; None: one owner holds all. `sample_weight` (n,):
        how much each record counts, between 0 and the public `weight_bound`; sums are divided by the number of records,
        never by a sum of weights, so the noise is as without (docs/privacy.md). `person` (n,): which person each record
        is of, where no column of X says it: the promise is then of all records of a person.

        Errors: ValueError (`EstimatorError`) for parameters and records that no fit can use, before anything is spent;
        PeerError when a party leaves; what was spent until then is in the ledgers, and in the account.
        """
        with as_value_errors():
            X, column = apart(table_of(X), self.person)
            columns, values = self._validated(X, y)
            values = self._targets(values, getattr(y, "name", None), columns)
            groups = owner_codes(owners, len(values))
            weights = weights_of(sample_weight, self.weight_bound, len(values))
            ids, persons = ids_of(self, column, person, len(values)), None
            if ids is not None:
                there, persons = first_of(ids, groups, self.person, self.person_rows, self.person_owners)
                columns = {name: column[there] for name, column in columns.items()}
                values, groups, weights = values[there], groups[there], None if weights is None else weights[there]
            given = self._given(columns, values, groups)
            fitted = fit_records(self, replace(given, weights=weights, persons=persons))
        self._keep(fitted)
        return self

    def _keep(self, fitted: Fitted) -> None:
        self.schema_ = fitted.schema
        self.guarantee_, self.ledger_, self.report_ = fitted.guarantee, fitted.ledger, fitted.report
        self.n_iter_, self.spent_, self.columns_ = fitted.iterations, fitted.spent, fitted.columns
        self._theta, self.class_weights_ = fitted.theta, fitted.weights
        d = len(self.schema_.feature_names)
        table = fitted.theta if len(fitted.theta) == d else fitted.theta.reshape(d, -1)
        features = d - self.schema_.intercept
        self.coef_: Floats = table[:features].T
        self.intercept_: Any = table[-1] if self.schema_.intercept else 0.0

    def _validated(self, X: Any, y: Any) -> tuple[Frame, Any]:
        """The columns of X by name, and y (n,); what is known of X's columns is noted. Errors: infinite values, and
        what else scikit-learn refuses."""
        y = y if y is None else one_column(y)  # a list has no type: each of its values is read by itself
        if not is_frame(X):
            numbers, values = validate_data(
                self, X, y, dtype=np.float64, ensure_all_finite="allow-nan", ensure_min_samples=2,
                y_numeric=self._number and not _texts(y),
            )  # fmt: skip
            return self._read(frame_of_array(numbers, self._names(numbers.shape[1]))), values
        columns, values = frame_of(X), y
        validate_data(self, X, skip_check_array=True)
        if len(X) != len(values):
            raise EstimatorError(f"there is one target for each record; got {len(values)} for {len(X)}; mend y")
        if len(values) < 2 or not columns:
            raise EstimatorError(f"a fit needs 2 records and a column; got {len(values)} and {len(columns)}; add some")
        return self._read(_finite(columns)), values

    def _read(self, columns: Frame) -> Frame:
        """The columns of numbers without those that were stated to stand for none."""
        return frame_without_codes(columns, self.spelling or PLAIN)

    def _targets(self, y: Any, name: Any, columns: Frame) -> Any:
        """(n,) the targets as `_given` takes them; `name`: theirs, if they have one. Errors: targets that no fit can
        use."""
        return y

    def _given(self, columns: Frame, y: Any, groups: Ints) -> Given:
        """What a fit is given. Errors: targets or a schema that the estimator is not for."""
        raise NotImplementedError

    def _names(self, d: int) -> list[str]:
        """Names of the columns of an array: those of the schema, where it has as many."""
        schema = given_schema(self.schema)
        if schema is not None and len(schema.columns) == d:
            return [column.name for column in schema.columns]
        return [f"x{i}" for i in range(d)]

    def _scores(self, X: Any) -> Floats:
        """(n,) or (n, classes): the records' scores."""
        check_is_fitted(self)
        with as_value_errors():
            X = table_of(X)
            if is_frame(X):
                X, _ = apart(X, self.person)
                validate_data(self, X, reset=False, skip_check_array=True)
                columns = _finite(frame_of(X))
            else:
                numbers = validate_data(self, X, dtype=np.float64, ensure_all_finite="allow-nan", reset=False)
                known = getattr(self, "feature_names_in_", None)
                names = self._names(numbers.shape[1]) if known is None else [str(name) for name in known]
                columns = frame_of_array(numbers, names)
            return scored(
                rows(self.schema_, self._read(columns), ball=False, spelling=self.spelling or PLAIN), self._theta
            )

    @property
    def additive_(self) -> Additive:
        """The fitted model as one curve a column, to write as JSON, to predict by, to explain. A model with another
        basis has no such attribute."""
        check_is_fitted(self)
        try:
            return Additive.of(self.schema_, self._theta, self.class_weights_)
        except UsageError as error:
            raise AttributeError(public_text(error)) from None

    def plot(self, path: Path | str) -> Path:
        """Writes a page with a picture of each curve. Errors: EstimatorError for a basis that is not additive."""
        check_is_fitted(self)
        with as_value_errors():
            return plot(Additive.of(self.schema_, self._theta, self.class_weights_), path, str(self.data_id))

    def __getstate__(self) -> dict[str, Any]:
        """As scikit-learn's, with the folder in which this process counts: a worker counts there too."""
        state: dict[str, Any] = super().__getstate__()
        return {**state, _COUNTS: str(process_folder())}

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        folder = Path(state.pop(_COUNTS, ""))
        if folder.is_absolute() and folder.is_dir():  # not where it is loaded after that process has ended
            share_process_folder(folder)
        super().__setstate__(state)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True  # noise is drawn anew by every fit, from no seed
        tags.input_tags.sparse = True  # and is made dense, as its rows are scaled as a whole
        tags.input_tags.allow_nan = True  # missing values are filled by the schema's rule
        return tags


def one_column(y: Any) -> Any:
    """(n,) targets, of whatever kind. Errors: several values a record."""
    return column_or_1d(np.asarray(y) if hasattr(y, "__array__") else np.asarray(y, dtype=object), warn=True)


def _of_one_kind(classes: Any) -> Any:
    """(k,) the classes that were stated; texts beside numbers stay what they are."""
    given = list(classes)
    alike = len({isinstance(value, str) for value in given}) == 1
    return np.array(given) if alike else np.array(given, dtype=object)


def _texts(y: Any) -> bool:
    """Whether targets are texts, or may be, by their array's type."""
    return y is None or y.dtype.kind in "OUS"


def _finite(columns: Frame) -> Frame:
    """The columns. Errors: one has an infinite value."""
    for name, column in columns.items():
        if column.dtype.kind == "f" and np.isinf(column).any():
            raise EstimatorError(
                f"values are finite numbers, or missing; '{sayable(name)}' has infinity; mend it", code="range"
            )
    return columns


class PrivateLogisticRegression(ClassifierMixin, PrivateLinear):
    """Logistic regression over the records of several owners, with differential privacy; softmax regression where
    there are more than two classes.

        model = PrivateLogisticRegression(epsilon=1.0, delta=1e-5, bounds=(0, 1), classes=[0, 1])
        model.fit(X, y, owners=site).predict(X_new)

    Parameters: those of `dpmpc train` that make sense for records in memory (docs/settings.md); the promise is that of
    one fit, and what is None is chosen as there. X: an array, or a pandas, Polars or Arrow table, with missing values.
    `bounds`: the public range of the columns, (low, high) with numbers or one a column, or {column: [low, high] or
    categories}; they restrict a survey inside the promise, which finds how numbers are spread. Without them it finds
    ranges and categories too, or, where the budget does not allow one, these are read off the records with a warning
    (`preprocessing` chooses). `classes`: the public labels;
    without them they are the schema's, or those of y, and then the promise says "if". `schema`:
    instead of both, a `dpmpc.records.Schema` or its file. `fit_intercept`: whether a constant feature is added.
    `weight_bound`: the public bound of `sample_weight`. `spelling`: how texts of a frame write numbers, dates and what
    is missing (`dpmpc.intake.Spelling`), for fits and predictions. `person`: the column of a frame that says which
    person a record is of, no feature (of an array: `fit(..., person=ids)`); `person_rows`: how many of each are used.
    `ledgers`: a folder that keeps every fit's ledgers, transcripts and logs; with `budget` "EPS,DELTA", a fit is
    refused with which all fits on this `data_id` would exceed it.

    After `fit`: `coef_`, `intercept_` (of the schema's features), `classes_`, `schema_`, `guarantee_` (a
    `dpmpc.Promise`), `ledger_` (one entry a release), `report_`, `n_iter_`, `columns_` (how many features
    each column has, or why it is left out), `spent_` (what all
    fits on the data of this `data_id` have spent by then, in this process and its workers or, of named data, ever).

    Guarantees: of one fit, `guarantee_`; of several on the same records, what the warnings add up. Preprocessing before
    it in a pipeline reads plain records and is outside.
    """

    _number = False

    @kept
    def __init__(
        self,
        *,
        bounds: Any = None,
        classes: Any = None,
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
        class_weight: str | None = None,
        weights: Literal["equal", "size"] | None = None,
        step: float | None = None,
        momentum: float | None = None,
        radius: float | None = None,
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

    def _given(self, columns: Frame, y: Any, groups: Ints) -> Given:
        y, there = labels(y, self.spelling or PLAIN)
        if y.dtype.kind != "O":
            check_classification_targets(y[there])
        schema = given_schema(self.schema)
        public = self.classes is not None or schema is not None
        seen, held = (np.array([]), []) if public else classes_in(y[there])
        if schema is not None and isinstance(schema.target, Range):
            raise EstimatorError("the schema of a classifier has a label as its target; this has a number; use another")
        if self.classes is not None:
            self.classes_ = _of_one_kind(self.classes)
        else:
            if schema is None:
                check_read_off(seen)
            self.classes_ = seen if schema is None else schema_classes(schema.target, y)
        if len(self.classes_) < 2:
            raise EstimatorError(
                f"a classifier needs at least 2 classes; got {len(self.classes_)} "
                f"class{sayable('es' * (len(self.classes_) != 1))}; state them with classes=",
                code="enough",
            )
        if self.classes is not None and schema is None and numbered(y[there], self.classes_):
            self.classes_ = np.arange(len(self.classes_))  # as a meta-estimator numbered them, by their order
        there_codes, unknown = codes_of(y[there], self.classes_.tolist())
        if unknown is not None:
            raise EstimatorRecordError(
                f"labels are those of classes= or schema=; a record has {unknown!r}; mend y or classes",
                "labels are those of classes= or schema=; a record has another; mend y or classes",
            )
        target = label_target(self.classes_.tolist())
        if schema is not None and len(self.classes_) != schema.classes:
            raise EstimatorError(
                f"classes and schema must agree; there are {len(self.classes_)} and {sayable(schema.classes)}; mend "
                "one of them"
            )
        codes = np.zeros(len(y), dtype=np.int64)
        codes[there] = there_codes
        values = np.where(codes == 1, 1.0, -1.0) if len(self.classes_) == 2 else codes.astype(np.float64)
        values[~there] = np.nan  # such a record counts as a zero vector
        return Given(
            "logistic" if len(self.classes_) == 2 else "softmax",
            columns,
            values,
            groups,
            target,
            None if public else min(held),
            lambda: (
                schema or make_schema(columns, self.bounds, target, public, self.fit_intercept, self.spelling or PLAIN)
            ),
            lambda made: values,
            read=() if public else ("classes",),
        )

    def decision_function(self, X: Any) -> Floats:
        """(n,) the scores; above 0 the second class is predicted. With more classes (n, classes): the largest wins."""
        return self._scores(X)

    def predict(self, X: Any) -> Any:
        """(n,) the classes."""
        scores = self._scores(X)
        if scores.ndim == 2:
            return self.classes_[predicted(scores)]
        return self.classes_[(scores > 0).astype(np.int64)]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The accuracy on these records; labels of texts are compared as those of `fit`. Errors: as there."""
        with as_value_errors():
            y, there = labels(one_column(y), self.spelling or PLAIN)
        weight = None if sample_weight is None else np.asarray(sample_weight)[there]
        return float(accuracy_score(y[there], self.predict(X)[there], sample_weight=weight))

    def predict_proba(self, X: Any) -> Floats:
        """(n, classes) the probabilities of the classes, as the model has them, corrected for weights of classes."""
        scores = self._scores(X)
        second = corrected(self.schema_.target, scores, self.class_weights_)
        if scores.ndim == 2:
            return second
        return np.stack([1 - second, second], axis=1)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # tens of records do not hold out against the noise of their promise
        return tags
