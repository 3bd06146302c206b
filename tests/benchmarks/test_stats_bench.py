"""The benchmark of statistics says in one line which files it lacks."""

import sys
from pathlib import Path

import pytest

from dpmpc.benchmarks.stats import main


@pytest.mark.parametrize("command", [["timing", "--only", "table1"], ["coverage", "--data", "adult", "--repeat", "1"]])
def test_missing_records_are_one_line(command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["stats", *command, "--data-dir", str(tmp_path)])
    with pytest.raises(SystemExit, match=r"^error: this data set needs adult/adult\.data; .*--data-dir$"):
        main()
    monkeypatch.delenv("DPMPC_DATA", raising=False)
    monkeypatch.setattr(sys, "argv", ["stats", *command])
    with pytest.raises(SystemExit, match=r"^error: .*no data folder is known; give --data-dir or set DPMPC_DATA$"):
        main()
