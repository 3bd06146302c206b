"""Noise beside other packages: a row for each that is there, and the table of docs/cost.md of them."""

import json
from pathlib import Path

import pytest

from dpmpc.benchmarks.studies import peers
from website import waiting


def test_peers_that_are_there_have_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = {"version": "SPU 1", "seconds": [2.0, 1.0, 4.0], "bytes": 5000, "variance": 1.0, "largest": 3.0}
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\necho told $(basename $1)\necho '{json.dumps(said)}'\n")
    python.chmod(0o700)
    own = {"version": "dpmpc 1", "rate": 1e6, "bytes": 88.4, "variance": 1.001, "largest": 4.5}
    monkeypatch.setattr(peers, "ours", lambda count, repetitions: own)
    out = tmp_path / "peers.json"
    peers.main(["--spu", str(python), "--counts", "100", "--json", str(out)])
    row = json.loads(out.read_text())["rows"][1]
    assert row == {"who": "spu", "count": 100, "version": "SPU 1", "rate": 50.0, "bytes": 50.0, "variance": 1.0,
                   "largest": 3.0}  # fmt: skip
    table = waiting.peers(out)
    assert "| 100 | dpmpc 1 | three parties, one may look | 1,000,000 | 88 | 1.001 | 4.50 |" in table
    assert "| 100 | SPU 1 | three by ABY3, one may look | 50 | 50 | 1.000 | 3.00 |" in table
