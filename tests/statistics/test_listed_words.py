"""A word such as NA that a schema or bounds list is a value for every reader of records, without its owner's word."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmpc.intake.spelling import Spelling
from dpmpc.records.schema import Categorical, Labels, Schema
from dpmpc.tables.asked import stats
from dpmpc.tables.synth import synth

N = 600
SCHEMA = Schema((Categorical("country", ("NA", "NL", "null")),), Labels("y", ("yes",), ("no",)))


def records(tmp_path: Path, kind: str) -> Any:
    """NA, NL and null in turn, and then a fourth that is missing."""
    frame = {
        "site": np.array(["a", "b"] * (N // 2), dtype=object),
        "country": np.array(["NA", "NL", "null", ""] * (N // 4), dtype=object),
        "y": np.array(["yes", "no", "no"] * (N // 3), dtype=object),
    }
    if kind == "frame":
        return frame
    path = tmp_path / "r.csv"
    rows = zip(*frame.values(), strict=True)
    path.write_text("site,country,y\n" + "".join(",".join(row) + "\n" for row in rows))
    return str(path)


@pytest.mark.parametrize("kind", ["frame", "file"])
@pytest.mark.parametrize("spelling", [Spelling(), Spelling(missing=("-",))], ids=["plain", "stated"])
def test_a_listed_word_is_a_value_of_statistics_and_of_synthetic_tables(
    kind: str, spelling: Spelling, tmp_path: Path
) -> None:
    said: list[str] = []
    promise: dict[str, Any] = {"owners": "site", "spelling": spelling, "delta": 1e-5, "engine": "clear"}
    asked = stats(records(tmp_path, kind), ["table(country)"], schema=SCHEMA, epsilon=20, tell=said.append, **promise)
    assert np.allclose(asked.total[:4], [N / 4, N / 4, N / 4, 0], atol=9)  # the noise has deviation 0.3
    assert said == [f"your records: column 'country': {N // 4} missing of {N}"]
    made = synth(records(tmp_path, kind), schema=SCHEMA, epsilon=20, seed=1, **promise)
    counts = [sum(value == word for value in made.values["country"]) for word in ("NA", "NL", "null")]
    assert np.allclose(counts, N / 4, atol=9)
