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
from dpmpc.aggregation.wire.paths import ledger_path
from dpmpc.privacy.ledger import Ledger
from dpmpc.privacy.ledgers import merge
from dpmpc.processes.status import LEFT_OUT, read_state, status_path
from dpmpc.verify.structure import check_structure
from tests.runs import HANG, own_addresses, wait_until
from tests.runs import dpmpc as dpmpc_command

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


@pytest.mark.slow
def test_of_five_parties_three_go_on_when_two_are_killed_one_after_the_other(tmp_path: Path) -> None:
    """They come again: they are left out, say so, and end with the others."""
    plan_in(tmp_path, parties=5, releases=7)
    addresses = own_addresses(5)[1::2]
    vector = np.array([0.05, -0.1, 0.02, 0.0])
    means: list[np.ndarray] = []
    with ExitStack() as stack:
        parties = [stack.enter_context(party(tmp_path, i, addresses)) for i in range(5)]
        with dpmpc.Owner(tmp_path / "plan.json", 0, addresses, wait=HANG, limits=ANY) as owner:

            def release() -> None:
                means.append(owner.mean((len(means) + 1) * vector))

            release()
            for lost in (1, 3):
                parties[lost].kill()
                parties[lost].wait(HANG)
                release()
                release()
            assert owner.report()["parties_lost"] == [1, 3]
            again = [stack.enter_context(party(tmp_path, i, addresses)) for i in (1, 3)]
            paths = [status_path(tmp_path / "run", f"party_{i}") for i in (1, 3)]
            wait_until(lambda: all(getattr(read_state(path), "phase", "") == LEFT_OUT for path in paths))
            beside = dpmpc_command("status", tmp_path / "run").stdout
            release()
            release()
        said = [each.communicate(timeout=HANG)[1] for each in (parties[0], parties[2], parties[4], *again)]
        assert [each.returncode for each in (parties[0], parties[2], parties[4], *again)] == [0] * 5, said
    for k, mean in enumerate(means):
        assert 0 < np.abs(mean - (k + 1) * vector).max() < 1e-3
    assert "party 1: left out, the others go on\n" in beside
    assert "left out: parties 0, 2, 4 go on with the run" in beside and "nothing is to be done" in beside
    after = dpmpc_command("status", tmp_path / "run").stdout
    assert "party 1: left out to the end, the others finished the run, and have the model\n" in after
    assert "party 4: finished, 7 of 7 releases" in after
    books = [Ledger.read(ledger_path(tmp_path / "run", i)) for i in range(5)]
    assert [entry.lost for entry in books[4].entries][::2] == [(), (1,), (1, 3), (1, 3)]
    assert len(books[1].entries) < len(merge([books[1]])) == len(merge(books)) == 7
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
