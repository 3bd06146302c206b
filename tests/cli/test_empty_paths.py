"""A path that is said is not empty: it would be the current folder, and ledgers, accounts or models would lie there."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpmpc
from dpmpc.aggregation.owner.accounts import account_of
from dpmpc.aggregation.plan.plan import Plan
from dpmpc.errors import UsageError
from dpmpc.estimators import PrivateRidge
from dpmpc.planning.request import Request
from dpmpc.privacy.budget import Budget
from tests.refusals import refuses
from tests.runs import dpmpc as command

X, Y = np.eye(30, 3), np.arange(30.0)
PLAN = Plan.create(owners=2, dimension=5, clip=1.0, delta=1e-5, run_id="r")
CALLS: dict[str, Callable[[], object]] = {
    "out": lambda: dpmpc.train("", data="iris", owners=3),
    "account": lambda: dpmpc.train("run", data="iris", owners=3, account=""),
    "ledgers": lambda: dpmpc.train("run", data="iris", owners=3, ledgers="", budget="1,1e-5"),
    "csv": lambda: Request(csv=""),
    "account of an estimator": lambda: PrivateRidge(account="", delta=1e-5).fit(X, Y),
    "ledgers of an estimator": lambda: PrivateRidge(ledgers="", delta=1e-5).fit(X, Y),
    "account of a plan": lambda: account_of(PLAN, ""),
    "ledgers of a budget": lambda: Budget.below((1.0, 1e-5), "", Path("run")),
    "out of questions": lambda: dpmpc.stats("r.csv", ["count"], out="", owners=3, bounds={"x": [0, 1]}),
}


@pytest.fixture(autouse=True)
def _nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.chdir(tmp_path)
    yield
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("call", CALLS)
def test_an_empty_path_is_refused(call: str) -> None:
    with pytest.raises(UsageError) as error:
        CALLS[call]()
    assert error.value.code in ("path", "type") and error.value.setting == call.split()[0]


def test_a_frame_in_the_place_of_a_folder_is_refused() -> None:
    frame: Any = {"a": [1, 2]}
    for call in (lambda: dpmpc.train(frame, target="a"), lambda: dpmpc.stats("r.csv", ["count"], out=frame, owners=3)):
        with refuses("path", setting="out"):
            call()


@pytest.mark.parametrize(
    "words",
    [
        ("train", "--data", "iris", "--owners", "3", "--out"),
        ("train", "--data", "iris", "--owners", "3", "--out", "run", "--account"),
        ("join", "kit", "--ledgers"),
        ("budget", "--account"),
        ("keys", "request", "owner0", "--out"),
        ("describe", "--csv"),
    ],
)
def test_a_command_refuses_an_empty_path(words: tuple[str, ...]) -> None:
    end = command(*words, "")
    assert end.returncode == 2 and "names a file or a folder; it is empty; name one, or leave it out" in end.stderr
    assert words[-1] in end.stderr
