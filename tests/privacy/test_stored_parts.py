"""An owner's rows keep their parts, whoever asks for them at the same time."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmpc.local import holdout as parting
from dpmpc.privacy import stored_parts
from dpmpc.privacy.account import Account
from dpmpc.privacy.assignment import Parted
from tests.at_once import at_once
from tests.refusals import refuses

DATA = "d" * 64
PARTED = Parted.of(DATA, "training", {"training": (150,), "test": (150,)})


def drawn(folder: Path, ids: range | None, file: str = "") -> np.ndarray:
    """(300,) which rows of these ids, or of a file, are held out: half of them."""
    known = parting._Known(file, None if ids is None else "id", [str(each) for each in ids or ()])
    return parting._drawn(parting._Place(Account(folder), DATA, PARTED, 0), known, 300, 150)


def test_two_runs_at_once_have_no_row_in_different_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of two extracts of the data has rows that the other lacks; where the second run began before the first had
    kept what it drew, the rows that both have would be drawn twice, and those near the middle of the order would be in
    both parts (nine times of ten, for keys are drawn)."""
    first, second = range(300), range(150, 450)
    found: list[Any] = []
    other = at_once(
        monkeypatch,
        lambda: found.append(drawn(tmp_path, first)),
        (stored_parts, "_write"),
        lambda: drawn(tmp_path, second),
    )
    assert found[0].sum() == other.sum() == 150
    np.testing.assert_array_equal(found[0][150:], other[:150])
    np.testing.assert_array_equal(drawn(tmp_path, first), found[0])


def test_of_two_ways_to_tell_rows_at_once_one_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By ids and by places, both as the first run on the data: the parts would be others."""

    def by_place() -> str:
        with refuses("missing", setting="ids"):
            drawn(tmp_path, None, "a file")
        return "refused"

    assert at_once(monkeypatch, lambda: drawn(tmp_path, range(300)), (stored_parts, "_write"), by_place) == "refused"
