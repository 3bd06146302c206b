"""`dpmpc bench masking`: its counts are those of the messages, and a drop-out costs the server masks."""

import pytest
from click.testing import CliRunner

from dpmpc.benchmarks import masking, pairwise_masking
from dpmpc.cli.bench import command


def test_rows_hold_the_counts_of_both_ways() -> None:
    whole, with_gone = masking.measure(6, 20, 0), masking.measure(6, 20, 2)
    assert whole["owner sends"] == pairwise_masking.traffic(6, 20)["client"]
    assert (whole["masks, server"], with_gone["masks, server"]) == (6, 4 + 2 * 4)
    assert whole["ours: owner sends"] == with_gone["ours: owner sends"]


def test_the_command_prints_a_line_a_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(masking, "QUICK", ((3, 4, 0), (4, 4, 1)))
    lines = CliRunner().invoke(command, ["masking"], catch_exceptions=False).output.splitlines()
    assert len(lines) == 3 and "into the server" in lines[0] and lines[2].split()[:3] == ["4", "4", "1"]
