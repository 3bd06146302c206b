"""Parties that leave: once noise is made, sums open without those that are not needed; before, the batch ends."""

import math
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
import pytest

import dpmpc
from dpmpc.verify.structure import check_structure
from tests.runs import HANG, own_addresses

CODE = """
import sys, dpmpc
limits = dpmpc.Limits(epsilon=float("inf"))  # these runs add no noise
dpmpc.Party(sys.argv[1], int(sys.argv[2]), sys.argv[4:], out=sys.argv[3], limits=limits).run()
"""
ANY = dpmpc.Limits(epsilon=math.inf)


@contextmanager
def party(folder: Path, index: int, addresses: list[str]) -> Iterator["subprocess.Popen[str]"]:
    """A party's process, killed on leaving if it lives."""
    arguments = [sys.executable, "-c", CODE, str(folder / "plan.json"), str(index), str(folder / "run"), *addresses]
    with subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def plan_in(folder: Path, **changes: object) -> dpmpc.Plan:
    """A plan of three parties with noise so narrow that results can be told."""
    settings = {"owners": 1, "dimension": 4, "clip": 1.0, "delta": 1e-5, "releases": 4, "backend": "shamir"}
    plan = dpmpc.Plan.create(**{**settings, "scale": 1e-4, **changes})  # type: ignore[arg-type]
    plan.write(folder / "plan.json")
    (folder / "run").mkdir()
    plan.write(folder / "run" / "plan.json")
    return plan


def test_once_noise_is_made_one_of_three_may_leave(tmp_path: Path) -> None:
    plan_in(tmp_path)
    addresses = own_addresses(3)[1::2]
    vector = np.array([0.1, -0.2, 0.05, 0.0])
    with ExitStack() as stack:
        parties = [stack.enter_context(party(tmp_path, i, addresses)) for i in range(3)]
        with dpmpc.Owner(tmp_path / "plan.json", 0, addresses, wait=HANG, limits=ANY) as owner:
            means = [owner.mean(vector)]
            parties[1].kill()
            parties[1].wait(HANG)
            means += [owner.mean((k + 1) * vector) for k in range(1, 4)]
            assert owner.report()["parties_lost"] == [1]
        assert [parties[i].wait(HANG) for i in (0, 2)] == [0, 0]
    for k, mean in enumerate(means):
        assert 0 < np.abs(mean - (k + 1) * vector).max() < 1e-3
    checks = check_structure(tmp_path / "run").checks
    assert all(check.holds for check in checks), [c for c in checks if not c.holds]


def test_noise_is_made_by_all(tmp_path: Path) -> None:
    """Without a pool each release makes its noise, which takes every party."""
    plan_in(tmp_path, pool=False)
    addresses = own_addresses(3)[1::2]
    with ExitStack() as stack:
        parties = [stack.enter_context(party(tmp_path, i, addresses)) for i in range(3)]
        owner = dpmpc.Owner(tmp_path / "plan.json", 0, addresses, wait=HANG, limits=ANY)
        owner.mean(np.zeros(4))
        parties[1].kill()
        parties[1].wait(HANG)
        with pytest.raises(dpmpc.PeerError):
            owner.mean(np.zeros(4))
        for i in (0, 2):
            said = parties[i].communicate(timeout=HANG)[1]
            assert "PeerError: noise is made by all parties; party 1 left" in said or "party 1 left the run" in said
