"""What scikit-learn's own estimators make of these: labels that they number, sparse input."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from dpmpc.estimators import PrivateLogisticRegression, PrivateRidge
from tests.refusals import refuses

pytestmark = pytest.mark.filterwarnings(r"ignore:\d+ fits on :dpmpc.estimators.spending.PrivacyWarning")
RNG = np.random.default_rng(2)
X = RNG.uniform(-1, 1, (600, 2))
Y = np.where(X[:, 0] > 0, "yes", "no")
BY: dict[str, Any] = {"bounds": (-1, 1), "engine": "clear", "iterations": 10, "epsilon": 20.0}


def private(name: str, classes: Any = ("no", "yes")) -> PrivateLogisticRegression:
    return PrivateLogisticRegression(classes=list(classes), data_id=name, **BY)


@pytest.mark.parametrize("classes", [("no", "yes"), ("yes", "no")])
def test_probabilities_of_texts_across_folds(classes: Any) -> None:
    """Columns are in the order of the sorted labels, as for any classifier, whatever order was stated."""
    found = cross_val_predict(private("folds", classes), X, Y, method="predict_proba", cv=2)
    assert found.shape == (600, 2)
    assert np.mean((found[:, 1] > 0.5) == (Y == "yes")) > 0.85


def test_a_vote_of_private_and_plain_models_says_the_texts() -> None:
    for voting in ("hard", "soft"):
        vote = VotingClassifier([("a", private(voting)), ("b", LogisticRegression())], voting=voting).fit(X, Y)
        assert set(vote.predict(X)) == {"no", "yes"} and vote.score(X, Y) > 0.85


def test_numbers_that_are_no_places_of_classes_are_refused() -> None:
    for y in (np.where(Y == "yes", 2, 0), np.where(Y == "yes", 1, -1), np.where(Y == "yes", 1.0, 0.0)):
        with refuses("records", "classes=", kind=ValueError):
            private("refused").fit(X, y)


def test_sparse_input_is_the_dense_one() -> None:
    model = private("sparse").fit(sparse.csr_matrix(X), Y)
    for form in (sparse.csr_matrix, sparse.csc_array, sparse.coo_matrix):
        assert np.array_equal(model.predict_proba(form(X)), model.predict_proba(X))
    words = np.array([["a", "b"][k % 2] for k in range(600)], dtype=object)[:, None]
    coded = ColumnTransformer([("words", OneHotEncoder(sparse_output=True), [0])], sparse_threshold=1.0)
    ridge = PrivateRidge(bounds=(0, 1), target_bounds=(-1, 1), data_id="pipe", engine="clear", iterations=2)
    assert make_pipeline(coded, ridge).fit(words, X[:, 0]).predict(words).shape == (600,)
