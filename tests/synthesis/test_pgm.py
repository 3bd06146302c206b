"""Models by Private-PGM, where `mbi` is installed: the tables they are fitted to, and what is impossible."""

import numpy as np
import pytest

from dpmpc.synthesis import asking, pgm
from dpmpc.synthesis.constraints import Constraints
from dpmpc.synthesis.noisy import Noisy
from dpmpc.synthesis.table import structure
from tests.refusals import refuses
from tests.synthesis.test_synthetic_model import COLUMNS, opened_of, records_of


def test_without_the_package_one_line_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with refuses("usage", "mbi>=2", setting="model"):
        pgm.check_installed()


def test_every_fitted_table_is_that_of_the_records_but_for_noise() -> None:
    """Noise of a ten-thousandth: the tables of all fitted pairs agree with the records' to a fiftieth, the added pairs
    among them; impossible rows are not drawn; numpy's global generator is left alone."""
    pytest.importorskip("mbi")
    rng = np.random.default_rng(3)
    records = records_of(rng, 4000)
    zeros = Constraints.of(["sex = M and role = wife"], COLUMNS)
    opened = opened_of(asking.first(COLUMNS), records, 3e6, rng)
    noisy = Noisy(COLUMNS, opened, zeros)
    shape = pgm.widened(noisy, structure(noisy, None))
    assert shape.more and not set(map(frozenset, shape.more)) & set(map(frozenset, shape.tree))
    np.random.seed(1)
    first = np.random.random()
    np.random.seed(1)
    drawn = pgm.fitted(noisy, [opened], shape).draw(4000, np.random.default_rng(1))
    assert np.random.random() == first
    assert not ((drawn["sex"] == 1) & (drawn["role"] == 0)).any()
    for a, b in shape.edges:
        size = [len(noisy.axes[name].labels) for name in (a, b)]
        own = np.bincount(drawn[a] * size[1] + drawn[b], minlength=size[0] * size[1])
        assert 0.5 * np.abs(own / 4000 - noisy.two((a, b)).ravel() / noisy.n).sum() < 0.03, (a, b)
