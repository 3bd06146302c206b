"""Partitions of rows over owners: every row once, the sizes asked for, the same for the same seed."""

import numpy as np
import pytest

from dpmpc.errors import owner_text
from dpmpc.records.ownership import partition
from tests.refusals import Rule, breaks, refuses


def test_even_split_holds_every_row_once() -> None:
    p = partition(103, owners=10, seed=1)
    assert sorted(p.order) == list(range(103))
    assert sorted(p.sizes) == [10] * 7 + [11] * 3 and (p.m, p.n) == (10, 103)
    assert p.offsets[0] == 0 and p.offsets[-1] == 103


def test_one_record_for_each_of_50_000_owners() -> None:
    p = partition(50_000, owners=50_000, seed=1)
    assert p.sizes.min() == p.sizes.max() == 1 and np.array_equal(np.sort(p.order), np.arange(50_000))


def test_the_seed_alone_decides() -> None:
    one, same, other = (partition(100, owners=5, seed=s).order for s in (3, 3, 4))
    assert np.array_equal(one, same) and not np.array_equal(one, other)


def test_rows_are_mixed() -> None:
    """Under a uniform permutation the first owner's mean row number has mean 4999.5 and s.d. below 92; 7 s.d. are
    passed with probability below 1e-8 (Hoeffding-Serfling gives the same order)."""
    assert abs(partition(10_000, owners=11, seed=5).order[:909].mean() - 4999.5) < 7 * 92


def test_sizes_are_kept_and_rows_beyond_their_sum_are_not_held() -> None:
    p = partition(100, sizes=[50, 1, 30], seed=1)
    assert p.sizes.tolist() == [50, 1, 30] and p.n == 81 and len(set(p.order.tolist())) == 81


@pytest.mark.parametrize(("n", "m", "u"), [(1000, 4, 3.0), (45222, 16, 9.0), (455, 5, 2.5), (699, 32, 5.0), (10, 2, 1)])
def test_a_skew_makes_two_groups_of_that_ratio(n: int, m: int, u: float) -> None:
    sizes = partition(n, owners=m, skew=u, seed=1).sizes
    small, large = sizes.min(), sizes.max()
    assert (sizes[: m // 2] == small).all() and (sizes[m // 2 :] == large).all()
    assert u * small - 1 < large <= u * small
    assert n - m * (u + 1) < sizes.sum() <= n


def test_groups_are_the_owners() -> None:
    groups = np.array([2, 0, 1, 0, 2, 2])
    p = partition(6, groups=groups, seed=1)
    assert [p.order[p.offsets[j] : p.offsets[j + 1]].tolist() for j in range(3)] == [[1, 3], [2], [0, 4, 5]]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"owners": 0}, breaks("range", 1, 10, setting="owners")),
        ({"owners": 11}, breaks("range", 1, 10, setting="owners")),
        ({"sizes": [5, 0]}, breaks("enough", "sizes")),
        ({"sizes": [5, -1]}, breaks("enough", "sizes")),
        ({"sizes": []}, breaks("enough", "sizes")),
        ({"sizes": [5, 6]}, breaks("range", 11)),
        ({"sizes": [5, 5], "owners": 3}, breaks("shape", 2, 3, setting="owners")),
        ({"owners": 4, "skew": 0.5}, breaks("range", 1, "0.5")),
        ({"owners": 4, "skew": float("nan")}, breaks("range", 1)),
        ({"owners": 1, "skew": 2.0}, breaks("enough", 2)),
        ({"owners": 8, "skew": 50.0}, breaks("enough", "owners", "skew")),
        ({}, breaks("missing")),
        ({"sizes": [5, 5], "skew": 2.0, "owners": 2}, breaks("together")),
        ({"groups": np.array([0, 2] * 5)}, breaks("enough", 1)),
        ({"groups": np.array([0, 1])}, breaks("shape", 2)),
        ({"groups": np.array([0, 1] * 5), "owners": 3}, breaks("together", 2, 3, setting="owners")),
        ({"groups": np.array([0, -1] * 5)}, breaks("records", 0)),
    ],
)
def test_impossible_partitions_are_usage_errors(arguments: dict[str, object], words: Rule) -> None:
    with refuses(words) as error:
        partition(10, seed=1, **arguments)  # type: ignore[arg-type]
    assert "\n" not in owner_text(error.value)


def test_no_rows() -> None:
    with refuses("enough"):
        partition(0, owners=1, seed=1)
