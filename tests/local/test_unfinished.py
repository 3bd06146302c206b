"""What is said of a run that is not finished."""

from pathlib import Path

import pytest

from dpmpc.errors import UsageError, owner_text
from dpmpc.learning.model import read_model
from dpmpc.local.report import read_report


@pytest.mark.parametrize(("kept", "way"), [(["request.json"], "with resume"), ([], "start the same commands")])
def test_a_run_that_is_not_finished_is_carried_on_in_the_way_of_its_kind(
    kept: list[str], way: str, tmp_path: Path
) -> None:
    """A run over several machines has no --resume."""
    for name in ["plan.json", *kept]:
        (tmp_path / name).write_text("{}")
    for read in (read_report, read_model):
        with pytest.raises(UsageError) as refused:
            read(tmp_path)
        assert way in owner_text(refused.value) and ("with resume" in owner_text(refused.value)) == bool(kept)
