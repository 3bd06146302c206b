"""Whole runs of two servers: by oblivious transfer unless told otherwise, verified, killed and carried on, over TLS."""

import json
import os
import signal
from pathlib import Path

import numpy as np
import pytest

import dpmpc as library
from dpmpc.cli import main as cli
from dpmpc.run.folder import opened_nothing
from dpmpc.verify.structure import check_structure
from tests.runs import children_of, dpmpc, errors_of, opened, rows, run, small, started, wait_until

SMALL = ["--data", "synthetic", "--max-rows", 120, "--dimension", 4, "--owners", 2, "--epsilon", 2, "-M", 2]


@pytest.mark.parametrize(
    ("more", "backend"), [({}, "ot"), ({"law": "laplace", "delta": None, "backend": "ot-k8"}, "ot-k8")]
)
def test_two_parties_train_and_hold(more: dict[str, object], backend: str, tmp_path: Path) -> None:
    report = run(small(parties=2, owners=2, **more), tmp_path / "run")
    assert report["backend"] == backend and report["parties"] == 2 and report["threshold"] == 1
    assert not any("threshold 0" in text for text in report["warnings"])
    assert len(opened(tmp_path / "run")) == 4
    evidence = check_structure(tmp_path / "run")
    assert all(check.holds for check in evidence.checks) and len(evidence.checks) == 10


def test_threshold_0_is_sharing_and_warns(tmp_path: Path) -> None:
    report = run(small(parties=2, owners=2, threshold=0, iterations=1), tmp_path / "run")
    assert report["backend"] == "sharing" and report["threshold"] == 0
    assert any("every single party can read" in text and "backend ot" in text for text in report["warnings"])


def test_a_run_goes_on_after_a_server_was_killed(tmp_path: Path) -> None:
    out = tmp_path / "run"
    with started("train", *SMALL, "--delta", 1e-4, "--iterations", 400, "--no-evaluate", "--out", out) as process:
        wait_until(lambda: rows(out) >= 3)
        os.kill(children_of(process.pid)[1], signal.SIGKILL)
        assert "was killed (SIGKILL)" in errors_of(process) and process.returncode == 3
    before = json.loads((out / "attempt.json").read_text())["number"]
    resumed = dpmpc("train", "--resume", out)
    assert resumed.returncode == 0, resumed.stderr
    assert json.loads((out / "attempt.json").read_text())["number"] == before + 1
    report = json.loads((out / "report.json").read_text())
    assert report["backend"] == "ot" and not opened_nothing(out / "owners.opened.bin")
    assert all(check.holds for check in check_structure(out).checks)


def test_refusals_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for more, says in (
        (["-M", 3, "--backend", "ot"], "--backend ot is for 2 parties; got 3"),
        (["-T", 0, "--backend", "ot"], "either of the 2 parties learns nothing alone"),
        (["--backend", "sharing"], "each of 2 parties can read everything (t = 0), which has to be asked for"),
        (
            ["--security", "active"],
            "of whom t may cheat, 1 <= t and 2t < n; got -M 2",
        ),
        (["--security", "active", "--backend", "garbled"], "leave it out, or use --security semi-honest"),
        (["--link", "wan", "--backend", "garbled"], "got --link wan with --backend garbled"),
        (["--sampler", "box-muller"], "two servers draw with circuits of bits alone; got --sampler box-muller"),
    ):
        words = ["train", *SMALL, "--delta", 1e-4, *more, "--plan-only", "--out", tmp_path / "run", "--overwrite"]
        with pytest.raises(SystemExit) as exit_:
            cli.main([str(word) for word in words])
        lines = capsys.readouterr().err.strip().splitlines()
        assert exit_.value.code == 2 and len(lines) == 1 and says in lines[0], lines


def test_samples_and_means_of_two() -> None:
    result = dpmpc("sample", "--law", "laplace", "--scale", 5000, "--count", 300, "-M", 2, "--open")
    assert result.returncode == 0, result.stderr
    assert "for n = 2, t = 1" in result.stdout and ", as predicted" in result.stdout and "transfers" in result.stdout
    vectors = np.zeros((3, 5))
    vectors[:, 0] = 1.0
    mean = library.private_mean(vectors, clip=1.0, epsilon=10.0, delta=1e-5, parties=2)
    assert mean.shape == (5,) and abs(mean - vectors[0]).max() < 8  # scale 0.3
