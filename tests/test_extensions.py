"""Another package's law, backend and method of learning: one entry each, and every command has them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.runs import COMMAND, HANG

TOYS = Path(__file__).parent / "toys"
SMALL = ["--data", "synthetic", "--max-rows", "120", "--dimension", "4", "--owners", "3", "--epsilon", "2"]


def with_toys(*arguments: str | Path | float) -> "subprocess.CompletedProcess[str]":
    """The command, where the other package is installed."""
    path = os.pathsep.join([str(TOYS), os.environ.get("PYTHONPATH", "")]).strip(os.pathsep)
    return subprocess.run(
        [*COMMAND, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
        env={**os.environ, "PYTHONPATH": path},
    )


@pytest.mark.parametrize(
    ("more", "found"),
    [
        (["--law", "double-laplace", "--iterations", "3"], ("law", "double-laplace")),
        (["--delta", "1e-4", "--backend", "boxed", "--iterations", "3"], ("backend", "boxed")),
        (["--delta", "1e-4", "--method", "centroid"], ("method", "centroid")),
    ],
    ids=["law", "backend", "method"],
)
def test_train_and_verify_have_them(more: list[str], found: tuple[str, str], tmp_path: Path) -> None:
    out = tmp_path / "run"
    result = with_toys("train", *SMALL, *more, "-M", 3, "--out", out)
    assert result.returncode == 0, result.stderr
    report = json.loads((out / "report.json").read_text())
    name, value = found
    assert (report["privacy"] if name == "law" else report)[name] == value
    assert report["privacy"]["epsilon"] == 2
    verified = with_toys("verify", out, "--structure")
    assert verified.returncode == 0 and "10 of 10" in verified.stdout, verified.stdout + verified.stderr


def test_sample_draws_from_the_law_and_through_the_backend() -> None:
    """The chi-square of 4,000 samples fails with probability 1e-9 when they follow the law."""
    result = with_toys(
        "sample", "--law", "double-laplace", "--scale", 5000, "--count", 4000, "--backend", "boxed", "--open"
    )
    assert result.returncode == 0, result.stderr
    assert "sum of two discrete Laplace" in result.stdout and ", as predicted" in result.stdout
    assert float(result.stdout.split("p = ")[1].split()[0]) > 1e-9


def test_account_knows_law_and_method() -> None:
    result = with_toys(
        "account", "--method", "centroid", "--law", "double-laplace", "--owners", 10, "--smallest", 100,
        "--epsilon", 1, "--iterations", 2, "--dimension", 4, "--json",
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    answer = json.loads(result.stdout)
    l1 = 2 * 4**0.5 / 1000  # sqrt(d) 2 / (m n_(1))
    assert answer["solved_for"] == "scale" and answer["scale"] == pytest.approx(2 * l1, rel=1e-6)
    solved = with_toys(
        "account", "--law", "double-laplace", "--owners", 10, "--smallest", 100, "--scale", answer["scale"],
        "--epsilon", 1, "--dimension", 4, "--json",
    )  # fmt: skip
    assert json.loads(solved.stdout)["iterations"] == 2, solved.stderr
    shown = with_toys(
        "account", "--law", "double-laplace", "--owners", 10, "--smallest", 100, "--epsilon", 1, "--iterations", 2
    )
    assert "scale b" in shown.stdout and "std dev" in shown.stdout and "sigma" not in shown.stdout, shown


def test_advice_has_the_law_and_refuses_a_method_that_nothing_rehearses() -> None:
    """Laplace noise of L1 sensitivity sqrt(d) 2 / (n lam), twice: its deviation is that of the sum."""
    run = ["advise", "--owners", 10, "--total", 100_000, "--dimension", 4, "--epsilon", 1]
    result = with_toys(*run, "--noise", "double-laplace", "--json")
    assert result.returncode == 0, result.stderr
    advice = json.loads(result.stdout)["advice"]
    assert (advice["method"], advice["noise"]) == ("output", "double-laplace")
    assert advice["sigma"] == pytest.approx(4**0.5 * 2 / (100_000 * 0.01), rel=1e-6)
    result = with_toys(*run, "--delta", "1e-6", "--method", "centroid")
    assert result.returncode == 2 and "rehearses --method centroid; choose one of them" in result.stderr, result.stderr
    result = with_toys(*run, "--method", "none")
    assert result.returncode == 2 and "'functional', 'centroid'" in result.stderr, result.stderr


@pytest.mark.parametrize(
    "more",
    [["--law", "double-laplace"], ["--backend", "boxed"], ["--method", "centroid"]],
    ids=["law", "backend", "method"],
)
def test_the_cost_suite_measures_them(more: list[str], tmp_path: Path) -> None:
    """Measured bytes and rounds are held against the counting of the backend and of the law's circuit."""
    result = with_toys("bench", "iteration", "-d", 7, "-m", 3, "-M", 3, *more, "--json", tmp_path / "bench.json")
    assert result.returncode == 0, result.stderr
    if "--method" not in more:
        one = () if "--law" in more else ("--law", "gaussian", "--sampler", "discrete")
        noise = with_toys("bench", "noise", "--no-plain", *more, *one, "--json", tmp_path / "noise.json")
        assert noise.returncode == 0 and more[1] in noise.stdout, noise.stderr


def test_without_the_package_its_names_are_refused_with_the_others_listed() -> None:
    result = subprocess.run(
        [*COMMAND, "sample", "--law", "double-laplace", "--scale", "5000"],
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
    )
    assert result.returncode == 2 and "'gaussian', 'laplace'" in result.stderr, result.stderr


def test_two_packages_cannot_have_one_name(tmp_path: Path) -> None:
    """A second package that takes a name of ours is refused, whatever is asked for."""
    info = tmp_path / "other-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[dpmpc.laws]\ngaussian = other:LAW\n")
    result = subprocess.run(
        [sys.executable, "-c", "from dpmpc.privacy.law import LAWS; LAWS.names()"],
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )
    assert "a law of noise's name belongs to one package; 'gaussian' is taken" in result.stderr
