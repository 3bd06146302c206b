"""How many threads a process takes for itself."""

import os

import pytest

from dpmpc.processes.cores import threads_for


def test_cores_are_divided_among_equal_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)), raising=False)
    assert [threads_for(n) for n in (1, 2, 3, 5, 8, 9, 100)] == [8, 4, 2, 1, 1, 1, 1]


def test_where_nothing_says_which_cores_may_be_used_all_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 6)
    assert [threads_for(n) for n in (1, 3, 7)] == [6, 2, 1]
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert threads_for(1) == 1
