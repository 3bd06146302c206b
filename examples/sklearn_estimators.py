"""scikit-learn: a private classifier for five hospitals, in a pipeline and cross-validated, with what that spends.

python examples/sklearn_estimators.py
"""

import warnings

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import cross_val_score, train_test_split

from dpmpc.estimators import PrivacyWarning, PrivateLogisticRegression

X, y = load_breast_cancer(return_X_y=True)
HIGHEST = """30 40 200 2600 0.2 0.4 0.5 0.25 0.4 0.1  3 5 22 550 0.04 0.2 0.4 0.06 0.08 0.03
             40 50 260 4300 0.25 1.1 1.3 0.3 0.7 0.25"""  # public: what such instruments measure
bounds = (0.0, np.array(HIGHEST.split(), dtype=float))
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=1)
site = np.arange(len(y_train)) % 5  # whose each record is

model = PrivateLogisticRegression(epsilon=2.0, delta=1e-4, bounds=bounds, classes=[0, 1], iterations=50)
model.fit(X_train, y_train, owners=site)  # three parties, processes of this machine
print(model.guarantee_)
print(f"accuracy {model.score(X_test, y_test):.3f}; releases in the ledger: {len(model.ledger_)}")

with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    scores = cross_val_score(model, X_train, y_train, cv=3, params={"owners": site})
print("cross-validation", np.round(scores, 3))
print(next(str(w.message) for w in reversed(said) if w.category is PrivacyWarning))
