"""A fact that is read off records by a margin is the same for all neighbours that get one."""

from dpmpc.records.margins import decided


def test_neighbours_that_are_both_answered_are_answered_alike() -> None:
    for moved in range(5):
        for count in range(-20, 20):
            for other in range(count - moved, count + moved + 1):
                assert {decided(count, 3, moved), decided(other, 3, moved)} != {True, False}
    assert [decided(count, 3, 1) for count in (2, 3, 4, 5)] == [False, None, True, True]
