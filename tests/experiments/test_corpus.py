"""The corpus: its sets are told apart, and those that come with scikit-learn are read as they are there."""

import numpy as np
import pytest
from dpmpc_experiments.corpus import CHOSEN, CONFIRMED, FINAL, FRESH, LAST, LATER, LATEST, SETS, Set, available, load
from sklearn import datasets

from tests.refusals import refuses


def test_what_constants_are_chosen_on_is_not_what_confirms_them() -> None:
    assert len(SETS) == sum(map(len, (CHOSEN, CONFIRMED, LATER, LATEST, LAST, FINAL, FRESH)))
    assert len(CHOSEN) >= 8 and len(CONFIRMED) >= 4
    assert len({each.source for each in SETS.values()}) == len(SETS)


@pytest.mark.parametrize("name", ["wdbc", "diabetes", "wine"])
def test_a_set_is_the_packages_own_in_another_order(name: str) -> None:
    raw, bunch = load(SETS[name]), getattr(datasets, f"load_{'breast_cancer' if name == 'wdbc' else name}")
    table = bunch(scaled=False) if name == "diabetes" else bunch()
    mine = np.column_stack([raw.columns[key] for key in raw.numbers])
    assert raw.texts == () and raw.n == len(table.target) and len(raw.columns) == SETS[name].features
    np.testing.assert_array_equal(np.sort(mine, axis=0), np.sort(table.data, axis=0))
    y = (raw.y + 1) / 2 if name == "wdbc" else raw.y
    np.testing.assert_array_equal(np.sort(y), np.sort(table.target))
    np.testing.assert_allclose(np.corrcoef(mine[:, 0], y), np.corrcoef(table.data[:, 0], table.target), atol=1e-12)


def test_a_set_that_is_not_there_is_named() -> None:
    away = Set("away", "file:adult", 14, "income")
    assert not available(away, None)
    with refuses("path", "away", "file"):
        load(away)
